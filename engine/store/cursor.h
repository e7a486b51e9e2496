/* What get and scan cursors have in common. */
#ifndef LAHAR_STORE_CURSOR_H
#define LAHAR_STORE_CURSOR_H

#include "engine/store/snapshot.h"
#include "io/base/arena.h"
#include "lahar/read.h"

/* A walk over resident batches; used by both kinds of cursor. */
struct lahar_batch_walk {
    const struct lahar_snapshot *snapshot;
    size_t batch;      /* whose rows are in offsets */
    bool has_offsets;  /* offsets belong to batch */
    uint32_t *offsets; /* where each row of the batch begins */
    size_t capacity;   /* of offsets, in rows */
};

void lahar_batch_walk_deinit(struct lahar_batch_walk *walk, const lahar_allocator *allocator);
/* Finds the rows of a batch. LAHAR_CORRUPT names its ids. */
lahar_status lahar_batch_walk_enter(struct lahar_batch_walk *walk, size_t batch,
                                    const lahar_allocator *allocator, lahar_error *error);
/* The stream of a row of the batch entered. */
uint32_t lahar_batch_walk_stream(const struct lahar_batch_walk *walk, uint32_t row);
/* Decodes a row of the batch entered, id, times and durability filled in. */
lahar_status lahar_batch_walk_read(const struct lahar_batch_walk *walk, uint32_t row,
                                   struct lahar_arena *arena, lahar_event *event_out,
                                   lahar_error *error);

/* The two kinds of cursor: each with its own state behind a common beginning. */
struct lahar_scan;
struct lahar_lookup;

lahar_status lahar_scan_create(lahar_store *store, struct lahar_snapshot *snapshot,
                               const lahar_scan_options *options, struct lahar_scan **scan_out,
                               lahar_error *error);
void lahar_scan_destroy(struct lahar_scan *scan); /* NULL is allowed */
/* LAHAR_NOT_FOUND at the end, without filling error. */
lahar_status lahar_scan_next(struct lahar_scan *scan, struct lahar_arena *arena,
                             lahar_event *event_out, lahar_error *error);

lahar_status lahar_lookup_create(lahar_store *store, struct lahar_snapshot *snapshot,
                                 const uint64_t *ids, size_t id_count,
                                 struct lahar_lookup **lookup_out, lahar_error *error);
/* Events of files come with these fields alone from now on; those in memory are whole. The list
 * stays with the caller. */
void lahar_lookup_limit_fields(struct lahar_lookup *lookup, const uint32_t *fields,
                               size_t field_count);
void lahar_lookup_destroy(struct lahar_lookup *lookup); /* NULL is allowed */
lahar_status lahar_lookup_next(struct lahar_lookup *lookup, struct lahar_arena *arena,
                               lahar_event *event_out, lahar_error *error);

#endif
