/* The files of a source, by inode and by path. Chains in buckets that double with the
 * number of files. */
#include <string.h>
#include <xxhash.h>

#include "engine/follow/follow_internal.h"

enum {
    BUCKETS_FIRST = 64
};

void lahar_file_table_init(struct lahar_file_table *table, const lahar_allocator *allocator)
{
    *table = (struct lahar_file_table){.allocator = allocator};
}

static void free_file(struct lahar_file_table *table, struct lahar_followed_file *file)
{
    lahar_source_close(file->descriptor);
    lahar_gzip_stream_destroy(file->gzip);
    lahar_release(table->allocator, file->path);
    lahar_release(table->allocator, file);
}

void lahar_file_table_deinit(struct lahar_file_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free_file(table, table->files[i]);
    }
    lahar_release(table->allocator, table->files);
    lahar_release(table->allocator, table->by_inode);
    lahar_release(table->allocator, table->by_path);
    lahar_file_table_init(table, table->allocator);
}

static struct lahar_followed_file **inode_bucket(const struct lahar_file_table *table,
                                                 uint64_t inode)
{
    return &table->by_inode[XXH3_64bits(&inode, sizeof inode) & (table->bucket_count - 1)];
}

static struct lahar_followed_file **path_bucket(const struct lahar_file_table *table,
                                                const char *path)
{
    return &table->by_path[XXH3_64bits(path, strlen(path)) & (table->bucket_count - 1)];
}

static void link_inode(struct lahar_file_table *table, struct lahar_followed_file *file)
{
    struct lahar_followed_file **bucket = inode_bucket(table, file->cursor.inode);
    file->next_by_inode = *bucket;
    *bucket = file;
}

static void link_path(struct lahar_file_table *table, struct lahar_followed_file *file)
{
    struct lahar_followed_file **bucket = path_bucket(table, file->path);
    file->next_by_path = *bucket;
    *bucket = file;
}

static void unlink_inode(struct lahar_file_table *table, struct lahar_followed_file *file)
{
    struct lahar_followed_file **place = inode_bucket(table, file->cursor.inode);
    while (*place != NULL && *place != file) {
        place = &(*place)->next_by_inode;
    }
    if (*place != NULL) {
        *place = file->next_by_inode;
    }
}

static void unlink_path(struct lahar_file_table *table, struct lahar_followed_file *file)
{
    struct lahar_followed_file **place = path_bucket(table, file->path);
    while (*place != NULL && *place != file) {
        place = &(*place)->next_by_path;
    }
    if (*place != NULL) {
        *place = file->next_by_path;
    }
}

static bool is_live(const struct lahar_followed_file *file)
{
    return (file->cursor.flags & LAHAR_CURSOR_CLOSED) == 0;
}

static bool grow_buckets(struct lahar_file_table *table)
{
    const size_t count = table->bucket_count == 0 ? BUCKETS_FIRST : 2 * table->bucket_count;
    struct lahar_followed_file **by_inode =
        lahar_allocate_zeroed(table->allocator, count, sizeof(void *));
    struct lahar_followed_file **by_path =
        lahar_allocate_zeroed(table->allocator, count, sizeof(void *));
    if (by_inode == NULL || by_path == NULL) {
        lahar_release(table->allocator, by_inode);
        lahar_release(table->allocator, by_path);
        return false;
    }
    lahar_release(table->allocator, table->by_inode);
    lahar_release(table->allocator, table->by_path);
    table->by_inode = by_inode;
    table->by_path = by_path;
    table->bucket_count = count;
    for (size_t i = 0; i < table->count; i++) {
        if (is_live(table->files[i])) {
            link_inode(table, table->files[i]);
            link_path(table, table->files[i]);
        }
    }
    return true;
}

static bool reserve(struct lahar_file_table *table)
{
    if (table->count == table->capacity) {
        const size_t capacity = table->capacity == 0 ? 16 : 2 * table->capacity;
        struct lahar_followed_file **files =
            lahar_reallocate(table->allocator, table->files, capacity * sizeof(void *));
        if (files == NULL) {
            return false;
        }
        table->files = files;
        table->capacity = capacity;
    }
    return table->count < table->bucket_count || grow_buckets(table);
}

struct lahar_followed_file *lahar_file_table_add(struct lahar_file_table *table,
                                                 const struct lahar_file_cursor *cursor,
                                                 const char *path, size_t path_size)
{
    struct lahar_followed_file *file =
        reserve(table) ? lahar_allocate_zeroed(table->allocator, 1, sizeof *file) : NULL;
    char *copy = file == NULL ? NULL : lahar_allocate(table->allocator, path_size + 1);
    if (copy == NULL) {
        lahar_release(table->allocator, file);
        return NULL;
    }
    memcpy(copy, path, path_size);
    copy[path_size] = '\0';
    file->cursor = *cursor;
    file->path = copy;
    file->descriptor = -1;
    file->index = table->count;
    table->files[table->count++] = file;
    if (is_live(file)) {
        link_inode(table, file);
        link_path(table, file);
    }
    return file;
}

void lahar_file_table_retire(struct lahar_file_table *table, struct lahar_followed_file *file)
{
    if (is_live(file)) {
        unlink_inode(table, file);
        unlink_path(table, file);
        file->cursor.flags |= LAHAR_CURSOR_CLOSED;
    }
}

void lahar_file_table_remove(struct lahar_file_table *table, struct lahar_followed_file *file)
{
    if (is_live(file)) {
        unlink_inode(table, file);
        unlink_path(table, file);
    }
    if (file->waits_for != NULL) {
        file->waits_for->successor = NULL;
    }
    if (file->successor != NULL) {
        file->successor->waits_for = NULL;
    }
    struct lahar_followed_file *last = table->files[--table->count];
    table->files[file->index] = last;
    last->index = file->index;
    free_file(table, file);
}

bool lahar_file_table_rename(struct lahar_file_table *table, struct lahar_followed_file *file,
                             const char *path)
{
    const size_t size = strlen(path) + 1;
    char *copy = lahar_allocate(table->allocator, size);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, path, size);
    unlink_path(table, file);
    lahar_release(table->allocator, file->path);
    file->path = copy;
    link_path(table, file);
    return true;
}

struct lahar_followed_file *lahar_file_table_by_number(const struct lahar_file_table *table,
                                                       uint64_t inode)
{
    struct lahar_followed_file *file =
        table->bucket_count == 0 ? NULL : *inode_bucket(table, inode);
    while (file != NULL && file->cursor.inode != inode) {
        file = file->next_by_inode;
    }
    return file;
}

struct lahar_followed_file *lahar_file_table_by_inode(const struct lahar_file_table *table,
                                                      uint64_t device, uint64_t inode)
{
    struct lahar_followed_file *file =
        table->bucket_count == 0 ? NULL : *inode_bucket(table, inode);
    while (file != NULL && (file->cursor.inode != inode || file->cursor.device != device)) {
        file = file->next_by_inode;
    }
    return file;
}

struct lahar_followed_file *lahar_file_table_by_path(const struct lahar_file_table *table,
                                                     const char *path)
{
    struct lahar_followed_file *file = table->bucket_count == 0 ? NULL : *path_bucket(table, path);
    while (file != NULL && strcmp(file->path, path) != 0) {
        file = file->next_by_path;
    }
    return file;
}

struct lahar_followed_file *lahar_file_table_by_generation(const struct lahar_file_table *table,
                                                           uint64_t generation)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->files[i]->cursor.generation == generation) {
            return table->files[i];
        }
    }
    return NULL;
}
