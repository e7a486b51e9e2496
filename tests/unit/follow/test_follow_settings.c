/* Each setting of FileLog changes what is seen: the records of a block, when a block ends, how many
 * threads there are, how looks are spaced, and what becomes of a bad line, followed or peeked at.
 */
#include "follow_fixture.h"
#include "io/io.h"

/* --- blocks ------------------------------------------------------------------------------- */

/* The records of each commit, as "4 4 2 ". */
static const char *blocks_of(struct follow_fixture *f)
{
    static char text[256];
    size_t before = 0;
    size_t at = 0;
    follow_fixture_create(f);
    follow_fixture_start(f);
    text[0] = '\0';
    for (unsigned step = 0; step < 100; step++) {
        const bool has_worked = lahar_follow_step(f->follow, f->now_ns);
        const size_t count = count_messages(f, "logs");
        if (count != before) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%zu ", count - before);
            before = count;
        } else if (!has_worked) {
            break;
        }
    }
    return text;
}

Test(follow_settings, poll_max_batch_size_is_what_a_file_gives_at_a_time)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.poll_max_batch_size = 4;
    add_lines(&f, "a.log", "a", 0, 10);
    add_lines(&f, "b.log", "b", 0, 5);
    cr_assert_str_eq(blocks_of(&f), "8 5 2 ");
    follow_fixture_deinit(&f);
}

Test(follow_settings, max_block_size_is_what_a_commit_holds)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.max_block_size = 7;
    add_lines(&f, "a.log", "a", 0, 10);
    add_lines(&f, "b.log", "b", 0, 6);
    cr_assert_str_eq(blocks_of(&f), "7 7 2 ");
    follow_fixture_deinit(&f);
}

static uint64_t slow_ns;
static uint64_t read_slow_clock(struct lahar_io *io)
{
    (void)io;
    return slow_ns += UINT64_C(10000000); /* 10 ms with each look */
}

static const char *blocks_in_time(uint64_t timeout_ms)
{
    struct follow_fixture f;
    static char text[256];
    follow_fixture_init(&f);
    f.spec.poll_timeout_ms = timeout_ms;
    for (unsigned i = 0; i < 6; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u.log", i);
        add(&f, name, "x\n");
    }
    const struct lahar_io_ops *ops = f.io->ops;
    struct lahar_io_ops slow = *ops;
    slow.monotonic_ns = read_slow_clock;
    f.io->ops = &slow;
    (void)snprintf(text, sizeof text, "%s", blocks_of(&f));
    f.io->ops = ops;
    follow_fixture_deinit(&f);
    return text;
}

Test(follow_settings, poll_timeout_ms_ends_a_block)
{
    cr_assert_str_eq(blocks_in_time(0), "6 ");
    cr_assert_str_eq(blocks_in_time(1), "1 1 1 1 1 1 ");
}

/* --- threads ---------------------------------------------------------------------------------- */

static size_t threads_with(uint64_t max_threads)
{
    struct follow_fixture f;
    lahar_follow_options options;
    follow_fixture_init(&f);
    f.spec.max_threads = max_threads;
    follow_fixture_create(&f);
    lahar_follow_options_init(&options);
    options.once = true;
    cr_assert_eq(lahar_follow_open(f.store, &options, &f.follow, NULL), LAHAR_OK);
    /* No file: nothing is committed by the threads. */
    cr_assert_eq(lahar_follow_run(f.follow, NULL), LAHAR_OK);
    const size_t count = f.follow->worker_count;
    follow_fixture_deinit(&f);
    return count;
}

Test(follow_settings, max_threads_is_how_many_read)
{
    cr_assert_eq(threads_with(1), 1);
    if (lahar_io_processor_count() >= 2) {
        cr_assert_eq(threads_with(2), 2);
    }
}

Test(follow_settings, max_threads_is_how_many_read_one_source)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "x\n");
    follow_fixture_begin(&f);
    struct lahar_follow_source *source = f.follow->sources[0];
    lahar_follow_enqueue(source, source->files.files[0]);
    source->spec.max_threads = 2;
    source->round_count = 1;
    cr_assert(lahar_follow_has_round(f.follow, f.now_ns));
    source->round_count = 2;
    cr_assert_not(lahar_follow_has_round(f.follow, f.now_ns));
    source->round_count = 0;
    follow_fixture_deinit(&f);
}

/* --- looks --------------------------------------------------------------------------------------
 */

