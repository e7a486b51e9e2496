#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/base/recycler.h"

/* Counts what is taken from libc and not given back. */
struct counts {
    int blocks;
    int asked;
};

static void *count_allocate(void *context, size_t size)
{
    struct counts *counts = context;
    counts->blocks++;
    counts->asked++;
    return malloc(size);
}

static void *count_resize(void *context, void *memory, size_t size)
{
    struct counts *counts = context;
    counts->blocks += memory == NULL;
    counts->asked++;
    return realloc(memory, size);
}

static void count_release(void *context, void *memory)
{
    struct counts *counts = context;
    counts->blocks -= memory != NULL;
    free(memory);
}

Test(recycler, hands_a_large_block_out_again)
{
    struct counts counts = {0, 0};
    const lahar_allocator source = {count_allocate, count_resize, count_release, &counts};
    struct lahar_recycler recycler;
    lahar_recycler_init(&recycler, &source, 1 << 20);
    const lahar_allocator *allocator = &recycler.allocator;
    void *first = lahar_allocate(allocator, 200000);
    lahar_release(allocator, first);
    cr_assert_eq(recycler.kept_bytes, 200000);
    cr_assert_eq(lahar_allocate(allocator, 150000), first);
    cr_assert_eq(recycler.kept_bytes, 0);
    cr_assert_eq(counts.asked, 1);
    lahar_release(allocator, first);
    /* Too large for it, and so small that most of it would be wasted. */
    void *larger = lahar_allocate(allocator, 200001);
    void *smaller = lahar_allocate(allocator, 70000);
    cr_assert_neq(larger, first);
    cr_assert_neq(smaller, first);
    lahar_release(allocator, larger);
    lahar_release(allocator, smaller);
    lahar_recycler_deinit(&recycler);
    cr_assert_eq(counts.blocks, 0);
}

Test(recycler, passes_small_blocks_through)
{
    struct counts counts = {0, 0};
    const lahar_allocator source = {count_allocate, count_resize, count_release, &counts};
    struct lahar_recycler recycler;
    lahar_recycler_init(&recycler, &source, 1 << 20);
    void *memory = lahar_allocate(&recycler.allocator, 1000);
    cr_assert_eq((uintptr_t)memory % 16, 0);
    lahar_release(&recycler.allocator, memory);
    lahar_release(&recycler.allocator, NULL);
    cr_assert_eq(counts.blocks, 0);
    lahar_recycler_deinit(&recycler);
}

Test(recycler, keeps_no_more_than_its_limit)
{
    struct counts counts = {0, 0};
    const lahar_allocator source = {count_allocate, count_resize, count_release, &counts};
    struct lahar_recycler recycler;
    lahar_recycler_init(&recycler, &source, 1 << 20);
    void *blocks[100];
    for (int i = 0; i < 100; i++) {
        blocks[i] = lahar_allocate(&recycler.allocator, 100000);
    }
    for (int i = 0; i < 100; i++) {
        lahar_release(&recycler.allocator, blocks[i]);
        cr_assert_leq(recycler.kept_bytes, 1 << 20);
    }
    cr_assert_eq(counts.blocks, 10);
    void *huge = lahar_allocate(&recycler.allocator, 2 << 20);
    lahar_release(&recycler.allocator, huge);
    cr_assert_eq(counts.blocks, 10);
    lahar_recycler_deinit(&recycler);
    cr_assert_eq(counts.blocks, 0);
}

Test(recycler, keeps_the_bytes_of_a_block_that_grows)
{
    struct counts counts = {0, 0};
    const lahar_allocator source = {count_allocate, count_resize, count_release, &counts};
    struct lahar_recycler recycler;
    lahar_recycler_init(&recycler, &source, 1 << 20);
    const lahar_allocator *allocator = &recycler.allocator;
    void *kept = lahar_allocate(allocator, 300000);
    lahar_release(allocator, kept);
    uint8_t *memory = lahar_reallocate(allocator, NULL, 100);
    memset(memory, 0x5a, 100);
    for (size_t size = 1000; size < 300000; size *= 3) {
        memory = lahar_reallocate(allocator, memory, size);
        for (int i = 0; i < 100; i++) {
            cr_assert_eq(memory[i], 0x5a);
        }
    }
    cr_assert_eq(memory, kept);
    /* A shrunken block gives its place up. */
    memory = lahar_reallocate(allocator, memory, 10);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(memory[i], 0x5a);
    }
    lahar_release(allocator, memory);
    lahar_recycler_deinit(&recycler);
    cr_assert_eq(counts.blocks, 0);
}
