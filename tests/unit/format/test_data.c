/* Files from elsewhere: the JSON test suite and public log files, read and written back. json-c is
 * the oracle for documents. The folder is given by LAHAR_TEST_DATA; without it the
 * tests are skipped. */
#include <dirent.h>
#include <ftw.h>
#include <json-c/json.h>
#include <sys/stat.h>

#include "data_folder.h"
#include "engine/format/json.h"
#include "engine/format/time_text.h"
#include "text_fixture.h"

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
