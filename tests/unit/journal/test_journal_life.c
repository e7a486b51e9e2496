/* Appending, viewing, waiting and forgetting on journals that the test steps itself. */
#include "journal_fixture.h"

/* The size of a row that makes a frame of 1024 bytes. */
enum {
    ROW = 968
};

static void append_many(struct fixture *f, uint32_t count, lahar_durability durability)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t id = 0;
        const uint64_t expected = lahar_journals_next_id(f->journals);
        cr_assert_eq(fixture_append(f, i, ROW, durability, LAHAR_WAIT_FOREVER, &id), LAHAR_OK, "%s",
                     f->error.message);
        cr_assert_eq(id, expected);
    }
}

static void check_view(struct fixture *f, uint64_t first_id, uint64_t end_id)
{
    struct lahar_resident_view view;
    cr_assert_eq(lahar_journals_view(f->journals, LAHAR_NO_WAIT, &view, &f->error), LAHAR_OK);
    cr_assert_eq(view.end_id, end_id);
    cr_assert_eq(view.batch_count, end_id - first_id);
    fixture_check_rows(view.batches, view.batch_count, first_id);
    lahar_journals_unview(f->journals, &view);
}

Test(journals, show_a_batch_as_soon_as_its_append_returned)
{
    struct fixture f;
    fixture_create(&f, 1);
    fixture_open(&f, NULL);
    for (uint64_t n = 1; n <= 50; n++) {
        append_many(&f, 1, LAHAR_DURABILITY_INTERVAL);
        check_view(&f, 1, n + 1);
    }
    cr_assert_eq(lahar_journals_durable_id(f.journals), 1, "nothing has been stepped yet");
    fixture_destroy(&f);
}

Test(journals, keep_order_over_many_chunks)
{
    struct fixture f;
    fixture_create(&f, 2);
    fixture_open(&f, NULL);
    append_many(&f, 3000, LAHAR_DURABILITY_NONE); /* 3 MB in chunks of 256 KiB */
    check_view(&f, 1, 3001);
    fixture_destroy(&f);
}

Test(journals, return_from_a_commit_only_when_it_is_durable)
{
    struct fixture f;
    fixture_create(&f, 3);
    fixture_open(&f, NULL);
    for (uint64_t n = 1; n <= 100; n++) {
        append_many(&f, 1, n % 3 == 0 ? LAHAR_DURABILITY_COMMIT : LAHAR_DURABILITY_NONE);
        if (n % 3 == 0) {
            cr_assert_eq(lahar_journals_durable_id(f.journals), n + 1);
        }
    }
    fixture_crash(&f, 99, true);
    const struct lahar_journal_session session = {1, 1, 0};
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &session, 1, 1, &recovery), LAHAR_OK, "%s", f.error.message);
    cr_assert_geq(recovery.end_id, 100);
    fixture_check_rows(recovery.batches, recovery.batch_count, 1);
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
    fixture_destroy(&f);
}

Test(journals, give_the_events_of_a_batch_consecutive_ids)
{
    struct fixture f;
    fixture_create(&f, 4);
    fixture_open(&f, NULL);
    uint8_t rows[60] = {7};
    uint64_t id = 0;
    cr_assert_eq(lahar_journals_append(f.journals, 0, rows, 60, 6, NULL, 0, LAHAR_DURABILITY_NONE,
                                       LAHAR_NO_WAIT, &id, NULL),
                 LAHAR_OK);
    cr_assert_eq(id, 1);
    cr_assert_eq(lahar_journals_append(f.journals, 1, rows, 10, 1, NULL, 0, LAHAR_DURABILITY_NONE,
                                       LAHAR_NO_WAIT, &id, NULL),
                 LAHAR_OK);
    cr_assert_eq(id, 7);
    fixture_destroy(&f);
}

struct offset_list {
    uint64_t ids[8];
    char values[8][16];
    size_t count;
};

static lahar_status collect_offset(void *context, const struct lahar_journal_offset *offset)
{
    struct offset_list *list = context;
    cr_assert_lt(list->count, 8);
    cr_assert_eq(offset->source.size, 3);
    cr_assert_eq(memcmp(offset->source.data, "src", 3), 0);
    list->ids[list->count] = offset->id;
    memcpy(list->values[list->count], offset->value.data, offset->value.size);
    list->values[list->count][offset->value.size] = '\0';
    list->count++;
    return LAHAR_OK;
}

