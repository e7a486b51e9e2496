/* The age clock: how much time has passed for a store, open or not, since it was created.
 *
 * While the store is open it runs with the monotonic clock. The time between two openings is
 * known from the wall clock alone, which may be wrong at either end: so the wall clock is
 * looked at once, when the store is opened, and from then on counted forward by the
 * monotonic clock, and what is kept for the next opening is this believed time, whatever the
 * wall clock says by then. A gap that cannot be (backwards, or more than ten years) is not
 * counted; it is looked at again until the wall clock makes sense or has stood by its
 * word for a day, in which case it is believed from there on and the gap was nothing.
 *
 * Not thread-safe: the store's manifest lock guards it. */
#ifndef LAHAR_STORE_AGE_CLOCK_H
#define LAHAR_STORE_AGE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct lahar_age_clock {
    uint64_t age_ns;  /* at the base */
    int64_t wall_ns;  /* believed at the base */
    uint64_t base_ns; /* monotonic */
    uint64_t held_id; /* as in a reading */
    uint64_t held_ns;
    bool has_gap; /* the time before this opening is not counted yet */
};

/* A reading of the age clock, and what must be kept with it. */
struct lahar_age_reading {
    uint64_t age_ns;
    int64_t wall_ns;  /* the wall clock believed at that moment */
    uint64_t held_id; /* events below, as far as they are still in journals, ... */
    uint64_t held_ns; /* ... had all come by this age of the store */
};

/* saved: the last reading of the openings before, NULL when there was none: the clock starts
 * at 1. Journals left events below left_end_id; next_id is the first of this opening. */
void lahar_age_clock_start(struct lahar_age_clock *clock, const struct lahar_age_reading *saved,
                           uint64_t left_end_id, uint64_t next_id, uint64_t monotonic_ns,
                           int64_t realtime_ns);
struct lahar_age_reading lahar_age_clock_read(struct lahar_age_clock *clock, uint64_t monotonic_ns,
                                              int64_t realtime_ns);

#endif
