/* Opening: what is accepted, what is refused, what an interrupted creation leaves. */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/journal/journals.h"
#include "engine/store/store_state.h"
#include "scratch.h"
#include "store_fixture.h"

Test(store_open, creates_a_store_and_finds_it_again)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.next_id, 1);
    cr_assert_eq(stat.event_count, 0);
    cr_assert_str_eq(stat.backend, "simulated");
    store_fixture_close(&fixture);
    fixture.options.must_exist = true;
    store_fixture_open(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_open, does_not_create_when_told_not_to)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    fixture.options.must_exist = true;
    cr_assert_eq(store_fixture_try_open(&fixture, NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(fixture.io->ops->make_directory(fixture.io, "store", NULL), LAHAR_OK);
    cr_assert_eq(store_fixture_try_open(&fixture, NULL), LAHAR_NOT_FOUND);
    fixture.options.must_exist = false;
    fixture.options.read_only = true;
    cr_assert_eq(store_fixture_try_open(&fixture, NULL), LAHAR_NOT_FOUND);
    cr_assert_null(fixture.store);
    store_fixture_deinit(&fixture);
}

Test(store_open, leaves_a_directory_of_something_else_alone)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    cr_assert_eq(fixture.io->ops->make_directory(fixture.io, "store", NULL), LAHAR_OK);
    cr_assert_eq(lahar_sim_disk_write_file(fixture.disk, "store/letters.txt", "dear", 4, NULL),
                 LAHAR_OK);
    const uint64_t before = lahar_sim_disk_operations(fixture.disk);
    cr_assert_eq(store_fixture_try_open(&fixture, NULL), LAHAR_NOT_A_STORE);
    fixture.options.read_only = true;
    cr_assert_eq(store_fixture_try_open(&fixture, NULL), LAHAR_NOT_A_STORE);
    cr_assert_eq(lahar_sim_disk_operations(fixture.disk), before);
    store_fixture_deinit(&fixture);
}

Test(store_open, does_not_begin_anew_over_a_store_without_its_identity)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 10);
    store_fixture_close(&fixture);
    cr_assert_eq(fixture.io->ops->unlink(fixture.io, "store/LAHAR", NULL), LAHAR_OK);
    cr_assert_eq(store_fixture_try_open(&fixture, NULL), LAHAR_NOT_A_STORE);
    store_fixture_deinit(&fixture);
}

Test(store_open, refuses_a_newer_format)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    store_fixture_close(&fixture);
    /* Bit 1 of the version's low byte makes it 3. */
    cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, "store/LAHAR", 8 * 8 + 1, NULL), LAHAR_OK);
    lahar_error error = {0};
    cr_assert_eq(store_fixture_try_open(&fixture, &error), LAHAR_UNSUPPORTED);
    cr_assert(strstr(error.message, "version 3") != NULL, "%s", error.message);
    store_fixture_deinit(&fixture);
}

Test(store_open, reports_a_damaged_or_missing_manifest)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    store_fixture_close(&fixture);
    cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, "store/manifest-1", 8 * 70, NULL), LAHAR_OK);
    cr_assert_eq(store_fixture_try_open(&fixture, NULL), LAHAR_CORRUPT);
    cr_assert_eq(fixture.io->ops->unlink(fixture.io, "store/manifest-1", NULL), LAHAR_OK);
    cr_assert_eq(store_fixture_try_open(&fixture, NULL), LAHAR_CORRUPT);
    store_fixture_deinit(&fixture);
}

