/* Sessions: FlowFiles as they were taken and as they stand, and events that wait for commit.
 *
 * All strings are copied into the session's arena, where states stay as they were: an event of the
 * moment keeps the state of its moment by pointing to it. */
#include "engine/provenance/session.h"

#include <string.h>

#include "engine/provenance/identity.h"
#include "io/base/error.h"

lahar_status lahar_session_no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a session");
}

lahar_status lahar_session_open(lahar_provenance *provenance, lahar_bytes component,
                                lahar_bytes component_type, lahar_session **session_out,
                                lahar_error *error)
{
    *session_out = NULL;
    struct lahar_session *session =
        lahar_allocate_zeroed(provenance->allocator, 1, sizeof *session);
    if (session == NULL) {
        return lahar_session_no_memory(error);
    }
    session->provenance = provenance;
    lahar_arena_init(&session->arena, provenance->allocator, 0);
    lahar_arena_init(&session->identity, provenance->allocator, 256);
    lahar_uuid_map_init(&session->names, provenance->allocator);
    session->component = component;
    session->component_type = component_type;
    if (!lahar_session_copy(&session->identity, &session->component) ||
        !lahar_session_copy(&session->identity, &session->component_type)) {
        lahar_session_close(session);
        return lahar_session_no_memory(error);
    }
    *session_out = session;
    return LAHAR_OK;
}

int64_t lahar_session_moment(struct lahar_session *session)
{
    struct lahar_io *io = session->provenance->io;
    const int64_t now_ns = io->ops->realtime_ns(io);
    session->last_ns = now_ns > session->last_ns ? now_ns : session->last_ns + 1;
    return session->last_ns;
}

void lahar_session_close(lahar_session *session)
{
    if (session == NULL) {
        return;
    }
    const lahar_allocator *allocator = session->provenance->allocator;
    lahar_release(allocator, session->flowfiles);
    lahar_release(allocator, session->events);
    lahar_uuid_map_deinit(&session->names);
    lahar_arena_deinit(&session->arena);
    lahar_arena_deinit(&session->identity);
    lahar_release(allocator, session);
}

void lahar_session_rollback(lahar_session *session)
{
    session->flowfile_count = 0;
    session->event_count = 0;
    lahar_uuid_map_deinit(&session->names);
    lahar_arena_reset(&session->arena);
}

/* --- copies -------------------------------------------------------------------------------- */

bool lahar_session_copy(struct lahar_arena *arena, lahar_bytes *bytes)
{
    if (bytes->data == NULL) {
        return true;
    }
    char *copy = lahar_arena_allocate(arena, bytes->size + 1);
    if (copy != NULL && bytes->size != 0) {
        memcpy(copy, bytes->data, bytes->size);
    }
    bytes->data = copy;
    return copy != NULL;
}

static bool copy_pairs(struct lahar_arena *arena, const lahar_pair **pairs, size_t count)
{
    lahar_pair *copies = lahar_arena_allocate(arena, count * sizeof *copies + 1);
    bool is_done = copies != NULL;
    for (size_t i = 0; i < count && is_done; i++) {
        copies[i] = (*pairs)[i];
        is_done = lahar_session_copy(arena, &copies[i].key) &&
                  lahar_session_copy(arena, &copies[i].value);
    }
    *pairs = copies;
    return is_done;
}

static bool copy_names(struct lahar_arena *arena, const lahar_bytes **names, size_t count)
{
    lahar_bytes *copies = lahar_arena_allocate(arena, count * sizeof *copies + 1);
    bool is_done = copies != NULL;
    for (size_t i = 0; i < count && is_done; i++) {
        copies[i] = (*names)[i];
        is_done = lahar_session_copy(arena, &copies[i]);
    }
    *names = copies;
    return is_done;
}

static bool copy_claim(struct lahar_arena *arena, lahar_claim *claim)
{
    return lahar_session_copy(arena, &claim->container) &&
           lahar_session_copy(arena, &claim->section) && lahar_session_copy(arena, &claim->id);
}

static bool copy_flowfile(struct lahar_arena *arena, lahar_flowfile *flowfile)
{
    return lahar_session_copy(arena, &flowfile->uuid) &&
           lahar_session_copy(arena, &flowfile->queue) && copy_claim(arena, &flowfile->claim) &&
           copy_pairs(arena, &flowfile->attributes, flowfile->attribute_count);
}

