/* Simulated disk: names.
 *
 * Each path has a file that calls see and a file that a crash leaves at
 * least; between them lies an ordered list of unsynced changes. A directory sync makes
 * those of one directory durable, a crash a random part of all. A rename is one
 * change, so that its file has the old name or the new one, never both or none; it
 * belongs to the directory of the new name. A change rests on the earlier ones of
 * its names: they become durable with it, and it is lost with them.
 * Guarded by the disk's mutex. */
#include <errno.h>
#include <string.h>

#include "io/sim_internal.h"

int lahar_sim_path_normalise(const char *path, char out[SIM_PATH_SIZE])
{
    size_t size = 0;
    if (*path == '/') {
        out[size++] = '/';
    }
    while (*path != '\0') {
        const size_t part = strcspn(path, "/");
        if (part == 2 && memcmp(path, "..", 2) == 0) {
            return EINVAL;
        }
        if (part != 0 && !(part == 1 && *path == '.')) {
            if (size + part + 2 > SIM_PATH_SIZE) {
                return ENAMETOOLONG;
            }
            if (size != 0 && out[size - 1] != '/') {
                out[size++] = '/';
            }
            memcpy(out + size, path, part);
            size += part;
        }
        path += part;
        path += *path == '/' ? 1 : 0;
    }
    out[size] = '\0';
    return 0;
}

/* FNV-1a: saves comparing most paths. */
static uint64_t hash_path(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *path != '\0'; path++) {
        hash = (hash ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    }
    return hash;
}

const char *lahar_sim_path_within(const char *path, const char *directory)
{
    const size_t size = strlen(directory);
    if (strncmp(path, directory, size) != 0) {
        return NULL;
    }
    const char *rest = path + size;
    if (size != 0 && directory[size - 1] != '/') {
        if (*rest != '/') {
            return NULL;
        }
        rest++;
    }
    return *rest == '\0' || strchr(rest, '/') != NULL ? NULL : rest;
}

static struct sim_name *find_name(const struct lahar_sim_disk *disk, const char *path)
{
    const uint64_t hash = hash_path(path);
    for (uint32_t i = 0; i < disk->name_count; i++) {
        if (disk->names[i].hash == hash && strcmp(disk->names[i].path, path) == 0) {
            return &disk->names[i];
        }
    }
    return NULL;
}

struct sim_inode *lahar_sim_names_find(const struct lahar_sim_disk *disk, const char *path)
{
    const struct sim_name *name = find_name(disk, path);
    return name == NULL ? NULL : name->live;
}

bool lahar_sim_names_has_directory(const struct lahar_sim_disk *disk, const char *path)
{
    if (*path == '\0' || strcmp(path, "/") == 0) {
        return true;
    }
    const struct sim_inode *inode = lahar_sim_names_find(disk, path);
    return inode != NULL && inode->is_directory;
}

