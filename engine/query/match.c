/* Evaluation of a bound query on one event. Allocates nothing but the matcher's scratch. */
#include "engine/query/match.h"

#include <string.h>

#include "engine/event/flowfile.h"
#include "engine/event/row.h"
#include "io/base/error.h"

void lahar_matcher_init(struct lahar_matcher *matcher, const struct lahar_schema_catalog *catalog,
                        const lahar_allocator *allocator)
{
    matcher->catalog = catalog;
    matcher->has_failed = false;
    matcher->costly = NULL;
    matcher->regex = (struct lahar_regex_scratch){0};
    lahar_tokenizer_init(&matcher->tokenizer, allocator);
    lahar_buffer_init(&matcher->scratch, allocator);
}

void lahar_matcher_deinit(struct lahar_matcher *matcher)
{
    lahar_tokenizer_deinit(&matcher->tokenizer);
    lahar_buffer_deinit(&matcher->scratch);
    lahar_regex_scratch_deinit(&matcher->regex);
}

lahar_status lahar_matcher_check(struct lahar_matcher *matcher, lahar_error *error)
{
    const struct lahar_test *costly = matcher->costly;
    matcher->costly = NULL;
    if (matcher->has_failed || matcher->tokenizer.folded.has_failed) {
        matcher->has_failed = false;
        lahar_buffer_clear(&matcher->scratch);
        lahar_buffer_clear(&matcher->tokenizer.folded);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to compare values");
    }
    if (costly != NULL) {
        return lahar_query_fail(error, costly->node->value_offset,
                                "this regular expression takes too many steps on some value");
    }
    return LAHAR_OK;
}

/* Passes an answer on; a failure of the scratch would be forgotten with its next use. */
static bool noted(struct lahar_matcher *matcher, bool answer)
{
    matcher->has_failed = matcher->has_failed || matcher->scratch.has_failed;
    return answer && !matcher->scratch.has_failed;
}

/* --- strings ----------------------------------------------------------------- */

/* Bytes of the character at p; what is not UTF-8 counts byte by byte. */
static size_t character_size(const uint8_t *p, size_t left)
{
    const size_t size = *p < 0xc0 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
    if (size > left) {
        return 1;
    }
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 1;
        }
    }
    return size;
}

bool lahar_glob(const void *pattern, size_t pattern_size, const void *text, size_t size)
{
    const uint8_t *p = pattern;
    const uint8_t *t = text;
    size_t pi = 0;
    size_t ti = 0;
    size_t star = SIZE_MAX; /* place behind the last '*' met */
    size_t resume = 0;      /* where the text went on behind what that '*' stands for */
    while (ti < size) {
        if (pi < pattern_size && p[pi] == '*') {
            star = ++pi;
            resume = ti;
        } else if (pi < pattern_size && p[pi] == '?') {
            ti += character_size(t + ti, size - ti);
            pi++;
        } else if (pi < pattern_size && p[pi] == t[ti]) {
            pi++;
            ti++;
        } else if (star != SIZE_MAX) {
            pi = star;
            ti = ++resume;
        } else {
            return false;
        }
    }
    while (pi < pattern_size && p[pi] == '*') {
        pi++;
    }
    return pi == pattern_size;
}

static bool equals(lahar_bytes bytes, const void *value, size_t size)
{
    return bytes.size == size && (size == 0 || memcmp(bytes.data, value, size) == 0);
}

static bool equals_folded(struct lahar_matcher *matcher, lahar_bytes folded, const uint8_t *value,
                          size_t size)
{
    const uint8_t *expected = folded.data;
    for (size_t i = 0; i < size; i++) {
        const uint8_t c = value[i];
        if (c >= 0x80) {
            lahar_buffer_clear(&matcher->scratch);
            lahar_fold(&matcher->scratch, value, size);
            return noted(matcher, equals(folded, matcher->scratch.data, matcher->scratch.size));
        }
        if (i >= folded.size || expected[i] != (c >= 'A' && c <= 'Z' ? c | 0x20 : c)) {
            return false;
        }
    }
    return size == folded.size;
}

