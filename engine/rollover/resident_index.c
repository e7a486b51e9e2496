/* Building slices and keeping the list of them; see resident_index.h. */
#include "engine/rollover/resident_index.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "engine/event/row.h"
#include "engine/rollover/rollover_index.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

#define SLICE_RAW_BYTES   (UINT64_C(8) << 20)
#define VIEW_WAIT_NS      UINT64_C(10000000)
#define NS_PER_SECOND     UINT64_C(1000000000)
#define QUERIES_RECENT_NS (30 * NS_PER_SECOND)
#define SAMPLE_NS         (NS_PER_SECOND / 4)
#define CALM_NS           (3 * NS_PER_SECOND)
/* Bytes a second up to which building costs a few hundredths of a core. */
#define IDLE_RATE (UINT64_C(4) << 20)

enum {
    SLICE_EVENTS = 16384, /* a slice ends with the batch that reaches this or SLICE_RAW_BYTES */
    MEMORY_PART = 16      /* slices take no more than this part of the store's memory */
};

struct lahar_resident_index {
    lahar_store *store;
    atomic_uint_least64_t queried_ns; /* monotonic, of the last query; 0: none yet */

    /* Guarded by build_mutex: */
    uint64_t built_ns;      /* processor time that the last slice took */
    uint64_t sampled_ns;    /* monotonic, of the sample below */
    uint64_t sampled_bytes; /* appended until then */
    uint64_t rate;          /* bytes appended a second */
    uint64_t busy_ns;       /* monotonic, when the load was last heavy, at first of the opening */
    struct lahar_rest rest; /* what the next step has to wait for */

    pthread_mutex_t build_mutex; /* held during a step; before mutex */
    pthread_mutex_t mutex;
    /* Guarded by mutex, changed by steps alone; the index's own reference. */
    struct lahar_resident_slices *slices;
};

static uint64_t now_ns(const struct lahar_resident_index *index)
{
    struct lahar_io *io = index->store->io;
    return io->ops->monotonic_ns(io);
}

/* Of this thread: waiting for a processor that others use is no reason to rest. */
static uint64_t processor_ns(void)
{
    struct timespec used = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * NS_PER_SECOND + (uint64_t)used.tv_nsec;
}

/* --- sets ------------------------------------------------------------------------------ */

static void destroy_slice(const lahar_allocator *allocator, struct lahar_resident_slice *slice)
{
    for (size_t i = 0; i < slice->shard_count; i++) {
        lahar_shard_close(slice->shards[i].shard);
        lahar_buffer_deinit(&slice->shards[i].bytes);
    }
    lahar_release(allocator, slice->shards);
    lahar_release(allocator, slice);
}

/* A set of the slices of base that end above low_id, and of another (NULL: none). */
static struct lahar_resident_slices *make_set(struct lahar_resident_index *index,
                                              const struct lahar_resident_slices *base,
                                              uint64_t low_id, struct lahar_resident_slice *added)
{
    const size_t base_count = base == NULL ? 0 : base->count;
    struct lahar_resident_slices *set = lahar_allocate(
        &index->store->allocator, sizeof *set + (base_count + 1) * sizeof set->slices[0]);
    if (set == NULL) {
        return NULL;
    }
    set->index = index;
    set->references = 1;
    set->count = 0;
    for (size_t i = 0; i < base_count; i++) {
        if (base->slices[i]->end_id > low_id) {
            set->slices[set->count++] = base->slices[i];
        }
    }
    if (added != NULL) {
        set->slices[set->count++] = added;
    }
    return set;
}

/* With the mutex held; the slices that nobody holds any more are moved to dead, of which there is
 * room for all. */
static bool drop_reference(struct lahar_resident_slices *set, struct lahar_resident_slice **dead,
                           size_t *dead_count)
{
    if (--set->references != 0) {
        return false;
    }
    for (size_t i = 0; i < set->count; i++) {
        if (--set->slices[i]->references == 0) {
            dead[(*dead_count)++] = set->slices[i];
        }
    }
    return true;
}

