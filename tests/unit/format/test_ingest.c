/* Ingest and export through the public API of a store on disk. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lahar/lahar.h"
#include "scratch.h"

struct house {
    char directory[SCRATCH_PATH_SIZE];
    lahar_store *store;
    lahar_ingest_options options;
    uint64_t error_count;
    uint64_t error_line;
};

static void on_error(void *context, uint64_t line, uint64_t offset, const char *message)
{
    struct house *house = context;
    (void)offset;
    cr_assert_gt(strlen(message), 0);
    house->error_count++;
    house->error_line = line;
}

static void open_house(struct house *house)
{
    lahar_error error = {0};
    lahar_options options;
    memset(house, 0, sizeof *house);
    scratch_create(house->directory);
    lahar_options_init(&options);
    options.memory_limit_bytes = 64 * 1024 * 1024;
    cr_assert_eq(lahar_store_open(house->directory, &options, 0, &house->store, &error), LAHAR_OK,
                 "%s", error.message);
    lahar_ingest_options_init(&house->options);
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "logs", .schema = LAHAR_SCHEMA_LOG};
    cr_assert_eq(lahar_stream_create(house->store, &spec, &house->options.stream, &error), LAHAR_OK,
                 "%s", error.message);
    house->options.on_error = on_error;
    house->options.on_error_context = house;
}

static void close_house(struct house *house)
{
    cr_assert_eq(lahar_store_close(house->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    scratch_remove(house->directory);
}

static lahar_ingest_result ingest(struct house *house, const char *data, size_t size)
{
    lahar_ingest *ingest = NULL;
    lahar_error error = {0};
    lahar_ingest_result result = {.struct_size = sizeof result};
    cr_assert_eq(lahar_ingest_open(house->store, &house->options, &ingest, &error), LAHAR_OK, "%s",
                 error.message);
    for (size_t at = 0; at < size; at += 1000) {
        const size_t left = size - at;
        cr_assert_eq(lahar_ingest_write(ingest, data + at, left < 1000 ? left : 1000, &error),
                     LAHAR_OK, "%s", error.message);
    }
    cr_assert_eq(lahar_ingest_finish(ingest, &result, &error), LAHAR_OK, "%s", error.message);
    lahar_ingest_close(ingest);
    return result;
}

/* Everything in the store, written back and compared. */
static void expect_export(struct house *house, const char *expected, size_t expected_size)
{
    lahar_export *export_ = NULL;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    size_t at = 0;
    cr_assert_eq(lahar_export_open(house->store, &export_, NULL), LAHAR_OK);
    cr_assert_eq(lahar_scan(house->store, NULL, &cursor, NULL), LAHAR_OK);
    while (lahar_cursor_next(cursor, &event, NULL) == LAHAR_OK) {
        lahar_bytes bytes = {0};
        cr_assert_eq(lahar_export_raw(export_, event, &bytes, NULL), LAHAR_OK);
        cr_assert_leq(at + bytes.size, expected_size);
        cr_assert(bytes.size == 0 || memcmp(bytes.data, expected + at, bytes.size) == 0);
        at += bytes.size;
    }
    cr_assert_eq(at, expected_size);
    lahar_cursor_close(cursor);
    lahar_export_close(export_);
}

