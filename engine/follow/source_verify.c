/* Verify: the files of a source are read again as far as they were consumed, and their records
 * compared with the events of the store.
 *
 * Both sides are reduced to a count and a sum of hashes for each generation, so that nothing has to
 * be held and no order to be kept. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/follow/file_poll.h"
#include "engine/store/snapshot.h"
#include "io/base/error.h"
#include "lahar/read.h"

/* One generation on the store's side. */
struct stored_content {
    uint64_t generation;
    uint64_t first_offset;
    uint64_t count;
    uint64_t sum;
};

struct verification {
    lahar_store *store;
    struct lahar_follow *follow;
    struct lahar_follow_source *source;
    struct stored_content *contents; /* owned; sorted by generation */
    size_t content_count;
    void (*on_difference)(void *context, const char *path, const char *message);
    void *context;
    lahar_source_check check;
};

static int compare_generations(const void *a, const void *b)
{
    const uint64_t x = ((const struct stored_content *)a)->generation;
    const uint64_t y = ((const struct stored_content *)b)->generation;
    return x < y ? -1 : x > y;
}

static struct stored_content *find_content(struct verification *verification, uint64_t generation)
{
    const struct stored_content wanted = {.generation = generation};
    return verification->content_count == 0
               ? NULL
               : bsearch(&wanted, verification->contents, verification->content_count,
                         sizeof wanted, compare_generations);
}

/* --- the store's side -------------------------------------------------------------------- */

static void count_event(struct verification *verification, const lahar_event *event)
{
    const struct lahar_sink_target *target = &verification->source->target;
    const lahar_value *generation =
        lahar_event_find(event, target->columns[LAHAR_COLUMN_GENERATION]);
    const lahar_value *offset = lahar_event_find(event, LAHAR_FIELD_OFFSET);
    if (generation == NULL || offset == NULL || generation->is_null || offset->is_null) {
        return;
    }
    struct stored_content *content = find_content(verification, generation->as.u64);
    if (content != NULL && offset->as.u64 >= content->first_offset) {
        content->count++;
        content->sum += lahar_record_hash(target, event);
    }
}

static lahar_status count_stream(struct verification *verification, uint32_t stream,
                                 lahar_error *error)
{
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_scan_options_init(&options);
    options.stream = stream;
    LAHAR_TRY(lahar_scan(verification->store, &options, &cursor, error));
    lahar_error cause = {0};
    lahar_status status = lahar_cursor_next(cursor, &event, &cause);
    for (; status == LAHAR_OK; status = lahar_cursor_next(cursor, &event, &cause)) {
        count_event(verification, event);
    }
    lahar_cursor_close(cursor);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : lahar_fail(error, status, "%s", cause.message);
}

static lahar_status count_stored(struct verification *verification, lahar_error *error)
{
    const struct lahar_follow_source *source = verification->source;
    const struct lahar_sink_target *target = &source->target;
    if (target->columns[LAHAR_COLUMN_GENERATION] == UINT32_MAX) {
        return lahar_fail(error, LAHAR_UNSUPPORTED,
                          "stream %s has no field _generation to compare by", source->spec.stream);
    }
    verification->contents = lahar_allocate_zeroed(
        verification->follow->allocator, source->files.count + 1, sizeof *verification->contents);
    if (verification->contents == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to verify a source");
    }
    for (size_t i = 0; i < source->files.count; i++) {
        const struct lahar_file_cursor *cursor = &source->files.files[i]->cursor;
        verification->contents[i] = (struct stored_content){.generation = cursor->generation,
                                                            .first_offset = cursor->first_offset};
    }
    verification->content_count = source->files.count;
    qsort(verification->contents, verification->content_count, sizeof *verification->contents,
          compare_generations);
    LAHAR_TRY(count_stream(verification, target->stream, error));
    if (target->mode == LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE) {
        LAHAR_TRY(count_stream(verification, target->dead_letter, error));
    }
    return LAHAR_OK;
}

/* --- the file's side ------------------------------------------------------------------------ */

static void report(struct verification *verification, const struct lahar_followed_file *file,
                   const char *message)
{
    verification->check.difference_count++;
    if (verification->on_difference != NULL) {
        verification->on_difference(verification->context, file->path, message);
    }
}

