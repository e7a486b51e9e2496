/* The age clock; see the header for what it believes. */
#include "engine/store/age_clock.h"

#include <stddef.h>

#define NS_PER_DAY     (INT64_C(86400) * 1000000000)
#define GAP_NS_MAX     (3653 * NS_PER_DAY)
#define BACKWARDS_MAX  NS_PER_DAY /* a correction, not a wrong clock */
#define STEADY_RUN_MIN ((uint64_t)NS_PER_DAY)

/* a - b, kept within the range of the type. */
static int64_t subtract(int64_t a, int64_t b)
{
    int64_t difference = 0;
    if (__builtin_sub_overflow(a, b, &difference)) {
        return a < b ? INT64_MIN : INT64_MAX;
    }
    return difference;
}

/* Counts the time for which the store was closed if the wall clock can be believed. */
static void settle_gap(struct lahar_age_clock *clock, uint64_t monotonic_ns, int64_t realtime_ns)
{
    const uint64_t run_ns = monotonic_ns - clock->base_ns;
    const int64_t base_realtime_ns = subtract(realtime_ns, (int64_t)run_ns);
    const int64_t gap_ns = subtract(base_realtime_ns, clock->wall_ns);
    const bool is_believable = gap_ns >= -BACKWARDS_MAX && gap_ns <= GAP_NS_MAX;
    if (!is_believable && run_ns < STEADY_RUN_MIN) {
        return;
    }
    clock->wall_ns = base_realtime_ns;
    clock->age_ns += is_believable && gap_ns > 0 ? (uint64_t)gap_ns : 0;
    clock->has_gap = false;
}

void lahar_age_clock_start(struct lahar_age_clock *clock, const struct lahar_age_reading *saved,
                           uint64_t left_end_id, uint64_t next_id, uint64_t monotonic_ns,
                           int64_t realtime_ns)
{
    *clock = (struct lahar_age_clock){.age_ns = 1, .wall_ns = realtime_ns, .base_ns = monotonic_ns};
    clock->held_id = next_id;
    clock->held_ns = 1;
    if (saved == NULL) {
        return;
    }
    clock->age_ns = saved->age_ns;
    clock->wall_ns = saved->wall_ns;
    clock->has_gap = true;
    clock->held_ns = saved->age_ns;
    if (left_end_id <= saved->held_id) {
        /* All that is left is from before the opening before. */
        clock->held_id = saved->held_id;
        clock->held_ns = saved->held_ns;
    }
}

struct lahar_age_reading lahar_age_clock_read(struct lahar_age_clock *clock, uint64_t monotonic_ns,
                                              int64_t realtime_ns)
{
    if (clock->has_gap) {
        settle_gap(clock, monotonic_ns, realtime_ns);
    }
    const uint64_t run_ns = monotonic_ns - clock->base_ns;
    return (struct lahar_age_reading){.age_ns = clock->age_ns + run_ns,
                                      .wall_ns = clock->wall_ns + (int64_t)run_ns,
                                      .held_id = clock->held_id,
                                      .held_ns = clock->held_ns};
}
