/* Walking the link buffer, viewing and forgetting. */
#include "engine/journal/catalog.h"

#include <string.h>

#include "engine/journal/frame.h"
#include "engine/journal/recovery_memory.h"
#include "engine/store/offset_record.h"
#include "io/base/error.h"
#include "io/base/populate.h"

enum {
    FIRST_CAPACITY = 256,
    WALK_MAX = 4096 /* batches in one hold of the mutex, so that a view never waits long */
};

struct lahar_catalog_view {
    struct lahar_catalog_array *array;
    uint64_t epoch; /* of the latest forgetting before it was taken */
    struct lahar_catalog_view *next;
    struct lahar_catalog_view *previous;
};

/* --- the array --------------------------------------------------------------------- */

static struct lahar_catalog_array *array_create(struct lahar_catalog *catalog, size_t capacity)
{
    const size_t entry_size =
        sizeof(struct lahar_resident_batch) + sizeof(struct lahar_catalog_entry);
    if (capacity > (SIZE_MAX - sizeof(struct lahar_catalog_array)) / entry_size) {
        return NULL;
    }
    const size_t bytes = sizeof(struct lahar_catalog_array) + capacity * entry_size;
    struct lahar_catalog_array *array = lahar_allocate(catalog->allocator, bytes);
    if (array == NULL) {
        return NULL;
    }
    array->capacity = capacity;
    array->references = 1;
    array->bytes = bytes;
    array->batches = (struct lahar_resident_batch *)(array + 1);
    array->entries = (struct lahar_catalog_entry *)(array->batches + capacity);
    lahar_chunk_pool_charge(catalog->chunks, bytes);
    return array;
}

static void array_release(struct lahar_catalog *catalog, struct lahar_catalog_array *array)
{
    if (array != NULL && --array->references == 0) {
        lahar_chunk_pool_discharge(catalog->chunks, array->bytes);
        lahar_release(catalog->allocator, array);
    }
}

/* Makes room for count more batches. Views keep the array that they were given. */
static bool array_reserve(struct lahar_catalog *catalog, size_t count)
{
    struct lahar_catalog_array *old = catalog->array;
    if (old != NULL && old->capacity - catalog->count >= count) {
        return true;
    }
    const size_t live = catalog->count - catalog->first;
    size_t capacity = FIRST_CAPACITY;
    while (capacity < 2 * live + count) {
        capacity *= 2;
    }
    struct lahar_catalog_array *array = array_create(catalog, capacity);
    if (array == NULL) {
        return false;
    }
    if (live != 0) {
        memcpy(array->batches, old->batches + catalog->first, live * sizeof *array->batches);
        memcpy(array->entries, old->entries + catalog->first, live * sizeof *array->entries);
    }
    catalog->durable_count -= catalog->first;
    catalog->count = live;
    catalog->first = 0;
    catalog->array = array;
    array_release(catalog, old);
    return true;
}

/* The index of the first batch at or behind first whose first id is at least id. */
static size_t find(const struct lahar_catalog *catalog, uint64_t id)
{
    size_t low = catalog->first;
    size_t high = catalog->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (catalog->array->batches[middle].first_id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Adds a batch behind the last one; room for it has been made. */
static void add(struct lahar_catalog *catalog, struct lahar_resident_batch batch,
                const struct lahar_catalog_entry *entry)
{
    batch.arrival_ns = lahar_arrival_after(catalog->arrival_ns, batch.arrival_ns);
    catalog->arrival_ns = batch.arrival_ns;
    catalog->array->batches[catalog->count] = batch;
    catalog->array->entries[catalog->count] = *entry;
    catalog->count++;
    catalog->resident_bytes += batch.rows_size + entry->offsets_size;
    catalog->resident_events += batch.event_count;
}

/* --- life ----------------------------------------------------------------------------- */

lahar_status lahar_catalog_init(struct lahar_catalog *catalog, const lahar_allocator *allocator,
                                struct lahar_chunk_pool *chunks, struct lahar_segment_pool *files,
                                uint64_t next_id, uint64_t window, int64_t arrival_floor_ns,
                                lahar_error *error)
{
    memset(catalog, 0, sizeof *catalog);
    catalog->allocator = allocator;
    catalog->chunks = chunks;
    catalog->files = files;
    catalog->arrival_ns = arrival_floor_ns;
    catalog->links.mask = window - 1;
    atomic_init(&catalog->published_id, next_id);
    atomic_init(&catalog->durable_id, next_id);
    atomic_init(&catalog->is_wanted, 0);
    atomic_init(&catalog->is_starved, false);
    atomic_init(&catalog->is_called, false);
    atomic_init(&catalog->always, UINT64_MAX);
    (void)pthread_mutex_init(&catalog->mutex, NULL);
    /* A slot of zero ends below every id: the first one handed out is at least 1. */
    catalog->links.slots = lahar_allocate_zeroed(allocator, window, sizeof *catalog->links.slots);
    if (catalog->links.slots == NULL || !array_reserve(catalog, 1)) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a link buffer of %llu slots",
                          (unsigned long long)window);
    }
    /* Every slot comes into use within as many ids: the memory is taken now, so that a store that
     * runs for long needs no more of it than at first. */
    lahar_populate(catalog->links.slots, window * sizeof *catalog->links.slots);
    lahar_chunk_pool_charge(chunks, window * sizeof *catalog->links.slots);
    return LAHAR_OK;
}

