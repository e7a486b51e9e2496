/* Files open for reading, of which at most a number hold a descriptor at a time.
 *
 * A file of the pool is used between use and leave; in between its descriptor stays. Those that
 * nobody uses are closed when the limit is reached, the one used longest ago first, and opened
 * again by name when they are wanted: so a name must not go while its file is in a pool with a
 * limit. While more files are in use at once than the limit says, it is exceeded. Any
 * thread. */
#ifndef LAHAR_IO_FILE_POOL_H
#define LAHAR_IO_FILE_POOL_H

#include "io/io.h"

struct lahar_file_pool;
struct lahar_pooled_file;

/* limit: descriptors; 0: every file keeps its own. */
lahar_status lahar_file_pool_create(struct lahar_io *io, uint32_t limit,
                                    const lahar_allocator *allocator,
                                    struct lahar_file_pool **pool_out, lahar_error *error);
/* All of its files are closed. NULL is allowed. */
void lahar_file_pool_destroy(struct lahar_file_pool *pool);
struct lahar_io *lahar_file_pool_io(const struct lahar_file_pool *pool);
/* Descriptors held now. */
uint32_t lahar_file_pool_open_count(struct lahar_file_pool *pool);

/* Opens directory "/" name. */
lahar_status lahar_pooled_file_open(struct lahar_file_pool *pool, const char *directory,
                                    const char *name, struct lahar_pooled_file **file_out,
                                    lahar_error *error);
/* Nobody uses it any more. NULL is allowed. */
void lahar_pooled_file_close(struct lahar_pooled_file *file);

lahar_status lahar_pooled_file_use(struct lahar_pooled_file *file,
                                   struct lahar_io_file **opened_out, lahar_error *error);
void lahar_pooled_file_leave(struct lahar_pooled_file *file);
/* Use, read and leave; as the read of struct lahar_io_ops. */
lahar_status lahar_pooled_file_read(struct lahar_pooled_file *file, uint64_t offset, void *data,
                                    size_t size, size_t *read_out, lahar_error *error);
/* Use, announce and leave; nothing when it cannot be used. */
void lahar_pooled_file_announce(struct lahar_pooled_file *file, uint64_t offset, uint64_t size);

#endif