void lahar_resident_slices_release(struct lahar_resident_slices *set)
{
    if (set == NULL) {
        return;
    }
    struct lahar_resident_index *index = set->index;
    size_t dead_count = 0;
    (void)pthread_mutex_lock(&index->mutex);
    /* The last holder may overwrite the list: nobody reads it any more. */
    const bool is_last = drop_reference(set, set->slices, &dead_count);
    (void)pthread_mutex_unlock(&index->mutex);
    if (is_last) {
        for (size_t i = 0; i < dead_count; i++) {
            destroy_slice(&index->store->allocator, set->slices[i]);
        }
        lahar_release(&index->store->allocator, set);
    }
}

void lahar_resident_index_expect_queries(struct lahar_resident_index *index)
{
    atomic_store_explicit(&index->queried_ns, now_ns(index), memory_order_relaxed);
}

struct lahar_resident_slices *lahar_resident_index_acquire(struct lahar_resident_index *index)
{
    (void)pthread_mutex_lock(&index->mutex);
    struct lahar_resident_slices *set = index->slices;
    set->references++;
    (void)pthread_mutex_unlock(&index->mutex);
    return set;
}

/* Puts set in the place of the present one; its slices get a reference each. */
static void publish(struct lahar_resident_index *index, struct lahar_resident_slices *set)
{
    (void)pthread_mutex_lock(&index->mutex);
    struct lahar_resident_slices *before = index->slices;
    for (size_t i = 0; i < set->count; i++) {
        set->slices[i]->references++;
    }
    index->slices = set;
    (void)pthread_mutex_unlock(&index->mutex);
    lahar_resident_slices_release(before);
}

/* --- building --------------------------------------------------------------------------- */

/* What is being built of one stream. */
struct part {
    uint32_t stream;
    struct lahar_block_writer *writer;
    struct lahar_index_feed *feed;
};

struct build {
    lahar_store *store;
    struct lahar_buffer block; /* scratch: blocks are laid out and thrown away */
    struct part *parts;        /* one a stream, in order of first use */
    size_t part_count;
    size_t part_capacity;
};

static lahar_status find_part(struct build *build, uint32_t stream, struct part **part_out,
                              lahar_error *error)
{
    for (size_t i = 0; i < build->part_count; i++) {
        if (build->parts[i].stream == stream) {
            *part_out = &build->parts[i];
            return LAHAR_OK;
        }
    }
    lahar_store *store = build->store;
    const struct lahar_stream *found = lahar_schema_stream(store->catalog, stream);
    if (found == NULL || build->part_count == build->part_capacity) {
        return lahar_fail(error, LAHAR_CORRUPT, "an event of stream %u, which is not known",
                          stream);
    }
    struct part *part = &build->parts[build->part_count];
    *part = (struct part){.stream = stream};
    LAHAR_TRY(lahar_block_writer_create(found, 0, &store->allocator, &part->writer, error));
    const lahar_status status =
        lahar_index_feed_create(store->catalog, stream, &store->allocator, &part->feed, error);
    if (status != LAHAR_OK) {
        lahar_block_writer_destroy(part->writer);
        return status;
    }
    build->part_count++;
    *part_out = part;
    return LAHAR_OK;
}

/* Indexes the block that has been filled. */
static lahar_status end_block(struct build *build, struct part *part, lahar_error *error)
{
    struct lahar_block_info info;
    LAHAR_TRY(lahar_block_writer_encode(part->writer, error));
    const struct lahar_block_columns columns = lahar_block_writer_columns(part->writer);
    LAHAR_TRY(lahar_index_feed_add(part->feed, &columns, error));
    lahar_buffer_clear(&build->block);
    return lahar_block_writer_compress(part->writer, &build->block, &info, error);
}

