/* Frames: their bytes, written out by hand, and everything that must not pass for one.
 * The checksum is computed here bit by bit, from the definition. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/journal/frame.h"
#include "engine/journal/segment_file.h"
#include "io/base/error.h"

static uint32_t crc32c_by_bits(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

static void put(uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

static const uint64_t STORE = UINT64_C(0x0102030405060708);

enum {
    SESSION = 5,
    GENERATION = 9,
    POSITION = 4096 + 800
};

/* A batch of two events "abcde" "fgh" at id 1000, with one offset record, by hand. */
static size_t build_batch(uint8_t *bytes)
{
    static const uint8_t offsets[] = {3, 's', 'r', 'c', 1, 'k', 2, '4', '2'};
    memset(bytes, 0, 128);
    put(bytes, 80, 4); /* 56 + 9 + 8 = 73, padded to 80 */
    put(bytes + 8, 1000, 8);
    put(bytes + 16, 990, 8);
    put(bytes + 24, 1700000000000000000, 8);
    put(bytes + 32, 2, 4);
    put(bytes + 36, 8, 4);
    put(bytes + 40, 9, 4);
    bytes[44] = 1;
    bytes[45] = 1;
    memcpy(bytes + 56, offsets, 9);
    memcpy(bytes + 65, "abcdefgh", 8);
    uint8_t identity[24];
    put(identity, STORE, 8);
    put(identity + 8, SESSION, 8);
    put(identity + 16, GENERATION, 8);
    uint8_t position[8];
    put(position, POSITION, 8);
    uint32_t crc = crc32c_by_bits(0, identity, sizeof identity);
    crc = crc32c_by_bits(crc, position, sizeof position);
    crc = crc32c_by_bits(crc, bytes, 73);
    put(bytes + 4, crc, 4);
    return 80;
}

static uint32_t seed(void)
{
    return lahar_frame_seed(STORE, SESSION, GENERATION);
}

Test(frame, is_written_as_specified)
{
    uint8_t expected[128];
    const size_t size = build_batch(expected);
    static const uint8_t offsets[] = {3, 's', 'r', 'c', 1, 'k', 2, '4', '2'};
    const struct lahar_frame frame = {
        .kind = LAHAR_FRAME_BATCH,
        .size = (uint32_t)lahar_frame_size(8, 9),
        .event_count = 2,
        .rows_size = 8,
        .offsets_size = 9,
        .first_id = 1000,
        .durable_id = 990,
        .arrival_ns = 1700000000000000000,
        .offsets = offsets,
        .rows = (const uint8_t *)"abcdefgh",
    };
    uint8_t written[128] = {0};
    lahar_frame_encode(written, &frame, seed(), POSITION);
    cr_assert_eq(written[0] | written[1] | written[2] | written[3], 0,
                 "the size word is left to the one who publishes");
    put(written, frame.size, 4);
    cr_assert_eq(memcmp(written, expected, size), 0);
}

Test(frame, is_read_as_specified)
{
    uint8_t bytes[128];
    build_batch(bytes);
    struct lahar_frame frame;
    cr_assert(lahar_frame_check(bytes, sizeof bytes, seed(), POSITION, &frame));
    cr_assert_eq(frame.kind, LAHAR_FRAME_BATCH);
    cr_assert_eq(frame.size, 80);
    cr_assert_eq(frame.first_id, 1000);
    cr_assert_eq(frame.durable_id, 990);
    cr_assert_eq(frame.arrival_ns, 1700000000000000000);
    cr_assert_eq(frame.event_count, 2);
    cr_assert_eq(memcmp(frame.rows, "abcdefgh", 8), 0);
    cr_assert_eq(frame.offsets_size, 9);
}

Test(frame, of_another_store_session_generation_or_place_is_refused)
{
    uint8_t bytes[128];
    build_batch(bytes);
    struct lahar_frame frame;
    cr_assert_not(lahar_frame_check(bytes, 128, lahar_frame_seed(STORE + 1, SESSION, GENERATION),
                                    POSITION, &frame));
    cr_assert_not(lahar_frame_check(bytes, 128, lahar_frame_seed(STORE, SESSION - 1, GENERATION),
                                    POSITION, &frame));
    cr_assert_not(lahar_frame_check(bytes, 128, lahar_frame_seed(STORE, SESSION, GENERATION + 1),
                                    POSITION, &frame));
    cr_assert_not(lahar_frame_check(bytes, 128, seed(), POSITION + 8, &frame));
}

