/* The postings that documents left behind are turned round by counting: those of each term come to
 * lie side by side, in order, without sorting. Where objects stand for their documents and are not
 * to be the groups of the shard, they are replaced by these. */
#include "index/term_documents.h"

#include <stdlib.h>
#include <string.h>

#include "index/shard_format.h"
#include "index/vector.h"
#include "io/base/error.h"

enum {
    /* Lists up to this are sorted by comparing. */
    SORT_COUNT_MAX = 64
};

static int compare_documents(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Puts documents in order, each once; returns how many are left. */
static uint32_t sort_documents(uint32_t *documents, uint32_t count)
{
    bool is_sorted = true;
    for (uint32_t i = 1; i < count && is_sorted; i++) {
        is_sorted = documents[i - 1] < documents[i];
    }
    if (is_sorted) {
        return count;
    }
    qsort(documents, count, sizeof documents[0], compare_documents);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (documents[i] != documents[kept - 1]) {
            documents[kept++] = documents[i];
        }
    }
    return kept;
}

/* Lists the postings by term. */
static void gather(struct lahar_term_documents *documents)
{
    const struct lahar_shard_builder *builder = documents->builder;
    uint64_t start = 0;
    for (size_t i = 0; i < builder->terms.term_count; i++) {
        documents->ends[i] = start;
        start += builder->terms.states[i].posting_count;
    }
    for (size_t i = 0; i < builder->posting_count; i++) {
        const struct lahar_posting *posting = &builder->postings[i];
        documents->postings[documents->ends[posting->term]++] = posting->document;
    }
    for (size_t i = 0; builder->are_postings_unsorted && i < builder->terms.term_count; i++) {
        struct lahar_term_state *state = &builder->terms.states[i];
        if (state->posting_count > 1) {
            const uint32_t kept =
                sort_documents(documents->postings + (documents->ends[i] - state->posting_count),
                               state->posting_count);
            documents->ends[i] -= state->posting_count - kept;
            state->posting_count = kept;
        }
    }
}

/* --- objects ------------------------------------------------------------------------------ */

/* Lists the documents by object. */
static bool gather_objects(struct lahar_term_documents *documents)
{
    const struct lahar_shard_builder *builder = documents->builder;
    const struct lahar_builder_objects *objects = &builder->objects;
    const lahar_allocator *allocator = builder->allocator;
    documents->object_ends =
        lahar_allocate(allocator, ((size_t)objects->count + 1) * sizeof(uint32_t));
    documents->object_documents =
        lahar_allocate(allocator, (objects->document_count + 1) * sizeof(uint32_t));
    documents->references =
        lahar_allocate_zeroed(allocator, (size_t)objects->count + 1, sizeof(uint64_t));
    documents->bits = lahar_allocate_zeroed(allocator, (size_t)builder->document_count / 64 + 1,
                                            sizeof(uint64_t));
    if (documents->object_ends == NULL || documents->object_documents == NULL ||
        documents->references == NULL || documents->bits == NULL) {
        return false;
    }
    uint32_t start = 0;
    for (uint32_t object = 0; object < objects->count; object++) {
        documents->object_ends[object] = start;
        start += objects->sizes[object];
    }
    for (size_t document = 0; document < objects->document_count; document++) {
        documents->object_documents[documents->object_ends[objects->of_document[document]]++] =
            (uint32_t)document;
    }
    return true;
}

/* How many documents a posting of the field stands for. */
static uint32_t posting_size(const struct lahar_term_documents *documents, size_t field,
                             uint32_t posting)
{
    if ((posting & LAHAR_POSTING_OBJECT) == 0) {
        return 1;
    }
    const struct lahar_shard_builder *builder = documents->builder;
    const uint32_t object = posting & ~LAHAR_POSTING_OBJECT;
    return field == builder->objects.field
               ? builder->objects.sizes[object]
               : lahar_object_value_documents(&builder->fields[field].object_values[object]);
}

static bool reserve_scratch(struct lahar_term_documents *documents, size_t count)
{
    if (documents->scratch_capacity >= count) {
        return true;
    }
    uint32_t *grown =
        lahar_vector_grow(documents->builder->allocator, documents->scratch,
                          &documents->scratch_capacity, count, sizeof *documents->scratch);
    if (grown == NULL) {
        return false;
    }
    documents->scratch = grown;
    return true;
}

/* Puts many documents in order, each once, by way of a bit for each document of the shard. */
static uint32_t order_by_bits(struct lahar_term_documents *documents, uint32_t *items,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        documents->bits[items[i] / 64] |= UINT64_C(1) << (items[i] % 64);
    }
    uint32_t kept = 0;
    const uint32_t word_count = documents->builder->document_count / 64 + 1;
    for (uint32_t word = 0; word < word_count; word++) {
        for (uint64_t bits = documents->bits[word]; bits != 0; bits &= bits - 1) {
            items[kept++] = word * 64 + (uint32_t)__builtin_ctzll(bits);
        }
        documents->bits[word] = 0;
    }
    return kept;
}

/* Lists the documents behind postings in scratch, total of them, in order; returns how many
 * different ones there are. */
static uint32_t expand(struct lahar_term_documents *documents, size_t field,
                       const uint32_t *postings, uint32_t count, uint64_t total)
{
    uint32_t *to = documents->scratch;
    for (uint32_t i = 0; i < count; i++) {
        if ((postings[i] & LAHAR_POSTING_OBJECT) == 0) {
            *to++ = postings[i];
            continue;
        }
        const uint32_t object = postings[i] & ~LAHAR_POSTING_OBJECT;
        const uint32_t size = posting_size(documents, field, postings[i]);
        const uint32_t start =
            documents->object_ends[object] - documents->builder->objects.sizes[object];
        memcpy(to, documents->object_documents + start, size * sizeof *to);
        to += size;
    }
    LAHAR_ASSERT((uint64_t)(to - documents->scratch) == total);
    return total <= SORT_COUNT_MAX ? sort_documents(documents->scratch, (uint32_t)total)
                                   : order_by_bits(documents, documents->scratch, (uint32_t)total);
}

