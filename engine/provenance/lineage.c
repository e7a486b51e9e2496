/* Lineage computations: options, the thread, waiting, cancelling. */
#include "engine/provenance/lineage.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "io/base/error.h"

#define EVENT_MAX_DEFAULT UINT64_C(1000000)

void lahar_lineage_options_init(lahar_lineage_options *options)
{
    *options = (lahar_lineage_options){.struct_size = sizeof *options,
                                       .from_ns = INT64_MIN,
                                       .to_ns = INT64_MAX,
                                       .event_max = EVENT_MAX_DEFAULT};
}

static lahar_status take_options(struct lahar_lineage *lineage,
                                 const lahar_lineage_options *options, lahar_error *error)
{
    lahar_lineage_options *own = &lineage->options;
    lahar_lineage_options_init(own);
    if (options->struct_size < sizeof(size_t)) {
        return lahar_fail(error, LAHAR_INVALID,
                          "options must be set up by lahar_lineage_options_init");
    }
    memcpy(own, options, options->struct_size < sizeof *own ? options->struct_size : sizeof *own);
    if (own->event_max == 0) {
        own->event_max = EVENT_MAX_DEFAULT;
    }
    if ((unsigned)own->kind > LAHAR_LINEAGE_EXPAND_CHILDREN ||
        (own->kind == LAHAR_LINEAGE_FLOWFILE && own->uuid.size == 0)) {
        return lahar_fail(error, LAHAR_INVALID, "a lineage needs a FlowFile or an event");
    }
    if (own->kind == LAHAR_LINEAGE_FLOWFILE) {
        own->uuid.data = lahar_arena_copy(&lineage->arena, own->uuid.data, own->uuid.size);
        if (own->uuid.data == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a lineage");
        }
    }
    return LAHAR_OK;
}

static void finish(struct lahar_lineage *lineage, lahar_status status)
{
    (void)pthread_mutex_lock(&lineage->lock);
    lineage->status = status;
    lineage->is_finished = true;
    atomic_store_explicit(&lineage->percent, 100, memory_order_relaxed);
    (void)pthread_cond_broadcast(&lineage->finished);
    (void)pthread_mutex_unlock(&lineage->lock);
}

/* The thread and its helpers take no signals: they are the host's.
 * What could be read is made into a graph also where something could not. */
static void *run(void *context)
{
    struct lahar_lineage *lineage = context;
    (void)pthread_setname_np(pthread_self(), "lahar-lineage");
    lahar_status status = lahar_lineage_collect(lineage, &lineage->error);
    lahar_snapshot_release(lineage->snapshot);
    lineage->snapshot = NULL;
    if (status == LAHAR_OK || status == LAHAR_CORRUPT) {
        lahar_error reason = {.status = LAHAR_OK};
        const lahar_status built = lahar_lineage_build(lineage, &reason);
        if (built != LAHAR_OK) {
            lineage->error = reason;
            status = built;
        }
    }
    finish(lineage, status);
    return NULL;
}

