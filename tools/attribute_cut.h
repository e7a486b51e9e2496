/* Attributes cut to a number of characters for display; what is stored stays whole. */
#ifndef LAHAR_TOOLS_ATTRIBUTE_CUT_H
#define LAHAR_TOOLS_ATTRIBUTE_CUT_H

#include "lahar/lahar.h"

struct attribute_cut {
    uint64_t length_max; /* characters; 0: as they are */
    lahar_event event;   /* the last one that was cut */
    void *memory;        /* owned: its values and pairs */
};

/* The event with its attributes cut, valid until the next call; the event itself where nothing is
 * too long. NULL when memory is short. */
const lahar_event *attribute_cut_apply(struct attribute_cut *cut, const lahar_event *event);
void attribute_cut_free(struct attribute_cut *cut);

#endif
