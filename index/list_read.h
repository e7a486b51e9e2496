/* Posting lists from inside, for the files that decode them into sets, count them or write them
 * anew. All of it is bytes from disk. */
#ifndef LAHAR_INDEX_LIST_READ_H
#define LAHAR_INDEX_LIST_READ_H

#include "index/bitpack.h"
#include "index/postings.h"
#include "index/shard_format.h"

struct lahar_list_head {
    uint64_t count; /* documents, at least 1 */
    enum lahar_list_kind kind;
    uint64_t data;   /* offset behind the first varint */
    uint64_t second; /* of kind GROUP: the group */
};

lahar_status lahar_list_head_read(struct lahar_shard_pages *pages, uint64_t offset,
                                  struct lahar_list_head *head, lahar_error *error);

/* A short list: its first number and a view of the packed gaps behind it. */
struct lahar_list_short {
    uint64_t first;
    size_t count;
    unsigned width;
    struct lahar_page_view gaps;
};

/* The caller closes list->gaps. */
lahar_status lahar_list_short_open(struct lahar_shard_pages *pages,
                                   const struct lahar_list_head *head,
                                   struct lahar_list_short *list, lahar_error *error);

struct lahar_list_skip {
    uint32_t base;
    unsigned width;
    uint64_t offset; /* from the start of the list's data */
};

static inline struct lahar_list_skip lahar_list_skip_at(const uint8_t *skips, size_t index)
{
    const uint64_t v = lahar_load_u64(skips + index * LAHAR_SHARD_SKIP_SIZE);
    return (struct lahar_list_skip){
        (uint32_t)(v & lahar_width_mask(LAHAR_SKIP_BASE_BITS)),
        (unsigned)(v >> LAHAR_SKIP_BASE_BITS & lahar_width_mask(LAHAR_SKIP_WIDTH_BITS)),
        v >> (LAHAR_SKIP_BASE_BITS + LAHAR_SKIP_WIDTH_BITS)};
}

/* Numbers under construction, rising. */
struct lahar_number_list {
    uint32_t *items;
    size_t count;
    size_t capacity;
    const lahar_allocator *allocator;
};

/* Appends the documents behind a reference, offset added to each. document_count: of the shard;
 * scratch: a set of that universe, empty before and after. */
lahar_status lahar_list_collect(const struct lahar_list_reader *reader, uint64_t reference,
                                uint32_t document_count, uint32_t offset,
                                struct lahar_docset *scratch, struct lahar_number_list *list,
                                lahar_error *error);
/* The same for the groups of a list of kind GROUP or GROUPS, whose head is given. scratch: a set
 * of all groups. */
lahar_status lahar_list_collect_groups(const struct lahar_list_reader *reader,
                                       const struct lahar_list_head *head, uint32_t offset,
                                       struct lahar_docset *scratch, struct lahar_number_list *list,
                                       lahar_error *error);

/* Adds a list of kind SHORT, BLOCKS or BITSET to set, whose universe is that of its numbers. */
lahar_status lahar_list_read_simple(struct lahar_shard_pages *pages,
                                    const struct lahar_list_head *head, struct lahar_docset *set,
                                    lahar_error *error);

/* The group of a list of kind GROUP. */
lahar_status lahar_list_group(const struct lahar_list_reader *reader,
                              const struct lahar_list_head *head, uint32_t *group_out,
                              lahar_error *error);

#endif
