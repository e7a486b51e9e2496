/* Simulated disk behind io.h.
 *
 * A handle remembers the epoch in which it was opened: after a restart it belongs
 * to a process that is no more, and all but closing fails. */
#include <errno.h>
#include <string.h>

#include "io/base/error.h"
#include "io/sim_internal.h"

enum {
    FILE_SIZE_MAX_PAGES = 1024 * 1024 /* 4 GiB: the page maps stay small */
};

static const uint64_t file_size_max = (uint64_t)FILE_SIZE_MAX_PAGES * SIM_PAGE_SIZE;
/* Shown as the capacity of a disk without a limit. */
static const uint64_t unlimited_capacity_bytes = UINT64_C(1) << 40;

static lahar_status finish(struct lahar_sim_disk *disk, int failure, lahar_error *error,
                           const char *what, const char *path)
{
    lahar_sim_unlock(disk);
    if (failure == 0) {
        return LAHAR_OK;
    }
    return lahar_fail_errno(error, failure, "cannot %s '%s' (simulated)", what, path);
}

int lahar_sim_file_begin(struct lahar_sim_disk *disk, const struct lahar_io_file *file,
                         unsigned access, unsigned concerns, enum lahar_sim_fault *fault_out)
{
    *fault_out = LAHAR_SIM_FAULT_NONE;
    if (lahar_sim_file_is_stale(disk, file)) {
        return EIO;
    }
    if ((file->flags & access) != access) {
        return EBADF;
    }
    return lahar_sim_begin(disk, file->path, concerns, fault_out);
}

/* --- files --- */

static int open_inode(struct lahar_sim_disk *disk, const char *path, unsigned flags,
                      struct sim_inode **inode_out)
{
    struct sim_inode *inode = lahar_sim_names_find(disk, path);
    *inode_out = inode;
    if (inode != NULL) {
        if ((flags & LAHAR_IO_CREATE) != 0 && (flags & LAHAR_IO_EXCLUSIVE) != 0) {
            return EEXIST;
        }
        return inode->is_directory ? EISDIR : disk->has_crashed ? EIO : 0;
    }
    if ((flags & LAHAR_IO_CREATE) == 0 || *path == '\0' ||
        !lahar_sim_names_has_parent(disk, path)) {
        return disk->has_crashed ? EIO : ENOENT;
    }
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    const int failure = lahar_sim_begin(disk, path, SIM_CONCERN_SPACE, &fault);
    return failure != 0 ? failure : lahar_sim_names_create(disk, path, false, inode_out);
}

static lahar_status open_file(struct lahar_io *io, const char *path, unsigned flags,
                              struct lahar_io_file **file_out, lahar_error *error)
{
    *file_out = NULL;
    char normal[SIM_PATH_SIZE];
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    int failure = lahar_sim_path_normalise(path, normal);
    struct lahar_io_file *file = NULL;
    if (failure == 0) {
        const size_t path_size = strlen(normal) + 1;
        file = lahar_allocate_zeroed(disk->allocator, 1, sizeof *file + path_size);
        failure = file == NULL ? ENOMEM : open_inode(disk, normal, flags, &file->inode);
    }
    if (failure == 0) {
        memcpy(file->path, normal, strlen(normal) + 1);
        file->flags = flags;
        file->epoch = disk->epoch;
        file->inode->references++;
        *file_out = file;
    } else {
        lahar_release(disk->allocator, file);
    }
    return finish(disk, failure, error, "open", path);
}

static void close_file(struct lahar_io *io, struct lahar_io_file *file)
{
    if (file == NULL) {
        return;
    }
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    if (file->inode->lock_holder == file) {
        file->inode->lock_holder = NULL;
    }
    lahar_sim_inode_release(disk, file->inode);
    lahar_release(disk->allocator, file);
    lahar_sim_unlock(disk);
}

static bool is_direct(struct lahar_io *io, struct lahar_io_file *file)
{
    (void)io;
    return (file->flags & LAHAR_IO_DIRECT) != 0;
}

bool lahar_sim_file_is_misaligned(const struct lahar_io_file *file, uint64_t offset,
                                  const void *data, size_t size)
{
    return (file->flags & LAHAR_IO_DIRECT) != 0 &&
           ((offset | (uintptr_t)data | size) % LAHAR_IO_ALIGNMENT) != 0;
}

