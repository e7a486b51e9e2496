/* Messages to people, on standard error, and the exit status that goes with
 * each failure of the library. */
#ifndef LAHAR_TOOLS_COMPLAIN_H
#define LAHAR_TOOLS_COMPLAIN_H

#include "lahar/status.h"
#include "tools/exit_status.h"

/* The name in front of every message, "lahar" unless set. */
void complain_as(const char *program);

/* One line; the newline is added. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the error's message and returns the status for it. */
enum exit_status complain_of(const lahar_error *error);
enum exit_status exit_status_of(lahar_status status);

/* For a verb called wrongly: says what is wrong, unless NULL, and how to learn more. */
enum exit_status complain_of_usage(const char *verb, const char *what);

/* Flushes standard output. An answer that could not be written is a failure:
 * returns what becomes of status. */
enum exit_status finish_output(enum exit_status status);

#endif
