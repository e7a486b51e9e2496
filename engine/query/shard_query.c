/* From a bound query to bounds over the documents of a shard.
 *
 * Each test becomes look-ups in the sections that its field has there. Where the index knows
 * less than the question asks (the order of tokens in a phrase, bytes between tokens, cut
 * terms), the result is an upper bound. Anything a test may find must be in it: an event that
 * is missed here is never looked at. */
#include "engine/query/shard_query.h"

#include <string.h>

#include "io/base/error.h"

/* --- look-ups ----------------------------------------------------------------- */

typedef const struct lahar_shard_query shard_query;

/* A look-up in progress: a set that is being filled. */
struct lookup {
    struct lahar_docset set;
    bool is_exact;
};

static lahar_status lookup_begin(shard_query *query, struct lookup *lookup, lahar_error *error)
{
    lookup->is_exact = true;
    return lahar_docset_init(&lookup->set, lahar_shard_document_count(query->shard),
                             query->allocator, error);
}

/* Hands the set over as bounds, or frees it when status is a failure. */
static lahar_status lookup_end(struct lookup *lookup, lahar_status status,
                               struct lahar_bounds *bounds_out)
{
    if (status != LAHAR_OK) {
        lahar_docset_deinit(&lookup->set);
        return status;
    }
    if (lahar_docset_next(&lookup->set, 0) == lookup->set.universe) {
        lahar_docset_deinit(&lookup->set);
        bounds_out->shape = LAHAR_BOUNDS_NONE;
        return LAHAR_OK;
    }
    *bounds_out = (struct lahar_bounds){
        .shape = LAHAR_BOUNDS_SOME, .is_exact = lookup->is_exact, .may = lookup->set};
    return LAHAR_OK;
}

static void set_shape(struct lahar_bounds *bounds, enum lahar_bounds_shape shape)
{
    *bounds = (struct lahar_bounds){.shape = shape};
}

static lahar_status look_up_present(shard_query *query, uint32_t field, bool is_exact,
                                    struct lahar_bounds *bounds_out, lahar_error *error)
{
    struct lookup lookup;
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    lookup.is_exact = is_exact;
    const lahar_status status = lahar_shard_present(query->shard, field, &lookup.set, error);
    return lookup_end(&lookup, status, bounds_out);
}

/* --- terms ---------------------------------------------------------------------- */

/* Where in a token of the text a piece of a needle must lie. */
enum place {
    PLACE_WHOLE_VALUE, /* the value satisfies the test */
    PLACE_VALUE_TEXT,  /* the value, read as text, satisfies the test */
    PLACE_TOKEN,       /* the token satisfies the pattern of the test */
    PLACE_PREFIX,
    PLACE_SUFFIX,
    PLACE_INFIX
};

struct term_filter {
    struct lahar_matcher *matcher;
    const struct lahar_test *test;
    lahar_bytes piece;
    enum place place;
    bool took_cut; /* a cut term was accepted: what it stands for must be verified */
};

static bool accept_term(void *context, const uint8_t *term, size_t size, bool is_cut)
{
    struct term_filter *filter = context;
    const lahar_bytes piece = filter->piece;
    if (is_cut) {
        /* Only the beginning is known; it decides a prefix alone. */
        const bool is_refused = filter->place == PLACE_PREFIX &&
                                (size < piece.size || memcmp(term, piece.data, piece.size) != 0);
        filter->took_cut = filter->took_cut || !is_refused;
        return !is_refused;
    }
    switch (filter->place) {
    case PLACE_WHOLE_VALUE:
        return lahar_match_keyword(filter->matcher, filter->test, term, size);
    case PLACE_VALUE_TEXT:
        return lahar_match_text(filter->matcher, filter->test, term, size);
    case PLACE_TOKEN:
        return !(size == 1 && *term == LAHAR_SHARD_ESCAPE_TERM[0]) &&
               lahar_match_token(filter->test, term, size);
    case PLACE_PREFIX:
        return size >= piece.size && memcmp(term, piece.data, piece.size) == 0;
    case PLACE_SUFFIX:
        return size >= piece.size && memcmp(term + size - piece.size, piece.data, piece.size) == 0;
    case PLACE_INFIX:
        return memmem(term, size, piece.data, piece.size) != NULL;
    }
    return false;
}

