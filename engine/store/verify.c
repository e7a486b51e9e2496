/* Verifying a store: every byte of every file that the manifest names is read and
 * checked; with full, every event is decoded and looked up in its shard.
 *
 * Damage is a finding, not a failure; the status says whether verifying itself could
 * be done. The files checked are those of the snapshot: rollover may go on meanwhile. */
#include <stdio.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"
#include "io/whole_file.h"
#include "lahar/inspect.h"

enum {
    READ_SIZE = 1024 * 1024
};

struct verification {
    lahar_store *store;
    const lahar_verify_options *options;
    struct lahar_segment_set *set;
    lahar_verify_result result;
    uint64_t total_bytes;
    uint8_t *buffer; /* READ_SIZE bytes */
    struct lahar_arena arena;
};

static void report(struct verification *verification, const char *file, uint64_t offset,
                   uint64_t first_id, uint64_t last_id, const char *message)
{
    verification->result.finding_count++;
    if (verification->options->on_finding != NULL) {
        const lahar_finding finding = {file, offset, first_id, last_id, message};
        verification->options->on_finding(verification->options->context, &finding);
    }
}

static void advance(struct verification *verification, uint64_t bytes)
{
    verification->result.byte_count += bytes;
    if (verification->options->on_progress != NULL) {
        verification->options->on_progress(verification->options->context,
                                           verification->result.byte_count,
                                           verification->total_bytes);
    }
}

/* What findings call the file: its name relative to the store's directory or, in another volume,
 * with the path of that. */
