/* The formats beside lines, JSON and tables with a header; and the settings of all of them. */
#include "engine/format/format_settings.h"
#include "text_fixture.h"

/* The fixture's events as JSON lines must be those of wanted; and with raw not NULL the file must
 * come back as that. Read in pieces of every size. */
struct given {
    lahar_format format;
    const char *settings[8]; /* names and values in turn */
    const char *text;
    const char *wanted;
    const char *raw;
    size_t error_count;
};

static void set(lahar_format_settings *settings, const char *name, const char *value)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_format_set(settings, name, value, &error), LAHAR_OK, "%s", error.message);
}

static void check_fields(const struct given *given, const lahar_field_spec *fields,
                         size_t field_count)
{
    const size_t size = strlen(given->text);
    for (size_t piece = 0; piece <= size; piece += 1 + piece / 16) {
        struct fixture f;
        static lahar_format_settings settings;
        settings.size = 0;
        for (size_t i = 0; i < 8 && given->settings[i] != NULL; i += 2) {
            set(&settings, given->settings[i], given->settings[i + 1]);
        }
        fixture_init_fields(&f, given->format, LAHAR_SCHEMA_LOG, fields, field_count);
        f.options.settings = &settings;
        f.options.reference_ns = INT64_C(1714521600000000000);
        fixture_read_bytes(&f, given->text, size, piece);
        cr_expect_eq(f.error_count, given->error_count, "piece %zu: %zu errors, last: %s", piece,
                     f.error_count, f.error_text);
        cr_expect_str_eq(fixture_json(&f), given->wanted);
        if (given->raw != NULL) {
            cr_expect_str_eq(fixture_raw(&f), given->raw);
        }
        fixture_deinit(&f);
    }
}

static void check(const struct given *given)
{
    check_fields(given, NULL, 0);
}

Test(formats, read_values_with_quotes_nulls_and_arrays)
{
    static const char text[] = "(1, 'it\\'s', NULL),(2,'a''b',[1,(2,3)])\n(3,'x\\ny','');";
    check(&(struct given){
        .format = LAHAR_FORMAT_VALUES,
        .settings = {"columns", "n, s, v"},
        .text = text,
        .wanted = "{\"attributes\":{\"n\":\"1\",\"s\":\"it's\",\"v\":null},\"_offset\":0,"
                  "\"_raw_record\":\"(1, 'it\\\\'s', NULL)\"}\n"
                  "{\"attributes\":{\"n\":\"2\",\"s\":\"a'b\",\"v\":\"[1,(2,3)]\"},\"_offset\":19,"
                  "\"_raw_record\":\"(2,'a''b',[1,(2,3)])\"}\n"
                  "{\"attributes\":{\"n\":\"3\",\"s\":\"x\\ny\",\"v\":\"\"},\"_offset\":40,"
                  "\"_raw_record\":\"(3,'x\\\\ny','')\"}\n",
        .raw = text,
    });
}

Test(formats, read_compact_json_by_columns)
{
    static const lahar_field_spec fields[] = {{"n", LAHAR_I64, false}, {"s", LAHAR_TEXT, false}};
    check_fields(
        &(struct given){
            .format = LAHAR_FORMAT_JSON_COMPACT,
            .settings = {"columns", "n,s,x"},
            .text = "[1, \"a\\u00e9\",true]\n[\n2,null,{\"k\":[1]}]\n[\"x\",\"b\",1]\n[3]\n",
            .wanted =
                "{\"attributes\":{\"x\":\"true\"},\"_offset\":0,"
                "\"_raw_record\":\"[1, \\\"a\\\\u00e9\\\",true]\",\"n\":1,\"s\":\"a\u00e9\"}\n"
                "{\"attributes\":{\"x\":\"{\\\"k\\\":[1]}\"},\"_offset\":20,\"_raw_record\":"
                "\"[\\n2,null,{\\\"k\\\":[1]}]\",\"n\":2,\"s\":null}\n",
            .error_count = 2,
        },
        fields, 2);
}

