/* Reading a manifest: choosing the file, checking it, applying its changes.
 *
 * A change that a crash tore is the last one and was not acknowledged: it is cut
 * off. Anything else that fails its checksum is damage: inside the snapshot, which was
 * complete before the file got its name, or before a valid change, which was only
 * written after the one before it was durable. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/store/manifest.h"
#include "engine/store/manifest_format.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    /* Larger than any manifest can become; bounds what a damaged size makes us allocate. */
    MANIFEST_SIZE_MAX = 1 << 30,
    /* How far a sequence number may lie ahead behind damage to be taken for one. */
    SEQUENCE_SPAN = 1 << 20
};

void lahar_manifest_name(uint64_t number, char name_out[LAHAR_MANIFEST_NAME_SIZE])
{
    (void)snprintf(name_out, LAHAR_MANIFEST_NAME_SIZE, "manifest-%" PRIu64, number);
}

bool lahar_manifest_parse_name(const char *name, uint64_t *number_out)
{
    static const char prefix[] = "manifest-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return false;
    }
    uint64_t number = 0;
    const char *digit = name + sizeof prefix - 1;
    if (*digit < '1' || *digit > '9') {
        return false;
    }
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        if (number > (UINT64_MAX - 9) / 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(*digit - '0');
    }
    *number_out = number;
    return *digit == '\0';
}

uint32_t lahar_manifest_seed(uint64_t store_id, uint64_t number)
{
    uint8_t bytes[16];
    lahar_store_u64(bytes, store_id);
    lahar_store_u64(bytes + 8, number);
    return lahar_crc32c(0, bytes, sizeof bytes);
}

static lahar_status scan_header(const uint8_t *data, size_t size, uint64_t store_id,
                                uint64_t number, uint64_t *snapshot_end_out, lahar_error *error)
{
    if (size < LAHAR_MANIFEST_HEADER_SIZE) {
        return lahar_fail(error, LAHAR_CORRUPT, "the header is cut short");
    }
    if (memcmp(data, LAHAR_MANIFEST_MAGIC, 8) != 0) {
        return lahar_fail(error, LAHAR_CORRUPT, "the file does not begin as a manifest");
    }
    if (lahar_load_u16(data + 8) > LAHAR_MANIFEST_VERSION) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "format version %u, this library knows %d",
                          lahar_load_u16(data + 8), LAHAR_MANIFEST_VERSION);
    }
    if (lahar_load_u32(data + 44) != lahar_crc32c(0, data, 44)) {
        return lahar_fail(error, LAHAR_CORRUPT, "the header fails its checksum");
    }
    if ((lahar_load_u32(data + 12) & ~(uint32_t)LAHAR_MANIFEST_KNOWN_FEATURES) != 0) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "needs features %08x",
                          lahar_load_u32(data + 12));
    }
    if (lahar_load_u16(data + 8) == 0 || lahar_load_u16(data + 10) != LAHAR_MANIFEST_HEADER_SIZE ||
        lahar_load_u64(data + 24) != number) {
        return lahar_fail(error, LAHAR_CORRUPT, "the header does not fit the file's name");
    }
    if (lahar_load_u64(data + 16) != store_id) {
        return lahar_fail(error, LAHAR_CORRUPT, "the file belongs to another store");
    }
    const uint64_t snapshot_size = lahar_load_u64(data + 32);
    if (snapshot_size > size - LAHAR_MANIFEST_HEADER_SIZE) {
        return lahar_fail(error, LAHAR_CORRUPT, "the snapshot is cut short");
    }
    *snapshot_end_out = LAHAR_MANIFEST_HEADER_SIZE + snapshot_size;
    return LAHAR_OK;
}

/* The size of the valid change at data, 0 when there is none. */
static size_t change_size(const uint8_t *data, size_t size, uint32_t seed, uint64_t sequence)
{
    if (size < LAHAR_MANIFEST_CHANGE_HEADER_SIZE || lahar_load_u64(data + 8) != sequence) {
        return 0;
    }
    const uint32_t records_size = lahar_load_u32(data + 4);
    if (records_size == 0 || records_size > size - LAHAR_MANIFEST_CHANGE_HEADER_SIZE) {
        return 0;
    }
    const size_t whole = LAHAR_MANIFEST_CHANGE_HEADER_SIZE + (size_t)records_size;
    return lahar_load_u32(data) == lahar_crc32c(seed, data + 4, whole - 4) ? whole : 0;
}

