/* Sets of event files and the files in them; both are reference-counted and
 * immutable once another thread can see them. */
#include "engine/store/segment_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/base/error.h"

static lahar_status fetch_shard(void *context, uint64_t offset, void *data, size_t size,
                                lahar_error *error)
{
    const struct lahar_stored_file *file = context;
    size_t read = 0;
    LAHAR_TRY(lahar_pooled_file_read(file->shard_file, offset, data, size, &read, error));
    if (read != size) {
        return lahar_fail(error, LAHAR_CORRUPT,
                          "shard %llu ends at %llu, before the %zu bytes at %llu",
                          (unsigned long long)file->entry.info.number,
                          (unsigned long long)(offset + read), size, (unsigned long long)offset);
    }
    return LAHAR_OK;
}

static void announce_shard(void *context, uint64_t offset, uint64_t size)
{
    const struct lahar_stored_file *file = context;
    lahar_pooled_file_announce(file->shard_file, offset, size);
}

static lahar_status open_shard(struct lahar_stored_file *file,
                               const struct lahar_stored_place *place)
{
    if (!file->entry.has_shard) {
        return LAHAR_NOT_FOUND;
    }
    char name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(&file->entry.info, ".shard", name);
    LAHAR_TRY(lahar_pooled_file_open(place->pool, file->directory, name, &file->shard_file, NULL));
    struct lahar_io_file *opened = NULL;
    uint64_t size = 0;
    LAHAR_TRY(lahar_pooled_file_use(file->shard_file, &opened, NULL));
    const lahar_status status = file->io->ops->size(file->io, opened, &size, NULL);
    lahar_pooled_file_leave(file->shard_file);
    LAHAR_TRY(status);
    if (size != file->entry.shard_bytes) {
        return LAHAR_CORRUPT;
    }
    const struct lahar_shard_source source = {.fetch = fetch_shard,
                                              .announce = announce_shard,
                                              .context = file,
                                              .size = size,
                                              .cache = place->shard_cache};
    LAHAR_TRY(lahar_shard_open(&source, file->allocator, &file->shard, NULL));
    if (lahar_shard_document_count(file->shard) != file->entry.info.event_count) {
        lahar_shard_close(file->shard);
        file->shard = NULL;
        return LAHAR_CORRUPT;
    }
    return LAHAR_OK;
}

lahar_status lahar_stored_file_open(const struct lahar_stored_place *place,
                                    const struct lahar_manifest_file *entry,
                                    struct lahar_stored_file **file_out, lahar_error *error)
{
    *file_out = NULL;
    const lahar_allocator *allocator = place->allocator;
    struct lahar_stored_file *file = lahar_allocate_zeroed(allocator, 1, sizeof *file);
    if (file == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an event file");
    }
    atomic_init(&file->references, 1);
    atomic_init(&file->is_discarded, false);
    file->entry = *entry;
    file->directory = place->directory;
    file->io = lahar_file_pool_io(place->pool);
    file->allocator = allocator;
    file->segment_status = LAHAR_IO;
    file->shard_status = LAHAR_IO;
    if (!place->is_unavailable) {
        file->segment_status =
            lahar_segment_open(place->pool, place->directory, &entry->info, place->catalog,
                               place->cache, allocator, &file->segment, NULL);
        file->shard_status = open_shard(file, place);
    }
    if (file->shard == NULL) {
        lahar_pooled_file_close(file->shard_file);
        file->shard_file = NULL;
    }
    if (file->segment_status == LAHAR_NO_MEMORY || file->shard_status == LAHAR_NO_MEMORY) {
        lahar_stored_file_release(file);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to open event file %llu",
                          (unsigned long long)entry->info.number);
    }
    *file_out = file;
    return LAHAR_OK;
}

void lahar_stored_file_unlink(struct lahar_io *io, const char *directory,
                              const struct lahar_segment_info *info)
{
    static const char *const suffixes[] = {".shard", ".toc", ".events"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char name[LAHAR_FILE_NAME_SIZE];
        char path[LAHAR_MANIFEST_PATH_SIZE];
        lahar_segment_file_name(info, suffixes[i], name);
        const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
        /* What cannot be removed now is removed by the next opening. */
        if (length > 0 && (size_t)length < sizeof path) {
            (void)io->ops->unlink(io, path, NULL);
        }
    }
}

void lahar_stored_file_acquire(struct lahar_stored_file *file)
{
    /* Relaxed: who calls this holds the file already. */
    (void)atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
}

