/* bench_parse: bytes in memory to events, without files and without a store.
 *
 *   bench_parse [MIB [ROUNDS [FORMAT]]]
 *
 * Lines of W2 as LineAsString, JSONEachRow and CSVWithNames, the last two also into a stream that
 * declares their fields, given to the text reader in pieces of 1 MiB, each line for itself, as a
 * follower does. Rates are of the processor time of the thread; the best of ROUNDS is printed, one
 * JSON line a figure. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/workload_w2.h"
#include "engine/event/schema.h"
#include "engine/format/text_reader.h"
#include "io/base/allocator.h"

enum {
    PIECE_SIZE = 1024 * 1024,
    FIELD_COUNT = 8
};

static uint64_t thread_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

struct input {
    uint8_t *data; /* owned */
    size_t size;
    uint64_t count; /* lines, without a header */
};

static struct input make_input(lahar_format format, size_t size)
{
    struct input input = {.data = malloc(size + WORKLOAD_W2_LINE_SIZE_MAX)};
    struct workload_w2 workload;
    workload_w2_init(&workload, 1);
    if (input.data == NULL) {
        return input;
    }
    if (format == LAHAR_FORMAT_CSV) {
        input.size = sizeof WORKLOAD_W2_CSV_HEADER - 1;
        memcpy(input.data, WORKLOAD_W2_CSV_HEADER, input.size);
    }
    while (input.size < size) {
        struct workload_w2_line line;
        char *out = (char *)input.data + input.size;
        workload_w2_line(&workload, input.count++, &line);
        input.size += format == LAHAR_FORMAT_CSV    ? workload_w2_csv(&line, out)
                      : format == LAHAR_FORMAT_JSON ? workload_w2_json(&line, out)
                                                    : workload_w2_text(&line, out);
    }
    return input;
}

static lahar_status count_event(void *context, const lahar_event *event, uint64_t offset,
                                lahar_error *error)
{
    uint64_t *count = context;
    (void)offset;
    (void)error;
    (*count)++;
    return event->value_count == 0 ? LAHAR_CORRUPT : LAHAR_OK;
}

static lahar_status read_all(const struct lahar_text_reader_options *options,
                             const struct input *input, uint64_t *busy_ns, lahar_error *error)
{
    struct lahar_text_reader *reader = NULL;
    lahar_status status = lahar_text_reader_create(options, &reader, error);
    const uint64_t before_ns = thread_ns();
    for (size_t at = 0; at < input->size && status == LAHAR_OK;) {
        size_t size = input->size - at < PIECE_SIZE ? input->size - at : PIECE_SIZE;
        const uint8_t *last = memrchr(input->data + at, '\n', size);
        size = last == NULL ? size : (size_t)(last - (input->data + at)) + 1;
        status = lahar_text_reader_write_lines(reader, input->data + at, size, error);
        at += size;
    }
    const uint64_t taken_ns = thread_ns() - before_ns;
    *busy_ns = taken_ns < *busy_ns ? taken_ns : *busy_ns;
    lahar_text_reader_destroy(reader);
    return status;
}

/* The fields of W2 that its records name. */
static const lahar_field_spec json_fields[FIELD_COUNT] = {
    {"ts", LAHAR_TIME, true},     {"thread", LAHAR_KEYWORD, true}, {"logger", LAHAR_KEYWORD, true},
    {"req", LAHAR_KEYWORD, true}, {"host", LAHAR_KEYWORD, true},   {"ms", LAHAR_U64, true},
    {"status", LAHAR_U64, true},  {"bytes", LAHAR_U64, true},
};
static const lahar_field_spec csv_fields[FIELD_COUNT] = {
    {"thread", LAHAR_U64, true}, {"logger", LAHAR_KEYWORD, true}, {"request", LAHAR_KEYWORD, true},
    {"host", LAHAR_U64, true},   {"text", LAHAR_TEXT, true},      {"duration", LAHAR_U64, true},
    {"status", LAHAR_U64, true}, {"bytes", LAHAR_U64, true},
};

static bool measure(lahar_format format, bool is_declared, size_t size, uint64_t rounds)
{
    struct input input = make_input(format, size);
    struct lahar_schema_catalog *catalog = NULL;
    lahar_error error = {0};
    uint32_t stream = 0;
    const bool is_csv = format == LAHAR_FORMAT_CSV;
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "w2",
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = is_csv ? csv_fields : json_fields,
                                    .field_count = is_declared ? FIELD_COUNT : 0};
    uint64_t count = 0;
    const struct lahar_text_reader_options options = {.allocator = &lahar_allocator_libc,
                                                      .catalog = NULL,
                                                      .format = format,
                                                      .filename = "w2.log",
                                                      .errors_as_events = true,
                                                      .record_size_max = 64 * 1024 * 1024,
                                                      .emit = count_event,
                                                      .emit_context = &count};
    lahar_status status =
        input.data == NULL ? LAHAR_NO_MEMORY
                           : lahar_schema_catalog_create(&lahar_allocator_libc, &catalog, &error);
    if (status == LAHAR_OK) {
        status = lahar_schema_add_stream(catalog, &spec, &stream, &error);
    }
    uint64_t busy_ns = UINT64_MAX;
    for (uint64_t i = 0; i < rounds && status == LAHAR_OK; i++) {
        struct lahar_text_reader_options with = options;
        with.catalog = catalog;
        with.stream = stream;
        count = 0;
        status = read_all(&with, &input, &busy_ns, &error);
    }
    const bool is_done = status == LAHAR_OK && count == input.count;
    if (is_done) {
        (void)printf("{\"bench\":\"parse\",\"format\":\"%s\",\"declared\":%s,\"bytes\":%zu,"
                     "\"records\":%" PRIu64 ",\"ns_a_record\":%.0f,\"mb_a_second_a_core\":%.1f}\n",
                     lahar_format_name(format), is_declared ? "true" : "false", input.size, count,
                     (double)busy_ns / (double)count, (double)input.size * 1e3 / (double)busy_ns);
    } else {
        fprintf(stderr, "bench_parse: %" PRIu64 " of %" PRIu64 " records: %s\n", count, input.count,
                error.message);
    }
    lahar_schema_catalog_destroy(catalog);
    free(input.data);
    return is_done;
}

int main(int count, char **arguments)
{
    static const struct {
        lahar_format format;
        bool is_declared;
    } cases[] = {{LAHAR_FORMAT_LINE, false},
                 {LAHAR_FORMAT_JSON, false},
                 {LAHAR_FORMAT_JSON, true},
                 {LAHAR_FORMAT_CSV, false},
                 {LAHAR_FORMAT_CSV, true}};
    const size_t size = (size_t)(count > 1 ? strtoull(arguments[1], NULL, 10) : 16) << 20;
    const uint64_t rounds = count > 2 ? strtoull(arguments[2], NULL, 10) : 5;
    bool is_done = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (count > 3 && strcmp(arguments[3], lahar_format_name(cases[i].format)) != 0) {
            continue;
        }
        is_done = measure(cases[i].format, cases[i].is_declared, size, rounds) && is_done;
    }
    return is_done ? 0 : 1;
}
