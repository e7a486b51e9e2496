/* Evaluating expressions; see expression.h. */
#include <math.h>
#include <string.h>

#include "engine/format/expression.h"
#include "engine/format/time_moment.h"
#include "engine/format/time_text.h"
#include "engine/format/value_text.h"
#include "io/base/buffer.h"

static const int64_t NS_PER_SECOND = 1000000000;

/* What one evaluation works with. */
struct evaluation {
    struct lahar_expression *expression;
    struct lahar_arena *arena;
    bool is_out_of_memory;
};

static struct lahar_operand null_operand(void)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_NULL};
}

static struct lahar_operand of_i64(int64_t number)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_I64, .as.i64 = number};
}

static struct lahar_operand of_f64(double number)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_F64, .as.f64 = number};
}

static struct lahar_operand of_bool(bool boolean)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_BOOL, .as.boolean = boolean};
}

static struct lahar_operand of_text(lahar_bytes text)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_TEXT, .as.text = text};
}

static struct lahar_operand of_time(int64_t time_ns)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_TIME, .as.time_ns = time_ns};
}

/* --- conversions ------------------------------------------------------------------------- */

struct lahar_operand lahar_operand_of(const lahar_value *value)
{
    if (value == NULL || value->is_null) {
        return null_operand();
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return of_text(value->as.bytes);
    case LAHAR_I64:
        return of_i64(value->as.i64);
    case LAHAR_U64:
        return value->as.u64 <= INT64_MAX ? of_i64((int64_t)value->as.u64)
                                          : of_f64((double)value->as.u64);
    case LAHAR_F64:
        return of_f64(value->as.f64);
    case LAHAR_BOOL:
        return of_bool(value->as.boolean);
    case LAHAR_TIME:
        return of_time(value->as.time_ns);
    default:
        return null_operand();
    }
}

/* A number of a number, of a text that is one, or of true and false. */
static struct lahar_operand to_number(struct lahar_operand operand)
{
    bool is_canonical;
    lahar_value value = {.type = LAHAR_I64};
    switch (operand.kind) {
    case LAHAR_OPERAND_I64:
    case LAHAR_OPERAND_F64:
        return operand;
    case LAHAR_OPERAND_BOOL:
        return of_i64(operand.as.boolean);
    case LAHAR_OPERAND_TIME:
        return of_f64((double)operand.as.time_ns / (double)NS_PER_SECOND);
    case LAHAR_OPERAND_TEXT:
        if (lahar_value_parse(operand.as.text, &value, &is_canonical)) {
            return of_i64(value.as.i64);
        }
        value.type = LAHAR_F64;
        return lahar_value_parse(operand.as.text, &value, &is_canonical) ? of_f64(value.as.f64)
                                                                         : null_operand();
    default:
        return null_operand();
    }
}

static double f64_of(struct lahar_operand number)
{
    return number.kind == LAHAR_OPERAND_I64 ? (double)number.as.i64 : number.as.f64;
}

static struct lahar_operand to_int(struct lahar_operand operand)
{
    const struct lahar_operand number = to_number(operand);
    if (number.kind != LAHAR_OPERAND_F64) {
        return number;
    }
    return number.as.f64 > -9.2233720368547e18 && number.as.f64 < 9.2233720368547e18
               ? of_i64((int64_t)number.as.f64)
               : null_operand();
}

static bool put_text(const struct lahar_operand *operand, struct lahar_buffer *buffer)
{
    lahar_value value = {.type = LAHAR_I64};
    switch (operand->kind) {
    case LAHAR_OPERAND_BOOL:
        value.type = LAHAR_BOOL;
        value.as.boolean = operand->as.boolean;
        break;
    case LAHAR_OPERAND_I64:
        value.as.i64 = operand->as.i64;
        break;
    case LAHAR_OPERAND_F64:
        value.type = LAHAR_F64;
        value.as.f64 = operand->as.f64;
        break;
    case LAHAR_OPERAND_TIME:
        value.type = LAHAR_TIME;
        value.as.time_ns = operand->as.time_ns;
        break;
    default:
        return false;
    }
    lahar_value_put_text(buffer, &value);
    return true;
}