Test(formats, read_only_strings_from_json_strings)
{
    static const lahar_field_spec fields[] = {{"n", LAHAR_I64, false}};
    check_fields(&(struct given){.format = LAHAR_FORMAT_JSON_STRINGS,
                                 .text = "{\"n\":\"7\",\"s\":\"x\"}\n{\"n\":7}\n{\"s\":null}\n",
                                 .wanted = "{\"n\":\"7\",\"s\":\"x\"}\n{\"s\":null}\n",
                                 .raw = "{\"n\":\"7\",\"s\":\"x\"}\n{\"s\":null}\n",
                                 .error_count = 1},
                 fields, 1);
}

Test(formats, keep_json_as_a_string_or_as_attributes)
{
    static const lahar_field_spec fields[] = {{"n", LAHAR_I64, false}};
    check(&(struct given){.format = LAHAR_FORMAT_JSON_AS_STRING,
                          .text = "{\"a\": 1}\n[2, 3]\n",
                          .wanted = "{\"message\":\"{\\\"a\\\": 1}\",\"_offset\":0}\n"
                                    "{\"message\":\"[2, 3]\",\"_offset\":9}\n",
                          .raw = "{\"a\": 1}\n[2, 3]\n"});
    check_fields(&(struct given){.format = LAHAR_FORMAT_JSON_AS_OBJECT,
                                 .text = "{\"n\":\"no number\",\"o\":{\"k\":1}}\n",
                                 .wanted = "{\"n\":\"no number\",\"o\":{\"k\":1}}\n",
                                 .raw = "{\"n\":\"no number\",\"o\":{\"k\":1}}\n"},
                 fields, 1);
}

Test(formats, read_csv_without_a_header)
{
    static const lahar_field_spec fields[] = {{"n", LAHAR_I64, false}, {"s", LAHAR_KEYWORD, false}};
    check_fields(&(struct given){.format = LAHAR_FORMAT_CSV_BARE,
                                 .text = "1,a\n2,\"b,c\"\n\n\\N,\"\\N\"\nx,y\n",
                                 .wanted = "{\"_offset\":0,\"n\":1,\"s\":\"a\"}\n"
                                           "{\"_offset\":4,\"n\":2,\"s\":\"b,c\"}\n"
                                           "{\"_offset\":13,\"n\":null,\"s\":\"\\\\N\"}\n",
                                 .raw = "1,a\n2,\"b,c\"\n\\N,\"\\N\"\n",
                                 .error_count = 1},
                 fields, 2);
    check(&(struct given){.format = LAHAR_FORMAT_CSV_BARE,
                          .text = "1,a\n2\n",
                          .wanted = "{\"attributes\":{\"column1\":\"1\",\"column2\":\"a\"},"
                                    "\"_offset\":0}\n"
                                    "{\"attributes\":{\"column1\":\"2\"},\"_offset\":4}\n",
                          .raw = "1,a\n2\n"});
}

Test(formats, follow_the_settings_of_csv)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_CSV,
        .settings = {"format_csv_delimiter", ";", "format_csv_allow_single_quotes", "1",
                     "format_csv_null_representation", "NULL", "input_format_csv_skip_first_lines",
                     "1"},
        .text = "made by hand\na;b\n'x;1';NULL\n2;\"NULL\"\n",
        .wanted = "{\"attributes\":{\"a\":\"x;1\",\"b\":null},\"_offset\":17}\n"
                  "{\"attributes\":{\"a\":\"2\",\"b\":\"NULL\"},\"_offset\":28}\n",
        .raw = "a;b\n\"x;1\";NULL\n2;NULL\n",
    });
    check(&(struct given){
        .format = LAHAR_FORMAT_CSV,
        .settings = {"input_format_csv_trim_whitespaces", "1",
                     "input_format_csv_allow_variable_number_of_columns", "1",
                     "format_csv_allow_double_quotes", "0"},
        .text = "a,b\n \"x\" , y\n1\n",
        .wanted = "{\"attributes\":{\"a\":\"\\\"x\\\"\",\"b\":\"y\"},\"_offset\":4}\n"
                  "{\"attributes\":{\"a\":\"1\"},\"_offset\":13}\n",
    });
}

