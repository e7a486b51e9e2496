/* Binding of names and literals. */
#include "engine/query/bind.h"

#include <string.h>

#include "engine/query/regex_literal.h"
#include "io/base/error.h"

struct binder {
    const struct lahar_bind_context *context;
    struct lahar_tokenizer tokenizer;
    struct lahar_buffer scratch;
    lahar_error *error;
};

static bool equals(lahar_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static bool starts_with(lahar_bytes bytes, const char *text)
{
    return bytes.size > strlen(text) && memcmp(bytes.data, text, strlen(text)) == 0;
}

static lahar_bytes skip(lahar_bytes bytes, size_t size)
{
    return (lahar_bytes){(const char *)bytes.data + size, bytes.size - size};
}

static lahar_status no_memory(struct binder *binder)
{
    return lahar_fail(binder->error, LAHAR_NO_MEMORY, "no memory to prepare a query");
}

/* The types that streams give the name, as bits by lahar_type; 0 when none declares it. */
static unsigned declared_types(const struct lahar_schema_catalog *catalog, uint32_t field)
{
    unsigned types = 0;
    for (uint32_t i = 0; i < lahar_schema_stream_count(catalog); i++) {
        const struct lahar_stream_field *declared =
            lahar_stream_find_field(lahar_schema_stream(catalog, i), field);
        types |= declared == NULL ? 0 : 1U << declared->type;
    }
    return types;
}

/* --- names ------------------------------------------------------------------- */

/* A map of any stream whose name and '.' begin the name: its field, and the key behind. */
static void bind_map(struct binder *binder, struct lahar_test *test)
{
    const struct lahar_schema_catalog *catalog = binder->context->catalog;
    const char *name = test->key.data;
    for (size_t i = 1; i + 1 < test->key.size; i++) {
        uint32_t field = 0;
        if (name[i] == '.' && lahar_schema_find_field(catalog, name, i, &field) &&
            (declared_types(catalog, field) >> LAHAR_MAP & 1) != 0) {
            test->has_map = true;
            test->map_field = field;
            test->map_key = skip(test->key, i + 1);
            return;
        }
    }
}

static void bind_relatives(const struct lahar_schema_catalog *catalog, struct lahar_test *test)
{
    if (equals(test->key, "uuid") && (test->node->op == LAHAR_TEST_MATCH) &&
        !test->node->is_pattern) {
        test->has_relatives =
            lahar_schema_find_field(catalog, "parents", 7, &test->parents_field) &&
            lahar_schema_find_field(catalog, "children", 8, &test->children_field) &&
            lahar_schema_find_field(catalog, "source_system", 13, &test->source_system_field);
    }
}

static void bind_name(struct binder *binder, struct lahar_test *test)
{
    static const struct {
        const char *name;
        enum lahar_target target;
    } headers[] = {{"id", LAHAR_TARGET_ID},
                   {"time", LAHAR_TARGET_TIME},
                   {"arrival", LAHAR_TARGET_ARRIVAL},
                   {"stream", LAHAR_TARGET_STREAM}};
    const struct lahar_query_node *node = test->node;
    const struct lahar_schema_catalog *catalog = binder->context->catalog;
    test->key = node->name;
    if (!node->has_name) {
        test->target = LAHAR_TARGET_ANYWHERE;
        return;
    }
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        if (equals(node->name, headers[i].name)) {
            test->target = headers[i].target;
            return;
        }
    }
    if (starts_with(node->name, "attr.") || starts_with(node->name, "prev.")) {
        test->target = LAHAR_TARGET_ATTRIBUTE;
        test->field =
            starts_with(node->name, "attr.") ? LAHAR_FIELD_ATTRIBUTES : LAHAR_FIELD_PREVIOUS;
        test->key = skip(node->name, 5);
        return;
    }
    test->target = LAHAR_TARGET_FIELD;
    if (equals(node->name, "_raw_message")) {
        /* FileLog's older name of _raw_record. */
        test->has_field = true;
        test->field = LAHAR_FIELD_RAW_RECORD;
        return;
    }
    test->has_field =
        lahar_schema_find_field(catalog, node->name.data, node->name.size, &test->field) &&
        declared_types(catalog, test->field) != 0;
    if (equals(node->name, "changed") && !test->has_field &&
        declared_types(catalog, LAHAR_FIELD_PREVIOUS) != 0) {
        test->target = LAHAR_TARGET_CHANGED;
        return;
    }
    bind_map(binder, test);
    bind_relatives(catalog, test);
}