bool lahar_sim_names_has_parent(const struct lahar_sim_disk *disk, const char *path)
{
    char parent[SIM_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    const size_t size = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    memcpy(parent, path, size);
    parent[size] = '\0';
    return lahar_sim_names_has_directory(disk, parent);
}

/* --- files behind names --- */

static struct sim_inode *create_inode(struct lahar_sim_disk *disk, bool is_directory)
{
    if (disk->inode_count == disk->inode_capacity) {
        const uint32_t capacity = disk->inode_capacity < 16 ? 16 : 2 * disk->inode_capacity;
        struct sim_inode **inodes =
            lahar_reallocate(disk->allocator, disk->inodes, capacity * sizeof(struct sim_inode *));
        if (inodes == NULL) {
            return NULL;
        }
        disk->inodes = inodes;
        disk->inode_capacity = capacity;
    }
    struct sim_inode *inode = lahar_allocate_zeroed(disk->allocator, 1, sizeof *inode);
    if (inode != NULL) {
        inode->index = disk->inode_count;
        inode->is_directory = is_directory;
        inode->allocator = disk->allocator;
        disk->inodes[disk->inode_count++] = inode;
    }
    return inode;
}

static void destroy_inode(struct lahar_sim_disk *disk, struct sim_inode *inode)
{
    struct sim_inode *last = disk->inodes[--disk->inode_count];
    disk->inodes[inode->index] = last;
    last->index = inode->index;
    lahar_sim_content_deinit(inode);
    lahar_release(disk->allocator, inode);
}

void lahar_sim_inode_release(struct lahar_sim_disk *disk, struct sim_inode *inode)
{
    if (inode != NULL && --inode->references == 0) {
        destroy_inode(disk, inode);
    }
}

static struct sim_inode *hold_inode(struct sim_inode *inode)
{
    if (inode != NULL) {
        inode->references++;
    }
    return inode;
}

/* Makes *place lead to inode. */
static void point(struct lahar_sim_disk *disk, struct sim_inode **place, struct sim_inode *inode)
{
    struct sim_inode *old = *place;
    *place = hold_inode(inode);
    lahar_sim_inode_release(disk, old);
}

/* --- changes --- */

/* Room for one more change and two more names, so that what follows cannot fail
 * half-way. */
static int reserve(struct lahar_sim_disk *disk)
{
    if (disk->change_count == disk->change_capacity) {
        const uint32_t capacity = disk->change_capacity < 16 ? 16 : 2 * disk->change_capacity;
        struct sim_change *changes =
            lahar_reallocate(disk->allocator, disk->changes, capacity * sizeof *changes);
        if (changes == NULL) {
            return ENOMEM;
        }
        disk->changes = changes;
        disk->change_capacity = capacity;
    }
    if (disk->name_capacity - disk->name_count < 2) {
        const uint32_t capacity = disk->name_capacity < 16 ? 16 : 2 * disk->name_capacity;
        struct sim_name *names =
            lahar_reallocate(disk->allocator, disk->names, capacity * sizeof *names);
        if (names == NULL) {
            return ENOMEM;
        }
        disk->names = names;
        disk->name_capacity = capacity;
    }
    return 0;
}

/* The name for path, made when it is not there. Room was reserved. */
static int obtain_name(struct lahar_sim_disk *disk, const char *path, uint32_t *index_out)
{
    const struct sim_name *name = find_name(disk, path);
    if (name != NULL) {
        *index_out = (uint32_t)(name - disk->names);
        return 0;
    }
    const size_t size = strlen(path) + 1;
    char *copy = lahar_allocate(disk->allocator, size);
    if (copy == NULL) {
        return ENOMEM;
    }
    memcpy(copy, path, size);
    *index_out = disk->name_count;
    disk->names[disk->name_count++] = (struct sim_name){.hash = hash_path(path), .path = copy};
    return 0;
}

static void remember(struct lahar_sim_disk *disk, enum sim_change_kind kind, uint32_t from,
                     uint32_t to, struct sim_inode *inode)
{
    disk->changes[disk->change_count++] = (struct sim_change){kind, from, to, hold_inode(inode)};
}

int lahar_sim_names_create(struct lahar_sim_disk *disk, const char *path, bool is_directory,
                           struct sim_inode **inode_out)
{
    uint32_t index = 0;
    if (reserve(disk) != 0 || obtain_name(disk, path, &index) != 0) {
        return ENOMEM;
    }
    struct sim_inode *inode = create_inode(disk, is_directory);
    if (inode == NULL) {
        return ENOMEM;
    }
    point(disk, &disk->names[index].live, inode);
    remember(disk, SIM_CHANGE_CREATE, index, index, inode);
    *inode_out = inode;
    return 0;
}

int lahar_sim_names_unlink(struct lahar_sim_disk *disk, const char *path)
{
    struct sim_name *name = find_name(disk, path);
    if (name == NULL || name->live == NULL) {
        return ENOENT;
    }
    if (name->live->is_directory) {
        return EISDIR;
    }
    const uint32_t index = (uint32_t)(name - disk->names);
    if (reserve(disk) != 0) {
        return ENOMEM;
    }
    remember(disk, SIM_CHANGE_UNLINK, index, index, disk->names[index].live);
    point(disk, &disk->names[index].live, NULL);
    return 0;
}

int lahar_sim_names_rename(struct lahar_sim_disk *disk, const char *from, const char *to)
{
    const struct sim_name *name = find_name(disk, from);
    const struct sim_inode *replaced = lahar_sim_names_find(disk, to);
    if (name == NULL || name->live == NULL || !lahar_sim_names_has_parent(disk, to)) {
        return ENOENT;
    }
    if (name->live->is_directory || (replaced != NULL && replaced->is_directory)) {
        return EISDIR;
    }
    if (name->live == replaced) {
        return 0;
    }
    const uint32_t from_index = (uint32_t)(name - disk->names);
    uint32_t to_index = 0;
    if (reserve(disk) != 0 || obtain_name(disk, to, &to_index) != 0) {
        return ENOMEM;
    }
    struct sim_inode *inode = disk->names[from_index].live;
    remember(disk, SIM_CHANGE_RENAME, from_index, to_index, inode);
    point(disk, &disk->names[to_index].live, inode);
    point(disk, &disk->names[from_index].live, NULL);
    return 0;
}

/* Carries one change over to the durable names, unless what it rests on was lost. */
static void settle(struct lahar_sim_disk *disk, const struct sim_change *change)
{
    struct sim_name *from = &disk->names[change->from];
    struct sim_name *to = &disk->names[change->to];
    switch (change->kind) {
    case SIM_CHANGE_CREATE:
        point(disk, &to->durable, change->inode);
        break;
    case SIM_CHANGE_UNLINK:
        if (from->durable == change->inode) {
            point(disk, &from->durable, NULL);
        }
        break;
    case SIM_CHANGE_RENAME:
        if (from->durable == change->inode) {
            point(disk, &to->durable, change->inode);
            point(disk, &from->durable, NULL);
        }
        break;
    }
}

/* Forgets names that lead nowhere. Their indices change, so no change may be pending. */
static void compact_names(struct lahar_sim_disk *disk)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->name_count; i++) {
        struct sim_name *name = &disk->names[i];
        if (name->live == NULL && name->durable == NULL) {
            lahar_release(disk->allocator, name->path);
        } else {
            disk->names[kept++] = *name;
        }
    }
    disk->name_count = kept;
}

