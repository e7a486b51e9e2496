/* Writing a finished shard: lists, columns and uuid tables first, since the dictionaries
 * refer to them, then dictionaries, tops, directory, trailer. */
#include "index/shard_builder.h"

#include <stdlib.h>
#include <string.h>

#include "index/dictionary.h"
#include "index/postings.h"
#include "index/shard_directory.h"
#include "index/shard_format.h"
#include "index/term_documents.h"
#include "index/term_sort.h"
#include "index/uuid_table.h"
#include "index/vector.h"
#include "io/base/error.h"

enum {
    /* Items between asking for memory and using it. */
    PREFETCH_STEPS = 8
};

struct finish {
    struct lahar_shard_builder *builder;
    struct lahar_list_writer lists;
    struct lahar_term_documents documents;
    /* Places of terms grouped by field: those of field f are order[first_of_field[f] ..). */
    uint32_t *order;
    uint64_t *first_of_field;
    struct lahar_term_item *items; /* of the field at hand */
    struct lahar_term_item *scratch;
    uint64_t *references;       /* of the uuids of the field at hand */
    struct lahar_buffer folded; /* folded forms that are not the exact ones */
    struct lahar_buffer blocks; /* dictionaries */
    struct lahar_buffer tops;
    struct lahar_directory directory;
    struct lahar_filter_writer filter;
    struct lahar_group_map groups;
};

static void *allocate_array(const struct finish *finish, size_t count, size_t size)
{
    return lahar_allocate_zeroed(finish->builder->allocator, count + 1, size);
}

static bool allocate_all(struct finish *finish)
{
    const struct lahar_shard_builder *builder = finish->builder;
    finish->order =
        lahar_allocate(builder->allocator, (builder->terms.term_count + 1) * sizeof(uint32_t));
    finish->first_of_field = allocate_array(finish, builder->field_count, sizeof(uint64_t));
    finish->directory.fields =
        allocate_array(finish, builder->field_count, sizeof(struct lahar_directory_field));
    return finish->order != NULL && finish->first_of_field != NULL &&
           finish->directory.fields != NULL;
}

static int compare_runs(const void *a, const void *b)
{
    const struct lahar_presence_run *x = a;
    const struct lahar_presence_run *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Puts the runs of a field's documents in order and joins those that meet. */
static void sort_runs(struct lahar_builder_field *field)
{
    if (!field->are_runs_unsorted) {
        return;
    }
    qsort(field->runs, field->run_count, sizeof field->runs[0], compare_runs);
    size_t kept = 0;
    for (size_t i = 1; i < field->run_count; i++) {
        struct lahar_presence_run *last = &field->runs[kept];
        const struct lahar_presence_run run = field->runs[i];
        if (run.first > last->end) {
            field->runs[++kept] = run;
        } else if (run.end > last->end) {
            last->end = run.end;
        }
    }
    field->run_count = kept + 1;
    field->are_runs_unsorted = false;
}

static void group_by_field(struct finish *finish)
{
    const struct lahar_shard_builder *builder = finish->builder;
    uint32_t place = 0;
    for (size_t i = 0; i < builder->terms.term_count; i++) {
        const struct lahar_term *term = lahar_term_at(&builder->terms, place);
        finish->first_of_field[term->field + 1]++;
        place = lahar_term_place_behind(term, place);
    }
    for (size_t i = 0; i < builder->field_count; i++) {
        finish->first_of_field[i + 1] += finish->first_of_field[i];
    }
    /* Filling moves each field's start to the next one's; it is moved back behind. */
    place = 0;
    for (size_t i = 0; i < builder->terms.term_count; i++) {
        const struct lahar_term *term = lahar_term_at(&builder->terms, place);
        finish->order[finish->first_of_field[term->field]++] = place;
        place = lahar_term_place_behind(term, place);
    }
    for (size_t i = builder->field_count; i > 0; i--) {
        finish->first_of_field[i] = finish->first_of_field[i - 1];
    }
    finish->first_of_field[0] = 0;
}

static bool allocate_items(struct finish *finish)
{
    size_t count_max = 0;
    for (size_t i = 0; i < finish->builder->field_count; i++) {
        const size_t count = (size_t)(finish->first_of_field[i + 1] - finish->first_of_field[i]);
        count_max = count > count_max ? count : count_max;
    }
    const lahar_allocator *allocator = finish->builder->allocator;
    finish->items = lahar_allocate(allocator, (count_max + 1) * sizeof *finish->items);
    finish->scratch = lahar_allocate(allocator, (count_max + 1) * sizeof *finish->scratch);
    finish->references = lahar_allocate(allocator, (count_max + 1) * sizeof *finish->references);
    return finish->items != NULL && finish->scratch != NULL && finish->references != NULL;
}

/* Whether folding can change the bytes, of which some may be taken for letters that are none. */
static bool may_fold(const uint8_t *bytes, size_t size)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t found = 0;
    size_t i = 0;
    for (; size - i >= 8; i += 8) {
        /* The top bit of each byte: set in it, or 'A' .. 'Z' once 0x3f or 0x25 are added. */
        const uint64_t word = lahar_load_u64(bytes + i);
        const uint64_t low = word & (ones * 0x7f);
        found |= word | ((low + ones * 0x3f) & ~(low + ones * 0x25));
    }
    for (; i < size; i++) {
        found |= (uint64_t)((uint8_t)(bytes[i] - 'A') < 26) << 7 | bytes[i];
    }
    return (found & (ones * 0x80)) != 0;
}