static bool glob_folded(struct lahar_matcher *matcher, lahar_bytes pattern, const void *value,
                        size_t size)
{
    lahar_buffer_clear(&matcher->scratch);
    lahar_fold(&matcher->scratch, value, size);
    return noted(matcher, lahar_glob(pattern.data, pattern.size, matcher->scratch.data,
                                     matcher->scratch.size));
}

static bool in_number_range(const struct lahar_test *test, struct lahar_number number)
{
    return test->is_number && lahar_number_in_range(&test->range, number);
}

static bool contains(struct lahar_matcher *matcher, const struct lahar_test *test,
                     const void *value, size_t size)
{
    const lahar_bytes needle = test->node->value;
    if (test->node->op == LAHAR_TEST_CONTAINS_EXACT) {
        return needle.size == 0 ||
               (size != 0 && memmem(value, size, needle.data, needle.size) != NULL);
    }
    return noted(matcher, lahar_folded_contains(value, size, test->folded.data, test->folded.size,
                                                &matcher->scratch));
}

static bool match_regex(struct lahar_matcher *matcher, const struct lahar_test *test,
                        const void *value, size_t size)
{
    switch (lahar_regex_match(test->regex, &matcher->regex, value, size)) {
    case LAHAR_REGEX_MATCH:
        return true;
    case LAHAR_REGEX_NO_MATCH:
        break;
    case LAHAR_REGEX_TOO_COSTLY:
        matcher->costly = test;
        break;
    case LAHAR_REGEX_NO_MEMORY:
        matcher->has_failed = true;
        break;
    }
    return false;
}

/* What ':' apart from tests do alike on a keyword and on a text. */
static bool match_whole(struct lahar_matcher *matcher, const struct lahar_test *test,
                        const void *value, size_t size)
{
    const struct lahar_query_node *node = test->node;
    struct lahar_number number;
    switch (node->op) {
    case LAHAR_TEST_PRESENT:
        return true;
    case LAHAR_TEST_CONTAINS:
    case LAHAR_TEST_CONTAINS_EXACT:
        return contains(matcher, test, value, size);
    case LAHAR_TEST_REGEX:
        return match_regex(matcher, test, value, size);
    case LAHAR_TEST_RANGE:
        return lahar_number_of_value(value, size, &number) && in_number_range(test, number);
    case LAHAR_TEST_EQUAL:
    case LAHAR_TEST_NOT_EQUAL:
    default:
        return node->is_pattern ? lahar_glob(node->value.data, node->value.size, value, size)
                                : equals(node->value, value, size);
    }
}

bool lahar_match_keyword(struct lahar_matcher *matcher, const struct lahar_test *test,
                         const void *value, size_t size)
{
    if (test->node->op != LAHAR_TEST_MATCH) {
        return match_whole(matcher, test, value, size);
    }
    return test->node->is_pattern ? glob_folded(matcher, test->folded, value, size)
                                  : equals_folded(matcher, test->folded, value, size);
}

bool lahar_match_token(const struct lahar_test *test, const void *term, size_t size)
{
    return lahar_glob(test->folded.data, test->folded.size, term, size);
}

static bool match_pattern_in_text(struct lahar_matcher *matcher, const struct lahar_test *test,
                                  const void *text, size_t size)
{
    if (!test->is_token_pattern) {
        return glob_folded(matcher, test->anywhere, text, size);
    }
    struct lahar_token token;
    lahar_tokenizer_start(&matcher->tokenizer, text, size);
    while (lahar_tokenizer_next(&matcher->tokenizer, &token)) {
        if (lahar_match_token(test, token.term, token.term_size)) {
            return true;
        }
    }
    return false;
}

