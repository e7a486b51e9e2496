/* Ingest: the text reader's events go into a batch, full batches into the store.
 *
 * The first failure of the store is kept and returned by every later call: what was
 * staged then is not appended, so that a caller never takes a hole for success. */
#include "engine/format/ingest.h"

#include <string.h>
#include <time.h>

#include "engine/format/columns.h"
#include "engine/format/text_reader.h"
#include "io/base/error.h"
#include "io/io.h"

struct lahar_ingest {
    const lahar_allocator *allocator;
    lahar_store *store;
    struct lahar_text_reader *reader;
    lahar_batch *batch;
    lahar_ingest_options options;
    lahar_ingest_result result;
    lahar_status failure;
    struct lahar_columns columns;
};

enum {
    SPACE_RETRY_NS = 100 * 1000 * 1000
};

static const size_t batch_event_count_default = 1000;
static const size_t batch_size_default = 1024 * 1024;
static const size_t record_size_max_default = 64 * 1024 * 1024;

void lahar_ingest_options_init(lahar_ingest_options *options)
{
    *options = (lahar_ingest_options){
        .struct_size = sizeof *options,
        .format = LAHAR_FORMAT_LINE,
        .batch_event_count = batch_event_count_default,
        .batch_size_bytes = batch_size_default,
        .record_size_max = record_size_max_default,
    };
}

/* Commits the batch; while the disk is full, again and again for as long as the options say. */
static lahar_status commit_with_patience(lahar_ingest *ingest, const lahar_append_options *options,
                                         size_t count, uint64_t *first_id_out, lahar_error *error)
{
    const struct timespec pause = {0, SPACE_RETRY_NS};
    for (uint64_t waited_ns = 0;; waited_ns += SPACE_RETRY_NS) {
        lahar_error cause = {0};
        const lahar_status status =
            *first_id_out == 0 ? lahar_batch_commit(ingest->batch, options, first_id_out, &cause)
                               : lahar_durable_wait(ingest->store, *first_id_out + count - 1,
                                                    options->deadline_ns, &cause);
        if (status != LAHAR_NO_SPACE || (*first_id_out != 0 && ingest->store == NULL) ||
            waited_ns >= ingest->options.space_wait_ns) {
            if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
                *error = cause;
            }
            return status;
        }
        (void)nanosleep(&pause, NULL);
    }
}

static lahar_status commit(lahar_ingest *ingest, lahar_error *error)
{
    const size_t count = lahar_batch_event_count(ingest->batch);
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .durability = ingest->options.durability,
                                          .deadline_ns = LAHAR_WAIT_FOREVER};
    uint64_t first_id = 0;
    if (count == 0) {
        return LAHAR_OK;
    }
    LAHAR_TRY(commit_with_patience(ingest, &options, count, &first_id, error));
    if (ingest->result.event_count == 0) {
        ingest->result.first_id = first_id;
    }
    ingest->result.event_count += count;
    ingest->result.last_id = first_id + count - 1;
    return LAHAR_OK;
}

static void report_too_big(lahar_ingest *ingest, uint64_t offset, const char *message)
{
    ingest->result.error_count++;
    if (ingest->options.on_error != NULL) {
        ingest->options.on_error(ingest->options.on_error_context,
                                 lahar_text_reader_line(ingest->reader), offset, message);
    }
}

/* An event that does not fit is tried again in an empty batch; one that is too big by
 * itself is passed over like a record that cannot be parsed. */
static lahar_status emit(void *context, const lahar_event *event, uint64_t offset,
                         lahar_error *error)
{
    lahar_ingest *ingest = context;
    lahar_error refused = {0};
    lahar_status status = lahar_batch_add(ingest->batch, event, &refused);
    if (status == LAHAR_TOO_BIG && lahar_batch_event_count(ingest->batch) != 0) {
        LAHAR_TRY(commit(ingest, error));
        lahar_error_clear(&refused);
        status = lahar_batch_add(ingest->batch, event, &refused);
    }
    if (status == LAHAR_TOO_BIG) {
        report_too_big(ingest, offset, refused.message);
        return LAHAR_OK;
    }
    if (status != LAHAR_OK) {
        return lahar_fail(error, status, "%s", refused.message);
    }
    if (lahar_batch_event_count(ingest->batch) >= ingest->options.batch_event_count ||
        lahar_batch_size(ingest->batch) >= ingest->options.batch_size_bytes) {
        return commit(ingest, error);
    }
    return LAHAR_OK;
}

