/* The plain life of a source: files come, grow, and are read once. */
#include "follow_fixture.h"

Test(follow, reads_what_is_there_and_what_comes)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "one\ntwo\n");
    follow_fixture_begin(&f);
    expect_messages(&f, "one\ntwo\n");
    add(&f, "a.log", "three\n");
    follow_fixture_settle_now(&f);
    expect_messages(&f, "one\ntwo\nthree\n");
    follow_fixture_restart(&f);
    expect_messages(&f, "one\ntwo\nthree\n");
    follow_fixture_deinit(&f);
}

Test(follow, keeps_a_partial_line_until_it_ends)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "foo\nab");
    follow_fixture_begin(&f);
    expect_messages(&f, "foo\n");
    follow_fixture_stop(&f);
    add(&f, "a.log", "c\n");
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "foo\nabc\n");
    follow_fixture_deinit(&f);
}

Test(follow, reads_on_after_a_rename_and_reads_the_new_file)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n");
    follow_fixture_begin(&f);
    add(&f, "a.log", "last\n");
    move(&f, "a.log", "a.log.1");
    add(&f, "a.log", "new\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\nlast\nnew\n");
    follow_fixture_deinit(&f);
}

Test(follow, starts_over_after_a_truncation)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add_lines(&f, "a.log", "old", 0, 100);
    follow_fixture_begin(&f);
    cut(&f, "a.log", 0);
    add_lines(&f, "a.log", "new", 0, 5);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 105);
    follow_fixture_deinit(&f);
}

Test(follow, loses_and_repeats_nothing_in_a_kill)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add_lines(&f, "a.log", "line", 0, 1000);
    f.spec.max_block_size = 100;
    f.spec.poll_max_batch_size = 100;
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    for (unsigned i = 0; i < 7; i++) {
        (void)lahar_follow_step(f.follow, f.now_ns);
    }
    follow_fixture_kill(&f);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    char *text = messages_of(&f, "logs", LAHAR_FIELD_MESSAGE);
    unsigned expected = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char wanted[32];
        (void)snprintf(wanted, sizeof wanted, "line %u", expected++);
        cr_assert_str_eq(line, wanted);
    }
    cr_assert_eq(expected, 1000);
    free(text);
    follow_fixture_deinit(&f);
}
