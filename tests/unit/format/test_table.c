/* CSVWithNames and TSVWithNames. */
#include "engine/format/table_shape.h"
#include "text_fixture.h"

static const lahar_field_spec typed_fields[] = {{"n", LAHAR_I64, false},
                                                {"x", LAHAR_F64, false},
                                                {"at", LAHAR_TIME, false},
                                                {"tags", LAHAR_LIST_KEYWORD, false},
                                                {"word", LAHAR_KEYWORD, false}};

static void init_typed(struct fixture *f, lahar_format format)
{
    fixture_init_fields(f, format, LAHAR_SCHEMA_LOG, typed_fields,
                        sizeof typed_fields / sizeof typed_fields[0]);
}

static const lahar_value *find(struct fixture *f, const lahar_event *event, const char *name)
{
    uint32_t field = 0;
    cr_assert(lahar_schema_find_field(f->catalog, name, strlen(name), &field));
    return lahar_event_find(event, field);
}

Test(table, reads_quotes_line_ends_and_commas)
{
    const char *text = "a,b\r\n\"x \"\"y\"\"\",\"1,2\"\r\n\"l1\r\nl2\n\",in\"side\n,\"\"\nlast,row";
    for (size_t piece = 0; piece < 6; piece++) {
        struct fixture f;
        fixture_init(&f, LAHAR_FORMAT_CSV);
        fixture_read_bytes(&f, text, strlen(text), piece);
        cr_assert_eq(f.error_count, 0);
        cr_assert_eq(f.event_count, 4);
        lahar_event event = fixture_event(&f, 0);
        cr_assert(has_attribute(&event, "a", "x \"y\""));
        cr_assert(has_attribute(&event, "b", "1,2"));
        cr_assert_eq(lahar_event_find(&event, LAHAR_FIELD_OFFSET)->as.u64, 5);
        event = fixture_event(&f, 1);
        cr_assert(has_attribute(&event, "a", "l1\r\nl2\n"));
        cr_assert(has_attribute(&event, "b", "in\"side"));
        event = fixture_event(&f, 2);
        cr_assert(has_attribute(&event, "a", ""));
        cr_assert(has_attribute(&event, "b", ""));
        event = fixture_event(&f, 3);
        cr_assert(has_attribute(&event, "b", "row"));
        cr_assert_str_eq(fixture_raw(&f), "a,b\r\n\"x \"\"y\"\"\",\"1,2\"\r\n\"l1\r\nl2\n\","
                                          "\"in\"\"side\"\r\n,\r\nlast,row\r\n");
        fixture_deinit(&f);
    }
}

Test(table, leaves_the_header_and_places_in_the_shape)
{
    struct fixture f;
    init_typed(&f, LAHAR_FORMAT_CSV);
    fixture_read(&f, "a,n,x\nq,7,1.50\n");
    const lahar_event event = fixture_event(&f, 0);
    uint32_t n = 0;
    uint32_t x = 0;
    cr_assert(lahar_schema_find_field(f.catalog, "n", 1, &n));
    cr_assert(lahar_schema_find_field(f.catalog, "x", 1, &x));
    const char expected[] = {'C',           6, 'a', ',', 'n', ',', 'x', '\n', 3, 0, (char)(n + 1),
                             (char)(x + 1), 2, 4,   '1', '.', '5', '0'};
    const lahar_bytes shape = field_bytes(&event, LAHAR_FIELD_SHAPE);
    cr_assert_eq(shape.size, sizeof expected);
    cr_assert_arr_eq(shape.data, expected, sizeof expected);
    fixture_deinit(&f);
}

