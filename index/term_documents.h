/* The documents of each term of a finished builder, from its postings. */
#ifndef LAHAR_INDEX_TERM_DOCUMENTS_H
#define LAHAR_INDEX_TERM_DOCUMENTS_H

#include "index/postings.h"
#include "index/shard_builder.h"

struct lahar_term_documents {
    struct lahar_shard_builder *builder;
    /* Postings of all terms: documents, or objects with LAHAR_POSTING_OBJECT, which are the groups
     * of the shard then. Those of term t end before ends[t]. */
    uint32_t *postings;
    uint64_t *ends;
    /* The rest only where postings hold objects: */
    bool has_objects;
    uint32_t *object_ends; /* by object: where its documents end in object_documents */
    uint32_t *object_documents;
    uint64_t *references; /* by object: to the list of it alone, 0: not yet written */
    uint64_t *bits;       /* scratch, by document */
    uint32_t *scratch;    /* as long as the longest list */
    size_t scratch_capacity;
};

/* Sorts the postings by term; false when memory is refused. In any case deinit is due. */
bool lahar_term_documents_init(struct lahar_term_documents *documents,
                               struct lahar_shard_builder *builder);
void lahar_term_documents_deinit(struct lahar_term_documents *documents);

/* Writes the list of a term's documents, if need be, and returns the reference to it. Failure is
 * left in writer->out->has_failed. */
uint64_t lahar_term_documents_write(struct lahar_term_documents *documents,
                                    struct lahar_list_writer *writer, size_t field, uint32_t term);

/* Asks the processor for what writing the term's documents will read. */
static inline void lahar_term_documents_prefetch(const struct lahar_term_documents *documents,
                                                 uint32_t term)
{
    __builtin_prefetch(&documents->ends[term]);
    __builtin_prefetch(&documents->builder->terms.states[term]);
}
static inline void lahar_term_documents_prefetch_list(const struct lahar_term_documents *documents,
                                                      uint32_t term)
{
    __builtin_prefetch(&documents->postings[documents->ends[term] - 1]);
}

#endif