bool lahar_match_text(struct lahar_matcher *matcher, const struct lahar_test *test,
                      const void *text, size_t size)
{
    if (test->node->op != LAHAR_TEST_MATCH) {
        return match_whole(matcher, test, text, size);
    }
    if (test->node->is_pattern) {
        return match_pattern_in_text(matcher, test, text, size);
    }
    if (test->token_count == 0) {
        return test->folded.size == 0
                   ? size == 0
                   : noted(matcher, lahar_folded_contains(text, size, test->folded.data,
                                                          test->folded.size, &matcher->scratch));
    }
    const lahar_bytes phrase = test->token_count == 1 ? test->tokens[0].term : test->folded;
    return noted(matcher,
                 lahar_phrase_matches(text, size, phrase.data, phrase.size, &matcher->scratch));
}

/* --- values ------------------------------------------------------------------ */

static bool match_uuid(struct lahar_matcher *matcher, const struct lahar_test *test,
                       const lahar_uuid *uuid)
{
    const struct lahar_query_node *node = test->node;
    char text[LAHAR_UUID_TEXT_SIZE];
    if (node->op == LAHAR_TEST_PRESENT) {
        return true;
    }
    if (node->op == LAHAR_TEST_RANGE) {
        return false;
    }
    if (node->op == LAHAR_TEST_REGEX) {
        lahar_query_uuid_format(uuid, text);
        return match_regex(matcher, test, text, sizeof text);
    }
    if (node->is_pattern || node->op == LAHAR_TEST_CONTAINS ||
        node->op == LAHAR_TEST_CONTAINS_EXACT) {
        lahar_query_uuid_format(uuid, text);
        return node->is_pattern
                   ? lahar_glob(test->folded.data, test->folded.size, text, sizeof text)
                   : contains(matcher, test, text, sizeof text);
    }
    return test->is_uuid && memcmp(test->uuid.bytes, uuid->bytes, sizeof uuid->bytes) == 0;
}

static bool match_number(const struct lahar_test *test, struct lahar_number number)
{
    return test->node->op == LAHAR_TEST_PRESENT || in_number_range(test, number);
}

static bool match_time(const struct lahar_test *test, int64_t time_ns)
{
    return test->node->op == LAHAR_TEST_PRESENT ||
           (test->is_time && time_ns >= test->time.first_ns && time_ns <= test->time.last_ns);
}

static bool match_bool(const struct lahar_test *test, bool boolean)
{
    return test->node->op == LAHAR_TEST_PRESENT ||
           (test->node->op != LAHAR_TEST_RANGE && test->is_bool && test->boolean == boolean);
}

/* Bytes are compared exactly by ':' too: they have no case. */
static bool match_bytes(struct lahar_matcher *matcher, const struct lahar_test *test,
                        lahar_bytes bytes)
{
    return test->node->op != LAHAR_TEST_RANGE && match_whole(matcher, test, bytes.data, bytes.size);
}

/* key NULL: any. updated: value holds previous attributes, of which only those still in effect
 * count. */
static bool match_pairs(struct lahar_matcher *matcher, const struct lahar_test *test,
                        const lahar_value *value, const lahar_bytes *key, bool is_previous,
                        const lahar_value *updated)
{
    for (size_t i = 0; i < value->as.map.count; i++) {
        const lahar_pair *pair = &value->as.map.items[i];
        if (pair->is_null || (key != NULL && !equals(*key, pair->key.data, pair->key.size)) ||
            (is_previous && !lahar_previous_is_effective(value, i, updated))) {
            continue;
        }
        const bool is_match =
            test->target == LAHAR_TARGET_ANYWHERE
                ? lahar_match_text(matcher, test, pair->value.data, pair->value.size)
                : lahar_match_keyword(matcher, test, pair->value.data, pair->value.size);
        if (is_match) {
            return true;
        }
    }
    return false;
}

static bool match_map(struct lahar_matcher *matcher, const struct lahar_test *test,
                      const lahar_value *value, const lahar_bytes *key)
{
    return match_pairs(matcher, test, value, key, false, NULL);
}

