/* From bytes to records: partial, long, encoded, damaged and compressed input, and the error
 * modes. The S-numbers are those of docs/filelog.md. */
#include <libdeflate.h>

#include "follow_fixture.h"

/* S-55: a last line without its end waits, or is taken when the file is final. */
Test(follow_lines, takes_an_unfinished_line_of_a_removed_file)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "foo\nbar");
    follow_fixture_begin(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "foo\n");
    drop(&f, "a.log");
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "foo\nbar\n");
    follow_fixture_deinit(&f);
}

Test(follow_lines, takes_an_unfinished_line_after_its_time)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.partial_timeout_ms = 1000;
    add(&f, "a.log", "foo\nbar");
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    follow_fixture_settle_now(&f);
    expect_messages(&f, "foo\n");
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "foo\nbar\n");
    follow_fixture_deinit(&f);
}

/* S-56: pauses of the writer do not split a line. */
Test(follow_lines, joins_a_line_that_comes_in_pieces)
{
    struct follow_fixture f;
    char piece[10001];
    follow_fixture_init(&f);
    memset(piece, 'x', sizeof piece);
    write_file(&f, "a.log", O_APPEND, piece, 10000);
    follow_fixture_begin(&f);
    for (unsigned i = 0; i < 20; i++) {
        write_file(&f, "a.log", O_APPEND, piece, 10000);
        follow_fixture_settle(&f);
    }
    add(&f, "a.log", "\nend\n");
    follow_fixture_settle(&f);
    char *text = messages_of(&f, "logs", LAHAR_FIELD_MESSAGE);
    cr_assert_eq(strlen(text), 210000 + 1 + 4);
    free(text);
    follow_fixture_deinit(&f);
}

/* S-57: a line above the limit, by each of its modes; in one read and across many. */
Test(follow_lines, cuts_a_long_line_and_keeps_its_neighbours)
{
    static char big[3 << 20];
    for (unsigned is_slow = 0; is_slow < 2; is_slow++) {
        struct follow_fixture f;
        follow_fixture_init(&f);
        memset(big, 'b', sizeof big);
        add(&f, "a.log", "before\n");
        if (is_slow != 0) {
            for (unsigned i = 0; i < 3; i++) {
                write_file(&f, "a.log", O_APPEND, big, sizeof big / 3);
                if (i == 0) {
                    follow_fixture_begin(&f);
                } else {
                    follow_fixture_settle(&f);
                    follow_fixture_restart(&f);
                }
            }
            add(&f, "a.log", "\nafter\n");
            follow_fixture_settle(&f);
        } else {
            write_file(&f, "a.log", O_APPEND, big, sizeof big);
            add(&f, "a.log", "\nafter\n");
            follow_fixture_begin(&f);
        }
        char *text = messages_of(&f, "logs", LAHAR_FIELD_MESSAGE);
        cr_assert_eq(strlen(text), 7 + (1 << 20) + 1 + 6);
        cr_assert_eq(strncmp(text, "before\nbbb", 10), 0);
        cr_assert_str_eq(text + strlen(text) - 8, "b\nafter\n");
        free(text);
        cr_assert_eq(number_of(&f, "logs", 1, "_truncated"), sizeof big);
        cr_assert_eq(number_of(&f, "logs", 1, "_line"), 2);
        cr_assert_eq(number_of(&f, "logs", 2, "_line"), 3);
        follow_fixture_deinit(&f);
    }
}

static uint64_t next_id(struct follow_fixture *f)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(f->store, &stat, NULL), LAHAR_OK);
    return stat.next_id;
}

/* A line without an end, a piece at a time: the store does not grow with it, and a process that
 * dies in the midst of it neither loses nor repeats anything. */
Test(follow_lines, commits_a_long_line_that_grows_once_in_a_while)
{
    enum {
        PIECES = 200,
        MIB = 1 << 20
    };
    static char big[MIB];
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.line_size_max = 64;
    memset(big, 'b', sizeof big);
    add(&f, "a.log", "before\n");
    follow_fixture_begin(&f);
    uint64_t size = 0;
    uint64_t before = next_id(&f);
    for (unsigned i = 0; i < PIECES; i++) {
        write_file(&f, "a.log", O_APPEND, big, 1000);
        size += 1000;
        follow_fixture_settle(&f);
    }
    cr_assert_leq(next_id(&f) - before, 2, "%llu ids", (unsigned long long)(next_id(&f) - before));
    follow_fixture_kill(&f);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    /* So is one of many mebibytes, of which the last 64 at most are looked at again. */
    before = next_id(&f);
    for (unsigned i = 0; i < 150; i++) {
        write_file(&f, "a.log", O_APPEND, big, sizeof big);
        size += sizeof big;
        follow_fixture_settle(&f);
    }
    cr_assert_eq(next_id(&f) - before, 2);
    const struct lahar_followed_file *file = f.follow->sources[0]->files.files[0];
    cr_assert_eq(file->cursor.offset, 7 + size);
    cr_assert_geq(file->committed_offset, 128 * (uint64_t)MIB);
    follow_fixture_kill(&f);
    add(&f, "a.log", "\nafter\n");
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    char *text = messages_of(&f, "logs", LAHAR_FIELD_MESSAGE);
    cr_assert_eq(strlen(text), 7 + 64 + 1 + 6);
    cr_assert_eq(strncmp(text, "before\nbbb", 10), 0);
    cr_assert_str_eq(text + strlen(text) - 8, "b\nafter\n");
    free(text);
    cr_assert_eq(number_of(&f, "logs", 1, "_truncated"), size);
    cr_assert_eq(number_of(&f, "logs", 2, "_line"), 3);
    follow_fixture_deinit(&f);
}

