/* Blocks filled from rows: the same events come back as were encoded, whatever the order of their
 * values; bytes that are no row are refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/segment/block_format.h"
#include "engine/segment/block_reader.h"
#include "engine/segment/block_writer.h"
#include "failing_allocator.h"
#include "sample_events.h"

enum {
    EVENT_COUNT_MAX = 4000
};

struct fixture {
    struct samples samples;
    const struct lahar_stream *stream;
    struct lahar_block_writer *writer;
    struct lahar_buffer row;
    lahar_event *events; /* of the block, as they were made */
    uint32_t count;
};

static void set_up(struct fixture *fixture, uint64_t seed)
{
    memset(fixture, 0, sizeof *fixture);
    samples_create(&fixture->samples, seed);
    lahar_buffer_init(&fixture->row, &lahar_allocator_libc);
    fixture->events = malloc(EVENT_COUNT_MAX * sizeof fixture->events[0]);
    fixture->stream = lahar_schema_stream(fixture->samples.catalog, fixture->samples.stream);
    cr_assert_eq(lahar_block_writer_create(fixture->stream, 1, &lahar_allocator_libc,
                                           &fixture->writer, NULL),
                 LAHAR_OK);
}

static void tear_down(struct fixture *fixture)
{
    lahar_block_writer_destroy(fixture->writer);
    lahar_buffer_deinit(&fixture->row);
    samples_destroy(&fixture->samples);
    free(fixture->events);
}

/* The event as a row whose values come in any order. */
static struct lahar_row_event encode_shuffled(struct fixture *fixture, const lahar_event *event)
{
    lahar_value values[64];
    lahar_event shuffled = *event;
    cr_assert_leq(event->value_count, 64);
    if (event->value_count != 0) {
        memcpy(values, event->values, event->value_count * sizeof values[0]);
    }
    for (size_t i = event->value_count; i > 1; i--) {
        const size_t other = (size_t)samples_random(&fixture->samples, i);
        const lahar_value value = values[i - 1];
        values[i - 1] = values[other];
        values[other] = value;
    }
    shuffled.values = values;
    lahar_buffer_clear(&fixture->row);
    cr_assert_eq(lahar_row_encode(&fixture->row, fixture->samples.catalog, &shuffled, NULL),
                 LAHAR_OK);
    return (struct lahar_row_event){event->id, event->arrival_ns, fixture->row.data,
                                    (uint32_t)fixture->row.size};
}

static void add_row(struct fixture *fixture, lahar_event event)
{
    const struct lahar_row_event row = encode_shuffled(fixture, &event);
    fixture->events[fixture->count++] = event;
    lahar_error error = {0};
    cr_assert_eq(lahar_block_writer_add_row(fixture->writer, &row, &error), LAHAR_OK, "%s",
                 error.message);
    /* The row was copied. */
    memset(fixture->row.data, 0xa5, fixture->row.size);
}

/* Ends the block, reads it back, returns its size. */
static uint32_t check(struct fixture *fixture)
{
    struct lahar_buffer out;
    struct lahar_block_info info;
    struct lahar_block *block = NULL;
    struct lahar_arena arena;
    lahar_error error = {0};
    lahar_buffer_init(&out, &lahar_allocator_libc);
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    cr_assert_eq(lahar_block_writer_finish(fixture->writer, &out, &info, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(info.row_count, fixture->count);
    cr_assert_eq(lahar_block_create(out.data, out.size, fixture->stream, &lahar_allocator_libc,
                                    &block, &error),
                 LAHAR_OK, "%s", error.message);
    for (uint32_t row = 0; row < fixture->count; row++) {
        lahar_event event;
        cr_assert_eq(lahar_block_read(block, row, &arena, &event, &error), LAHAR_OK, "row %u: %s",
                     row, error.message);
        const char *difference = samples_difference(&fixture->events[row], &event);
        cr_assert_null(difference, "row %u: %s", row, difference);
        lahar_arena_reset(&arena);
    }
    lahar_arena_deinit(&arena);
    lahar_block_release(block);
    fixture->count = 0;
    return info.size;
}

Test(block_rows, give_back_events_whose_values_come_in_any_order)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct fixture fixture;
        set_up(&fixture, seed);
        for (uint32_t round = 0; round < 3; round++) {
            const uint32_t count = 1 + (uint32_t)samples_random(&fixture.samples, 300);
            for (uint32_t i = 0; i < count; i++) {
                add_row(&fixture, samples_next(&fixture.samples, seed % 2));
            }
            (void)check(&fixture);
        }
        tear_down(&fixture);
    }
}

