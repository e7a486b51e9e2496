/* JSONEachRow: which bytes are records, what becomes of their values, and that
 * the same document comes back. */
#include "engine/format/document.h"
#include "engine/format/shape.h"
#include "text_fixture.h"

static const lahar_field_spec typed_fields[] = {
    {"n", LAHAR_I64, false},         {"u", LAHAR_U64, false},
    {"x", LAHAR_F64, false},         {"uid", LAHAR_UUID, false},
    {"ok", LAHAR_BOOL, false},       {"at", LAHAR_TIME, false},
    {"k.v", LAHAR_KEYWORD, false},   {"tags", LAHAR_LIST_KEYWORD, false},
    {"ids", LAHAR_LIST_UUID, false}, {"labels", LAHAR_MAP, false},
    {"raw", LAHAR_BYTES, false}};

static void init_typed(struct fixture *f)
{
    fixture_init_fields(f, LAHAR_FORMAT_JSON, LAHAR_SCHEMA_LOG, typed_fields,
                        sizeof typed_fields / sizeof typed_fields[0]);
}

static const lahar_value *find(struct fixture *f, const lahar_event *event, const char *name)
{
    uint32_t field = 0;
    cr_assert(lahar_schema_find_field(f->catalog, name, strlen(name), &field));
    return lahar_event_find(event, field);
}

/* Reads one document and expects it back byte for byte (it is written compactly). */
static void expect_same(struct fixture *f, const char *document)
{
    char line[1024];
    (void)snprintf(line, sizeof line, "%s\n", document);
    fixture_clear(f);
    fixture_read(f, line);
    cr_assert_eq(f->error_count, 0, "%s: %s", document, f->error_text);
    cr_assert_eq(f->event_count, 1, "%s", document);
    cr_assert_str_eq(fixture_raw(f), line);
    cr_assert_str_eq(fixture_json(f), line);
}

Test(json_rows, flatten_names_and_repeat_array_names)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_JSON);
    fixture_read(&f, "{\"a\":{\"b\":\"x\\ny\",\"c\":{\"d\":1.50}},\"l\":[1,[true],{\"m\":null}],"
                     "\"message\":\"hi\",\"level\":\"WARN\",\"e\":\"\"}");
    cr_assert_eq(f.event_count, 1);
    const lahar_event event = fixture_event(&f, 0);
    cr_assert(has_attribute(&event, "a.b", "x\ny"));
    cr_assert(has_attribute(&event, "a.c.d", "1.50"));
    cr_assert(has_attribute(&event, "l", "1"));
    cr_assert(bytes_equal(find_attribute(&event, "l", 1)->value, "true"));
    cr_assert(find_attribute(&event, "l.m", 0)->is_null);
    cr_assert(has_attribute(&event, "e", ""));
    cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_MESSAGE), "hi"));
    cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_LEVEL), "WARN"));
    cr_assert_eq(lahar_event_find(&event, LAHAR_FIELD_ATTRIBUTES)->as.map.count, 6);
    cr_assert_eq(event.time_ns, LAHAR_TIME_OF_ARRIVAL);
    fixture_deinit(&f);
}

Test(json_rows, leave_a_skeleton_that_repeats)
{
    struct fixture f;
    init_typed(&f);
    fixture_read(&f, "{\"a\":{\"b\":\"x\",\"c\":[1,null,{}]},\"n\":5,\"d\":[]}");
    const lahar_event event = fixture_event(&f, 0);
    uint32_t field = 0;
    cr_assert(lahar_schema_find_field(f.catalog, "n", 1, &field));
    char expected[64];
    (void)snprintf(expected, sizeof expected, "J{\"a\"{\"b\"$\"c\"[#n{}]}\"n\"@%c#\"d\"[]}",
                   (char)field);
    cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_SHAPE), expected));
    fixture_deinit(&f);
}

