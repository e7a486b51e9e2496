/* Filling a caller's lahar_error at the place of failure. */
#ifndef LAHAR_BASE_ERROR_H
#define LAHAR_BASE_ERROR_H

#include "lahar/status.h"

/* Fills error unless it is NULL or already holds a failure (the first error
 * wins during clean-up) and returns status. The message starts in lower case and
 * has no newline. */
lahar_status lahar_fail(lahar_error *error, lahar_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: appends the text of sys_errno and maps
 * ENOSPC, EDQUOT, EFBIG to LAHAR_NO_SPACE, ENOMEM to LAHAR_NO_MEMORY, ENOENT to
 * LAHAR_NOT_FOUND, EEXIST to LAHAR_EXISTS, EROFS/EACCES stay LAHAR_IO. */
lahar_status lahar_fail_errno(lahar_error *error, int sys_errno, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message of a failure that is passed on. */
void lahar_error_context(lahar_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void lahar_error_clear(lahar_error *error); /* NULL is allowed */

/* Stays on in release builds: for conditions that only a mistake in this
 * library can break, never for what comes from disk, kernel or callers. */
#define LAHAR_ASSERT(condition)                                                                    \
    ((condition) ? (void)0 : lahar_assert_failed(#condition, __FILE__, __LINE__))
_Noreturn void lahar_assert_failed(const char *condition, const char *file, int line);

/* Passes a failure on from a function that has nothing to release. */
#define LAHAR_TRY(expression)                                                                      \
    do {                                                                                           \
        const lahar_status lahar_try_status = (expression);                                        \
        if (lahar_try_status != LAHAR_OK) {                                                        \
            return lahar_try_status;                                                               \
        }                                                                                          \
    } while (0)

#endif
