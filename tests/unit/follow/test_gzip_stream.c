/* gzip files that grow: whatever the steps, the content comes out byte for byte, and what is read
 * of the file is what it grew by, not the file once more. The encoder is libdeflate. */
#include "engine/follow/gzip_stream.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"

enum {
    TEXT_SIZE = 3 << 20,
    FILE_SIZE = TEXT_SIZE + (1 << 20),
    WINDOW = 256 /* read again in front of the offset, as a follower does */
};

struct growing {
    char root[SCRATCH_PATH_SIZE];
    int descriptor;
    uint8_t *text;
    uint8_t *file;
    size_t file_size; /* encoded */
    size_t written;   /* of it */
    uint8_t *read;
    uint64_t offset; /* of the content: read so far */
    struct lahar_gzip_stream *stream;
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* Lines that compress about as logs do. */
static void make_text(uint8_t *text, size_t size, uint32_t seed)
{
    size_t at = 0;
    while (at + 100 < size) {
        at += (size_t)snprintf((char *)text + at, 100, "%u worker-%u took %x of %u\n", seed,
                               next_random(&seed) % 50, next_random(&seed), (unsigned)at);
    }
    memset(text + at, '\n', size - at);
}

static size_t encode(const uint8_t *text, size_t size, int level, uint8_t *out, size_t capacity)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    const size_t done = libdeflate_gzip_compress(compressor, text, size, out, capacity);
    libdeflate_free_compressor(compressor);
    cr_assert_neq(done, 0);
    return done;
}

static void set_up(struct growing *g)
{
    char path[SCRATCH_PATH_SIZE + 8];
    *g = (struct growing){.text = malloc(TEXT_SIZE),
                          .file = malloc(FILE_SIZE),
                          .read = malloc(TEXT_SIZE + WINDOW + 1)};
    scratch_create(g->root);
    (void)snprintf(path, sizeof path, "%s/a.gz", g->root);
    g->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    cr_assert(g->descriptor >= 0 && g->text != NULL && g->file != NULL && g->read != NULL);
    make_text(g->text, TEXT_SIZE, 7);
    cr_assert_eq(lahar_gzip_stream_create(&lahar_allocator_libc, &g->stream, NULL), LAHAR_OK);
}

static void tear_down(struct growing *g)
{
    lahar_gzip_stream_destroy(g->stream);
    (void)close(g->descriptor);
    free(g->text);
    free(g->file);
    free(g->read);
    scratch_remove(g->root);
}

static void add_member(struct growing *g, size_t from, size_t size, int level)
{
    g->file_size +=
        encode(g->text + from, size, level, g->file + g->file_size, FILE_SIZE - g->file_size);
}

static void grow(struct growing *g, size_t size)
{
    size = size < g->file_size - g->written ? size : g->file_size - g->written;
    cr_assert_eq(pwrite(g->descriptor, g->file + g->written, size, (off_t)g->written),
                 (ssize_t)size);
    g->written += size;
}

/* Reads what has come, as a follower does whose offset stays lag bytes behind. */
static void read_on(struct growing *g, size_t lag)
{
    const uint64_t kept = g->offset > lag ? g->offset - lag : 0;
    const uint64_t start = kept > WINDOW ? kept - WINDOW : 0;
    size_t got = 0;
    lahar_gzip_stream_keep(g->stream, start);
    cr_assert_eq(
        lahar_gzip_stream_read(g->stream, g->descriptor, start, g->read, TEXT_SIZE + 1, &got, NULL),
        LAHAR_OK);
    cr_assert_geq(start + got, g->offset);
    cr_assert_arr_eq(g->read, g->text + start, got);
    g->offset = start + got;
}

Test(gzip_stream, goes_on_inside_a_member_at_any_byte)
{
    /* Stored, fixed and dynamic blocks. */
    for (int level = 0; level <= 9; level += 3) {
        struct growing g;
        set_up(&g);
        add_member(&g, 0, 300, level);
        add_member(&g, 300, 6000, level);
        add_member(&g, 6300, 0, level);
        while (g.written < g.file_size) {
            grow(&g, 1);
            read_on(&g, 0);
        }
        cr_assert_eq(g.offset, 6300);
        cr_assert(lahar_gzip_stream_is_complete(g.stream));
        cr_assert_lt(lahar_gzip_stream_pulled(g.stream), 200 * g.file_size,
                     "an unfinished block header is read again, and nothing else");
        tear_down(&g);
    }
}