Test(json_rows, come_back_value_for_value)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_JSON);
    expect_same(&f, "{}");
    expect_same(&f, "{\"\":\"\",\"b\":{},\"c\":[],\"d\":[[],{},[{}]]}");
    expect_same(&f, "{\"z\":1,\"a\":-0.0,\"m\":1E+2,\"n\":100000000000000000000000001}");
    expect_same(&f, "{\"a\":{\"b\":1},\"a.b\":2,\"a\\\"x\":3}");
    expect_same(&f, "{\"x\":[{\"y\":1},{\"y\":[2,3]},{\"y\":null}],\"x.y\":\"4\"}");
    expect_same(&f,
                "{\"attributes\":{\"k\":\"v\"},\"_shape\":\"J{}\",\"_offset\":7,\"_error\":null}");
    expect_same(&f, "{\"message\":null,\"level\":5,\"_raw_record\":true}");
    expect_same(&f, "{\"message\":{\"level\":\"x\"},\"level\":[\"a\",\"b\"]}");
    expect_same(&f, "{\"\":{\"\":{\"\":1}},\".\":2,\"..\":3}");
    fixture_deinit(&f);
}

Test(json_rows, keep_declared_values_typed_and_exact)
{
    struct fixture f;
    init_typed(&f);
    expect_same(&f,
                "{\"n\":-9223372036854775808,\"u\":18446744073709551615,\"x\":0.1,\"ok\":true}");
    const lahar_event event = fixture_event(&f, 0);
    cr_assert_eq(find(&f, &event, "n")->as.i64, INT64_MIN);
    cr_assert_eq(find(&f, &event, "u")->as.u64, UINT64_MAX);
    cr_assert_float_eq(find(&f, &event, "x")->as.f64, 0.1, 0.0);
    cr_assert(find(&f, &event, "ok")->as.boolean);
    expect_same(&f, "{\"n\":\"7\",\"u\":\"007\",\"x\":1.50,\"ok\":\"false\"}");
    expect_same(&f, "{\"x\":1e400,\"n\":null,\"uid\":\"00112233-4455-6677-8899-aabbccddeeff\"}");
    expect_same(&f, "{\"uid\":\"00112233-4455-6677-8899-AABBCCDDEEFF\",\"raw\":\"a\\u0001\"}");
    expect_same(&f, "{\"at\":\"2024-05-01T00:00:00.1230000Z\"}");
    expect_same(&f, "{\"at\":\"2024-05-01 00:00:00+01:00\"}");
    expect_same(&f, "{\"at\":1714521600}");
    expect_same(&f, "{\"at\":1714521600123}");
    expect_same(&f, "{\"at\":1714521600.5}");
    expect_same(&f, "{\"k\":{\"v\":\"a\"},\"k.v\":\"b\"}");
    expect_same(&f,
                "{\"tags\":[\"a\",1,\"b\"],\"ids\":[\"00112233-4455-6677-8899-aabbccddeeff\"]}");
    expect_same(&f, "{\"tags\":\"alone\",\"ids\":[]}");
    expect_same(&f, "{\"labels\":{\"a\":\"x\",\"b\":{\"c\":1}},\"a\":\"y\",\"b.c\":2,\"n\":1}");
    const lahar_event last = fixture_event(&f, 0);
    const lahar_value *labels = find(&f, &last, "labels");
    cr_assert_eq(labels->as.map.count, 2);
    cr_assert(bytes_equal(labels->as.map.items[1].key, "b.c"));
    cr_assert(has_attribute(&last, "b.c", "2"));
    expect_same(&f, "{\"o\":{\"labels\":{\"p\":1}},\"labels\":null,\"labels2\":{}}");
    fixture_deinit(&f);
}

