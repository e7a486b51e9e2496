/* Rotation, removal and truncation. The S-numbers are those of docs/filelog.md. */
#include "follow_fixture.h"

/* S-28, S-29, S-30: what is written around a rename is read, old before new. */
Test(follow_rotation, reads_what_is_written_around_a_rename)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "f.log", "1\n");
    follow_fixture_begin(&f);
    add(&f, "f.log", "last\n");
    move(&f, "f.log", "f.log.1");
    add(&f, "f.log", "new\n");
    add(&f, "f.log.1", "late\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\nlast\nlate\nnew\n");
    follow_fixture_deinit(&f);
}

/* S-31, S-32, S-33: chains, while following and while not. */
Test(follow_rotation, keeps_offsets_in_a_chain_of_renames)
{
    for (unsigned is_stopped = 0; is_stopped < 2; is_stopped++) {
        struct follow_fixture f;
        follow_fixture_init(&f);
        add(&f, "f.1", "old\n");
        add(&f, "f", "mid\n");
        follow_fixture_begin(&f);
        if (is_stopped != 0) {
            follow_fixture_stop(&f);
        }
        add(&f, "f", "rest\n");
        move(&f, "f.1", "f.2");
        move(&f, "f", "f.1");
        add(&f, "f", "m1\nm2\n");
        move(&f, "f.2", "f.3");
        move(&f, "f.1", "f.2");
        move(&f, "f", "f.1");
        add(&f, "f", "new\n");
        if (is_stopped != 0) {
            follow_fixture_start(&f);
        }
        follow_fixture_settle(&f);
        cr_assert_eq(count_messages(&f, "logs"), 6);
        follow_fixture_restart(&f);
        cr_assert_eq(count_messages(&f, "logs"), 6);
        follow_fixture_deinit(&f);
    }
}

/* S-34 */
Test(follow_rotation, keeps_offsets_when_two_names_are_exchanged)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "a 1\n");
    add(&f, "b.log", "b 1\nb 2\n");
    follow_fixture_begin(&f);
    for (unsigned i = 0; i < 3; i++) {
        move(&f, "a.log", "c.log");
        move(&f, "b.log", "a.log");
        move(&f, "c.log", "b.log");
        add(&f, i % 2 == 0 ? "b.log" : "a.log", "a more\n");
        follow_fixture_settle(&f);
        cr_assert_eq(count_messages(&f, "logs"), 4 + i);
    }
    follow_fixture_deinit(&f);
}

Test(follow_rotation, reads_the_last_words_of_a_removed_file)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "f.log", "a\n");
    follow_fixture_begin(&f);
    add(&f, "f.log", "z\n");
    drop(&f, "f.log");
    follow_fixture_settle(&f);
    expect_messages(&f, "a\nz\n");
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(f.follow->sources[0]->files.count, 0, "closed and forgotten once drained");
    follow_fixture_deinit(&f);
}

/* S-35, S-36 */
Test(follow_rotation, reads_every_line_of_many_rotations)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add_lines(&f, "f.log", "r", 0, 2);
    follow_fixture_begin(&f);
    for (unsigned i = 1; i < 100; i++) {
        move(&f, "f.log", "f.log.1");
        if (i % 3 == 0) {
            follow_fixture_settle_now(&f);
        }
        add_lines(&f, "f.log", "r", 2 * i, 2 * i + 2);
        follow_fixture_settle(&f);
    }
    cr_assert_eq(count_messages(&f, "logs"), 200);
    follow_fixture_deinit(&f);
}

/* S-37 */
Test(follow_rotation, reads_nothing_again_of_a_rotated_file_that_is_touched)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "f.log", "a\n");
    follow_fixture_begin(&f);
    move(&f, "f.log", "f.log.1");
    follow_fixture_settle(&f);
    cr_assert_eq(utimensat(AT_FDCWD, log_path(&f, "f.log.1"), NULL, 0), 0);
    follow_fixture_settle(&f);
    expect_messages(&f, "a\n");
    follow_fixture_deinit(&f);
}

/* S-38 */
Test(follow_rotation, reads_both_when_a_file_is_moved_over_another)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "f.log", "f1\n");
    follow_fixture_begin(&f);
    add(&f, "f.log", "f2\n");
    add(&f, "../g", "g1\ng2\n");
    move(&f, "../g", "f.log");
    follow_fixture_settle(&f);
    expect_messages(&f, "f1\nf2\ng1\ng2\n");
    follow_fixture_deinit(&f);
}

