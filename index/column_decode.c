/* Range search in columns. A zone decides most blocks; of the others the bounds are turned into
 * packed numbers once, and the packed numbers are compared. */
#include "index/column.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/column_block.h"
#include "index/shard_format.h"
#include "io/base/error.h"

enum {
    ZONES_AT_A_TIME = 128,
    EXTRAS_AT_A_TIME = 256,
    BITMAP_SIZE = LAHAR_SHARD_COLUMN_BLOCK / 8,
    BLOCK_WORDS = LAHAR_SHARD_COLUMN_BLOCK / 64
};

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a column block of an index shard is malformed");
}

bool lahar_column_block_parse(const uint8_t *data, size_t size, size_t document_count,
                              struct lahar_column_block *block)
{
    struct lahar_reader reader = lahar_reader_of(data, size);
    const uint8_t kind = lahar_read_u8(&reader);
    block->width = lahar_read_u8(&reader);
    block->count = lahar_read_u16(&reader);
    block->divisor = lahar_read_varint(&reader);
    if (reader.failed || kind > LAHAR_COLUMN_POSITIONS || block->width > 64 ||
        block->divisor == 0 || block->count == 0 || block->count > document_count) {
        return false;
    }
    block->kind = (enum lahar_column_kind)kind;
    block->presence = reader.next;
    if (block->kind == LAHAR_COLUMN_FULL && block->count != document_count) {
        return false;
    }
    if (block->kind == LAHAR_COLUMN_BITMAP) {
        lahar_read_bytes(&reader, BITMAP_SIZE);
    } else if (block->kind == LAHAR_COLUMN_POSITIONS) {
        lahar_read_bytes(&reader, block->count * sizeof(uint16_t));
    }
    block->packed = lahar_read_bytes(&reader, lahar_packed_size(block->count, block->width));
    return !reader.failed;
}

/* Bit i says whether the i-th value of the block is in [low, high]. */
static void select_values(const struct lahar_column_block *block, uint64_t min, uint64_t low,
                          uint64_t high, uint64_t selected[BLOCK_WORDS])
{
    memset(selected, 0, BLOCK_WORDS * sizeof selected[0]);
    /* min + q * divisor in [low, high], for q: */
    const uint64_t from = low <= min ? 0 : (low - min - 1) / block->divisor + 1;
    if (high < min) {
        return;
    }
    const uint64_t to = (high - min) / block->divisor;
    for (size_t i = 0; i < block->count; i++) {
        const uint64_t q = lahar_unpack(block->packed, i, block->width);
        selected[i / 64] |= (uint64_t)(q >= from && q <= to) << (i % 64);
    }
}

static bool is_selected(const uint64_t selected[BLOCK_WORDS], size_t i)
{
    return (selected[i / 64] >> (i % 64) & 1) != 0;
}

/* Adds to set, from document first on, the documents of the selected values. */
static bool add_selected(const struct lahar_column_block *block,
                         const uint64_t selected[BLOCK_WORDS], uint32_t first,
                         size_t document_count, struct lahar_docset *set)
{
    if (block->kind == LAHAR_COLUMN_FULL) {
        /* Blocks begin at a word of the set. */
        lahar_docset_touch(set, first, first + (uint32_t)document_count);
        for (size_t word = 0; word * 64 < document_count; word++) {
            set->words[first / 64 + word] |= selected[word];
        }
        return true;
    }
    size_t i = 0;
    if (block->kind == LAHAR_COLUMN_POSITIONS) {
        for (; i < block->count; i++) {
            const uint16_t position = lahar_load_u16(block->presence + i * sizeof(uint16_t));
            if (position >= document_count) {
                return false;
            }
            if (is_selected(selected, i)) {
                lahar_docset_add(set, first + position);
            }
        }
        return true;
    }
    for (size_t word = 0; word < BLOCK_WORDS; word++) {
        uint64_t bits = lahar_load_u64(block->presence + word * 8);
        for (; bits != 0; bits &= bits - 1, i++) {
            const size_t position = word * 64 + (size_t)__builtin_ctzll(bits);
            if (i >= block->count || position >= document_count) {
                return false;
            }
            if (is_selected(selected, i)) {
                lahar_docset_add(set, first + (uint32_t)position);
            }
        }
    }
    return i == block->count;
}

