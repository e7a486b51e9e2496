/* Odd inputs with the behaviour that their index asks for. */
#include "data_folder.h"
#include "engine/format/time_text.h"
#include "text_fixture.h"

static char *load_odd(const char *folder, const char *name, size_t *size_out)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/odd/%s", folder, name);
    return load(path, size_out);
}

/* --- odd inputs ------------------------------------------------------------- */

struct odd_case {
    const char *name;
    lahar_format format;
    size_t event_count;
    size_t error_count;
};

static const struct odd_case odd_cases[] = {
    {"long_line_2MB.log", LAHAR_FORMAT_LINE, 3, 0},
    {"boundary/line_4095.log", LAHAR_FORMAT_LINE, 2, 0},
    {"boundary/line_4096.log", LAHAR_FORMAT_LINE, 2, 0},
    {"boundary/line_65535.log", LAHAR_FORMAT_LINE, 2, 0},
    {"boundary/line_65536.log", LAHAR_FORMAT_LINE, 2, 0},
    {"boundary/line_65537.log", LAHAR_FORMAT_LINE, 2, 0},
    {"boundary/line_262144.log", LAHAR_FORMAT_LINE, 2, 0},
    {"boundary/line_1048576.log", LAHAR_FORMAT_LINE, 2, 0},
    {"no_final_newline.log", LAHAR_FORMAT_LINE, 3, 0},
    {"whitespace_lines.log", LAHAR_FORMAT_LINE, 4, 0},
    {"zero_byte.log", LAHAR_FORMAT_LINE, 0, 0},
    {"one_byte.log", LAHAR_FORMAT_LINE, 1, 0},
    {"crlf.log", LAHAR_FORMAT_LINE, 3, 0},
    {"lone_cr.log", LAHAR_FORMAT_LINE, 2, 0},
    {"old_mac_cr_only.log", LAHAR_FORMAT_LINE, 1, 0},
    {"binary_garbage.bin", LAHAR_FORMAT_LINE, 271, 0},
    {"nul_prefix_copytruncate.log", LAHAR_FORMAT_LINE, 2, 0},
    {"invalid_utf8.log", LAHAR_FORMAT_LINE, 9, 0},
    {"utf8_bom.log", LAHAR_FORMAT_LINE, 2, 0},
    {"emoji.log", LAHAR_FORMAT_LINE, 2, 0},
    {"ansi_colour.log", LAHAR_FORMAT_LINE, 3, 0},
    {"immense_token.log", LAHAR_FORMAT_LINE, 4, 0},
    {"json_with_prefix.log", LAHAR_FORMAT_LINE, 3, 0},
    {"logfmt_odd.log", LAHAR_FORMAT_LINE, 4, 0},
    {"csv_quotes.csv", LAHAR_FORMAT_LINE, 11, 0},
    {"half_object.jsonl", LAHAR_FORMAT_JSON, 2, 2},
    {"dup_keys.jsonl", LAHAR_FORMAT_JSON, 3, 0},
    {"deep_nested_100k.jsonl", LAHAR_FORMAT_JSON, 1, 2},
    {"deep_nested_64.jsonl", LAHAR_FORMAT_JSON, 1, 0},
    {"invalid_numbers.jsonl", LAHAR_FORMAT_JSON, 1, 7},
    {"lone_surrogates.jsonl", LAHAR_FORMAT_JSON, 5, 0},
    {"non_object_lines.jsonl", LAHAR_FORMAT_JSON, 8, 0},
    {"many_keys.jsonl", LAHAR_FORMAT_JSON, 1, 0},
    {"pretty_printed.json", LAHAR_FORMAT_JSON, 2, 0},
    {"prov/lineage_cycle.jsonl", LAHAR_FORMAT_JSON, 4, 0},
    {"utf8_bom.csv", LAHAR_FORMAT_CSV, 2, 0},
    {"csv_quotes.csv", LAHAR_FORMAT_CSV, 6, 0},
    {"csv_ragged.csv", LAHAR_FORMAT_CSV, 2, 2},
    {"csv_dup_header.csv", LAHAR_FORMAT_CSV, 1, 0},
    {"timestamps.tsv", LAHAR_FORMAT_TSV, 51, 0},
    {"utf16le_bom.log", LAHAR_FORMAT_LINE, 0, 1},
    {"zero_byte_b.log", LAHAR_FORMAT_LINE, 0, 0},
    {"identical_a.log", LAHAR_FORMAT_LINE, 2, 0},
    {"identical_b.log", LAHAR_FORMAT_LINE, 2, 0},
    {"name with space \xc3\xa9\xf0\x9f\x98\x80.log", LAHAR_FORMAT_LINE, 1, 0},
    {"logfmt_odd.log", LAHAR_FORMAT_LOGFMT, 4, 0},
    {"syslog_year_rollover.log", LAHAR_FORMAT_SYSLOG_3164, 4, 0},
    {"syslog_feb29.log", LAHAR_FORMAT_SYSLOG_3164, 1, 0},
    {"dst_fold.log", LAHAR_FORMAT_LINE, 2, 0},
    {"half_object.jsonl", LAHAR_FORMAT_JSON_AS_STRING, 2, 2},
    {"pretty_printed.json", LAHAR_FORMAT_JSON_AS_OBJECT, 2, 0},
    {"csv_quotes.csv", LAHAR_FORMAT_CSV_BARE, 7, 0},
    {"binary_garbage.bin", LAHAR_FORMAT_RAW_BLOB, 1, 0},
    {"prov/run_id_collision.jsonl", LAHAR_FORMAT_JSON, 2, 0},
    {"prov/multi_run_io.jsonl", LAHAR_FORMAT_JSON, 2, 0},
    {"prov/deep_chain_50k.jsonl", LAHAR_FORMAT_JSON, 50000, 0},
};

