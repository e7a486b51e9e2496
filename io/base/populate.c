#include "io/base/populate.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void lahar_populate(void *memory, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    const uintptr_t start = ((uintptr_t)memory + mask) & ~mask;
    const uintptr_t end = ((uintptr_t)memory + size) & ~mask;
    if (end > start) {
        (void)madvise((void *)start, end - start, MADV_POPULATE_WRITE);
    }
#else
    (void)memory;
    (void)size;
#endif
}
