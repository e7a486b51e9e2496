/* The handle on a provenance stream, and records made from its events. */
#ifndef LAHAR_PROVENANCE_HANDLE_H
#define LAHAR_PROVENANCE_HANDLE_H

#include <pthread.h>

#include "engine/provenance/latest.h"
#include "engine/provenance/model.h"
#include "engine/provenance/resident_names.h"
#include "io/io.h"

struct lahar_container_entry {
    char *name; /* owned, with directory behind it in the same memory */
    const char *directory;
};

/* Immutable after opening but for latest and names, which have locks. */
struct lahar_provenance {
    lahar_store *store;
    const lahar_allocator *allocator; /* the store's */
    const struct lahar_schema_catalog *catalog;
    struct lahar_io *io;
    uint32_t stream;
    struct lahar_prov_fields fields;
    lahar_provenance_options options; /* containers, content and stream not used */
    struct lahar_container_entry *containers;
    size_t container_count;
    lahar_content_store content;
    bool has_content_store;
    pthread_mutex_t latest_lock;
    struct lahar_latest latest;        /* guarded by latest_lock */
    struct lahar_resident_names names; /* has a lock of its own */
};

struct lahar_prov_record {
    const lahar_allocator *allocator;
    struct lahar_arena arena;
    lahar_prov_event event;
    const lahar_pair *effective;
    size_t effective_count;
};

/* Whether authorization lets the event be seen. */
static inline bool lahar_prov_may_see(const struct lahar_provenance *provenance,
                                      const lahar_event *event)
{
    return provenance->options.authorize == NULL ||
           provenance->options.authorize(provenance->options.authorize_context, event);
}

/* Adds an event to a batch as it is; arena is scratch. */
lahar_status lahar_prov_stage(struct lahar_provenance *provenance, lahar_batch *batch,
                              const lahar_prov_event *event, struct lahar_arena *arena,
                              lahar_error *error);

/* Reads an event of the stream, whole: *cursor_out owns it. LAHAR_NOT_FOUND, LAHAR_DENIED. */
lahar_status lahar_prov_find(struct lahar_provenance *provenance, uint64_t id,
                             lahar_cursor **cursor_out, const lahar_event **event_out,
                             lahar_error *error);

#endif
