/* The allocator of libc behind the interface that the host may replace. */
#include "io/base/allocator.h"

#include <stdlib.h>
#include <string.h>

static void *libc_allocate(void *context, size_t size)
{
    (void)context;
    return malloc(size == 0 ? 1 : size);
}

/* A size of 0 would make realloc free the memory and return NULL, which reads
 * as a refusal. */
static void *libc_resize(void *context, void *memory, size_t size)
{
    (void)context;
    return realloc(memory, size == 0 ? 1 : size);
}

static void libc_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

const lahar_allocator lahar_allocator_libc = {libc_allocate, libc_resize, libc_release, NULL};

void *lahar_allocate_zeroed(const lahar_allocator *allocator, size_t count, size_t size)
{
    size_t total = 0;
    if (__builtin_mul_overflow(count, size, &total)) {
        return NULL;
    }
    if (allocator->allocate == libc_allocate) {
        /* Pages fresh from the kernel are zero already: large tables cost what is used of them. */
        return calloc(1, total == 0 ? 1 : total);
    }
    void *memory = lahar_allocate(allocator, total);
    if (memory != NULL) {
        memset(memory, 0, total);
    }
    return memory;
}