Test(json_rows, refuse_a_value_that_does_not_fit_its_declared_field)
{
    static const char *const bad[] = {
        "{\"n\":1.5}",        "{\"n\":\"x\"}",    "{\"n\":9223372036854775808}", "{\"u\":-1}",
        "{\"uid\":\"nope\"}", "{\"ok\":\"yes\"}", "{\"at\":\"yesterday\"}",      "{\"n\":[1,2]}",
        "{\"ids\":[\"x\"]}",  "{\"tags\":[[1]]}", "{\"tags\":[null]}",           "{\"x\":\"1,5\"}"};
    struct fixture f;
    init_typed(&f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fixture_clear(&f);
        fixture_read(&f, bad[i]);
        cr_assert_eq(f.error_count, 1, "%s", bad[i]);
        cr_assert_eq(f.event_count, 0, "%s", bad[i]);
        cr_assert(strstr(f.error_text, "field \"") != NULL, "%s", f.error_text);
    }
    fixture_deinit(&f);
}

Test(json_rows, of_duplicate_keys_keep_the_last)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_JSON);
    fixture_read(&f, "{\"k\":1,\"k\":{\"x\":2},\"\\u006b\":[3],\"m\":{\"a\":1,\"b\":2,\"a\":3}}");
    cr_assert_str_eq(fixture_raw(&f), "{\"\\u006b\":[3],\"m\":{\"b\":2,\"a\":3}}\n");
    cr_assert_str_eq(fixture_json(&f), "{\"k\":[3],\"m\":{\"b\":2,\"a\":3}}\n");
    const lahar_event event = fixture_event(&f, 0);
    cr_assert_eq(lahar_event_find(&event, LAHAR_FIELD_ATTRIBUTES)->as.map.count, 3);
    cr_assert_null(find_attribute(&event, "k.x", 0));
    fixture_deinit(&f);
}

Test(json_rows, of_many_keys_keep_the_last_too)
{
    struct fixture f;
    char text[16384] = "{";
    size_t at = 1;
    for (int i = 0; i < 500; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "\"k%d\":%d,", i % 250, i);
    }
    (void)snprintf(text + at, sizeof text - at, "\"end\":0}");
    fixture_init(&f, LAHAR_FORMAT_JSON);
    fixture_read(&f, text);
    const lahar_event event = fixture_event(&f, 0);
    cr_assert_eq(lahar_event_find(&event, LAHAR_FIELD_ATTRIBUTES)->as.map.count, 251);
    cr_assert(has_attribute(&event, "k0", "250"));
    cr_assert(has_attribute(&event, "k249", "499"));
    fixture_deinit(&f);
}

Test(json_rows, give_lone_surrogates_back_as_they_were)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_JSON);
    fixture_read(&f, "{\"m\":\"a \\ud83d b\",\"m2\":\"\\ude00\",\"n\":1}\n");
    cr_assert_str_eq(fixture_raw(&f), "{\"m\":\"a \\ud83d b\",\"m2\":\"\\ude00\",\"n\":1}\n");
    cr_assert_str_eq(fixture_json(&f),
                     "{\"m\":\"a \xef\xbf\xbd b\",\"m2\":\"\xef\xbf\xbd\",\"n\":1}\n");
    const lahar_event event = fixture_event(&f, 0);
    cr_assert(has_attribute(&event, "m", "a \xef\xbf\xbd b"));
    fixture_deinit(&f);
}

Test(json_rows, may_stand_in_lines_in_arrays_and_over_several_lines)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"{\"a\":1}{\"a\":2}", "{\"a\":1}\n{\"a\":2}\n"},
        {"{\"a\":1},\n{\"a\":2}\n,{\"a\":3}", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n"},
        {"[{\"a\":1},{\"a\":2}]", "{\"a\":1}\n{\"a\":2}\n"},
        {"\n [\n {\n\"a\" :\n1 }\n,{\"a\":2}\n]\n[{\"a\":3}]\n",
         "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n"},
        {"\n\n\t{\"a\":1}\r\n\r\n", "{\"a\":1}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t piece = 0; piece < 5; piece++) {
            struct fixture f;
            fixture_init(&f, LAHAR_FORMAT_JSON);
            fixture_read_bytes(&f, cases[i].text, strlen(cases[i].text), piece);
            cr_assert_eq(f.error_count, 0, "case %zu: %s", i, f.error_text);
            cr_assert_str_eq(fixture_raw(&f), cases[i].expected, "case %zu", i);
            fixture_deinit(&f);
        }
    }
}

