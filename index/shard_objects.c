/* Values that belong to objects rather than to single events.
 *
 * While each document of an object so far has had the same term in a field, one posting of the
 * object stands for all of them, and a block costs such a field one comparison an object.
 * When a document of the object comes without the term, the posting stands for the object's first
 * documents, whose number is kept, and what follows is posted document by document. So nothing
 * that was posted is ever taken back, and the order of calls does not matter. */
#include <string.h>

#include "index/shard_builder.h"
#include "index/vector.h"
#include "io/base/error.h"

enum {
    /* From so many documents on objects must have two of them on average. */
    JUDGED_DOCUMENT_COUNT = 8192
};

/* Set in the document count of a value that no longer holds for all. */
#define VALUE_IS_ENDED (UINT32_C(1) << 31)

static lahar_status no_memory(struct lahar_shard_builder *builder, lahar_error *error)
{
    builder->has_failed = true;
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index events");
}

void lahar_builder_objects_clear(struct lahar_builder_objects *objects)
{
    objects->is_used = false;
    objects->is_given_up = false;
    objects->count = 0;
    objects->document_count = 0;
    objects->code_count = 0;
    objects->row_count = 0;
    if (objects->of_term != NULL) {
        memset(objects->of_term, 0, objects->term_capacity * sizeof objects->of_term[0]);
    }
}

void lahar_builder_objects_deinit(struct lahar_builder_objects *objects,
                                  const lahar_allocator *allocator)
{
    lahar_release(allocator, objects->of_document);
    lahar_release(allocator, objects->sizes);
    lahar_release(allocator, objects->of_term);
    lahar_release(allocator, objects->stamps);
    lahar_release(allocator, objects->codes);
    lahar_release(allocator, objects->next_rows);
    lahar_release(allocator, objects->places);
    lahar_release(allocator, objects->pending);
    *objects = (struct lahar_builder_objects){.count = 0};
}

uint32_t lahar_object_value_documents(const struct lahar_object_value *value)
{
    return value->document_count & ~VALUE_IS_ENDED;
}

/* Makes the array at *items hold count items at least. */
static bool reserve(const lahar_allocator *allocator, uint32_t **items, size_t *capacity,
                    size_t count)
{
    if (*capacity >= count) {
        return true;
    }
    uint32_t *grown = lahar_vector_grow(allocator, *items, capacity, count, sizeof **items);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    return true;
}

static bool reserve_block(struct lahar_shard_builder *builder, uint32_t row_count,
                          uint32_t code_count)
{
    struct lahar_builder_objects *objects = &builder->objects;
    const lahar_allocator *allocator = builder->allocator;
    const size_t known_terms = objects->term_capacity;
    if (!reserve(allocator, &objects->of_document, &objects->document_capacity,
                 builder->document_count) ||
        !reserve(allocator, &objects->sizes, &objects->size_capacity,
                 (size_t)objects->count + code_count) ||
        !reserve(allocator, &objects->stamps, &objects->stamp_capacity,
                 (size_t)objects->count + code_count) ||
        !reserve(allocator, &objects->next_rows, &objects->row_capacity, row_count) ||
        !reserve(allocator, &objects->of_term, &objects->term_capacity,
                 builder->terms.term_count)) {
        return false;
    }
    if (objects->term_capacity > known_terms) {
        memset(objects->of_term + known_terms, 0,
               (objects->term_capacity - known_terms) * sizeof objects->of_term[0]);
    }
    if (objects->code_capacity < code_count) {
        struct lahar_block_object *grown = lahar_vector_grow(
            allocator, objects->codes, &objects->code_capacity, code_count, sizeof *objects->codes);
        if (grown == NULL) {
            return false;
        }
        objects->codes = grown;
    }
    return lahar_builder_reserve_postings(builder, code_count);
}

/* Whether the column tells objects apart that are worth it. */
static bool is_of_use(struct lahar_shard_builder *builder, uint32_t field,
                      const struct lahar_shard_column *column)
{
    struct lahar_builder_objects *objects = &builder->objects;
    if (!objects->is_used) {
        objects->is_used = true;
        objects->field = field;
    }
    /* A block that was passed over leaves documents without objects for good. */
    if (objects->field != field || objects->document_count != column->first_document) {
        return false;
    }
    objects->is_given_up =
        objects->is_given_up || (column->first_document >= JUDGED_DOCUMENT_COUNT &&
                                 objects->count > column->first_document / 2);
    return !objects->is_given_up;
}

/* Finds or makes the objects of the block's codes; false, with nothing changed, when two codes are
 * of one object. */
