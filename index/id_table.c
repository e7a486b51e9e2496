/* Tables of ids in two forms, found by binary search over (u32, u64) entries:
 * runs (first ordinal, first id), or blocks of 128 documents (place of the gaps, first id). A
 * block's gaps are a width and then the gaps less one, packed. */
#include "index/id_table.h"

#include "index/bitpack.h"
#include "index/shard_format.h"
#include "io/base/error.h"

enum {
    ENTRY_SIZE = 12,
    GAP_WIDTH_MAX = 56
};

/* Walks the ids of all runs. */
struct id_walk {
    const struct lahar_id_run *runs;
    size_t run_count;
    size_t run;
};

static uint64_t walk_to(struct id_walk *walk, uint32_t ordinal)
{
    while (walk->run + 1 < walk->run_count && walk->runs[walk->run + 1].first_ordinal <= ordinal) {
        walk->run++;
    }
    return walk->runs[walk->run].first_id + (ordinal - walk->runs[walk->run].first_ordinal);
}

static unsigned block_width(struct id_walk *walk, uint32_t first, uint32_t count)
{
    uint64_t all = 0;
    uint64_t previous = walk_to(walk, first);
    for (uint32_t i = 1; i < count; i++) {
        const uint64_t id = walk_to(walk, first + i);
        all |= id - previous - 1;
        previous = id;
    }
    return lahar_bit_width(all);
}

static uint32_t block_documents(uint32_t document_count, uint32_t first)
{
    const uint32_t left = document_count - first;
    return left < LAHAR_SHARD_ID_BLOCK ? left : (uint32_t)LAHAR_SHARD_ID_BLOCK;
}

/* Bytes of the packed gaps of all blocks; UINT64_MAX when a gap is too wide for them. */
static uint64_t gaps_size(const struct lahar_id_run *runs, size_t run_count,
                          uint32_t document_count)
{
    struct id_walk walk = {runs, run_count, 0};
    uint64_t size = 0;
    for (uint32_t first = 0; first < document_count; first += LAHAR_SHARD_ID_BLOCK) {
        const uint32_t count = block_documents(document_count, first);
        const unsigned width = block_width(&walk, first, count);
        if (width > GAP_WIDTH_MAX) {
            return UINT64_MAX;
        }
        size += lahar_packed_size(count - 1, width);
    }
    return size;
}

static void put_entry(struct lahar_buffer *out, uint32_t head, uint64_t id)
{
    lahar_buffer_put_u32(out, head);
    lahar_buffer_put_u64(out, id);
}

static void put_blocks(struct lahar_buffer *out, const struct lahar_id_run *runs, size_t run_count,
                       uint32_t document_count)
{
    struct id_walk walk = {runs, run_count, 0};
    uint32_t offset = 0;
    for (uint32_t first = 0; first < document_count; first += LAHAR_SHARD_ID_BLOCK) {
        const uint32_t count = block_documents(document_count, first);
        put_entry(out, offset, walk_to(&walk, first));
        struct id_walk again = walk;
        offset += 1 + (uint32_t)lahar_packed_size(count - 1, block_width(&again, first, count));
        walk = again;
    }
    walk.run = 0;
    for (uint32_t first = 0; first < document_count; first += LAHAR_SHARD_ID_BLOCK) {
        const uint32_t count = block_documents(document_count, first);
        uint64_t previous = walk_to(&walk, first);
        struct id_walk again = walk;
        const unsigned width = block_width(&again, first, count);
        lahar_buffer_put_u8(out, (uint8_t)width);
        struct lahar_bit_writer bits = {.out = out};
        for (uint32_t i = 1; i < count; i++) {
            const uint64_t id = walk_to(&walk, first + i);
            lahar_bit_write(&bits, id - previous - 1, width);
            previous = id;
        }
        lahar_bit_finish(&bits);
    }
}