/* The text of anything but null. */
static struct lahar_operand to_text(struct evaluation *evaluation, struct lahar_operand operand)
{
    uint8_t storage[64];
    struct lahar_buffer text = {.data = storage, .capacity = sizeof storage};
    if (operand.kind == LAHAR_OPERAND_TEXT || !put_text(&operand, &text)) {
        return operand;
    }
    const void *copy = lahar_arena_copy(evaluation->arena, storage, text.size);
    evaluation->is_out_of_memory |= copy == NULL;
    return copy == NULL ? null_operand() : of_text((lahar_bytes){copy, text.size});
}

static struct lahar_operand to_time(struct lahar_operand operand,
                                    const struct lahar_time_pattern *format)
{
    int64_t time_ns;
    switch (operand.kind) {
    case LAHAR_OPERAND_TIME:
        return operand;
    case LAHAR_OPERAND_TEXT: {
        const bool is_time = format == NULL
                                 ? lahar_time_parse(operand.as.text, &time_ns)
                                 : lahar_time_pattern_parse(format, operand.as.text, &time_ns);
        return is_time ? of_time(time_ns) : null_operand();
    }
    case LAHAR_OPERAND_I64:
    case LAHAR_OPERAND_F64: {
        uint8_t storage[64];
        struct lahar_buffer text = {.data = storage, .capacity = sizeof storage};
        (void)put_text(&operand, &text);
        return to_time(of_text((lahar_bytes){storage, text.size}), format);
    }
    default:
        return null_operand();
    }
}

bool lahar_operand_to_value(const struct lahar_operand *operand, struct lahar_arena *arena,
                            lahar_value *value_out)
{
    struct evaluation evaluation = {.arena = arena};
    bool is_canonical;
    if (operand->kind == LAHAR_OPERAND_NULL) {
        return false;
    }
    if (value_out->type == LAHAR_TIME) {
        const struct lahar_operand time = to_time(*operand, NULL);
        value_out->as.time_ns = time.as.time_ns;
        return time.kind == LAHAR_OPERAND_TIME;
    }
    if (value_out->type == LAHAR_F64 && operand->kind != LAHAR_OPERAND_TEXT) {
        value_out->as.f64 = f64_of(to_number(*operand));
        return true;
    }
    struct lahar_operand converted = *operand;
    if ((value_out->type == LAHAR_I64 || value_out->type == LAHAR_U64) &&
        operand->kind != LAHAR_OPERAND_TEXT) {
        converted = to_int(*operand);
    }
    converted = to_text(&evaluation, converted);
    return converted.kind == LAHAR_OPERAND_TEXT &&
           lahar_value_parse(converted.as.text, value_out, &is_canonical);
}

/* --- arithmetic ---------------------------------------------------------------------------- */

static struct lahar_operand calculate_whole(enum lahar_operation operation, int64_t a, int64_t b)
{
    int64_t result;
    switch (operation) {
    case LAHAR_OP_ADD:
        return __builtin_add_overflow(a, b, &result) ? of_f64((double)a + (double)b)
                                                     : of_i64(result);
    case LAHAR_OP_SUBTRACT:
        return __builtin_sub_overflow(a, b, &result) ? of_f64((double)a - (double)b)
                                                     : of_i64(result);
    case LAHAR_OP_MULTIPLY:
        return __builtin_mul_overflow(a, b, &result) ? of_f64((double)a * (double)b)
                                                     : of_i64(result);
    case LAHAR_OP_MODULO:
        return b == 0 ? null_operand() : of_i64(b == -1 ? 0 : a % b);
    default:
        return b == 0 ? null_operand() : of_f64((double)a / (double)b);
    }
}