static lahar_status create_reader(lahar_ingest *ingest, const struct lahar_schema_catalog *catalog,
                                  struct lahar_io *io, lahar_error *error)
{
    const lahar_ingest_options *options = &ingest->options;
    const struct lahar_text_reader_options reader_options = {
        .allocator = ingest->allocator,
        .catalog = catalog,
        .stream = options->stream,
        .format = options->format,
        .filename = options->filename,
        .time_field = options->time_field,
        .time_format = options->time_format,
        .time_zone = options->time_zone,
        .year = options->year,
        .regexp = options->regexp,
        .skip_unmatched = options->skip_unmatched,
        .settings = &options->format_settings,
        .columns = &ingest->columns,
        .reference_ns = io->ops->realtime_ns(io),
        .io = io,
        .keep_raw = options->keep_raw,
        .errors_as_events = options->errors_as_events,
        .allow_ragged = options->allow_ragged,
        .record_size_max = options->record_size_max,
        .emit = emit,
        .emit_context = ingest,
        .on_error = options->on_error,
        .on_error_context = options->on_error_context,
    };
    return lahar_text_reader_create(&reader_options, &ingest->reader, error);
}

/* The caller may have been compiled against an older, shorter structure. */
static void take_options(lahar_ingest_options *own, const lahar_ingest_options *options)
{
    lahar_ingest_options_init(own);
    const size_t size = options->struct_size < sizeof *own ? options->struct_size : sizeof *own;
    memcpy(own, options, size);
    own->struct_size = sizeof *own;
    if (own->batch_event_count == 0) {
        own->batch_event_count = batch_event_count_default;
    }
    if (own->batch_size_bytes == 0) {
        own->batch_size_bytes = batch_size_default;
    }
    if (own->record_size_max == 0) {
        own->record_size_max = record_size_max_default;
    }
}

void lahar_ingest_set_store(lahar_ingest *ingest, lahar_store *store)
{
    ingest->store = store;
}

lahar_status lahar_ingest_create(const lahar_allocator *allocator,
                                 const struct lahar_schema_catalog *catalog, lahar_batch *batch,
                                 const lahar_ingest_options *options, struct lahar_columns *columns,
                                 struct lahar_io *io, lahar_ingest **ingest_out, lahar_error *error)
{
    lahar_ingest *ingest = lahar_allocate_zeroed(allocator, 1, sizeof *ingest);
    if (ingest == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an ingest");
    }
    ingest->allocator = allocator;
    take_options(&ingest->options, options);
    if (columns != NULL) {
        ingest->columns = *columns;
    }
    const lahar_status status = create_reader(ingest, catalog, io, error);
    if (status != LAHAR_OK) {
        lahar_release(allocator, ingest);
        return status;
    }
    if (columns != NULL) {
        *columns = (struct lahar_columns){0};
    }
    ingest->batch = batch;
    *ingest_out = ingest;
    return LAHAR_OK;
}

/* The status of the reading, with a failure kept for later calls. */
static lahar_status settle(lahar_ingest *ingest, lahar_status status)
{
    ingest->failure = status;
    return status;
}

static lahar_status refuse_again(const lahar_ingest *ingest, lahar_error *error)
{
    return lahar_fail(error, ingest->failure, "ingest has failed before: %s",
                      lahar_status_name(ingest->failure));
}

lahar_status lahar_ingest_write(lahar_ingest *ingest, const void *data, size_t size,
                                lahar_error *error)
{
    if (ingest->failure != LAHAR_OK) {
        return refuse_again(ingest, error);
    }
    ingest->result.byte_count += size;
    return settle(ingest, lahar_text_reader_write(ingest->reader, data, size, error));
}

lahar_status lahar_ingest_flush(lahar_ingest *ingest, lahar_error *error)
{
    if (ingest->failure != LAHAR_OK) {
        return refuse_again(ingest, error);
    }
    return settle(ingest, commit(ingest, error));
}

static void give_result(const lahar_ingest *ingest, lahar_ingest_result *result_out)
{
    lahar_ingest_result result = ingest->result;
    result.error_count += lahar_text_reader_error_count(ingest->reader);
    result.struct_size =
        result_out->struct_size < sizeof result ? result_out->struct_size : sizeof result;
    memcpy(result_out, &result, result.struct_size);
}

lahar_status lahar_ingest_finish(lahar_ingest *ingest, lahar_ingest_result *result_out,
                                 lahar_error *error)
{
    lahar_status status = ingest->failure;
    if (status != LAHAR_OK) {
        status = refuse_again(ingest, error);
    } else {
        status = lahar_text_reader_finish(ingest->reader, error);
        if (status == LAHAR_OK) {
            status = commit(ingest, error);
        }
        (void)settle(ingest, status);
    }
    if (result_out != NULL) {
        give_result(ingest, result_out);
    }
    return status;
}

void lahar_ingest_close(lahar_ingest *ingest)
{
    if (ingest == NULL) {
        return;
    }
    lahar_text_reader_destroy(ingest->reader);
    lahar_columns_deinit(&ingest->columns);
    lahar_batch_destroy(ingest->batch);
    lahar_release(ingest->allocator, ingest);
}