/* The documents that the postings of a term stand for, one that comes twice counted twice;
 * *is_whole_out: they are those of whole objects. */
static uint64_t measure(const struct lahar_term_documents *documents, size_t field,
                        const uint32_t *postings, uint32_t count, bool *is_whole_out)
{
    uint64_t total = 0;
    bool is_whole = true;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t size = posting_size(documents, field, postings[i]);
        is_whole = is_whole && (postings[i] & LAHAR_POSTING_OBJECT) != 0 &&
                   size == documents->builder->objects.sizes[postings[i] & ~LAHAR_POSTING_OBJECT];
        total += size;
    }
    *is_whole_out = is_whole;
    return total;
}

/* Replaces all postings of objects by their documents. */
static bool expand_all(struct lahar_term_documents *documents)
{
    struct lahar_shard_builder *builder = documents->builder;
    struct lahar_buffer all;
    lahar_buffer_init(&all, builder->allocator);
    uint32_t place = 0;
    bool is_done = true;
    for (size_t i = 0; i < builder->terms.term_count && is_done; i++) {
        const struct lahar_term *term = lahar_term_at(&builder->terms, place);
        struct lahar_term_state *state = &builder->terms.states[i];
        const uint32_t *postings =
            documents->postings + (documents->ends[i] - state->posting_count);
        bool is_whole = false;
        const uint64_t total =
            measure(documents, term->field, postings, state->posting_count, &is_whole);
        is_done = reserve_scratch(documents, total);
        if (is_done) {
            const uint32_t kept =
                expand(documents, term->field, postings, state->posting_count, total);
            lahar_buffer_put(&all, documents->scratch, kept * sizeof(uint32_t));
            state->posting_count = kept;
            documents->ends[i] = all.size / sizeof(uint32_t);
        }
        place = lahar_term_place_behind(term, place);
    }
    if (!is_done || all.has_failed) {
        lahar_buffer_deinit(&all);
        return false;
    }
    lahar_release(builder->allocator, documents->postings);
    documents->postings = (uint32_t *)(void *)all.data;
    documents->has_objects = false;
    return true;
}

static bool has_no_object(const uint32_t *postings, uint32_t count)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        all |= postings[i];
    }
    return (all & LAHAR_POSTING_OBJECT) == 0;
}

/* --- the whole ---------------------------------------------------------------------------- */

bool lahar_term_documents_init(struct lahar_term_documents *documents,
                               struct lahar_shard_builder *builder)
{
    const struct lahar_builder_objects *objects = &builder->objects;
    const lahar_allocator *allocator = builder->allocator;
    *documents = (struct lahar_term_documents){.builder = builder};
    documents->postings = lahar_allocate(allocator, (builder->posting_count + 1) * 4);
    documents->ends =
        lahar_allocate(allocator, (builder->terms.term_count + 1) * sizeof documents->ends[0]);
    if (documents->postings == NULL || documents->ends == NULL) {
        return false;
    }
    gather(documents);
    if (objects->document_count == 0) {
        return true;
    }
    documents->has_objects = true;
    /* Groups need an object for each document, and two documents of each object on average. */
    return gather_objects(documents) && ((objects->document_count == builder->document_count &&
                                          objects->count <= builder->document_count / 2) ||
                                         expand_all(documents));
}

void lahar_term_documents_deinit(struct lahar_term_documents *documents)
{
    const lahar_allocator *allocator = documents->builder->allocator;
    lahar_release(allocator, documents->postings);
    lahar_release(allocator, documents->ends);
    lahar_release(allocator, documents->object_ends);
    lahar_release(allocator, documents->object_documents);
    lahar_release(allocator, documents->references);
    lahar_release(allocator, documents->bits);
    lahar_release(allocator, documents->scratch);
}

uint64_t lahar_term_documents_write(struct lahar_term_documents *documents,
                                    struct lahar_list_writer *writer, size_t field, uint32_t term)
{
    const uint32_t count = documents->builder->terms.states[term].posting_count;
    uint32_t *postings = documents->postings + (documents->ends[term] - count);
    if (!documents->has_objects) {
        return lahar_list_write(writer, postings, count);
    }
    if (has_no_object(postings, count)) {
        return lahar_list_write(writer, postings, count);
    }
    const uint32_t object = postings[0] & ~LAHAR_POSTING_OBJECT;
    bool is_whole = false;
    const uint64_t total = measure(documents, field, postings, count, &is_whole);
    if (is_whole && count == 1 && documents->references[object] != 0) {
        return documents->references[object];
    }
    if (is_whole && lahar_list_takes_groups(writer, count, total)) {
        if (count == 1) {
            documents->references[object] = lahar_list_write_groups(
                writer, total, &object, 1, documents->builder->objects.count);
            return documents->references[object];
        }
        for (uint32_t i = 0; i < count; i++) {
            postings[i] &= ~LAHAR_POSTING_OBJECT;
        }
        return lahar_list_write_groups(writer, total, postings, count,
                                       documents->builder->objects.count);
    }
    if (!reserve_scratch(documents, total)) {
        writer->out->has_failed = true;
        return 0;
    }
    return lahar_list_write(writer, documents->scratch,
                            expand(documents, field, postings, count, total));
}