/* Whether any element of the value satisfies the test. */
static bool match_value(struct lahar_matcher *matcher, const struct lahar_test *test,
                        const lahar_value *value)
{
    switch (value->type) {
    case LAHAR_KEYWORD:
        return lahar_match_keyword(matcher, test, value->as.bytes.data, value->as.bytes.size);
    case LAHAR_TEXT:
        return lahar_match_text(matcher, test, value->as.bytes.data, value->as.bytes.size);
    case LAHAR_UUID:
        return match_uuid(matcher, test, &value->as.uuid);
    case LAHAR_I64:
        return match_number(test, (struct lahar_number){LAHAR_NUMBER_I64, {.i64 = value->as.i64}});
    case LAHAR_U64:
        return match_number(test, (struct lahar_number){LAHAR_NUMBER_U64, {.u64 = value->as.u64}});
    case LAHAR_F64:
        return match_number(test, (struct lahar_number){LAHAR_NUMBER_F64, {.f64 = value->as.f64}});
    case LAHAR_BOOL:
        return match_bool(test, value->as.boolean);
    case LAHAR_TIME:
        return match_time(test, value->as.time_ns);
    case LAHAR_BYTES:
        return match_bytes(matcher, test, value->as.bytes);
    case LAHAR_LIST_UUID:
        for (size_t i = 0; i < value->as.uuids.count; i++) {
            if (match_uuid(matcher, test, &value->as.uuids.items[i])) {
                return true;
            }
        }
        return test->node->op == LAHAR_TEST_PRESENT;
    case LAHAR_LIST_KEYWORD:
        for (size_t i = 0; i < value->as.keywords.count; i++) {
            const lahar_bytes *item = &value->as.keywords.items[i];
            if (lahar_match_keyword(matcher, test, item->data, item->size)) {
                return true;
            }
        }
        return test->node->op == LAHAR_TEST_PRESENT;
    case LAHAR_MAP:
        return test->node->op == LAHAR_TEST_PRESENT || match_map(matcher, test, value, NULL);
    }
    return false;
}

/* --- targets ----------------------------------------------------------------- */

bool lahar_is_searched_anywhere(const char *name, size_t size)
{
    static const char raw[] = "_raw_record";
    return size == 0 || name[0] != '_' || (size == sizeof raw - 1 && memcmp(name, raw, size) == 0);
}

static const lahar_value *find_map(const lahar_event *event, uint32_t field)
{
    const lahar_value *map = lahar_event_find(event, field);
    return map != NULL && !map->is_null && map->type == LAHAR_MAP ? map : NULL;
}

/* Attributes that an event has from before. */
static bool match_inherited(struct lahar_matcher *matcher, const struct lahar_test *test,
                            const lahar_event *event, const lahar_bytes *key)
{
    const lahar_value *previous = find_map(event, LAHAR_FIELD_PREVIOUS);
    return previous != NULL &&
           match_pairs(matcher, test, previous, key, true, find_map(event, LAHAR_FIELD_ATTRIBUTES));
}

static bool match_anywhere(struct lahar_matcher *matcher, const struct lahar_test *test,
                           const lahar_event *event)
{
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        const bool is_single = value->type == LAHAR_KEYWORD || value->type == LAHAR_TEXT;
        if (value->is_null || value->field == LAHAR_FIELD_PREVIOUS ||
            (!is_single && value->type != LAHAR_MAP && value->type != LAHAR_LIST_KEYWORD)) {
            continue;
        }
        const char *name = lahar_schema_field_name(matcher->catalog, value->field);
        if (name == NULL || !lahar_is_searched_anywhere(name, strlen(name))) {
            continue;
        }
        bool is_match = false;
        if (is_single) {
            is_match = lahar_match_text(matcher, test, value->as.bytes.data, value->as.bytes.size);
        } else if (value->type == LAHAR_MAP) {
            is_match = match_map(matcher, test, value, NULL);
        } else {
            for (size_t j = 0; j < value->as.keywords.count && !is_match; j++) {
                is_match = lahar_match_text(matcher, test, value->as.keywords.items[j].data,
                                            value->as.keywords.items[j].size);
            }
        }
        if (is_match) {
            return true;
        }
    }
    return match_inherited(matcher, test, event, NULL);
}

