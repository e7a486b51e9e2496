/* Offsets of sources: those of rolled batches are in the manifest, newer ones are with
 * the resident batches. */
#include "engine/store/store_state.h"
#include "io/base/error.h"
#include "lahar/append.h"

/* The records of one source that a walk is about to visit. */
struct collection {
    struct lahar_offset_table table;
    lahar_bytes source;
    lahar_error *error;
};

static lahar_status collect(void *context, const struct lahar_journal_offset *offset)
{
    struct collection *collection = context;
    if (lahar_bytes_compare(offset->source, collection->source) != 0) {
        return LAHAR_OK;
    }
    const struct lahar_offset_record record = {offset->source, offset->key, offset->value};
    return lahar_offset_table_set(&collection->table, &record, collection->error);
}

static lahar_status collect_rolled(struct collection *collection,
                                   const struct lahar_offset_table *offsets)
{
    for (size_t i = lahar_offset_table_find_source(offsets, collection->source);
         i < offsets->count &&
         lahar_bytes_compare(offsets->records[i].source, collection->source) == 0;
         i++) {
        LAHAR_TRY(
            lahar_offset_table_set(&collection->table, &offsets->records[i], collection->error));
    }
    return LAHAR_OK;
}

static lahar_status collect_recovered(struct collection *collection, const lahar_store *store)
{
    for (size_t i = 0; i < store->recovery.offset_count; i++) {
        LAHAR_TRY(collect(collection, &store->recovery.offsets[i]));
    }
    return LAHAR_OK;
}

/* The manifest's lock keeps the two halves apart: rollover moves offsets from the
 * journals to the manifest under it, and lets the journals forget afterwards. */
static lahar_status collect_all(struct collection *collection, lahar_store *store)
{
    (void)pthread_mutex_lock(&store->manifest_lock);
    const struct lahar_manifest_state *state = &store->manifest->state;
    lahar_status status = collect_rolled(collection, &state->offsets);
    if (status == LAHAR_OK) {
        status = store->journals == NULL
                     ? collect_recovered(collection, store)
                     : lahar_journals_offsets(store->journals, state->rolled_id,
                                              lahar_journals_next_id(store->journals), collect,
                                              collection, collection->error);
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    return status;
}

lahar_status lahar_offset_visit(lahar_store *store, lahar_bytes source, lahar_offset_visitor visit,
                                void *context, lahar_error *error)
{
    struct collection collection = {.source = source, .error = error};
    lahar_offset_table_init(&collection.table, false, &store->allocator);
    lahar_status status = collect_all(&collection, store);
    for (size_t i = 0; status == LAHAR_OK && i < collection.table.count; i++) {
        const struct lahar_offset_record *record = &collection.table.records[i];
        status = visit(context, record->key, record->value);
    }
    lahar_offset_table_deinit(&collection.table);
    return status;
}
