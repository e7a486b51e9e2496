/* Scanning for frames.
 *
 * A region is walked from frame to frame. Where no valid frame stands, the walk goes on
 * in steps of the frames' alignment until one does: a hole may be a tail that was
 * torn, a write that never came while a later one did, or damage; which of these it is
 * follows from the ids, not from the place. Stale frames of an earlier use of the file never pass
 * their checksum. */
#include "engine/journal/recovery_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/journal/recovery_seed.h"
#include "engine/journal/segment_file.h"
#include "engine/store/offset_record.h"
#include "io/base/bytes.h"
#include "io/base/error.h"

enum {
    PATH_SIZE = 4096,
    /* Checksums of what looked like a frame and was none may cover the region so often; a
     * region that was made to look like frames at every step is then given up. */
    VAIN_SUMS_MAX = 16
};

size_t lahar_recovery_find_session(const struct lahar_recovery_scan *scan, uint64_t session)
{
    size_t i = 0;
    while (i < scan->session_count && scan->sessions[i].session != session) {
        i++;
    }
    return i;
}

/* --- growing arrays ------------------------------------------------------------------------- */

static bool grow(const lahar_allocator *allocator, void **array, size_t *capacity, size_t count,
                 size_t size)
{
    if (count < *capacity) {
        return true;
    }
    const size_t larger = *capacity == 0 ? 64 : 2 * *capacity;
    if (larger > SIZE_MAX / size) {
        return false;
    }
    void *memory = lahar_reallocate(allocator, *array, larger * size);
    if (memory == NULL) {
        return false;
    }
    *array = memory;
    *capacity = larger;
    return true;
}

static lahar_status add_frame(struct lahar_recovery_scan *scan, const struct lahar_frame *frame,
                              uint64_t session, size_t file, lahar_error *error)
{
    struct lahar_recovery_memory *memory = scan->memory;
    void *frames = memory->frames;
    const bool has_room = grow(scan->allocator, &frames, &memory->frame_capacity,
                               memory->frame_count, sizeof *memory->frames);
    memory->frames = frames;
    if (!has_room) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu recovered batches",
                          memory->frame_count);
    }
    memory->frames[memory->frame_count++] =
        (struct lahar_recovered_frame){.frame = *frame, .session = session, .file = (uint32_t)file};
    return LAHAR_OK;
}

/* --- a region -------------------------------------------------------------------------------- */

static bool check(const struct lahar_recovery_scan *scan, const uint8_t *from, uint64_t available,
                  uint32_t seed, uint64_t position, struct lahar_frame *frame_out)
{
#ifdef LAHAR_PLANTED_BUGS
    return lahar_frame_check_planted(from, available, seed, position, scan->planted_bugs,
                                     frame_out);
#else
    (void)scan;
    return lahar_frame_check(from, available, seed, position, frame_out);
#endif
}

static bool has_sound_offsets(const struct lahar_frame *frame)
{
    struct lahar_reader reader = lahar_reader_of(frame->offsets, frame->offsets_size);
    struct lahar_offset_record record;
    while (lahar_offset_record_next(&reader, &record)) {
    }
    return !reader.failed;
}

/* *is_needed_out: whether a batch at or above rolled_id points into the region. */
static lahar_status scan_region(struct lahar_recovery_scan *scan,
                                const struct lahar_recovered_region *region, uint64_t position,
                                uint32_t seed, uint64_t session, bool *is_needed_out,
                                lahar_error *error)
{
    const size_t session_index = lahar_recovery_find_session(scan, session);
    const size_t file = scan->memory->file_count - 1;
    uint64_t vain_left = VAIN_SUMS_MAX * region->size;
    uint64_t at = 0;
    *is_needed_out = false;
    while (region->size - at >= LAHAR_FRAME_HEADER_SIZE && vain_left != 0) {
        struct lahar_frame frame = {0};
        const uint64_t left = region->size - at;
        const uint32_t size_word = lahar_load_u32(region->data + at);
        if (size_word == 0 || !check(scan, region->data + at, left, seed, position + at, &frame) ||
            !has_sound_offsets(&frame)) {
            /* frame.size is set if the header was plausible, and then the frame was summed. */
            vain_left -= frame.size < vain_left ? frame.size : vain_left;
            at += LAHAR_FRAME_ALIGNMENT;
            continue;
        }
        if (frame.durable_id > scan->durable_ids[session_index]) {
            scan->durable_ids[session_index] = frame.durable_id;
        }
        if (frame.kind == LAHAR_FRAME_BATCH && frame.first_id >= scan->rolled_id) {
            *is_needed_out = true;
            LAHAR_TRY(add_frame(scan, &frame, session, file, error));
        }
        at += frame.size;
    }
    return LAHAR_OK;
}

