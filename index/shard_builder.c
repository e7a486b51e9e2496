/* Filling a shard builder.
 *
 * A value becomes a term number through one hash table for all fields; each occurrence appends
 * term and document to one array. Nothing is sorted, folded or encoded here but long
 * values: that waits for the finish, when each distinct term is handled once. One thread at a time.
 * Refused memory makes the shard unusable (has_failed), never inconsistent. */
#include "index/shard_builder.h"

#include <string.h>
#include <xxhash.h>

#include "index/shard_format.h"
#include "index/vector.h"
#include "io/base/error.h"

enum {
    FIELD_SLOTS_AT_FIRST = 64,
    /* What is kept of the arrays that finishing needs: those of some hundred thousand events. */
    RECYCLED_BYTES_MAX = 128 * 1024 * 1024
};

static lahar_status no_memory(struct lahar_shard_builder *builder, lahar_error *error)
{
    builder->has_failed = true;
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index an event");
}

lahar_status lahar_shard_builder_create(const lahar_allocator *allocator,
                                        struct lahar_shard_builder **builder_out,
                                        lahar_error *error)
{
    *builder_out = NULL;
    struct lahar_shard_builder *builder = lahar_allocate_zeroed(allocator, 1, sizeof *builder);
    if (builder == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an index builder");
    }
    builder->source = *allocator;
    lahar_recycler_init(&builder->recycler, &builder->source, RECYCLED_BYTES_MAX);
    allocator = &builder->recycler.allocator;
    builder->allocator = allocator;
    lahar_buffer_init(&builder->names, allocator);
    lahar_buffer_init(&builder->folded, allocator);
    lahar_term_table_init(&builder->terms, allocator);
    lahar_tokenizer_init(&builder->tokenizer, allocator);
    lahar_blob_table_init(&builder->blobs, allocator);
    *builder_out = builder;
    return LAHAR_OK;
}

/* Begins a field, with the memory of the field of that number in the shard before. */
static void begin_field(struct lahar_shard_builder *builder, struct lahar_builder_field *field)
{
    const struct lahar_builder_field old = *field;
    *field = (struct lahar_builder_field){.last_term = UINT32_MAX};
    if ((size_t)(field - builder->fields) == builder->field_memory_count) {
        builder->field_memory_count++;
        return;
    }
    field->runs = old.runs;
    field->run_capacity = old.run_capacity;
    field->values = old.values;
    field->values.count = 0;
    field->object_values = old.object_values;
    field->object_value_capacity = old.object_value_capacity;
}

static void release_fields(struct lahar_shard_builder *builder)
{
    for (size_t i = 0; i < builder->field_memory_count; i++) {
        lahar_release(builder->allocator, builder->fields[i].runs);
        lahar_column_values_deinit(&builder->fields[i].values, builder->allocator);
        lahar_release(builder->allocator, builder->fields[i].object_values);
    }
    lahar_release(builder->allocator, builder->fields);
}

void lahar_shard_builder_empty(struct lahar_shard_builder *builder)
{
    builder->field_count = 0;
    if (builder->field_slots != NULL) {
        memset(builder->field_slots, 0, builder->field_slot_count * sizeof *builder->field_slots);
    }
    lahar_buffer_clear(&builder->names);
    lahar_buffer_clear(&builder->folded);
    lahar_buffer_clear(&builder->tokenizer.folded);
    lahar_term_table_clear(&builder->terms);
    lahar_blob_table_clear(&builder->blobs);
    builder->posting_count = 0;
    builder->are_postings_unsorted = false;
    builder->document_count = 0;
    builder->id_run_count = 0;
    builder->last_id = 0;
    builder->times.count = 0;
    builder->token_list_count = 0;
    lahar_builder_objects_clear(&builder->objects);
    builder->has_failed = false;
}