static void put_offset(struct lahar_buffer *buffer, const char *value)
{
    const struct lahar_offset_record record = {{"src", 3}, {"key", 3}, {value, strlen(value)}};
    lahar_offset_record_put(buffer, &record);
}

Test(journals, give_offsets_without_events_an_id_and_keep_them)
{
    struct fixture f;
    fixture_create(&f, 5);
    fixture_open(&f, NULL);
    struct lahar_buffer buffer;
    lahar_buffer_init(&buffer, &lahar_allocator_libc);
    put_offset(&buffer, "one");
    put_offset(&buffer, "two");
    uint64_t id = 0;
    append_many(&f, 1, LAHAR_DURABILITY_NONE);
    cr_assert_eq(lahar_journals_append(f.journals, 0, NULL, 0, 0, buffer.data, buffer.size,
                                       LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id, NULL),
                 LAHAR_OK);
    cr_assert_eq(id, 2);
    uint8_t row[8] = {1};
    lahar_buffer_clear(&buffer);
    put_offset(&buffer, "three");
    cr_assert_eq(lahar_journals_append(f.journals, 0, row, 8, 1, buffer.data, buffer.size,
                                       LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id, NULL),
                 LAHAR_OK);
    cr_assert_eq(id, 3);
    struct offset_list list = {.count = 0};
    cr_assert_eq(lahar_journals_offsets(f.journals, 1, 4, collect_offset, &list, NULL), LAHAR_OK);
    cr_assert_eq(list.count, 3);
    cr_assert_eq(list.ids[0], 2);
    cr_assert_str_eq(list.values[1], "two");
    cr_assert_eq(list.ids[2], 3);
    cr_assert_str_eq(list.values[2], "three");
    list.count = 0;
    cr_assert_eq(lahar_journals_offsets(f.journals, 3, 4, collect_offset, &list, NULL), LAHAR_OK);
    cr_assert_eq(list.count, 1);

    fixture_crash(&f, 1, true);
    const struct lahar_journal_session session = {1, 1, 0};
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &session, 1, 1, &recovery), LAHAR_OK);
    cr_assert_eq(recovery.batch_count, 3);
    cr_assert_eq(recovery.event_count, 2);
    cr_assert_eq(recovery.offset_count, 3);
    cr_assert_eq(recovery.offsets[0].id, 2);
    cr_assert_eq(memcmp(recovery.offsets[2].value.data, "three", 5), 0);
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
    lahar_buffer_deinit(&buffer);
    fixture_destroy(&f);
}

Test(journals, hand_out_no_id_at_or_above_the_ceiling)
{
    struct fixture f;
    fixture_create(&f, 6);
    fixture_open(&f, NULL);
    lahar_journals_set_ceiling(f.journals, 5);
    append_many(&f, 4, LAHAR_DURABILITY_NONE);
    uint64_t id = 77;
    cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id), LAHAR_BUSY);
    cr_assert_eq(id, 0);
    cr_assert_eq(lahar_journals_next_id(f.journals), 5);
    lahar_journals_set_ceiling(f.journals, 7);
    append_many(&f, 2, LAHAR_DURABILITY_NONE);
    cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id), LAHAR_BUSY);
    check_view(&f, 1, 7);
    fixture_destroy(&f);
}

/* Appends until memory is short; returns the next id. */
static uint64_t append_until_busy(struct fixture *f)
{
    uint64_t id = 0;
    lahar_status status;
    do {
        status = fixture_append(f, (uint32_t)id, ROW, LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id);
        if (status == LAHAR_BUSY) {
            fixture_step_all(f);
            status = fixture_append(f, 0, ROW, LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id);
        }
    } while (status == LAHAR_OK);
    cr_assert_eq(status, LAHAR_BUSY);
    cr_assert_eq(id, 0);
    return lahar_journals_next_id(f->journals);
}

static void make_durable(struct fixture *f)
{
    const uint64_t next_id = lahar_journals_next_id(f->journals);
    cr_assert_eq(lahar_journals_wait(f->journals, next_id - 1, LAHAR_WAIT_FOREVER, &f->error),
                 LAHAR_OK, "%s", f->error.message);
}

