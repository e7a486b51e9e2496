/* Replay: the content before an event once more, for a new FlowFile. */
#include <string.h>

#include "engine/format/time_text.h"
#include "engine/provenance/content.h"
#include "engine/provenance/identity.h"
#include "io/base/error.h"

struct lahar_replay {
    const lahar_allocator *allocator;
    struct lahar_arena arena;
    lahar_flowfile flowfile;
    uint64_t event_id;
    char uuid[LAHAR_PROV_UUID_TEXT_SIZE];
    char timestamp[LAHAR_TIME_TEXT_SIZE_MAX];
};

#define TEXT(literal)                                                                              \
    (lahar_bytes)                                                                                  \
    {                                                                                              \
        literal, sizeof literal - 1                                                                \
    }

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a replay");
}

static lahar_status check_queue(const struct lahar_provenance *provenance, lahar_bytes queue,
                                lahar_refusal *refusal_out, lahar_error *error)
{
    const lahar_provenance_options *options = &provenance->options;
    if (queue.data == NULL) {
        return lahar_refuse(LAHAR_REFUSAL_NO_QUEUE, refusal_out, error,
                            "the event names no queue that the FlowFile came from");
    }
    if (options->queue_exists != NULL && !options->queue_exists(options->queue_context, queue)) {
        return lahar_refuse(LAHAR_REFUSAL_QUEUE_GONE, refusal_out, error,
                            "the queue %.*s no longer exists",
                            (int)(queue.size < 100 ? queue.size : 100), (const char *)queue.data);
    }
    return LAHAR_OK;
}

static bool is_mark(lahar_bytes key)
{
    return lahar_bytes_equal(key, TEXT("flowfile.replay")) ||
           lahar_bytes_equal(key, TEXT("flowfile.replay.timestamp"));
}

static bool copy_bytes(struct lahar_arena *arena, lahar_bytes *bytes)
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

/* The attributes before the event, the uuid's its own, and the marks. */
static lahar_status fill_attributes(struct lahar_replay *replay, const lahar_prov_event *event,
                                    lahar_error *error)
{
    lahar_pair *pairs =
        lahar_arena_allocate(&replay->arena, (event->previous_count + 2) * sizeof *pairs);
    size_t count = 0;
    if (pairs == NULL) {
        return no_memory(error);
    }
    for (size_t i = 0; i < event->previous_count; i++) {
        lahar_pair pair = event->previous[i];
        if (pair.is_null || is_mark(pair.key)) {
            continue;
        }
        if (lahar_bytes_equal(pair.key, TEXT("uuid"))) {
            pair.value = (lahar_bytes){replay->uuid, sizeof replay->uuid};
        }
        if (!copy_bytes(&replay->arena, &pair.key) || !copy_bytes(&replay->arena, &pair.value)) {
            return no_memory(error);
        }
        pairs[count++] = pair;
    }
    const size_t time_size = lahar_time_format(replay->flowfile.entry_ns, 3, replay->timestamp);
    pairs[count++] = (lahar_pair){.key = TEXT("flowfile.replay"), .value = TEXT("true")};
    pairs[count++] = (lahar_pair){.key = TEXT("flowfile.replay.timestamp"),
                                  .value = {replay->timestamp, time_size}};
    replay->flowfile.attributes = pairs;
    replay->flowfile.attribute_count = count;
    return LAHAR_OK;
}

static lahar_status fill_flowfile(struct lahar_replay *replay,
                                  const struct lahar_provenance *provenance,
                                  const lahar_prov_event *event, const lahar_claim *claim,
                                  lahar_bytes queue, lahar_error *error)
{
    lahar_flowfile *flowfile = &replay->flowfile;
    lahar_uuid uuid;
    lahar_prov_random_uuid(&uuid);
    lahar_prov_uuid_format(&uuid, replay->uuid);
    flowfile->uuid = (lahar_bytes){replay->uuid, sizeof replay->uuid};
    flowfile->claim = *claim;
    flowfile->size = claim->size;
    flowfile->entry_ns = provenance->io->ops->realtime_ns(provenance->io);
    flowfile->lineage_start_ns = event->lineage_start_ns;
    flowfile->queue = queue;
    if (!copy_bytes(&replay->arena, &flowfile->claim.container) ||
        !copy_bytes(&replay->arena, &flowfile->claim.section) ||
        !copy_bytes(&replay->arena, &flowfile->claim.id) ||
        !copy_bytes(&replay->arena, &flowfile->queue)) {
        return no_memory(error);
    }
    return fill_attributes(replay, event, error);
}