Test(table, reads_typed_columns)
{
    struct fixture f;
    init_typed(&f, LAHAR_FORMAT_CSV);
    const char *text = "n,x,at,tags,word,n\n-5,0.25,2024-05-01T00:00:00Z,one,,9\n,,,,w,\n"
                       "+5,1e3,2024-05-01 00:00:00,\"a,b\",w,x\n";
    fixture_read(&f, text);
    cr_assert_eq(f.error_count, 0, "%s", f.error_text);
    lahar_event event = fixture_event(&f, 0);
    cr_assert_eq(find(&f, &event, "n")->as.i64, -5);
    cr_assert_float_eq(find(&f, &event, "x")->as.f64, 0.25, 0.0);
    cr_assert_eq(find(&f, &event, "at")->as.time_ns, 1714521600000000000);
    cr_assert(bytes_equal(find(&f, &event, "tags")->as.keywords.items[0], "one"));
    cr_assert(has_attribute(&event, "n", "9"));
    event = fixture_event(&f, 1);
    cr_assert(find(&f, &event, "n")->is_null);
    event = fixture_event(&f, 2);
    cr_assert_eq(find(&f, &event, "n")->as.i64, 5);
    cr_assert_str_eq(fixture_raw(&f), text);
    fixture_clear(&f);
    fixture_read(&f, "n\nx\n5\n1.0\n");
    cr_assert_eq(f.event_count, 1);
    cr_assert_eq(f.error_count, 2);
    fixture_deinit(&f);
}

Test(table, reports_ragged_rows_or_keeps_all_their_fields)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_CSV);
    fixture_read(&f, "a,b,c\n1,2\n1,2,3,4\n1,2,3\n");
    cr_assert_eq(f.event_count, 1);
    cr_assert_eq(f.error_count, 2);
    cr_assert_eq(f.error_lines[0], 2);
    cr_assert_eq(f.error_offsets[1], 10);
    cr_assert_str_eq(f.error_text, "row has 4 fields, the header has 3");
    fixture_clear(&f);
    f.options.allow_ragged = true;
    fixture_read(&f, "a,b,c\n1,2\n1,2,3,4\n1,2,3\n");
    cr_assert_eq(f.event_count, 3);
    cr_assert_eq(f.error_count, 0);
    lahar_event event = fixture_event(&f, 0);
    cr_assert_null(find_attribute(&event, "c", 0));
    event = fixture_event(&f, 1);
    cr_assert(has_attribute(&event, "column4", "4"));
    cr_assert_str_eq(fixture_raw(&f), "a,b,c\n1,2\n1,2,3,4\n1,2,3\n");
    fixture_deinit(&f);
}

Test(table, loses_only_the_first_line_of_what_fails)
{
    const char *text = "a,b\n\"x\"y,1\n2,2\n\"open,\n3,3\n";
    for (size_t piece = 0; piece < 6; piece++) {
        struct fixture f;
        fixture_init(&f, LAHAR_FORMAT_CSV);
        fixture_read_bytes(&f, text, strlen(text), piece);
        cr_assert_str_eq(fixture_raw(&f), "a,b\n2,2\n3,3\n");
        cr_assert_eq(f.error_count, 2);
        cr_assert_eq(f.error_lines[0], 2);
        cr_assert_eq(f.error_lines[1], 4);
        cr_assert_eq(f.error_offsets[1], 15);
        fixture_deinit(&f);
    }
}

Test(table, passes_over_blank_lines_unless_there_is_one_column)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_CSV);
    fixture_read(&f, "\r\n\na,b\n\n1,2\r\n\r\n\n3,4\n");
    cr_assert_eq(f.event_count, 2);
    cr_assert_eq(f.error_count, 0);
    fixture_clear(&f);
    fixture_read(&f, "a\n\nx\n\r\n");
    cr_assert_eq(f.event_count, 3);
    cr_assert_str_eq(fixture_raw(&f), "a\n\"\"\nx\n\"\"\n");
    fixture_deinit(&f);
}

Test(table, kept_raw_gives_the_file_back)
{
    static const char *const files[] = {"\357\273\277a,b\r\n\"1\",2\r\n\r\n3,\"4\"",
                                        "\n\na,b\n\n1,2\n\n\n", "a\n\n\n", "a,b\n1,2"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        for (size_t piece = 0; piece < 6; piece++) {
            struct fixture f;
            fixture_init(&f, LAHAR_FORMAT_CSV);
            f.options.keep_raw = true;
            fixture_read_bytes(&f, files[i], strlen(files[i]), piece);
            /* What stands between header and first row goes with the row. */
            cr_assert_str_eq(fixture_raw(&f), files[i], "file %zu piece %zu", i, piece);
            fixture_deinit(&f);
        }
    }
}

