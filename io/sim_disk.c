/* Simulated disk: operations and their numbers, faults, crash, restart, clock.
 *
 * Each operation that touches the disk has a number. At the number of the crash
 * the power fails first, then the operation: writes in flight in queues have
 * reached the cache or not, and everything fails with EIO until restart, which
 * draws from its seed what of the cache was on the disk.
 * Public functions take disk->mutex. */
#include <errno.h>
#include <string.h>

#include "io/base/error.h"
#include "io/sim_internal.h"

enum {
    OPERATION_NS = 1000 /* by which each operation advances the clock */
};

static const uint64_t first_monotonic_ns = UINT64_C(1000000000);
static const int64_t first_realtime_ns = INT64_C(1700000000) * 1000000000;

static void lock(struct lahar_sim_disk *disk)
{
    (void)pthread_mutex_lock(&disk->mutex);
}

static void unlock(struct lahar_sim_disk *disk)
{
    (void)pthread_mutex_unlock(&disk->mutex);
}

/* Reading a value changes the mutex alone. */
static struct lahar_sim_disk *lock_const(const struct lahar_sim_disk *disk)
{
    union {
        const struct lahar_sim_disk *fixed;
        struct lahar_sim_disk *changeable;
    } view = {disk};
    lock(view.changeable);
    return view.changeable;
}

lahar_status lahar_sim_disk_create(const lahar_allocator *allocator, uint64_t seed,
                                   struct lahar_sim_disk **disk_out, lahar_error *error)
{
    *disk_out = NULL;
    struct lahar_sim_disk *disk = lahar_allocate_zeroed(allocator, 1, sizeof *disk);
    if (disk == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a simulated disk");
    }
    disk->allocator = allocator;
    (void)pthread_mutex_init(&disk->mutex, NULL);
    disk->random.state = seed;
    disk->write_number = 1;
    disk->crash_at = UINT64_MAX;
    disk->capacity_bytes = UINT64_MAX;
    disk->monotonic_ns = first_monotonic_ns;
    disk->realtime_offset_ns = first_realtime_ns - (int64_t)first_monotonic_ns;
    *disk_out = disk;
    return LAHAR_OK;
}

void lahar_sim_disk_destroy(struct lahar_sim_disk *disk)
{
    if (disk != NULL) {
        lahar_sim_names_deinit(disk);
        lahar_release(disk->allocator, disk->fault_path_part);
        (void)pthread_mutex_destroy(&disk->mutex);
        lahar_release(disk->allocator, disk);
    }
}

uint64_t lahar_sim_free_bytes(const struct lahar_sim_disk *disk)
{
    uint64_t used_bytes = 0;
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        used_bytes += disk->inodes[i]->cached_size;
    }
    return used_bytes < disk->capacity_bytes ? disk->capacity_bytes - used_bytes : 0;
}

/* Whether the armed fault meets the operation numbered `number`. */
static bool strikes(struct lahar_sim_disk *disk, uint64_t number, const char *path,
                    unsigned concerns)
{
    if (disk->fault == LAHAR_SIM_FAULT_NONE || disk->fault_count == 0 ||
        number < disk->fault_first || (concerns & (1U << disk->fault)) == 0 ||
        (disk->fault_path_part != NULL && strstr(path, disk->fault_path_part) == NULL)) {
        return false;
    }
    disk->fault_count -= disk->fault_count == UINT64_MAX ? 0 : 1;
    disk->strike_count++;
    return true;
}

static int errno_of_fault(struct lahar_sim_disk *disk, enum lahar_sim_fault fault)
{
    switch (fault) {
    case LAHAR_SIM_FAULT_EIO:
    case LAHAR_SIM_FAULT_SYNC_LOST:
    case LAHAR_SIM_FAULT_READ:
        return EIO;
    case LAHAR_SIM_FAULT_ENOSPC:
        return ENOSPC;
    case LAHAR_SIM_FAULT_EINTR:
        return sim_random_below(&disk->random, 2) == 0 ? EINTR : EAGAIN;
    case LAHAR_SIM_FAULT_ERRNO:
        return disk->fault_errno;
    case LAHAR_SIM_FAULT_NONE:
    case LAHAR_SIM_FAULT_SHORT:
    case LAHAR_SIM_FAULT_NOTHING:
    case LAHAR_SIM_FAULT_REFUSED:
        break;
    }
    return 0;
}

