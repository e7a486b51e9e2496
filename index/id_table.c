/* Tables of ids in two forms, found by binary search over (u32, u64) entries:
 * runs (first ordinal, first id), or blocks of 128 documents (place of the gaps, first id). A
 * block's gaps are a width, the least of them less one, and then by how much each is more than the
 * least, packed: streams that take turns cost nothing. */
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

/* How the gaps of a block are stored. */
struct gap_form {
    unsigned width;
    uint64_t base; /* the least, less one */
};

static struct gap_form measure_block(struct id_walk *walk, uint32_t first, uint32_t count)
{
    uint64_t least = count < 2 ? 0 : UINT64_MAX;
    uint64_t most = 0;
    uint64_t previous = walk_to(walk, first);
    for (uint32_t i = 1; i < count; i++) {
        const uint64_t id = walk_to(walk, first + i);
        const uint64_t gap = id - previous - 1;
        least = gap < least ? gap : least;
        most = gap > most ? gap : most;
        previous = id;
    }
    return (struct gap_form){lahar_bit_width(most - least), least};
}

static uint64_t form_size(const struct gap_form *form, uint32_t count)
{
    return 1 + lahar_varint_size(form->base) + lahar_packed_size(count - 1, form->width);
}

static uint32_t block_documents(uint32_t document_count, uint32_t first)
{
    const uint32_t left = document_count - first;
    return left < LAHAR_SHARD_ID_BLOCK ? left : (uint32_t)LAHAR_SHARD_ID_BLOCK;
}

/* Bytes of the gaps of all blocks; UINT64_MAX when a gap is too wide for them. */
static uint64_t gaps_size(const struct lahar_id_run *runs, size_t run_count,
                          uint32_t document_count)
{
    struct id_walk walk = {runs, run_count, 0};
    uint64_t size = 0;
    for (uint32_t first = 0; first < document_count; first += LAHAR_SHARD_ID_BLOCK) {
        const uint32_t count = block_documents(document_count, first);
        const struct gap_form form = measure_block(&walk, first, count);
        if (form.width > GAP_WIDTH_MAX || form.base >> GAP_WIDTH_MAX != 0) {
            return UINT64_MAX;
        }
        size += form_size(&form, count);
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
        const struct gap_form form = measure_block(&walk, first, count);
        offset += (uint32_t)form_size(&form, count);
    }
    walk.run = 0;
    for (uint32_t first = 0; first < document_count; first += LAHAR_SHARD_ID_BLOCK) {
        const uint32_t count = block_documents(document_count, first);
        uint64_t previous = walk_to(&walk, first);
        struct id_walk again = walk;
        const struct gap_form form = measure_block(&again, first, count);
        lahar_buffer_put_u8(out, (uint8_t)form.width);
        lahar_buffer_put_varint(out, form.base);
        struct lahar_bit_writer bits = {.out = out};
        for (uint32_t i = 1; i < count; i++) {
            const uint64_t id = walk_to(&walk, first + i);
            lahar_bit_write(&bits, id - previous - 1 - form.base, form.width);
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
    if (packed > UINT32_MAX || runs_size <= packed + blocks * ENTRY_SIZE) {
        lahar_buffer_put_u8(out, LAHAR_ID_RUNS);
        lahar_buffer_put_varint(out, run_count);
        for (size_t i = 0; i < run_count; i++) {
            put_entry(out, runs[i].first_ordinal, runs[i].first_id);
        }
        return;
    }
    lahar_buffer_put_u8(out, LAHAR_ID_BLOCKS);
    lahar_buffer_put_varint(out, packed);
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

/* The gaps of a block, ready to be read. */
struct block_gaps {
    const uint8_t *packed;
    unsigned width;
    uint64_t mask;
    uint64_t step; /* the least gap */
};

static inline uint64_t gap_at(const struct block_gaps *gaps, uint32_t index)
{
    return gaps->step + lahar_unpack_narrow(gaps->packed, index, gaps->width, gaps->mask);
}

/* Of count documents, from at most size bytes; false when they are not sound. */
static bool parse_gaps(const uint8_t *data, uint64_t size, uint32_t count, struct block_gaps *gaps)
{
    struct lahar_reader reader = lahar_reader_of(data, (size_t)size);
    gaps->width = lahar_read_u8(&reader);
    const uint64_t base = lahar_read_varint(&reader);
    gaps->step = base + 1;
    if (reader.failed || gaps->width > GAP_WIDTH_MAX || base >> GAP_WIDTH_MAX != 0) {
        return false;
    }
    gaps->mask = lahar_width_mask(gaps->width);
    gaps->packed = reader.next;
    return lahar_packed_size(count - 1, gaps->width) <= lahar_reader_left(&reader);
}

/* Of a table that has been found valid. */
static struct block_gaps gaps_of(const struct lahar_id_table *table, uint32_t block, uint32_t count)
{
    struct block_gaps gaps;
    const uint32_t offset = entry_head(table, block);
    const bool is_sound = parse_gaps(table->gaps + offset, table->gaps_size - offset, count, &gaps);
    LAHAR_ASSERT(is_sound);
    return gaps;
}

/* The id of the document within a block. */
static uint64_t block_id(const struct lahar_id_table *table, uint32_t block, uint32_t within)
{
    const struct block_gaps gaps = gaps_of(table, block, within + 1);
    uint64_t id = entry_id(table, block);
    if (gaps.width == 0) {
        return id + within * gaps.step;
    }
    for (uint32_t i = 0; i < within; i++) {
        id += gap_at(&gaps, i);
    }
    return id;
}

static bool blocks_are_valid(const struct lahar_id_table *table)
{
    for (uint32_t i = 0; i < table->entry_count; i++) {
        const uint32_t first = i * LAHAR_SHARD_ID_BLOCK;
        const uint32_t count = block_documents(table->document_count, first);
        const uint64_t offset = entry_head(table, i);
        struct block_gaps gaps;
        if (offset >= table->gaps_size ||
            !parse_gaps(table->gaps + offset, table->gaps_size - offset, count, &gaps)) {
            return false;
        }
        uint64_t id = entry_id(table, i);
        for (uint32_t k = 0; k + 1 < count; k++) {
            const uint64_t gap = gap_at(&gaps, k);
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
    table->gaps_size = size;
    return !reader->failed && blocks_are_valid(table);
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
    const struct block_gaps gaps = gaps_of(table, block, end - first);
    uint32_t next = ordinal + 1;
    while (next < end && gap_at(&gaps, next - first - 1) == 1) {
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
    const struct block_gaps gaps = gaps_of(table, low, count);
    uint64_t at = entry_id(table, low);
    uint32_t i = 0;
    while (at < id && ++i < count) {
        at += gap_at(&gaps, i - 1);
    }
    return first + i;
}
