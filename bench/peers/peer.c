#include "bench/peers/peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BUFFER_SIZE = 4 << 20
};

void peer_fail(const char *what)
{
    (void)fprintf(stderr, "peer: %s\n", what);
    exit(1);
}

static uint64_t clock_of(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t peer_clock_ns(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

uint64_t peer_cpu_ns(void)
{
    return clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

void peer_reader_open(struct peer_reader *reader, const char *path)
{
    (void)pthread_mutex_init(&reader->mutex, NULL);
    reader->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    reader->buffer = malloc(BUFFER_SIZE);
    reader->begin = 0;
    reader->end = 0;
    if (reader->descriptor < 0 || reader->buffer == NULL) {
        peer_fail(path);
    }
}

void peer_reader_close(struct peer_reader *reader)
{
    (void)close(reader->descriptor);
    free(reader->buffer);
    (void)pthread_mutex_destroy(&reader->mutex);
}

/* The size of the frame at the beginning of the buffer, whole there; 0 at the end of the file. */
static size_t next_frame(struct peer_reader *reader)
{
    uint32_t payload = 0;
    for (;;) {
        const size_t held = reader->end - reader->begin;
        if (held >= sizeof payload) {
            memcpy(&payload, reader->buffer + reader->begin, sizeof payload);
            if (held - sizeof payload >= payload) {
                return sizeof payload + payload;
            }
        }
        memmove(reader->buffer, reader->buffer + reader->begin, held);
        reader->begin = 0;
        reader->end = held;
        const ssize_t got = read(reader->descriptor, reader->buffer + held, BUFFER_SIZE - held);
        if (got < 0) {
            peer_fail("reading frames failed");
        }
        if (got == 0) {
            return 0;
        }
        reader->end += (size_t)got;
    }
}

size_t peer_reader_take(struct peer_reader *reader, uint64_t count, void *out, size_t size)
{
    size_t taken = 0;
    (void)pthread_mutex_lock(&reader->mutex);
    for (uint64_t i = 0; i < count; i++) {
        const size_t frame = next_frame(reader);
        if (frame == 0 || frame > size - taken) {
            break;
        }
        memcpy((uint8_t *)out + taken, reader->buffer + reader->begin, frame);
        reader->begin += frame;
        taken += frame;
    }
    (void)pthread_mutex_unlock(&reader->mutex);
    return taken;
}

/* Bytes of the files of one directory; the peers make none below it. */
static uint64_t disk_bytes(const char *path)
{
    uint64_t bytes = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry = directory == NULL ? NULL : readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        struct stat status;
        if (fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode)) {
            bytes += (uint64_t)status.st_size;
        }
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    return bytes;
}

void peer_report(const char *name, const struct peer_result *result, const char *directory)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)printf("{\"name\": \"%s\", \"events\": %" PRIu64 ", \"acknowledged_ns\": %" PRIu64
                 ", \"finished_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64
                 ", \"resident_peak_bytes\": %" PRIu64 ", \"disk_bytes\": %" PRIu64 "}\n",
                 name, result->events, result->acknowledged_ns, result->finished_ns, result->cpu_ns,
                 (uint64_t)usage.ru_maxrss << 10, disk_bytes(directory));
}
