/* Opening a store with what only tests and the store itself choose. */
#ifndef LAHAR_STORE_STORE_INTERNAL_H
#define LAHAR_STORE_STORE_INTERNAL_H

#include "io/io.h"
#include "lahar/store.h"

/* Background work, one non-blocking step each. */
enum lahar_store_work {
    LAHAR_WORK_WRITER = 0, /* + journal number: 0 .. 15 */
    LAHAR_WORK_ROLLOVER = 16,
    LAHAR_WORK_CEILING = 17,
    LAHAR_WORK_RETENTION = 18,
    LAHAR_WORK_JOIN = 19,
    LAHAR_WORK_COUNT = 20
};

/* Mistakes that the crash explorer must find; they exist only in builds with
 * LAHAR_PLANTED_BUGS. The low 16 bits belong to the journal. */
enum lahar_store_planted_bug {
    LAHAR_PLANTED_JOURNAL_MASK = 0xffff,
    LAHAR_PLANTED_ROLLOVER_NO_DIRECTORY_SYNC = 1 << 16,
    /* Files are removed before the manifest says so. */
    LAHAR_PLANTED_RETENTION_REMOVES_FIRST = 1 << 17,
    /* Retention goes one file too far. */
    LAHAR_PLANTED_RETENTION_DROPS_TOO_MUCH = 1 << 18,
    /* Readers lose the files, the manifest keeps them. */
    LAHAR_PLANTED_RETENTION_FORGETS = 1 << 19,
    /* The parts of a joined file go before the manifest says so. */
    LAHAR_PLANTED_JOIN_REMOVES_FIRST = 1 << 20,
    /* A joined file is named in the manifest before its name is durable. */
    LAHAR_PLANTED_JOIN_NO_DIRECTORY_SYNC = 1 << 21
};

struct lahar_store_config {
    struct lahar_io *io;            /* used, not owned; NULL: by options->backend */
    bool start_threads;             /* false: the caller drives lahar_store_step */
    unsigned planted_bugs;          /* enum lahar_store_planted_bug */
    uint64_t group_event_max;       /* most events of one rollover; 0: as many as a shard takes */
    uint32_t slice_event_max;       /* events that make an indexed slice in memory; 0: 16,384 */
    uint64_t id_reserve;            /* ids reserved ahead; 0: 2^20, rising with the rate */
    uint64_t manifest_growth_bytes; /* log that brings on a snapshot; 0: 1 MiB */
    uint32_t join_file_count;       /* small files that are joined; 0: 4; UINT32_MAX: never */
    uint32_t query_part_size;       /* events of a file that a walk looks into first; 0: 65,536 */
};

/* With start_threads false no thread is started, and calls that would wait run
 * the steps themselves, in order of work number, until they are done. */
lahar_status lahar_store_open_config(const char *directory, const lahar_options *options,
                                     const struct lahar_store_config *config, uint64_t deadline_ns,
                                     lahar_store **store_out, lahar_error *error);
/* The same with the defaults of everything but io and start_threads. */
lahar_status lahar_store_open_with(const char *directory, const lahar_options *options,
                                   struct lahar_io *io, bool start_threads, uint64_t deadline_ns,
                                   lahar_store **store_out, lahar_error *error);
/* Returns whether the step did anything. */
bool lahar_store_step(lahar_store *store, uint32_t work);
/* Frees the store without writing anything more, as after a crash. */
void lahar_store_abandon(lahar_store *store);

#endif
