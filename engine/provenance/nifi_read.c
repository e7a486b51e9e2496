/* From NiFi's JSON to fields. */
#include <string.h>

#include "engine/format/time_text.h"
#include "engine/format/value_text.h"
#include "engine/provenance/identity.h"
#include "engine/provenance/nifi_json.h"

#define NANOSECONDS INT64_C(1000000) /* in a millisecond */

/* What became of a value. */
enum taken {
    TAKEN,     /* a field holds it exactly */
    ALSO_KEPT, /* a field has it, its text must be kept besides */
    KEPT,      /* only its text */
    REFUSED    /* no memory */
};

struct reading {
    const struct lahar_prov_fields *fields;
    const uint8_t *text;
    const struct lahar_json_token *tokens;
    struct lahar_record *record;
    size_t strings; /* map _nifi of the record */
    size_t others;  /* map _nifi_json */
};

/* The token behind a value. */
static size_t behind(const struct lahar_json_token *tokens, size_t at)
{
    const uint8_t kind = tokens[at].kind;
    return kind == LAHAR_JSON_OBJECT || kind == LAHAR_JSON_ARRAY ? tokens[at].end : at + 1;
}

/* The bytes of a string or key. False when memory is refused. */
static bool get_string(struct reading *reading, const struct lahar_json_token *token,
                       lahar_bytes *bytes_out, bool *is_lossy_out)
{
    const uint8_t *text = reading->text + token->offset;
    *bytes_out = (lahar_bytes){text, token->size};
    *is_lossy_out = false;
    if ((token->flags & LAHAR_JSON_ESCAPED) == 0) {
        return true;
    }
    uint8_t *out = lahar_arena_allocate(&reading->record->arena, token->size + 1);
    if (out == NULL) {
        return false;
    }
    *bytes_out = (lahar_bytes){out, lahar_json_unescape(text, token->size, out, is_lossy_out)};
    return true;
}

/* Where the text of the value at a token begins and ends in the document. */
static lahar_bytes get_text(const struct reading *reading, size_t at)
{
    const struct lahar_json_token *token = &reading->tokens[at];
    const uint8_t *start = reading->text + token->offset;
    switch (token->kind) {
    case LAHAR_JSON_STRING:
        return (lahar_bytes){start - 1, (size_t)token->size + 2};
    case LAHAR_JSON_TRUE:
        return (lahar_bytes){"true", 4};
    case LAHAR_JSON_FALSE:
        return (lahar_bytes){"false", 5};
    case LAHAR_JSON_NULL:
        return (lahar_bytes){"null", 4};
    default:
        return (lahar_bytes){start, token->size};
    }
}

/* Appends the value at a token as compact JSON: containers carry no end of their text. */
static bool put_value(const struct reading *reading, size_t at, struct lahar_buffer *out)
{
    const struct lahar_json_token *tokens = reading->tokens;
    uint32_t ends[LAHAR_JSON_DEPTH_MAX];
    bool is_object[LAHAR_JSON_DEPTH_MAX];
    size_t depth = 0;
    const size_t end = behind(tokens, at);
    bool needs_comma = false;
    for (size_t i = at;; i++) {
        while (depth != 0 && i == ends[depth - 1]) {
            lahar_buffer_put_u8(out, is_object[--depth] ? '}' : ']');
            needs_comma = true;
        }
        if (i >= end) {
            break;
        }
        const struct lahar_json_token *token = &tokens[i];
        if (needs_comma) {
            lahar_buffer_put_u8(out, ',');
        }
        needs_comma = false;
        if (token->kind == LAHAR_JSON_KEY) {
            lahar_buffer_put_u8(out, '"');
            lahar_buffer_put(out, reading->text + token->offset, token->size);
            lahar_buffer_put(out, "\":", 2);
        } else if (token->kind == LAHAR_JSON_OBJECT || token->kind == LAHAR_JSON_ARRAY) {
            is_object[depth] = token->kind == LAHAR_JSON_OBJECT;
            lahar_buffer_put_u8(out, is_object[depth] ? '{' : '[');
            ends[depth++] = token->end;
        } else {
            const lahar_bytes text = get_text(reading, i);
            lahar_buffer_put(out, text.data, text.size);
            needs_comma = true;
        }
    }
    return !out->has_failed;
}