static void check_costs(size_t member_size, size_t lag, unsigned seed)
{
    struct growing g;
    set_up(&g);
    for (size_t from = 0; from < TEXT_SIZE; from += member_size) {
        add_member(&g, from, TEXT_SIZE - from < member_size ? TEXT_SIZE - from : member_size, 6);
    }
    uint32_t state = seed;
    unsigned steps = 0;
    while (g.written < g.file_size) {
        grow(&g, 1 + next_random(&state) % 4000);
        read_on(&g, lag);
        steps++;
    }
    cr_assert_eq(g.offset, TEXT_SIZE);
    cr_assert(lahar_gzip_stream_is_complete(g.stream));
    /* A step reads what it grew by, what lies behind the checkpoint, and part of a block. */
    const uint64_t pulled = lahar_gzip_stream_pulled(g.stream);
    const uint64_t behind = lag == 0 ? 0 : lag / 2 + 32768;
    cr_assert_gt(steps, 200);
    cr_assert_lt(pulled, g.file_size + steps * (4096 + behind),
                 "%zu bytes in %u steps took %zu bytes of reading", g.file_size, steps,
                 (size_t)pulled);
    tear_down(&g);
}

Test(gzip_stream, reads_the_growth_of_one_member_alone)
{
    check_costs(TEXT_SIZE, 0, 1);
}

Test(gzip_stream, reads_the_growth_of_many_members_alone)
{
    check_costs(5000, 0, 2);
}

Test(gzip_stream, goes_back_to_what_is_kept_by_a_checkpoint)
{
    check_costs(TEXT_SIZE, 150000, 3);
    check_costs(70000, 150000, 4);
}

Test(gzip_stream, decodes_a_file_that_was_written_anew_from_its_start)
{
    struct growing g;
    set_up(&g);
    add_member(&g, 0, 200000, 6);
    grow(&g, g.file_size);
    read_on(&g, 0);
    /* Longer than before, with the same beginning of its text. */
    make_text(g.text + 1000, TEXT_SIZE - 1000, 99);
    g.file_size = 0;
    g.written = 0;
    add_member(&g, 0, 900000, 6);
    grow(&g, g.file_size);
    size_t got = 0;
    cr_assert_eq(lahar_gzip_stream_read(g.stream, g.descriptor, 0, g.read, TEXT_SIZE, &got, NULL),
                 LAHAR_OK);
    cr_assert_eq(got, 900000);
    cr_assert_arr_eq(g.read, g.text, got);
    /* Shorter. */
    cr_assert_eq(ftruncate(g.descriptor, 0), 0);
    g.file_size = 0;
    g.written = 0;
    add_member(&g, 5000, 70000, 6);
    grow(&g, g.file_size);
    cr_assert_eq(lahar_gzip_stream_read(g.stream, g.descriptor, 899000, g.read, 2000, &got, NULL),
                 LAHAR_OK);
    cr_assert_eq(got, 1000, "what was decoded before, as long as nobody asks for more");
    cr_assert_eq(lahar_gzip_stream_read(g.stream, g.descriptor, 0, g.read, TEXT_SIZE, &got, NULL),
                 LAHAR_OK);
    cr_assert_eq(got, 70000);
    cr_assert_arr_eq(g.read, g.text + 5000, got);
    tear_down(&g);
}

Test(gzip_stream, stays_at_damage_whatever_comes_behind)
{
    struct growing g;
    lahar_error error = {0};
    size_t got = 0;
    set_up(&g);
    add_member(&g, 0, 100000, 6);
    const size_t first = g.file_size;
    add_member(&g, 100000, 100000, 6);
    g.file[first - 8] ^= 1; /* the checksum */
    grow(&g, first + 50);
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(
            lahar_gzip_stream_read(g.stream, g.descriptor, 99000, g.read, 5000, &got, &error),
            LAHAR_CORRUPT);
        cr_assert_eq(got, 1000);
        grow(&g, 100);
    }
    cr_assert_lt(lahar_gzip_stream_pulled(g.stream), 2 * g.file_size);
    tear_down(&g);
}