static void finding_name(const struct verification *verification,
                         const struct lahar_manifest_file *file, const char *suffix,
                         char name_out[LAHAR_MANIFEST_PATH_SIZE])
{
    char name[LAHAR_FILE_NAME_SIZE];
    const char *directory =
        file->directory == 0 ? "events" : lahar_volume_path(verification->store, file->directory);
    lahar_segment_file_name(&file->info, suffix, name);
    (void)snprintf(name_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s", directory, name);
}

/* Only these are findings; anything else stops the verification. */
static bool is_damage(lahar_status status)
{
    return status == LAHAR_CORRUPT || status == LAHAR_IO || status == LAHAR_NOT_FOUND ||
           status == LAHAR_UNSUPPORTED;
}

/* --- event files ------------------------------------------------------------------------------ */

/* Checks the events of a block against the block's and the shard's own account of them. */
static void check_events(struct verification *verification, const struct lahar_stored_file *file,
                         const struct lahar_block *block, const struct lahar_block_info *info,
                         const char *name)
{
    const uint32_t count = lahar_block_row_count(block);
    uint64_t previous_id = 0;
    for (uint32_t row = 0; row < count; row++) {
        lahar_error error = {0};
        lahar_event event;
        lahar_arena_reset(&verification->arena);
        const uint64_t id = lahar_block_id(block, row);
        if (lahar_block_read(block, row, &verification->arena, &event, &error) != LAHAR_OK) {
            report(verification, name, info->offset, id, id, error.message);
            continue;
        }
        if (id < info->first_id || id > info->last_id || (row != 0 && id <= previous_id) ||
            event.id != id || event.stream != file->entry.info.stream ||
            event.time_ns < info->time_min_ns || event.time_ns > info->time_max_ns ||
            event.arrival_ns < info->arrival_min_ns || event.arrival_ns > info->arrival_max_ns) {
            report(verification, name, info->offset, id, id,
                   "the event contradicts the table of contents");
        }
        previous_id = id;
        if (file->shard != NULL) {
            const uint32_t ordinal = lahar_shard_ordinal(file->shard, id);
            if (ordinal != info->first_ordinal + row ||
                ordinal >= lahar_shard_document_count(file->shard) ||
                lahar_shard_id(file->shard, ordinal) != id) {
                char shard_name[LAHAR_MANIFEST_PATH_SIZE];
                finding_name(verification, &file->entry, ".shard", shard_name);
                report(verification, shard_name, 0, id, id,
                       "the shard does not know the event under its ordinal");
            }
        }
    }
}

/* Header, footer and size. Reads do without them, since the blocks are in the table. */
static lahar_status verify_ends(struct verification *verification,
                                const struct lahar_stored_file *file, const char *name,
                                lahar_error *error)
{
    const struct lahar_segment_info *info = &file->entry.info;
    lahar_error cause = {0};
    const lahar_status status = lahar_segment_check_ends(file->segment, &cause);
    if (status == LAHAR_OK) {
        return LAHAR_OK;
    }
    if (!is_damage(status)) {
        return lahar_fail(error, status, "%s", cause.message);
    }
    report(verification, name, cause.offset, info->first_id, info->last_id, cause.message);
    return LAHAR_OK;
}

static lahar_status verify_events(struct verification *verification, struct lahar_stored_file *file,
                                  lahar_error *error)
{
    const struct lahar_segment_info *entry = &file->entry.info;
    char name[LAHAR_MANIFEST_PATH_SIZE];
    finding_name(verification, &file->entry, ".events", name);
    LAHAR_TRY(verify_ends(verification, file, name, error));
    uint64_t event_count = 0;
    const uint32_t block_count = lahar_segment_describe(file->segment)->block_count;
    for (uint32_t i = 0; i < block_count; i++) {
        const struct lahar_block_info *info = lahar_segment_block_info(file->segment, i);
        struct lahar_block *block = NULL;
        lahar_error cause = {0};
        const lahar_status status = lahar_segment_check(file->segment, i, &block, &cause);
        if (status != LAHAR_OK) {
            if (!is_damage(status)) {
                return lahar_fail(error, status, "%s", cause.message);
            }
            report(verification, name, info->offset, info->first_id, info->last_id, cause.message);
            event_count += info->row_count;
        } else {
            if (lahar_block_row_count(block) != info->row_count) {
                report(verification, name, info->offset, info->first_id, info->last_id,
                       "the block holds another number of events than the table of contents says");
            }
            verification->result.event_count += lahar_block_row_count(block);
            event_count += info->row_count;
            if (verification->options->full) {
                check_events(verification, file, block, info, name);
            }
            lahar_block_release(block);
        }
        advance(verification, info->size);
    }
    if (event_count != entry->event_count || block_count != entry->block_count) {
        report(verification, name, 0, entry->first_id, entry->last_id,
               "the file holds another number of events than the manifest says");
    }
    return LAHAR_OK;
}

/* --- tables of contents and shards -------------------------------------------------------- */

/* LAHAR_CORRUPT when the file has another size. */
static lahar_status sum_file(struct verification *verification, struct lahar_io_file *file,
                             uint64_t size, uint32_t *checksum_out, lahar_error *error)
{
    struct lahar_io *io = verification->store->io;
    uint64_t found_size = 0;
    LAHAR_TRY(io->ops->size(io, file, &found_size, error));
    if (found_size != size) {
        return lahar_fail(error, LAHAR_CORRUPT, "the file has %llu bytes, the manifest says %llu",
                          (unsigned long long)found_size, (unsigned long long)size);
    }
    return lahar_io_sum_file(io, file, verification->buffer, READ_SIZE, &found_size, checksum_out,
                             error);
}

static lahar_status check_shard(struct verification *verification, struct lahar_stored_file *file,
                                lahar_error *error)
{
    if (file->shard == NULL) {
        return lahar_fail(error,
                          file->shard_status == LAHAR_OK ? LAHAR_CORRUPT : file->shard_status,
                          "the shard cannot be opened: %s", lahar_status_name(file->shard_status));
    }
    uint32_t checksum = 0;
    struct lahar_io_file *opened = NULL;
    LAHAR_TRY(lahar_pooled_file_use(file->shard_file, &opened, error));
    const lahar_status status =
        sum_file(verification, opened, file->entry.shard_bytes, &checksum, error);
    lahar_pooled_file_leave(file->shard_file);
    LAHAR_TRY(status);
    if (checksum != file->entry.shard_checksum) {
        return lahar_fail(error, LAHAR_CORRUPT, "the shard fails the checksum in the manifest");
    }
    return lahar_shard_verify(file->shard, error);
}

static lahar_status verify_shard(struct verification *verification, struct lahar_stored_file *file,
                                 lahar_error *error)
{
    if (!file->entry.has_shard) {
        return LAHAR_OK;
    }
    const struct lahar_segment_info *info = &file->entry.info;
    lahar_error cause = {0};
    const lahar_status status = check_shard(verification, file, &cause);
    advance(verification, file->entry.shard_bytes);
    verification->result.file_count++;
    if (status == LAHAR_OK) {
        return LAHAR_OK;
    }
    if (!is_damage(status)) {
        return lahar_fail(error, status, "%s", cause.message);
    }
    char name[LAHAR_MANIFEST_PATH_SIZE];
    finding_name(verification, &file->entry, ".shard", name);
    report(verification, name, cause.offset, info->first_id, info->last_id, cause.message);
    return LAHAR_OK;
}

static lahar_status check_toc(struct verification *verification,
                              const struct lahar_manifest_file *entry, const char *name,
                              lahar_error *error)
{
    lahar_store *store = verification->store;
    struct lahar_io *io = store->io;
    char path[LAHAR_MANIFEST_PATH_SIZE];
    char file_name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(&entry->info, ".toc", file_name);
    const int length =
        snprintf(path, sizeof path, "%s/%s", lahar_volume_path(store, entry->directory), file_name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
    }
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(io->ops->open(io, path, LAHAR_IO_READ, &file, error));
    uint32_t checksum = 0;
    const lahar_status status =
        sum_file(verification, file, entry->info.toc_bytes, &checksum, error);
    io->ops->close(io, file);
    if (status == LAHAR_OK && checksum != entry->toc_checksum) {
        return lahar_fail(error, LAHAR_CORRUPT, "the table fails the checksum in the manifest");
    }
    return status;
}

/* The table of contents as it is on disk: reads do without a damaged one, because opening
 * rebuilds it in memory. */
static lahar_status verify_toc(struct verification *verification,
                               const struct lahar_stored_file *file, lahar_error *error)
{
    const struct lahar_segment_info *info = &file->entry.info;
    char name[LAHAR_MANIFEST_PATH_SIZE];
    finding_name(verification, &file->entry, ".toc", name);
    lahar_error cause = {0};
    const lahar_status status = check_toc(verification, &file->entry, name, &cause);
    advance(verification, info->toc_bytes);
    verification->result.file_count++;
    if (status == LAHAR_OK) {
        return LAHAR_OK;
    }
    if (!is_damage(status)) {
        return lahar_fail(error, status, "%s", cause.message);
    }
    report(verification, name, cause.offset, info->first_id, info->last_id, cause.message);
    return LAHAR_OK;
}

/* --- everything --------------------------------------------------------------------------- */

static void verify_manifest(struct verification *verification)
{
    lahar_store *store = verification->store;
    char name[LAHAR_MANIFEST_NAME_SIZE];
    lahar_error cause = {0};
    uint64_t offset = 0;
    (void)pthread_mutex_lock(&store->manifest_lock);
    lahar_manifest_name(store->manifest->number, name);
    const uint64_t size_bytes = store->manifest->size_bytes;
    const lahar_status status = lahar_manifest_verify(store->manifest, &offset, &cause);
    (void)pthread_mutex_unlock(&store->manifest_lock);
    advance(verification, size_bytes);
    verification->result.file_count++;
    if (status != LAHAR_OK) {
        report(verification, name, offset, 0, 0, cause.message);
    }
}

static void verify_identity(struct verification *verification)
{
    lahar_store *store = verification->store;
    struct lahar_identity identity;
    lahar_error cause = {0};
    lahar_status status = lahar_identity_read(store->io, store->directory, &identity, &cause);
    if (status == LAHAR_OK && memcmp(identity.uuid, store->identity.uuid, 16) != 0) {
        status = lahar_fail(&cause, LAHAR_CORRUPT, "the file identifies another store");
    }
    advance(verification, LAHAR_IDENTITY_SIZE);
    verification->result.file_count++;
    if (status != LAHAR_OK) {
        report(verification, LAHAR_IDENTITY_NAME, 0, 0, 0, cause.message);
    }
}

/* What journals lost before it came to event files. */
static void verify_lost(struct verification *verification)
{
    const struct lahar_lost_list *lost = &verification->store->lost;
    for (size_t i = 0; i < lost->count; i++) {
        report(verification, "journal", 0, lost->ranges[i].first_id, lost->ranges[i].end_id - 1,
               "these events were durable in a journal that was damaged");
    }
}

static lahar_status verify_files(struct verification *verification, lahar_error *error)
{
    struct lahar_segment_set *set = verification->set;
    for (size_t i = 0; i < set->lost_count; i++) {
        const struct lahar_segment_info *info = &set->lost[i]->entry.info;
        char name[LAHAR_MANIFEST_PATH_SIZE];
        finding_name(verification, &set->lost[i]->entry, ".events", name);
        verification->result.file_count++;
        report(verification, name, 0, info->first_id, info->last_id,
               "the event file cannot be opened");
    }
    for (size_t i = 0; i < set->count; i++) {
        verification->result.file_count++;
        LAHAR_TRY(verify_events(verification, set->readable[i], error));
        LAHAR_TRY(verify_toc(verification, set->readable[i], error));
        LAHAR_TRY(verify_shard(verification, set->readable[i], error));
    }
    return LAHAR_OK;
}

static void count_total(struct verification *verification)
{
    const struct lahar_segment_set *set = verification->set;
    verification->total_bytes = LAHAR_IDENTITY_SIZE;
    (void)pthread_mutex_lock(&verification->store->manifest_lock);
    verification->total_bytes += verification->store->manifest->size_bytes;
    (void)pthread_mutex_unlock(&verification->store->manifest_lock);
    for (size_t i = 0; i < set->count; i++) {
        const struct lahar_manifest_file *entry = &set->readable[i]->entry;
        verification->total_bytes +=
            entry->info.file_bytes + entry->info.toc_bytes + entry->shard_bytes;
    }
}

/* Whether the rows of a batch are as many as it has events, and fill it. */
static void check_batch(struct verification *verification, const struct lahar_resident_batch *batch)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        lahar_error cause = {0};
        lahar_event event;
        const uint64_t id = batch->first_id + i;
        const uint32_t size = lahar_row_size(batch->rows + offset, batch->rows_size - offset);
        lahar_arena_reset(&verification->arena);
        if (size == 0) {
            report(verification, "journal", 0, id, batch->first_id + batch->event_count - 1,
                   "the batch ends before these events");
            return;
        }
        if (lahar_row_decode(batch->rows + offset, size, &verification->arena, &event, &cause) !=
            LAHAR_OK) {
            report(verification, "journal", 0, id, id, cause.message);
        }
        offset += size;
    }
}

