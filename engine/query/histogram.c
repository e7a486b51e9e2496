/* Histograms: matching events by event time.
 *
 * A shard's time column is read without its events. Each worker counts into a table of its own by
 * number of bucket. */
#include <stdlib.h>
#include <string.h>

#include "engine/query/group_units.h"
#include "engine/query/query_registry.h"
#include "engine/query/tally.h"
#include "index/shard.h"
#include "io/base/error.h"

/* One worker's part. */
struct share {
    int64_t width_ns;
    struct lahar_tally tally; /* keys: numbers of buckets, 8 bytes */
    int64_t bucket;           /* in work: events of one bucket come together mostly */
    uint64_t bucket_count;
    lahar_status status;
};

static int64_t bucket_of(int64_t time_ns, int64_t width_ns)
{
    return time_ns / width_ns - (time_ns % width_ns < 0);
}

static lahar_status flush(struct share *share, lahar_error *error)
{
    const uint64_t count = share->bucket_count;
    share->bucket_count = 0;
    return count == 0
               ? LAHAR_OK
               : lahar_tally_add(&share->tally, (lahar_bytes){&share->bucket, sizeof share->bucket},
                                 count, 0, NULL, error);
}

static lahar_status count_time(struct share *share, int64_t time_ns, lahar_error *error)
{
    const int64_t bucket = bucket_of(time_ns, share->width_ns);
    if (bucket != share->bucket) {
        LAHAR_TRY(flush(share, error));
        share->bucket = bucket;
    }
    share->bucket_count++;
    return LAHAR_OK;
}

static void visit_time(void *context, uint32_t document, uint64_t value)
{
    struct share *share = context;
    (void)document;
    /* The mapping of lahar_number_from_i64 turns the sign bit over. */
    const int64_t time_ns = (int64_t)(value ^ UINT64_C(1) << 63);
    if (share->status == LAHAR_OK) {
        share->status = count_time(share, time_ns, NULL);
    }
}

/* LAHAR_UNSUPPORTED, LAHAR_CORRUPT, LAHAR_IO: the shard cannot tell, and nothing was counted. */
static lahar_status count_column(struct lahar_query_worker *worker, struct share *share,
                                 struct lahar_unit *unit, lahar_error *error)
{
    struct share own = {.width_ns = share->width_ns};
    lahar_tally_init(&own.tally, worker->query->allocator);
    lahar_status status = lahar_shard_times(unit->shard, &unit->may, visit_time, &own, error);
    if (status == LAHAR_OK) {
        status = own.status == LAHAR_OK ? flush(&own, error)
                                        : lahar_fail(error, own.status, "no memory for buckets");
    }
    for (size_t i = 0; i < own.tally.entry_count && status == LAHAR_OK; i++) {
        const struct lahar_tally_entry *entry = &own.tally.entries[i];
        status = lahar_tally_add(&share->tally, entry->key, entry->count, 0, NULL, error);
    }
    lahar_tally_deinit(&own.tally);
    return status;
}

/* One by one; a block that cannot be read is left out. */
static lahar_status count_events(struct lahar_query_worker *worker, struct share *share,
                                 struct lahar_unit *unit, lahar_error *error)
{
    uint32_t looked_at = 0;
    uint32_t d = lahar_docset_next(&unit->may, 0);
    while (d < unit->may.universe) {
        int64_t time_ns = 0;
        uint32_t first = 0;
        uint32_t end = d + 1;
        lahar_error reason = {0};
        if ((++looked_at & 15) == 0) {
            LAHAR_TRY(lahar_query_check(worker->query, error));
        }
        const lahar_status status = lahar_unit_time(unit, &worker->context, d, &time_ns, &reason);
        if (status == LAHAR_OK) {
            LAHAR_TRY(count_time(share, time_ns, error));
        } else if (status == LAHAR_CORRUPT) {
            lahar_unit_block_range(unit, d, &first, &end);
            worker->context.is_partial = true;
        } else {
            return lahar_fail(error, status, "%s", reason.message);
        }
        d = lahar_docset_next(&unit->may, end > d ? end : d + 1);
    }
    return flush(share, error);
}

