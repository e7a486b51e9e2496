/* Evaluating expressions step by step; see expression.h. */
#include <string.h>

#include "engine/format/expression_internal.h"
#include "engine/format/time_moment.h"
#include "engine/format/time_text.h"

/* --- texts -------------------------------------------------------------------------------------
 */

static struct lahar_operand change_case(struct lahar_evaluation *evaluation, lahar_bytes text,
                                        char first, char last)
{
    uint8_t *copy = lahar_arena_copy(evaluation->arena, text.size == 0 ? "" : text.data, text.size);
    if (copy == NULL) {
        evaluation->is_out_of_memory = true;
        return lahar_operand_null();
    }
    for (size_t i = 0; i < text.size; i++) {
        copy[i] ^= copy[i] >= (uint8_t)first && copy[i] <= (uint8_t)last ? 0x20 : 0;
    }
    return lahar_operand_of_text((lahar_bytes){copy, text.size});
}

static lahar_bytes trim(lahar_bytes text)
{
    const uint8_t *p = text.data;
    size_t size = text.size;
    while (size != 0 && lahar_json_is_space(p[size - 1])) {
        size--;
    }
    while (size != 0 && lahar_json_is_space(*p)) {
        p++;
        size--;
    }
    return (lahar_bytes){p, size};
}

static struct lahar_operand concat(struct lahar_evaluation *evaluation,
                                   const struct lahar_operand *parts, uint32_t count)
{
    lahar_bytes texts[16];
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct lahar_operand part = lahar_operand_to_text(evaluation, parts[i]);
        texts[i] = part.kind == LAHAR_OPERAND_TEXT ? part.as.text : (lahar_bytes){0};
        size += texts[i].size;
    }
    uint8_t *text = lahar_arena_allocate(evaluation->arena, size + 1);
    if (text == NULL) {
        evaluation->is_out_of_memory = true;
        return lahar_operand_null();
    }
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (texts[i].size != 0) {
            memcpy(text + at, texts[i].data, texts[i].size);
        }
        at += texts[i].size;
    }
    return lahar_operand_of_text((lahar_bytes){text, size});
}

/* Bytes from the first-th on, counted from 1. */
static struct lahar_operand substring(lahar_bytes text, const struct lahar_operand *places,
                                      uint32_t count)
{
    const struct lahar_operand first = lahar_operand_to_int(places[0]);
    const struct lahar_operand size =
        count == 2 ? lahar_operand_to_int(places[1]) : lahar_operand_of_i64(INT64_MAX);
    if (first.kind != LAHAR_OPERAND_I64 || size.kind != LAHAR_OPERAND_I64 || first.as.i64 < 1 ||
        size.as.i64 < 0) {
        return lahar_operand_null();
    }
    const uint64_t skipped = (uint64_t)first.as.i64 - 1;
    if (skipped >= text.size) {
        return lahar_operand_of_text((lahar_bytes){"", 0});
    }
    const size_t left = text.size - (size_t)skipped;
    return lahar_operand_of_text(
        (lahar_bytes){(const uint8_t *)text.data + skipped,
                      (uint64_t)size.as.i64 < left ? (size_t)size.as.i64 : left});
}

/* The first group, or without groups the whole of what matches. */
static struct lahar_operand extract(struct lahar_evaluation *evaluation, lahar_bytes text,
                                    const struct lahar_regex *regex)
{
    struct lahar_regex_scratch *scratch = &evaluation->expression->scratch;
    const void *data = text.size == 0 ? "" : text.data;
    lahar_bytes part;
    switch (lahar_regex_match(regex, scratch, data, text.size)) {
    case LAHAR_REGEX_MATCH:
        return lahar_regex_group(scratch, data, lahar_regex_group_count(regex) == 0 ? 0 : 1, &part)
                   ? lahar_operand_of_text(part)
                   : lahar_operand_null();
    case LAHAR_REGEX_NO_MEMORY:
        evaluation->is_out_of_memory = true;
        return lahar_operand_null();
    default:
        return lahar_operand_null();
    }
}