Test(ingest, appends_in_batches_and_gives_the_file_back_before_and_after_rollover)
{
    struct house house;
    static char file[200000];
    size_t size = 0;
    open_house(&house);
    for (int i = 0; i < 2500; i++) {
        size += (size_t)snprintf(file + size, sizeof file - size, "line %d of the file%s", i,
                                 i == 2499 ? "" : (i % 3 == 0 ? "\r\n" : "\n"));
    }
    const lahar_ingest_result result = ingest(&house, file, size);
    cr_assert_eq(result.event_count, 2500);
    cr_assert_eq(result.byte_count, size);
    cr_assert_eq(result.error_count, 0);
    cr_assert_eq(result.last_id - result.first_id, 2499);
    expect_export(&house, file, size);
    cr_assert_eq(lahar_rollover(house.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    expect_export(&house, file, size);
    close_house(&house);
}

Test(ingest, appends_what_has_come_whole_when_flushed)
{
    struct house house;
    open_house(&house);
    lahar_ingest *ingest = NULL;
    cr_assert_eq(lahar_ingest_open(house.store, &house.options, &ingest, NULL), LAHAR_OK);
    cr_assert_eq(lahar_ingest_flush(ingest, NULL), LAHAR_OK);
    cr_assert_eq(lahar_ingest_write(ingest, "one\ntwo\nhal", 11, NULL), LAHAR_OK);
    expect_export(&house, "", 0);
    cr_assert_eq(lahar_ingest_flush(ingest, NULL), LAHAR_OK);
    expect_export(&house, "one\ntwo\n", 8);
    cr_assert_eq(lahar_ingest_write(ingest, "f\n", 2, NULL), LAHAR_OK);
    lahar_ingest_result result = {.struct_size = sizeof result};
    cr_assert_eq(lahar_ingest_finish(ingest, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.event_count, 3);
    expect_export(&house, "one\ntwo\nhalf\n", 13);
    lahar_ingest_close(ingest);
    close_house(&house);
}

Test(ingest, counts_records_that_fail_and_goes_on)
{
    struct house house;
    open_house(&house);
    house.options.format = LAHAR_FORMAT_JSON;
    const char *text = "{\"a\":1}\n{\"a\":\n{\"a\":3}\n";
    const lahar_ingest_result result = ingest(&house, text, strlen(text));
    cr_assert_eq(result.event_count, 2);
    cr_assert_eq(result.error_count, 1);
    cr_assert_eq(house.error_count, 1);
    cr_assert_eq(house.error_line, 2);
    expect_export(&house, "{\"a\":1}\n{\"a\":3}\n", 16);
    close_house(&house);
}

Test(ingest, passes_over_an_event_that_is_too_big_for_any_batch)
{
    struct house house;
    open_house(&house);
    house.options.record_size_max = 128 * 1024 * 1024;
    const size_t size = (size_t)80 * 1024 * 1024;
    char *text = malloc(size);
    memset(text, 'x', size);
    memcpy(text, "first\n", 6);
    memcpy(text + size - 6, "\nlast\n", 6);
    const lahar_ingest_result result = ingest(&house, text, size);
    cr_assert_eq(result.event_count, 2);
    cr_assert_eq(result.error_count, 1);
    cr_assert_eq(house.error_count, 1);
    expect_export(&house, "first\nlast\n", 11);
    free(text);
    close_house(&house);
}

Test(ingest, takes_the_options_of_a_caller_that_knows_fewer)
{
    struct house house;
    lahar_ingest *ingest = NULL;
    lahar_error error = {0};
    open_house(&house);
    house.options.struct_size = offsetof(lahar_ingest_options, keep_raw);
    house.options.record_size_max = 1; /* beyond the structure that the caller has */
    cr_assert_eq(lahar_ingest_open(house.store, &house.options, &ingest, &error), LAHAR_OK);
    cr_assert_eq(lahar_ingest_write(ingest, "long enough\n", 12, &error), LAHAR_OK);
    struct {
        lahar_ingest_result result;
        uint64_t behind;
    } out = {.result.struct_size = offsetof(lahar_ingest_result, first_id), .behind = 7};
    out.result.first_id = 5;
    cr_assert_eq(lahar_ingest_finish(ingest, &out.result, &error), LAHAR_OK);
    cr_assert_eq(out.result.event_count, 1);
    cr_assert_eq(out.result.first_id, 5);
    lahar_ingest_close(ingest);
    close_house(&house);
}

Test(ingest, refuses_a_stream_that_does_not_exist)
{
    struct house house;
    lahar_ingest *ingest = NULL;
    lahar_error error = {0};
    open_house(&house);
    house.options.stream = 9;
    cr_assert_eq(lahar_ingest_open(house.store, &house.options, &ingest, &error), LAHAR_INVALID);
    cr_assert_eq(error.status, LAHAR_INVALID);
    close_house(&house);
}

Test(format, is_found_by_the_name_that_clickhouse_gives_it)
{
    lahar_format format = 0;
    lahar_error error = {0};
    cr_assert_eq(lahar_format_find("jsoneachrow", &format, NULL), LAHAR_OK);
    cr_assert_eq(format, LAHAR_FORMAT_JSON);
    cr_assert_eq(lahar_format_find("TabSeparatedWithNames", &format, NULL), LAHAR_OK);
    cr_assert_eq(format, LAHAR_FORMAT_TSV);
    cr_assert_eq(lahar_format_find("Parquet", &format, &error), LAHAR_UNSUPPORTED);
    cr_assert(strstr(error.message, "Parquet") != NULL);
    cr_assert_str_eq(lahar_format_name(LAHAR_FORMAT_CSV), "CSVWithNames");
    cr_assert_str_eq(lahar_format_name((lahar_format)0), "unknown");
}
