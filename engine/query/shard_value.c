/* Look-ups of one test in one field of a shard, by the field's class.
 *
 * Where the index knows less than the test asks (the order of tokens in a phrase, bytes between
 * tokens, cut terms), the result is an upper bound. */
#include "engine/query/shard_value.h"

#include <string.h>

#include "engine/query/term_bounds.h"
#include "io/base/error.h"

/* --- look-ups ----------------------------------------------------------------- */

lahar_status lahar_shard_lookup_begin(const struct lahar_shard_query *query,
                                      struct lahar_shard_lookup *lookup, lahar_error *error)
{
    lookup->is_exact = true;
    return lahar_shard_query_set(query, &lookup->set, error);
}

lahar_status lahar_shard_lookup_end(struct lahar_shard_lookup *lookup, lahar_status status,
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

static lahar_status look_up_present(const struct lahar_shard_query *query, uint32_t field,
                                    bool is_exact, struct lahar_bounds *bounds_out,
                                    lahar_error *error)
{
    struct lahar_shard_lookup lookup;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    lookup.is_exact = is_exact;
    const lahar_status status = lahar_shard_present(query->shard, field, &lookup.set, error);
    return lahar_shard_lookup_end(&lookup, status, bounds_out);
}

/* --- keywords ------------------------------------------------------------------- */

lahar_status lahar_shard_keyword_bounds(const struct lahar_shard_query *query, uint32_t field,
                                        const struct lahar_test *test, enum lahar_test_op op,
                                        struct lahar_bounds *bounds_out, lahar_error *error)
{
    const struct lahar_query_node *node = test->node;
    if (op == LAHAR_TEST_PRESENT) {
        return look_up_present(query, field, true, bounds_out, error);
    }
    if ((op != LAHAR_TEST_MATCH && op != LAHAR_TEST_EQUAL) || node->is_pattern) {
        return lahar_term_bounds(query, field, test, LAHAR_PLACE_WHOLE_VALUE,
                                 (lahar_bytes){NULL, 0}, bounds_out, error);
    }
    struct lahar_shard_lookup lookup;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    const lahar_status status =
        lahar_shard_keyword(query->shard, field, node->value.data, node->value.size,
                            op == LAHAR_TEST_MATCH, &lookup.set, &lookup.is_exact, error);
    return lahar_shard_lookup_end(&lookup, status, bounds_out);
}

/* --- text ----------------------------------------------------------------------- */

static lahar_status token_bounds(const struct lahar_shard_query *query, uint32_t field,
                                 lahar_bytes term, struct lahar_bounds *bounds_out,
                                 lahar_error *error)
{
    struct lahar_shard_lookup lookup;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    const lahar_status status = lahar_shard_token(query->shard, field, term.data, term.size,
                                                  &lookup.set, &lookup.is_exact, error);
    return lahar_shard_lookup_end(&lookup, status, bounds_out);
}

/* Texts that hold every token of the value as a whole token: all that a phrase, or an equal
 * text, can be found in. */
static lahar_status phrase_bounds(const struct lahar_shard_query *query, uint32_t field,
                                  const struct lahar_test *test, struct lahar_bounds *bounds_out,
                                  lahar_error *error)
{
    lahar_bounds_set(bounds_out, LAHAR_BOUNDS_EVERY);
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

/* Texts in which a substring can be found. Tokens inside the needle stand whole in the text;
 * one at its edge may go on there. Bytes of an escape sequence belong to no token, so every text
 * with such a sequence is taken as well: it is marked by a token of its own. */
static lahar_status substring_bounds(const struct lahar_shard_query *query, uint32_t field,
                                     const struct lahar_test *test, struct lahar_bounds *bounds_out,
                                     lahar_error *error)
{
    const lahar_bytes needle = test->node->value;
    if (test->token_count == 0 || memchr(needle.data, 0x1b, needle.size) != NULL ||
        !lahar_is_whole_utf8(needle)) {
        return look_up_present(query, field, needle.size == 0, bounds_out, error);
    }
    lahar_status status = LAHAR_OK;
    struct lahar_bounds next = {.shape = LAHAR_BOUNDS_NONE};
    lahar_bounds_set(bounds_out, LAHAR_BOUNDS_EVERY);
    for (size_t i = 0; i < test->token_count && bounds_out->shape != LAHAR_BOUNDS_NONE; i++) {
        const struct lahar_test_token *token = &test->tokens[i];
        if (!token->is_at_start && !token->is_at_end) {
            status = token_bounds(query, field, token->term, &next, error);
        } else {
            const enum lahar_term_place place = !token->is_at_start ? LAHAR_PLACE_PREFIX
                                                : !token->is_at_end ? LAHAR_PLACE_SUFFIX
                                                                    : LAHAR_PLACE_INFIX;
            status = lahar_term_bounds(query, field, test, place, token->term, &next, error);
        }
        if (status == LAHAR_OK) {
            status = lahar_bounds_and(bounds_out, &next, error);
        }
        if (status != LAHAR_OK) {
            goto cleanup;
        }
    }
    lahar_bounds_loosen(bounds_out);
    static const char escape[] = LAHAR_SHARD_ESCAPE_TERM;
    status = token_bounds(query, field, (lahar_bytes){escape, sizeof escape - 1}, &next, error);
    if (status == LAHAR_OK) {
        lahar_bounds_loosen(&next);
        status = lahar_bounds_or(bounds_out, &next, error);
    }
cleanup:
    if (status != LAHAR_OK) {
        lahar_bounds_deinit(bounds_out);
    }
    return status;
}

lahar_status lahar_shard_words_bounds(const struct lahar_shard_query *query, uint32_t field,
                                      const struct lahar_test *test,
                                      struct lahar_bounds *bounds_out, lahar_error *error)
{
    return lahar_term_bounds(query, field, test, LAHAR_PLACE_VALUE_TEXT, (lahar_bytes){NULL, 0},
                             bounds_out, error);
}

static lahar_status text_match_bounds(const struct lahar_shard_query *query, uint32_t field,
                                      const struct lahar_test *test,
                                      struct lahar_bounds *bounds_out, lahar_error *error)
{
    if (test->node->is_pattern) {
        return test->is_token_pattern ? lahar_term_bounds(query, field, test, LAHAR_PLACE_TOKEN,
                                                          (lahar_bytes){NULL, 0}, bounds_out, error)
                                      : look_up_present(query, field, false, bounds_out, error);
    }
    if (test->token_count == 0) {
        return look_up_present(query, field, false, bounds_out, error);
    }
    LAHAR_TRY(phrase_bounds(query, field, test, bounds_out, error));
    if (test->token_count > 1) {
        lahar_bounds_loosen(bounds_out);
    }
    return LAHAR_OK;
}

lahar_status lahar_shard_text_bounds(const struct lahar_shard_query *query, uint32_t field,
                                     const struct lahar_test *test, enum lahar_test_op op,
                                     struct lahar_bounds *bounds_out, lahar_error *error)
{
    switch (op) {
    case LAHAR_TEST_MATCH:
        return text_match_bounds(query, field, test, bounds_out, error);
    case LAHAR_TEST_CONTAINS:
    case LAHAR_TEST_CONTAINS_EXACT:
        return substring_bounds(query, field, test, bounds_out, error);
    case LAHAR_TEST_REGEX:
        return test->required != NULL
                   ? substring_bounds(query, field, test->required, bounds_out, error)
                   : look_up_present(query, field, false, bounds_out, error);
    case LAHAR_TEST_EQUAL:
        if (!test->node->is_pattern && test->token_count != 0) {
            LAHAR_TRY(phrase_bounds(query, field, test, bounds_out, error));
            lahar_bounds_loosen(bounds_out);
            return LAHAR_OK;
        }
        return look_up_present(query, field, false, bounds_out, error);
    default:
        return look_up_present(query, field, op == LAHAR_TEST_PRESENT, bounds_out, error);
    }
}

/* --- uuids and numbers ------------------------------------------------------------ */

/* The uuids whose printed form begins with what stands before the '*' at the end of the pattern;
 * false when the pattern is not of that kind. */
static bool uuid_range(lahar_bytes pattern, lahar_uuid *low_out, lahar_uuid *high_out)
{
    const uint8_t *p = pattern.data;
    unsigned digits = 0;
    if (pattern.size < 2 || pattern.size > LAHAR_UUID_TEXT_SIZE || p[pattern.size - 1] != '*') {
        return false;
    }
    *low_out = (lahar_uuid){{0}};
    for (size_t i = 0; i + 1 < pattern.size; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (p[i] != '-') {
                return false;
            }
            continue;
        }
        const bool is_letter = p[i] >= 'a' && p[i] <= 'f';
        if (!is_letter && (p[i] < '0' || p[i] > '9')) {
            return false;
        }
        const uint8_t digit = (uint8_t)(is_letter ? p[i] - 'a' + 10 : p[i] - '0');
        low_out->bytes[digits / 2] |= (uint8_t)(digits % 2 == 0 ? digit << 4 : digit);
        digits++;
    }
    *high_out = *low_out;
    for (; digits < 32; digits++) {
        high_out->bytes[digits / 2] |= (uint8_t)(digits % 2 == 0 ? 0xf0 : 0x0f);
    }
    return true;
}

static lahar_status uuid_prefix_bounds(const struct lahar_shard_query *query, uint32_t field,
                                       const lahar_uuid *low, const lahar_uuid *high,
                                       struct lahar_bounds *bounds_out, lahar_error *error)
{
    struct lahar_shard_lookup lookup;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    const lahar_status status =
        lahar_shard_uuids(query->shard, field, low, high, &lookup.set, error);
    return lahar_shard_lookup_end(&lookup, status, bounds_out);
}

lahar_status lahar_shard_uuid_bounds(const struct lahar_shard_query *query, uint32_t field,
                                     const struct lahar_test *test, enum lahar_test_op op,
                                     struct lahar_bounds *bounds_out, lahar_error *error)
{
    if (op != LAHAR_TEST_MATCH && op != LAHAR_TEST_EQUAL) {
        return look_up_present(query, field, op == LAHAR_TEST_PRESENT, bounds_out, error);
    }
    if (test->node->is_pattern) {
        lahar_uuid low;
        lahar_uuid high;
        return uuid_range(test->folded, &low, &high)
                   ? uuid_prefix_bounds(query, field, &low, &high, bounds_out, error)
                   : look_up_present(query, field, false, bounds_out, error);
    }
    if (!test->is_uuid) {
        return LAHAR_OK;
    }
    struct lahar_shard_lookup lookup;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    const lahar_status status =
        lahar_shard_uuid(query->shard, field, &test->uuid, &lookup.set, error);
    return lahar_shard_lookup_end(&lookup, status, bounds_out);
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

lahar_status lahar_shard_number_bounds(const struct lahar_shard_query *query, uint32_t field,
                                       lahar_type type, const struct lahar_test *test,
                                       enum lahar_test_op op, struct lahar_bounds *bounds_out,
                                       lahar_error *error)
{
    uint64_t low = 0;
    uint64_t high = 0;
    if (op == LAHAR_TEST_PRESENT) {
        return look_up_present(query, field, true, bounds_out, error);
    }
    if (!numbers_of(test, type, &low, &high)) {
        return LAHAR_OK;
    }
    struct lahar_shard_lookup lookup;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    const lahar_status status =
        lahar_shard_number(query->shard, field, low, high, &lookup.set, error);
    return lahar_shard_lookup_end(&lookup, status, bounds_out);
}
