/* Which content a file is: inodes, renames, hard links, copies, restarts. The S-numbers are those
 * of docs/filelog.md. */
#include "follow_fixture.h"

/* S-13, S-14: the name comes back with another content, perhaps in the same inode. */
Test(follow_identity, reads_a_file_that_was_removed_and_made_again_from_its_start)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add_lines(&f, "a.log", "old", 0, 50);
    follow_fixture_begin(&f);
    drop(&f, "a.log");
    add(&f, "a.log", "again\n");
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 51);
    follow_fixture_stop(&f);
    drop(&f, "a.log");
    add_lines(&f, "a.log", "third", 0, 60);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 111);
    add(&f, "a.log", "more\n");
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 112);
    follow_fixture_deinit(&f);
}

/* S-13: certainly the same inode: a second name keeps it alive while it is written anew. */
Test(follow_identity, reads_other_content_in_the_same_inode_from_its_start)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "one\ntwo\n");
    follow_fixture_begin(&f);
    follow_fixture_stop(&f);
    write_file(&f, "a.log", O_TRUNC, "uno\ndos\ntres\n", 13);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "one\ntwo\nuno\ndos\ntres\n");
    follow_fixture_deinit(&f);
}

/* S-15, S-16: offsets of files that are gone are kept for a while, then forgotten. */
Test(follow_identity, forgets_files_that_are_gone_after_their_time)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.forget_after_ms = 60000;
    for (unsigned i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u.log", i);
        add(&f, name, "x\n");
    }
    follow_fixture_begin(&f);
    follow_fixture_stop(&f);
    for (unsigned i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u.log", i);
        drop(&f, name);
    }
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(f.follow->sources[0]->files.count, 20);
    lahar_sim_disk_advance(f.disk, UINT64_C(120000000000));
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(f.follow->sources[0]->files.count, 0);
    follow_fixture_restart(&f);
    cr_assert_eq(f.follow->sources[0]->files.count, 0);
    follow_fixture_deinit(&f);
}

/* S-17, S-18: equal beginnings, tiny and empty files. */
Test(follow_identity, tells_files_with_equal_content_apart)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "H\nH\nx1\n");
    add(&f, "b.log", "");
    follow_fixture_begin(&f);
    expect_messages(&f, "H\nH\nx1\n");
    add(&f, "c.log", "H\nH\nx1\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "H\nH\nx1\nH\nH\nx1\n");
    add(&f, "b.log", "2\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "H\nH\nx1\nH\nH\nx1\n2\n");
    follow_fixture_deinit(&f);
}

/* S-19 */
Test(follow_identity, takes_a_leading_blank_line_once)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "\none\ntwo\n");
    follow_fixture_begin(&f);
    follow_fixture_restart(&f);
    expect_messages(&f, "\none\ntwo\n");
    follow_fixture_deinit(&f);
}

/* S-20 */
Test(follow_identity, follows_a_link_that_is_pointed_elsewhere)
{
    struct follow_fixture f;
    char link[SCRATCH_PATH_SIZE * 2];
    char target[SCRATCH_PATH_SIZE * 2];
    follow_fixture_init(&f);
    (void)snprintf(target, sizeof target, "%s/t1", f.scratch);
    (void)snprintf(link, sizeof link, "%s", log_path(&f, "l.log"));
    add(&f, "../t1", "h\nlong one\n");
    add(&f, "../t2", "h\n");
    cr_assert_eq(symlink(target, link), 0);
    follow_fixture_begin(&f);
    expect_messages(&f, "h\nlong one\n");
    cr_assert_eq(unlink(link), 0);
    (void)snprintf(target, sizeof target, "%s/t2", f.scratch);
    cr_assert_eq(symlink(target, link), 0);
    add(&f, "../t2", "new\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "h\nlong one\nh\nnew\n");
    follow_fixture_deinit(&f);
}

/* S-21: a limit is no part of an identity. */
Test(follow_identity, does_not_read_again_when_a_limit_changes)
{
    struct follow_fixture f;
    lahar_source_spec other;
    follow_fixture_init(&f);
    add_lines(&f, "a.log", "x", 0, 10);
    follow_fixture_begin(&f);
    follow_fixture_stop(&f);
    other = f.spec;
    other.name = "second";
    other.stream = "second";
    other.line_size_max = 100;
    cr_assert_eq(lahar_source_create(f.store, &other, NULL), LAHAR_OK);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 10);
    cr_assert_eq(count_messages(&f, "second"), 10);
    follow_fixture_deinit(&f);
}

