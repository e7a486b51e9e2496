/* The files of one stream in one rollover: event file, toc and shard. */
#ifndef LAHAR_ROLLOVER_ROLLOVER_FILES_H
#define LAHAR_ROLLOVER_ROLLOVER_FILES_H

#include <stdint.h>

#include "engine/rollover/file_writing.h"
#include "engine/store/store_state.h"

/* The rows of one block: so many of a part from one on. */
struct lahar_rollover_run {
    size_t batch;    /* of the group's batches, the one with the first row */
    uint32_t offset; /* of the first row in its rows */
    uint32_t event;  /* its number in the batch */
    uint32_t row_count;
};

/* The part of a group that belongs to one stream. */
struct lahar_rollover_part {
    uint32_t stream;
    uint64_t event_count;
    uint64_t raw_bytes;
    struct lahar_buffer runs; /* struct lahar_rollover_run: a block each, in order */
    uint64_t run_bytes;       /* of rows in the last one */
};

struct lahar_rollover_group_range {
    const struct lahar_resident_batch *batches;
    const uint64_t *stream_masks; /* for each batch, bit (stream % 64) of each stream in it */
    size_t batch_count;
    uint64_t bytes; /* of rows */
    uint64_t first_id;
    uint64_t end_id;     /* exclusive */
    uint32_t part_count; /* event files of the rollover */
};

/* Writes, syncs and names the files of a part; the directory is left to sync. On failure none of
 * them is left. */
lahar_status lahar_rollover_write_part(lahar_store *store,
                                       const struct lahar_rollover_group_range *range,
                                       const struct lahar_rollover_part *part,
                                       struct lahar_manifest_file *file_out, lahar_error *error);
/* Writes and syncs a file that belongs to an event file, and gives it its name. */
lahar_status lahar_rollover_write_file(lahar_store *store, const struct lahar_manifest_file *file,
                                       const char *suffix, const struct lahar_buffer *bytes,
                                       lahar_error *error);
/* The same for the shard, which is noted in the file's entry. */
lahar_status lahar_rollover_write_shard(lahar_store *store, const struct lahar_buffer *bytes,
                                        struct lahar_manifest_file *file, lahar_error *error);
/* The same for the shard, made from what the event file itself holds. LAHAR_CORRUPT when a block of
 * it cannot be read, LAHAR_CANCELLED when is_cancelled, unless NULL, says so. */
lahar_status lahar_rollover_rebuild_shard(lahar_store *store, struct lahar_segment *segment,
                                          struct lahar_manifest_file *file,
                                          bool (*is_cancelled)(void *context), void *cancel_context,
                                          lahar_error *error);
/* A sink of shards: context is a struct lahar_file_writing. */
lahar_status lahar_rollover_put_shard(void *context, const void *data, size_t size,
                                      lahar_error *error);
/* Notes a shard that was written in pieces in the entry of its event file. */
void lahar_rollover_note_shard(struct lahar_manifest_file *file,
                               const struct lahar_file_writing *writing);
/* Notes the checksum of a file's table of contents in its entry. */
lahar_status lahar_rollover_sum_toc(lahar_store *store, struct lahar_manifest_file *file,
                                    lahar_error *error);
/* Removes the files that write_part has made. */
void lahar_rollover_remove_part(lahar_store *store, const struct lahar_manifest_file *file);

#endif
