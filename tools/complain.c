#include "tools/complain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *program_name = "lahar";

void complain_as(const char *program)
{
    program_name = program;
}

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    flockfile(stderr);
    (void)fprintf(stderr, "%s: ", program_name);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    funlockfile(stderr);
    va_end(arguments);
}

enum exit_status exit_status_of(lahar_status status)
{
    switch (status) {
    case LAHAR_OK:
        return EXIT_STATUS_DONE;
    case LAHAR_NOT_FOUND:
    case LAHAR_EXISTS:
    case LAHAR_TOO_BIG:
    case LAHAR_DENIED:
        return EXIT_STATUS_NOTHING;
    case LAHAR_INVALID:
        return EXIT_STATUS_USAGE;
    case LAHAR_CORRUPT:
        return EXIT_STATUS_CORRUPT;
    case LAHAR_BUSY:
    case LAHAR_LOCKED:
    case LAHAR_TIMEOUT:
        return EXIT_STATUS_BUSY;
    case LAHAR_CANCELLED:
        return EXIT_STATUS_INTERRUPTED;
    case LAHAR_IO:
    case LAHAR_UNSUPPORTED:
    case LAHAR_NO_SPACE:
    case LAHAR_NO_MEMORY:
    case LAHAR_POISONED:
    case LAHAR_READ_ONLY:
    case LAHAR_NOT_A_STORE:
    case LAHAR_CLOSED:
    case LAHAR_INTERNAL:
    default:
        return EXIT_STATUS_IO;
    }
}

enum exit_status complain_of(const lahar_error *error)
{
    if (error->status != LAHAR_CANCELLED) {
        complain("%s",
                 error->message[0] == '\0' ? lahar_status_name(error->status) : error->message);
    }
    return exit_status_of(error->status);
}

enum exit_status complain_of_usage(const char *verb, const char *what)
{
    if (what != NULL) {
        complain("%s: %s", verb, what);
    }
    (void)fprintf(stderr, "Try '%s %s --help'.\n", program_name, verb);
    return EXIT_STATUS_USAGE;
}

enum exit_status finish_output(enum exit_status status)
{
    static bool is_said;
    const int write_errno = errno; /* of the write that ferror() is about, if any */
    errno = 0;
    if (status == EXIT_STATUS_PIPE || (fflush(stdout) == 0 && ferror(stdout) == 0)) {
        return status;
    }
    const int why = errno == 0 ? write_errno : errno;
    if (why == EPIPE) {
        return EXIT_STATUS_PIPE;
    }
    if (!is_said) {
        complain("standard output: %s", why == 0 ? "could not be written" : strerror(why));
        is_said = true;
    }
    return EXIT_STATUS_IO;
}
