/* Dictionaries and tables of uuids of a merged shard: the inputs' terms are walked side by side. */
#include <string.h>

#include "index/merge.h"
#include "io/base/error.h"

enum {
    /* Uuids and references read at a time; so many references end at a byte. */
    UUIDS_AT_A_TIME = 256
};

/* --- terms ------------------------------------------------------------------------------- */

/* The next term of an input. */
struct term_head {
    uint32_t input;
    struct lahar_term_item item;
    struct lahar_dictionary_cursor cursor;
};

/* The heads of the inputs that have terms left, least first. */
struct term_walk {
    struct term_head *heads; /* one an input */
    struct term_head *order[LAHAR_SHARD_MERGE_MAX];
    size_t count;
    size_t common;
};

static lahar_status advance_term(const struct term_walk *walk, struct term_head *head,
                                 lahar_error *error)
{
    LAHAR_TRY(lahar_dictionary_next(&head->cursor, error));
    const struct lahar_dictionary_entry *entry = &head->cursor.entry;
    head->item = (struct lahar_term_item){
        .prefix = lahar_dictionary_prefix(entry->folded, entry->folded_size, walk->common),
        .folded = entry->folded,
        .exact = entry->exact,
        .folded_size = (uint16_t)entry->folded_size,
        .exact_size = (uint16_t)entry->exact_size,
        .flags = entry->flags & (LAHAR_TERM_FOLDED_CUT | LAHAR_TERM_EXACT_CUT)};
    return LAHAR_OK;
}

/* Equal terms come in order of input. */
static bool term_is_less(const struct term_head *a, const struct term_head *b)
{
    if (a->item.prefix != b->item.prefix) {
        return a->item.prefix < b->item.prefix;
    }
    const int order = lahar_term_compare(&a->item, &b->item);
    return order != 0 ? order < 0 : a->input < b->input;
}

/* Puts a head that is not among the first in_order of order there. */
static void place_term(struct term_walk *walk, struct term_head *head, size_t from)
{
    size_t to = from;
    while (to + 1 < walk->count && term_is_less(walk->order[to + 1], head)) {
        walk->order[to] = walk->order[to + 1];
        to++;
    }
    walk->order[to] = head;
}

/* Moves the first count heads on and restores the order. */
static lahar_status advance_terms(struct term_walk *walk, size_t count, lahar_error *error)
{
    /* From the last to the first: what lies behind is in order already. */
    for (size_t i = count; i-- > 0;) {
        struct term_head *head = walk->order[i];
        const lahar_status status = advance_term(walk, head, error);
        if (status == LAHAR_OK) {
            place_term(walk, head, i);
        } else if (status == LAHAR_NOT_FOUND) {
            memmove(&walk->order[i], &walk->order[i + 1],
                    (walk->count - i - 1) * sizeof walk->order[0]);
            walk->count--;
        } else {
            return status;
        }
    }
    return LAHAR_OK;
}

static bool is_same_term(const struct term_head *a, const struct term_head *b)
{
    return a->item.prefix == b->item.prefix && lahar_term_compare(&a->item, &b->item) == 0;
}

/* Leading bytes that all folded terms of all inputs share: at least the first terms and what
 * each input says of its own decide that. */
static size_t common_bytes(const struct term_walk *walk)
{
    const struct lahar_term_item *first = &walk->order[0]->item;
    uint64_t common = first->folded_size;
    for (size_t i = 0; i < walk->count; i++) {
        const struct lahar_term_item *item = &walk->order[i]->item;
        const uint64_t own = walk->order[i]->cursor.dictionary.common;
        common = own < common ? own : common;
        common = item->folded_size < common ? item->folded_size : common;
        uint64_t same = 0;
        while (same < common && item->folded[same] == first->folded[same]) {
            same++;
        }
        common = same;
    }
    return (size_t)common;
}