static bool match_key(struct lahar_matcher *matcher, const struct lahar_test *test,
                      const lahar_event *event, uint32_t map_field, const lahar_bytes *key)
{
    const lahar_value *map = find_map(event, map_field);
    if (map != NULL && match_map(matcher, test, map, key)) {
        return true;
    }
    return map_field == LAHAR_FIELD_ATTRIBUTES && match_inherited(matcher, test, event, key);
}

static bool match_relative(struct lahar_matcher *matcher, const struct lahar_test *test,
                           const lahar_event *event, uint32_t field)
{
    const lahar_value *list = lahar_event_find(event, field);
    return list != NULL && !list->is_null && list->type == LAHAR_LIST_UUID &&
           match_value(matcher, test, list);
}

/* An event names the FlowFile as parent, as child, or as that of the system it came from. */
static bool match_relatives(struct lahar_matcher *matcher, const struct lahar_test *test,
                            const lahar_event *event)
{
    if (match_relative(matcher, test, event, test->parents_field) ||
        match_relative(matcher, test, event, test->children_field)) {
        return true;
    }
    const lahar_value *source = lahar_event_find(event, test->source_system_field);
    lahar_uuid uuid;
    return source != NULL && !source->is_null && source->type == LAHAR_KEYWORD &&
           lahar_source_system_uuid(source->as.bytes, &uuid) && match_uuid(matcher, test, &uuid);
}

static bool match_field(struct lahar_matcher *matcher, const struct lahar_test *test,
                        const lahar_event *event)
{
    const lahar_value *value = test->has_field ? lahar_event_find(event, test->field) : NULL;
    bool is_match = value != NULL && !value->is_null && match_value(matcher, test, value);
    if (!is_match && test->has_relatives) {
        is_match = match_relatives(matcher, test, event);
    }
    if (!is_match && test->has_map) {
        is_match = match_key(matcher, test, event, test->map_field, &test->map_key);
    }
    if (is_match || value != NULL) {
        return is_match;
    }
    const struct lahar_stream *stream = lahar_schema_stream(matcher->catalog, event->stream);
    const bool is_declared =
        test->has_field && stream != NULL && lahar_stream_find_field(stream, test->field) != NULL;
    return !is_declared && match_key(matcher, test, event, LAHAR_FIELD_ATTRIBUTES, &test->key);
}

/* Keys are compared as they are: "Path" and "path" are two attributes. */
static bool match_changed(struct lahar_matcher *matcher, const struct lahar_test *test,
                          const lahar_event *event)
{
    const struct lahar_query_node *node = test->node;
    const bool is_point = node->op == LAHAR_TEST_MATCH && !node->is_pattern;
    const lahar_value *updated = find_map(event, LAHAR_FIELD_ATTRIBUTES);
    const lahar_value *previous = find_map(event, LAHAR_FIELD_PREVIOUS);
    for (size_t i = 0; updated != NULL && i < updated->as.map.count; i++) {
        const lahar_bytes key = updated->as.map.items[i].key;
        const bool is_named =
            is_point           ? equals(node->value, key.data, key.size)
            : node->is_pattern ? lahar_glob(node->value.data, node->value.size, key.data, key.size)
                               : match_whole(matcher, test, key.data, key.size);
        if (is_named && lahar_updated_differs(updated, i, previous)) {
            return true;
        }
    }
    return false;
}