/* Reads from the file's first offset to its present one into the worker's sums. */
static lahar_status read_again(struct verification *verification, struct lahar_followed_file *file,
                               enum lahar_poll_result *result_out, lahar_error *error)
{
    struct lahar_follow_worker *worker = verification->follow->workers[0];
    struct lahar_record_sink *sink = &worker->sink;
    const struct lahar_file_cursor reached = file->cursor;
    struct lahar_file_cursor *cursor = &file->cursor;
    struct lahar_file_poll *poll = &worker->polls[0];
    const uint32_t kept = LAHAR_CURSOR_GZIP;
    cursor->offset = reached.first_offset;
    cursor->line = reached.first_line;
    cursor->flags &= kept;
    cursor->text_flags = 0;
    cursor->print = (struct lahar_fingerprint){0};
    if (cursor->offset == 0) {
        cursor->encoding = LAHAR_ENCODING_UNKNOWN;
    }
    worker->end_offset = reached.offset;
    sink->kind = LAHAR_SINK_CHECK;
    sink->check_count = 0;
    sink->check_sum = 0;
    lahar_status status = LAHAR_OK;
    do {
        *poll = (struct lahar_file_poll){.file = file};
        sink->target = &verification->source->target;
        sink->path = file->path;
        sink->generation = cursor->generation;
        sink->records_left = UINT64_MAX;
        sink->is_full = false;
        sink->is_stopped = false;
        status = lahar_file_poll(worker, verification->source, poll, error);
        *result_out = poll->result;
        if (poll->next.offset == cursor->offset && poll->result == LAHAR_POLL_MORE) {
            *result_out = LAHAR_POLL_DRAINED;
        }
        *cursor = poll->next;
    } while (status == LAHAR_OK && *result_out == LAHAR_POLL_MORE &&
             cursor->offset < reached.offset);
    const uint64_t stopped_at = cursor->offset;
    *cursor = reached;
    if (status == LAHAR_OK && stopped_at < reached.offset && *result_out != LAHAR_POLL_MISSING &&
        *result_out != LAHAR_POLL_BLOCKED) {
        *result_out = LAHAR_POLL_CHANGED;
    }
    return status;
}

static lahar_status compare_file(struct verification *verification,
                                 struct lahar_followed_file *file, lahar_error *error)
{
    const struct lahar_record_sink *sink = &verification->follow->workers[0]->sink;
    const struct stored_content *content = find_content(verification, file->cursor.generation);
    enum lahar_poll_result result = LAHAR_POLL_DRAINED;
    char message[160];
    if (file->cursor.offset == file->cursor.first_offset) {
        verification->check.file_count++;
        return LAHAR_OK;
    }
    LAHAR_TRY(read_again(verification, file, &result, error));
    if (result == LAHAR_POLL_MISSING || result == LAHAR_POLL_BLOCKED) {
        verification->check.missing_count++;
        return LAHAR_OK;
    }
    verification->check.file_count++;
    verification->check.record_count += sink->check_count;
    if (result == LAHAR_POLL_CHANGED) {
        report(verification, file, "the file is not what was followed any more");
    } else if (sink->check_count != content->count) {
        (void)snprintf(message, sizeof message,
                       "the file has %" PRIu64 " records, the store %" PRIu64, sink->check_count,
                       content->count);
        report(verification, file, message);
    } else if (sink->check_sum != content->sum) {
        report(verification, file, "records of the file differ from the store's");
    }
    lahar_followed_file_close(verification->source, file);
    return LAHAR_OK;
}

lahar_status lahar_source_verify(lahar_store *store, const char *name,
                                 void (*on_difference)(void *context, const char *path,
                                                       const char *message),
                                 void *context, lahar_source_check *check_out, lahar_error *error)
{
    const lahar_follow_options options = {
        .struct_size = sizeof options, .sources = &name, .source_count = 1};
    struct verification verification = {
        .store = store, .on_difference = on_difference, .context = context};
    LAHAR_TRY(lahar_follow_open_dry(store, &options, &verification.follow, error));
    verification.source = verification.follow->sources[0];
    /* Records were passed over as following does it, also by default. */
    verification.source->target.fails_by_default = false;
    lahar_status status = count_stored(&verification, error);
    for (size_t i = 0; i < verification.source->files.count && status == LAHAR_OK; i++) {
        struct lahar_followed_file *file = verification.source->files.files[i];
        if ((file->cursor.flags & (LAHAR_CURSOR_CLOSED | LAHAR_CURSOR_COPY)) == 0) {
            status = compare_file(&verification, file, error);
        }
    }
    lahar_release(verification.follow->allocator, verification.contents);
    lahar_follow_close(verification.follow);
    verification.check.struct_size = check_out->struct_size < sizeof verification.check
                                         ? check_out->struct_size
                                         : sizeof verification.check;
    memcpy(check_out, &verification.check, verification.check.struct_size);
    return status;
}