/* Fills items with the terms of a field, not yet sorted. */
static void load_items(struct finish *finish, size_t field)
{
    const struct lahar_shard_builder *builder = finish->builder;
    const uint64_t first = finish->first_of_field[field];
    const size_t count = (size_t)(finish->first_of_field[field + 1] - first);
    const bool folds = builder->fields[field].field_class == LAHAR_CLASS_KEYWORD;
    struct lahar_buffer *folded = &finish->folded;
    lahar_buffer_clear(folded);
    for (size_t i = 0; i < count; i++) {
        const struct lahar_term *term = lahar_term_at(&builder->terms, finish->order[first + i]);
        const uint8_t *bytes = term->bytes;
        /* Records of one field lie apart: the one some steps ahead is asked for now. */
        if (i + PREFETCH_STEPS < count) {
            __builtin_prefetch(
                lahar_term_at(&builder->terms, finish->order[first + i + PREFETCH_STEPS]));
        }
        struct lahar_term_item *item = &finish->items[i];
        *item = (struct lahar_term_item){
            .folded = bytes,
            .exact = bytes,
            .term = term->number,
            .folded_size = term->size,
            .exact_size = term->size,
            .flags = (uint8_t)(term->flags & (LAHAR_TERM_FOLDED_CUT | LAHAR_TERM_EXACT_CUT))};
        if ((term->flags & LAHAR_TERM_IS_LONG) != 0) {
            item->folded = bytes + term->size;
            item->folded_size = term->long_size;
        } else if (folds && may_fold(bytes, term->size)) {
            /* folded moves as it grows: the place is kept in prefix until all are there. */
            const size_t at = folded->size;
            lahar_fold(folded, bytes, term->size);
            size_t size = folded->size - at;
            if (size > LAHAR_SHARD_TERM_SIZE_MAX) {
                size = LAHAR_SHARD_TERM_SIZE_MAX;
                item->flags |= LAHAR_TERM_FOLDED_CUT;
            }
            item->folded = NULL;
            item->folded_size = (uint16_t)size;
            item->prefix = at;
        }
    }
    for (size_t i = 0; i < count && !folded->has_failed; i++) {
        if (finish->items[i].folded == NULL) {
            finish->items[i].folded = folded->data + finish->items[i].prefix;
        }
    }
}