/* --- a file ---------------------------------------------------------------------------------- */

/* NULL on failure, the reason of which is stored in *status_out. */
static struct lahar_recovered_region *read_region(struct lahar_recovery_scan *scan,
                                                  struct lahar_io_file *file, uint64_t offset,
                                                  uint64_t size, lahar_status *status_out,
                                                  lahar_error *error)
{
    struct lahar_recovered_region *region =
        lahar_allocate(scan->allocator, sizeof *region + (size_t)size);
    if (region == NULL) {
        *status_out = lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read a journal");
        return NULL;
    }
    size_t read = 0;
    *status_out =
        scan->io->ops->read(scan->io, file, offset, region->data, (size_t)size, &read, error);
    if (*status_out != LAHAR_OK) {
        lahar_release(scan->allocator, region);
        return NULL;
    }
    region->size = read;
    return region;
}

/* Keeps what batches point into. */
static void keep_region(struct lahar_recovery_scan *scan, struct lahar_recovered_region *region,
                        bool is_needed)
{
    if (is_needed) {
        region->next = scan->memory->regions;
        scan->memory->regions = region;
        scan->memory->region_bytes += sizeof *region + region->size;
    } else {
        lahar_release(scan->allocator, region);
    }
}

static lahar_status scan_regions(struct lahar_recovery_scan *scan, struct lahar_io_file *file,
                                 uint64_t file_size, const struct lahar_journal_header *header,
                                 lahar_error *error)
{
    const uint32_t seed = lahar_frame_seed(header->store_id, header->session, header->generation);
    for (uint32_t i = 0; i < header->region_count; i++) {
        const uint64_t offset = LAHAR_JOURNAL_HEADER_SIZE + (uint64_t)i * header->region_size;
        if (offset >= file_size) {
            break;
        }
        const uint64_t left = file_size - offset;
        const uint64_t size = left < header->region_size ? left : header->region_size;
        lahar_status status = LAHAR_OK;
        struct lahar_recovered_region *region =
            read_region(scan, file, offset, size, &status, error);
        if (region == NULL) {
            return status;
        }
        bool is_needed = false;
        status = scan_region(scan, region, offset, seed, header->session, &is_needed, error);
        keep_region(scan, region, is_needed);
        LAHAR_TRY(status);
    }
    return LAHAR_OK;
}

static lahar_status read_header(struct lahar_recovery_scan *scan, struct lahar_io_file *file,
                                struct lahar_journal_header *header_out, lahar_error *error)
{
    uint8_t block[LAHAR_JOURNAL_HEADER_SIZE];
    size_t read = 0;
    LAHAR_TRY(scan->io->ops->read(scan->io, file, 0, block, sizeof block, &read, error));
    if (read < sizeof block) {
        return lahar_fail(error, LAHAR_CORRUPT, "journal of %zu bytes", read);
    }
    return lahar_journal_header_decode(block, header_out, error);
}

