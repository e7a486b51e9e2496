/* The walk over a document; see document.h. It is a loop over the tokens with a
 * stack of the open containers, which the tokenizer bounds. */
#include "engine/format/document.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/document_keys.h"
#include "engine/format/time_text.h"
#include "engine/format/value_text.h"

static const char *type_name(lahar_type type)
{
    static const char *const names[] = {"",     "keyword", "text",          "uuid",
                                        "i64",  "u64",     "f64",           "bool",
                                        "time", "bytes",   "list of uuids", "list of keywords",
                                        "map"};
    return names[type];
}

static lahar_status refuse(struct lahar_document *document, const struct lahar_field_entry *entry,
                           lahar_bytes text)
{
    const int shown = text.size > 60 ? 60 : (int)text.size;
    (void)snprintf(document->failure, sizeof document->failure,
                   "field \"%.80s\": not a value of type %s: %.*s", entry->name,
                   type_name(entry->type), shown, shown == 0 ? "" : (const char *)text.data);
    return LAHAR_INVALID;
}

/* Room for the whole shape is made before the walk: see shape_size_max. */
static inline void put_mark(struct lahar_document *document, uint8_t mark)
{
    struct lahar_buffer *shape = &document->record->shape;
    shape->data[shape->size++] = mark;
}

static inline void put_text(struct lahar_document *document, const uint8_t *text, size_t size)
{
    struct lahar_buffer *shape = &document->record->shape;
    memcpy(shape->data + shape->size, text, size);
    shape->size += size;
}

static void put_field(struct lahar_document *document, uint8_t mark, uint32_t field)
{
    struct lahar_buffer *shape = &document->record->shape;
    put_mark(document, mark);
    shape->size = (size_t)(lahar_put_varint(shape->data + shape->size, field) - shape->data);
}

/* A token leaves its own text at most once, with its quotes, and at most an '=', an
 * '&' or '@' with a field, and a mark with a digit; a container also its end. */
static size_t shape_size_max(size_t size, size_t token_count)
{
    return size + token_count * 16 + 16;
}

static void put_literal(struct lahar_document *document, const struct lahar_json_token *token)
{
    const bool is_string = token->kind == LAHAR_JSON_STRING;
    put_mark(document, '=');
    if (is_string) {
        put_mark(document, '"');
    }
    put_text(document, document->text + token->offset, token->size);
    if (is_string) {
        put_mark(document, '"');
    }
}

static uint8_t plain_mark(const struct lahar_json_token *token)
{
    return token->kind == LAHAR_JSON_STRING ? '$' : '#';
}

/* Whether value, written in the style that the token's text has, is that text. */
static bool put_time_style(struct lahar_document *document, const struct lahar_json_token *token,
                           lahar_bytes text, int64_t time_ns)
{
    if (token->kind == LAHAR_JSON_STRING) {
        unsigned fraction;
        if (!lahar_time_is_canonical(text, time_ns, &fraction)) {
            return false;
        }
        put_mark(document, 't');
        put_mark(document, (uint8_t)('0' + fraction));
        return true;
    }
    int64_t unit = 1000000000;
    for (uint8_t digit = 0; digit <= 9; digit = (uint8_t)(digit + 3), unit /= 1000) {
        uint8_t storage[32];
        struct lahar_buffer again = {.data = storage, .capacity = sizeof storage};
        const lahar_value number = {.type = LAHAR_I64, .as.i64 = time_ns / unit};
        lahar_value_put_text(&again, &number);
        if (time_ns % unit == 0 && again.size == text.size &&
            memcmp(storage, text.data, text.size) == 0) {
            put_mark(document, 'e');
            put_mark(document, (uint8_t)('0' + digit));
            return true;
        }
    }
    return false;
}

