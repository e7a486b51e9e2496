/* Compiling expressions; see expression.h. Precedence, from weak to strong: or; and; not; the
 * comparisons; + -; * / %; a minus in front. */
#include "engine/format/expression.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "engine/format/value_text.h"
#include "io/base/error.h"

enum {
    DEPTH_MAX = 24
};

struct parser {
    const char *text;
    const char *at;
    const char *end;
    struct lahar_expression *expression;
    lahar_error *error;
    unsigned depth;
    unsigned stack; /* operands there will be */
};

static const struct function {
    const char *name;
    enum lahar_operation operation;
    uint32_t argument_min;
    uint32_t argument_max;
} functions[] = {
    {"lower", LAHAR_OP_LOWER, 1, 1},
    {"upper", LAHAR_OP_UPPER, 1, 1},
    {"trim", LAHAR_OP_TRIM, 1, 1},
    {"length", LAHAR_OP_LENGTH, 1, 1},
    {"concat", LAHAR_OP_CONCAT, 1, 16},
    {"substring", LAHAR_OP_SUBSTRING, 2, 3},
    {"extract", LAHAR_OP_EXTRACT, 2, 2},
    {"json", LAHAR_OP_JSON, 2, 2},
    {"toTime", LAHAR_OP_TO_TIME, 1, 3},
    {"toInt", LAHAR_OP_TO_INT, 1, 1},
    {"toFloat", LAHAR_OP_TO_FLOAT, 1, 1},
    {"toString", LAHAR_OP_TO_STRING, 1, 1},
    {"if", LAHAR_OP_IF, 3, 3},
    {"coalesce", LAHAR_OP_COALESCE, 1, 16},
    {"year", LAHAR_OP_YEAR, 1, 1},
    {"month", LAHAR_OP_MONTH, 1, 1},
    {"week", LAHAR_OP_WEEK, 1, 1},
    {"day", LAHAR_OP_DAY, 1, 1},
    {"hour", LAHAR_OP_HOUR, 1, 1},
    {"minute", LAHAR_OP_MINUTE, 1, 1},
    {"second", LAHAR_OP_SECOND, 1, 1},
};

static lahar_status fail_at(struct parser *parser, const char *at, const char *what)
{
    return lahar_fail(parser->error, LAHAR_INVALID, "expression, byte %zu: %s",
                      (size_t)(at - parser->text), what);
}

static lahar_status no_memory(struct parser *parser)
{
    return lahar_fail(parser->error, LAHAR_NO_MEMORY, "no memory for an expression");
}

static void skip_space(struct parser *parser)
{
    while (parser->at < parser->end && strchr(" \t\r\n", *parser->at) != NULL) {
        parser->at++;
    }
}

