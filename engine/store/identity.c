/* The identity file: read with every opening, written once. */
#include "engine/store/identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "engine/store/manifest.h"
#include "io/base/bytes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

static lahar_status join(const char *directory, const char *name,
                         char path_out[LAHAR_MANIFEST_PATH_SIZE], lahar_error *error)
{
    const int length = snprintf(path_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s", directory, name);
    if (length < 0 || length >= LAHAR_MANIFEST_PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "the path of the store is too long");
    }
    return LAHAR_OK;
}

static lahar_status parse(const uint8_t *data, size_t size, struct lahar_identity *identity_out,
                          lahar_error *error)
{
    if (size < 16 || memcmp(data, LAHAR_IDENTITY_MAGIC, 8) != 0) {
        return lahar_fail(error, LAHAR_CORRUPT, "the file does not identify a store");
    }
    const uint16_t version = lahar_load_u16(data + 8);
    const uint32_t features = lahar_load_u32(data + 12);
    if (version > LAHAR_IDENTITY_VERSION) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "format version %u, this library knows %d",
                          version, LAHAR_IDENTITY_VERSION);
    }
    if (size != LAHAR_IDENTITY_SIZE || lahar_load_u16(data + 10) != LAHAR_IDENTITY_SIZE ||
        lahar_load_u32(data + 60) != lahar_crc32c(0, data, 60)) {
        return lahar_fail(error, LAHAR_CORRUPT, "the file fails its checksum");
    }
    if ((features & ~(uint32_t)LAHAR_IDENTITY_KNOWN_FEATURES) != 0) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "the store needs features %08x", features);
    }
    memcpy(identity_out->uuid, data + 20, sizeof identity_out->uuid);
    identity_out->store_id = lahar_load_u64(identity_out->uuid);
    identity_out->created_ns = (int64_t)lahar_load_u64(data + 36);
    return LAHAR_OK;
}

lahar_status lahar_identity_read(struct lahar_io *io, const char *directory,
                                 struct lahar_identity *identity_out, lahar_error *error)
{
    char path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(join(directory, LAHAR_IDENTITY_NAME, path, error));
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(io->ops->open(io, path, LAHAR_IO_READ, &file, error));
    uint8_t data[LAHAR_IDENTITY_SIZE + 1];
    size_t size = 0;
    lahar_status status = io->ops->read(io, file, 0, data, sizeof data, &size, error);
    io->ops->close(io, file);
    if (status == LAHAR_OK) {
        status = parse(data, size, identity_out, error);
        if (status != LAHAR_OK) {
            lahar_error_context(error, "%s", path);
        }
    }
    return status;
}

lahar_status lahar_identity_write(struct lahar_io *io, const char *directory,
                                  const struct lahar_identity *identity, lahar_error *error)
{
    uint8_t data[LAHAR_IDENTITY_SIZE] = {0};
    memcpy(data, LAHAR_IDENTITY_MAGIC, 8);
    lahar_store_u16(data + 8, LAHAR_IDENTITY_VERSION);
    lahar_store_u16(data + 10, LAHAR_IDENTITY_SIZE);
    memcpy(data + 20, identity->uuid, sizeof identity->uuid);
    lahar_store_u64(data + 36, (uint64_t)identity->created_ns);
    lahar_store_u32(data + 60, lahar_crc32c(0, data, 60));

    char path[LAHAR_MANIFEST_PATH_SIZE];
    char temporary_path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(join(directory, LAHAR_IDENTITY_NAME, path, error));
    LAHAR_TRY(join(directory, LAHAR_IDENTITY_NAME ".tmp", temporary_path, error));
    /* A leftover of an earlier attempt; when there is none, this fails and may. */
    (void)io->ops->unlink(io, temporary_path, NULL);
    struct lahar_io_file *file = NULL;
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
    if (status == LAHAR_OK) {
        status = io->ops->sync_directory(io, directory, error);
    }
    return status;
}

lahar_status lahar_identity_make(struct lahar_io *io, bool is_random,
                                 struct lahar_identity *identity_out, lahar_error *error)
{
    *identity_out = (struct lahar_identity){.created_ns = io->ops->realtime_ns(io)};
    if (is_random) {
        /* At most 256 bytes are never cut short once the pool is ready. */
        if (getrandom(identity_out->uuid, sizeof identity_out->uuid, 0) !=
            (ssize_t)sizeof identity_out->uuid) {
            return lahar_fail_errno(error, errno, "no random bytes for the store's identity");
        }
    } else {
        lahar_store_u64(identity_out->uuid, (uint64_t)identity_out->created_ns);
        lahar_store_u64(identity_out->uuid + 8, io->ops->monotonic_ns(io));
    }
    /* Version 4, variant 1 of RFC 9562. */
    identity_out->uuid[6] = (uint8_t)((identity_out->uuid[6] & 0x0f) | 0x40);
    identity_out->uuid[8] = (uint8_t)((identity_out->uuid[8] & 0x3f) | 0x80);
    identity_out->store_id = lahar_load_u64(identity_out->uuid);
    return LAHAR_OK;
}
