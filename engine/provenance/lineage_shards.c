#include "engine/provenance/lineage_shards.h"

#include <string.h>

#include "io/base/error.h"

enum {
    SHARDS_A_HELPER = 6, /* fewer are not worth a thread */
    ANNOUNCED_MAX = 8    /* FlowFiles whose pages are fetched ahead */
};

static const char *const FIELD_NAMES[] = {"uuid", "parents", "children", "source_system"};

enum {
    FIELD_COUNT = sizeof FIELD_NAMES / sizeof FIELD_NAMES[0]
};

/* The fields of the shard that name FlowFiles; returns how many it has. */
static size_t find_fields(const struct lahar_shard *shard, uint32_t fields[FIELD_COUNT])
{
    size_t count = 0;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (lahar_shard_find_field(shard, FIELD_NAMES[i], strlen(FIELD_NAMES[i]), LAHAR_CLASS_UUID,
                                   &fields[count])) {
            count++;
        }
    }
    return count;
}

static lahar_status ask_shard(struct lahar_shard_asking *asking, size_t index,
                              struct lahar_id_list *list, lahar_error *error)
{
    struct lahar_lineage_source *source = asking->source;
    struct lahar_shard *shard = lahar_snapshot_segment(source->snapshot, index)->shard;
    const lahar_allocator *allocator = source->provenance->allocator;
    struct lahar_docset *set = &source->sets[index];
    if (set->words == NULL) {
        LAHAR_TRY(lahar_docset_init(set, lahar_shard_document_count(shard), allocator, error));
    }
    uint32_t fields[FIELD_COUNT];
    const size_t field_count = find_fields(shard, fields);
    for (uint32_t i = asking->first; i < asking->wanted->count; i++) {
        const lahar_uuid *uuid = &asking->wanted->entries[i].uuid;
        bool may_hold = false;
        LAHAR_TRY(lahar_shard_may_hold_uuid(shard, uuid, &may_hold, error));
        for (size_t j = 0; j < field_count && may_hold; j++) {
            lahar_shard_announce_uuid(shard, fields[j], uuid);
        }
        for (size_t j = 0; j < field_count && may_hold; j++) {
            LAHAR_TRY(lahar_shard_uuid(shard, fields[j], uuid, set, error));
        }
    }
    bool is_empty = true;
    for (uint32_t d = lahar_docset_next(set, 0); d < set->universe;
         d = lahar_docset_next(set, d + 1)) {
        is_empty = false;
        LAHAR_TRY(lahar_id_list_add(list, allocator, lahar_shard_id(shard, d), error));
    }
    if (!is_empty) {
        lahar_docset_clear(set);
    }
    return LAHAR_OK;
}

/* A shard that fails is passed by: its file will be read through. */
static lahar_status ask_segment(struct lahar_shard_asking *asking, size_t index,
                                struct lahar_id_list *list, lahar_error *error)
{
    struct lahar_lineage_source *source = asking->source;
    const size_t found_before = list->count;
    lahar_error reason = {.status = LAHAR_OK};
    const lahar_status status = ask_shard(asking, index, list, &reason);
    if (status == LAHAR_CORRUPT || status == LAHAR_IO) {
        list->count = found_before;
        lahar_docset_clear(&source->sets[index]);
        atomic_store_explicit(&asking->must_read[index], true, memory_order_relaxed);
        return LAHAR_OK;
    }
    return status == LAHAR_OK ? LAHAR_OK : lahar_fail(error, status, "%s", reason.message);
}

static void *ask(void *context)
{
    struct lahar_shard_asker *asker = context;
    struct lahar_shard_asking *asking = asker->asking;
    struct lahar_lineage_source *source = asking->source;
    for (;;) {
        const size_t next = atomic_fetch_add_explicit(&asking->next, 1, memory_order_relaxed);
        if (next >= asking->candidate_count || asker->status != LAHAR_OK ||
            atomic_load_explicit(&asking->is_stopped, memory_order_relaxed)) {
            return NULL;
        }
        if (atomic_load_explicit(source->is_cancelled, memory_order_relaxed)) {
            asker->status = lahar_fail(&asker->error, LAHAR_CANCELLED, "the lineage was cancelled");
            return NULL;
        }
        asker->status = ask_segment(asking, asking->candidates[next], &asker->list, &asker->error);
        const size_t done =
            atomic_fetch_add_explicit(&asking->done_count, 1, memory_order_relaxed) + 1;
        if (asking->first == 0) {
            atomic_store_explicit(source->percent,
                                  (unsigned)(99 * done / (asking->candidate_count + 1)),
                                  memory_order_relaxed);
        }
    }
}

/* Whether the shard has to be asked: one that cannot say so has to say why. */
static bool may_hold_any(struct lahar_shard *shard, const struct lahar_shard_asking *asking)
{
    bool may_hold = false;
    for (uint32_t i = asking->first; i < asking->wanted->count && !may_hold; i++) {
        if (lahar_shard_may_hold_uuid(shard, &asking->wanted->entries[i].uuid, &may_hold, NULL) !=
            LAHAR_OK) {
            return true;
        }
    }
    return may_hold;
}

