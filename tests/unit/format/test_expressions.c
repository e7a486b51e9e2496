/* Expressions, and columns that they fill. */
#include <math.h>

#include "engine/format/columns.h"
#include "engine/format/expression.h"
#include "engine/format/value_text.h"
#include "text_fixture.h"

static struct lahar_operand look_up(void *context, lahar_bytes name)
{
    (void)context;
    if (bytes_equal(name, "n")) {
        return (struct lahar_operand){.kind = LAHAR_OPERAND_I64, .as.i64 = 7};
    }
    if (bytes_equal(name, "s")) {
        return (struct lahar_operand){.kind = LAHAR_OPERAND_TEXT, .as.text = {"Ab 12", 5}};
    }
    if (bytes_equal(name, "a b")) {
        return (struct lahar_operand){.kind = LAHAR_OPERAND_TEXT, .as.text = {"odd", 3}};
    }
    if (bytes_equal(name, "doc")) {
        static const char doc[] =
            "{\"a\":{\"b\":[1],\"c.d\":\"x\\u0041\"},\"n\":12345678901234567,\"t\":true}";
        return (struct lahar_operand){.kind = LAHAR_OPERAND_TEXT, .as.text = {doc, sizeof doc - 1}};
    }
    return (struct lahar_operand){.kind = LAHAR_OPERAND_NULL};
}

/* The value as the text that a field of that type has; "null" where there is none. */
static const char *result(const char *text, lahar_type type)
{
    static char shown[256];
    struct lahar_expression *expression = NULL;
    struct lahar_operand operand;
    struct lahar_arena arena;
    lahar_value value = {.type = type};
    lahar_error error = {0};
    struct lahar_buffer buffer = {.data = (uint8_t *)shown, .capacity = sizeof shown};
    cr_assert_eq(lahar_expression_create((lahar_bytes){text, strlen(text)}, &lahar_allocator_libc,
                                         &expression, &error),
                 LAHAR_OK, "%s: %s", text, error.message);
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    cr_assert(lahar_expression_evaluate(expression, look_up, NULL, &arena, &operand));
    if (!lahar_operand_to_value(&operand, &arena, &value)) {
        (void)snprintf(shown, sizeof shown, "null");
    } else {
        lahar_value_put_text(&buffer, &value);
        if (type == LAHAR_TEXT) {
            memcpy(shown, value.as.bytes.data, value.as.bytes.size);
            buffer.size = value.as.bytes.size;
        }
        shown[buffer.size] = '\0';
    }
    lahar_arena_deinit(&arena);
    lahar_expression_destroy(expression);
    return shown;
}

/* An expression, and the text of its value as one of a type. */
struct answer {
    const char *text;
    lahar_type type;
    const char *wanted;
};

static void expect_answers(const struct answer *answers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *got = result(answers[i].text, answers[i].type);
        cr_expect_str_eq(got, answers[i].wanted, "%s: %s", answers[i].text, got);
    }
}

Test(expressions, calculate)
{
    static const struct answer answers[] = {
        {"1 + 2 * n - -3", LAHAR_I64, "18"},
        {"(1 + 2) * n % 4", LAHAR_I64, "1"},
        {"n / 2", LAHAR_F64, "3.5"},
        {"7.5 % 2", LAHAR_F64, "1.5"},
        {"n / 0", LAHAR_F64, "null"},
        {"9223372036854775807 + 1", LAHAR_F64, "9223372036854776000"},
        {"'12' * 2", LAHAR_I64, "24"},
        {"'x' * 2", LAHAR_I64, "null"},
        {"missing + 1", LAHAR_I64, "null"},
        {"toInt('3.9') + toFloat('1')", LAHAR_I64, "4"},
    };
    expect_answers(answers, sizeof answers / sizeof answers[0]);
}

