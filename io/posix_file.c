/* Files, directories and the clock by plain system calls.
 *
 * Calls that move data go on after EINTR, EAGAIN and short transfers until all
 * is moved or a real error appears. A failed sync is reported once and never
 * repeated, because Linux marks the pages clean and a second sync would report
 * success over lost data. Any thread; no state but the descriptors. */
#include "io/posix_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "io/base/error.h"

enum {
    FILE_MODE = 0640,      /* masked by the process's umask */
    DIRECTORY_MODE = 0750, /* likewise */
    FILL_PIECE_SIZE = 1024 * 1024,
    /* EAGAIN of a regular file passes within microseconds; about a tenth of a
     * second of it in a row is handed on as an error. */
    AGAIN_TRIES_MAX = 100,
    AGAIN_PAUSE_NS = 1000000
};

/* True when the failed call is to be made again. */
static bool is_transient(int sys_errno, unsigned *again_count)
{
    if (sys_errno == EINTR) {
        return true;
    }
    if (sys_errno != EAGAIN || ++*again_count > AGAIN_TRIES_MAX) {
        return false;
    }
    const struct timespec pause = {.tv_nsec = AGAIN_PAUSE_NS};
    (void)nanosleep(&pause, NULL);
    return true;
}

/* Direct transfers must stay aligned, so what goes beyond a multiple of the
 * alignment is moved once more. */
static size_t usable_progress(const struct lahar_io_file *file, size_t moved)
{
    return file->is_direct ? moved - moved % LAHAR_IO_ALIGNMENT : moved;
}

static const lahar_allocator *allocator_of(struct lahar_io *io)
{
    return ((struct lahar_posix_io *)io)->allocator;
}

/* Asks for O_DIRECT after opening: a file system that refuses it at open may
 * have created the file by then, and EXCLUSIVE could not be tried again. */
static bool switch_to_direct(int descriptor)
{
    const int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_DIRECT) == 0;
}

static lahar_status open_file(struct lahar_io *io, const char *path, unsigned flags,
                              struct lahar_io_file **file_out, lahar_error *error)
{
    *file_out = NULL;
    int open_flags = O_CLOEXEC | ((flags & LAHAR_IO_WRITE) == 0  ? O_RDONLY
                                  : (flags & LAHAR_IO_READ) == 0 ? O_WRONLY
                                                                 : O_RDWR);
    open_flags |= (flags & LAHAR_IO_CREATE) != 0 ? O_CREAT : 0;
    open_flags |= (flags & LAHAR_IO_EXCLUSIVE) != 0 ? O_EXCL : 0;
    const size_t path_size = strlen(path) + 1;
    struct lahar_io_file *file = lahar_allocate(allocator_of(io), sizeof *file + path_size);
    if (file == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to open '%s'", path);
    }
    int descriptor = -1;
    do {
        descriptor = open(path, open_flags, FILE_MODE);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) {
        const int sys_errno = errno;
        lahar_release(allocator_of(io), file);
        return lahar_fail_errno(error, sys_errno, "cannot open '%s'", path);
    }
    file->descriptor = descriptor;
    file->is_direct = (flags & LAHAR_IO_DIRECT) != 0 && switch_to_direct(descriptor);
    memcpy(file->path, path, path_size);
    *file_out = file;
    return LAHAR_OK;
}

static void close_file(struct lahar_io *io, struct lahar_io_file *file)
{
    if (file != NULL) {
        (void)close(file->descriptor); /* the descriptor is gone even after EINTR */
        lahar_release(allocator_of(io), file);
    }
}

static bool is_direct(struct lahar_io *io, struct lahar_io_file *file)
{
    (void)io;
    return file->is_direct;
}

static lahar_status file_size(struct lahar_io *io, struct lahar_io_file *file, uint64_t *size_out,
                              lahar_error *error)
{
    (void)io;
    struct stat status;
    *size_out = 0;
    if (fstat(file->descriptor, &status) != 0) {
        return lahar_fail_errno(error, errno, "cannot stat '%s'", file->path);
    }
    *size_out = (uint64_t)status.st_size;
    return LAHAR_OK;
}

static lahar_status read_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                              void *data, size_t size, size_t *read_out, lahar_error *error)
{
    (void)io;
    size_t moved = 0;
    unsigned again_count = 0;
    *read_out = 0;
    while (moved < size) {
        const ssize_t n =
            pread(file->descriptor, (uint8_t *)data + moved, size - moved, (off_t)(offset + moved));
        if (n < 0) {
            if (is_transient(errno, &again_count)) {
                continue;
            }
            return lahar_fail_errno(error, errno, "cannot read %zu bytes of '%s' at %llu", size,
                                    file->path, (unsigned long long)offset);
        }
        moved += (size_t)n;
        /* A direct read that ends off the alignment has met the end of the file. */
        if (n == 0 || usable_progress(file, moved) != moved) {
            break;
        }
    }
    *read_out = moved;
    return LAHAR_OK;
}