/* A scalar into its declared field. */
static lahar_status put_declared(struct lahar_document *document,
                                 const struct lahar_json_token *token,
                                 const struct lahar_field_entry *entry, lahar_bytes text,
                                 bool is_lossy)
{
    struct lahar_record *record = document->record;
    if (token->kind == LAHAR_JSON_NULL) {
        put_field(document, '@', entry->field);
        put_mark(document, 'n');
        return lahar_record_put_null(record, entry) ? LAHAR_OK : LAHAR_NO_MEMORY;
    }
    const enum lahar_record_put result = lahar_record_put_text(record, entry, text);
    if (result == LAHAR_PUT_NO_MEMORY) {
        return LAHAR_NO_MEMORY;
    }
    if (result == LAHAR_PUT_REFUSED) {
        return refuse(document, entry, text);
    }
    put_field(document, '@', entry->field);
    const bool is_time = entry->type == LAHAR_TIME;
    const int64_t time_ns = record->values[record->value_count - 1].as.time_ns;
    if (is_time && put_time_style(document, token, text, time_ns)) {
        return LAHAR_OK;
    }
    if (is_lossy || is_time || result == LAHAR_PUT_INEXACT) {
        put_literal(document, token);
    } else {
        put_mark(document, plain_mark(token));
    }
    return LAHAR_OK;
}

static lahar_status put_pair(struct lahar_document *document, const struct lahar_json_token *token,
                             const struct lahar_document_place *place, lahar_bytes text,
                             bool is_lossy)
{
    struct lahar_record *record = document->record;
    const bool is_null = token->kind == LAHAR_JSON_NULL;
    if (is_null) {
        put_mark(document, 'n');
    } else if (is_lossy) {
        put_literal(document, token);
    } else {
        put_mark(document, plain_mark(token));
    }
    return lahar_record_add_pair(record, place->map_index, place->name, text, is_null)
               ? LAHAR_OK
               : LAHAR_NO_MEMORY;
}

/* Of an object's members or the walk's other values, whether the field can take a
 * scalar that was met under its name: text in an array goes to the attributes. */
static bool fills_field(const struct lahar_document *document,
                        const struct lahar_document_place *place)
{
    const struct lahar_field_entry *entry = place->entry;
    return entry != NULL && entry->is_declared && entry->type != LAHAR_MAP && !place->is_element &&
           (place->is_first || !lahar_record_has(document->record, entry->field));
}

static bool is_text_type(lahar_type type)
{
    return type == LAHAR_KEYWORD || type == LAHAR_TEXT || type == LAHAR_BYTES || type == LAHAR_MAP;
}

static lahar_status put_scalar(struct lahar_document *document,
                               const struct lahar_json_token *token,
                               const struct lahar_document_place *place)
{
    struct lahar_record *record = document->record;
    const struct lahar_field_entry *entry = place->entry;
    lahar_bytes text = {document->text + token->offset, token->size};
    bool is_lossy = false;
    if (token->kind == LAHAR_JSON_STRING) {
        text = lahar_json_token_text(document->text, token, &record->arena, &is_lossy);
        if (text.data == NULL) {
            return LAHAR_NO_MEMORY;
        }
    }
    if (entry != NULL && entry->is_time && !place->is_element) {
        lahar_record_take_time(record, text);
    }
    if (fills_field(document, place)) {
        return put_declared(document, token, entry, text, is_lossy);
    }
    if (entry != NULL && entry->is_declared && place->is_element && !is_text_type(entry->type)) {
        return refuse(document, entry, (lahar_bytes){"an array", 8});
    }
    return put_pair(document, token, place, text, is_lossy);
}

static lahar_status learn_scalar(struct lahar_document *document,
                                 const struct lahar_json_token *token,
                                 const struct lahar_document_place *place)
{
    const struct lahar_buffer *shape = &document->record->shape;
    lahar_document_plan_before(document->plan, document->text, token, place, shape);
    const lahar_status status = put_scalar(document, token, place);
    lahar_document_plan_behind(document->plan, token, shape);
    return status;
}

/* An item of a declared list: a scalar other than null. */
static lahar_status put_item(struct lahar_document *document, const struct lahar_json_token *token,
                             const struct lahar_field_entry *entry, void *items, size_t index)
{
    lahar_bytes text = {document->text + token->offset, token->size};
    bool is_lossy = false;
    bool is_canonical = true;
    if (token->kind <= LAHAR_JSON_KEY || token->kind == LAHAR_JSON_NULL) {
        return refuse(document, entry, text);
    }
    if (token->kind == LAHAR_JSON_STRING) {
        text = lahar_json_token_text(document->text, token, &document->record->arena, &is_lossy);
        if (text.data == NULL) {
            return LAHAR_NO_MEMORY;
        }
    }
    if (entry->type == LAHAR_LIST_KEYWORD) {
        ((lahar_bytes *)items)[index] = text;
    } else if (!lahar_uuid_parse(text, &((lahar_uuid *)items)[index], &is_canonical)) {
        return refuse(document, entry, text);
    }
    put_field(document, '@', entry->field);
    if (is_lossy || !is_canonical) {
        put_literal(document, token);
    } else {
        put_mark(document, plain_mark(token));
    }
    return LAHAR_OK;
}