static bool take(struct parser *parser, const char *mark)
{
    const size_t size = strlen(mark);
    skip_space(parser);
    if ((size_t)(parser->end - parser->at) < size || memcmp(parser->at, mark, size) != 0) {
        return false;
    }
    parser->at += size;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A word that is not the beginning of a longer one. */
static bool take_word(struct parser *parser, const char *word)
{
    const size_t size = strlen(word);
    skip_space(parser);
    if ((size_t)(parser->end - parser->at) < size || strncasecmp(parser->at, word, size) != 0) {
        return false;
    }
    const char *behind = parser->at + size;
    if (behind < parser->end && (is_letter(*behind) || is_digit(*behind) || *behind == '.')) {
        return false;
    }
    parser->at = behind;
    return true;
}

static lahar_status emit(struct parser *parser, struct lahar_expression_step step)
{
    struct lahar_expression *expression = parser->expression;
    parser->stack = parser->stack + 1 - step.argument_count;
    if (expression->step_count == LAHAR_EXPRESSION_STEPS_MAX ||
        parser->stack > LAHAR_EXPRESSION_STACK_MAX) {
        return fail_at(parser, parser->at, "the expression is too large");
    }
    expression->steps[expression->step_count++] = step;
    return LAHAR_OK;
}

static lahar_status emit_operation(struct parser *parser, enum lahar_operation operation,
                                   uint32_t argument_count)
{
    return emit(parser, (struct lahar_expression_step){.operation = operation,
                                                       .argument_count = argument_count});
}

static lahar_status emit_literal(struct parser *parser, struct lahar_operand literal)
{
    return emit(parser, (struct lahar_expression_step){.operation = LAHAR_OP_LITERAL,
                                                       .as.literal = literal});
}

/* --- operands ---------------------------------------------------------------------------- */

/* Text between two of quote, which is doubled or behind a backslash inside. */
static lahar_status take_quoted(struct parser *parser, char quote, lahar_bytes *text_out)
{
    const char *start = ++parser->at;
    char *text =
        lahar_arena_allocate(&parser->expression->arena, (size_t)(parser->end - start) + 1);
    size_t size = 0;
    if (text == NULL) {
        return no_memory(parser);
    }
    for (;; parser->at++) {
        if (parser->at == parser->end) {
            return fail_at(parser, start - 1, "the quote is not closed");
        }
        if (*parser->at == quote) {
            if (parser->end - parser->at < 2 || parser->at[1] != quote) {
                break;
            }
            parser->at++;
        } else if (*parser->at == '\\' && parser->end - parser->at >= 2 &&
                   (parser->at[1] == quote || parser->at[1] == '\\')) {
            parser->at++;
        }
        text[size++] = *parser->at;
    }
    parser->at++;
    text[size] = '\0';
    *text_out = (lahar_bytes){text, size};
    return LAHAR_OK;
}

static lahar_status take_number(struct parser *parser)
{
    const char *start = parser->at;
    bool is_whole = true;
    bool is_canonical;
    while (parser->at < parser->end && (is_digit(*parser->at) || *parser->at == '.')) {
        is_whole = is_whole && *parser->at != '.';
        parser->at++;
    }
    const lahar_bytes text = {start, (size_t)(parser->at - start)};
    lahar_value value = {.type = is_whole ? LAHAR_I64 : LAHAR_F64};
    if (!lahar_value_parse(text, &value, &is_canonical)) {
        return fail_at(parser, start, "not a number");
    }
    struct lahar_operand literal = {.kind = is_whole ? LAHAR_OPERAND_I64 : LAHAR_OPERAND_F64};
    if (is_whole) {
        literal.as.i64 = value.as.i64;
    } else {
        literal.as.f64 = value.as.f64;
    }
    return emit_literal(parser, literal);
}

static lahar_status parse_or(struct parser *parser);

/* What the function needs beside its arguments is made of those that are literals. */
static lahar_status prepare(struct parser *parser, const char *at,
                            struct lahar_expression_step *step)
{
    struct lahar_expression *expression = parser->expression;
    const uint32_t literal_count = step->argument_count - 1;
    const struct lahar_expression_step *arguments =
        expression->steps + expression->step_count - literal_count;
    if (step->operation != LAHAR_OP_EXTRACT && step->operation != LAHAR_OP_TO_TIME) {
        return LAHAR_OK;
    }
    for (uint32_t i = 0; i < literal_count; i++) {
        if (arguments[i].operation != LAHAR_OP_LITERAL ||
            arguments[i].as.literal.kind != LAHAR_OPERAND_TEXT) {
            return fail_at(parser, at, "the arguments behind the first have to be texts in quotes");
        }
    }
    if (step->operation == LAHAR_OP_EXTRACT) {
        lahar_error refused = {0};
        if (lahar_regex_compile(arguments[0].as.literal.as.text, LAHAR_REGEX_BYTES,
                                parser->expression->allocator, &step->as.regex,
                                &refused) != LAHAR_OK) {
            return fail_at(parser, at, refused.message);
        }
    } else if (literal_count != 0) {
        step->as.format =
            lahar_arena_allocate(&expression->arena, sizeof(struct lahar_time_pattern));
        if (step->as.format == NULL) {
            return no_memory(parser);
        }
        const char *zone = literal_count == 2 ? arguments[1].as.literal.as.text.data : NULL;
        LAHAR_TRY(lahar_time_pattern_init(step->as.format, arguments[0].as.literal.as.text.data,
                                          zone, 0, 0, parser->error));
    }
    expression->step_count -= literal_count;
    parser->stack -= literal_count;
    step->argument_count = 1;
    return LAHAR_OK;
}

static lahar_status parse_call(struct parser *parser, const char *at, lahar_bytes name)
{
    const struct function *function = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strlen(functions[i].name) == name.size &&
            strncasecmp(functions[i].name, name.data, name.size) == 0) {
            function = &functions[i];
        }
    }
    if (function == NULL) {
        return fail_at(parser, at, "no such function");
    }
    struct lahar_expression_step step = {.operation = function->operation};
    while (!take(parser, ")")) {
        if (step.argument_count != 0 && !take(parser, ",")) {
            return fail_at(parser, parser->at, "expected ',' or ')'");
        }
        LAHAR_TRY(parse_or(parser));
        step.argument_count++;
    }
    if (step.argument_count < function->argument_min ||
        step.argument_count > function->argument_max) {
        return fail_at(parser, at, "wrong number of arguments");
    }
    LAHAR_TRY(prepare(parser, at, &step));
    const lahar_status status = emit(parser, step);
    if (status != LAHAR_OK && step.operation == LAHAR_OP_EXTRACT) {
        lahar_regex_destroy(step.as.regex);
    }
    return status;
}

