/* An open shard, shared by the files that answer from it. */
#ifndef LAHAR_INDEX_SHARD_READER_H
#define LAHAR_INDEX_SHARD_READER_H

#include "index/shard.h"
#include "index/shard_directory.h"
#include "index/shard_pages.h"

/* Immutable after opening but for pages, which synchronises itself. */
struct lahar_shard {
    const lahar_allocator *allocator;
    uint8_t *directory_bytes; /* what directory points into */
    size_t directory_size;
    struct lahar_directory directory;
    struct lahar_shard_pages pages;
    struct lahar_list_reader lists; /* pages and the directory's groups */
};

#endif
