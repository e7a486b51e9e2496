#include "engine/provenance/content.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/base/buffer.h"
#include "io/base/error.h"

enum {
    COPY_SIZE = 256 * 1024 /* bytes read at a time */
};

const char *lahar_refusal_name(lahar_refusal refusal)
{
    static const char *const names[] = {
        [LAHAR_REFUSAL_NONE] = "none",
        [LAHAR_REFUSAL_JOIN] = "join",
        [LAHAR_REFUSAL_NO_CLAIM] = "no claim",
        [LAHAR_REFUSAL_PARTIAL_CLAIM] = "partial claim",
        [LAHAR_REFUSAL_BAD_CLAIM] = "bad claim",
        [LAHAR_REFUSAL_UNKNOWN_CONTAINER] = "unknown container",
        [LAHAR_REFUSAL_DELETED] = "deleted",
        [LAHAR_REFUSAL_ARCHIVED] = "archived",
        [LAHAR_REFUSAL_TRUNCATED] = "truncated",
        [LAHAR_REFUSAL_NO_QUEUE] = "no queue",
        [LAHAR_REFUSAL_QUEUE_GONE] = "queue gone",
    };
    const size_t index = (size_t)refusal;
    return index < sizeof names / sizeof names[0] ? names[index] : "unknown";
}

lahar_status lahar_refuse(lahar_refusal refusal, lahar_refusal *refusal_out, lahar_error *error,
                          const char *format, ...)
{
    char message[LAHAR_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    *refusal_out = refusal;
    return lahar_fail(error, LAHAR_NOT_FOUND, "%s", message);
}

/* At most so much of a string from an event is shown in a message. */
#define SHOWN(bytes) (int)((bytes).size < 100 ? (bytes).size : 100), (const char *)(bytes).data

static lahar_status check_claim(const lahar_claim *claim, lahar_refusal *refusal_out,
                                lahar_error *error)
{
    const char *missing = claim->container.data == NULL ? "container"
                          : claim->section.data == NULL ? "section"
                          : claim->id.data == NULL      ? "id"
                          : !claim->has_offset          ? "offset"
                          : !claim->has_size            ? "size"
                                                        : NULL;
    if (claim->container.data == NULL && claim->section.data == NULL && claim->id.data == NULL) {
        return lahar_refuse(LAHAR_REFUSAL_NO_CLAIM, refusal_out, error,
                            "the event names no content claim");
    }
    return missing == NULL ? LAHAR_OK
                           : lahar_refuse(LAHAR_REFUSAL_PARTIAL_CLAIM, refusal_out, error,
                                          "the content claim has no %s", missing);
}

/* Names in events come from elsewhere: one that would lead out of its directory is no name. */
static bool is_plain_name(lahar_bytes name)
{
    return name.size != 0 && name.size <= LAHAR_NAME_SIZE_MAX &&
           memchr(name.data, '/', name.size) == NULL &&
           memchr(name.data, '\0', name.size) == NULL &&
           !(name.size == 1 && memcmp(name.data, ".", 1) == 0) &&
           !(name.size == 2 && memcmp(name.data, "..", 2) == 0);
}

static const char *find_container(const struct lahar_provenance *provenance, lahar_bytes name)
{
    for (size_t i = 0; i < provenance->container_count; i++) {
        const char *known = provenance->containers[i].name;
        if (lahar_bytes_equal((lahar_bytes){known, strlen(known)}, name)) {
            return provenance->containers[i].directory;
        }
    }
    return NULL;
}

static void put_path(struct lahar_buffer *path, const char *directory, const lahar_claim *claim,
                     const char *between)
{
    lahar_buffer_clear(path);
    lahar_buffer_put(path, directory, strlen(directory));
    lahar_buffer_put_u8(path, '/');
    lahar_buffer_put(path, claim->section.data, claim->section.size);
    lahar_buffer_put(path, between, strlen(between));
    lahar_buffer_put(path, claim->id.data, claim->id.size);
    lahar_buffer_put_u8(path, '\0');
}

/* The file is not in its place. */
static lahar_status refuse_absent(struct lahar_content *content, const char *directory,
                                  struct lahar_buffer *path, lahar_refusal *refusal_out,
                                  lahar_error *error)
{
    struct lahar_io *io = content->provenance->io;
    const lahar_claim *claim = &content->claim;
    struct lahar_io_file *file = NULL;
    put_path(path, directory, claim, "/archive/");
    if (!path->has_failed &&
        io->ops->open(io, (const char *)path->data, LAHAR_IO_READ, &file, NULL) == LAHAR_OK) {
        io->ops->close(io, file);
        return lahar_refuse(LAHAR_REFUSAL_ARCHIVED, refusal_out, error,
                            "the content is no longer in place, but archived in %s",
                            (const char *)path->data);
    }
    return lahar_refuse(LAHAR_REFUSAL_DELETED, refusal_out, error,
                        "the content has been deleted: section %.*s of %s has no %.*s",
                        SHOWN(claim->section), directory, SHOWN(claim->id));
}

static lahar_status open_file(struct lahar_content *content, const char *directory,
                              lahar_refusal *refusal_out, lahar_error *error)
{
    struct lahar_io *io = content->provenance->io;
    const lahar_claim *claim = &content->claim;
    struct lahar_buffer path;
    lahar_error reason = {.status = LAHAR_OK};
    uint64_t file_size = 0;
    lahar_buffer_init(&path, content->provenance->allocator);
    put_path(&path, directory, claim, "/");
    lahar_status status = LAHAR_OK;
    if (path.has_failed) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a path");
        goto cleanup;
    }
    status = io->ops->open(io, (const char *)path.data, LAHAR_IO_READ, &content->file, &reason);
    if (status == LAHAR_NOT_FOUND) {
        status = refuse_absent(content, directory, &path, refusal_out, error);
        goto cleanup;
    }
    if (status == LAHAR_OK) {
        status = io->ops->size(io, content->file, &file_size, &reason);
    }
    if (status != LAHAR_OK) {
        status = lahar_fail(error, status, "%s", reason.message);
    } else if (file_size < claim->offset || file_size - claim->offset < claim->size) {
        status = lahar_refuse(LAHAR_REFUSAL_TRUNCATED, refusal_out, error,
                              "the content is truncated: %s has %llu bytes, the claim reaches to "
                              "byte %llu",
                              (const char *)path.data, (unsigned long long)file_size,
                              (unsigned long long)(claim->offset + claim->size));
    }
cleanup:
    lahar_buffer_deinit(&path);
    return status;
}

