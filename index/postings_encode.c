/* Encoding of posting lists.
 *
 * A list takes the smallest of: one short block, blocks of 128 documents with skip entries, a bit
 * set of the whole shard, or the list of the documents that it lacks. Blocks do
 * not depend on one another: the skip entry holds the first document, the block the
 * gaps, so they decode in any order. */
#include "index/postings.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/shard_format.h"
#include "io/base/error.h"

/* Width of the widest gap less one among documents[0 .. count). */
static unsigned gap_width(const uint32_t *documents, size_t count)
{
    uint32_t all = 0;
    for (size_t i = 1; i < count; i++) {
        all |= documents[i] - documents[i - 1] - 1;
    }
    return lahar_bit_width(all);
}

static void put_gaps(struct lahar_buffer *out, const uint32_t *documents, size_t count,
                     unsigned width)
{
    if (width == 0) {
        return;
    }
    struct lahar_bit_writer bits = {.out = out};
    for (size_t i = 1; i < count; i++) {
        lahar_bit_write(&bits, documents[i] - documents[i - 1] - 1, width);
    }
    lahar_bit_finish(&bits);
}

static void put_bits(struct lahar_buffer *out, const uint32_t *documents, size_t count,
                     uint32_t first, size_t size)
{
    if (!lahar_buffer_reserve(out, size)) {
        return;
    }
    uint8_t *bits = out->data + out->size;
    memset(bits, 0, size);
    for (size_t i = 0; i < count; i++) {
        const uint32_t bit = documents[i] - first;
        bits[bit / 8] |= (uint8_t)(1U << (bit % 8));
    }
    out->size += size;
}

static void put_blocks(struct lahar_buffer *out, const uint32_t *documents, size_t count)
{
    const size_t blocks = (count + LAHAR_SHARD_LIST_BLOCK - 1) / LAHAR_SHARD_LIST_BLOCK;
    const size_t skips = out->size;
    if (!lahar_buffer_reserve(out, blocks * LAHAR_SHARD_SKIP_SIZE)) {
        return;
    }
    out->size += blocks * LAHAR_SHARD_SKIP_SIZE;
    const size_t data = out->size;
    for (size_t block = 0; block < blocks && !out->has_failed; block++) {
        const uint32_t *from = documents + block * LAHAR_SHARD_LIST_BLOCK;
        const size_t left = count - block * LAHAR_SHARD_LIST_BLOCK;
        const size_t n = left < LAHAR_SHARD_LIST_BLOCK ? left : LAHAR_SHARD_LIST_BLOCK;
        const size_t offset = out->size - data;
        const unsigned width = gap_width(from, n);
        const size_t packed = lahar_packed_size(n - 1, width);
        const size_t bitset = (size_t)(from[n - 1] - from[0]) / 8 + 1;
        uint64_t code = width;
        if (bitset < packed) {
            code = LAHAR_SKIP_BITSET;
            put_bits(out, from, n, from[0], bitset);
        } else {
            put_gaps(out, from, n, width);
        }
        lahar_store_u64(out->data + skips + block * LAHAR_SHARD_SKIP_SIZE,
                        from[0] | code << LAHAR_SKIP_BASE_BITS |
                            (uint64_t)offset << (LAHAR_SKIP_BASE_BITS + LAHAR_SKIP_WIDTH_BITS));
    }
}

/* Bytes that put_blocks would write. */
static size_t blocks_size(const uint32_t *documents, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i += LAHAR_SHARD_LIST_BLOCK) {
        const size_t left = count - i;
        const size_t n = left < LAHAR_SHARD_LIST_BLOCK ? left : LAHAR_SHARD_LIST_BLOCK;
        const size_t packed = lahar_packed_size(n - 1, gap_width(documents + i, n));
        const size_t bitset = (size_t)(documents[i + n - 1] - documents[i]) / 8 + 1;
        size += LAHAR_SHARD_SKIP_SIZE + (bitset < packed ? bitset : packed);
    }
    return size;
}

static void put_list(struct lahar_buffer *out, const uint32_t *documents, size_t count,
                     uint32_t document_count)
{
    if (count <= LAHAR_SHARD_LIST_BLOCK) {
        lahar_buffer_put_varint(out, (uint64_t)count << LAHAR_LIST_KIND_BITS | LAHAR_LIST_SHORT);
        const unsigned width = gap_width(documents, count);
        lahar_buffer_put_varint(out, documents[0]);
        lahar_buffer_put_u8(out, (uint8_t)width);
        put_gaps(out, documents, count, width);
        return;
    }
    const size_t bitset = ((size_t)document_count + 7) / 8;
    if (blocks_size(documents, count) >= bitset) {
        lahar_buffer_put_varint(out, (uint64_t)count << LAHAR_LIST_KIND_BITS | LAHAR_LIST_BITSET);
        put_bits(out, documents, count, 0, bitset);
        return;
    }
    lahar_buffer_put_varint(out, (uint64_t)count << LAHAR_LIST_KIND_BITS | LAHAR_LIST_BLOCKS);
    const size_t size_at = out->size;
    lahar_buffer_put_u32(out, 0);
    put_blocks(out, documents, count);
    if (!out->has_failed) {
        lahar_store_u32(out->data + size_at, (uint32_t)(out->size - size_at - 4));
    }
}