Test(table, writes_the_header_again_when_it_changes)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_CSV);
    fixture_read(&f, "a,b\n1,2\n");
    const size_t first = f.event_count;
    f.options.format = LAHAR_FORMAT_CSV;
    fixture_read(&f, "c\n3\n4\n");
    fixture_read(&f, "a,b\n5,6\n");
    cr_assert_eq(first, 1);
    cr_assert_str_eq(fixture_raw(&f), "a,b\n1,2\nc\n3\n4\na,b\n5,6\n");
    fixture_deinit(&f);
}

Test(table, reads_and_writes_tsv_escapes_and_null)
{
    struct fixture f;
    init_typed(&f, LAHAR_FORMAT_TSV);
    const char *text = "a\tn\tw\\tord\nx\\ty\\nz\\\\\t\\N\t\"q\"\n\\N\t1\t\\\\N\n";
    for (size_t piece = 0; piece < 4; piece++) {
        fixture_clear(&f);
        fixture_read_bytes(&f, text, strlen(text), piece);
        cr_assert_eq(f.error_count, 0);
        cr_assert_eq(f.event_count, 2);
        lahar_event event = fixture_event(&f, 0);
        cr_assert(has_attribute(&event, "a", "x\ty\nz\\"));
        cr_assert(has_attribute(&event, "w\tord", "\"q\""));
        cr_assert(find(&f, &event, "n")->is_null);
        event = fixture_event(&f, 1);
        cr_assert(find_attribute(&event, "a", 0)->is_null);
        cr_assert(has_attribute(&event, "w\tord", "\\N"));
        cr_assert_str_eq(fixture_raw(&f), text);
    }
    fixture_clear(&f);
    fixture_read(&f, "n\n\n\\N\n");
    cr_assert_eq(f.event_count, 1);
    cr_assert_eq(f.error_count, 1);
    fixture_deinit(&f);
}

Test(table, takes_its_time_from_the_named_column)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_CSV);
    f.options.time_field = "t";
    fixture_read(&f, "t\n1714521600\nlater\n");
    cr_assert_eq(f.error_count, 0);
    cr_assert_eq(fixture_event(&f, 0).time_ns, 1714521600000000000);
    cr_assert_eq(fixture_event(&f, 1).time_ns, LAHAR_TIME_OF_ARRIVAL);
    fixture_deinit(&f);
}

Test(table_shape, with_any_bytes_is_refused_or_written)
{
    static const char shape[] = "C\4a,b\n\2\0\3\1\1z";
    const lahar_pair pair = {{"a", 1}, {"1", 1}, false};
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP, .as.map = {&pair, 1}}};
    const lahar_event event = {.values = values, .value_count = 1};
    struct lahar_table_parser parser;
    struct lahar_arena arena;
    struct lahar_buffer out;
    const struct lahar_table_style style = lahar_table_style_of(false);
    lahar_table_parser_init(&parser, &lahar_allocator_libc, &style);
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    lahar_buffer_init(&out, &lahar_allocator_libc);
    cr_assert_eq(lahar_table_shape_write(&event, (lahar_bytes){shape, sizeof shape - 1}, &parser,
                                         &arena, &out, NULL),
                 LAHAR_OK);
    cr_assert_arr_eq(out.data, "1,z\n", 4);
    for (size_t at = 0; at < sizeof shape - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char changed[sizeof shape];
            memcpy(changed, shape, sizeof shape);
            changed[at] = (char)byte;
            const lahar_status status = lahar_table_shape_write(
                &event, (lahar_bytes){changed, sizeof shape - 1}, &parser, &arena, &out, NULL);
            cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT);
            lahar_arena_reset(&arena);
        }
        const lahar_status status =
            lahar_table_shape_write(&event, (lahar_bytes){shape, at}, &parser, &arena, &out, NULL);
        cr_assert_eq(status, LAHAR_CORRUPT, "cut at %zu", at);
    }
    lahar_table_parser_deinit(&parser);
    lahar_arena_deinit(&arena);
    lahar_buffer_deinit(&out);
}