static lahar_status ask_host(struct lahar_content *content, lahar_refusal *refusal_out,
                             lahar_error *error)
{
    const lahar_content_store *store = &content->provenance->content;
    const lahar_refusal refusal =
        store->check == NULL ? LAHAR_REFUSAL_NONE : store->check(store->context, &content->claim);
    return refusal == LAHAR_REFUSAL_NONE
               ? LAHAR_OK
               : lahar_refuse(refusal, refusal_out, error, "the content store says: %s",
                              lahar_refusal_name(refusal));
}

lahar_status lahar_content_open(struct lahar_provenance *provenance, const lahar_claim *claim,
                                bool has_size, uint64_t size, struct lahar_content *content_out,
                                lahar_refusal *refusal_out, lahar_error *error)
{
    *content_out = (struct lahar_content){.provenance = provenance, .claim = *claim};
    lahar_claim *own = &content_out->claim;
    if (!own->has_size) {
        own->has_size = has_size;
        own->size = size;
    }
    if (own->container.data == NULL && own->section.data == NULL && own->id.data == NULL &&
        own->has_size && own->size == 0) {
        return LAHAR_OK;
    }
    LAHAR_TRY(check_claim(own, refusal_out, error));
    if (provenance->has_content_store) {
        return ask_host(content_out, refusal_out, error);
    }
    if (!is_plain_name(own->section) || !is_plain_name(own->id)) {
        return lahar_refuse(LAHAR_REFUSAL_BAD_CLAIM, refusal_out, error,
                            "the content claim's section or id is not a plain file name");
    }
    const char *directory = find_container(provenance, own->container);
    if (directory == NULL) {
        return lahar_refuse(LAHAR_REFUSAL_UNKNOWN_CONTAINER, refusal_out, error,
                            "no directory is known for container \"%.*s\"", SHOWN(own->container));
    }
    const lahar_status status = open_file(content_out, directory, refusal_out, error);
    if (status != LAHAR_OK) {
        lahar_content_close(content_out);
    }
    return status;
}