Test(block_rows, stand_beside_events_in_one_block)
{
    struct fixture fixture;
    set_up(&fixture, 5);
    for (uint32_t i = 0; i < 700; i++) {
        const lahar_event event = samples_next(&fixture.samples, 1);
        if (samples_random(&fixture.samples, 2) == 0) {
            add_row(&fixture, event);
            continue;
        }
        fixture.events[fixture.count++] = event;
        cr_assert_eq(lahar_block_writer_add(fixture.writer, &event, 100, NULL), LAHAR_OK);
    }
    (void)check(&fixture);
    tear_down(&fixture);
}

Test(block_rows, may_be_larger_than_what_is_staged)
{
    struct fixture fixture;
    set_up(&fixture, 6);
    static uint8_t large[3 << 20];
    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = (uint8_t)(i * 31 + i / 257);
    }
    const uint32_t field = samples_field(&fixture.samples, "bytes");
    for (uint32_t i = 0; i < 40; i++) {
        lahar_value value = {.field = field, .type = LAHAR_BYTES};
        value.as.bytes = (lahar_bytes){large + i, i % 13 == 7 ? sizeof large - i : i};
        add_row(&fixture, samples_event(&fixture.samples, &value, 1));
    }
    (void)check(&fixture);
    add_row(&fixture, samples_next(&fixture.samples, 0));
    (void)check(&fixture);
    tear_down(&fixture);
}

/* Events of objects: a uuid, and values that are the object's or, from some row on, are not.
 * missing: the number of a value that the row lacks, 3: none. */
static void add_object_row(struct fixture *fixture, uint32_t row, bool is_following,
                           uint32_t missing)
{
    static char texts[EVENT_COUNT_MAX][32];
    const uint32_t object = row * 7919 % 97;
    const unsigned text = is_following ? object : 1000 + row;
    const int size = snprintf(texts[row], sizeof texts[row], "object-%u", text);
    lahar_value values[3] = {
        {.field = samples_field(&fixture->samples, "uuid"), .type = LAHAR_UUID},
        {.field = samples_field(&fixture->samples, "keyword"), .type = LAHAR_KEYWORD},
        {.field = samples_field(&fixture->samples, "u64"), .type = LAHAR_U64},
    };
    memset(values[0].as.uuid.bytes, (int)object, sizeof values[0].as.uuid.bytes);
    values[1].as.bytes = (lahar_bytes){texts[row], (size_t)size};
    values[2].as.u64 = text * UINT64_C(1000003);
    for (uint32_t i = missing; i < 2; i++) {
        values[i] = values[i + 1];
    }
    add_row(fixture, samples_event(&fixture->samples, values, missing < 3 ? 2 : 3));
}

Test(block_rows, are_kept_when_values_stop_following_others_at_any_row)
{
    struct fixture fixture;
    set_up(&fixture, 7);
    /* Learned from the blocks before: that the values follow the uuid, and that their entries
     * need no dictionary. The break comes in the first rows, in the middle of a stage, at its end.
     */
    static const uint32_t breaks[] = {0, 1, 60, 127, 128, 129, 200, 299, 300};
    for (size_t k = 0; k < sizeof breaks / sizeof breaks[0]; k++) {
        for (uint32_t round = 0; round < 3; round++) {
            for (uint32_t row = 0; row < 300; row++) {
                add_object_row(&fixture, row, round < 2 || row < breaks[k], 3);
            }
            (void)check(&fixture);
        }
    }
    tear_down(&fixture);
}

