#include "engine/rollover/file_writing.h"

#include <stdio.h>

#include "engine/store/volumes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

lahar_status lahar_file_path(const lahar_store *store, const struct lahar_manifest_file *file,
                             const char *suffix, char path_out[LAHAR_MANIFEST_PATH_SIZE],
                             lahar_error *error)
{
    char name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(&file->info, suffix, name);
    const int length = snprintf(path_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s",
                                lahar_volume_path(store, file->directory), name);
    if (length < 0 || length >= LAHAR_MANIFEST_PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
    }
    return LAHAR_OK;
}

lahar_status lahar_file_writing_begin(struct lahar_file_writing *writing, lahar_store *store,
                                      const struct lahar_manifest_file *file, const char *suffix,
                                      lahar_error *error)
{
    char temporary[LAHAR_FILE_NAME_SIZE];
    writing->io = store->io;
    writing->file = NULL;
    writing->size = 0;
    writing->synced_size = 0;
    writing->checksum = 0;
    writing->status = LAHAR_OK;
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", suffix);
    LAHAR_TRY(lahar_file_path(store, file, suffix, writing->path, error));
    LAHAR_TRY(lahar_file_path(store, file, temporary, writing->temporary_path, error));
    return writing->io->ops->open(writing->io, writing->temporary_path,
                                  LAHAR_IO_WRITE | LAHAR_IO_CREATE | LAHAR_IO_EXCLUSIVE,
                                  &writing->file, error);
}

/* Writes a piece that is at most a step. */
static lahar_status put_piece(struct lahar_file_writing *writing, const void *data, size_t size,
                              lahar_error *error)
{
    struct lahar_io *io = writing->io;
    LAHAR_TRY(io->ops->write(io, writing->file, writing->size, data, size, error));
    writing->checksum = lahar_crc32c(writing->checksum, data, size);
    writing->size += size;
    if (writing->size - writing->synced_size < LAHAR_FILE_SYNC_STEP) {
        return LAHAR_OK;
    }
    writing->synced_size = writing->size;
    return io->ops->sync(io, writing->file, error);
}

lahar_status lahar_file_writing_put(struct lahar_file_writing *writing, const void *data,
                                    size_t size, lahar_error *error)
{
    const uint8_t *bytes = data;
    lahar_status status = LAHAR_OK;
    while (size > 0 && status == LAHAR_OK) {
        const size_t piece = size < LAHAR_FILE_SYNC_STEP ? size : (size_t)LAHAR_FILE_SYNC_STEP;
        status = put_piece(writing, bytes, piece, error);
        bytes += piece;
        size -= piece;
    }
    if (writing->status == LAHAR_OK) {
        writing->status = status;
    }
    return status;
}

lahar_status lahar_file_writing_finish(struct lahar_file_writing *writing, lahar_error *error)
{
    struct lahar_io *io = writing->io;
    lahar_status status = io->ops->sync(io, writing->file, error);
    if (status == LAHAR_OK) {
        io->ops->close(io, writing->file);
        writing->file = NULL;
        status = io->ops->rename(io, writing->temporary_path, writing->path, error);
        if (status != LAHAR_OK) {
            (void)io->ops->unlink(io, writing->temporary_path, NULL);
        }
    }
    lahar_file_writing_drop(writing);
    return status;
}

void lahar_file_writing_drop(struct lahar_file_writing *writing)
{
    struct lahar_io *io = writing->io;
    if (writing->file != NULL) {
        io->ops->close(io, writing->file);
        writing->file = NULL;
        (void)io->ops->unlink(io, writing->temporary_path, NULL);
    }
}