/* Whether a valid change with a later number lies anywhere in data. */
static bool has_later_change(const uint8_t *data, size_t size, uint32_t seed, uint64_t sequence)
{
    for (size_t at = 1; size >= LAHAR_MANIFEST_CHANGE_HEADER_SIZE &&
                        at <= size - LAHAR_MANIFEST_CHANGE_HEADER_SIZE;
         at++) {
        const uint64_t found = lahar_load_u64(data + at + 8);
        if (found > sequence && found - sequence < SEQUENCE_SPAN &&
            change_size(data + at, size - at, seed, found) != 0) {
            return true;
        }
    }
    return false;
}

lahar_status lahar_manifest_scan(const uint8_t *data, size_t size, uint64_t store_id,
                                 uint64_t number, struct lahar_manifest_state *state,
                                 struct lahar_manifest_scan *scan_out, lahar_error *error)
{
    *scan_out = (struct lahar_manifest_scan){.next_sequence = 1};
    uint64_t snapshot_end = 0;
    LAHAR_TRY(scan_header(data, size, store_id, number, &snapshot_end, error));
    scan_out->snapshot_bytes = snapshot_end;
    const uint32_t seed = lahar_manifest_seed(store_id, number);
    size_t at = LAHAR_MANIFEST_HEADER_SIZE;
    uint64_t sequence = 1;
    while (at < size) {
        const size_t whole = change_size(data + at, size - at, seed, sequence);
        if (whole == 0) {
            break;
        }
        if (state != NULL) {
            const lahar_status status =
                lahar_manifest_state_apply(state, data + at + LAHAR_MANIFEST_CHANGE_HEADER_SIZE,
                                           whole - LAHAR_MANIFEST_CHANGE_HEADER_SIZE, error);
            if (status != LAHAR_OK) {
                lahar_error_context(error, "change %" PRIu64 " at offset %zu", sequence, at);
                scan_out->damage_offset = at;
                return status;
            }
        }
        at += whole;
        sequence++;
    }
    scan_out->valid_bytes = at;
    scan_out->next_sequence = sequence;
    if (at < snapshot_end || has_later_change(data + at, size - at, seed, sequence)) {
        scan_out->damage_offset = at;
        return lahar_fail(error, LAHAR_CORRUPT,
                          "change %" PRIu64 " at offset %zu fails its checksum", sequence, at);
    }
    return LAHAR_OK;
}

/* Reads a whole file into memory of its own. */
static lahar_status read_file(struct lahar_io *io, struct lahar_io_file *file,
                              const lahar_allocator *allocator, uint8_t **data_out,
                              size_t *size_out, lahar_error *error)
{
    uint64_t size = 0;
    LAHAR_TRY(io->ops->size(io, file, &size, error));
    if (size > MANIFEST_SIZE_MAX) {
        return lahar_fail(error, LAHAR_CORRUPT, "a manifest of %" PRIu64 " bytes", size);
    }
    uint8_t *data = lahar_allocate(allocator, size == 0 ? 1 : (size_t)size);
    if (data == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read %" PRIu64 " bytes", size);
    }
    const lahar_status status = io->ops->read(io, file, 0, data, (size_t)size, size_out, error);
    if (status != LAHAR_OK) {
        lahar_release(allocator, data);
        return status;
    }
    *data_out = data;
    return LAHAR_OK;
}

lahar_status lahar_manifest_read_file(struct lahar_io *io, const char *directory, const char *name,
                                      const lahar_allocator *allocator, uint8_t **data_out,
                                      size_t *size_out, lahar_error *error)
{
    char path[LAHAR_MANIFEST_PATH_SIZE];
    struct lahar_io_file *file = NULL;
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
    }
    LAHAR_TRY(io->ops->open(io, path, LAHAR_IO_READ, &file, error));
    const lahar_status status = read_file(io, file, allocator, data_out, size_out, error);
    io->ops->close(io, file);
    return status;
}

static lahar_status note_highest(void *context, const char *name, bool is_directory)
{
    uint64_t *highest = context;
    uint64_t number = 0;
    if (!is_directory && lahar_manifest_parse_name(name, &number) && number > *highest) {
        *highest = number;
    }
    return LAHAR_OK;
}

