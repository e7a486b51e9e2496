/* What threads wait for: the walk of another thread, and nothing once the journals are poisoned. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "engine/journal/journals.h"
#include "journal_fixture.h"
#include "scratch.h"

enum {
    ROW = 300
};

static void sleep_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&pause, NULL);
}

struct visit {
    struct fixture *f;
    uint64_t newest_id;
    lahar_status status;
};

static lahar_status note_newest(void *context, const struct lahar_journal_offset *offset)
{
    struct visit *visit = context;
    visit->newest_id = offset->id;
    return LAHAR_OK;
}

static void *run_visit(void *context)
{
    struct visit *visit = context;
    visit->status =
        lahar_journals_offsets(visit->f->journals, 1, UINT64_MAX, note_newest, visit, NULL);
    return NULL;
}

Test(journal_waits, find_the_offsets_of_every_batch_whose_append_returned)
{
    struct fixture f;
    struct lahar_buffer offsets;
    fixture_create(&f, 1);
    fixture_open(&f, NULL);
    lahar_buffer_init(&offsets, &lahar_allocator_libc);
    const struct lahar_offset_record record = {{"src", 3}, {"key", 3}, {"value", 5}};
    lahar_offset_record_put(&offsets, &record);
    for (uint64_t id = 1; id <= 5; id++) {
        cr_assert_eq(lahar_journals_append(f.journals, 0, NULL, 0, 0, offsets.data, offsets.size,
                                           LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, NULL, NULL),
                     LAHAR_OK);
        /* Another thread has the catalog, and does not see what has come meanwhile. */
        pthread_t thread;
        struct visit visit = {.f = &f};
        (void)pthread_mutex_lock(&f.journals->catalog.mutex);
        cr_assert_eq(pthread_create(&thread, NULL, run_visit, &visit), 0);
        sleep_ms(50);
        (void)pthread_mutex_unlock(&f.journals->catalog.mutex);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_assert_eq(visit.status, LAHAR_OK);
        cr_assert_eq(visit.newest_id, id);
    }
    lahar_buffer_deinit(&offsets);
    fixture_destroy(&f);
}

Test(journal_waits, end_for_the_writers_of_poisoned_journals)
{
    static const enum lahar_io_op_kind kinds[] = {LAHAR_IO_OP_WRITE, LAHAR_IO_OP_SYNC};
    char scratch[SCRATCH_PATH_SIZE];
    scratch_create(scratch);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct fixture f;
        fixture_create(&f, 2);
        struct lahar_io *io = NULL;
        cr_assert_eq(lahar_io_pwrite_create(&lahar_allocator_libc, &io, NULL), LAHAR_OK);
        f.options.io = io;
        f.options.directory = scratch;
        f.options.start_threads = true;
        f.options.session = i + 1;
        fixture_open(&f, NULL);
        uint64_t id = 0;
        cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_INTERVAL, LAHAR_NO_WAIT, &id),
                     LAHAR_OK);
        if (kinds[i] == LAHAR_IO_OP_SYNC) {
            sleep_ms(20); /* it is written by now, and a sync is due later */
        }
        lahar_error failure = {.status = LAHAR_IO, .sys_errno = EIO, .message = "made up"};
        lahar_journals_poison(f.journals, &failure);
        sleep_ms(200); /* all that was due is overdue */
        struct lahar_journals_stat before;
        struct lahar_journals_stat after;
        lahar_journals_stat_get(f.journals, &before);
        sleep_ms(300);
        lahar_journals_stat_get(f.journals, &after);
        cr_assert_lt(after.sleeps - before.sleeps, 20, "writers woke %" PRIu64 " times for nothing",
                     after.sleeps - before.sleeps);
        struct timespec start;
        struct timespec end;
        (void)clock_gettime(CLOCK_MONOTONIC, &start);
        cr_assert_eq(lahar_journals_stop(f.journals, LAHAR_WAIT_FOREVER, NULL), LAHAR_POISONED);
        (void)clock_gettime(CLOCK_MONOTONIC, &end);
        cr_assert_lt(end.tv_sec - start.tv_sec, 5, "stopping must wake them");
        lahar_journals_destroy(f.journals);
        f.journals = NULL;
        io->ops->destroy(io);
        fixture_destroy(&f);
    }
    scratch_remove(scratch);
}