/* --- JSON ---------------------------------------------------------------------------------------
 */

static struct lahar_operand json_scalar(struct lahar_evaluation *evaluation, const uint8_t *text,
                                        const struct lahar_json_token *token)
{
    const lahar_bytes raw = {text + token->offset, token->size};
    switch (token->kind) {
    case LAHAR_JSON_STRING: {
        bool is_lossy;
        if ((token->flags & LAHAR_JSON_ESCAPED) == 0) {
            return lahar_operand_of_text(raw);
        }
        uint8_t *out = lahar_arena_allocate(evaluation->arena, raw.size + 1);
        if (out == NULL) {
            evaluation->is_out_of_memory = true;
            return lahar_operand_null();
        }
        const size_t size = lahar_json_unescape(raw.data, raw.size, out, &is_lossy);
        return lahar_operand_of_text((lahar_bytes){out, size});
    }
    case LAHAR_JSON_NUMBER:
        return lahar_operand_to_number(lahar_operand_of_text(raw));
    case LAHAR_JSON_TRUE:
    case LAHAR_JSON_FALSE:
        return lahar_operand_of_bool(token->kind == LAHAR_JSON_TRUE);
    default:
        return lahar_operand_null();
    }
}

/* The member of the object at tokens[index] under the first part of path, which may itself have
 * dots; of a key given twice the last. UINT32_MAX when there is none. */
static uint32_t find_member(const struct lahar_json_parser *json, const uint8_t *text,
                            uint32_t index, lahar_bytes *path)
{
    uint32_t found = UINT32_MAX;
    size_t used = 0;
    const uint32_t end = json->tokens[index].end;
    if (json->tokens[index].kind != LAHAR_JSON_OBJECT) {
        return UINT32_MAX;
    }
    for (uint32_t i = index + 1; i < end;) {
        const struct lahar_json_token *key = &json->tokens[i];
        const struct lahar_json_token *value = &json->tokens[i + 1];
        const bool fits = key->size <= path->size && key->size >= used && key->size != 0 &&
                          memcmp(text + key->offset, path->data, key->size) == 0 &&
                          (key->size == path->size || ((const char *)path->data)[key->size] == '.');
        if (fits) {
            found = i + 1;
            used = key->size;
        }
        i = value->kind <= LAHAR_JSON_ARRAY ? value->end : i + 2;
    }
    if (found != UINT32_MAX) {
        used += used < path->size;
        *path = (lahar_bytes){(const char *)path->data + used, path->size - used};
    }
    return found;
}

static struct lahar_operand json_member(struct lahar_evaluation *evaluation, lahar_bytes text,
                                        lahar_bytes path)
{
    struct lahar_json_parser *json = &evaluation->expression->json;
    if (text.size == 0 || text.size > UINT32_MAX) {
        return lahar_operand_null();
    }
    const enum lahar_json_result result = lahar_json_check(json, text.data, text.size);
    evaluation->is_out_of_memory |= result == LAHAR_JSON_NO_MEMORY;
    if (result != LAHAR_JSON_DONE) {
        return lahar_operand_null();
    }
    uint32_t index = 0;
    while (path.size != 0) {
        index = find_member(json, text.data, index, &path);
        if (index == UINT32_MAX) {
            return lahar_operand_null();
        }
    }
    return json_scalar(evaluation, text.data, &json->tokens[index]);
}

/* --- parts of times ------------------------------------------------------------------------------
 */

static int64_t floor_to(int64_t value, int64_t unit)
{
    const int64_t rest = value % unit;
    return value - (rest < 0 ? rest + unit : rest);
}

static unsigned digits_of(const char *text, unsigned count)
{
    unsigned number = 0;
    for (unsigned i = 0; i < count; i++) {
        number = number * 10 + (unsigned)(text[i] - '0');
    }
    return number;
}

