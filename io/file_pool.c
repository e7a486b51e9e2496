#include "io/file_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "io/base/error.h"

struct lahar_pooled_file {
    struct lahar_file_pool *pool;
    struct lahar_io_file *opened; /* NULL: closed for the moment */
    uint32_t users;
    struct lahar_pooled_file *newer; /* among those that are open and not in use */
    struct lahar_pooled_file *older;
    char path[];
};

struct lahar_file_pool {
    struct lahar_io *io;
    lahar_allocator allocator;
    uint32_t limit;

    /* Guarded by lock, and so is what files have besides their pool and path. */
    pthread_mutex_t lock;
    uint32_t open_count;
    struct lahar_pooled_file *newest;
    struct lahar_pooled_file *oldest;
};

lahar_status lahar_file_pool_create(struct lahar_io *io, uint32_t limit,
                                    const lahar_allocator *allocator,
                                    struct lahar_file_pool **pool_out, lahar_error *error)
{
    struct lahar_file_pool *pool = lahar_allocate_zeroed(allocator, 1, sizeof *pool);
    *pool_out = pool;
    if (pool == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for open files");
    }
    pool->io = io;
    pool->allocator = *allocator;
    pool->limit = limit;
    (void)pthread_mutex_init(&pool->lock, NULL);
    return LAHAR_OK;
}

void lahar_file_pool_destroy(struct lahar_file_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    LAHAR_ASSERT(pool->open_count == 0);
    (void)pthread_mutex_destroy(&pool->lock);
    const lahar_allocator allocator = pool->allocator;
    lahar_release(&allocator, pool);
}

struct lahar_io *lahar_file_pool_io(const struct lahar_file_pool *pool)
{
    return pool->io;
}

uint32_t lahar_file_pool_open_count(struct lahar_file_pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    const uint32_t count = pool->open_count;
    (void)pthread_mutex_unlock(&pool->lock);
    return count;
}

/* --- with the lock held ------------------------------------------------------------------ */

static void unlink_idle(struct lahar_pooled_file *file)
{
    struct lahar_file_pool *pool = file->pool;
    *(file->newer == NULL ? &pool->newest : &file->newer->older) = file->older;
    *(file->older == NULL ? &pool->oldest : &file->older->newer) = file->newer;
    file->newer = NULL;
    file->older = NULL;
}

static void link_idle(struct lahar_pooled_file *file)
{
    struct lahar_file_pool *pool = file->pool;
    file->older = pool->newest;
    *(pool->newest == NULL ? &pool->oldest : &pool->newest->newer) = file;
    pool->newest = file;
}

/* Takes the descriptor of the file used longest ago, for the caller to close; NULL when all are
 * in use, or when the limit is kept and the caller does not insist. */
static struct lahar_io_file *take_idle(struct lahar_file_pool *pool, bool insists)
{
    struct lahar_pooled_file *victim = pool->oldest;
    if (victim == NULL || (!insists && (pool->limit == 0 || pool->open_count <= pool->limit))) {
        return NULL;
    }
    unlink_idle(victim);
    struct lahar_io_file *opened = victim->opened;
    victim->opened = NULL;
    pool->open_count--;
    return opened;
}

/* --- files --------------------------------------------------------------------------------- */

/* Opens the file, making room among the process's descriptors where they have run out. */
static lahar_status open_by_name(struct lahar_pooled_file *file, struct lahar_io_file **opened_out,
                                 lahar_error *error)
{
    struct lahar_file_pool *pool = file->pool;
    struct lahar_io *io = pool->io;
    for (;;) {
        lahar_error cause = {0};
        const lahar_status status =
            io->ops->open(io, file->path, LAHAR_IO_READ, opened_out, &cause);
        if (status == LAHAR_OK) {
            return LAHAR_OK;
        }
        struct lahar_io_file *idle = NULL;
        if (cause.sys_errno == EMFILE || cause.sys_errno == ENFILE) {
            (void)pthread_mutex_lock(&pool->lock);
            idle = take_idle(pool, true);
            (void)pthread_mutex_unlock(&pool->lock);
        }
        if (idle == NULL) {
            if (error != NULL && error->status == LAHAR_OK) {
                *error = cause;
            }
            return status;
        }
        io->ops->close(io, idle);
    }
}