Test(follow_lines, passes_over_or_reports_a_long_line)
{
    for (unsigned mode = 0; mode < 2; mode++) {
        struct follow_fixture f;
        follow_fixture_init(&f);
        f.spec.line_size_max = 16;
        f.spec.long_line = mode == 0 ? LAHAR_LONG_LINE_SKIP : LAHAR_LONG_LINE_ERROR;
        f.spec.handle_error_mode = LAHAR_ERROR_MODE_STREAM;
        add(&f, "a.log", "1234567890123456\n12345678901234567\nend\n");
        follow_fixture_begin(&f);
        char *raw = messages_of(&f, "logs", LAHAR_FIELD_RAW_RECORD);
        cr_assert_str_eq(raw, mode == 0 ? "\n\n" : "\n1234567890123456\n\n");
        free(raw);
        cr_assert_eq(f.follow->error_count, 1);
        follow_fixture_deinit(&f);
    }
}

/* S-59, S-65 */
Test(follow_lines, counts_bytes_and_strips_carriage_returns)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.log", "a\r\n");
    follow_fixture_begin(&f);
    add(&f, "a.log", "\303\251\n");
    follow_fixture_restart(&f);
    add(&f, "a.log", "c\r\n");
    follow_fixture_restart(&f);
    expect_messages(&f, "a\n\303\251\nc\n");
    cr_assert_eq(number_of(&f, "logs", 2, "_offset"), 6);
    follow_fixture_deinit(&f);
}

/* S-60: UTF-16 with its mark, read on in the middle of the file. */
Test(follow_lines, decodes_utf16_and_goes_on_in_it)
{
    static const char first[] = "\xff\xfe"
                                "a\0\xe9\0\n\0\x0a\x0a\n\0";
    struct follow_fixture f;
    follow_fixture_init(&f);
    write_file(&f, "a.log", O_APPEND, first, sizeof first - 1);
    follow_fixture_begin(&f);
    expect_messages(&f, "a\303\251\n\340\250\212\n");
    follow_fixture_stop(&f);
    write_file(&f, "a.log", O_APPEND, "z\0\x3d\xd8\x80\xde\n", 7);
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "a\303\251\n\340\250\212\n");
    write_file(&f, "a.log", O_APPEND, "\0", 1);
    follow_fixture_settle(&f);
    expect_messages(&f, "a\303\251\n\340\250\212\nz\360\237\232\200\n");
    cr_assert_eq(number_of(&f, "logs", 0, "_offset"), 2);
    cr_assert_eq(number_of(&f, "logs", 1, "_offset"), 8);
    cr_assert_eq(number_of(&f, "logs", 2, "_offset"), 12);
    follow_fixture_deinit(&f);
}

/* S-62 */
Test(follow_lines, keeps_any_bytes)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    write_file(&f, "a.log", O_APPEND, "a\0b\n\303(\nx\ry\n\f\032\n", 14);
    follow_fixture_begin(&f);
    cr_assert_eq(count_messages(&f, "logs"), 4);
    follow_fixture_deinit(&f);
}

/* S-63: also after a truncation. */
Test(follow_lines, strips_a_byte_order_mark_at_each_start)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_JSON;
    add(&f, "a.log", "\xef\xbb\xbf{\"message\":\"1\"}\n{\"message\":\"2\"}\n");
    follow_fixture_begin(&f);
    cut(&f, "a.log", 0);
    add(&f, "a.log", "\xef\xbb\xbf{\"message\":\"3\"}\n");
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n3\n");
    cr_assert_eq(f.follow->error_count, 0);
    follow_fixture_deinit(&f);
}

/* --- formats ----------------------------------------------------------------------------- */