/* Names a file so that it is neither read nor used nor removed again. */
static lahar_status set_aside(struct lahar_recovery_scan *scan, uint64_t number, lahar_error *error)
{
    char name[LAHAR_JOURNAL_NAME_SIZE];
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    lahar_journal_file_name(number, name);
    scan->memory->set_aside_count++;
    scan->memory->file_count--;
    if (scan->read_only) {
        return LAHAR_OK;
    }
    lahar_status status = LAHAR_OK;
    (void)snprintf(from, sizeof from, "%s/%s", scan->directory, name);
    /* The number may be given to another file, which may be damaged too. */
    for (unsigned i = 1; status == LAHAR_OK; i++) {
        struct lahar_io_file *taken = NULL;
        const int length = snprintf(to, sizeof to, "%s/%s.%u.damaged", scan->directory, name, i);
        if (length < 0 || length >= PATH_SIZE) {
            return lahar_fail(error, LAHAR_INVALID, "path too long: %s", scan->directory);
        }
        status = scan->io->ops->open(scan->io, to, LAHAR_IO_READ, &taken, NULL);
        scan->io->ops->close(scan->io, taken);
    }
    return status == LAHAR_NOT_FOUND ? scan->io->ops->rename(scan->io, from, to, error)
                                     : lahar_fail(error, status, "cannot set %s aside", from);
}

/* A header that does not pass: see recovery_seed.h. */
static lahar_status scan_without_header(struct lahar_recovery_scan *scan,
                                        struct lahar_io_file *file,
                                        const struct lahar_recovered_file *entry,
                                        lahar_error *error)
{
    uint8_t block[LAHAR_JOURNAL_HEADER_SIZE] = {0};
    size_t read = 0;
    LAHAR_TRY(scan->io->ops->read(scan->io, file, 0, block, sizeof block, &read, error));
    if (entry->size_bytes <= sizeof block) {
        return LAHAR_OK;
    }
    const uint64_t body_size = entry->size_bytes - sizeof block;
    if (body_size > LAHAR_JOURNAL_REGION_SIZE_MAX) {
        return set_aside(scan, entry->number, error); /* no journal is that large */
    }
    lahar_status status = LAHAR_OK;
    struct lahar_recovered_region *body =
        read_region(scan, file, sizeof block, body_size, &status, error);
    if (body == NULL) {
        return status;
    }
    struct lahar_journal_header use;
    bool is_needed = false;
    const enum lahar_seed_finding finding =
        lahar_recovery_find_seed(scan, block, body->data, body->size, &use);
    if (finding == LAHAR_SEED_UNKNOWN) {
        status = set_aside(scan, entry->number, error);
    } else if (finding == LAHAR_SEED_FOUND &&
               lahar_recovery_find_session(scan, use.session) != scan->session_count) {
        status = scan_region(scan, body, sizeof block,
                             lahar_frame_seed(scan->store_id, use.session, use.generation),
                             use.session, &is_needed, error);
    }
    keep_region(scan, body, is_needed);
    return status;
}

/* Reads an open file whose entry has been added to memory->files. */
static lahar_status scan_open_file(struct lahar_recovery_scan *scan, struct lahar_io_file *file,
                                   lahar_error *error)
{
    struct lahar_recovered_file *entry = &scan->memory->files[scan->memory->file_count - 1];
    if (!scan->read_only) {
        /* What is shown must survive a crash, also when a killed process left it unsynced. */
        LAHAR_TRY(scan->io->ops->sync(scan->io, file, error));
    }
    LAHAR_TRY(scan->io->ops->size(scan->io, file, &entry->size_bytes, error));
    struct lahar_journal_header header;
    lahar_error ignored = {0};
    lahar_status status = read_header(scan, file, &header, &ignored);
    if (status == LAHAR_CORRUPT) {
        return scan_without_header(scan, file, entry, error);
    }
    if (status != LAHAR_OK) {
        if (error != NULL) {
            *error = ignored;
        }
        return status;
    }
    entry->is_whole = entry->size_bytes == LAHAR_JOURNAL_HEADER_SIZE +
                                               (uint64_t)header.region_count * header.region_size;
    if (header.store_id != scan->store_id) {
        scan->memory->file_count--; /* not ours to reuse or to remove */
        return LAHAR_OK;
    }
    if (lahar_recovery_find_session(scan, header.session) == scan->session_count) {
        return LAHAR_OK;
    }
    const size_t frames_before = scan->memory->frame_count;
    LAHAR_TRY(scan_regions(scan, file, entry->size_bytes, &header, error));
    if (scan->read_only) {
        struct lahar_journal_header again;
        status = read_header(scan, file, &again, NULL);
        if (status != LAHAR_OK || again.generation != header.generation ||
            again.session != header.session) {
            scan->memory->frame_count = frames_before;
            scan->has_changed = true;
        }
    }
    return LAHAR_OK;
}