/* --- values ------------------------------------------------------------------ */

/* The value without its wildcards: what a pattern asks for literally. */
static bool only_token_characters(struct binder *binder, lahar_bytes pattern)
{
    struct lahar_buffer *scratch = &binder->scratch;
    const uint8_t *p = pattern.data;
    lahar_buffer_clear(scratch);
    for (size_t i = 0; i < pattern.size; i++) {
        if (p[i] != '*' && p[i] != '?') {
            lahar_buffer_put_u8(scratch, p[i]);
        }
    }
    if (scratch->size == 0) {
        return true;
    }
    struct lahar_token token;
    lahar_tokenizer_start(&binder->tokenizer, scratch->data, scratch->size);
    return lahar_tokenizer_next(&binder->tokenizer, &token) && token.start == 0 &&
           token.end == scratch->size;
}

static lahar_status bind_tokens(struct binder *binder, struct lahar_test *test)
{
    const lahar_bytes value = test->node->value;
    struct lahar_token token;
    struct lahar_test_token *tokens = NULL;
    size_t count = 0;
    lahar_tokenizer_start(&binder->tokenizer, value.data, value.size);
    while (lahar_tokenizer_next(&binder->tokenizer, &token)) {
        count++;
    }
    if (count != 0) {
        tokens = lahar_arena_allocate(binder->context->arena, count * sizeof *tokens);
        if (tokens == NULL) {
            return no_memory(binder);
        }
    }
    lahar_tokenizer_start(&binder->tokenizer, value.data, value.size);
    for (size_t i = 0; i < count && lahar_tokenizer_next(&binder->tokenizer, &token); i++) {
        void *term = lahar_arena_copy(binder->context->arena, token.term, token.term_size);
        if (term == NULL) {
            return no_memory(binder);
        }
        tokens[i] = (struct lahar_test_token){
            {term, token.term_size}, token.start == 0, token.end == value.size};
    }
    test->tokens = tokens;
    test->token_count = count;
    return binder->tokenizer.folded.has_failed ? no_memory(binder) : LAHAR_OK;
}

static lahar_status bind_pattern(struct binder *binder, struct lahar_test *test)
{
    const size_t size = test->folded.size;
    uint8_t *anywhere = lahar_arena_allocate(binder->context->arena, size + 2);
    if (anywhere == NULL) {
        return no_memory(binder);
    }
    anywhere[0] = '*';
    memcpy(anywhere + 1, test->folded.data, size);
    anywhere[size + 1] = '*';
    test->anywhere = (lahar_bytes){anywhere, size + 2};
    test->is_token_pattern = only_token_characters(binder, test->node->value);
    return binder->scratch.has_failed || binder->tokenizer.folded.has_failed ? no_memory(binder)
                                                                             : LAHAR_OK;
}

static lahar_status bind_text(struct binder *binder, struct lahar_test *test)
{
    const struct lahar_query_node *node = test->node;
    lahar_buffer_clear(&binder->scratch);
    lahar_fold(&binder->scratch, node->value.data, node->value.size);
    void *copy =
        lahar_arena_copy(binder->context->arena, binder->scratch.data, binder->scratch.size);
    if (binder->scratch.has_failed || (copy == NULL && binder->scratch.size != 0)) {
        return no_memory(binder);
    }
    test->folded = (lahar_bytes){copy, binder->scratch.size};
    if (node->is_pattern) {
        return bind_pattern(binder, test);
    }
    return bind_tokens(binder, test);
}

