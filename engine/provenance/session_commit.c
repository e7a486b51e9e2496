/* What a session appends: FORK and JOIN of new FlowFiles, then the events emitted, then those that
 * nobody emitted and the changes call for. */
#include <string.h>

#include "engine/provenance/pair_table.h"
#include "engine/provenance/session.h"
#include "io/base/error.h"

/* The events of one commit, and what was told of each FlowFile. */
struct committing {
    const struct lahar_session *session;
    struct lahar_arena arena;
    lahar_prov_event *events; /* owned */
    size_t count;
    size_t capacity;
    uint32_t *told;   /* owned: a bit for each event type, by FlowFile */
    bool *has_origin; /* owned */
    int64_t now_ns;
};

static bool claims_equal(const lahar_claim *a, const lahar_claim *b)
{
    return lahar_bytes_equal(a->container, b->container) &&
           lahar_bytes_equal(a->section, b->section) && lahar_bytes_equal(a->id, b->id) &&
           a->has_offset == b->has_offset && a->offset == b->offset && a->has_size == b->has_size &&
           a->size == b->size;
}

/* What differs between two states: new and changed attributes, null for those removed. */
static lahar_status diff(const lahar_flowfile *before, const lahar_flowfile *now,
                         struct lahar_arena *arena, const lahar_pair **pairs_out, size_t *count_out,
                         lahar_error *error)
{
    struct lahar_pair_table old;
    struct lahar_pair_table current;
    lahar_pair *pairs = lahar_arena_allocate(
        arena, (before->attribute_count + now->attribute_count) * sizeof *pairs + 1);
    size_t count = 0;
    if (pairs == NULL || !lahar_pair_table_init(&old, before->attribute_count, arena) ||
        !lahar_pair_table_init(&current, now->attribute_count, arena)) {
        return lahar_session_no_memory(error);
    }
    lahar_pair_table_put(&old, before->attributes, before->attribute_count);
    lahar_pair_table_put(&current, now->attributes, now->attribute_count);
    for (size_t i = 0; i < current.count; i++) {
        const lahar_pair *pair = &current.pairs[i];
        const lahar_pair *was = lahar_pair_table_find(&old, pair->key);
        if (!pair->is_null && (was == NULL || !lahar_bytes_equal(was->value, pair->value))) {
            pairs[count++] = *pair;
        }
    }
    for (size_t i = 0; i < old.count; i++) {
        const lahar_pair *pair = &old.pairs[i];
        if (!pair->is_null && lahar_pair_table_find(&current, pair->key) == NULL) {
            pairs[count++] = (lahar_pair){.key = pair->key, .is_null = true};
        }
    }
    *pairs_out = pairs;
    *count_out = count;
    return LAHAR_OK;
}

/* Fills in what the session knows: component, attributes, content, times. */
static lahar_status complete(const struct lahar_session *session,
                             const struct lahar_session_flowfile *flowfile,
                             const lahar_flowfile *now, struct lahar_arena *arena,
                             lahar_prov_event *event, lahar_error *error)
{
    static const lahar_flowfile nothing = {.uuid = {NULL, 0}};
    const lahar_flowfile *before = flowfile->is_new ? &nothing : &flowfile->before;
    event->component = session->component;
    event->component_type = session->component_type;
    event->uuid = flowfile->now.uuid;
    event->previous = before->attributes;
    event->previous_count = before->attribute_count;
    LAHAR_TRY(diff(before, now, arena, &event->updated, &event->updated_count, error));
    event->claim = now->claim;
    event->has_size = true;
    event->size = now->size;
    event->previous_claim = before->claim;
    event->has_previous_size = !flowfile->is_new;
    event->previous_size = before->size;
    event->entry_ns = now->entry_ns == 0 ? LAHAR_PROV_NO_TIME : now->entry_ns;
    event->lineage_start_ns =
        now->lineage_start_ns == 0 ? LAHAR_PROV_NO_TIME : now->lineage_start_ns;
    event->source_queue = before->queue;
    return LAHAR_OK;
}

lahar_status lahar_session_append_forced(struct lahar_session *session,
                                         const lahar_prov_event *event,
                                         const struct lahar_session_flowfile *flowfile,
                                         lahar_error *error)
{
    struct lahar_arena arena;
    lahar_prov_event completed = *event;
    lahar_arena_init(&arena, session->provenance->allocator, 4096);
    lahar_status status = complete(session, flowfile, &flowfile->now, &arena, &completed, error);
    if (status == LAHAR_OK) {
        status = lahar_prov_append(session->provenance, &completed, 1, NULL, NULL, error);
    }
    lahar_arena_deinit(&arena);
    return status;
}