/* Keeps the value as it is written under its key. */
static bool keep(struct reading *reading, lahar_bytes key, size_t at)
{
    const struct lahar_json_token *token = &reading->tokens[at];
    struct lahar_record *record = reading->record;
    bool is_lossy = false;
    lahar_bytes value = {NULL, 0};
    if (token->kind == LAHAR_JSON_NULL) {
        return lahar_record_add_pair(record, reading->strings, key, value, true);
    }
    if (token->kind == LAHAR_JSON_STRING) {
        if (!get_string(reading, token, &value, &is_lossy)) {
            return false;
        }
        if (!is_lossy) {
            return lahar_record_add_pair(record, reading->strings, key, value, false);
        }
    }
    struct lahar_buffer text;
    lahar_buffer_init(&text, record->allocator);
    void *copy = put_value(reading, at, &text)
                     ? lahar_arena_copy(&record->arena, text.data, text.size)
                     : NULL;
    value = (lahar_bytes){copy, text.size};
    lahar_buffer_deinit(&text);
    return copy != NULL && lahar_record_add_pair(record, reading->others, key, value, false);
}

/* --- kinds ------------------------------------------------------------------------------------ */

static enum taken take_string(struct reading *reading, const struct lahar_nifi_key *key, size_t at)
{
    bool is_lossy = false;
    lahar_bytes bytes;
    if (reading->tokens[at].kind != LAHAR_JSON_STRING) {
        return KEPT;
    }
    if (!get_string(reading, &reading->tokens[at], &bytes, &is_lossy) ||
        !lahar_record_add_bytes(reading->record, reading->fields->ids[key->field],
                                lahar_prov_field_type(key->field), bytes)) {
        return REFUSED;
    }
    return is_lossy ? ALSO_KEPT : TAKEN;
}

static enum taken take_flowfile(struct reading *reading, const struct lahar_nifi_key *key,
                                size_t at)
{
    bool is_lossy = false;
    lahar_bytes name;
    lahar_uuid uuid;
    if (reading->tokens[at].kind != LAHAR_JSON_STRING) {
        return KEPT;
    }
    if (!get_string(reading, &reading->tokens[at], &name, &is_lossy)) {
        return REFUSED;
    }
    if (!lahar_prov_identify(name, &uuid) &&
        !lahar_record_add_bytes(reading->record, reading->fields->ids[LAHAR_PROV_FIELD_ENTITY_ID],
                                LAHAR_KEYWORD, name)) {
        return REFUSED;
    }
    lahar_value *value =
        lahar_record_add(reading->record, reading->fields->ids[key->field], LAHAR_UUID);
    if (value == NULL) {
        return REFUSED;
    }
    value->as.uuid = uuid;
    return is_lossy ? ALSO_KEPT : TAKEN;
}

/* Adds names of FlowFiles as uuids, and as they are written where that differs. */
static bool add_names(struct reading *reading, const struct lahar_nifi_key *key,
                      const lahar_bytes *names, size_t count)
{
    struct lahar_record *record = reading->record;
    lahar_uuid *uuids = lahar_arena_allocate(&record->arena, count * sizeof *uuids + 1);
    bool is_canonical = true;
    if (uuids == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        is_canonical = lahar_prov_identify(names[i], &uuids[i]) && is_canonical;
    }
    lahar_value *value =
        lahar_record_add(record, reading->fields->ids[key->field], LAHAR_LIST_UUID);
    if (value == NULL) {
        return false;
    }
    value->as.uuids.items = uuids;
    value->as.uuids.count = count;
    if (is_canonical) {
        return true;
    }
    value = lahar_record_add(record, reading->fields->ids[key->field + 1], LAHAR_LIST_KEYWORD);
    if (value == NULL) {
        return false;
    }
    value->as.keywords.items = names;
    value->as.keywords.count = count;
    return true;
}

static enum taken take_flowfiles(struct reading *reading, const struct lahar_nifi_key *key,
                                 size_t at)
{
    const struct lahar_json_token *tokens = reading->tokens;
    bool is_exact = true;
    size_t count = 0;
    if (tokens[at].kind != LAHAR_JSON_ARRAY) {
        return KEPT;
    }
    lahar_bytes *names =
        lahar_arena_allocate(&reading->record->arena, (tokens[at].end - at) * sizeof *names + 1);
    if (names == NULL) {
        return REFUSED;
    }
    for (size_t i = at + 1; i < tokens[at].end; i = behind(tokens, i)) {
        bool is_lossy = false;
        if (tokens[i].kind != LAHAR_JSON_STRING) {
            is_exact = false;
            continue;
        }
        if (!get_string(reading, &tokens[i], &names[count++], &is_lossy)) {
            return REFUSED;
        }
        is_exact = is_exact && !is_lossy;
    }
    return !add_names(reading, key, names, count) ? REFUSED : is_exact ? TAKEN : ALSO_KEPT;
}

