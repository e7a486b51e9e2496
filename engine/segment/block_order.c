#include "engine/segment/block_order.h"

#include <pthread.h>

#include "io/base/error.h"

struct lahar_block_slot {
    struct lahar_block_writer *writer;
    struct lahar_buffer image; /* of the block, compressed */
    struct lahar_block_slot *next;
};

struct lahar_block_order {
    struct lahar_block_order_options options;
    lahar_allocator allocator;

    /* Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct lahar_block_slot *free_slots; /* the one given back last comes first */
    uint32_t observed;                   /* blocks: the number of the next to be observed */
    uint32_t written;                    /* the same of the sink */
    lahar_status status;                 /* of the first failure */
    lahar_error error;
};

lahar_status lahar_block_order_create(const struct lahar_block_order_options *options,
                                      const lahar_allocator *allocator,
                                      struct lahar_block_order **order_out, lahar_error *error)
{
    struct lahar_block_order *order = lahar_allocate_zeroed(allocator, 1, sizeof *order);
    if (order == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write blocks");
    }
    order->options = *options;
    order->allocator = *allocator;
    (void)pthread_mutex_init(&order->lock, NULL);
    (void)pthread_cond_init(&order->moved, NULL);
    *order_out = order;
    return LAHAR_OK;
}

static void destroy_slot(struct lahar_block_order *order, struct lahar_block_slot *slot)
{
    lahar_block_writer_destroy(slot->writer);
    lahar_buffer_deinit(&slot->image);
    lahar_release(&order->allocator, slot);
}

void lahar_block_order_destroy(struct lahar_block_order *order)
{
    if (order == NULL) {
        return;
    }
    while (order->free_slots != NULL) {
        struct lahar_block_slot *slot = order->free_slots;
        order->free_slots = slot->next;
        destroy_slot(order, slot);
    }
    (void)pthread_cond_destroy(&order->moved);
    (void)pthread_mutex_destroy(&order->lock);
    const lahar_allocator allocator = order->allocator;
    lahar_release(&allocator, order);
}

lahar_status lahar_block_order_take(struct lahar_block_order *order,
                                    struct lahar_block_slot **slot_out, lahar_error *error)
{
    (void)pthread_mutex_lock(&order->lock);
    struct lahar_block_slot *slot = order->free_slots;
    if (slot != NULL) {
        order->free_slots = slot->next;
    }
    (void)pthread_mutex_unlock(&order->lock);
    if (slot == NULL) {
        slot = lahar_allocate_zeroed(&order->allocator, 1, sizeof *slot);
        if (slot == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write blocks");
        }
        lahar_buffer_init(&slot->image, &order->allocator);
        const lahar_status status =
            lahar_block_writer_create(order->options.stream, order->options.compression_level,
                                      &order->allocator, &slot->writer, error);
        if (status != LAHAR_OK) {
            destroy_slot(order, slot);
            return status;
        }
    }
    *slot_out = slot;
    return LAHAR_OK;
}

struct lahar_block_writer *lahar_block_slot_writer(struct lahar_block_slot *slot)
{
    return slot->writer;
}

/* Waits until it is the block's turn at one of the two gates. */
static lahar_status await_turn(struct lahar_block_order *order, const uint32_t *gate,
                               uint32_t number, lahar_error *error)
{
    (void)pthread_mutex_lock(&order->lock);
    while (order->status == LAHAR_OK && *gate != number) {
        (void)pthread_cond_wait(&order->moved, &order->lock);
    }
    const lahar_status status = order->status;
    if (status != LAHAR_OK && error != NULL) {
        *error = order->error;
    }
    (void)pthread_mutex_unlock(&order->lock);
    return status;
}

static void pass(struct lahar_block_order *order, uint32_t *gate)
{
    (void)pthread_mutex_lock(&order->lock);
    (*gate)++;
    (void)pthread_cond_broadcast(&order->moved);
    (void)pthread_mutex_unlock(&order->lock);
}

static lahar_status observe(struct lahar_block_order *order, uint32_t number,
                            const struct lahar_block_writer *writer, lahar_error *error)
{
    LAHAR_TRY(await_turn(order, &order->observed, number, error));
    if (order->options.observe != NULL) {
        const struct lahar_block_columns columns = lahar_block_writer_columns(writer);
        LAHAR_TRY(order->options.observe(order->options.observe_context, &columns, error));
    }
    pass(order, &order->observed);
    return LAHAR_OK;
}

static lahar_status put(struct lahar_block_order *order, uint32_t number,
                        struct lahar_block_slot *slot, lahar_error *error)
{
    struct lahar_block_info info;
    const uint64_t raw_size = lahar_block_writer_raw_size(slot->writer);
    LAHAR_TRY(lahar_block_writer_encode(slot->writer, error));
    LAHAR_TRY(observe(order, number, slot->writer, error));
    lahar_buffer_clear(&slot->image);
    LAHAR_TRY(lahar_block_writer_compress(slot->writer, &slot->image, &info, error));
    LAHAR_TRY(await_turn(order, &order->written, number, error));
    LAHAR_TRY(
        order->options.sink(order->options.sink_context, &slot->image, &info, raw_size, error));
    pass(order, &order->written);
    return LAHAR_OK;
}

lahar_status lahar_block_order_put(struct lahar_block_order *order, uint32_t number,
                                   struct lahar_block_slot *slot, lahar_error *error)
{
    lahar_error own_error = {0};
    const lahar_status status = put(order, number, slot, &own_error);
    if (status != LAHAR_OK) {
        lahar_block_order_fail(order, slot, status, &own_error);
        if (error != NULL) {
            *error = own_error;
        }
        return status;
    }
    (void)pthread_mutex_lock(&order->lock);
    slot->next = order->free_slots;
    order->free_slots = slot;
    (void)pthread_mutex_unlock(&order->lock);
    return LAHAR_OK;
}

void lahar_block_order_fail(struct lahar_block_order *order, struct lahar_block_slot *slot,
                            lahar_status status, const lahar_error *error)
{
    (void)pthread_mutex_lock(&order->lock);
    if (order->status == LAHAR_OK) {
        order->status = status;
        order->error = error == NULL ? (lahar_error){.status = status} : *error;
    }
    (void)pthread_cond_broadcast(&order->moved);
    (void)pthread_mutex_unlock(&order->lock);
    if (slot != NULL) {
        destroy_slot(order, slot); /* a writer that has failed is of no more use */
    }
}