Test(formats, follow_the_settings_of_tsv)
{
    static const lahar_field_spec fields[] = {{"n", LAHAR_I64, false}};
    check_fields(&(struct given){.format = LAHAR_FORMAT_TSV_BARE,
                                 .settings = {"columns", "n,s", "format_tsv_null_representation",
                                              "nil", "input_format_tsv_empty_as_default", "1",
                                              "input_format_tsv_skip_first_lines", "2"},
                                 .text = "one\ntwo\n7\tx\\ty\nnil\t\\N\n\tz\n",
                                 .wanted =
                                     "{\"attributes\":{\"s\":\"x\\ty\"},\"_offset\":8,\"n\":7}\n"
                                     "{\"attributes\":{\"s\":\"N\"},\"_offset\":15,\"n\":null}\n"
                                     "{\"attributes\":{\"s\":\"z\"},\"_offset\":22,\"n\":null}\n",
                                 .raw = "7\tx\\ty\nnil\tN\n\tz\n"},
                 fields, 1);
}

Test(formats, read_tskv)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_TSKV,
        .text = "tskv\tlevel=INFO\ta\\=b=c\\td\tn=\\N\n\nx=1\nbad\n",
        .wanted =
            "{\"message\":\"tskv\\tlevel=INFO\\ta\\\\=b=c\\\\td\\tn=\\\\N\",\"level\":\"INFO\","
            "\"attributes\":{\"a=b\":\"c\\td\",\"n\":null},\"_offset\":0}\n"
            "{\"message\":\"x=1\",\"attributes\":{\"x\":\"1\"},\"_offset\":32}\n",
        .error_count = 1,
    });
}

Test(formats, read_custom_separated_rows)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_CUSTOM,
        .settings = {"columns", "a,b", "format_custom_field_delimiter", "||",
                     "format_custom_escaping_rule", "CSV"},
        .text = "1||x\n\"two\nlines\"||\"q\"\"q\"\nbad\n\\N||z",
        .wanted =
            "{\"attributes\":{\"a\":\"1\",\"b\":\"x\"},\"_offset\":0,\"_raw_record\":\"1||x\"}\n"
            "{\"attributes\":{\"a\":\"two\\nlines\",\"b\":\"q\\\"q\"},\"_offset\":5,"
            "\"_raw_record\":\"\\\"two\\nlines\\\"||\\\"q\\\"\\\"q\\\"\"}\n"
            "{\"attributes\":{\"a\":null,\"b\":\"z\"},\"_offset\":29,\"_raw_record\":\"\\\\N||z\"}"
            "\n",
        .error_count = 1,
    });
}

Test(formats, read_custom_rows_with_delimiters_around_them)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_CUSTOM,
        .settings = {"format_custom_row_before_delimiter", "<", "format_custom_row_after_delimiter",
                     ">", "format_custom_row_between_delimiter", ",",
                     "format_custom_result_before_delimiter", "BEGIN"},
        .text = "BEGIN<a\tb>,<c\td>\n",
        .wanted = "{\"attributes\":{\"column1\":\"a\",\"column2\":\"b\"},\"_offset\":5,"
                  "\"_raw_record\":\"<a\\tb>\"}\n"
                  "{\"attributes\":{\"column1\":\"c\",\"column2\":\"d\"},\"_offset\":11,"
                  "\"_raw_record\":\"<c\\td>\"}\n",
        .raw = "BEGIN<a\tb>,<c\td>\n",
    });
}