static bool find_objects(struct lahar_shard_builder *builder, const uint32_t *values)
{
    struct lahar_builder_objects *objects = &builder->objects;
    const uint32_t known_count = objects->count;
    const uint32_t stamp = objects->first_document + 1;
    uint32_t code = 0;
    for (; code < objects->code_count; code++) {
        uint32_t *of_term = &objects->of_term[values[code]];
        if (*of_term == 0) {
            objects->sizes[objects->count] = 0;
            *of_term = ++objects->count;
        } else if (objects->stamps[*of_term - 1] == stamp) {
            break;
        }
        const uint32_t object = *of_term - 1;
        objects->stamps[object] = stamp;
        objects->codes[code] =
            (struct lahar_block_object){.object = object, .before_count = objects->sizes[object]};
    }
    if (code == objects->code_count) {
        return true;
    }
    while (code-- > 0) {
        objects->stamps[objects->codes[code].object] = 0;
        if (objects->codes[code].object >= known_count) {
            objects->of_term[values[code]] = 0;
        }
    }
    objects->count = known_count;
    return false;
}

/* Posts the objects that the block has brought to their uuids. */
static void post_objects(struct lahar_shard_builder *builder, const uint32_t *values)
{
    const struct lahar_builder_objects *objects = &builder->objects;
    for (uint32_t code = 0; code < objects->code_count; code++) {
        if (objects->codes[code].before_count == 0) {
            builder->terms.states[values[code]].posting_count++;
            builder->postings[builder->posting_count++] = (struct lahar_posting){
                values[code], objects->codes[code].object | LAHAR_POSTING_OBJECT};
        }
    }
}

/* Gives the block's documents to their objects and links the rows of each. */
static void count_rows(struct lahar_builder_objects *objects, const uint32_t *codes)
{
    for (uint32_t row = objects->row_count; row-- > 0;) {
        struct lahar_block_object *object = &objects->codes[codes[row]];
        objects->next_rows[row] = object->added_count == 0 ? UINT32_MAX : object->first_row;
        object->first_row = row;
        object->added_count++;
        objects->of_document[objects->first_document + row] = object->object;
    }
    for (uint32_t code = 0; code < objects->code_count; code++) {
        objects->sizes[objects->codes[code].object] += objects->codes[code].added_count;
    }
}

lahar_status lahar_shard_builder_objects(struct lahar_shard_builder *builder, uint32_t field,
                                         const struct lahar_shard_column *column,
                                         const uint32_t *values, uint32_t value_count,
                                         bool *is_taken_out, lahar_error *error)
{
    struct lahar_builder_objects *objects = &builder->objects;
    LAHAR_ASSERT(field < builder->field_count);
    LAHAR_ASSERT(builder->fields[field].field_class == LAHAR_CLASS_UUID);
    LAHAR_ASSERT(column->first_document + column->slot_count == builder->document_count);
    *is_taken_out = is_of_use(builder, field, column);
    if (!*is_taken_out) {
        return LAHAR_OK;
    }
    objects->first_document = column->first_document;
    objects->row_count = column->slot_count;
    objects->code_count = value_count;
    if (!reserve_block(builder, column->slot_count, value_count)) {
        return no_memory(builder, error);
    }
    *is_taken_out = find_objects(builder, values);
    if (!*is_taken_out) {
        return LAHAR_OK;
    }
    post_objects(builder, values);
    count_rows(objects, column->codes);
    objects->document_count = builder->document_count;
    if (!lahar_builder_note_presence(builder, &builder->fields[field], column->first_document,
                                     builder->document_count)) {
        return no_memory(builder, error);
    }
    return LAHAR_OK;
}

/* --- columns of values ----------------------------------------------------------------- */

/* Makes the array of a field's values reach the newest object. */
static bool reserve_values(struct lahar_shard_builder *builder, struct lahar_builder_field *field)
{
    const size_t count = builder->objects.count;
    if (field->object_value_capacity < count) {
        struct lahar_object_value *grown =
            lahar_vector_grow(builder->allocator, field->object_values,
                              &field->object_value_capacity, count, sizeof *field->object_values);
        if (grown == NULL) {
            return false;
        }
        field->object_values = grown;
    }
    memset(field->object_values + field->object_value_count, 0,
           (count - field->object_value_count) * sizeof *field->object_values);
    field->object_value_count = count;
    return true;
}

/* Whether the entry is the value that the object has had, which most often it is; notes the
 * place of its term then. */
static bool is_expected(const struct lahar_shard_builder *builder, uint32_t place,
                        const struct lahar_shard_entries *entries, uint32_t entry)
{
    uint32_t *found = &builder->objects.places[entry];
    if (*found != UINT32_MAX) {
        return *found == place;
    }
    const struct lahar_term *term = lahar_term_at(&builder->terms, place);
    const lahar_bytes bytes = lahar_shard_entry(entries, entry);
    if (term->flags != 0 || term->size != bytes.size ||
        memcmp(term->bytes, bytes.data, bytes.size) != 0) {
        return false;
    }
    *found = place;
    return true;
}