/* A substring that the expression cannot do without, as a test of its own, which the index
 * answers. */
static lahar_status bind_required(struct binder *binder, struct lahar_test *test)
{
    const struct lahar_query_node *node = test->node;
    struct lahar_buffer literal;
    lahar_status status = LAHAR_OK;
    lahar_buffer_init(&literal, binder->context->arena->allocator);
    lahar_regex_required(node->value, node->ignores_case, &literal);
    if (literal.has_failed) {
        status = no_memory(binder);
    } else if (literal.size != 0) {
        struct lahar_arena *arena = binder->context->arena;
        struct lahar_query_node *substring = lahar_arena_allocate(arena, sizeof *substring);
        struct lahar_test *required = lahar_arena_allocate(arena, sizeof *required);
        void *copy = lahar_arena_copy(arena, literal.data, literal.size);
        if (substring == NULL || required == NULL || copy == NULL) {
            status = no_memory(binder);
        } else {
            *substring = (struct lahar_query_node){.kind = LAHAR_NODE_TEST,
                                                   .op = LAHAR_TEST_CONTAINS,
                                                   .value = {copy, literal.size},
                                                   .test = required};
            *required = (struct lahar_test){.node = substring};
            status = bind_text(binder, required);
            test->required = required;
        }
    }
    lahar_buffer_deinit(&literal);
    return status;
}

static lahar_status bind_regex(struct binder *binder, struct lahar_test *test)
{
    const struct lahar_query_node *node = test->node;
    lahar_error reason = {0};
    const lahar_status status =
        lahar_regex_compile(node->value, node->ignores_case ? LAHAR_REGEX_IGNORE_CASE : 0,
                            binder->context->arena->allocator, &test->regex, &reason);
    if (status == LAHAR_INVALID) {
        /* Behind the slash that opens it. */
        return lahar_query_fail(binder->error, node->value_offset + 1 + reason.offset, "%s",
                                reason.message);
    }
    return status == LAHAR_OK ? bind_required(binder, test) : no_memory(binder);
}

static bool text_is(lahar_bytes folded, const char *text)
{
    return equals(folded, text);
}

/* A value that stands for itself, of ':' '=' '!='. */
static void bind_point(struct binder *binder, struct lahar_test *test)
{
    const lahar_bytes value = test->node->value;
    const char *reason = NULL;
    test->is_number = lahar_number_parse(value.data, value.size, 1, &test->range.low);
    test->range.high = test->range.low;
    test->range.has_low = test->range.has_high = true;
    test->range.low_is_inclusive = test->range.high_is_inclusive = true;
    test->is_time = lahar_query_time_parse(value.data, value.size, binder->context->now_ns,
                                           binder->context->zone, &test->time, &reason);
    test->is_uuid = lahar_query_uuid_parse(value.data, value.size, &test->uuid);
    test->boolean = text_is(test->folded, "true");
    test->is_bool = test->boolean || text_is(test->folded, "false");
}

static bool bind_time_range(struct binder *binder, struct lahar_test *test,
                            const struct lahar_query_end **wrong_out, const char **reason_out)
{
    const struct lahar_query_end *low = &test->node->low;
    const struct lahar_query_end *high = &test->node->high;
    struct lahar_interval interval;
    test->time = (struct lahar_interval){INT64_MIN, INT64_MAX};
    bool is_empty = false;
    *wrong_out = low;
    if (low->is_given) {
        if (!lahar_query_time_parse(low->text.data, low->text.size, binder->context->now_ns,
                                    binder->context->zone, &interval, reason_out)) {
            return false;
        }
        is_empty = !low->is_inclusive && interval.last_ns == INT64_MAX;
        test->time.first_ns = low->is_inclusive ? interval.first_ns
                              : is_empty        ? INT64_MAX
                                                : interval.last_ns + 1;
    }
    *wrong_out = high;
    if (high->is_given) {
        if (!lahar_query_time_parse(high->text.data, high->text.size, binder->context->now_ns,
                                    binder->context->zone, &interval, reason_out)) {
            return false;
        }
        is_empty = is_empty || (!high->is_inclusive && interval.first_ns == INT64_MIN);
        test->time.last_ns = high->is_inclusive ? interval.last_ns
                             : is_empty         ? INT64_MIN
                                                : interval.first_ns - 1;
    }
    if (is_empty) {
        test->time = (struct lahar_interval){INT64_MAX, INT64_MIN};
    }
    return true;
}