static bool parse_number(const struct reading *reading, size_t at, lahar_type type,
                         lahar_value *value_out)
{
    bool is_canonical = false;
    value_out->type = type;
    return reading->tokens[at].kind == LAHAR_JSON_NUMBER &&
           lahar_value_parse(get_text(reading, at), value_out, &is_canonical) && is_canonical;
}

static enum taken take_number(struct reading *reading, const struct lahar_nifi_key *key, size_t at)
{
    lahar_value parsed = {.field = 0};
    if (!parse_number(reading, at, LAHAR_U64, &parsed)) {
        return KEPT;
    }
    lahar_value *value =
        lahar_record_add(reading->record, reading->fields->ids[key->field], LAHAR_U64);
    if (value == NULL) {
        return REFUSED;
    }
    value->as.u64 = parsed.as.u64;
    return TAKEN;
}

/* Milliseconds that nanoseconds can hold. */
static bool parse_milliseconds(const struct reading *reading, size_t at, int64_t *ns_out)
{
    lahar_value parsed = {.field = 0};
    if (!parse_number(reading, at, LAHAR_I64, &parsed) || parsed.as.i64 > INT64_MAX / NANOSECONDS ||
        parsed.as.i64 < INT64_MIN / NANOSECONDS) {
        return false;
    }
    *ns_out = parsed.as.i64 * NANOSECONDS;
    return true;
}

static enum taken take_milliseconds(struct reading *reading, const struct lahar_nifi_key *key,
                                    size_t at)
{
    int64_t ns = 0;
    if (!parse_milliseconds(reading, at, &ns)) {
        return KEPT;
    }
    lahar_value *value = lahar_record_add(reading->record, reading->fields->ids[key->field],
                                          lahar_prov_field_type(key->field));
    if (value == NULL) {
        return REFUSED;
    }
    value->as.i64 = ns; /* time_ns lies in the same place */
    if (value->type == LAHAR_TIME) {
        value->as.time_ns = ns;
    }
    return TAKEN;
}

static enum taken take_time(struct reading *reading, size_t at)
{
    int64_t ns = 0;
    if (!parse_milliseconds(reading, at, &ns)) {
        return KEPT;
    }
    reading->record->time_ns = ns;
    return TAKEN;
}

static enum taken take_attributes(struct reading *reading, uint32_t field, size_t at)
{
    const struct lahar_json_token *tokens = reading->tokens;
    struct lahar_record *record = reading->record;
    bool is_exact = true;
    if (tokens[at].kind != LAHAR_JSON_OBJECT) {
        return KEPT;
    }
    if (tokens[at].end == at + 1) {
        return lahar_record_add(record, field, LAHAR_MAP) == NULL ? REFUSED : TAKEN;
    }
    const size_t map = lahar_record_map_index(record, field);
    if (map == SIZE_MAX) {
        return REFUSED;
    }
    for (size_t i = at + 1; i < tokens[at].end; i = behind(tokens, i + 1)) {
        bool is_lossy = false;
        lahar_bytes key;
        lahar_bytes value = {NULL, 0};
        if ((tokens[i].flags & LAHAR_JSON_DROPPED) != 0) {
            continue;
        }
        if (!get_string(reading, &tokens[i], &key, &is_lossy)) {
            return REFUSED;
        }
        const struct lahar_json_token *token = &tokens[i + 1];
        is_exact = is_exact && !is_lossy &&
                   (token->kind == LAHAR_JSON_STRING || token->kind == LAHAR_JSON_NULL);
        if (token->kind == LAHAR_JSON_STRING) {
            if (!get_string(reading, token, &value, &is_lossy)) {
                return REFUSED;
            }
            is_exact = is_exact && !is_lossy;
        } else if (token->kind != LAHAR_JSON_OBJECT && token->kind != LAHAR_JSON_ARRAY) {
            value = get_text(reading, i + 1);
        }
        if (!lahar_record_add_pair(record, map, key, value, token->kind == LAHAR_JSON_NULL)) {
            return REFUSED;
        }
    }
    return is_exact ? TAKEN : ALSO_KEPT;
}

