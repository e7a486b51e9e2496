/* The exit statuses of the tools, as the man pages give them. */
#ifndef LAHAR_TOOLS_EXIT_STATUS_H
#define LAHAR_TOOLS_EXIT_STATUS_H

enum exit_status {
    EXIT_STATUS_DONE = 0,
    EXIT_STATUS_NOTHING = 1, /* nothing found, a check failed, malformed input */
    EXIT_STATUS_USAGE = 2,
    EXIT_STATUS_IO = 3, /* the store or a file cannot be read or written */
    EXIT_STATUS_CORRUPT = 4,
    EXIT_STATUS_BUSY = 5,          /* busy or locked */
    EXIT_STATUS_INTERRUPTED = 130, /* as shells count SIGINT */
    EXIT_STATUS_PIPE = 141         /* ... and SIGPIPE */
};

#endif