Test(expressions, compare_and_decide)
{
    static const struct answer answers[] = {
        {"n > 6 and not (s = 'x' or false)", LAHAR_BOOL, "true"},
        {"'a' < 'ab'", LAHAR_BOOL, "true"},
        {"'9' = 9", LAHAR_BOOL, "true"},
        /* A date alone is no time. */
        {"toTime('2024-05-01') <> '2024-05-01T00:00:00Z'", LAHAR_BOOL, "null"},
        {"toTime('2024-05-01T02:00:00+02:00') == '2024-05-01T00:00:00Z'", LAHAR_BOOL, "true"},
        {"null = null", LAHAR_BOOL, "null"},
        {"if(n != 7, 'a', concat('b', n))", LAHAR_TEXT, "b7"},
        {"coalesce(missing, null, s)", LAHAR_TEXT, "Ab 12"},
    };
    expect_answers(answers, sizeof answers / sizeof answers[0]);
}

Test(expressions, work_on_texts)
{
    static const struct answer answers[] = {
        {"lower(s) || upper('é/x')", LAHAR_TEXT, "ab 12é/X"},
        {"concat('it''s ', 'a \\\\ b', missing, 1.5, true)", LAHAR_TEXT, "it's a \\ b1.5true"},
        {"`a b`", LAHAR_TEXT, "odd"},
        {"substring(s, 4)", LAHAR_I64, "12"},
        {"substring(s, 1, 2)", LAHAR_TEXT, "Ab"},
        {"length(trim('  x '))", LAHAR_I64, "1"},
        {"extract(s, '([0-9]+)')", LAHAR_I64, "12"},
        {"extract(s, '[0-9]')", LAHAR_TEXT, "1"},
        {"extract(s, 'z')", LAHAR_TEXT, "null"},
    };
    expect_answers(answers, sizeof answers / sizeof answers[0]);
}

Test(expressions, look_into_json)
{
    static const struct answer answers[] = {
        {"json(doc, 'a.c.d')", LAHAR_TEXT, "xA"},
        {"json(doc, 'n')", LAHAR_I64, "12345678901234567"},
        {"json(doc, 't')", LAHAR_BOOL, "true"},
        {"json(doc, 'a.b')", LAHAR_TEXT, "null"},
        {"json(doc, 'a.x')", LAHAR_TEXT, "null"},
        {"json(s, 'a')", LAHAR_TEXT, "null"},
    };
    expect_answers(answers, sizeof answers / sizeof answers[0]);
}

Test(expressions, cut_times)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"second(toTime('2024-05-15T13:14:15.5Z'))", "2024-05-15T13:14:15Z"},
        {"minute('2024-05-15T13:14:15Z')", "2024-05-15T13:14:00Z"},
        {"hour('2024-05-15T13:14:15Z')", "2024-05-15T13:00:00Z"},
        {"day('2024-05-15T13:14:15Z')", "2024-05-15T00:00:00Z"},
        {"week('2024-05-15T13:14:15Z')", "2024-05-13T00:00:00Z"},
        {"month('2024-02-29T13:14:15Z')", "2024-02-01T00:00:00Z"},
        {"year('2024-12-31T13:14:15Z')", "2024-01-01T00:00:00Z"},
        {"day('1969-12-31T23:00:00Z')", "1969-12-31T00:00:00Z"},
        {"toTime('01.05.2024 02', '%d.%m.%Y %H', '+02:00')", "2024-05-01T00:00:00Z"},
        {"toTime('1714521600', 'epoch_s') + 60", "2024-05-01T00:01:00Z"},
        {"toTime(1714521600)", "2024-05-01T00:00:00Z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(result(cases[i].text, LAHAR_TIME), cases[i].wanted, "%s: %s",
                         cases[i].text, result(cases[i].text, LAHAR_TIME));
    }
    cr_expect_str_eq(
        result("toTime('2024-05-01T00:00:01.5Z') - toTime('2024-05-01T00:00:00Z')", LAHAR_F64),
        "1.5");
}

