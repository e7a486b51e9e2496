/* Sources themselves: definitions, discovery, resources, reset, peek, verify. The S-numbers are
 * those of docs/filelog.md. */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "engine/follow/glob.h"
#include "follow_fixture.h"

/* S-09, S-10 */
Test(sources, leave_nothing_behind_when_they_cannot_be_made)
{
    struct follow_fixture f;
    lahar_source_spec bad;
    follow_fixture_init(&f);
    bad = f.spec;
    bad.path = "/no/such/place";
    cr_assert_eq(lahar_source_create(f.store, &bad, NULL), LAHAR_NOT_FOUND);
    bad = f.spec;
    bad.name = "a b";
    cr_assert_eq(lahar_source_create(f.store, &bad, NULL), LAHAR_INVALID);
    bad = f.spec;
    bad.max_threads = 100000;
    cr_assert_eq(lahar_source_create(f.store, &bad, NULL), LAHAR_INVALID);
    bad = f.spec;
    bad.poll_directory_watch_events_backoff_init = 40000;
    cr_assert_eq(lahar_source_create(f.store, &bad, NULL), LAHAR_INVALID);
    add(&f, "a.log", "1\n");
    follow_fixture_begin(&f);
    cr_assert_eq(lahar_source_create(f.store, &f.spec, NULL), LAHAR_EXISTS);
    expect_messages(&f, "1\n");
    follow_fixture_stop(&f);
    cr_assert_eq(lahar_source_drop(f.store, "logs", NULL), LAHAR_OK);
    cr_assert_eq(lahar_source_drop(f.store, "logs", NULL), LAHAR_NOT_FOUND);
    follow_fixture_begin(&f);
    expect_messages(&f, "1\n1\n");
    follow_fixture_deinit(&f);
}