Test(follow_lines, lets_no_line_swallow_the_next)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_JSON;
    add(&f, "a.log", "{\"message\":\"1\"}\n{\"message\":\n{\"message\":\"3\"}\n");
    follow_fixture_begin(&f);
    expect_messages(&f, "1\n3\n");
    cr_assert_eq(f.follow->error_count, 1);
    follow_fixture_deinit(&f);
}

/* Several objects on a line, and a full block between them. */
Test(follow_lines, goes_on_inside_a_line)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_JSON;
    f.spec.max_block_size = 2;
    add(&f, "a.log",
        "{\"message\":\"1\"} {\"message\":\"2\"} {\"message\":\"3\"}\n{\"message\":\"4\"}\n");
    follow_fixture_create(&f);
    follow_fixture_start(&f);
    (void)lahar_follow_step(f.follow, f.now_ns);
    expect_messages(&f, "1\n2\n");
    follow_fixture_restart(&f);
    expect_messages(&f, "1\n2\n3\n4\n");
    cr_assert_eq(number_of(&f, "logs", 2, "_offset"), 32);
    follow_fixture_deinit(&f);
}

Test(follow_lines, knows_the_header_of_a_table_after_a_restart)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_CSV;
    f.spec.max_block_size = 1;
    add(&f, "a.csv", "n,message\n1,one\n");
    add(&f, "b.csv", "message,n\nzwei,2\n");
    follow_fixture_begin(&f);
    follow_fixture_stop(&f);
    add(&f, "a.csv", "3,three\n");
    add(&f, "b.csv", "vier,4\n");
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "one\nzwei\nthree\nvier\n");
    follow_fixture_deinit(&f);
}

Test(follow_lines, reads_records_over_several_lines_when_told_to)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_JSON;
    f.spec.multiline = true;
    add(&f, "a.log", "{\n \"message\":\n  \"1\"\n}\n{\n \"mess");
    follow_fixture_begin(&f);
    expect_messages(&f, "1\n");
    add(&f, "a.log", "age\": \"2\"\n}\n");
    follow_fixture_restart(&f);
    expect_messages(&f, "1\n2\n");
    follow_fixture_deinit(&f);
}

/* --- error modes (S-91) ----------------------------------------------------------------------- */

static void bad_lines(struct follow_fixture *f, lahar_error_mode mode)
{
    follow_fixture_init(f);
    f->spec.format = LAHAR_FORMAT_JSON;
    f->spec.handle_error_mode = mode;
    f->spec.max_block_size = 16;
    add_lines(f, "a.log", "bad", 0, 100);
    add(f, "a.log", "{\"message\":\"good\"}\n");
    follow_fixture_begin(f);
}

Test(follow_errors, passes_over_bad_lines_by_default)
{
    struct follow_fixture f;
    bad_lines(&f, LAHAR_ERROR_MODE_DEFAULT);
    expect_messages(&f, "good\n");
    cr_assert_eq(f.follow->error_count, 100);
    follow_fixture_deinit(&f);
}

Test(follow_errors, makes_rows_of_bad_lines_also_when_all_are_bad)
{
    struct follow_fixture f;
    bad_lines(&f, LAHAR_ERROR_MODE_STREAM);
    char *raw = messages_of(&f, "logs", LAHAR_FIELD_RAW_RECORD);
    cr_assert_eq(strncmp(raw, "bad 0\nbad 1\n", 12), 0);
    free(raw);
    cr_assert_eq(count_messages(&f, "logs"), 101);
    follow_fixture_deinit(&f);
}

Test(follow_errors, puts_bad_lines_into_a_stream_of_their_own)
{
    struct follow_fixture f;
    bad_lines(&f, LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE);
    expect_messages(&f, "good\n");
    cr_assert_eq(count_messages(&f, "logs.dead_letter"), 100);
    cr_assert_eq(number_of(&f, "logs.dead_letter", 99, "_line"), 100);
    follow_fixture_deinit(&f);
}

Test(follow_errors, stops_in_front_of_a_bad_line)
{
    struct follow_fixture f;
    lahar_error error = {0};
    follow_fixture_init(&f);
    f.spec.format = LAHAR_FORMAT_JSON;
    f.spec.handle_error_mode = LAHAR_ERROR_MODE_STOP;
    add(&f, "a.log", "{\"message\":\"1\"}\nbad\n{\"message\":\"3\"}\n");
    add(&f, "b.log", "{\"message\":\"b\"}\n");
    follow_fixture_begin(&f);
    cr_assert_eq(count_messages(&f, "logs"), 2);
    follow_fixture_restart(&f);
    cr_assert_eq(count_messages(&f, "logs"), 2);
    cr_assert_eq(lahar_source_reset(f.store, "logs", "a.log", LAHAR_RESET_TO_OFFSET, 17, &error),
                 LAHAR_OK, "%s", error.message);
    follow_fixture_settle(&f);
    cr_assert_eq(count_messages(&f, "logs"), 3);
    follow_fixture_deinit(&f);
}

