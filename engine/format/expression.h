/* Expressions over the values of one record: what DEFAULT, MATERIALIZED and ALIAS columns are
 * computed by. docs/formats.md has the language.
 *
 * Compiled once into steps for a stack, so that evaluating neither recurses nor allocates but for
 * texts, which go to an arena. There is no clock and no state: the same record gives the same
 * value. One thread at a time. */
#ifndef LAHAR_FORMAT_EXPRESSION_H
#define LAHAR_FORMAT_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/format/json.h"
#include "engine/format/time_pattern.h"
#include "engine/regex/regex.h"
#include "io/base/allocator.h"
#include "io/base/arena.h"
#include "lahar/event.h"
#include "lahar/status.h"

enum {
    LAHAR_EXPRESSION_SIZE_MAX = 4096, /* bytes of text */
    LAHAR_EXPRESSION_STACK_MAX = 64,
    LAHAR_EXPRESSION_STEPS_MAX = 256
};

enum lahar_operand_kind {
    LAHAR_OPERAND_NULL,
    LAHAR_OPERAND_BOOL,
    LAHAR_OPERAND_I64,
    LAHAR_OPERAND_F64,
    LAHAR_OPERAND_TEXT,
    LAHAR_OPERAND_TIME
};

struct lahar_operand {
    enum lahar_operand_kind kind;
    union {
        bool boolean;
        int64_t i64;
        int64_t time_ns;
        double f64;
        lahar_bytes text;
    } as;
};

enum lahar_operation {
    LAHAR_OP_LITERAL,
    LAHAR_OP_NAME,
    LAHAR_OP_NEGATE,
    LAHAR_OP_NOT,
    LAHAR_OP_ADD,
    LAHAR_OP_SUBTRACT,
    LAHAR_OP_MULTIPLY,
    LAHAR_OP_DIVIDE,
    LAHAR_OP_MODULO,
    LAHAR_OP_EQUAL,
    LAHAR_OP_NOT_EQUAL,
    LAHAR_OP_LESS,
    LAHAR_OP_LESS_EQUAL,
    LAHAR_OP_GREATER,
    LAHAR_OP_GREATER_EQUAL,
    LAHAR_OP_AND,
    LAHAR_OP_OR,
    LAHAR_OP_LOWER,
    LAHAR_OP_UPPER,
    LAHAR_OP_TRIM,
    LAHAR_OP_LENGTH,
    LAHAR_OP_CONCAT,
    LAHAR_OP_SUBSTRING,
    LAHAR_OP_EXTRACT,
    LAHAR_OP_JSON,
    LAHAR_OP_TO_TIME,
    LAHAR_OP_TO_INT,
    LAHAR_OP_TO_FLOAT,
    LAHAR_OP_TO_STRING,
    LAHAR_OP_IF,
    LAHAR_OP_COALESCE,
    LAHAR_OP_YEAR,
    LAHAR_OP_MONTH,
    LAHAR_OP_WEEK,
    LAHAR_OP_DAY,
    LAHAR_OP_HOUR,
    LAHAR_OP_MINUTE,
    LAHAR_OP_SECOND
};

struct lahar_expression_step {
    enum lahar_operation operation;
    uint32_t argument_count; /* taken from the stack */
    union {
        struct lahar_operand literal;
        lahar_bytes name;
        struct lahar_regex *regex;         /* EXTRACT: owned */
        struct lahar_time_pattern *format; /* TO_TIME; NULL: any */
    } as;
};

struct lahar_expression {
    struct lahar_expression_step *steps; /* in the arena */
    size_t step_count;
    struct lahar_arena arena;
    struct lahar_regex_scratch scratch;
    struct lahar_json_parser json; /* scratch */
    const lahar_allocator *allocator;
};

/* LAHAR_INVALID: error->message says what is wrong and at which byte. */
lahar_status lahar_expression_create(lahar_bytes text, const lahar_allocator *allocator,
                                     struct lahar_expression **expression_out, lahar_error *error);
void lahar_expression_destroy(struct lahar_expression *expression); /* NULL is allowed */

/* The value of a name; NULL kind when the record has none. */
typedef struct lahar_operand (*lahar_name_lookup)(void *context, lahar_bytes name);

/* Texts of the value are in the record, in the expression or in the arena. False when memory is
 * refused. What cannot be computed (text that is no number, a division by zero) is null. */
bool lahar_expression_evaluate(struct lahar_expression *expression, lahar_name_lookup look_up,
                               void *context, struct lahar_arena *arena,
                               struct lahar_operand *value_out);

/* A value as one of a field, from and to. False where the type cannot hold it. */
bool lahar_operand_to_value(const struct lahar_operand *operand, struct lahar_arena *arena,
                            lahar_value *value_out);
struct lahar_operand lahar_operand_of(const lahar_value *value);

#endif
