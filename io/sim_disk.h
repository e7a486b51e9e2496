/* A deterministic simulated disk: the backend of the crash explorer.
 *
 * All state is in memory; one seed decides everything. Writes are visible to
 * reads at once, as through a page cache, and survive a crash only once synced:
 * at a crash each unsynced 512-byte sector is kept, lost or, inside one write,
 * torn from its neighbours; unsynced creations, renames and unlinks are
 * kept or lost, each name by itself. Queued operations complete in an order
 * drawn from the seed, and their data is taken at completion, not at submit; of
 * those in flight at a crash each may or may not have happened.
 * Files opened with LAHAR_IO_DIRECT refuse what is not aligned (EINVAL), and
 * their short transfers are multiples of 512 bytes. Directories must be made
 * before files in them and cannot be renamed or removed. A queue with nothing
 * in flight does not sleep through its wait: the clock jumps.
 * Thread-safe, but deterministic only when one thread calls. */
#ifndef LAHAR_IO_SIM_DISK_H
#define LAHAR_IO_SIM_DISK_H

#include "io/io.h"

struct lahar_sim_disk;

enum lahar_sim_fault {
    LAHAR_SIM_FAULT_NONE = 0,
    LAHAR_SIM_FAULT_EIO = 1,    /* the operation fails with EIO */
    LAHAR_SIM_FAULT_ENOSPC = 2, /* writes, fills and creations fail with ENOSPC */
    LAHAR_SIM_FAULT_SHORT = 3,  /* queued reads and writes transfer less than asked */
    LAHAR_SIM_FAULT_EINTR = 4,  /* queued operations fail with EINTR or EAGAIN */
    LAHAR_SIM_FAULT_SYNC_LOST =
        5,                       /* a sync fails with EIO and the data is lost; the next succeeds */
    LAHAR_SIM_FAULT_READ = 6,    /* reads fail with EIO, synchronous and queued ones */
    LAHAR_SIM_FAULT_ERRNO = 7,   /* queued operations fail as lahar_sim_disk_fault_errno says */
    LAHAR_SIM_FAULT_NOTHING = 8, /* queued reads and writes transfer nothing */
    LAHAR_SIM_FAULT_REFUSED = 9  /* queues take no operation: LAHAR_BUSY, whatever the path */
};

lahar_status lahar_sim_disk_create(const lahar_allocator *allocator, uint64_t seed,
                                   struct lahar_sim_disk **disk_out, lahar_error *error);
void lahar_sim_disk_destroy(struct lahar_sim_disk *disk);

/* The backend over the disk as it stands. Destroying it loses nothing; another
 * may be made afterwards (a restarted process). */
lahar_status lahar_sim_disk_io(struct lahar_sim_disk *disk, struct lahar_io **io_out,
                               lahar_error *error);

/* Counts operations that touch the disk (not reads). */
uint64_t lahar_sim_disk_operations(const struct lahar_sim_disk *disk);

/* The power fails before operation number n (from 0): it and every later
 * operation fails with EIO and changes nothing until lahar_sim_disk_restart.
 * UINT64_MAX: never. */
void lahar_sim_disk_crash_at(struct lahar_sim_disk *disk, uint64_t n);
bool lahar_sim_disk_has_crashed(const struct lahar_sim_disk *disk);

/* Decides, by seed, what of the unsynced state survived and makes the disk
 * usable again. power_loss false: a killed process, everything written stays
 * as it was, unsynced as far as it was. Locks are gone; files and queues of
 * before can only be closed and fail with EIO otherwise. */
void lahar_sim_disk_restart(struct lahar_sim_disk *disk, uint64_t seed, bool power_loss);

/* From operation number first on, count operations meet fault (those it can
 * concern; reads only LAHAR_SIM_FAULT_SHORT, EINTR and READ). path_part: only files whose path
 * contains it; NULL: all. One fault is armed at a time. */
void lahar_sim_disk_fault(struct lahar_sim_disk *disk, enum lahar_sim_fault fault, uint64_t first,
                          uint64_t count, const char *path_part);
/* Arms LAHAR_SIM_FAULT_ERRNO with this errno. */
void lahar_sim_disk_fault_errno(struct lahar_sim_disk *disk, int sys_errno, uint64_t first,
                                uint64_t count, const char *path_part);
/* How often the armed fault has struck: a fault that never fired tests nothing. */
uint64_t lahar_sim_disk_fault_count(const struct lahar_sim_disk *disk);

/* Bytes that all files together may hold; UINT64_MAX: no limit. */
void lahar_sim_disk_capacity(struct lahar_sim_disk *disk, uint64_t bytes);

/* The clock: each operation advances it by a microsecond, this by more.
 * set_realtime moves the wall clock alone, backwards too. */
void lahar_sim_disk_advance(struct lahar_sim_disk *disk, uint64_t ns);
void lahar_sim_disk_set_realtime(struct lahar_sim_disk *disk, int64_t realtime_ns);

/* A copy with its own future: the same files, pending state and clock. */
lahar_status lahar_sim_disk_clone(const struct lahar_sim_disk *disk,
                                  struct lahar_sim_disk **copy_out, lahar_error *error);

/* Direct access for tests that damage or inspect files. LAHAR_NOT_FOUND. */
lahar_status lahar_sim_disk_flip_bit(struct lahar_sim_disk *disk, const char *path, uint64_t bit,
                                     lahar_error *error);
lahar_status lahar_sim_disk_write_file(struct lahar_sim_disk *disk, const char *path,
                                       const void *data, size_t size, lahar_error *error);

#endif
