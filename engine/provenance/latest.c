#include "engine/provenance/latest.h"

#include <string.h>
#include <xxhash.h>

#include "engine/provenance/handle.h"
#include "io/base/error.h"

enum {
    SLOT_COUNT = 2 * LAHAR_LATEST_COMPONENTS,
    PREFIX_IDS = 64 /* kept at least, so that small batches need one allocation */
};

void lahar_latest_deinit(struct lahar_latest *latest, const lahar_allocator *allocator)
{
    for (size_t i = 0; latest->entries != NULL && i < SLOT_COUNT; i++) {
        lahar_release(allocator, latest->entries[i].component);
        lahar_release(allocator, latest->entries[i].ids);
    }
    lahar_release(allocator, latest->entries);
    *latest = (struct lahar_latest){.entries = NULL};
}

/* The component's slot, or the free one where it belongs. */
static struct lahar_latest_entry *find_slot(const struct lahar_latest *latest,
                                            lahar_bytes component)
{
    size_t slot = XXH3_64bits(component.data, component.size) % SLOT_COUNT;
    for (;;) {
        struct lahar_latest_entry *entry = &latest->entries[slot];
        if (entry->component == NULL ||
            lahar_bytes_equal((lahar_bytes){entry->component, entry->component_size}, component)) {
            return entry;
        }
        slot = (slot + 1) % SLOT_COUNT;
    }
}

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the latest events");
}

static lahar_status add(struct lahar_latest *latest, const lahar_allocator *allocator,
                        lahar_bytes component, int64_t arrival_ns, uint64_t id, lahar_error *error)
{
    struct lahar_latest_entry *entry = find_slot(latest, component);
    if (entry->component == NULL) {
        if (latest->count == LAHAR_LATEST_COMPONENTS) {
            return LAHAR_OK;
        }
        entry->component = lahar_allocate(allocator, component.size + 1);
        if (entry->component == NULL) {
            return no_memory(error);
        }
        memcpy(entry->component, component.data, component.size);
        entry->component_size = component.size;
        latest->count++;
    }
    if (entry->arrival_ns != arrival_ns) {
        entry->id_count = 0;
        entry->arrival_ns = arrival_ns;
    }
    if (entry->id_count == entry->id_capacity) {
        const size_t capacity = entry->id_capacity == 0 ? PREFIX_IDS : entry->id_capacity * 2;
        uint64_t *ids = lahar_reallocate(allocator, entry->ids, capacity * sizeof *ids);
        if (ids == NULL) {
            return no_memory(error);
        }
        entry->ids = ids;
        entry->id_capacity = capacity;
    }
    entry->ids[entry->id_count++] = id;
    return LAHAR_OK;
}