/* The start of the month or of the year that the time lies in. */
static struct lahar_operand start_of_date(int64_t time_ns, bool of_year)
{
    char text[LAHAR_TIME_TEXT_SIZE_MAX];
    int64_t start_ns;
    (void)lahar_time_format(time_ns, 0, text);
    const struct lahar_moment moment = {
        .year = digits_of(text, 4), .month = of_year ? 1 : digits_of(text + 5, 2), .day = 1};
    return lahar_moment_to_ns(&moment, &start_ns) ? lahar_operand_of_time(start_ns)
                                                  : lahar_operand_null();
}

static struct lahar_operand start_of(enum lahar_operation operation, struct lahar_operand operand)
{
    static const int64_t day_ns = INT64_C(86400) * 1000000000;
    const struct lahar_operand time = lahar_operand_to_time(operand, NULL);
    const int64_t time_ns = time.as.time_ns;
    if (time.kind != LAHAR_OPERAND_TIME || time_ns < INT64_MIN + 367 * day_ns) {
        return lahar_operand_null();
    }
    const int64_t day = floor_to(time_ns, day_ns) / day_ns;
    switch (operation) {
    case LAHAR_OP_SECOND:
        return lahar_operand_of_time(floor_to(time_ns, LAHAR_NS_PER_SECOND));
    case LAHAR_OP_MINUTE:
        return lahar_operand_of_time(floor_to(time_ns, 60 * LAHAR_NS_PER_SECOND));
    case LAHAR_OP_HOUR:
        return lahar_operand_of_time(floor_to(time_ns, 3600 * LAHAR_NS_PER_SECOND));
    case LAHAR_OP_DAY:
        return lahar_operand_of_time(day * day_ns);
    case LAHAR_OP_WEEK: /* from Monday; 1 January 1970 was a Thursday */
        return lahar_operand_of_time((floor_to(day + 3, 7) - 3) * day_ns);
    default:
        return start_of_date(time_ns, operation == LAHAR_OP_YEAR);
    }
}

/* --- steps
 * ----------------------------------------------------------------------------------------- */

static struct lahar_operand apply_to_text(struct lahar_evaluation *evaluation,
                                          const struct lahar_expression_step *step,
                                          const struct lahar_operand *arguments)
{
    const struct lahar_operand first = lahar_operand_to_text(evaluation, arguments[0]);
    if (first.kind != LAHAR_OPERAND_TEXT) {
        return lahar_operand_null();
    }
    const lahar_bytes text = first.as.text;
    switch (step->operation) {
    case LAHAR_OP_LOWER:
        return change_case(evaluation, text, 'A', 'Z');
    case LAHAR_OP_UPPER:
        return change_case(evaluation, text, 'a', 'z');
    case LAHAR_OP_TRIM:
        return lahar_operand_of_text(trim(text));
    case LAHAR_OP_LENGTH:
        return lahar_operand_of_i64((int64_t)text.size);
    case LAHAR_OP_SUBSTRING:
        return substring(text, arguments + 1, step->argument_count - 1);
    case LAHAR_OP_EXTRACT:
        return extract(evaluation, text, step->as.regex);
    case LAHAR_OP_JSON: {
        const struct lahar_operand path = lahar_operand_to_text(evaluation, arguments[1]);
        return path.kind == LAHAR_OPERAND_TEXT ? json_member(evaluation, text, path.as.text)
                                               : lahar_operand_null();
    }
    default:
        return first;
    }
}

static struct lahar_operand coalesce(const struct lahar_operand *arguments, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (arguments[i].kind != LAHAR_OPERAND_NULL) {
            return arguments[i];
        }
    }
    return lahar_operand_null();
}

