/* Which files a source has right now: a look at its directories. */
#ifndef LAHAR_FOLLOW_WALK_SOURCE_H
#define LAHAR_FOLLOW_WALK_SOURCE_H

#include "engine/follow/follow_internal.h"

/* One file that was found. */
struct lahar_found_file {
    const char *path; /* in the arena */
    struct lahar_source_stat stat;
};

/* A name in a directory of the source that does not match; a rotated file may have it. */
struct lahar_found_stray {
    const char *path; /* in the arena */
    uint64_t inode;
};

struct lahar_source_look {
    struct lahar_arena arena;
    struct lahar_found_file *files; /* owned */
    size_t file_count;
    size_t file_capacity;
    struct lahar_found_stray *strays; /* owned */
    size_t stray_count;
    size_t stray_capacity;
    struct lahar_watched_directory *directories; /* owned */
    size_t directory_count;
    size_t directory_capacity;
    bool is_incomplete; /* a directory could not be read, or memory was refused: what was not found
                           may be there */
    bool is_unwatched;  /* a directory could not be watched */
    lahar_error error;  /* the first reason for either */
};

/* Watches every directory before it lists it. Without any lock; look is empty before. */
void lahar_source_walk(struct lahar_follow *follow, const struct lahar_follow_source *source,
                       struct lahar_source_look *look);
void lahar_source_look_deinit(struct lahar_source_look *look, const lahar_allocator *allocator);

#endif
