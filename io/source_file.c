/* Opening, describing and reading files of others; see source_file.h. */
#include "io/source_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "io/base/error.h"

enum {
    LINK_DEPTH_MAX = 8, /* absolute links that are opened again beneath the root */
    OPEN_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
};

/* --- the root -------------------------------------------------------------------- */

lahar_status lahar_source_root_open(const char *path, struct lahar_source_root *root_out,
                                    lahar_error *error)
{
    char *real = realpath(path, NULL);
    if (real == NULL) {
        return lahar_fail_errno(error, errno, "root directory %s", path);
    }
    const size_t size = strlen(real);
    lahar_status status = LAHAR_OK;
    *root_out = (struct lahar_source_root){.descriptor = -1};
    if (size >= sizeof root_out->path) {
        status = lahar_fail(error, LAHAR_INVALID, "root directory %.100s...: too long", real);
    } else {
        memcpy(root_out->path, real, size + 1);
        root_out->is_all = strcmp(real, "/") == 0;
        root_out->descriptor = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_out->descriptor < 0) {
            status = lahar_fail_errno(error, errno, "root directory %s", real);
        }
    }
    free(real);
    return status;
}

void lahar_source_root_close(struct lahar_source_root *root)
{
    lahar_source_close(root->descriptor);
    root->descriptor = -1;
}

/* The part of an absolute path below the root, without a leading slash; NULL when it is
 * outside. The root itself is ".". */
static const char *below_root(const struct lahar_source_root *root, const char *path)
{
    const size_t size = root->is_all ? 0 : strlen(root->path);
    if (strncmp(path, root->path, size) != 0 || (path[size] != '/' && path[size] != '\0')) {
        return NULL;
    }
    const char *rest = path + size;
    while (*rest == '/') {
        rest++;
    }
    return *rest == '\0' ? "." : rest;
}

/* Appends the parts of path to an absolute path without its final slash. False when it is too
 * long or climbs above "/". */
static bool append_parts(char path_out[LAHAR_SOURCE_PATH_SIZE], size_t *size, const char *path)
{
    while (*path != '\0') {
        const size_t part = strcspn(path, "/");
        if (part == 2 && memcmp(path, "..", 2) == 0) {
            if (*size == 0) {
                return false;
            }
            while (path_out[--*size] != '/') {
            }
        } else if (part != 0 && !(part == 1 && *path == '.')) {
            if (*size + part + 2 > LAHAR_SOURCE_PATH_SIZE) {
                return false;
            }
            path_out[(*size)++] = '/';
            memcpy(path_out + *size, path, part);
            *size += part;
        }
        path += part;
        path += *path == '/';
    }
    path_out[*size] = '\0';
    return true;
}

lahar_status lahar_source_path_resolve(const struct lahar_source_root *root, const char *path,
                                       char path_out[LAHAR_SOURCE_PATH_SIZE], lahar_error *error)
{
    size_t size = 0;
    bool is_good = path[0] != '\0';
    if (path[0] != '/') {
        is_good = is_good && append_parts(path_out, &size, root->path);
    }
    if (!is_good || !append_parts(path_out, &size, path)) {
        return lahar_fail(error, LAHAR_INVALID, "path \"%.200s\" is empty, too long or above /",
                          path);
    }
    if (size == 0) {
        memcpy(path_out, "/", 2);
    }
    if (below_root(root, path_out) == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "path %.200s is outside the root %.200s", path_out,
                          root->path);
    }
    return LAHAR_OK;
}

/* --- opening ----------------------------------------------------------------------- */