/* Up to size bytes at a place of the claimed bytes. */
static lahar_status read_some(struct lahar_content *content, uint64_t at, void *data, size_t size,
                              size_t *read_out, lahar_error *error)
{
    struct lahar_io *io = content->provenance->io;
    const lahar_content_store *store = &content->provenance->content;
    *read_out = 0;
    if (content->file != NULL) {
        return io->ops->read(io, content->file, content->claim.offset + at, data, size, read_out,
                             error);
    }
    return store->read(store->context, &content->claim, at, data, size, read_out, error);
}

lahar_status lahar_content_copy(struct lahar_content *content, lahar_content_sink sink,
                                void *context, lahar_refusal *refusal_out, lahar_error *error)
{
    const lahar_allocator *allocator = content->provenance->allocator;
    const uint64_t size = content->claim.size;
    const size_t buffer_size = size < COPY_SIZE ? (size_t)size : COPY_SIZE;
    lahar_status status = LAHAR_OK;
    uint64_t done = 0;
    if (size == 0) {
        return LAHAR_OK;
    }
    uint8_t *buffer = lahar_allocate(allocator, buffer_size);
    if (buffer == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to copy content");
    }
    while (done < size && status == LAHAR_OK) {
        const size_t wanted = size - done < buffer_size ? (size_t)(size - done) : buffer_size;
        size_t got = 0;
        status = read_some(content, done, buffer, wanted, &got, error);
        if (status == LAHAR_OK && (got == 0 || got > wanted)) {
            status = lahar_refuse(LAHAR_REFUSAL_TRUNCATED, refusal_out, error,
                                  "the content ends after %llu of %llu bytes",
                                  (unsigned long long)done, (unsigned long long)size);
        } else if (status == LAHAR_OK) {
            status = sink(context, buffer, got);
            if (status != LAHAR_OK) {
                (void)lahar_fail(error, status, "the content was not taken");
            }
            done += got;
        }
    }
    lahar_release(allocator, buffer);
    return status;
}

void lahar_content_close(struct lahar_content *content)
{
    struct lahar_io *io = content->provenance->io;
    io->ops->close(io, content->file);
    content->file = NULL;
}

lahar_status lahar_content_stream(lahar_provenance *provenance, uint64_t id, bool is_input,
                                  lahar_content_sink sink, void *context,
                                  lahar_refusal *refusal_out, lahar_error *error)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *raw = NULL;
    lahar_prov_event event;
    struct lahar_arena arena;
    struct lahar_content content;
    *refusal_out = LAHAR_REFUSAL_NONE;
    LAHAR_TRY(lahar_prov_find(provenance, id, &cursor, &raw, error));
    lahar_arena_init(&arena, provenance->allocator, 4096);
    lahar_status status = lahar_prov_decode(&provenance->fields, raw, &arena, &event, error);
    if (status == LAHAR_OK) {
        status = is_input ? lahar_content_open(provenance, &event.previous_claim,
                                               event.has_previous_size, event.previous_size,
                                               &content, refusal_out, error)
                          : lahar_content_open(provenance, &event.claim, event.has_size, event.size,
                                               &content, refusal_out, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_content_copy(&content, sink, context, refusal_out, error);
        lahar_content_close(&content);
    }
    lahar_arena_deinit(&arena);
    lahar_cursor_close(cursor);
    return status;
}
