/* Lists of document ordinals: encoding while a shard is built, decoding into sets. */
#ifndef LAHAR_INDEX_POSTINGS_H
#define LAHAR_INDEX_POSTINGS_H

#include <stdint.h>

#include "index/blob_table.h"
#include "index/docset.h"
#include "index/groups.h"
#include "index/shard_pages.h"

/* Where lists are written: byte p of out is byte p - base of the shard, in the arithmetic of
 * size_t, so that base wraps where the first bytes of the shard are not in out any more. */
struct lahar_list_writer {
    struct lahar_buffer *out;
    size_t base;
    struct lahar_blob_table *blobs; /* NULL: equal lists are not looked for */
    uint32_t document_count;        /* of the shard */
    struct lahar_group_map *groups; /* NULL: none */
};

/* Writes the list unless an equal one is there and returns the reference to store for it (see
 * shard_format.h). documents rise strictly; failure is left in out->has_failed. */
uint64_t lahar_list_write(struct lahar_list_writer *writer, const uint32_t *documents,
                          size_t count);

/* The same for the documents of groups, count of them in all, two groups or more or a single one.
 */
uint64_t lahar_list_write_groups(struct lahar_list_writer *writer, uint64_t count,
                                 const uint32_t *groups, size_t group_count,
                                 uint32_t all_group_count);
/* The reference to the list that was put into out from start on. */
uint64_t lahar_list_finish(struct lahar_list_writer *writer, size_t start);
/* Whether a list of count documents that are those of so many whole groups is to be one of these,
 * being shorter. */
bool lahar_list_takes_groups(const struct lahar_list_writer *writer, size_t groups, uint64_t count);

/* Where lists are read. */
struct lahar_list_reader {
    struct lahar_shard_pages *pages;
    struct lahar_group_table groups;
};

/* Adds the documents behind a reference to set, whose universe is the shard's. */
lahar_status lahar_list_read(const struct lahar_list_reader *reader, uint64_t reference,
                             struct lahar_docset *set, lahar_error *error);

/* How many of them are in within. scratch: of the same universe, overwritten. */
lahar_status lahar_list_count_within(const struct lahar_list_reader *reader, uint64_t reference,
                                     const struct lahar_docset *within,
                                     struct lahar_docset *scratch, uint64_t *count_out,
                                     lahar_error *error);

/* How many documents the reference stands for. */
lahar_status lahar_list_count(struct lahar_shard_pages *pages, uint64_t reference,
                              uint32_t document_count, uint64_t *count_out, lahar_error *error);

#endif
