/* Blocks: every event comes back as it went in. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/segment/block_reader.h"
#include "engine/segment/block_writer.h"
#include "io/base/crc32c.h"
#include "sample_events.h"

struct fixture {
    struct samples samples;
    struct lahar_block_writer *writer;
    lahar_event *events;
    uint32_t count;
};

static void set_up(struct fixture *fixture, uint64_t seed, uint32_t level)
{
    memset(fixture, 0, sizeof *fixture);
    samples_create(&fixture->samples, seed);
    fixture->events = malloc(20000 * sizeof fixture->events[0]);
    const struct lahar_stream *stream =
        lahar_schema_stream(fixture->samples.catalog, fixture->samples.stream);
    cr_assert_eq(
        lahar_block_writer_create(stream, level, &lahar_allocator_libc, &fixture->writer, NULL),
        LAHAR_OK);
}

static void tear_down(struct fixture *fixture)
{
    lahar_block_writer_destroy(fixture->writer);
    samples_destroy(&fixture->samples);
    free(fixture->events);
}

static void add(struct fixture *fixture, lahar_event event)
{
    const uint32_t size = samples_row_size(&fixture->samples, &event);
    fixture->events[fixture->count++] = event;
    lahar_error error = {0};
    cr_assert_eq(lahar_block_writer_add(fixture->writer, &event, size, &error), LAHAR_OK, "%s",
                 error.message);
}

/* Some events, each from a block of which nothing was read before: value by value. */
static void check_single_rows(const struct fixture *fixture, const struct lahar_buffer *stored)
{
    enum {
        ROWS = 12
    };
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    for (uint32_t i = 0; i < ROWS && i < fixture->count; i++) {
        const uint32_t row =
            (uint32_t)((uint64_t)(i + 1) * fixture->count / (ROWS + 1) + i) % fixture->count;
        uint8_t *copy = malloc(stored->size);
        memcpy(copy, stored->data, stored->size);
        struct lahar_block *block = NULL;
        lahar_event event;
        lahar_error error = {0};
        cr_assert_eq(
            lahar_block_create(copy, stored->size, NULL, &lahar_allocator_libc, &block, &error),
            LAHAR_OK, "%s", error.message);
        cr_assert_eq(lahar_block_read(block, row, &arena, &event, &error), LAHAR_OK, "row %u: %s",
                     row, error.message);
        const char *difference = samples_difference(&fixture->events[row], &event);
        cr_assert_null(difference, "row %u: %s", row, difference);
        lahar_block_release(block);
        lahar_arena_reset(&arena);
    }
    lahar_arena_deinit(&arena);
}

/* Ends the block, reads it back, compares every event, returns the stored size. */
static uint32_t check(struct fixture *fixture)
{
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    struct lahar_block_info info;
    lahar_error error = {0};
    cr_assert_eq(lahar_block_writer_finish(fixture->writer, &out, &info, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(info.size, out.size);
    cr_assert_eq(info.row_count, fixture->count);
    const uint32_t size = info.size;
    check_single_rows(fixture, &out);
    struct lahar_block *block = NULL;
    const struct lahar_stream *stream =
        lahar_schema_stream(fixture->samples.catalog, fixture->samples.stream);
    cr_assert_eq(
        lahar_block_create(out.data, out.size, stream, &lahar_allocator_libc, &block, &error),
        LAHAR_OK, "%s", error.message);
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    for (uint32_t i = 0; i < fixture->count; i++) {
        /* Rows in a scattered order, so that lazy decoding has no easy path. */
        const uint32_t row = (uint32_t)((uint64_t)i * 7919 % fixture->count);
        lahar_event event;
        cr_assert_eq(lahar_block_read(block, row, &arena, &event, &error), LAHAR_OK, "row %u: %s",
                     row, error.message);
        const char *difference = samples_difference(&fixture->events[row], &event);
        cr_assert_null(difference, "row %u: %s", row, difference);
        cr_assert_eq(lahar_block_id(block, row), fixture->events[row].id);
        cr_assert_eq(lahar_block_time(block, row), fixture->events[row].time_ns);
        lahar_arena_reset(&arena);
    }
    cr_assert_eq(lahar_block_check_all(block, &error), LAHAR_OK, "%s", error.message);
    lahar_arena_deinit(&arena);
    lahar_block_release(block);
    fixture->count = 0;
    return size;
}

static void round_trip_random(uint64_t seed, uint32_t count, unsigned detail, uint32_t level)
{
    struct fixture fixture;
    set_up(&fixture, seed, level);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < count; i++) {
            add(&fixture, samples_next(&fixture.samples, detail));
        }
        (void)check(&fixture);
    }
    tear_down(&fixture);
}

