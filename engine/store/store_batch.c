/* Batches: staging of one producer, handed to the journals as a whole.
 *
 * Rows and offset records grow in buffers that are kept from batch to batch, so that a
 * producer stops allocating once its largest batch has passed. */
#include "engine/event/row.h"
#include "engine/store/offset_record.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"
#include "lahar/append.h"

struct lahar_batch {
    lahar_store *store;
    struct lahar_buffer rows;
    struct lahar_buffer offsets;
    size_t event_count;
    uint32_t producer;
};

lahar_status lahar_batch_create(lahar_store *store, lahar_batch **batch_out, lahar_error *error)
{
    *batch_out = NULL;
    LAHAR_TRY(lahar_store_check_writable(store, error));
    lahar_batch *batch = lahar_allocate_zeroed(&store->allocator, 1, sizeof *batch);
    if (batch == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a batch");
    }
    batch->store = store;
    lahar_buffer_init(&batch->rows, &store->allocator);
    lahar_buffer_init(&batch->offsets, &store->allocator);
    batch->producer = atomic_fetch_add_explicit(&store->next_producer, 1, memory_order_relaxed);
    *batch_out = batch;
    return LAHAR_OK;
}

void lahar_batch_destroy(lahar_batch *batch)
{
    if (batch == NULL) {
        return;
    }
    lahar_buffer_deinit(&batch->rows);
    lahar_buffer_deinit(&batch->offsets);
    lahar_release(&batch->store->allocator, batch);
}

/* Whether the batch is within its limit after something was staged. */
static lahar_status check_size(const lahar_batch *batch, lahar_error *error)
{
    const size_t size = batch->rows.size + batch->offsets.size;
    if (size > batch->store->batch_size_max) {
        return lahar_fail(error, LAHAR_TOO_BIG, "the batch would be %zu bytes, the limit is %zu",
                          size, batch->store->batch_size_max);
    }
    return LAHAR_OK;
}

/* Takes back what was put behind size. */
static void rewind_buffer(struct lahar_buffer *buffer, size_t size)
{
    buffer->size = size;
    buffer->has_failed = false;
}

lahar_status lahar_batch_add(lahar_batch *batch, const lahar_event *event, lahar_error *error)
{
    const size_t before = batch->rows.size;
    if (batch->event_count == UINT32_MAX) {
        return lahar_fail(error, LAHAR_TOO_BIG, "a batch takes at most %u events", UINT32_MAX);
    }
    lahar_status status = lahar_row_encode(&batch->rows, batch->store->catalog, event, error);
    if (status == LAHAR_OK) {
        status = check_size(batch, error);
    }
    if (status != LAHAR_OK) {
        rewind_buffer(&batch->rows, before);
        return status;
    }
    batch->event_count++;
    return LAHAR_OK;
}

lahar_status lahar_batch_add_offset(lahar_batch *batch, lahar_bytes source, lahar_bytes key,
                                    lahar_bytes value, lahar_error *error)
{
    const size_t before = batch->offsets.size;
    const size_t limit = batch->store->batch_size_max;
    lahar_status status = LAHAR_OK;
    if (source.size > limit || key.size > limit || value.size > limit) {
        return lahar_fail(error, LAHAR_TOO_BIG, "an offset record above the batch's limit of %zu",
                          limit);
    }
    lahar_offset_record_put(&batch->offsets, &(struct lahar_offset_record){source, key, value});
    if (batch->offsets.has_failed) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an offset record");
    } else {
        status = check_size(batch, error);
    }
    if (status != LAHAR_OK) {
        rewind_buffer(&batch->offsets, before);
    }
    return status;
}

size_t lahar_batch_event_count(const lahar_batch *batch)
{
    return batch->event_count;
}

size_t lahar_batch_size(const lahar_batch *batch)
{
    return batch->rows.size + batch->offsets.size;
}

void lahar_batch_clear(lahar_batch *batch)
{
    lahar_buffer_clear(&batch->rows);
    lahar_buffer_clear(&batch->offsets);
    batch->event_count = 0;
}