void lahar_id_table_write(struct lahar_buffer *out, const struct lahar_id_run *runs,
                          size_t run_count, uint32_t document_count)
{
    const uint64_t blocks =
        ((uint64_t)document_count + LAHAR_SHARD_ID_BLOCK - 1) / LAHAR_SHARD_ID_BLOCK;
    const uint64_t runs_size = (uint64_t)run_count * ENTRY_SIZE;
    uint64_t packed = UINT64_MAX;
    if (runs_size > blocks * (ENTRY_SIZE + 1)) {
        packed = gaps_size(runs, run_count, document_count);
    }
    if (packed > UINT32_MAX - blocks || runs_size <= packed + blocks * (ENTRY_SIZE + 1)) {
        lahar_buffer_put_u8(out, LAHAR_ID_RUNS);
        lahar_buffer_put_varint(out, run_count);
        for (size_t i = 0; i < run_count; i++) {
            put_entry(out, runs[i].first_ordinal, runs[i].first_id);
        }
        return;
    }
    lahar_buffer_put_u8(out, LAHAR_ID_BLOCKS);
    lahar_buffer_put_varint(out, packed + blocks);
    put_blocks(out, runs, run_count, document_count);
}

static uint32_t entry_head(const struct lahar_id_table *table, uint32_t index)
{
    return lahar_load_u32(table->entries + (size_t)index * ENTRY_SIZE);
}

static uint64_t entry_id(const struct lahar_id_table *table, uint32_t index)
{
    return lahar_load_u64(table->entries + (size_t)index * ENTRY_SIZE + 4);
}

static bool runs_are_valid(const struct lahar_id_table *table)
{
    if (table->entry_count == 0) {
        return table->document_count == 0;
    }
    if (entry_head(table, 0) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < table->entry_count; i++) {
        const uint32_t begin = entry_head(table, i);
        const bool is_last = i + 1 == table->entry_count;
        const uint32_t end = is_last ? table->document_count : entry_head(table, i + 1);
        if (end <= begin || entry_id(table, i) > UINT64_MAX - (end - begin)) {
            return false;
        }
        if (!is_last && entry_id(table, i) + (end - begin) > entry_id(table, i + 1)) {
            return false;
        }
    }
    return true;
}

/* The id of the document within a block. */
static uint64_t block_id(const struct lahar_id_table *table, uint32_t block, uint32_t within)
{
    const uint8_t *gaps = table->gaps + entry_head(table, block);
    const unsigned width = gaps[0];
    const uint64_t mask = lahar_width_mask(width);
    uint64_t id = entry_id(table, block) + within;
    for (uint32_t i = 0; i < within; i++) {
        id += lahar_unpack_narrow(gaps + 1, i, width, mask);
    }
    return id;
}

static bool blocks_are_valid(const struct lahar_id_table *table, uint64_t gaps_bytes)
{
    for (uint32_t i = 0; i < table->entry_count; i++) {
        const uint32_t first = i * LAHAR_SHARD_ID_BLOCK;
        const uint32_t count = block_documents(table->document_count, first);
        const uint64_t offset = entry_head(table, i);
        if (offset >= gaps_bytes || table->gaps[offset] > GAP_WIDTH_MAX ||
            lahar_packed_size(count - 1, table->gaps[offset]) > gaps_bytes - offset - 1) {
            return false;
        }
        uint64_t id = entry_id(table, i);
        const unsigned width = table->gaps[offset];
        const uint64_t mask = lahar_width_mask(width);
        for (uint32_t k = 0; k + 1 < count; k++) {
            const uint64_t gap = lahar_unpack_narrow(table->gaps + offset + 1, k, width, mask) + 1;
            if (id > UINT64_MAX - gap) {
                return false;
            }
            id += gap;
        }
        if (i + 1 < table->entry_count && id >= entry_id(table, i + 1)) {
            return false;
        }
    }
    return true;
}