static bool copy_event(struct lahar_arena *arena, lahar_prov_event *event)
{
    lahar_bytes *const strings[] = {
        &event->component,     &event->component_type, &event->component_name,
        &event->process_group, &event->uuid,           &event->entity_type,
        &event->source_queue,  &event->transit_uri,    &event->source_system,
        &event->alternate_id,  &event->relationship,   &event->details};
    bool is_done = true;
    for (size_t i = 0; i < sizeof strings / sizeof strings[0] && is_done; i++) {
        is_done = lahar_session_copy(arena, strings[i]);
    }
    return is_done && copy_names(arena, &event->parents, event->parent_count) &&
           copy_names(arena, &event->children, event->child_count);
}

/* --- FlowFiles ------------------------------------------------------------------------------- */

struct lahar_session_flowfile *lahar_session_find(const struct lahar_session *session,
                                                  lahar_bytes uuid)
{
    lahar_uuid identity;
    (void)lahar_prov_identify(uuid, &identity);
    const struct lahar_uuid_entry *entry = lahar_uuid_map_find(&session->names, &identity);
    return entry == NULL ? NULL : &session->flowfiles[entry - session->names.entries];
}

static lahar_status find(const struct lahar_session *session, lahar_bytes uuid,
                         struct lahar_session_flowfile **found_out, lahar_error *error)
{
    *found_out = lahar_session_find(session, uuid);
    if (*found_out == NULL || (*found_out)->is_removed) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "FlowFile %.*s is not part of the session",
                          (int)(uuid.size < 64 ? uuid.size : 64), (const char *)uuid.data);
    }
    return LAHAR_OK;
}

/* Numbers of FlowFiles are those of their names. */
static lahar_status add_flowfile(struct lahar_session *session, const lahar_flowfile *flowfile,
                                 struct lahar_session_flowfile **added_out, lahar_error *error)
{
    lahar_uuid identity;
    (void)lahar_prov_identify(flowfile->uuid, &identity);
    if (lahar_uuid_map_find(&session->names, &identity) != NULL) {
        return lahar_fail(error, LAHAR_EXISTS, "the session has FlowFile %.*s already",
                          (int)(flowfile->uuid.size < 64 ? flowfile->uuid.size : 64),
                          (const char *)flowfile->uuid.data);
    }
    if (session->flowfile_count == session->flowfile_capacity) {
        const size_t capacity =
            session->flowfile_capacity == 0 ? 16 : session->flowfile_capacity * 2;
        struct lahar_session_flowfile *larger = lahar_reallocate(
            session->provenance->allocator, session->flowfiles, capacity * sizeof *larger);
        if (larger == NULL) {
            return lahar_session_no_memory(error);
        }
        session->flowfiles = larger;
        session->flowfile_capacity = capacity;
    }
    struct lahar_session_flowfile added = {.now = *flowfile};
    if (!copy_flowfile(&session->arena, &added.now) ||
        lahar_uuid_map_add(&session->names, &identity) == NULL) {
        return lahar_session_no_memory(error);
    }
    added.before = added.now;
    added.created_ns = lahar_session_moment(session);
    session->flowfiles[session->flowfile_count] = added;
    *added_out = &session->flowfiles[session->flowfile_count++];
    return LAHAR_OK;
}

lahar_status lahar_session_take(lahar_session *session, const lahar_flowfile *flowfile,
                                lahar_error *error)
{
    struct lahar_session_flowfile *added = NULL;
    return add_flowfile(session, flowfile, &added, error);
}

lahar_status lahar_session_create(lahar_session *session, const lahar_flowfile *flowfile,
                                  const lahar_bytes *parents, size_t parent_count,
                                  lahar_error *error)
{
    struct lahar_session_flowfile *added = NULL;
    for (size_t i = 0; i < parent_count; i++) {
        LAHAR_TRY(find(session, parents[i], &added, error));
    }
    if (!copy_names(&session->arena, &parents, parent_count)) {
        return lahar_session_no_memory(error);
    }
    LAHAR_TRY(add_flowfile(session, flowfile, &added, error));
    added->is_new = true;
    added->parents = parents;
    added->parent_count = parent_count;
    return LAHAR_OK;
}