/* What is not in event files yet: its checksums were checked when it was read from the
 * journals or are checked by recovery. */
static lahar_status count_resident(struct verification *verification, lahar_error *error)
{
    struct lahar_snapshot *snapshot = NULL;
    LAHAR_TRY(lahar_snapshot_take(verification->store, &snapshot, error));
    const uint64_t rolled_id = verification->set->rolled_id;
    const size_t count = lahar_snapshot_batch_count(snapshot);
    for (size_t i = 0; i < count; i++) {
        const struct lahar_resident_batch *batch = lahar_snapshot_batch(snapshot, i);
        if (batch->first_id >= rolled_id) {
            verification->result.event_count += batch->event_count;
            check_batch(verification, batch);
        }
    }
    lahar_snapshot_release(snapshot);
    return LAHAR_OK;
}

lahar_status lahar_verify(lahar_store *store, const lahar_verify_options *options,
                          lahar_verify_result *result_out, lahar_error *error)
{
    const size_t size = result_out->struct_size;
    if (options == NULL || options->struct_size < sizeof *options || size < sizeof *result_out) {
        return lahar_fail(error, LAHAR_INVALID, "verify: struct_size is not set");
    }
    struct verification verification = {.store = store, .options = options};
    verification.buffer = lahar_allocate(&store->allocator, READ_SIZE);
    if (verification.buffer == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to verify the store");
    }
    lahar_arena_init(&verification.arena, &store->allocator, 0);
    verification.set = lahar_store_acquire_set(store);
    count_total(&verification);
    verify_identity(&verification);
    verify_manifest(&verification);
    verify_lost(&verification);
    lahar_status status = verify_files(&verification, error);
    if (status == LAHAR_OK) {
        status = count_resident(&verification, error);
    }
    lahar_segment_set_release(verification.set);
    lahar_arena_deinit(&verification.arena);
    lahar_release(&store->allocator, verification.buffer);
    verification.result.struct_size = size;
    *result_out = verification.result;
    return status;
}
