/* Operands of expressions: conversions, arithmetic and comparison. */
#include <math.h>
#include <string.h>

#include "engine/format/expression_internal.h"
#include "engine/format/time_text.h"
#include "engine/format/value_text.h"
#include "io/base/buffer.h"

/* --- conversions ------------------------------------------------------------------------- */

struct lahar_operand lahar_operand_of(const lahar_value *value)
{
    if (value == NULL || value->is_null) {
        return lahar_operand_null();
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return lahar_operand_of_text(value->as.bytes);
    case LAHAR_I64:
        return lahar_operand_of_i64(value->as.i64);
    case LAHAR_U64:
        return value->as.u64 <= INT64_MAX ? lahar_operand_of_i64((int64_t)value->as.u64)
                                          : lahar_operand_of_f64((double)value->as.u64);
    case LAHAR_F64:
        return lahar_operand_of_f64(value->as.f64);
    case LAHAR_BOOL:
        return lahar_operand_of_bool(value->as.boolean);
    case LAHAR_TIME:
        return lahar_operand_of_time(value->as.time_ns);
    default:
        return lahar_operand_null();
    }
}

/* A number of a number, of a text that is one, or of true and false. */
struct lahar_operand lahar_operand_to_number(struct lahar_operand operand)
{
    bool is_canonical;
    lahar_value value = {.type = LAHAR_I64};
    switch (operand.kind) {
    case LAHAR_OPERAND_I64:
    case LAHAR_OPERAND_F64:
        return operand;
    case LAHAR_OPERAND_BOOL:
        return lahar_operand_of_i64(operand.as.boolean);
    case LAHAR_OPERAND_TIME:
        return lahar_operand_of_f64((double)operand.as.time_ns / (double)LAHAR_NS_PER_SECOND);
    case LAHAR_OPERAND_TEXT:
        if (lahar_value_parse(operand.as.text, &value, &is_canonical)) {
            return lahar_operand_of_i64(value.as.i64);
        }
        value.type = LAHAR_F64;
        return lahar_value_parse(operand.as.text, &value, &is_canonical)
                   ? lahar_operand_of_f64(value.as.f64)
                   : lahar_operand_null();
    default:
        return lahar_operand_null();
    }
}

double lahar_operand_f64(struct lahar_operand number)
{
    return number.kind == LAHAR_OPERAND_I64 ? (double)number.as.i64 : number.as.f64;
}

struct lahar_operand lahar_operand_to_int(struct lahar_operand operand)
{
    const struct lahar_operand number = lahar_operand_to_number(operand);
    if (number.kind != LAHAR_OPERAND_F64) {
        return number;
    }
    return number.as.f64 > -9.2233720368547e18 && number.as.f64 < 9.2233720368547e18
               ? lahar_operand_of_i64((int64_t)number.as.f64)
               : lahar_operand_null();
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
struct lahar_operand lahar_operand_to_text(struct lahar_evaluation *evaluation,
                                           struct lahar_operand operand)
{
    uint8_t storage[64];
    struct lahar_buffer text = {.data = storage, .capacity = sizeof storage};
    if (operand.kind == LAHAR_OPERAND_TEXT || !put_text(&operand, &text)) {
        return operand;
    }
    const void *copy = lahar_arena_copy(evaluation->arena, storage, text.size);
    evaluation->is_out_of_memory |= copy == NULL;
    return copy == NULL ? lahar_operand_null()
                        : lahar_operand_of_text((lahar_bytes){copy, text.size});
}

struct lahar_operand lahar_operand_to_time(struct lahar_operand operand,
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
        return is_time ? lahar_operand_of_time(time_ns) : lahar_operand_null();
    }
    case LAHAR_OPERAND_I64:
    case LAHAR_OPERAND_F64: {
        uint8_t storage[64];
        struct lahar_buffer text = {.data = storage, .capacity = sizeof storage};
        (void)put_text(&operand, &text);
        return lahar_operand_to_time(lahar_operand_of_text((lahar_bytes){storage, text.size}),
                                     format);
    }
    default:
        return lahar_operand_null();
    }
}