Test(frame, with_any_bit_flipped_is_refused)
{
    uint8_t bytes[128];
    build_batch(bytes);
    struct lahar_frame frame;
    for (size_t bit = 0; bit < 73 * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_assert_not(lahar_frame_check(bytes, 128, seed(), POSITION, &frame), "bit %zu", bit);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

Test(frame, cut_anywhere_is_refused)
{
    uint8_t bytes[128];
    const size_t size = build_batch(bytes);
    struct lahar_frame frame;
    for (size_t available = 0; available < size; available++) {
        cr_assert_not(lahar_frame_check(bytes, available, seed(), POSITION, &frame), "%zu",
                      available);
    }
}

/* The fields are made consistent with each other except for the one in question, and the
 * checksum is right: only the structure can refuse them. */
static bool passes_with(size_t at, uint64_t value, size_t width)
{
    uint8_t bytes[128];
    build_batch(bytes);
    put(bytes + at, value, width);
    put(bytes + 4, 0, 4);
    uint8_t head[32];
    put(head, STORE, 8);
    put(head + 8, SESSION, 8);
    put(head + 16, GENERATION, 8);
    put(head + 24, POSITION, 8);
    uint32_t crc = crc32c_by_bits(0, head, 24);
    crc = crc32c_by_bits(crc, head + 24, 8);
    crc = crc32c_by_bits(crc, bytes, 73);
    put(bytes + 4, crc, 4);
    struct lahar_frame frame;
    return lahar_frame_check(bytes, 128, seed(), POSITION, &frame);
}

Test(frame, with_impossible_fields_is_refused_even_if_its_checksum_holds)
{
    cr_assert(passes_with(8, 1000, 8), "the frame itself passes");
    cr_assert_not(passes_with(0, 88, 4), "a size that is not that of the content");
    cr_assert_not(passes_with(0, 81, 4), "a size off the alignment");
    cr_assert_not(passes_with(0, 0xfffffff8, 4), "a size beyond the region");
    cr_assert_not(passes_with(8, UINT64_MAX, 8), "ids that overflow");
    cr_assert_not(passes_with(32, 0, 4), "rows without events");
    cr_assert_not(passes_with(32, 9, 4), "more events than bytes");
    cr_assert_not(passes_with(44, 2, 1), "a later version");
    cr_assert_not(passes_with(45, 0, 1), "kind 0");
    cr_assert_not(passes_with(45, 4, 1), "kind 4");
    cr_assert_not(passes_with(46, 1, 2), "an unknown feature");
    cr_assert_not(passes_with(48, 1, 4), "a key that nobody has");
    cr_assert(passes_with(52, 1, 4), "reserved bytes are for later versions");
}

Test(frame, zeros_are_never_a_frame)
{
    const uint8_t zeros[256] = {0};
    struct lahar_frame frame;
    cr_assert_not(lahar_frame_check(zeros, sizeof zeros, seed(), POSITION, &frame));
    cr_assert_not(lahar_frame_check(zeros, sizeof zeros, 0, 0, &frame));
}

Test(journal_header, is_written_as_specified_and_read_back)
{
    uint8_t expected[LAHAR_JOURNAL_HEADER_SIZE] = {0};
    memcpy(expected, "LAHARJNL", 8);
    put(expected + 8, 1, 2);
    put(expected + 10, 4096, 2);
    put(expected + 16, STORE, 8);
    put(expected + 24, SESSION, 8);
    put(expected + 32, GENERATION, 8);
    put(expected + 40, 1048576, 4);
    put(expected + 44, 4, 4);
    put(expected + 4092, crc32c_by_bits(0, expected, 4092), 4);
    const struct lahar_journal_header header = {STORE, SESSION, GENERATION, 1048576, 4};
    uint8_t block[LAHAR_JOURNAL_HEADER_SIZE];
    lahar_journal_header_encode(block, &header);
    cr_assert_eq(memcmp(block, expected, sizeof block), 0);
    struct lahar_journal_header read;
    cr_assert_eq(lahar_journal_header_decode(expected, &read, NULL), LAHAR_OK);
    cr_assert_eq(read.store_id, STORE);
    cr_assert_eq(read.session, SESSION);
    cr_assert_eq(read.generation, GENERATION);
    cr_assert_eq(read.region_size, 1048576);
    cr_assert_eq(read.region_count, 4);
}

Test(journal_header, refuses_every_flipped_byte)
{
    const struct lahar_journal_header header = {STORE, SESSION, GENERATION, 65536, 16};
    uint8_t block[LAHAR_JOURNAL_HEADER_SIZE];
    lahar_journal_header_encode(block, &header);
    struct lahar_journal_header read;
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] ^= 0x40;
        /* A version above ours is refused before the checksum is looked at. */
        const lahar_status expected = i == 8 || i == 9 ? LAHAR_UNSUPPORTED : LAHAR_CORRUPT;
        cr_assert_eq(lahar_journal_header_decode(block, &read, NULL), expected, "byte %zu", i);
        block[i] ^= 0x40;
    }
    cr_assert_eq(lahar_journal_header_decode(block, &read, NULL), LAHAR_OK);
}

Test(journal_header, knows_its_names)
{
    char name[LAHAR_JOURNAL_NAME_SIZE];
    uint64_t number = 0;
    lahar_journal_file_name(42, name);
    cr_assert_str_eq(name, "00000000000000000042.journal");
    cr_assert(lahar_journal_file_number(name, &number));
    cr_assert_eq(number, 42);
    cr_assert_not(lahar_journal_file_number("0000000000000000042.journal", &number));
    cr_assert_not(lahar_journal_file_number("00000000000000000042.journal2", &number));
    cr_assert_not(lahar_journal_file_number("99999999999999999999.journal", &number));
    cr_assert_not(lahar_journal_file_number("", &number));
}

Test(arrival, rises_from_batch_to_batch)
{
    cr_assert_eq(lahar_arrival_after(INT64_MIN, 5), 5);
    cr_assert_eq(lahar_arrival_after(5, 5), 6);
    cr_assert_eq(lahar_arrival_after(7, 5), 8, "the clock went back");
    cr_assert_eq(lahar_arrival_after(7, 9), 9);
    cr_assert_eq(lahar_arrival_after(INT64_MAX, 9), INT64_MAX);
    cr_assert_eq(lahar_arrival_after(INT64_MAX - 1, 9), INT64_MAX);
}