Test(formats, read_rows_by_a_template)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_TEMPLATE,
        .settings = {"format_template_row",
                     "user ${u:Quoted} did ${what:Raw} at ${:None}: ${n:JSON}"},
        .text = "user 'a b' did fly at noon: \"x\\ny\"\nuser 'c' was\nuser 'd' did sit at 1: 5\n",
        .wanted = "{\"attributes\":{\"u\":\"a b\",\"what\":\"fly\",\"n\":\"x\\ny\"},\"_offset\":0,"
                  "\"_raw_record\":\"user 'a b' did fly at noon: \\\"x\\\\ny\\\"\"}\n"
                  "{\"attributes\":{\"u\":\"d\",\"what\":\"sit\",\"n\":\"5\"},\"_offset\":48,"
                  "\"_raw_record\":\"user 'd' did sit at 1: 5\"}\n",
        .error_count = 1,
    });
}

Test(formats, take_a_blob_as_one_record)
{
    check(&(struct given){.format = LAHAR_FORMAT_RAW_BLOB,
                          .text = "a\r\nb\n\nc",
                          .wanted = "{\"message\":\"a\\r\\nb\\n\\nc\",\"_offset\":0}\n",
                          .raw = "a\r\nb\n\nc"});
}

Test(formats, read_logfmt_and_lose_no_line)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_LOGFMT,
        .text = "level=info msg=\"say \\\"hi\\\"\" ok d=1 d=2\nlevel=warn x=\"open\n==\n",
        .wanted = "{\"message\":\"level=info msg=\\\"say \\\\\\\"hi\\\\\\\"\\\" ok d=1 d=2\","
                  "\"level\":\"info\",\"attributes\":{\"msg\":\"say \\\"hi\\\"\",\"ok\":\"true\","
                  "\"d\":[\"1\",\"2\"]},\"_offset\":0}\n"
                  "{\"message\":\"level=warn x=\\\"open\",\"level\":\"warn\","
                  "\"attributes\":{\"x\":\"open\"},\"_offset\":39}\n"
                  "{\"message\":\"==\",\"_offset\":58}\n",
        .raw = "level=info msg=\"say \\\"hi\\\"\" ok d=1 d=2\nlevel=warn x=\"open\n==\n",
    });
}

static int64_t time_of(lahar_format format, const char *zone, const char *line)
{
    struct fixture f;
    static lahar_format_settings settings;
    settings.size = 0;
    set(&settings, "time_zone", zone);
    fixture_init(&f, format);
    f.options.settings = &settings;
    f.options.reference_ns = INT64_C(1714521600000000000); /* 2024-05-01 */
    fixture_read(&f, line);
    cr_assert_eq(f.event_count, 1, "%s", f.error_text);
    const int64_t time_ns = fixture_event(&f, 0).time_ns;
    fixture_deinit(&f);
    return time_ns;
}

Test(formats, read_access_logs)
{
    static const char line[] = "10.0.0.1 - ann [01/May/2024:00:00:00 +0200] \"GET /a?b HTTP/1.1\" "
                               "200 12 \"-\" \"curl/8 \\\"x\\\"\"\n";
    check(&(struct given){
        .format = LAHAR_FORMAT_ACCESS_LOG,
        .text = line,
        .wanted = "{\"message\":\"10.0.0.1 - ann [01/May/2024:00:00:00 +0200] \\\"GET /a?b "
                  "HTTP/1.1\\\" 200 12 \\\"-\\\" \\\"curl/8 \\\\\\\"x\\\\\\\"\\\"\","
                  "\"attributes\":{\"remote_addr\":\"10.0.0.1\",\"remote_user\":\"ann\","
                  "\"request\":\"GET /a?b HTTP/1.1\",\"method\":\"GET\",\"path\":\"/a?b\","
                  "\"protocol\":\"HTTP/1.1\",\"status\":\"200\",\"bytes\":\"12\","
                  "\"user_agent\":\"curl/8 \\\\\\\"x\\\\\\\"\"},\"_offset\":0}\n",
        .raw = line,
    });
    cr_expect_eq(time_of(LAHAR_FORMAT_ACCESS_LOG, "UTC", line), INT64_C(1714514400000000000));
}

