/* Status codes and error detail.
 *
 * Every fallible function returns a lahar_status and takes, as its last
 * argument, an optional lahar_error owned by the caller (NULL is allowed).
 * Nothing is kept in globals or thread-local storage. */
#ifndef LAHAR_STATUS_H
#define LAHAR_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the functions that the shared library exports. */
#if defined(__GNUC__)
#define LAHAR_API       __attribute__((visibility("default")))
#define LAHAR_NODISCARD __attribute__((warn_unused_result))
#else
#define LAHAR_API
#define LAHAR_NODISCARD
#endif

/* Values are pinned: codes are only ever appended. */
typedef enum lahar_status {
    LAHAR_OK = 0,
    LAHAR_INVALID = 1,   /* an argument or a query is wrong; error.offset is the byte of a query */
    LAHAR_NOT_FOUND = 2, /* no such event, stream or file; also: a cursor has ended */
    LAHAR_EXISTS = 3,    /* the name is taken */
    LAHAR_IO = 4,        /* the device or file system failed; error.sys_errno says how */
    LAHAR_CORRUPT = 5,   /* stored bytes fail their checksum or their structure */
    LAHAR_UNSUPPORTED = 6,  /* written by a newer version, or needs a feature that is absent */
    LAHAR_NO_SPACE = 7,     /* ENOSPC or EDQUOT; writing resumes when space returns */
    LAHAR_NO_MEMORY = 8,    /* the allocator refused */
    LAHAR_BUSY = 9,         /* a limit is reached for the moment; the same call may succeed later */
    LAHAR_LOCKED = 10,      /* another process has the store open for writing */
    LAHAR_TOO_BIG = 11,     /* an event or a batch is above its fixed limit */
    LAHAR_CANCELLED = 12,   /* stopped by lahar_query_cancel or by closing */
    LAHAR_TIMEOUT = 13,     /* the deadline passed first */
    LAHAR_POISONED = 14,    /* an earlier write failed for good: reads go on, writes are refused */
    LAHAR_READ_ONLY = 15,   /* a writing call on a store opened for reading */
    LAHAR_NOT_A_STORE = 16, /* the directory exists and holds something else */
    LAHAR_CLOSED = 17,      /* the store is closing */
    LAHAR_INTERNAL = 18,    /* a broken invariant inside the library; please report it */
    LAHAR_DENIED = 19       /* the host's authorization hides the event */
} lahar_status;

enum {
    LAHAR_ERROR_MESSAGE_SIZE = 480
};

/* Filled at the place of failure. The message is one line without a newline:
 * what was tried, on which object, what was expected and found. */
typedef struct lahar_error {
    lahar_status status;
    int sys_errno;   /* errno of the failing system call, else 0 */
    uint64_t offset; /* byte offset in the query, file or input, where one applies */
    char message[LAHAR_ERROR_MESSAGE_SIZE];
} lahar_error;

/* The constant's name without its prefix in lower case, "no space" for
 * LAHAR_NO_SPACE; never NULL. Any thread, does not block. */
LAHAR_API const char *lahar_status_name(lahar_status status);

#ifdef __cplusplus
}
#endif
#endif