Test(journals, stay_within_their_memory_and_reuse_it_and_their_files)
{
    struct fixture f;
    fixture_create(&f, 7);
    f.options.memory_bytes = 4 << 20;
    fixture_open(&f, NULL);
    uint64_t rolled_id = 1;
    uint64_t file_bytes = 0;
    for (int round = 0; round < 12; round++) {
        const uint64_t next_id = append_until_busy(&f);
        cr_assert_gt(next_id - rolled_id, 1000, "less than 1 MB went into 4 MiB");
        struct lahar_journals_stat stat;
        lahar_journals_stat_get(f.journals, &stat);
        cr_assert_leq(stat.memory_used, stat.memory_bytes);
        make_durable(&f);
        check_view(&f, rolled_id, next_id);
        lahar_journals_forget(f.journals, next_id);
        fixture_step_all(&f);
        rolled_id = next_id;
        if (round == 3) {
            lahar_journals_stat_get(f.journals, &stat);
            file_bytes = stat.file_bytes;
        }
    }
    struct lahar_journals_stat stat;
    lahar_journals_stat_get(f.journals, &stat);
    cr_assert_leq(stat.file_bytes, file_bytes + (8 << 20), "files were not reused");
    cr_assert_eq(stat.resident_events, 0);
    cr_assert_eq(stat.resident_bytes, 0);
    fixture_destroy(&f);
}

Test(journals, keep_what_a_view_sees_over_forgetting)
{
    struct fixture f;
    fixture_create(&f, 8);
    f.options.memory_bytes = 4 << 20;
    fixture_open(&f, NULL);
    append_many(&f, 1000, LAHAR_DURABILITY_NONE);
    make_durable(&f);
    struct lahar_resident_view view;
    cr_assert_eq(lahar_journals_view(f.journals, LAHAR_NO_WAIT, &view, NULL), LAHAR_OK);
    lahar_journals_forget(f.journals, 1001);
    for (int round = 0; round < 3; round++) {
        const uint64_t next_id = append_until_busy(&f);
        make_durable(&f);
        lahar_journals_forget(f.journals, next_id);
    }
    cr_assert_eq(view.batch_count, 1000);
    fixture_check_rows(view.batches, view.batch_count, 1);
    struct lahar_journals_stat before;
    lahar_journals_stat_get(f.journals, &before);
    lahar_journals_unview(f.journals, &view);
    struct lahar_journals_stat after;
    lahar_journals_stat_get(f.journals, &after);
    cr_assert_lt(after.memory_used, before.memory_used);
    fixture_destroy(&f);
}

static uint64_t count_files(struct fixture *f);

Test(journals, give_a_batch_larger_than_a_chunk_a_file_of_its_own)
{
    struct fixture f;
    fixture_create(&f, 9);
    fixture_open(&f, NULL);
    append_many(&f, 3, LAHAR_DURABILITY_NONE);
    const uint64_t files = count_files(&f);
    uint64_t id = 0;
    const size_t size = 3 << 20;
    cr_assert_eq(fixture_append(&f, 1, size, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                 LAHAR_OK, "%s", f.error.message);
    cr_assert_eq(id, 4);
    append_many(&f, 2, LAHAR_DURABILITY_COMMIT);
    cr_assert_eq(count_files(&f), files + 1);
    check_view(&f, 1, 7);
    fixture_crash(&f, 3, true);
    const struct lahar_journal_session session = {1, 1, 0};
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &session, 1, 1, &recovery), LAHAR_OK, "%s", f.error.message);
    cr_assert_eq(recovery.batch_count, 6);
    cr_assert_eq(recovery.batches[3].rows_size, size);
    fixture_check_rows(recovery.batches, 6, 1);
    f.options.session = 2;
    f.options.next_id = 7;
    fixture_open(&f, &recovery);
    struct lahar_journals_stat before;
    lahar_journals_stat_get(f.journals, &before);
    lahar_journals_forget(f.journals, 7);
    struct lahar_journals_stat after;
    lahar_journals_stat_get(f.journals, &after);
    cr_assert_geq(before.file_bytes - after.file_bytes, size,
                  "the file of a rolled jumbo batch stays");
    fixture_destroy(&f);
}

static lahar_status count_file(void *context, const char *name, bool is_directory)
{
    uint64_t *count = context;
    cr_assert_not(is_directory, "%s", name);
    (*count)++;
    return LAHAR_OK;
}