static lahar_status group_unit(struct lahar_query_worker *worker, void *context,
                               struct lahar_unit *unit, lahar_error *error)
{
    if (unit->shard != NULL) {
        lahar_error reason = {0};
        const lahar_status status = count_column(worker, context, unit, &reason);
        if (status != LAHAR_CORRUPT && status != LAHAR_IO && status != LAHAR_UNSUPPORTED) {
            return status == LAHAR_OK ? LAHAR_OK : lahar_fail(error, status, "%s", reason.message);
        }
        worker->context.shards_failed += status != LAHAR_UNSUPPORTED;
    }
    return count_events(worker, context, unit, error);
}

static int compare_buckets(const void *a, const void *b)
{
    const int64_t x = ((const lahar_histogram_bucket *)a)->start_ns;
    const int64_t y = ((const lahar_histogram_bucket *)b)->start_ns;
    return (x > y) - (x < y);
}

static lahar_status give(struct lahar_query *query, const struct lahar_tally *tally,
                         int64_t width_ns, lahar_error *error)
{
    lahar_release(query->allocator, query->histogram);
    query->histogram =
        lahar_allocate(query->allocator, (tally->entry_count + 1) * sizeof *query->histogram);
    if (query->histogram == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu buckets", tally->entry_count);
    }
    for (size_t i = 0; i < tally->entry_count; i++) {
        int64_t bucket = 0;
        int64_t start_ns = 0;
        memcpy(&bucket, tally->entries[i].key.data, sizeof bucket);
        /* The first bucket may begin before the first time that there is. */
        if (__builtin_mul_overflow(bucket, width_ns, &start_ns)) {
            start_ns = INT64_MIN;
        }
        query->histogram[i] = (lahar_histogram_bucket){start_ns, tally->entries[i].count};
    }
    qsort(query->histogram, tally->entry_count, sizeof *query->histogram, compare_buckets);
    return LAHAR_OK;
}

static lahar_status run(struct lahar_query *query, int64_t width_ns, struct lahar_tally *tally,
                        lahar_error *error)
{
    const uint32_t workers = lahar_query_worker_count(query);
    struct share *shares = lahar_allocate_zeroed(query->allocator, workers, sizeof *shares);
    if (shares == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a histogram");
    }
    for (uint32_t i = 0; i < workers; i++) {
        shares[i].width_ns = width_ns;
        lahar_tally_init(&shares[i].tally, query->allocator);
    }
    lahar_status status = lahar_query_group(query, group_unit, shares, sizeof *shares, error);
    for (uint32_t i = 0; i < workers; i++) {
        const struct lahar_tally *part = &shares[i].tally;
        for (size_t j = 0; j < part->entry_count && status == LAHAR_OK; j++) {
            status = lahar_tally_add(tally, part->entries[j].key, part->entries[j].count, 0, NULL,
                                     error);
        }
        lahar_tally_deinit(&shares[i].tally);
    }
    lahar_release(query->allocator, shares);
    return status;
}

lahar_status lahar_query_histogram(lahar_query *query, int64_t width_ns,
                                   const lahar_histogram_bucket **buckets_out,
                                   size_t *bucket_count_out, lahar_error *error)
{
    struct lahar_tally tally;
    *buckets_out = NULL;
    *bucket_count_out = 0;
    lahar_error_clear(error);
    if (width_ns <= 0) {
        return lahar_fail(error, LAHAR_INVALID, "the width of a bucket is not above 0");
    }
    LAHAR_TRY(lahar_query_begin(query, error));
    lahar_tally_init(&tally, query->allocator);
    lahar_status status = run(query, width_ns, &tally, error);
    if (status == LAHAR_OK) {
        status = give(query, &tally, width_ns, error);
    }
    if (status == LAHAR_OK) {
        *buckets_out = query->histogram;
        *bucket_count_out = tally.entry_count;
    }
    lahar_tally_deinit(&tally);
    return lahar_query_end(query, status, error);
}