/* --- the list of events -------------------------------------------------------------------------
 */

static void tell(struct committing *committing, const lahar_prov_event *event)
{
    const struct lahar_session *session = committing->session;
    const struct lahar_session_flowfile *own = lahar_session_find(session, event->uuid);
    if (own != NULL) {
        committing->told[own - session->flowfiles] |= 1U << event->type;
        committing->has_origin[own - session->flowfiles] |= event->type == LAHAR_PROV_CREATE ||
                                                            event->type == LAHAR_PROV_RECEIVE ||
                                                            event->type == LAHAR_PROV_JOIN;
    }
    for (size_t i = 0; i < event->child_count; i++) {
        const struct lahar_session_flowfile *child =
            lahar_session_find(session, event->children[i]);
        if (child != NULL) {
            committing->told[child - session->flowfiles] |= 1U << event->type;
            committing->has_origin[child - session->flowfiles] = true;
        }
    }
}

static lahar_status add(struct committing *committing, const lahar_prov_event *event,
                        const struct lahar_session_flowfile *flowfile, const lahar_flowfile *state,
                        lahar_error *error)
{
    if (committing->count == committing->capacity) {
        const size_t capacity = committing->capacity == 0 ? 16 : committing->capacity * 2;
        lahar_prov_event *larger = lahar_reallocate(committing->session->provenance->allocator,
                                                    committing->events, capacity * sizeof *larger);
        if (larger == NULL) {
            return lahar_session_no_memory(error);
        }
        committing->events = larger;
        committing->capacity = capacity;
    }
    lahar_prov_event *added = &committing->events[committing->count];
    *added = *event;
    LAHAR_TRY(complete(committing->session, flowfile, state, &committing->arena, added, error));
    if (added->time_ns == LAHAR_TIME_OF_ARRIVAL) {
        added->time_ns = committing->now_ns;
    }
    committing->count++;
    tell(committing, added);
    return LAHAR_OK;
}

static lahar_status derive(struct committing *committing,
                           const struct lahar_session_flowfile *flowfile, lahar_prov_type type,
                           lahar_bytes details, lahar_error *error)
{
    lahar_prov_event event;
    lahar_prov_event_init(&event);
    event.type = type;
    if (type == LAHAR_PROV_CREATE) {
        event.time_ns = flowfile->created_ns;
    }
    event.details = details;
    return add(committing, &event, flowfile, &flowfile->now, error);
}

/* --- FORK and JOIN
 * ---------------------------------------------------------------------------------- */

/* The children that each FlowFile forked into: those of number p are flowfiles[first[p]] up to
 * flowfiles[first[p + 1]], all by their numbers in the session. */
struct fork_lists {
    uint32_t *first;
    uint32_t *flowfiles;
};

/* One FORK a parent, of the time of its first child; not for a single child that is gone again. */
static lahar_status add_fork(struct committing *committing, size_t parent,
                             const struct fork_lists *forks, lahar_error *error)
{
    const struct lahar_session_flowfile *flowfiles = committing->session->flowfiles;
    const uint32_t *numbers = forks->flowfiles + forks->first[parent];
    const size_t count = forks->first[parent + 1] - forks->first[parent];
    lahar_prov_event event;
    if (count == 0 || (count == 1 && flowfiles[numbers[0]].is_removed)) {
        return LAHAR_OK;
    }
    lahar_bytes *children = lahar_arena_allocate(&committing->arena, count * sizeof *children);
    if (children == NULL) {
        return lahar_session_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        children[i] = flowfiles[numbers[i]].now.uuid;
    }
    lahar_prov_event_init(&event);
    event.type = LAHAR_PROV_FORK;
    event.time_ns = flowfiles[numbers[0]].created_ns;
    event.parents = &flowfiles[parent].now.uuid;
    event.parent_count = 1;
    event.children = children;
    event.child_count = count;
    return add(committing, &event, &flowfiles[parent], &flowfiles[parent].now, error);
}

static lahar_status add_join(struct committing *committing,
                             const struct lahar_session_flowfile *child, lahar_error *error)
{
    lahar_prov_event event;
    lahar_prov_event_init(&event);
    event.type = LAHAR_PROV_JOIN;
    event.time_ns = child->created_ns;
    event.parents = child->parents;
    event.parent_count = child->parent_count;
    event.children = &child->now.uuid;
    event.child_count = 1;
    return add(committing, &event, child, &child->now, error);
}

