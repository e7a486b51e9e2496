/* What is stored of a file: cursors and definitions as bytes, whole, cut and damaged. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/follow/file_cursor.h"
#include "engine/follow/source_settings.h"
#include "io/base/allocator.h"

static struct lahar_file_cursor sample(void)
{
    struct lahar_file_cursor cursor = {
        .generation = 0x0102030405060708,
        .predecessor = 5,
        .device = 2049,
        .inode = UINT64_C(1) << 40,
        .birth_ns = -1,
        .offset = 3000,
        .line = 77,
        .first_line = 1,
        .record_count = 76,
        .error_count = 1,
        .gap_size = 12,
        .size_seen = 4000,
        .mtime_ns = INT64_MAX,
        .flags = LAHAR_CURSOR_GZIP,
        .encoding = LAHAR_ENCODING_BYTES,
        .last_error = "line 3: not a JSON value",
    };
    uint8_t text[3000];
    memset(text, 'x', sizeof text);
    lahar_fingerprint_update(&cursor.print, text, 0, 1500);
    lahar_fingerprint_update(&cursor.print, text, 0, 3000);
    return cursor;
}

Test(follow_cursor, comes_back_as_it_was)
{
    const struct lahar_file_cursor cursor = sample();
    struct lahar_file_cursor back;
    uint8_t key[LAHAR_CURSOR_KEY_SIZE];
    lahar_bytes path;
    struct lahar_buffer value;
    lahar_buffer_init(&value, &lahar_allocator_libc);
    lahar_cursor_key(cursor.generation, key);
    cr_assert_eq(memcmp(key, "\1\2\3\4\5\6\7\10", 8), 0);
    lahar_file_cursor_encode(&cursor, "/var/log/a", &value);
    cr_assert_lt(value.size, 400);
    cr_assert_eq(lahar_file_cursor_decode((lahar_bytes){key, sizeof key},
                                          (lahar_bytes){value.data, value.size}, &back, &path,
                                          NULL),
                 LAHAR_OK);
    cr_assert_eq(path.size, 10);
    cr_assert_eq(memcmp(path.data, "/var/log/a", 10), 0);
    cr_assert_eq(back.generation, cursor.generation);
    cr_assert_eq(back.offset, 3000);
    cr_assert_eq(back.line, 77);
    cr_assert_eq(back.gap_size, 12);
    cr_assert_eq(back.birth_ns, -1);
    cr_assert_eq(back.print.head_size, LAHAR_HEAD_SIZE);
    cr_assert_eq(back.print.ladder_count, 2);
    cr_assert_eq(back.print.tail_hash, cursor.print.tail_hash);
    cr_assert_str_eq(back.last_error, cursor.last_error);
    lahar_buffer_deinit(&value);
}

/* S-07: a cut is refused; a flipped bit is refused or is another value, and nothing is read
 * outside. Only the journal's checksums can tell values apart. */
Test(follow_cursor, refuses_any_damage)
{
    const struct lahar_file_cursor cursor = sample();
    struct lahar_file_cursor back;
    uint8_t key[LAHAR_CURSOR_KEY_SIZE];
    lahar_bytes path;
    struct lahar_buffer value;
    lahar_buffer_init(&value, &lahar_allocator_libc);
    lahar_cursor_key(cursor.generation, key);
    lahar_file_cursor_encode(&cursor, "/var/log/a", &value);
    for (size_t size = 0; size < value.size; size++) {
        uint8_t *exact = malloc(size + 1);
        memcpy(exact, value.data, size);
        cr_assert_neq(lahar_file_cursor_decode((lahar_bytes){key, sizeof key},
                                               (lahar_bytes){exact, size}, &back, &path, NULL),
                      LAHAR_OK);
        free(exact);
    }
    for (size_t bit = 0; bit < 8 * value.size; bit++) {
        value.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (lahar_file_cursor_decode((lahar_bytes){key, sizeof key},
                                     (lahar_bytes){value.data, value.size}, &back, &path,
                                     NULL) == LAHAR_OK) {
            cr_assert_leq(back.print.tail_size, back.offset);
            cr_assert_leq(back.print.ladder_count, LAHAR_LADDER_SIZE);
        }
        value.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    lahar_buffer_deinit(&value);
}

Test(follow_cursor, keeps_a_definition_and_refuses_a_cut_one)
{
    struct lahar_source_definition definition = {.source = 9, .is_paused = true};
    struct lahar_source_definition back;
    struct lahar_buffer value;
    struct lahar_arena arena;
    lahar_buffer_init(&value, &lahar_allocator_libc);
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    lahar_source_spec_init(&definition.spec);
    definition.spec.path = "/var/log/*.log";
    definition.spec.root = "/var/log";
    definition.spec.stream = "logs";
    definition.spec.max_block_size = 17;
    definition.spec.handle_error_mode = LAHAR_ERROR_MODE_STOP;
    lahar_source_definition_encode(&definition, &value);
    const lahar_bytes name = {"web", 3};
    cr_assert_eq(lahar_source_definition_decode(name, (lahar_bytes){value.data, value.size}, &arena,
                                                &back, NULL),
                 LAHAR_OK);
    cr_assert_eq(back.source, 9);
    cr_assert(back.is_paused);
    cr_assert_str_eq(back.spec.name, "web");
    cr_assert_str_eq(back.spec.path, "/var/log/*.log");
    cr_assert_null(back.spec.dead_letter);
    cr_assert_eq(back.spec.max_block_size, 17);
    cr_assert_eq(back.spec.handle_error_mode, LAHAR_ERROR_MODE_STOP);
    for (size_t size = 0; size < value.size; size++) {
        cr_assert_neq(lahar_source_definition_decode(name, (lahar_bytes){value.data, size}, &arena,
                                                     &back, NULL),
                      LAHAR_OK);
    }
    lahar_arena_deinit(&arena);
    lahar_buffer_deinit(&value);
}