static bool share_a_name(const struct sim_change *a, const struct sim_change *b)
{
    return a->from == b->from || a->from == b->to || a->to == b->from || a->to == b->to;
}

/* Settles change number index after the earlier ones that it rests on. Settled changes are
 * marked by an inode of NULL. */
static void settle_with_base(struct lahar_sim_disk *disk, uint32_t index)
{
    struct sim_change *change = &disk->changes[index];
    if (change->inode == NULL) {
        return;
    }
    for (uint32_t i = 0; i < index; i++) {
        if (share_a_name(&disk->changes[i], change)) {
            settle_with_base(disk, i);
        }
    }
    settle(disk, change);
    lahar_sim_inode_release(disk, change->inode);
    change->inode = NULL;
}

/* Removes the settled changes. */
static void compact_changes(struct lahar_sim_disk *disk)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->change_count; i++) {
        if (disk->changes[i].inode != NULL) {
            disk->changes[kept++] = disk->changes[i];
        }
    }
    disk->change_count = kept;
    if (kept == 0) {
        compact_names(disk);
    }
}

void lahar_sim_names_settle(struct lahar_sim_disk *disk, const char *path)
{
    for (uint32_t i = 0; i < disk->change_count; i++) {
        if (strcmp(disk->names[disk->changes[i].to].path, path) == 0) {
            settle_with_base(disk, i);
        }
    }
    compact_changes(disk);
}

void lahar_sim_names_sync(struct lahar_sim_disk *disk, const char *directory)
{
    for (uint32_t i = 0; i < disk->change_count; i++) {
        if (lahar_sim_path_within(disk->names[disk->changes[i].to].path, directory) != NULL) {
            settle_with_base(disk, i);
        }
    }
    compact_changes(disk);
}

