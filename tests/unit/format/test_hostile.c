/* Hostile input of every kind that the odd files hold, made up here: starts that are no text, bytes
 * that are no UTF-8, line ends of all systems, numbers, nesting and headers without measure, what
 * stands behind a record. Each is read in pieces of many sizes, with the same outcome. */
#include "text_fixture.h"

static const size_t pieces[] = {0, 1, 2, 3, 7, 64};

/* Reads it in every way; the outcome is that of the last. */
static void expect_counts(struct fixture *f, const void *text, size_t size, size_t event_count,
                          size_t error_count)
{
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        fixture_clear(f);
        fixture_read_bytes(f, text, size, pieces[i]);
        cr_assert_eq(f->event_count, event_count, "piece %zu: %zu events, %.*s", pieces[i],
                     f->event_count, size > 60 ? 60 : (int)size, (const char *)text);
        cr_assert_eq(f->error_count, error_count, "piece %zu: %zu errors (%s), %.*s", pieces[i],
                     f->error_count, f->error_text, size > 60 ? 60 : (int)size, (const char *)text);
    }
}

struct input {
    lahar_format format;
    const char *text;
    size_t size; /* 0: up to its NUL */
    size_t event_count;
    size_t error_count;
};

static void expect_inputs(const struct input *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct fixture f;
        fixture_init(&f, inputs[i].format);
        const size_t size = inputs[i].size == 0 ? strlen(inputs[i].text) : inputs[i].size;
        expect_counts(&f, inputs[i].text, size, inputs[i].event_count, inputs[i].error_count);
        fixture_deinit(&f);
    }
}

#define SIZED(text) text, sizeof(text) - 1

Test(hostile, starts_that_are_no_text_are_one_error)
{
    static const struct {
        const char *text;
        size_t size;
        const char *what;
    } starts[] = {{SIZED("\xff\xfe"
                         "a\0\n\0"),
                   "UTF-16"},
                  {SIZED("\xfe\xff\0a\0\n"), "UTF-16"},
                  {SIZED("\xff\xfe\0\0a\0\0\0\n\0\0\0"), "UTF-16"},
                  {SIZED("\0\0\xfe\xff\0\0\0a\0\0\0\n"), "UTF-32"},
                  {SIZED("\x1f\x8b\x08\0\n\n{\"a\":1}\n"), "gzip"},
                  {SIZED("\x28\xb5\x2f\xfd\n\n"), "zstd"},
                  {SIZED("\xfd"
                         "7zXZ\0\n\n"),
                   "xz"},
                  {SIZED("BZh11AY&SY\n\n"), "bzip2"},
                  {SIZED("BZh91AY&SY"), "bzip2"}};
    static const lahar_format formats[] = {LAHAR_FORMAT_LINE, LAHAR_FORMAT_JSON, LAHAR_FORMAT_CSV,
                                           LAHAR_FORMAT_VALUES};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        for (size_t j = 0; j < sizeof formats / sizeof formats[0]; j++) {
            struct fixture f;
            fixture_init(&f, formats[j]);
            expect_counts(&f, starts[i].text, starts[i].size, 0, 1);
            cr_assert_not_null(strstr(f.error_text, starts[i].what), "%s", f.error_text);
            fixture_deinit(&f);
        }
    }
}

Test(hostile, starts_that_only_resemble_them_are_text)
{
    static const struct input inputs[] = {
        {LAHAR_FORMAT_LINE, SIZED("BZh9 is no archive\n"), 1, 0},
        {LAHAR_FORMAT_LINE, SIZED("BZh01AY&SY\n"), 1, 0},
        {LAHAR_FORMAT_LINE, SIZED("\x1f\x8b"), 1, 0},
        {LAHAR_FORMAT_LINE, SIZED("\x1f\n\x8b\x08\n"), 2, 0},
        {LAHAR_FORMAT_LINE, SIZED("\xff"), 1, 0},
        {LAHAR_FORMAT_LINE, SIZED("\xef\xbb"), 1, 0},
        {LAHAR_FORMAT_LINE, SIZED("\xef\xbb\xbf"), 0, 0},
        {LAHAR_FORMAT_LINE, SIZED("\0\0a\n"), 1, 0},
        {LAHAR_FORMAT_LINE, SIZED("x\xff\xfe\n\xff\xfe\n"), 2, 0},
        {LAHAR_FORMAT_RAW_BLOB, SIZED("\x1f\x8b\x08\0\n\n"), 1, 0},
    };
    expect_inputs(inputs, sizeof inputs / sizeof inputs[0]);
}