Test(sources, refuse_settings_as_filelog_does)
{
    lahar_source_spec spec;
    lahar_source_spec_init(&spec);
    cr_assert_eq(spec.poll_directory_watch_events_backoff_init, 500);
    cr_assert_eq(spec.poll_directory_watch_events_backoff_max, 32000);
    cr_assert_eq(spec.poll_directory_watch_events_backoff_factor, 2);
    cr_assert_eq(lahar_source_spec_set(&spec, "poll_timeout_ms", "0", NULL), LAHAR_OK);
    cr_assert_eq(lahar_source_spec_set(&spec, "poll_max_batch_size", "0", NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_source_spec_set(&spec, "poll_max_batch_size", "4294967297", NULL),
                 LAHAR_INVALID);
    cr_assert_eq(
        lahar_source_spec_set(&spec, "poll_directory_watch_events_backoff_factor", "0", NULL),
        LAHAR_INVALID);
    cr_assert_eq(lahar_source_spec_set(&spec, "max_threads", "-1", NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_source_spec_set(&spec, "handle_error_mode", "stream", NULL), LAHAR_OK);
    cr_assert_eq(spec.handle_error_mode, LAHAR_ERROR_MODE_STREAM);
    cr_assert_eq(lahar_source_spec_set(&spec, "handle_error_mode", "ignore", NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_source_spec_set(&spec, "no_such", "1", NULL), LAHAR_INVALID);
}

static lahar_status take_info(void *context, const lahar_source_info *info)
{
    lahar_source_spec *spec = context;
    *spec = info->spec;
    return LAHAR_OK;
}

Test(sources, show_their_settings_resolved)
{
    struct follow_fixture f;
    lahar_source_spec shown = {0};
    follow_fixture_init(&f);
    follow_fixture_create(&f);
    cr_assert_eq(lahar_source_list(f.store, take_info, &shown, NULL), LAHAR_OK);
    cr_assert_eq(shown.poll_timeout_ms, 500);
    cr_assert_eq(shown.poll_max_batch_size, 65409);
    cr_assert_eq(shown.max_block_size, 1048449);
    cr_assert_geq(shown.max_threads, 1);
    follow_fixture_deinit(&f);
}

Test(glob, matches_as_documented)
{
    static const struct {
        const char *pattern;
        const char *path;
        bool matches;
    } cases[] = {
        {"/v/*.log", "/v/a.log", true},
        {"/v/*.log", "/v/.a.log", false},
        {"/v/*.log", "/v/d/a.log", false},
        {"/v/**/*.log", "/v/a.log", true},
        {"/v/**/*.log", "/v/d/e/a.log", true},
        {"/v/**/x/*.log", "/v/d/x/a.log", true},
        {"/v/**/x/*.log", "/v/d/a.log", false},
        {"/v/[a-c]?", "/v/bz", true},
        {"/v/[!a-c]?", "/v/bz", false},
        {"/v/\\*", "/v/*", true},
        {"/v/\\*", "/v/a", false},
        {"/v/a*b*c", "/v/aXbYbZc", true},
        {"/v/.*", "/v/.hidden", true},
        {"/v/*", "/v/line\nbreak", true},
        {"/v/[", "/v/[", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(lahar_glob_match_path(cases[i].pattern, cases[i].path), cases[i].matches,
                     "%s %s", cases[i].pattern, cases[i].path);
    }
}

Test(glob, writes_alternatives_out)
{
    struct lahar_glob glob;
    cr_assert_eq(lahar_glob_create(&glob, &lahar_allocator_libc, "/v/{a,b{1,2}}_{08..10}", NULL),
                 LAHAR_OK);
    cr_assert_eq(glob.count, 9);
    unsigned found = 0;
    for (size_t i = 0; i < glob.count; i++) {
        found += strcmp(glob.patterns[i], "/v/b2_09") == 0;
        found += strcmp(glob.patterns[i], "/v/a_10") == 0;
    }
    cr_assert_eq(found, 2);
    lahar_glob_destroy(&glob);
    cr_assert_eq(lahar_glob_create(&glob, &lahar_allocator_libc, "/v/{1..2000}", NULL),
                 LAHAR_INVALID);
    cr_assert_eq(lahar_glob_create(&glob, &lahar_allocator_libc, "/v/{a", NULL), LAHAR_INVALID);
}

/* S-83: deep patterns, directories that come later. */
Test(sources, find_files_in_new_directories)
{
    struct follow_fixture f;
    char pattern[SCRATCH_PATH_SIZE * 2];
    follow_fixture_init(&f);
    (void)snprintf(pattern, sizeof pattern, "%s/**/{x,y}*.log", f.logs);
    f.spec.path = pattern;
    add(&f, "x1.log", "1\n");
    add(&f, "z.log", "no\n");
    follow_fixture_begin(&f);
    cr_assert_eq(mkdir(log_path(&f, "d"), 0755), 0);
    cr_assert_eq(mkdir(log_path(&f, "d/e"), 0755), 0);
    add(&f, "d/e/y.log", "2\n");
    follow_fixture_settle(&f);
    add(&f, "d/e/x2.log", "3\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n3\n");
    follow_fixture_deinit(&f);
}

/* A single file is followed through its rotation. */
Test(sources, follow_a_single_file_through_rotation)
{
    struct follow_fixture f;
    char path[SCRATCH_PATH_SIZE * 2];
    follow_fixture_init(&f);
    (void)snprintf(path, sizeof path, "%s", log_path(&f, "a.log"));
    f.spec.path = path;
    add(&f, "a.log", "1\n");
    add(&f, "b.log", "no\n");
    follow_fixture_begin(&f);
    add(&f, "a.log", "2\n");
    move(&f, "a.log", "a.log.1");
    add(&f, "a.log", "3\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n3\n");
    follow_fixture_deinit(&f);
}

/* S-76, S-84, S-85, S-86: whatever else is in the directory. */
Test(sources, pass_over_what_is_no_file_and_keep_odd_names)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    cr_assert_eq(mkfifo(log_path(&f, "pipe.log"), 0644), 0);
    cr_assert_eq(mkdir(log_path(&f, "directory.log"), 0755), 0);
    cr_assert_eq(symlink("loop.log", log_path(&f, "loop.log")), 0);
    cr_assert_eq(symlink("nowhere", log_path(&f, "dangling.log")), 0);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", log_path(&f, "socket.log"));
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    add(&f, "a b\n\303\251\377.log", "odd\n");
    add(&f, ".hidden", "hidden\n");
    add(&f, "..foo", "foo\n");
    follow_fixture_begin(&f);
    cr_assert_eq(count_messages(&f, "logs"), 3);
    add(&f, "nowhere", "there\n");
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 4, "one file, by two names");
    (void)close(listener);
    follow_fixture_deinit(&f);
}

/* S-84: a file that turns into a pipe, a device, a directory. */
Test(sources, do_not_hang_on_a_file_that_becomes_a_pipe)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n");
    follow_fixture_begin(&f);
    drop(&f, "a.log");
    cr_assert_eq(mkfifo(log_path(&f, "a.log"), 0644), 0);
    follow_fixture_settle(&f);
    cr_assert_eq(unlink(log_path(&f, "a.log")), 0);
    cr_assert_eq(symlink("/dev/zero", log_path(&f, "a.log")), 0);
    follow_fixture_settle(&f);
    cr_assert_eq(unlink(log_path(&f, "a.log")), 0);
    add(&f, "a.log", "2\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n");
    follow_fixture_deinit(&f);
}

/* S-85 */
Test(sources, open_nothing_outside_their_root)
{
    struct follow_fixture f;
    char outside[SCRATCH_PATH_SIZE * 2];
    char inside[SCRATCH_PATH_SIZE * 2];
    lahar_source_spec bad;
    follow_fixture_init(&f);
    f.spec.root = f.logs;
    add(&f, "../secret", "secret\n");
    add(&f, "real", "real\n");
    (void)snprintf(outside, sizeof outside, "%s/secret", f.scratch);
    (void)snprintf(inside, sizeof inside, "%s/real", f.logs);
    cr_assert_eq(symlink(outside, log_path(&f, "a.log")), 0);
    cr_assert_eq(symlink("../secret", log_path(&f, "b.log")), 0);
    cr_assert_eq(mkdir(log_path(&f, "d"), 0755), 0);
    cr_assert_eq(symlink(inside, log_path(&f, "d/c.log")), 0);
    bad = f.spec;
    bad.path = "../secret";
    cr_assert_eq(lahar_source_create(f.store, &bad, NULL), LAHAR_INVALID);
    bad.path = outside;
    cr_assert_eq(lahar_source_create(f.store, &bad, NULL), LAHAR_INVALID);
    bad.path = "a.log";
    cr_assert_eq(lahar_source_create(f.store, &bad, NULL), LAHAR_INVALID);
    f.spec.path = "{*.log,d/*.log}";
    follow_fixture_begin(&f);
    expect_messages(&f, "real\n");
    follow_fixture_deinit(&f);
}

/* S-76: unreadable, then readable, with no other event. */
Test(sources, read_a_file_once_it_may_be_read)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "a\n");
    add(&f, "b.log", "b\n");
    cr_assert_eq(chmod(log_path(&f, "a.log"), 0), 0);
    if (geteuid() == 0) {
        /* Nothing is unreadable to root: too many open files stands in for it. */
        struct rlimit before;
        follow_fixture_create(&f);
        follow_fixture_start(&f);
        cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
        const struct rlimit none = {3, before.rlim_max};
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        follow_fixture_settle_now(&f);
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    } else {
        follow_fixture_begin(&f);
        expect_messages(&f, "b\n");
        cr_assert_eq(chmod(log_path(&f, "a.log"), 0644), 0);
    }
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 2);
    follow_fixture_deinit(&f);
}

