/* From posting lists to arrays of numbers: what writing a list anew needs. Short lists and blocks
 * are decoded straight, bit sets and what is built of other lists by way of a set. */
#include "index/list_read.h"

#include <stdlib.h>

#include "index/vector.h"
#include "io/base/error.h"

enum {
    /* Skip entries read at a time. */
    SKIPS_AT_A_TIME = 64,
    /* Groups that have less than one document in so many are gone to one by one. */
    FEW_PART = 256
};

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a posting list of an index shard is malformed");
}

static lahar_status reserve(struct lahar_number_list *list, size_t count, lahar_error *error)
{
    if (list->capacity - list->count >= count) {
        return LAHAR_OK;
    }
    uint32_t *grown = lahar_vector_grow(list->allocator, list->items, &list->capacity,
                                        list->count + count, sizeof *list->items);
    if (grown == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a posting list");
    }
    list->items = grown;
    return LAHAR_OK;
}

/* base and the numbers at the count - 1 packed gaps behind it; there is room for them. */
static bool append_gaps(struct lahar_number_list *list, uint64_t base, const uint8_t *packed,
                        size_t count, unsigned width, uint32_t universe, uint32_t offset)
{
    const uint64_t mask = lahar_width_mask(width);
    uint32_t *to = list->items + list->count;
    uint64_t number = base;
    if (number >= universe) {
        return false;
    }
    to[0] = (uint32_t)number + offset;
    for (size_t i = 1; i < count; i++) {
        number += 1 + (width == 0 ? 0 : lahar_unpack_narrow(packed, i - 1, width, mask));
        if (number >= universe) {
            return false;
        }
        to[i] = (uint32_t)number + offset;
    }
    list->count += count;
    return true;
}

static bool append_bits(struct lahar_number_list *list, uint64_t base, const uint8_t *bits,
                        uint64_t size, size_t count, uint32_t universe, uint32_t offset)
{
    uint32_t *to = list->items + list->count;
    size_t filled = 0;
    for (uint64_t i = 0; i < size; i++) {
        for (unsigned byte = bits[i]; byte != 0; byte &= byte - 1) {
            const uint64_t number = base + i * 8 + (unsigned)__builtin_ctz(byte);
            if (number >= universe || filled == count) {
                return false;
            }
            to[filled++] = (uint32_t)number + offset;
        }
    }
    list->count += filled;
    return filled == count;
}

static lahar_status collect_short(struct lahar_shard_pages *pages,
                                  const struct lahar_list_head *head, uint32_t universe,
                                  uint32_t offset, struct lahar_number_list *list,
                                  lahar_error *error)
{
    struct lahar_list_short from;
    LAHAR_TRY(lahar_list_short_open(pages, head, &from, error));
    lahar_status status = reserve(list, from.count, error);
    if (status == LAHAR_OK &&
        !append_gaps(list, from.first, from.gaps.data, from.count, from.width, universe, offset)) {
        status = corrupt(error);
    }
    lahar_page_view_close(pages, &from.gaps);
    return status;
}

/* count blocks, the last one of last_count numbers; the offset behind the last one's data is end.
 */
static lahar_status collect_block_run(struct lahar_shard_pages *pages, uint64_t data,
                                      const uint8_t *skips, size_t count, uint64_t end,
                                      size_t last_count, uint32_t universe, uint32_t offset,
                                      struct lahar_number_list *list, lahar_error *error)
{
    const uint64_t begin = lahar_list_skip_at(skips, 0).offset;
    const uint64_t size_max = count * (LAHAR_SHARD_LIST_BLOCK * LAHAR_SKIP_BASE_BITS / 8);
    if (begin > end || end - begin > size_max) {
        return corrupt(error);
    }
    LAHAR_TRY(reserve(list, count * LAHAR_SHARD_LIST_BLOCK, error));
    struct lahar_page_view view;
    LAHAR_TRY(lahar_page_view_open(pages, data + begin, end - begin, &view, error));
    bool is_valid = true;
    for (size_t i = 0; i < count && is_valid; i++) {
        const struct lahar_list_skip skip = lahar_list_skip_at(skips, i);
        const uint64_t next = i + 1 < count ? lahar_list_skip_at(skips, i + 1).offset : end;
        const size_t n = i + 1 < count ? (size_t)LAHAR_SHARD_LIST_BLOCK : last_count;
        if (skip.offset < begin || skip.offset > next || next > end) {
            is_valid = false;
        } else if (skip.width == LAHAR_SKIP_BITSET) {
            is_valid = append_bits(list, skip.base, view.data + (skip.offset - begin),
                                   next - skip.offset, n, universe, offset);
        } else {
            is_valid = skip.width <= LAHAR_SKIP_BASE_BITS &&
                       lahar_packed_size(n - 1, skip.width) <= next - skip.offset &&
                       append_gaps(list, skip.base, view.data + (skip.offset - begin), n,
                                   skip.width, universe, offset);
        }
    }
    lahar_page_view_close(pages, &view);
    return is_valid ? LAHAR_OK : corrupt(error);
}