Test(hostile, line_ends_of_all_systems_in_one_file)
{
    struct fixture f;
    static const char text[] = "a\r\nb\nc\rd\r\r\n\r\n\re\r";
    fixture_init(&f, LAHAR_FORMAT_LINE);
    expect_counts(&f, text, sizeof text - 1, 5, 0);
    static const char *const lines[] = {"a", "b", "c\rd\r", "", "\re\r"};
    for (size_t i = 0; i < 5; i++) {
        const lahar_event event = fixture_event(&f, i);
        cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_MESSAGE), lines[i]), "%zu", i);
    }
    cr_assert_str_eq(fixture_raw(&f), text);
    fixture_deinit(&f);
    static const struct input inputs[] = {
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":1}\r{\"a\":2}\r\n\r{\"a\":3}"), 3, 0},
        {LAHAR_FORMAT_CSV, SIZED("a,b\r\n1,2\n3,4\r\n5,\r6\n"), 3, 0},
        {LAHAR_FORMAT_TSV, SIZED("a\tb\r\n1\t2\r\n3\t4"), 2, 0},
    };
    expect_inputs(inputs, sizeof inputs / sizeof inputs[0]);
}

Test(hostile, what_stands_behind_or_inside_a_record)
{
    static const struct input inputs[] = {
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":1} x\n{\"b\":2}\n"), 2, 1},
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":1}{\"b\":2}}\n{\"c\":3}"), 3, 1},
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":\"\0\"}\n{\"b\":2}\n"), 1, 1},
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":1}\0\0\n\0{\"b\":2}\n"), 2, 0},
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":1,}\n{,}\n{\"a\" 1}\n{'a':1}\n{\"b\":2}\n"), 1, 4},
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":\"\\\n{\"b\":2}\n"), 1, 1},
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":\"\\u12\n{\"b\":2}"), 1, 1},
        {LAHAR_FORMAT_JSON, SIZED("{\"a\":1"), 0, 1},
        {LAHAR_FORMAT_JSON, SIZED("\xef\xbb\xbf{\"a\":1}\n\xef\xbb\xbf{\"b\":2}\n"), 1, 1},
        {LAHAR_FORMAT_CSV, SIZED("a,b\n1,2\n3,\"open"), 1, 1},
        {LAHAR_FORMAT_CSV, SIZED("a,b\n1,2\n3,\"open\n5,6\n"), 2, 1},
        {LAHAR_FORMAT_CSV, SIZED("a,b\n\"1\"\"\",\"2\"\n\"1\" ,2\n"), 1, 1},
        {LAHAR_FORMAT_CSV, SIZED("a,b\n1\n1,2,3\n,\n1,2\n"), 2, 2},
        {LAHAR_FORMAT_TSV, SIZED("a\tb\n1\\\n\t2\n"), 1, 0},
        {LAHAR_FORMAT_TSV, SIZED("a\tb\n1\t2\\"), 1, 0},
    };
    expect_inputs(inputs, sizeof inputs / sizeof inputs[0]);
}