/* Times move by seconds; the difference of two is in seconds. */
static struct lahar_operand calculate_time(enum lahar_operation operation, struct lahar_operand a,
                                           struct lahar_operand b)
{
    if (operation == LAHAR_OP_SUBTRACT && b.kind == LAHAR_OPERAND_TIME) {
        const double difference = (double)a.as.time_ns - (double)b.as.time_ns;
        return a.kind == LAHAR_OPERAND_TIME ? of_f64(difference / (double)NS_PER_SECOND)
                                            : null_operand();
    }
    const bool is_first = a.kind == LAHAR_OPERAND_TIME;
    const struct lahar_operand number = to_number(is_first ? b : a);
    int64_t moved;
    if (number.kind == LAHAR_OPERAND_NULL || b.kind == a.kind ||
        (operation != LAHAR_OP_ADD && operation != LAHAR_OP_SUBTRACT)) {
        return null_operand();
    }
    const double ns = f64_of(number) * (double)NS_PER_SECOND;
    if (!(ns > -9.2e18 && ns < 9.2e18)) {
        return null_operand();
    }
    const int64_t time_ns = is_first ? a.as.time_ns : b.as.time_ns;
    const int64_t step_ns = operation == LAHAR_OP_ADD ? (int64_t)ns : -(int64_t)ns;
    return __builtin_add_overflow(time_ns, step_ns, &moved) ? null_operand() : of_time(moved);
}

/* Of a division whose quotient is cut to a whole number. */
static struct lahar_operand remainder_of(double x, double y)
{
    const double quotient = x / y;
    return quotient > -9.2e18 && quotient < 9.2e18 ? of_f64(x - (double)(int64_t)quotient * y)
                                                   : null_operand();
}

static struct lahar_operand calculate(enum lahar_operation operation, struct lahar_operand a,
                                      struct lahar_operand b)
{
    if (a.kind == LAHAR_OPERAND_TIME || b.kind == LAHAR_OPERAND_TIME) {
        return calculate_time(operation, a, b);
    }
    const struct lahar_operand left = to_number(a);
    const struct lahar_operand right = to_number(b);
    if (left.kind == LAHAR_OPERAND_NULL || right.kind == LAHAR_OPERAND_NULL) {
        return null_operand();
    }
    if (left.kind == LAHAR_OPERAND_I64 && right.kind == LAHAR_OPERAND_I64) {
        return calculate_whole(operation, left.as.i64, right.as.i64);
    }
    const double x = f64_of(left);
    const double y = f64_of(right);
    switch (operation) {
    case LAHAR_OP_ADD:
        return of_f64(x + y);
    case LAHAR_OP_SUBTRACT:
        return of_f64(x - y);
    case LAHAR_OP_MULTIPLY:
        return of_f64(x * y);
    case LAHAR_OP_MODULO:
        return remainder_of(x, y);
    default:
        return y == 0 ? null_operand() : of_f64(x / y);
    }
}

/* --- comparison ------------------------------------------------------------------------------ */