void lahar_shard_builder_destroy(struct lahar_shard_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    const lahar_allocator *allocator = builder->allocator;
    release_fields(builder);
    lahar_release(allocator, builder->field_slots);
    lahar_release(allocator, builder->postings);
    lahar_release(allocator, builder->id_runs);
    lahar_release(allocator, builder->token_lists);
    lahar_column_values_deinit(&builder->times, allocator);
    lahar_builder_objects_deinit(&builder->objects, allocator);
    lahar_term_table_deinit(&builder->terms);
    lahar_tokenizer_deinit(&builder->tokenizer);
    lahar_blob_table_deinit(&builder->blobs);
    lahar_buffer_deinit(&builder->names);
    lahar_buffer_deinit(&builder->folded);
    lahar_recycler_deinit(&builder->recycler);
    const lahar_allocator source = builder->source;
    lahar_release(&source, builder);
}

static size_t field_slot(const struct lahar_shard_builder *builder, const void *name,
                         size_t name_size, enum lahar_field_class field_class)
{
    return (size_t)XXH3_64bits_withSeed(name, name_size, (uint64_t)field_class) &
           (builder->field_slot_count - 1);
}

static bool grow_field_slots(struct lahar_shard_builder *builder)
{
    const size_t count =
        builder->field_slot_count == 0 ? FIELD_SLOTS_AT_FIRST : builder->field_slot_count * 2;
    uint32_t *slots = lahar_allocate_zeroed(builder->allocator, count, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    lahar_release(builder->allocator, builder->field_slots);
    builder->field_slots = slots;
    builder->field_slot_count = count;
    for (size_t i = 0; i < builder->field_count; i++) {
        const struct lahar_builder_field *field = &builder->fields[i];
        size_t to = field_slot(builder, builder->names.data + field->name, field->name_size,
                               field->field_class);
        while (slots[to] != 0) {
            to = (to + 1) & (count - 1);
        }
        slots[to] = (uint32_t)i + 1;
    }
    return true;
}

lahar_status lahar_shard_builder_field(struct lahar_shard_builder *builder, const void *name,
                                       size_t name_size, enum lahar_field_class field_class,
                                       uint32_t *field_out, lahar_error *error)
{
    *field_out = 0;
    if (builder->field_count * 2 >= builder->field_slot_count && !grow_field_slots(builder)) {
        return no_memory(builder, error);
    }
    size_t slot = field_slot(builder, name, name_size, field_class);
    for (; builder->field_slots[slot] != 0; slot = (slot + 1) & (builder->field_slot_count - 1)) {
        const uint32_t number = builder->field_slots[slot] - 1;
        const struct lahar_builder_field *field = &builder->fields[number];
        if (field->field_class == field_class && field->name_size == name_size &&
            (name_size == 0 || memcmp(builder->names.data + field->name, name, name_size) == 0)) {
            *field_out = number;
            return LAHAR_OK;
        }
    }
    if (builder->field_count == builder->field_capacity) {
        struct lahar_builder_field *grown =
            lahar_vector_grow(builder->allocator, builder->fields, &builder->field_capacity,
                              builder->field_count + 1, sizeof *builder->fields);
        if (grown == NULL) {
            return no_memory(builder, error);
        }
        builder->fields = grown;
    }
    const size_t at = builder->names.size;
    lahar_buffer_put(&builder->names, name, name_size);
    if (builder->names.has_failed) {
        return no_memory(builder, error);
    }
    struct lahar_builder_field *added = &builder->fields[builder->field_count];
    begin_field(builder, added);
    added->name = at;
    added->name_size = name_size;
    added->field_class = field_class;
    *field_out = (uint32_t)builder->field_count++;
    builder->field_slots[slot] = *field_out + 1;
    return LAHAR_OK;
}

static bool note_id(struct lahar_shard_builder *builder, uint64_t id)
{
    if (builder->id_run_count > 0 && id == builder->last_id + 1) {
        builder->last_id = id;
        return true;
    }
    if (builder->id_run_count == builder->id_run_capacity) {
        struct lahar_id_run *grown =
            lahar_vector_grow(builder->allocator, builder->id_runs, &builder->id_run_capacity,
                              builder->id_run_count + 1, sizeof *builder->id_runs);
        if (grown == NULL) {
            return false;
        }
        builder->id_runs = grown;
    }
    builder->id_runs[builder->id_run_count++] =
        (struct lahar_id_run){.first_id = id, .first_ordinal = builder->document_count};
    builder->last_id = id;
    return true;
}

lahar_status lahar_shard_builder_document(struct lahar_shard_builder *builder, uint64_t id,
                                          int64_t time_ns, lahar_error *error)
{
    if (id == UINT64_MAX || (builder->document_count > 0 && id <= builder->last_id)) {
        return lahar_fail(error, LAHAR_INVALID, "event id %llu does not rise within an index shard",
                          (unsigned long long)id);
    }
    if (builder->document_count == LAHAR_SHARD_DOCUMENTS_MAX) {
        return lahar_fail(error, LAHAR_TOO_BIG, "an index shard holds at most %d events",
                          LAHAR_SHARD_DOCUMENTS_MAX);
    }
    if (!note_id(builder, id) ||
        !lahar_column_values_add(&builder->times, builder->document_count,
                                 lahar_number_from_i64(time_ns), builder->allocator)) {
        return no_memory(builder, error);
    }
    builder->document_count++;
    return LAHAR_OK;
}

static bool push_run(struct lahar_shard_builder *builder, struct lahar_builder_field *field,
                     struct lahar_presence_run run)
{
    if (field->run_count == field->run_capacity) {
        struct lahar_presence_run *grown =
            lahar_vector_grow(builder->allocator, field->runs, &field->run_capacity,
                              field->run_count + 1, sizeof *field->runs);
        if (grown == NULL) {
            return false;
        }
        field->runs = grown;
    }
    if (field->run_count > 0 && run.first < field->runs[field->run_count - 1].first) {
        field->are_runs_unsorted = true;
    }
    field->runs[field->run_count++] = run;
    return true;
}

bool lahar_builder_note_presence(struct lahar_shard_builder *builder,
                                 struct lahar_builder_field *field, uint32_t first, uint32_t end)
{
    if (field->run_count > 0) {
        struct lahar_presence_run *last = &field->runs[field->run_count - 1];
        if (first >= last->first && first <= last->end) {
            last->end = end > last->end ? end : last->end;
            return true;
        }
    }
    return push_run(builder, field, (struct lahar_presence_run){first, end});
}

/* The current document has the field. */
static bool note_current(struct lahar_shard_builder *builder, struct lahar_builder_field *field)
{
    return lahar_builder_note_presence(builder, field, builder->document_count - 1,
                                       builder->document_count);
}

bool lahar_builder_reserve_postings(struct lahar_shard_builder *builder, size_t count)
{
    if (builder->posting_capacity - builder->posting_count >= count) {
        return true;
    }
    struct lahar_posting *grown =
        lahar_vector_grow(builder->allocator, builder->postings, &builder->posting_capacity,
                          builder->posting_count + count, sizeof *builder->postings);
    if (grown == NULL) {
        return false;
    }
    builder->postings = grown;
    return true;
}

static bool post_term(struct lahar_shard_builder *builder, uint32_t number)
{
    if (!lahar_builder_reserve_postings(builder, 1)) {
        return false;
    }
    lahar_builder_put_posting(builder, number, builder->document_count - 1);
    return true;
}

/* The field, having checked what only a mistake in the engine can break. */
static struct lahar_builder_field *field_at(struct lahar_shard_builder *builder, uint32_t field,
                                            enum lahar_field_class field_class)
{
    LAHAR_ASSERT(field < builder->field_count);
    LAHAR_ASSERT(builder->fields[field].field_class == field_class);
    LAHAR_ASSERT(builder->document_count > 0);
    return &builder->fields[field];
}

lahar_status lahar_shard_builder_keyword(struct lahar_shard_builder *builder, uint32_t field,
                                         const void *value, size_t size, lahar_error *error)
{
    struct lahar_builder_field *f = field_at(builder, field, LAHAR_CLASS_KEYWORD);
    uint32_t term = 0;
    if (!lahar_builder_keyword_term(builder, field, value, size, &term) ||
        !post_term(builder, term) || !note_current(builder, f)) {
        return no_memory(builder, error);
    }
    return LAHAR_OK;
}

lahar_status lahar_shard_builder_text(struct lahar_shard_builder *builder, uint32_t field,
                                      const void *text, size_t size, lahar_error *error)
{
    struct lahar_builder_field *f = field_at(builder, field, LAHAR_CLASS_TEXT);
    struct lahar_token token;
    lahar_tokenizer_start(&builder->tokenizer, text, size);
    while (lahar_tokenizer_next(&builder->tokenizer, &token)) {
        uint32_t term = 0;
        if (!lahar_builder_token_term(builder, field, &token, &term) || !post_term(builder, term)) {
            return no_memory(builder, error);
        }
    }
    uint32_t mark = 0;
    if (lahar_builder_has_escape(text, size) &&
        (!lahar_builder_token_term(builder, field, &lahar_builder_escape_token, &mark) ||
         !post_term(builder, mark))) {
        return no_memory(builder, error);
    }
    if (builder->tokenizer.folded.has_failed || !note_current(builder, f)) {
        return no_memory(builder, error);
    }
    return LAHAR_OK;
}

lahar_status lahar_shard_builder_uuid(struct lahar_shard_builder *builder, uint32_t field,
                                      const lahar_uuid *uuid, lahar_error *error)
{
    struct lahar_builder_field *f = field_at(builder, field, LAHAR_CLASS_UUID);
    const struct lahar_term_key key = {.data = uuid->bytes, .size = sizeof uuid->bytes};
    uint32_t term = 0;
    if (!lahar_builder_add_term(builder, field, &key, &term) || !post_term(builder, term) ||
        !note_current(builder, f)) {
        return no_memory(builder, error);
    }
    return LAHAR_OK;
}

lahar_status lahar_shard_builder_number(struct lahar_shard_builder *builder, uint32_t field,
                                        uint64_t number, lahar_error *error)
{
    struct lahar_builder_field *f = field_at(builder, field, LAHAR_CLASS_NUMBER);
    if (!lahar_column_values_add(&f->values, builder->document_count - 1, number,
                                 builder->allocator) ||
        !note_current(builder, f)) {
        return no_memory(builder, error);
    }
    return LAHAR_OK;
}

lahar_status lahar_shard_builder_present(struct lahar_shard_builder *builder, uint32_t field,
                                         lahar_error *error)
{
    LAHAR_ASSERT(field < builder->field_count);
    LAHAR_ASSERT(builder->document_count > 0);
    return note_current(builder, &builder->fields[field]) ? LAHAR_OK : no_memory(builder, error);
}

lahar_status lahar_shard_builder_post(struct lahar_shard_builder *builder, uint32_t field,
                                      uint32_t value, lahar_error *error)
{
    LAHAR_ASSERT(field < builder->field_count);
    LAHAR_ASSERT(builder->document_count > 0);
    struct lahar_builder_field *f = &builder->fields[field];
    bool is_posted = true;
    if (f->field_class == LAHAR_CLASS_TEXT) {
        LAHAR_ASSERT(value < builder->token_list_count);
        const uint32_t count = builder->token_lists[value];
        for (uint32_t i = 1; i <= count && is_posted; i++) {
            is_posted = post_term(builder, builder->token_lists[value + i]);
        }
    } else {
        LAHAR_ASSERT(value < builder->terms.term_count);
        is_posted = post_term(builder, value);
    }
    return is_posted && note_current(builder, f) ? LAHAR_OK : no_memory(builder, error);
}

/* Posts the tokens of a text to a document. */
static bool put_token_postings(struct lahar_shard_builder *builder, uint32_t list,
                               uint32_t document)
{
    LAHAR_ASSERT(list < builder->token_list_count);
    const uint32_t *terms = builder->token_lists + list;
    if (!lahar_builder_reserve_postings(builder, terms[0])) {
        return false;
    }
    for (uint32_t i = 1; i <= terms[0]; i++) {
        lahar_builder_put_posting(builder, terms[i], document);
    }
    return true;
}

static bool post_column(struct lahar_shard_builder *builder, struct lahar_builder_field *field,
                        const struct lahar_shard_column *column, const uint32_t *values,
                        bool is_presence_known)
{
    const bool is_text = field->field_class == LAHAR_CLASS_TEXT;
    if (!is_text && !lahar_builder_reserve_postings(builder, column->slot_count)) {
        return false;
    }
    struct lahar_presence_run run = {0, 0};
    for (uint32_t slot = 0; slot < column->slot_count; slot++) {
        const uint32_t value = values[column->codes[slot]];
        const uint32_t document = column->first_document + column->rows[slot];
        if (value == LAHAR_SHARD_NO_VALUE) {
            continue;
        }
        if (!is_text) {
            lahar_builder_put_posting(builder, value, document);
        } else if (!put_token_postings(builder, value, document)) {
            return false;
        }
        if (document == run.end) {
            run.end++;
        } else if (document + 1 != run.end) {
            if (run.end != 0 && !is_presence_known &&
                !lahar_builder_note_presence(builder, field, run.first, run.end)) {
                return false;
            }
            run = (struct lahar_presence_run){document, document + 1};
        }
    }
    return run.first == run.end || is_presence_known ||
           lahar_builder_note_presence(builder, field, run.first, run.end);
}

lahar_status lahar_shard_builder_post_column(struct lahar_shard_builder *builder, uint32_t field,
                                             const struct lahar_shard_column *column,
                                             const uint32_t *values, bool is_presence_known,
                                             lahar_error *error)
{
    LAHAR_ASSERT(field < builder->field_count);
    return post_column(builder, &builder->fields[field], column, values, is_presence_known)
               ? LAHAR_OK
               : no_memory(builder, error);
}

lahar_status lahar_shard_builder_number_column(struct lahar_shard_builder *builder, uint32_t field,
                                               const struct lahar_shard_column *column,
                                               const uint64_t *numbers, lahar_error *error)
{
    struct lahar_builder_field *f = field_at(builder, field, LAHAR_CLASS_NUMBER);
    if (!lahar_column_values_reserve(&f->values, column->slot_count, builder->allocator)) {
        return no_memory(builder, error);
    }
    for (uint32_t slot = 0; slot < column->slot_count; slot++) {
        if (!lahar_column_values_add(&f->values, column->first_document + column->rows[slot],
                                     numbers[column->codes[slot]], builder->allocator)) {
            return no_memory(builder, error);
        }
    }
    return lahar_shard_builder_present_column(builder, field, column, error);
}

lahar_status lahar_shard_builder_present_column(struct lahar_shard_builder *builder, uint32_t field,
                                                const struct lahar_shard_column *column,
                                                lahar_error *error)
{
    LAHAR_ASSERT(field < builder->field_count);
    struct lahar_builder_field *f = &builder->fields[field];
    for (uint32_t slot = 0; slot < column->slot_count;) {
        const uint32_t first = column->rows[slot];
        uint32_t end = first + 1;
        for (slot++; slot < column->slot_count && column->rows[slot] - first <= end - first;
             slot++) {
            end = column->rows[slot] + 1 > end ? column->rows[slot] + 1 : end;
        }
        if (!lahar_builder_note_presence(builder, f, column->first_document + first,
                                         column->first_document + end)) {
            return no_memory(builder, error);
        }
    }
    return LAHAR_OK;
}

lahar_status lahar_shard_builder_documents(struct lahar_shard_builder *builder, const uint64_t *ids,
                                           const int64_t *times_ns, uint32_t count,
                                           lahar_error *error)
{
    if (!lahar_column_values_reserve(&builder->times, count, builder->allocator)) {
        return no_memory(builder, error);
    }
    for (uint32_t i = 0; i < count; i++) {
        LAHAR_TRY(lahar_shard_builder_document(builder, ids[i], times_ns[i], error));
    }
    return LAHAR_OK;
}

uint32_t lahar_shard_builder_document_count(const struct lahar_shard_builder *builder)
{
    return builder->document_count;
}
