/* The bytes of a manifest, against bytes put together by hand from
 * docs/format/manifest.md and summed by a second implementation of the checksum. */
#include <criterion/criterion.h>

#include "manifest_fixture.h"

/* Little-endian, whatever the library does. */
static void put(uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Seed of the changes of manifest-<number>. */
static uint32_t seed_of(uint64_t number)
{
    uint8_t bytes[16];
    put(bytes, FIXTURE_STORE_ID, 8);
    put(bytes + 8, number, 8);
    return plain_crc32c(0, bytes, sizeof bytes);
}

static void make_header(uint8_t *to, uint64_t number, uint64_t snapshot_size)
{
    memset(to, 0, 48);
    memcpy(to, "LAHARMAN", 8);
    put(to + 8, 1, 2);
    put(to + 10, 48, 2);
    put(to + 16, FIXTURE_STORE_ID, 8);
    put(to + 24, number, 8);
    put(to + 32, snapshot_size, 8);
    put(to + 44, plain_crc32c(0, to, 44), 4);
}

/* A change around records of size bytes that stand at to + 16. */
static size_t close_change(uint8_t *to, size_t size, uint64_t number, uint64_t sequence)
{
    put(to + 4, size, 4);
    put(to + 8, sequence, 8);
    put(to, plain_crc32c(seed_of(number), to + 4, size + 12), 4);
    return size + 16;
}

static size_t put_counter(uint8_t *to, uint8_t type, uint64_t value)
{
    to[0] = type;
    put(to + 1, 8, 4);
    put(to + 5, value, 8);
    return 13;
}

/* An empty state: rolled id, file number and ceiling are 1. */
static size_t make_empty(uint8_t *to, uint64_t number)
{
    uint8_t *records = to + 48 + 16;
    size_t size = put_counter(records, 7, 1);
    size += put_counter(records + size, 8, 1);
    size += put_counter(records + size, 5, 1);
    const size_t change = close_change(to + 48, size, number, 1);
    make_header(to, number, change);
    return 48 + change;
}

static void write_file(struct manifest_fixture *fixture, const uint8_t *data, size_t size)
{
    cr_assert_eq(lahar_sim_disk_write_file(fixture->disk, "store/manifest-1", data, size, NULL),
                 LAHAR_OK);
}

Test(manifest_format, writes_what_the_specification_says)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(fixture_create(&fixture), LAHAR_OK);
    struct lahar_manifest *manifest = NULL;
    cr_assert_eq(fixture_open(&fixture, 1 << 20, &manifest, NULL), LAHAR_OK);
    cr_assert_eq(fixture_commit_ceiling(manifest, 1000), LAHAR_OK);
    lahar_manifest_close(manifest);

    uint8_t expected[512];
    size_t size = make_empty(expected, 1);
    size += close_change(expected + size, put_counter(expected + size + 16, 5, 1000), 1, 2);
    size_t found_size = 0;
    uint8_t *found = fixture_read(&fixture, "store/manifest-1", &found_size);
    cr_assert_eq(found_size, size);
    cr_assert_arr_eq(found, expected, size);
    free(found);
    fixture_deinit(&fixture);
}

Test(manifest_format, reads_what_the_specification_says)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    uint8_t data[1024];
    size_t size = make_empty(data, 1);
    uint8_t *records = data + size + 16;
    size_t used = 0;
    /* Field 0 by name, stream 0 of the log schema with one field taken out of the index. */
    records[used] = 1;
    put(records + used + 1, 4 + 7, 4);
    put(records + used + 5, 0, 4);
    memcpy(records + used + 9, "message", 7);
    used += 5 + 11;
    records[used] = 2;
    put(records + used + 1, 4 + 4 + 1 + 4 + 1 + 1 + 3 + 2, 4);
    put(records + used + 5, 0, 4);
    put(records + used + 9, 1, 4);
    memcpy(records + used + 13, "\x04logs\x01\x03job\x01\x01", 12);
    used += 5 + 20;
    /* Session 7 from id 1, its end, two offsets of which one is forgotten again. */
    records[used] = 3;
    put(records + used + 1, 16, 4);
    put(records + used + 5, 7, 8);
    put(records + used + 13, 1, 8);
    used += 21;
    records[used] = 4;
    put(records + used + 1, 16, 4);
    put(records + used + 5, 7, 8);
    put(records + used + 13, 44, 8);
    used += 21;
    records[used] = 9;
    put(records + used + 1, 18, 4);
    memcpy(records + used + 5, "\x01s\x01k\x02v1\x01s\x01q\x01x\x01s\x01q\x00", 18);
    used += 5 + 18;
    size += close_change(data + size, used, 1, 2);
    write_file(&fixture, data, size);

    struct lahar_manifest *manifest = NULL;
    lahar_error error = {0};
    cr_assert_eq(fixture_open(&fixture, 1 << 20, &manifest, &error), LAHAR_OK, "%s", error.message);
    const struct lahar_manifest_state *state = &manifest->state;
    cr_assert_eq(state->field_count, 1);
    cr_assert_str_eq(state->fields[0], "message");
    cr_assert_eq(state->stream_count, 1);
    cr_assert_str_eq(state->streams[0].name, "logs");
    cr_assert_eq(state->streams[0].schema, LAHAR_SCHEMA_LOG);
    cr_assert_eq(state->streams[0].field_count, 1);
    cr_assert_str_eq(state->streams[0].fields[0].name, "job");
    cr_assert_eq(state->streams[0].fields[0].type, LAHAR_KEYWORD);
    cr_assert(state->streams[0].fields[0].not_indexed);
    cr_assert_eq(state->session_count, 1);
    cr_assert_eq(state->sessions[0].session, 7);
    cr_assert_eq(state->sessions[0].end_id, 44);
    cr_assert_eq(state->offsets.count, 1);
    cr_assert_eq(state->offsets.records[0].value.size, 2);
    cr_assert_arr_eq(state->offsets.records[0].value.data, "v1", 2);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

