/* LineAsString: what a line is, what is stripped from it, and that it comes back. */
#include "engine/format/framing.h"
#include "text_fixture.h"

static void expect_message(struct fixture *f, size_t index, const char *text)
{
    const lahar_event event = fixture_event(f, index);
    const lahar_bytes message = field_bytes(&event, LAHAR_FIELD_MESSAGE);
    cr_assert(bytes_equal(message, text), "event %zu is \"%.*s\"", index, (int)message.size,
              message.size == 0 ? "" : (const char *)message.data);
}

static uint64_t offset_of(struct fixture *f, size_t index)
{
    const lahar_event event = fixture_event(f, index);
    return lahar_event_find(&event, LAHAR_FIELD_OFFSET)->as.u64;
}

static bool has_framing(struct fixture *f, size_t index, const void *bytes, size_t size)
{
    const lahar_event event = fixture_event(f, index);
    const lahar_bytes framing = field_bytes(&event, LAHAR_FIELD_FRAMING);
    return framing.size == size && (size == 0 || memcmp(framing.data, bytes, size) == 0);
}

Test(lines, are_what_lies_between_line_feeds)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_LINE);
    fixture_read(&f, "one\n\n  \nfour");
    cr_assert_eq(f.event_count, 4);
    expect_message(&f, 0, "one");
    expect_message(&f, 1, "");
    expect_message(&f, 2, "  ");
    expect_message(&f, 3, "four");
    cr_assert_eq(offset_of(&f, 1), 4);
    cr_assert_eq(offset_of(&f, 3), 8);
    cr_assert(has_framing(&f, 0, NULL, 0));
    cr_assert(has_framing(&f, 3, "\x04", 1));
    cr_assert_str_eq(fixture_raw(&f), "one\n\n  \nfour");
    fixture_deinit(&f);
}

Test(lines, keep_a_carriage_return_inside_and_strip_one_at_the_end)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_LINE);
    fixture_read(&f, "a\rb\r\nc\r\r\nd\r");
    cr_assert_eq(f.event_count, 3);
    expect_message(&f, 0, "a\rb");
    expect_message(&f, 1, "c\r");
    expect_message(&f, 2, "d\r");
    cr_assert(has_framing(&f, 0, "\x02", 1));
    cr_assert_str_eq(fixture_raw(&f), "a\rb\r\nc\r\r\nd\r");
    fixture_deinit(&f);
}

Test(lines, record_the_byte_order_mark_of_the_first_line_only)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_LINE);
    const char *text = "\xef\xbb\xbf"
                       "first\r\n\xef\xbb\xbfsecond\n";
    fixture_read_bytes(&f, text, strlen(text), 1);
    expect_message(&f, 0, "first");
    expect_message(&f, 1, "\xef\xbb\xbfsecond");
    cr_assert(has_framing(&f, 0, "\x03", 1));
    cr_assert_eq(offset_of(&f, 0), 0);
    cr_assert_eq(offset_of(&f, 1), 10);
    cr_assert_str_eq(fixture_raw(&f), text);
    fixture_deinit(&f);
}

Test(lines, count_the_nul_bytes_of_a_hole_and_write_them_back)
{
    struct fixture f;
    static uint8_t file[1000 + 6 + 3];
    memcpy(file + 1000, "real\n\0x\n", 8);
    fixture_init(&f, LAHAR_FORMAT_LINE);
    fixture_read_bytes(&f, file, sizeof file, 100);
    cr_assert_eq(f.event_count, 3);
    expect_message(&f, 0, "real");
    expect_message(&f, 1, "x");
    expect_message(&f, 2, "");
    /* 1000 = 0xe8 0x07 as a varint. */
    cr_assert(has_framing(&f, 0, "\x08\xe8\x07", 3));
    cr_assert(has_framing(&f, 1, "\x08\x01", 2));
    cr_assert(has_framing(&f, 2, "\x0c\x01", 2));
    size_t size = 0;
    const char *raw = fixture_export(&f, false, &size);
    cr_assert_eq(size, sizeof file);
    cr_assert_arr_eq(raw, file, sizeof file);
    fixture_deinit(&f);
}

