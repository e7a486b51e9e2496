/* Decoding of posting lists into sets. Every count, width and document is checked against the
 * shard before use: a list is bytes from disk. */
#include "index/list_read.h"

#include <string.h>

#include "index/bitpack.h"
#include "io/base/error.h"

enum {
    /* Bytes before the data of a list: two varints and a width at most. */
    HEAD_SIZE_MAX = 24,
    /* Documents that a block spans at most for its words to be written without looking. */
    NEAR_SPAN = 8192,
    /* Bit sets are read in pieces of whole words. */
    BITSET_PIECE = 4096,
    /* Skip entries read at a time, so that their data is one view. */
    SKIPS_AT_A_TIME = 64
};

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a posting list of an index shard is malformed");
}

/* Views up to HEAD_SIZE_MAX bytes at offset. */
static lahar_status view_head(struct lahar_shard_pages *pages, uint64_t offset,
                              struct lahar_page_view *view, struct lahar_reader *reader,
                              lahar_error *error)
{
    const uint64_t left = offset < pages->body_size ? pages->body_size - offset : 0;
    const uint64_t size = left < HEAD_SIZE_MAX ? left : HEAD_SIZE_MAX;
    LAHAR_TRY(lahar_page_view_open(pages, offset, size, view, error));
    *reader = lahar_reader_of(view->data, (size_t)size);
    return LAHAR_OK;
}

lahar_status lahar_list_head_read(struct lahar_shard_pages *pages, uint64_t offset,
                                  struct lahar_list_head *head, lahar_error *error)
{
    struct lahar_page_view view;
    struct lahar_reader reader;
    LAHAR_TRY(view_head(pages, offset, &view, &reader, error));
    const uint8_t *begin = reader.next;
    const uint64_t v = lahar_read_varint(&reader);
    *head = (struct lahar_list_head){.count = v >> LAHAR_LIST_KIND_BITS,
                                     .kind = (enum lahar_list_kind)(v & 7),
                                     .data = offset + (uint64_t)(reader.next - begin)};
    if (head->kind == LAHAR_LIST_GROUP) {
        head->second = lahar_read_varint(&reader);
    }
    const bool failed = reader.failed;
    lahar_page_view_close(pages, &view);
    return failed || head->count == 0 ? corrupt(error) : LAHAR_OK;
}

/* The same where all of them surely lie in words that have a meaning. A word is gathered before it
 * is stored: documents this near share it. */
static void add_near_gaps(uint64_t *words, uint64_t document, const uint8_t *packed, size_t count,
                          unsigned width)
{
    const uint64_t mask = lahar_width_mask(width);
    uint64_t word = document / 64;
    uint64_t bits = UINT64_C(1) << (document % 64);
    for (size_t i = 0; i + 1 < count; i++) {
        document += lahar_unpack_narrow(packed, i, width, mask) + 1;
        if (document / 64 != word) {
            words[word] |= bits;
            word = document / 64;
            bits = 0;
        }
        bits |= UINT64_C(1) << (document % 64);
    }
    words[word] |= bits;
}

/* Adds base and the documents at the count - 1 packed gaps behind it. */
static bool add_gaps(struct lahar_docset *set, uint64_t base, const uint8_t *packed, size_t count,
                     unsigned width)
{
    uint64_t document = base;
    if (document >= set->universe) {
        return false;
    }
    if (width == 0) {
        if (count > set->universe - document) {
            return false;
        }
        lahar_docset_add_range(set, (uint32_t)document, (uint32_t)(document + count));
        return true;
    }
    const uint64_t mask = lahar_width_mask(width);
    const uint64_t universe = set->universe;
    const uint64_t last_max = document + (uint64_t)(count - 1) * (mask + 1);
    if (last_max - document <= NEAR_SPAN && last_max < universe) {
        lahar_docset_touch(set, (uint32_t)document, (uint32_t)last_max + 1);
        add_near_gaps(set->words, document, packed, count, width);
        return true;
    }
    lahar_docset_put(set, (uint32_t)document);
    for (size_t i = 0; i + 1 < count; i++) {
        document += lahar_unpack_narrow(packed, i, width, mask) + 1;
        if (document >= universe) {
            return false;
        }
        lahar_docset_put(set, (uint32_t)document);
    }
    return true;
}