bool lahar_operand_to_value(const struct lahar_operand *operand, struct lahar_arena *arena,
                            lahar_value *value_out)
{
    struct lahar_evaluation evaluation = {.arena = arena};
    bool is_canonical;
    if (operand->kind == LAHAR_OPERAND_NULL) {
        return false;
    }
    if (value_out->type == LAHAR_TIME) {
        const struct lahar_operand time = lahar_operand_to_time(*operand, NULL);
        value_out->as.time_ns = time.as.time_ns;
        return time.kind == LAHAR_OPERAND_TIME;
    }
    if (value_out->type == LAHAR_F64 && operand->kind != LAHAR_OPERAND_TEXT) {
        value_out->as.f64 = lahar_operand_f64(lahar_operand_to_number(*operand));
        return true;
    }
    struct lahar_operand converted = *operand;
    if ((value_out->type == LAHAR_I64 || value_out->type == LAHAR_U64) &&
        operand->kind != LAHAR_OPERAND_TEXT) {
        converted = lahar_operand_to_int(*operand);
    }
    converted = lahar_operand_to_text(&evaluation, converted);
    return converted.kind == LAHAR_OPERAND_TEXT &&
           lahar_value_parse(converted.as.text, value_out, &is_canonical);
}

/* --- arithmetic ---------------------------------------------------------------------------- */

static struct lahar_operand calculate_whole(enum lahar_operation operation, int64_t a, int64_t b)
{
    int64_t result;
    switch (operation) {
    case LAHAR_OP_ADD:
        return __builtin_add_overflow(a, b, &result) ? lahar_operand_of_f64((double)a + (double)b)
                                                     : lahar_operand_of_i64(result);
    case LAHAR_OP_SUBTRACT:
        return __builtin_sub_overflow(a, b, &result) ? lahar_operand_of_f64((double)a - (double)b)
                                                     : lahar_operand_of_i64(result);
    case LAHAR_OP_MULTIPLY:
        return __builtin_mul_overflow(a, b, &result) ? lahar_operand_of_f64((double)a * (double)b)
                                                     : lahar_operand_of_i64(result);
    case LAHAR_OP_MODULO:
        return b == 0 ? lahar_operand_null() : lahar_operand_of_i64(b == -1 ? 0 : a % b);
    default:
        return b == 0 ? lahar_operand_null() : lahar_operand_of_f64((double)a / (double)b);
    }
}

/* Times move by seconds; the difference of two is in seconds. */
static struct lahar_operand calculate_time(enum lahar_operation operation, struct lahar_operand a,
                                           struct lahar_operand b)
{
    if (operation == LAHAR_OP_SUBTRACT && b.kind == LAHAR_OPERAND_TIME) {
        const double difference = (double)a.as.time_ns - (double)b.as.time_ns;
        return a.kind == LAHAR_OPERAND_TIME
                   ? lahar_operand_of_f64(difference / (double)LAHAR_NS_PER_SECOND)
                   : lahar_operand_null();
    }
    const bool is_first = a.kind == LAHAR_OPERAND_TIME;
    const struct lahar_operand number = lahar_operand_to_number(is_first ? b : a);
    int64_t moved;
    if (number.kind == LAHAR_OPERAND_NULL || b.kind == a.kind ||
        (operation != LAHAR_OP_ADD && operation != LAHAR_OP_SUBTRACT)) {
        return lahar_operand_null();
    }
    const double ns = lahar_operand_f64(number) * (double)LAHAR_NS_PER_SECOND;
    if (!(ns > -9.2e18 && ns < 9.2e18)) {
        return lahar_operand_null();
    }
    const int64_t time_ns = is_first ? a.as.time_ns : b.as.time_ns;
    const int64_t step_ns = operation == LAHAR_OP_ADD ? (int64_t)ns : -(int64_t)ns;
    return __builtin_add_overflow(time_ns, step_ns, &moved) ? lahar_operand_null()
                                                            : lahar_operand_of_time(moved);
}

