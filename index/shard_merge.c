/* Merging shards: which fields there are, the order of the parts of the result, and handing it out
 * page by page. */
#include "index/shard_merge.h"

#include <string.h>

#include "index/merge.h"
#include "index/vector.h"
#include "io/base/error.h"

enum {
    /* Bytes gathered before they are handed out. */
    DRAIN_SIZE = 64 * LAHAR_SHARD_PAGE_SIZE
};

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge index shards");
}

/* --- handing out --------------------------------------------------------------------------- */

/* Sums and hands out the first size bytes of out, whole pages or the last one. */
static lahar_status hand_out(struct lahar_merge *merge, size_t size, lahar_error *error)
{
    const struct lahar_shard_merge *options = merge->options;
    for (size_t at = 0; at < size; at += LAHAR_SHARD_PAGE_SIZE) {
        const size_t left = size - at;
        lahar_buffer_put_u32(
            &merge->checksums,
            lahar_shard_page_checksum(
                (merge->taken_bytes + at) / LAHAR_SHARD_PAGE_SIZE, merge->out.data + at,
                left < LAHAR_SHARD_PAGE_SIZE ? left : (size_t)LAHAR_SHARD_PAGE_SIZE));
    }
    if (merge->checksums.has_failed) {
        return no_memory(error);
    }
    LAHAR_TRY(options->sink.write(options->sink.context, merge->out.data, size, error));
    memmove(merge->out.data, merge->out.data + size, merge->out.size - size);
    merge->out.size -= size;
    merge->taken_bytes += size;
    merge->lists.base -= size;
    return LAHAR_OK;
}

lahar_status lahar_merge_drain(struct lahar_merge *merge, lahar_error *error)
{
    if (merge->out.has_failed) {
        return no_memory(error);
    }
    if (merge->out.size < DRAIN_SIZE) {
        return LAHAR_OK;
    }
    if (merge->options->is_cancelled != NULL &&
        merge->options->is_cancelled(merge->options->cancel_context)) {
        return lahar_fail(error, LAHAR_CANCELLED, "the merge of index shards was given up");
    }
    return hand_out(merge, merge->out.size / LAHAR_SHARD_PAGE_SIZE * LAHAR_SHARD_PAGE_SIZE, error);
}

lahar_status lahar_merge_flush(struct lahar_merge *merge, lahar_error *error)
{
    return merge->out.has_failed ? no_memory(error) : hand_out(merge, merge->out.size, error);
}

/* --- what there is to merge ------------------------------------------------------------------ */

static lahar_status open_inputs(struct lahar_merge *merge, lahar_error *error)
{
    const struct lahar_shard_merge *options = merge->options;
    uint64_t documents = 0;
    uint64_t groups = 0;
    bool have_all_groups = true;
    uint64_t last_id = 0;
    for (uint32_t i = 0; i < merge->input_count; i++) {
        struct lahar_merge_input *input = &merge->inputs[i];
        input->shard = options->inputs[i];
        const struct lahar_directory *directory = &input->shard->directory;
        const uint32_t count = directory->document_count;
        input->first_document = (uint32_t)documents;
        input->first_group = (uint32_t)groups;
        if (count > LAHAR_SHARD_DOCUMENTS_MAX - documents) {
            return lahar_fail(error, LAHAR_TOO_BIG, "an index shard holds at most %d events",
                              LAHAR_SHARD_DOCUMENTS_MAX);
        }
        if (count != 0) {
            if (documents != 0 && lahar_shard_id(input->shard, 0) <= last_id) {
                return lahar_fail(error, LAHAR_INVALID,
                                  "index shards to be merged overlap or are out of order");
            }
            last_id = lahar_shard_id(input->shard, count - 1);
        }
        documents += count;
        groups += directory->groups.group_count;
        have_all_groups = have_all_groups && (count == 0 || directory->groups.group_count != 0);
        LAHAR_TRY(lahar_docset_init(&input->documents, count, merge->allocator, error));
        LAHAR_TRY(lahar_docset_init(&input->groups, directory->groups.group_count, merge->allocator,
                                    error));
    }
    merge->document_count = (uint32_t)documents;
    merge->group_count = have_all_groups ? (uint32_t)groups : 0;
    merge->group_lists = lahar_allocate_zeroed(merge->allocator, (size_t)merge->group_count + 1,
                                               sizeof *merge->group_lists);
    return merge->group_lists == NULL ? no_memory(error) : LAHAR_OK;
}

static const struct lahar_directory_field *field_of(const struct lahar_merge *merge, uint32_t input,
                                                    size_t number)
{
    const struct lahar_directory *directory = &merge->inputs[input].shard->directory;
    return number < directory->field_count ? &directory->fields[number] : NULL;
}

