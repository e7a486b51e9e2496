/* Rebuilding documents; see shape.h. The shape is read from disk and not trusted. */
#include "engine/format/shape.h"

#include <string.h>

#include "engine/event/row.h"
#include "engine/format/json.h"
#include "engine/format/pair_cursor.h"
#include "engine/format/time_text.h"
#include "engine/format/value_text.h"
#include "io/base/error.h"

/* Where a map or list field has been read up to. */
struct field_cursor {
    struct field_cursor *older;
    const lahar_value *value;
    struct lahar_pair_cursor pairs; /* maps */
    size_t next_item;               /* lists */
};

struct frame {
    size_t name_size; /* of the path when the container was opened */
    size_t base;      /* of the path: where the names of pairs begin */
    uint32_t map_field;
    bool is_object;
    bool has_prefix;
    bool has_members; /* the next one needs a comma */
};

struct writer {
    const lahar_event *event;
    struct lahar_reader shape;
    struct lahar_arena *arena;
    struct lahar_buffer *path;
    struct lahar_buffer *out;
    struct lahar_buffer *used;
    struct field_cursor *cursors;
    size_t depth;
    bool make_valid;
    bool is_out_of_memory;
    struct frame stack[LAHAR_JSON_DEPTH_MAX];
};

/* A scalar as found: text or null. */
struct scalar {
    lahar_bytes text;
    const lahar_value *value; /* a declared field's, else NULL */
    bool is_null;
};

static struct field_cursor *find_cursor(struct writer *w, uint32_t field)
{
    for (struct field_cursor *cursor = w->cursors; cursor != NULL; cursor = cursor->older) {
        if (cursor->value->field == field) {
            return cursor;
        }
    }
    const lahar_value *value = lahar_event_find(w->event, field);
    if (value == NULL || value->is_null) {
        return NULL;
    }
    struct field_cursor *cursor = lahar_arena_allocate(w->arena, sizeof *cursor);
    if (cursor == NULL) {
        w->is_out_of_memory = true;
        return NULL;
    }
    *cursor = (struct field_cursor){.older = w->cursors, .value = value};
    if (value->type == LAHAR_MAP && !lahar_pair_cursor_init(&cursor->pairs, value, w->arena)) {
        w->is_out_of_memory = true;
        return NULL;
    }
    w->cursors = cursor;
    return cursor;
}

/* The next pair under the name that the path holds. */
static bool take_pair(struct writer *w, const struct frame *frame, struct scalar *scalar_out)
{
    const size_t name_size = w->path->size - frame->base;
    const lahar_bytes name = {name_size == 0 ? NULL : w->path->data + frame->base, name_size};
    struct field_cursor *cursor = find_cursor(w, frame->map_field);
    if (cursor == NULL || cursor->value->type != LAHAR_MAP) {
        return false;
    }
    const lahar_pair *pair = lahar_pair_take(&cursor->pairs, name);
    if (pair == NULL) {
        return false;
    }
    *scalar_out = (struct scalar){.text = pair->value, .is_null = pair->is_null};
    return true;
}

/* Canonical text of a declared value, in the arena unless it is text already. */
static bool text_of_value(struct writer *w, const lahar_value *value, lahar_bytes *text_out)
{
    uint8_t storage[64];
    struct lahar_buffer text = {.data = storage, .capacity = sizeof storage};
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        *text_out = value->as.bytes;
        return true;
    default:
        lahar_value_put_text(&text, value);
        text_out->data = lahar_arena_copy(w->arena, storage, text.size);
        text_out->size = text.size;
        w->is_out_of_memory = w->is_out_of_memory || text_out->data == NULL;
        return text_out->data != NULL;
    }
}

/* The value of a declared field, of a list its next item. */
static bool take_declared(struct writer *w, uint32_t field, struct scalar *scalar_out)
{
    const lahar_value *value = lahar_event_find(w->event, field);
    if (value == NULL || value->type == LAHAR_MAP) {
        return false;
    }
    *scalar_out = (struct scalar){.value = value, .is_null = value->is_null};
    if (value->is_null) {
        return true;
    }
    if (value->type != LAHAR_LIST_UUID && value->type != LAHAR_LIST_KEYWORD) {
        return text_of_value(w, value, &scalar_out->text);
    }
    struct field_cursor *cursor = find_cursor(w, field);
    if (cursor == NULL) {
        return false;
    }
    const size_t index = cursor->next_item++;
    if (value->type == LAHAR_LIST_KEYWORD) {
        if (index >= value->as.keywords.count) {
            return false;
        }
        scalar_out->text = value->as.keywords.items[index];
        return true;
    }
    if (index >= value->as.uuids.count) {
        return false;
    }
    const lahar_value item = {.type = LAHAR_UUID, .as.uuid = value->as.uuids.items[index]};
    return text_of_value(w, &item, &scalar_out->text);
}

