#include "tools/load_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_of(clockid_t clock)
{
    struct timespec now;
    return clock_gettime(clock, &now) != 0
               ? 0
               : (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t load_process_cpu_ns(void)
{
    return clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t load_thread_cpu_ns(void)
{
    return clock_of(CLOCK_THREAD_CPUTIME_ID);
}

/* The whole of a small file of /proc, terminated; "" when it cannot be read. */
static void read_text(const char *path, char *text, size_t size)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = 0;
    if (descriptor >= 0) {
        length = read(descriptor, text, size - 1);
        (void)close(descriptor);
    }
    text[length > 0 ? length : 0] = '\0';
}

static uint64_t field_kib(const char *text, const char *name)
{
    const char *found = strstr(text, name);
    return found == NULL ? 0 : strtoull(found + strlen(name), NULL, 10);
}

void load_memory_read(struct load_memory *memory_out)
{
    char text[4096];
    read_text("/proc/self/status", text, sizeof text);
    memory_out->anonymous_bytes = field_kib(text, "\nRssAnon:") << 10;
    memory_out->resident_peak_bytes = field_kib(text, "\nVmHWM:") << 10;
}

/* "lahar-writer-3" and its neighbours are one role. */
static void role_of(const char *comm, char name[LOAD_ROLE_SIZE])
{
    size_t size = strcspn(comm, "\n");
    while (size > 0 && comm[size - 1] >= '0' && comm[size - 1] <= '9') {
        size--;
    }
    if (size > 0 && comm[size - 1] == '-') {
        size--;
    }
    size = size < LOAD_ROLE_SIZE ? size : LOAD_ROLE_SIZE - 1;
    memcpy(name, comm, size);
    name[size] = '\0';
}

static struct load_role *find_role(struct load_roles *roles, const char *name)
{
    for (size_t i = 0; i < roles->count; i++) {
        if (strcmp(roles->items[i].name, name) == 0) {
            return &roles->items[i];
        }
    }
    if (roles->count == LOAD_ROLES_MAX) {
        return NULL;
    }
    struct load_role *role = &roles->items[roles->count++];
    *role = (struct load_role){.threads = 0};
    (void)snprintf(role->name, sizeof role->name, "%s", name);
    return role;
}

void load_roles_read(struct load_roles *roles_out)
{
    roles_out->count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        char path[64];
        char text[128];
        char name[LOAD_ROLE_SIZE];
        const unsigned long task = strtoul(entry->d_name, NULL, 10);
        if (task == 0) {
            continue;
        }
        (void)snprintf(path, sizeof path, "/proc/self/task/%lu/comm", task);
        read_text(path, text, sizeof text);
        role_of(text, name);
        struct load_role *role = find_role(roles_out, name);
        (void)snprintf(path, sizeof path, "/proc/self/task/%lu/schedstat", task);
        read_text(path, text, sizeof text);
        if (role != NULL) {
            role->cpu_ns += strtoull(text, NULL, 10);
            role->threads++;
        }
    }
    (void)closedir(tasks);
}

uint64_t load_roles_cpu_ns(const struct load_roles *roles, const char *prefix)
{
    uint64_t cpu_ns = 0;
    for (size_t i = 0; i < roles->count; i++) {
        if (strncmp(roles->items[i].name, prefix, strlen(prefix)) == 0) {
            cpu_ns += roles->items[i].cpu_ns;
        }
    }
    return cpu_ns;
}

static uint64_t add_directory(int parent, const char *name, int depth)
{
    enum {
        DEPTH_MAX = 16
    };
    uint64_t bytes = 0;
    const int descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (directory == NULL) {
        if (descriptor >= 0) {
            (void)close(descriptor);
        }
        return 0;
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        bytes += (uint64_t)status.st_blocks * 512;
        if (S_ISDIR(status.st_mode) && depth < DEPTH_MAX) {
            bytes += add_directory(dirfd(directory), entry->d_name, depth + 1);
        }
    }
    (void)closedir(directory);
    return bytes;
}

uint64_t load_disk_bytes(const char *directory)
{
    return add_directory(AT_FDCWD, directory, 0);
}

void load_file_system(const char *directory, char *name_out, size_t size)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } KNOWN[] = {{0xef53, "ext4"},      {0x58465342, "xfs"},       {0x9123683e, "btrfs"},
                 {0x01021994, "tmpfs"}, {0x794c7630, "overlayfs"}, {0x2fc12fc1, "zfs"}};
    struct statfs status;
    if (statfs(directory, &status) != 0) {
        (void)snprintf(name_out, size, "unknown");
        return;
    }
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        if (KNOWN[i].magic == (unsigned long)status.f_type) {
            (void)snprintf(name_out, size, "%s", KNOWN[i].name);
            return;
        }
    }
    (void)snprintf(name_out, size, "0x%lx", (unsigned long)status.f_type);
}