static int compare_fields(const struct lahar_directory_field *a,
                          const struct lahar_directory_field *b)
{
    return lahar_directory_compare(a->name, a->name_size, a->field_class, b->name, b->name_size,
                                   b->field_class);
}

/* The fields of all inputs, each once, in order. */
static lahar_status find_fields(struct lahar_merge *merge, lahar_error *error)
{
    size_t limit = 1;
    for (uint32_t i = 0; i < merge->input_count; i++) {
        limit += merge->inputs[i].shard->directory.field_count;
    }
    merge->directory.fields =
        lahar_allocate_zeroed(merge->allocator, limit, sizeof *merge->directory.fields);
    merge->fields =
        lahar_allocate_zeroed(merge->allocator, limit * merge->input_count, sizeof *merge->fields);
    if (merge->directory.fields == NULL || merge->fields == NULL) {
        return no_memory(error);
    }
    size_t next[LAHAR_SHARD_MERGE_MAX] = {0};
    for (;;) {
        const struct lahar_directory_field *least = NULL;
        for (uint32_t i = 0; i < merge->input_count; i++) {
            const struct lahar_directory_field *field = field_of(merge, i, next[i]);
            if (field != NULL && (least == NULL || compare_fields(field, least) < 0)) {
                least = field;
            }
        }
        if (least == NULL) {
            return LAHAR_OK;
        }
        const size_t number = merge->directory.field_count++;
        merge->directory.fields[number] = (struct lahar_directory_field){
            .name = least->name, .name_size = least->name_size, .field_class = least->field_class};
        for (uint32_t i = 0; i < merge->input_count; i++) {
            const struct lahar_directory_field *field = field_of(merge, i, next[i]);
            const bool has_field = field != NULL && compare_fields(field, least) == 0;
            merge->fields[number * merge->input_count + i] =
                has_field ? (uint32_t)next[i]++ : LAHAR_MERGE_NO_FIELD;
        }
    }
}

/* --- ids ----------------------------------------------------------------------------------- */

struct id_runs {
    struct lahar_id_run *items;
    size_t count;
    size_t capacity;
    uint64_t next_id; /* that would continue the last run */
};

static bool add_id_run(struct lahar_merge *merge, struct id_runs *runs, uint64_t first_id,
                       uint32_t first_ordinal, uint64_t length)
{
    if (runs->count == 0 || first_id != runs->next_id) {
        if (runs->count == runs->capacity) {
            struct lahar_id_run *grown = lahar_vector_grow(
                merge->allocator, runs->items, &runs->capacity, runs->count + 1, sizeof *grown);
            if (grown == NULL) {
                return false;
            }
            runs->items = grown;
        }
        runs->items[runs->count++] = (struct lahar_id_run){first_id, first_ordinal};
    }
    runs->next_id = first_id + length;
    return true;
}

/* Ids of one input, by runs of consecutive ones. */
static bool add_ids(struct lahar_merge *merge, struct id_runs *runs,
                    const struct lahar_merge_input *input)
{
    const struct lahar_id_table *ids = &input->shard->directory.ids;
    uint32_t ordinal = 0;
    while (ordinal < ids->document_count) {
        const uint64_t id = lahar_id_table_id(ids, ordinal);
        const uint32_t end = lahar_id_table_run_end(ids, ordinal);
        if (!add_id_run(merge, runs, id, input->first_document + ordinal, end - ordinal)) {
            return false;
        }
        ordinal = end;
    }
    return true;
}

static lahar_status write_directory(struct lahar_merge *merge, lahar_error *error)
{
    struct id_runs runs = {.count = 0};
    struct lahar_buffer out;
    lahar_buffer_init(&out, merge->allocator);
    lahar_status status = LAHAR_OK;
    for (uint32_t i = 0; i < merge->input_count && status == LAHAR_OK; i++) {
        if (!add_ids(merge, &runs, &merge->inputs[i])) {
            status = no_memory(error);
        }
    }
    if (status == LAHAR_OK) {
        merge->directory.document_count = merge->document_count;
        lahar_directory_write(&merge->directory, runs.items, runs.count,
                              runs.count == 0 ? 0 : runs.next_id - 1, merge->taken_bytes,
                              &merge->checksums, &out);
        status = out.has_failed ? no_memory(error)
                                : merge->options->sink.write(merge->options->sink.context, out.data,
                                                             out.size, error);
    }
    lahar_release(merge->allocator, runs.items);
    lahar_buffer_deinit(&out);
    return status;
}

/* --- the whole ----------------------------------------------------------------------------- */