/* The array at tokens[array] into a list field. */
static lahar_status put_list(struct lahar_document *document, uint32_t array,
                             const struct lahar_field_entry *entry)
{
    struct lahar_record *record = document->record;
    const bool is_uuid = entry->type == LAHAR_LIST_UUID;
    const uint32_t end = document->tokens[array].end;
    const size_t capacity = end - array; /* items are at most as many as tokens */
    void *items = lahar_arena_allocate(&record->arena, capacity * sizeof(union lahar_record_item));
    lahar_value *value = lahar_record_add(record, entry->field, entry->type);
    if (items == NULL || value == NULL) {
        return LAHAR_NO_MEMORY;
    }
    size_t count = 0;
    put_mark(document, '[');
    for (uint32_t i = array + 1; i < end; i = document->tokens[i].end) {
        const lahar_status status = put_item(document, &document->tokens[i], entry, items, count++);
        if (status != LAHAR_OK) {
            return status;
        }
    }
    put_mark(document, ']');
    if (is_uuid) {
        value->as.uuids.items = items;
        value->as.uuids.count = count;
    } else {
        value->as.keywords.items = items;
        value->as.keywords.count = count;
    }
    return LAHAR_OK;
}

/* place by value: so that the caller's can live in registers. */
static lahar_status open_object(struct lahar_document *document, uint32_t index,
                                const struct lahar_document_place place, bool is_root)
{
    struct lahar_record *record = document->record;
    if (!lahar_json_mark_duplicates(document->text, document->tokens, index, &record->arena)) {
        return LAHAR_NO_MEMORY;
    }
    struct lahar_document_frame frame = {
        .prefix = place.name,
        .map_index = place.map_index,
        .end = document->tokens[index].end,
        .is_object = true,
        .has_prefix = !is_root,
        .is_map = place.is_map,
    };
    const struct lahar_field_entry *entry = place.entry;
    if (entry != NULL && entry->is_declared && entry->type == LAHAR_MAP && !place.is_element) {
        frame.map_index = lahar_record_map_index(record, entry->field);
        if (frame.map_index == SIZE_MAX) {
            return LAHAR_NO_MEMORY;
        }
        frame.has_prefix = false;
        frame.is_map = true;
        put_field(document, '&', entry->field);
    }
    put_mark(document, '{');
    document->stack[document->depth++] = frame;
    return LAHAR_OK;
}

/* The value at tokens[*index], moved behind what was taken of it. */
static lahar_status put_value(struct lahar_document *document, uint32_t *index,
                              const struct lahar_document_place *place)
{
    const struct lahar_json_token *token = &document->tokens[*index];
    const struct lahar_field_entry *entry = place->entry;
    const uint32_t at = (*index)++;
    if (token->kind == LAHAR_JSON_OBJECT) {
        return open_object(document, at, *place, false);
    }
    if (token->kind != LAHAR_JSON_ARRAY) {
        return document->plan == NULL ? put_scalar(document, token, place)
                                      : learn_scalar(document, token, place);
    }
    if (entry != NULL && (entry->type == LAHAR_LIST_UUID || entry->type == LAHAR_LIST_KEYWORD) &&
        !place->is_element && !lahar_record_has(document->record, entry->field)) {
        if (document->plan != NULL) {
            document->plan->is_learnable = false;
        }
        *index = token->end;
        return put_list(document, at, entry);
    }
    put_mark(document, '[');
    document->stack[document->depth++] = (struct lahar_document_frame){
        .prefix = place->name,
        .entry = entry,
        .map_index = place->map_index,
        .end = token->end,
        .is_map = place->is_map,
    };
    return LAHAR_OK;
}

/* prefix.name in the arena; NULL when memory is refused. */
static uint8_t *join(struct lahar_arena *arena, lahar_bytes prefix, lahar_bytes name)
{
    uint8_t *joined = lahar_arena_allocate(arena, prefix.size + 1 + name.size);
    if (joined != NULL) {
        memcpy(joined, prefix.data, prefix.size);
        joined[prefix.size] = '.';
        memcpy(joined + prefix.size + 1, name.data, name.size);
    }
    return joined;
}