static void announce_read(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                          uint64_t size)
{
    (void)io;
    if (!file->is_direct) {
        (void)posix_fadvise(file->descriptor, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
    }
}

static lahar_status write_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                               const void *data, size_t size, lahar_error *error)
{
    (void)io;
    size_t moved = 0;
    unsigned again_count = 0;
    while (moved < size) {
        const ssize_t n = pwrite(file->descriptor, (const uint8_t *)data + moved, size - moved,
                                 (off_t)(offset + moved));
        if (n < 0 && is_transient(errno, &again_count)) {
            continue;
        }
        const size_t progress = n < 0 ? 0 : usable_progress(file, (size_t)n);
        if (progress == 0) {
            /* The kernel takes less than one unit only when the space ends within it. */
            return lahar_fail_errno(error,
                                    n < 0   ? errno
                                    : n > 0 ? ENOSPC
                                            : EIO,
                                    "cannot write %zu bytes to '%s' at %llu", size, file->path,
                                    (unsigned long long)offset);
        }
        moved += progress;
    }
    return LAHAR_OK;
}

static lahar_status sync_file(struct lahar_io *io, struct lahar_io_file *file, lahar_error *error)
{
    (void)io;
    while (fdatasync(file->descriptor) != 0) {
        if (errno != EINTR) {
            return lahar_fail_errno(error, errno, "cannot sync '%s'", file->path);
        }
    }
    return LAHAR_OK;
}

static lahar_status truncate_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                                  lahar_error *error)
{
    (void)io;
    while (ftruncate(file->descriptor, (off_t)size) != 0) {
        if (errno != EINTR) {
            return lahar_fail_errno(error, errno, "cannot set the size of '%s' to %llu", file->path,
                                    (unsigned long long)size);
        }
    }
    return LAHAR_OK;
}

/* Gives the file its size and reserves the space at once, so that a full disk shows before a long
 * write; *is_reserved_out: whether the file system can do so. */
static lahar_status set_reserved_size(struct lahar_io *io, struct lahar_io_file *file,
                                      uint64_t size, bool *is_reserved_out, lahar_error *error)
{
    *is_reserved_out = true;
    LAHAR_TRY(truncate_file(io, file, size, error));
    while (size != 0 && fallocate(file->descriptor, 0, 0, (off_t)size) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS) {
            *is_reserved_out = false;
            return LAHAR_OK;
        }
        if (errno != EINTR) {
            return lahar_fail_errno(error, errno, "cannot reserve %llu bytes for '%s'",
                                    (unsigned long long)size, file->path);
        }
    }
    return LAHAR_OK;
}

static lahar_status write_zeros(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                                lahar_error *error)
{
    const size_t piece_size = size < FILL_PIECE_SIZE ? (size_t)size : (size_t)FILL_PIECE_SIZE;
    uint8_t *memory = lahar_allocate_zeroed(allocator_of(io), 1, piece_size + LAHAR_IO_ALIGNMENT);
    if (memory == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to fill '%s'", file->path);
    }
    const uint8_t *zeros = memory + (LAHAR_IO_ALIGNMENT - (uintptr_t)memory % LAHAR_IO_ALIGNMENT);
    lahar_status status = LAHAR_OK;
    for (uint64_t offset = 0; offset < size && status == LAHAR_OK; offset += piece_size) {
        const uint64_t left = size - offset;
        status = write_file(io, file, offset, zeros, left < piece_size ? (size_t)left : piece_size,
                            error);
    }
    lahar_release(allocator_of(io), memory);
    return status;
}

static lahar_status fill_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                              lahar_error *error)
{
    bool is_reserved = false;
    LAHAR_TRY(set_reserved_size(io, file, size, &is_reserved, error));
    return size == 0 ? LAHAR_OK : write_zeros(io, file, size, error);
}

static lahar_status reserve_file(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                                 lahar_error *error)
{
    bool is_reserved = false;
    LAHAR_TRY(set_reserved_size(io, file, size, &is_reserved, error));
    return is_reserved ? LAHAR_OK : write_zeros(io, file, size, error);
}

static lahar_status lock_file(struct lahar_io *io, struct lahar_io_file *file, lahar_error *error)
{
    (void)io;
    while (flock(file->descriptor, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            return lahar_fail(error, LAHAR_LOCKED, "'%s' is locked by another process", file->path);
        }
        if (errno != EINTR) {
            return lahar_fail_errno(error, errno, "cannot lock '%s'", file->path);
        }
    }
    return LAHAR_OK;
}