/* Stands at the first term of every input that has one. */
static lahar_status begin_terms(struct lahar_merge *merge, size_t field, struct term_walk *walk,
                                lahar_error *error)
{
    for (uint32_t i = 0; i < merge->input_count; i++) {
        const uint32_t number = lahar_merge_field(merge, field, i);
        struct lahar_shard *shard = merge->inputs[i].shard;
        if (number == LAHAR_MERGE_NO_FIELD ||
            shard->directory.fields[number].dictionary.term_count == 0) {
            continue;
        }
        struct term_head *head = &walk->heads[walk->count];
        head->input = i;
        lahar_dictionary_begin(&head->cursor, &shard->pages,
                               &shard->directory.fields[number].dictionary);
        walk->order[walk->count++] = head;
        LAHAR_TRY(advance_term(walk, head, error));
    }
    if (walk->count == 0) {
        return LAHAR_OK;
    }
    const size_t count = walk->count;
    walk->common = common_bytes(walk);
    for (size_t i = count; i-- > 0;) {
        struct term_head *head = walk->order[i];
        head->item.prefix =
            lahar_dictionary_prefix(head->item.folded, head->item.folded_size, walk->common);
        place_term(walk, head, i);
    }
    return LAHAR_OK;
}

/* A term that its cursor has moved on from: the next is compared with it, by the dictionary writer
 * too. */
struct kept_term {
    uint8_t folded[LAHAR_SHARD_TERM_SIZE_MAX];
    uint8_t exact[LAHAR_SHARD_TERM_SIZE_MAX];
    struct lahar_term_item item;
};

static void keep_term(struct kept_term *kept, const struct lahar_term_item *item)
{
    kept->item = *item;
    memcpy(kept->folded, item->folded, item->folded_size);
    kept->item.folded = kept->folded;
    kept->item.exact = kept->folded;
    if (item->exact != item->folded) {
        memcpy(kept->exact, item->exact, item->exact_size);
        kept->item.exact = kept->exact;
    }
}

/* The parts of the least term; returns how many. */
static size_t gather_parts(const struct term_walk *walk, struct lahar_merge_part *parts)
{
    size_t count = 0;
    do {
        const struct term_head *head = walk->order[count];
        parts[count++] = (struct lahar_merge_part){head->input, head->cursor.entry.reference};
    } while (count < walk->count && is_same_term(walk->order[count], walk->order[0]));
    return count;
}