Test(json_rows, lose_only_the_first_line_of_what_fails)
{
    const char *text = "{\"a\":1}\n{\"a\":2,\"m\":\"cut\n{\"a\":3}\nnoise\n{\"a\":{\n{\"a\":4}\n"
                       "{\"a\":5} tail\n{\"a\":6";
    for (size_t piece = 0; piece < 9; piece++) {
        struct fixture f;
        fixture_init(&f, LAHAR_FORMAT_JSON);
        fixture_read_bytes(&f, text, strlen(text), piece);
        cr_assert_str_eq(fixture_raw(&f), "{\"a\":1}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5}\n");
        cr_assert_eq(f.error_count, 5);
        static const uint64_t lines[] = {2, 4, 5, 7, 8};
        static const uint64_t offsets[] = {8, 32, 38, 61, 66};
        cr_assert_arr_eq(f.error_lines, lines, sizeof lines);
        cr_assert_arr_eq(f.error_offsets, offsets, sizeof offsets);
        fixture_deinit(&f);
    }
}

Test(json_rows, report_a_record_that_is_too_long)
{
    const char *text = "{\"a\":1}\n{\"a\":\"0123456789\"}\n{\"a\":\n[1,\n2]}\n{\"a\":4}\n";
    for (size_t piece = 0; piece < 9; piece++) {
        struct fixture f;
        fixture_init(&f, LAHAR_FORMAT_JSON);
        f.options.record_size_max = 10;
        fixture_read_bytes(&f, text, strlen(text), piece);
        cr_assert_str_eq(fixture_raw(&f), "{\"a\":1}\n{\"a\":4}\n", "piece %zu", piece);
        cr_assert_eq(f.error_count, 4);
        static const uint64_t lines[] = {2, 3, 4, 5};
        cr_assert_arr_eq(f.error_lines, lines, sizeof lines);
        fixture_deinit(&f);
    }
}

Test(json_rows, that_are_no_objects_are_messages)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_JSON);
    fixture_read(&f, " [1, 2] \r\n\"s\"\n-1e5\n{}\nnull");
    cr_assert_eq(f.event_count, 5);
    cr_assert_eq(f.error_count, 0);
    cr_assert_str_eq(fixture_raw(&f), "[1, 2]\n\"s\"\n-1e5\n{}\nnull\n");
    const lahar_event event = fixture_event(&f, 0);
    cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_MESSAGE), "[1, 2]"));
    fixture_deinit(&f);
}

Test(json_rows, kept_raw_give_the_file_back)
{
    static const char *const files[] = {
        "\xef\xbb\xbf {\"a\" : 1 , \"a\":2}\n\n{\"b\":1}\r\n  [ {\"c\":1} ,\n{\"d\":1}\n]\n\n ",
        "{\"a\":1}", "\n\n{\"a\":1}\n42 \n", "[{\"a\":1}]"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        for (size_t piece = 0; piece < 6; piece++) {
            struct fixture f;
            fixture_init(&f, LAHAR_FORMAT_JSON);
            f.options.keep_raw = true;
            fixture_read_bytes(&f, files[i], strlen(files[i]), piece);
            cr_assert_eq(f.error_count, 0);
            cr_assert_str_eq(fixture_raw(&f), files[i], "file %zu piece %zu", i, piece);
            fixture_deinit(&f);
        }
    }
}

Test(json_rows, take_their_time_from_the_named_field)
{
    struct fixture f;
    fixture_init(&f, LAHAR_FORMAT_JSON);
    f.options.time_field = "e.t";
    fixture_read(&f,
                 "{\"e\":{\"t\":\"2024-05-01T02:00:00.5+02:00\"}}\n{\"e\":{\"t\":1714521600.25}}\n"
                 "{\"e.t\":\"1714521600123456789\"}\n{\"e\":{\"t\":\"soon\"}}\n{\"t\":1}\n");
    cr_assert_eq(f.error_count, 0);
    static const int64_t times[] = {1714521600500000000, 1714521600250000000, 1714521600123456789,
                                    LAHAR_TIME_OF_ARRIVAL, LAHAR_TIME_OF_ARRIVAL};
    for (size_t i = 0; i < 5; i++) {
        cr_assert_eq(fixture_event(&f, i).time_ns, times[i], "event %zu", i);
    }
    fixture_deinit(&f);
}

