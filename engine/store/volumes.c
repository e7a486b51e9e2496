#include "engine/store/volumes.h"

#include <stdio.h>
#include <string.h>

#include "engine/store/store_state.h"
#include "io/base/bytes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

#define RETRY_NS UINT64_C(10000000000)

/* The marker, docs/format/manifest.md. */
#define MARKER_MAGIC "LAHARVOL"
enum {
    MARKER_VERSION = 1,
    MARKER_SIZE = 64,
    VOLUMES_MAX = 64
};

/* --- markers ------------------------------------------------------------------------------ */

static lahar_status join(const char *directory, const char *name,
                         char path_out[LAHAR_MANIFEST_PATH_SIZE], lahar_error *error)
{
    const int length = snprintf(path_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s", directory, name);
    return length > 0 && length < LAHAR_MANIFEST_PATH_SIZE
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
}

/* LAHAR_NOT_FOUND: no marker; LAHAR_EXISTS: of another store or volume; LAHAR_CORRUPT. */
static lahar_status check_marker(lahar_store *store, const char *directory, uint32_t number,
                                 lahar_error *error)
{
    char path[LAHAR_MANIFEST_PATH_SIZE];
    struct lahar_io *io = store->io;
    struct lahar_io_file *file = NULL;
    uint8_t data[MARKER_SIZE];
    size_t size = 0;
    LAHAR_TRY(join(directory, LAHAR_VOLUME_MARKER_NAME, path, error));
    LAHAR_TRY(io->ops->open(io, path, LAHAR_IO_READ, &file, error));
    const lahar_status status = io->ops->read(io, file, 0, data, sizeof data, &size, error);
    io->ops->close(io, file);
    LAHAR_TRY(status);
    if (size != MARKER_SIZE || memcmp(data, MARKER_MAGIC, 8) != 0 ||
        lahar_load_u16(data + 8) != MARKER_VERSION ||
        lahar_load_u32(data + MARKER_SIZE - 4) != lahar_crc32c(0, data, MARKER_SIZE - 4)) {
        return lahar_fail(error, LAHAR_CORRUPT, "%s is damaged", path);
    }
    if (lahar_load_u64(data + 16) != store->identity.store_id ||
        lahar_load_u32(data + 24) != number) {
        return lahar_fail(error, LAHAR_EXISTS,
                          "%s belongs to another store or is another of its "
                          "volumes",
                          directory);
    }
    return LAHAR_OK;
}

static lahar_status write_marker(lahar_store *store, const char *directory, uint32_t number,
                                 lahar_error *error)
{
    uint8_t data[MARKER_SIZE] = {0};
    memcpy(data, MARKER_MAGIC, 8);
    lahar_store_u16(data + 8, MARKER_VERSION);
    lahar_store_u16(data + 10, MARKER_SIZE);
    lahar_store_u64(data + 16, store->identity.store_id);
    lahar_store_u32(data + 24, number);
    lahar_store_u32(data + MARKER_SIZE - 4, lahar_crc32c(0, data, MARKER_SIZE - 4));
    char path[LAHAR_MANIFEST_PATH_SIZE];
    char temporary_path[LAHAR_MANIFEST_PATH_SIZE];
    struct lahar_io *io = store->io;
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(join(directory, LAHAR_VOLUME_MARKER_NAME, path, error));
    LAHAR_TRY(join(directory, LAHAR_VOLUME_MARKER_NAME ".tmp", temporary_path, error));
    (void)io->ops->unlink(io, temporary_path, NULL);
    LAHAR_TRY(io->ops->open(io, temporary_path,
                            LAHAR_IO_WRITE | LAHAR_IO_CREATE | LAHAR_IO_EXCLUSIVE, &file, error));
    lahar_status status = io->ops->write(io, file, 0, data, sizeof data, error);
    if (status == LAHAR_OK) {
        status = io->ops->sync(io, file, error);
    }
    io->ops->close(io, file);
    if (status == LAHAR_OK) {
        status = io->ops->rename(io, temporary_path, path, error);
    }
    return status == LAHAR_OK ? io->ops->sync_directory(io, directory, error) : status;
}

/* Makes the directory a volume of this store, unless it is that already. */
static lahar_status make_volume(lahar_store *store, const struct lahar_volume *volume,
                                uint32_t number, lahar_error *error)
{
    lahar_error cause = {0};
    lahar_status status = store->io->ops->make_directory(store->io, volume->path, &cause);
    if (status == LAHAR_OK || status == LAHAR_EXISTS) {
        cause = (lahar_error){0};
        status = check_marker(store, volume->path, number, &cause);
    }
    if (status == LAHAR_NOT_FOUND) {
        cause = (lahar_error){0};
        status = write_marker(store, volume->path, number, &cause);
    }
    return status == LAHAR_OK
               ? LAHAR_OK
               : lahar_fail(error, status, "volume \"%s\": %s", volume->name, cause.message);
}

/* --- opening ------------------------------------------------------------------------------ */

static char *copy_text(const lahar_store *store, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = lahar_allocate(&store->allocator, size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

static lahar_status add(lahar_store *store, const char *name, const char *path, bool is_new,
                        lahar_error *error)
{
    if (store->volume_count == VOLUMES_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "a store has at most %d volumes", VOLUMES_MAX);
    }
    struct lahar_volume *volume = &store->volumes[store->volume_count];
    volume->name = copy_text(store, name);
    volume->path = copy_text(store, path);
    volume->is_new = is_new;
    store->volume_count++;
    return volume->name == NULL || volume->path == NULL
               ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a volume")
               : LAHAR_OK;
}

/* One of the options: a new volume, or another path of a known one. */
static lahar_status take_option(lahar_store *store, const lahar_volume_spec *directory,
                                lahar_error *error)
{
    if (directory->name == NULL || directory->path == NULL || directory->name[0] == '\0' ||
        directory->path[0] == '\0' || strlen(directory->name) > LAHAR_NAME_SIZE_MAX ||
        strlen(directory->path) >= LAHAR_MANIFEST_PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "options: a directory without name or path");
    }
    for (uint32_t i = 1; i < store->volume_count; i++) {
        struct lahar_volume *volume = &store->volumes[i];
        if (strcmp(volume->name, directory->name) != 0) {
            continue;
        }
        if (strcmp(volume->path, directory->path) != 0) {
            lahar_release(&store->allocator, volume->path);
            volume->path = copy_text(store, directory->path);
            volume->is_new = true;
        }
        return volume->path == NULL ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a volume")
                                    : LAHAR_OK;
    }
    if (store->options.read_only) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "there is no volume \"%s\"", directory->name);
    }
    return add(store, directory->name, directory->path, true, error);
}

