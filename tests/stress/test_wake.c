/* A wake is never lost: one owner waits on its queue for long, and whatever producers publish
 * before queue_wake is seen within the wait that it ends. Each round's wait would last a
 * minute if its wake were lost; the test counts such waits as failures and gives up.
 * Runs over both real backends; under ThreadSanitizer the ring's
 * own memory is invisible, so io_uring is left out there. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "io/io.h"

enum {
    PRODUCER_COUNT = 3,
    ITEM_COUNT = 20000 /* of each producer */
};

static const uint64_t wait_ns = UINT64_C(60000000000);
static const uint64_t patience_ns = UINT64_C(5000000000);

struct board {
    struct lahar_io *io;
    struct lahar_io_queue *queue;
    atomic_uint published; /* items, by all producers; paired with the owner's load */
    atomic_uint turn;      /* items that the owner has seen */
};

struct producer {
    pthread_t thread;
    struct board *board;
    uint32_t seed;
};

/* Publishes items one by one; every now and then lets the owner fall asleep first. */
static void *produce(void *context)
{
    struct producer *producer = context;
    struct board *board = producer->board;
    uint32_t state = producer->seed;
    for (unsigned i = 0; i < ITEM_COUNT; i++) {
        (void)atomic_fetch_add_explicit(&board->published, 1, memory_order_release);
        board->io->ops->queue_wake(board->io, board->queue);
        state = state * 1664525 + 1013904223;
        for (uint32_t yields = state >> 28; yields > 12; yields--) {
            (void)sched_yield();
        }
        while ((state >> 24) % 8 == 0 &&
               atomic_load_explicit(&board->turn, memory_order_acquire) <
                   atomic_load_explicit(&board->published, memory_order_acquire)) {
            (void)sched_yield();
            state = state * 1664525 + 1013904223;
        }
    }
    return NULL;
}

/* Returns the number of items seen before a wait took too long. */
static unsigned consume(struct board *board)
{
    struct lahar_io *io = board->io;
    unsigned seen = 0;
    while (seen < PRODUCER_COUNT * ITEM_COUNT) {
        const uint64_t before_ns = io->ops->monotonic_ns(io);
        struct lahar_io_op *done[1];
        (void)io->ops->queue_reap(io, board->queue, done, 1, wait_ns);
        if (io->ops->monotonic_ns(io) - before_ns > patience_ns) {
            break;
        }
        seen = atomic_load_explicit(&board->published, memory_order_acquire);
        atomic_store_explicit(&board->turn, seen, memory_order_release);
    }
    return seen;
}

static bool run(struct lahar_io *io)
{
    struct board board = {.io = io};
    struct producer producers[PRODUCER_COUNT];
    if (io->ops->queue_create(io, 4, &board.queue, NULL) != LAHAR_OK) {
        (void)fprintf(stderr, "%s: no queue\n", io->name);
        return false;
    }
    for (uint32_t i = 0; i < PRODUCER_COUNT; i++) {
        producers[i] = (struct producer){.board = &board, .seed = 17 + i};
        if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]) != 0) {
            (void)fprintf(stderr, "no thread\n");
            return false;
        }
    }
    const unsigned seen = consume(&board);
    atomic_store(&board.turn, UINT32_MAX);
    for (uint32_t i = 0; i < PRODUCER_COUNT; i++) {
        (void)pthread_join(producers[i].thread, NULL);
    }
    io->ops->queue_destroy(io, board.queue);
    (void)printf("%s: %u of %u items seen\n", io->name, seen,
                 (unsigned)(PRODUCER_COUNT * ITEM_COUNT));
    return seen == PRODUCER_COUNT * ITEM_COUNT;
}

int main(void)
{
    unsigned passed = 0;
    unsigned failed = 0;
    unsigned skipped = 0;
    struct lahar_io *io = NULL;
    lahar_error error = {0};
    if (lahar_io_pwrite_create(&lahar_allocator_libc, &io, &error) == LAHAR_OK && run(io)) {
        passed++;
    } else {
        failed++;
    }
    if (io != NULL) {
        io->ops->destroy(io);
    }
#if defined(__SANITIZE_THREAD__)
    (void)printf("io_uring: skipped, its memory is invisible to ThreadSanitizer\n");
    skipped++;
#else
    const lahar_status status = lahar_io_uring_create(&lahar_allocator_libc, &io, &error);
    if (status == LAHAR_UNSUPPORTED) {
        (void)printf("io_uring: skipped, %s\n", error.message);
        skipped++;
    } else if (status == LAHAR_OK) {
        *(run(io) ? &passed : &failed) += 1;
        io->ops->destroy(io);
    } else {
        failed++;
    }
#endif
    (void)printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed == 0 ? 0 : 1;
}
