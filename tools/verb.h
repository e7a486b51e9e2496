/* The verbs of lahar: each parses its own arguments and returns an exit status.
 * arguments[0] is the verb. */
#ifndef LAHAR_TOOLS_VERB_H
#define LAHAR_TOOLS_VERB_H

#include "tools/exit_status.h"

enum exit_status verb_content(int argument_count, char **arguments);
enum exit_status verb_export(int argument_count, char **arguments);
enum exit_status verb_follow(int argument_count, char **arguments);
enum exit_status verb_get(int argument_count, char **arguments);
enum exit_status verb_import(int argument_count, char **arguments);
enum exit_status verb_ingest(int argument_count, char **arguments);
enum exit_status verb_lineage(int argument_count, char **arguments);
enum exit_status verb_query(int argument_count, char **arguments);
enum exit_status verb_replay(int argument_count, char **arguments);
enum exit_status verb_repair(int argument_count, char **arguments);
enum exit_status verb_retain(int argument_count, char **arguments);
enum exit_status verb_rollover(int argument_count, char **arguments);
enum exit_status verb_scan(int argument_count, char **arguments);
enum exit_status verb_source(int argument_count, char **arguments);
enum exit_status verb_stat(int argument_count, char **arguments);
enum exit_status verb_stream(int argument_count, char **arguments);
enum exit_status verb_verify(int argument_count, char **arguments);
enum exit_status verb_volume(int argument_count, char **arguments);

#endif
