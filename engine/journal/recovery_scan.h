/* Reading journal files: every frame in them that is whole and belongs to its place. */
#ifndef LAHAR_JOURNAL_RECOVERY_SCAN_H
#define LAHAR_JOURNAL_RECOVERY_SCAN_H

#include "engine/journal/recovery_memory.h"
#include "io/io.h"

/* What one pass over the files is told and finds. */
struct lahar_recovery_scan {
    struct lahar_io *io;
    const char *directory;
    const lahar_allocator *allocator;
    uint64_t store_id;
    const struct lahar_journal_session *sessions;
    size_t session_count;
    uint64_t rolled_id;
    bool read_only;
    unsigned planted_bugs; /* 0 unless they are built */

    struct lahar_recovery_memory *memory;
    uint64_t *durable_ids; /* a session each: the largest that a frame of it states */
    bool has_changed;      /* read_only: a file was recycled or removed meanwhile */
};

/* Fills memory with files, regions and frames, in no order. */
lahar_status lahar_recovery_scan_files(struct lahar_recovery_scan *scan, lahar_error *error);
/* The index of a session; session_count when it is not known. */
size_t lahar_recovery_find_session(const struct lahar_recovery_scan *scan, uint64_t session);

#endif