Test(formats, read_both_forms_of_syslog)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_SYSLOG_3164,
        .text = "<34>May  1 00:00:00 box su[7]: failed: x\nApr 30 23:59:59 box -- mark --\nno\n",
        .wanted =
            "{\"message\":\"failed: x\",\"level\":\"crit\",\"attributes\":{\"facility\":\"auth\","
            "\"host\":\"box\",\"app\":\"su\",\"procid\":\"7\"},\"_offset\":0,"
            "\"_raw_record\":\"<34>May  1 00:00:00 box su[7]: failed: x\"}\n"
            "{\"message\":\"-- mark --\",\"attributes\":{\"host\":\"box\"},\"_offset\":41,"
            "\"_raw_record\":\"Apr 30 23:59:59 box -- mark --\"}\n",
        .error_count = 1,
    });
    check(&(struct given){
        .format = LAHAR_FORMAT_SYSLOG_5424,
        .text = "<165>1 2024-05-01T00:00:00.5Z box app - ID47 [e@1 k=\"v\\]\" l=\"2\"][f@1] "
                "\xef\xbb\xbfhello\n<1>1 - - - - - -\n",
        .wanted =
            "{\"message\":\"hello\",\"level\":\"notice\",\"attributes\":{\"facility\":"
            "\"local4\",\"host\":\"box\",\"app\":\"app\",\"msgid\":\"ID47\","
            "\"sd.e@1.k\":\"v]\",\"sd.e@1.l\":\"2\"},\"_offset\":0,\"_raw_record\":"
            "\"<165>1 2024-05-01T00:00:00.5Z box app - ID47 [e@1 k=\\\"v\\\\]\\\" l=\\\"2\\\"]"
            "[f@1] \ufeffhello\"}\n"
            "{\"message\":\"\",\"level\":\"alert\",\"attributes\":{\"facility\":\"kern\"},"
            "\"_offset\":79,\"_raw_record\":\"<1>1 - - - - - -\"}\n",
    });
    cr_expect_eq(time_of(LAHAR_FORMAT_SYSLOG_3164, "+02:00", "May  1 02:00:00 h a: b\n"),
                 INT64_C(1714521600000000000));
    cr_expect_eq(time_of(LAHAR_FORMAT_SYSLOG_3164, "UTC", "2024-05-01T02:00:00+02:00 h a: b\n"),
                 INT64_C(1714521600000000000));
}

Test(formats, join_the_lines_of_nifi_s_log)
{
    static const char text[] = "2024-05-01 00:00:00,123 ERROR [Timer-1] o.a.nifi.Foo Failed: x\n"
                               "java.lang.Exception: x\n\tat a.b(C.java:1)\n"
                               "2024-05-01 00:00:01,000 INFO [main] o.a.nifi.Bar ok\n";
    check(&(struct given){
        .format = LAHAR_FORMAT_NIFI_LOG,
        .text = text,
        .wanted = "{\"message\":\"Failed: x\\njava.lang.Exception: x\\n\\tat a.b(C.java:1)\","
                  "\"level\":\"ERROR\",\"attributes\":{\"thread\":\"Timer-1\",\"logger\":"
                  "\"o.a.nifi.Foo\"},\"_offset\":0,\"_raw_record\":\"2024-05-01 00:00:00,123 ERROR "
                  "[Timer-1] o.a.nifi.Foo Failed: x\\njava.lang.Exception: x\\n\\tat "
                  "a.b(C.java:1)\"}\n"
                  "{\"message\":\"ok\",\"level\":\"INFO\",\"attributes\":{\"thread\":\"main\","
                  "\"logger\":\"o.a.nifi.Bar\"},\"_offset\":104,\"_raw_record\":"
                  "\"2024-05-01 00:00:01,000 INFO [main] o.a.nifi.Bar ok\"}\n",
        .raw = text,
    });
    cr_expect_eq(time_of(LAHAR_FORMAT_NIFI_LOG, "+02:00", text + 104),
                 INT64_C(1714514401000000000));
}