static lahar_status collect_blocks(struct lahar_shard_pages *pages,
                                   const struct lahar_list_head *head, uint32_t universe,
                                   uint32_t offset, struct lahar_number_list *list,
                                   lahar_error *error)
{
    uint8_t size_bytes[4];
    LAHAR_TRY(lahar_shard_pages_copy(pages, head->data, size_bytes, sizeof size_bytes, error));
    const uint64_t size = lahar_load_u32(size_bytes);
    const uint64_t blocks = (head->count + LAHAR_SHARD_LIST_BLOCK - 1) / LAHAR_SHARD_LIST_BLOCK;
    const uint64_t skips = head->data + sizeof size_bytes;
    if (head->count > universe || size < blocks * LAHAR_SHARD_SKIP_SIZE) {
        return corrupt(error);
    }
    const uint64_t data = skips + blocks * LAHAR_SHARD_SKIP_SIZE;
    const uint64_t data_size = size - blocks * LAHAR_SHARD_SKIP_SIZE;
    for (uint64_t block = 0; block < blocks; block += SKIPS_AT_A_TIME) {
        uint8_t entries[(SKIPS_AT_A_TIME + 1) * LAHAR_SHARD_SKIP_SIZE];
        const uint64_t left = blocks - block;
        const bool is_last = left <= SKIPS_AT_A_TIME;
        const size_t n = is_last ? (size_t)left : (size_t)SKIPS_AT_A_TIME;
        LAHAR_TRY(lahar_shard_pages_copy(pages, skips + block * LAHAR_SHARD_SKIP_SIZE, entries,
                                         (n + (is_last ? 0 : 1)) * LAHAR_SHARD_SKIP_SIZE, error));
        const uint64_t end = is_last ? data_size : lahar_list_skip_at(entries, n).offset;
        const uint64_t last_count = is_last ? head->count - (blocks - 1) * LAHAR_SHARD_LIST_BLOCK
                                            : (uint64_t)LAHAR_SHARD_LIST_BLOCK;
        if (end > data_size) {
            return corrupt(error);
        }
        LAHAR_TRY(collect_block_run(pages, data, entries, n, end, (size_t)last_count, universe,
                                    offset, list, error));
    }
    return LAHAR_OK;
}

/* Where the documents of groups go. */
struct grouped {
    struct lahar_number_list *list;
    uint32_t offset;
};

/* Moves the members of set to the list and empties it. */
static lahar_status take_set(struct lahar_docset *set, uint32_t offset,
                             struct lahar_number_list *list, lahar_error *error)
{
    const lahar_status status = reserve(list, (size_t)lahar_docset_count(set), error);
    for (uint32_t word = set->low_word; status == LAHAR_OK && word < set->high_word; word++) {
        for (uint64_t bits = set->words[word]; bits != 0; bits &= bits - 1) {
            list->items[list->count++] = offset + word * 64 + (uint32_t)__builtin_ctzll(bits);
        }
    }
    lahar_docset_clear(set);
    return status;
}