/* A name, in backquotes where it has other letters; or a function. */
static lahar_status parse_name(struct parser *parser)
{
    const char *start = parser->at;
    lahar_bytes name;
    if (*start == '`') {
        LAHAR_TRY(take_quoted(parser, '`', &name));
    } else {
        while (parser->at < parser->end &&
               (is_letter(*parser->at) || is_digit(*parser->at) || *parser->at == '.')) {
            parser->at++;
        }
        name.size = (size_t)(parser->at - start);
        name.data = lahar_arena_copy(&parser->expression->arena, start, name.size);
        if (name.data == NULL) {
            return no_memory(parser);
        }
        if (take(parser, "(")) {
            return parse_call(parser, start, name);
        }
    }
    return emit(parser,
                (struct lahar_expression_step){.operation = LAHAR_OP_NAME, .as.name = name});
}

static lahar_status parse_operand(struct parser *parser)
{
    struct lahar_operand literal = {.kind = LAHAR_OPERAND_BOOL};
    skip_space(parser);
    if (parser->at == parser->end) {
        return fail_at(parser, parser->at, "an operand is missing");
    }
    const char c = *parser->at;
    if (take(parser, "(")) {
        LAHAR_TRY(parse_or(parser));
        return take(parser, ")") ? LAHAR_OK : fail_at(parser, parser->at, "expected ')'");
    }
    if (c == '\'') {
        literal.kind = LAHAR_OPERAND_TEXT;
        LAHAR_TRY(take_quoted(parser, '\'', &literal.as.text));
        return emit_literal(parser, literal);
    }
    if (is_digit(c)) {
        return take_number(parser);
    }
    if (take_word(parser, "null")) {
        return emit_literal(parser, (struct lahar_operand){0});
    }
    if (take_word(parser, "true") || take_word(parser, "false")) {
        literal.as.boolean = c == 't' || c == 'T';
        return emit_literal(parser, literal);
    }
    return is_letter(c) || c == '`' ? parse_name(parser)
                                    : fail_at(parser, parser->at, "not an operand");
}

/* --- operators ------------------------------------------------------------------------------ */

static lahar_status parse_sign(struct parser *parser)
{
    unsigned count = 0;
    while (take(parser, "-")) {
        count++;
    }
    LAHAR_TRY(parse_operand(parser));
    return count % 2 == 0 ? LAHAR_OK : emit_operation(parser, LAHAR_OP_NEGATE, 1);
}

struct operator_mark {
    const char *mark;
    enum lahar_operation operation;
};

/* The first of marks that stands here; NULL when none does. */
static const struct operator_mark *take_operator(struct parser *parser,
                                                 const struct operator_mark *marks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (take(parser, marks[i].mark)) {
            return &marks[i];
        }
    }
    return NULL;
}

static lahar_status parse_product(struct parser *parser)
{
    static const struct operator_mark marks[] = {
        {"*", LAHAR_OP_MULTIPLY}, {"/", LAHAR_OP_DIVIDE}, {"%", LAHAR_OP_MODULO}};
    const struct operator_mark *found;
    LAHAR_TRY(parse_sign(parser));
    while ((found = take_operator(parser, marks, 3)) != NULL) {
        LAHAR_TRY(parse_sign(parser));
        LAHAR_TRY(emit_operation(parser, found->operation, 2));
    }
    return LAHAR_OK;
}

