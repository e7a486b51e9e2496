/* Filling lahar_error. Messages are formatted into the caller's own struct and
 * cut off there; nothing is allocated. */
#include "io/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = {
    [LAHAR_OK] = "ok",
    [LAHAR_INVALID] = "invalid",
    [LAHAR_NOT_FOUND] = "not found",
    [LAHAR_EXISTS] = "exists",
    [LAHAR_IO] = "io",
    [LAHAR_CORRUPT] = "corrupt",
    [LAHAR_UNSUPPORTED] = "unsupported",
    [LAHAR_NO_SPACE] = "no space",
    [LAHAR_NO_MEMORY] = "no memory",
    [LAHAR_BUSY] = "busy",
    [LAHAR_LOCKED] = "locked",
    [LAHAR_TOO_BIG] = "too big",
    [LAHAR_CANCELLED] = "cancelled",
    [LAHAR_TIMEOUT] = "timeout",
    [LAHAR_POISONED] = "poisoned",
    [LAHAR_READ_ONLY] = "read only",
    [LAHAR_NOT_A_STORE] = "not a store",
    [LAHAR_CLOSED] = "closed",
    [LAHAR_INTERNAL] = "internal",
    [LAHAR_DENIED] = "denied",
};

const char *lahar_status_name(lahar_status status)
{
    const size_t index = (size_t)status;
    if (index >= sizeof status_names / sizeof *status_names) {
        return "unknown";
    }
    return status_names[index];
}

static bool takes_failure(const lahar_error *error)
{
    return error != NULL && error->status == LAHAR_OK;
}

/* Starts a failure in error and writes the formatted part of its message. */
static void fill(lahar_error *error, lahar_status status, int sys_errno, const char *format,
                 va_list arguments) __attribute__((format(printf, 4, 0)));

static void fill(lahar_error *error, lahar_status status, int sys_errno, const char *format,
                 va_list arguments)
{
    error->status = status;
    error->sys_errno = sys_errno;
    if (vsnprintf(error->message, sizeof error->message, format, arguments) < 0) {
        error->message[0] = '\0';
    }
}

lahar_status lahar_fail(lahar_error *error, lahar_status status, const char *format, ...)
{
    if (takes_failure(error)) {
        va_list arguments;
        va_start(arguments, format);
        fill(error, status, 0, format, arguments);
        va_end(arguments);
    }
    return status;
}

static lahar_status status_of_errno(int sys_errno)
{
    switch (sys_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return LAHAR_NO_SPACE;
    case ENOMEM:
        return LAHAR_NO_MEMORY;
    case ENOENT:
        return LAHAR_NOT_FOUND;
    case EEXIST:
        return LAHAR_EXISTS;
    default:
        return LAHAR_IO;
    }
}

lahar_status lahar_fail_errno(lahar_error *error, int sys_errno, const char *format, ...)
{
    const lahar_status status = status_of_errno(sys_errno);
    if (takes_failure(error)) {
        va_list arguments;
        va_start(arguments, format);
        fill(error, status, sys_errno, format, arguments);
        va_end(arguments);
        char text[96];
        const char *reason = strerror_r(sys_errno, text, sizeof text);
        const size_t used = strlen(error->message);
        (void)snprintf(error->message + used, sizeof error->message - used, ": %s", reason);
    }
    return status;
}

void lahar_error_context(lahar_error *error, const char *format, ...)
{
    if (error == NULL || error->status == LAHAR_OK) {
        return;
    }
    char prefix[LAHAR_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    if (written < 0) {
        return;
    }
    /* Both parts keep a share when they do not fit: the prefix at most half. */
    size_t prefix_size = strlen(prefix);
    if (prefix_size > sizeof error->message / 2) {
        prefix_size = sizeof error->message / 2;
    }
    const size_t head_size = prefix_size + 2;
    size_t rest_size = strlen(error->message);
    if (rest_size > sizeof error->message - 1 - head_size) {
        rest_size = sizeof error->message - 1 - head_size;
    }
    memmove(error->message + head_size, error->message, rest_size);
    memcpy(error->message, prefix, prefix_size);
    memcpy(error->message + prefix_size, ": ", 2);
    error->message[head_size + rest_size] = '\0';
}

void lahar_error_clear(lahar_error *error)
{
    if (error != NULL) {
        *error = (lahar_error){.status = LAHAR_OK};
    }
}

void lahar_assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "lahar: %s:%d: broken invariant: %s\n", file, line, condition);
    abort();
}