static lahar_status look_up_terms(shard_query *query, uint32_t field, const struct lahar_test *test,
                                  enum place place, lahar_bytes piece,
                                  struct lahar_bounds *bounds_out, lahar_error *error)
{
    struct lookup lookup;
    struct term_filter filter = {query->matcher, test, piece, place, false};
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    lahar_status status = lahar_shard_terms(query->shard, field, accept_term, &filter, &lookup.set,
                                            &lookup.is_exact, error);
    if (status == LAHAR_OK && lahar_matcher_has_failed(query->matcher)) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory to compare terms");
    }
    lookup.is_exact = lookup.is_exact && !filter.took_cut;
    return lookup_end(&lookup, status, bounds_out);
}

/* --- keywords ------------------------------------------------------------------- */

static lahar_status keyword_bounds(shard_query *query, uint32_t field,
                                   const struct lahar_test *test, enum lahar_test_op op,
                                   struct lahar_bounds *bounds_out, lahar_error *error)
{
    const struct lahar_query_node *node = test->node;
    if (op == LAHAR_TEST_PRESENT) {
        return look_up_present(query, field, true, bounds_out, error);
    }
    if ((op != LAHAR_TEST_MATCH && op != LAHAR_TEST_EQUAL) || node->is_pattern) {
        return look_up_terms(query, field, test, PLACE_WHOLE_VALUE, (lahar_bytes){NULL, 0},
                             bounds_out, error);
    }
    struct lookup lookup;
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    const lahar_status status =
        lahar_shard_keyword(query->shard, field, node->value.data, node->value.size,
                            op == LAHAR_TEST_MATCH, &lookup.set, &lookup.is_exact, error);
    return lookup_end(&lookup, status, bounds_out);
}

/* --- text ----------------------------------------------------------------------- */

static lahar_status token_bounds(shard_query *query, uint32_t field, lahar_bytes term,
                                 struct lahar_bounds *bounds_out, lahar_error *error)
{
    struct lookup lookup;
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    const lahar_status status = lahar_shard_token(query->shard, field, term.data, term.size,
                                                  &lookup.set, &lookup.is_exact, error);
    return lookup_end(&lookup, status, bounds_out);
}

static void loosen(struct lahar_bounds *bounds)
{
    if (bounds->shape == LAHAR_BOUNDS_SOME) {
        if (bounds->has_must) {
            lahar_docset_deinit(&bounds->must);
        }
        bounds->has_must = false;
        bounds->is_exact = false;
    } else if (bounds->shape == LAHAR_BOUNDS_EVERY) {
        bounds->shape = LAHAR_BOUNDS_UNKNOWN;
    }
}

/* Texts that hold every token of the value as a whole token: all that a phrase, or an equal
 * text, can be found in. */
static lahar_status phrase_bounds(shard_query *query, uint32_t field, const struct lahar_test *test,
                                  struct lahar_bounds *bounds_out, lahar_error *error)
{
    set_shape(bounds_out, LAHAR_BOUNDS_EVERY);
    for (size_t i = 0; i < test->token_count && bounds_out->shape != LAHAR_BOUNDS_NONE; i++) {
        struct lahar_bounds token = {.shape = LAHAR_BOUNDS_NONE};
        lahar_status status = token_bounds(query, field, test->tokens[i].term, &token, error);
        if (status == LAHAR_OK) {
            status = lahar_bounds_and(bounds_out, &token, error);
        }
        if (status != LAHAR_OK) {
            lahar_bounds_deinit(bounds_out);
            return status;
        }
    }
    return LAHAR_OK;
}

/* Whether the bytes are whole characters, so that text around them is read as tokens alike. */
static bool is_whole_utf8(lahar_bytes bytes)
{
    const uint8_t *p = bytes.data;
    size_t i = 0;
    while (i < bytes.size) {
        const uint8_t lead = p[i];
        const size_t size = lead < 0x80   ? 1
                            : lead < 0xc2 ? 0
                            : lead < 0xe0 ? 2
                            : lead < 0xf0 ? 3
                            : lead < 0xf5 ? 4
                                          : 0;
        if (size == 0 || size > bytes.size - i) {
            return false;
        }
        for (size_t j = 1; j < size; j++) {
            if ((p[i + j] & 0xc0) != 0x80) {
                return false;
            }
        }
        i += size;
    }
    return true;
}