/* S-39, S-40 */
Test(follow_rotation, knows_a_file_that_leaves_and_comes_back)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "f.log", "1\n");
    add(&f, "g.log", "2\n");
    follow_fixture_begin(&f);
    move(&f, "f.log", "../parked");
    follow_fixture_settle(&f);
    add(&f, "../parked", "x\n");
    move(&f, "../parked", "f.log");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\nx\n");
    move(&f, "f.log", "t");
    move(&f, "g.log", "f.log");
    move(&f, "t", "g.log");
    add(&f, "f.log", "y\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\nx\ny\n");
    follow_fixture_deinit(&f);
}

/* S-41, S-82: the directory itself is moved, removed and made again. */
Test(follow_rotation, follows_a_directory_that_is_made_again)
{
    struct follow_fixture f;
    char moved[SCRATCH_PATH_SIZE * 2];
    follow_fixture_init(&f);
    add(&f, "f.log", "1\n");
    follow_fixture_begin(&f);
    add(&f, "f.log", "2\n");
    (void)snprintf(moved, sizeof moved, "%s/moved", f.scratch);
    cr_assert_eq(rename(f.logs, moved), 0);
    follow_fixture_settle(&f);
    cr_assert_eq(mkdir(f.logs, 0755), 0);
    add(&f, "f.log", "3\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n3\n");
    follow_fixture_deinit(&f);
}

/* S-42 */
Test(follow_rotation, reads_both_files_behind_a_link)
{
    struct follow_fixture f;
    char target[SCRATCH_PATH_SIZE * 2];
    follow_fixture_init(&f);
    (void)snprintf(target, sizeof target, "%s/0", f.scratch);
    add(&f, "../0", "a\n");
    cr_assert_eq(symlink(target, log_path(&f, "c.log")), 0);
    follow_fixture_begin(&f);
    add(&f, "../0", "b\n");
    move(&f, "../0", "../0.1");
    add(&f, "../0", "c\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "a\nb\nc\n");
    follow_fixture_deinit(&f);
}

/* S-43: out of the pattern, read on. */
Test(follow_rotation, reads_on_a_file_whose_name_no_longer_matches)
{
    struct follow_fixture f;
    char pattern[SCRATCH_PATH_SIZE * 2];
    follow_fixture_init(&f);
    (void)snprintf(pattern, sizeof pattern, "%s/*.log", f.logs);
    f.spec.path = pattern;
    add(&f, "f.log", "1\n");
    add(&f, "other.txt", "no\n");
    follow_fixture_begin(&f);
    move(&f, "f.log", "f.log.1");
    add(&f, "f.log", "2\n");
    follow_fixture_settle(&f);
    add(&f, "f.log.1", "late\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\nlate\n");
    follow_fixture_stop(&f);
    add(&f, "f.log.1", "later\n");
    add(&f, "f.log", "3\n");
    move(&f, "f.log", "f.log.2");
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 5);
    follow_fixture_deinit(&f);
}

/* --- truncation ------------------------------------------------------------------------- */

/* S-45, S-47 */
Test(follow_truncation, notices_a_file_that_has_grown_again)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add_lines(&f, "a.log", "old", 0, 10);
    follow_fixture_begin(&f);
    cut(&f, "a.log", 0);
    add_lines(&f, "a.log", "a much longer line than before", 0, 100);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 110);
    follow_fixture_restart(&f);
    cr_assert_eq(count_messages(&f, "logs"), 110);
    follow_fixture_deinit(&f);
}

/* S-46: equal beginning, shorter: the writer has started over. */
Test(follow_truncation, reads_an_equal_beginning_again)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "banner\n1\n");
    follow_fixture_begin(&f);
    cut(&f, "a.log", 0);
    add(&f, "a.log", "banner\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "banner\n1\nbanner\n");
    cr_assert_neq(number_of(&f, "logs", 0, "_generation"), number_of(&f, "logs", 2, "_generation"));
    follow_fixture_deinit(&f);
}

/* S-48 with copies_rotated: no duplicates, and the unread tail comes from the copy. */
Test(follow_truncation, recovers_the_unread_tail_from_a_copy)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.copies_rotated = true;
    add(&f, "f", "1\n2\n");
    follow_fixture_begin(&f);
    follow_fixture_stop(&f);
    add(&f, "f", "3\n");
    copy(&f, "f", "f.1");
    cut(&f, "f", 0);
    add(&f, "f", "n\n");
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 4);
    char *text = messages_of(&f, "logs", LAHAR_FIELD_MESSAGE);
    cr_assert_not_null(strstr(text, "3\n"));
    cr_assert_not_null(strstr(text, "n\n"));
    free(text);
    follow_fixture_restart(&f);
    cr_assert_eq(count_messages(&f, "logs"), 4);
    follow_fixture_deinit(&f);
}