/* S-80 */
Test(sources, notice_a_new_file_after_the_only_one_went)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    follow_fixture_begin(&f);
    add(&f, "a.log", "1\n");
    follow_fixture_settle(&f);
    drop(&f, "a.log");
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    add(&f, "a.log", "2\n");
    follow_fixture_settle_now(&f);
    expect_messages(&f, "1\n2\n");
    follow_fixture_deinit(&f);
}

/* S-87, S-12 */
Test(sources, follow_one_file_twice_without_knowing_of_each_other)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n");
    follow_fixture_create(&f);
    f.spec.name = "other";
    f.spec.stream = "other";
    follow_fixture_begin(&f);
    cr_assert_eq(count_messages(&f, "logs"), 1);
    cr_assert_eq(count_messages(&f, "other"), 1);
    follow_fixture_deinit(&f);
}

/* S-89: a chatty small file beside a large one. */
Test(sources, serve_a_small_file_beside_a_large_one)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.poll_max_batch_size = 100;
    f.spec.max_block_size = 100;
    add_lines(&f, "big.log", "big", 0, 5000);
    add(&f, "small.log", "small\n");
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    for (unsigned i = 0; i < 4; i++) {
        (void)lahar_follow_step(f.follow, f.now_ns);
    }
    char *text = messages_of(&f, "logs", LAHAR_FIELD_MESSAGE);
    cr_assert_not_null(strstr(text, "small\n"));
    free(text);
    follow_fixture_deinit(&f);
}