/* Texts in which a substring can be found. Tokens inside the needle stand whole in the text;
 * one at its edge may go on there. Bytes of an escape sequence belong to no token, so every text
 * with such a sequence is taken as well: it is marked by a token of its own. */
static lahar_status substring_bounds(shard_query *query, uint32_t field,
                                     const struct lahar_test *test, struct lahar_bounds *bounds_out,
                                     lahar_error *error)
{
    const lahar_bytes needle = test->node->value;
    if (test->token_count == 0 || memchr(needle.data, 0x1b, needle.size) != NULL ||
        !is_whole_utf8(needle)) {
        return look_up_present(query, field, needle.size == 0, bounds_out, error);
    }
    lahar_status status = LAHAR_OK;
    struct lahar_bounds next = {.shape = LAHAR_BOUNDS_NONE};
    set_shape(bounds_out, LAHAR_BOUNDS_EVERY);
    for (size_t i = 0; i < test->token_count && bounds_out->shape != LAHAR_BOUNDS_NONE; i++) {
        const struct lahar_test_token *token = &test->tokens[i];
        if (!token->is_at_start && !token->is_at_end) {
            status = token_bounds(query, field, token->term, &next, error);
        } else {
            const enum place place = !token->is_at_start ? PLACE_PREFIX
                                     : !token->is_at_end ? PLACE_SUFFIX
                                                         : PLACE_INFIX;
            status = look_up_terms(query, field, test, place, token->term, &next, error);
        }
        if (status == LAHAR_OK) {
            status = lahar_bounds_and(bounds_out, &next, error);
        }
        if (status != LAHAR_OK) {
            goto cleanup;
        }
    }
    loosen(bounds_out);
    static const char escape[] = LAHAR_SHARD_ESCAPE_TERM;
    status = token_bounds(query, field, (lahar_bytes){escape, sizeof escape - 1}, &next, error);
    if (status == LAHAR_OK) {
        loosen(&next);
        status = lahar_bounds_or(bounds_out, &next, error);
    }
cleanup:
    if (status != LAHAR_OK) {
        lahar_bounds_deinit(bounds_out);
    }
    return status;
}

static lahar_status text_match_bounds(shard_query *query, uint32_t field,
                                      const struct lahar_test *test,
                                      struct lahar_bounds *bounds_out, lahar_error *error)
{
    if (test->node->is_pattern) {
        return test->is_token_pattern ? look_up_terms(query, field, test, PLACE_TOKEN,
                                                      (lahar_bytes){NULL, 0}, bounds_out, error)
                                      : look_up_present(query, field, false, bounds_out, error);
    }
    if (test->token_count == 0) {
        return look_up_present(query, field, false, bounds_out, error);
    }
    LAHAR_TRY(phrase_bounds(query, field, test, bounds_out, error));
    if (test->token_count > 1) {
        loosen(bounds_out);
    }
    return LAHAR_OK;
}

static lahar_status text_bounds(shard_query *query, uint32_t field, const struct lahar_test *test,
                                enum lahar_test_op op, struct lahar_bounds *bounds_out,
                                lahar_error *error)
{
    switch (op) {
    case LAHAR_TEST_MATCH:
        return text_match_bounds(query, field, test, bounds_out, error);
    case LAHAR_TEST_CONTAINS:
    case LAHAR_TEST_CONTAINS_EXACT:
        return substring_bounds(query, field, test, bounds_out, error);
    case LAHAR_TEST_EQUAL:
        if (!test->node->is_pattern && test->token_count != 0) {
            LAHAR_TRY(phrase_bounds(query, field, test, bounds_out, error));
            loosen(bounds_out);
            return LAHAR_OK;
        }
        return look_up_present(query, field, false, bounds_out, error);
    default:
        return look_up_present(query, field, op == LAHAR_TEST_PRESENT, bounds_out, error);
    }
}

/* --- uuids and numbers ------------------------------------------------------------ */