/* S-48: a copy beside its living original. */
Test(follow_truncation, takes_nothing_from_a_copy_of_a_living_file)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.copies_rotated = true;
    add(&f, "f", "1\n2\n");
    follow_fixture_begin(&f);
    copy(&f, "f", "f.bak");
    add(&f, "f", "3\n");
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n3\n");
    follow_fixture_deinit(&f);
}

/* S-49, S-51: bytes that were seen and not read are reported. */
Test(follow_truncation, reports_what_may_be_lost)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.poll_max_batch_size = 2;
    add_lines(&f, "a.log", "x", 0, 10); /* 4 bytes each */
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    (void)lahar_follow_step(f.follow, f.now_ns);
    cr_assert_eq(count_messages(&f, "logs"), 2);
    cut(&f, "a.log", 0);
    add(&f, "a.log", "y\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "x 0\nx 1\ny\n");
    cr_assert_eq(count_messages(&f, "gaps"), 1);
    cr_assert_eq(number_of(&f, "gaps", 0, "gap_from"), 8);
    cr_assert_eq(number_of(&f, "gaps", 0, "gap_to"), 40);
    cr_assert_eq(f.follow->gap_size, 32);
    follow_fixture_deinit(&f);
}

/* S-33: removed before it was read to its end, while nobody held it. */
Test(follow_truncation, reports_a_file_that_was_removed_unread)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.poll_max_batch_size = 2;
    add_lines(&f, "a.log", "x", 0, 10);
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    (void)lahar_follow_step(f.follow, f.now_ns);
    follow_fixture_stop(&f);
    drop(&f, "a.log");
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "gaps"), 1);
    cr_assert_eq(number_of(&f, "gaps", 0, "gap_from"), 8);
    cr_assert_eq(number_of(&f, "gaps", 0, "gap_to"), 40);
    follow_fixture_restart(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "gaps"), 1);
    follow_fixture_deinit(&f);
}

/* S-50 */
Test(follow_truncation, never_moves_its_offset_by_a_size_that_it_saw)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "aaaa\nbbbb\n");
    follow_fixture_begin(&f);
    cut(&f, "a.log", 5);
    add(&f, "a.log", "cccc\ndddd\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "aaaa\nbbbb\naaaa\ncccc\ndddd\n");
    follow_fixture_deinit(&f);
}

/* S-52: a writer that goes on at its old place. */
Test(follow_truncation, passes_over_the_hole_of_a_copied_and_truncated_log)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "old\n");
    follow_fixture_begin(&f);
    cut(&f, "a.log", 0);
    const int descriptor = open(log_path(&f, "a.log"), O_WRONLY);
    cr_assert_eq(pwrite(descriptor, "x\ny\n", 4, 100 << 20), 4);
    cr_assert_eq(close(descriptor), 0);
    follow_fixture_settle(&f);
    expect_messages(&f, "old\nx\ny\n");
    cr_assert_eq(number_of(&f, "logs", 1, "_offset"), 100 << 20);
    follow_fixture_deinit(&f);
}

/* Space that is reserved ahead is no hole: what is written into it is read. */
Test(follow_truncation, waits_at_reserved_space)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "one\n");
    cut(&f, "a.log", 5000);
    follow_fixture_begin(&f);
    expect_messages(&f, "one\n");
    const int descriptor = open(log_path(&f, "a.log"), O_WRONLY);
    cr_assert_eq(pwrite(descriptor, "two\n", 4, 4), 4);
    cr_assert_eq(close(descriptor), 0);
    follow_fixture_settle(&f);
    expect_messages(&f, "one\ntwo\n");
    follow_fixture_deinit(&f);
}

/* S-53 with on_shrink_continue. */
Test(follow_truncation, keeps_the_history_of_a_file_cut_at_its_end_when_told_to)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.on_shrink_continue = true;
    add_lines(&f, "a.log", "line", 1, 11);
    follow_fixture_begin(&f);
    cut(&f, "a.log", 9 * 7);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 10);
    add(&f, "a.log", "line 11\n");
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 11);
    follow_fixture_deinit(&f);
}

/* S-61: the host went down and took the file's end with it. */
Test(follow_truncation, knows_a_file_that_a_crash_of_the_host_rolled_back)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add_lines(&f, "a.log", "line", 10, 110);
    follow_fixture_begin(&f);
    follow_fixture_stop(&f);
    cut(&f, "a.log", 60 * 8);
    follow_fixture_start(&f);
    f.follow->boot_id[0] ^= 1;
    f.follow->booted_ns = INT64_MAX;
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 100);
    cr_assert_eq(number_of(&f, "gaps", 0, "gap_from"), 60 * 8);
    add(&f, "a.log", "line 999\n");
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 101);
    follow_fixture_deinit(&f);
}