static lahar_status file_size(struct lahar_io *io, struct lahar_io_file *file, uint64_t *size_out,
                              lahar_error *error)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    const int failure = lahar_sim_file_is_stale(disk, file) || disk->has_crashed ? EIO : 0;
    *size_out = failure == 0 ? file->inode->cached_size : 0;
    return finish(disk, failure, error, "stat", file->path);
}

size_t lahar_sim_file_read(const struct lahar_io_file *file, uint64_t offset, void *data,
                           size_t size)
{
    const struct sim_inode *inode = file->inode;
    if (offset >= inode->cached_size) {
        return 0;
    }
    const uint64_t left = inode->cached_size - offset;
    const size_t moved = size < left ? size : (size_t)left;
    lahar_sim_content_read(inode, offset, data, moved);
    return moved;
}

static lahar_status read_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                              void *data, size_t size, size_t *read_out, lahar_error *error)
{
    *read_out = 0;
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    int failure = lahar_sim_file_begin(disk, file, LAHAR_IO_READ, SIM_CONCERN_READ, &fault);
    if (failure == 0 && lahar_sim_file_is_misaligned(file, offset, data, size)) {
        failure = EINVAL;
    }
    if (failure == 0) {
        *read_out = lahar_sim_file_read(file, offset, data, size);
    }
    return finish(disk, failure, error, "read", file->path);
}

/* Nothing is nearer than anything else here. */
static void announce_read(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                          uint64_t size)
{
    (void)io;
    (void)file;
    (void)offset;
    (void)size;
}

int32_t lahar_sim_file_write(struct lahar_sim_disk *disk, struct lahar_io_file *file,
                             uint64_t offset, const uint8_t *data, uint32_t size)
{
    struct sim_inode *inode = file->inode;
    if (size == 0) {
        return 0;
    }
    if (offset > file_size_max - size) {
        return -EFBIG;
    }
    if (disk->capacity_bytes != UINT64_MAX && offset + size > inode->cached_size) {
        const uint64_t end_max = inode->cached_size + lahar_sim_free_bytes(disk);
        const uint64_t room = end_max > offset ? end_max - offset : 0;
        if (room < size) {
            size = (uint32_t)(room - room % SIM_SECTOR_SIZE);
        }
        if (size == 0) {
            return -ENOSPC;
        }
    }
    const int failure = lahar_sim_content_write(inode, offset, data, size, ++disk->write_number);
    return failure != 0 ? -failure : (int32_t)size;
}

static lahar_status write_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                               const void *data, size_t size, lahar_error *error)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    int failure = lahar_sim_file_begin(disk, file, LAHAR_IO_WRITE, SIM_CONCERN_SPACE, &fault);
    if (failure == 0 && lahar_sim_file_is_misaligned(file, offset, data, size)) {
        failure = EINVAL;
    }
    size_t done = 0;
    while (failure == 0 && done < size) {
        const size_t part = size - done < INT32_MAX / 2 ? size - done : INT32_MAX / 2;
        const int32_t moved = lahar_sim_file_write(disk, file, offset + done,
                                                   (const uint8_t *)data + done, (uint32_t)part);
        failure = moved < 0 ? -moved : 0;
        done += moved < 0 ? 0 : (size_t)moved;
    }
    return finish(disk, failure, error, "write", file->path);
}

int lahar_sim_file_sync(struct lahar_sim_disk *disk, struct lahar_io_file *file, unsigned concerns)
{
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    const int failure = lahar_sim_file_begin(disk, file, 0, concerns, &fault);
    if (failure == 0) {
        return lahar_sim_content_sync(file->inode);
    }
    if (fault == LAHAR_SIM_FAULT_SYNC_LOST) {
        lahar_sim_content_lose(file->inode, 0);
    }
    return failure;
}

static lahar_status sync_file(struct lahar_io *io, struct lahar_io_file *file, lahar_error *error)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    return finish(disk, lahar_sim_file_sync(disk, file, SIM_CONCERN_SYNC), error, "sync",
                  file->path);
}

/* Whether the file may have this size. */
static int check_size(const struct lahar_sim_disk *disk, const struct sim_inode *inode,
                      uint64_t size)
{
    if (size > file_size_max) {
        return EFBIG;
    }
    return size > inode->cached_size && size - inode->cached_size > lahar_sim_free_bytes(disk)
               ? ENOSPC
               : 0;
}

