/* Journals over a simulated disk, stepped by the test, with rows that can be told apart.
 *
 * A row of id n and size s is n as eight bytes followed by s - 8 bytes of (n * 31) mod 251: the
 * test knows what must be found without asking the code. */
#ifndef LAHAR_TESTS_JOURNAL_FIXTURE_H
#define LAHAR_TESTS_JOURNAL_FIXTURE_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/journal/journal.h"
#include "engine/store/offset_record.h"
#include "io/base/buffer.h"
#include "io/sim_disk.h"

#define FIXTURE_DIRECTORY "/journal"

struct fixture {
    struct lahar_sim_disk *disk;
    struct lahar_io *io;
    struct lahar_journals *journals;
    struct lahar_journals_options options;
    lahar_error error;
};

static inline void fixture_create(struct fixture *f, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    cr_assert_eq(lahar_sim_disk_create(&lahar_allocator_libc, seed, &f->disk, &f->error), LAHAR_OK,
                 "%s", f->error.message);
    cr_assert_eq(lahar_sim_disk_io(f->disk, &f->io, &f->error), LAHAR_OK);
    cr_assert_eq(f->io->ops->make_directory(f->io, FIXTURE_DIRECTORY, &f->error), LAHAR_OK);
    cr_assert_eq(f->io->ops->sync_directory(f->io, "/", &f->error), LAHAR_OK);
    f->options = (struct lahar_journals_options){
        .io = f->io,
        .directory = FIXTURE_DIRECTORY,
        .allocator = &lahar_allocator_libc,
        .store_id = 0x1122334455667788,
        .session = 1,
        .next_id = 1,
        .journal_count = 4,
        .memory_bytes = 16 << 20,
        .durability = LAHAR_DURABILITY_INTERVAL,
        .sync_interval_ms = 100,
        .start_threads = false,
    };
}

static inline void fixture_open(struct fixture *f, struct lahar_journal_recovery *recovery)
{
    memset(&f->error, 0, sizeof f->error);
    cr_assert_eq(lahar_journals_open(&f->options, recovery, &f->journals, &f->error), LAHAR_OK,
                 "%s", f->error.message);
}

static inline void fixture_destroy(struct fixture *f)
{
    lahar_journals_destroy(f->journals);
    f->io->ops->destroy(f->io);
    lahar_sim_disk_destroy(f->disk);
}

/* The process or the machine dies and comes back. */
static inline void fixture_crash(struct fixture *f, uint64_t seed, bool power_loss)
{
    lahar_journals_destroy(f->journals);
    f->journals = NULL;
    f->io->ops->destroy(f->io);
    lahar_sim_disk_restart(f->disk, seed, power_loss);
    lahar_sim_disk_crash_at(f->disk, UINT64_MAX);
    cr_assert_eq(lahar_sim_disk_io(f->disk, &f->io, &f->error), LAHAR_OK);
    f->options.io = f->io;
}

static inline void fixture_row(uint8_t *row, size_t size, uint64_t id)
{
    memset(row, (int)(id * 31 % 251), size);
    memcpy(row, &id, 8);
}

static inline bool fixture_row_is(const uint8_t *row, size_t size, uint64_t id)
{
    uint64_t found;
    memcpy(&found, row, 8);
    for (size_t i = 8; i < size; i++) {
        if (row[i] != id * 31 % 251) {
            return false;
        }
    }
    return found == id;
}

/* Appends one event of size bytes that expects to get the next id. */
static inline lahar_status fixture_append(struct fixture *f, uint32_t producer, size_t size,
                                          lahar_durability durability, uint64_t deadline_ns,
                                          uint64_t *id_out)
{
    uint8_t *row = malloc(size);
    cr_assert_not_null(row);
    fixture_row(row, size, lahar_journals_next_id(f->journals));
    memset(&f->error, 0, sizeof f->error);
    const lahar_status status = lahar_journals_append(f->journals, producer, row, size, 1, NULL, 0,
                                                      durability, deadline_ns, id_out, &f->error);
    free(row);
    return status;
}

static inline void fixture_step_all(struct fixture *f)
{
    bool has_done = true;
    for (int i = 0; i < 100000 && has_done; i++) {
        has_done = false;
        for (uint32_t j = 0; j < 4; j++) {
            has_done |= lahar_journals_step(f->journals, j);
        }
    }
}

static inline lahar_status fixture_recover(struct fixture *f,
                                           const struct lahar_journal_session *sessions,
                                           size_t count, uint64_t rolled_id,
                                           struct lahar_journal_recovery *recovery)
{
    memset(recovery, 0, sizeof *recovery);
    memset(&f->error, 0, sizeof f->error);
    return lahar_journal_recover(f->io, FIXTURE_DIRECTORY, f->options.store_id, sessions, count,
                                 rolled_id, false, &lahar_allocator_libc, recovery, &f->error);
}

/* Checks that the batches are single events with consecutive ids and the rows of those. */
static inline void fixture_check_rows(const struct lahar_resident_batch *batches, size_t count,
                                      uint64_t first_id)
{
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(batches[i].first_id, first_id + i, "batch %zu has id %" PRIu64, i,
                     batches[i].first_id);
        cr_assert_eq(batches[i].event_count, 1);
        cr_assert(fixture_row_is(batches[i].rows, batches[i].rows_size, first_id + i),
                  "the row of id %" PRIu64 " is another", first_id + i);
        cr_assert(i == 0 || batches[i].arrival_ns >= batches[i - 1].arrival_ns);
    }
}

#endif
