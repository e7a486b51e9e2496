/* Snapshots: a set of event files and the resident batches behind it.
 *
 * The batches are pinned first and the set is taken second. Rollover publishes a set
 * before it lets the journals forget, so the set taken covers at least everything
 * that was forgotten when the batches were pinned; what it covers beyond that is
 * passed over among the batches. Every event is seen exactly once. */
#include "engine/store/snapshot.h"

#include "engine/rollover/resident_index.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

/* How long events may stay claimed and unpublished before a read gives up. */
#define PUBLISH_WAIT_NS UINT64_C(1000000000)

struct lahar_snapshot {
    lahar_store *store;
    struct lahar_segment_set *set;
    struct lahar_resident_view view;      /* in a store with journals */
    struct lahar_resident_slices *slices; /* in a store with journals */
    const struct lahar_resident_batch *batches;
    size_t batch_count;
    uint64_t end_id;
    uint64_t durable_id;
};

/* The first of batches whose last id is >= id. A batch without events lies before its
 * first id. */
static size_t find_batch(const struct lahar_resident_batch *batches, size_t count, uint64_t id)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (batches[middle].first_id + batches[middle].event_count <= id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

lahar_status lahar_snapshot_take(lahar_store *store, struct lahar_snapshot **snapshot_out,
                                 lahar_error *error)
{
    *snapshot_out = NULL;
    struct lahar_snapshot *snapshot = lahar_allocate_zeroed(&store->allocator, 1, sizeof *snapshot);
    if (snapshot == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a snapshot");
    }
    snapshot->store = store;
    if (store->journals != NULL) {
        const lahar_status status =
            lahar_journals_view(store->journals, PUBLISH_WAIT_NS, &snapshot->view, error);
        if (status != LAHAR_OK) {
            lahar_release(&store->allocator, snapshot);
            return status;
        }
        snapshot->durable_id = lahar_journals_durable_id(store->journals);
        snapshot->slices = lahar_resident_index_acquire(store->resident_index);
    } else {
        snapshot->view.batches = store->recovery.batches;
        snapshot->view.batch_count = store->recovery.batch_count;
        snapshot->view.end_id = store->recovery.end_id;
        snapshot->durable_id = store->recovery.end_id;
    }
    snapshot->set = lahar_store_acquire_set(store);
    const uint64_t rolled_id = snapshot->set->rolled_id;
    const size_t first = find_batch(snapshot->view.batches, snapshot->view.batch_count, rolled_id);
    snapshot->batches = snapshot->view.batch_count == 0 ? NULL : snapshot->view.batches + first;
    snapshot->batch_count = snapshot->view.batch_count - first;
    snapshot->end_id = snapshot->view.end_id > rolled_id ? snapshot->view.end_id : rolled_id;
    if (snapshot->durable_id < rolled_id) {
        snapshot->durable_id = rolled_id;
    }
    *snapshot_out = snapshot;
    return LAHAR_OK;
}

void lahar_snapshot_release(struct lahar_snapshot *snapshot)
{
    if (snapshot == NULL) {
        return;
    }
    lahar_store *store = snapshot->store;
    lahar_segment_set_release(snapshot->set);
    lahar_resident_slices_release(snapshot->slices);
    if (store->journals != NULL) {
        lahar_journals_unview(store->journals, &snapshot->view);
    }
    lahar_release(&store->allocator, snapshot);
}

uint64_t lahar_snapshot_end(const struct lahar_snapshot *snapshot)
{
    return snapshot->end_id;
}

uint64_t lahar_snapshot_durable(const struct lahar_snapshot *snapshot)
{
    return snapshot->durable_id;
}

size_t lahar_snapshot_segment_count(const struct lahar_snapshot *snapshot)
{
    return snapshot->set->count;
}

const struct lahar_snapshot_segment *lahar_snapshot_segment(const struct lahar_snapshot *snapshot,
                                                            size_t index)
{
    return &snapshot->set->segments[index];
}

uint64_t lahar_snapshot_reach(const struct lahar_snapshot *snapshot, size_t index)
{
    return snapshot->set->reach[index];
}

size_t lahar_snapshot_lost_count(const struct lahar_snapshot *snapshot)
{
    return snapshot->set->lost_count + snapshot->store->lost.count;
}

const struct lahar_segment_info *lahar_snapshot_lost(const struct lahar_snapshot *snapshot,
                                                     size_t index)
{
    const size_t file_count = snapshot->set->lost_count;
    return index < file_count ? &snapshot->set->lost[index]->entry.info
                              : &snapshot->store->lost_infos[index - file_count];
}

size_t lahar_snapshot_batch_count(const struct lahar_snapshot *snapshot)
{
    return snapshot->batch_count;
}

const struct lahar_resident_batch *lahar_snapshot_batch(const struct lahar_snapshot *snapshot,
                                                        size_t index)
{
    return &snapshot->batches[index];
}

const struct lahar_resident_slices *lahar_snapshot_slices(const struct lahar_snapshot *snapshot)
{
    if (snapshot->slices != NULL) {
        lahar_resident_index_expect_queries(snapshot->store->resident_index);
    }
    return snapshot->slices;
}

size_t lahar_snapshot_find_batch(const struct lahar_snapshot *snapshot, uint64_t id)
{
    return find_batch(snapshot->batches, snapshot->batch_count, id);
}

const struct lahar_schema_catalog *lahar_store_catalog(const lahar_store *store)
{
    return store->catalog;
}

const lahar_allocator *lahar_store_allocator(const lahar_store *store)
{
    return &store->allocator;
}

struct lahar_io *lahar_store_io(const lahar_store *store)
{
    return store->io;
}

void lahar_store_note_question(lahar_store *store)
{
    atomic_store_explicit(&store->asked_ns, store->io->ops->monotonic_ns(store->io),
                          memory_order_relaxed);
}

uint32_t lahar_store_query_part_size(const lahar_store *store)
{
    enum {
        DEFAULT = 65536
    };
    return store->config.query_part_size == 0 ? DEFAULT : store->config.query_part_size;
}

struct lahar_query_registry *lahar_store_queries(lahar_store *store)
{
    return &store->queries;
}
