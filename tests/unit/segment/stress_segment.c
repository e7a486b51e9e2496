/* Many threads read the same blocks: lazy inflating, the cache under pressure, and
 * look-ups in the catalog while streams are added. Meant for ThreadSanitizer. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/segment/segment.h"
#include "io/sim_disk.h"
#include "sample_events.h"

enum {
    THREAD_COUNT = 4,
    EVENT_COUNT = 6000,
    READS_PER_THREAD = 150
};

struct shared {
    struct samples samples;
    struct lahar_segment *segment;
    lahar_event *events;
    atomic_uint mismatches;
};

static void require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void *read_events(void *context)
{
    struct shared *shared = context;
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    uint64_t state = (uintptr_t)&arena | 1;
    for (uint32_t i = 0; i < READS_PER_THREAD; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint32_t ordinal = (uint32_t)(state >> 33) % EVENT_COUNT;
        const uint32_t number = lahar_segment_find_ordinal(shared->segment, ordinal);
        struct lahar_block *block = NULL;
        lahar_event event;
        if (lahar_segment_load(shared->segment, number, &block, NULL) != LAHAR_OK ||
            lahar_block_read(
                block, ordinal - lahar_segment_block_info(shared->segment, number)->first_ordinal,
                &arena, &event, NULL) != LAHAR_OK ||
            samples_difference(&shared->events[ordinal], &event) != NULL) {
            (void)atomic_fetch_add(&shared->mismatches, 1);
        }
        lahar_block_release(block);
        lahar_arena_reset(&arena);
    }
    lahar_arena_deinit(&arena);
    return NULL;
}

static void *look_up_names(void *context)
{
    struct shared *shared = context;
    const struct lahar_schema_catalog *catalog = shared->samples.catalog;
    uint32_t seen = 0;
    while (seen < 200) {
        seen = lahar_schema_stream_count(catalog);
        for (uint32_t i = 0; i < seen; i++) {
            const struct lahar_stream *stream = lahar_schema_stream(catalog, i);
            const struct lahar_stream *found =
                lahar_schema_find_stream(catalog, stream->name, strlen(stream->name));
            const uint32_t field = stream->fields[stream->field_count - 1].field;
            const char *name = lahar_schema_field_name(catalog, field);
            uint32_t again = 0;
            if (found != stream || name == NULL ||
                !lahar_schema_find_field(catalog, name, strlen(name), &again) || again != field) {
                (void)atomic_fetch_add(&shared->mismatches, 1);
            }
        }
    }
    return NULL;
}

static void run(struct shared *shared, void *(*body)(void *), bool adds_streams)
{
    pthread_t threads[THREAD_COUNT];
    for (uint32_t i = 0; i < THREAD_COUNT; i++) {
        require(pthread_create(&threads[i], NULL, body, shared) == 0, "pthread_create");
    }
    for (uint32_t i = 0; adds_streams && i < 200; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "name-%u", i);
        const lahar_field_spec field = {name, LAHAR_U64, false};
        const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                        .name = name,
                                        .schema = LAHAR_SCHEMA_LOG,
                                        .fields = &field,
                                        .field_count = 1};
        uint32_t stream = 0;
        require(lahar_schema_add_stream(shared->samples.catalog, &spec, &stream, NULL) == LAHAR_OK,
                "add stream");
    }
    for (uint32_t i = 0; i < THREAD_COUNT; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static void write_events(struct shared *shared, struct lahar_io *io,
                         struct lahar_segment_info *info)
{
    const struct lahar_segment_writer_options options = {
        .compression_level = 1, .number = 1, .stream = shared->samples.stream};
    struct lahar_segment_writer *writer = NULL;
    require(lahar_segment_writer_create(io, "d", shared->samples.catalog, &options,
                                        &lahar_allocator_libc, &writer, NULL) == LAHAR_OK,
            "create");
    for (uint32_t i = 0; i < EVENT_COUNT; i++) {
        shared->events[i] = samples_next(&shared->samples, 0);
        require(lahar_segment_writer_add(writer, &shared->events[i],
                                         samples_row_size(&shared->samples, &shared->events[i]),
                                         NULL) == LAHAR_OK,
                "add");
    }
    require(lahar_segment_writer_finish(writer, info, NULL) == LAHAR_OK, "finish");
    lahar_segment_writer_destroy(writer);
}

int main(void)
{
    static struct shared shared;
    struct lahar_sim_disk *disk = NULL;
    struct lahar_io *io = NULL;
    struct lahar_block_cache *cache = NULL;
    struct lahar_file_pool *pool = NULL;
    struct lahar_segment_info info;
    samples_create(&shared.samples, 11);
    shared.events = malloc(EVENT_COUNT * sizeof shared.events[0]);
    require(shared.events != NULL, "memory");
    require(lahar_sim_disk_create(&lahar_allocator_libc, 1, &disk, NULL) == LAHAR_OK &&
                lahar_sim_disk_io(disk, &io, NULL) == LAHAR_OK &&
                io->ops->make_directory(io, "d", NULL) == LAHAR_OK,
            "disk");
    write_events(&shared, io, &info);
    /* Room for about two of its blocks, so that blocks are evicted while in use. */
    require(lahar_block_cache_create(&lahar_allocator_libc, 4 * 1024 * 1024, &cache, NULL) ==
                    LAHAR_OK &&
                lahar_file_pool_create(io, 1, &lahar_allocator_libc, &pool, NULL) == LAHAR_OK &&
                lahar_segment_open(pool, "d", &info, shared.samples.catalog, cache,
                                   &lahar_allocator_libc, &shared.segment, NULL) == LAHAR_OK,
            "open");
    run(&shared, read_events, false);
    const unsigned read_mismatches = atomic_exchange(&shared.mismatches, 0);
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t bytes = 0;
    lahar_block_cache_stat(cache, &hits, &misses, &bytes);
    const bool is_under_pressure = misses > info.block_count && hits > 0;
    run(&shared, look_up_names, true);
    const unsigned name_mismatches = atomic_load(&shared.mismatches);
    lahar_segment_release(shared.segment);
    lahar_file_pool_destroy(pool);
    lahar_block_cache_destroy(cache);
    io->ops->destroy(io);
    lahar_sim_disk_destroy(disk);
    samples_destroy(&shared.samples);
    free(shared.events);
    const int failed =
        (read_mismatches != 0) + (name_mismatches != 0) + (is_under_pressure ? 0 : 1);
    (void)printf("%d passed, %d failed, 0 skipped\n", 3 - failed, failed);
    return failed == 0 ? 0 : 1;
}
