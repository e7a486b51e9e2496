/* A manifest on a simulated disk, and what tests compare it with. */
#ifndef LAHAR_TESTS_MANIFEST_FIXTURE_H
#define LAHAR_TESTS_MANIFEST_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/store/manifest.h"
#include "engine/store/manifest_format.h"
#include "io/sim_disk.h"

#define FIXTURE_STORE_ID UINT64_C(0x1122334455667788)

struct manifest_fixture {
    struct lahar_sim_disk *disk;
    struct lahar_io *io;
};

/* An empty directory "store" that a crash does not take away. */
static inline void fixture_init(struct manifest_fixture *fixture, uint64_t seed)
{
    if (lahar_sim_disk_create(&lahar_allocator_libc, seed, &fixture->disk, NULL) != LAHAR_OK ||
        lahar_sim_disk_io(fixture->disk, &fixture->io, NULL) != LAHAR_OK ||
        fixture->io->ops->make_directory(fixture->io, "store", NULL) != LAHAR_OK ||
        fixture->io->ops->sync_directory(fixture->io, ".", NULL) != LAHAR_OK) {
        abort();
    }
}

static inline void fixture_deinit(struct manifest_fixture *fixture)
{
    fixture->io->ops->destroy(fixture->io);
    lahar_sim_disk_destroy(fixture->disk);
}

static inline lahar_status fixture_create(struct manifest_fixture *fixture)
{
    return lahar_manifest_create(fixture->io, "store", FIXTURE_STORE_ID, &lahar_allocator_libc,
                                 NULL);
}

static inline lahar_status fixture_open(struct manifest_fixture *fixture, uint64_t growth_bytes,
                                        struct lahar_manifest **manifest_out, lahar_error *error)
{
    return lahar_manifest_open(fixture->io, "store", FIXTURE_STORE_ID, false, growth_bytes,
                               &lahar_allocator_libc, manifest_out, error);
}

/* Commits one record made by put. */
static inline lahar_status fixture_commit_ceiling(struct lahar_manifest *manifest, uint64_t ceiling)
{
    struct lahar_buffer records;
    lahar_buffer_init(&records, &lahar_allocator_libc);
    lahar_manifest_put_ceiling(&records, ceiling);
    const lahar_status status = lahar_manifest_commit(manifest, &records, NULL);
    lahar_buffer_deinit(&records);
    return status;
}

/* The whole file, in memory of its own. */
static inline uint8_t *fixture_read(struct manifest_fixture *fixture, const char *path,
                                    size_t *size_out)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = NULL;
    uint64_t size = 0;
    *size_out = 0;
    if (io->ops->open(io, path, LAHAR_IO_READ, &file, NULL) != LAHAR_OK) {
        return NULL;
    }
    uint8_t *data = NULL;
    if (io->ops->size(io, file, &size, NULL) == LAHAR_OK) {
        data = malloc((size_t)size + 1);
        if (data == NULL ||
            io->ops->read(io, file, 0, data, (size_t)size, size_out, NULL) != LAHAR_OK) {
            abort();
        }
    }
    io->ops->close(io, file);
    return data;
}

/* CRC-32C by the definition, bit by bit: independent of the library's. */
static inline uint32_t plain_crc32c(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc & 1) != 0 ? (crc >> 1) ^ UINT32_C(0x82f63b78) : crc >> 1;
        }
    }
    return ~crc;
}

#endif
