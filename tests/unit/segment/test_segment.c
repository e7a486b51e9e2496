/* Event files on a simulated disk: written, read, damaged, interrupted. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/segment/segment.h"
#include "engine/segment/segment_format.h"
#include "failing_allocator.h"
#include "io/sim_disk.h"
#include "sample_events.h"
#include "scratch.h"

enum {
    EVENT_COUNT_MAX = 20000
};

struct fixture {
    struct samples samples;
    struct lahar_sim_disk *disk;
    struct lahar_io *io;
    struct lahar_file_pool *pool;
    lahar_event *events;
    uint32_t *row_sizes;
    uint32_t count;
    struct lahar_segment_info info;
};

static void set_up(struct fixture *fixture, uint64_t seed)
{
    memset(fixture, 0, sizeof *fixture);
    samples_create(&fixture->samples, seed);
    fixture->events = malloc(EVENT_COUNT_MAX * sizeof fixture->events[0]);
    fixture->row_sizes = malloc(EVENT_COUNT_MAX * sizeof fixture->row_sizes[0]);
    cr_assert_eq(lahar_sim_disk_create(&lahar_allocator_libc, seed, &fixture->disk, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_sim_disk_io(fixture->disk, &fixture->io, NULL), LAHAR_OK);
    cr_assert_eq(fixture->io->ops->make_directory(fixture->io, "d", NULL), LAHAR_OK);
    cr_assert_eq(
        lahar_file_pool_create(fixture->io, 1, &lahar_allocator_libc, &fixture->pool, NULL),
        LAHAR_OK);
}

static void tear_down(struct fixture *fixture)
{
    lahar_file_pool_destroy(fixture->pool);
    fixture->io->ops->destroy(fixture->io);
    lahar_sim_disk_destroy(fixture->disk);
    samples_destroy(&fixture->samples);
    free(fixture->events);
    free(fixture->row_sizes);
}

static void add(struct fixture *fixture, lahar_event event)
{
    fixture->row_sizes[fixture->count] = samples_row_size(&fixture->samples, &event);
    fixture->events[fixture->count++] = event;
}

static lahar_status write_file(struct fixture *fixture, uint32_t level,
                               const lahar_allocator *allocator, lahar_error *error)
{
    const struct lahar_segment_writer_options options = {.compression_level = level,
                                                         .number = 7,
                                                         .stream = fixture->samples.stream,
                                                         .group_first_id = 1,
                                                         .group_end_id = UINT64_C(1) << 40,
                                                         .group_file_count = 3};
    struct lahar_segment_writer *writer = NULL;
    lahar_status status = lahar_segment_writer_create(fixture->io, "d", fixture->samples.catalog,
                                                      &options, allocator, &writer, error);
    for (uint32_t i = 0; i < fixture->count && status == LAHAR_OK; i++) {
        status =
            lahar_segment_writer_add(writer, &fixture->events[i], fixture->row_sizes[i], error);
    }
    if (status == LAHAR_OK) {
        status = lahar_segment_writer_finish(writer, &fixture->info, error);
    }
    lahar_segment_writer_destroy(writer);
    return status;
}

static struct lahar_segment *open_file(struct fixture *fixture, struct lahar_block_cache *cache)
{
    struct lahar_segment *segment = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_segment_open(fixture->pool, "d", &fixture->info, fixture->samples.catalog,
                                    cache, &lahar_allocator_libc, &segment, &error),
                 LAHAR_OK, "%s", error.message);
    return segment;
}

/* Compares every event that can be read; returns how many blocks are damaged. */
static uint32_t compare_all(struct fixture *fixture, struct lahar_segment *segment)
{
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    uint32_t damaged = 0;
    uint32_t ordinal = 0;
    const struct lahar_segment_info *info = lahar_segment_describe(segment);
    for (uint32_t i = 0; i < info->block_count; i++) {
        struct lahar_block *block = NULL;
        lahar_error error = {0};
        const struct lahar_block_info *block_info = lahar_segment_block_info(segment, i);
        cr_assert_eq(block_info->first_ordinal, ordinal);
        const lahar_status status = lahar_segment_load(segment, i, &block, &error);
        for (uint32_t row = 0; status == LAHAR_OK && row < lahar_block_row_count(block); row++) {
            lahar_event event;
            cr_assert_eq(lahar_block_read(block, row, &arena, &event, &error), LAHAR_OK, "%s",
                         error.message);
            const char *difference = samples_difference(&fixture->events[ordinal + row], &event);
            cr_assert_null(difference, "%s", difference);
            lahar_arena_reset(&arena);
        }
        if (status != LAHAR_OK) {
            cr_assert_eq(status, LAHAR_CORRUPT);
            char expected[160];
            (void)snprintf(
                expected, sizeof expected, "events %llu..%llu of %020llu-%020llu.00000007",
                (unsigned long long)block_info->first_id, (unsigned long long)block_info->last_id,
                (unsigned long long)info->first_id, (unsigned long long)info->last_id);
            cr_assert(strncmp(error.message, expected, strlen(expected)) == 0, "%s", error.message);
            damaged++;
        }
        lahar_block_release(block);
        ordinal += block_info->row_count;
    }
    cr_assert_eq(ordinal, fixture->count);
    lahar_arena_deinit(&arena);
    return damaged;
}

