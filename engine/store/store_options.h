/* Checking the options of an opening and filling in what they leave open. */
#ifndef LAHAR_STORE_STORE_OPTIONS_H
#define LAHAR_STORE_STORE_OPTIONS_H

#include "io/io.h"
#include "lahar/store.h"

enum {
    LAHAR_MEMORY_LIMIT_MIN = 32 * 1024 * 1024
};

/* *resolved_out is the caller's options (NULL: the defaults), checked, without
 * zeroes; only the memory limit may still be 0. LAHAR_INVALID names the option. */
lahar_status lahar_options_resolve(const lahar_options *options, lahar_options *resolved_out,
                                   lahar_error *error);
/* The default memory limit: 1 GiB, or 3/4 of what the cgroup grants if that is less. */
uint64_t lahar_options_default_memory(struct lahar_io *io);

#endif
