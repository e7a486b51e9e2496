/* Volumes: the directories that hold event files, with their tables and shards.
 *
 * Number 0 is the store's own, events/; others are added by name when a store is opened and
 * stay part of it. The manifest keeps their names and paths; a marker file in each says whose it
 * is, so that a disk that is not mounted, or another one in its place, is told from an empty
 * directory. One that is not there costs its own events alone.
 *
 * New files go where most space is free. A volume in which writing fails is passed over for
 * a while. */
#ifndef LAHAR_STORE_VOLUMES_H
#define LAHAR_STORE_VOLUMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/store/manifest.h"
#include "lahar/store.h"

/* The marker's file name. */
#define LAHAR_VOLUME_MARKER_NAME "LAHAR-VOLUME"

struct lahar_volume {
    char *name; /* "" for the store's own */
    char *path;
    bool is_available;
    bool is_new;                       /* name or path is not in the manifest yet */
    lahar_error reason;                /* why not available */
    atomic_uint_least64_t retry_at_ns; /* monotonic; nothing is placed here before */
};

/* Those of the state and those of the options; to be called again after closing. A writer makes
 * what is new. LAHAR_INVALID, LAHAR_NO_MEMORY; for what is new also LAHAR_IO, LAHAR_NO_SPACE and
 * LAHAR_EXISTS when the directory belongs to another store. */
lahar_status lahar_volumes_open(lahar_store *store, const struct lahar_manifest_state *state,
                                lahar_error *error);
void lahar_volumes_close(lahar_store *store);
/* Records of those that are not in the manifest yet; returns their number. */
uint32_t lahar_volumes_put_new(const lahar_store *store, struct lahar_buffer *records);

const char *lahar_volume_path(const lahar_store *store, uint32_t volume);
/* Where the next event file goes. */
uint32_t lahar_volume_choose(lahar_store *store);
/* Writing there has failed with that status. */
void lahar_volume_note_failure(lahar_store *store, uint32_t volume, lahar_status status);
/* LAHAR_OK: something can be written somewhere without touching the reserve of free space. */
bool lahar_volume_has_space(lahar_store *store);

#endif
