/* Regexp: named groups of a line into fields. */
#include "text_fixture.h"

static void init(struct fixture *f, const char *regexp)
{
    fixture_init(f, LAHAR_FORMAT_REGEXP);
    f->options.regexp = regexp;
}

Test(regexp_rows, fill_fields_and_attributes_and_keep_the_line)
{
    struct fixture f;
    init(&f, "^(?<level>[A-Z]+) (?<user>\\w+)(?: (?<code>\\d+))?");
    fixture_read(&f, "INFO ann 7 rest\nWARN bob\n");
    cr_assert_eq(f.event_count, 2);
    lahar_event event = fixture_event(&f, 0);
    cr_expect(bytes_equal(field_bytes(&event, LAHAR_FIELD_MESSAGE), "INFO ann 7 rest"));
    cr_expect(bytes_equal(field_bytes(&event, LAHAR_FIELD_LEVEL), "INFO"));
    cr_expect(has_attribute(&event, "user", "ann"));
    cr_expect(has_attribute(&event, "code", "7"));
    event = fixture_event(&f, 1);
    cr_expect(has_attribute(&event, "user", "bob"));
    cr_expect_null(find_attribute(&event, "code", 0), "a group that took no part is absent");
    cr_expect_null(lahar_event_find(&event, LAHAR_FIELD_RAW_RECORD));
    fixture_deinit(&f);
}

Test(regexp_rows, give_the_file_back_byte_for_byte)
{
    static const char text[] = "\xef\xbb\xbf"
                               "a 1\r\nb \xff\n\nc 3";
    for (size_t piece = 0; piece < sizeof text; piece++) {
        struct fixture f;
        size_t size = 0;
        init(&f, "(?<x>.*)");
        fixture_read_bytes(&f, text, sizeof text - 1, piece);
        cr_assert_eq(f.event_count, 4);
        const char *raw = fixture_export(&f, false, &size);
        cr_expect_eq(size, sizeof text - 1);
        cr_expect_arr_eq(raw, text, sizeof text - 1);
        fixture_deinit(&f);
    }
}

Test(regexp_rows, keep_the_line_apart_when_a_group_is_the_message)
{
    struct fixture f;
    init(&f, "^\\S+ (?<message>.*)$");
    fixture_read(&f, "10:00 hello there\r\n");
    const lahar_event event = fixture_event(&f, 0);
    cr_expect(bytes_equal(field_bytes(&event, LAHAR_FIELD_MESSAGE), "hello there"));
    cr_expect(bytes_equal(field_bytes(&event, LAHAR_FIELD_RAW_RECORD), "10:00 hello there"));
    cr_expect_str_eq(fixture_raw(&f), "10:00 hello there\r\n");
    fixture_deinit(&f);
}

Test(regexp_rows, report_lines_that_do_not_match)
{
    struct fixture f;
    init(&f, "^(?<n>\\d+)$");
    fixture_read(&f, "1\nx\n\n2\n");
    cr_expect_eq(f.event_count, 2);
    cr_expect_eq(f.error_count, 2);
    cr_expect_eq(f.error_lines[0], 2);
    cr_expect_eq(f.error_offsets[1], 4);
    fixture_clear(&f);
    lahar_buffer_clear(&f.rows);
    f.options.errors_as_events = true;
    fixture_read(&f, "x\n");
    const lahar_event event = fixture_event(&f, 0);
    cr_expect(bytes_equal(field_bytes(&event, LAHAR_FIELD_RAW_RECORD), "x"));
    cr_expect(bytes_equal(field_bytes(&event, LAHAR_FIELD_ERROR),
                          "the line does not match the expression"));
    fixture_clear(&f);
    f.options.errors_as_events = false;
    f.options.skip_unmatched = true;
    fixture_read(&f, "x\n3\n");
    cr_expect_eq(f.event_count, 1);
    cr_expect_eq(f.error_count, 0);
    fixture_deinit(&f);
}