Test(hostile, headers_of_any_kind)
{
    static const struct input inputs[] = {
        {LAHAR_FORMAT_CSV, SIZED("a,b\n"), 0, 0},
        {LAHAR_FORMAT_CSV, SIZED("a,b"), 0, 0},
        {LAHAR_FORMAT_CSV, SIZED(",,\n1,2,3\n"), 1, 0},
        {LAHAR_FORMAT_CSV, SIZED("a,a,a\n1,2,3\n"), 1, 0},
        {LAHAR_FORMAT_CSV, SIZED("message,message\nx,y\n"), 1, 0},
        {LAHAR_FORMAT_CSV, SIZED("\xef\xbb\xbf\"a\",\"b\"\"c\"\r\n1,2\r\n"), 1, 0},
        {LAHAR_FORMAT_CSV, SIZED("id,time,_offset,attributes,stream\n1,2,3,4,5\n"), 1, 0},
        {LAHAR_FORMAT_CSV, SIZED("\"a\n"), 0, 1},
        {LAHAR_FORMAT_TSV, SIZED("a\\tb\t\\N\n1\t2\n"), 1, 0},
    };
    expect_inputs(inputs, sizeof inputs / sizeof inputs[0]);
    /* Ten thousand columns. */
    struct fixture f;
    char *text = malloc(300000);
    size_t size = 0;
    for (size_t row = 0; row < 2; row++) {
        for (size_t i = 0; i < 10000; i++) {
            size += (size_t)snprintf(text + size, 16, "%s%zu%c", row == 0 ? "c" : "", i,
                                     i == 9999 ? '\n' : ',');
        }
    }
    fixture_init(&f, LAHAR_FORMAT_CSV);
    fixture_read_bytes(&f, text, size, 1000);
    cr_assert_eq(f.event_count, 1);
    const lahar_event event = fixture_event(&f, 0);
    cr_assert(has_attribute(&event, "c9999", "9999"));
    text[size] = 0;
    cr_assert_str_eq(fixture_raw(&f), text);
    fixture_deinit(&f);
    free(text);
}

/* prefix, count times one byte, and suffix as a line of JSON, in small pieces. */
static void read_long(struct fixture *f, const char *prefix, char c, size_t count,
                      const char *suffix)
{
    const size_t size = strlen(prefix) + count + strlen(suffix);
    char *text = malloc(size + 1);
    memcpy(text, prefix, strlen(prefix));
    memset(text + strlen(prefix), c, count);
    memcpy(text + strlen(prefix) + count, suffix, strlen(suffix) + 1);
    fixture_clear(f);
    fixture_read_bytes(f, text, size, 512);
    free(text);
}

/* In 8,192 pieces; looked at from its start at each of them it would be 17 GB. */
Test(hostile, a_number_of_many_pieces_is_read_once)
{
    struct fixture f;
    const size_t count = 4 * 1024 * 1024;
    fixture_init(&f, LAHAR_FORMAT_JSON);
    read_long(&f, "{\"n\":1", '0', count, "}\n");
    cr_assert_eq(f.event_count, 1);
    const lahar_event event = fixture_event(&f, 0);
    cr_assert_eq(find_attribute(&event, "n", 0)->value.size, count + 1);
    read_long(&f, "{\"n\":1e", '9', count, "}\n");
    cr_assert_eq(f.event_count, 1);
    read_long(&f, "{\"n\":1", '.', 5000, "}\n");
    cr_assert_eq(f.error_count, 1);
    read_long(&f, "{\"n\":1", 'e', 5000, "");
    cr_assert_eq(f.error_count, 1);
    fixture_deinit(&f);
}

Test(hostile, numbers_beyond_their_fields)
{
    static const lahar_field_spec fields[] = {
        {"x", LAHAR_F64, false}, {"n", LAHAR_I64, false}, {"u", LAHAR_U64, false}};
    static const char text[] =
        "{\"x\":1e400}\n{\"x\":-1e400}\n{\"x\":1e-400}\n{\"n\":1e2}\n"
        "{\"n\":9223372036854775808}\n{\"u\":-1}\n{\"u\":18446744073709551616}\n"
        "{\"n\":-9223372036854775808,\"u\":18446744073709551615}\n"
        "{\"n\":-0}\n{\"o\":1E+0000000000000000000000000000000000000002}\n";
    struct fixture f;
    fixture_init_fields(&f, LAHAR_FORMAT_JSON, LAHAR_SCHEMA_LOG, fields, 3);
    expect_counts(&f, text, sizeof text - 1, 6, 4);
    cr_assert_str_eq(fixture_raw(&f),
                     "{\"x\":1e400}\n{\"x\":-1e400}\n{\"x\":1e-400}\n"
                     "{\"n\":-9223372036854775808,\"u\":18446744073709551615}\n"
                     "{\"n\":-0}\n{\"o\":1E+0000000000000000000000000000000000000002}\n");
    fixture_deinit(&f);
}