static lahar_status count_names(void *context, const char *name, bool is_directory)
{
    (void)name;
    (void)is_directory;
    ++*(uint32_t *)context;
    return LAHAR_OK;
}

static uint32_t name_count(struct fixture *fixture)
{
    uint32_t count = 0;
    cr_assert_eq(fixture->io->ops->list(fixture->io, "d", count_names, &count, NULL), LAHAR_OK);
    return count;
}

static void path_of(const struct fixture *fixture, const char *suffix, char path_out[128])
{
    char name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(&fixture->info, suffix, name);
    (void)snprintf(path_out, 128, "d/%s", name);
}

Test(segment, names_files_by_their_first_and_last_id)
{
    const struct lahar_segment_info info = {.first_id = 12, .last_id = UINT64_MAX, .number = 345};
    char name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(&info, ".shard", name);
    cr_assert_str_eq(name, "00000000000000000012-18446744073709551615.00000345.shard");
}

Test(segment, gives_back_several_blocks)
{
    struct fixture fixture;
    set_up(&fixture, 1);
    uint64_t raw = 0;
    while (raw < 3500000) {
        if (fixture.count == 1000) {
            fixture.samples.next_id += UINT64_C(1) << 33;
        }
        add(&fixture, samples_next(&fixture.samples, 0));
        raw += fixture.row_sizes[fixture.count - 1];
    }
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
    const struct lahar_segment_info *info = &fixture.info;
    cr_assert_eq(info->block_count, 4);
    cr_assert_eq(info->event_count, fixture.count);
    cr_assert_eq(info->raw_bytes, raw);
    cr_assert_eq(info->first_id, fixture.events[0].id);
    cr_assert_eq(info->last_id, fixture.events[fixture.count - 1].id);
    cr_assert_eq(info->group_file_count, 3);
    struct lahar_segment *segment = open_file(&fixture, NULL);
    cr_assert_eq(compare_all(&fixture, segment), 0);
    for (uint32_t i = 0; i < fixture.count; i += 17) {
        const uint32_t block = lahar_segment_find_block(segment, fixture.events[i].id);
        cr_assert_eq(lahar_segment_find_ordinal(segment, i), block);
        struct lahar_block *loaded = NULL;
        if (i % 11 == 0) {
            cr_assert_eq(lahar_segment_load(segment, block, &loaded, NULL), LAHAR_OK);
            const uint32_t row = lahar_block_find(loaded, fixture.events[i].id);
            cr_assert_eq(row, i - lahar_segment_block_info(segment, block)->first_ordinal);
            lahar_block_release(loaded);
        }
    }
    cr_assert_eq(lahar_segment_find_block(segment, 0), 0);
    cr_assert_eq(lahar_segment_find_block(segment, info->last_id + 1), 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct lahar_block *block = NULL;
        lahar_error error = {0};
        cr_assert_eq(lahar_segment_check(segment, i, &block, &error), LAHAR_OK, "%s",
                     error.message);
        lahar_block_release(block);
    }
    lahar_segment_release(segment);
    tear_down(&fixture);
}

