/* Every allocation of reading and writing back refused in turn: the status says so,
 * nothing leaks, and with memory the result is the usual one. */
#include "failing_allocator.h"
#include "text_fixture.h"

struct input {
    lahar_format format;
    const char *text;
    bool keep_raw;
};

static const struct input inputs[] = {
    {LAHAR_FORMAT_LINE, "a line\r\n\n\0another", false},
    {LAHAR_FORMAT_JSON,
     "{\"a\":{\"b\":[1,{\"c\":\"\\u0041\"}]},\"n\":5,\"l\":[\"x\"]}\n[1]\n{\"bad\n{\"\":"
     "\"\\ud800\"}",
     false},
    {LAHAR_FORMAT_JSON, "{\"a\":1} \n\n{\"b\":2}", true},
    {LAHAR_FORMAT_CSV, "a,n,l\n\"x \"\"y\",1,z\n1,02,3\n", false},
    {LAHAR_FORMAT_TSV, "a\tn\nx\\n\t\\N\n", true},
    {LAHAR_FORMAT_CSV_BARE, "1,\"x\"\"y\"\n", false},
    {LAHAR_FORMAT_VALUES, "(1,'it\\'s'),\n(2,NULL)", false},
    {LAHAR_FORMAT_JSON_COMPACT, "[1,\"\\u00e9\"]\n", false},
    {LAHAR_FORMAT_CUSTOM, "1\ta\\tb\n", false},
    {LAHAR_FORMAT_TSKV, "n=1\tk=a\\tb\n", false},
    {LAHAR_FORMAT_LOGFMT, "n=1 k=\"a \\\" b\"\n", false},
    {LAHAR_FORMAT_SYSLOG_5424, "<1>1 - h - - - [i a=\"\\]\"] m\n", false},
    {LAHAR_FORMAT_NIFI_LOG, "2024-05-01 00:00:00,123 INFO [t] l m\n n\n", false},
    {LAHAR_FORMAT_RAW_BLOB, "a\nb", false},
};

static const lahar_field_spec fields[] = {{"n", LAHAR_I64, false},
                                          {"l", LAHAR_LIST_KEYWORD, false}};

/* The whole way of one input under the allocator; the bytes written back go to f->out. */
static lahar_status run(struct fixture *f, const lahar_allocator *allocator)
{
    struct lahar_text_reader *reader = NULL;
    struct lahar_export *export_ = NULL;
    f->options.allocator = allocator;
    lahar_status status = lahar_text_reader_create(&f->options, &reader, NULL);
    if (status == LAHAR_OK) {
        const char *input = f->options.filename;
        const size_t size = strlen(input);
        for (size_t at = 0; at < size && status == LAHAR_OK; at += 3) {
            const size_t left = size - at;
            status = lahar_text_reader_write(reader, input + at, left < 3 ? left : 3, NULL);
        }
        if (status == LAHAR_OK) {
            status = lahar_text_reader_finish(reader, NULL);
        }
    }
    lahar_text_reader_destroy(reader);
    if (status == LAHAR_OK) {
        status = lahar_export_create(allocator, f->catalog, &export_, NULL);
    }
    lahar_buffer_clear(&f->out);
    size_t at = 0;
    for (size_t i = 0; i < 2 * f->event_count && status == LAHAR_OK; i++) {
        if (i == f->event_count) {
            at = 0;
        }
        lahar_event event;
        lahar_bytes bytes = {0};
        const uint32_t size = lahar_row_size(f->rows.data + at, f->rows.size - at);
        lahar_arena_reset(&f->arena);
        cr_assert_eq(lahar_row_decode(f->rows.data + at, size, &f->arena, &event, NULL), LAHAR_OK);
        at += size;
        status = i < f->event_count ? lahar_export_raw(export_, &event, &bytes, NULL)
                                    : lahar_export_json(export_, &event, &bytes, NULL);
        lahar_buffer_put(&f->out, bytes.data, status == LAHAR_OK ? bytes.size : 0);
    }
    lahar_export_close(export_);
    return status;
}

Test(allocation, refused_anywhere_is_reported_and_leaks_nothing)
{
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        struct fixture f;
        fixture_init_fields(&f, inputs[i].format, LAHAR_SCHEMA_LOG, fields, 2);
        f.options.keep_raw = inputs[i].keep_raw;
        /* The text doubles as a name without a slash, so that _filename is exercised. */
        f.options.filename = inputs[i].text;
        cr_assert_eq(run(&f, &lahar_allocator_libc), LAHAR_OK);
        const size_t expected_size = f.out.size;
        char *expected = malloc(expected_size);
        memcpy(expected, f.out.data, expected_size);
        uint64_t fail_at = 0;
        for (;; fail_at++) {
            struct failing_allocator failing;
            failing_allocator_init(&failing, fail_at);
            fixture_clear(&f);
            const lahar_status status = run(&f, &failing.allocator);
            cr_assert_eq(failing.live_count, 0, "input %zu, request %zu", i, (size_t)fail_at);
            if (failing.refused_count == 0) {
                cr_assert_eq(status, LAHAR_OK);
                break;
            }
            cr_assert_eq(status, LAHAR_NO_MEMORY, "input %zu, request %zu", i, (size_t)fail_at);
        }
        cr_assert_gt(fail_at, 5);
        cr_assert_eq(f.out.size, expected_size);
        cr_assert_arr_eq(f.out.data, expected, expected_size);
        free(expected);
        fixture_deinit(&f);
    }
}
