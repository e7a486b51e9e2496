/* Which uuids a shard may hold, in any of its fields: a Bloom filter in blocks of one cache line.
 *
 * It tells most shards that do not have a uuid apart without a page of their tables. It stands
 * at the end of the pages in two layers of its own hashes: the near one, right before the
 * directory, is bounded so that the read that opens a shard brings it along; the far one, of shards
 * with so many uuids that the near one lets many pass, is read when that does. A uuid is absent
 * when any layer says so. */
#ifndef LAHAR_INDEX_UUID_FILTER_H
#define LAHAR_INDEX_UUID_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "index/shard_pages.h"
#include "io/base/buffer.h"

struct lahar_filter_layer {
    uint32_t block_count; /* of LAHAR_FILTER_BLOCK_SIZE bytes; 0: there is no such layer */
    uint32_t probe_count; /* bits set for a uuid, 1 .. 7 */
};

struct lahar_uuid_filter {
    struct lahar_filter_layer near; /* ends where the pages end */
    struct lahar_filter_layer far;  /* ends where the near one begins */
};

enum {
    LAHAR_FILTER_BLOCK_SIZE = 64
};

/* What a filter is made of: hashes of the uuids of all fields. */
struct lahar_filter_writer {
    struct lahar_buffer hashes; /* u64 each, field by field */
    struct lahar_buffer fields; /* u64 each: where the hashes of a field end, in bytes */
};

void lahar_filter_writer_init(struct lahar_filter_writer *writer, const lahar_allocator *allocator);
void lahar_filter_writer_deinit(struct lahar_filter_writer *writer);
/* keys: count distinct uuids of 16 bytes, sorted, of one field. Failure shows when it is written.
 */
void lahar_filter_writer_add(struct lahar_filter_writer *writer, const uint8_t *keys,
                             uint64_t count);
/* Appends the filter to out, whose end is at place of the shard, as the last of its pages. Shards
 * with few uuids get none. False when memory is refused. */
bool lahar_filter_writer_write(struct lahar_filter_writer *writer, struct lahar_buffer *out,
                               uint64_t place, struct lahar_uuid_filter *filter_out);

/* Bytes of the filter. */
uint64_t lahar_uuid_filter_size(const struct lahar_uuid_filter *filter);
/* Whether the layers are ones that this version reads and lie in pages of body_size bytes. */
bool lahar_uuid_filter_is_valid(const struct lahar_uuid_filter *filter, uint64_t body_size);
/* Says that the filter is going to be asked: a page of the far layer that this takes is fetched
 * meanwhile. A page of the near layer that is not in memory is fetched at once. */
void lahar_uuid_filter_announce(struct lahar_shard_pages *pages,
                                const struct lahar_uuid_filter *filter, const lahar_uuid *uuid);
/* *may_out false: no field of the shard holds the uuid. */
lahar_status lahar_uuid_filter_ask(struct lahar_shard_pages *pages,
                                   const struct lahar_uuid_filter *filter, const lahar_uuid *uuid,
                                   bool *may_out, lahar_error *error);

#endif