static lahar_status fill_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                              lahar_error *error)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    int failure = lahar_sim_file_begin(disk, file, LAHAR_IO_WRITE, SIM_CONCERN_SPACE, &fault);
    failure = failure != 0 ? failure : check_size(disk, file->inode, size);
    if (failure == 0) {
        failure = lahar_sim_content_zero(file->inode, size, ++disk->write_number);
    }
    return finish(disk, failure, error, "fill", file->path);
}

static lahar_status truncate_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                                  lahar_error *error)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    const unsigned concerns = size > file->inode->cached_size ? SIM_CONCERN_SPACE : 0;
    int failure = lahar_sim_file_begin(disk, file, LAHAR_IO_WRITE, concerns, &fault);
    failure = failure != 0 ? failure : size > file_size_max ? EFBIG : 0;
    if (failure == 0) {
        failure = lahar_sim_content_resize(file->inode, size, ++disk->write_number);
    }
    return finish(disk, failure, error, "truncate", file->path);
}

static lahar_status lock_file(struct lahar_io *io, struct lahar_io_file *file, lahar_error *error)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    const int failure = lahar_sim_file_is_stale(disk, file) || disk->has_crashed ? EIO : 0;
    struct sim_inode *inode = file->inode;
    if (failure == 0 && inode->lock_holder != NULL && inode->lock_holder != file) {
        lahar_sim_unlock(disk);
        return lahar_fail(error, LAHAR_LOCKED, "'%s' is locked by another process (simulated)",
                          file->path);
    }
    if (failure == 0) {
        inode->lock_holder = file;
    }
    return finish(disk, failure, error, "lock", file->path);
}

/* --- names --- */

static lahar_status rename_path(struct lahar_io *io, const char *from, const char *to,
                                lahar_error *error)
{
    char normal_from[SIM_PATH_SIZE];
    char normal_to[SIM_PATH_SIZE];
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    int failure = lahar_sim_path_normalise(from, normal_from);
    failure = failure != 0 ? failure : lahar_sim_path_normalise(to, normal_to);
    failure = failure != 0 ? failure : lahar_sim_begin(disk, normal_from, 0, &fault);
    failure = failure != 0 ? failure : lahar_sim_names_rename(disk, normal_from, normal_to);
    return finish(disk, failure, error, "rename", from);
}

static lahar_status unlink_path(struct lahar_io *io, const char *path, lahar_error *error)
{
    char normal[SIM_PATH_SIZE];
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    int failure = lahar_sim_path_normalise(path, normal);
    failure = failure != 0 ? failure : lahar_sim_begin(disk, normal, 0, &fault);
    failure = failure != 0 ? failure : lahar_sim_names_unlink(disk, normal);
    return finish(disk, failure, error, "remove", path);
}

static int create_directory(struct lahar_sim_disk *disk, const char *path)
{
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    struct sim_inode *inode = NULL;
    if (lahar_sim_names_find(disk, path) != NULL || *path == '\0' || strcmp(path, "/") == 0) {
        return EEXIST;
    }
    if (!lahar_sim_names_has_parent(disk, path)) {
        return ENOENT;
    }
    const int failure = lahar_sim_begin(disk, path, SIM_CONCERN_SPACE, &fault);
    return failure != 0 ? failure : lahar_sim_names_create(disk, path, true, &inode);
}

static lahar_status make_directory(struct lahar_io *io, const char *path, lahar_error *error)
{
    char normal[SIM_PATH_SIZE];
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    int failure = lahar_sim_path_normalise(path, normal);
    failure = failure != 0 ? failure : create_directory(disk, normal);
    return finish(disk, failure, error, "create directory", path);
}

/* The entries of a directory, each as a kind byte ('d' or 'f') and a terminated name. */
static int collect_entries(const struct lahar_sim_disk *disk, const char *path, char **entries_out)
{
    size_t size = 1;
    for (int pass = 0; pass < 2; pass++) {
        char *next = *entries_out;
        for (uint32_t i = 0; i < disk->name_count; i++) {
            const struct sim_name *name = &disk->names[i];
            const char *last = name->live == NULL ? NULL : lahar_sim_path_within(name->path, path);
            if (last == NULL) {
                continue;
            }
            if (pass == 0) {
                size += strlen(last) + 2;
                continue;
            }
            *next++ = name->live->is_directory ? 'd' : 'f';
            memcpy(next, last, strlen(last) + 1);
            next += strlen(last) + 1;
        }
        if (pass == 1) {
            *next = '\0';
            return 0;
        }
        *entries_out = lahar_allocate(disk->allocator, size);
        if (*entries_out == NULL) {
            return ENOMEM;
        }
    }
    return 0;
}

