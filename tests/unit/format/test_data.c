/* Files from elsewhere: the JSON test suite, the folder of odd inputs with the
 * behaviour its index asks for, and public log files, read and written back. json-c is
 * the oracle for documents. The folder is given by LAHAR_TEST_DATA; without it the
 * tests are skipped. */
#include <dirent.h>
#include <ftw.h>
#include <json-c/json.h>
#include <sys/stat.h>

#include "engine/format/json.h"
#include "engine/format/time_text.h"
#include "text_fixture.h"

enum {
    PATH_SIZE = 4096
};

static const char *data_folder(void)
{
    const char *given = getenv("LAHAR_TEST_DATA");
    const char *folder = given == NULL ? LAHAR_TEST_DATA_DEFAULT : given;
    struct stat info;
    if (stat(folder, &info) != 0) {
        (void)printf("skipped: no test data in %s\n", folder);
        return NULL;
    }
    return folder;
}

/* The whole file, to be freed. */
static char *load(const char *path, size_t *size_out)
{
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    struct stat info;
    cr_assert_eq(fstat(fileno(file), &info), 0);
    const size_t size = (size_t)info.st_size;
    char *data = malloc(size + 1);
    cr_assert_eq(fread(data, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
    data[size] = 0;
    *size_out = size;
    return data;
}

static char *load_odd(const char *folder, const char *name, size_t *size_out)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/odd/%s", folder, name);
    return load(path, size_out);
}

/* --- json-test-suite -------------------------------------------------------- */

/* Of the cases that a parser may decide, these are refused: not UTF-8, or a byte
 * order mark inside what is parsed. */
static bool is_refused_by_choice(const char *name)
{
    static const char *const names[] = {
        "i_string_UTF-16LE_with_BOM.json", "i_string_utf16BE_no_BOM.json",
        "i_string_utf16LE_no_BOM.json", "i_structure_UTF-8_BOM_empty_object.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

Test(data, json_test_suite_is_judged_as_its_names_say)
{
    const char *folder = data_folder();
    if (folder == NULL) {
        return;
    }
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/public/json-test-suite", folder);
    DIR *directory = opendir(path);
    cr_assert_not_null(directory);
    struct lahar_json_parser parser;
    lahar_json_parser_init(&parser, &lahar_allocator_libc);
    size_t counts[3] = {0};
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '\0' || entry->d_name[1] != '_') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/public/json-test-suite/%s", folder, entry->d_name);
        size_t size;
        char *data = load(path, &size);
        const enum lahar_json_result expected =
            entry->d_name[0] == 'y' ||
                    (entry->d_name[0] == 'i' && !is_refused_by_choice(entry->d_name))
                ? LAHAR_JSON_DONE
                : LAHAR_JSON_BAD;
        cr_expect_eq(lahar_json_check(&parser, (const uint8_t *)data, size), expected, "%s",
                     entry->d_name);
        counts[entry->d_name[0] == 'y' ? 0 : entry->d_name[0] == 'n' ? 1 : 2]++;
        free(data);
    }
    (void)closedir(directory);
    lahar_json_parser_deinit(&parser);
    cr_assert_eq(counts[0], 95);
    cr_assert_eq(counts[1], 188);
    cr_assert_eq(counts[2], 35);
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
};

/* Reads in pieces and compares events and errors with those of one piece. */
static void expect_same_in_pieces(struct fixture *f, const char *data, size_t size,
                                  const char *name)
{
    static const size_t pieces[] = {1, 7, 4096};
    fixture_clear(f);
    fixture_read_bytes(f, data, size, 0);
    struct fixture whole = *f;
    uint8_t *rows = malloc(f->rows.size + 1);
    if (f->rows.size != 0) {
        memcpy(rows, f->rows.data, f->rows.size);
    }
    for (size_t i = size > 300000 ? 1 : 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        fixture_clear(f);
        fixture_read_bytes(f, data, size, pieces[i]);
        cr_assert_eq(f->event_count, whole.event_count, "%s in pieces of %zu", name, pieces[i]);
        cr_assert_eq(f->error_count, whole.error_count, "%s in pieces of %zu", name, pieces[i]);
        cr_assert_eq(f->rows.size, whole.rows.size, "%s in pieces of %zu", name, pieces[i]);
        cr_assert(f->rows.size == 0 || memcmp(f->rows.data, rows, f->rows.size) == 0,
                  "%s in pieces of %zu", name, pieces[i]);
        cr_assert_arr_eq(f->error_offsets, whole.error_offsets, sizeof f->error_offsets);
        cr_assert_arr_eq(f->error_lines, whole.error_lines, sizeof f->error_lines);
    }
    free(rows);
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

/* --- public files ------------------------------------------------------------ */

enum {
    FILES_MAX = 1024
};
static char *paths[FILES_MAX];
static size_t path_count;

static int collect(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)walk;
    if (kind == FTW_F && path_count < FILES_MAX) {
        paths[path_count++] = strdup(path);
    }
    return 0;
}

static void collect_files(const char *folder, const char *part)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/public/%s", folder, part);
    cr_assert_eq(nftw(path, collect, 16, FTW_PHYS), 0, "%s", path);
}