Test(segment, gives_a_large_event_a_block_of_its_own)
{
    struct fixture fixture;
    set_up(&fixture, 2);
    lahar_value value = {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT};
    const size_t size = 5 * 1024 * 1024;
    char *text = malloc(size);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)(i * i >> 7);
    }
    value.as.bytes = samples_bytes("small");
    add(&fixture, samples_event(&fixture.samples, &value, 1));
    value.as.bytes = (lahar_bytes){text, size};
    add(&fixture, samples_event(&fixture.samples, &value, 1));
    value.as.bytes = samples_bytes("small");
    add(&fixture, samples_event(&fixture.samples, &value, 1));
    for (uint32_t level = 0; level < 2; level++) {
        cr_assert_eq(write_file(&fixture, level, &lahar_allocator_libc, NULL), LAHAR_OK);
        cr_assert_eq(fixture.info.block_count, 3);
        struct lahar_segment *segment = open_file(&fixture, NULL);
        cr_assert_eq(compare_all(&fixture, segment), 0);
        lahar_segment_release(segment);
    }
    free(text);
    tear_down(&fixture);
}

static void fill(struct fixture *fixture, uint32_t count, unsigned detail)
{
    for (uint32_t i = 0; i < count; i++) {
        add(fixture, samples_next(&fixture->samples, detail));
    }
}

Test(segment, does_without_its_table_of_contents)
{
    struct fixture fixture;
    set_up(&fixture, 3);
    fill(&fixture, 5000, 0);
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
    cr_assert_gt(fixture.info.block_count, 1);
    char path[128];
    path_of(&fixture, ".toc", path);
    cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, 8 * 300 + 3, NULL), LAHAR_OK);
    struct lahar_segment *segment = open_file(&fixture, NULL);
    cr_assert_eq(compare_all(&fixture, segment), 0);
    lahar_segment_release(segment);
    cr_assert_eq(fixture.io->ops->unlink(fixture.io, path, NULL), LAHAR_OK);
    segment = open_file(&fixture, NULL);
    cr_assert_eq(compare_all(&fixture, segment), 0);
    lahar_segment_release(segment);
    tear_down(&fixture);
}

static void set_size(struct fixture *fixture, const char *path, uint64_t size)
{
    struct lahar_io_file *file = NULL;
    cr_assert_eq(fixture->io->ops->open(fixture->io, path, LAHAR_IO_WRITE, &file, NULL), LAHAR_OK);
    cr_assert_eq(fixture->io->ops->truncate(fixture->io, file, size, NULL), LAHAR_OK);
    fixture->io->ops->close(fixture->io, file);
}

Test(segment, pays_nothing_for_a_table_of_contents_of_any_other_size)
{
    const uint64_t sizes[] = {0, 1, 195, 196, 268, 5000, UINT64_C(100) << 20};
    struct failing_allocator allocator;
    failing_allocator_init(&allocator, UINT64_MAX);
    allocator.size_max = 16 << 20; /* what no sound file of this size needs */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct fixture fixture;
        set_up(&fixture, 8);
        fill(&fixture, 5000, 0);
        cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
        char path[128];
        char name[LAHAR_FILE_NAME_SIZE];
        lahar_error error = {0};
        path_of(&fixture, ".toc", path);
        cr_assert_neq(sizes[i], fixture.info.toc_bytes);
        set_size(&fixture, path, sizes[i]);
        struct lahar_segment *segment = NULL;
        cr_assert_eq(lahar_segment_open(fixture.pool, "d", &fixture.info, fixture.samples.catalog,
                                        NULL, &allocator.allocator, &segment, &error),
                     LAHAR_OK, "%s", error.message);
        cr_assert(lahar_segment_lacks_toc(segment));
        cr_assert_eq(compare_all(&fixture, segment), 0);
        lahar_segment_release(segment);
        /* Nor when only the toc could tell what the file is. */
        path_of(&fixture, ".events", path);
        cr_assert_eq(
            lahar_sim_disk_flip_bit(fixture.disk, path, (fixture.info.file_bytes - 100) * 8, NULL),
            LAHAR_OK);
        struct lahar_segment_info info;
        lahar_segment_file_name(&fixture.info, ".events", name);
        cr_assert_eq(
            lahar_segment_probe(fixture.io, "d", name, &allocator.allocator, &info, &error),
            LAHAR_CORRUPT);
        cr_assert_eq(allocator.refused_count, 0);
        cr_assert_eq(allocator.live_count, 0);
        tear_down(&fixture);
    }
}

