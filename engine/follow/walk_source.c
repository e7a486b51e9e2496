/* Walking the directories of a source; see walk_source.h. */
#include "engine/follow/walk_source.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/base/error.h"

enum {
    DEPTH_MAX = 64
};

struct walk {
    struct lahar_follow *follow;
    const struct lahar_follow_source *source;
    struct lahar_source_look *look;
    const char *pattern; /* whole, of the paths wanted; NULL: every file of one directory */
    size_t base_size;    /* bytes of the pattern's parts that are no patterns */
};

/* One directory while its entries are visited. */
struct place {
    struct walk *walk;
    const char *path;
    const char *part; /* of the pattern, for the entries' names; NULL without a pattern */
    int descriptor;
    int depth;
};

static bool grow(const lahar_allocator *allocator, void **items, size_t count, size_t *capacity,
                 size_t size)
{
    if (count < *capacity) {
        return true;
    }
    const size_t grown = *capacity == 0 ? 64 : 2 * *capacity;
    void *moved = lahar_reallocate(allocator, *items, grown * size);
    if (moved == NULL) {
        return false;
    }
    *items = moved;
    *capacity = grown;
    return true;
}

static char *join(struct lahar_arena *arena, const char *directory, const char *name)
{
    const size_t directory_size = strcmp(directory, "/") == 0 ? 0 : strlen(directory);
    const size_t name_size = strlen(name);
    char *path = directory_size + name_size + 2 > LAHAR_SOURCE_PATH_SIZE
                     ? NULL
                     : lahar_arena_allocate(arena, directory_size + name_size + 2);
    if (path != NULL) {
        memcpy(path, directory, directory_size);
        path[directory_size] = '/';
        memcpy(path + directory_size + 1, name, name_size + 1);
    }
    return path;
}

static void note_incomplete(struct lahar_source_look *look)
{
    (void)lahar_fail(&look->error, LAHAR_NO_MEMORY, "no memory to look for files");
    look->is_incomplete = true;
}

static void add_file(struct walk *walk, const char *path, const struct lahar_source_stat *stat)
{
    struct lahar_source_look *look = walk->look;
    void *files = look->files;
    if (path == NULL || !grow(walk->follow->allocator, &files, look->file_count,
                              &look->file_capacity, sizeof *look->files)) {
        note_incomplete(look);
        return;
    }
    look->files = files;
    look->files[look->file_count++] = (struct lahar_found_file){path, *stat};
}

static void add_stray(struct walk *walk, const char *path, uint64_t inode)
{
    struct lahar_source_look *look = walk->look;
    void *strays = look->strays;
    if (path == NULL || !grow(walk->follow->allocator, &strays, look->stray_count,
                              &look->stray_capacity, sizeof *look->strays)) {
        note_incomplete(look);
        return;
    }
    look->strays = strays;
    look->strays[look->stray_count++] = (struct lahar_found_stray){path, inode};
}

static void watch_directory(struct walk *walk, const char *path, int descriptor)
{
    struct lahar_source_look *look = walk->look;
    const lahar_allocator *allocator = walk->follow->allocator;
    void *directories = look->directories;
    lahar_error error = {0};
    int watch = -1;
    if (walk->follow->watch == NULL) {
        look->is_unwatched = true;
        return;
    }
    if (lahar_watch_add(walk->follow->watch, descriptor, &watch, &error) != LAHAR_OK) {
        look->is_unwatched = true;
        if (look->error.status == LAHAR_OK) {
            look->error = error;
        }
        return;
    }
    const size_t size = strlen(path) + 1;
    char *copy = lahar_allocate(allocator, size);
    if (copy == NULL || !grow(allocator, &directories, look->directory_count,
                              &look->directory_capacity, sizeof *look->directories)) {
        lahar_release(allocator, copy);
        note_incomplete(look);
        return;
    }
    memcpy(copy, path, size);
    look->directories = directories;
    look->directories[look->directory_count++] = (struct lahar_watched_directory){watch, copy};
}