static void release_files(void)
{
    while (path_count > 0) {
        free(paths[--path_count]);
    }
}

static bool ends_with(const char *path, const char *end)
{
    const size_t size = strlen(path);
    const size_t end_size = strlen(end);
    return size >= end_size && strcmp(path + size - end_size, end) == 0;
}

Test(data, public_files_come_back_byte_for_byte_as_lines, .timeout = 120)
{
    const char *folder = data_folder();
    if (folder == NULL) {
        return;
    }
    collect_files(folder, "logs");
    collect_files(folder, "nifi");
    cr_assert_gt(path_count, 40);
    for (size_t i = 0; i < path_count; i++) {
        struct fixture f;
        size_t size;
        char *data = load(paths[i], &size);
        fixture_init(&f, LAHAR_FORMAT_LINE);
        expect_same_in_pieces(&f, data, size, paths[i]);
        size_t raw_size;
        const char *raw = fixture_export(&f, false, &raw_size);
        cr_assert_eq(raw_size, size, "%s", paths[i]);
        cr_assert(memcmp(raw, data, size) == 0, "%s", paths[i]);
        fixture_deinit(&f);
        free(data);
    }
    release_files();
}

/* The next document of *text by json-c, NULL at the end. json-c keeps the text of
 * doubles and the order of keys. */
static json_object *next_document(struct json_tokener *tokener, const char **text, const char *end)
{
    while (*text < end && strchr(" \t\r\n,[]", **text) != NULL && **text != 0) {
        (*text)++;
    }
    if (*text == end) {
        return NULL;
    }
    json_tokener_reset(tokener);
    json_object *document = json_tokener_parse_ex(tokener, *text, (int)(end - *text));
    cr_assert_eq(json_tokener_get_error(tokener), json_tokener_success);
    *text += json_tokener_get_parse_end(tokener);
    return document;
}

/* Whether both texts hold the same documents, to the text of their numbers. */
static void expect_same_documents(const char *a, size_t a_size, const char *b, size_t b_size,
                                  const char *name)
{
    struct json_tokener *tokener = json_tokener_new_ex(600);
    const char *a_end = a + a_size;
    const char *b_end = b + b_size;
    for (;;) {
        json_object *x = next_document(tokener, &a, a_end);
        json_object *y = next_document(tokener, &b, b_end);
        cr_assert_eq(x == NULL, y == NULL, "%s", name);
        if (x == NULL) {
            break;
        }
        cr_assert(json_object_equal(x, y), "%s", name);
        cr_assert_str_eq(json_object_to_json_string_ext(x, JSON_C_TO_STRING_PLAIN),
                         json_object_to_json_string_ext(y, JSON_C_TO_STRING_PLAIN), "%s", name);
        json_object_put(x);
        json_object_put(y);
    }
    json_tokener_free(tokener);
}