static lahar_status parse_sum(struct parser *parser)
{
    static const struct operator_mark marks[] = {
        {"+", LAHAR_OP_ADD}, {"-", LAHAR_OP_SUBTRACT}, {"||", LAHAR_OP_CONCAT}};
    const struct operator_mark *found;
    LAHAR_TRY(parse_product(parser));
    while ((found = take_operator(parser, marks, 3)) != NULL) {
        LAHAR_TRY(parse_product(parser));
        LAHAR_TRY(emit_operation(parser, found->operation, 2));
    }
    return LAHAR_OK;
}

static lahar_status parse_comparison(struct parser *parser)
{
    static const struct operator_mark marks[] = {
        {"<=", LAHAR_OP_LESS_EQUAL}, {">=", LAHAR_OP_GREATER_EQUAL}, {"!=", LAHAR_OP_NOT_EQUAL},
        {"<>", LAHAR_OP_NOT_EQUAL},  {"==", LAHAR_OP_EQUAL},         {"=", LAHAR_OP_EQUAL},
        {"<", LAHAR_OP_LESS},        {">", LAHAR_OP_GREATER}};
    LAHAR_TRY(parse_sum(parser));
    const struct operator_mark *found = take_operator(parser, marks, 8);
    if (found == NULL) {
        return LAHAR_OK;
    }
    LAHAR_TRY(parse_sum(parser));
    return emit_operation(parser, found->operation, 2);
}

static lahar_status parse_not(struct parser *parser)
{
    unsigned count = 0;
    while (take_word(parser, "not")) {
        count++;
    }
    LAHAR_TRY(parse_comparison(parser));
    return count % 2 == 0 ? LAHAR_OK : emit_operation(parser, LAHAR_OP_NOT, 1);
}

static lahar_status parse_and(struct parser *parser)
{
    LAHAR_TRY(parse_not(parser));
    while (take_word(parser, "and")) {
        LAHAR_TRY(parse_not(parser));
        LAHAR_TRY(emit_operation(parser, LAHAR_OP_AND, 2));
    }
    return LAHAR_OK;
}

static lahar_status parse_or(struct parser *parser)
{
    if (++parser->depth > DEPTH_MAX) {
        return fail_at(parser, parser->at, "nested too deeply");
    }
    LAHAR_TRY(parse_and(parser));
    while (take_word(parser, "or")) {
        LAHAR_TRY(parse_and(parser));
        LAHAR_TRY(emit_operation(parser, LAHAR_OP_OR, 2));
    }
    parser->depth--;
    return LAHAR_OK;
}

/* --- the whole ------------------------------------------------------------------------------ */

lahar_status lahar_expression_create(lahar_bytes text, const lahar_allocator *allocator,
                                     struct lahar_expression **expression_out, lahar_error *error)
{
    if (text.size == 0 || text.size > LAHAR_EXPRESSION_SIZE_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "an expression has 1 .. %d bytes",
                          (int)LAHAR_EXPRESSION_SIZE_MAX);
    }
    struct lahar_expression *expression = lahar_allocate_zeroed(allocator, 1, sizeof *expression);
    if (expression == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an expression");
    }
    expression->allocator = allocator;
    lahar_arena_init(&expression->arena, allocator, 0);
    lahar_json_parser_init(&expression->json, allocator);
    expression->steps = lahar_arena_allocate(&expression->arena, LAHAR_EXPRESSION_STEPS_MAX *
                                                                     sizeof *expression->steps);
    struct parser parser = {.text = text.data,
                            .at = text.data,
                            .end = (const char *)text.data + text.size,
                            .expression = expression,
                            .error = error};
    lahar_status status = expression->steps == NULL ? no_memory(&parser) : parse_or(&parser);
    skip_space(&parser);
    if (status == LAHAR_OK && parser.at != parser.end) {
        status = fail_at(&parser, parser.at, "expected an operator or the end");
    }
    if (status != LAHAR_OK) {
        lahar_expression_destroy(expression);
        return status;
    }
    *expression_out = expression;
    return LAHAR_OK;
}

void lahar_expression_destroy(struct lahar_expression *expression)
{
    if (expression == NULL) {
        return;
    }
    for (size_t i = 0; i < expression->step_count; i++) {
        if (expression->steps[i].operation == LAHAR_OP_EXTRACT) {
            lahar_regex_destroy(expression->steps[i].as.regex);
        }
    }
    lahar_regex_scratch_deinit(&expression->scratch);
    lahar_json_parser_deinit(&expression->json);
    lahar_arena_deinit(&expression->arena);
    lahar_release(expression->allocator, expression);
}