static uint64_t count_files(struct fixture *f)
{
    uint64_t count = 0;
    cr_assert_eq(f->io->ops->list(f->io, FIXTURE_DIRECTORY, count_file, &count, NULL), LAHAR_OK);
    return count;
}

Test(journals, take_batches_of_more_events_than_the_link_window_has_slots)
{
    struct fixture f;
    fixture_create(&f, 10);
    fixture_open(&f, NULL);
    uint8_t *rows = calloc(1, 100000);
    cr_assert_not_null(rows);
    uint64_t expected = 1;
    for (int round = 0; round < 10; round++) {
        uint64_t id = 0;
        cr_assert_eq(lahar_journals_append(f.journals, 0, rows, 100000, 50000, NULL, 0,
                                           LAHAR_DURABILITY_NONE, LAHAR_WAIT_FOREVER, &id,
                                           &f.error),
                     LAHAR_OK, "%s", f.error.message);
        cr_assert_eq(id, expected);
        expected += 50000;
        append_many(&f, 3, LAHAR_DURABILITY_NONE);
        expected += 3;
    }
    struct lahar_resident_view view;
    cr_assert_eq(lahar_journals_view(f.journals, LAHAR_NO_WAIT, &view, NULL), LAHAR_OK);
    cr_assert_eq(view.end_id, expected);
    cr_assert_eq(view.batch_count, 40);
    lahar_journals_unview(f.journals, &view);
    free(rows);
    fixture_destroy(&f);
}

Test(journals, refuse_what_is_no_batch_or_too_big)
{
    struct fixture f;
    fixture_create(&f, 11);
    fixture_open(&f, NULL);
    uint8_t row[8] = {0};
    uint64_t id = 5;
    cr_assert_eq(lahar_journals_append(f.journals, 0, row, (16 << 20) / 4 + 1, 1, NULL, 0,
                                       LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id, NULL),
                 LAHAR_TOO_BIG);
    cr_assert_eq(id, 0);
    cr_assert_eq(lahar_journals_append(f.journals, 0, row, SIZE_MAX - 8, 1, row, 16,
                                       LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id, NULL),
                 LAHAR_TOO_BIG);
    cr_assert_eq(lahar_journals_append(f.journals, 0, row, 0, 0, NULL, 0, LAHAR_DURABILITY_NONE,
                                       LAHAR_NO_WAIT, &id, NULL),
                 LAHAR_INVALID);
    cr_assert_eq(lahar_journals_append(f.journals, 0, row, 8, 9, NULL, 0, LAHAR_DURABILITY_NONE,
                                       LAHAR_NO_WAIT, &id, NULL),
                 LAHAR_INVALID);
    cr_assert_eq(lahar_journals_next_id(f.journals), 1);
    fixture_destroy(&f);
}

struct callback_log {
    uint64_t ids[4];
    lahar_status statuses[4];
    size_t count;
};

static void log_callback(void *context, uint64_t id, lahar_status status)
{
    struct callback_log *log = context;
    log->ids[log->count] = id;
    log->statuses[log->count++] = status;
}