/* Names of compressed files are passed over unless the source decodes them. */
static bool is_compressed_name(const char *name)
{
    static const char *const endings[] = {".gz", ".zst", ".xz", ".bz2"};
    const size_t size = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t ending = strlen(endings[i]);
        if (size > ending && strcmp(name + size - ending, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_wanted_name(const struct lahar_follow_source *source, const char *name)
{
    const size_t size = strlen(name);
    return !is_compressed_name(name) ||
           (source->spec.decompress && strcmp(name + size - 3, ".gz") == 0);
}

static bool is_deep(const char *part)
{
    return strncmp(part, "**", 2) == 0 && (part[2] == '/' || part[2] == '\0');
}

static const char *behind(const char *part)
{
    part += strcspn(part, "/");
    return *part == '/' ? part + 1 : NULL;
}

static void walk_directory(struct walk *walk, const char *path, const char *part, int depth);

/* A directory is entered when the pattern goes on below it. Links are not followed below "**",
 * where they could lead in circles. */
static void visit_directory(const struct place *place, const char *name, const char *path,
                            bool is_link)
{
    const char *part = place->part;
    if (part == NULL || place->depth == DEPTH_MAX || path == NULL) {
        return;
    }
    if (is_deep(part)) {
        if (name[0] != '.' && !is_link) {
            walk_directory(place->walk, path, part, place->depth + 1);
        }
        return;
    }
    const char *next = behind(part);
    if (next != NULL && lahar_glob_match_part(part, strcspn(part, "/"), name)) {
        walk_directory(place->walk, path, next, place->depth + 1);
    }
}

static bool is_match(const struct place *place, const char *path, const char *name)
{
    const struct walk *walk = place->walk;
    if (!is_wanted_name(walk->source, name)) {
        return false;
    }
    return walk->pattern == NULL ||
           lahar_glob_match_path(walk->pattern + walk->base_size, path + walk->base_size);
}

static lahar_status visit_entry(void *context, const char *name, uint64_t inode,
                                enum lahar_source_kind kind)
{
    const struct place *place = context;
    struct walk *walk = place->walk;
    struct lahar_source_stat stat = {0};
    char *path = join(&walk->look->arena, place->path, name);
    if (path == NULL) {
        note_incomplete(walk->look);
        return LAHAR_OK;
    }
    if (kind == LAHAR_SOURCE_DIRECTORY) {
        visit_directory(place, name, path, false);
        return LAHAR_OK;
    }
    const bool matches = is_match(place, path, name);
    if (kind == LAHAR_SOURCE_REGULAR && !matches) {
        add_stray(walk, path, inode);
        return LAHAR_OK;
    }
    if (lahar_source_describe_at(place->descriptor, name, &stat, NULL) != LAHAR_OK) {
        return LAHAR_OK;
    }
    if (stat.kind == LAHAR_SOURCE_DIRECTORY) {
        visit_directory(place, name, path, kind == LAHAR_SOURCE_OTHER);
    } else if (stat.kind == LAHAR_SOURCE_REGULAR && matches) {
        add_file(walk, path, &stat);
    }
    return LAHAR_OK;
}

static void walk_directory(struct walk *walk, const char *path, const char *part, int depth)
{
    struct lahar_source_look *look = walk->look;
    struct lahar_source_stat stat;
    struct place place = {walk, path, part, -1, depth};
    lahar_error error = {0};
    lahar_status status =
        lahar_source_open(&walk->source->root, path, &place.descriptor, &stat, &error);
    if (status == LAHAR_OK && stat.kind == LAHAR_SOURCE_DIRECTORY) {
        watch_directory(walk, path, place.descriptor);
        status = lahar_source_list_names(place.descriptor, visit_entry, &place, &error);
    }
    lahar_source_close(place.descriptor);
    if (status != LAHAR_OK) {
        look->is_incomplete = look->is_incomplete || status != LAHAR_NOT_FOUND;
        if (look->error.status == LAHAR_OK) {
            look->error = error;
        }
    }
}

/* The directory in which a path's last part is. */
static void put_parent(const char *path, char parent_out[LAHAR_SOURCE_PATH_SIZE])
{
    const char *slash = strrchr(path, '/');
    const size_t size = slash == path ? 1 : (size_t)(slash - path);
    memcpy(parent_out, path, size);
    parent_out[size] = '\0';
}

/* Parts in front of the first that is a pattern. */
static void walk_pattern(struct walk *walk, const char *pattern)
{
    char base[LAHAR_SOURCE_PATH_SIZE];
    size_t size = 0;
    const char *part = pattern + 1;
    for (;;) {
        const size_t part_size = strcspn(part, "/");
        if (part[part_size] == '\0' || lahar_glob_is_pattern(part, part_size)) {
            break;
        }
        part += part_size + 1;
    }
    size = (size_t)(part - pattern);
    memcpy(base, pattern, size);
    base[size == 1 ? 1 : size - 1] = '\0';
    walk->pattern = pattern;
    walk->base_size = size;
    walk_directory(walk, base, part, 0);
}

/* One file: its directory is looked at for the names that it may be rotated to. */
static void walk_file(struct walk *walk)
{
    const struct lahar_follow_source *source = walk->source;
    char parent[LAHAR_SOURCE_PATH_SIZE];
    put_parent(source->path, parent);
    walk->pattern = source->path;
    walk->base_size = strlen(parent) == 1 ? 1 : strlen(parent) + 1;
    struct lahar_source_stat stat;
    struct place place = {walk, parent, NULL, -1, DEPTH_MAX};
    lahar_error error = {0};
    lahar_status status =
        lahar_source_open(&source->root, parent, &place.descriptor, &stat, &error);
    if (status == LAHAR_OK) {
        const char *name = source->path + walk->base_size;
        watch_directory(walk, parent, place.descriptor);
        if (lahar_source_describe_at(place.descriptor, name, &stat, NULL) == LAHAR_OK &&
            stat.kind == LAHAR_SOURCE_REGULAR) {
            add_file(walk, join(&walk->look->arena, parent, name), &stat);
        }
        walk->pattern = "\\"; /* nothing else matches */
        walk->base_size = 0;
        status = lahar_source_list_names(place.descriptor, visit_entry, &place, &error);
    }
    lahar_source_close(place.descriptor);
    if (status != LAHAR_OK) {
        walk->look->is_incomplete = status != LAHAR_NOT_FOUND;
        walk->look->error = error;
    }
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct lahar_found_file *)a)->path,
                  ((const struct lahar_found_file *)b)->path);
}