Test(block_rows, are_kept_when_values_or_what_they_follow_are_missing_in_any_row)
{
    struct fixture fixture;
    set_up(&fixture, 8);
    static const uint32_t holes[] = {0, 1, 127, 128, 129, 255, 256, 299};
    for (size_t k = 0; k < sizeof holes / sizeof holes[0]; k++) {
        for (uint32_t missing = 0; missing < 3; missing++) {
            for (uint32_t round = 0; round < 4; round++) {
                /* Rounds 0 and 1 teach; then one row lacks a value, then many rows do. */
                for (uint32_t row = 0; row < 300; row++) {
                    const bool is_hole = (round == 2 && row == holes[k]) ||
                                         (round == 3 && row >= holes[k] && row % 3 == 1);
                    add_object_row(&fixture, row, true, is_hole ? missing : 3);
                }
                (void)check(&fixture);
            }
        }
    }
    tear_down(&fixture);
}

/* Numbers, hashes and padded numbers of any size as keywords, one of them with another byte. */
Test(block_rows, keep_texts_that_are_almost_numbers)
{
    static const char *const alphabets[] = {"0123456789", "0123456789abcdef"};
    static char texts[64][40];
    struct fixture fixture;
    set_up(&fixture, 9);
    const uint32_t field = samples_field(&fixture.samples, "keyword");
    for (uint32_t size = 1; size <= 34; size++) {
        for (uint32_t round = 0; round < 24; round++) {
            const char *alphabet = alphabets[round % 2];
            const size_t letters = round % 2 == 0 ? 10 : 16;
            const uint32_t spoiled = (uint32_t)samples_random(&fixture.samples, 64);
            for (uint32_t i = 0; i < 64; i++) {
                for (uint32_t k = 0; k < size; k++) {
                    texts[i][k] = alphabet[samples_random(&fixture.samples, letters)];
                }
                if (round > 3 && i == spoiled) {
                    static const char near[] = "/:`gG@\x80\xb0 AFaf-\x10";
                    texts[i][samples_random(&fixture.samples, size)] =
                        near[samples_random(&fixture.samples, sizeof near - 1)];
                }
                const uint64_t cut = round % 3 == 0 ? samples_random(&fixture.samples, size) : 0;
                lahar_value value = {.field = field, .type = LAHAR_KEYWORD};
                value.as.bytes = (lahar_bytes){texts[i], size - cut};
                add_row(&fixture, samples_event(&fixture.samples, &value, 1));
            }
            (void)check(&fixture);
        }
    }
    tear_down(&fixture);
}

/* Names as systems make them: words, numbers and hashes in between, of any length. */
static size_t make_name(struct fixture *fixture, char *to, bool is_odd)
{
    static const char *const words[] = {"/data/", "-", "part", ".", "_", "feed", "V2", "stage-"};
    static const char digits[] = "0123456789abcdefABCDEF";
    size_t size = 0;
    const uint64_t pieces = is_odd ? samples_random(&fixture->samples, 14) : 6;
    for (uint64_t i = 0; i < pieces; i++) {
        const char *word = words[is_odd ? samples_random(&fixture->samples, 8) : i];
        memcpy(to + size, word, strlen(word));
        size += strlen(word);
        const uint64_t count = is_odd ? samples_random(&fixture->samples, 20) : i % 2 * 8;
        for (uint64_t k = 0; k < count; k++) {
            to[size++] = digits[samples_random(&fixture->samples, is_odd ? 22 : 16)];
        }
    }
    return size;
}

static uint32_t store_names(struct fixture *fixture, bool is_odd, bool has_gap_byte)
{
    static char names[600][512];
    for (uint32_t i = 0; i < 600; i++) {
        const size_t size = make_name(fixture, names[i], is_odd);
        lahar_pair *pair = lahar_arena_allocate(&fixture->samples.arena, sizeof *pair);
        *pair = (lahar_pair){samples_bytes("name"), {names[i], size}, false};
        if (has_gap_byte && i == 300) {
            names[i][size - 1] = LAHAR_TEMPLATE_GAP;
        }
        lahar_value values[2] = {
            {.field = samples_field(&fixture->samples, "keyword"), .type = LAHAR_KEYWORD},
            {.field = samples_field(&fixture->samples, "map"), .type = LAHAR_MAP}};
        values[0].as.bytes = (lahar_bytes){names[i], size};
        values[1].as.map.items = pair;
        values[1].as.map.count = 1;
        add_row(fixture, samples_event(&fixture->samples, values, 2));
    }
    return check(fixture);
}