static lahar_status uuid_bounds(shard_query *query, uint32_t field, const struct lahar_test *test,
                                enum lahar_test_op op, struct lahar_bounds *bounds_out,
                                lahar_error *error)
{
    if (op != LAHAR_TEST_MATCH && op != LAHAR_TEST_EQUAL) {
        return look_up_present(query, field, op == LAHAR_TEST_PRESENT, bounds_out, error);
    }
    if (test->node->is_pattern) {
        return look_up_present(query, field, false, bounds_out, error);
    }
    if (!test->is_uuid) {
        return LAHAR_OK;
    }
    struct lookup lookup;
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    const lahar_status status =
        lahar_shard_uuid(query->shard, field, &test->uuid, &lookup.set, error);
    return lookup_end(&lookup, status, bounds_out);
}

/* The numbers, as the column holds them, that satisfy the test; false: none. */
static bool numbers_of(const struct lahar_test *test, lahar_type type, uint64_t *low_out,
                       uint64_t *high_out)
{
    switch (type) {
    case LAHAR_TIME:
        *low_out = lahar_number_from_i64(test->time.first_ns);
        *high_out = lahar_number_from_i64(test->time.last_ns);
        return test->is_time && test->time.first_ns <= test->time.last_ns;
    case LAHAR_BOOL:
        *low_out = *high_out = lahar_number_from_u64(test->boolean);
        return test->is_bool;
    default:
        return test->is_number && lahar_column_numbers(type == LAHAR_I64   ? LAHAR_COLUMN_I64
                                                       : type == LAHAR_U64 ? LAHAR_COLUMN_U64
                                                                           : LAHAR_COLUMN_F64,
                                                       &test->range, low_out, high_out);
    }
}

static lahar_status number_bounds(shard_query *query, uint32_t field, lahar_type type,
                                  const struct lahar_test *test, enum lahar_test_op op,
                                  struct lahar_bounds *bounds_out, lahar_error *error)
{
    uint64_t low = 0;
    uint64_t high = 0;
    if (op == LAHAR_TEST_PRESENT) {
        return look_up_present(query, field, true, bounds_out, error);
    }
    if (!numbers_of(test, type, &low, &high)) {
        return LAHAR_OK;
    }
    struct lookup lookup;
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    const lahar_status status =
        lahar_shard_number(query->shard, field, low, high, &lookup.set, error);
    return lookup_end(&lookup, status, bounds_out);
}

/* --- fields ----------------------------------------------------------------------- */

/* Attributes of all maps of a stream but the previous ones share their names in a shard. */
static bool keys_are_mixed(const struct lahar_stream *stream)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stream->field_count; i++) {
        count +=
            stream->fields[i].type == LAHAR_MAP && stream->fields[i].field != LAHAR_FIELD_PREVIOUS;
    }
    return count > 1;
}

/* The key of a map that the stream has, or has not. */
static lahar_status key_bounds(shard_query *query, uint32_t map_field, lahar_bytes key,
                               const struct lahar_test *test, enum lahar_test_op op,
                               struct lahar_bounds *bounds_out, lahar_error *error)
{
    const struct lahar_stream_field *map = lahar_stream_find_field(query->stream, map_field);
    const bool is_previous = map_field == LAHAR_FIELD_PREVIOUS;
    if (map == NULL || map->type != LAHAR_MAP) {
        return LAHAR_OK;
    }
    if (!map->is_indexed) {
        set_shape(bounds_out, LAHAR_BOUNDS_UNKNOWN);
        return LAHAR_OK;
    }
    uint8_t *name = lahar_allocate(query->allocator, key.size + 5);
    if (name == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the name of an attribute");
    }
    memcpy(name, is_previous ? "prev." : "attr.", 5);
    if (key.size != 0) {
        memcpy(name + 5, key.data, key.size);
    }
    uint32_t field = 0;
    const bool is_there =
        lahar_shard_find_field(query->shard, name, key.size + 5, LAHAR_CLASS_KEYWORD, &field);
    lahar_release(query->allocator, name);
    if (!is_there) {
        return LAHAR_OK;
    }
    LAHAR_TRY(keyword_bounds(query, field, test, op, bounds_out, error));
    if (!is_previous && keys_are_mixed(query->stream)) {
        loosen(bounds_out);
    }
    return LAHAR_OK;
}

