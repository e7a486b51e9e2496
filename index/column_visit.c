/* Reading the values of columns. */
#include "index/column.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/column_block.h"
#include "index/shard_format.h"
#include "io/base/error.h"

struct visitor {
    const struct lahar_docset *within;
    lahar_number_visit visit;
    void *context;
};

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a column block of an index shard is malformed");
}

static void offer(const struct visitor *visitor, const struct lahar_column_block *block,
                  uint64_t min, size_t index, uint32_t document)
{
    if (lahar_docset_has(visitor->within, document)) {
        const uint64_t q = lahar_unpack(block->packed, index, block->width);
        visitor->visit(visitor->context, document, min + q * block->divisor);
    }
}

/* The values of a block whose first document is first. */
static bool visit_values(const struct visitor *visitor, const struct lahar_column_block *block,
                         uint64_t min, uint32_t first, size_t document_count)
{
    size_t i = 0;
    switch (block->kind) {
    case LAHAR_COLUMN_FULL:
        for (; i < block->count; i++) {
            offer(visitor, block, min, i, first + (uint32_t)i);
        }
        return true;
    case LAHAR_COLUMN_POSITIONS:
        for (; i < block->count; i++) {
            const uint16_t position = lahar_load_u16(block->presence + i * sizeof(uint16_t));
            if (position >= document_count) {
                return false;
            }
            offer(visitor, block, min, i, first + position);
        }
        return true;
    case LAHAR_COLUMN_BITMAP:
        for (size_t word = 0; word < LAHAR_SHARD_COLUMN_BLOCK / 64; word++) {
            uint64_t bits = lahar_load_u64(block->presence + word * 8);
            for (; bits != 0; bits &= bits - 1, i++) {
                const size_t position = word * 64 + (size_t)__builtin_ctzll(bits);
                if (i >= block->count || position >= document_count) {
                    return false;
                }
                offer(visitor, block, min, i, first + (uint32_t)position);
            }
        }
        return i == block->count;
    }
    return false;
}

static lahar_status visit_block(struct lahar_shard_pages *pages, const uint8_t *zone,
                                uint32_t first, const struct visitor *visitor, lahar_error *error)
{
    const uint64_t place = lahar_load_u64(zone + 16);
    const uint32_t left = visitor->within->universe - first;
    const uint32_t document_count =
        left < LAHAR_SHARD_COLUMN_BLOCK ? left : (uint32_t)LAHAR_SHARD_COLUMN_BLOCK;
    if (place == 0 || lahar_docset_next(visitor->within, first) >= first + document_count) {
        return LAHAR_OK;
    }
    struct lahar_page_view view;
    struct lahar_column_block block;
    LAHAR_TRY(lahar_page_view_open(pages, place >> 16, place & 0xffff, &view, error));
    const bool is_valid =
        lahar_column_block_parse(view.data, place & 0xffff, document_count, &block) &&
        visit_values(visitor, &block, lahar_load_u64(zone), first, document_count);
    lahar_page_view_close(pages, &view);
    return is_valid ? LAHAR_OK : corrupt(error);
}

static lahar_status visit_extras(struct lahar_shard_pages *pages, const struct lahar_column *column,
                                 const struct visitor *visitor, lahar_error *error)
{
    for (uint64_t i = 0; i < column->extra_count; i++) {
        uint8_t extra[LAHAR_SHARD_EXTRA_SIZE];
        LAHAR_TRY(lahar_shard_pages_copy(pages, column->extras + i * LAHAR_SHARD_EXTRA_SIZE, extra,
                                         sizeof extra, error));
        const uint32_t document = lahar_load_u32(extra);
        if (document >= visitor->within->universe) {
            return corrupt(error);
        }
        if (lahar_docset_has(visitor->within, document)) {
            visitor->visit(visitor->context, document, lahar_load_u64(extra + 4));
        }
    }
    return LAHAR_OK;
}