/* Leading bytes that the first and the last of sorted terms share, and so all do. */
static size_t common_bytes(const struct lahar_term_item *items, size_t count)
{
    if (count == 0) {
        return 0;
    }
    const struct lahar_term_item *a = &items[0];
    const struct lahar_term_item *b = &items[count - 1];
    const size_t limit = a->folded_size < b->folded_size ? a->folded_size : b->folded_size;
    size_t common = 0;
    while (common < limit && a->folded[common] == b->folded[common]) {
        common++;
    }
    return common;
}

static bool write_field_terms(struct finish *finish, size_t field)
{
    struct lahar_directory_field *entry = &finish->directory.fields[field];
    const size_t count =
        (size_t)(finish->first_of_field[field + 1] - finish->first_of_field[field]);
    load_items(finish, field);
    if (finish->folded.has_failed) {
        return false;
    }
    lahar_term_sort(finish->items, finish->scratch, count);
    /* A value that was looked up and never posted has no documents and is left out. */
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (finish->builder->terms.states[finish->items[i].term].posting_count > 0) {
            finish->items[used++] = finish->items[i];
        }
    }
    if (entry->field_class == LAHAR_CLASS_UUID) {
        lahar_buffer_clear(&finish->folded);
        for (size_t i = 0; i < used; i++) {
            finish->references[i] = lahar_term_documents_write(&finish->documents, &finish->lists,
                                                               field, finish->items[i].term);
            lahar_buffer_put(&finish->folded, finish->items[i].folded, LAHAR_SHARD_UUID_SIZE);
        }
        if (finish->folded.has_failed) {
            return false;
        }
        lahar_uuid_table_write(&finish->lists, finish->folded.data, finish->references, used,
                               &entry->uuids);
        lahar_filter_writer_add(&finish->filter, finish->folded.data, used);
        return true;
    }
    const size_t common = common_bytes(finish->items, used);
    entry->dictionary =
        (struct lahar_dictionary){.term_count = used, .top = finish->tops.size, .common = common};
    struct lahar_dictionary_writer writer;
    lahar_dictionary_writer_init(&writer, &finish->blocks, &finish->tops, common);
    for (size_t i = 0; i < used; i++) {
        if (i + PREFETCH_STEPS < used) {
            const struct lahar_term_item *ahead = &finish->items[i + PREFETCH_STEPS];
            __builtin_prefetch(ahead->folded);
            lahar_term_documents_prefetch(&finish->documents, ahead->term);
        }
        if (i + PREFETCH_STEPS / 2 < used) {
            lahar_term_documents_prefetch_list(&finish->documents,
                                               finish->items[i + PREFETCH_STEPS / 2].term);
        }
        lahar_dictionary_put(&writer, &finish->items[i],
                             lahar_term_documents_write(&finish->documents, &finish->lists, field,
                                                        finish->items[i].term));
    }
    entry->dictionary.end = finish->blocks.size;
    return true;
}