lahar_status lahar_pooled_file_open(struct lahar_file_pool *pool, const char *directory,
                                    const char *name, struct lahar_pooled_file **file_out,
                                    lahar_error *error)
{
    *file_out = NULL;
    const size_t size = strlen(directory) + strlen(name) + 2;
    struct lahar_pooled_file *file =
        lahar_allocate_zeroed(&pool->allocator, 1, sizeof *file + size);
    if (file == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to open %s", name);
    }
    file->pool = pool;
    (void)snprintf(file->path, size, "%s/%s", directory, name);
    struct lahar_io_file *opened = NULL;
    const lahar_status status = lahar_pooled_file_use(file, &opened, error);
    if (status != LAHAR_OK) {
        lahar_release(&pool->allocator, file);
        return status;
    }
    lahar_pooled_file_leave(file);
    *file_out = file;
    return LAHAR_OK;
}

void lahar_pooled_file_close(struct lahar_pooled_file *file)
{
    if (file == NULL) {
        return;
    }
    struct lahar_file_pool *pool = file->pool;
    (void)pthread_mutex_lock(&pool->lock);
    LAHAR_ASSERT(file->users == 0);
    if (file->opened != NULL) {
        unlink_idle(file);
        pool->open_count--;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    pool->io->ops->close(pool->io, file->opened);
    lahar_release(&pool->allocator, file);
}

lahar_status lahar_pooled_file_use(struct lahar_pooled_file *file,
                                   struct lahar_io_file **opened_out, lahar_error *error)
{
    struct lahar_file_pool *pool = file->pool;
    struct lahar_io_file *mine = NULL;
    (void)pthread_mutex_lock(&pool->lock);
    while (file->opened == NULL) {
        if (mine != NULL) {
            file->opened = mine;
            mine = NULL;
            pool->open_count++;
            link_idle(file);
            break;
        }
        /* Others may open it meanwhile; one descriptor is then too many. */
        (void)pthread_mutex_unlock(&pool->lock);
        LAHAR_TRY(open_by_name(file, &mine, error));
        (void)pthread_mutex_lock(&pool->lock);
    }
    if (file->users++ == 0) {
        unlink_idle(file);
    }
    *opened_out = file->opened;
    struct lahar_io_file *idle = take_idle(pool, false);
    (void)pthread_mutex_unlock(&pool->lock);
    pool->io->ops->close(pool->io, idle);
    pool->io->ops->close(pool->io, mine);
    return LAHAR_OK;
}

void lahar_pooled_file_leave(struct lahar_pooled_file *file)
{
    struct lahar_file_pool *pool = file->pool;
    (void)pthread_mutex_lock(&pool->lock);
    LAHAR_ASSERT(file->users > 0);
    if (--file->users == 0) {
        link_idle(file);
    }
    struct lahar_io_file *idle = take_idle(pool, false);
    (void)pthread_mutex_unlock(&pool->lock);
    pool->io->ops->close(pool->io, idle);
}

lahar_status lahar_pooled_file_read(struct lahar_pooled_file *file, uint64_t offset, void *data,
                                    size_t size, size_t *read_out, lahar_error *error)
{
    struct lahar_io *io = file->pool->io;
    struct lahar_io_file *opened = NULL;
    LAHAR_TRY(lahar_pooled_file_use(file, &opened, error));
    const lahar_status status = io->ops->read(io, opened, offset, data, size, read_out, error);
    lahar_pooled_file_leave(file);
    return status;
}

void lahar_pooled_file_announce(struct lahar_pooled_file *file, uint64_t offset, uint64_t size)
{
    struct lahar_io *io = file->pool->io;
    struct lahar_io_file *opened = NULL;
    if (lahar_pooled_file_use(file, &opened, NULL) == LAHAR_OK) {
        io->ops->announce(io, opened, offset, size);
        lahar_pooled_file_leave(file);
    }
}