Test(segment, of_an_impossible_number_of_blocks_is_corrupt)
{
    struct fixture fixture;
    set_up(&fixture, 9);
    fill(&fixture, 5, 1);
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
    const uint32_t counts[] = {0, 1000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct lahar_segment *segment = NULL;
        struct lahar_segment_info info = fixture.info;
        info.block_count = counts[i];
        cr_assert_eq(lahar_segment_open(fixture.pool, "d", &info, fixture.samples.catalog, NULL,
                                        &lahar_allocator_libc, &segment, NULL),
                     LAHAR_CORRUPT);
    }
    tear_down(&fixture);
}

Test(segment, loses_only_the_events_of_a_damaged_block)
{
    struct fixture fixture;
    set_up(&fixture, 4);
    fill(&fixture, 6000, 0);
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
    const uint32_t blocks = fixture.info.block_count;
    cr_assert_gt(blocks, 2);
    struct lahar_segment *segment = open_file(&fixture, NULL);
    const uint64_t offset = lahar_segment_block_info(segment, 1)->offset;
    lahar_segment_release(segment);
    char path[128];
    path_of(&fixture, ".events", path);
    cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, (offset + 200) * 8, NULL), LAHAR_OK);
    segment = open_file(&fixture, NULL);
    cr_assert_eq(compare_all(&fixture, segment), 1);
    struct lahar_block *block = NULL;
    cr_assert_eq(lahar_segment_check(segment, 1, &block, NULL), LAHAR_CORRUPT);
    cr_assert_null(block);
    lahar_segment_release(segment);
    tear_down(&fixture);
}

Test(segment, answers_rightly_or_not_at_all_with_any_bit_flipped)
{
    struct fixture fixture;
    set_up(&fixture, 5);
    fill(&fixture, 5, 1);
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
    char path[128];
    path_of(&fixture, ".events", path);
    uint32_t refused = 0;
    for (uint64_t bit = 0; bit < fixture.info.file_bytes * 8; bit++) {
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, bit, NULL), LAHAR_OK);
        struct lahar_segment *segment = open_file(&fixture, NULL);
        refused += compare_all(&fixture, segment);
        lahar_segment_release(segment);
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, bit, NULL), LAHAR_OK);
    }
    /* All but the bits of the file's own header and footer. */
    cr_assert_eq(refused, (fixture.info.file_bytes - 64 - 192) * 8);
    path_of(&fixture, ".toc", path);
    for (uint64_t bit = 0; bit < fixture.info.toc_bytes * 8; bit++) {
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, bit, NULL), LAHAR_OK);
        struct lahar_segment *segment = open_file(&fixture, NULL);
        cr_assert_eq(compare_all(&fixture, segment), 0);
        lahar_segment_release(segment);
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, bit, NULL), LAHAR_OK);
    }
    tear_down(&fixture);
}