static lahar_status append_once(lahar_batch *batch, lahar_durability durability,
                                uint64_t deadline_ns, uint64_t *first_id_out, lahar_error *error)
{
    return lahar_journals_append(batch->store->journals, batch->producer, batch->rows.data,
                                 batch->rows.size, (uint32_t)batch->event_count,
                                 batch->offsets.data, batch->offsets.size, durability, deadline_ns,
                                 first_id_out, error);
}

/* Without threads: one round of steps is enough for the first of them to succeed. */
static bool has_stepped(void *context)
{
    uint32_t *rounds = context;
    return (*rounds)++ != 0;
}

/* Without threads nobody writes while this one waits, so it never lets the journals
 * wait: it runs the steps between tries, and for COMMIT until all is durable. */
static lahar_status append_driven(lahar_batch *batch, lahar_durability durability,
                                  uint64_t deadline_ns, uint64_t *first_id_out, lahar_error *error)
{
    lahar_store *store = batch->store;
    for (;;) {
        lahar_error cause = {0};
        lahar_status status = append_once(batch, durability, LAHAR_NO_WAIT, first_id_out, &cause);
        if (*first_id_out != 0 && (status == LAHAR_TIMEOUT || status == LAHAR_BUSY)) {
            const uint64_t count = batch->event_count == 0 ? 1 : batch->event_count;
            return lahar_store_wait_durable(store, *first_id_out + count, deadline_ns, error);
        }
        uint32_t rounds = 0;
        if (status == LAHAR_BUSY && deadline_ns != LAHAR_NO_WAIT &&
            lahar_store_drive(store, has_stepped, &rounds)) {
            continue;
        }
        if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
            *error = cause;
        }
        return status;
    }
}

lahar_status lahar_batch_commit(lahar_batch *batch, const lahar_append_options *options,
                                uint64_t *first_id_out, lahar_error *error)
{
    lahar_store *store = batch->store;
    uint64_t first_id = 0;
    if (first_id_out != NULL) {
        *first_id_out = 0;
    }
    lahar_durability durability = LAHAR_DURABILITY_STORE;
    uint64_t deadline_ns = LAHAR_WAIT_FOREVER;
    if (options != NULL) {
        if (options->struct_size < sizeof *options) {
            return lahar_fail(error, LAHAR_INVALID, "append options: struct_size is %zu",
                              options->struct_size);
        }
        durability = options->durability;
        deadline_ns = options->deadline_ns;
    }
    if ((unsigned)durability > LAHAR_DURABILITY_COMMIT) {
        return lahar_fail(error, LAHAR_INVALID, "unknown durability %d", (int)durability);
    }
    if (durability == LAHAR_DURABILITY_STORE) {
        durability = store->options.durability;
    }
    if (batch->event_count == 0 && batch->offsets.size == 0) {
        return LAHAR_OK;
    }
    lahar_status status = store->config.start_threads
                              ? append_once(batch, durability, deadline_ns, &first_id, error)
                              : append_driven(batch, durability, deadline_ns, &first_id, error);
    if (status == LAHAR_BUSY && first_id != 0) {
        /* BUSY is kept for "nothing was appended". */
        status = LAHAR_TIMEOUT;
    }
    if (first_id_out != NULL) {
        *first_id_out = first_id;
    }
    if (status == LAHAR_OK || first_id != 0) {
        lahar_batch_clear(batch);
    }
    return status;
}

lahar_status lahar_append(lahar_batch *batch, const lahar_event *event,
                          const lahar_append_options *options, uint64_t *id_out, lahar_error *error)
{
    if (id_out != NULL) {
        *id_out = 0;
    }
    if (batch->event_count != 0 || batch->offsets.size != 0) {
        return lahar_fail(error, LAHAR_INVALID, "lahar_append needs an empty batch");
    }
    LAHAR_TRY(lahar_batch_add(batch, event, error));
    return lahar_batch_commit(batch, options, id_out, error);
}
