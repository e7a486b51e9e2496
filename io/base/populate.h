/* Fresh memory whose pages are there before they are used. */
#ifndef LAHAR_BASE_POPULATE_H
#define LAHAR_BASE_POPULATE_H

#include <stddef.h>

/* Brings the whole pages of the range in by one call, which costs a fraction of a fault for
 * each. Their contents stay. Without effect where the kernel is too old for it. */
void lahar_populate(void *memory, size_t size);

#endif