Test(segment, describes_itself_when_the_manifest_is_lost)
{
    struct fixture fixture;
    set_up(&fixture, 6);
    fill(&fixture, 50, 1);
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
    char name[LAHAR_FILE_NAME_SIZE];
    char path[128];
    lahar_segment_file_name(&fixture.info, ".events", name);
    path_of(&fixture, ".events", path);
    for (uint32_t round = 0; round < 2; round++) {
        struct lahar_segment_info info;
        memset(&info, 0, sizeof info);
        lahar_error error = {0};
        cr_assert_eq(
            lahar_segment_probe(fixture.io, "d", name, &lahar_allocator_libc, &info, &error),
            LAHAR_OK, "%s", error.message);
        cr_assert_eq(info.first_id, fixture.info.first_id);
        cr_assert_eq(info.last_id, fixture.info.last_id);
        cr_assert_eq(info.number, 7);
        cr_assert_eq(info.event_count, 50);
        cr_assert_eq(info.raw_bytes, fixture.info.raw_bytes);
        cr_assert_eq(info.time_min_ns, fixture.info.time_min_ns);
        cr_assert_eq(info.arrival_max_ns, fixture.info.arrival_max_ns);
        cr_assert_eq(info.group_end_id, UINT64_C(1) << 40);
        cr_assert_eq(info.group_file_count, 3);
        /* The second time the footer is damaged and the toc tells. */
        cr_assert_eq(
            lahar_sim_disk_flip_bit(fixture.disk, path, (fixture.info.file_bytes - 100) * 8, NULL),
            LAHAR_OK);
    }
    path_of(&fixture, ".toc", path);
    cr_assert_eq(fixture.io->ops->unlink(fixture.io, path, NULL), LAHAR_OK);
    path_of(&fixture, ".events", path);
    cr_assert_eq(
        lahar_sim_disk_flip_bit(fixture.disk, path, (fixture.info.file_bytes - 99) * 8, NULL),
        LAHAR_OK);
    struct lahar_segment_info info;
    cr_assert_eq(lahar_segment_probe(fixture.io, "d", name, &lahar_allocator_libc, &info, NULL),
                 LAHAR_CORRUPT);
    cr_assert_eq(
        lahar_segment_probe(fixture.io, "d", "x.events", &lahar_allocator_libc, &info, NULL),
        LAHAR_NOT_FOUND);
    cr_assert_eq(lahar_segment_probe(fixture.io, "d", "x", &lahar_allocator_libc, &info, NULL),
                 LAHAR_INVALID);
    tear_down(&fixture);
}

static void remove_files(struct fixture *fixture)
{
    char path[128];
    path_of(fixture, ".events", path);
    cr_assert_eq(fixture->io->ops->unlink(fixture->io, path, NULL), LAHAR_OK);
    path_of(fixture, ".toc", path);
    cr_assert_eq(fixture->io->ops->unlink(fixture->io, path, NULL), LAHAR_OK);
}

Test(segment, leaves_no_file_when_writing_fails)
{
    struct fixture fixture;
    set_up(&fixture, 7);
    fill(&fixture, 300, 0);
    const uint64_t before = lahar_sim_disk_operations(fixture.disk);
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
    const uint64_t operation_count = lahar_sim_disk_operations(fixture.disk) - before;
    remove_files(&fixture);
    static const enum lahar_sim_fault faults[] = {LAHAR_SIM_FAULT_EIO, LAHAR_SIM_FAULT_ENOSPC};
    uint32_t failures[2] = {0, 0};
    for (size_t kind = 0; kind < 2; kind++) {
        for (uint64_t n = 0; n < operation_count; n++) {
            const uint64_t now = lahar_sim_disk_operations(fixture.disk);
            lahar_sim_disk_fault(fixture.disk, faults[kind], now + n, 1, NULL);
            const lahar_status status = write_file(&fixture, 1, &lahar_allocator_libc, NULL);
            const bool has_struck = lahar_sim_disk_fault_count(fixture.disk) != 0;
            lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
            if (has_struck) {
                cr_assert_eq(status, kind == 0 ? LAHAR_IO : LAHAR_NO_SPACE);
                failures[kind]++;
            } else {
                cr_assert_eq(status, LAHAR_OK);
                remove_files(&fixture);
            }
            cr_assert_eq(name_count(&fixture), 0, "operation %llu", (unsigned long long)n);
        }
    }
    /* create, truncate, write, sync of two files, and two renames */
    cr_assert_geq(failures[0], 10);
    cr_assert_geq(failures[1], 4);
    tear_down(&fixture);
}