Test(store_open, completes_a_creation_that_a_crash_interrupted)
{
    uint64_t operations = UINT64_MAX;
    for (uint64_t n = 0; n < operations; n++) {
        struct store_fixture fixture;
        store_fixture_init(&fixture, n);
        lahar_sim_disk_crash_at(fixture.disk, n);
        const lahar_status status = store_fixture_try_open(&fixture, NULL);
        if (!lahar_sim_disk_has_crashed(fixture.disk)) {
            cr_assert_eq(status, LAHAR_OK);
            operations = n;
        }
        store_fixture_crash(&fixture, n + 1000, true);
        store_fixture_open(&fixture);
        const uint32_t stream = store_fixture_stream(&fixture, 0);
        store_fixture_add(&fixture, &stream, 1, 3);
        check_scan(&fixture);
        store_fixture_close(&fixture);
        store_fixture_deinit(&fixture);
    }
    cr_assert_gt(operations, 10);
}

Test(store_open, refuses_options_that_make_no_sense)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    const lahar_options good = fixture.options;
    lahar_allocator half = lahar_allocator_libc;
    half.resize = NULL;
#define REFUSES(field, value)                                                                      \
    fixture.options = good;                                                                        \
    fixture.options.field = (value);                                                               \
    cr_expect_eq(store_fixture_try_open(&fixture, NULL), LAHAR_INVALID, #field)
    REFUSES(struct_size, 0);
    REFUSES(struct_size, 1 << 20);
    REFUSES(backend, (lahar_backend)9);
    REFUSES(durability, (lahar_durability)-1);
    REFUSES(sync_interval_ms, 60001);
    REFUSES(memory_limit_bytes, 1000);
    REFUSES(compression_level, 13);
    REFUSES(journal_count, 17);
    REFUSES(allocator, &half);
#undef REFUSES
    lahar_store *store = NULL;
    cr_assert_eq(lahar_store_open("", NULL, 0, &store, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_store_open(NULL, NULL, 0, &store, NULL), LAHAR_INVALID);
    store_fixture_deinit(&fixture);
}

Test(store_open, takes_zeroes_as_defaults)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    fixture.options = (lahar_options){.struct_size = sizeof fixture.options};
    store_fixture_open(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_open, of_a_directory_without_parent_fails)
{
    lahar_store *store = NULL;
    char path[SCRATCH_PATH_SIZE + 16];
    char scratch[SCRATCH_PATH_SIZE];
    scratch_create(scratch);
    (void)snprintf(path, sizeof path, "%s/no/store", scratch);
    cr_assert_eq(lahar_store_open(path, NULL, 0, &store, NULL), LAHAR_NOT_FOUND);
    cr_assert_null(store);
    scratch_remove(scratch);
}

static lahar_options small_options(void)
{
    lahar_options options;
    lahar_options_init(&options);
    options.backend = LAHAR_BACKEND_PWRITE;
    options.memory_limit_bytes = 64 << 20;
    return options;
}

Test(store_open, refuses_a_second_writer_and_lets_readers_in)
{
    char scratch[SCRATCH_PATH_SIZE];
    char path[SCRATCH_PATH_SIZE + 16];
    scratch_create(scratch);
    (void)snprintf(path, sizeof path, "%s/store", scratch);
    lahar_options options = small_options();
    lahar_store *store = NULL;
    lahar_store *second = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_store_open(path, &options, 0, &store, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(lahar_store_open(path, &options, 20000000, &second, &error), LAHAR_LOCKED);
    options.read_only = true;
    error = (lahar_error){0};
    cr_assert_eq(lahar_store_open(path, &options, 0, &second, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(lahar_store_close(second, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    cr_assert_eq(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    scratch_remove(scratch);
}

Test(store_open, of_a_reader_refuses_everything_that_writes)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 20);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_add(&fixture, &stream, 1, 20);
    store_fixture_close(&fixture);

    fixture.options.read_only = true;
    const uint64_t before = lahar_sim_disk_operations(fixture.disk);
    store_fixture_open(&fixture);
    check_scan(&fixture);
    check_get(&fixture);
    lahar_batch *batch = NULL;
    lahar_stream_spec spec = {.struct_size = sizeof spec, .name = "x", .schema = LAHAR_SCHEMA_LOG};
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_READ_ONLY);
    cr_assert_eq(lahar_stream_create(fixture.store, &spec, NULL, NULL), LAHAR_READ_ONLY);
    cr_assert_eq(lahar_rollover(fixture.store, 0, NULL), LAHAR_READ_ONLY);
    cr_assert_eq(lahar_sync(fixture.store, 0, NULL), LAHAR_READ_ONLY);
    store_fixture_close(&fixture);
    cr_assert_eq(lahar_sim_disk_operations(fixture.disk), before);
    store_fixture_deinit(&fixture);
}

Test(store_open, lets_a_forked_child_close)
{
    char scratch[SCRATCH_PATH_SIZE];
    char path[SCRATCH_PATH_SIZE + 16];
    scratch_create(scratch);
    (void)snprintf(path, sizeof path, "%s/store", scratch);
    lahar_options options = small_options();
    lahar_store *store = NULL;
    cr_assert_eq(lahar_store_open(path, &options, 0, &store, NULL), LAHAR_OK);
    const pid_t child = fork();
    if (child == 0) {
        const lahar_status status = lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL);
        _exit(status == LAHAR_OK ? 0 : 1);
    }
    int result = -1;
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_assert_eq(result, 0);
    cr_assert_eq(lahar_sync(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    cr_assert_eq(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    scratch_remove(scratch);
}

Test(store_open, of_a_full_disk_reads_says_why_it_does_not_write_and_goes_on_when_space_returns)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    cr_assert_eq(store_fixture_append(&fixture, batch, &stream, 1, 10, LAHAR_DURABILITY_COMMIT),
                 LAHAR_OK);
    lahar_batch_destroy(batch);
    store_fixture_crash(&fixture, 1, true);
    /* Nothing can be written from here on, and no file can grow. */
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_ENOSPC, 0, UINT64_MAX, NULL);
    for (int round = 0; round < 2; round++) {
        store_fixture_open(&fixture);
        cr_assert_gt(lahar_sim_disk_fault_count(fixture.disk), 0);
        lahar_stat stat = {.struct_size = sizeof stat};
        cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
        cr_assert_eq(stat.event_count, 10);
        cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
        const lahar_event event = {.stream = stream};
        lahar_error error = {0};
        uint64_t id = 0;
        cr_assert_eq(lahar_append(batch, &event, NULL, &id, &error), LAHAR_NO_SPACE, "%s",
                     error.message);
        cr_assert_eq(id, 0);
        cr_assert_eq(lahar_batch_event_count(batch), 1);
        if (round == 0) {
            lahar_batch_destroy(batch);
            store_fixture_close(&fixture);
        }
    }
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    lahar_sim_disk_advance(fixture.disk, UINT64_C(1000000000));
    for (uint32_t work = 0; work < LAHAR_WORK_COUNT; work++) {
        (void)lahar_store_step(fixture.store, work);
    }
    uint64_t id = 0;
    cr_assert_eq(lahar_batch_commit(batch, NULL, &id, NULL), LAHAR_OK);
    cr_assert_gt(id, 10, "no id is handed out twice");
    cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_batch_destroy(batch);
    store_fixture_crash(&fixture, 2, true);
    store_fixture_open(&fixture);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.event_count, 11);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

/* The thread of that name of this process; 0: there is none. */
static long find_thread(const char *name)
{
    long found = 0;
    DIR *tasks = opendir("/proc/self/task");
    cr_assert_not_null(tasks);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300];
        char line[32] = "";
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *comm = fopen(path, "r");
        if (comm != NULL) {
            if (fgets(line, sizeof line, comm) != NULL && strncmp(line, name, strlen(name)) == 0) {
                found = strtol(task->d_name, NULL, 10);
            }
            (void)fclose(comm);
        }
    }
    (void)closedir(tasks);
    return found;
}

Test(store_close, that_times_out_leaves_the_threads_as_they_are)
{
    static const char *const names[] = {"lahar-rollover", "lahar-ceiling", "lahar-retention",
                                        "lahar-join", "lahar-resident"};
    char scratch[SCRATCH_PATH_SIZE];
    char path[SCRATCH_PATH_SIZE + 16];
    long before[5];
    scratch_create(scratch);
    (void)snprintf(path, sizeof path, "%s/store", scratch);
    lahar_options options = small_options();
    lahar_store *store = NULL;
    cr_assert_eq(lahar_store_open(path, &options, 0, &store, NULL), LAHAR_OK);
    for (size_t i = 0; i < 5; i++) {
        before[i] = find_thread(names[i]);
        cr_assert_neq(before[i], 0, "%s", names[i]);
    }
    /* An append that is between its reservation and its end: the journals cannot stop. */
    struct lahar_ring_set *set = &store->journals->ring_set;
    cr_assert(lahar_ring_reserve(set, 1));
    cr_assert_eq(lahar_store_close(store, UINT64_C(20000000), NULL), LAHAR_TIMEOUT);
    for (size_t i = 0; i < 5; i++) {
        cr_assert_eq(find_thread(names[i]), before[i], "%s", names[i]);
    }
    lahar_ring_release(set, 1);
    cr_assert_eq(lahar_sync(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    cr_assert_eq(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    scratch_remove(scratch);
}

/* Appends events that nobody waits for until the store has no room for more. */
static void fill_store(struct store_fixture *fixture, uint32_t stream)
{
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture->store, &batch, NULL), LAHAR_OK);
    lahar_status status = LAHAR_OK;
    for (unsigned i = 0; i < 1000 && status == LAHAR_OK; i++) {
        status = store_fixture_append(fixture, batch, &stream, 1, 50, LAHAR_DURABILITY_INTERVAL);
    }
    lahar_batch_destroy(batch);
}

static void check_all_there(struct store_fixture *fixture)
{
    lahar_sim_disk_capacity(fixture->disk, UINT64_MAX);
    lahar_sim_disk_fault(fixture->disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    fixture->io->ops->destroy(fixture->io);
    lahar_sim_disk_restart(fixture->disk, 3, true);
    cr_assert_eq(lahar_sim_disk_io(fixture->disk, &fixture->io, NULL), LAHAR_OK);
    store_fixture_open(fixture);
    check_scan(fixture);
    store_fixture_close(fixture);
    store_fixture_deinit(fixture);
}

Test(store_close, keeps_what_was_appended_when_no_file_can_grow)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    fixture.options.memory_limit_bytes = 32 << 20;
    fixture.options.journal_count = 1;
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_sim_disk_capacity(fixture.disk, 0);
    fill_store(&fixture, stream);
    cr_assert_gt(fixture.event_count, 1000);
    store_fixture_close(&fixture);
    check_all_there(&fixture);
}

Test(store_close, leaves_the_store_open_while_what_was_appended_finds_no_space)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 2);
    store_fixture_open(&fixture);
    uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_ENOSPC, 0, UINT64_MAX, NULL);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    cr_assert_eq(store_fixture_append(&fixture, batch, &stream, 1, 50, LAHAR_DURABILITY_NONE),
                 LAHAR_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(lahar_store_close(fixture.store, UINT64_C(1000000000), NULL), LAHAR_NO_SPACE);
        check_scan(&fixture);
    }
    /* It is as usable as before. */
    cr_assert_eq(store_fixture_append(&fixture, batch, &stream, 1, 50, LAHAR_DURABILITY_NONE),
                 LAHAR_OK);
    lahar_batch_destroy(batch);
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    lahar_sim_disk_advance(fixture.disk, UINT64_C(200) * 1000000);
    for (uint32_t work = 0; work < LAHAR_WORK_COUNT; work++) {
        (void)lahar_store_step(fixture.store, work);
    }
    store_fixture_close(&fixture);
    check_all_there(&fixture);
}
