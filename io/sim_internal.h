/* What the parts of the simulated disk share.
 *
 * sim_content.c  bytes of one file: cached, durable, and the writes in between
 * sim_names.c    which name leads to which file, cached and durable
 * sim_disk.c     the disk: operations, faults, crash, restart, clock, clone
 * sim_backend.c  the disk behind io.h
 * sim_queue.c    its queues
 *
 * Everything is guarded by disk->mutex, except the reference counts of pages,
 * which clones share. Functions that can fail return 0 or an errno value. */
#ifndef LAHAR_IO_SIM_INTERNAL_H
#define LAHAR_IO_SIM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "io/sim_disk.h"

enum {
    SIM_PAGE_SIZE = 4096,
    SIM_SECTOR_SIZE = 512, /* the unit that a disk writes whole or not at all */
    SIM_PAGE_SECTORS = SIM_PAGE_SIZE / SIM_SECTOR_SIZE,
    SIM_ALL_SECTORS = (1 << SIM_PAGE_SECTORS) - 1
};

/* A pseudo-random sequence (splitmix64): the same seed gives the same numbers. */
struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_random_next(struct sim_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 .. limit - 1 */
static inline uint64_t sim_random_below(struct sim_random *random, uint64_t limit)
{
    return sim_random_next(random) % limit;
}

/* --- content --- */

/* Immutable while more than one holds it: cached and durable view, pending
 * writes and clones share pages. */
struct sim_page {
    atomic_uint references;
    uint8_t bytes[SIM_PAGE_SIZE];
};

/* Pages of a file by number; NULL and beyond capacity: zeros. */
struct sim_map {
    struct sim_page **pages;
    uint32_t capacity;
};

enum sim_pending_kind {
    SIM_PENDING_PAGE,  /* sectors of one page were written */
    SIM_PENDING_ZEROS, /* whole pages were written with zeros */
    SIM_PENDING_SIZE   /* the size was set */
};

/* One unsynced change of a file, in the order in which they were made. */
struct sim_pending {
    enum sim_pending_kind kind;
    uint32_t sectors;      /* PAGE: bit i: sector i was written; 0: superseded */
    uint32_t first_page;   /* PAGE, ZEROS */
    uint32_t page_count;   /* ZEROS */
    uint64_t write_number; /* changes of one write share it */
    uint64_t size;         /* SIZE: bytes */
    struct sim_page *page; /* PAGE: the page as this write left it; NULL: zeros */
};

/* A file or directory. Held by names, pending name changes and open files. */
struct sim_inode {
    uint32_t references;
    uint32_t index; /* in disk->inodes */
    bool is_directory;
    uint64_t cached_size;  /* bytes, as reads see it */
    uint64_t durable_size; /* bytes, as a crash leaves it at least */
    struct sim_map cached;
    struct sim_map durable;
    struct sim_pending *pending;
    uint32_t pending_count;
    uint32_t pending_capacity;
    struct lahar_io_file *lock_holder; /* NULL: not locked */
    const lahar_allocator *allocator;
};

void lahar_sim_content_deinit(struct sim_inode *inode);
/* A copy that shares the pages. copy holds its counters and allocator already; on failure
 * it is to be deinitialised. */
int lahar_sim_content_copy(const struct sim_inode *inode, struct sim_inode *copy);
void lahar_sim_content_read(const struct sim_inode *inode, uint64_t offset, uint8_t *data,
                            size_t size);
/* Changes the cached view and remembers what is pending. */
int lahar_sim_content_write(struct sim_inode *inode, uint64_t offset, const uint8_t *data,
                            size_t size, uint64_t write_number);
int lahar_sim_content_zero(struct sim_inode *inode, uint64_t size, uint64_t write_number);
int lahar_sim_content_resize(struct sim_inode *inode, uint64_t size, uint64_t write_number);
/* Makes everything pending durable. */
int lahar_sim_content_sync(struct sim_inode *inode);
/* Makes the changes from pending number `first` on durable, and all of the size, but no
 * other data. */
int lahar_sim_content_sync_from(struct sim_inode *inode, uint32_t first);
/* Forgets what is pending from number `first` on: readers go on seeing it, a crash loses it. */
void lahar_sim_content_lose(struct sim_inode *inode, uint32_t first);
/* Decides which pending sectors and sizes reached the disk, and shows only that. */
void lahar_sim_content_crash(struct sim_inode *inode, struct sim_random *random);
/* Changes one bit in both views. */
int lahar_sim_content_flip(struct sim_inode *inode, uint64_t bit);

/* --- names --- */

struct sim_name {
    uint64_t hash;
    char *path;                /* normalised */
    struct sim_inode *live;    /* as calls see it; NULL: absent */
    struct sim_inode *durable; /* as a crash leaves it at least */
};

enum sim_change_kind {
    SIM_CHANGE_CREATE,
    SIM_CHANGE_UNLINK,
    SIM_CHANGE_RENAME
};

/* One unsynced change of names, in the order in which they were made. */
struct sim_change {
    enum sim_change_kind kind;
    uint32_t from; /* index in disk->names; RENAME: the old name, else the name */
    uint32_t to;   /* index in disk->names; RENAME: the new name, else the same as from */
    struct sim_inode *inode;
};

enum {
    SIM_PATH_SIZE = 1024
};

/* Without empty and "." components. 0, EINVAL for "..", or ENAMETOOLONG. */
int lahar_sim_path_normalise(const char *path, char out[SIM_PATH_SIZE]);
/* The file that a normalised path leads to; NULL: none. */
struct sim_inode *lahar_sim_names_find(const struct lahar_sim_disk *disk, const char *path);
bool lahar_sim_names_has_directory(const struct lahar_sim_disk *disk, const char *path);
bool lahar_sim_names_has_parent(const struct lahar_sim_disk *disk, const char *path);
int lahar_sim_names_create(struct lahar_sim_disk *disk, const char *path, bool is_directory,
                           struct sim_inode **inode_out);
int lahar_sim_names_unlink(struct lahar_sim_disk *disk, const char *path);
int lahar_sim_names_rename(struct lahar_sim_disk *disk, const char *from, const char *to);
/* Makes the changes of one name durable. */
void lahar_sim_names_settle(struct lahar_sim_disk *disk, const char *path);
/* Makes the changes in the directory durable. */
void lahar_sim_names_sync(struct lahar_sim_disk *disk, const char *directory);
/* Decides which pending changes reached the disk, and shows only those. */
void lahar_sim_names_crash(struct lahar_sim_disk *disk, struct sim_random *random);
void lahar_sim_names_deinit(struct lahar_sim_disk *disk);
int lahar_sim_names_copy(const struct lahar_sim_disk *disk, struct lahar_sim_disk *copy);
/* The last component when path lies directly in directory, else NULL. */
const char *lahar_sim_path_within(const char *path, const char *directory);
void lahar_sim_inode_release(struct lahar_sim_disk *disk, struct sim_inode *inode);

/* --- disk --- */

struct lahar_sim_disk {
    const lahar_allocator *allocator;
    pthread_mutex_t mutex;
    struct sim_random random; /* order of completions, sizes of short transfers */

    struct sim_name *names; /* no order; index is stable while changes are pending */
    uint32_t name_count;
    uint32_t name_capacity;
    struct sim_change *changes;
    uint32_t change_count;
    uint32_t change_capacity;
    struct sim_inode **inodes;
    uint32_t inode_count;
    uint32_t inode_capacity;

    struct lahar_io_queue *queues; /* every queue, for what is in flight at a crash */
    uint64_t epoch;                /* restarts so far: files and queues of before are dead */
    uint64_t write_number;

    uint64_t operation_count;
    uint64_t crash_at; /* operation number */
    bool has_crashed;
    uint64_t capacity_bytes;

    enum lahar_sim_fault fault;
    uint64_t fault_first;
    uint64_t fault_count; /* strikes left */
    uint64_t strike_count;
    int fault_errno;       /* of LAHAR_SIM_FAULT_ERRNO */
    char *fault_path_part; /* NULL: any path */

    uint64_t monotonic_ns;
    int64_t realtime_offset_ns; /* realtime - monotonic */
};

/* Which faults besides EIO concern an operation. */
enum sim_concern {
    SIM_CONCERN_SPACE = 1 << LAHAR_SIM_FAULT_ENOSPC,
    SIM_CONCERN_TRANSFER = 1 << LAHAR_SIM_FAULT_SHORT | 1 << LAHAR_SIM_FAULT_NOTHING,
    SIM_CONCERN_QUEUED = 1 << LAHAR_SIM_FAULT_EINTR | 1 << LAHAR_SIM_FAULT_ERRNO,
    SIM_CONCERN_SYNC = 1 << LAHAR_SIM_FAULT_SYNC_LOST,
    SIM_CONCERN_READ = 1 << LAHAR_SIM_FAULT_READ
};

/* Opens an operation: counts it, lets the power fail, strikes with the armed fault.
 * Returns the errno to fail with, or 0; *fault_out tells what struck. Reads are not
 * counted. */
int lahar_sim_begin(struct lahar_sim_disk *disk, const char *path, unsigned concerns,
                    enum lahar_sim_fault *fault_out);
/* Whether LAHAR_SIM_FAULT_REFUSED is armed; counts it. */
bool lahar_sim_refuses(struct lahar_sim_disk *disk);
/* Bytes that a write up to end may add to the file before the disk is full. */
uint64_t lahar_sim_free_bytes(const struct lahar_sim_disk *disk);

/* --- files and queues behind io.h --- */

struct lahar_io_file {
    struct sim_inode *inode; /* held */
    unsigned flags;          /* enum lahar_io_open_flags */
    uint64_t epoch;          /* disk->epoch when it was opened */
    char path[];             /* normalised */
};

struct sim_io {
    struct lahar_io base;
    struct lahar_sim_disk *disk;
};

static inline struct lahar_sim_disk *lahar_sim_lock(struct lahar_io *io)
{
    struct lahar_sim_disk *disk = ((struct sim_io *)io)->disk;
    (void)pthread_mutex_lock(&disk->mutex);
    return disk;
}

static inline void lahar_sim_unlock(struct lahar_sim_disk *disk)
{
    (void)pthread_mutex_unlock(&disk->mutex);
}

static inline bool lahar_sim_file_is_stale(const struct lahar_sim_disk *disk,
                                           const struct lahar_io_file *file)
{
    return file->epoch != disk->epoch;
}

/* lahar_sim_begin for an open file that was opened with this access. */
int lahar_sim_file_begin(struct lahar_sim_disk *disk, const struct lahar_io_file *file,
                         unsigned access, unsigned concerns, enum lahar_sim_fault *fault_out);
/* Whether the device would refuse the transfer. */
bool lahar_sim_file_is_misaligned(const struct lahar_io_file *file, uint64_t offset,
                                  const void *data, size_t size);
/* Bytes read, fewer at the end of the file. */
size_t lahar_sim_file_read(const struct lahar_io_file *file, uint64_t offset, void *data,
                           size_t size);
/* Writes as much as the capacity allows: bytes written, or -errno. */
int32_t lahar_sim_file_write(struct lahar_sim_disk *disk, struct lahar_io_file *file,
                             uint64_t offset, const uint8_t *data, uint32_t size);
int lahar_sim_file_sync(struct lahar_sim_disk *disk, struct lahar_io_file *file, unsigned concerns);

lahar_status lahar_sim_queue_create(struct lahar_io *io, uint32_t depth,
                                    struct lahar_io_queue **queue_out, lahar_error *error);
void lahar_sim_queue_destroy(struct lahar_io *io, struct lahar_io_queue *queue);
lahar_status lahar_sim_queue_submit(struct lahar_io *io, struct lahar_io_queue *queue,
                                    struct lahar_io_op **ops, uint32_t count, lahar_error *error);
uint32_t lahar_sim_queue_reap(struct lahar_io *io, struct lahar_io_queue *queue,
                              struct lahar_io_op **done, uint32_t capacity, uint64_t wait_ns);
void lahar_sim_queue_wake(struct lahar_io *io, struct lahar_io_queue *queue);
void lahar_sim_execute(struct lahar_io *io, struct lahar_io_op *op);
/* Before a crash: each write in flight has reached the cache or not. */
void lahar_sim_queues_settle(struct lahar_sim_disk *disk);

#endif