/* S-06 */
Test(sources, remove_a_file_only_when_its_records_are_durable)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.remove_after_ms = 1000;
    add(&f, "a.log", "1\n");
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    follow_fixture_settle_now(&f);
    follow_fixture_advance(&f, 5000);
    while (lahar_follow_step(f.follow, f.now_ns)) {
    }
    if (lahar_durable_id(f.store) <= f.follow->sources[0]->files.files[0]->commit_id) {
        cr_assert_eq(access(log_path(&f, "a.log"), F_OK), 0, "not durable yet");
    }
    cr_assert_eq(lahar_sync(f.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    follow_fixture_settle(&f);
    cr_assert_neq(access(log_path(&f, "a.log"), F_OK), 0);
    expect_messages(&f, "1\n");
    follow_fixture_deinit(&f);
}

/* S-08: the store's disk is full for a while. */
Test(sources, wait_for_space_and_go_on)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add_lines(&f, "a.log", "x", 0, 10);
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    lahar_sim_disk_capacity(f.disk, 0);
    for (unsigned i = 0; i < 20; i++) {
        follow_fixture_advance(&f, 600);
        (void)lahar_follow_step(f.follow, f.now_ns);
        (void)lahar_store_step(f.store, i % LAHAR_WORK_COUNT);
    }
    lahar_sim_disk_capacity(f.disk, UINT64_MAX);
    lahar_sim_disk_advance(f.disk, UINT64_C(5000000000));
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 10);
    follow_fixture_deinit(&f);
}

/* --- reset, peek, verify (S-92, S-93) ------------------------------------------------------ */

struct shown {
    unsigned count;
    uint64_t offset;
    uint64_t size;
    bool has_size;
    lahar_file_state state;
};

static lahar_status take_file(void *context, const lahar_source_file *file)
{
    struct shown *shown = context;
    *shown =
        (struct shown){shown->count + 1, file->offset, file->size, file->has_size, file->state};
    return LAHAR_OK;
}

Test(sources, reset_while_following)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n22\n3\n");
    follow_fixture_begin(&f);
    cr_assert_eq(lahar_source_reset(f.store, "logs", "a.log", LAHAR_RESET_TO_OFFSET, 99, NULL),
                 LAHAR_INVALID);
    cr_assert_eq(lahar_source_reset(f.store, "logs", "b.log", LAHAR_RESET_TO_START, 0, NULL),
                 LAHAR_NOT_FOUND);
    cr_assert_eq(lahar_source_reset(f.store, "logs", "a.log", LAHAR_RESET_TO_OFFSET, 3, NULL),
                 LAHAR_OK);
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n22\n3\n3\n");
    cr_assert_eq(number_of(&f, "logs", 3, "_line"), 3);
    cr_assert_eq(lahar_source_reset(f.store, "logs", NULL, LAHAR_RESET_TO_START, 0, NULL),
                 LAHAR_OK);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 7);
    follow_fixture_stop(&f);
    add(&f, "a.log", "4\npart");
    cr_assert_eq(lahar_source_reset(f.store, "logs", NULL, LAHAR_RESET_TO_END, 0, NULL), LAHAR_OK);
    follow_fixture_start(&f);
    add(&f, "a.log", "ial\n");
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 8);
    follow_fixture_deinit(&f);
}