lahar_status lahar_list_short_open(struct lahar_shard_pages *pages,
                                   const struct lahar_list_head *head,
                                   struct lahar_list_short *list, lahar_error *error)
{
    struct lahar_page_view view;
    struct lahar_reader reader;
    LAHAR_TRY(view_head(pages, head->data, &view, &reader, error));
    const uint8_t *begin = reader.next;
    list->first = lahar_read_varint(&reader);
    list->width = lahar_read_u8(&reader);
    const uint64_t packed = head->data + (uint64_t)(reader.next - begin);
    const bool failed = reader.failed;
    lahar_page_view_close(pages, &view);
    if (failed || list->width > LAHAR_SKIP_BASE_BITS || head->count > LAHAR_SHARD_LIST_BLOCK) {
        return corrupt(error);
    }
    list->count = (size_t)head->count;
    return lahar_page_view_open(pages, packed, lahar_packed_size(list->count - 1, list->width),
                                &list->gaps, error);
}

static lahar_status read_short(struct lahar_shard_pages *pages, const struct lahar_list_head *head,
                               struct lahar_docset *set, lahar_error *error)
{
    struct lahar_list_short list;
    LAHAR_TRY(lahar_list_short_open(pages, head, &list, error));
    const bool is_valid = add_gaps(set, list.first, list.gaps.data, list.count, list.width);
    lahar_page_view_close(pages, &list.gaps);
    return is_valid ? LAHAR_OK : corrupt(error);
}

/* ORs size bytes of bits into set from document first on. */
static bool add_bits(struct lahar_docset *set, uint64_t first, const uint8_t *bits, uint64_t size)
{
    uint64_t i = 0;
    const uint64_t shift = first % 64;
    if (first < set->universe) {
        const uint64_t end = first + size * 8;
        lahar_docset_touch(set, (uint32_t)first,
                           end < set->universe ? (uint32_t)end : set->universe);
    }
    for (; i + 8 <= size && first + (i + 8) * 8 <= set->universe; i += 8) {
        const uint64_t word = lahar_load_u64(bits + i);
        const size_t at = (size_t)((first + i * 8) / 64);
        set->words[at] |= word << shift;
        if (shift != 0 && word >> (64 - shift) != 0) {
            set->words[at + 1] |= word >> (64 - shift);
        }
    }
    for (; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            if ((bits[i] >> bit & 1) != 0) {
                if (first + i * 8 + bit >= set->universe) {
                    return false;
                }
                lahar_docset_add(set, (uint32_t)(first + i * 8 + bit));
            }
        }
    }
    return true;
}

static lahar_status read_bitset(struct lahar_shard_pages *pages, uint64_t offset,
                                struct lahar_docset *set, lahar_error *error)
{
    const uint64_t size = ((uint64_t)set->end + 7) / 8;
    for (uint64_t at = set->first / 8; at < size; at += BITSET_PIECE) {
        const uint64_t piece = size - at < BITSET_PIECE ? size - at : BITSET_PIECE;
        struct lahar_page_view view;
        LAHAR_TRY(lahar_page_view_open(pages, offset + at, piece, &view, error));
        const bool is_valid = add_bits(set, at * 8, view.data, piece);
        lahar_page_view_close(pages, &view);
        if (!is_valid) {
            return corrupt(error);
        }
    }
    return LAHAR_OK;
}

/* One block of count documents whose data begins at data and may take size bytes. */
static bool add_block(struct lahar_docset *set, struct lahar_list_skip skip, size_t count,
                      const uint8_t *data, uint64_t size)
{
    if (skip.width == LAHAR_SKIP_BITSET) {
        return add_bits(set, skip.base, data, size);
    }
    return skip.width <= LAHAR_SKIP_BASE_BITS && lahar_packed_size(count - 1, skip.width) <= size &&
           add_gaps(set, skip.base, data, count, skip.width);
}

/* Blocks first .. first + count of a list, whose skip entries are at skips, with the one behind
 * them (its offset being the end of the data) at index count. */