static void put_list(struct lahar_catalog *catalog, struct lahar_chunk *chunk, bool has_file)
{
    while (chunk != NULL) {
        struct lahar_chunk *next = chunk->next;
        if (has_file && atomic_fetch_sub(&chunk->file->regions_held, 1) == 1) {
            lahar_segment_file_close(catalog->files, chunk->file);
        }
        lahar_chunk_put(catalog->chunks, chunk);
        chunk = next;
    }
}

void lahar_catalog_deinit(struct lahar_catalog *catalog)
{
    LAHAR_ASSERT(catalog->views == NULL);
    put_list(catalog, catalog->sealed, true);
    put_list(catalog, catalog->limbo, false);
    array_release(catalog, catalog->array);
    lahar_release(catalog->allocator, catalog->links.slots);
    lahar_recovery_memory_release(catalog->recovered, catalog->allocator);
    (void)pthread_mutex_destroy(&catalog->mutex);
}

lahar_status lahar_catalog_adopt(struct lahar_catalog *catalog,
                                 struct lahar_journal_recovery *recovery, lahar_error *error)
{
    if (!array_reserve(catalog, recovery->batch_count + 1)) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu recovered batches",
                          recovery->batch_count);
    }
    for (size_t i = 0; i < recovery->batch_count; i++) {
        const struct lahar_resident_batch *batch = &recovery->batches[i];
        struct lahar_catalog_entry entry = {.durable = &catalog->always, .end = 0};
        lahar_recovery_memory_offsets(recovery->memory, i, &entry.offsets, &entry.offsets_size);
        add(catalog, *batch, &entry);
    }
    catalog->durable_count = catalog->count;
    catalog->recovered = recovery->memory;
    catalog->recovered_end_id = recovery->end_id;
    catalog->recovered_bytes = lahar_recovery_memory_bytes(recovery->memory);
    lahar_chunk_pool_charge(catalog->chunks, catalog->recovered_bytes);
    return LAHAR_OK;
}

/* --- walking ----------------------------------------------------------------------------- */

/* Appends what is published behind the prefix, at most WALK_MAX batches. */
static bool follow_links(struct lahar_catalog *catalog)
{
    uint64_t id = atomic_load_explicit(&catalog->published_id, memory_order_relaxed);
    const uint64_t start = id;
    uint64_t end_id;
    struct lahar_chunk *chunk;
    uint32_t offset;
    for (int n = 0; n < WALK_MAX && lahar_link_find(&catalog->links, id, &end_id, &chunk, &offset);
         n++) {
        const bool has_room = array_reserve(catalog, 1);
        atomic_store_explicit(&catalog->is_starved, !has_room, memory_order_relaxed);
        if (!has_room) {
            break;
        }
        struct lahar_frame frame;
        lahar_frame_load(chunk->image + offset, &frame);
        const struct lahar_resident_batch batch = {
            .first_id = id,
            .event_count = frame.event_count,
            .rows_size = frame.rows_size,
            .rows = frame.rows,
            .arrival_ns = frame.arrival_ns,
        };
        const struct lahar_catalog_entry entry = {
            .durable = chunk->is_jumbo ? &chunk->durable : catalog->journal_durable[chunk->journal],
            .end = chunk->base + offset + frame.size,
            .offsets = frame.offsets,
            .offsets_size = frame.offsets_size,
        };
        add(catalog, batch, &entry);
        catalog->appended_bytes += (uint64_t)frame.rows_size + frame.offsets_size;
        chunk->walked_batches++;
        chunk->end_id = end_id > chunk->end_id ? end_id : chunk->end_id;
        id = end_id;
    }
    /* Pairs with lahar_ring_reserve: the slots below have been read and may be filled anew. */
    atomic_store_explicit(&catalog->published_id, id, memory_order_release);
    return id != start;
}