Test(block, gives_back_a_single_random_event)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        round_trip_random(seed, 1, 1, 1);
    }
}

Test(block, gives_back_a_few_random_events)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        round_trip_random(seed, 2 + (uint32_t)seed % 13, 1, (uint32_t)seed % 3);
    }
}

Test(block, gives_back_many_random_events)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        round_trip_random(seed, 1500, seed % 2, (uint32_t)seed);
    }
}

Test(block, gives_back_events_without_values)
{
    struct fixture fixture;
    set_up(&fixture, 1, 1);
    for (int i = 0; i < 1000; i++) {
        add(&fixture, samples_event(&fixture.samples, NULL, 0));
    }
    /* Ids and times that rise evenly cost next to nothing. */
    cr_assert_lt(check(&fixture), 400);
    tear_down(&fixture);
}

Test(block, keeps_null_empty_and_absent_apart)
{
    struct fixture fixture;
    set_up(&fixture, 1, 1);
    const uint32_t field = samples_field(&fixture.samples, "keyword");
    const lahar_value null = {.field = field, .type = LAHAR_KEYWORD, .is_null = true};
    const lahar_value empty = {.field = field, .type = LAHAR_KEYWORD};
    add(&fixture, samples_event(&fixture.samples, &null, 1));
    add(&fixture, samples_event(&fixture.samples, &empty, 1));
    add(&fixture, samples_event(&fixture.samples, NULL, 0));
    (void)check(&fixture);
    tear_down(&fixture);
}

Test(block, keeps_order_and_repeats_of_keys)
{
    struct fixture fixture;
    set_up(&fixture, 1, 1);
    const lahar_pair pairs[] = {
        {samples_bytes("b"), samples_bytes("1"), false},
        {samples_bytes("a"), {NULL, 0}, true},
        {samples_bytes("b"), samples_bytes("2"), false},
        {samples_bytes("b"), {NULL, 0}, true},
        {samples_bytes("a"), samples_bytes(""), false},
        {samples_bytes("b"), samples_bytes("1"), false},
    };
    lahar_value map = {.field = samples_field(&fixture.samples, "map"), .type = LAHAR_MAP};
    for (size_t count = 0; count <= 6; count++) {
        map.as.map.items = pairs;
        map.as.map.count = count;
        add(&fixture, samples_event(&fixture.samples, &map, 1));
        map.as.map.items = pairs + 6 - count;
        add(&fixture, samples_event(&fixture.samples, &map, 1));
    }
    (void)check(&fixture);
    tear_down(&fixture);
}

Test(block, holds_five_thousand_keys_in_one_event)
{
    struct fixture fixture;
    set_up(&fixture, 1, 1);
    lahar_pair *pairs = calloc(5000, sizeof *pairs);
    char(*keys)[16] = calloc(5000, sizeof *keys);
    for (size_t i = 0; i < 5000; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "key-%zu", i);
        pairs[i].key = samples_bytes(keys[i]);
        pairs[i].value = samples_bytes(keys[i]);
        pairs[i].is_null = i % 97 == 0;
    }
    lahar_value map = {.field = samples_field(&fixture.samples, "map"), .type = LAHAR_MAP};
    map.as.map.items = pairs;
    for (size_t block = 0; block < 3; block++) {
        for (size_t i = 0; i < 4; i++) {
            map.as.map.count = 5000 - i * 100;
            add(&fixture, samples_event(&fixture.samples, &map, 1));
        }
        (void)check(&fixture);
    }
    free(keys);
    free(pairs);
    tear_down(&fixture);
}

