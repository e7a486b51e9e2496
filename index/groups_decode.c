/* From groups to documents. Blocks are bytes from disk: sizes and documents are checked as they
 * are used. */
#include "index/groups.h"

#include "index/bitpack.h"
#include "index/shard_format.h"
#include "index/vector.h"
#include "io/base/error.h"

enum {
    BLOCK_HEAD_SIZE = 6
};

struct block {
    uint32_t base;
    unsigned size_width;
    unsigned document_width;
    size_t group_count;
    uint64_t document_count; /* of all its groups */
    const uint8_t *sizes;
    const uint8_t *documents;
};

/* The documents of one group. */
struct scratch {
    uint32_t *documents;
    size_t capacity;
    const lahar_allocator *allocator;
};

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a block of groups of an index shard is malformed");
}

static uint64_t size_of(const struct block *block, size_t index)
{
    return lahar_unpack_narrow(block->sizes, index, block->size_width,
                               lahar_width_mask(block->size_width)) +
           1;
}

static bool parse_block(const uint8_t *data, size_t size, size_t group_count, struct block *block)
{
    struct lahar_reader reader = lahar_reader_of(data, size);
    block->base = lahar_read_u32(&reader);
    block->size_width = lahar_read_u8(&reader);
    block->document_width = lahar_read_u8(&reader);
    if (reader.failed || block->size_width > 32 || block->document_width > 32) {
        return false;
    }
    block->group_count = group_count;
    block->sizes = lahar_read_bytes(&reader, lahar_packed_size(group_count, block->size_width));
    if (reader.failed) {
        return false;
    }
    block->document_count = 0;
    for (size_t i = 0; i < group_count; i++) {
        block->document_count += size_of(block, i);
    }
    block->documents =
        lahar_read_bytes(&reader, lahar_packed_size(block->document_count, block->document_width));
    return !reader.failed;
}

/* Adds documents first .. first + count of the block. */
static bool add_documents(const struct block *block, uint64_t first, uint64_t count,
                          struct lahar_docset *set)
{
    const uint64_t mask = lahar_width_mask(block->document_width);
    for (uint64_t i = first; i < first + count; i++) {
        const uint64_t document =
            block->base + lahar_unpack_narrow(block->documents, i, block->document_width, mask);
        if (document >= set->universe) {
            return false;
        }
        lahar_docset_put(set, (uint32_t)document);
    }
    return true;
}

/* Adds the documents of the groups whose bits are set in members. */
static bool add_members(const struct block *block, uint64_t members, struct lahar_docset *set)
{
    uint64_t first = 0;
    for (size_t i = 0; i < block->group_count && members >> i != 0; i++) {
        const uint64_t count = size_of(block, i);
        if ((members >> i & 1) != 0 && !add_documents(block, first, count, set)) {
            return false;
        }
        first += count;
    }
    return true;
}

/* Views and parses one block, whose groups begin at number * 64; document_count: of the shard. */
static lahar_status open_block(struct lahar_shard_pages *pages,
                               const struct lahar_group_table *table, uint64_t number,
                               uint32_t document_count, struct lahar_page_view *view,
                               struct block *block, lahar_error *error)
{
    uint8_t bounds[16];
    LAHAR_TRY(
        lahar_shard_pages_copy(pages, table->directory + number * 8, bounds, sizeof bounds, error));
    const uint64_t begin = lahar_load_u64(bounds);
    const uint64_t end = lahar_load_u64(bounds + 8);
    const uint64_t left = table->group_count - number * LAHAR_SHARD_GROUP_BLOCK;
    /* No block is larger than all documents in four bytes each, and its sizes. */
    const uint64_t size_max =
        BLOCK_HEAD_SIZE + 4 * ((uint64_t)document_count + LAHAR_SHARD_GROUP_BLOCK);
    if (begin > end || end - begin > size_max) {
        return corrupt(error);
    }
    LAHAR_TRY(lahar_page_view_open(pages, begin, end - begin, view, error));
    /* Packed in no bits at all, documents could be without end. */
    if (!parse_block(view->data, (size_t)(end - begin),
                     left < LAHAR_SHARD_GROUP_BLOCK ? (size_t)left : LAHAR_SHARD_GROUP_BLOCK,
                     block) ||
        block->document_count > document_count) {
        lahar_page_view_close(pages, view);
        return corrupt(error);
    }
    return LAHAR_OK;
}

lahar_status lahar_group_table_add_word(struct lahar_shard_pages *pages,
                                        const struct lahar_group_table *table, uint64_t number,
                                        uint64_t members, struct lahar_docset *set,
                                        lahar_error *error)
{
    if (number * LAHAR_SHARD_GROUP_BLOCK >= table->group_count) {
        return corrupt(error);
    }
    struct lahar_page_view view;
    struct block block;
    LAHAR_TRY(open_block(pages, table, number, set->universe, &view, &block, error));
    const bool is_valid = add_members(&block, members, set);
    lahar_page_view_close(pages, &view);
    return is_valid ? LAHAR_OK : corrupt(error);
}

