/* Files that belong to others: logs that are followed while their writers go on.
 *
 * Nothing here ever writes to such a file or blocks on one: pipes, devices and
 * directories are refused after an open that does not wait. Paths are confined to
 * a root directory: a path that leaves it, by ".." or by a symbolic link, is
 * refused by the kernel while it opens, so no exchange of names in between helps.
 * A link that is the last part of a path may be absolute when what it names lies
 * under the root; it is opened beneath the root again.
 *
 * Always the real file system: it is the outside world, not the store's disk. */
#ifndef LAHAR_IO_SOURCE_FILE_H
#define LAHAR_IO_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lahar/status.h"

enum {
    LAHAR_SOURCE_PATH_SIZE = 4096 /* bytes of a path with its terminator */
};

enum lahar_source_kind {
    LAHAR_SOURCE_REGULAR = 1,
    LAHAR_SOURCE_DIRECTORY = 2,
    LAHAR_SOURCE_OTHER = 3 /* pipe, socket, device */
};

struct lahar_source_stat {
    uint64_t device;
    uint64_t inode;
    uint64_t size;    /* bytes */
    int64_t mtime_ns; /* since the epoch */
    int64_t birth_ns; /* since the epoch; 0 when the file system does not say */
    uint64_t links;
    enum lahar_source_kind kind;
};

/* A directory that paths are confined to. */
struct lahar_source_root {
    int descriptor;
    bool is_all;                       /* the root is "/": nothing is outside */
    char path[LAHAR_SOURCE_PATH_SIZE]; /* absolute, without a final slash unless it is "/" */
};

/* path is made absolute and free of links. LAHAR_NOT_FOUND, LAHAR_INVALID, LAHAR_IO. */
lahar_status lahar_source_root_open(const char *path, struct lahar_source_root *root_out,
                                    lahar_error *error);
void lahar_source_root_close(struct lahar_source_root *root);

/* Absolute paths stay as they are, others begin at the root; "." , ".." and doubled
 * slashes are removed by their letters. LAHAR_INVALID: the path leaves the root. */
lahar_status lahar_source_path_resolve(const struct lahar_source_root *root, const char *path,
                                       char path_out[LAHAR_SOURCE_PATH_SIZE], lahar_error *error);

/* Opens a regular file for reading, or a directory, and describes it. The descriptor is
 * the caller's. LAHAR_NOT_FOUND; LAHAR_INVALID: outside the root, or of another
 * kind; LAHAR_IO with sys_errno for the rest (EACCES, ELOOP, EMFILE ...). */
lahar_status lahar_source_open(const struct lahar_source_root *root, const char *path,
                               int *descriptor_out, struct lahar_source_stat *stat_out,
                               lahar_error *error);
void lahar_source_close(int descriptor); /* -1 is allowed */

lahar_status lahar_source_describe(int descriptor, struct lahar_source_stat *stat_out,
                                   lahar_error *error);
/* The file of that name in an open directory, links followed: for a look without an
 * open. What it says is confirmed by opening. */
lahar_status lahar_source_describe_at(int directory, const char *name,
                                      struct lahar_source_stat *stat_out, lahar_error *error);

/* *read_out is smaller than size only at the end of the file. */
lahar_status lahar_source_read(int descriptor, uint64_t offset, void *data, size_t size,
                               size_t *read_out, lahar_error *error);

/* The first byte at or behind offset that is not in a hole; the size at the end. False when
 * the file system does not say. */
bool lahar_source_next_data(int descriptor, uint64_t offset, uint64_t *data_out);

/* Where an open file is now, by the kernel's knowledge; false when it has no name. */
bool lahar_source_current_path(int descriptor, char path_out[LAHAR_SOURCE_PATH_SIZE]);

/* Called for each entry but "." and ".."; inode is that of the entry itself. A status
 * other than LAHAR_OK ends the walk. */
typedef lahar_status (*lahar_source_name_visitor)(void *context, const char *name, uint64_t inode,
                                                  enum lahar_source_kind kind);
/* kind: a symbolic link is OTHER. */
lahar_status lahar_source_list_names(int directory, lahar_source_name_visitor visit, void *context,
                                     lahar_error *error);

/* Removes the name if it is still that file; LAHAR_NOT_FOUND when it is not. */
lahar_status lahar_source_remove(const struct lahar_source_root *root, const char *path,
                                 const struct lahar_source_stat *expected, lahar_error *error);

/* 128 bits that change with every boot of the machine, zero when unknown, and when that
 * boot was, in ns since the epoch. */
void lahar_source_boot(uint8_t id_out[16], int64_t *booted_ns_out);

#endif
