/* inotify; see watch.h. A watch is added through the descriptor of the open directory, so
 * that what is watched is what was listed. */
#include "io/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "io/base/error.h"

enum {
    BUFFER_SIZE = 16384,
    NAME_MASK = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO,
    SELF_MASK = IN_MOVE_SELF | IN_DELETE_SELF,
    DATA_MASK = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB
};

struct lahar_watch {
    const lahar_allocator *allocator;
    int inotify;
    int wake;
    /* The kernel writes whole events, which want this alignment. */
    _Alignas(struct inotify_event) uint8_t buffer[BUFFER_SIZE];
};

lahar_status lahar_watch_create(const lahar_allocator *allocator, struct lahar_watch **watch_out,
                                lahar_error *error)
{
    struct lahar_watch *watch = lahar_allocate(allocator, sizeof *watch);
    *watch_out = NULL;
    if (watch == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a watch");
    }
    watch->allocator = allocator;
    watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    const int failure = errno;
    watch->wake = watch->inotify < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (watch->inotify < 0 || watch->wake < 0) {
        const lahar_status status =
            lahar_fail_errno(error, watch->inotify < 0 ? failure : errno, "starting inotify");
        lahar_watch_destroy(watch);
        return status;
    }
    *watch_out = watch;
    return LAHAR_OK;
}

void lahar_watch_destroy(struct lahar_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    if (watch->inotify >= 0) {
        (void)close(watch->inotify);
    }
    if (watch->wake >= 0) {
        (void)close(watch->wake);
    }
    lahar_release(watch->allocator, watch);
}

lahar_status lahar_watch_add(struct lahar_watch *watch, int descriptor, int *directory_out,
                             lahar_error *error)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const int directory =
        inotify_add_watch(watch->inotify, path, NAME_MASK | SELF_MASK | DATA_MASK | IN_ONLYDIR);
    if (directory < 0) {
        return lahar_fail_errno(error, errno, "watching a directory");
    }
    *directory_out = directory;
    return LAHAR_OK;
}

static void hand_out(const struct inotify_event *event, lahar_watch_visitor visit, void *context)
{
    const char *name = event->len == 0 ? NULL : event->name;
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        visit(context, -1, NULL, LAHAR_WATCH_LOST);
    } else if ((event->mask & (SELF_MASK | IN_IGNORED | IN_UNMOUNT)) != 0) {
        visit(context, event->wd, NULL, LAHAR_WATCH_LOST);
    } else if ((event->mask & NAME_MASK) != 0) {
        visit(context, event->wd, name, LAHAR_WATCH_NAMES);
    } else {
        visit(context, event->wd, name, LAHAR_WATCH_DATA);
    }
}

void lahar_watch_wait(struct lahar_watch *watch, int wait_ms)
{
    struct pollfd polled[2] = {{.fd = watch->inotify, .events = POLLIN},
                               {.fd = watch->wake, .events = POLLIN}};
    uint64_t count;
    (void)poll(polled, 2, wait_ms);
    while (read(watch->wake, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

void lahar_watch_read(struct lahar_watch *watch, lahar_watch_visitor visit, void *context)
{
    for (;;) {
        const ssize_t size = read(watch->inotify, watch->buffer, sizeof watch->buffer);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size <= 0) {
            return;
        }
        for (size_t at = 0; at + sizeof(struct inotify_event) <= (size_t)size;) {
            const void *place = watch->buffer + at;
            const struct inotify_event *event = place;
            hand_out(event, visit, context);
            at += sizeof *event + event->len;
        }
    }
}

void lahar_watch_wake(struct lahar_watch *watch)
{
    const uint64_t one = 1;
    while (write(watch->wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
}