bool lahar_id_table_read(struct lahar_reader *reader, uint32_t document_count,
                         struct lahar_id_table *table)
{
    *table = (struct lahar_id_table){.document_count = document_count};
    const uint8_t kind = lahar_read_u8(reader);
    const uint64_t size = lahar_read_varint(reader);
    if (reader->failed || kind > LAHAR_ID_BLOCKS) {
        return false;
    }
    table->is_blocks = kind == LAHAR_ID_BLOCKS;
    if (!table->is_blocks) {
        if (size > document_count) {
            return false;
        }
        table->entry_count = (uint32_t)size;
        table->entries = lahar_read_bytes(reader, size * ENTRY_SIZE);
        return !reader->failed && runs_are_valid(table);
    }
    const uint64_t blocks =
        ((uint64_t)document_count + LAHAR_SHARD_ID_BLOCK - 1) / LAHAR_SHARD_ID_BLOCK;
    table->entry_count = (uint32_t)blocks;
    table->entries = lahar_read_bytes(reader, blocks * ENTRY_SIZE);
    table->gaps = lahar_read_bytes(reader, size);
    return !reader->failed && blocks_are_valid(table, size);
}

/* The run that the ordinal is in. */
static uint32_t last_run_at(const struct lahar_id_table *table, uint32_t ordinal)
{
    uint32_t low = 0;
    uint32_t high = table->entry_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (entry_head(table, middle) <= ordinal) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

uint64_t lahar_id_table_id(const struct lahar_id_table *table, uint32_t ordinal)
{
    LAHAR_ASSERT(ordinal < table->document_count);
    if (table->is_blocks) {
        return block_id(table, ordinal / LAHAR_SHARD_ID_BLOCK, ordinal % LAHAR_SHARD_ID_BLOCK);
    }
    const uint32_t run = last_run_at(table, ordinal);
    return entry_id(table, run) + (ordinal - entry_head(table, run));
}

uint32_t lahar_id_table_run_end(const struct lahar_id_table *table, uint32_t ordinal)
{
    LAHAR_ASSERT(ordinal < table->document_count);
    if (!table->is_blocks) {
        const uint32_t run = last_run_at(table, ordinal);
        return run + 1 == table->entry_count ? table->document_count : entry_head(table, run + 1);
    }
    const uint32_t block = ordinal / LAHAR_SHARD_ID_BLOCK;
    const uint32_t first = block * LAHAR_SHARD_ID_BLOCK;
    const uint32_t end = first + block_documents(table->document_count, first);
    const uint8_t *gaps = table->gaps + entry_head(table, block);
    const uint64_t mask = lahar_width_mask(gaps[0]);
    uint32_t next = ordinal + 1;
    while (next < end && lahar_unpack_narrow(gaps + 1, next - first - 1, gaps[0], mask) == 0) {
        next++;
    }
    return next;
}

uint32_t lahar_id_table_ordinal(const struct lahar_id_table *table, uint64_t id)
{
    if (table->document_count == 0 || id <= entry_id(table, 0)) {
        return 0;
    }
    uint32_t low = 0;
    uint32_t high = table->entry_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (entry_id(table, middle) <= id) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const bool is_last = low + 1 == table->entry_count;
    if (!table->is_blocks) {
        const uint32_t begin = entry_head(table, low);
        const uint32_t end = is_last ? table->document_count : entry_head(table, low + 1);
        const uint64_t within = id - entry_id(table, low);
        return within < end - begin ? begin + (uint32_t)within : end;
    }
    const uint32_t first = low * LAHAR_SHARD_ID_BLOCK;
    const uint32_t count = block_documents(table->document_count, first);
    const uint8_t *gaps = table->gaps + entry_head(table, low);
    const uint64_t mask = lahar_width_mask(gaps[0]);
    uint64_t at = entry_id(table, low);
    uint32_t i = 0;
    while (at < id && ++i < count) {
        at += lahar_unpack_narrow(gaps + 1, i - 1, gaps[0], mask) + 1;
    }
    return first + i;
}