/* Whether an object's documents of the block all have the value that it has had so far; they are
 * counted then. */
static bool continue_value(struct lahar_shard_builder *builder,
                           const struct lahar_block_object *object,
                           struct lahar_object_value *value,
                           const struct lahar_shard_entries *entries, uint32_t entry)
{
    if (value->document_count == 0 || value->document_count != object->before_count ||
        !is_expected(builder, value->term, entries, entry)) {
        return false;
    }
    value->document_count += object->added_count;
    return true;
}

/* Adds the value of an object, whose term has been looked up, to its documents of the block; room
 * for a posting a row is reserved. */
static void add_value(struct lahar_shard_builder *builder, struct lahar_builder_field *field,
                      const struct lahar_block_object *object, uint32_t place)
{
    struct lahar_object_value *value = &field->object_values[object->object];
    const uint32_t number = lahar_term_at(&builder->terms, place)->number;
    if (value->document_count != 0 && value->document_count == object->before_count &&
        value->term == place) {
        value->document_count += object->added_count;
        return;
    }
    if (object->before_count == 0 && value->document_count == 0) {
        *value = (struct lahar_object_value){place, object->added_count};
        builder->terms.states[number].posting_count++;
        builder->postings[builder->posting_count++] =
            (struct lahar_posting){number, object->object | LAHAR_POSTING_OBJECT};
        return;
    }
    value->document_count |= VALUE_IS_ENDED;
    for (uint32_t row = object->first_row; row != UINT32_MAX;
         row = builder->objects.next_rows[row]) {
        lahar_builder_put_posting(builder, number, builder->objects.first_document + row);
    }
}

/* Goes over the objects of the block; those whose values go on are done with, the entries of the
 * others are left in pending, behind as many codes of them. Returns how many. */
static uint32_t continue_values(struct lahar_shard_builder *builder,
                                struct lahar_builder_field *field,
                                const struct lahar_shard_entries *entries, const uint32_t *codes)
{
    enum {
        STEPS = 8 /* between asking for memory and using it */
    };
    struct lahar_builder_objects *objects = &builder->objects;
    uint32_t *pending_entries = objects->pending + objects->code_count;
    uint32_t pending_count = 0;
    for (uint32_t code = 0; code < objects->code_count; code++) {
        const struct lahar_block_object *object = &objects->codes[code];
        if (code + 2 * STEPS < objects->code_count) {
            __builtin_prefetch(&field->object_values[object[2 * STEPS].object]);
        }
        if (code + STEPS < objects->code_count && object[STEPS].before_count != 0) {
            __builtin_prefetch(
                lahar_term_at(&builder->terms, field->object_values[object[STEPS].object].term));
        }
        const uint32_t entry = codes[object->first_row];
        if (!continue_value(builder, object, &field->object_values[object->object], entries,
                            entry)) {
            objects->pending[pending_count] = code;
            pending_entries[pending_count++] = entry;
        }
    }
    return pending_count;
}

lahar_status lahar_shard_builder_object_column(struct lahar_shard_builder *builder, uint32_t field,
                                               const struct lahar_shard_entries *entries,
                                               const uint32_t *codes, lahar_error *error)
{
    struct lahar_builder_objects *objects = &builder->objects;
    LAHAR_ASSERT(field < builder->field_count);
    LAHAR_ASSERT(objects->document_count == builder->document_count);
    struct lahar_builder_field *f = &builder->fields[field];
    LAHAR_ASSERT(f->field_class == LAHAR_CLASS_KEYWORD || f->field_class == LAHAR_CLASS_UUID);
    if (!reserve_values(builder, f) ||
        !lahar_builder_reserve_postings(builder, objects->row_count) ||
        !reserve(builder->allocator, &objects->places, &objects->place_capacity, entries->count) ||
        !reserve(builder->allocator, &objects->pending, &objects->pending_capacity,
                 (size_t)objects->code_count * 2)) {
        return no_memory(builder, error);
    }
    memset(objects->places, 0xff, (size_t)entries->count * sizeof objects->places[0]);
    const uint32_t pending_count = continue_values(builder, f, entries, codes);
    const uint32_t *pending_entries = objects->pending + objects->code_count;
    if (!lahar_builder_find_terms(builder, field, entries, pending_entries, pending_count,
                                  objects->places)) {
        return no_memory(builder, error);
    }
    for (uint32_t i = 0; i < pending_count; i++) {
        add_value(builder, f, &objects->codes[objects->pending[i]],
                  objects->places[pending_entries[i]]);
    }
    return lahar_builder_note_presence(builder, f, objects->first_document, builder->document_count)
               ? LAHAR_OK
               : no_memory(builder, error);
}