/* Reads what the table has not seen; authorization is asked when ids are handed out. */
static lahar_status catch_up(struct lahar_provenance *provenance, lahar_error *error)
{
    struct lahar_latest *latest = &provenance->latest;
    lahar_stream_info info;
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    LAHAR_TRY(lahar_stream_info_get(provenance->store, provenance->stream, &info, error));
    if (latest->entries == NULL) {
        latest->entries =
            lahar_allocate_zeroed(provenance->allocator, SLOT_COUNT, sizeof *latest->entries);
        if (latest->entries == NULL) {
            return no_memory(error);
        }
        latest->next_id =
            info.last_id > LAHAR_LATEST_WINDOW ? info.last_id - LAHAR_LATEST_WINDOW : 0;
    }
    if (info.last_id < latest->next_id || info.event_count == 0) {
        return LAHAR_OK;
    }
    lahar_scan_options_init(&options);
    options.from_id = latest->next_id;
    options.stream = provenance->stream;
    LAHAR_TRY(lahar_scan(provenance->store, &options, &cursor, error));
    lahar_status status = LAHAR_OK;
    while (status == LAHAR_OK) {
        lahar_error reason = {.status = LAHAR_OK};
        status = lahar_cursor_next(cursor, &event, &reason);
        if (status == LAHAR_CORRUPT) {
            status = LAHAR_OK; /* what cannot be read cannot be handed out either */
            continue;
        }
        if (status == LAHAR_OK) {
            const lahar_value *component =
                lahar_prov_value(&provenance->fields, event, LAHAR_PROV_FIELD_COMPONENT);
            latest->next_id = event->id + 1;
            if (component != NULL) {
                status = add(latest, provenance->allocator, component->as.bytes, event->arrival_ns,
                             event->id, error);
            }
        } else if (status != LAHAR_NOT_FOUND) {
            status = lahar_fail(error, status, "%s", reason.message);
        }
    }
    lahar_cursor_close(cursor);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

/* The ids that may be seen, newest first. */
static lahar_status hand_out(struct lahar_provenance *provenance, const uint64_t *ids, size_t count,
                             uint64_t *ids_out, size_t limit, size_t *count_out, lahar_error *error)
{
    for (size_t i = count; i > 0 && *count_out < limit; i--) {
        lahar_cursor *cursor = NULL;
        const lahar_event *event = NULL;
        lahar_error reason = {.status = LAHAR_OK};
        const lahar_status status =
            provenance->options.authorize == NULL
                ? LAHAR_OK
                : lahar_prov_find(provenance, ids[i - 1], &cursor, &event, &reason);
        lahar_cursor_close(cursor);
        if (status == LAHAR_OK) {
            ids_out[(*count_out)++] = ids[i - 1];
        } else if (status != LAHAR_DENIED && status != LAHAR_NOT_FOUND && status != LAHAR_CORRUPT) {
            return lahar_fail(error, status, "%s", reason.message);
        }
    }
    return LAHAR_OK;
}

/* A component that has been silent for longer than the table goes back. */
static lahar_status look_up(struct lahar_provenance *provenance, lahar_bytes component,
                            uint64_t *ids_out, size_t limit, size_t *count_out, lahar_error *error)
{
    const lahar_prov_term term = {.name = {"ComponentID", 11}, .value = component};
    lahar_prov_search search;
    lahar_query *query = NULL;
    int64_t arrival_ns = 0;
    lahar_prov_search_init(&search);
    search.terms = &term;
    search.term_count = 1;
    LAHAR_TRY(lahar_prov_search_open(provenance, &search, &query, error));
    lahar_status status = LAHAR_OK;
    while (status == LAHAR_OK && *count_out < limit) {
        const lahar_event *event = NULL;
        lahar_error reason = {.status = LAHAR_OK};
        status = lahar_query_next(query, &event, &reason);
        if (status == LAHAR_OK) {
            if (*count_out != 0 && event->arrival_ns != arrival_ns) {
                break;
            }
            const lahar_value *value =
                lahar_prov_value(&provenance->fields, event, LAHAR_PROV_FIELD_COMPONENT);
            if (value != NULL && lahar_bytes_equal(value->as.bytes, component)) {
                arrival_ns = event->arrival_ns;
                ids_out[(*count_out)++] = event->id;
            }
        } else if (status == LAHAR_CORRUPT) {
            status = LAHAR_OK;
        } else if (status != LAHAR_NOT_FOUND) {
            status = lahar_fail(error, status, "%s", reason.message);
        }
    }
    lahar_query_close(query);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

/* Copies the component's ids, so that no lock is held while the host's hook is asked: it may ask
 * for latest events itself. *is_known_out: the table has the component. */
static lahar_status copy_ids(struct lahar_provenance *provenance, lahar_bytes component,
                             uint64_t **ids_out, size_t *count_out, bool *is_known_out,
                             lahar_error *error)
{
    (void)pthread_mutex_lock(&provenance->latest_lock);
    lahar_status status = catch_up(provenance, error);
    if (status == LAHAR_OK && provenance->latest.entries != NULL) {
        const struct lahar_latest_entry *entry = find_slot(&provenance->latest, component);
        *is_known_out = entry->component != NULL;
        if (entry->id_count != 0) {
            *ids_out = lahar_allocate(provenance->allocator, entry->id_count * sizeof **ids_out);
            status = *ids_out == NULL ? no_memory(error) : LAHAR_OK;
        }
        if (*ids_out != NULL) {
            memcpy(*ids_out, entry->ids, entry->id_count * sizeof **ids_out);
            *count_out = entry->id_count;
        }
    }
    (void)pthread_mutex_unlock(&provenance->latest_lock);
    return status;
}

lahar_status lahar_prov_latest(lahar_provenance *provenance, lahar_bytes component,
                               uint64_t *ids_out, size_t limit, size_t *count_out,
                               lahar_error *error)
{
    uint64_t *ids = NULL;
    size_t count = 0;
    bool is_known = false;
    *count_out = 0;
    lahar_status status = copy_ids(provenance, component, &ids, &count, &is_known, error);
    if (status == LAHAR_OK) {
        status = is_known ? hand_out(provenance, ids, count, ids_out, limit, count_out, error)
                          : look_up(provenance, component, ids_out, limit, count_out, error);
    }
    lahar_release(provenance->allocator, ids);
    return status;
}
