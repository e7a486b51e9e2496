/* A shard under construction, shared by the files that fill it and that write it out. */
#ifndef LAHAR_INDEX_SHARD_BUILDER_H
#define LAHAR_INDEX_SHARD_BUILDER_H

#include "index/blob_table.h"
#include "index/column.h"
#include "index/id_table.h"
#include "index/shard.h"
#include "index/term_table.h"
#include "index/tokenizer.h"

/* A document has a term. */
struct lahar_posting {
    uint32_t term;
    uint32_t document;
};

/* Documents first .. end - 1 all have the field. */
struct lahar_presence_run {
    uint32_t first;
    uint32_t end;
};

struct lahar_builder_field {
    size_t name; /* offset in the builder's names */
    size_t name_size;
    enum lahar_field_class field_class;
    uint32_t last_term; /* place of the most recent keyword, UINT32_MAX: none */
    struct lahar_presence_run *runs;
    size_t run_count;
    size_t run_capacity;
    bool are_runs_unsorted; /* documents came out of order: runs are sorted and joined at the end */
    struct lahar_column_values values; /* of a NUMBER field */
};

struct lahar_shard_builder {
    const lahar_allocator *allocator;
    bool has_failed; /* memory was refused: the shard is incomplete */

    struct lahar_builder_field *fields;
    size_t field_count;
    size_t field_capacity;
    struct lahar_buffer names;
    uint32_t *field_slots; /* field number + 1 by hash of name and class; 0: free */
    size_t field_slot_count;

    struct lahar_term_table terms;
    /* Of each term in order of document, unless are_postings_unsorted. */
    struct lahar_posting *postings;
    size_t posting_count;
    size_t posting_capacity;
    bool are_postings_unsorted; /* some term's are not in order, and perhaps not distinct */
    uint32_t document_count;

    struct lahar_id_run *id_runs;
    size_t id_run_count;
    size_t id_run_capacity;
    uint64_t last_id;
    struct lahar_column_values times;

    /* Token lists of texts that were given as values: a count and the terms. */
    uint32_t *token_lists;
    size_t token_list_count;
    size_t token_list_capacity;

    struct lahar_tokenizer tokenizer;
    struct lahar_buffer folded; /* scratch for long values */
    struct lahar_blob_table blobs;
};

/* Forgets the content, keeps the memory. */
void lahar_shard_builder_empty(struct lahar_shard_builder *builder);

/* The first bytes of the folded form of a value, at most LAHAR_SHARD_TERM_SIZE_MAX, into folded;
 * true when it is longer than that. */
bool lahar_fold_cut(struct lahar_buffer *folded, const void *value, size_t size);

#endif
