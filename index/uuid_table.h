/* The distinct uuids of a field with their documents: a sorted array of whole uuids,
 * so that answers are exact, under a directory of about sixteen each. Equal arrays of two fields
 * are stored once. */
#ifndef LAHAR_INDEX_UUID_TABLE_H
#define LAHAR_INDEX_UUID_TABLE_H

#include <stdint.h>

#include "index/postings.h"
#include "index/shard_pages.h"

/* Where the table of a field is. */
struct lahar_uuid_table {
    uint64_t count;
    uint64_t keys;            /* offset of count * 16 bytes, a multiple of 16 */
    uint64_t directory;       /* offset of (2^directory_bits + 1) u32, a multiple of 4 */
    uint64_t references;      /* offset of count packed references */
    unsigned directory_bits;  /* 0 .. 28 */
    unsigned skipped_bits;    /* leading bits that all uuids share, 0 .. 127 */
    unsigned reference_width; /* bits, 0 .. 56 */
};

/* keys: count uuids of 16 bytes, sorted. */
void lahar_uuid_table_write(struct lahar_list_writer *writer, const uint8_t *keys,
                            const uint64_t *references, uint64_t count,
                            struct lahar_uuid_table *table_out);

/* Says that the uuid is going to be looked for: the page that comes first is fetched meanwhile. */
void lahar_uuid_table_announce(struct lahar_shard_pages *pages,
                               const struct lahar_uuid_table *table, const lahar_uuid *uuid);
/* Adds the documents of the uuid. */
lahar_status lahar_uuid_table_find(const struct lahar_list_reader *reader,
                                   const struct lahar_uuid_table *table, const lahar_uuid *uuid,
                                   struct lahar_docset *set, lahar_error *error);

/* Reads the index-th uuid and its reference. index < count. */
lahar_status lahar_uuid_table_at(struct lahar_shard_pages *pages,
                                 const struct lahar_uuid_table *table, uint64_t index,
                                 lahar_uuid *uuid_out, uint64_t *reference_out, lahar_error *error);

/* Adds the documents of the uuids from low to high, both included, in the order of their bytes. */
lahar_status lahar_uuid_table_range(const struct lahar_list_reader *reader,
                                    const struct lahar_uuid_table *table, const lahar_uuid *low,
                                    const lahar_uuid *high, struct lahar_docset *set,
                                    lahar_error *error);

#endif