static lahar_status write_presence(struct lahar_merge *merge, size_t field, lahar_error *error)
{
    struct lahar_merge_part parts[LAHAR_SHARD_MERGE_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < merge->input_count; i++) {
        const uint32_t number = lahar_merge_field(merge, field, i);
        if (number != LAHAR_MERGE_NO_FIELD) {
            const uint64_t reference = merge->inputs[i].shard->directory.fields[number].presence;
            if (reference != (LAHAR_SPECIAL_NONE << 2 | 3)) {
                parts[count++] = (struct lahar_merge_part){i, reference};
            }
        }
    }
    uint64_t *presence = &merge->directory.fields[field].presence;
    *presence = LAHAR_SPECIAL_NONE << 2 | 3;
    return count == 0 ? LAHAR_OK : lahar_merge_list(merge, parts, count, presence, error);
}

/* Puts the tops of all dictionaries, whose places in their buffer become those in the shard. */
static void place_tops(struct lahar_merge *merge)
{
    while (!merge->out.has_failed && lahar_merge_place(merge) % LAHAR_SHARD_TOP_ENTRY_SIZE != 0) {
        lahar_buffer_put_u8(&merge->out, 0);
    }
    const uint64_t tops_at = lahar_merge_place(merge);
    lahar_buffer_put(&merge->out, merge->tops.data, merge->tops.size);
    for (size_t i = 0; i < merge->directory.field_count; i++) {
        merge->directory.fields[i].dictionary.top += tops_at;
    }
}

static lahar_status write_fields(struct lahar_merge *merge, lahar_error *error)
{
    const struct lahar_directory *directory = &merge->directory;
    for (size_t i = 0; i < directory->field_count; i++) {
        switch (directory->fields[i].field_class) {
        case LAHAR_CLASS_KEYWORD:
        case LAHAR_CLASS_TEXT:
            LAHAR_TRY(lahar_merge_dictionary(merge, i, error));
            break;
        case LAHAR_CLASS_UUID:
            LAHAR_TRY(lahar_merge_uuids(merge, i, error));
            break;
        case LAHAR_CLASS_NUMBER:
            break;
        }
        LAHAR_TRY(write_presence(merge, i, error));
        LAHAR_TRY(lahar_merge_drain(merge, error));
    }
    return LAHAR_OK;
}

static lahar_status write_all(struct lahar_merge *merge, lahar_error *error)
{
    LAHAR_TRY(open_inputs(merge, error));
    LAHAR_TRY(find_fields(merge, error));
    merge->lists.document_count = merge->document_count;
    lahar_directory_put_header(&merge->out);
    LAHAR_TRY(lahar_merge_groups(merge, error));
    LAHAR_TRY(write_fields(merge, error));
    LAHAR_TRY(lahar_merge_columns(merge, error));
    place_tops(merge);
    if (!lahar_filter_writer_write(&merge->filter, &merge->out, lahar_merge_place(merge),
                                   &merge->directory.filter)) {
        return no_memory(error);
    }
    LAHAR_TRY(lahar_merge_flush(merge, error));
    return write_directory(merge, error);
}

lahar_status lahar_shard_merge(const struct lahar_shard_merge *options, lahar_error *error)
{
    if (options->input_count == 0 || options->input_count > LAHAR_SHARD_MERGE_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "%zu index shards cannot be merged at once",
                          options->input_count);
    }
    const lahar_allocator *allocator = options->allocator;
    struct lahar_merge *merge = lahar_allocate_zeroed(allocator, 1, sizeof *merge);
    if (merge == NULL) {
        return no_memory(error);
    }
    merge->options = options;
    merge->allocator = allocator;
    merge->input_count = (uint32_t)options->input_count;
    merge->lists.out = &merge->out;
    merge->numbers.allocator = allocator;
    struct lahar_buffer *const buffers[] = {&merge->out, &merge->checksums, &merge->blocks,
                                            &merge->tops, &merge->memo.parts};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        lahar_buffer_init(buffers[i], allocator);
    }
    lahar_filter_writer_init(&merge->filter, allocator);
    const lahar_status status = write_all(merge, error);
    for (uint32_t i = 0; i < merge->input_count; i++) {
        if (merge->inputs[i].shard != NULL) {
            lahar_docset_deinit(&merge->inputs[i].documents);
            lahar_docset_deinit(&merge->inputs[i].groups);
        }
    }
    lahar_release(allocator, merge->memo.slots);
    lahar_release(allocator, merge->group_lists);
    lahar_release(allocator, merge->numbers.items);
    lahar_release(allocator, merge->fields);
    lahar_release(allocator, merge->directory.fields);
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        lahar_buffer_deinit(buffers[i]);
    }
    lahar_filter_writer_deinit(&merge->filter);
    lahar_release(allocator, merge);
    return status;
}