void lahar_source_walk(struct lahar_follow *follow, const struct lahar_follow_source *source,
                       struct lahar_source_look *look)
{
    struct walk walk = {.follow = follow, .source = source, .look = look};
    *look = (struct lahar_source_look){0};
    lahar_arena_init(&look->arena, follow->allocator, 0);
    switch (source->shape) {
    case LAHAR_SHAPE_FILE:
        walk_file(&walk);
        break;
    case LAHAR_SHAPE_DIRECTORY:
        walk_directory(&walk, source->path, NULL, DEPTH_MAX);
        break;
    case LAHAR_SHAPE_PATTERN:
        for (size_t i = 0; i < source->glob.count; i++) {
            walk_pattern(&walk, source->glob.patterns[i]);
        }
        break;
    }
    if (look->file_count > 1) {
        /* Directories have no order; files that are found together are read in one all the same. */
        qsort(look->files, look->file_count, sizeof *look->files, compare_paths);
    }
}

void lahar_source_look_deinit(struct lahar_source_look *look, const lahar_allocator *allocator)
{
    for (size_t i = 0; i < look->directory_count; i++) {
        lahar_release(allocator, look->directories[i].path);
    }
    lahar_release(allocator, look->directories);
    lahar_release(allocator, look->files);
    lahar_release(allocator, look->strays);
    lahar_arena_deinit(&look->arena);
}
