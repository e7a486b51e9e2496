/* Copies of the manifest's names; see the header. */
#include "engine/store/manifest_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/base/error.h"

static const char PREFIX[] = "names-";

enum {
    NAME_SIZE = 40,
    COPIES_MAX = 16 /* there is one, or two after a crash; more are not looked at */
};

struct copies {
    uint64_t numbers[COPIES_MAX];
    size_t count;
};

bool lahar_manifest_copy_parse_name(const char *name, uint64_t *number_out)
{
    char manifest_name[LAHAR_MANIFEST_NAME_SIZE + sizeof PREFIX];
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) {
        return false;
    }
    (void)snprintf(manifest_name, sizeof manifest_name, "manifest-%.30s", name + sizeof PREFIX - 1);
    return lahar_manifest_parse_name(manifest_name, number_out);
}

/* Newest first. */
static lahar_status note_copy(void *context, const char *name, bool is_directory)
{
    struct copies *copies = context;
    uint64_t number = 0;
    if (is_directory || copies->count == COPIES_MAX ||
        !lahar_manifest_copy_parse_name(name, &number)) {
        return LAHAR_OK;
    }
    size_t at = copies->count++;
    while (at > 0 && copies->numbers[at - 1] < number) {
        copies->numbers[at] = copies->numbers[at - 1];
        at--;
    }
    copies->numbers[at] = number;
    return LAHAR_OK;
}

static lahar_status copy_path(const char *directory, uint64_t number, const char *suffix,
                              char path_out[LAHAR_MANIFEST_PATH_SIZE], lahar_error *error)
{
    const int length = snprintf(path_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s%llu%s", directory,
                                PREFIX, (unsigned long long)number, suffix);
    return length >= 0 && length < LAHAR_MANIFEST_PATH_SIZE
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_INVALID, "the path of a copy of the names is too long");
}

static lahar_status write_image(struct lahar_io *io, const char *directory, uint64_t number,
                                const struct lahar_buffer *image, lahar_error *error)
{
    char path[LAHAR_MANIFEST_PATH_SIZE];
    char temporary_path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(copy_path(directory, number, "", path, error));
    LAHAR_TRY(copy_path(directory, number, ".tmp", temporary_path, error));
    (void)io->ops->unlink(io, temporary_path, NULL);
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(io->ops->open(io, temporary_path,
                            LAHAR_IO_WRITE | LAHAR_IO_CREATE | LAHAR_IO_EXCLUSIVE, &file, error));
    lahar_status status = io->ops->write(io, file, 0, image->data, image->size, error);
    if (status == LAHAR_OK) {
        status = io->ops->sync(io, file, error);
    }
    io->ops->close(io, file);
    if (status == LAHAR_OK) {
        status = io->ops->rename(io, temporary_path, path, error);
    }
    if (status != LAHAR_OK) {
        (void)io->ops->unlink(io, temporary_path, NULL);
        return status;
    }
    return io->ops->sync_directory(io, directory, error);
}

lahar_status lahar_manifest_copy_write(const struct lahar_manifest *manifest,
                                       const char *events_directory, lahar_error *error)
{
    struct lahar_io *io = manifest->io;
    struct copies copies = {.count = 0};
    LAHAR_TRY(io->ops->list(io, events_directory, note_copy, &copies, error));
    const uint64_t number = copies.count == 0 ? 1 : copies.numbers[0] + 1;
    struct lahar_manifest_state part = manifest->state;
    part.session_count = 0;
    part.file_count = 0;
    part.offsets.count = 0;
    struct lahar_buffer image;
    lahar_buffer_init(&image, manifest->allocator);
    lahar_status status =
        lahar_manifest_build_image(&image, manifest->store_id, number, &part, error);
    if (status == LAHAR_OK) {
        status = write_image(io, events_directory, number, &image, error);
    }
    lahar_buffer_deinit(&image);
    for (size_t i = 0; status == LAHAR_OK && i < copies.count; i++) {
        char path[LAHAR_MANIFEST_PATH_SIZE];
        if (copy_path(events_directory, copies.numbers[i], "", path, NULL) == LAHAR_OK) {
            (void)io->ops->unlink(io, path, NULL);
        }
    }
    return status;
}

lahar_status lahar_manifest_copy_read(struct lahar_io *io, const char *events_directory,
                                      uint64_t store_id, const lahar_allocator *allocator,
                                      struct lahar_manifest_state *state, lahar_error *error)
{
    struct copies copies = {.count = 0};
    LAHAR_TRY(io->ops->list(io, events_directory, note_copy, &copies, error));
    for (size_t i = 0; i < copies.count; i++) {
        char name[NAME_SIZE];
        uint8_t *data = NULL;
        size_t size = 0;
        struct lahar_manifest_scan scan;
        (void)snprintf(name, sizeof name, "%s%llu", PREFIX, (unsigned long long)copies.numbers[i]);
        if (lahar_manifest_read_file(io, events_directory, name, allocator, &data, &size, NULL) !=
            LAHAR_OK) {
            continue;
        }
        const lahar_status status =
            lahar_manifest_scan(data, size, store_id, copies.numbers[i], state, &scan, NULL);
        lahar_release(allocator, data);
        if (status == LAHAR_OK) {
            return LAHAR_OK;
        }
        lahar_manifest_state_deinit(state);
        lahar_manifest_state_init(state, allocator);
    }
    return lahar_fail(error, LAHAR_NOT_FOUND, "there is no readable copy of the names");
}

lahar_status lahar_manifest_copy_refresh(const struct lahar_manifest *manifest,
                                         const char *events_directory, lahar_error *error)
{
    struct lahar_manifest_state found;
    lahar_manifest_state_init(&found, manifest->allocator);
    const lahar_status status = lahar_manifest_copy_read(
        manifest->io, events_directory, manifest->store_id, manifest->allocator, &found, NULL);
    const bool is_current = status == LAHAR_OK &&
                            found.stream_count == manifest->state.stream_count &&
                            found.field_count == manifest->state.field_count &&
                            found.lost.count == manifest->state.lost.count;
    lahar_manifest_state_deinit(&found);
    return is_current || manifest->state.stream_count == 0
               ? LAHAR_OK
               : lahar_manifest_copy_write(manifest, events_directory, error);
}