/* The text of the event's time need not be kept where it says the same. */
static enum taken take_derived(const struct reading *reading, const struct lahar_nifi_key *key,
                               size_t at)
{
    char text[LAHAR_TIME_TEXT_SIZE_MAX];
    const struct lahar_json_token *token = &reading->tokens[at];
    if (strcmp(key->name, "timestamp") != 0 || token->kind != LAHAR_JSON_STRING ||
        reading->record->time_ns == LAHAR_TIME_OF_ARRIVAL) {
        return KEPT;
    }
    const size_t size = lahar_time_format(reading->record->time_ns, 3, text);
    return size == token->size && memcmp(reading->text + token->offset, text, size) == 0 ? TAKEN
                                                                                         : KEPT;
}

static enum taken take(struct reading *reading, const struct lahar_nifi_key *key, size_t at)
{
    const bool is_null = reading->tokens[at].kind == LAHAR_JSON_NULL;
    if (is_null && key->field != LAHAR_PROV_FIELD_COUNT) {
        lahar_value *value = lahar_record_add(reading->record, reading->fields->ids[key->field],
                                              lahar_prov_field_type(key->field));
        if (value == NULL) {
            return REFUSED;
        }
        value->is_null = true;
        return TAKEN;
    }
    switch (key->kind) {
    case LAHAR_NIFI_STRING:
        return take_string(reading, key, at);
    case LAHAR_NIFI_FLOWFILE:
        return take_flowfile(reading, key, at);
    case LAHAR_NIFI_FLOWFILES:
        return take_flowfiles(reading, key, at);
    case LAHAR_NIFI_NUMBER:
        return take_number(reading, key, at);
    case LAHAR_NIFI_TIME:
        return take_time(reading, at);
    case LAHAR_NIFI_MILLISECONDS:
        return take_milliseconds(reading, key, at);
    case LAHAR_NIFI_UPDATED:
        return take_attributes(reading, LAHAR_FIELD_ATTRIBUTES, at);
    case LAHAR_NIFI_PREVIOUS:
        return take_attributes(reading, LAHAR_FIELD_PREVIOUS, at);
    case LAHAR_NIFI_DERIVED:
        return take_derived(reading, key, at);
    }
    return KEPT;
}

static const struct lahar_nifi_key *find_key(lahar_bytes name)
{
    for (size_t i = 0; i < lahar_nifi_key_count; i++) {
        const char *known = lahar_nifi_keys[i].name;
        if (strlen(known) == name.size && memcmp(known, name.data, name.size) == 0) {
            return &lahar_nifi_keys[i];
        }
    }
    return NULL;
}

lahar_status lahar_nifi_map(const struct lahar_prov_fields *fields, const uint8_t *text,
                            const struct lahar_json_parser *parser, struct lahar_record *record)
{
    struct reading reading = {
        .fields = fields, .text = text, .tokens = parser->tokens, .record = record};
    lahar_record_reset(record);
    reading.strings = lahar_record_map_index(record, fields->ids[LAHAR_PROV_FIELD_NIFI]);
    reading.others = lahar_record_map_index(record, fields->ids[LAHAR_PROV_FIELD_NIFI_JSON]);
    if (reading.strings == SIZE_MAX || reading.others == SIZE_MAX) {
        return LAHAR_NO_MEMORY;
    }
    for (size_t i = 1; i < parser->tokens[0].end; i = behind(parser->tokens, i + 1)) {
        bool is_lossy = false;
        lahar_bytes name;
        if ((parser->tokens[i].flags & LAHAR_JSON_DROPPED) != 0) {
            continue;
        }
        if (!get_string(&reading, &parser->tokens[i], &name, &is_lossy)) {
            return LAHAR_NO_MEMORY;
        }
        const struct lahar_nifi_key *key = find_key(name);
        const enum taken taken = key == NULL ? KEPT : take(&reading, key, i + 1);
        if (taken == REFUSED || (taken != TAKEN && !keep(&reading, name, i + 1))) {
            return LAHAR_NO_MEMORY;
        }
    }
    return lahar_record_has(record, fields->ids[LAHAR_PROV_FIELD_TYPE]) ? LAHAR_OK : LAHAR_INVALID;
}