static lahar_status rename_path(struct lahar_io *io, const char *from, const char *to,
                                lahar_error *error)
{
    (void)io;
    if (rename(from, to) != 0) {
        return lahar_fail_errno(error, errno, "cannot rename '%s' to '%s'", from, to);
    }
    return LAHAR_OK;
}

static lahar_status unlink_path(struct lahar_io *io, const char *path, lahar_error *error)
{
    (void)io;
    if (unlink(path) != 0) {
        return lahar_fail_errno(error, errno, "cannot remove '%s'", path);
    }
    return LAHAR_OK;
}

static lahar_status make_directory(struct lahar_io *io, const char *path, lahar_error *error)
{
    (void)io;
    if (mkdir(path, DIRECTORY_MODE) != 0) {
        return lahar_fail_errno(error, errno, "cannot create directory '%s'", path);
    }
    return LAHAR_OK;
}

static bool is_directory_entry(DIR *directory, const struct dirent *entry)
{
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) {
        return entry->d_type == DT_DIR;
    }
    struct stat status;
    return fstatat(dirfd(directory), entry->d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

static lahar_status list_directory(struct lahar_io *io, const char *path, lahar_io_visitor visit,
                                   void *context, lahar_error *error)
{
    (void)io;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return lahar_fail_errno(error, errno, "cannot list '%s'", path);
    }
    lahar_status status = LAHAR_OK;
    while (status == LAHAR_OK) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            if (errno != 0) {
                status = lahar_fail_errno(error, errno, "cannot list '%s'", path);
            }
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            status = visit(context, entry->d_name, is_directory_entry(directory, entry));
        }
    }
    (void)closedir(directory);
    return status;
}

static lahar_status sync_directory(struct lahar_io *io, const char *path, lahar_error *error)
{
    (void)io;
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        return lahar_fail_errno(error, errno, "cannot open directory '%s'", path);
    }
    lahar_status status = LAHAR_OK;
    while (fsync(descriptor) != 0) {
        if (errno != EINTR) {
            status = lahar_fail_errno(error, errno, "cannot sync directory '%s'", path);
            break;
        }
    }
    (void)close(descriptor);
    return status;
}

static lahar_status space(struct lahar_io *io, const char *path, struct lahar_io_space *space_out,
                          lahar_error *error)
{
    (void)io;
    struct statvfs status;
    *space_out = (struct lahar_io_space){0};
    while (statvfs(path, &status) != 0) {
        if (errno != EINTR) {
            return lahar_fail_errno(error, errno, "cannot ask for the space of '%s'", path);
        }
    }
    space_out->capacity_bytes = (uint64_t)status.f_blocks * status.f_frsize;
    space_out->free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    return LAHAR_OK;
}

/* The result of a call as the kernel's rings give it: bytes or -errno. */
static int32_t result_of(ssize_t n)
{
    return n < 0 ? -errno : (int32_t)n;
}

static void execute(struct lahar_io *io, struct lahar_io_op *op)
{
    const int descriptor = op->file->descriptor;
    const struct iovec part = {op->data, op->size};
    lahar_io_count_enter(io);
    op->result = -EINVAL;
    switch (op->kind) {
    case LAHAR_IO_OP_WRITE:
        op->result = result_of(pwrite(descriptor, op->data, op->size, (off_t)op->offset));
        break;
    case LAHAR_IO_OP_WRITE_DURABLE:
        op->result = result_of(pwritev2(descriptor, &part, 1, (off_t)op->offset, RWF_DSYNC));
        break;
    case LAHAR_IO_OP_SYNC:
        op->result = result_of(fdatasync(descriptor));
        break;
    case LAHAR_IO_OP_READ:
        op->result = result_of(pread(descriptor, op->data, op->size, (off_t)op->offset));
        break;
    }
}

static int64_t realtime_ns(struct lahar_io *io)
{
    (void)io;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t lahar_posix_monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t monotonic_ns(struct lahar_io *io)
{
    (void)io;
    return lahar_posix_monotonic_ns();
}

void lahar_posix_file_ops(struct lahar_io_ops *ops)
{
    ops->open = open_file;
    ops->close = close_file;
    ops->is_direct = is_direct;
    ops->size = file_size;
    ops->read = read_file;
    ops->announce = announce_read;
    ops->write = write_file;
    ops->sync = sync_file;
    ops->fill = fill_file;
    ops->reserve = reserve_file;
    ops->truncate = truncate_file;
    ops->lock = lock_file;
    ops->rename = rename_path;
    ops->unlink = unlink_path;
    ops->make_directory = make_directory;
    ops->list = list_directory;
    ops->sync_directory = sync_directory;
    ops->space = space;
    ops->execute = execute;
    ops->realtime_ns = realtime_ns;
    ops->monotonic_ns = monotonic_ns;
}