static int order_of_texts(lahar_bytes a, lahar_bytes b)
{
    const size_t shorter = a.size < b.size ? a.size : b.size;
    const int order = shorter == 0 ? 0 : memcmp(a.data, b.data, shorter);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* Below 0, 0, above 0 as a is below b; false when they cannot be compared. */
static bool compare(struct lahar_operand a, struct lahar_operand b, int *order_out)
{
    if (a.kind == LAHAR_OPERAND_TIME || b.kind == LAHAR_OPERAND_TIME) {
        a = to_time(a, NULL);
        b = to_time(b, NULL);
        *order_out = (a.as.time_ns > b.as.time_ns) - (a.as.time_ns < b.as.time_ns);
        return a.kind == LAHAR_OPERAND_TIME && b.kind == LAHAR_OPERAND_TIME;
    }
    if (a.kind == LAHAR_OPERAND_TEXT && b.kind == LAHAR_OPERAND_TEXT) {
        *order_out = order_of_texts(a.as.text, b.as.text);
        return true;
    }
    a = to_number(a);
    b = to_number(b);
    if (a.kind == LAHAR_OPERAND_NULL || b.kind == LAHAR_OPERAND_NULL) {
        return false;
    }
    if (a.kind == LAHAR_OPERAND_I64 && b.kind == LAHAR_OPERAND_I64) {
        *order_out = (a.as.i64 > b.as.i64) - (a.as.i64 < b.as.i64);
        return true;
    }
    const double x = f64_of(a);
    const double y = f64_of(b);
    *order_out = (x > y) - (x < y);
    return !isnan(x) && !isnan(y);
}

static struct lahar_operand compare_by(enum lahar_operation operation, struct lahar_operand a,
                                       struct lahar_operand b)
{
    int order;
    if (!compare(a, b, &order)) {
        return null_operand();
    }
    switch (operation) {
    case LAHAR_OP_EQUAL:
        return of_bool(order == 0);
    case LAHAR_OP_NOT_EQUAL:
        return of_bool(order != 0);
    case LAHAR_OP_LESS:
        return of_bool(order < 0);
    case LAHAR_OP_LESS_EQUAL:
        return of_bool(order <= 0);
    case LAHAR_OP_GREATER:
        return of_bool(order > 0);
    default:
        return of_bool(order >= 0);
    }
}

/* Null, nothing, zero and "false" are not. */
static bool is_true(struct lahar_operand operand)
{
    switch (operand.kind) {
    case LAHAR_OPERAND_BOOL:
        return operand.as.boolean;
    case LAHAR_OPERAND_I64:
        return operand.as.i64 != 0;
    case LAHAR_OPERAND_F64:
        return operand.as.f64 < 0 || operand.as.f64 > 0;
    case LAHAR_OPERAND_TEXT:
        return operand.as.text.size != 0 &&
               order_of_texts(operand.as.text, (lahar_bytes){"false", 5}) != 0 &&
               order_of_texts(operand.as.text, (lahar_bytes){"0", 1}) != 0;
    case LAHAR_OPERAND_TIME:
        return true;
    default:
        return false;
    }
}

/* --- texts -------------------------------------------------------------------------------------
 */

static struct lahar_operand change_case(struct evaluation *evaluation, lahar_bytes text, char first,
                                        char last)
{
    uint8_t *copy = lahar_arena_copy(evaluation->arena, text.size == 0 ? "" : text.data, text.size);
    if (copy == NULL) {
        evaluation->is_out_of_memory = true;
        return null_operand();
    }
    for (size_t i = 0; i < text.size; i++) {
        copy[i] ^= copy[i] >= (uint8_t)first && copy[i] <= (uint8_t)last ? 0x20 : 0;
    }
    return of_text((lahar_bytes){copy, text.size});
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

static struct lahar_operand concat(struct evaluation *evaluation, const struct lahar_operand *parts,
                                   uint32_t count)
{
    lahar_bytes texts[16];
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct lahar_operand part = to_text(evaluation, parts[i]);
        texts[i] = part.kind == LAHAR_OPERAND_TEXT ? part.as.text : (lahar_bytes){0};
        size += texts[i].size;
    }
    uint8_t *text = lahar_arena_allocate(evaluation->arena, size + 1);
    if (text == NULL) {
        evaluation->is_out_of_memory = true;
        return null_operand();
    }
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (texts[i].size != 0) {
            memcpy(text + at, texts[i].data, texts[i].size);
        }
        at += texts[i].size;
    }
    return of_text((lahar_bytes){text, size});
}

/* Bytes from the first-th on, counted from 1. */
static struct lahar_operand substring(lahar_bytes text, const struct lahar_operand *places,
                                      uint32_t count)
{
    const struct lahar_operand first = to_int(places[0]);
    const struct lahar_operand size = count == 2 ? to_int(places[1]) : of_i64(INT64_MAX);
    if (first.kind != LAHAR_OPERAND_I64 || size.kind != LAHAR_OPERAND_I64 || first.as.i64 < 1 ||
        size.as.i64 < 0) {
        return null_operand();
    }
    const uint64_t skipped = (uint64_t)first.as.i64 - 1;
    if (skipped >= text.size) {
        return of_text((lahar_bytes){"", 0});
    }
    const size_t left = text.size - (size_t)skipped;
    return of_text((lahar_bytes){(const uint8_t *)text.data + skipped,
                                 (uint64_t)size.as.i64 < left ? (size_t)size.as.i64 : left});
}