/* Finding values one by one passes over those before: it must not be tried with many. */
Test(block, reads_a_long_map_in_linear_time)
{
    enum {
        KEYS = 60000
    };
    struct fixture fixture;
    struct timespec before;
    struct timespec after;
    set_up(&fixture, 1, 1);
    lahar_pair *pairs = calloc(KEYS, sizeof *pairs);
    char(*keys)[16] = calloc(KEYS, sizeof *keys);
    for (size_t i = 0; i < KEYS; i++) {
        /* Of sizes that differ, and hardly ever of one form. */
        (void)snprintf(keys[i], sizeof keys[i], "%zx%c", i * 2654435761u % 65521,
                       (int)('g' + i % 17));
        pairs[i].key = samples_bytes(keys[i]);
        pairs[i].value = samples_bytes(keys[i]);
    }
    lahar_value map = {.field = samples_field(&fixture.samples, "map"), .type = LAHAR_MAP};
    map.as.map.items = pairs;
    map.as.map.count = KEYS;
    add(&fixture, samples_event(&fixture.samples, &map, 1));
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    (void)check(&fixture);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    cr_assert_lt(after.tv_sec - before.tv_sec, 2, "%ld s", (long)(after.tv_sec - before.tv_sec));
    free(keys);
    free(pairs);
    tear_down(&fixture);
}

Test(block, keeps_every_bit_of_a_double)
{
    static const uint64_t bits[] = {0,
                                    UINT64_C(0x8000000000000000),
                                    UINT64_C(0x7ff0000000000000),
                                    UINT64_C(0x7ff8dead0000beef),
                                    UINT64_C(0xfff4000000000001),
                                    1};
    struct fixture fixture;
    set_up(&fixture, 1, 1);
    lahar_value value = {.field = samples_field(&fixture.samples, "f64"), .type = LAHAR_F64};
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        memcpy(&value.as.f64, &bits[i], sizeof bits[i]);
        add(&fixture, samples_event(&fixture.samples, &value, 1));
    }
    (void)check(&fixture);
    tear_down(&fixture);
}

Test(block, stores_an_attribute_that_repeats_a_field_once)
{
    struct fixture fixture;
    uint32_t sizes[2];
    for (size_t variant = 0; variant < 2; variant++) {
        set_up(&fixture, 1, 1);
        for (size_t i = 0; i < 1000; i++) {
            lahar_uuid uuid;
            for (size_t k = 0; k < 16; k++) {
                uuid.bytes[k] = (uint8_t)samples_random(&fixture.samples, 256);
            }
            char *text = lahar_arena_allocate(&fixture.samples.arena, 40);
            for (size_t k = 0, at = 0; k < 16; k++) {
                if (k == 4 || k == 6 || k == 8 || k == 10) {
                    text[at++] = '-';
                }
                (void)snprintf(text + at, 3, "%02x", uuid.bytes[k]);
                at += 2;
            }
            lahar_pair *pair = lahar_arena_allocate(&fixture.samples.arena, sizeof *pair);
            *pair = (lahar_pair){samples_bytes("uuid"), samples_bytes(text), false};
            lahar_value values[2] = {
                {.field = samples_field(&fixture.samples, "uuid"), .type = LAHAR_UUID},
                {.field = samples_field(&fixture.samples, "map"), .type = LAHAR_MAP}};
            values[0].as.uuid = uuid;
            values[1].as.map.items = pair;
            values[1].as.map.count = variant;
            add(&fixture, samples_event(&fixture.samples, values, 2));
        }
        sizes[variant] = check(&fixture);
        tear_down(&fixture);
    }
    cr_assert_gt(sizes[0], 16000);
    cr_assert_lt(sizes[1], sizes[0] + 300);
}

Test(block, stores_values_that_follow_from_another_once_for_each_of_its_values)
{
    struct fixture fixture;
    uint32_t sizes[2];
    for (size_t variant = 0; variant < 2; variant++) {
        set_up(&fixture, 1, 1);
        char names[100][24];
        for (size_t i = 0; i < 100; i++) {
            (void)snprintf(names[i], sizeof names[i], "%016llx",
                           (unsigned long long)samples_random(&fixture.samples, 0));
        }
        for (size_t i = 0; i < 4000; i++) {
            const size_t which = samples_random(&fixture.samples, 100);
            lahar_value values[2] = {
                {.field = samples_field(&fixture.samples, "i64"), .type = LAHAR_I64},
                {.field = samples_field(&fixture.samples, "keyword"), .type = LAHAR_KEYWORD}};
            values[0].as.i64 = (int64_t)which * 1000003;
            values[1].as.bytes = samples_bytes(names[which]);
            add(&fixture, samples_event(&fixture.samples, values, 1 + variant));
        }
        sizes[variant] = check(&fixture);
        tear_down(&fixture);
    }
    /* A hundred names of eight random bytes in hexadecimal, and no code a row. */
    cr_assert_lt(sizes[1] - sizes[0], 1300);
}