lahar_status lahar_session_update(lahar_session *session, const lahar_flowfile *flowfile,
                                  lahar_error *error)
{
    struct lahar_session_flowfile *found = NULL;
    lahar_flowfile copy = *flowfile;
    LAHAR_TRY(find(session, flowfile->uuid, &found, error));
    if (!copy_flowfile(&session->arena, &copy)) {
        return lahar_session_no_memory(error);
    }
    /* Where it came from and since when does not change. */
    copy.uuid = found->now.uuid;
    copy.queue = found->now.queue;
    copy.entry_ns = found->now.entry_ns;
    copy.lineage_start_ns = found->now.lineage_start_ns;
    found->now = copy;
    return LAHAR_OK;
}

lahar_status lahar_session_remove(lahar_session *session, lahar_bytes uuid, lahar_error *error)
{
    struct lahar_session_flowfile *found = NULL;
    LAHAR_TRY(find(session, uuid, &found, error));
    found->is_removed = true;
    return LAHAR_OK;
}

lahar_status lahar_session_transfer(lahar_session *session, lahar_bytes uuid,
                                    lahar_bytes relationship, lahar_bytes queue, bool is_terminated,
                                    lahar_error *error)
{
    struct lahar_session_flowfile *found = NULL;
    LAHAR_TRY(find(session, uuid, &found, error));
    if (!lahar_session_copy(&session->arena, &relationship) ||
        !lahar_session_copy(&session->arena, &queue)) {
        return lahar_session_no_memory(error);
    }
    found->relationship = relationship;
    found->queue = queue;
    found->is_terminated = is_terminated;
    return LAHAR_OK;
}

/* --- events ---------------------------------------------------------------------------------- */

static lahar_status add_event(struct lahar_session *session, const lahar_prov_event *event,
                              const struct lahar_session_flowfile *flowfile, lahar_error *error)
{
    if (session->event_count == session->event_capacity) {
        const size_t capacity = session->event_capacity == 0 ? 16 : session->event_capacity * 2;
        struct lahar_session_event *larger = lahar_reallocate(
            session->provenance->allocator, session->events, capacity * sizeof *larger);
        if (larger == NULL) {
            return lahar_session_no_memory(error);
        }
        session->events = larger;
        session->event_capacity = capacity;
    }
    struct lahar_session_event added = {.event = *event,
                                        .flowfile = (size_t)(flowfile - session->flowfiles),
                                        .emitted = flowfile->now};
    if (!copy_event(&session->arena, &added.event)) {
        return lahar_session_no_memory(error);
    }
    if (added.event.time_ns == LAHAR_TIME_OF_ARRIVAL) {
        added.event.time_ns = lahar_session_moment(session);
    }
    session->events[session->event_count++] = added;
    return LAHAR_OK;
}

lahar_status lahar_session_clone(lahar_session *session, lahar_bytes uuid, lahar_bytes new_uuid,
                                 lahar_error *error)
{
    struct lahar_session_flowfile *found = NULL;
    struct lahar_session_flowfile *added = NULL;
    lahar_prov_event event;
    LAHAR_TRY(find(session, uuid, &found, error));
    const lahar_bytes name = found->now.uuid;
    lahar_flowfile copy = found->now;
    copy.uuid = new_uuid;
    copy.queue = (lahar_bytes){NULL, 0};
    LAHAR_TRY(add_flowfile(session, &copy, &added, error));
    added->is_new = true;
    added->has_origin = true;
    lahar_prov_event_init(&event);
    event.type = LAHAR_PROV_CLONE;
    event.uuid = name;
    event.parents = &name;
    event.parent_count = 1;
    event.children = &added->now.uuid;
    event.child_count = 1;
    return add_event(session, &event, lahar_session_find(session, name), error);
}

lahar_status lahar_session_emit(lahar_session *session, const lahar_prov_event *event, bool force,
                                lahar_error *error)
{
    struct lahar_session_flowfile *found = NULL;
    lahar_prov_event checked = *event;
    LAHAR_TRY(find(session, event->uuid, &found, error));
    checked.component = session->component;
    checked.component_type = session->component_type;
    checked.has_size = true;
    LAHAR_TRY(lahar_prov_check(&checked, error));
    if (!force) {
        return add_event(session, event, found, error);
    }
    return lahar_session_append_forced(session, event, found, error);
}