static lahar_status write_terms(struct lahar_merge *merge, struct term_walk *walk,
                                struct lahar_dictionary_writer *writer, lahar_error *error)
{
    struct kept_term kept[2];
    const struct lahar_term_item *previous = NULL;
    while (walk->count != 0) {
        struct lahar_merge_part parts[LAHAR_SHARD_MERGE_MAX];
        const size_t count = gather_parts(walk, parts);
        struct kept_term *own = &kept[writer->term_count % 2];
        keep_term(own, &walk->order[0]->item);
        /* The terms of an input that is damaged may stand in any order. */
        if (previous != NULL && previous->prefix >= own->item.prefix &&
            lahar_term_compare(previous, &own->item) >= 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "terms of an index shard are out of order");
        }
        uint64_t reference = 0;
        LAHAR_TRY(lahar_merge_list(merge, parts, count, &reference, error));
        lahar_dictionary_put(writer, &own->item, reference);
        if (merge->blocks.has_failed || merge->tops.has_failed) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge index shards");
        }
        previous = &own->item;
        LAHAR_TRY(advance_terms(walk, count, error));
        LAHAR_TRY(lahar_merge_drain(merge, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_merge_dictionary(struct lahar_merge *merge, size_t field, lahar_error *error)
{
    struct lahar_directory_field *entry = &merge->directory.fields[field];
    struct term_walk walk = {.count = 0};
    walk.heads = lahar_allocate_zeroed(merge->allocator, merge->input_count, sizeof *walk.heads);
    if (walk.heads == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge index shards");
    }
    lahar_buffer_clear(&merge->blocks);
    const size_t top = merge->tops.size;
    lahar_status status = begin_terms(merge, field, &walk, error);
    struct lahar_dictionary_writer writer;
    lahar_dictionary_writer_init(&writer, &merge->blocks, &merge->tops, walk.common);
    if (status == LAHAR_OK) {
        status = write_terms(merge, &walk, &writer, error);
    }
    for (uint32_t i = 0; i < merge->input_count; i++) {
        if (walk.heads[i].cursor.pages != NULL) {
            lahar_dictionary_close(&walk.heads[i].cursor);
        }
    }
    lahar_release(merge->allocator, walk.heads);
    LAHAR_TRY(status);
    /* Blocks were placed from 0 on; the top's place is known when all tops are written. */
    const uint64_t blocks_at = lahar_merge_place(merge);
    for (size_t i = top + 8; i < merge->tops.size; i += LAHAR_SHARD_TOP_ENTRY_SIZE) {
        uint8_t *offset = merge->tops.data + i;
        lahar_store_u64(offset, lahar_load_u64(offset) + blocks_at);
    }
    lahar_buffer_put(&merge->out, merge->blocks.data, merge->blocks.size);
    entry->dictionary = (struct lahar_dictionary){.term_count = writer.term_count,
                                                  .top = top,
                                                  .end = blocks_at + merge->blocks.size,
                                                  .common = walk.common};
    return lahar_merge_drain(merge, error);
}

/* --- uuids --------------------------------------------------------------------------------- */

/* The next uuid of an input. */
struct uuid_head {
    uint32_t input;
    const struct lahar_uuid_table *table;
    uint64_t next; /* the first that is not loaded */
    size_t index;  /* of the head among those loaded */
    size_t loaded;
    uint8_t keys[UUIDS_AT_A_TIME * LAHAR_SHARD_UUID_SIZE];
    uint8_t references[UUIDS_AT_A_TIME * 8 + LAHAR_BITPACK_SLACK];
};

struct uuid_walk {
    struct uuid_head *heads;
    struct uuid_head *order[LAHAR_SHARD_MERGE_MAX];
    size_t count;
    struct lahar_buffer keys;       /* of the result */
    struct lahar_buffer references; /* u64 each */
};

static const uint8_t *key_of(const struct uuid_head *head)
{
    return head->keys + head->index * LAHAR_SHARD_UUID_SIZE;
}

/* LAHAR_NOT_FOUND at the end. */
static lahar_status advance_uuid(struct lahar_merge *merge, struct uuid_head *head,
                                 lahar_error *error)
{
    if (++head->index < head->loaded) {
        return LAHAR_OK;
    }
    const uint64_t left = head->table->count - head->next;
    const size_t count = left < UUIDS_AT_A_TIME ? (size_t)left : (size_t)UUIDS_AT_A_TIME;
    if (count == 0) {
        return LAHAR_NOT_FOUND;
    }
    struct lahar_shard_pages *pages = &merge->inputs[head->input].shard->pages;
    const unsigned width = head->table->reference_width;
    LAHAR_TRY(lahar_shard_pages_copy(pages, head->table->keys + head->next * LAHAR_SHARD_UUID_SIZE,
                                     head->keys, count * LAHAR_SHARD_UUID_SIZE, error));
    LAHAR_TRY(lahar_shard_pages_copy(pages, head->table->references + head->next * width / 8,
                                     head->references, lahar_packed_size(count, width), error));
    head->next += count;
    head->index = 0;
    head->loaded = count;
    return LAHAR_OK;
}

static bool uuid_is_less(const struct uuid_head *a, const struct uuid_head *b)
{
    const int order = memcmp(key_of(a), key_of(b), LAHAR_SHARD_UUID_SIZE);
    return order != 0 ? order < 0 : a->input < b->input;
}

static void place_uuid(struct uuid_walk *walk, struct uuid_head *head, size_t from)
{
    size_t to = from;
    while (to + 1 < walk->count && uuid_is_less(walk->order[to + 1], head)) {
        walk->order[to] = walk->order[to + 1];
        to++;
    }
    walk->order[to] = head;
}

static lahar_status advance_uuids(struct lahar_merge *merge, struct uuid_walk *walk, size_t count,
                                  lahar_error *error)
{
    for (size_t i = count; i-- > 0;) {
        struct uuid_head *head = walk->order[i];
        const lahar_status status = advance_uuid(merge, head, error);
        if (status == LAHAR_OK) {
            place_uuid(walk, head, i);
        } else if (status == LAHAR_NOT_FOUND) {
            memmove(&walk->order[i], &walk->order[i + 1],
                    (walk->count - i - 1) * sizeof walk->order[0]);
            walk->count--;
        } else {
            return status;
        }
    }
    return LAHAR_OK;
}

static lahar_status begin_uuids(struct lahar_merge *merge, size_t field, struct uuid_walk *walk,
                                lahar_error *error)
{
    for (uint32_t i = merge->input_count; i-- > 0;) {
        const uint32_t number = lahar_merge_field(merge, field, i);
        const struct lahar_shard *shard = merge->inputs[i].shard;
        if (number == LAHAR_MERGE_NO_FIELD || shard->directory.fields[number].uuids.count == 0) {
            continue;
        }
        struct uuid_head *head = &walk->heads[i];
        head->input = i;
        head->table = &shard->directory.fields[number].uuids;
        LAHAR_TRY(advance_uuid(merge, head, error));
        memmove(&walk->order[1], &walk->order[0], walk->count * sizeof walk->order[0]);
        walk->count++;
        place_uuid(walk, head, 0);
    }
    return LAHAR_OK;
}

static lahar_status gather_uuids(struct lahar_merge *merge, struct uuid_walk *walk,
                                 lahar_error *error)
{
    while (walk->count != 0) {
        struct lahar_merge_part parts[LAHAR_SHARD_MERGE_MAX];
        size_t count = 0;
        const uint8_t *key = key_of(walk->order[0]);
        do {
            const struct uuid_head *head = walk->order[count];
            const unsigned width = head->table->reference_width;
            parts[count++] = (struct lahar_merge_part){
                head->input,
                lahar_unpack_narrow(head->references, head->index, width, lahar_width_mask(width))};
        } while (count < walk->count &&
                 memcmp(key_of(walk->order[count]), key, LAHAR_SHARD_UUID_SIZE) == 0);
        uint64_t reference = 0;
        LAHAR_TRY(lahar_merge_list(merge, parts, count, &reference, error));
        if (walk->keys.size != 0 &&
            memcmp(walk->keys.data + walk->keys.size - LAHAR_SHARD_UUID_SIZE, key,
                   LAHAR_SHARD_UUID_SIZE) >= 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "uuids of an index shard are out of order");
        }
        lahar_buffer_put(&walk->keys, key, LAHAR_SHARD_UUID_SIZE);
        lahar_buffer_put_u64(&walk->references, reference);
        LAHAR_TRY(advance_uuids(merge, walk, count, error));
        LAHAR_TRY(lahar_merge_drain(merge, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_merge_uuids(struct lahar_merge *merge, size_t field, lahar_error *error)
{
    struct uuid_walk walk = {.count = 0};
    lahar_buffer_init(&walk.keys, merge->allocator);
    lahar_buffer_init(&walk.references, merge->allocator);
    walk.heads = lahar_allocate_zeroed(merge->allocator, merge->input_count, sizeof *walk.heads);
    lahar_status status = LAHAR_OK;
    if (walk.heads == NULL) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge index shards");
    } else {
        status = begin_uuids(merge, field, &walk, error);
    }
    if (status == LAHAR_OK) {
        status = gather_uuids(merge, &walk, error);
    }
    if (status == LAHAR_OK && (walk.keys.has_failed || walk.references.has_failed)) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge index shards");
    }
    if (status == LAHAR_OK) {
        lahar_uuid_table_write(
            &merge->lists, walk.keys.data, (const uint64_t *)(const void *)walk.references.data,
            walk.keys.size / LAHAR_SHARD_UUID_SIZE, &merge->directory.fields[field].uuids);
        lahar_filter_writer_add(&merge->filter, walk.keys.data,
                                walk.keys.size / LAHAR_SHARD_UUID_SIZE);
        status = lahar_merge_drain(merge, error);
    }
    lahar_release(merge->allocator, walk.heads);
    lahar_buffer_deinit(&walk.keys);
    lahar_buffer_deinit(&walk.references);
    return status;
}