Test(json_rows, of_a_provenance_stream_fill_its_fields)
{
    struct fixture f;
    fixture_init_fields(&f, LAHAR_FORMAT_JSON, LAHAR_SCHEMA_PROVENANCE, NULL, 0);
    fixture_read(
        &f, "{\"type\":\"RECEIVE\",\"uuid\":\"00112233-4455-6677-8899-aabbccddeeff\",\"size\":5,"
            "\"attributes\":{\"filename\":\"x\",\"gone\":null},\"parents\":[]}\n[1]\n");
    cr_assert_eq(f.event_count, 1);
    cr_assert_eq(f.error_count, 1);
    const lahar_event event = fixture_event(&f, 0);
    cr_assert(has_attribute(&event, "filename", "x"));
    cr_assert(find_attribute(&event, "gone", 0)->is_null);
    cr_assert_eq(find(&f, &event, "size")->as.u64, 5);
    cr_assert_eq(find(&f, &event, "parents")->as.uuids.count, 0);
    fixture_deinit(&f);
}

Test(shape, with_any_bytes_is_refused_or_written)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "}",
                                      "[]",
                                      "$",
                                      "{\"a\"",

                                      "{\"b\"@}",
                                      "{\"a\"@\xff\xff\xff\xff\xff\xff$}",
                                      "{\"a\"=}",
                                      "{\"a\"=\"x}",
                                      "{\"a\"#}x",
                                      "{\"a\"#\"a\"#}",
                                      "{\"a\"t5}",
                                      "{\"a\"@\x05t5}",
                                      "{\"a\\\"#}",
                                      "{\"\\u12\"#}",
                                      "{\"a\"&{}}",
                                      "{#}",
                                      "{\"a\"@\x02$}"};
    const lahar_pair pair = {{"a", 1}, {"1", 1}, false};
    const lahar_value value = {
        .field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP, .as.map = {&pair, 1}};
    const lahar_event event = {.values = &value, .value_count = 1};
    struct lahar_arena arena;
    struct lahar_buffer path;
    struct lahar_buffer out;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    lahar_buffer_init(&path, &lahar_allocator_libc);
    lahar_buffer_init(&out, &lahar_allocator_libc);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(lahar_shape_write(&event, (lahar_bytes){bad[i], strlen(bad[i])}, true, &arena,
                                       &path, NULL, &out, NULL),
                     LAHAR_CORRUPT, "case %zu", i);
    }
    lahar_buffer_clear(&out);
    cr_assert_eq(lahar_shape_write(&event, (lahar_bytes){"{\"a\"#}", 6}, true, &arena, &path, NULL,
                                   &out, NULL),
                 LAHAR_OK);
    cr_assert_arr_eq(out.data, "{\"a\":1}", 7);
    /* Every prefix and every one-byte change of a real shape. */
    static const char shape[] = "{\"a\"#\"b\"{\"c\"[{}]}}";
    for (size_t at = 0; at < sizeof shape - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char changed[sizeof shape];
            memcpy(changed, shape, sizeof shape);
            changed[at] = (char)byte;
            const lahar_status status =
                lahar_shape_write(&event, (lahar_bytes){changed, sizeof shape - 1}, true, &arena,
                                  &path, NULL, &out, NULL);
            cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT);
            lahar_arena_reset(&arena);
        }
        cr_assert_eq(lahar_shape_write(&event, (lahar_bytes){shape, at}, true, &arena, &path, NULL,
                                       &out, NULL),
                     LAHAR_CORRUPT);
    }
    lahar_arena_deinit(&arena);
    lahar_buffer_deinit(&path);
    lahar_buffer_deinit(&out);
}
