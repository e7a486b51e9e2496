/* Peek: the next records of a source without appending them; verify: the records of its
 * files against the events of the store. Both read files as a follower does. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/follow/file_poll.h"
#include "engine/follow/source_registry.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"
#include "lahar/read.h"

static lahar_status open_source(lahar_store *store, const char *name, lahar_follow **follow_out,
                                lahar_error *error)
{
    const lahar_follow_options options = {
        .struct_size = sizeof options, .sources = &name, .source_count = 1};
    if (name == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "a source needs a name");
    }
    return lahar_follow_open_dry(store, &options, follow_out, error);
}

/* --- peek ------------------------------------------------------------------------------ */

/* The cursors that the walk has moved, in one batch without events. */
static lahar_status consume_all(lahar_store *store, struct lahar_follow *follow, lahar_error *error)
{
    const struct lahar_follow_source *source = follow->sources[0];
    const lahar_bytes key_source = {source->key, strlen(source->key)};
    uint8_t state[LAHAR_VARINT_SIZE_MAX];
    struct lahar_buffer value;
    lahar_batch *batch = NULL;
    LAHAR_TRY(lahar_batch_create(store, &batch, error));
    lahar_buffer_init(&value, follow->allocator);
    lahar_status status = LAHAR_OK;
    for (size_t i = 0; i < source->files.count && status == LAHAR_OK; i++) {
        const struct lahar_followed_file *file = source->files.files[i];
        uint8_t key[LAHAR_CURSOR_KEY_SIZE];
        lahar_cursor_key(file->cursor.generation, key);
        lahar_buffer_clear(&value);
        struct lahar_file_cursor cursor = file->cursor;
        cursor.first_offset = cursor.offset;
        cursor.first_line = cursor.line;
        lahar_file_cursor_encode(&cursor, file->path, &value);
        status = value.has_failed
                     ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for offsets")
                     : lahar_batch_add_offset(batch, key_source, (lahar_bytes){key, sizeof key},
                                              (lahar_bytes){value.data, value.size}, error);
    }
    if (status == LAHAR_OK) {
        const size_t size = (size_t)(lahar_put_varint(state, source->next_generation) - state);
        status = lahar_batch_add_offset(
            batch, key_source,
            (lahar_bytes){LAHAR_SOURCE_STATE_KEY, strlen(LAHAR_SOURCE_STATE_KEY)},
            (lahar_bytes){state, size}, error);
    }
    if (status == LAHAR_OK) {
        lahar_error refused = {0};
        status = lahar_source_commit_at(store, batch, LAHAR_DURABILITY_COMMIT, follow->epoch, NULL,
                                        &refused);
        if (status == LAHAR_CANCELLED) {
            status = lahar_fail(error, LAHAR_BUSY, "the source was changed meanwhile");
        } else if (status != LAHAR_OK) {
            status = lahar_fail(error, status, "%s", refused.message);
        } else {
            atomic_fetch_add_explicit(&store->source_epoch, 1, memory_order_release);
        }
    }
    lahar_buffer_deinit(&value);
    lahar_batch_destroy(batch);
    return status;
}

/* A record that stops the walk is a failure of the peek: nothing is consumed. */
static lahar_status find_stuck(const struct lahar_follow_source *source, lahar_error *error)
{
    for (size_t i = 0; i < source->files.count; i++) {
        const struct lahar_followed_file *file = source->files.files[i];
        if ((file->cursor.flags & LAHAR_CURSOR_STUCK) != 0) {
            return lahar_fail(error, LAHAR_INVALID, "%s: %s", file->path, file->cursor.last_error);
        }
    }
    return LAHAR_OK;
}

lahar_status lahar_source_peek(lahar_store *store, const char *name, uint64_t limit, bool consume,
                               lahar_event_visitor visit, void *context, lahar_error *error)
{
    struct lahar_io *io = lahar_store_io(store);
    lahar_follow *follow = NULL;
    if (consume) {
        LAHAR_TRY(lahar_store_check_writable(store, error));
    }
    LAHAR_TRY(open_source(store, name, &follow, error));
    struct lahar_follow_worker *worker = follow->workers[0];
    struct lahar_follow_source *source = follow->sources[0];
    source->definition.is_paused = false;
    worker->sink.kind = LAHAR_SINK_VISIT;
    worker->sink.visit = visit;
    worker->sink.visit_context = context;
    worker->sink.visit_time_ns = io->ops->realtime_ns(io);
    worker->sink.visit_left = limit == 0 ? UINT64_MAX : limit;
    while (worker->sink.visit_left != 0 && follow->failure.status == LAHAR_OK &&
           lahar_follow_step(follow, io->ops->monotonic_ns(io))) {
    }
    lahar_status status = LAHAR_OK;
    if (follow->failure.status != LAHAR_OK) {
        status = lahar_fail(error, follow->failure.status, "%s", follow->failure.message);
    }
    if (status == LAHAR_OK) {
        status = find_stuck(source, error);
    }
    if (status == LAHAR_OK && consume) {
        status = consume_all(store, follow, error);
    }
    lahar_follow_close(follow);
    return status;
}