static lahar_status add_row(struct build *build, const struct lahar_row_event *event,
                            lahar_error *error)
{
    struct part *part = NULL;
    LAHAR_TRY(find_part(build, lahar_row_stream(event->row), &part, error));
    if (lahar_block_writer_row_count(part->writer) != 0 &&
        lahar_block_writer_raw_size(part->writer) + event->size > LAHAR_BLOCK_RAW_SIZE) {
        LAHAR_TRY(end_block(build, part, error));
    }
    return lahar_block_writer_add_row(part->writer, event, error);
}

static lahar_status add_batch(struct build *build, const struct lahar_resident_batch *batch,
                              lahar_error *error)
{
    const uint8_t *row = batch->rows;
    size_t left = batch->rows_size;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const uint32_t size = lahar_row_size(row, left);
        if (size == 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "the row of event %llu is cut short",
                              (unsigned long long)(batch->first_id + i));
        }
        const struct lahar_row_event event = {
            .id = batch->first_id + i, .arrival_ns = batch->arrival_ns, .row = row, .size = size};
        LAHAR_TRY(add_row(build, &event, error));
        row += size;
        left -= size;
    }
    return LAHAR_OK;
}

static lahar_status finish_part(struct build *build, struct part *part,
                                struct lahar_resident_shard *shard, lahar_error *error)
{
    if (lahar_block_writer_row_count(part->writer) != 0) {
        LAHAR_TRY(end_block(build, part, error));
    }
    shard->stream = part->stream;
    LAHAR_TRY(lahar_index_feed_finish(part->feed, &shard->bytes, error));
    const struct lahar_shard_source source = {.size = shard->bytes.size,
                                              .memory = shard->bytes.data};
    return lahar_shard_open(&source, &build->store->allocator, &shard->shard, error);
}

/* A slice of whole batches, which are pinned. */
static lahar_status build_slice(struct build *build, const struct lahar_resident_batch *batches,
                                size_t batch_count, struct lahar_resident_slice **slice_out,
                                lahar_error *error)
{
    const lahar_allocator *allocator = &build->store->allocator;
    for (size_t i = 0; i < batch_count; i++) {
        LAHAR_TRY(add_batch(build, &batches[i], error));
    }
    struct lahar_resident_slice *slice = lahar_allocate_zeroed(allocator, 1, sizeof *slice);
    if (slice == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an index of events in memory");
    }
    slice->first_id = batches[0].first_id;
    slice->end_id = batches[batch_count - 1].first_id + batches[batch_count - 1].event_count;
    slice->shards = lahar_allocate_zeroed(allocator, build->part_count + 1, sizeof *slice->shards);
    lahar_status status = LAHAR_OK;
    if (slice->shards == NULL) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an index of events in memory");
    }
    for (size_t i = 0; i < build->part_count && status == LAHAR_OK; i++) {
        struct lahar_resident_shard *shard = &slice->shards[slice->shard_count++];
        lahar_buffer_init(&shard->bytes, allocator);
        status = finish_part(build, &build->parts[i], shard, error);
        if (status == LAHAR_OK) {
            slice->memory_bytes += shard->bytes.capacity + lahar_shard_memory(shard->shard);
        }
    }
    if (status != LAHAR_OK) {
        destroy_slice(allocator, slice);
        return status;
    }
    *slice_out = slice;
    return LAHAR_OK;
}

static lahar_status build_and_clean(struct lahar_resident_index *index,
                                    const struct lahar_resident_batch *batches, size_t batch_count,
                                    struct lahar_resident_slice **slice_out, lahar_error *error)
{
    lahar_store *store = index->store;
    struct build build = {.store = store,
                          .part_capacity = lahar_schema_stream_count(store->catalog)};
    build.parts =
        lahar_allocate_zeroed(&store->allocator, build.part_capacity + 1, sizeof *build.parts);
    if (build.parts == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an index of events in memory");
    }
    lahar_buffer_init(&build.block, &store->allocator);
    const lahar_status status = build_slice(&build, batches, batch_count, slice_out, error);
    for (size_t i = 0; i < build.part_count; i++) {
        lahar_block_writer_destroy(build.parts[i].writer);
        lahar_index_feed_destroy(build.parts[i].feed);
    }
    lahar_release(&store->allocator, build.parts);
    lahar_buffer_deinit(&build.block);
    return status;
}