static lahar_status declared_bounds(shard_query *query, const struct lahar_stream_field *declared,
                                    const char *name, const struct lahar_test *test,
                                    enum lahar_test_op op, struct lahar_bounds *bounds_out,
                                    lahar_error *error)
{
    static const enum lahar_field_class classes[] = {
        [LAHAR_KEYWORD] = LAHAR_CLASS_KEYWORD, [LAHAR_TEXT] = LAHAR_CLASS_TEXT,
        [LAHAR_UUID] = LAHAR_CLASS_UUID,       [LAHAR_I64] = LAHAR_CLASS_NUMBER,
        [LAHAR_U64] = LAHAR_CLASS_NUMBER,      [LAHAR_F64] = LAHAR_CLASS_NUMBER,
        [LAHAR_BOOL] = LAHAR_CLASS_NUMBER,     [LAHAR_TIME] = LAHAR_CLASS_NUMBER,
        [LAHAR_LIST_UUID] = LAHAR_CLASS_UUID,  [LAHAR_LIST_KEYWORD] = LAHAR_CLASS_KEYWORD};
    uint32_t field = 0;
    if (!declared->is_indexed || declared->is_hidden || declared->type == LAHAR_BYTES ||
        declared->type == LAHAR_MAP) {
        set_shape(bounds_out, LAHAR_BOUNDS_UNKNOWN);
        return LAHAR_OK;
    }
    const enum lahar_field_class field_class = classes[declared->type];
    if (!lahar_shard_find_field(query->shard, name, strlen(name), field_class, &field)) {
        return LAHAR_OK;
    }
    switch (field_class) {
    case LAHAR_CLASS_KEYWORD:
        return keyword_bounds(query, field, test, op, bounds_out, error);
    case LAHAR_CLASS_TEXT:
        return text_bounds(query, field, test, op, bounds_out, error);
    case LAHAR_CLASS_UUID:
        return uuid_bounds(query, field, test, op, bounds_out, error);
    case LAHAR_CLASS_NUMBER:
        return number_bounds(query, field, declared->type, test, op, bounds_out, error);
    }
    return LAHAR_OK;
}

/* ORs what the field of that number says, if the stream declares it. */
static lahar_status or_declared(shard_query *query, uint32_t field, const struct lahar_test *test,
                                enum lahar_test_op op, struct lahar_bounds *bounds,
                                lahar_error *error)
{
    const struct lahar_stream_field *declared = lahar_stream_find_field(query->stream, field);
    const char *name = lahar_schema_field_name(query->matcher->catalog, field);
    struct lahar_bounds found = {.shape = LAHAR_BOUNDS_NONE};
    if (declared == NULL || name == NULL) {
        return LAHAR_OK;
    }
    LAHAR_TRY(declared_bounds(query, declared, name, test, op, &found, error));
    return lahar_bounds_or(bounds, &found, error);
}

static lahar_status or_key(shard_query *query, uint32_t map_field, lahar_bytes key,
                           const struct lahar_test *test, enum lahar_test_op op,
                           struct lahar_bounds *bounds, lahar_error *error)
{
    struct lahar_bounds found = {.shape = LAHAR_BOUNDS_NONE};
    LAHAR_TRY(key_bounds(query, map_field, key, test, op, &found, error));
    return lahar_bounds_or(bounds, &found, error);
}

static lahar_status field_bounds(shard_query *query, const struct lahar_test *test,
                                 enum lahar_test_op op, struct lahar_bounds *bounds,
                                 lahar_error *error)
{
    const bool is_declared =
        test->has_field && lahar_stream_find_field(query->stream, test->field) != NULL;
    if (is_declared) {
        LAHAR_TRY(or_declared(query, test->field, test, op, bounds, error));
    } else {
        LAHAR_TRY(or_key(query, LAHAR_FIELD_ATTRIBUTES, test->key, test, op, bounds, error));
    }
    if (test->has_relatives) {
        LAHAR_TRY(or_declared(query, test->parents_field, test, op, bounds, error));
        LAHAR_TRY(or_declared(query, test->children_field, test, op, bounds, error));
    }
    if (test->has_map) {
        LAHAR_TRY(or_key(query, test->map_field, test->map_key, test, op, bounds, error));
    }
    return LAHAR_OK;
}