/* Which FlowFiles the component's own events account for. */
static void note_emitted(const struct lahar_session *session, bool *has_origin)
{
    for (size_t i = 0; i < session->flowfile_count; i++) {
        has_origin[i] = session->flowfiles[i].has_origin;
    }
    for (size_t i = 0; i < session->event_count; i++) {
        const lahar_prov_event *event = &session->events[i].event;
        has_origin[session->events[i].flowfile] |= event->type == LAHAR_PROV_JOIN;
        for (size_t j = 0; event->type != LAHAR_PROV_JOIN && j < event->child_count; j++) {
            const struct lahar_session_flowfile *child =
                lahar_session_find(session, event->children[j]);
            if (child != NULL) {
                has_origin[child - session->flowfiles] = true;
            }
        }
    }
}

static lahar_status list_forks(struct committing *committing, const bool *has_origin,
                               struct fork_lists *forks_out, lahar_error *error)
{
    const struct lahar_session *session = committing->session;
    const size_t count = session->flowfile_count;
    uint32_t *first = lahar_arena_allocate(&committing->arena, (count + 2) * sizeof *first);
    uint32_t *flowfiles = lahar_arena_allocate(&committing->arena, count * sizeof *flowfiles + 1);
    uint32_t *parents = lahar_arena_allocate(&committing->arena, count * sizeof *parents + 1);
    if (first == NULL || flowfiles == NULL || parents == NULL) {
        return lahar_session_no_memory(error);
    }
    /* Counted two places ahead: adding up makes ends of them, filling makes beginnings. */
    memset(first, 0, (count + 2) * sizeof *first);
    for (size_t i = 0; i < count; i++) {
        const struct lahar_session_flowfile *child = &session->flowfiles[i];
        parents[i] = UINT32_MAX;
        if (child->is_new && child->parent_count == 1 && !has_origin[i]) {
            const struct lahar_session_flowfile *parent =
                lahar_session_find(session, child->parents[0]);
            parents[i] = (uint32_t)(parent - session->flowfiles);
            first[parents[i] + 2]++;
        }
    }
    for (size_t i = 1; i < count + 2; i++) {
        first[i] += first[i - 1];
    }
    for (size_t i = 0; i < count; i++) {
        if (parents[i] != UINT32_MAX) {
            flowfiles[first[parents[i] + 1]++] = (uint32_t)i;
        }
    }
    *forks_out = (struct fork_lists){first, flowfiles};
    return LAHAR_OK;
}

static lahar_status add_origins(struct committing *committing, lahar_error *error)
{
    const struct lahar_session *session = committing->session;
    struct fork_lists forks = {.first = NULL};
    bool *has_origin = lahar_arena_allocate(&committing->arena, session->flowfile_count + 1);
    if (has_origin == NULL) {
        return lahar_session_no_memory(error);
    }
    note_emitted(session, has_origin);
    LAHAR_TRY(list_forks(committing, has_origin, &forks, error));
    for (size_t i = 0; i < session->flowfile_count; i++) {
        LAHAR_TRY(add_fork(committing, i, &forks, error));
    }
    for (size_t i = 0; i < session->flowfile_count; i++) {
        const struct lahar_session_flowfile *child = &session->flowfiles[i];
        if (child->is_new && child->parent_count > 1 && !has_origin[i]) {
            LAHAR_TRY(add_join(committing, child, error));
        }
    }
    return LAHAR_OK;
}

/* --- emitted and derived events
 * -------------------------------------------------------------------- */

/* What was sent or copied is told as it was then. */
static bool keeps_emission(lahar_prov_type type)
{
    return type == LAHAR_PROV_SEND || type == LAHAR_PROV_UPLOAD || type == LAHAR_PROV_CLONE;
}

static bool is_back_in_its_queue(const struct lahar_session_flowfile *flowfile)
{
    return !flowfile->is_new && !flowfile->is_removed && flowfile->queue.data != NULL &&
           flowfile->before.queue.data != NULL &&
           lahar_bytes_equal(flowfile->queue, flowfile->before.queue);
}

static lahar_status add_emitted(struct committing *committing, lahar_error *error)
{
    const struct lahar_session *session = committing->session;
    for (size_t i = 0; i < session->event_count; i++) {
        const struct lahar_session_event *emitted = &session->events[i];
        const struct lahar_session_flowfile *flowfile = &session->flowfiles[emitted->flowfile];
        if (emitted->event.type == LAHAR_PROV_ROUTE && is_back_in_its_queue(flowfile)) {
            continue;
        }
        LAHAR_TRY(add(committing, &emitted->event, flowfile,
                      keeps_emission(emitted->event.type) ? &emitted->emitted : &flowfile->now,
                      error));
    }
    return LAHAR_OK;
}