static lahar_status load(struct lahar_manifest *manifest, bool read_only, lahar_error *error)
{
    struct lahar_io *io = manifest->io;
    uint8_t *data = NULL;
    size_t size = 0;
    LAHAR_TRY(read_file(io, manifest->file, manifest->allocator, &data, &size, error));
    struct lahar_manifest_scan scan;
    lahar_status status = lahar_manifest_scan(data, size, manifest->store_id, manifest->number,
                                              &manifest->state, &scan, error);
    lahar_release(manifest->allocator, data);
    if (status != LAHAR_OK) {
        return status;
    }
    manifest->size_bytes = scan.valid_bytes;
    manifest->snapshot_bytes = scan.snapshot_bytes;
    manifest->sequence = scan.next_sequence;
    if (read_only) {
        return LAHAR_OK;
    }
    /* What is shown must be durable: the last change may have been written by a process
     * that was killed before its sync. */
    if (size > scan.valid_bytes) {
        LAHAR_TRY(io->ops->truncate(io, manifest->file, scan.valid_bytes, error));
    }
    return io->ops->sync(io, manifest->file, error);
}

lahar_status lahar_manifest_open(struct lahar_io *io, const char *directory, uint64_t store_id,
                                 bool read_only, uint64_t growth_bytes,
                                 const lahar_allocator *allocator,
                                 struct lahar_manifest **manifest_out, lahar_error *error)
{
    *manifest_out = NULL;
    uint64_t number = 0;
    LAHAR_TRY(io->ops->list(io, directory, note_highest, &number, error));
    if (number == 0) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "%s holds no manifest", directory);
    }
    struct lahar_manifest *manifest = lahar_allocate_zeroed(allocator, 1, sizeof *manifest);
    if (manifest == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the manifest");
    }
    manifest->io = io;
    manifest->allocator = allocator;
    manifest->directory = directory;
    manifest->store_id = store_id;
    manifest->number = number;
    manifest->growth_bytes = growth_bytes;
    lahar_manifest_state_init(&manifest->state, allocator);
    char name[LAHAR_MANIFEST_NAME_SIZE];
    lahar_manifest_name(number, name);
    char path[LAHAR_MANIFEST_PATH_SIZE];
    lahar_status status = lahar_manifest_path(manifest, name, path, error);
    if (status == LAHAR_OK) {
        status = io->ops->open(io, path, read_only ? LAHAR_IO_READ : LAHAR_IO_READ | LAHAR_IO_WRITE,
                               &manifest->file, error);
    }
    if (status == LAHAR_OK) {
        status = load(manifest, read_only, error);
        if (status != LAHAR_OK) {
            lahar_error_context(error, "%s", path);
        }
    }
    if (status != LAHAR_OK) {
        lahar_manifest_close(manifest);
        return status;
    }
    *manifest_out = manifest;
    return LAHAR_OK;
}

void lahar_manifest_close(struct lahar_manifest *manifest)
{
    if (manifest == NULL) {
        return;
    }
    manifest->io->ops->close(manifest->io, manifest->file);
    lahar_manifest_state_deinit(&manifest->state);
    lahar_release(manifest->allocator, manifest);
}

lahar_status lahar_manifest_path(const struct lahar_manifest *manifest, const char *name,
                                 char path_out[LAHAR_MANIFEST_PATH_SIZE], lahar_error *error)
{
    const int length =
        snprintf(path_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s", manifest->directory, name);
    if (length < 0 || length >= LAHAR_MANIFEST_PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
    }
    return LAHAR_OK;
}

lahar_status lahar_manifest_verify(struct lahar_manifest *manifest, uint64_t *offset_out,
                                   lahar_error *error)
{
    uint8_t *data = NULL;
    size_t size = 0;
    *offset_out = 0;
    LAHAR_TRY(read_file(manifest->io, manifest->file, manifest->allocator, &data, &size, error));
    struct lahar_manifest_scan scan;
    lahar_status status =
        lahar_manifest_scan(data, size, manifest->store_id, manifest->number, NULL, &scan, error);
    *offset_out = scan.damage_offset;
    if (status == LAHAR_OK && scan.valid_bytes < manifest->size_bytes) {
        *offset_out = scan.valid_bytes;
        status = lahar_fail(error, LAHAR_CORRUPT, "the last changes fail their checksum");
    }
    lahar_release(manifest->allocator, data);
    return status;
}