static lahar_status search_block(struct lahar_shard_pages *pages, const uint8_t *zone,
                                 uint32_t first, uint64_t low, uint64_t high,
                                 struct lahar_docset *set, lahar_error *error)
{
    const uint64_t min = lahar_load_u64(zone);
    const uint64_t max = lahar_load_u64(zone + 8);
    const uint64_t place = lahar_load_u64(zone + 16);
    if (place == 0 || max < low || min > high) {
        return LAHAR_OK;
    }
    const uint32_t left = set->universe - first;
    const size_t document_count =
        left < LAHAR_SHARD_COLUMN_BLOCK ? left : (size_t)LAHAR_SHARD_COLUMN_BLOCK;
    struct lahar_page_view view;
    LAHAR_TRY(lahar_page_view_open(pages, place >> 16, place & 0xffff, &view, error));
    struct lahar_column_block block;
    bool is_valid = lahar_column_block_parse(view.data, place & 0xffff, document_count, &block);
    if (is_valid) {
        uint64_t selected[BLOCK_WORDS];
        if (low <= min && max <= high) {
            memset(selected, 0, sizeof selected);
            for (size_t i = 0; i < block.count; i++) {
                selected[i / 64] |= UINT64_C(1) << (i % 64);
            }
        } else {
            select_values(&block, min, low, high, selected);
        }
        is_valid = add_selected(&block, selected, first, document_count, set);
    }
    lahar_page_view_close(pages, &view);
    return is_valid ? LAHAR_OK : corrupt(error);
}

static lahar_status search_extras(struct lahar_shard_pages *pages,
                                  const struct lahar_column *column, uint64_t low, uint64_t high,
                                  struct lahar_docset *set, lahar_error *error)
{
    for (uint64_t at = 0; at < column->extra_count; at += EXTRAS_AT_A_TIME) {
        const uint64_t left = column->extra_count - at;
        const size_t n = left < EXTRAS_AT_A_TIME ? (size_t)left : EXTRAS_AT_A_TIME;
        uint8_t extras[EXTRAS_AT_A_TIME * LAHAR_SHARD_EXTRA_SIZE];
        LAHAR_TRY(lahar_shard_pages_copy(pages, column->extras + at * LAHAR_SHARD_EXTRA_SIZE,
                                         extras, n * LAHAR_SHARD_EXTRA_SIZE, error));
        for (size_t i = 0; i < n; i++) {
            const uint32_t document = lahar_load_u32(extras + i * LAHAR_SHARD_EXTRA_SIZE);
            const uint64_t value = lahar_load_u64(extras + i * LAHAR_SHARD_EXTRA_SIZE + 4);
            if (document >= set->universe) {
                return corrupt(error);
            }
            if (value >= low && value <= high) {
                lahar_docset_add(set, document);
            }
        }
    }
    return LAHAR_OK;
}

static lahar_status search_blocks(struct lahar_shard_pages *pages,
                                  const struct lahar_column *column, uint64_t low, uint64_t high,
                                  struct lahar_docset *set, lahar_error *error)
{
    const uint64_t blocks =
        ((uint64_t)set->end + LAHAR_SHARD_COLUMN_BLOCK - 1) / LAHAR_SHARD_COLUMN_BLOCK;
    for (uint64_t block = set->first / LAHAR_SHARD_COLUMN_BLOCK; block < blocks;
         block += ZONES_AT_A_TIME) {
        const uint64_t left = blocks - block;
        const size_t n = left < ZONES_AT_A_TIME ? (size_t)left : ZONES_AT_A_TIME;
        uint8_t zones[ZONES_AT_A_TIME * LAHAR_SHARD_ZONE_SIZE];
        LAHAR_TRY(lahar_shard_pages_copy(pages, column->zones + block * LAHAR_SHARD_ZONE_SIZE,
                                         zones, n * LAHAR_SHARD_ZONE_SIZE, error));
        for (size_t i = 0; i < n; i++) {
            LAHAR_TRY(search_block(pages, zones + i * LAHAR_SHARD_ZONE_SIZE,
                                   (uint32_t)((block + i) * LAHAR_SHARD_COLUMN_BLOCK), low, high,
                                   set, error));
        }
    }
    return LAHAR_OK;
}

static lahar_status search_groups(const struct lahar_list_reader *reader,
                                  const struct lahar_column *column, uint64_t low, uint64_t high,
                                  struct lahar_docset *set, lahar_error *error)
{
    struct lahar_docset groups;
    LAHAR_TRY(
        lahar_docset_init(&groups, reader->groups.group_count, reader->pages->allocator, error));
    lahar_status status = search_blocks(reader->pages, column, low, high, &groups, error);
    if (status == LAHAR_OK) {
        status = lahar_group_table_expand(reader->pages, &reader->groups, &groups, set, error);
    }
    lahar_docset_deinit(&groups);
    return status;
}

lahar_status lahar_column_range(const struct lahar_list_reader *reader,
                                const struct lahar_column *column, uint64_t low, uint64_t high,
                                struct lahar_docset *set, lahar_error *error)
{
    if (low > high) {
        return LAHAR_OK;
    }
    if (column->is_grouped) {
        return search_groups(reader, column, low, high, set, error);
    }
    LAHAR_TRY(search_blocks(reader->pages, column, low, high, set, error));
    return search_extras(reader->pages, column, low, high, set, error);
}
