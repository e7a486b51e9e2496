/* The event files that reads see: immutable lists, replaced as a whole.
 *
 * A set says "every event below rolled_id is in these files". Snapshots hold a
 * reference to the set, the set holds its files, and a file stays as it is until the
 * last set that lists it has gone: only then the names of a discarded one are removed, since its
 * descriptor may have to be opened again (io/file_pool.h). */
#ifndef LAHAR_STORE_SEGMENT_SET_H
#define LAHAR_STORE_SEGMENT_SET_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/store/manifest.h"
#include "engine/store/snapshot.h"

/* An event file of the store with its shard. A damaged event file is still
 * listed, without a segment, so that its ids are known to be lost and not absent. */
struct lahar_stored_file {
    atomic_uint references;
    struct lahar_manifest_file entry;
    struct lahar_segment *segment;        /* NULL: cannot be read */
    struct lahar_shard *shard;            /* NULL: cannot be read, or there is none */
    struct lahar_pooled_file *shard_file; /* of the shard while it is open */
    atomic_bool is_discarded;             /* its names go with the last reference */
    const char *directory;                /* the store's, which outlives it */
    struct lahar_io *io;
    const lahar_allocator *allocator;
    lahar_status segment_status; /* why segment is NULL */
    lahar_status shard_status;   /* why shard is NULL */
};

struct lahar_segment_set {
    atomic_uint references;
    uint64_t rolled_id;
    size_t count;
    struct lahar_snapshot_segment *segments; /* readable files, in order of first id */
    struct lahar_stored_file **readable;     /* the same */
    uint64_t *reach;                         /* the largest id up to and including each of them */
    size_t lost_count;
    struct lahar_stored_file **lost; /* files without a segment, in order of first id */
    const lahar_allocator *allocator;
};

/* Where event files are, and what they share. */
struct lahar_stored_place {
    struct lahar_file_pool *pool;
    const char *directory; /* stays where it is until all of the files are gone */
    bool is_unavailable;   /* nothing there is this store's */
    const struct lahar_schema_catalog *catalog;
    struct lahar_block_cache *cache;
    struct lahar_shard_cache *shard_cache;
    const lahar_allocator *allocator;
};

/* Opens the file that entry describes. Damage is noted in the result; the status
 * is about memory alone. */
lahar_status lahar_stored_file_open(const struct lahar_stored_place *place,
                                    const struct lahar_manifest_file *entry,
                                    struct lahar_stored_file **file_out, lahar_error *error);
/* Removes the names of an event file, its table and shard. */
void lahar_stored_file_unlink(struct lahar_io *io, const char *directory,
                              const struct lahar_segment_info *info);
/* One more holder: the file and its names stay until all have released it. */
void lahar_stored_file_acquire(struct lahar_stored_file *file);
void lahar_stored_file_release(struct lahar_stored_file *file); /* NULL is allowed */

/* How a set differs from the one before it. */
struct lahar_segment_set_change {
    struct lahar_stored_file *const *added;
    size_t added_count;
    const uint64_t *removed; /* file numbers */
    size_t removed_count;
    uint64_t rolled_id;
};

/* A set of base's files (NULL: none) with the change made, each of which it references. */
lahar_status lahar_segment_set_create(const struct lahar_segment_set *base,
                                      const struct lahar_segment_set_change *change,
                                      const lahar_allocator *allocator,
                                      struct lahar_segment_set **set_out, lahar_error *error);
/* Files of the set that no manifest names any more: their names go when nobody reads them. */
void lahar_segment_set_discard(struct lahar_segment_set *set, const uint64_t *numbers,
                               size_t count);
void lahar_segment_set_acquire(struct lahar_segment_set *set);
void lahar_segment_set_release(struct lahar_segment_set *set); /* NULL is allowed */

#endif