Test(sources, change_only_the_one_that_was_named)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n");
    follow_fixture_create(&f);
    f.spec.name = "other";
    f.spec.stream = "other";
    follow_fixture_begin(&f);
    cr_assert_eq(lahar_source_reset(f.store, "other", NULL, LAHAR_RESET_TO_START, 0, NULL),
                 LAHAR_OK);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 1);
    cr_assert_eq(count_messages(&f, "other"), 2);
    cr_assert_eq(lahar_source_drop(f.store, "logs", NULL), LAHAR_OK);
    add(&f, "a.log", "2\n");
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 1);
    cr_assert_eq(count_messages(&f, "other"), 3);
    const char *none = "none";
    lahar_follow_options options;
    lahar_follow *follow = NULL;
    lahar_follow_options_init(&options);
    options.sources = &none;
    options.source_count = 1;
    cr_assert_eq(lahar_follow_open(f.store, &options, &follow, NULL), LAHAR_NOT_FOUND);
    follow_fixture_deinit(&f);
}

Test(sources, show_no_size_of_another_file)
{
    struct follow_fixture f;
    struct shown shown = {0};
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n2\n");
    follow_fixture_begin(&f);
    add(&f, "a.log", "3\n");
    cr_assert_eq(lahar_source_show(f.store, "logs", take_file, &shown, NULL), LAHAR_OK);
    cr_assert_eq(shown.offset, 4);
    cr_assert_eq(shown.size, 6);
    cr_assert_eq(shown.state, LAHAR_FILE_READING);
    move(&f, "a.log", "../elsewhere");
    add(&f, "a.log", "other\n");
    cr_assert_eq(lahar_source_show(f.store, "logs", take_file, &shown, NULL), LAHAR_OK);
    cr_assert_not(shown.has_size);
    follow_fixture_deinit(&f);
}

static lahar_status count_event(void *context, const lahar_event *event)
{
    unsigned *count = context;
    (void)event;
    (*count)++;
    return LAHAR_OK;
}

Test(sources, peek_without_taking_and_consume_as_a_whole)
{
    struct follow_fixture f;
    unsigned count = 0;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n2\n3\n");
    follow_fixture_create(&f);
    cr_assert_eq(lahar_source_peek(f.store, "logs", 2, false, count_event, &count, NULL), LAHAR_OK);
    cr_assert_eq(count, 2);
    cr_assert_eq(lahar_source_peek(f.store, "logs", 2, true, count_event, &count, NULL), LAHAR_OK);
    cr_assert_eq(count, 4);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "3\n");
    follow_fixture_deinit(&f);
}

Test(sources, fail_a_peek_at_a_bad_record_and_consume_nothing)
{
    struct follow_fixture f;
    unsigned count = 0;
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_JSON;
    add(&f, "a.log", "{\"message\":\"1\"}\nbad\n");
    follow_fixture_create(&f);
    cr_assert_eq(lahar_source_peek(f.store, "logs", 9, true, count_event, &count, NULL),
                 LAHAR_INVALID);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n");
    follow_fixture_deinit(&f);
}

static void count_difference(void *context, const char *path, const char *message)
{
    unsigned *count = context;
    (void)path;
    (void)message;
    (*count)++;
}