/* Raises the durable prefix; returns whether there may be more to do. */
static void follow_durable(struct lahar_catalog *catalog)
{
    const struct lahar_catalog_array *array = catalog->array;
    size_t i = catalog->durable_count;
    /* Pairs with the writer's store of its durable position. */
    while (i < catalog->count &&
           atomic_load_explicit(array->entries[i].durable, memory_order_acquire) >=
               array->entries[i].end) {
        i++;
    }
    if (i != catalog->durable_count) {
        catalog->durable_count = i;
        const uint64_t end_id =
            i < catalog->count ? array->batches[i].first_id
                               : atomic_load_explicit(&catalog->published_id, memory_order_relaxed);
        if (end_id > atomic_load_explicit(&catalog->durable_id, memory_order_relaxed)) {
            atomic_store_explicit(&catalog->durable_id, end_id, memory_order_seq_cst);
        }
    }
}

static bool is_reached(const struct lahar_catalog *catalog, const struct lahar_rest *marks)
{
    return catalog->appended_bytes >= marks->appended_bytes ||
           atomic_load_explicit(&catalog->published_id, memory_order_relaxed) >=
               marks->published_id;
}

/* With the mutex held; each mark rings once. */
static void ring_reached(struct lahar_catalog *catalog)
{
    /* Pairs with lahar_catalog_ring, whose exchange comes before that thread's walk: who walks for
     * it has read its is_wanted and so sees this. */
    const bool is_called =
        atomic_exchange_explicit(&catalog->is_called, false, memory_order_seq_cst);
    for (struct lahar_alarm *alarm = catalog->alarms; alarm != NULL; alarm = alarm->next) {
        if (is_called || is_reached(catalog, &alarm->marks)) {
            alarm->marks = LAHAR_REST_FOREVER;
            lahar_gate_signal(&alarm->gate);
        }
    }
}

void lahar_catalog_walk(struct lahar_catalog *catalog)
{
    /* A thread that fails to get the mutex has set is_wanted before it tried; the holder looks
     * at is_wanted after it has let go, so that one of the two does the work. */
    (void)atomic_exchange_explicit(&catalog->is_wanted, 1, memory_order_seq_cst);
    while (atomic_load_explicit(&catalog->is_wanted, memory_order_seq_cst) != 0 &&
           pthread_mutex_trylock(&catalog->mutex) == 0) {
        (void)atomic_exchange_explicit(&catalog->is_wanted, 0, memory_order_seq_cst);
        const uint64_t from_id = atomic_load_explicit(&catalog->durable_id, memory_order_relaxed);
        const bool has_walked = follow_links(catalog);
        follow_durable(catalog);
        const uint64_t to_id = atomic_load_explicit(&catalog->durable_id, memory_order_relaxed);
        ring_reached(catalog);
        if (has_walked) {
            (void)atomic_exchange_explicit(&catalog->is_wanted, 1, memory_order_seq_cst);
        }
        (void)pthread_mutex_unlock(&catalog->mutex);
        if (has_walked) {
            catalog->walked(catalog->context);
        }
        if (to_id != from_id) {
            catalog->durable_rose(catalog->context, from_id, to_id);
        }
    }
}

/* Lets go of the mutex and does the walk that others left to the holder. */
static void unlock(struct lahar_catalog *catalog)
{
    (void)pthread_mutex_unlock(&catalog->mutex);
    if (atomic_load_explicit(&catalog->is_wanted, memory_order_seq_cst) != 0) {
        lahar_catalog_walk(catalog);
    }
}

void lahar_catalog_seal(struct lahar_catalog *catalog, struct lahar_chunk *chunk)
{
    (void)pthread_mutex_lock(&catalog->mutex);
    chunk->next = catalog->sealed;
    catalog->sealed = chunk;
    unlock(catalog);
}

/* --- alarms ----------------------------------------------------------------------------- */

void lahar_catalog_add_alarm(struct lahar_catalog *catalog, struct lahar_alarm *alarm)
{
    (void)pthread_mutex_lock(&catalog->mutex);
    alarm->marks = LAHAR_REST_FOREVER;
    alarm->next = catalog->alarms;
    catalog->alarms = alarm;
    unlock(catalog);
}