Test(hostile, nesting_ends_at_its_limit)
{
    struct fixture f;
    char text[2200];
    fixture_init(&f, LAHAR_FORMAT_JSON);
    for (size_t depth = 511; depth <= 513; depth++) {
        size_t size = (size_t)snprintf(text, 8, "{\"a\":");
        memset(text + size, '[', depth - 1);
        memset(text + size + depth - 1, ']', depth - 1);
        size += 2 * (depth - 1);
        memcpy(text + size, "}\n{}\n", 5);
        expect_counts(&f, text, size + 5, depth <= 512 ? 2 : 1, depth <= 512 ? 0 : 1);
    }
    fixture_deinit(&f);
}

Test(hostile, bytes_that_are_no_utf8_are_kept_and_shown_as_replacements)
{
    static const char *const bad[] = {"\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x80\x80",
                                      "\xed\xa0\x80",
                                      "\xf0\x80\x80\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xff",
                                      "\x80",
                                      "\xc3",
                                      "\xe2\x82"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fixture f;
        char text[100];
        const int size = snprintf(text, sizeof text, "{\"k%s\":\"a%sb\"}\n", bad[i], bad[i]);
        fixture_init(&f, LAHAR_FORMAT_JSON);
        expect_counts(&f, text, (size_t)size, 1, 0);
        cr_assert_str_eq(fixture_raw(&f), text);
        const char *shown = fixture_json(&f);
        cr_assert_null(strstr(shown, bad[i]), "%s", shown);
        cr_assert_not_null(strstr(shown, "\"a\xef\xbf\xbd"), "%s", shown);
        fixture_deinit(&f);
    }
}

/* As many marks as bytes: no step may look at all of them again. */
Test(hostile, nothing_but_quotes_or_escapes)
{
    struct fixture f;
    const size_t count = 1024 * 1024;
    fixture_init(&f, LAHAR_FORMAT_CSV);
    read_long(&f, "a,b\nx,\"", '"', count, "\"\n");
    cr_assert_eq(f.event_count, 1);
    const lahar_event event = fixture_event(&f, 0);
    cr_assert_eq(find_attribute(&event, "b", 0)->value.size, count / 2);
    read_long(&f, "a,b\nx,\"", '\n', count, "\"\ny,z\n");
    cr_assert_eq(f.event_count, 2);
    fixture_deinit(&f);
    fixture_init(&f, LAHAR_FORMAT_TSV);
    read_long(&f, "a\tb\nx\t", '\\', count, "\n");
    cr_assert_eq(f.event_count, 1);
    fixture_deinit(&f);
    fixture_init(&f, LAHAR_FORMAT_JSON);
    read_long(&f, "{\"a\":\"", '\\', count, "\"}\n");
    cr_assert_eq(f.event_count, 1);
    read_long(&f, "{\"a\":", ' ', count, "1}\n");
    cr_assert_eq(f.event_count, 1);
    fixture_deinit(&f);
}

Test(hostile, a_key_a_hundred_thousand_times_is_its_last_value)
{
    struct fixture f;
    char *text = malloc(1200000);
    size_t size = 1;
    text[0] = '{';
    for (size_t i = 0; i < 100000; i++) {
        size += (size_t)snprintf(text + size, 16, "\"k\":%zu,", i);
    }
    memcpy(text + size - 1, "}\n", 3);
    fixture_init(&f, LAHAR_FORMAT_JSON);
    fixture_read_bytes(&f, text, size + 1, 0);
    cr_assert_eq(f.event_count, 1);
    const lahar_event event = fixture_event(&f, 0);
    cr_assert(has_attribute(&event, "k", "99999"));
    cr_assert_null(find_attribute(&event, "k", 1));
    fixture_deinit(&f);
    free(text);
}
