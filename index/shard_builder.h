/* A shard under construction, shared by the files that fill it and that write it out. */
#ifndef LAHAR_INDEX_SHARD_BUILDER_H
#define LAHAR_INDEX_SHARD_BUILDER_H

#include "index/blob_table.h"
#include "index/column.h"
#include "index/id_table.h"
#include "index/shard.h"
#include "index/term_table.h"
#include "index/tokenizer.h"
#include "io/base/recycler.h"

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

/* A posting whose document has this bit is one of all documents of an object, or of its first
 * ones: see shard_objects.c. */
#define LAHAR_POSTING_OBJECT (UINT32_C(1) << 31)

/* What is known of an object's value in a field. */
struct lahar_object_value {
    uint32_t term;           /* place of its record, valid when document_count > 0 */
    uint32_t document_count; /* the object's first documents, which have it; counted on while
                              * all have it */
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
    struct lahar_column_values values;        /* of a NUMBER field */
    struct lahar_object_value *object_values; /* by object, as many as have been needed */
    size_t object_value_count;
    size_t object_value_capacity;
};

/* A uuid's place in the block at hand. */
struct lahar_block_object {
    uint32_t object;
    uint32_t before_count; /* documents of the object before the block */
    uint32_t added_count;  /* in the block */
    uint32_t first_row;
};

/* Documents by the object that they are about. */
struct lahar_builder_objects {
    bool is_used;     /* field is set */
    bool is_given_up; /* too many documents have an object of their own */
    uint32_t field;   /* whose uuids tell objects apart */
    uint32_t count;   /* objects, numbered by first document */
    uint32_t
        *of_document; /* of the first documents, of all of them unless a block was passed over */
    size_t document_count;
    size_t document_capacity;
    uint32_t *sizes; /* documents by object */
    size_t size_capacity;
    uint32_t *of_term; /* object + 1 by number of the uuid's term, 0: none */
    size_t term_capacity;
    uint32_t *stamps; /* by object: the block that had it last, as its first document + 1 */
    size_t stamp_capacity;
    /* The block at hand: */
    uint32_t first_document;
    uint32_t row_count;
    struct lahar_block_object *codes; /* by code of the uuid column */
    uint32_t code_count;
    size_t code_capacity;
    uint32_t *next_rows; /* by row: the next of the same object; UINT32_MAX: none */
    size_t row_capacity;
    uint32_t *places; /* by code of the column being added: record of the term, UINT32_MAX */
    size_t place_capacity;
    uint32_t *pending; /* codes of the uuid column and their entries, of new or changed values */
    size_t pending_capacity;
};

struct lahar_shard_builder {
    lahar_allocator source; /* of the builder itself */
    struct lahar_recycler recycler;
    const lahar_allocator *allocator; /* the recycler's, of everything else */
    bool has_failed;                  /* memory was refused: the shard is incomplete */

    struct lahar_builder_field *fields;
    size_t field_count;
    size_t field_capacity;
    size_t
        field_memory_count; /* the first of fields have memory, of this shard or an earlier one */
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

    struct lahar_builder_objects objects;
    struct lahar_tokenizer tokenizer;
    struct lahar_buffer folded; /* scratch for long values */
    struct lahar_blob_table blobs;
};

/* Forgets the content, keeps the memory. */
void lahar_shard_builder_empty(struct lahar_shard_builder *builder);

/* --- between the files of the builder --- */

void lahar_builder_objects_clear(struct lahar_builder_objects *objects);
void lahar_builder_objects_deinit(struct lahar_builder_objects *objects,
                                  const lahar_allocator *allocator);

/* Bytes of an entry, never NULL. */
static inline lahar_bytes lahar_shard_entry(const struct lahar_shard_entries *entries,
                                            uint32_t entry)
{
    if (entries->ends == NULL) {
        return (lahar_bytes){entries->data + (size_t)entry * sizeof(lahar_uuid),
                             sizeof(lahar_uuid)};
    }
    const uint32_t start = entry == 0 ? 0 : entries->ends[entry - 1];
    const uint32_t size = entries->ends[entry] - start;
    return size == 0 ? (lahar_bytes){"", 0} : (lahar_bytes){entries->data + start, size};
}

/* The places of the terms of count entries, keywords or uuids, added when they are new: numbers[i]
 * is an entry, its place goes to places[numbers[i]] unless that is known already, which is to say
 * not UINT32_MAX. numbers NULL: the first count entries. False when memory is refused. */
bool lahar_builder_find_terms(struct lahar_shard_builder *builder, uint32_t field,
                              const struct lahar_shard_entries *entries, const uint32_t *numbers,
                              uint32_t count, uint32_t *places);
/* The number of a term, of a keyword's and of a token's; false when memory is refused. */
bool lahar_builder_add_term(struct lahar_shard_builder *builder, uint32_t field,
                            const struct lahar_term_key *key, uint32_t *term_out);
bool lahar_builder_keyword_term(struct lahar_shard_builder *builder, uint32_t field,
                                const void *value, size_t size, uint32_t *term_out);
bool lahar_builder_token_term(struct lahar_shard_builder *builder, uint32_t field,
                              const struct lahar_token *token, uint32_t *term_out);
/* Whether the text gets LAHAR_SHARD_ESCAPE_TERM besides its tokens, and that as a token. */
bool lahar_builder_has_escape(const void *text, size_t size);
extern const struct lahar_token lahar_builder_escape_token;
/* How many of the object's documents, its first ones, a value's posting stands for. */
uint32_t lahar_object_value_documents(const struct lahar_object_value *value);
/* Room for so many postings more. */
bool lahar_builder_reserve_postings(struct lahar_shard_builder *builder, size_t count);
/* The documents first .. end - 1 have the field. */
bool lahar_builder_note_presence(struct lahar_shard_builder *builder,
                                 struct lahar_builder_field *field, uint32_t first, uint32_t end);

/* Adds a document to a term, once; with room for it reserved. */
static inline void lahar_builder_put_posting(struct lahar_shard_builder *builder, uint32_t number,
                                             uint32_t document)
{
    struct lahar_term_state *term = &builder->terms.states[number];
    if (term->last_document == document) {
        return;
    }
    /* Unsigned: no document is above the one that stands for none. */
    builder->are_postings_unsorted |= document < term->last_document + 1;
    term->last_document = document;
    term->posting_count++;
    builder->postings[builder->posting_count++] = (struct lahar_posting){number, document};
}

/* The first bytes of the folded form of a value, at most LAHAR_SHARD_TERM_SIZE_MAX, into folded;
 * true when it is longer than that. */
bool lahar_fold_cut(struct lahar_buffer *folded, const void *value, size_t size);

#endif
