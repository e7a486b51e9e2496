/* Watching directories for changes: a wrapper of inotify.
 *
 * What it reports is a hint that something is worth another look and nothing more:
 * events may be late, doubled, or lost. When the kernel's queue has run over, or a
 * watched directory has gone, the caller is told to look at everything. One thread at a
 * time, except for lahar_watch_wake. */
#ifndef LAHAR_IO_WATCH_H
#define LAHAR_IO_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/status.h"

struct lahar_watch;

enum lahar_watch_change {
    LAHAR_WATCH_DATA = 1,  /* the file of that name has grown or changed */
    LAHAR_WATCH_NAMES = 2, /* names in the directory have come, gone or moved */
    LAHAR_WATCH_LOST = 3   /* events were lost, or the directory is watched no longer */
};

/* directory: as returned by add; -1 with LOST for all. name may be NULL. */
typedef void (*lahar_watch_visitor)(void *context, int directory, const char *name,
                                    enum lahar_watch_change change);

/* LAHAR_UNSUPPORTED or LAHAR_IO: there is no inotify to be had; poll instead. */
lahar_status lahar_watch_create(const lahar_allocator *allocator, struct lahar_watch **watch_out,
                                lahar_error *error);
void lahar_watch_destroy(struct lahar_watch *watch); /* NULL is allowed */

/* Watches an open directory; the same number comes back for the same directory.
 * LAHAR_NO_SPACE: the limit of watches is reached. */
lahar_status lahar_watch_add(struct lahar_watch *watch, int descriptor, int *directory_out,
                             lahar_error *error);

/* Waits up to wait_ms for something to happen, or for a wake. */
void lahar_watch_wait(struct lahar_watch *watch, int wait_ms);
/* Hands out what has happened. Does not wait. */
void lahar_watch_read(struct lahar_watch *watch, lahar_watch_visitor visit, void *context);
/* Any thread: ends a wait, or the next one. */
void lahar_watch_wake(struct lahar_watch *watch);

#endif
