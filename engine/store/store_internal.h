/* Opening a store with what only tests and the store itself choose. */
#ifndef LAHAR_STORE_STORE_INTERNAL_H
#define LAHAR_STORE_STORE_INTERNAL_H

#include "io/io.h"
#include "lahar/store.h"

/* Background work, one non-blocking step each. */
enum lahar_store_work {
    LAHAR_WORK_WRITER = 0, /* + journal number: 0 .. 15 */
    LAHAR_WORK_ROLLOVER = 16,
    LAHAR_WORK_CEILING = 17,
    LAHAR_WORK_COUNT = 18
};

/* io is used, not owned; NULL: by options->backend. With start_threads false no
 * thread is started: the caller drives lahar_store_step, and calls that would wait run
 * the steps themselves, in order of work number, until they are done. */
lahar_status lahar_store_open_with(const char *directory, const lahar_options *options,
                                   struct lahar_io *io, bool start_threads, uint64_t deadline_ns,
                                   lahar_store **store_out, lahar_error *error);
/* Returns whether the step did anything. */
bool lahar_store_step(lahar_store *store, uint32_t work);
/* Frees the store without writing anything more, as after a crash. */
void lahar_store_abandon(lahar_store *store);

#endif