static size_t string_literal_size(const uint8_t *p, size_t left)
{
    for (size_t i = 1; i < left; i++) {
        if (p[i] == '"') {
            return i + 1;
        }
        i += p[i] == '\\';
    }
    return 0;
}

static size_t number_literal_size(const uint8_t *p, size_t left)
{
    size_t size = 0;
    while (size < left && memchr("0123456789+-.eE", p[size], 15) != NULL) {
        size++;
    }
    return size;
}

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Whether the escapes of a literal are ones that can be resolved. */
static bool has_sound_escapes(const uint8_t *p, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (p[i] != '\\') {
            continue;
        }
        i++;
        if (i == size) {
            return false;
        }
        for (size_t digit = 1; p[i] == 'u' && digit <= 4; digit++) {
            if (i + digit >= size || !is_hex(p[i + digit])) {
                return false;
            }
        }
    }
    return true;
}

/* Resolves the text between the quotes into the arena or leaves it in place. */
static bool resolve(struct writer *w, const uint8_t *p, size_t size, lahar_bytes *text_out)
{
    bool is_lossy;
    *text_out = (lahar_bytes){p, size};
    if (size == 0 || memchr(p, '\\', size) == NULL) {
        return true;
    }
    if (!has_sound_escapes(p, size)) {
        return false;
    }
    uint8_t *resolved = lahar_arena_allocate(w->arena, size);
    if (resolved == NULL) {
        w->is_out_of_memory = true;
        return false;
    }
    *text_out = (lahar_bytes){resolved, lahar_json_unescape(p, size, resolved, &is_lossy)};
    return true;
}

/* A literal: copied, or cleaned when it is a string of JSON that must be valid. */
static bool put_literal(struct writer *w)
{
    const uint8_t *p = w->shape.next;
    const size_t left = lahar_reader_left(&w->shape);
    const bool is_string = left != 0 && *p == '"';
    const size_t size = is_string ? string_literal_size(p, left) : number_literal_size(p, left);
    if (size == 0) {
        return false;
    }
    (void)lahar_read_bytes(&w->shape, size);
    if (!is_string || !w->make_valid) {
        lahar_buffer_put(w->out, p, size);
        return true;
    }
    lahar_bytes text;
    if (!resolve(w, p + 1, size - 2, &text)) {
        return false;
    }
    lahar_json_put_string(w->out, text, true);
    return true;
}

static bool put_time(struct writer *w, uint8_t mark, const struct scalar *scalar)
{
    const unsigned digit = (unsigned)(lahar_read_u8(&w->shape) - '0');
    if (digit > 9 || scalar->value == NULL || scalar->value->type != LAHAR_TIME ||
        scalar->is_null) {
        return false;
    }
    const int64_t time_ns = scalar->value->as.time_ns;
    if (mark == 't') {
        char text[LAHAR_TIME_TEXT_SIZE_MAX];
        lahar_buffer_put_u8(w->out, '"');
        lahar_buffer_put(w->out, text, lahar_time_format(time_ns, digit, text));
        lahar_buffer_put_u8(w->out, '"');
        return true;
    }
    int64_t unit = 1;
    for (unsigned i = digit; i < 9; i++) {
        unit *= 10;
    }
    const lahar_value number = {.type = LAHAR_I64, .as.i64 = time_ns / unit};
    lahar_value_put_text(w->out, &number);
    return true;
}

static bool put_scalar(struct writer *w, uint8_t mark, const struct scalar *scalar)
{
    switch (mark) {
    case 'n':
        lahar_buffer_put(w->out, "null", 4);
        return true;
    case '$':
        lahar_json_put_string(w->out, scalar->text, w->make_valid);
        return !scalar->is_null;
    case '#':
        lahar_buffer_put(w->out, scalar->text.data, scalar->text.size);
        return !scalar->is_null;
    case '=':
        return put_literal(w);
    case 't':
    case 'e':
        return put_time(w, mark, scalar);
    default:
        return false;
    }
}