Test(lines, do_not_hold_a_hole_in_memory)
{
    struct fixture f;
    struct lahar_text_reader *reader = NULL;
    static const uint8_t zeros[65536];
    fixture_init(&f, LAHAR_FORMAT_LINE);
    f.options.record_size_max = 100;
    cr_assert_eq(lahar_text_reader_create(&f.options, &reader, NULL), LAHAR_OK);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(lahar_text_reader_write(reader, zeros, sizeof zeros, NULL), LAHAR_OK);
    }
    cr_assert_eq(lahar_text_reader_write(reader, "x\n", 2, NULL), LAHAR_OK);
    cr_assert_eq(lahar_text_reader_finish(reader, NULL), LAHAR_OK);
    lahar_text_reader_destroy(reader);
    cr_assert_eq(f.error_count, 0);
    cr_assert_eq(f.event_count, 1);
    expect_message(&f, 0, "x");
    fixture_deinit(&f);
}

Test(lines, report_one_that_is_too_long_and_keep_its_neighbours)
{
    for (size_t piece = 0; piece < 4; piece++) {
        struct fixture f;
        fixture_init(&f, LAHAR_FORMAT_LINE);
        f.options.record_size_max = 5;
        fixture_read_bytes(&f, "12345\n123456\n12345\r\n1234567", 27, piece);
        cr_assert_eq(f.event_count, 2);
        expect_message(&f, 0, "12345");
        expect_message(&f, 1, "12345");
        cr_assert_eq(f.error_count, 2);
        cr_assert_eq(f.error_lines[0], 2);
        cr_assert_eq(f.error_offsets[0], 6);
        cr_assert_eq(f.error_lines[1], 4);
        cr_assert_eq(f.error_offsets[1], 20);
        cr_assert_str_eq(f.error_text, "line of 7 bytes is longer than 5");
        fixture_deinit(&f);
    }
}

Test(lines, of_utf16_are_refused_once)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_LINE);
    fixture_read_bytes(&f, "\xff\xfe\x0a\x0a\x41\x00\x0a\x00", 8, 1);
    cr_assert_eq(f.event_count, 0);
    cr_assert_eq(f.error_count, 1);
    cr_assert_eq(f.error_lines[0], 1);
    cr_assert(strstr(f.error_text, "UTF-16") != NULL);
    fixture_deinit(&f);
}

Test(lines, of_an_empty_file_are_none)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_LINE);
    fixture_read(&f, "");
    fixture_read(&f, "\xef\xbb\xbf");
    cr_assert_eq(f.event_count, 0);
    cr_assert_eq(f.error_count, 0);
    fixture_deinit(&f);
}

Test(lines, that_failed_can_become_events)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_JSON);
    f.options.errors_as_events = true;
    f.options.filename = "/var/log/a.log";
    fixture_read_bytes(&f, "{\"a\":1}\noops {\n{\"a\":2}\n", 23, 1);
    cr_assert_eq(f.event_count, 3);
    cr_assert_eq(f.error_count, 1);
    const lahar_event event = fixture_event(&f, 1);
    cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_RAW_RECORD), "oops {"));
    cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_FILENAME), "a.log"));
    cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_ERROR), f.error_text));
    cr_assert_eq(lahar_event_find(&event, LAHAR_FIELD_OFFSET)->as.u64, 8);
    cr_assert_str_eq(fixture_raw(&f), "{\"a\":1}\noops {\n{\"a\":2}\n");
    fixture_deinit(&f);
}

Test(lines, need_a_stream_with_a_message)
{
    struct fixture f;
    struct lahar_text_reader *reader = NULL;
    lahar_error error = {0};
    fixture_init_fields(&f, LAHAR_FORMAT_LINE, LAHAR_SCHEMA_PROVENANCE, NULL, 0);
    cr_assert_eq(lahar_text_reader_create(&f.options, &reader, &error), LAHAR_INVALID);
    cr_assert(strstr(error.message, "message") != NULL);
    f.options.stream = 7;
    cr_assert_eq(lahar_text_reader_create(&f.options, &reader, NULL), LAHAR_INVALID);
    fixture_deinit(&f);
}

Test(framing, refuses_bytes_that_are_none)
{
    struct lahar_framing framing;
    cr_assert(lahar_framing_decode((lahar_bytes){0}, &framing));
    cr_assert_eq(framing.flags, 0);
    static const char *const bad[] = {"\x40", "\x08",
                                      "\x10\x05"
                                      "abc",
                                      "\x02"
                                      "x",
                                      "\x08\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_not(lahar_framing_decode((lahar_bytes){bad[i], strlen(bad[i])}, &framing),
                      "case %zu", i);
    }
}