int lahar_sim_begin(struct lahar_sim_disk *disk, const char *path, unsigned concerns,
                    enum lahar_sim_fault *fault_out)
{
    *fault_out = LAHAR_SIM_FAULT_NONE;
    disk->monotonic_ns += OPERATION_NS;
    if (disk->has_crashed) {
        return EIO;
    }
    const uint64_t number = disk->operation_count;
    if ((concerns & SIM_CONCERN_READ) == 0) {
        if (number >= disk->crash_at) {
            lahar_sim_queues_settle(disk);
            disk->has_crashed = true;
            return EIO;
        }
        disk->operation_count++;
        concerns |= 1U << LAHAR_SIM_FAULT_EIO;
    }
    if (!strikes(disk, number, path, concerns)) {
        return 0;
    }
    *fault_out = disk->fault;
    return errno_of_fault(disk, disk->fault);
}

uint64_t lahar_sim_disk_operations(const struct lahar_sim_disk *disk)
{
    struct lahar_sim_disk *locked = lock_const(disk);
    const uint64_t count = locked->operation_count;
    unlock(locked);
    return count;
}

void lahar_sim_disk_crash_at(struct lahar_sim_disk *disk, uint64_t n)
{
    lock(disk);
    disk->crash_at = n;
    unlock(disk);
}

bool lahar_sim_disk_has_crashed(const struct lahar_sim_disk *disk)
{
    struct lahar_sim_disk *locked = lock_const(disk);
    const bool has_crashed = locked->has_crashed;
    unlock(locked);
    return has_crashed;
}

void lahar_sim_disk_restart(struct lahar_sim_disk *disk, uint64_t seed, bool power_loss)
{
    lock(disk);
    if (!disk->has_crashed) {
        lahar_sim_queues_settle(disk);
    }
    if (power_loss) {
        struct sim_random random = {seed};
        lahar_sim_names_crash(disk, &random);
        for (uint32_t i = 0; i < disk->inode_count; i++) {
            lahar_sim_content_crash(disk->inodes[i], &random);
        }
    }
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        disk->inodes[i]->lock_holder = NULL;
    }
    disk->random.state ^= seed;
    disk->epoch++;
    disk->has_crashed = false;
    disk->crash_at = UINT64_MAX;
    unlock(disk);
}

void lahar_sim_disk_fault(struct lahar_sim_disk *disk, enum lahar_sim_fault fault, uint64_t first,
                          uint64_t count, const char *path_part)
{
    lock(disk);
    lahar_release(disk->allocator, disk->fault_path_part);
    disk->fault_path_part = NULL;
    if (path_part != NULL) {
        const size_t size = strlen(path_part) + 1;
        disk->fault_path_part = lahar_allocate(disk->allocator, size);
        LAHAR_ASSERT(disk->fault_path_part != NULL);
        memcpy(disk->fault_path_part, path_part, size);
    }
    disk->fault = fault;
    disk->fault_first = first;
    disk->fault_count = count;
    disk->strike_count = 0;
    unlock(disk);
}

void lahar_sim_disk_fault_errno(struct lahar_sim_disk *disk, int sys_errno, uint64_t first,
                                uint64_t count, const char *path_part)
{
    lahar_sim_disk_fault(disk, LAHAR_SIM_FAULT_ERRNO, first, count, path_part);
    lock(disk);
    disk->fault_errno = sys_errno;
    unlock(disk);
}

bool lahar_sim_refuses(struct lahar_sim_disk *disk)
{
    const bool refuses = disk->fault == LAHAR_SIM_FAULT_REFUSED && disk->fault_count != 0;
    disk->fault_count -= refuses && disk->fault_count != UINT64_MAX;
    disk->strike_count += refuses;
    return refuses;
}

uint64_t lahar_sim_disk_fault_count(const struct lahar_sim_disk *disk)
{
    struct lahar_sim_disk *locked = lock_const(disk);
    const uint64_t count = locked->strike_count;
    unlock(locked);
    return count;
}