/* --- compression
 * ---------------------------------------------------------------------------------- */

static size_t compress_text(const char *text, size_t size, uint8_t *out, size_t capacity)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
    const size_t done = libdeflate_gzip_compress(compressor, text, size, out, capacity);
    libdeflate_free_compressor(compressor);
    return done;
}

/* S-67, S-70: members one after another, an unfinished one, restarts. */
Test(follow_gzip, reads_a_compressed_file_once)
{
    struct follow_fixture f;
    static uint8_t gzip[4][65536];
    size_t sizes[2];
    follow_fixture_init(&f);
    f.spec.decompress = true;
    sizes[0] = compress_text("one\ntwo\n", 8, gzip[0], sizeof gzip[0]);
    sizes[1] = compress_text("three\nfour", 10, gzip[1], sizeof gzip[1]);
    write_file(&f, "a.gz", O_APPEND, gzip[0], sizes[0]);
    write_file(&f, "a.gz", O_APPEND, gzip[1], 9);
    follow_fixture_begin(&f);
    expect_messages(&f, "one\ntwo\n");
    write_file(&f, "a.gz", O_APPEND, gzip[1] + 9, sizes[1] - 9);
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "one\ntwo\nthree\nfour\n");
    follow_fixture_restart(&f);
    expect_messages(&f, "one\ntwo\nthree\nfour\n");
    follow_fixture_deinit(&f);
}

/* S-66: read in part, then compressed. */
Test(follow_gzip, continues_a_file_in_its_compressed_form)
{
    struct follow_fixture f;
    static uint8_t gzip[65536];
    follow_fixture_init(&f);
    f.spec.decompress = true;
    add(&f, "app.log", "1\n2\n");
    follow_fixture_begin(&f);
    follow_fixture_stop(&f);
    const size_t size = compress_text("1\n2\n3\n4\n", 8, gzip, sizeof gzip);
    write_file(&f, "app.log.gz", O_APPEND, gzip, size);
    drop(&f, "app.log");
    follow_fixture_start(&f);
    follow_fixture_settle(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "1\n2\n3\n4\n");
    follow_fixture_deinit(&f);
}

/* S-70: what is damaged stops its own file only. */
Test(follow_gzip, stops_at_damage_and_reads_the_others)
{
    struct follow_fixture f;
    static uint8_t gzip[65536];
    follow_fixture_init(&f);
    f.spec.decompress = true;
    size_t size = compress_text("good\n", 5, gzip, sizeof gzip);
    write_file(&f, "a.gz", O_APPEND, gzip, size);
    write_file(&f, "a.gz", O_APPEND, "garbage", 7);
    add(&f, "b.log", "b\n");
    follow_fixture_begin(&f);
    follow_fixture_settle(&f);
    expect_messages(&f, "good\nb\n");
    follow_fixture_deinit(&f);
}

/* S-71 */
Test(follow_gzip, passes_over_compressed_names_when_it_is_off)
{
    struct follow_fixture f;
    follow_fixture_init(&f);
    add(&f, "a.gz", "\x1f\x8b junk\njunk\n");
    add(&f, "a.log", "a\n");
    follow_fixture_begin(&f);
    expect_messages(&f, "a\n");
    follow_fixture_deinit(&f);
}

/* Against libdeflate: content that needs every kind of block and reference, in all sizes. */
Test(follow_gzip, decodes_what_another_encoder_wrote)
{
    static char text[400000];
    static uint8_t gzip[500000];
    for (int level = 0; level <= 12; level += 3) {
        struct follow_fixture f;
        follow_fixture_init(&f);
        f.spec.decompress = true;
        uint64_t random = 88172645463325252u + (uint64_t)level;
        size_t size = 0;
        size_t lines = 0;
        while (size + 300 < sizeof text) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            size += (size_t)snprintf(text + size, 300, "%llx %llx the same words again and again\n",
                                     (unsigned long long)random, (unsigned long long)lines % 17);
            lines++;
        }
        struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
        const size_t done = libdeflate_gzip_compress(compressor, text, size, gzip, sizeof gzip);
        libdeflate_free_compressor(compressor);
        cr_assert_neq(done, 0);
        write_file(&f, "a.gz", O_APPEND, gzip, done);
        follow_fixture_begin(&f);
        char *messages = messages_of(&f, "logs", LAHAR_FIELD_MESSAGE);
        text[size] = '\0';
        cr_assert_eq(strcmp(messages, text), 0, "level %d", level);
        free(messages);
        follow_fixture_deinit(&f);
    }
}
