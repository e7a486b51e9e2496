/* Lists of a merged shard. One that stands in a single input moves up as it is, short ones without
 * their gaps being looked at; others are decoded and written anew. */
#include <string.h>
#include <xxhash.h>

#include "index/merge.h"
#include "io/base/error.h"

enum {
    SLOTS_AT_FIRST = 4096,
    /* 96 MiB of slots, and as much for what lists of several parts were made of. */
    SLOTS_MAX = 1 << 22,
    PARTS_SIZE_MAX = 1 << 26,
    INPUT_SHIFT = 56
};

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a posting list of an index shard is malformed");
}

/* --- what lists have become ------------------------------------------------------------ */

static uint64_t key_of(const struct lahar_merge_part *parts, size_t count)
{
    if (count == 1) {
        return (uint64_t)parts->input << INPUT_SHIFT | parts->reference >> 2;
    }
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = XXH3_64bits_withSeed(&parts[i].reference, sizeof parts[i].reference,
                                    hash ^ parts[i].input);
    }
    return hash == 0 ? 1 : hash;
}

static size_t home_of(uint64_t key, size_t slot_count)
{
    /* The high bits, which all bits of the key reach: the inputs are told apart by its highest. */
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (__builtin_clzll(slot_count) + 1));
}

static bool is_same(const struct lahar_merge_memo *memo, const struct lahar_merge_memo_slot *slot,
                    uint64_t key, const struct lahar_merge_part *parts, size_t count)
{
    if (slot->key != key || (slot->parts == 0) != (count == 1)) {
        return false;
    }
    if (count == 1) {
        return true;
    }
    const uint8_t *kept = memo->parts.data + (slot->parts - 1);
    if (lahar_load_u64(kept) != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        kept += 8;
        if (lahar_load_u64(kept) != parts[i].input) {
            return false;
        }
        kept += 8;
        if (lahar_load_u64(kept) != parts[i].reference) {
            return false;
        }
    }
    return true;
}

/* NULL: the list is not known. */
static const struct lahar_merge_memo_slot *find(const struct lahar_merge_memo *memo, uint64_t key,
                                                const struct lahar_merge_part *parts, size_t count)
{
    if (memo->slot_count == 0) {
        return NULL;
    }
    size_t i = home_of(key, memo->slot_count);
    for (; memo->slots[i].key != 0; i = (i + 1) & (memo->slot_count - 1)) {
        if (is_same(memo, &memo->slots[i], key, parts, count)) {
            return &memo->slots[i];
        }
    }
    return NULL;
}

static bool grow(struct lahar_merge *merge)
{
    struct lahar_merge_memo *memo = &merge->memo;
    const size_t count = memo->slot_count == 0 ? SLOTS_AT_FIRST : memo->slot_count * 2;
    struct lahar_merge_memo_slot *slots =
        count > SLOTS_MAX ? NULL : lahar_allocate_zeroed(merge->allocator, count, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < memo->slot_count; i++) {
        if (memo->slots[i].key != 0) {
            size_t to = home_of(memo->slots[i].key, count);
            while (slots[to].key != 0) {
                to = (to + 1) & (count - 1);
            }
            slots[to] = memo->slots[i];
        }
    }
    lahar_release(merge->allocator, memo->slots);
    memo->slots = slots;
    memo->slot_count = count;
    return true;
}

static void remember(struct lahar_merge *merge, uint64_t key, const struct lahar_merge_part *parts,
                     size_t count, uint64_t reference)
{
    struct lahar_merge_memo *memo = &merge->memo;
    if (memo->used_count * 4 >= memo->slot_count * 3 && !grow(merge)) {
        return;
    }
    struct lahar_merge_memo_slot slot = {.key = key, .reference = reference};
    if (count > 1) {
        const size_t at = memo->parts.size;
        if (at > PARTS_SIZE_MAX ||
            !lahar_buffer_reserve(&memo->parts, 8 + count * 2 * sizeof(uint64_t))) {
            memo->parts.has_failed = false;
            return;
        }
        lahar_buffer_put_u64(&memo->parts, count);
        for (size_t i = 0; i < count; i++) {
            lahar_buffer_put_u64(&memo->parts, parts[i].input);
            lahar_buffer_put_u64(&memo->parts, parts[i].reference);
        }
        slot.parts = at + 1;
    }
    size_t i = home_of(key, memo->slot_count);
    while (memo->slots[i].key != 0) {
        i = (i + 1) & (memo->slot_count - 1);
    }
    memo->slots[i] = slot;
    memo->used_count++;
}

/* --- writing lists --------------------------------------------------------------------- */