lahar_status lahar_lineage_start(lahar_provenance *provenance, const lahar_lineage_options *options,
                                 lahar_lineage **lineage_out, lahar_error *error)
{
    *lineage_out = NULL;
    struct lahar_lineage *lineage =
        lahar_allocate_zeroed(provenance->allocator, 1, sizeof *lineage);
    if (lineage == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a lineage");
    }
    pthread_condattr_t monotonic;
    lineage->provenance = provenance;
    lahar_arena_init(&lineage->arena, provenance->allocator, 0);
    lahar_uuid_map_init(&lineage->flowfiles, provenance->allocator);
    lahar_buffer_init(&lineage->text, provenance->allocator);
    LAHAR_ASSERT(pthread_mutex_init(&lineage->lock, NULL) == 0);
    LAHAR_ASSERT(pthread_condattr_init(&monotonic) == 0);
    LAHAR_ASSERT(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    LAHAR_ASSERT(pthread_cond_init(&lineage->finished, &monotonic) == 0);
    (void)pthread_condattr_destroy(&monotonic);
    lahar_status status = take_options(lineage, options, error);
    if (status == LAHAR_OK) {
        lahar_store_note_question(provenance->store);
        status = lahar_snapshot_take(provenance->store, &lineage->snapshot, error);
    }
    if (status == LAHAR_OK) {
        sigset_t all;
        sigset_t before;
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        const int failure = pthread_create(&lineage->thread, NULL, run, lineage);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        lineage->has_thread = failure == 0;
        if (failure != 0) {
            status = lahar_fail_errno(error, failure, "start a thread for a lineage");
        }
    }
    if (status != LAHAR_OK) {
        lahar_lineage_close(lineage);
        return status;
    }
    *lineage_out = lineage;
    return LAHAR_OK;
}

static struct timespec instant_after(const struct lahar_lineage *lineage, uint64_t deadline_ns)
{
    struct lahar_io *io = lineage->provenance->io;
    const uint64_t second = UINT64_C(1000000000);
    const uint64_t now_ns = io->ops->monotonic_ns(io);
    const uint64_t until_ns =
        deadline_ns < INT64_MAX - now_ns ? now_ns + deadline_ns : (uint64_t)INT64_MAX;
    return (struct timespec){.tv_sec = (time_t)(until_ns / second),
                             .tv_nsec = (long)(until_ns % second)};
}

lahar_status lahar_lineage_wait(lahar_lineage *lineage, uint64_t deadline_ns, lahar_error *error)
{
    const struct timespec until = instant_after(lineage, deadline_ns);
    int waited = 0;
    (void)pthread_mutex_lock(&lineage->lock);
    while (!lineage->is_finished && waited != ETIMEDOUT) {
        waited = deadline_ns == LAHAR_WAIT_FOREVER
                     ? pthread_cond_wait(&lineage->finished, &lineage->lock)
                     : pthread_cond_timedwait(&lineage->finished, &lineage->lock, &until);
    }
    const bool is_finished = lineage->is_finished;
    (void)pthread_mutex_unlock(&lineage->lock);
    if (!is_finished) {
        return lahar_fail(error, LAHAR_TIMEOUT, "the lineage is not computed yet");
    }
    return lineage->status == LAHAR_OK
               ? LAHAR_OK
               : lahar_fail(error, lineage->status, "%s", lineage->error.message);
}

uint32_t lahar_lineage_progress(const lahar_lineage *lineage, uint64_t *event_count_out)
{
    if (event_count_out != NULL) {
        *event_count_out = atomic_load_explicit(&lineage->found_count, memory_order_relaxed);
    }
    return atomic_load_explicit(&lineage->percent, memory_order_relaxed);
}

void lahar_lineage_cancel(lahar_lineage *lineage)
{
    atomic_store_explicit(&lineage->is_cancelled, true, memory_order_relaxed);
}

void lahar_lineage_close(lahar_lineage *lineage)
{
    if (lineage == NULL) {
        return;
    }
    const lahar_allocator *allocator = lineage->provenance->allocator;
    if (lineage->has_thread) {
        lahar_lineage_cancel(lineage);
        (void)pthread_join(lineage->thread, NULL);
    }
    lahar_snapshot_release(lineage->snapshot);
    lahar_release(allocator, lineage->events);
    lahar_release(allocator, lineage->nodes);
    lahar_release(allocator, lineage->edges);
    lahar_uuid_map_deinit(&lineage->flowfiles);
    lahar_buffer_deinit(&lineage->text);
    lahar_arena_deinit(&lineage->arena);
    (void)pthread_cond_destroy(&lineage->finished);
    (void)pthread_mutex_destroy(&lineage->lock);
    lahar_release(allocator, lineage);
}

static bool is_finished(const struct lahar_lineage *lineage)
{
    struct lahar_lineage *locked = (struct lahar_lineage *)(uintptr_t)lineage;
    (void)pthread_mutex_lock(&locked->lock);
    const bool finished = lineage->is_finished;
    (void)pthread_mutex_unlock(&locked->lock);
    return finished;
}

void lahar_lineage_graph_get(const lahar_lineage *lineage, lahar_lineage_graph *graph_out)
{
    static const struct lahar_lineage unfinished = {.event_count = 0};
    const size_t struct_size = graph_out->struct_size;
    if (!is_finished(lineage)) {
        lineage = &unfinished;
    }
    const lahar_lineage_graph graph = {
        .struct_size = struct_size,
        .nodes = lineage->nodes,
        .node_count = lineage->node_count,
        .event_count =
            lineage->event_count < lineage->node_count ? lineage->event_count : lineage->node_count,
        .edges = lineage->edges,
        .edge_count = lineage->edge_count,
        .is_truncated = lineage->is_truncated,
        .problem = lineage->problem[0] == '\0' ? NULL : lineage->problem};
    memcpy(graph_out, &graph,
           struct_size != 0 && struct_size < sizeof graph ? struct_size : sizeof graph);
}

lahar_status lahar_lineage_format_text(lahar_lineage *lineage, lahar_lineage_format format,
                                       lahar_bytes *text_out, lahar_error *error)
{
    static void (*const put[])(const struct lahar_lineage *, struct lahar_buffer *) = {
        [LAHAR_LINEAGE_TREE] = lahar_lineage_put_tree,
        [LAHAR_LINEAGE_JSON] = lahar_lineage_put_json,
        [LAHAR_LINEAGE_DOT] = lahar_lineage_put_dot,
        [LAHAR_LINEAGE_MERMAID] = lahar_lineage_put_mermaid,
        [LAHAR_LINEAGE_PROV_JSON] = lahar_lineage_put_prov_json,
    };
    *text_out = (lahar_bytes){NULL, 0};
    if ((unsigned)format > LAHAR_LINEAGE_PROV_JSON) {
        return lahar_fail(error, LAHAR_INVALID, "there is no lineage format %d", (int)format);
    }
    if (!is_finished(lineage)) {
        return lahar_fail(error, LAHAR_BUSY, "the lineage is not computed yet");
    }
    lahar_buffer_clear(&lineage->text);
    put[format](lineage, &lineage->text);
    if (lineage->text.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write a lineage");
    }
    *text_out = (lahar_bytes){lineage->text.data, lineage->text.size};
    return LAHAR_OK;
}