static bool open_container(struct writer *w, bool is_object, const struct frame *parent,
                           const uint32_t *map_field)
{
    if (w->depth == LAHAR_JSON_DEPTH_MAX) {
        return false;
    }
    const bool is_root = parent == NULL;
    struct frame frame = {
        .name_size = w->path->size,
        .base = is_root ? 0 : parent->base,
        .map_field = is_root ? LAHAR_FIELD_ATTRIBUTES : parent->map_field,
        .is_object = is_object,
        .has_prefix = !is_root,
    };
    if (map_field != NULL) {
        frame.map_field = *map_field;
        frame.base = w->path->size;
        frame.has_prefix = false;
    }
    w->stack[w->depth++] = frame;
    lahar_buffer_put_u8(w->out, is_object ? '{' : '[');
    return true;
}

/* The value that begins with mark. */
static bool put_value(struct writer *w, uint8_t mark)
{
    const struct frame *parent = w->depth == 0 ? NULL : &w->stack[w->depth - 1];
    if (mark == '{' || mark == '[') {
        return open_container(w, mark == '{', parent, NULL);
    }
    if (mark == '&') {
        const uint32_t field = (uint32_t)lahar_read_varint(&w->shape);
        return parent != NULL && lahar_read_u8(&w->shape) == '{' &&
               open_container(w, true, parent, &field);
    }
    struct scalar scalar = {0};
    if (parent == NULL) {
        return false;
    }
    if (mark != '@') {
        return take_pair(w, parent, &scalar) && put_scalar(w, mark, &scalar);
    }
    const uint32_t field = (uint32_t)lahar_read_varint(&w->shape);
    if (w->used != NULL) {
        lahar_buffer_put_u32(w->used, field);
    }
    return take_declared(w, field, &scalar) && put_scalar(w, lahar_read_u8(&w->shape), &scalar);
}

/* A key: its text goes out, its name becomes the end of the path. The quote has been
 * read. */
static bool put_key(struct writer *w, const struct frame *frame)
{
    const uint8_t *start = w->shape.next - 1;
    const size_t size = string_literal_size(start, lahar_reader_left(&w->shape) + 1);
    lahar_bytes name;
    if (size == 0 || !resolve(w, start + 1, size - 2, &name)) {
        return false;
    }
    (void)lahar_read_bytes(&w->shape, size - 1);
    if (w->make_valid) {
        lahar_json_put_string(w->out, name, true);
    } else {
        lahar_buffer_put(w->out, start, size);
    }
    lahar_buffer_put_u8(w->out, ':');
    w->path->size = frame->name_size;
    if (frame->has_prefix) {
        lahar_buffer_put_u8(w->path, '.');
    }
    lahar_buffer_put(w->path, name.data, name.size);
    return true;
}

/* One member, element or closing bracket of the innermost container. */
static bool put_next(struct writer *w)
{
    struct frame *frame = &w->stack[w->depth - 1];
    uint8_t mark = lahar_read_u8(&w->shape);
    if (mark == (frame->is_object ? '}' : ']')) {
        lahar_buffer_put_u8(w->out, mark);
        w->depth--;
        return true;
    }
    if (frame->has_members) {
        lahar_buffer_put_u8(w->out, ',');
    }
    frame->has_members = true;
    if (frame->is_object) {
        if (mark != '"' || !put_key(w, frame)) {
            return false;
        }
        mark = lahar_read_u8(&w->shape);
    } else {
        w->path->size = frame->name_size;
    }
    return put_value(w, mark);
}

lahar_status lahar_shape_write(const lahar_event *event, lahar_bytes shape, bool make_valid,
                               struct lahar_arena *arena, struct lahar_buffer *path,
                               struct lahar_buffer *used, struct lahar_buffer *out,
                               lahar_error *error)
{
    struct writer *w = lahar_arena_allocate(arena, sizeof *w);
    if (w == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a document");
    }
    memset(w, 0, offsetof(struct writer, stack));
    w->event = event;
    w->shape = lahar_reader_of(shape.data, shape.size);
    w->arena = arena;
    w->path = path;
    w->out = out;
    w->make_valid = make_valid;
    w->used = used;
    lahar_buffer_clear(path);
    bool is_sound = put_value(w, lahar_read_u8(&w->shape)) && w->stack[0].is_object;
    while (is_sound && w->depth > 0 && !w->shape.failed) {
        is_sound = put_next(w);
    }
    if (w->is_out_of_memory || out->has_failed || path->has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a document");
    }
    if (!is_sound || w->shape.failed || lahar_reader_left(&w->shape) != 0) {
        return lahar_fail(error, LAHAR_CORRUPT,
                          "event %llu: _shape is damaged or does not fit the values",
                          (unsigned long long)event->id);
    }
    return LAHAR_OK;
}
