/* Files that cannot be made, for reasons that are the disk's and for others. */
#include <errno.h>
#include <stdio.h>

#include "journal_fixture.h"

enum {
    ROW = 300
};

/* What the calls on journal files fail with; 0: they do not. */
static int open_errno;
static int names_errno;
static uint64_t failure_count;
static const struct lahar_io_ops *real_ops;
static unsigned logged_count;
static unsigned fill_count;
static unsigned reserve_count;

static lahar_status refuse(int sys_errno, lahar_error *error)
{
    const lahar_status status = sys_errno == ENOENT   ? LAHAR_NOT_FOUND
                                : sys_errno == EEXIST ? LAHAR_EXISTS
                                                      : LAHAR_IO;
    failure_count++;
    if (error != NULL && error->status == LAHAR_OK) {
        *error = (lahar_error){.status = status, .sys_errno = sys_errno, .message = "refused"};
    }
    return status;
}

static lahar_status open_or_refuse(struct lahar_io *io, const char *path, unsigned flags,
                                   struct lahar_io_file **file_out, lahar_error *error)
{
    if (open_errno != 0) {
        *file_out = NULL;
        return refuse(open_errno, error);
    }
    return real_ops->open(io, path, flags, file_out, error);
}

static lahar_status sync_or_refuse(struct lahar_io *io, const char *path, lahar_error *error)
{
    return names_errno != 0 ? refuse(names_errno, error)
                            : real_ops->sync_directory(io, path, error);
}

static lahar_status fill_and_count(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                                   lahar_error *error)
{
    fill_count++;
    return real_ops->fill(io, file, size, error);
}

static lahar_status reserve_and_count(struct lahar_io *io, struct lahar_io_file *file,
                                      uint64_t size, lahar_error *error)
{
    reserve_count++;
    return real_ops->reserve(io, file, size, error);
}

static void count_lines(void *context, lahar_log_level level, const char *line)
{
    (void)context;
    (void)level;
    logged_count += strstr(line, "no journal file") != NULL;
}

static void set_up_as(struct fixture *f, struct lahar_io_ops *ops, uint64_t seed,
                      lahar_durability durability)
{
    fixture_create(f, seed);
    open_errno = 0;
    names_errno = 0;
    failure_count = 0;
    logged_count = 0;
    fill_count = 0;
    reserve_count = 0;
    real_ops = f->io->ops;
    *ops = *real_ops;
    ops->open = open_or_refuse;
    ops->sync_directory = sync_or_refuse;
    ops->fill = fill_and_count;
    ops->reserve = reserve_and_count;
    f->io->ops = ops;
    f->options.memory_bytes = 2 << 20; /* chunks of 64 KiB, 16 a file of 1 MiB */
    f->options.journal_count = 1;
    f->options.log = count_lines;
    f->options.durability = durability;
    fixture_open(f, NULL);
}

static void set_up(struct fixture *f, struct lahar_io_ops *ops, uint64_t seed)
{
    set_up_as(f, ops, seed, LAHAR_DURABILITY_STORE);
}

static void tear_down(struct fixture *f)
{
    f->io->ops = real_ops;
    fixture_destroy(f);
}

/* Appends until there is no room; returns how many went. */
static uint64_t fill(struct fixture *f)
{
    lahar_status status = LAHAR_OK;
    uint64_t count = 0;
    uint64_t id = 0;
    while (count < 20000) {
        status = fixture_append(f, 0, ROW, LAHAR_DURABILITY_NONE, UINT64_C(1000000000), &id);
        if (status != LAHAR_OK) {
            break;
        }
        count++;
    }
    cr_assert_neq(status, LAHAR_OK);
    cr_assert_neq(status, LAHAR_POISONED, "%s", f->error.message);
    return count;
}

/* The refusals end: everything is durable, and appends go on. */
static void recover(struct fixture *f, uint64_t appended)
{
    uint64_t id = 0;
    open_errno = 0;
    names_errno = 0;
    for (int i = 0; i < 3; i++) {
        lahar_sim_disk_advance(f->disk, UINT64_C(200) * 1000000);
        fixture_step_all(f);
    }
    lahar_journals_forget(f->journals, appended / 2);
    cr_assert_eq(fixture_append(f, 0, ROW, LAHAR_DURABILITY_COMMIT, UINT64_C(1000000000), &id),
                 LAHAR_OK, "%s", f->error.message);
    cr_assert_eq(id, appended + 1);
}

