/* Importing event files of NiFi.
 *
 * A file is a head (name and version of its writer, two schemas, a record of names) and records,
 * each behind its id and its size. A record that cannot be read is passed over by its size and
 * reported; one that the end of the file cuts off, which is what a crash of NiFi leaves, is
 * reported and ends the file. Nothing in a file can be checked against a checksum, so a record
 * counts as good when its values fill it exactly. Compressed files are gzip members one behind the
 * other. */
#include <stdlib.h>
#include <string.h>

#include "engine/follow/gzip_stream.h"
#include "engine/provenance/handle.h"
#include "engine/provenance/nifi_event.h"
#include "io/base/error.h"
#include "io/source_file.h"

enum {
    READ_SIZE = 256 * 1024,
    RECORD_FRAME_SIZE = 8,                /* id and size */
    RECORD_SIZE_MAX = 16 * 1024 * 1024,   /* NiFi cuts attributes at 64 KiB */
    HEAD_PART_SIZE_MAX = 4 * 1024 * 1024, /* of a schema */
    BATCH_EVENTS = 500,
    BATCH_BYTES = 1024 * 1024,
    WRITER_VERSION = 1
};

/* A file, unpacked, read once from front to back. */
struct file {
    int descriptor;
    struct lahar_gzip_stream *gzip; /* NULL: not compressed */
    const lahar_allocator *allocator;
    uint8_t *data; /* owned */
    size_t capacity;
    size_t start;    /* in data, of the next byte to be read */
    size_t size;     /* bytes from there on */
    uint64_t offset; /* of that byte in the file */
    bool is_at_end;
};

struct import {
    struct lahar_provenance *provenance;
    const lahar_prov_import_options *options;
    lahar_prov_import_result *result;
    struct file file;
    struct lahar_arena head_arena; /* of what lives as long as the file */
    struct lahar_arena arena;      /* of a record */
    struct lahar_arena scratch;
    struct lahar_nifi_field schema;
    struct lahar_nifi_head head;
    lahar_batch *batch;
    size_t batch_events;
    size_t batch_bytes;
};

void lahar_prov_import_options_init(lahar_prov_import_options *options)
{
    *options = (lahar_prov_import_options){.struct_size = sizeof *options};
}

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to import events");
}

/* --- the file ------------------------------------------------------------------------------- */

static lahar_status open_file(struct file *file, const char *path, lahar_error *error)
{
    struct lahar_source_root root;
    struct lahar_source_stat stat;
    uint8_t magic[2];
    size_t read = 0;
    LAHAR_TRY(lahar_source_root_open("/", &root, error));
    lahar_status status = lahar_source_open(&root, path, &file->descriptor, &stat, error);
    lahar_source_root_close(&root);
    if (status != LAHAR_OK) {
        file->descriptor = -1;
        return status;
    }
    if (stat.kind != LAHAR_SOURCE_REGULAR) {
        return lahar_fail(error, LAHAR_INVALID, "%s is not a file", path);
    }
    LAHAR_TRY(lahar_source_read(file->descriptor, 0, magic, sizeof magic, &read, error));
    return lahar_is_gzip(magic, read)
               ? lahar_gzip_stream_create(file->allocator, &file->gzip, error)
               : LAHAR_OK;
}

static void close_file(struct file *file)
{
    lahar_gzip_stream_destroy(file->gzip);
    lahar_release(file->allocator, file->data);
    lahar_source_close(file->descriptor);
}

/* Makes size bytes from the place of reading on be there, or all that are left. */
static lahar_status need(struct file *file, size_t size, lahar_error *error)
{
    if (file->size >= size || file->is_at_end) {
        return LAHAR_OK;
    }
    const size_t wanted = size > READ_SIZE ? size : (size_t)READ_SIZE;
    if (file->size != 0) {
        memmove(file->data, file->data + file->start, file->size);
    }
    file->start = 0;
    if (file->capacity < wanted) {
        uint8_t *grown = lahar_reallocate(file->allocator, file->data, wanted);
        if (grown == NULL) {
            return no_memory(error);
        }
        file->data = grown;
        file->capacity = wanted;
    }
    size_t read = 0;
    uint8_t *to = file->data + file->size;
    const size_t room = file->capacity - file->size;
    const uint64_t at = file->offset + file->size;
    const lahar_status status =
        file->gzip == NULL
            ? lahar_source_read(file->descriptor, at, to, room, &read, error)
            : lahar_gzip_stream_read(file->gzip, file->descriptor, at, to, room, &read, error);
    file->size += read;
    file->is_at_end = read < room;
    /* What was unpacked before the damage is good; the end that it makes is reported there. */
    return status == LAHAR_CORRUPT ? LAHAR_OK : status;
}

static const uint8_t *bytes_of(const struct file *file)
{
    return file->data + file->start;
}

static void pass(struct file *file, size_t size)
{
    file->start += size;
    file->size -= size;
    file->offset += size;
}

/* Whether the end that was met is the file's, not that of what could be unpacked. */
static bool is_whole(const struct file *file)
{
    return file->gzip == NULL || lahar_gzip_stream_is_complete(file->gzip);
}