Test(block, forgets_a_dependency_that_ends)
{
    struct fixture fixture;
    set_up(&fixture, 1, 1);
    char names[200][24];
    for (size_t i = 0; i < 200; i++) {
        (void)snprintf(names[i], sizeof names[i], "name-%zu-%zu", i * i, i);
    }
    /* By block: key and keyword follow from the number, then not, and so on. */
    for (size_t block = 0; block < 24; block++) {
        const bool is_dependent = block / 3 % 2 == 0;
        for (size_t i = 0; i < 600; i++) {
            const size_t which = samples_random(&fixture.samples, 200);
            const size_t other = is_dependent || i % 50 != 0 ? which : (which + 1) % 200;
            lahar_pair *pair = lahar_arena_allocate(&fixture.samples.arena, sizeof *pair);
            *pair = (lahar_pair){samples_bytes("k"), samples_bytes(names[other]), false};
            lahar_value values[4] = {
                {.field = samples_field(&fixture.samples, "i64"), .type = LAHAR_I64},
                {.field = samples_field(&fixture.samples, "keyword"), .type = LAHAR_KEYWORD},
                {.field = samples_field(&fixture.samples, "u64"), .type = LAHAR_U64},
                {.field = samples_field(&fixture.samples, "map"), .type = LAHAR_MAP}};
            values[0].as.i64 = (int64_t)which - 100;
            values[1].as.bytes = samples_bytes(names[other]);
            values[2].as.u64 = other * 1000000007;
            values[3].as.map.items = pair;
            values[3].as.map.count = i % 7 != 0;
            add(&fixture, samples_event(&fixture.samples, values, 4));
        }
        (void)check(&fixture);
    }
    tear_down(&fixture);
}

Test(block, reads_one_piece_of_a_long_text)
{
    struct fixture fixture;
    set_up(&fixture, 1, 1);
    lahar_value value = {.field = samples_field(&fixture.samples, "text"), .type = LAHAR_TEXT};
    for (size_t i = 0; i < 40; i++) {
        const size_t size = i == 20 ? 3000000 : 20000 + i;
        char *text = lahar_arena_allocate(&fixture.samples.arena, size);
        for (size_t k = 0; k < size; k++) {
            text[k] = (char)('a' + samples_random(&fixture.samples, 26));
        }
        value.as.bytes = (lahar_bytes){text, size};
        add(&fixture, samples_event(&fixture.samples, &value, 1));
    }
    (void)check(&fixture);
    tear_down(&fixture);
}

Test(block, inflates_only_what_a_read_needs)
{
    struct fixture fixture;
    set_up(&fixture, 1, 1);
    lahar_value value = {.field = samples_field(&fixture.samples, "text"), .type = LAHAR_TEXT};
    for (size_t i = 0; i < 40; i++) {
        char *text = lahar_arena_allocate(&fixture.samples.arena, 20000);
        for (size_t k = 0; k < 20000; k++) {
            text[k] = (char)('a' + samples_random(&fixture.samples, 26));
        }
        value.as.bytes = (lahar_bytes){text, 20000};
        add(&fixture, samples_event(&fixture.samples, &value, 1));
    }
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    struct lahar_block_info info;
    cr_assert_eq(lahar_block_writer_finish(fixture.writer, &out, &info, NULL), LAHAR_OK);
    struct lahar_block *block = NULL;
    cr_assert_eq(lahar_block_create(out.data, out.size, NULL, &lahar_allocator_libc, &block, NULL),
                 LAHAR_OK);
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    lahar_event event;
    cr_assert_eq(lahar_block_read(block, 39, &arena, &event, NULL), LAHAR_OK);
    uint32_t inflated = 0;
    for (uint32_t i = 0; i < block->header.group_count; i++) {
        inflated += block->groups[i].is_ready ? block->groups[i].raw_size : 0;
    }
    cr_assert_lt(inflated, 130 * 1024);
    cr_assert_gt(block->header.image_size, 40 * 20000);
    lahar_arena_deinit(&arena);
    lahar_block_release(block);
    tear_down(&fixture);
}