Test(journal_files, that_cannot_be_opened_or_named_at_present_hold_appends_back_and_no_more)
{
    static const int numbers[] = {EMFILE, ENFILE, EACCES, EPERM, ENOENT, EEXIST, ENOTDIR, ELOOP};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        for (unsigned is_name = 0; is_name < (i < 2 ? 2U : 1U); is_name++) {
            struct fixture f;
            struct lahar_io_ops ops;
            set_up(&f, &ops, i + 1);
            open_errno = is_name ? 0 : numbers[i];
            names_errno = is_name ? numbers[i] : 0;
            const uint64_t appended = fill(&f);
            cr_assert_gt(appended * ROW, 500000);
            cr_assert_gt(failure_count, 0);
            cr_assert_eq(logged_count, 1, "logged %u times", logged_count);
            cr_assert_eq(lahar_journals_health(f.journals, NULL), LAHAR_OK);
            recover(&f, appended);
            tear_down(&f);
        }
    }
}

Test(journal_files, that_are_spare_stay_so_while_descriptors_are_short)
{
    struct fixture f;
    struct lahar_io_ops ops;
    struct lahar_journal_recovery recovery;
    static const struct lahar_journal_session session = {1, 1, 0};
    uint64_t id = 0;
    set_up(&f, &ops, 20);
    for (int i = 0; i < 5000; i++) {
        cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                     LAHAR_OK);
        lahar_journals_forget(f.journals, id);
    }
    cr_assert_eq(lahar_journals_stop(f.journals, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_journals_destroy(f.journals);
    f.journals = NULL;
    cr_assert_eq(fixture_recover(&f, &session, 1, id + 1, &recovery), LAHAR_OK);
    f.options.session = 2;
    f.options.next_id = id + 1;
    fixture_open(&f, &recovery);
    struct lahar_journals_stat before;
    lahar_journals_stat_get(f.journals, &before);
    open_errno = EMFILE;
    const uint64_t appended = fill(&f);
    struct lahar_journals_stat after;
    lahar_journals_stat_get(f.journals, &after);
    cr_assert_gt(failure_count, 0);
    cr_assert_eq(after.file_bytes, before.file_bytes);
    cr_assert_gt(appended, 0);
    cr_assert_eq(lahar_journals_health(f.journals, NULL), LAHAR_OK);
    tear_down(&f);
}

Test(journal_files, of_a_jumbo_batch_that_cannot_be_made_fail_the_batch_alone)
{
    static const int numbers[] = {EMFILE, ENFILE, EACCES};
    for (unsigned i = 0; i < 3; i++) {
        struct fixture f;
        struct lahar_io_ops ops;
        uint64_t id = 1;
        set_up(&f, &ops, 30 + i);
        open_errno = numbers[i];
        cr_assert_eq(
            fixture_append(&f, 0, 300000, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
            LAHAR_NO_SPACE);
        cr_assert_eq(id, 0);
        cr_assert_eq(lahar_journals_health(f.journals, NULL), LAHAR_OK);
        open_errno = 0;
        cr_assert_eq(
            fixture_append(&f, 0, 300000, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
            LAHAR_OK);
        cr_assert_eq(id, 1);
        tear_down(&f);
    }
}

Test(journal_files, that_fail_with_the_disk_poison)
{
    for (unsigned is_name = 0; is_name < 2; is_name++) {
        struct fixture f;
        struct lahar_io_ops ops;
        uint64_t id = 0;
        set_up(&f, &ops, 40 + is_name);
        open_errno = is_name ? 0 : EIO;
        names_errno = is_name ? EIO : 0;
        lahar_status status = LAHAR_OK;
        for (int i = 0; i < 20000 && status == LAHAR_OK; i++) {
            status = fixture_append(&f, 0, ROW, LAHAR_DURABILITY_NONE, LAHAR_WAIT_FOREVER, &id);
        }
        cr_assert_eq(status, LAHAR_POISONED);
        cr_assert_eq(f.error.sys_errno, EIO);
        tear_down(&f);
    }
}

/* Zeros are written ahead only where small durable writes profit: a load would wait for them. */
Test(journal_files, of_loads_are_reserved_and_those_of_commits_filled)
{
    struct fixture f;
    struct lahar_io_ops ops;
    uint64_t id = 0;
    set_up(&f, &ops, 40);
    cr_assert_eq(fill_count, 1);
    cr_assert_gt(fill(&f), 1000);
    cr_assert_gt(reserve_count, 0);
    cr_assert_eq(fill_count, 1);
    tear_down(&f);
    set_up(&f, &ops, 41);
    for (int i = 0; i < 5000; i++) {
        cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                     LAHAR_OK);
        lahar_journals_forget(f.journals, id);
    }
    cr_assert_gt(fill_count, 1);
    cr_assert_eq(reserve_count, 0);
    tear_down(&f);
}

Test(journal_files, of_a_store_that_is_set_to_commits_are_filled_whatever_comes)
{
    struct fixture f;
    struct lahar_io_ops ops;
    set_up_as(&f, &ops, 42, LAHAR_DURABILITY_COMMIT);
    cr_assert_gt(fill(&f), 1000);
    cr_assert_gt(fill_count, 1);
    cr_assert_eq(reserve_count, 0);
    tear_down(&f);
}
