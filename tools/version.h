/* What a program is made of. */
#ifndef LAHAR_TOOLS_VERSION_H
#define LAHAR_TOOLS_VERSION_H

/* "PROGRAM 0.1.0" and one line for each library linked. */
void version_print(const char *program);

#endif