/* The full name of a member and the field declared under it. */
static lahar_status find_place(struct lahar_document *document,
                               const struct lahar_document_frame *frame,
                               const struct lahar_json_token *key,
                               struct lahar_document_place *place_out)
{
    struct lahar_arena *arena = &document->record->arena;
    const struct lahar_field_map *fields = document->fields;
    bool is_lossy;
    put_mark(document, '"');
    put_text(document, document->text + key->offset, key->size);
    put_mark(document, '"');
    lahar_bytes name = lahar_json_token_text(document->text, key, arena, &is_lossy);
    if (name.data == NULL) {
        return LAHAR_NO_MEMORY;
    }
    place_out->entry = NULL;
    place_out->map_index = frame->map_index;
    place_out->is_element = false;
    place_out->is_first = false;
    place_out->is_map = frame->is_map;
    if (frame->has_prefix) {
        uint8_t *joined = join(arena, frame->prefix, name);
        if (joined == NULL) {
            return LAHAR_NO_MEMORY;
        }
        name = (lahar_bytes){joined, frame->prefix.size + 1 + name.size};
        if (!frame->is_map && fields->has_dotted) {
            place_out->entry = lahar_field_map_find(fields, name.data, name.size);
        }
    } else if (!frame->is_map) {
        place_out->entry = lahar_field_map_find_hashed(fields, name.data, name.size, key->end);
    }
    place_out->name = name;
    return LAHAR_OK;
}

lahar_status lahar_document_map_plan(struct lahar_document *document, const uint8_t *text,
                                     size_t size, const struct lahar_document_plan *plan,
                                     struct lahar_record *record)
{
    const uint8_t *shape = plan->shape.data;
    document->text = text;
    document->record = record;
    if (!lahar_buffer_reserve(&record->shape,
                              plan->shape.size + shape_size_max(size, plan->slot_count))) {
        return LAHAR_NO_MEMORY;
    }
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct lahar_plan_slot *slot = &plan->slots[i];
        put_text(document, shape, slot->shape_size);
        shape += slot->shape_size;
        const lahar_status status = put_scalar(document, &slot->value, &slot->place);
        if (status != LAHAR_OK) {
            return status;
        }
    }
    put_text(document, shape, plan->tail_shape_size);
    return LAHAR_OK;
}

lahar_status lahar_document_map(struct lahar_document *document, const uint8_t *text,
                                const struct lahar_json_parser *parser,
                                const struct lahar_field_map *fields, struct lahar_record *record,
                                struct lahar_document_plan *plan)
{
    document->text = text;
    document->tokens = parser->tokens;
    document->record = record;
    document->fields = fields;
    document->depth = 0;
    document->plan = plan;
    if (plan != NULL) {
        lahar_document_plan_begin(plan);
    }
    if (!lahar_buffer_reserve(&record->shape,
                              shape_size_max(parser->position, parser->token_count))) {
        return LAHAR_NO_MEMORY;
    }
    put_mark(document, LAHAR_SHAPE_JSON);
    lahar_status status = open_object(document, 0, (struct lahar_document_place){0}, true);
    uint32_t index = 1;
    while (status == LAHAR_OK && document->depth > 0) {
        const struct lahar_document_frame *frame = &document->stack[document->depth - 1];
        if (index == frame->end) {
            put_mark(document, frame->is_object ? '}' : ']');
            document->depth--;
            continue;
        }
        struct lahar_document_place place = {.name = frame->prefix,
                                             .entry = frame->entry,
                                             .map_index = frame->map_index,
                                             .is_element = true,
                                             .is_map = frame->is_map};
        if (frame->is_object) {
            const struct lahar_json_token *key = &document->tokens[index++];
            if ((key->flags & LAHAR_JSON_DROPPED) != 0) {
                index = document->tokens[index].end;
                continue;
            }
            status = find_place(document, frame, key, &place);
            if (status != LAHAR_OK) {
                break;
            }
        }
        status = put_value(document, &index, &place);
    }
    if (plan == NULL || status != LAHAR_OK) {
        return status;
    }
    return lahar_document_plan_end(plan, text, parser->position, &record->shape, fields->version)
               ? LAHAR_OK
               : LAHAR_NO_MEMORY;
}