Test(sources, verify_files_against_the_store)
{
    struct follow_fixture f;
    unsigned count = 0;
    lahar_source_check check = {.struct_size = sizeof check};
    follow_fixture_init(&f);
    add_lines(&f, "a.log", "x", 0, 5000);
    add_lines(&f, "b.log", "y", 0, 10);
    follow_fixture_begin(&f);
    cr_assert_eq(lahar_source_verify(f.store, "logs", count_difference, &count, &check, NULL),
                 LAHAR_OK);
    cr_assert_eq(check.record_count, 5010);
    cr_assert_eq(check.difference_count, 0);
    const int descriptor = open(log_path(&f, "a.log"), O_WRONLY);
    cr_assert_eq(pwrite(descriptor, "X", 1, 5000), 1);
    cr_assert_eq(close(descriptor), 0);
    cr_assert_eq(lahar_source_verify(f.store, "logs", count_difference, &count, &check, NULL),
                 LAHAR_OK);
    cr_assert_eq(check.difference_count, 1);
    cr_assert_eq(count, 1);
    follow_fixture_deinit(&f);
}

Test(sources, pause_and_resume_without_loss)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n");
    follow_fixture_begin(&f);
    cr_assert_eq(lahar_source_pause(f.store, "logs", true, NULL), LAHAR_OK);
    add(&f, "a.log", "2\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n");
    cr_assert_eq(lahar_source_pause(f.store, "logs", false, NULL), LAHAR_OK);
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n");
    follow_fixture_deinit(&f);
}

Test(sources, begin_at_the_end_when_told_to)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.start_at_end = true;
    add(&f, "a.log", "old\npart");
    follow_fixture_begin(&f);
    add(&f, "a.log", "ial\n");
    add(&f, "b.log", "new file\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "partial\nnew file\n");
    follow_fixture_deinit(&f);
}

/* S-73: more changes than the kernel's queue holds, 16,384 unless it was set lower. */
Test(sources, read_everything_after_inotify_ran_over)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    follow_fixture_begin(&f);
    for (unsigned i = 0; i < 7000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u.log", i);
        add(&f, name, "x\n");
    }
    follow_fixture_settle_now(&f);
    cr_assert_eq(count_messages(&f, "logs"), 7000);
    follow_fixture_deinit(&f);
}

/* S-74 */
Test(sources, find_files_without_inotify)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    lahar_watch_destroy(f.follow->watch);
    f.follow->watch = NULL;
    follow_fixture_settle(&f);
    add(&f, "a.log", "1\n");
    follow_fixture_settle(&f);
    add(&f, "a.log", "2\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n");
    lahar_follow_stat stat = {.struct_size = sizeof stat};
    lahar_follow_stat_get(f.follow, &stat);
    cr_assert(stat.is_polling);
    follow_fixture_deinit(&f);
}

Test(sources, see_what_comes_in_each_of_many)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.stream = "logs";
    for (unsigned i = 0; i < 60; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "d%u", i);
        cr_assert_eq(mkdir(log_path(&f, name), 0755), 0);
        f.spec.name = name;
        f.spec.path = log_path(&f, name);
        follow_fixture_create(&f);
    }
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 0);
    for (unsigned i = 0; i < 60; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "d%u/a.log", i);
        add(&f, name, "later\n");
    }
    follow_fixture_settle_now(&f);
    cr_assert_eq(count_messages(&f, "logs"), 60, "without waiting for a look that is due");
    follow_fixture_deinit(&f);
}

Test(sources, without_a_file_answer_with_nothing)
{
    struct follow_fixture f;
    unsigned count = 0;
    lahar_source_check check = {.struct_size = sizeof check};
    follow_fixture_init(&f);
    follow_fixture_begin(&f);
    cr_assert_eq(count_messages(&f, "logs"), 0);
    cr_assert_eq(lahar_source_peek(f.store, "logs", 0, true, count_event, &count, NULL), LAHAR_OK);
    cr_assert_eq(count, 0);
    cr_assert_eq(lahar_source_verify(f.store, "logs", NULL, NULL, &check, NULL), LAHAR_OK);
    cr_assert_eq(check.file_count + check.record_count + check.difference_count, 0);
    follow_fixture_deinit(&f);
}