static bool bind_number_range(struct lahar_test *test, const struct lahar_query_end **wrong_out)
{
    const struct lahar_query_end *low = &test->node->low;
    const struct lahar_query_end *high = &test->node->high;
    test->range.has_low = low->is_given;
    test->range.has_high = high->is_given;
    test->range.low_is_inclusive = low->is_inclusive;
    test->range.high_is_inclusive = high->is_inclusive;
    *wrong_out = low;
    if (low->is_given && !lahar_number_parse(low->text.data, low->text.size, 1, &test->range.low)) {
        return false;
    }
    *wrong_out = high;
    return !high->is_given ||
           lahar_number_parse(high->text.data, high->text.size, 1, &test->range.high);
}

/* A range is right when some type that the field has can be compared with its ends. */
static lahar_status bind_range(struct binder *binder, struct lahar_test *test, unsigned types)
{
    const struct lahar_query_end *wrong_time = NULL;
    const struct lahar_query_end *wrong_number = NULL;
    const char *reason = NULL;
    test->is_time = bind_time_range(binder, test, &wrong_time, &reason);
    test->is_number = bind_number_range(test, &wrong_number);
    const unsigned times = 1U << LAHAR_TIME;
    if ((test->is_time && (types & times) != 0) || (test->is_number && (types & ~times) != 0)) {
        return LAHAR_OK;
    }
    if ((types & times) != 0 && reason != NULL) {
        return lahar_query_fail(binder->error, wrong_time->offset, "%s", reason);
    }
    return lahar_query_fail(binder->error, wrong_number->offset,
                            "expected a number, with a unit or without: 10, 20KiB, 1.5h");
}

/* What the value must be for a field that has one of these types and no other. */
static lahar_status check_point(struct binder *binder, const struct lahar_test *test,
                                unsigned types)
{
    const unsigned numbers = 1U << LAHAR_I64 | 1U << LAHAR_U64 | 1U << LAHAR_F64;
    const unsigned uuids = 1U << LAHAR_UUID | 1U << LAHAR_LIST_UUID;
    const uint32_t offset = test->node->value_offset;
    if ((types & ~(numbers | 1U << LAHAR_TIME | 1U << LAHAR_BOOL | uuids)) != 0 ||
        (test->node->is_pattern && (types & uuids) != 0) ||
        (test->is_number && (types & numbers) != 0) ||
        (test->is_time && (types >> LAHAR_TIME & 1) != 0) ||
        (test->is_uuid && (types & uuids) != 0) ||
        (test->is_bool && (types >> LAHAR_BOOL & 1) != 0)) {
        return LAHAR_OK;
    }
    const char *const expected = (types & numbers) != 0 ? "a number, with a unit or without"
                                 : (types & uuids) != 0 ? "a uuid, or the beginning of one and '*'"
                                 : (types >> LAHAR_BOOL & 1) != 0
                                     ? "true or false"
                                     : "a time: 2015-01-06, 2015-01-06T10:00:05Z or now-1h";
    return lahar_query_fail(binder->error, offset, "expected %s", expected);
}

/* Whether the name may be an attribute of events whose stream does not declare it. */
static bool may_be_attribute(const struct lahar_schema_catalog *catalog, uint32_t field)
{
    for (uint32_t i = 0; i < lahar_schema_stream_count(catalog); i++) {
        const struct lahar_stream *stream = lahar_schema_stream(catalog, i);
        if (lahar_stream_find_field(stream, field) == NULL &&
            lahar_stream_find_field(stream, LAHAR_FIELD_ATTRIBUTES) != NULL) {
            return true;
        }
    }
    return false;
}