static lahar_status find_volumes(lahar_store *store, const struct lahar_manifest_state *state,
                                 lahar_error *error)
{
    LAHAR_TRY(add(store, "", store->events_directory, false, error));
    store->volumes[0].is_available = true;
    for (size_t i = 0; i < state->directory_count; i++) {
        LAHAR_TRY(add(store, state->directories[i].name, state->directories[i].path, false, error));
    }
    for (size_t i = 0; i < store->options.volume_count; i++) {
        LAHAR_TRY(take_option(store, &store->options.volumes[i], error));
    }
    for (uint32_t i = 1; i < store->volume_count; i++) {
        struct lahar_volume *volume = &store->volumes[i];
        if (i > state->directory_count) {
            LAHAR_TRY(make_volume(store, volume, i, error));
        }
        volume->is_available = check_marker(store, volume->path, i, &volume->reason) == LAHAR_OK;
        if (!volume->is_available) {
            lahar_store_log(store, LAHAR_LOG_ERROR, "volume \"%s\" is not available: %s",
                            volume->name, volume->reason.message);
        }
    }
    return LAHAR_OK;
}

lahar_status lahar_volumes_open(lahar_store *store, const struct lahar_manifest_state *state,
                                lahar_error *error)
{
    lahar_volumes_close(store);
    store->volumes = lahar_allocate_zeroed(&store->allocator, VOLUMES_MAX, sizeof *store->volumes);
    if (store->volumes == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for volumes");
    }
    const lahar_status status = find_volumes(store, state, error);
    if (status != LAHAR_OK) {
        lahar_volumes_close(store);
    }
    return status;
}

void lahar_volumes_close(lahar_store *store)
{
    for (uint32_t i = 0; i < store->volume_count; i++) {
        lahar_release(&store->allocator, store->volumes[i].name);
        lahar_release(&store->allocator, store->volumes[i].path);
    }
    lahar_release(&store->allocator, store->volumes);
    store->volumes = NULL;
    store->volume_count = 0;
}