static bool write_presence(struct finish *finish, size_t field)
{
    const struct lahar_builder_field *f = &finish->builder->fields[field];
    size_t count = 0;
    for (size_t i = 0; i < f->run_count; i++) {
        count += f->runs[i].end - f->runs[i].first;
    }
    /* All documents, the common case, needs no list of them. */
    uint32_t *documents = NULL;
    if (count != finish->builder->document_count) {
        documents = lahar_allocate(finish->builder->allocator, (count + 1) * sizeof *documents);
        if (documents == NULL) {
            return false;
        }
        size_t filled = 0;
        for (size_t i = 0; i < f->run_count; i++) {
            for (uint32_t d = f->runs[i].first; d < f->runs[i].end; d++) {
                documents[filled++] = d;
            }
        }
    }
    finish->directory.fields[field].presence = lahar_list_write(&finish->lists, documents, count);
    lahar_release(finish->builder->allocator, documents);
    return true;
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Bounds such that at most one event in a hundred has a time outside, when some lie far outside:
 * those clocks are taken to be wrong. Quantiles come from a sample, the count is exact. */
static void find_main_times(const struct lahar_column_values *times, uint64_t *low_out,
                            uint64_t *high_out)
{
    enum {
        SAMPLE_COUNT = 1024
    };
    static const uint64_t slack_ns = UINT64_C(3600000000000);
    uint64_t sample[SAMPLE_COUNT];
    *low_out = 0;
    *high_out = UINT64_MAX;
    const size_t sampled = times->count < SAMPLE_COUNT ? times->count : (size_t)SAMPLE_COUNT;
    if (sampled == 0) {
        return;
    }
    for (size_t i = 0; i < sampled; i++) {
        sample[i] = times->values[(uint64_t)i * times->count / sampled];
    }
    qsort(sample, sampled, sizeof sample[0], compare_u64);
    /* One in fifty of the sample is passed over at each end, or bad clocks would stretch the
     * middle that is to expose them. */
    const uint64_t first = sample[sampled / 50];
    const uint64_t last = sample[sampled - 1 - sampled / 50];
    const uint64_t span = last - first;
    const uint64_t margin = span > UINT64_MAX - slack_ns ? UINT64_MAX : span + slack_ns;
    const uint64_t low = first > margin ? first - margin : 0;
    const uint64_t high = last < UINT64_MAX - margin ? last + margin : UINT64_MAX;
    size_t outside = 0;
    for (size_t i = 0; i < times->count; i++) {
        outside += times->values[i] < low || times->values[i] > high;
    }
    if (outside <= times->count / 100) {
        *low_out = low;
        *high_out = high;
    }
}

static void note_time_bounds(struct lahar_directory *directory,
                             const struct lahar_column_values *times, uint64_t low, uint64_t high)
{
    struct lahar_time_bounds *bounds = &directory->times;
    *bounds = (struct lahar_time_bounds){UINT64_MAX, 0, UINT64_MAX, 0, 0, UINT64_MAX};
    for (size_t i = 0; i < times->count; i++) {
        const uint64_t v = times->values[i];
        bounds->min = v < bounds->min ? v : bounds->min;
        bounds->max = v > bounds->max ? v : bounds->max;
        if (v < low) {
            bounds->early_max = v > bounds->early_max ? v : bounds->early_max;
        } else if (v > high) {
            bounds->late_min = v < bounds->late_min ? v : bounds->late_min;
        } else {
            bounds->main_min = v < bounds->main_min ? v : bounds->main_min;
            bounds->main_max = v > bounds->main_max ? v : bounds->main_max;
        }
    }
}

/* The field of uuids that every document has one of: the one with the most uuids that still come
 * twice and more on average. field_count: there is none. */
static size_t find_grouping_field(const struct finish *finish)
{
    const struct lahar_shard_builder *builder = finish->builder;
    size_t best = builder->field_count;
    uint64_t best_count = 0;
    for (size_t i = 0; i < builder->field_count; i++) {
        const struct lahar_builder_field *field = &builder->fields[i];
        const uint64_t count = finish->first_of_field[i + 1] - finish->first_of_field[i];
        if (field->field_class != LAHAR_CLASS_UUID || count <= best_count ||
            count > builder->document_count / 2 || field->run_count != 1 ||
            field->runs[0].first != 0 || field->runs[0].end != builder->document_count) {
            continue;
        }
        uint64_t postings = 0;
        for (uint64_t k = 0; k < count; k++) {
            const struct lahar_term *term =
                lahar_term_at(&builder->terms, finish->order[finish->first_of_field[i] + k]);
            postings += builder->terms.states[term->number].posting_count;
        }
        /* The field is there in every document, so as many postings mean one each. */
        if (postings == builder->document_count) {
            best = i;
            best_count = count;
        }
    }
    return best;
}

/* Fills keys, by document, with numbers that are equal for documents of a group; false when the
 * shard gets no groups. */
static bool find_group_keys(const struct finish *finish, uint32_t *keys, uint32_t *key_count_out)
{
    const struct lahar_shard_builder *builder = finish->builder;
    if (finish->documents.has_objects) {
        memcpy(keys, builder->objects.of_document,
               builder->objects.document_count * sizeof keys[0]);
        *key_count_out = builder->objects.count;
        return true;
    }
    const size_t field = find_grouping_field(finish);
    if (field == builder->field_count) {
        return false;
    }
    const uint64_t first = finish->first_of_field[field];
    *key_count_out = (uint32_t)(finish->first_of_field[field + 1] - first);
    for (uint32_t k = 0; k < *key_count_out; k++) {
        const struct lahar_term *term = lahar_term_at(&builder->terms, finish->order[first + k]);
        const uint64_t end = finish->documents.ends[term->number];
        const uint64_t begin = end - builder->terms.states[term->number].posting_count;
        for (uint64_t i = begin; i < end; i++) {
            keys[finish->documents.postings[i]] = k;
        }
    }
    return true;
}

/* Groups the documents and writes the table of groups; false when memory is refused. */
static bool make_groups(struct finish *finish)
{
    const struct lahar_shard_builder *builder = finish->builder;
    uint32_t key_count = 0;
    uint32_t *keys =
        lahar_allocate(builder->allocator, ((size_t)builder->document_count + 1) * sizeof *keys);
    if (keys == NULL) {
        return false;
    }
    const bool has_groups = find_group_keys(finish, keys, &key_count);
    const bool is_done =
        !has_groups || lahar_group_map_init(&finish->groups, keys, builder->document_count,
                                            key_count, builder->allocator);
    lahar_release(builder->allocator, keys);
    if (!is_done || !has_groups) {
        return is_done;
    }
    finish->lists.groups = &finish->groups;
    finish->directory.groups.group_count = finish->groups.group_count;
    finish->directory.groups.directory = lahar_group_table_write(
        finish->lists.out, finish->lists.base, &finish->groups, builder->document_count);
    return true;
}

static void write_columns(struct finish *finish)
{
    const struct lahar_shard_builder *builder = finish->builder;
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;
    find_main_times(&builder->times, &low, &high);
    note_time_bounds(&finish->directory, &builder->times, low, high);
    lahar_column_write(&finish->lists, &builder->times, low, high, false,
                       &finish->directory.time_column);
    for (size_t i = 0; i < builder->field_count; i++) {
        if (builder->fields[i].field_class == LAHAR_CLASS_NUMBER) {
            lahar_column_write(&finish->lists, &builder->fields[i].values, 0, UINT64_MAX, true,
                               &finish->directory.fields[i].column);
        }
    }
}

/* Appends the dictionaries and makes their offsets those of the shard. */
static void place_dictionaries(struct finish *finish)
{
    struct lahar_buffer *out = finish->lists.out;
    const uint64_t blocks_at = out->size - finish->lists.base;
    lahar_buffer_put(out, finish->blocks.data, finish->blocks.size);
    while (!out->has_failed && (out->size - finish->lists.base) % LAHAR_SHARD_TOP_ENTRY_SIZE != 0) {
        lahar_buffer_put_u8(out, 0);
    }
    const uint64_t tops_at = out->size - finish->lists.base;
    for (size_t i = 8; i < finish->tops.size; i += LAHAR_SHARD_TOP_ENTRY_SIZE) {
        uint8_t *offset = finish->tops.data + i;
        lahar_store_u64(offset, lahar_load_u64(offset) + blocks_at);
    }
    lahar_buffer_put(out, finish->tops.data, finish->tops.size);
    for (size_t i = 0; i < finish->directory.field_count; i++) {
        finish->directory.fields[i].dictionary.top += tops_at;
        finish->directory.fields[i].dictionary.end += blocks_at;
    }
}

/* Sums the pages, of which the body consists up to here, and ends the shard. */
static void write_directory(struct finish *finish)
{
    const struct lahar_shard_builder *builder = finish->builder;
    struct lahar_buffer *out = finish->lists.out;
    const size_t body_size = out->size - finish->lists.base;
    struct lahar_buffer checksums;
    lahar_buffer_init(&checksums, builder->allocator);
    for (size_t at = 0; at < body_size && !out->has_failed; at += LAHAR_SHARD_PAGE_SIZE) {
        const size_t left = body_size - at;
        const size_t size = left < LAHAR_SHARD_PAGE_SIZE ? left : (size_t)LAHAR_SHARD_PAGE_SIZE;
        lahar_buffer_put_u32(&checksums,
                             lahar_shard_page_checksum(at / LAHAR_SHARD_PAGE_SIZE,
                                                       out->data + finish->lists.base + at, size));
    }
    lahar_directory_write(&finish->directory, builder->id_runs, builder->id_run_count,
                          builder->last_id, body_size, &checksums, out);
    lahar_buffer_deinit(&checksums);
}

static bool write_all(struct finish *finish)
{
    struct lahar_shard_builder *builder = finish->builder;
    struct lahar_directory *directory = &finish->directory;
    directory->document_count = builder->document_count;
    directory->field_count = builder->field_count;
    for (size_t i = 0; i < builder->field_count; i++) {
        directory->fields[i].name = builder->names.data + builder->fields[i].name;
        directory->fields[i].name_size = builder->fields[i].name_size;
        directory->fields[i].field_class = builder->fields[i].field_class;
    }
    lahar_directory_put_header(finish->lists.out);
    for (size_t i = 0; i < builder->field_count; i++) {
        sort_runs(&builder->fields[i]);
    }
    if (!make_groups(finish)) {
        return false;
    }
    for (size_t i = 0; i < builder->field_count; i++) {
        const enum lahar_field_class c = builder->fields[i].field_class;
        if ((c == LAHAR_CLASS_KEYWORD || c == LAHAR_CLASS_TEXT) && !write_field_terms(finish, i)) {
            return false;
        }
    }
    for (size_t i = 0; i < builder->field_count; i++) {
        if (!write_presence(finish, i)) {
            return false;
        }
    }
    for (size_t i = 0; i < builder->field_count; i++) {
        if (builder->fields[i].field_class == LAHAR_CLASS_UUID && !write_field_terms(finish, i)) {
            return false;
        }
    }
    write_columns(finish);
    place_dictionaries(finish);
    if (!lahar_filter_writer_write(&finish->filter, finish->lists.out,
                                   finish->lists.out->size - finish->lists.base,
                                   &directory->filter)) {
        return false;
    }
    write_directory(finish);
    return !finish->lists.out->has_failed && !finish->blocks.has_failed && !finish->tops.has_failed;
}

lahar_status lahar_shard_builder_finish(struct lahar_shard_builder *builder,
                                        struct lahar_buffer *out, lahar_error *error)
{
    const lahar_allocator *allocator = builder->allocator;
    const size_t base = out->size;
    struct finish finish = {.builder = builder,
                            .lists = {.out = out,
                                      .base = base,
                                      .blobs = &builder->blobs,
                                      .document_count = builder->document_count},
                            .documents = {.builder = builder}};
    lahar_buffer_init(&finish.folded, allocator);
    lahar_buffer_init(&finish.blocks, allocator);
    lahar_buffer_init(&finish.tops, allocator);
    lahar_filter_writer_init(&finish.filter, allocator);
    bool is_done = false;
    if (!builder->has_failed && !out->has_failed && allocate_all(&finish) &&
        lahar_term_documents_init(&finish.documents, builder)) {
        group_by_field(&finish);
        is_done = allocate_items(&finish) && write_all(&finish);
    }
    lahar_term_documents_deinit(&finish.documents);
    lahar_release(allocator, finish.order);
    lahar_release(allocator, finish.first_of_field);
    lahar_release(allocator, finish.items);
    lahar_release(allocator, finish.scratch);
    lahar_release(allocator, finish.references);
    lahar_release(allocator, finish.directory.fields);
    lahar_group_map_deinit(&finish.groups);
    lahar_buffer_deinit(&finish.folded);
    lahar_buffer_deinit(&finish.blocks);
    lahar_buffer_deinit(&finish.tops);
    lahar_filter_writer_deinit(&finish.filter);
    lahar_shard_builder_empty(builder);
    if (!is_done) {
        out->size = base;
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write an index shard");
    }
    return LAHAR_OK;
}