static lahar_status read_block_run(struct lahar_shard_pages *pages, uint64_t data,
                                   const uint8_t *skips, size_t block_count, uint64_t end,
                                   size_t last_count, struct lahar_docset *set, lahar_error *error)
{
    const uint64_t begin = lahar_list_skip_at(skips, 0).offset;
    /* A block is at most 448 bytes of gaps, or a bit set smaller than those. */
    const uint64_t size_max = block_count * (LAHAR_SHARD_LIST_BLOCK * LAHAR_SKIP_BASE_BITS / 8);
    if (begin > end || end - begin > size_max) {
        return corrupt(error);
    }
    struct lahar_page_view view;
    LAHAR_TRY(lahar_page_view_open(pages, data + begin, end - begin, &view, error));
    bool is_valid = true;
    for (size_t i = 0; i < block_count && is_valid; i++) {
        const struct lahar_list_skip skip = lahar_list_skip_at(skips, i);
        const uint64_t next = i + 1 < block_count ? lahar_list_skip_at(skips, i + 1).offset : end;
        is_valid = skip.offset >= begin && skip.offset <= next && next <= end &&
                   add_block(set, skip, i + 1 < block_count ? LAHAR_SHARD_LIST_BLOCK : last_count,
                             view.data + (skip.offset - begin), next - skip.offset);
    }
    lahar_page_view_close(pages, &view);
    return is_valid ? LAHAR_OK : corrupt(error);
}