Test(journals, call_back_in_order_of_ids_once_they_are_durable)
{
    struct fixture f;
    fixture_create(&f, 12);
    fixture_open(&f, NULL);
    append_many(&f, 10, LAHAR_DURABILITY_INTERVAL);
    struct callback_log log = {.count = 0};
    cr_assert_eq(lahar_journals_notify(f.journals, 9, log_callback, &log, NULL), LAHAR_OK);
    cr_assert_eq(lahar_journals_notify(f.journals, 2, log_callback, &log, NULL), LAHAR_OK);
    cr_assert_eq(lahar_journals_notify(f.journals, 50, log_callback, &log, NULL), LAHAR_OK);
    cr_assert_eq(log.count, 0);
    fixture_step_all(&f);
    for (int i = 0; i < 1000 && lahar_journals_durable_id(f.journals) < 11; i++) {
        fixture_step_all(&f);
    }
    cr_assert_eq(log.count, 2);
    cr_assert_eq(log.ids[0], 2);
    cr_assert_eq(log.ids[1], 9);
    cr_assert_eq(log.statuses[1], LAHAR_OK);
    cr_assert_eq(lahar_journals_stop(f.journals, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK, "%s",
                 f.error.message);
    cr_assert_eq(log.count, 3);
    cr_assert_eq(log.statuses[2], LAHAR_CLOSED);
    fixture_destroy(&f);
}

Test(journals, sync_by_themselves_when_the_interval_is_over)
{
    struct fixture f;
    fixture_create(&f, 13);
    fixture_open(&f, NULL);
    append_many(&f, 10, LAHAR_DURABILITY_INTERVAL);
    fixture_step_all(&f);
    cr_assert_eq(lahar_journals_durable_id(f.journals), 1);
    for (int i = 0; i < 50 && lahar_journals_durable_id(f.journals) < 11; i++) {
        lahar_sim_disk_advance(f.disk, UINT64_C(101) * 1000000);
        fixture_step_all(&f);
    }
    cr_assert_eq(lahar_journals_durable_id(f.journals), 11);
    fixture_destroy(&f);
}

Test(journals, of_an_empty_store_take_little_room)
{
    struct fixture f;
    fixture_create(&f, 14);
    f.options.memory_bytes = 256 << 20;
    f.options.journal_count = 16;
    fixture_open(&f, NULL);
    append_many(&f, 10, LAHAR_DURABILITY_COMMIT);
    fixture_step_all(&f);
    struct lahar_journals_stat stat;
    lahar_journals_stat_get(f.journals, &stat);
    cr_assert_leq(stat.file_bytes, 3 << 20);
    cr_assert_eq(stat.active, 1);
    fixture_destroy(&f);
}

Test(journals, refuse_appends_once_they_are_stopped_and_have_everything_on_disk)
{
    struct fixture f;
    fixture_create(&f, 15);
    fixture_open(&f, NULL);
    append_many(&f, 100, LAHAR_DURABILITY_NONE);
    cr_assert_eq(lahar_journals_stop(f.journals, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK, "%s",
                 f.error.message);
    uint64_t id = 1;
    cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id),
                 LAHAR_CLOSED);
    cr_assert_eq(id, 0);
    check_view(&f, 1, 101);
    fixture_crash(&f, 4, true);
    const struct lahar_journal_session session = {1, 1, 101};
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &session, 1, 1, &recovery), LAHAR_OK, "%s", f.error.message);
    cr_assert_eq(recovery.end_id, 101);
    fixture_check_rows(recovery.batches, recovery.batch_count, 1);
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
    fixture_destroy(&f);
}

/* An allocator that refuses every allocation from the nth on. */
struct failing {
    uint64_t left;
};

static void *failing_allocate(void *context, size_t size)
{
    struct failing *failing = context;
    if (failing->left == 0) {
        return NULL;
    }
    failing->left--;
    return malloc(size);
}

static void *failing_resize(void *context, void *memory, size_t size)
{
    struct failing *failing = context;
    if (failing->left == 0) {
        return NULL;
    }
    failing->left--;
    return realloc(memory, size);
}

static void failing_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

Test(journals, survive_the_refusal_of_any_allocation)
{
    bool has_succeeded = false;
    for (uint64_t n = 0; n < 300 && !has_succeeded; n++) {
        struct failing failing = {n};
        const lahar_allocator allocator = {failing_allocate, failing_resize, failing_release,
                                           &failing};
        struct fixture f;
        fixture_create(&f, n + 1);
        f.options.allocator = &allocator;
        f.options.memory_bytes = 2 << 20;
        lahar_error error = {0};
        lahar_status status = lahar_journals_open(&f.options, NULL, &f.journals, &error);
        if (status != LAHAR_OK) {
            cr_assert_eq(status, LAHAR_NO_MEMORY, "%s", error.message);
            cr_assert_null(f.journals);
        } else {
            has_succeeded = true;
            for (int i = 0; i < 150; i++) {
                uint64_t id = 0;
                status = fixture_append(&f, 0, ROW, LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id);
                fixture_step_all(&f);
                has_succeeded &= status == LAHAR_OK;
            }
            struct lahar_resident_view view;
            status = lahar_journals_view(f.journals, LAHAR_NO_WAIT, &view, NULL);
            has_succeeded &= status == LAHAR_OK;
            if (status == LAHAR_OK) {
                fixture_check_rows(view.batches, view.batch_count, 1);
                lahar_journals_unview(f.journals, &view);
            }
        }
        fixture_destroy(&f);
    }
    cr_assert(has_succeeded, "not even 300 allocations were enough");
}