/* All blocks of a column over documents, or over groups. */
static lahar_status visit_blocks(struct lahar_shard_pages *pages, const struct lahar_column *column,
                                 const struct visitor *visitor, lahar_error *error)
{
    enum {
        BLOCK_WORDS = LAHAR_SHARD_COLUMN_BLOCK / 64
    };
    const struct lahar_docset *within = visitor->within;
    const uint64_t blocks = ((uint64_t)within->high_word + BLOCK_WORDS - 1) / BLOCK_WORDS;
    for (uint64_t i = within->low_word / BLOCK_WORDS; i < blocks; i++) {
        uint8_t zone[LAHAR_SHARD_ZONE_SIZE];
        LAHAR_TRY(lahar_shard_pages_copy(pages, column->zones + i * LAHAR_SHARD_ZONE_SIZE, zone,
                                         sizeof zone, error));
        LAHAR_TRY(
            visit_block(pages, zone, (uint32_t)(i * LAHAR_SHARD_COLUMN_BLOCK), visitor, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_column_visit(const struct lahar_list_reader *reader,
                                const struct lahar_column *column,
                                const struct lahar_docset *within, lahar_number_visit visit,
                                void *context, lahar_error *error)
{
    const struct visitor visitor = {within, visit, context};
    if (column->is_grouped) {
        return LAHAR_UNSUPPORTED;
    }
    LAHAR_TRY(visit_blocks(reader->pages, column, &visitor, error));
    return visit_extras(reader->pages, column, &visitor, error);
}

/* --- counts ---------------------------------------------------------------------------- */

struct counting {
    lahar_number_count_visit visit;
    void *context;
    lahar_status status; /* of the first call that failed; none follows */
    lahar_error *error;
    /* Of columns of groups: */
    const struct lahar_docset *within;
    uint64_t *values;         /* by group */
    struct lahar_docset have; /* groups that have one */
};

static void count_one(void *context, uint32_t document, uint64_t value)
{
    struct counting *counting = context;
    (void)document;
    if (counting->status == LAHAR_OK) {
        counting->status = counting->visit(counting->context, value, 1, counting->error);
    }
}

static void note_group(void *context, uint32_t group, uint64_t value)
{
    struct counting *counting = context;
    counting->values[group] = value;
    lahar_docset_add(&counting->have, group);
}

static lahar_status count_group(void *context, uint32_t group, const uint32_t *documents,
                                uint32_t count, lahar_error *error)
{
    struct counting *counting = context;
    uint64_t found = 0;
    if (!lahar_docset_has(&counting->have, group)) {
        return LAHAR_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        found += lahar_docset_has(counting->within, documents[i]);
    }
    return found == 0 ? LAHAR_OK
                      : counting->visit(counting->context, counting->values[group], found, error);
}

static lahar_status count_groups(const struct lahar_list_reader *reader,
                                 const struct lahar_column *column, struct counting *counting,
                                 lahar_error *error)
{
    const lahar_allocator *allocator = reader->pages->allocator;
    const uint32_t group_count = reader->groups.group_count;
    struct lahar_docset every;
    counting->values = lahar_allocate(allocator, group_count * sizeof *counting->values + 1);
    if (counting->values == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %u groups", group_count);
    }
    lahar_status status = lahar_docset_init(&counting->have, group_count, allocator, error);
    if (status != LAHAR_OK) {
        goto cleanup_values;
    }
    status = lahar_docset_init(&every, group_count, allocator, error);
    if (status != LAHAR_OK) {
        goto cleanup_have;
    }
    lahar_docset_fill(&every);
    const struct visitor visitor = {&every, note_group, counting};
    status = visit_blocks(reader->pages, column, &visitor, error);
    if (status == LAHAR_OK) {
        status = lahar_group_table_visit(reader->pages, &reader->groups, counting->within->universe,
                                         count_group, counting, error);
    }
    lahar_docset_deinit(&every);
cleanup_have:
    lahar_docset_deinit(&counting->have);
cleanup_values:
    lahar_release(allocator, counting->values);
    return status;
}

lahar_status lahar_column_counts(const struct lahar_list_reader *reader,
                                 const struct lahar_column *column,
                                 const struct lahar_docset *within, lahar_number_count_visit visit,
                                 void *context, lahar_error *error)
{
    struct counting counting = {
        .visit = visit, .context = context, .error = error, .within = within};
    if (column->is_grouped) {
        return count_groups(reader, column, &counting, error);
    }
    const lahar_status status =
        lahar_column_visit(reader, column, within, count_one, &counting, error);
    return status == LAHAR_OK ? counting.status : status;
}