Test(formats, join_lines_by_a_pattern)
{
    static const char text[] = "\xef\xbb\xbf  lost\r\n> a\n b\r\n> c\n\n> d";
    check(&(struct given){
        .format = LAHAR_FORMAT_LINE,
        .settings = {"multiline_start", "^>"},
        .text = text,
        .wanted =
            "{\"message\":\"  lost\",\"_offset\":0}\n{\"message\":\"> a\\n b\",\"_offset\":11}\n"
            "{\"message\":\"> c\\n\",\"_offset\":19}\n{\"message\":\"> d\",\"_offset\":24}\n",
        .raw = text,
    });
    check(&(struct given){
        .format = LAHAR_FORMAT_LINE,
        .settings = {"multiline_start", "^>", "multiline_lines_max", "2"},
        .text = "> a\n1\n2\n3\n",
        .wanted =
            "{\"message\":\"> a\\n1\",\"_offset\":0}\n{\"message\":\"2\\n3\",\"_offset\":6}\n",
        .raw = "> a\n1\n2\n3\n",
    });
}

Test(formats, keep_joined_lines_below_the_limit)
{
    for (size_t piece = 0; piece < 40; piece++) {
        struct fixture f;
        static lahar_format_settings settings;
        settings.size = 0;
        set(&settings, "multiline_start", "^>");
        fixture_init(&f, LAHAR_FORMAT_LINE);
        f.options.settings = &settings;
        f.options.record_size_max = 8;
        fixture_read_bytes(&f, "> a\n123\n456\n> a line too long\n> b\n", 34, piece);
        cr_expect_eq(f.error_count, 1);
        cr_expect_str_eq(fixture_raw(&f), "> a\n123\n456\n> b\n");
        cr_expect_eq(f.event_count, 3);
        fixture_deinit(&f);
    }
}

Test(formats, fail_once_more_records_are_bad_than_allowed)
{
    struct fixture f;
    static lahar_format_settings settings;
    struct lahar_text_reader *reader = NULL;
    lahar_error error = {0};
    set(&settings, "input_format_allow_errors_num", "1");
    set(&settings, "input_format_allow_errors_ratio", "0.4");
    fixture_init(&f, LAHAR_FORMAT_JSON);
    f.options.settings = &settings;
    cr_assert_eq(lahar_text_reader_create(&f.options, &reader, &error), LAHAR_OK);
    cr_expect_eq(lahar_text_reader_write(reader, "{}\n{\n{}\n{}\n{\n{}\n", 16, &error), LAHAR_OK,
                 "two of six are below two fifths");
    cr_expect_eq(lahar_text_reader_write(reader, "{\n{\n{\n", 6, &error), LAHAR_INVALID);
    cr_expect_eq(f.error_count, 3);
    lahar_text_reader_destroy(reader);
    fixture_deinit(&f);
}

