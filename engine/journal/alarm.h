/* How a background thread sleeps until there is work for it: a gate that anybody may signal, a
 * point in time, and marks that the journals ring when they reach them.
 *
 * The thread enters the gate, looks for work, and if there is none says what would be some and
 * sleeps. The marks are set and compared under the catalog's mutex, so that a walk either comes
 * first and is found at setting, or finds the marks and rings. What else makes work signals the
 * gate after it has changed what the thread looks at: the ticket was drawn before the look. */
#ifndef LAHAR_JOURNAL_ALARM_H
#define LAHAR_JOURNAL_ALARM_H

#include <stdint.h>

#include "engine/journal/gate.h"

/* What ends a sleep, whichever comes first; UINT64_MAX: this never does. */
struct lahar_rest {
    uint64_t until_ns;       /* monotonic */
    uint64_t published_id;   /* every id below is published */
    uint64_t appended_bytes; /* so much was appended since the opening */
};

#define LAHAR_REST_FOREVER ((struct lahar_rest){UINT64_MAX, UINT64_MAX, UINT64_MAX})

struct lahar_alarm {
    struct lahar_gate gate;
    struct lahar_rest marks;  /* guarded by the catalog's mutex; until_ns is not used */
    struct lahar_alarm *next; /* the same */
};

#endif
