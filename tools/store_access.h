/* Opening and closing the store that a verb works on. */
#ifndef LAHAR_TOOLS_STORE_ACCESS_H
#define LAHAR_TOOLS_STORE_ACCESS_H

#include <stdint.h>

#include "lahar/lahar.h"
#include "tools/exit_status.h"

enum store_access {
    STORE_READ,           /* never writes; the store must exist */
    STORE_WRITE,          /* the store must exist */
    STORE_REPAIR,         /* the same, and makes do with what is left of a damaged one */
    STORE_WRITE_OR_CREATE /* an absent or empty directory becomes a store */
};

/* Prints why on failure; *store_out is NULL then. Warnings of the library go to
 * standard error. */
enum exit_status store_access_open(const char *directory, enum store_access access,
                                   lahar_store **store_out);

/* The same with volumes to be added or moved. */
enum exit_status store_access_open_volumes(const char *directory, enum store_access access,
                                           const lahar_volume_spec *volumes, size_t volume_count,
                                           lahar_store **store_out);

/* Returns status, or, when that is DONE, what went wrong in closing. NULL is allowed. */
enum exit_status store_access_close(lahar_store *store, enum exit_status status);

/* The stream called name; LAHAR_ANY_STREAM for NULL. Prints that there is none. */
enum exit_status store_access_stream(lahar_store *store, const char *name, uint32_t *stream_out);

#endif