void lahar_sim_disk_capacity(struct lahar_sim_disk *disk, uint64_t bytes)
{
    lock(disk);
    disk->capacity_bytes = bytes;
    unlock(disk);
}

void lahar_sim_disk_advance(struct lahar_sim_disk *disk, uint64_t ns)
{
    lock(disk);
    disk->monotonic_ns += ns;
    unlock(disk);
}

void lahar_sim_disk_set_realtime(struct lahar_sim_disk *disk, int64_t realtime_ns)
{
    lock(disk);
    disk->realtime_offset_ns = realtime_ns - (int64_t)disk->monotonic_ns;
    unlock(disk);
}

lahar_status lahar_sim_disk_clone(const struct lahar_sim_disk *disk,
                                  struct lahar_sim_disk **copy_out, lahar_error *error)
{
    struct lahar_sim_disk *copy = NULL;
    *copy_out = NULL;
    LAHAR_TRY(lahar_sim_disk_create(disk->allocator, 0, &copy, error));
    struct lahar_sim_disk *locked = lock_const(disk);
    copy->random = locked->random;
    copy->epoch = locked->epoch;
    copy->write_number = locked->write_number;
    copy->operation_count = locked->operation_count;
    copy->crash_at = locked->crash_at;
    copy->has_crashed = locked->has_crashed;
    copy->capacity_bytes = locked->capacity_bytes;
    copy->monotonic_ns = locked->monotonic_ns;
    copy->realtime_offset_ns = locked->realtime_offset_ns;
    const int failure = lahar_sim_names_copy(locked, copy);
    unlock(locked);
    if (failure != 0) {
        lahar_sim_disk_destroy(copy);
        return lahar_fail_errno(error, failure, "cannot copy a simulated disk");
    }
    *copy_out = copy;
    return LAHAR_OK;
}

lahar_status lahar_sim_disk_flip_bit(struct lahar_sim_disk *disk, const char *path, uint64_t bit,
                                     lahar_error *error)
{
    char normal[SIM_PATH_SIZE];
    lock(disk);
    int failure = lahar_sim_path_normalise(path, normal);
    struct sim_inode *inode = failure == 0 ? lahar_sim_names_find(disk, normal) : NULL;
    if (failure == 0 && inode == NULL) {
        failure = ENOENT;
    } else if (failure == 0) {
        failure = bit / 8 < inode->cached_size ? lahar_sim_content_flip(inode, bit) : EINVAL;
    }
    unlock(disk);
    return failure == 0 ? LAHAR_OK
                        : lahar_fail_errno(error, failure, "cannot flip bit %llu of '%s'",
                                           (unsigned long long)bit, path);
}

/* Gives the file at a normalised path these bytes, synced, and its name too. */
static int place_file(struct lahar_sim_disk *disk, const char *path, const void *data, size_t size)
{
    struct sim_inode *inode = lahar_sim_names_find(disk, path);
    if (inode == NULL) {
        if (!lahar_sim_names_has_parent(disk, path)) {
            return ENOENT;
        }
        const int failure = lahar_sim_names_create(disk, path, false, &inode);
        if (failure != 0) {
            return failure;
        }
        lahar_sim_names_settle(disk, path);
    }
    if (inode->is_directory) {
        return EISDIR;
    }
    const uint64_t write_number = ++disk->write_number;
    int failure = lahar_sim_content_resize(inode, 0, write_number);
    if (failure == 0) {
        failure = lahar_sim_content_write(inode, 0, data, size, write_number);
    }
    return failure != 0 ? failure : lahar_sim_content_sync(inode);
}

lahar_status lahar_sim_disk_write_file(struct lahar_sim_disk *disk, const char *path,
                                       const void *data, size_t size, lahar_error *error)
{
    char normal[SIM_PATH_SIZE];
    lock(disk);
    int failure = lahar_sim_path_normalise(path, normal);
    if (failure == 0) {
        failure = place_file(disk, normal, data, size);
    }
    unlock(disk);
    return failure == 0 ? LAHAR_OK : lahar_fail_errno(error, failure, "cannot place '%s'", path);
}