/* The first group, or without groups the whole of what matches. */
static struct lahar_operand extract(struct evaluation *evaluation, lahar_bytes text,
                                    const struct lahar_regex *regex)
{
    struct lahar_regex_scratch *scratch = &evaluation->expression->scratch;
    const void *data = text.size == 0 ? "" : text.data;
    lahar_bytes part;
    switch (lahar_regex_match(regex, scratch, data, text.size)) {
    case LAHAR_REGEX_MATCH:
        return lahar_regex_group(scratch, data, lahar_regex_group_count(regex) == 0 ? 0 : 1, &part)
                   ? of_text(part)
                   : null_operand();
    case LAHAR_REGEX_NO_MEMORY:
        evaluation->is_out_of_memory = true;
        return null_operand();
    default:
        return null_operand();
    }
}

/* --- JSON ---------------------------------------------------------------------------------------
 */

static struct lahar_operand json_scalar(struct evaluation *evaluation, const uint8_t *text,
                                        const struct lahar_json_token *token)
{
    const lahar_bytes raw = {text + token->offset, token->size};
    switch (token->kind) {
    case LAHAR_JSON_STRING: {
        bool is_lossy;
        if ((token->flags & LAHAR_JSON_ESCAPED) == 0) {
            return of_text(raw);
        }
        uint8_t *out = lahar_arena_allocate(evaluation->arena, raw.size + 1);
        if (out == NULL) {
            evaluation->is_out_of_memory = true;
            return null_operand();
        }
        const size_t size = lahar_json_unescape(raw.data, raw.size, out, &is_lossy);
        return of_text((lahar_bytes){out, size});
    }
    case LAHAR_JSON_NUMBER:
        return to_number(of_text(raw));
    case LAHAR_JSON_TRUE:
    case LAHAR_JSON_FALSE:
        return of_bool(token->kind == LAHAR_JSON_TRUE);
    default:
        return null_operand();
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

static struct lahar_operand json_member(struct evaluation *evaluation, lahar_bytes text,
                                        lahar_bytes path)
{
    struct lahar_json_parser *json = &evaluation->expression->json;
    if (text.size == 0 || text.size > UINT32_MAX) {
        return null_operand();
    }
    const enum lahar_json_result result = lahar_json_check(json, text.data, text.size);
    evaluation->is_out_of_memory |= result == LAHAR_JSON_NO_MEMORY;
    if (result != LAHAR_JSON_DONE) {
        return null_operand();
    }
    uint32_t index = 0;
    while (path.size != 0) {
        index = find_member(json, text.data, index, &path);
        if (index == UINT32_MAX) {
            return null_operand();
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
    return lahar_moment_to_ns(&moment, &start_ns) ? of_time(start_ns) : null_operand();
}

static struct lahar_operand start_of(enum lahar_operation operation, struct lahar_operand operand)
{
    static const int64_t day_ns = INT64_C(86400) * 1000000000;
    const struct lahar_operand time = to_time(operand, NULL);
    const int64_t time_ns = time.as.time_ns;
    if (time.kind != LAHAR_OPERAND_TIME || time_ns < INT64_MIN + 367 * day_ns) {
        return null_operand();
    }
    const int64_t day = floor_to(time_ns, day_ns) / day_ns;
    switch (operation) {
    case LAHAR_OP_SECOND:
        return of_time(floor_to(time_ns, NS_PER_SECOND));
    case LAHAR_OP_MINUTE:
        return of_time(floor_to(time_ns, 60 * NS_PER_SECOND));
    case LAHAR_OP_HOUR:
        return of_time(floor_to(time_ns, 3600 * NS_PER_SECOND));
    case LAHAR_OP_DAY:
        return of_time(day * day_ns);
    case LAHAR_OP_WEEK: /* from Monday; 1 January 1970 was a Thursday */
        return of_time((floor_to(day + 3, 7) - 3) * day_ns);
    default:
        return start_of_date(time_ns, operation == LAHAR_OP_YEAR);
    }
}

/* --- steps
 * ----------------------------------------------------------------------------------------- */

static struct lahar_operand apply_to_text(struct evaluation *evaluation,
                                          const struct lahar_expression_step *step,
                                          const struct lahar_operand *arguments)
{
    const struct lahar_operand first = to_text(evaluation, arguments[0]);
    if (first.kind != LAHAR_OPERAND_TEXT) {
        return null_operand();
    }
    const lahar_bytes text = first.as.text;
    switch (step->operation) {
    case LAHAR_OP_LOWER:
        return change_case(evaluation, text, 'A', 'Z');
    case LAHAR_OP_UPPER:
        return change_case(evaluation, text, 'a', 'z');
    case LAHAR_OP_TRIM:
        return of_text(trim(text));
    case LAHAR_OP_LENGTH:
        return of_i64((int64_t)text.size);
    case LAHAR_OP_SUBSTRING:
        return substring(text, arguments + 1, step->argument_count - 1);
    case LAHAR_OP_EXTRACT:
        return extract(evaluation, text, step->as.regex);
    case LAHAR_OP_JSON: {
        const struct lahar_operand path = to_text(evaluation, arguments[1]);
        return path.kind == LAHAR_OPERAND_TEXT ? json_member(evaluation, text, path.as.text)
                                               : null_operand();
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
    return null_operand();
}

static struct lahar_operand negate(struct lahar_operand operand)
{
    return calculate(LAHAR_OP_SUBTRACT, of_i64(0), to_number(operand));
}

static struct lahar_operand apply(struct evaluation *evaluation,
                                  const struct lahar_expression_step *step,
                                  const struct lahar_operand *arguments)
{
    switch (step->operation) {
    case LAHAR_OP_NEGATE:
        return negate(arguments[0]);
    case LAHAR_OP_NOT:
        return arguments[0].kind == LAHAR_OPERAND_NULL ? null_operand()
                                                       : of_bool(!is_true(arguments[0]));
    case LAHAR_OP_AND:
        return of_bool(is_true(arguments[0]) && is_true(arguments[1]));
    case LAHAR_OP_OR:
        return of_bool(is_true(arguments[0]) || is_true(arguments[1]));
    case LAHAR_OP_ADD:
    case LAHAR_OP_SUBTRACT:
    case LAHAR_OP_MULTIPLY:
    case LAHAR_OP_DIVIDE:
    case LAHAR_OP_MODULO:
        return calculate(step->operation, arguments[0], arguments[1]);
    case LAHAR_OP_EQUAL:
    case LAHAR_OP_NOT_EQUAL:
    case LAHAR_OP_LESS:
    case LAHAR_OP_LESS_EQUAL:
    case LAHAR_OP_GREATER:
    case LAHAR_OP_GREATER_EQUAL:
        return compare_by(step->operation, arguments[0], arguments[1]);
    case LAHAR_OP_CONCAT:
        return concat(evaluation, arguments, step->argument_count);
    case LAHAR_OP_TO_TIME:
        return to_time(arguments[0], step->as.format);
    case LAHAR_OP_TO_INT:
        return to_int(arguments[0]);
    case LAHAR_OP_TO_FLOAT: {
        const struct lahar_operand number = to_number(arguments[0]);
        return number.kind == LAHAR_OPERAND_NULL ? number : of_f64(f64_of(number));
    }
    case LAHAR_OP_IF:
        return arguments[is_true(arguments[0]) ? 1 : 2];
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
    struct evaluation evaluation = {.expression = expression, .arena = arena};
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