/* Lines as services write them: a few forms, words that repeat, numbers of every kind. */
static void add_lines(struct fixture *fixture, uint32_t count, const char *separator)
{
    struct samples *samples = &fixture->samples;
    static const char *const levels[3] = {"INFO", "WARN", "ERROR"};
    for (uint32_t i = 0; i < count; i++) {
        char *line = lahar_arena_allocate(&samples->arena, 256);
        const uint64_t random = samples_random(samples, 0);
        (void)snprintf(
            line, 256,
            "2024-05-17 %02u:%02u:%02u,%03u %s [worker-%u] req=%016llx%shost-%03u took %u "
            "ms, 00%u left",
            i / 3600, i / 60 % 60, i % 60, (unsigned)(random % 1000), levels[random % 3],
            (unsigned)(random % 16), (unsigned long long)random, random % 7 == 0 ? separator : " ",
            (unsigned)(random % 300), (unsigned)(random % 5000), (unsigned)(random % 3));
        lahar_value *value = lahar_arena_allocate(&samples->arena, sizeof *value);
        *value = (lahar_value){.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT};
        value->as.bytes = (lahar_bytes){line, random % 50 == 0 ? 0 : strlen(line)};
        add(fixture, (lahar_event){.id = samples->next_id++,
                                   .stream = samples->stream,
                                   .time_ns = (int64_t)i,
                                   .arrival_ns = (int64_t)i,
                                   .is_durable = true,
                                   .values = value,
                                   .value_count = 1});
    }
}

Test(block, stores_lines_as_templates_and_variables)
{
    struct fixture fixture;
    set_up(&fixture, 30, 1);
    for (int block = 0; block < 3; block++) {
        add_lines(&fixture, 3000, " 3 retries ");
        /* The request takes eight bytes of a line, the rest about as many again. */
        cr_assert_lt(check(&fixture), 3000 * 20);
    }
    tear_down(&fixture);
}

Test(block, keeps_lines_that_hold_the_byte_of_a_gap)
{
    struct fixture fixture;
    set_up(&fixture, 31, 1);
    add_lines(&fixture, 500, " \x11 ");
    check(&fixture);
    add_lines(&fixture, 500, " 1-2-3- ");
    check(&fixture);
    tear_down(&fixture);
}

/* Every text read from a block of which nothing was read before, and what stands of the others
 * then. */
static void check_single_texts(struct fixture *fixture)
{
    struct lahar_buffer out;
    struct lahar_block_info info;
    struct lahar_arena arena;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    cr_assert_eq(lahar_block_writer_finish(fixture->writer, &out, &info, NULL), LAHAR_OK);
    for (uint32_t row = 0; row < fixture->count; row += row < 40 ? 1 : 7) {
        uint8_t *copy = malloc(out.size);
        memcpy(copy, out.data, out.size);
        struct lahar_block *block = NULL;
        lahar_event event;
        lahar_error error = {0};
        cr_assert_eq(lahar_block_create(copy, out.size, NULL, &lahar_allocator_libc, &block, NULL),
                     LAHAR_OK);
        const uint64_t charge = block->charge;
        cr_assert_eq(lahar_block_read(block, row, &arena, &event, &error), LAHAR_OK, "%s",
                     error.message);
        const char *difference = samples_difference(&fixture->events[row], &event);
        cr_assert_null(difference, "row %u: %s", row, difference);
        for (uint32_t i = 0; i < block->column_count; i++) {
            const struct lahar_block_column *column = &block->columns[i];
            cr_assert(column->entries_encoding != LAHAR_ENTRIES_TEMPLATES || !column->is_ready);
            cr_assert(!column->is_part || !column->is_ready);
        }
        cr_assert_leq(sizeof *block + block->header.size + block->header.image_size +
                          block->arena.used_bytes,
                      charge);
        lahar_block_release(block);
        lahar_arena_reset(&arena);
    }
    lahar_arena_deinit(&arena);
    lahar_buffer_deinit(&out);
}