Test(block_rows, store_the_numbers_and_hashes_inside_keywords_by_themselves)
{
    struct fixture fixture;
    set_up(&fixture, 13);
    /* Three hashes of four bytes a name, in a field and in an attribute: 24 bytes an event that
     * nothing can save, and the four bits a digit that deflate cannot find are all there is. */
    cr_assert_lt(store_names(&fixture, false, false), 600 * 25 + 1500);
    (void)store_names(&fixture, false, true);
    for (uint32_t round = 0; round < 40; round++) {
        (void)store_names(&fixture, round % 20 != 0, false);
    }
    tear_down(&fixture);
}

static lahar_status try_row(struct fixture *fixture, const uint8_t *data, uint32_t size)
{
    struct lahar_block_writer *writer = NULL;
    cr_assert_eq(
        lahar_block_writer_create(fixture->stream, 0, &lahar_allocator_libc, &writer, NULL),
        LAHAR_OK);
    /* Behind the row there is nothing that may be read. */
    uint8_t *row = malloc(size + (size_t)1);
    memcpy(row, data, size);
    const struct lahar_row_event event = {1, 1, row, size};
    const lahar_status status = lahar_block_writer_add_row(writer, &event, NULL);
    free(row);
    if (status == LAHAR_OK) {
        struct lahar_buffer out;
        struct lahar_block_info info;
        lahar_buffer_init(&out, &lahar_allocator_libc);
        cr_assert_eq(lahar_block_writer_finish(writer, &out, &info, NULL), LAHAR_OK);
        lahar_buffer_deinit(&out);
    }
    lahar_block_writer_destroy(writer);
    return status;
}

Test(block_rows, that_are_cut_short_are_refused)
{
    struct fixture fixture;
    set_up(&fixture, 8);
    for (uint32_t i = 0; i < 20; i++) {
        const lahar_event event = samples_next(&fixture.samples, 1);
        const struct lahar_row_event row = encode_shuffled(&fixture, &event);
        const uint32_t step = row.size > 2000 ? row.size / 500 : 1;
        for (uint32_t size = 0; size < row.size; size += step) {
            cr_assert_eq(try_row(&fixture, row.row, size), LAHAR_CORRUPT);
            if (size >= LAHAR_ROW_HEADER_SIZE) {
                lahar_store_u32(fixture.row.data, size);
                cr_assert_eq(try_row(&fixture, row.row, size), LAHAR_CORRUPT);
                lahar_store_u32(fixture.row.data, row.size);
            }
        }
    }
    tear_down(&fixture);
}

Test(block_rows, with_any_byte_changed_are_taken_or_refused)
{
    struct fixture fixture;
    set_up(&fixture, 9);
    for (uint32_t i = 0; i < 20; i++) {
        const lahar_event event = samples_next(&fixture.samples, 1);
        const struct lahar_row_event row = encode_shuffled(&fixture, &event);
        const uint32_t step = row.size > 1000 ? row.size / 200 : 1;
        for (uint32_t at = 0; at < row.size; at += step) {
            const uint8_t before = fixture.row.data[at];
            static const uint8_t changes[] = {1, 0x80, 0xff};
            for (size_t k = 0; k < sizeof changes; k++) {
                fixture.row.data[at] = before ^ changes[k];
                const lahar_status status = try_row(&fixture, row.row, row.size);
                cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT || status == LAHAR_INVALID);
            }
            fixture.row.data[at] = before;
        }
    }
    tear_down(&fixture);
}

Test(block_rows, with_a_field_given_twice_are_refused)
{
    struct fixture fixture;
    set_up(&fixture, 10);
    lahar_value value = {.field = samples_field(&fixture.samples, "u64"), .type = LAHAR_U64};
    const lahar_event event = samples_event(&fixture.samples, &value, 1);
    const struct lahar_row_event one = encode_shuffled(&fixture, &event);
    uint8_t row[64];
    const uint32_t value_size = one.size - LAHAR_ROW_HEADER_SIZE;
    memcpy(row, one.row, one.size);
    memcpy(row + one.size, one.row + LAHAR_ROW_HEADER_SIZE, value_size);
    lahar_store_u32(row, one.size + value_size);
    lahar_store_u16(row + LAHAR_ROW_HEADER_SIZE - 2, 2);
    cr_assert_eq(try_row(&fixture, one.row, one.size), LAHAR_OK);
    cr_assert_eq(try_row(&fixture, row, one.size + value_size), LAHAR_CORRUPT);
    tear_down(&fixture);
}