/* --- the head ------------------------------------------------------------------------------- */

static lahar_status short_head(const struct import *import, lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT,
                      "the head of the file is damaged or cut off at byte %llu",
                      (unsigned long long)(import->file.offset + import->file.size));
}

/* A copy of size bytes that lives as long as the file. */
static lahar_status take_bytes(struct import *import, size_t size, struct lahar_reader *reader_out,
                               lahar_error *error)
{
    LAHAR_TRY(need(&import->file, size, error));
    if (import->file.size < size) {
        return short_head(import, error);
    }
    const void *copy = lahar_arena_copy(&import->head_arena, bytes_of(&import->file), size);
    if (copy == NULL && size != 0) {
        return no_memory(error);
    }
    *reader_out = lahar_reader_of(copy, size);
    pass(&import->file, size);
    return LAHAR_OK;
}

static lahar_status check_writer(struct import *import, lahar_error *error)
{
    struct lahar_reader reader;
    LAHAR_TRY(take_bytes(import, 2, &reader, error));
    const size_t size = __builtin_bswap16(lahar_read_u16(&reader));
    LAHAR_TRY(take_bytes(import, size, &reader, error));
    const uint8_t *name = lahar_read_bytes(&reader, size);
    static const char expected[] = "EventIdFirstSchemaRecordWriter";
    if (size != sizeof expected - 1 || memcmp(name, expected, size) != 0) {
        return lahar_fail(error, LAHAR_UNSUPPORTED,
                          "not an event file of NiFi's write-ahead repository");
    }
    LAHAR_TRY(take_bytes(import, 4, &reader, error));
    const uint32_t version = __builtin_bswap32(lahar_read_u32(&reader));
    return version == WRITER_VERSION
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_UNSUPPORTED, "an event file of version %u", version);
}

static lahar_status take_schema(struct import *import, struct lahar_nifi_field *schema,
                                lahar_error *error)
{
    struct lahar_reader reader;
    LAHAR_TRY(take_bytes(import, 4, &reader, error));
    const uint32_t size = __builtin_bswap32(lahar_read_u32(&reader));
    if (size > HEAD_PART_SIZE_MAX) {
        return short_head(import, error);
    }
    LAHAR_TRY(take_bytes(import, size, &reader, error));
    return lahar_nifi_read_schema(&reader, &import->head_arena, schema, error);
}

/* The record of names has no size: it is read from ever more bytes until it fits in. */
static lahar_status take_names(struct import *import, const struct lahar_nifi_field *schema,
                               lahar_error *error)
{
    struct lahar_nifi_value *record = lahar_arena_allocate(&import->head_arena, sizeof *record);
    if (record == NULL) {
        return no_memory(error);
    }
    for (size_t size = READ_SIZE; size <= RECORD_SIZE_MAX; size *= 2) {
        LAHAR_TRY(need(&import->file, size, error));
        const size_t there = import->file.size < size ? import->file.size : size;
        const void *copy = lahar_arena_copy(&import->head_arena, bytes_of(&import->file), there);
        if (copy == NULL && there != 0) {
            return no_memory(error);
        }
        struct lahar_reader reader = lahar_reader_of(copy, there);
        const lahar_status status =
            lahar_nifi_read_prefix(&reader, schema, &import->head_arena, record, NULL);
        if (status == LAHAR_OK) {
            pass(&import->file, there - lahar_reader_left(&reader));
            return lahar_nifi_head_of(record, &import->head, error);
        }
        if (status != LAHAR_CORRUPT) {
            return no_memory(error);
        }
        if (there < size) {
            break;
        }
    }
    return short_head(import, error);
}

static lahar_status take_head(struct import *import, lahar_error *error)
{
    struct lahar_nifi_field names_schema;
    LAHAR_TRY(check_writer(import, error));
    LAHAR_TRY(take_schema(import, &import->schema, error));
    LAHAR_TRY(take_schema(import, &names_schema, error));
    return take_names(import, &names_schema, error);
}

/* --- records -------------------------------------------------------------------------------- */

static void report(struct import *import, const char *message)
{
    import->result->error_count++;
    if (import->options->on_error != NULL) {
        import->options->on_error(import->options->context, import->file.offset, message);
    }
}

static lahar_status commit(struct import *import, lahar_error *error)
{
    lahar_prov_import_result *result = import->result;
    uint64_t first_id = 0;
    if (import->batch_events == 0) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_batch_commit(import->batch, NULL, &first_id, error));
    result->event_count += import->batch_events;
    result->first_id = result->first_id == 0 ? first_id : result->first_id;
    result->last_id = first_id + import->batch_events - 1;
    import->batch_events = 0;
    import->batch_bytes = 0;
    return LAHAR_OK;
}