Test(segment, survives_every_refused_allocation)
{
    struct fixture fixture;
    set_up(&fixture, 8);
    fill(&fixture, 20, 1);
    for (uint64_t n = 0;; n++) {
        struct failing_allocator failing;
        failing_allocator_init(&failing, n);
        lahar_error error = {0};
        const lahar_status status = write_file(&fixture, 1, &failing.allocator, &error);
        cr_assert_eq(failing.live_count, 0);
        if (failing.refused_count == 0) {
            cr_assert_eq(status, LAHAR_OK);
            break;
        }
        cr_assert_eq(status, LAHAR_NO_MEMORY, "request %llu: %s", (unsigned long long)n,
                     error.message);
        cr_assert_eq(name_count(&fixture), 0);
    }
    bool is_through = false;
    for (uint64_t n = 0; !is_through; n++) {
        struct failing_allocator failing;
        failing_allocator_init(&failing, n);
        struct lahar_segment *segment = NULL;
        struct lahar_block *block = NULL;
        lahar_status status =
            lahar_segment_open(fixture.pool, "d", &fixture.info, fixture.samples.catalog, NULL,
                               &failing.allocator, &segment, NULL);
        if (status == LAHAR_OK) {
            status = lahar_segment_check(segment, 0, &block, NULL);
            lahar_block_release(block);
            lahar_segment_release(segment);
        }
        cr_assert_eq(failing.live_count, 0);
        is_through = failing.refused_count == 0;
        cr_assert_eq(status, is_through ? LAHAR_OK : LAHAR_NO_MEMORY, "request %llu",
                     (unsigned long long)n);
    }
    tear_down(&fixture);
}

Test(segment, refuses_events_out_of_order_and_empty_files)
{
    struct fixture fixture;
    set_up(&fixture, 9);
    lahar_error error = {0};
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, &error), LAHAR_INVALID);
    fill(&fixture, 2, 1);
    fixture.events[1].id = fixture.events[0].id;
    error = (lahar_error){0};
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, &error), LAHAR_INVALID);
    cr_assert_str_eq(error.message, "event 1 follows event 1");
    cr_assert_eq(name_count(&fixture), 0);
    tear_down(&fixture);
}

/* --- what a look-up reads ---------------------------------------------------------------- */

/* Counts bytes read, and reads from a large sparse file: a hole in front of the disk's bytes. */
struct far_reads {
    uint64_t bytes;
    uint64_t count;
};
static struct far_reads far_reads;
static const struct lahar_io_ops *near_ops;

static lahar_status count_read(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                               void *data, size_t size, size_t *read_out, lahar_error *error)
{
    far_reads.bytes += size;
    far_reads.count++;
    return near_ops->read(io, file, offset, data, size, read_out, error);
}

/* A file whose first two blocks would be 3 GiB each: a hole, since they are not read, and behind
 * them the blocks of a real file but its first, whose ids they take. Its table of contents lists
 * them all. */
