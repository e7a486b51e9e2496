/* Events as lines on standard output, for people or as JSON. */
#ifndef LAHAR_TOOLS_EVENT_OUTPUT_H
#define LAHAR_TOOLS_EVENT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "lahar/lahar.h"
#include "tools/attribute_cut.h"
#include "tools/exit_status.h"

enum event_output_form {
    EVENT_OUTPUT_LINES,  /* one line an event: time, id, stream, message or key=value */
    EVENT_OUTPUT_FIELDS, /* one line a field, a blank line between events */
    EVENT_OUTPUT_JSON    /* one object a line */
};

struct event_output {
    lahar_store *store;
    lahar_export *export_; /* makes the "fields" of JSON; NULL in the other forms */
    enum event_output_form form;
    bool is_coloured;
    uint64_t written_count;   /* events */
    struct attribute_cut cut; /* length_max may be set once opened */
};

/* Prints why on failure. */
enum exit_status event_output_open(struct event_output *output, lahar_store *store,
                                   enum event_output_form form);
enum exit_status event_output_write(struct event_output *output, const lahar_event *event);
/* Writes what next gives until LAHAR_NOT_FOUND, an interrupt, or limit events (0: all). Damage is
 * said, passed over, and told by the status at the end. */
typedef lahar_status (*event_output_next)(void *context, const lahar_event **event_out,
                                          lahar_error *error);
enum exit_status event_output_write_all(struct event_output *output, event_output_next next,
                                        void *context, uint64_t limit);
void event_output_close(struct event_output *output);

/* bytes as they may be shown on a terminal: control characters as \xHH. */
void event_output_text(lahar_bytes bytes);

#endif
