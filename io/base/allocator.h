/* Memory of the library: every module is handed the store's allocator. */
#ifndef LAHAR_BASE_ALLOCATOR_H
#define LAHAR_BASE_ALLOCATOR_H

#include "lahar/store.h"

/* malloc, realloc, free. */
extern const lahar_allocator lahar_allocator_libc;

/* NULL when refused. The memory is not cleared. */
static inline void *lahar_allocate(const lahar_allocator *allocator, size_t size)
{
    return allocator->allocate(allocator->context, size);
}

static inline void *lahar_reallocate(const lahar_allocator *allocator, void *memory, size_t size)
{
    return allocator->resize(allocator->context, memory, size);
}

static inline void lahar_release(const lahar_allocator *allocator, void *memory)
{
    allocator->release(allocator->context, memory);
}

/* count * size bytes set to zero; NULL also when the product overflows. */
void *lahar_allocate_zeroed(const lahar_allocator *allocator, size_t count, size_t size);

#endif