/* --- terms without a field ---------------------------------------------------------- */

/* Whether some field that such terms look into can only be scanned. */
static bool has_unindexed_words(shard_query *query)
{
    for (uint32_t i = 0; i < query->stream->field_count; i++) {
        const struct lahar_stream_field *field = &query->stream->fields[i];
        const bool is_words = field->type == LAHAR_KEYWORD || field->type == LAHAR_TEXT ||
                              field->type == LAHAR_LIST_KEYWORD || field->type == LAHAR_MAP;
        const char *name = lahar_schema_field_name(query->matcher->catalog, field->field);
        if (is_words && !field->is_indexed && field->field != LAHAR_FIELD_PREVIOUS &&
            name != NULL && lahar_is_searched_anywhere(name, strlen(name))) {
            return true;
        }
    }
    return false;
}

static lahar_status anywhere_bounds(shard_query *query, const struct lahar_test *test,
                                    struct lahar_bounds *bounds, lahar_error *error)
{
    const uint32_t count = lahar_shard_field_count(query->shard);
    if (has_unindexed_words(query)) {
        set_shape(bounds, LAHAR_BOUNDS_UNKNOWN);
        return LAHAR_OK;
    }
    for (uint32_t field = 0; field < count; field++) {
        enum lahar_field_class field_class = LAHAR_CLASS_NUMBER;
        const lahar_bytes name = lahar_shard_field(query->shard, field, &field_class);
        struct lahar_bounds found = {.shape = LAHAR_BOUNDS_NONE};
        const bool is_previous = name.size >= 5 && memcmp(name.data, "prev.", 5) == 0;
        const bool is_attribute = name.size >= 5 && memcmp(name.data, "attr.", 5) == 0;
        if (is_previous || !lahar_is_searched_anywhere(name.data, name.size)) {
            continue;
        }
        if (field_class == LAHAR_CLASS_KEYWORD) {
            LAHAR_TRY(look_up_terms(query, field, test, PLACE_VALUE_TEXT, (lahar_bytes){NULL, 0},
                                    &found, error));
            if (is_attribute && keys_are_mixed(query->stream)) {
                loosen(&found);
            }
        } else if (field_class == LAHAR_CLASS_TEXT) {
            LAHAR_TRY(text_bounds(query, field, test, test->node->op, &found, error));
        }
        LAHAR_TRY(lahar_bounds_or(bounds, &found, error));
    }
    return LAHAR_OK;
}

/* --- header fields -------------------------------------------------------------------- */

static lahar_status id_bounds(shard_query *query, const struct lahar_test *test,
                              struct lahar_bounds *bounds_out, lahar_error *error)
{
    uint64_t first = 0;
    uint64_t last = 0;
    if (!test->is_number || !lahar_column_span(LAHAR_COLUMN_U64, &test->range, &first, &last)) {
        return LAHAR_OK;
    }
    const uint32_t end = last == UINT64_MAX ? lahar_shard_document_count(query->shard)
                                            : lahar_shard_ordinal(query->shard, last + 1);
    struct lookup lookup;
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    const uint32_t begin = lahar_shard_ordinal(query->shard, first);
    if (begin < end) {
        lahar_docset_add_range(&lookup.set, begin, end);
    }
    return lookup_end(&lookup, LAHAR_OK, bounds_out);
}

static lahar_status time_bounds(shard_query *query, const struct lahar_test *test,
                                struct lahar_bounds *bounds_out, lahar_error *error)
{
    const struct lahar_segment_info *info = lahar_segment_describe(query->segment);
    const struct lahar_interval time = test->time;
    if (!test->is_time || time.first_ns > info->time_max_ns || time.last_ns < info->time_min_ns ||
        time.first_ns > time.last_ns) {
        return LAHAR_OK;
    }
    if (time.first_ns <= info->time_min_ns && time.last_ns >= info->time_max_ns) {
        set_shape(bounds_out, LAHAR_BOUNDS_EVERY);
        return LAHAR_OK;
    }
    struct lookup lookup;
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    lahar_status status = LAHAR_OK;
    if (time.last_ns == INT64_MAX) {
        /* No exclusive end lies above the last time there is: ask for the others. */
        status = lahar_shard_time(query->shard, INT64_MIN, time.first_ns, &lookup.set, error);
        lahar_docset_invert(&lookup.set);
    } else {
        status =
            lahar_shard_time(query->shard, time.first_ns, time.last_ns + 1, &lookup.set, error);
    }
    return lookup_end(&lookup, status, bounds_out);
}

