#include "tools/version.h"

#include <stdio.h>

#include <json-c/json.h>

#include "lahar/lahar.h"
#include "tools/memory_report.h"

void version_print(const char *program)
{
    const char *allocator = memory_report_allocator();
    (void)printf("%s %s\n", program, lahar_version());
    if (allocator != NULL) {
        (void)printf("jemalloc %s\n", allocator);
    }
    (void)printf("json-c %s\n", json_c_version());
    /* These have no call for it: the versions that the build found. */
    (void)printf("liburing %s\nlibdeflate %s\nutf8proc %s\nxxhash %s\n", LAHAR_LIBURING_VERSION,
                 LAHAR_LIBDEFLATE_VERSION, LAHAR_UTF8PROC_VERSION, LAHAR_XXHASH_VERSION);
}