static lahar_status record(struct lahar_replay *replay, struct lahar_provenance *provenance,
                           const lahar_prov_event *event, lahar_error *error)
{
    const lahar_flowfile *flowfile = &replay->flowfile;
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .durability = LAHAR_DURABILITY_COMMIT,
                                          .deadline_ns = LAHAR_WAIT_FOREVER};
    lahar_prov_event made;
    lahar_prov_event_init(&made);
    made.time_ns = flowfile->entry_ns;
    made.type = LAHAR_PROV_REPLAY;
    made.component = event->component.data != NULL ? event->component : TEXT("");
    made.component_type = event->component_type.data != NULL ? event->component_type : TEXT("");
    made.component_name = event->component_name;
    made.process_group = event->process_group;
    made.uuid = event->uuid;
    made.entity_type = event->entity_type;
    made.has_size = true;
    made.size = flowfile->size;
    made.entry_ns = flowfile->entry_ns;
    made.lineage_start_ns = flowfile->lineage_start_ns;
    made.updated = flowfile->attributes;
    made.updated_count = flowfile->attribute_count;
    made.claim = flowfile->claim;
    made.source_queue = flowfile->queue;
    made.parents = &event->uuid;
    made.parent_count = 1;
    made.children = &flowfile->uuid;
    made.child_count = 1;
    return lahar_prov_append(provenance, &made, 1, &options, &replay->event_id, error);
}

static lahar_status run(struct lahar_provenance *provenance, const lahar_prov_event *event,
                        lahar_bytes target, lahar_content_sink sink, void *context,
                        struct lahar_replay *replay, lahar_refusal *refusal_out, lahar_error *error)
{
    const lahar_bytes queue = target.data != NULL ? target : event->source_queue;
    struct lahar_content content;
    if (event->type == LAHAR_PROV_JOIN) {
        return lahar_refuse(LAHAR_REFUSAL_JOIN, refusal_out, error,
                            "an event that joins several FlowFiles cannot be replayed");
    }
    if (event->uuid.data == NULL) {
        return lahar_refuse(LAHAR_REFUSAL_NO_CLAIM, refusal_out, error,
                            "the event names no FlowFile");
    }
    LAHAR_TRY(lahar_content_open(provenance, &event->previous_claim, event->has_previous_size,
                                 event->previous_size, &content, refusal_out, error));
    lahar_status status = check_queue(provenance, queue, refusal_out, error);
    if (status == LAHAR_OK) {
        status = fill_flowfile(replay, provenance, event, &content.claim, queue, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_content_copy(&content, sink, context, refusal_out, error);
    }
    lahar_content_close(&content);
    return status == LAHAR_OK ? record(replay, provenance, event, error) : status;
}

lahar_status lahar_replay_run(lahar_provenance *provenance, uint64_t id, lahar_bytes target,
                              lahar_content_sink sink, void *context, lahar_replay **replay_out,
                              lahar_refusal *refusal_out, lahar_error *error)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *raw = NULL;
    lahar_prov_event event;
    struct lahar_arena scratch;
    *replay_out = NULL;
    *refusal_out = LAHAR_REFUSAL_NONE;
    struct lahar_replay *replay = lahar_allocate_zeroed(provenance->allocator, 1, sizeof *replay);
    if (replay == NULL) {
        return no_memory(error);
    }
    replay->allocator = provenance->allocator;
    lahar_arena_init(&replay->arena, provenance->allocator, 4096);
    lahar_arena_init(&scratch, provenance->allocator, 4096);
    lahar_status status = lahar_prov_find(provenance, id, &cursor, &raw, error);
    if (status == LAHAR_OK) {
        status = lahar_prov_decode(&provenance->fields, raw, &scratch, &event, error);
    }
    if (status == LAHAR_OK) {
        status = run(provenance, &event, target, sink, context, replay, refusal_out, error);
    }
    lahar_arena_deinit(&scratch);
    lahar_cursor_close(cursor);
    if (status != LAHAR_OK) {
        lahar_replay_close(replay);
        return status;
    }
    *replay_out = replay;
    return LAHAR_OK;
}

const lahar_flowfile *lahar_replay_flowfile(const lahar_replay *replay)
{
    return &replay->flowfile;
}

uint64_t lahar_replay_event_id(const lahar_replay *replay)
{
    return replay->event_id;
}

void lahar_replay_close(lahar_replay *replay)
{
    if (replay == NULL) {
        return;
    }
    const lahar_allocator *allocator = replay->allocator;
    lahar_arena_deinit(&replay->arena);
    lahar_release(allocator, replay);
}