void lahar_catalog_remove_alarm(struct lahar_catalog *catalog, struct lahar_alarm *alarm)
{
    (void)pthread_mutex_lock(&catalog->mutex);
    struct lahar_alarm **link = &catalog->alarms;
    while (*link != alarm) {
        link = &(*link)->next;
    }
    *link = alarm->next;
    unlock(catalog);
}

bool lahar_catalog_set_alarm(struct lahar_catalog *catalog, struct lahar_alarm *alarm,
                             const struct lahar_rest *marks)
{
    (void)pthread_mutex_lock(&catalog->mutex);
    const bool is_ahead = !is_reached(catalog, marks);
    alarm->marks = is_ahead ? *marks : LAHAR_REST_FOREVER;
    unlock(catalog);
    return is_ahead;
}

void lahar_catalog_ring(struct lahar_catalog *catalog)
{
    (void)atomic_exchange_explicit(&catalog->is_called, true, memory_order_seq_cst);
}

/* --- viewing and forgetting ----------------------------------------------------------------- */

lahar_status lahar_catalog_view(struct lahar_catalog *catalog, struct lahar_resident_view *view_out,
                                lahar_error *error)
{
    struct lahar_catalog_view *view = lahar_allocate(catalog->allocator, sizeof *view);
    if (view == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a view");
    }
    (void)pthread_mutex_lock(&catalog->mutex);
    view->array = catalog->array;
    view->array->references++;
    view->epoch = catalog->epoch;
    view->previous = NULL;
    view->next = catalog->views;
    if (view->next != NULL) {
        view->next->previous = view;
    }
    catalog->views = view;
    view_out->batches = catalog->array->batches + catalog->first;
    view_out->batch_count = catalog->count - catalog->first;
    view_out->end_id = atomic_load_explicit(&catalog->published_id, memory_order_relaxed);
    view_out->pin = view;
    unlock(catalog);
    return LAHAR_OK;
}

/* Frees what no view can see any more and says whether that was anything; must be called with the
 * mutex held. */
static bool leave_limbo(struct lahar_catalog *catalog)
{
    bool is_any_freed = false;
    uint64_t oldest = catalog->epoch;
    for (const struct lahar_catalog_view *view = catalog->views; view != NULL; view = view->next) {
        oldest = view->epoch < oldest ? view->epoch : oldest;
    }
    struct lahar_chunk **link = &catalog->limbo;
    while (*link != NULL) {
        struct lahar_chunk *chunk = *link;
        if (chunk->limbo_epoch <= oldest) {
            *link = chunk->next;
            lahar_chunk_put(catalog->chunks, chunk);
            is_any_freed = true;
        } else {
            link = &chunk->next;
        }
    }
    if (catalog->recovered_epoch != 0 && catalog->recovered_epoch <= oldest) {
        lahar_recovery_memory_release(catalog->recovered, catalog->allocator);
        lahar_chunk_pool_discharge(catalog->chunks, catalog->recovered_bytes);
        catalog->recovered = NULL;
        catalog->recovered_epoch = 0;
        is_any_freed = true;
    }
    return is_any_freed;
}

bool lahar_catalog_unview(struct lahar_catalog *catalog, struct lahar_resident_view *view_in)
{
    struct lahar_catalog_view *view = view_in->pin;
    if (view == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&catalog->mutex);
    if (view->next != NULL) {
        view->next->previous = view->previous;
    }
    if (view->previous != NULL) {
        view->previous->next = view->next;
    } else {
        catalog->views = view->next;
    }
    array_release(catalog, view->array);
    const bool is_any_freed = leave_limbo(catalog);
    unlock(catalog);
    lahar_release(catalog->allocator, view);
    memset(view_in, 0, sizeof *view_in);
    return is_any_freed;
}

/* Moves the chunks that hold nothing at or above rolled_id to limbo and returns the list
 * of their files, one entry a chunk, for the caller to give back without the mutex. */
static struct lahar_chunk *drop_chunks(struct lahar_catalog *catalog, uint64_t rolled_id)
{
    struct lahar_chunk *dropped = NULL;
    struct lahar_chunk **link = &catalog->sealed;
    while (*link != NULL) {
        struct lahar_chunk *chunk = *link;
        const uint32_t scanned =
            atomic_load_explicit(&chunk->scanned_batches, memory_order_acquire);
        if (chunk->walked_batches == scanned && chunk->end_id <= rolled_id) {
            *link = chunk->next;
            chunk->limbo_epoch = catalog->epoch;
            chunk->next = dropped;
            dropped = chunk;
        } else {
            link = &chunk->next;
        }
    }
    return dropped;
}