Test(regexp_rows, refuse_a_group_that_is_not_of_its_field_s_type)
{
    const lahar_field_spec fields[] = {{.name = "code", .type = LAHAR_U64}};
    struct fixture f;
    fixture_init_fields(&f, LAHAR_FORMAT_REGEXP, LAHAR_SCHEMA_LOG, fields, 1);
    f.options.regexp = "^(?<code>\\S+)";
    fixture_read(&f, "12\ntwelve\n");
    cr_expect_eq(f.event_count, 1);
    cr_expect_str_eq(f.error_text, "\"code\" does not fit its field: twelve");
    fixture_deinit(&f);
}

Test(regexp_rows, take_the_time_as_its_format_says)
{
    struct fixture f;
    init(&f, "^(?<when>\\S+ \\S+ \\S+) ");
    f.options.time_field = "when";
    f.options.time_format = "syslog";
    f.options.time_zone = "+02:00";
    f.options.year = 2020;
    fixture_read(&f, "Mar 29 10:09:23 host a\nMar xx 10:09:23 host b\n");
    lahar_event event = fixture_event(&f, 0);
    cr_expect_eq(event.time_ns, INT64_C(1585469363000000000)); /* 08:09:23Z */
    cr_expect(has_attribute(&event, "when", "Mar 29 10:09:23"));
    event = fixture_event(&f, 1);
    cr_expect_eq(event.time_ns, LAHAR_TIME_OF_ARRIVAL);
    fixture_deinit(&f);
}

static void expect_refused(const char *regexp, const char *time_format, uint64_t offset)
{
    struct fixture f;
    struct lahar_text_reader *reader = NULL;
    lahar_error error = {0};
    init(&f, regexp);
    f.options.time_format = time_format;
    cr_expect_eq(lahar_text_reader_create(&f.options, &reader, &error), LAHAR_INVALID, "%s",
                 regexp == NULL ? "none" : regexp);
    cr_expect_eq(error.offset, offset);
    cr_expect_null(reader);
    fixture_deinit(&f);
}

Test(regexp_rows, refuse_expressions_that_cannot_be_used)
{
    expect_refused(NULL, NULL, 0);
    expect_refused("(a", NULL, 2);
    expect_refused("(\\d+) (.*)", NULL, 0);
    expect_refused("(?<a>x)(?<a>y)", NULL, 12);
    expect_refused("(?<a>x)", "%Q", 0);
    expect_refused("(?<a>x)", "yesterday", 0);
}

Test(regexp_rows, report_a_line_that_takes_too_many_steps)
{
    char line[202];
    struct fixture f;
    init(&f, "^(?<x>(a+)+)$");
    memset(line, 'a', 200);
    line[200] = '!';
    line[201] = '\0';
    fixture_read(&f, line);
    cr_expect_eq(f.event_count, 0);
    cr_expect_str_eq(f.error_text, "matching the line takes too many steps");
    fixture_deinit(&f);
}

Test(regexp_rows, go_on_at_a_position_in_the_file)
{
    struct fixture f;
    struct lahar_text_reader *reader = NULL;
    init(&f, "^(?<n>\\d+)$");
    cr_assert_eq(lahar_text_reader_create(&f.options, &reader, NULL), LAHAR_OK);
    cr_assert_eq(lahar_text_reader_write(reader, "1\n2\n3", 5, NULL), LAHAR_OK);
    const struct lahar_text_position position = lahar_text_reader_position(reader);
    cr_expect_eq(position.offset, 4);
    cr_expect_eq(position.line, 3);
    lahar_text_reader_seek(reader, &position);
    cr_assert_eq(lahar_text_reader_write(reader, "33\n", 3, NULL), LAHAR_OK);
    cr_assert_eq(lahar_text_reader_finish(reader, NULL), LAHAR_OK);
    lahar_text_reader_destroy(reader);
    cr_assert_eq(f.event_count, 3);
    const lahar_event event = fixture_event(&f, 2);
    cr_expect(has_attribute(&event, "n", "33"));
    fixture_deinit(&f);
}