/* Adds the event of a record to the batch; what is wrong with the record alone is reported. */
static lahar_status take_record(struct import *import, uint32_t id_difference, size_t size,
                                lahar_error *error)
{
    struct lahar_reader reader = lahar_reader_of(bytes_of(&import->file) + RECORD_FRAME_SIZE, size);
    struct lahar_nifi_value record;
    lahar_prov_event event;
    lahar_error reason = {.status = LAHAR_OK};
    lahar_arena_reset(&import->arena);
    lahar_arena_reset(&import->scratch);
    lahar_status status =
        lahar_nifi_read_record(&reader, &import->schema, &import->arena, &record, &reason);
    if (status == LAHAR_OK) {
        status = lahar_nifi_event_of(&record, &import->head, &import->arena, &event, &reason);
    }
    if (status == LAHAR_OK) {
        status =
            lahar_prov_stage(import->provenance, import->batch, &event, &import->scratch, &reason);
    }
    if (status == LAHAR_OK) {
        import->batch_events++;
        import->batch_bytes += size;
        return LAHAR_OK;
    }
    if (status != LAHAR_CORRUPT && status != LAHAR_INVALID && status != LAHAR_TOO_BIG) {
        return lahar_fail(error, status, "%s", reason.message);
    }
    lahar_error_context(&reason, "event %lld",
                        (long long)((uint64_t)import->head.first_id + id_difference));
    report(import, reason.message);
    return LAHAR_OK;
}

/* Whether the next record is there; *is_over_out: the file ends in front of it or inside. */
static lahar_status meet_record(struct import *import, uint32_t *id_difference_out,
                                size_t *size_out, bool *is_over_out, lahar_error *error)
{
    struct file *file = &import->file;
    *is_over_out = true;
    LAHAR_TRY(need(file, RECORD_FRAME_SIZE, error));
    if (file->size < RECORD_FRAME_SIZE) {
        if (file->size != 0 || !is_whole(file)) {
            report(import, file->size != 0 ? "the last record is cut off"
                                           : "the compressed data end early");
        }
        return LAHAR_OK;
    }
    struct lahar_reader reader = lahar_reader_of(bytes_of(file), RECORD_FRAME_SIZE);
    *id_difference_out = __builtin_bswap32(lahar_read_u32(&reader));
    *size_out = __builtin_bswap32(lahar_read_u32(&reader));
    if (*size_out > RECORD_SIZE_MAX) {
        report(import, "the size of a record is damaged; what follows it is lost");
        return LAHAR_OK;
    }
    LAHAR_TRY(need(file, RECORD_FRAME_SIZE + *size_out, error));
    if (file->size < RECORD_FRAME_SIZE + *size_out) {
        report(import, "the last record is cut off");
        return LAHAR_OK;
    }
    *is_over_out = false;
    return LAHAR_OK;
}

static bool is_cancelled(const struct import *import)
{
    return import->options->is_cancelled != NULL &&
           import->options->is_cancelled(import->options->context);
}

static lahar_status take_records(struct import *import, lahar_error *error)
{
    for (;;) {
        uint32_t id_difference = 0;
        size_t size = 0;
        bool is_over = false;
        LAHAR_TRY(meet_record(import, &id_difference, &size, &is_over, error));
        if (is_over) {
            return commit(import, error);
        }
        LAHAR_TRY(take_record(import, id_difference, size, error));
        pass(&import->file, RECORD_FRAME_SIZE + size);
        if (import->batch_events >= BATCH_EVENTS || import->batch_bytes >= BATCH_BYTES) {
            LAHAR_TRY(commit(import, error));
            if (is_cancelled(import)) {
                return lahar_fail(error, LAHAR_CANCELLED, "the import was cancelled");
            }
        }
    }
}

/* Whether there is not a single byte. */
static lahar_status find_empty(struct import *import, bool *is_empty_out, lahar_error *error)
{
    LAHAR_TRY(need(&import->file, 1, error));
    *is_empty_out = import->file.size == 0;
    return LAHAR_OK;
}

static lahar_status run(struct import *import, const char *path, lahar_error *error)
{
    bool is_empty = false;
    LAHAR_TRY(open_file(&import->file, path, error));
    LAHAR_TRY(find_empty(import, &is_empty, error));
    if (is_empty) {
        return LAHAR_OK;
    }
    LAHAR_TRY(take_head(import, error));
    LAHAR_TRY(lahar_batch_create(import->provenance->store, &import->batch, error));
    return take_records(import, error);
}

lahar_status lahar_prov_import_file(lahar_provenance *provenance, const char *path,
                                    const lahar_prov_import_options *options,
                                    lahar_prov_import_result *result_out, lahar_error *error)
{
    lahar_prov_import_options defaults;
    const lahar_allocator *allocator = provenance->allocator;
    lahar_prov_import_options_init(&defaults);
    struct import import = {.provenance = provenance,
                            .options = options == NULL ? &defaults : options,
                            .result = result_out,
                            .file = {.descriptor = -1, .allocator = allocator}};
    *result_out = (lahar_prov_import_result){.struct_size = result_out->struct_size};
    lahar_arena_init(&import.head_arena, allocator, 0);
    lahar_arena_init(&import.arena, allocator, 0);
    lahar_arena_init(&import.scratch, allocator, 4096);
    const lahar_status status = run(&import, path, error);
    lahar_batch_destroy(import.batch);
    lahar_arena_deinit(&import.scratch);
    lahar_arena_deinit(&import.arena);
    lahar_arena_deinit(&import.head_arena);
    close_file(&import.file);
    return status;
}