static lahar_status scan_file(struct lahar_recovery_scan *scan, uint64_t number, lahar_error *error)
{
    struct lahar_recovery_memory *memory = scan->memory;
    char name[LAHAR_JOURNAL_NAME_SIZE];
    char path[PATH_SIZE];
    lahar_journal_file_name(number, name);
    const int length = snprintf(path, sizeof path, "%s/%s", scan->directory, name);
    if (length < 0 || length >= PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "path too long: %s", scan->directory);
    }
    void *files = memory->files;
    const bool has_room = grow(scan->allocator, &files, &memory->file_capacity, memory->file_count,
                               sizeof *memory->files);
    memory->files = files;
    if (!has_room) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to list journals");
    }
    struct lahar_io_file *file = NULL;
    lahar_error failure = {0};
    const unsigned flags = scan->read_only ? LAHAR_IO_READ : LAHAR_IO_READ | LAHAR_IO_WRITE;
    lahar_status status = scan->io->ops->open(scan->io, path, flags, &file, &failure);
    if (status == LAHAR_NOT_FOUND && scan->read_only) {
        scan->has_changed = true;
        return LAHAR_OK;
    }
    if (status == LAHAR_OK) {
        memory->files[memory->file_count++] = (struct lahar_recovered_file){.number = number};
        status = scan_open_file(scan, file, &failure);
        scan->io->ops->close(scan->io, file);
    }
    if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
        *error = failure;
        lahar_error_context(error, "%s", name);
    }
    return status;
}

/* --- the directory --------------------------------------------------------------------------- */

struct name_list {
    const lahar_allocator *allocator;
    uint64_t *numbers;
    size_t count;
    size_t capacity;
};

static lahar_status visit_name(void *context, const char *name, bool is_directory)
{
    struct name_list *list = context;
    uint64_t number;
    if (is_directory || strlen(name) >= LAHAR_JOURNAL_NAME_SIZE ||
        !lahar_journal_file_number(name, &number)) {
        return LAHAR_OK;
    }
    void *numbers = list->numbers;
    const bool has_room =
        grow(list->allocator, &numbers, &list->capacity, list->count, sizeof *list->numbers);
    list->numbers = numbers;
    if (!has_room) {
        return LAHAR_NO_MEMORY;
    }
    list->numbers[list->count++] = number;
    return LAHAR_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

lahar_status lahar_recovery_scan_files(struct lahar_recovery_scan *scan, lahar_error *error)
{
    struct name_list list = {.allocator = scan->allocator};
    lahar_status status = scan->io->ops->list(scan->io, scan->directory, visit_name, &list, error);
    if (status == LAHAR_NO_MEMORY) {
        (void)lahar_fail(error, status, "no memory to list journals");
    }
    if (list.count > 1) {
        qsort(list.numbers, list.count, sizeof *list.numbers, compare_numbers);
    }
    for (size_t i = 0; i < list.count && status == LAHAR_OK; i++) {
        status = scan_file(scan, list.numbers[i], error);
    }
    lahar_release(scan->allocator, list.numbers);
    /* The process that created a file may have died before it synced the name; what is
     * recovered from the file, or written to it from now on, must not vanish with it. */
    if (status == LAHAR_OK && !scan->read_only) {
        status = scan->io->ops->sync_directory(scan->io, scan->directory, error);
    }
    return status;
}
