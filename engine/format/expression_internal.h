/* What evaluating an expression is made of: operands, and what can be done with two of them. */
#ifndef LAHAR_FORMAT_EXPRESSION_INTERNAL_H
#define LAHAR_FORMAT_EXPRESSION_INTERNAL_H

#include "engine/format/expression.h"

#define LAHAR_NS_PER_SECOND INT64_C(1000000000)

/* What one evaluation works with. */
struct lahar_evaluation {
    struct lahar_expression *expression;
    struct lahar_arena *arena;
    bool is_out_of_memory;
};

static inline struct lahar_operand lahar_operand_null(void)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_NULL};
}

static inline struct lahar_operand lahar_operand_of_i64(int64_t number)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_I64, .as.i64 = number};
}

static inline struct lahar_operand lahar_operand_of_f64(double number)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_F64, .as.f64 = number};
}

static inline struct lahar_operand lahar_operand_of_bool(bool boolean)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_BOOL, .as.boolean = boolean};
}

static inline struct lahar_operand lahar_operand_of_text(lahar_bytes text)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_TEXT, .as.text = text};
}

static inline struct lahar_operand lahar_operand_of_time(int64_t time_ns)
{
    return (struct lahar_operand){.kind = LAHAR_OPERAND_TIME, .as.time_ns = time_ns};
}

/* A number of a number, of a text that is one, or of true and false; else null. */
struct lahar_operand lahar_operand_to_number(struct lahar_operand operand);
double lahar_operand_f64(struct lahar_operand number);
struct lahar_operand lahar_operand_to_int(struct lahar_operand operand);
/* The text of anything but null. */
struct lahar_operand lahar_operand_to_text(struct lahar_evaluation *evaluation,
                                           struct lahar_operand operand);
/* format: NULL for any. */
struct lahar_operand lahar_operand_to_time(struct lahar_operand operand,
                                           const struct lahar_time_pattern *format);

struct lahar_operand lahar_operand_calculate(enum lahar_operation operation, struct lahar_operand a,
                                             struct lahar_operand b);
struct lahar_operand lahar_operand_compare_by(enum lahar_operation operation,
                                              struct lahar_operand a, struct lahar_operand b);
/* Null, nothing, zero and "false" are not. */
bool lahar_operand_is_true(struct lahar_operand operand);

#endif