/* The test, NOT_EQUAL read as EQUAL. */
static bool match_target(struct lahar_matcher *matcher, const struct lahar_test *test,
                         const lahar_event *event)
{
    const char *name = NULL;
    switch (test->target) {
    case LAHAR_TARGET_ANYWHERE:
        return match_anywhere(matcher, test, event);
    case LAHAR_TARGET_ID:
        return match_number(test, (struct lahar_number){LAHAR_NUMBER_U64, {.u64 = event->id}});
    case LAHAR_TARGET_TIME:
        return match_time(test, event->time_ns);
    case LAHAR_TARGET_ARRIVAL:
        return match_time(test, event->arrival_ns);
    case LAHAR_TARGET_STREAM: {
        const struct lahar_stream *stream = lahar_schema_stream(matcher->catalog, event->stream);
        name = stream == NULL ? "" : stream->name;
        return lahar_match_keyword(matcher, test, name, strlen(name));
    }
    case LAHAR_TARGET_ATTRIBUTE:
        return match_key(matcher, test, event, test->field, &test->key);
    case LAHAR_TARGET_CHANGED:
        return match_changed(matcher, test, event);
    case LAHAR_TARGET_FIELD:
        return match_field(matcher, test, event);
    }
    return false;
}

static bool is_present(const struct lahar_matcher *matcher, const struct lahar_test *test,
                       const lahar_event *event);

static bool match_test(struct lahar_matcher *matcher, const struct lahar_test *test,
                       const lahar_event *event)
{
    if (test->node->op != LAHAR_TEST_NOT_EQUAL) {
        return match_target(matcher, test, event);
    }
    return is_present(matcher, test, event) && !match_target(matcher, test, event);
}

static bool key_is_in(const lahar_value *map, const lahar_bytes *key)
{
    for (size_t i = 0; map != NULL && i < map->as.map.count; i++) {
        const lahar_pair *pair = &map->as.map.items[i];
        if (!pair->is_null && equals(*key, pair->key.data, pair->key.size)) {
            return true;
        }
    }
    return false;
}

static bool key_is_present(const lahar_event *event, uint32_t map_field, const lahar_bytes *key)
{
    const lahar_value *map = find_map(event, map_field);
    if (key_is_in(map, key)) {
        return true;
    }
    return map_field == LAHAR_FIELD_ATTRIBUTES &&
           key_is_in(find_map(event, LAHAR_FIELD_PREVIOUS), key) &&
           !lahar_map_has_key(map, *key, 0);
}

static bool is_present(const struct lahar_matcher *matcher, const struct lahar_test *test,
                       const lahar_event *event)
{
    if (test->target == LAHAR_TARGET_ATTRIBUTE) {
        return key_is_present(event, test->field, &test->key);
    }
    if (test->target != LAHAR_TARGET_FIELD) {
        return true;
    }
    const lahar_value *value = test->has_field ? lahar_event_find(event, test->field) : NULL;
    if (value != NULL) {
        return !value->is_null;
    }
    if (test->has_map && key_is_present(event, test->map_field, &test->map_key)) {
        return true;
    }
    const struct lahar_stream *stream = lahar_schema_stream(matcher->catalog, event->stream);
    const bool is_declared =
        test->has_field && stream != NULL && lahar_stream_find_field(stream, test->field) != NULL;
    return !is_declared && key_is_present(event, LAHAR_FIELD_ATTRIBUTES, &test->key);
}

static bool match_node(struct lahar_matcher *matcher, const struct lahar_query_node *node,
                       const lahar_event *event)
{
    const struct lahar_query_node *child = node->child;
    switch (node->kind) {
    case LAHAR_NODE_ALL:
        return true;
    case LAHAR_NODE_TEST:
        return match_test(matcher, node->test, event);
    case LAHAR_NODE_NOT:
        return !match_node(matcher, child, event);
    case LAHAR_NODE_AND:
        while (child != NULL && match_node(matcher, child, event)) {
            child = child->next;
        }
        return child == NULL;
    case LAHAR_NODE_OR:
        while (child != NULL && !match_node(matcher, child, event)) {
            child = child->next;
        }
        return child != NULL;
    }
    return false;
}

lahar_status lahar_match(struct lahar_matcher *matcher, const struct lahar_query_node *node,
                         const lahar_event *event, bool *matches_out, lahar_error *error)
{
    *matches_out = match_node(matcher, node, event);
    const lahar_status status = lahar_matcher_check(matcher, error);
    *matches_out = *matches_out && status == LAHAR_OK;
    return status;
}