/* Lines of the index that are about files while they are followed, or about provenance. */
static const char *const odd_elsewhere[] = {
    "app.log.1.gz",          /* tests/cli/follow_odd.sh */
    "gzip_truncated.log.gz", /* the same */
    "scripts/tiny_files_100k.sh",
    "scripts/copytruncate.sh",
    "scripts/inode_reuse.sh",
    "scripts/slow_partial_line.sh",
    "prov/nifi_truncated_mid_record.prov", /* lahar import nifi: tests/data/nifi_import.py */
    "prov/nifi_truncated_header.prov",
    "prov/nifi_bitflip.prov",
    "prov/nifi_empty.prov"};

static bool is_elsewhere(const char *name)
{
    for (size_t i = 0; i < sizeof odd_elsewhere / sizeof odd_elsewhere[0]; i++) {
        if (strcmp(odd_elsewhere[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static size_t cases_of(const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof odd_cases / sizeof odd_cases[0]; i++) {
        count += strcmp(odd_cases[i].name, name) == 0;
    }
    return count;
}

Test(data, every_line_of_the_index_is_covered)
{
    const char *folder = data_folder();
    size_t size = 0;
    size_t here = 0;
    size_t elsewhere = 0;
    if (folder == NULL) {
        return;
    }
    char *index = load_odd(folder, "INDEX.tsv", &size);
    char *rest = index;
    (void)strsep(&rest, "\n");
    for (char *line = strsep(&rest, "\n"); line != NULL && *line != '\0';
         line = strsep(&rest, "\n")) {
        line[strcspn(line, "\t")] = '\0';
        here += cases_of(line) != 0;
        elsewhere += is_elsewhere(line);
        cr_expect(cases_of(line) != 0 || is_elsewhere(line), "%s is not covered", line);
    }
    (void)printf("%zu lines of the index are read here, %zu elsewhere\n", here, elsewhere);
    cr_expect_geq(here, 50);
    free(index);
}

Test(data, odd_inputs_give_the_events_that_their_index_asks_for, .timeout = 120)
{
    const char *folder = data_folder();
    for (size_t i = 0; folder != NULL && i < sizeof odd_cases / sizeof odd_cases[0]; i++) {
        const struct odd_case *odd = &odd_cases[i];
        struct fixture f;
        size_t size;
        char *data = load_odd(folder, odd->name, &size);
        fixture_init(&f, odd->format);
        fixture_read_bytes(&f, data, size, 0);
        cr_assert_eq(f.event_count, odd->event_count, "%s: %zu events", odd->name, f.event_count);
        cr_assert_eq(f.error_count, odd->error_count, "%s: %zu errors", odd->name, f.error_count);
        if (odd->format == LAHAR_FORMAT_LINE && odd->error_count == 0) {
            size_t raw_size;
            const char *raw = fixture_export(&f, false, &raw_size);
            cr_assert_eq(raw_size, size, "%s", odd->name);
            cr_assert(memcmp(raw, data, size) == 0, "%s", odd->name);
        }
        expect_same_in_pieces(&f, data, size, odd->name);
        fixture_deinit(&f);
        free(data);
    }
}

static void read_odd(struct fixture *f, lahar_format format, const char *folder, const char *name)
{
    size_t size;
    char *data = load_odd(folder, name, &size);
    fixture_init(f, format);
    fixture_read_bytes(f, data, size, 0);
    free(data);
}

Test(data, odd_values_are_what_their_index_says)
{
    const char *folder = data_folder();
    if (folder == NULL) {
        return;
    }
    struct fixture f;
    read_odd(&f, LAHAR_FORMAT_LINE, folder, "nul_prefix_copytruncate.log");
    lahar_event event = fixture_event(&f, 0);
    lahar_bytes message = field_bytes(&event, LAHAR_FIELD_MESSAGE);
    cr_assert(message.size < 100 && memmem(message.data, message.size, "first real line", 15));
    fixture_deinit(&f);

    read_odd(&f, LAHAR_FORMAT_LINE, folder, "boundary/line_65536.log");
    event = fixture_event(&f, 0);
    message = field_bytes(&event, LAHAR_FIELD_MESSAGE);
    cr_assert_eq(message.size, 65536);
    cr_assert_eq(((const char *)message.data)[65535], 'Z');
    fixture_deinit(&f);

    read_odd(&f, LAHAR_FORMAT_JSON, folder, "dup_keys.jsonl");
    event = fixture_event(&f, 0);
    cr_assert(bytes_equal(field_bytes(&event, LAHAR_FIELD_MESSAGE), "second"));
    cr_assert(has_attribute(&event, "time", "2030-01-01T00:00:00Z"));
    cr_assert_null(find_attribute(&event, "time", 1));
    fixture_deinit(&f);

    read_odd(&f, LAHAR_FORMAT_JSON, folder, "lone_surrogates.jsonl");
    event = fixture_event(&f, 0);
    cr_assert(has_attribute(&event, "m", "\xf0\x9f\x98\x80 ok pair"));
    fixture_deinit(&f);

    read_odd(&f, LAHAR_FORMAT_JSON, folder, "many_keys.jsonl");
    event = fixture_event(&f, 0);
    cr_assert(has_attribute(&event, "k04999", "4999"));
    fixture_deinit(&f);

    read_odd(&f, LAHAR_FORMAT_CSV, folder, "csv_quotes.csv");
    event = fixture_event(&f, 2);
    cr_assert(has_attribute(&event, "msg", "two\r\nlines"));
    event = fixture_event(&f, 3);
    cr_assert(has_attribute(&event, "msg", "three\n\nlines\n"));
    fixture_deinit(&f);

    read_odd(&f, LAHAR_FORMAT_CSV, folder, "utf8_bom.csv");
    event = fixture_event(&f, 0);
    cr_assert(has_attribute(&event, "id", "1"));
    fixture_deinit(&f);
}

/* Rows of timestamps.tsv that are refused; the event keeps its arrival time. */
static bool is_refused_time(const char *label)
{
    static const char *const labels[] = {"syslog", "syslog2", "klog", "bogus_60", "feb29_bad",
                                         "feb30",  "month13", "h24",  "week",     "ordinal",
                                         "text",   "go_zero", "empty"};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        if (strcmp(labels[i], label) == 0) {
            return true;
        }
    }
    return false;
}

Test(data, odd_times_are_read_or_refused_one_by_one)
{
    const char *folder = data_folder();
    if (folder == NULL) {
        return;
    }
    struct fixture f;
    size_t size;
    char *data = load_odd(folder, "timestamps.tsv", &size);
    fixture_init(&f, LAHAR_FORMAT_TSV);
    f.options.time_field = "value";
    fixture_read_bytes(&f, data, size, 0);
    cr_assert_eq(f.event_count, 51);
    size_t compared = 0;
    for (size_t i = 0; i < f.event_count; i++) {
        const lahar_event event = fixture_event(&f, i);
        char label[64];
        const lahar_bytes name = find_attribute(&event, "label", 0)->value;
        (void)snprintf(label, sizeof label, "%.*s", (int)name.size, (const char *)name.data);
        cr_expect_eq(event.time_ns == LAHAR_TIME_OF_ARRIVAL, is_refused_time(label), "%s", label);
        /* Where the file gives one exact answer, it is compared. */
        const lahar_bytes expected = find_attribute(&event, "expected_utc", 0)->value;
        int64_t time_ns;
        if (event.time_ns != LAHAR_TIME_OF_ARRIVAL && lahar_time_parse(expected, &time_ns)) {
            cr_expect_eq(event.time_ns, time_ns, "%s", label);
            compared++;
        }
    }
    cr_assert_geq(compared, 20);
    fixture_deinit(&f);
    free(data);
}

Test(data, odd_times_without_a_year_or_twice_in_a_day_are_told_apart)
{
    const char *folder = data_folder();
    static const int64_t new_year_ns = INT64_C(1704067200000000000); /* 2024 */
    struct fixture f;
    size_t size;
    if (folder == NULL) {
        return;
    }
    char *data = load_odd(folder, "syslog_year_rollover.log", &size);
    fixture_init(&f, LAHAR_FORMAT_SYSLOG_3164);
    f.options.reference_ns = new_year_ns + INT64_C(3600000000000);
    fixture_read_bytes(&f, data, size, 0);
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(fixture_event(&f, i).time_ns,
                     new_year_ns + ((int64_t)i - 2) * INT64_C(1000000000));
    }
    fixture_deinit(&f);
    free(data);
    data = load_odd(folder, "syslog_feb29.log", &size);
    fixture_init(&f, LAHAR_FORMAT_SYSLOG_3164);
    f.options.reference_ns = INT64_C(1740000000000000000); /* in February of 2025 */
    fixture_read_bytes(&f, data, size, 0);
    cr_expect_eq(fixture_event(&f, 0).time_ns, INT64_C(1709208000000000000), "of 2024");
    fixture_deinit(&f);
    free(data);
    data = load_odd(folder, "dst_fold.log", &size);
    fixture_init(&f, LAHAR_FORMAT_REGEXP);
    f.options.regexp = "^(?<t>[^ ]+)";
    f.options.time_field = "t";
    fixture_read_bytes(&f, data, size, 0);
    cr_expect_eq(fixture_event(&f, 1).time_ns - fixture_event(&f, 0).time_ns,
                 INT64_C(3600000000000));
    fixture_deinit(&f);
    free(data);
}