static struct lahar_operand negate(struct lahar_operand operand)
{
    return lahar_operand_calculate(LAHAR_OP_SUBTRACT, lahar_operand_of_i64(0),
                                   lahar_operand_to_number(operand));
}

static struct lahar_operand apply(struct lahar_evaluation *evaluation,
                                  const struct lahar_expression_step *step,
                                  const struct lahar_operand *arguments)
{
    switch (step->operation) {
    case LAHAR_OP_NEGATE:
        return negate(arguments[0]);
    case LAHAR_OP_NOT:
        return arguments[0].kind == LAHAR_OPERAND_NULL
                   ? lahar_operand_null()
                   : lahar_operand_of_bool(!lahar_operand_is_true(arguments[0]));
    case LAHAR_OP_AND:
        return lahar_operand_of_bool(lahar_operand_is_true(arguments[0]) &&
                                     lahar_operand_is_true(arguments[1]));
    case LAHAR_OP_OR:
        return lahar_operand_of_bool(lahar_operand_is_true(arguments[0]) ||
                                     lahar_operand_is_true(arguments[1]));
    case LAHAR_OP_ADD:
    case LAHAR_OP_SUBTRACT:
    case LAHAR_OP_MULTIPLY:
    case LAHAR_OP_DIVIDE:
    case LAHAR_OP_MODULO:
        return lahar_operand_calculate(step->operation, arguments[0], arguments[1]);
    case LAHAR_OP_EQUAL:
    case LAHAR_OP_NOT_EQUAL:
    case LAHAR_OP_LESS:
    case LAHAR_OP_LESS_EQUAL:
    case LAHAR_OP_GREATER:
    case LAHAR_OP_GREATER_EQUAL:
        return lahar_operand_compare_by(step->operation, arguments[0], arguments[1]);
    case LAHAR_OP_CONCAT:
        return concat(evaluation, arguments, step->argument_count);
    case LAHAR_OP_TO_TIME:
        return lahar_operand_to_time(arguments[0], step->as.format);
    case LAHAR_OP_TO_INT:
        return lahar_operand_to_int(arguments[0]);
    case LAHAR_OP_TO_FLOAT: {
        const struct lahar_operand number = lahar_operand_to_number(arguments[0]);
        return number.kind == LAHAR_OPERAND_NULL ? number
                                                 : lahar_operand_of_f64(lahar_operand_f64(number));
    }
    case LAHAR_OP_IF:
        return arguments[lahar_operand_is_true(arguments[0]) ? 1 : 2];
    case LAHAR_OP_COALESCE:
        return coalesce(arguments, step->argument_count);
    case LAHAR_OP_YEAR:
    case LAHAR_OP_MONTH:
    case LAHAR_OP_WEEK:
    case LAHAR_OP_DAY:
    case LAHAR_OP_HOUR:
    case LAHAR_OP_MINUTE:
    case LAHAR_OP_SECOND:
        return start_of(step->operation, arguments[0]);
    default:
        return apply_to_text(evaluation, step, arguments);
    }
}

bool lahar_expression_evaluate(struct lahar_expression *expression, lahar_name_lookup look_up,
                               void *context, struct lahar_arena *arena,
                               struct lahar_operand *value_out)
{
    struct lahar_operand stack[LAHAR_EXPRESSION_STACK_MAX];
    struct lahar_evaluation evaluation = {.expression = expression, .arena = arena};
    size_t depth = 0;
    for (size_t i = 0; i < expression->step_count; i++) {
        const struct lahar_expression_step *step = &expression->steps[i];
        depth -= step->argument_count;
        if (step->operation == LAHAR_OP_LITERAL) {
            stack[depth] = step->as.literal;
        } else if (step->operation == LAHAR_OP_NAME) {
            stack[depth] = look_up(context, step->as.name);
        } else {
            stack[depth] = apply(&evaluation, step, &stack[depth]);
        }
        depth++;
    }
    *value_out = stack[0];
    return !evaluation.is_out_of_memory;
}
