/* Lahar: an embedded event store.
 *
 * Conventions of all headers:
 * 1. Handles are opaque; create and destroy, open and close come in pairs,
 *    and closing NULL is allowed.
 * 2. Pointers passed in are borrowed for the call unless stated otherwise.
 * 3. Out-parameters are last and set (to NULL or 0) before anything can fail.
 * 4. Structs that may grow begin with struct_size, set by the caller or by
 *    the matching _init function.
 * 5. Sizes are bytes, times are nanoseconds since 1970-01-01T00:00:00Z,
 *    deadlines are nanoseconds from the call.
 * 6. The library installs no signal handler, prints nothing, keeps no global
 *    state and never aborts on data or I/O errors. Its descriptors are
 *    close-on-exec. In a forked child only lahar_store_close may be called. */
#ifndef LAHAR_LAHAR_H
#define LAHAR_LAHAR_H

#include "lahar/append.h"
#include "lahar/columns.h"
#include "lahar/event.h"
#include "lahar/filter.h"
#include "lahar/follow.h"
#include "lahar/ingest.h"
#include "lahar/inspect.h"
#include "lahar/provenance.h"
#include "lahar/query.h"
#include "lahar/read.h"
#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAHAR_VERSION_MAJOR 0
#define LAHAR_VERSION_MINOR 1
#define LAHAR_VERSION_PATCH 0

/* "0.1.0", of the library that is linked. */
LAHAR_API const char *lahar_version(void);

#ifdef __cplusplus
}
#endif
#endif
