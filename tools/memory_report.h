/* What the process's allocator says about itself. */
#ifndef LAHAR_TOOLS_MEMORY_REPORT_H
#define LAHAR_TOOLS_MEMORY_REPORT_H

#include <stdint.h>

/* The version of jemalloc, "5.3.0-..."; NULL where it is not linked. */
const char *memory_report_allocator(void);

/* Bytes that the allocator holds in physical memory; 0 where it does not say. */
uint64_t memory_report_resident_bytes(void);

#endif