static void expect_waits(uint64_t init, uint64_t factor, uint64_t max, const uint64_t waits[4])
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.poll_directory_watch_events_backoff_init = init;
    f.spec.poll_directory_watch_events_backoff_factor = factor;
    f.spec.poll_directory_watch_events_backoff_max = max;
    add(&f, "a.log", "x\n");
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    const struct lahar_follow_source *source = f.follow->sources[0];
    while (lahar_follow_step(f.follow, f.now_ns)) {
    }
    cr_assert_eq(source->next_scan_ns - f.now_ns, init * 1000000, "the first look found a file");
    for (size_t i = 0; i < 4; i++) {
        f.now_ns = source->next_scan_ns;
        while (lahar_follow_step(f.follow, f.now_ns)) {
        }
        cr_assert_eq(source->next_scan_ns - f.now_ns, waits[i] * 1000000, "look %zu", i);
    }
    add(&f, "b.log", "x\n");
    f.now_ns = source->next_scan_ns;
    while (lahar_follow_step(f.follow, f.now_ns)) {
    }
    cr_assert_leq(source->next_scan_ns - f.now_ns, init * factor * 1000000,
                  "soon again after something was found");
    follow_fixture_deinit(&f);
}

Test(follow_settings, looks_are_spaced_by_the_three_of_the_backoff)
{
    expect_waits(100, 2, 1000, (const uint64_t[]){200, 400, 800, 1000});
    expect_waits(100, 3, 1000, (const uint64_t[]){300, 900, 1000, 1000});
    expect_waits(50, 2, 1000, (const uint64_t[]){100, 200, 400, 800});
    expect_waits(100, 2, 300, (const uint64_t[]){200, 300, 300, 300});
}

/* --- bad lines
 * ------------------------------------------------------------------------------------ */

struct seen {
    unsigned good;
    unsigned bad; /* with their bytes and the reason */
};

static lahar_status see(void *context, const lahar_event *event)
{
    struct seen *seen = context;
    const bool is_bad = lahar_event_find(event, LAHAR_FIELD_ERROR) != NULL &&
                        text_of(event, LAHAR_FIELD_ERROR).size != 0;
    seen->bad += is_bad;
    seen->good += !is_bad;
    return LAHAR_OK;
}

/* Of two good lines with a bad one between, by a peek. */
static lahar_status peek(lahar_error_mode mode, struct seen *seen)
{
    struct follow_fixture f;
    *seen = (struct seen){0};
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_JSON;
    f.spec.handle_error_mode = mode;
    add(&f, "a.log", "{\"message\":\"1\"}\nbad\n{\"message\":\"3\"}\n");
    follow_fixture_create(&f);
    const lahar_status status = lahar_source_peek(f.store, "logs", 0, false, see, seen, NULL);
    follow_fixture_deinit(&f);
    return status;
}

Test(follow_settings, each_error_mode_decides_what_a_peek_sees)
{
    struct seen seen;
    cr_assert_neq(peek(LAHAR_ERROR_MODE_DEFAULT, &seen), LAHAR_OK);
    cr_assert_eq(peek(LAHAR_ERROR_MODE_STREAM, &seen), LAHAR_OK);
    cr_assert(seen.good == 2 && seen.bad == 1);
    cr_assert_eq(peek(LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE, &seen), LAHAR_OK);
    cr_assert(seen.good == 2 && seen.bad == 1);
    cr_assert_eq(peek(LAHAR_ERROR_MODE_SKIP, &seen), LAHAR_OK);
    cr_assert(seen.good == 2 && seen.bad == 0);
    (void)peek(LAHAR_ERROR_MODE_STOP, &seen);
    cr_assert(seen.good == 1 && seen.bad == 0);
}

static void follow_bad(lahar_error_mode mode, size_t logs, size_t dead_letters, uint64_t errors)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_JSON;
    f.spec.handle_error_mode = mode;
    add(&f, "a.log", "{\"message\":\"1\"}\nbad\n{\"message\":\"3\"}\n");
    follow_fixture_begin(&f);
    cr_assert_eq(count_messages(&f, "logs"), logs);
    if (dead_letters != 0) {
        cr_assert_eq(count_messages(&f, "logs.dead_letter"), dead_letters);
    }
    cr_assert_eq(f.follow->error_count, errors);
    follow_fixture_deinit(&f);
}

Test(follow_settings, each_error_mode_decides_what_following_keeps)
{
    follow_bad(LAHAR_ERROR_MODE_DEFAULT, 2, 0, 1);
    follow_bad(LAHAR_ERROR_MODE_STREAM, 3, 0, 1);
    follow_bad(LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE, 2, 1, 1);
    follow_bad(LAHAR_ERROR_MODE_SKIP, 2, 0, 1);
    follow_bad(LAHAR_ERROR_MODE_STOP, 1, 0, 0);
}
