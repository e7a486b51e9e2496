/* What every peer written in C needs: frames from a file, clocks, one line of results. A peer is
 * a program that measures and ends; what fails ends it. */
#ifndef LAHAR_BENCH_PEERS_PEER_H
#define LAHAR_BENCH_PEERS_PEER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

_Noreturn void peer_fail(const char *what);

uint64_t peer_clock_ns(void);
uint64_t peer_cpu_ns(void); /* of the process */

/* Frames of a file, read in turns by any number of threads. */
struct peer_reader {
    pthread_mutex_t mutex; /* guards everything below */
    int descriptor;
    uint8_t *buffer;
    size_t begin;
    size_t end;
};

void peer_reader_open(struct peer_reader *reader, const char *path);
void peer_reader_close(struct peer_reader *reader);

/* Copies whole frames, at most count and at most size bytes of them, and returns how many bytes;
 * 0 at the end of the file. */
size_t peer_reader_take(struct peer_reader *reader, uint64_t count, void *out, size_t size);

struct peer_result {
    uint64_t events;
    uint64_t acknowledged_ns; /* from the start until the last batch was taken */
    uint64_t finished_ns;     /* ... and until everything was flushed and closed */
    uint64_t cpu_ns;
};

/* One JSON line; directory: whose files count as disk use. */
void peer_report(const char *name, const struct peer_result *result, const char *directory);

#endif