static bool was_told(const struct committing *committing, size_t flowfile, lahar_prov_type type)
{
    return (committing->told[flowfile] >> type & 1) != 0;
}

static lahar_status derive_drop(struct committing *committing,
                                const struct lahar_session_flowfile *flowfile, lahar_error *error)
{
    static const char before[] = "Auto-Terminated by ";
    static const char behind[] = " Relationship";
    const lahar_bytes relationship = flowfile->relationship;
    lahar_bytes details = {NULL, 0};
    if (flowfile->is_terminated && relationship.data != NULL) {
        char *text = lahar_arena_allocate(&committing->arena,
                                          sizeof before + relationship.size + sizeof behind);
        if (text == NULL) {
            return lahar_session_no_memory(error);
        }
        memcpy(text, before, sizeof before - 1);
        if (relationship.size != 0) {
            memcpy(text + sizeof before - 1, relationship.data, relationship.size);
        }
        memcpy(text + sizeof before - 1 + relationship.size, behind, sizeof behind - 1);
        details = (lahar_bytes){text, sizeof before + sizeof behind - 2 + relationship.size};
    }
    return derive(committing, flowfile, LAHAR_PROV_DROP, details, error);
}

static lahar_status derive_all(struct committing *committing, size_t number, lahar_error *error)
{
    const struct lahar_session_flowfile *flowfile = &committing->session->flowfiles[number];
    const lahar_bytes none = {NULL, 0};
    const lahar_pair *changed = NULL;
    size_t changed_count = 0;
    const bool is_gone = flowfile->is_removed;
    if (!is_gone && !flowfile->is_new &&
        !claims_equal(&flowfile->before.claim, &flowfile->now.claim) &&
        !was_told(committing, number, LAHAR_PROV_CONTENT_MODIFIED)) {
        LAHAR_TRY(derive(committing, flowfile, LAHAR_PROV_CONTENT_MODIFIED, none, error));
    }
    if (!is_gone && flowfile->is_new && !flowfile->has_origin && !committing->has_origin[number]) {
        LAHAR_TRY(derive(committing, flowfile, LAHAR_PROV_CREATE, none, error));
    }
    LAHAR_TRY(diff(&flowfile->before, &flowfile->now, &committing->arena, &changed, &changed_count,
                   error));
    if (!is_gone && changed_count != 0 && committing->told[number] == 0) {
        LAHAR_TRY(derive(committing, flowfile, LAHAR_PROV_ATTRIBUTES_MODIFIED, none, error));
    }
    if ((is_gone ? !flowfile->is_new : flowfile->is_terminated) &&
        !was_told(committing, number, LAHAR_PROV_DROP)) {
        return derive_drop(committing, flowfile, error);
    }
    return LAHAR_OK;
}

static lahar_status gather(struct committing *committing, lahar_error *error)
{
    const struct lahar_session *session = committing->session;
    const lahar_allocator *allocator = session->provenance->allocator;
    committing->told =
        lahar_allocate_zeroed(allocator, session->flowfile_count + 1, sizeof *committing->told);
    committing->has_origin = lahar_allocate_zeroed(allocator, session->flowfile_count + 1,
                                                   sizeof *committing->has_origin);
    if (committing->told == NULL || committing->has_origin == NULL) {
        return lahar_session_no_memory(error);
    }
    LAHAR_TRY(add_origins(committing, error));
    LAHAR_TRY(add_emitted(committing, error));
    for (size_t i = 0; i < session->flowfile_count; i++) {
        LAHAR_TRY(derive_all(committing, i, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_session_commit(lahar_session *session, const lahar_append_options *options,
                                  uint64_t *first_id_out, size_t *event_count_out,
                                  lahar_error *error)
{
    const lahar_allocator *allocator = session->provenance->allocator;
    struct committing committing = {.session = session, .now_ns = lahar_session_moment(session)};
    if (first_id_out != NULL) {
        *first_id_out = 0;
    }
    lahar_arena_init(&committing.arena, allocator, 4096);
    lahar_status status = gather(&committing, error);
    if (status == LAHAR_OK && committing.count != 0) {
        status = lahar_prov_append(session->provenance, committing.events, committing.count,
                                   options, first_id_out, error);
    }
    if (event_count_out != NULL) {
        *event_count_out = status == LAHAR_OK ? committing.count : 0;
    }
    lahar_release(allocator, committing.events);
    lahar_release(allocator, committing.told);
    lahar_release(allocator, committing.has_origin);
    lahar_arena_deinit(&committing.arena);
    if (status == LAHAR_OK) {
        lahar_session_rollback(session);
    }
    return status;
}