uint32_t lahar_volumes_put_new(const lahar_store *store, struct lahar_buffer *records)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < store->volume_count; i++) {
        const struct lahar_volume *volume = &store->volumes[i];
        /* A path at which the volume is not found is not remembered. */
        if (volume->is_new && volume->is_available) {
            lahar_manifest_put_directory(records, i, volume->name, volume->path);
            count++;
        }
    }
    return count;
}

const char *lahar_volume_path(const lahar_store *store, uint32_t volume)
{
    LAHAR_ASSERT(volume < store->volume_count);
    return store->volumes[volume].path;
}

/* --- placing ------------------------------------------------------------------------------- */

static uint64_t free_bytes(lahar_store *store, uint32_t number)
{
    struct lahar_io_space space = {0};
    return store->io->ops->space(store->io, store->volumes[number].path, &space, NULL) == LAHAR_OK
               ? space.free_bytes
               : 0;
}

uint32_t lahar_volume_choose(lahar_store *store)
{
    if (store->volume_count == 1) {
        return 0;
    }
    const uint64_t now_ns = store->io->ops->monotonic_ns(store->io);
    uint32_t best = 0;
    uint64_t best_bytes = 0;
    bool has_best = false;
    for (uint32_t i = 0; i < store->volume_count; i++) {
        struct lahar_volume *volume = &store->volumes[i];
        if (!volume->is_available ||
            atomic_load_explicit(&volume->retry_at_ns, memory_order_relaxed) > now_ns) {
            continue;
        }
        const uint64_t bytes = free_bytes(store, i);
        if (!has_best || bytes > best_bytes) {
            best = i;
            best_bytes = bytes;
            has_best = true;
        }
    }
    return best;
}

void lahar_volume_note_failure(lahar_store *store, uint32_t volume, lahar_status status)
{
    if (status != LAHAR_NO_SPACE && status != LAHAR_IO && status != LAHAR_NOT_FOUND &&
        status != LAHAR_READ_ONLY) {
        return;
    }
    if (store->volume_count > 1) {
        atomic_store_explicit(&store->volumes[volume].retry_at_ns,
                              store->io->ops->monotonic_ns(store->io) + RETRY_NS,
                              memory_order_relaxed);
        lahar_store_log(store, LAHAR_LOG_ERROR, "volume \"%s\" is passed over for a while: %s",
                        store->volumes[volume].name, lahar_status_name(status));
    }
}

bool lahar_volume_has_space(lahar_store *store)
{
    if (store->options.free_space_min == 0) {
        return true;
    }
    for (uint32_t i = 0; i < store->volume_count; i++) {
        if (store->volumes[i].is_available &&
            free_bytes(store, i) >= store->options.free_space_min) {
            return true;
        }
    }
    return false;
}

/* --- statistics ----------------------------------------------------------------------------- */

lahar_status lahar_volume_info_get(lahar_store *store, uint32_t number, lahar_volume_info *info_out,
                                   lahar_error *error)
{
    if (info_out->struct_size < sizeof *info_out) {
        return lahar_fail(error, LAHAR_INVALID, "volume info: struct_size is too small");
    }
    if (number >= store->volume_count) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "there is no volume %u", number);
    }
    const struct lahar_volume *volume = &store->volumes[number];
    struct lahar_io_space space = {0};
    if (volume->is_available) {
        (void)store->io->ops->space(store->io, volume->path, &space, NULL);
    }
    *info_out = (lahar_volume_info){.struct_size = info_out->struct_size,
                                    .name = volume->name,
                                    .path = volume->path,
                                    .is_available = volume->is_available,
                                    .capacity_bytes = space.capacity_bytes,
                                    .free_bytes = space.free_bytes};
    (void)pthread_mutex_lock(&store->manifest_lock);
    const struct lahar_manifest_state *state = &store->manifest->state;
    for (size_t i = 0; i < state->file_count; i++) {
        const struct lahar_manifest_file *file = &state->files[i];
        if (file->directory == number) {
            info_out->file_count++;
            info_out->file_bytes +=
                file->info.file_bytes + file->info.toc_bytes + file->shard_bytes;
        }
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    return LAHAR_OK;
}
