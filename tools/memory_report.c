#include "tools/memory_report.h"

#include <stddef.h>

#ifdef LAHAR_HAVE_JEMALLOC
#include <jemalloc/jemalloc.h>

const char *memory_report_allocator(void)
{
    const char *version = NULL;
    size_t size = sizeof version;
    return mallctl("version", &version, &size, NULL, 0) == 0 ? version : "of an unknown version";
}

uint64_t memory_report_resident_bytes(void)
{
    uint64_t epoch = 1;
    size_t resident = 0;
    size_t size = sizeof resident;
    /* Statistics are a picture taken when the epoch is advanced. */
    if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0 ||
        mallctl("stats.resident", &resident, &size, NULL, 0) != 0) {
        return 0;
    }
    return resident;
}

#else

const char *memory_report_allocator(void)
{
    return NULL;
}

uint64_t memory_report_resident_bytes(void)
{
    return 0;
}

#endif