Test(data, public_documents_come_back_value_for_value, .timeout = 120)
{
    const char *folder = data_folder();
    if (folder == NULL) {
        return;
    }
    collect_files(folder, "logs");
    collect_files(folder, "otel");
    collect_files(folder, "nifi");
    collect_files(folder, "lineage/openlineage");
    size_t compared = 0;
    for (size_t i = 0; i < path_count; i++) {
        if (!ends_with(paths[i], ".jsonl") && !ends_with(paths[i], ".json") &&
            strstr(paths[i], "zeek_json") == NULL) {
            continue;
        }
        struct fixture f;
        size_t size;
        char *data = load(paths[i], &size);
        fixture_init(&f, LAHAR_FORMAT_JSON);
        expect_same_in_pieces(&f, data, size, paths[i]);
        if (f.error_count == 0) {
            size_t out_size;
            const char *out = fixture_export(&f, false, &out_size);
            expect_same_documents(data, size, out, out_size, paths[i]);
            out = fixture_export(&f, true, &out_size);
            expect_same_documents(data, size, out, out_size, paths[i]);
            fixture_clear(&f);
            f.options.keep_raw = true;
            expect_same_in_pieces(&f, data, size, paths[i]);
            out = fixture_export(&f, false, &out_size);
            cr_assert_eq(out_size, size, "%s", paths[i]);
            cr_assert(memcmp(out, data, size) == 0, "%s", paths[i]);
            compared++;
        } else {
            (void)printf("%s: %zu records fail, first in line %zu: %s\n", paths[i], f.error_count,
                         (size_t)f.error_lines[0], f.error_text);
        }
        fixture_deinit(&f);
        free(data);
    }
    cr_assert_geq(compared, 20, "%zu files compared", compared);
    release_files();
}

/* A plain reading of RFC 4180 to compare with: the next field, its quotes resolved. */
static size_t oracle_field(const char **text, char *out, bool *ends_row_out)
{
    const char *p = *text;
    size_t size = 0;
    if (*p == '"') {
        for (p++; *p != '"' || p[1] == '"'; p++) {
            p += *p == '"';
            out[size++] = *p;
        }
        p++;
    } else {
        while (*p != ',' && *p != '\r' && *p != '\n' && *p != 0) {
            out[size++] = *p++;
        }
    }
    *ends_row_out = *p != ',';
    p += *p == ',' || (*p == '\r' && p[1] == '\n');
    p += *ends_row_out && *p == '\n';
    *text = p;
    return size;
}

/* Whether both tables have the same fields. */
static void expect_same_table(const char *a, const char *b)
{
    static char x[65536];
    static char y[65536];
    size_t fields = 0;
    while (*a != 0 && *b != 0) {
        bool x_ends;
        bool y_ends;
        const size_t x_size = oracle_field(&a, x, &x_ends);
        const size_t y_size = oracle_field(&b, y, &y_ends);
        cr_assert_eq(x_ends, y_ends);
        cr_assert_eq(x_size, y_size);
        cr_assert(memcmp(x, y, x_size) == 0);
        fields++;
    }
    cr_assert_eq(*a, *b);
    cr_assert_gt(fields, 0);
}

Test(data, public_tables_come_back_value_for_value)
{
    static const char *const names[] = {"public/logs/aws_s3_honeybucket.csv",
                                        "public/nifi/csv_prov-events.csv", "odd/csv_quotes.csv",
                                        "odd/csv_dup_header.csv"};
    const char *folder = data_folder();
    for (size_t i = 0; folder != NULL && i < sizeof names / sizeof names[0]; i++) {
        char path[PATH_SIZE];
        size_t size;
        struct fixture f;
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        char *data = load(path, &size);
        fixture_init(&f, LAHAR_FORMAT_CSV);
        expect_same_in_pieces(&f, data, size, path);
        cr_assert_eq(f.error_count, 0, "%s: %s", path, f.error_text);
        expect_same_table(data, fixture_raw(&f));
        fixture_clear(&f);
        f.options.keep_raw = true;
        expect_same_in_pieces(&f, data, size, path);
        cr_assert_str_eq(fixture_raw(&f), data, "%s", path);
        fixture_deinit(&f);
        free(data);
    }
}