/* Names in directories that are not there are not there either. */
static void drop_orphans(struct lahar_sim_disk *disk)
{
    bool has_dropped = true;
    while (has_dropped) {
        has_dropped = false;
        for (uint32_t i = 0; i < disk->name_count; i++) {
            struct sim_name *name = &disk->names[i];
            if (name->live != NULL && !lahar_sim_names_has_parent(disk, name->path)) {
                point(disk, &name->live, NULL);
                point(disk, &name->durable, NULL);
                has_dropped = true;
            }
        }
    }
}

void lahar_sim_names_crash(struct lahar_sim_disk *disk, struct sim_random *random)
{
    /* 0: all are lost; 4: all are kept. */
    const uint64_t kept_of_four = sim_random_below(random, 5);
    for (uint32_t i = 0; i < disk->change_count; i++) {
        if (sim_random_below(random, 4) < kept_of_four) {
            settle(disk, &disk->changes[i]);
        }
        lahar_sim_inode_release(disk, disk->changes[i].inode);
    }
    disk->change_count = 0;
    for (uint32_t i = 0; i < disk->name_count; i++) {
        point(disk, &disk->names[i].live, disk->names[i].durable);
    }
    drop_orphans(disk);
    compact_names(disk);
}

void lahar_sim_names_deinit(struct lahar_sim_disk *disk)
{
    for (uint32_t i = 0; i < disk->change_count; i++) {
        lahar_sim_inode_release(disk, disk->changes[i].inode);
    }
    for (uint32_t i = 0; i < disk->name_count; i++) {
        lahar_release(disk->allocator, disk->names[i].path);
        lahar_sim_inode_release(disk, disk->names[i].live);
        lahar_sim_inode_release(disk, disk->names[i].durable);
    }
    lahar_release(disk->allocator, disk->changes);
    lahar_release(disk->allocator, disk->names);
    lahar_release(disk->allocator, disk->inodes);
}

/* The copy's file that stands for one of the original's; each holder counts. */
static struct sim_inode *counterpart(struct lahar_sim_disk *copy, const struct sim_inode *inode)
{
    return inode == NULL ? NULL : hold_inode(copy->inodes[inode->index]);
}

static int copy_inodes(const struct lahar_sim_disk *disk, struct lahar_sim_disk *copy)
{
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        struct sim_inode *inode = create_inode(copy, disk->inodes[i]->is_directory);
        if (inode == NULL || lahar_sim_content_copy(disk->inodes[i], inode) != 0) {
            return ENOMEM;
        }
    }
    return 0;
}

/* Files that only an open handle of the original holds, or that a failure left unnamed. */
static void drop_unheld_inodes(struct lahar_sim_disk *disk)
{
    for (uint32_t i = disk->inode_count; i-- > 0;) {
        if (disk->inodes[i]->references == 0) {
            destroy_inode(disk, disk->inodes[i]);
        }
    }
}

int lahar_sim_names_copy(const struct lahar_sim_disk *disk, struct lahar_sim_disk *copy)
{
    int failure = copy_inodes(disk, copy);
    for (uint32_t i = 0; i < disk->name_count && failure == 0; i++) {
        uint32_t index = 0;
        failure = reserve(copy) != 0 ? ENOMEM : obtain_name(copy, disk->names[i].path, &index);
        if (failure == 0) {
            copy->names[index].live = counterpart(copy, disk->names[i].live);
            copy->names[index].durable = counterpart(copy, disk->names[i].durable);
        }
    }
    for (uint32_t i = 0; i < disk->change_count && failure == 0; i++) {
        failure = reserve(copy);
        if (failure == 0) {
            struct sim_change change = disk->changes[i];
            change.inode = counterpart(copy, change.inode);
            copy->changes[copy->change_count++] = change;
        }
    }
    drop_unheld_inodes(copy);
    return failure;
}