/* The types a value that this test looks at may have. Attributes are keywords. */
static unsigned types_of(struct binder *binder, const struct lahar_test *test)
{
    const struct lahar_schema_catalog *catalog = binder->context->catalog;
    const unsigned attribute = 1U << LAHAR_KEYWORD;
    switch (test->target) {
    case LAHAR_TARGET_ID:
        return 1U << LAHAR_U64;
    case LAHAR_TARGET_TIME:
    case LAHAR_TARGET_ARRIVAL:
        return 1U << LAHAR_TIME;
    case LAHAR_TARGET_FIELD:
        return (test->has_field ? declared_types(catalog, test->field) : attribute) |
               (test->has_field && may_be_attribute(catalog, test->field) ? attribute : 0);
    default:
        return attribute;
    }
}

static lahar_status bind_test(struct binder *binder, struct lahar_query_node *node)
{
    struct lahar_test *test = lahar_arena_allocate(binder->context->arena, sizeof *test);
    if (test == NULL) {
        return no_memory(binder);
    }
    *test = (struct lahar_test){.node = node};
    node->test = test;
    bind_name(binder, test);
    const unsigned types = types_of(binder, test);
    if (node->op == LAHAR_TEST_PRESENT) {
        return LAHAR_OK;
    }
    if (node->op == LAHAR_TEST_RANGE) {
        if (test->target == LAHAR_TARGET_STREAM) {
            return lahar_query_fail(binder->error, node->offset, "streams have no order");
        }
        return bind_range(binder, test, types);
    }
    LAHAR_TRY(node->op == LAHAR_TEST_REGEX ? bind_regex(binder, test) : bind_text(binder, test));
    const bool is_substring = node->op == LAHAR_TEST_CONTAINS ||
                              node->op == LAHAR_TEST_CONTAINS_EXACT || node->op == LAHAR_TEST_REGEX;
    if (!node->is_pattern && !is_substring) {
        bind_point(binder, test);
    }
    if (is_substring) {
        const unsigned unsearchable = 1U << LAHAR_I64 | 1U << LAHAR_U64 | 1U << LAHAR_F64 |
                                      1U << LAHAR_BOOL | 1U << LAHAR_TIME;
        return (types & ~unsearchable) != 0
                   ? LAHAR_OK
                   : lahar_query_fail(binder->error, node->value_offset,
                                      "this looks into text; compare this field by : = < or >");
    }
    return check_point(binder, test, types);
}

static lahar_status bind_node(struct binder *binder, struct lahar_query_node *node)
{
    if (node->kind == LAHAR_NODE_TEST) {
        return bind_test(binder, node);
    }
    for (struct lahar_query_node *child = node->child; child != NULL; child = child->next) {
        LAHAR_TRY(bind_node(binder, child));
    }
    return LAHAR_OK;
}

lahar_status lahar_query_bind(struct lahar_query_node *root,
                              const struct lahar_bind_context *context, lahar_error *error)
{
    struct binder binder = {.context = context, .error = error};
    lahar_tokenizer_init(&binder.tokenizer, context->arena->allocator);
    lahar_buffer_init(&binder.scratch, context->arena->allocator);
    const lahar_status status = bind_node(&binder, root);
    lahar_buffer_deinit(&binder.scratch);
    lahar_tokenizer_deinit(&binder.tokenizer);
    return status;
}

void lahar_query_unbind(struct lahar_query_node *root)
{
    if (root == NULL) {
        return;
    }
    if (root->test != NULL) {
        lahar_regex_destroy(root->test->regex);
        root->test = NULL;
    }
    for (struct lahar_query_node *child = root->child; child != NULL; child = child->next) {
        lahar_query_unbind(child);
    }
}
