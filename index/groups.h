/* Groups: the documents of a shard by the object that they are about.
 *
 * Where each event has one uuid in some field, and the same uuid comes several times (the events of
 * one FlowFile), most other values are those of the object: what holds for one of its events holds
 * for all. Lists and columns can then speak of groups, which are fewer. Groups are numbered in
 * order of their first documents and cover all documents. */
#ifndef LAHAR_INDEX_GROUPS_H
#define LAHAR_INDEX_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "index/docset.h"
#include "index/shard_pages.h"
#include "io/base/buffer.h"

/* --- while a shard is written --- */

struct lahar_group_map {
    uint32_t group_count; /* 0: the shard has no groups */
    uint32_t *group_of;   /* by document */
    uint32_t *sizes;      /* documents of a group */
    /* Scratch for one list at a time: */
    uint32_t *stamps; /* the list that last touched a group */
    uint32_t stamp;
    uint32_t *touched; /* its groups, in order */
    const lahar_allocator *allocator;
};

/* keys: a number below key_count for each document; equal ones make a group. False when memory is
 * refused; map is to be released in any case. */
bool lahar_group_map_init(struct lahar_group_map *map, const uint32_t *keys,
                          uint32_t document_count, uint32_t key_count,
                          const lahar_allocator *allocator);
void lahar_group_map_deinit(struct lahar_group_map *map);

/* When the documents are those of whole groups, the number of these, which are left in
 * map->touched; else 0. */
size_t lahar_group_map_cover(struct lahar_group_map *map, const uint32_t *documents, size_t count);

/* Appends the table; returns its offset from base. */
uint64_t lahar_group_table_write(struct lahar_buffer *out, size_t base,
                                 const struct lahar_group_map *map, uint32_t document_count);

/* Appends one block of the table: count groups of so many documents, which follow one another. */
void lahar_group_block_put(struct lahar_buffer *out, const uint32_t *sizes, size_t count,
                           const uint32_t *documents);

/* --- in an open shard --- */

struct lahar_group_table {
    uint32_t group_count;
    uint64_t directory; /* offset of a u64 a block of groups, and one more */
};

/* Adds the documents of every member of groups, a set of groups, to set. */
lahar_status lahar_group_table_expand(struct lahar_shard_pages *pages,
                                      const struct lahar_group_table *table,
                                      const struct lahar_docset *groups, struct lahar_docset *set,
                                      lahar_error *error);
/* The documents of all groups together. */
lahar_status lahar_group_table_size(struct lahar_shard_pages *pages,
                                    const struct lahar_group_table *table, uint32_t document_count,
                                    uint64_t *size_out, lahar_error *error);
/* Passes the documents of each group, in order of group, to visit. */
typedef lahar_status (*lahar_group_visit)(void *context, uint32_t group, const uint32_t *documents,
                                          uint32_t count, lahar_error *error);
lahar_status lahar_group_table_visit(struct lahar_shard_pages *pages,
                                     const struct lahar_group_table *table, uint32_t document_count,
                                     lahar_group_visit visit, void *context, lahar_error *error);
/* The same for those of the groups 64 * number .. 64 * number + 63 whose bits are set in members.
 */
lahar_status lahar_group_table_visit_word(struct lahar_shard_pages *pages,
                                          const struct lahar_group_table *table, uint64_t number,
                                          uint64_t members, uint32_t document_count,
                                          lahar_group_visit visit, void *context,
                                          lahar_error *error);
/* Adds the documents of those of the groups 64 * number .. 64 * number + 63 whose bits are set in
 * members. LAHAR_CORRUPT also when there are no such groups. */
lahar_status lahar_group_table_add_word(struct lahar_shard_pages *pages,
                                        const struct lahar_group_table *table, uint64_t number,
                                        uint64_t members, struct lahar_docset *set,
                                        lahar_error *error);

#endif