/* Arrival is known by block. */
static lahar_status arrival_bounds(shard_query *query, const struct lahar_test *test,
                                   struct lahar_bounds *bounds_out, lahar_error *error)
{
    const struct lahar_segment_info *info = lahar_segment_describe(query->segment);
    if (!test->is_time) {
        return LAHAR_OK;
    }
    struct lookup lookup;
    struct lahar_docset must;
    LAHAR_TRY(lookup_begin(query, &lookup, error));
    const lahar_status status =
        lahar_docset_init(&must, lookup.set.universe, query->allocator, error);
    if (status != LAHAR_OK) {
        return lookup_end(&lookup, status, bounds_out);
    }
    for (uint32_t i = 0; i < info->block_count; i++) {
        const struct lahar_block_info *block = lahar_segment_block_info(query->segment, i);
        const uint32_t end = block->first_ordinal + block->row_count;
        if (end > lookup.set.universe || test->time.first_ns > block->arrival_max_ns ||
            test->time.last_ns < block->arrival_min_ns) {
            continue;
        }
        lahar_docset_add_range(&lookup.set, block->first_ordinal, end);
        if (test->time.first_ns <= block->arrival_min_ns &&
            test->time.last_ns >= block->arrival_max_ns) {
            lahar_docset_add_range(&must, block->first_ordinal, end);
        }
    }
    *bounds_out = (struct lahar_bounds){
        .shape = LAHAR_BOUNDS_SOME, .has_must = true, .may = lookup.set, .must = must};
    return LAHAR_OK;
}

/* --- tests and nodes -------------------------------------------------------------------- */

static lahar_status target_bounds(shard_query *query, const struct lahar_test *test,
                                  enum lahar_test_op op, struct lahar_bounds *bounds,
                                  lahar_error *error)
{
    const bool is_header = test->target == LAHAR_TARGET_ID || test->target == LAHAR_TARGET_TIME ||
                           test->target == LAHAR_TARGET_ARRIVAL ||
                           test->target == LAHAR_TARGET_STREAM;
    if (op == LAHAR_TEST_PRESENT && is_header) {
        set_shape(bounds, LAHAR_BOUNDS_EVERY);
        return LAHAR_OK;
    }
    switch (test->target) {
    case LAHAR_TARGET_ANYWHERE:
        return anywhere_bounds(query, test, bounds, error);
    case LAHAR_TARGET_ID:
        return id_bounds(query, test, bounds, error);
    case LAHAR_TARGET_TIME:
        return time_bounds(query, test, bounds, error);
    case LAHAR_TARGET_ARRIVAL:
        return arrival_bounds(query, test, bounds, error);
    case LAHAR_TARGET_STREAM:
        if (lahar_match_keyword(query->matcher, test, query->stream->name,
                                strlen(query->stream->name))) {
            set_shape(bounds, LAHAR_BOUNDS_EVERY);
        }
        return LAHAR_OK;
    case LAHAR_TARGET_ATTRIBUTE:
        return key_bounds(query, test->field, test->key, test, op, bounds, error);
    case LAHAR_TARGET_FIELD:
        return field_bounds(query, test, op, bounds, error);
    }
    return LAHAR_OK;
}

static lahar_status test_bounds(shard_query *query, const struct lahar_test *test,
                                struct lahar_bounds *bounds, lahar_error *error)
{
    if (test->node->op != LAHAR_TEST_NOT_EQUAL) {
        return target_bounds(query, test, test->node->op, bounds, error);
    }
    struct lahar_bounds equal = {.shape = LAHAR_BOUNDS_NONE};
    LAHAR_TRY(target_bounds(query, test, LAHAR_TEST_PRESENT, bounds, error));
    lahar_status status = target_bounds(query, test, LAHAR_TEST_EQUAL, &equal, error);
    if (status == LAHAR_OK) {
        status = lahar_bounds_not(&equal, error);
    }
    if (status == LAHAR_OK) {
        return lahar_bounds_and(bounds, &equal, error);
    }
    lahar_bounds_deinit(&equal);
    return status;
}