static lahar_status read_blocks(struct lahar_shard_pages *pages, const struct lahar_list_head *head,
                                struct lahar_docset *set, lahar_error *error)
{
    uint8_t size_bytes[4];
    LAHAR_TRY(lahar_shard_pages_copy(pages, head->data, size_bytes, sizeof size_bytes, error));
    const uint64_t size = lahar_load_u32(size_bytes);
    const uint64_t blocks = (head->count + LAHAR_SHARD_LIST_BLOCK - 1) / LAHAR_SHARD_LIST_BLOCK;
    const uint64_t skips = head->data + sizeof size_bytes;
    if (head->count > set->universe || size < blocks * LAHAR_SHARD_SKIP_SIZE) {
        return corrupt(error);
    }
    const uint64_t data = skips + blocks * LAHAR_SHARD_SKIP_SIZE;
    const uint64_t data_size = size - blocks * LAHAR_SHARD_SKIP_SIZE;
    for (uint64_t block = 0; block < blocks; block += SKIPS_AT_A_TIME) {
        uint8_t entries[(SKIPS_AT_A_TIME + 1) * LAHAR_SHARD_SKIP_SIZE];
        const uint64_t left = blocks - block;
        const size_t n = left < SKIPS_AT_A_TIME ? (size_t)left : SKIPS_AT_A_TIME;
        const bool is_last = n == left;
        LAHAR_TRY(lahar_shard_pages_copy(pages, skips + block * LAHAR_SHARD_SKIP_SIZE, entries,
                                         (n + (is_last ? 0 : 1)) * LAHAR_SHARD_SKIP_SIZE, error));
        const uint64_t end = is_last ? data_size : lahar_list_skip_at(entries, n).offset;
        const uint64_t last_count =
            is_last ? head->count - (blocks - 1) * LAHAR_SHARD_LIST_BLOCK : LAHAR_SHARD_LIST_BLOCK;
        if (end > data_size) {
            return corrupt(error);
        }
        if (lahar_list_skip_at(entries, 0).base >= set->end) {
            break;
        }
        if (!is_last && lahar_list_skip_at(entries, n).base <= set->first) {
            continue;
        }
        LAHAR_TRY(read_block_run(pages, data, entries, n, end, (size_t)last_count, set, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_list_read_simple(struct lahar_shard_pages *pages,
                                    const struct lahar_list_head *head, struct lahar_docset *set,
                                    lahar_error *error)
{
    switch (head->kind) {
    case LAHAR_LIST_SHORT:
        return read_short(pages, head, set, error);
    case LAHAR_LIST_BLOCKS:
        return read_blocks(pages, head, set, error);
    case LAHAR_LIST_BITSET:
        return read_bitset(pages, head->data, set, error);
    case LAHAR_LIST_COMPLEMENT:
    case LAHAR_LIST_GROUP:
    case LAHAR_LIST_GROUPS:
        break;
    }
    return corrupt(error);
}

lahar_status lahar_list_group(const struct lahar_list_reader *lists,
                              const struct lahar_list_head *head, uint32_t *group_out,
                              lahar_error *error)
{
    *group_out = (uint32_t)head->second;
    return head->second >= lists->groups.group_count ? corrupt(error) : LAHAR_OK;
}

static lahar_status read_group(const struct lahar_list_reader *lists,
                               const struct lahar_list_head *head, struct lahar_docset *set,
                               lahar_error *error)
{
    uint32_t group = 0;
    LAHAR_TRY(lahar_list_group(lists, head, &group, error));
    return lahar_group_table_add_word(lists->pages, &lists->groups, group / LAHAR_SHARD_GROUP_BLOCK,
                                      UINT64_C(1) << (group % LAHAR_SHARD_GROUP_BLOCK), set, error);
}

/* A few groups go to their documents straight, those of one block of the table together. */
static lahar_status read_few_groups(const struct lahar_list_reader *lists,
                                    const struct lahar_list_head *head, struct lahar_docset *set,
                                    lahar_error *error)
{
    struct lahar_list_short list;
    LAHAR_TRY(lahar_list_short_open(lists->pages, head, &list, error));
    const uint64_t mask = lahar_width_mask(list.width);
    lahar_status status = LAHAR_OK;
    uint64_t group = list.first;
    uint64_t word = group / LAHAR_SHARD_GROUP_BLOCK;
    uint64_t members = 0;
    for (size_t i = 0; i < list.count && status == LAHAR_OK; i++) {
        if (i > 0) {
            group += lahar_unpack_narrow(list.gaps.data, i - 1, list.width, mask) + 1;
        }
        if (group >= lists->groups.group_count) {
            status = corrupt(error);
            break;
        }
        if (group / LAHAR_SHARD_GROUP_BLOCK != word) {
            status =
                lahar_group_table_add_word(lists->pages, &lists->groups, word, members, set, error);
            word = group / LAHAR_SHARD_GROUP_BLOCK;
            members = 0;
        }
        members |= UINT64_C(1) << (group % LAHAR_SHARD_GROUP_BLOCK);
    }
    if (status == LAHAR_OK) {
        status =
            lahar_group_table_add_word(lists->pages, &lists->groups, word, members, set, error);
    }
    lahar_page_view_close(lists->pages, &list.gaps);
    return status;
}

static lahar_status read_groups(const struct lahar_list_reader *lists, uint64_t offset,
                                struct lahar_docset *set, lahar_error *error)
{
    struct lahar_list_head inner;
    LAHAR_TRY(lahar_list_head_read(lists->pages, offset, &inner, error));
    if (inner.kind == LAHAR_LIST_SHORT) {
        return read_few_groups(lists, &inner, set, error);
    }
    struct lahar_docset groups;
    LAHAR_TRY(
        lahar_docset_init(&groups, lists->groups.group_count, lists->pages->allocator, error));
    lahar_status status = lahar_list_read_simple(lists->pages, &inner, &groups, error);
    if (status == LAHAR_OK) {
        status = lahar_group_table_expand(lists->pages, &lists->groups, &groups, set, error);
    }
    lahar_docset_deinit(&groups);
    return status;
}

static lahar_status read_complement(struct lahar_shard_pages *pages, uint64_t offset,
                                    struct lahar_docset *set, lahar_error *error)
{
    struct lahar_list_head inner;
    LAHAR_TRY(lahar_list_head_read(pages, offset, &inner, error));
    struct lahar_docset missing;
    LAHAR_TRY(lahar_docset_init(&missing, set->universe, pages->allocator, error));
    lahar_docset_narrow(&missing, set->first, set->end);
    const lahar_status status = lahar_list_read_simple(pages, &inner, &missing, error);
    if (status == LAHAR_OK) {
        lahar_docset_invert(&missing);
        lahar_docset_or(set, &missing);
    }
    lahar_docset_deinit(&missing);
    return status;
}

lahar_status lahar_list_read(const struct lahar_list_reader *reader, uint64_t reference,
                             struct lahar_docset *set, lahar_error *error)
{
    if ((reference & 1) == 0) {
        if (reference >> 1 >= set->universe) {
            return corrupt(error);
        }
        lahar_docset_add(set, (uint32_t)(reference >> 1));
        return LAHAR_OK;
    }
    if ((reference & 3) == 3) {
        if (reference >> 2 == LAHAR_SPECIAL_ALL) {
            lahar_docset_fill(set);
        }
        return reference >> 2 <= LAHAR_SPECIAL_NONE ? LAHAR_OK : corrupt(error);
    }
    struct lahar_list_head head;
    LAHAR_TRY(lahar_list_head_read(reader->pages, reference >> 2, &head, error));
    switch (head.kind) {
    case LAHAR_LIST_COMPLEMENT:
        return read_complement(reader->pages, head.data, set, error);
    case LAHAR_LIST_GROUP:
        return read_group(reader, &head, set, error);
    case LAHAR_LIST_GROUPS:
        return read_groups(reader, head.data, set, error);
    case LAHAR_LIST_SHORT:
    case LAHAR_LIST_BLOCKS:
    case LAHAR_LIST_BITSET:
        break;
    }
    return lahar_list_read_simple(reader->pages, &head, set, error);
}

lahar_status lahar_list_count(struct lahar_shard_pages *pages, uint64_t reference,
                              uint32_t document_count, uint64_t *count_out, lahar_error *error)
{
    *count_out = 0;
    if ((reference & 1) == 0) {
        *count_out = 1;
        return LAHAR_OK;
    }
    if ((reference & 3) == 3) {
        *count_out = reference >> 2 == LAHAR_SPECIAL_ALL ? document_count : 0;
        return LAHAR_OK;
    }
    struct lahar_list_head head;
    LAHAR_TRY(lahar_list_head_read(pages, reference >> 2, &head, error));
    *count_out = head.count;
    return head.count <= document_count ? LAHAR_OK : corrupt(error);
}

/* Counts without a set in between. */
static lahar_status count_short(struct lahar_shard_pages *pages, const struct lahar_list_head *head,
                                const struct lahar_docset *within, uint64_t *count_out,
                                lahar_error *error)
{
    struct lahar_list_short list;
    LAHAR_TRY(lahar_list_short_open(pages, head, &list, error));
    const uint64_t mask = lahar_width_mask(list.width);
    uint64_t document = list.first;
    bool is_valid = true;
    for (size_t i = 0; i < list.count && is_valid; i++) {
        if (i > 0) {
            document += 1;
            document +=
                list.width == 0 ? 0 : lahar_unpack_narrow(list.gaps.data, i - 1, list.width, mask);
        }
        is_valid = document < within->universe;
        *count_out += is_valid && lahar_docset_has(within, (uint32_t)document);
    }
    lahar_page_view_close(pages, &list.gaps);
    return is_valid ? LAHAR_OK : corrupt(error);
}

lahar_status lahar_list_count_within(const struct lahar_list_reader *reader, uint64_t reference,
                                     const struct lahar_docset *within,
                                     struct lahar_docset *scratch, uint64_t *count_out,
                                     lahar_error *error)
{
    *count_out = 0;
    if ((reference & 1) == 0 && reference >> 1 < within->universe) {
        *count_out = lahar_docset_has(within, (uint32_t)(reference >> 1));
        return LAHAR_OK;
    }
    if ((reference & 3) == 1) {
        struct lahar_list_head head;
        LAHAR_TRY(lahar_list_head_read(reader->pages, reference >> 2, &head, error));
        if (head.kind == LAHAR_LIST_SHORT) {
            return count_short(reader->pages, &head, within, count_out, error);
        }
    }
    lahar_docset_clear(scratch);
    LAHAR_TRY(lahar_list_read(reader, reference, scratch, error));
    *count_out = lahar_docset_count_both(scratch, within);
    return LAHAR_OK;
}