/* Of a division whose quotient is cut to a whole number. */
static struct lahar_operand remainder_of(double x, double y)
{
    const double quotient = x / y;
    return quotient > -9.2e18 && quotient < 9.2e18
               ? lahar_operand_of_f64(x - (double)(int64_t)quotient * y)
               : lahar_operand_null();
}

struct lahar_operand lahar_operand_calculate(enum lahar_operation operation, struct lahar_operand a,
                                             struct lahar_operand b)
{
    if (a.kind == LAHAR_OPERAND_TIME || b.kind == LAHAR_OPERAND_TIME) {
        return calculate_time(operation, a, b);
    }
    const struct lahar_operand left = lahar_operand_to_number(a);
    const struct lahar_operand right = lahar_operand_to_number(b);
    if (left.kind == LAHAR_OPERAND_NULL || right.kind == LAHAR_OPERAND_NULL) {
        return lahar_operand_null();
    }
    if (left.kind == LAHAR_OPERAND_I64 && right.kind == LAHAR_OPERAND_I64) {
        return calculate_whole(operation, left.as.i64, right.as.i64);
    }
    const double x = lahar_operand_f64(left);
    const double y = lahar_operand_f64(right);
    switch (operation) {
    case LAHAR_OP_ADD:
        return lahar_operand_of_f64(x + y);
    case LAHAR_OP_SUBTRACT:
        return lahar_operand_of_f64(x - y);
    case LAHAR_OP_MULTIPLY:
        return lahar_operand_of_f64(x * y);
    case LAHAR_OP_MODULO:
        return remainder_of(x, y);
    default:
        return y == 0 ? lahar_operand_null() : lahar_operand_of_f64(x / y);
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
        a = lahar_operand_to_time(a, NULL);
        b = lahar_operand_to_time(b, NULL);
        *order_out = (a.as.time_ns > b.as.time_ns) - (a.as.time_ns < b.as.time_ns);
        return a.kind == LAHAR_OPERAND_TIME && b.kind == LAHAR_OPERAND_TIME;
    }
    if (a.kind == LAHAR_OPERAND_TEXT && b.kind == LAHAR_OPERAND_TEXT) {
        *order_out = order_of_texts(a.as.text, b.as.text);
        return true;
    }
    a = lahar_operand_to_number(a);
    b = lahar_operand_to_number(b);
    if (a.kind == LAHAR_OPERAND_NULL || b.kind == LAHAR_OPERAND_NULL) {
        return false;
    }
    if (a.kind == LAHAR_OPERAND_I64 && b.kind == LAHAR_OPERAND_I64) {
        *order_out = (a.as.i64 > b.as.i64) - (a.as.i64 < b.as.i64);
        return true;
    }
    const double x = lahar_operand_f64(a);
    const double y = lahar_operand_f64(b);
    *order_out = (x > y) - (x < y);
    return !isnan(x) && !isnan(y);
}

struct lahar_operand lahar_operand_compare_by(enum lahar_operation operation,
                                              struct lahar_operand a, struct lahar_operand b)
{
    int order;
    if (!compare(a, b, &order)) {
        return lahar_operand_null();
    }
    switch (operation) {
    case LAHAR_OP_EQUAL:
        return lahar_operand_of_bool(order == 0);
    case LAHAR_OP_NOT_EQUAL:
        return lahar_operand_of_bool(order != 0);
    case LAHAR_OP_LESS:
        return lahar_operand_of_bool(order < 0);
    case LAHAR_OP_LESS_EQUAL:
        return lahar_operand_of_bool(order <= 0);
    case LAHAR_OP_GREATER:
        return lahar_operand_of_bool(order > 0);
    default:
        return lahar_operand_of_bool(order >= 0);
    }
}

/* Null, nothing, zero and "false" are not. */
bool lahar_operand_is_true(struct lahar_operand operand)
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