/* A short list of numbers below universe, offset added to its first. */
static lahar_status put_moved(struct lahar_merge *merge, struct lahar_shard_pages *pages,
                              const struct lahar_list_head *head, uint32_t universe,
                              uint32_t offset, lahar_error *error)
{
    struct lahar_list_short list;
    LAHAR_TRY(lahar_list_short_open(pages, head, &list, error));
    lahar_status status = LAHAR_OK;
    if (list.first >= universe) {
        status = corrupt(error);
    } else {
        struct lahar_buffer *out = &merge->out;
        lahar_buffer_put_varint(out,
                                (uint64_t)list.count << LAHAR_LIST_KIND_BITS | LAHAR_LIST_SHORT);
        lahar_buffer_put_varint(out, list.first + offset);
        lahar_buffer_put_u8(out, (uint8_t)list.width);
        lahar_buffer_put(out, list.gaps.data, lahar_packed_size(list.count - 1, list.width));
    }
    lahar_page_view_close(pages, &list.gaps);
    return status;
}

/* A list that can move up without being decoded; *is_done_out false: it cannot. */
static lahar_status move_list(struct lahar_merge *merge, const struct lahar_merge_part *part,
                              const struct lahar_list_head *head, bool *is_done_out,
                              uint64_t *reference_out, lahar_error *error)
{
    const struct lahar_merge_input *input = &merge->inputs[part->input];
    struct lahar_shard *shard = input->shard;
    struct lahar_buffer *out = &merge->out;
    const size_t start = out->size;
    lahar_status status = LAHAR_OK;
    *is_done_out = true;
    if (head->kind == LAHAR_LIST_SHORT) {
        status = put_moved(merge, &shard->pages, head, shard->directory.document_count,
                           input->first_document, error);
    } else if (head->kind == LAHAR_LIST_GROUPS && merge->group_count != 0) {
        struct lahar_list_head inner;
        LAHAR_TRY(lahar_list_head_read(&shard->pages, head->data, &inner, error));
        *is_done_out = inner.kind == LAHAR_LIST_SHORT;
        if (*is_done_out) {
            lahar_buffer_put_varint(out, head->count << LAHAR_LIST_KIND_BITS | LAHAR_LIST_GROUPS);
            status = put_moved(merge, &shard->pages, &inner, shard->directory.groups.group_count,
                               input->first_group, error);
        }
    } else {
        *is_done_out = false;
    }
    if (*is_done_out && status == LAHAR_OK) {
        *reference_out = lahar_list_finish(&merge->lists, start);
    }
    return status;
}

/* What was decoded is bytes from disk: gaps are only written of what rises. */
static bool numbers_rise(const struct lahar_number_list *numbers)
{
    bool do_rise = true;
    for (size_t i = 1; i < numbers->count; i++) {
        do_rise &= numbers->items[i - 1] < numbers->items[i];
    }
    return do_rise;
}

/* When every part is a list of groups: the groups of all. *is_done_out false: they are not. */
static lahar_status write_groups(struct lahar_merge *merge, const struct lahar_merge_part *parts,
                                 size_t count, bool *is_done_out, uint64_t *reference_out,
                                 lahar_error *error)
{
    struct lahar_number_list *numbers = &merge->numbers;
    uint64_t documents = 0;
    *is_done_out = false;
    numbers->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct lahar_merge_input *input = &merge->inputs[parts[i].input];
        struct lahar_list_head head;
        if ((parts[i].reference & 3) != 1) {
            return LAHAR_OK;
        }
        LAHAR_TRY(
            lahar_list_head_read(&input->shard->pages, parts[i].reference >> 2, &head, error));
        if (head.kind != LAHAR_LIST_GROUP && head.kind != LAHAR_LIST_GROUPS) {
            return LAHAR_OK;
        }
        documents += head.count;
        LAHAR_TRY(lahar_list_collect_groups(&input->shard->lists, &head, input->first_group,
                                            &input->groups, numbers, error));
    }
    if (numbers->count == 0 || !numbers_rise(numbers) || documents > merge->document_count) {
        return corrupt(error);
    }
    *reference_out = lahar_list_write_groups(&merge->lists, documents, numbers->items,
                                             numbers->count, merge->group_count);
    *is_done_out = true;
    return LAHAR_OK;
}

static lahar_status write_documents(struct lahar_merge *merge, const struct lahar_merge_part *parts,
                                    size_t count, uint64_t *reference_out, lahar_error *error)
{
    struct lahar_number_list *numbers = &merge->numbers;
    numbers->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct lahar_merge_input *input = &merge->inputs[parts[i].input];
        LAHAR_TRY(lahar_list_collect(&input->shard->lists, parts[i].reference,
                                     input->shard->directory.document_count, input->first_document,
                                     &input->documents, numbers, error));
    }
    if (!numbers_rise(numbers)) {
        return corrupt(error);
    }
    *reference_out = lahar_list_write(&merge->lists, numbers->items, numbers->count);
    return LAHAR_OK;
}