Test(expressions, refuse_what_is_none)
{
    static const char *const bad[] = {"1 +",
                                      "(1",
                                      "1 2",
                                      "nothing(1)",
                                      "lower()",
                                      "lower(1,2)",
                                      "'open",
                                      "extract(s, '(')",
                                      "extract(s, n)",
                                      "&",
                                      "",
                                      "toTime(s, '%Q')",
                                      "toTime(s, 'rfc3339', 'Mars')",
                                      "1..2"};
    char deep[200];
    struct lahar_expression *expression = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lahar_error error = {0};
        cr_expect_eq(lahar_expression_create((lahar_bytes){bad[i], strlen(bad[i])},
                                             &lahar_allocator_libc, &expression, &error),
                     LAHAR_INVALID, "%s", bad[i]);
    }
    memset(deep, '(', sizeof deep);
    cr_expect_eq(lahar_expression_create((lahar_bytes){deep, sizeof deep}, &lahar_allocator_libc,
                                         &expression, NULL),
                 LAHAR_INVALID);
}

/* Definitions as they are stored. */
static void put_column(struct lahar_buffer *stored, lahar_column_kind kind, lahar_type type,
                       const char *name, const char *expression)
{
    lahar_buffer_put_u8(stored, (uint8_t)kind);
    lahar_buffer_put_u8(stored, (uint8_t)type);
    lahar_buffer_put_sized(stored, name, strlen(name));
    lahar_buffer_put_sized(stored, expression, strlen(expression));
}

Test(columns, are_filled_while_records_are_read)
{
    static const lahar_field_spec fields[] = {
        {"n", LAHAR_I64, false}, {"host", LAHAR_KEYWORD, false}, {"when", LAHAR_TIME, false}};
    struct fixture f;
    struct lahar_buffer stored;
    struct lahar_columns columns = {0};
    lahar_error error = {0};
    fixture_init_fields(&f, LAHAR_FORMAT_CSV, LAHAR_SCHEMA_LOG, fields, 3);
    lahar_buffer_init(&stored, &lahar_allocator_libc);
    lahar_buffer_put(&stored, "\1\3", 2);
    put_column(&stored, LAHAR_COLUMN_DEFAULT, LAHAR_I64, "n", "40 + 2");
    put_column(&stored, LAHAR_COLUMN_MATERIALIZED, LAHAR_KEYWORD, "host",
               "lower(extract(url, '//([^/]+)'))");
    put_column(&stored, LAHAR_COLUMN_MATERIALIZED, LAHAR_TIME, "when", "toTime(t, '%d.%m.%Y')");
    cr_assert_eq(lahar_columns_load(&columns, (lahar_bytes){stored.data, stored.size}, f.catalog,
                                    f.options.stream, "when", &lahar_allocator_libc, &error),
                 LAHAR_OK, "%s", error.message);
    f.options.columns = &columns;
    f.options.time_field = "when";
    fixture_read(&f, "n,host,url,t\n1,given,http://A.b/c,01.05.2024\n,x,none,\n");
    cr_expect_eq(f.error_count, 0, "%s", f.error_text);
    cr_expect_str_eq(fixture_json(&f),
                     "{\"attributes\":{\"host\":\"given\",\"url\":\"http://A.b/c\",\"t\":"
                     "\"01.05.2024\"},\"_offset\":13,\"n\":1,\"host\":\"a.b\",\"when\":"
                     "\"2024-05-01T00:00:00.000000000Z\"}\n"
                     "{\"attributes\":{\"host\":\"x\",\"url\":\"none\",\"t\":\"\"},\"_offset\":45,"
                     "\"n\":42}\n");
    cr_expect_str_eq(fixture_raw(&f), "n,host,url,t\n1,given,http://A.b/c,01.05.2024\n,x,none,\n");
    cr_expect_eq(fixture_event(&f, 0).time_ns, INT64_C(1714521600000000000));
    /* Whatever is stored, loading is safe. */
    for (size_t size = 0; size < stored.size; size++) {
        struct lahar_columns cut = {0};
        cr_expect_neq(lahar_columns_load(&cut, (lahar_bytes){stored.data, size}, f.catalog,
                                         f.options.stream, NULL, &lahar_allocator_libc, NULL),
                      LAHAR_OK);
        lahar_columns_deinit(&cut);
    }
    lahar_columns_deinit(&columns);
    lahar_buffer_deinit(&stored);
    fixture_deinit(&f);
}