/* The list of what documents lacks, 1 .. count of it being missing. Complements pay from a
 * few absentees in many: then runs of the list itself cost more. */
static bool put_complement(struct lahar_list_writer *writer, const uint32_t *documents,
                           size_t count)
{
    const uint32_t missing_count = writer->document_count - (uint32_t)count;
    uint32_t *missing =
        lahar_allocate(writer->out->allocator, (size_t)missing_count * sizeof *missing);
    if (missing == NULL) {
        return false;
    }
    size_t filled = 0;
    uint32_t next = 0;
    for (size_t i = 0; i < count; i++) {
        for (; next < documents[i]; next++) {
            missing[filled++] = next;
        }
        next++;
    }
    for (; next < writer->document_count; next++) {
        missing[filled++] = next;
    }
    LAHAR_ASSERT(filled == missing_count);
    lahar_buffer_put_varint(writer->out,
                            (uint64_t)count << LAHAR_LIST_KIND_BITS | LAHAR_LIST_COMPLEMENT);
    put_list(writer->out, missing, missing_count, writer->document_count);
    lahar_release(writer->out->allocator, missing);
    return true;
}

bool lahar_list_takes_groups(const struct lahar_list_writer *writer, size_t groups, uint64_t count)
{
    /* A quarter of all documents and more stay as they are: a bit set costs next to nothing to
     * read. */
    return writer->groups != NULL && count > 1 && count < writer->document_count / 4 &&
           (groups == 1 || (groups != 0 && groups * 3 <= count * 2));
}

/* Appends the list of groups, of which count documents are. */
static void put_groups(struct lahar_buffer *out, uint64_t count, const uint32_t *groups,
                       size_t group_count, uint32_t all_group_count)
{
    if (group_count == 1) {
        lahar_buffer_put_varint(out, count << LAHAR_LIST_KIND_BITS | LAHAR_LIST_GROUP);
        lahar_buffer_put_varint(out, groups[0]);
        return;
    }
    lahar_buffer_put_varint(out, count << LAHAR_LIST_KIND_BITS | LAHAR_LIST_GROUPS);
    put_list(out, groups, group_count, all_group_count);
}

/* The list as one of groups, where that is shorter. */
static bool try_groups(struct lahar_list_writer *writer, const uint32_t *documents, size_t count)
{
    if (!lahar_list_takes_groups(writer, 1, count)) {
        return false;
    }
    const size_t groups = lahar_group_map_cover(writer->groups, documents, count);
    if (!lahar_list_takes_groups(writer, groups, count)) {
        return false;
    }
    put_groups(writer->out, count, writer->groups->touched, groups, writer->groups->group_count);
    return true;
}

uint64_t lahar_list_write(struct lahar_list_writer *writer, const uint32_t *documents, size_t count)
{
    if (count == 0) {
        return LAHAR_SPECIAL_NONE << 2 | 3;
    }
    if (count == writer->document_count) {
        return LAHAR_SPECIAL_ALL << 2 | 3;
    }
    if (count == 1) {
        return (uint64_t)documents[0] << 1;
    }
    struct lahar_buffer *out = writer->out;
    const size_t start = out->size;
    const uint32_t missing = writer->document_count - (uint32_t)count;
    if (!try_groups(writer, documents, count) &&
        (count <= LAHAR_SHARD_LIST_BLOCK || missing >= writer->document_count / 8 ||
         !put_complement(writer, documents, count))) {
        put_list(out, documents, count, writer->document_count);
    }
    return lahar_list_finish(writer, start);
}

uint64_t lahar_list_finish(struct lahar_list_writer *writer, size_t start)
{
    if (writer->blobs == NULL) {
        return (uint64_t)(size_t)(start - writer->base) << 2 | 1;
    }
    return lahar_blob_intern(writer->blobs, writer->out, writer->base, start, 1) << 2 | 1;
}

uint64_t lahar_list_write_groups(struct lahar_list_writer *writer, uint64_t count,
                                 const uint32_t *groups, size_t group_count,
                                 uint32_t all_group_count)
{
    const size_t start = writer->out->size;
    put_groups(writer->out, count, groups, group_count, all_group_count);
    return lahar_list_finish(writer, start);
}
