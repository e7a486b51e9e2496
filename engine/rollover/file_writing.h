/* Writing a file that belongs to an event file, in pieces: a shard or a table of contents.
 *
 * It has a temporary name until it is whole and on stable storage. What a crash leaves behind the
 * next opening removes. */
#ifndef LAHAR_ROLLOVER_FILE_WRITING_H
#define LAHAR_ROLLOVER_FILE_WRITING_H

#include <stddef.h>
#include <stdint.h>

#include "engine/store/store_state.h"

struct lahar_file_writing {
    struct lahar_io *io;
    struct lahar_io_file *file; /* NULL: not being written */
    uint64_t size;              /* bytes so far */
    uint64_t synced_size;       /* ... on stable storage */
    uint32_t checksum;          /* CRC-32C of them */
    lahar_status status;        /* of the first write that failed */
    char path[LAHAR_MANIFEST_PATH_SIZE];
    char temporary_path[LAHAR_MANIFEST_PATH_SIZE];
};

/* "<directory>/<name of info><suffix>". LAHAR_INVALID when that is too long. */
lahar_status lahar_file_path(const lahar_store *store, const struct lahar_manifest_file *file,
                             const char *suffix, char path_out[LAHAR_MANIFEST_PATH_SIZE],
                             lahar_error *error);
/* Creates the file. On failure there is nothing to drop. */
lahar_status lahar_file_writing_begin(struct lahar_file_writing *writing, lahar_store *store,
                                      const struct lahar_manifest_file *file, const char *suffix,
                                      lahar_error *error);
/* Appends, and syncs every LAHAR_FILE_SYNC_STEP bytes. */
lahar_status lahar_file_writing_put(struct lahar_file_writing *writing, const void *data,
                                    size_t size, lahar_error *error);
/* Syncs the file and gives it its name, which is durable once the directory is synced; drops it on
 * failure. */
lahar_status lahar_file_writing_finish(struct lahar_file_writing *writing, lahar_error *error);
/* Removes what was written. Nothing to do after finish. */
void lahar_file_writing_drop(struct lahar_file_writing *writing);

#endif