void lahar_catalog_forget(struct lahar_catalog *catalog, uint64_t rolled_id)
{
    (void)pthread_mutex_lock(&catalog->mutex);
    catalog->epoch++;
    const size_t end = find(catalog, rolled_id);
    for (size_t i = catalog->first; i < end; i++) {
        const struct lahar_resident_batch *batch = &catalog->array->batches[i];
        catalog->resident_bytes -= batch->rows_size + catalog->array->entries[i].offsets_size;
        catalog->resident_events -= batch->event_count;
    }
    catalog->first = end;
    /* What is rolled is on stable storage in event files, whatever its journal says. */
    const uint64_t from_id = atomic_load_explicit(&catalog->durable_id, memory_order_relaxed);
    if (catalog->durable_count < end) {
        catalog->durable_count = end;
    }
    const uint64_t published = atomic_load_explicit(&catalog->published_id, memory_order_relaxed);
    const uint64_t to_id = rolled_id < published ? rolled_id : published;
    if (to_id > from_id) {
        atomic_store_explicit(&catalog->durable_id, to_id, memory_order_seq_cst);
    }
    if (catalog->recovered != NULL && catalog->recovered_epoch == 0 &&
        catalog->recovered_end_id <= rolled_id) {
        catalog->recovered_epoch = catalog->epoch;
    }
    struct lahar_chunk *dropped = drop_chunks(catalog, rolled_id);
    (void)pthread_mutex_unlock(&catalog->mutex);

    struct lahar_chunk *last = NULL;
    for (struct lahar_chunk *chunk = dropped; chunk != NULL; chunk = chunk->next) {
        lahar_segment_pool_give_back(catalog->files, chunk->file);
        last = chunk;
    }
    lahar_segment_pool_forget(catalog->files, rolled_id);

    (void)pthread_mutex_lock(&catalog->mutex);
    if (last != NULL) {
        last->next = catalog->limbo;
        catalog->limbo = dropped;
    }
    (void)leave_limbo(catalog);
    unlock(catalog);
    if (to_id > from_id) {
        catalog->durable_rose(catalog->context, from_id, to_id);
    }
    lahar_catalog_walk(catalog);
}

/* --- offsets and statistics --------------------------------------------------------------- */

static lahar_status visit_records(uint64_t id, const uint8_t *data, uint32_t size,
                                  lahar_status (*visit)(void *context,
                                                        const struct lahar_journal_offset *offset),
                                  void *context)
{
    struct lahar_reader reader = lahar_reader_of(data, size);
    struct lahar_offset_record record;
    while (lahar_offset_record_next(&reader, &record)) {
        const struct lahar_journal_offset offset = {id, record.source, record.key, record.value};
        LAHAR_TRY(visit(context, &offset));
    }
    return LAHAR_OK;
}

lahar_status lahar_catalog_offsets(
    const struct lahar_resident_view *view, uint64_t from_id, uint64_t to_id,
    lahar_status (*visit)(void *context, const struct lahar_journal_offset *offset), void *context)
{
    const struct lahar_catalog_view *pin = view->pin;
    const size_t skipped = (size_t)(view->batches - pin->array->batches);
    lahar_status status = LAHAR_OK;
    for (size_t i = 0; i < view->batch_count && status == LAHAR_OK; i++) {
        const struct lahar_resident_batch *batch = &view->batches[i];
        const struct lahar_catalog_entry *entry = &pin->array->entries[skipped + i];
        if (batch->first_id >= from_id && batch->first_id < to_id && entry->offsets_size != 0) {
            status =
                visit_records(batch->first_id, entry->offsets, entry->offsets_size, visit, context);
        }
    }
    return status;
}

void lahar_catalog_stat(struct lahar_catalog *catalog, struct lahar_journals_stat *stat)
{
    (void)pthread_mutex_lock(&catalog->mutex);
    stat->resident_bytes = catalog->resident_bytes;
    stat->resident_events = catalog->resident_events;
    stat->appended_bytes = catalog->appended_bytes;
    stat->published_id = atomic_load_explicit(&catalog->published_id, memory_order_relaxed);
    stat->oldest_arrival_ns = catalog->first < catalog->count
                                  ? (uint64_t)catalog->array->batches[catalog->first].arrival_ns
                                  : 0;
    unlock(catalog);
}