/* Visits outside the lock, so that the visitor may use the disk. */
static lahar_status list_directory(struct lahar_io *io, const char *path, lahar_io_visitor visit,
                                   void *context, lahar_error *error)
{
    char normal[SIM_PATH_SIZE];
    char *entries = NULL;
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    int failure = disk->has_crashed ? EIO : lahar_sim_path_normalise(path, normal);
    if (failure == 0) {
        failure = lahar_sim_names_has_directory(disk, normal) ? 0 : ENOENT;
    }
    failure = failure != 0 ? failure : collect_entries(disk, normal, &entries);
    lahar_status status = finish(disk, failure, error, "list", path);
    for (const char *next = entries; status == LAHAR_OK && *next != '\0';
         next += strlen(next) + 1) {
        status = visit(context, next + 1, *next == 'd');
    }
    lahar_release(disk->allocator, entries);
    return status;
}

static lahar_status sync_directory(struct lahar_io *io, const char *path, lahar_error *error)
{
    char normal[SIM_PATH_SIZE];
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    int failure = lahar_sim_path_normalise(path, normal);
    failure = failure != 0 ? failure : lahar_sim_begin(disk, normal, SIM_CONCERN_SYNC, &fault);
    if (failure == 0) {
        failure = lahar_sim_names_has_directory(disk, normal) ? 0 : ENOENT;
    }
    if (failure == 0) {
        lahar_sim_names_sync(disk, normal);
    }
    return finish(disk, failure, error, "sync directory", path);
}

static lahar_status space(struct lahar_io *io, const char *path, struct lahar_io_space *space_out,
                          lahar_error *error)
{
    *space_out = (struct lahar_io_space){0};
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    const int failure = disk->has_crashed ? EIO : 0;
    if (failure == 0) {
        const bool is_limited = disk->capacity_bytes != UINT64_MAX;
        space_out->capacity_bytes = is_limited ? disk->capacity_bytes : unlimited_capacity_bytes;
        space_out->free_bytes = is_limited ? lahar_sim_free_bytes(disk) : unlimited_capacity_bytes;
    }
    return finish(disk, failure, error, "ask for the space of", path);
}

/* --- clock --- */

static int64_t realtime_ns(struct lahar_io *io)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    const int64_t now_ns = (int64_t)disk->monotonic_ns + disk->realtime_offset_ns;
    lahar_sim_unlock(disk);
    return now_ns;
}

static uint64_t monotonic_ns(struct lahar_io *io)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    const uint64_t now_ns = disk->monotonic_ns;
    lahar_sim_unlock(disk);
    return now_ns;
}

static void destroy(struct lahar_io *io)
{
    lahar_release(((struct sim_io *)io)->disk->allocator, io);
}

static const struct lahar_io_ops sim_ops = {
    .open = open_file,
    .close = close_file,
    .is_direct = is_direct,
    .size = file_size,
    .read = read_file,
    .announce = announce_read,
    .write = write_file,
    .sync = sync_file,
    .fill = fill_file,
    .reserve = fill_file, /* the simulated disk reserves what was written with zeros */
    .truncate = truncate_file,
    .lock = lock_file,
    .rename = rename_path,
    .unlink = unlink_path,
    .make_directory = make_directory,
    .list = list_directory,
    .sync_directory = sync_directory,
    .space = space,
    .queue_create = lahar_sim_queue_create,
    .queue_destroy = lahar_sim_queue_destroy,
    .queue_submit = lahar_sim_queue_submit,
    .queue_reap = lahar_sim_queue_reap,
    .queue_wake = lahar_sim_queue_wake,
    .execute = lahar_sim_execute,
    .realtime_ns = realtime_ns,
    .monotonic_ns = monotonic_ns,
    .destroy = destroy,
};

lahar_status lahar_sim_disk_io(struct lahar_sim_disk *disk, struct lahar_io **io_out,
                               lahar_error *error)
{
    *io_out = NULL;
    struct sim_io *io = lahar_allocate_zeroed(disk->allocator, 1, sizeof *io);
    if (io == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the I/O backend");
    }
    io->base.ops = &sim_ops;
    io->base.name = "simulated";
    io->disk = disk;
    *io_out = &io->base;
    return LAHAR_OK;
}
