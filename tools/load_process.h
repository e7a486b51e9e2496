/* What the process uses, as the kernel counts it: memory, processor time by the role of threads,
 * disk below a directory. Everything is 0 where /proc does not tell. */
#ifndef LAHAR_TOOLS_LOAD_PROCESS_H
#define LAHAR_TOOLS_LOAD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_memory {
    uint64_t anonymous_bytes; /* RssAnon now */
    uint64_t resident_peak_bytes;
};

enum {
    LOAD_ROLES_MAX = 16,
    LOAD_ROLE_SIZE = 16
};

/* Threads with the same name, numbers at its end left out, that are alive. */
struct load_role {
    char name[LOAD_ROLE_SIZE];
    uint64_t cpu_ns;
    uint32_t threads;
};

struct load_roles {
    struct load_role items[LOAD_ROLES_MAX];
    size_t count;
};

void load_memory_read(struct load_memory *memory_out);

/* Of the process, threads that ended included. */
uint64_t load_process_cpu_ns(void);
uint64_t load_thread_cpu_ns(void); /* of the caller */

void load_roles_read(struct load_roles *roles_out);

/* Of the roles whose name begins with prefix. */
uint64_t load_roles_cpu_ns(const struct load_roles *roles, const char *prefix);

/* Bytes of the blocks that the files below a directory occupy. */
uint64_t load_disk_bytes(const char *directory);

/* "ext4", "overlayfs", or the number of the file system's type. */
void load_file_system(const char *directory, char *name_out, size_t size);

#endif
