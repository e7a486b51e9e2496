/* What a recovery holds behind lahar_journal_recovery.memory: the regions that the batches
 * point into, the batches' offset records, and the files that were found. */
#ifndef LAHAR_JOURNAL_RECOVERY_MEMORY_H
#define LAHAR_JOURNAL_RECOVERY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/journal/frame.h"
#include "engine/journal/journal.h"
#include "io/base/allocator.h"

/* A region read into memory; kept when a batch points into it. */
struct lahar_recovered_region {
    struct lahar_recovered_region *next;
    uint64_t size; /* bytes behind this struct */
    uint8_t data[];
};

struct lahar_recovered_file {
    uint64_t number;
    uint64_t size_bytes;
    bool is_whole;   /* header valid, every region within the file */
    uint64_t end_id; /* above every kept batch in it; 0: none */
};

/* A valid batch frame. */
struct lahar_recovered_frame {
    struct lahar_frame frame;
    uint64_t session;
    uint32_t file; /* index in files */
    bool is_kept;
};

struct lahar_recovery_memory {
    struct lahar_recovered_region *regions;
    uint64_t region_bytes;
    struct lahar_recovered_file *files;
    size_t file_count;
    size_t file_capacity;
    struct lahar_recovered_frame *frames; /* the kept ones in id order, once recovery is done */
    size_t frame_count;
    size_t frame_capacity;
    struct lahar_resident_batch *batches;
    struct lahar_journal_offset *offsets;
    struct lahar_lost_range *lost;
    size_t lost_count;
    size_t lost_capacity;
    uint64_t set_aside_count; /* files that hold something nobody can tell */
};

void lahar_recovery_memory_release(struct lahar_recovery_memory *memory,
                                   const lahar_allocator *allocator); /* NULL is allowed */
/* Notes that ids were durable and are gone; ranges come in order of id. */
lahar_status lahar_recovery_memory_lose(struct lahar_recovery_memory *memory, uint64_t first_id,
                                        uint64_t end_id, const lahar_allocator *allocator,
                                        lahar_error *error);
uint64_t lahar_recovery_memory_bytes(const struct lahar_recovery_memory *memory);
/* The encoded offset records of batch number index. */
void lahar_recovery_memory_offsets(const struct lahar_recovery_memory *memory, size_t index,
                                   const uint8_t **offsets_out, uint32_t *size_out);

#endif
