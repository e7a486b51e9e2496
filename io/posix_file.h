/* Files, directories and the clock by plain system calls: what the io_uring and
 * the pwrite backend have in common. Only their queues differ. */
#ifndef LAHAR_IO_POSIX_FILE_H
#define LAHAR_IO_POSIX_FILE_H

#include "io/io.h"

/* An open file of either backend. */
struct lahar_io_file {
    int descriptor;
    bool is_direct; /* opened past the page cache */
    char path[];    /* as given to open, for messages */
};

/* First member of either backend. */
struct lahar_posix_io {
    struct lahar_io base;
    const lahar_allocator *allocator;
};

/* Fills in every operation but those of queues and destroy. */
void lahar_posix_file_ops(struct lahar_io_ops *ops);

/* The monotonic clock without an io at hand. */
uint64_t lahar_posix_monotonic_ns(void);

#endif
