/* Which event files to join next. Reads the manifest's state and nothing else.
 *
 * A joined file stays within a granule, a twentieth of the limits of retention, so that dropping it
 * whole never keeps or takes much more than the limits ask for: of bytes it holds at most a
 * twentieth, and with a limit of age time is cut into twentieths of it, in which files are
 * joined by their age stamps. Without limits a fixed size is the end of it.
 *
 * While files are still being added, a run is joined when it has at least the given number of files
 * and the largest is at most half of it, so that a byte is copied at most once for every
 * doubling. When a twentieth of the age limit is over, all of its files are joined. */
#ifndef LAHAR_ROLLOVER_JOIN_CHOOSE_H
#define LAHAR_ROLLOVER_JOIN_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/store/manifest.h"

enum {
    LAHAR_JOIN_FILES_MAX = 64,   /* of one run */
    LAHAR_JOIN_REFUSED_MAX = 16, /* files that are remembered as impossible to join */
    LAHAR_JOIN_FILES_DEFAULT = 4,
    /* Beyond this a joined file gains little, and a shard that has to be built again from its
     * events would hold much memory. */
    LAHAR_JOIN_BYTES_MAX = 256 * 1024 * 1024
};

struct lahar_join_limits {
    uint32_t files_min;      /* of a run while files are still being added */
    uint64_t event_max;      /* of a joined file */
    const uint64_t *refused; /* numbers of files to be left alone */
    size_t refused_count;
};

/* Adjacent files of one stream, in their order. */
struct lahar_join_run {
    struct lahar_manifest_file files[LAHAR_JOIN_FILES_MAX];
    size_t count; /* 0: nothing is to be joined */
};

/* LAHAR_NO_MEMORY. */
lahar_status lahar_join_choose(const struct lahar_manifest_state *state,
                               const struct lahar_join_limits *limits,
                               const lahar_allocator *allocator, struct lahar_join_run *run_out,
                               lahar_error *error);

#endif
