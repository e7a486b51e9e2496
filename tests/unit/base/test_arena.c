/* Pieces out of the arena: aligned, apart from each other, kept memory after a reset. */
#include <criterion/criterion.h>

#include "failing_allocator.h"
#include "io/base/arena.h"

Test(arena, hands_out_aligned_pieces_that_do_not_overlap)
{
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 256);
    uint8_t *pieces[200];
    for (size_t i = 0; i < 200; i++) {
        pieces[i] = lahar_arena_allocate(&arena, i % 97);
        cr_assert_not_null(pieces[i]);
        cr_assert_eq((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)i, i % 97);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t k = 0; k < i % 97; k++) {
            cr_assert_eq(pieces[i][k], (uint8_t)i);
        }
    }
    lahar_arena_deinit(&arena);
}

Test(arena, serves_a_piece_larger_than_its_chunks_and_goes_on_in_the_old_chunk)
{
    struct failing_allocator memory;
    failing_allocator_init(&memory, UINT64_MAX);
    struct lahar_arena arena;
    lahar_arena_init(&arena, &memory.allocator, 1024);
    const uint8_t *before = lahar_arena_allocate(&arena, 16);
    uint8_t *large = lahar_arena_allocate(&arena, 100000);
    const uint8_t *after = lahar_arena_allocate(&arena, 16);
    cr_assert_not_null(large);
    memset(large, 1, 100000);
    cr_assert_eq(after - before, 16);
    cr_assert_eq(memory.request_count, 2);
    lahar_arena_deinit(&arena);
    cr_assert_eq(memory.live_count, 0);
}

Test(arena, asks_for_no_memory_after_a_reset)
{
    struct failing_allocator memory;
    failing_allocator_init(&memory, UINT64_MAX);
    struct lahar_arena arena;
    lahar_arena_init(&arena, &memory.allocator, 512);
    uint64_t requests = 0;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 50; i++) {
            cr_assert_not_null(lahar_arena_allocate(&arena, 100));
        }
        cr_assert_eq(arena.used_bytes, 50 * 112);
        cr_assert(round == 0 || memory.request_count == requests);
        requests = memory.request_count;
        lahar_arena_reset(&arena);
        cr_assert_eq(arena.used_bytes, 0);
    }
    lahar_arena_deinit(&arena);
    cr_assert_eq(memory.live_count, 0);
}

Test(arena, returns_null_when_memory_is_refused_and_recovers)
{
    struct failing_allocator memory;
    failing_allocator_init(&memory, 1);
    struct lahar_arena arena;
    lahar_arena_init(&arena, &memory.allocator, 64);
    char *first = lahar_arena_copy(&arena, "0123456789", 10);
    cr_assert_not_null(first);
    cr_assert_null(lahar_arena_allocate(&arena, 64));
    cr_assert_not_null(lahar_arena_allocate(&arena, 64));
    cr_assert_eq(memcmp(first, "0123456789", 10), 0);
    lahar_arena_deinit(&arena);
    cr_assert_eq(memory.live_count, 0);
}

Test(arena, refuses_a_size_that_overflows)
{
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 64);
    cr_assert_null(lahar_arena_allocate(&arena, SIZE_MAX));
    cr_assert_null(lahar_arena_allocate(&arena, SIZE_MAX - 15));
    cr_assert_null(lahar_arena_allocate(&arena, SIZE_MAX - 31));
    cr_assert_null(lahar_allocate_zeroed(&lahar_allocator_libc, SIZE_MAX / 2, 3));
    lahar_arena_deinit(&arena);
}
