#include "io/whole_file.h"

#include <stdio.h>

#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    PATH_SIZE = 4096,
    PIECE_SIZE = 256 * 1024
};

lahar_status lahar_io_sum_file(struct lahar_io *io, struct lahar_io_file *file, void *buffer,
                               size_t buffer_size, uint64_t *size_out, uint32_t *checksum_out,
                               lahar_error *error)
{
    uint64_t size = 0;
    uint32_t checksum = 0;
    LAHAR_TRY(io->ops->size(io, file, &size, error));
    for (uint64_t offset = 0; offset < size;) {
        const uint64_t left = size - offset;
        size_t read = 0;
        LAHAR_TRY(io->ops->read(io, file, offset, buffer,
                                left < buffer_size ? (size_t)left : buffer_size, &read, error));
        if (read == 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "the file has become shorter");
        }
        checksum = lahar_crc32c(checksum, buffer, read);
        offset += read;
    }
    *size_out = size;
    *checksum_out = checksum;
    return LAHAR_OK;
}

lahar_status lahar_io_sum_named(struct lahar_io *io, const char *directory, const char *name,
                                uint64_t size_max, const lahar_allocator *allocator,
                                uint64_t *size_out, uint32_t *checksum_out, lahar_error *error)
{
    char path[PATH_SIZE];
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || length >= PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
    }
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(io->ops->open(io, path, LAHAR_IO_READ, &file, error));
    void *buffer = lahar_allocate(allocator, PIECE_SIZE);
    uint64_t size = 0;
    lahar_status status = buffer == NULL
                              ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read %s", name)
                              : io->ops->size(io, file, &size, error);
    if (status == LAHAR_OK && size > size_max) {
        status =
            lahar_fail(error, LAHAR_CORRUPT, "%s has %llu bytes", name, (unsigned long long)size);
    }
    if (status == LAHAR_OK) {
        status = lahar_io_sum_file(io, file, buffer, PIECE_SIZE, size_out, checksum_out, error);
    }
    lahar_release(allocator, buffer);
    io->ops->close(io, file);
    return status;
}
