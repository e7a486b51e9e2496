/* Deciding what the index leaves open in a unit.
 *
 * Events of a file are decided block by block: a block is read by one thread, which copies the list
 * of what is open in it, decides that without touching the unit's sets, and then takes out of them
 * what does not match. Blocks share words of the sets, so that both happen under a mutex. */
#include <pthread.h>

#include "engine/query/query_state.h"
#include "engine/query/workers.h"
#include "io/base/error.h"

enum {
    /* Blocks with something open in them from which on it is worth to ask for help. */
    SPLIT_BLOCKS = 3
};

struct settling {
    struct lahar_unit *unit;
    uint32_t *blocks; /* with something open in them */
    uint32_t block_count;
    pthread_mutex_t mutex; /* of the unit's sets */
};

/* Verifies one after the other. */
static lahar_status settle_in_turn(struct lahar_query *query, struct lahar_unit_context *context,
                                   struct lahar_unit *unit, lahar_error *error)
{
    uint32_t document = lahar_docset_next(&unit->unverified, 0);
    while (document < unit->unverified.universe) {
        LAHAR_TRY(lahar_query_check(query, error));
        bool matches = false;
        lahar_error reason = {0};
        const lahar_status status = lahar_unit_verify(unit, context, document, &matches, &reason);
        if (status == LAHAR_CORRUPT) {
            lahar_unit_drop_range(unit, context, document);
        } else if (status != LAHAR_OK) {
            if (error != NULL) {
                *error = reason;
            }
            return status;
        }
        document = lahar_docset_next(&unit->unverified, document);
    }
    return LAHAR_OK;
}

/* --- by blocks ------------------------------------------------------------------------- */

static lahar_status list_blocks(struct lahar_query *query, struct settling *settling,
                                lahar_error *error)
{
    const struct lahar_unit *unit = settling->unit;
    const uint32_t count = lahar_segment_describe(unit->segment)->block_count;
    settling->blocks = lahar_allocate(query->allocator, (count + 1) * sizeof *settling->blocks);
    if (settling->blocks == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to verify events");
    }
    const uint32_t universe = unit->unverified.universe;
    uint32_t document = lahar_docset_next(&unit->unverified, 0);
    while (document < universe && settling->block_count < count) {
        const uint32_t block = lahar_segment_find_ordinal(unit->segment, document);
        const struct lahar_block_info *info = lahar_segment_block_info(unit->segment, block);
        settling->blocks[settling->block_count++] = block;
        document = lahar_docset_next(&unit->unverified, info->first_ordinal + info->row_count);
    }
    return LAHAR_OK;
}

/* The documents of a block that are open, and the unit to read them from. */
static uint32_t list_open(struct settling *settling, const struct lahar_block_info *info,
                          uint32_t *documents, struct lahar_unit *view_out)
{
    const struct lahar_docset *open = &settling->unit->unverified;
    const uint32_t end = info->first_ordinal + info->row_count;
    uint32_t count = 0;
    pthread_mutex_lock(&settling->mutex);
    *view_out = *settling->unit;
    view_out->block = NULL;
    for (uint32_t d = lahar_docset_next(open, info->first_ordinal); d < end && d < open->universe;
         d = lahar_docset_next(open, d + 1)) {
        documents[count++] = d;
    }
    pthread_mutex_unlock(&settling->mutex);
    return count;
}

static lahar_status settle_block(struct lahar_query_worker *worker, void *context, uint32_t piece,
                                 lahar_error *error)
{
    struct settling *settling = context;
    struct lahar_unit_context *own = &worker->context;
    const struct lahar_block_info *info =
        lahar_segment_block_info(settling->unit->segment, settling->blocks[piece]);
    uint32_t *documents =
        lahar_allocate(worker->query->allocator, (size_t)info->row_count * sizeof *documents);
    bool *matches = lahar_allocate(worker->query->allocator, info->row_count * sizeof *matches);
    struct lahar_unit view = {.block = NULL};
    lahar_status status = LAHAR_OK;
    uint32_t count = 0;
    if (documents == NULL || matches == NULL) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory to verify events");
        goto cleanup;
    }
    count = list_open(settling, info, documents, &view);
    uint32_t decided = 0;
    while (decided < count && status == LAHAR_OK) {
        status = lahar_query_check(worker->query, error);
        if (status == LAHAR_OK) {
            status = lahar_unit_decide(&view, own, documents[decided], &matches[decided], error);
        }
        decided += status == LAHAR_OK;
    }
    pthread_mutex_lock(&settling->mutex);
    for (uint32_t i = 0; i < decided; i++) {
        lahar_unit_note(settling->unit, documents[i], matches[i]);
    }
    if (status == LAHAR_CORRUPT) {
        lahar_unit_drop_range(settling->unit, own, documents[decided]);
        status = LAHAR_OK;
    }
    pthread_mutex_unlock(&settling->mutex);
cleanup:
    lahar_unit_drop_block(&view);
    lahar_release(worker->query->allocator, documents);
    lahar_release(worker->query->allocator, matches);
    return status;
}

static lahar_status settle_blocks(struct lahar_query *query, struct lahar_unit_context *context,
                                  struct settling *settling, lahar_error *error)
{
    const struct lahar_query_split split = {
        .work = settle_block, .context = settling, .count = settling->block_count};
    if (settling->block_count < SPLIT_BLOCKS || pthread_mutex_init(&settling->mutex, NULL) != 0) {
        return settle_in_turn(query, context, settling->unit, error);
    }
    const lahar_status status = lahar_query_run_split(query, context->worker, &split, error);
    pthread_mutex_destroy(&settling->mutex);
    return status;
}

static lahar_status verify(struct lahar_query *query, struct lahar_unit_context *context,
                           struct lahar_unit *unit, lahar_error *error)
{
    struct settling settling = {.unit = unit};
    if (!unit->has_unverified) {
        return LAHAR_OK;
    }
    if (unit->segment == NULL || lahar_query_worker_count(query) == 1) {
        return settle_in_turn(query, context, unit, error);
    }
    lahar_status status = list_blocks(query, &settling, error);
    if (status == LAHAR_OK) {
        status = settle_blocks(query, context, &settling, error);
    }
    lahar_release(query->allocator, settling.blocks);
    return status;
}

lahar_status lahar_query_settle(struct lahar_query *query, struct lahar_unit_context *context,
                                struct lahar_unit *unit, lahar_error *error)
{
    LAHAR_TRY(verify(query, context, unit, error));
    lahar_query_fix_total(query, unit, lahar_unit_sum(unit));
    return LAHAR_OK;
}