/* --- steps ------------------------------------------------------------------------------- */

/* Takes a new sample of the load when the last one is old. */
static void sample_load(struct lahar_resident_index *index, uint64_t now)
{
    struct lahar_journals_stat stat;
    if (now - index->sampled_ns < SAMPLE_NS) {
        return;
    }
    lahar_journals_stat_get(index->store->journals, &stat);
    index->rate =
        (stat.appended_bytes - index->sampled_bytes) * NS_PER_SECOND / (now - index->sampled_ns);
    index->sampled_bytes = stat.appended_bytes;
    index->sampled_ns = now;
    if (index->rate >= IDLE_RATE || stat.resident_bytes >= index->store->group_size_bytes) {
        index->busy_ns = now;
    }
}

/* Whether slices are worth their cost now: somebody asks, or there is nothing better to do. Behind
 * a heavy load rollover still needs the processor for a while. */
static bool is_worth_it(struct lahar_resident_index *index)
{
    const uint64_t now = now_ns(index);
    const uint64_t queried = atomic_load_explicit(&index->queried_ns, memory_order_relaxed);
    sample_load(index, now);
    return (queried != 0 && now - queried < QUERIES_RECENT_NS) || now - index->busy_ns >= CALM_NS;
}

static uint64_t slice_events(const struct lahar_resident_index *index)
{
    const uint32_t configured = index->store->config.slice_event_max;
    return configured == 0 ? SLICE_EVENTS : configured;
}

/* The batches of the next slice; false when there are not enough of them yet, and how many bytes
 * had been appended before the view was taken tells when there may be. */
static bool choose(struct lahar_resident_index *index, const struct lahar_resident_view *view,
                   uint64_t from_id, uint64_t appended_bytes, size_t *first_out, size_t *count_out)
{
    const uint64_t event_max = slice_events(index);
    size_t first = 0;
    size_t high = view->batch_count;
    while (first < high) {
        const size_t middle = first + (high - first) / 2;
        if (view->batches[middle].first_id < from_id) {
            first = middle + 1;
        } else {
            high = middle;
        }
    }
    uint64_t bytes = 0;
    uint64_t events = 0;
    for (size_t i = first; i < view->batch_count; i++) {
        bytes += view->batches[i].rows_size;
        events += view->batches[i].event_count;
        if (bytes >= SLICE_RAW_BYTES || events >= event_max) {
            *first_out = first;
            *count_out = i + 1 - first;
            return true;
        }
    }
    index->rest = (struct lahar_rest){.until_ns = UINT64_MAX,
                                      .published_id = view->end_id + (event_max - events),
                                      .appended_bytes = appended_bytes + (SLICE_RAW_BYTES - bytes)};
    return false;
}

static uint64_t memory_of(const struct lahar_resident_slices *slices)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < slices->count; i++) {
        bytes += slices->slices[i]->memory_bytes;
    }
    return bytes;
}

/* Takes the slices out that are rolled over. */
static void drop_rolled(struct lahar_resident_index *index, uint64_t rolled_id)
{
    /* Nothing but this step changes the set, so it can be looked at without the mutex. */
    const struct lahar_resident_slices *slices = index->slices;
    if (slices->count == 0 || slices->slices[0]->end_id > rolled_id) {
        return;
    }
    struct lahar_resident_slices *set = make_set(index, slices, rolled_id, NULL);
    if (set != NULL) {
        publish(index, set);
    }
}