/* The shard of the stream in an event file; NULL: the file has none, or other events. */
static struct lahar_shard *shard_of(const struct lahar_shard_asking *asking, size_t index)
{
    const struct lahar_lineage_source *source = asking->source;
    const struct lahar_snapshot_segment *segment = lahar_snapshot_segment(source->snapshot, index);
    return lahar_segment_describe(segment->segment)->stream == source->provenance->stream
               ? segment->shard
               : NULL;
}

/* A question about few FlowFiles waits for the shards' answers together. Of many, each shard is
 * likely to have one, and the pages of its filter are soon all in memory. */
static void announce(const struct lahar_shard_asking *asking, size_t count)
{
    if (asking->wanted->count - asking->first > ANNOUNCED_MAX) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct lahar_shard *shard = shard_of(asking, i);
        for (uint32_t k = asking->first; shard != NULL && k < asking->wanted->count; k++) {
            lahar_shard_announce_may_hold(shard, &asking->wanted->entries[k].uuid);
        }
    }
}

static void choose_candidates(struct lahar_shard_asking *asking)
{
    const size_t count = lahar_snapshot_segment_count(asking->source->snapshot);
    announce(asking, count);
    for (size_t i = 0; i < count; i++) {
        struct lahar_shard *shard = shard_of(asking, i);
        if (shard != NULL && may_hold_any(shard, asking)) {
            asking->candidates[asking->candidate_count++] = i;
        }
    }
}

lahar_status lahar_shard_asking_begin(struct lahar_shard_asking *asking,
                                      struct lahar_lineage_source *source,
                                      const struct lahar_uuid_map *wanted, uint32_t first,
                                      lahar_error *error)
{
    const size_t count = lahar_snapshot_segment_count(source->snapshot);
    *asking = (struct lahar_shard_asking){.source = source, .wanted = wanted, .first = first};
    asking->must_read =
        lahar_allocate_zeroed(source->provenance->allocator, count + 1, sizeof *asking->must_read);
    asking->candidates =
        lahar_allocate(source->provenance->allocator, (count + 1) * sizeof *asking->candidates);
    if (asking->must_read == NULL || asking->candidates == NULL) {
        lahar_shard_asking_deinit(asking);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a lineage");
    }
    choose_candidates(asking);
    for (size_t i = 0; i <= LAHAR_SHARD_HELPERS; i++) {
        asking->askers[i].asking = asking;
    }
    /* Later questions find most of what they need in memory. */
    while (first == 0 && asking->helper_count < LAHAR_SHARD_HELPERS &&
           (asking->helper_count + 1) * SHARDS_A_HELPER <= asking->candidate_count) {
        struct lahar_shard_asker *helper = &asking->askers[asking->helper_count];
        if (pthread_create(&helper->thread, NULL, ask, helper) != 0) {
            break; /* the caller asks all that others do not */
        }
        (void)pthread_setname_np(helper->thread, "lahar-shards");
        asking->helper_count++;
    }
    return LAHAR_OK;
}

static void join_helpers(struct lahar_shard_asking *asking)
{
    for (size_t i = 0; i < asking->helper_count; i++) {
        (void)pthread_join(asking->askers[i].thread, NULL);
    }
}

lahar_status lahar_shard_asking_end(struct lahar_shard_asking *asking, struct lahar_id_list *list,
                                    lahar_error *error)
{
    const lahar_allocator *allocator = asking->source->provenance->allocator;
    lahar_status status = LAHAR_OK;
    (void)ask(&asking->askers[LAHAR_SHARD_HELPERS]);
    join_helpers(asking);
    for (size_t i = 0; i <= LAHAR_SHARD_HELPERS && status == LAHAR_OK; i++) {
        const struct lahar_shard_asker *asker = &asking->askers[i];
        if (asker->status != LAHAR_OK) {
            status = lahar_fail(error, asker->status, "%s", asker->error.message);
        }
        for (size_t j = 0; j < asker->list.count && status == LAHAR_OK; j++) {
            status = lahar_id_list_add(list, allocator, asker->list.ids[j], error);
        }
    }
    return status;
}

void lahar_shard_asking_stop(struct lahar_shard_asking *asking)
{
    atomic_store_explicit(&asking->is_stopped, true, memory_order_relaxed);
    join_helpers(asking);
}

bool lahar_shard_asking_must_read(const struct lahar_shard_asking *asking, size_t segment)
{
    return atomic_load_explicit(&asking->must_read[segment], memory_order_relaxed);
}

void lahar_shard_asking_deinit(struct lahar_shard_asking *asking)
{
    const lahar_allocator *allocator = asking->source->provenance->allocator;
    for (size_t i = 0; i <= LAHAR_SHARD_HELPERS; i++) {
        lahar_release(allocator, asking->askers[i].list.ids);
    }
    lahar_release(allocator, asking->must_read);
    lahar_release(allocator, asking->candidates);
}