/* S-22: age alone makes nothing new. */
Test(follow_identity, does_not_read_again_what_was_touched)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "old\n");
    follow_fixture_begin(&f);
    follow_fixture_stop(&f);
    const struct timespec times[2] = {{.tv_sec = 86400}, {.tv_sec = 86400}};
    cr_assert_eq(utimensat(AT_FDCWD, log_path(&f, "a.log"), times, 0), 0);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "old\n");
    const struct timespec future[2] = {{.tv_sec = 4102444800}, {.tv_sec = 4102444800}};
    cr_assert_eq(utimensat(AT_FDCWD, log_path(&f, "a.log"), future, 0), 0);
    add(&f, "a.log", "new\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "old\nnew\n");
    follow_fixture_deinit(&f);
}

/* S-23 */
Test(follow_identity, reads_a_file_that_is_moved_in_from_its_start)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n");
    follow_fixture_begin(&f);
    add(&f, "../outside", "o1\no2\n");
    move(&f, "../outside", "b.log");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\no1\no2\n");
    move(&f, "b.log", "c.log");
    add(&f, "c.log", "o3\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\no1\no2\no3\n");
    follow_fixture_deinit(&f);
}

/* S-24 */
Test(follow_identity, reads_a_file_with_two_names_once)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n");
    cr_assert_eq(link(log_path(&f, "a.log"), log_path(&f, "b.log")), 0);
    follow_fixture_begin(&f);
    add(&f, "a.log", "x\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\nx\n");
    drop(&f, "a.log");
    add(&f, "b.log", "y\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\nx\ny\n");
    follow_fixture_deinit(&f);
}

/* S-25, S-48: a copy is another file, unless the source says that copies are rotations. */
Test(follow_identity, takes_a_copy_as_a_file_of_its_own)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n2\n");
    follow_fixture_begin(&f);
    copy(&f, "a.log", "b.log");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n1\n2\n");
    follow_fixture_deinit(&f);
}

/* S-26, S-27: another device number alone changes nothing. */
Test(follow_identity, knows_a_file_whose_device_number_has_changed)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "1\n2\n");
    follow_fixture_begin(&f);
    f.follow->sources[0]->files.files[0]->cursor.device += 7;
    f.follow->sources[0]->files.files[0]->must_commit = true;
    add(&f, "a.log", "3\n");
    follow_fixture_stop(&f);
    follow_fixture_start(&f);
    f.follow->sources[0]->files.files[0]->cursor.device += 7;
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n3\n");
    follow_fixture_deinit(&f);
}

/* S-12: more files than may be open, in several lives. */
Test(follow_identity, reads_more_files_than_it_may_open)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.open_files_max = 2;
    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u.log", i);
        add(&f, name, "x\ny\n");
    }
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    (void)lahar_follow_step(f.follow, f.now_ns);
    follow_fixture_restart(&f);
    cr_assert_eq(count_messages(&f, "logs"), 400);
    cr_assert_leq(f.follow->sources[0]->open_count, 3);
    follow_fixture_deinit(&f);
}

/* Each file has more than one round takes: they are read one after the other, not all at once. */
Test(follow_identity, keeps_few_files_open_while_all_have_more)
{
    struct follow_fixture f;
    char text[40 * 4 + 1];
    follow_fixture_init(&f);
    f.spec.open_files_max = 2;
    f.spec.max_block_size = 4;
    f.spec.poll_max_batch_size = 4;
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(text + (size_t)i * 4, 5, "%03u\n", i);
    }
    for (unsigned i = 0; i < 30; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u.log", i);
        add(&f, name, text);
    }
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    size_t most = 0;
    for (unsigned i = 0; i < 1000 && count_messages(&f, "logs") < 30 * 40; i++) {
        (void)lahar_follow_step(f.follow, f.now_ns);
        const size_t open_count = f.follow->sources[0]->open_count;
        most = open_count > most ? open_count : most;
    }
    cr_assert_eq(count_messages(&f, "logs"), 30 * 40);
    cr_assert_leq(most, 3);
    follow_fixture_deinit(&f);
}

/* A file of many rounds is read before others, but not to its end. */
Test(follow_identity, lets_a_long_file_give_way)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.open_files_max = 1;
    f.spec.max_block_size = 1;
    f.spec.poll_max_batch_size = 1;
    for (unsigned i = 0; i < 400; i++) {
        add(&f, "a.log", "long\n");
        add(&f, "b.log", "long\n");
    }
    add(&f, "c.log", "short\n");
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    bool has_short = false;
    for (unsigned i = 0; i < 1000 && !has_short; i++) {
        (void)lahar_follow_step(f.follow, f.now_ns);
        char *messages = messages_of(&f, "logs", LAHAR_FIELD_MESSAGE);
        has_short = strstr(messages, "short") != NULL;
        free(messages);
    }
    cr_assert(has_short);
    cr_assert_lt(count_messages(&f, "logs"), 400);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 801);
    follow_fixture_deinit(&f);
}