/* Without openat2: every part by itself, none of them a link. */
static int open_by_parts(int directory, const char *path, int flags)
{
    char part[NAME_MAX + 1];
    int current = dup(directory);
    while (current >= 0) {
        const size_t size = strcspn(path, "/");
        const bool is_last = path[size] == '\0';
        if (size > NAME_MAX) {
            errno = ENAMETOOLONG;
            break;
        }
        memcpy(part, path, size);
        part[size] = '\0';
        const int next =
            openat(current, part,
                   is_last ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const int failure = errno;
        (void)close(current);
        errno = failure;
        if (next < 0 || is_last) {
            return next;
        }
        current = next;
        path += size + 1;
    }
    if (current >= 0) {
        const int failure = errno;
        (void)close(current);
        errno = failure;
    }
    return -1;
}

static int open_beneath(const struct lahar_source_root *root, const char *below, int flags)
{
    if (root->is_all) {
        return openat(root->descriptor, below, flags);
    }
    struct open_how how = {.flags = (unsigned)flags,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    for (int tries = 0; tries < 4; tries++) {
        const long descriptor = syscall(SYS_openat2, root->descriptor, below, &how, sizeof how);
        if (descriptor >= 0) {
            return (int)descriptor;
        }
        if (errno == ENOSYS || errno == EPERM) {
            return open_by_parts(root->descriptor, below, flags);
        }
        if (errno != EAGAIN && errno != EINTR) {
            break;
        }
    }
    return -1;
}

/* The target of the link at below when it is absolute and under the root. */
static bool read_absolute_link(const struct lahar_source_root *root, const char *below,
                               char target_out[LAHAR_SOURCE_PATH_SIZE])
{
    const int link = open_beneath(root, below, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (link < 0) {
        return false;
    }
    const ssize_t size = readlinkat(link, "", target_out, LAHAR_SOURCE_PATH_SIZE - 1);
    (void)close(link);
    if (size <= 0 || target_out[0] != '/') {
        return false;
    }
    target_out[size] = '\0';
    return below_root(root, target_out) != NULL;
}

static int open_confined(const struct lahar_source_root *root, const char *path)
{
    char target[LAHAR_SOURCE_PATH_SIZE];
    const char *below = below_root(root, path);
    for (int depth = 0; below != NULL && depth < LINK_DEPTH_MAX; depth++) {
        const int descriptor = open_beneath(root, below, OPEN_FLAGS);
        if (descriptor >= 0 || errno != EXDEV) {
            return descriptor;
        }
        if (!read_absolute_link(root, below, target)) {
            errno = EXDEV;
            return -1;
        }
        below = below_root(root, target);
    }
    errno = below == NULL ? EXDEV : ELOOP;
    return -1;
}

lahar_status lahar_source_open(const struct lahar_source_root *root, const char *path,
                               int *descriptor_out, struct lahar_source_stat *stat_out,
                               lahar_error *error)
{
    *descriptor_out = -1;
    const int descriptor = open_confined(root, path);
    if (descriptor < 0 && errno == EXDEV) {
        return lahar_fail(error, LAHAR_INVALID, "%s leads outside the root %.200s", path,
                          root->path);
    }
    if (descriptor < 0 && errno == ENXIO) {
        return lahar_fail(error, LAHAR_INVALID, "%s is not a regular file", path);
    }
    if (descriptor < 0) {
        return lahar_fail_errno(error, errno, "opening %s", path);
    }
    lahar_status status = lahar_source_describe(descriptor, stat_out, error);
    if (status == LAHAR_OK && stat_out->kind == LAHAR_SOURCE_OTHER) {
        status = lahar_fail(error, LAHAR_INVALID, "%s is not a regular file", path);
    }
    if (status != LAHAR_OK) {
        (void)close(descriptor);
        return status;
    }
    *descriptor_out = descriptor;
    return LAHAR_OK;
}

void lahar_source_close(int descriptor)
{
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
}

/* --- describing ---------------------------------------------------------------------- */

/* Kept within the range of the type: file systems know times beyond the year 2262. */
static int64_t nanoseconds(const struct statx_timestamp *time)
{
    int64_t ns = 0;
    if (__builtin_mul_overflow(time->tv_sec, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, (int64_t)time->tv_nsec, &ns)) {
        return time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    }
    return ns;
}

static lahar_status describe(int directory, const char *name, int flags,
                             struct lahar_source_stat *stat_out, lahar_error *error)
{
    struct statx found;
    if (statx(directory, name, flags, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) {
        return lahar_fail_errno(error, errno, "looking at %s", *name == '\0' ? "a file" : name);
    }
    *stat_out = (struct lahar_source_stat){
        .device = makedev(found.stx_dev_major, found.stx_dev_minor),
        .inode = found.stx_ino,
        .size = found.stx_size,
        .mtime_ns = nanoseconds(&found.stx_mtime),
        .birth_ns = (found.stx_mask & STATX_BTIME) != 0 ? nanoseconds(&found.stx_btime) : 0,
        .links = found.stx_nlink,
        .kind = S_ISREG(found.stx_mode)   ? LAHAR_SOURCE_REGULAR
                : S_ISDIR(found.stx_mode) ? LAHAR_SOURCE_DIRECTORY
                                          : LAHAR_SOURCE_OTHER,
    };
    return LAHAR_OK;
}

lahar_status lahar_source_describe(int descriptor, struct lahar_source_stat *stat_out,
                                   lahar_error *error)
{
    return describe(descriptor, "", AT_EMPTY_PATH, stat_out, error);
}

lahar_status lahar_source_describe_at(int directory, const char *name,
                                      struct lahar_source_stat *stat_out, lahar_error *error)
{
    return describe(directory, name, AT_NO_AUTOMOUNT, stat_out, error);
}

/* --- reading ----------------------------------------------------------------------------- */

lahar_status lahar_source_read(int descriptor, uint64_t offset, void *data, size_t size,
                               size_t *read_out, lahar_error *error)
{
    size_t done = 0;
    *read_out = 0;
    if (offset > INT64_MAX - size) {
        return LAHAR_OK;
    }
    while (done < size) {
        const ssize_t got =
            pread(descriptor, (uint8_t *)data + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return lahar_fail_errno(error, errno, "reading at byte %llu",
                                    (unsigned long long)(offset + done));
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    *read_out = done;
    return LAHAR_OK;
}

bool lahar_source_next_data(int descriptor, uint64_t offset, uint64_t *data_out)
{
    if (offset > INT64_MAX) {
        return false;
    }
    const off_t data = lseek(descriptor, (off_t)offset, SEEK_DATA);
    if (data >= 0) {
        *data_out = (uint64_t)data;
        return true;
    }
    struct lahar_source_stat stat;
    if (errno != ENXIO || lahar_source_describe(descriptor, &stat, NULL) != LAHAR_OK) {
        return false;
    }
    *data_out = stat.size > offset ? stat.size : offset;
    return true;
}

bool lahar_source_current_path(int descriptor, char path_out[LAHAR_SOURCE_PATH_SIZE])
{
    static const char gone[] = " (deleted)";
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t size = readlink(link, path_out, LAHAR_SOURCE_PATH_SIZE - 1);
    if (size <= 0 || path_out[0] != '/') {
        return false;
    }
    path_out[size] = '\0';
    const size_t suffix = sizeof gone - 1;
    return (size_t)size < suffix || strcmp(path_out + size - suffix, gone) != 0;
}

/* --- names --------------------------------------------------------------------------------- */

static enum lahar_source_kind kind_of_entry(const struct dirent *entry)
{
    return entry->d_type == DT_REG   ? LAHAR_SOURCE_REGULAR
           : entry->d_type == DT_DIR ? LAHAR_SOURCE_DIRECTORY
                                     : LAHAR_SOURCE_OTHER;
}

lahar_status lahar_source_list_names(int directory, lahar_source_name_visitor visit, void *context,
                                     lahar_error *error)
{
    const int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *walk = own < 0 ? NULL : fdopendir(own);
    if (walk == NULL) {
        const int failure = errno;
        lahar_source_close(own);
        return lahar_fail_errno(error, failure, "listing a directory");
    }
    lahar_status status = LAHAR_OK;
    while (status == LAHAR_OK) {
        errno = 0;
        const struct dirent *entry = readdir(walk);
        if (entry == NULL) {
            if (errno != 0) {
                status = lahar_fail_errno(error, errno, "listing a directory");
            }
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            status = visit(context, entry->d_name, entry->d_ino, kind_of_entry(entry));
        }
    }
    (void)closedir(walk);
    return status;
}

lahar_status lahar_source_remove(const struct lahar_source_root *root, const char *path,
                                 const struct lahar_source_stat *expected, lahar_error *error)
{
    char parent[LAHAR_SOURCE_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    const size_t size = slash == NULL || slash == path ? 1 : (size_t)(slash - path);
    struct lahar_source_stat stat;
    int directory = -1;
    memcpy(parent, slash == NULL ? "." : path, size);
    parent[size] = '\0';
    LAHAR_TRY(lahar_source_open(root, parent, &directory, &stat, error));
    const char *name = slash == NULL ? path : slash + 1;
    lahar_status status = describe(directory, name, AT_SYMLINK_NOFOLLOW, &stat, error);
    if (status == LAHAR_OK && (stat.device != expected->device || stat.inode != expected->inode ||
                               stat.size != expected->size || stat.kind != LAHAR_SOURCE_REGULAR)) {
        status = lahar_fail(error, LAHAR_NOT_FOUND, "%s is another file by now", path);
    }
    if (status == LAHAR_OK && unlinkat(directory, name, 0) != 0) {
        status = lahar_fail_errno(error, errno, "removing %s", path);
    }
    (void)close(directory);
    return status;
}

/* --- the machine ------------------------------------------------------------------------------ */

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void lahar_source_boot(uint8_t id_out[16], int64_t *booted_ns_out)
{
    char text[64] = "";
    size_t size = 0;
    size_t digits = 0;
    struct timespec now;
    struct timespec up;
    memset(id_out, 0, 16);
    const int descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
        (void)lahar_source_read(descriptor, 0, text, sizeof text - 1, &size, NULL);
        (void)close(descriptor);
    }
    for (size_t i = 0; i < size && digits < 32; i++) {
        const int value = hex_value(text[i]);
        if (value >= 0) {
            id_out[digits / 2] = (uint8_t)(id_out[digits / 2] << 4 | value);
            digits++;
        }
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)clock_gettime(CLOCK_BOOTTIME, &up);
    *booted_ns_out = (now.tv_sec - up.tv_sec) * INT64_C(1000000000) + now.tv_nsec - up.tv_nsec;
}