void lahar_stored_file_release(struct lahar_stored_file *file)
{
    /* The last release must see everything that the other holders did. */
    if (file == NULL ||
        atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    lahar_shard_close(file->shard);
    lahar_segment_release(file->segment);
    lahar_pooled_file_close(file->shard_file);
    if (atomic_load_explicit(&file->is_discarded, memory_order_relaxed)) {
        lahar_stored_file_unlink(file->io, file->directory, &file->entry.info);
    }
    lahar_release(file->allocator, file);
}

static int compare_files(const void *a, const void *b)
{
    const struct lahar_stored_file *left = *(struct lahar_stored_file *const *)a;
    const struct lahar_stored_file *right = *(struct lahar_stored_file *const *)b;
    const uint64_t l = left->entry.info.first_id;
    const uint64_t r = right->entry.info.first_id;
    return (l > r) - (l < r);
}

static void set_add(struct lahar_segment_set *set, struct lahar_stored_file *file)
{
    lahar_stored_file_acquire(file);
    if (file->segment == NULL) {
        set->lost[set->lost_count++] = file;
    } else {
        set->readable[set->count++] = file;
    }
}

/* Adds the files of a list that the change does not remove. */
static void set_take(struct lahar_segment_set *set, struct lahar_stored_file *const *files,
                     size_t count, const struct lahar_segment_set_change *change)
{
    for (size_t i = 0; i < count; i++) {
        bool is_removed = false;
        for (size_t k = 0; k < change->removed_count && !is_removed; k++) {
            is_removed = change->removed[k] == files[i]->entry.info.number;
        }
        if (!is_removed) {
            set_add(set, files[i]);
        }
    }
}

lahar_status lahar_segment_set_create(const struct lahar_segment_set *base,
                                      const struct lahar_segment_set_change *change,
                                      const lahar_allocator *allocator,
                                      struct lahar_segment_set **set_out, lahar_error *error)
{
    const size_t total =
        change->added_count + (base == NULL ? 0 : base->count + base->lost_count) + 1;
    struct lahar_segment_set *set = lahar_allocate_zeroed(allocator, 1, sizeof *set);
    if (set == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the list of event files");
    }
    atomic_init(&set->references, 1);
    set->allocator = allocator;
    set->rolled_id = change->rolled_id;
    set->segments = lahar_allocate_zeroed(allocator, total, sizeof *set->segments);
    set->readable = lahar_allocate_zeroed(allocator, total, sizeof *set->readable);
    set->lost = lahar_allocate_zeroed(allocator, total, sizeof *set->lost);
    set->reach = lahar_allocate_zeroed(allocator, total, sizeof *set->reach);
    if (set->segments == NULL || set->readable == NULL || set->lost == NULL || set->reach == NULL) {
        lahar_segment_set_release(set);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a list of %zu event files", total);
    }
    if (base != NULL) {
        set_take(set, base->readable, base->count, change);
        set_take(set, base->lost, base->lost_count, change);
    }
    for (size_t i = 0; i < change->added_count; i++) {
        set_add(set, change->added[i]);
    }
    qsort(set->readable, set->count, sizeof *set->readable, compare_files);
    qsort(set->lost, set->lost_count, sizeof *set->lost, compare_files);
    for (size_t i = 0; i < set->count; i++) {
        set->segments[i] =
            (struct lahar_snapshot_segment){set->readable[i]->segment, set->readable[i]->shard};
        const uint64_t last_id = set->readable[i]->entry.info.last_id;
        set->reach[i] = i > 0 && set->reach[i - 1] > last_id ? set->reach[i - 1] : last_id;
    }
    *set_out = set;
    return LAHAR_OK;
}

static bool discard_from(struct lahar_stored_file *const *files, size_t count, uint64_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (files[i]->entry.info.number == number) {
            atomic_store_explicit(&files[i]->is_discarded, true, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

void lahar_segment_set_discard(struct lahar_segment_set *set, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!discard_from(set->readable, set->count, numbers[i])) {
            (void)discard_from(set->lost, set->lost_count, numbers[i]);
        }
    }
}

void lahar_segment_set_acquire(struct lahar_segment_set *set)
{
    atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
}

void lahar_segment_set_release(struct lahar_segment_set *set)
{
    /* As for files: the last release sees what the other holders did. */
    if (set == NULL || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        lahar_stored_file_release(set->readable[i]);
    }
    for (size_t i = 0; i < set->lost_count; i++) {
        lahar_stored_file_release(set->lost[i]);
    }
    lahar_release(set->allocator, set->segments);
    lahar_release(set->allocator, set->readable);
    lahar_release(set->allocator, set->reach);
    lahar_release(set->allocator, set->lost);
    lahar_release(set->allocator, set);
}
