/* The verbs of lahar-load. arguments[0] is the verb. */
#ifndef LAHAR_TOOLS_LOAD_H
#define LAHAR_TOOLS_LOAD_H

#include "tools/exit_status.h"

enum exit_status load_gen(int argument_count, char **arguments);
enum exit_status load_run(int argument_count, char **arguments);

#endif