static lahar_status take_group(void *context, uint32_t group, const uint32_t *documents,
                               uint32_t count, lahar_error *error)
{
    struct grouped *grouped = context;
    struct lahar_number_list *list = grouped->list;
    (void)group;
    LAHAR_TRY(reserve(list, count, error));
    for (uint32_t i = 0; i < count; i++) {
        list->items[list->count++] = documents[i] + grouped->offset;
    }
    return LAHAR_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The documents of few groups, group by group, then in order. */
static lahar_status collect_grouped(const struct lahar_list_reader *reader,
                                    const struct lahar_list_head *head, uint32_t document_count,
                                    uint32_t offset, struct lahar_number_list *list,
                                    lahar_error *error)
{
    struct lahar_number_list groups = {.allocator = list->allocator};
    struct grouped grouped = {list, offset};
    const size_t first = list->count;
    lahar_status status = lahar_list_collect_groups(reader, head, 0, NULL, &groups, error);
    for (size_t i = 0; i < groups.count && status == LAHAR_OK; i++) {
        status = lahar_group_table_visit_word(
            reader->pages, &reader->groups, groups.items[i] / LAHAR_SHARD_GROUP_BLOCK,
            UINT64_C(1) << (groups.items[i] % LAHAR_SHARD_GROUP_BLOCK), document_count, take_group,
            &grouped, error);
    }
    lahar_release(groups.allocator, groups.items);
    qsort(list->items + first, list->count - first, sizeof *list->items, compare_numbers);
    return status;
}

static lahar_status collect_all(uint32_t document_count, uint32_t offset,
                                struct lahar_number_list *list, lahar_error *error)
{
    LAHAR_TRY(reserve(list, document_count, error));
    for (uint32_t i = 0; i < document_count; i++) {
        list->items[list->count + i] = offset + i;
    }
    list->count += document_count;
    return LAHAR_OK;
}

lahar_status lahar_list_collect(const struct lahar_list_reader *reader, uint64_t reference,
                                uint32_t document_count, uint32_t offset,
                                struct lahar_docset *scratch, struct lahar_number_list *list,
                                lahar_error *error)
{
    if ((reference & 1) == 0) {
        if (reference >> 1 >= document_count) {
            return corrupt(error);
        }
        LAHAR_TRY(reserve(list, 1, error));
        list->items[list->count++] = offset + (uint32_t)(reference >> 1);
        return LAHAR_OK;
    }
    if ((reference & 3) == 3) {
        if (reference >> 2 > LAHAR_SPECIAL_NONE) {
            return corrupt(error);
        }
        return reference >> 2 == LAHAR_SPECIAL_NONE
                   ? LAHAR_OK
                   : collect_all(document_count, offset, list, error);
    }
    struct lahar_list_head head;
    LAHAR_TRY(lahar_list_head_read(reader->pages, reference >> 2, &head, error));
    if (head.kind == LAHAR_LIST_SHORT) {
        return collect_short(reader->pages, &head, document_count, offset, list, error);
    }
    if (head.kind == LAHAR_LIST_BLOCKS) {
        return collect_blocks(reader->pages, &head, document_count, offset, list, error);
    }
    if ((head.kind == LAHAR_LIST_GROUP || head.kind == LAHAR_LIST_GROUPS) &&
        head.count < document_count / FEW_PART) {
        return collect_grouped(reader, &head, document_count, offset, list, error);
    }
    const lahar_status status = lahar_list_read(reader, reference, scratch, error);
    if (status != LAHAR_OK) {
        lahar_docset_clear(scratch);
        return status;
    }
    return take_set(scratch, offset, list, error);
}

lahar_status lahar_list_collect_groups(const struct lahar_list_reader *reader,
                                       const struct lahar_list_head *head, uint32_t offset,
                                       struct lahar_docset *scratch, struct lahar_number_list *list,
                                       lahar_error *error)
{
    const uint32_t group_count = reader->groups.group_count;
    if (head->kind == LAHAR_LIST_GROUP) {
        uint32_t group = 0;
        LAHAR_TRY(lahar_list_group(reader, head, &group, error));
        LAHAR_TRY(reserve(list, 1, error));
        list->items[list->count++] = offset + group;
        return LAHAR_OK;
    }
    struct lahar_list_head inner;
    LAHAR_TRY(lahar_list_head_read(reader->pages, head->data, &inner, error));
    if (inner.kind == LAHAR_LIST_SHORT) {
        return collect_short(reader->pages, &inner, group_count, offset, list, error);
    }
    if (inner.kind == LAHAR_LIST_BLOCKS) {
        return collect_blocks(reader->pages, &inner, group_count, offset, list, error);
    }
    if (scratch == NULL) {
        struct lahar_docset set;
        LAHAR_TRY(lahar_docset_init(&set, group_count, list->allocator, error));
        lahar_status own = lahar_list_read_simple(reader->pages, &inner, &set, error);
        if (own == LAHAR_OK) {
            own = take_set(&set, offset, list, error);
        }
        lahar_docset_deinit(&set);
        return own;
    }
    const lahar_status status = lahar_list_read_simple(reader->pages, &inner, scratch, error);
    if (status != LAHAR_OK) {
        lahar_docset_clear(scratch);
        return status;
    }
    return take_set(scratch, offset, list, error);
}