Test(formats, refuse_settings_that_are_none)
{
    static lahar_format_settings settings;
    struct lahar_format_options options;
    lahar_error error = {0};
    static char text[LAHAR_FORMAT_SETTINGS_SIZE + 1];
    cr_expect_eq(lahar_format_set(&settings, "nothing", "1", &error), LAHAR_NOT_FOUND);
    cr_expect_eq(lahar_format_set(&settings, "format_csv_delimiter", "ab", &error), LAHAR_INVALID);
    cr_expect_eq(lahar_format_set(&settings, "format_csv_delimiter", "\\n", &error), LAHAR_INVALID);
    cr_expect_eq(lahar_format_set(&settings, "keep_raw", "2", &error), LAHAR_INVALID);
    cr_expect_eq(lahar_format_set(&settings, "year", "10000", &error), LAHAR_INVALID);
    cr_expect_eq(lahar_format_set(&settings, "input_format_allow_errors_ratio", "1.5", &error),
                 LAHAR_INVALID);
    cr_expect_eq(lahar_format_set(&settings, "format_custom_escaping_rule", "Loud", &error),
                 LAHAR_INVALID);
    memset(text, 'x', sizeof text - 1);
    cr_expect_eq(lahar_format_set(&settings, "format_regexp", text, &error), LAHAR_TOO_BIG);
    cr_expect_eq(settings.size, 0);
    set(&settings, "format_csv_delimiter", "\\t");
    settings.text[settings.size - 2] = '\n';
    cr_expect_eq(lahar_format_options_read(&settings, &options, &error), LAHAR_INVALID);
    settings.size--;
    cr_expect_eq(lahar_format_options_read(&settings, &options, &error), LAHAR_INVALID);
    settings.size = UINT32_MAX;
    cr_expect_eq(lahar_format_options_read(&settings, &options, &error), LAHAR_INVALID);
}

Test(formats, are_found_by_name_or_refused_with_the_reason)
{
    static const char *const known[] = {"LineAsString",
                                        "JSONEachRow",
                                        "JSONCompactEachRow",
                                        "JSONStringsEachRow",
                                        "JSONAsString",
                                        "JSONAsObject",
                                        "CSV",
                                        "CSVWithNames",
                                        "TSV",
                                        "TSVWithNames",
                                        "TSKV",
                                        "Values",
                                        "CustomSeparated",
                                        "Template",
                                        "Regexp",
                                        "RawBLOB",
                                        "logfmt",
                                        "common",
                                        "combined",
                                        "syslog-3164",
                                        "syslog-5424",
                                        "nifi-log",
                                        "nifi-json",
                                        "TabSeparated"};
    static const char *const refused[] = {"Parquet", "ORC",      "Avro",      "Native",
                                          "Arrow",   "Protobuf", "RowBinary", "MsgPack"};
    lahar_format format;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        lahar_error error = {0};
        cr_expect_eq(lahar_format_find(known[i], &format, &error), LAHAR_OK, "%s", known[i]);
        cr_expect_str_neq(lahar_format_name(format), "unknown");
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        lahar_error error = {0};
        cr_expect_eq(lahar_format_find(refused[i], &format, &error), LAHAR_UNSUPPORTED);
        cr_expect_not_null(strstr(error.message, refused[i]));
        cr_expect_not_null(strstr(error.message, "cannot be ingested: "));
    }
}

/* --- settings that the formats above do not show ---------------------------------------- */