Test(manifest_format, passes_over_unknown_records_that_say_so)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    uint8_t data[512];
    size_t size = make_empty(data, 1);
    const size_t used = put_counter(data + size + 16, 0x80 | 40, 5);
    const size_t more = put_counter(data + size + 16 + used, 5, 9);
    size += close_change(data + size, used + more, 1, 2);
    write_file(&fixture, data, size);
    struct lahar_manifest *manifest = NULL;
    cr_assert_eq(fixture_open(&fixture, 1 << 20, &manifest, NULL), LAHAR_OK);
    cr_assert_eq(manifest->state.ceiling, 9);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

Test(manifest_format, refuses_records_features_and_versions_of_the_future)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    uint8_t data[512];
    struct lahar_manifest *manifest = NULL;
    size_t size = make_empty(data, 1);
    size += close_change(data + size, put_counter(data + size + 16, 40, 5), 1, 2);
    write_file(&fixture, data, size);
    cr_assert_eq(fixture_open(&fixture, 1 << 20, &manifest, NULL), LAHAR_UNSUPPORTED);

    size = make_empty(data, 1);
    put(data + 8, 2, 2);
    write_file(&fixture, data, size);
    cr_assert_eq(fixture_open(&fixture, 1 << 20, &manifest, NULL), LAHAR_UNSUPPORTED);

    size = make_empty(data, 1);
    put(data + 12, 4, 4);
    put(data + 44, plain_crc32c(0, data, 44), 4);
    write_file(&fixture, data, size);
    cr_assert_eq(fixture_open(&fixture, 1 << 20, &manifest, NULL), LAHAR_UNSUPPORTED);
    cr_assert_null(manifest);
    fixture_deinit(&fixture);
}

/* Sound checksums around senseless content: each must be refused, none may crash. */
Test(manifest_format, refuses_content_that_makes_no_sense)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    static const struct {
        const char *what;
        const char *bytes;
        size_t size;
    } cases[] = {
        {"a record longer than its change", "\x05\xff\xff\xff\xff", 5},
        {"half a record header", "\x05\x08\x00", 3},
        {"a counter cut short", "\x05\x04\x00\x00\x00\x01\x00\x00\x00", 9},
        {"a ceiling of zero", "\x05\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 13},
        {"a field out of order", "\x01\x05\x00\x00\x00\x03\x00\x00\x00x", 10},
        {"a field without a name", "\x01\x04\x00\x00\x00\x00\x00\x00\x00", 9},
        {"a name with a zero byte", "\x01\x06\x00\x00\x00\x00\x00\x00\x00x\x00", 11},
        {"a stream with too many fields",
         "\x02\x0f\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01s\xff\xff\xff\x7f", 19},
        {"the end of no session",
         "\x04\x10\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",
         21},
        {"a session from id 0",
         "\x03\x10\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
         21},
        {"offsets cut short", "\x09\x03\x00\x00\x00\x05s\x01", 8},
        {"an event file cut short", "\x06\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00", 13},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t data[512];
        size_t size = make_empty(data, 1);
        memcpy(data + size + 16, cases[i].bytes, cases[i].size);
        size += close_change(data + size, cases[i].size, 1, 2);
        write_file(&fixture, data, size);
        struct lahar_manifest *manifest = NULL;
        cr_expect_eq(fixture_open(&fixture, 1 << 20, &manifest, NULL), LAHAR_CORRUPT, "%s",
                     cases[i].what);
        lahar_manifest_close(manifest);
    }
    fixture_deinit(&fixture);
}

Test(manifest_format, refuses_the_manifest_of_another_store_or_number)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    uint8_t data[512];
    struct lahar_manifest *manifest = NULL;
    size_t size = make_empty(data, 2);
    write_file(&fixture, data, size);
    cr_assert_eq(fixture_open(&fixture, 1 << 20, &manifest, NULL), LAHAR_CORRUPT);
    size = make_empty(data, 1);
    write_file(&fixture, data, size);
    cr_assert_eq(lahar_manifest_open(fixture.io, "store", 1, false, 1 << 20, &lahar_allocator_libc,
                                     &manifest, NULL),
                 LAHAR_CORRUPT);
    fixture_deinit(&fixture);
}