Test(block, puts_a_single_text_together_without_the_others)
{
    static const char *const separators[] = {" 3 retries ", " 1-2-3- ", " 0123abcd9 x5 x5 ", "7"};
    for (size_t i = 0; i < sizeof separators / sizeof separators[0]; i++) {
        struct fixture fixture;
        set_up(&fixture, 40 + i, 1);
        add_lines(&fixture, 400, separators[i]);
        check_single_texts(&fixture);
        tear_down(&fixture);
    }
}

/* Puts a block's inflated image in place of its groups, as one group that is stored as it is, so
 * that damage reaches the decoders. */
static uint8_t *store_plainly(const struct lahar_block *block, size_t *size_out)
{
    const size_t start = LAHAR_BLOCK_HEADER_SIZE + LAHAR_BLOCK_GROUP_SIZE;
    const uint32_t image_size = block->header.image_size;
    *size_out = start + image_size;
    uint8_t *stored = malloc(*size_out);
    memcpy(stored + start, block->image, image_size);
    return stored;
}

static void seal(uint8_t *stored, size_t size, struct lahar_block_header header)
{
    const size_t start = LAHAR_BLOCK_HEADER_SIZE + LAHAR_BLOCK_GROUP_SIZE;
    uint8_t *table = stored + LAHAR_BLOCK_HEADER_SIZE;
    lahar_store_u32(table, (uint32_t)(size - start));
    lahar_store_u32(table + 4, (uint32_t)(size - start));
    lahar_store_u32(table + 8, 0);
    lahar_store_u32(table + 12, lahar_crc32c(0, stored + start, size - start));
    header.group_count = 1;
    header.size = (uint32_t)size;
    lahar_block_header_write(stored, &header, table);
}

/* Reads every event of what may be a block, beginning anywhere, since the first texts are read
 * singly; how many could be read. */
static uint32_t read_all(const uint8_t *stored, size_t size, uint64_t start)
{
    uint8_t *copy = malloc(size);
    memcpy(copy, stored, size);
    struct lahar_block *block = NULL;
    if (lahar_block_create(copy, size, NULL, &lahar_allocator_libc, &block, NULL) != LAHAR_OK) {
        return 0;
    }
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    uint32_t read = 0;
    const uint32_t count = lahar_block_row_count(block);
    for (uint32_t i = 0; i < count; i++) {
        lahar_event event;
        const uint32_t row = (uint32_t)((start + i) % count);
        const lahar_status status = lahar_block_read(block, row, &arena, &event, NULL);
        cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT);
        read += status == LAHAR_OK;
        lahar_arena_reset(&arena);
    }
    lahar_arena_deinit(&arena);
    lahar_block_release(block);
    return read;
}

Test(block, survives_templates_with_any_bits_flipped)
{
    struct fixture fixture;
    set_up(&fixture, 32, 1);
    add_lines(&fixture, 120, " 5 ");
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    struct lahar_block_info info;
    cr_assert_eq(lahar_block_writer_finish(fixture.writer, &out, &info, NULL), LAHAR_OK);
    struct lahar_block *block = NULL;
    cr_assert_eq(lahar_block_create(out.data, out.size, NULL, &lahar_allocator_libc, &block, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_block_check_all(block, NULL), LAHAR_OK);
    cr_assert_eq(block->header.flags, LAHAR_BLOCK_HAS_TEMPLATES);
    const struct lahar_block_header header = block->header;
    size_t size = 0;
    uint8_t *stored = store_plainly(block, &size);
    lahar_block_release(block);
    seal(stored, size, header);
    cr_assert_eq(read_all(stored, size, 0), 120);
    const size_t start = LAHAR_BLOCK_HEADER_SIZE + LAHAR_BLOCK_GROUP_SIZE;
    uint32_t damaged = 0;
    for (uint64_t bit = 0; bit < (size - start) * 8; bit++) {
        const uint64_t other = samples_random(&fixture.samples, (size - start) * 8);
        stored[start + bit / 8] ^= (uint8_t)(1U << (bit % 8));
        stored[start + other / 8] ^= (uint8_t)(1U << (other % 8));
        seal(stored, size, header);
        damaged += read_all(stored, size, other) != 120;
        stored[start + other / 8] ^= (uint8_t)(1U << (other % 8));
        stored[start + bit / 8] ^= (uint8_t)(1U << (bit % 8));
    }
    cr_assert_gt(damaged, 0);
    free(stored);
    tear_down(&fixture);
}