/* Rough order of cost: 0 answered from headers, 1 by a term, 2 by reading columns or the
 * dictionary. */
enum {
    COST_COUNT = 3
};

static unsigned cost(const struct lahar_query_node *node)
{
    if (node->kind != LAHAR_NODE_TEST) {
        unsigned highest = 0;
        for (const struct lahar_query_node *child = node->child; child != NULL;
             child = child->next) {
            const unsigned one = cost(child);
            highest = one > highest ? one : highest;
        }
        return highest;
    }
    switch (node->test->target) {
    case LAHAR_TARGET_ID:
    case LAHAR_TARGET_STREAM:
    case LAHAR_TARGET_TIME:
    case LAHAR_TARGET_ARRIVAL:
        return 0;
    case LAHAR_TARGET_ANYWHERE:
        return 2;
    default:
        return (node->op == LAHAR_TEST_MATCH || node->op == LAHAR_TEST_EQUAL) && !node->is_pattern
                   ? 1
                   : 2;
    }
}

static bool is_settled(enum lahar_node_kind kind, const struct lahar_bounds *bounds)
{
    if (kind == LAHAR_NODE_OR) {
        return bounds->shape == LAHAR_BOUNDS_EVERY;
    }
    return bounds->shape == LAHAR_BOUNDS_NONE ||
           (bounds->shape == LAHAR_BOUNDS_SOME &&
            lahar_docset_next(&bounds->may, 0) == bounds->may.universe);
}

static lahar_status node_bounds(shard_query *query, const struct lahar_query_node *node,
                                struct lahar_bounds *bounds, lahar_error *error);

/* The cheap children first: an AND that is empty already, and an OR that is full, need no more. */
static lahar_status join_bounds(shard_query *query, const struct lahar_query_node *node,
                                struct lahar_bounds *bounds, lahar_error *error)
{
    set_shape(bounds, node->kind == LAHAR_NODE_AND ? LAHAR_BOUNDS_EVERY : LAHAR_BOUNDS_NONE);
    for (unsigned level = 0; level < COST_COUNT; level++) {
        for (const struct lahar_query_node *child = node->child; child != NULL;
             child = child->next) {
            if (cost(child) != level) {
                continue;
            }
            if (is_settled(node->kind, bounds)) {
                return LAHAR_OK;
            }
            struct lahar_bounds one = {.shape = LAHAR_BOUNDS_NONE};
            LAHAR_TRY(node_bounds(query, child, &one, error));
            LAHAR_TRY(node->kind == LAHAR_NODE_AND ? lahar_bounds_and(bounds, &one, error)
                                                   : lahar_bounds_or(bounds, &one, error));
        }
    }
    return LAHAR_OK;
}

/* On failure bounds is empty. */
static lahar_status node_bounds(shard_query *query, const struct lahar_query_node *node,
                                struct lahar_bounds *bounds, lahar_error *error)
{
    lahar_status status = LAHAR_OK;
    set_shape(bounds, LAHAR_BOUNDS_NONE);
    switch (node->kind) {
    case LAHAR_NODE_ALL:
        set_shape(bounds, LAHAR_BOUNDS_EVERY);
        break;
    case LAHAR_NODE_TEST:
        status = test_bounds(query, node->test, bounds, error);
        break;
    case LAHAR_NODE_NOT:
        status = node_bounds(query, node->child, bounds, error);
        if (status == LAHAR_OK) {
            status = lahar_bounds_not(bounds, error);
        }
        break;
    case LAHAR_NODE_AND:
    case LAHAR_NODE_OR:
        status = join_bounds(query, node, bounds, error);
        break;
    }
    if (status != LAHAR_OK) {
        lahar_bounds_deinit(bounds);
    }
    return status;
}

lahar_status lahar_shard_query_run(const struct lahar_shard_query *query,
                                   const struct lahar_query_node *node,
                                   struct lahar_bounds *bounds_out, lahar_error *error)
{
    return node_bounds(query, node, bounds_out, error);
}
