/* Reading the blocks of coming results ahead.
 *
 * The events of one object lie in as many blocks as there are events, each of which costs a wait
 * for the disk and a fraction of a millisecond to inflate. They are read into the block cache by
 * several threads at once. What cannot be read is left to whoever comes to it, who reports it. */
#include "engine/query/query_state.h"
#include "engine/query/workers.h"

enum {
    BLOCKS_MAX = 16,
    BLOCKS_A_THREAD = 3 /* what the first result waits for is bounded */
};

/* The first result of each block, in the order of the query. */
struct ahead {
    const struct lahar_unit *unit;
    uint32_t documents[BLOCKS_MAX];
    uint32_t count;
};

/* The result that comes after the document; false when there is none. */
static bool next_result(const struct lahar_query *query, const struct lahar_docset *results,
                        uint32_t *document)
{
    if (query->options.order == LAHAR_ORDER_NEWEST) {
        *document = *document == 0 ? UINT32_MAX : lahar_docset_previous(results, *document - 1);
        return *document != UINT32_MAX;
    }
    *document = lahar_docset_next(results, *document + 1);
    return *document < results->universe;
}

/* Finds blocks that are to be read, as far as the results that are still wanted reach. */
static void find_blocks(const struct lahar_query *query, uint32_t block_max, struct ahead *ahead)
{
    const struct lahar_unit *unit = ahead->unit;
    uint64_t wanted =
        query->options.limit == 0 ? UINT64_MAX : query->options.limit - query->returned;
    uint32_t document = unit->head;
    uint32_t first = 0; /* of the block of the document before */
    uint32_t end = 0;
    do {
        if (document >= first && document < end) {
            continue;
        }
        const uint32_t block = lahar_segment_find_ordinal(unit->segment, document);
        const struct lahar_block_info *info = lahar_segment_block_info(unit->segment, block);
        first = info->first_ordinal;
        end = info->first_ordinal + info->row_count;
        if (lahar_segment_would_keep(unit->segment, block)) {
            ahead->documents[ahead->count++] = document;
        } else if (document == unit->head) {
            return; /* that one need not wait; the next that has to looks again */
        }
    } while (ahead->count < block_max && --wanted > 0 && next_result(query, &unit->may, &document));
}

static lahar_status read_one(struct lahar_query_worker *worker, void *context, uint32_t piece,
                             lahar_error *error)
{
    const struct ahead *ahead = context;
    struct lahar_unit unit = {.segment = ahead->unit->segment, .shard = ahead->unit->shard};
    lahar_event event;
    lahar_arena_reset(&worker->context.arena);
    /* Reading the event decodes what all of the block's events are read from. */
    (void)lahar_unit_read(&unit, &worker->context, ahead->documents[piece], &worker->context.arena,
                          &event, NULL);
    lahar_unit_drop_block(&unit);
    return lahar_query_check(worker->query, error);
}

void lahar_query_read_results_ahead(struct lahar_query *query, const struct lahar_unit *unit)
{
    struct ahead ahead = {.unit = unit};
    const uint32_t processors = lahar_query_worker_count(query);
    const uint32_t most =
        processors < BLOCKS_MAX / BLOCKS_A_THREAD ? processors * BLOCKS_A_THREAD : BLOCKS_MAX;
    if (processors == 1 || unit->segment == NULL || query->options.ids_only) {
        return;
    }
    find_blocks(query, most, &ahead);
    if (ahead.count < 2) {
        return;
    }
    const struct lahar_query_split split = {
        .work = read_one, .context = &ahead, .count = ahead.count};
    /* Cancelled, too late, without memory: the caller will find out by itself, and will count the
     * bytes as those that it has looked at. */
    const uint64_t scanned_bytes = query->context.scanned_bytes;
    (void)lahar_query_run_split(query, NULL, &split, NULL);
    query->context.scanned_bytes = scanned_bytes;
}