static lahar_status write_parts(struct lahar_merge *merge, const struct lahar_merge_part *parts,
                                size_t count, uint64_t *reference_out, lahar_error *error)
{
    bool is_done = false;
    if (merge->group_count != 0) {
        LAHAR_TRY(write_groups(merge, parts, count, &is_done, reference_out, error));
    }
    return is_done ? LAHAR_OK : write_documents(merge, parts, count, reference_out, error);
}

/* The list of one group, of which there is one in the result. */
static lahar_status move_group(struct lahar_merge *merge, const struct lahar_merge_part *part,
                               const struct lahar_list_head *head, uint64_t *reference_out,
                               lahar_error *error)
{
    const struct lahar_merge_input *input = &merge->inputs[part->input];
    uint32_t group = 0;
    LAHAR_TRY(lahar_list_group(&input->shard->lists, head, &group, error));
    group += input->first_group;
    if (merge->group_lists[group] != 0) {
        *reference_out = (uint64_t)merge->group_lists[group] << 2 | 1;
        return LAHAR_OK;
    }
    *reference_out =
        lahar_list_write_groups(&merge->lists, head->count, &group, 1, merge->group_count);
    /* Where the place does not fit, the list is written again the next time. */
    const uint64_t place = *reference_out >> 2;
    merge->group_lists[group] = place <= UINT32_MAX ? (uint32_t)place : 0;
    return LAHAR_OK;
}

/* A list that one input has. Most are of one group, and those need no table to be found again. */
static lahar_status merge_one(struct lahar_merge *merge, const struct lahar_merge_part *part,
                              uint64_t *reference_out, lahar_error *error)
{
    struct lahar_shard *shard = merge->inputs[part->input].shard;
    struct lahar_list_head head;
    LAHAR_TRY(lahar_list_head_read(&shard->pages, part->reference >> 2, &head, error));
    if (head.kind == LAHAR_LIST_GROUP && merge->group_count != 0) {
        return move_group(merge, part, &head, reference_out, error);
    }
    const uint64_t key = key_of(part, 1);
    const struct lahar_merge_memo_slot *known = find(&merge->memo, key, part, 1);
    if (known != NULL) {
        *reference_out = known->reference;
        return LAHAR_OK;
    }
    bool is_done = false;
    LAHAR_TRY(move_list(merge, part, &head, &is_done, reference_out, error));
    if (!is_done) {
        LAHAR_TRY(write_parts(merge, part, 1, reference_out, error));
    }
    remember(merge, key, part, 1, *reference_out);
    return LAHAR_OK;
}

/* A reference that needs no list, moved up. */
static lahar_status move_one(const struct lahar_merge *merge, const struct lahar_merge_part *part,
                             uint64_t *reference_out, lahar_error *error)
{
    const struct lahar_merge_input *input = &merge->inputs[part->input];
    const uint64_t document = part->reference >> 1;
    if (document >= input->shard->directory.document_count) {
        return corrupt(error);
    }
    *reference_out = (document + input->first_document) << 1;
    return LAHAR_OK;
}

lahar_status lahar_merge_list(struct lahar_merge *merge, const struct lahar_merge_part *parts,
                              size_t count, uint64_t *reference_out, lahar_error *error)
{
    if (count == 1 && (parts->reference & 1) == 0) {
        return move_one(merge, parts, reference_out, error);
    }
    if (count == 1 && (parts->reference & 3) == 1) {
        return merge_one(merge, parts, reference_out, error);
    }
    size_t list_count = 0;
    size_t all_count = 0;
    for (size_t i = 0; i < count; i++) {
        list_count += (parts[i].reference & 3) == 1;
        all_count += parts[i].reference == (LAHAR_SPECIAL_ALL << 2 | 3);
    }
    if (all_count == merge->input_count) {
        *reference_out = LAHAR_SPECIAL_ALL << 2 | 3;
        return LAHAR_OK;
    }
    if (list_count == 0 && all_count == 0) {
        return write_documents(merge, parts, count, reference_out, error);
    }
    const uint64_t key = key_of(parts, count);
    const struct lahar_merge_memo_slot *known = find(&merge->memo, key, parts, count);
    if (known != NULL) {
        *reference_out = known->reference;
        return LAHAR_OK;
    }
    LAHAR_TRY(write_parts(merge, parts, count, reference_out, error));
    remember(merge, key, parts, count, *reference_out);
    return LAHAR_OK;
}