Test(settings, name_columns_and_bound_rows)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_CSV_BARE,
        .settings = {"column_names_for_schema_inference", "p, q"},
        .text = "1,2\n",
        .wanted = "{\"attributes\":{\"p\":\"1\",\"q\":\"2\"},\"_offset\":0}\n",
    });
    check(&(struct given){
        .format = LAHAR_FORMAT_CUSTOM,
        .settings = {"columns", "a,b", "input_format_custom_skip_first_lines", "1",
                     "input_format_custom_allow_variable_number_of_columns", "1"},
        .text = "head\n1\n1\t2\t3\n",
        .wanted = "{\"attributes\":{\"a\":\"1\"},\"_offset\":5,\"_raw_record\":\"1\"}\n"
                  "{\"attributes\":{\"a\":\"1\",\"b\":\"2\",\"column3\":\"3\"},\"_offset\":7,"
                  "\"_raw_record\":\"1\\t2\\t3\"}\n",
    });
    check(&(struct given){
        .format = LAHAR_FORMAT_CUSTOM,
        .settings = {"format_custom_result_before_delimiter", "[",
                     "format_custom_result_after_delimiter", "]"},
        .text = "[a\tb\nc\td\n]",
        .wanted = "{\"attributes\":{\"column1\":\"a\",\"column2\":\"b\"},\"_offset\":1,"
                  "\"_raw_record\":\"a\\tb\"}\n"
                  "{\"attributes\":{\"column1\":\"c\",\"column2\":\"d\"},\"_offset\":5,"
                  "\"_raw_record\":\"c\\td\"}\n",
    });
    check(&(struct given){
        .format = LAHAR_FORMAT_TEMPLATE,
        .settings = {"format_template_row_format", "x=${a:CSV}",
                     "format_template_rows_between_delimiter", ";"},
        .text = "x=1;x=\"2;\";x=3",
        .wanted = "{\"attributes\":{\"a\":\"1\"},\"_offset\":0,\"_raw_record\":\"x=1\"}\n"
                  "{\"attributes\":{\"a\":\"2;\"},\"_offset\":4,\"_raw_record\":\"x=\\\"2;\\\"\"}\n"
                  "{\"attributes\":{\"a\":\"3\"},\"_offset\":11,\"_raw_record\":\"x=3\"}\n",
    });
}

Test(settings, say_what_empty_cells_and_ragged_rows_are)
{
    static const lahar_field_spec fields[] = {{"n", LAHAR_I64, false}};
    check_fields(&(struct given){.format = LAHAR_FORMAT_CSV,
                                 .settings = {"input_format_csv_empty_as_default", "0"},
                                 .text = "n,s\n,x\n1,\n",
                                 .wanted = "{\"attributes\":{\"s\":\"\"},\"_offset\":7,\"n\":1}\n",
                                 .error_count = 1},
                 fields, 1);
    check_fields(
        &(struct given){.format = LAHAR_FORMAT_TSV,
                        .settings = {"input_format_tsv_allow_variable_number_of_columns", "1"},
                        .text = "n\ts\n7\n8\tx\ty\n",
                        .wanted = "{\"_offset\":4,\"n\":7}\n"
                                  "{\"attributes\":{\"s\":\"x\",\"column3\":\"y\"},"
                                  "\"_offset\":6,\"n\":8}\n"},
        fields, 1);
}

Test(settings, say_how_the_groups_of_an_expression_are_written)
{
    check(&(struct given){
        .format = LAHAR_FORMAT_REGEXP,
        .settings = {"format_regexp", "^k=(?<k>.*)$", "format_regexp_escaping_rule", "Escaped",
                     "format_regexp_skip_unmatched", "1"},
        .text = "k=a\\tb\nother\nk=\\N\n",
        .wanted = "{\"message\":\"k=a\\\\tb\",\"attributes\":{\"k\":\"a\\tb\"},\"_offset\":0}\n"
                  "{\"message\":\"k=\\\\N\",\"attributes\":{\"k\":null},\"_offset\":13}\n",
    });
}

Test(settings, say_how_times_are_written)
{
    struct fixture f;
    static lahar_format_settings settings;
    settings.size = 0;
    set(&settings, "time_format", "%d.%m.%Y %H:%M");
    set(&settings, "time_zone", "-03:30");
    fixture_init(&f, LAHAR_FORMAT_CSV);
    f.options.settings = &settings;
    f.options.time_field = "t";
    fixture_read(&f, "t\n01.05.2024 00:00\n2024-05-01T00:00:00Z\n29.02.2023 00:00\n");
    cr_expect_eq(f.error_count, 0);
    cr_expect_eq(fixture_event(&f, 0).time_ns, INT64_C(1714534200000000000));
    cr_expect_eq(fixture_event(&f, 1).time_ns, LAHAR_TIME_OF_ARRIVAL);
    cr_expect_eq(fixture_event(&f, 2).time_ns, LAHAR_TIME_OF_ARRIVAL);
    fixture_deinit(&f);
}