/* Fills two blocks with memory that is refused at the state's call. */
static lahar_status fill_with(struct fixture *fixture, const lahar_allocator *allocator)
{
    struct lahar_block_writer *writer = NULL;
    struct lahar_block_info info;
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    lahar_status status = lahar_block_writer_create(fixture->stream, 1, allocator, &writer, NULL);
    for (uint32_t i = 0; status == LAHAR_OK && i < 300; i++) {
        const struct lahar_row_event row =
            encode_shuffled(fixture, &fixture->events[i % fixture->count]);
        status = lahar_block_writer_add_row(writer, &row, NULL);
        if (status == LAHAR_OK && i % 150 == 149) {
            status = lahar_block_writer_finish(writer, &out, &info, NULL);
        }
    }
    lahar_block_writer_destroy(writer);
    lahar_buffer_deinit(&out);
    return status;
}

Test(block_rows, report_refused_memory_and_leave_none_behind)
{
    struct fixture fixture;
    set_up(&fixture, 11);
    for (uint32_t i = 0; i < 20; i++) {
        fixture.events[fixture.count++] = samples_next(&fixture.samples, 1);
    }
    lahar_status status = LAHAR_NO_MEMORY;
    for (uint64_t call = 1; status == LAHAR_NO_MEMORY; call += 1 + call / 16) {
        struct failing_allocator state;
        failing_allocator_init(&state, call);
        status = fill_with(&fixture, &state.allocator);
        cr_assert(status == LAHAR_OK || status == LAHAR_NO_MEMORY);
        cr_assert_eq(state.live_count, 0);
    }
    tear_down(&fixture);
}

/* A number that some objects share is stored without looking for repeats once it is known to
 * follow the uuid; it must not pass for what the uuid follows then. */
Test(block_rows, of_objects_keep_depending_on_the_uuid)
{
    struct fixture fixture;
    set_up(&fixture, 12);
    lahar_value values[2] = {
        {.field = samples_field(&fixture.samples, "i64"), .type = LAHAR_I64},
        {.field = samples_field(&fixture.samples, "uuid"), .type = LAHAR_UUID},
    };
    const uint32_t ordinals[2] = {lahar_stream_ordinal(fixture.stream, values[0].field),
                                  lahar_stream_ordinal(fixture.stream, values[1].field)};
    for (uint32_t block = 0; block < 6; block++) {
        for (uint32_t row = 0; row < 600; row++) {
            const uint32_t object = (uint32_t)samples_random(&fixture.samples, 400);
            values[0].as.i64 = object % 360;
            memset(values[1].as.uuid.bytes, 0, sizeof values[1].as.uuid.bytes);
            memcpy(values[1].as.uuid.bytes, &object, sizeof object);
            add_row(&fixture, samples_event(&fixture.samples, values, 2));
        }
        cr_assert_eq(lahar_block_writer_encode(fixture.writer, NULL), LAHAR_OK);
        const struct lahar_block_columns columns = lahar_block_writer_columns(fixture.writer);
        const struct lahar_column *number = &columns.scope->elements[ordinals[0]]->column;
        const struct lahar_column *uuid = &columns.scope->elements[ordinals[1]]->column;
        cr_assert_eq(number->source, uuid, "block %u", block);
        cr_assert_null(uuid->source);
        struct lahar_buffer out;
        struct lahar_block_info info;
        lahar_buffer_init(&out, &lahar_allocator_libc);
        cr_assert_eq(lahar_block_writer_compress(fixture.writer, &out, &info, NULL), LAHAR_OK);
        lahar_buffer_deinit(&out);
        fixture.count = 0;
    }
    tear_down(&fixture);
}
