/* Definitions by name, and the commit of followers; see source_registry.h. */
#include "engine/follow/source_registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/store/store_state.h"
#include "io/base/error.h"

void lahar_source_cursors_key(uint64_t source, char key_out[32])
{
    (void)snprintf(key_out, 32, "lahar.source.%" PRIu64, source);
}

struct definition_search {
    const char *name;
    struct lahar_arena *arena;
    struct lahar_source_definition *definition;
    bool is_found;
    lahar_error *error;
};

static lahar_status visit_definition(void *context, lahar_bytes key, lahar_bytes value)
{
    struct definition_search *search = context;
    if (key.size != strlen(search->name) || memcmp(key.data, search->name, key.size) != 0) {
        return LAHAR_OK;
    }
    search->is_found = true;
    return lahar_source_definition_decode(key, value, search->arena, search->definition,
                                          search->error);
}

lahar_status lahar_source_find(lahar_store *store, const char *name, struct lahar_arena *arena,
                               struct lahar_source_definition *definition_out, lahar_error *error)
{
    struct definition_search search = {name, arena, definition_out, false, error};
    if (name == NULL || name[0] == '\0') {
        return lahar_fail(error, LAHAR_INVALID, "a source needs a name");
    }
    LAHAR_TRY(lahar_offset_visit(store, (lahar_bytes){LAHAR_SOURCES_KEY, strlen(LAHAR_SOURCES_KEY)},
                                 visit_definition, &search, error));
    if (!search.is_found) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "there is no source \"%s\"", name);
    }
    return LAHAR_OK;
}

lahar_status lahar_source_commit(lahar_store *store, lahar_batch *batch,
                                 lahar_durability durability, uint64_t epoch)
{
    return lahar_source_commit_at(store, batch, durability, epoch, NULL, NULL);
}

lahar_status lahar_source_commit_at(lahar_store *store, lahar_batch *batch,
                                    lahar_durability durability, uint64_t epoch,
                                    uint64_t *first_id_out, lahar_error *error)
{
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .durability = durability,
                                          .deadline_ns = UINT64_C(1000000000)};
    lahar_status status = LAHAR_CANCELLED;
    (void)pthread_rwlock_rdlock(&store->source_lock);
    if (atomic_load_explicit(&store->source_epoch, memory_order_acquire) == epoch) {
        uint64_t first_id = 0;
        status = lahar_batch_commit(batch, &options, &first_id, error);
        if (status == LAHAR_TIMEOUT && first_id != 0) {
            /* Appended, only not durable yet. */
            status = LAHAR_OK;
        }
        if (first_id_out != NULL) {
            *first_id_out = first_id;
        }
    }
    (void)pthread_rwlock_unlock(&store->source_lock);
    return status;
}