static void make_far(struct lahar_io *io, const char *directory, struct lahar_segment *real,
                     struct lahar_segment_info *info_out)
{
    enum {
        HOLE_BLOCKS = 2
    };
    const uint32_t hole_size = 3u << 30;
    const struct lahar_segment_info *info = lahar_segment_describe(real);
    struct lahar_block_info *blocks = calloc(info->block_count + HOLE_BLOCKS, sizeof *blocks);
    struct lahar_segment_info far = *info;
    uint64_t offset = LAHAR_EVENTS_HEADER_SIZE;
    uint32_t ordinal = 0;
    far.block_count = info->block_count - 1 + HOLE_BLOCKS;
    for (uint32_t i = 0; i < far.block_count; i++) {
        blocks[i] = i < HOLE_BLOCKS ? (struct lahar_block_info){.first_id = 1 + i,
                                                                .last_id = 1 + i,
                                                                .size = hole_size,
                                                                .row_count = 1}
                                    : *lahar_segment_block_info(real, i - HOLE_BLOCKS + 1);
        blocks[i].offset = offset;
        blocks[i].first_ordinal = ordinal;
        offset += blocks[i].size;
        ordinal += blocks[i].row_count;
    }
    far.event_count = ordinal;
    far.first_id = 1;
    far.file_bytes = offset + LAHAR_EVENTS_FOOTER_SIZE;
    far.toc_bytes = lahar_toc_size(far.block_count);
    struct lahar_buffer bytes;
    lahar_buffer_init(&bytes, &lahar_allocator_libc);
    char name[LAHAR_FILE_NAME_SIZE];
    char path[512];
    struct lahar_io_file *file = NULL;
    lahar_segment_file_name(&far, ".events", name);
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    cr_assert_eq(io->ops->open(io, path, LAHAR_IO_WRITE | LAHAR_IO_CREATE, &file, NULL), LAHAR_OK);
    for (uint32_t i = 1; i < info->block_count; i++) {
        lahar_buffer_clear(&bytes);
        cr_assert_eq(lahar_segment_read_stored(real, i, &bytes, NULL), LAHAR_OK);
        cr_assert_eq(io->ops->write(io, file, blocks[i - 1 + HOLE_BLOCKS].offset, bytes.data,
                                    bytes.size, NULL),
                     LAHAR_OK);
    }
    io->ops->close(io, file);
    lahar_buffer_clear(&bytes);
    lahar_toc_write(&bytes, &far, blocks);
    lahar_segment_file_name(&far, ".toc", name);
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    cr_assert_eq(io->ops->open(io, path, LAHAR_IO_WRITE | LAHAR_IO_CREATE, &file, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->write(io, file, 0, bytes.data, bytes.size, NULL), LAHAR_OK);
    io->ops->close(io, file);
    lahar_buffer_deinit(&bytes);
    free(blocks);
    *info_out = far;
}

Test(segment, of_six_gibibytes_reads_one_block_for_one_event)
{
    struct fixture fixture;
    struct lahar_segment *real = NULL;
    struct lahar_segment *far = NULL;
    struct lahar_segment_info info;
    struct lahar_file_pool *pool = NULL;
    struct lahar_io *io = NULL;
    char directory[SCRATCH_PATH_SIZE];
    set_up(&fixture, 31);
    fill(&fixture, 6000, 3);
    cr_assert_eq(write_file(&fixture, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
    real = open_file(&fixture, NULL);
    cr_assert_gt(lahar_segment_describe(real)->block_count, 1);
    scratch_create(directory);
    cr_assert_eq(lahar_io_pwrite_create(&lahar_allocator_libc, &io, NULL), LAHAR_OK);
    make_far(io, directory, real, &info);
    cr_assert_gt(info.file_bytes, UINT64_C(6) << 30);
    near_ops = io->ops;
    struct lahar_io_ops counting = *io->ops;
    counting.read = count_read;
    io->ops = &counting;
    cr_assert_eq(lahar_file_pool_create(io, 4, &lahar_allocator_libc, &pool, NULL), LAHAR_OK);
    cr_assert_eq(lahar_segment_open(pool, directory, &info, fixture.samples.catalog, NULL,
                                    &lahar_allocator_libc, &far, NULL),
                 LAHAR_OK);
    /* Opening reads the table of contents alone. */
    cr_assert_eq(far_reads.bytes, info.toc_bytes);
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    const uint32_t first = lahar_segment_block_info(real, 0)->row_count;
    for (uint32_t i = first; i < fixture.count; i += 777) {
        struct lahar_block *block = NULL;
        lahar_event event;
        far_reads = (struct far_reads){0};
        const uint32_t number = lahar_segment_find_block(far, fixture.events[i].id);
        lahar_error error = {0};
        cr_assert_eq(lahar_segment_load(far, number, &block, &error), LAHAR_OK, "%s",
                     error.message);
        const uint32_t row = lahar_block_find(block, fixture.events[i].id);
        cr_assert_eq(lahar_block_read(block, row, &arena, &event, NULL), LAHAR_OK);
        cr_assert_eq(event.id, fixture.events[i].id);
        cr_assert_gt(lahar_segment_block_info(far, number)->offset, UINT64_C(4) << 30);
        cr_assert_eq(far_reads.count, 1);
        cr_assert_eq(far_reads.bytes, lahar_segment_block_info(far, number)->size);
        lahar_block_release(block);
    }
    lahar_arena_deinit(&arena);
    lahar_segment_release(far);
    lahar_segment_release(real);
    lahar_file_pool_destroy(pool);
    io->ops = near_ops;
    io->ops->destroy(io);
    scratch_remove(directory);
    tear_down(&fixture);
}