lahar_status lahar_group_table_size(struct lahar_shard_pages *pages,
                                    const struct lahar_group_table *table, uint32_t document_count,
                                    uint64_t *size_out, lahar_error *error)
{
    *size_out = 0;
    for (uint64_t number = 0; number * LAHAR_SHARD_GROUP_BLOCK < table->group_count; number++) {
        struct lahar_page_view view;
        struct block block;
        LAHAR_TRY(open_block(pages, table, number, document_count, &view, &block, error));
        *size_out += block.document_count;
        lahar_page_view_close(pages, &view);
    }
    return LAHAR_OK;
}

lahar_status lahar_group_table_expand(struct lahar_shard_pages *pages,
                                      const struct lahar_group_table *table,
                                      const struct lahar_docset *groups, struct lahar_docset *set,
                                      lahar_error *error)
{
    LAHAR_ASSERT(groups->universe == table->group_count);
    /* A block of groups is a word of the set. */
    for (uint64_t word = groups->low_word; word < groups->high_word; word++) {
        if (groups->words[word] != 0) {
            LAHAR_TRY(
                lahar_group_table_add_word(pages, table, word, groups->words[word], set, error));
        }
    }
    return LAHAR_OK;
}

/* Decodes and visits the groups of a block whose bits are set in members. */
static lahar_status visit_block(const struct block *block, uint32_t first_group, uint64_t members,
                                struct scratch *scratch, uint32_t document_count,
                                lahar_group_visit visit, void *context, lahar_error *error)
{
    const uint64_t mask = lahar_width_mask(block->document_width);
    uint64_t first = 0;
    for (size_t i = 0; i < block->group_count && members >> i != 0; i++) {
        const uint64_t count = size_of(block, i);
        const uint64_t begin = first;
        first += count;
        if ((members >> i & 1) == 0) {
            continue;
        }
        if (count > scratch->capacity) {
            uint32_t *grown = lahar_vector_grow(scratch->allocator, scratch->documents,
                                                &scratch->capacity, (size_t)count, sizeof *grown);
            if (grown == NULL) {
                return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a group");
            }
            scratch->documents = grown;
        }
        for (uint64_t k = 0; k < count; k++) {
            const uint64_t document =
                block->base +
                lahar_unpack_narrow(block->documents, begin + k, block->document_width, mask);
            if (document >= document_count) {
                return corrupt(error);
            }
            scratch->documents[k] = (uint32_t)document;
        }
        LAHAR_TRY(
            visit(context, first_group + (uint32_t)i, scratch->documents, (uint32_t)count, error));
    }
    return LAHAR_OK;
}

static lahar_status visit_word(struct lahar_shard_pages *pages,
                               const struct lahar_group_table *table, uint64_t number,
                               uint64_t members, struct scratch *scratch, uint32_t document_count,
                               lahar_group_visit visit, void *context, lahar_error *error)
{
    struct lahar_page_view view;
    struct block block;
    LAHAR_TRY(open_block(pages, table, number, document_count, &view, &block, error));
    const lahar_status status =
        visit_block(&block, (uint32_t)(number * LAHAR_SHARD_GROUP_BLOCK), members, scratch,
                    document_count, visit, context, error);
    lahar_page_view_close(pages, &view);
    return status;
}

lahar_status lahar_group_table_visit_word(struct lahar_shard_pages *pages,
                                          const struct lahar_group_table *table, uint64_t number,
                                          uint64_t members, uint32_t document_count,
                                          lahar_group_visit visit, void *context,
                                          lahar_error *error)
{
    struct scratch scratch = {.allocator = pages->allocator};
    if (number * LAHAR_SHARD_GROUP_BLOCK >= table->group_count) {
        return corrupt(error);
    }
    const lahar_status status =
        visit_word(pages, table, number, members, &scratch, document_count, visit, context, error);
    lahar_release(scratch.allocator, scratch.documents);
    return status;
}

lahar_status lahar_group_table_visit(struct lahar_shard_pages *pages,
                                     const struct lahar_group_table *table, uint32_t document_count,
                                     lahar_group_visit visit, void *context, lahar_error *error)
{
    struct scratch scratch = {.allocator = pages->allocator};
    lahar_status status = LAHAR_OK;
    for (uint64_t number = 0;
         number * LAHAR_SHARD_GROUP_BLOCK < table->group_count && status == LAHAR_OK; number++) {
        status = visit_word(pages, table, number, UINT64_MAX, &scratch, document_count, visit,
                            context, error);
    }
    lahar_release(scratch.allocator, scratch.documents);
    return status;
}

_Static_assert(LAHAR_SHARD_GROUP_BLOCK == 64, "a block of groups is a word of a set");