/* Builds the next slice if there is one; false when there is not, or it failed. */
static bool build_next(struct lahar_resident_index *index, uint64_t from_id)
{
    lahar_store *store = index->store;
    struct lahar_journals_stat stat;
    struct lahar_resident_view view;
    struct lahar_resident_slice *slice = NULL;
    size_t first = 0;
    size_t count = 0;
    lahar_journals_stat_get(store->journals, &stat);
    if (lahar_journals_view(store->journals, VIEW_WAIT_NS, &view, NULL) != LAHAR_OK) {
        return false;
    }
    const uint64_t start_ns = processor_ns();
    if (choose(index, &view, from_id, stat.appended_bytes, &first, &count) &&
        build_and_clean(index, view.batches + first, count, &slice, NULL) == LAHAR_OK) {
        struct lahar_resident_slices *set = make_set(index, index->slices, 0, slice);
        if (set == NULL) {
            destroy_slice(&store->allocator, slice);
            slice = NULL;
        } else {
            publish(index, set);
        }
    }
    index->built_ns = processor_ns() - start_ns;
    lahar_journals_unview(store->journals, &view);
    return slice != NULL;
}

static bool step(struct lahar_resident_index *index)
{
    lahar_store *store = index->store;
    struct lahar_segment_set *files = lahar_store_acquire_set(store);
    const uint64_t rolled_id = files->rolled_id;
    lahar_segment_set_release(files);
    drop_rolled(index, rolled_id);
    const struct lahar_resident_slices *slices = index->slices;
    struct lahar_journals_stat stat;
    lahar_journals_stat_get(store->journals, &stat);
    uint64_t from_id = rolled_id;
    if (slices->count != 0 && slices->slices[slices->count - 1]->end_id > from_id) {
        from_id = slices->slices[slices->count - 1]->end_id;
    }
    index->built_ns = 0;
    index->rest = LAHAR_REST_FOREVER;
    if (stat.published_id <= from_id) {
        index->rest.published_id = from_id + slice_events(index);
        index->rest.appended_bytes = stat.appended_bytes + SLICE_RAW_BYTES;
        return false;
    }
    if (memory_of(slices) >= store->options.memory_limit_bytes / MEMORY_PART) {
        return false; /* until rollover has come further, which wakes all */
    }
    index->rest.until_ns = now_ns(index) + SAMPLE_NS;
    const bool has_built = is_worth_it(index) && build_next(index, from_id);
    if (has_built) {
        /* Half of a core under load, all of it when there is little. */
        index->rest.until_ns = now_ns(index) + (index->rate < IDLE_RATE ? 0 : index->built_ns);
    }
    return has_built;
}

bool lahar_resident_index_step(struct lahar_resident_index *index, struct lahar_rest *rest_out)
{
    if (pthread_mutex_trylock(&index->build_mutex) != 0) {
        *rest_out = LAHAR_REST_FOREVER;
        rest_out->until_ns = now_ns(index) + SAMPLE_NS;
        return false;
    }
    const bool has_built = step(index);
    *rest_out = index->rest;
    (void)pthread_mutex_unlock(&index->build_mutex);
    return has_built;
}

lahar_status lahar_resident_index_create(lahar_store *store,
                                         struct lahar_resident_index **index_out,
                                         lahar_error *error)
{
    *index_out = NULL;
    struct lahar_resident_index *index = lahar_allocate_zeroed(&store->allocator, 1, sizeof *index);
    if (index == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the index of events in memory");
    }
    index->store = store;
    atomic_init(&index->queried_ns, 0);
    index->busy_ns = now_ns(index); /* what a load does that begins now is not known yet */
    index->slices = make_set(index, NULL, 0, NULL);
    if (index->slices == NULL) {
        lahar_release(&store->allocator, index);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the index of events in memory");
    }
    (void)pthread_mutex_init(&index->mutex, NULL);
    (void)pthread_mutex_init(&index->build_mutex, NULL);
    *index_out = index;
    return LAHAR_OK;
}

void lahar_resident_index_destroy(struct lahar_resident_index *index)
{
    if (index == NULL) {
        return;
    }
    lahar_store *store = index->store;
    lahar_resident_slices_release(index->slices);
    (void)pthread_mutex_destroy(&index->mutex);
    (void)pthread_mutex_destroy(&index->build_mutex);
    lahar_release(&store->allocator, index);
}
