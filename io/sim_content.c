/* Simulated disk: the bytes of one file.
 *
 * Two sparse page maps hold what reads see and what a crash leaves at least;
 * between them lies a list of unsynced changes in order. A change of a page
 * keeps the page as that write left it, as a page cache would send whole sectors to
 * the disk. Sync replays all changes onto the durable map, a crash replays a random
 * part of them. Pages are shared and copied when changed.
 * Guarded by the disk's mutex. A refused allocation leaves the maps valid; in a crash it
 * counts as a write that did not reach the disk. */
#include <errno.h>
#include <string.h>

#include "io/sim_internal.h"

static void drop_page(const lahar_allocator *allocator, struct sim_page *page)
{
    /* Release what this holder read or wrote; the last one acquires it before freeing. */
    if (page != NULL &&
        atomic_fetch_sub_explicit(&page->references, 1, memory_order_acq_rel) == 1) {
        lahar_release(allocator, page);
    }
}

static struct sim_page *hold_page(struct sim_page *page)
{
    if (page != NULL) {
        (void)atomic_fetch_add_explicit(&page->references, 1, memory_order_relaxed);
    }
    return page;
}

static struct sim_page *page_at(const struct sim_map *map, uint32_t number)
{
    return number < map->capacity ? map->pages[number] : NULL;
}

/* Puts page, whose reference passes to the map, in place of the old one. */
static int set_page(struct sim_map *map, const lahar_allocator *allocator, uint32_t number,
                    struct sim_page *page)
{
    if (number >= map->capacity) {
        if (page == NULL) {
            return 0;
        }
        const uint32_t capacity = number < 16 ? 16 : number + number / 2;
        struct sim_page **pages =
            lahar_reallocate(allocator, map->pages, capacity * sizeof(struct sim_page *));
        if (pages == NULL) {
            drop_page(allocator, page);
            return ENOMEM;
        }
        for (uint32_t i = map->capacity; i < capacity; i++) {
            pages[i] = NULL;
        }
        map->pages = pages;
        map->capacity = capacity;
    }
    drop_page(allocator, map->pages[number]);
    map->pages[number] = page;
    return 0;
}

/* The page for changing: one that nobody else holds. NULL when memory is refused. */
static struct sim_page *own_page(struct sim_map *map, const lahar_allocator *allocator,
                                 uint32_t number)
{
    struct sim_page *page = page_at(map, number);
    /* Acquire: the former holders have finished with it. */
    if (page != NULL && atomic_load_explicit(&page->references, memory_order_acquire) == 1) {
        return page;
    }
    struct sim_page *copy = lahar_allocate(allocator, sizeof *copy);
    if (copy == NULL) {
        return NULL;
    }
    atomic_init(&copy->references, 1);
    if (page != NULL) {
        memcpy(copy->bytes, page->bytes, SIM_PAGE_SIZE);
    } else {
        memset(copy->bytes, 0, SIM_PAGE_SIZE);
    }
    return set_page(map, allocator, number, copy) == 0 ? copy : NULL;
}

/* Takes the chosen sectors from source (NULL: zeros) into the map. */
static int merge_sectors(struct sim_map *map, const lahar_allocator *allocator, uint32_t number,
                         struct sim_page *source, uint32_t sectors)
{
    if (sectors == 0 || (source == NULL && page_at(map, number) == NULL)) {
        return 0;
    }
    if (sectors == SIM_ALL_SECTORS) {
        return set_page(map, allocator, number, hold_page(source));
    }
    struct sim_page *page = own_page(map, allocator, number);
    if (page == NULL) {
        return ENOMEM;
    }
    for (uint32_t i = 0; i < SIM_PAGE_SECTORS; i++) {
        if ((sectors & (1U << i)) == 0) {
            continue;
        }
        uint8_t *target = page->bytes + (size_t)i * SIM_SECTOR_SIZE;
        if (source == NULL) {
            memset(target, 0, SIM_SECTOR_SIZE);
        } else {
            memcpy(target, source->bytes + (size_t)i * SIM_SECTOR_SIZE, SIM_SECTOR_SIZE);
        }
    }
    return 0;
}

/* Everything from size on becomes zero. */
static int cut_map(struct sim_map *map, const lahar_allocator *allocator, uint64_t size)
{
    const uint64_t first_gone = (size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE;
    for (uint64_t i = first_gone; i < map->capacity; i++) {
        drop_page(allocator, map->pages[i]);
        map->pages[i] = NULL;
    }
    const uint32_t last = (uint32_t)(size / SIM_PAGE_SIZE);
    const size_t tail = (size_t)(size % SIM_PAGE_SIZE);
    if (tail != 0 && page_at(map, last) != NULL) {
        struct sim_page *page = own_page(map, allocator, last);
        if (page == NULL) {
            return ENOMEM;
        }
        memset(page->bytes + tail, 0, SIM_PAGE_SIZE - tail);
    }
    return 0;
}

static void release_map(struct sim_map *map, const lahar_allocator *allocator)
{
    (void)cut_map(map, allocator, 0);
    lahar_release(allocator, map->pages);
    *map = (struct sim_map){NULL, 0};
}

static int copy_map(const struct sim_map *map, const lahar_allocator *allocator,
                    struct sim_map *copy)
{
    if (map->capacity == 0) {
        return 0;
    }
    copy->pages = lahar_allocate(allocator, map->capacity * sizeof(struct sim_page *));
    if (copy->pages == NULL) {
        return ENOMEM;
    }
    copy->capacity = map->capacity;
    for (uint32_t i = 0; i < map->capacity; i++) {
        copy->pages[i] = hold_page(map->pages[i]);
    }
    return 0;
}

void lahar_sim_content_lose(struct sim_inode *inode, uint32_t first)
{
    for (uint32_t i = first; i < inode->pending_count; i++) {
        drop_page(inode->allocator, inode->pending[i].page);
    }
    if (inode->pending_count > first) {
        inode->pending_count = first;
    }
}

void lahar_sim_content_deinit(struct sim_inode *inode)
{
    lahar_sim_content_lose(inode, 0);
    lahar_release(inode->allocator, inode->pending);
    release_map(&inode->cached, inode->allocator);
    release_map(&inode->durable, inode->allocator);
    inode->pending = NULL;
    inode->pending_capacity = 0;
}

int lahar_sim_content_copy(const struct sim_inode *inode, struct sim_inode *copy)
{
    if (copy_map(&inode->cached, copy->allocator, &copy->cached) != 0 ||
        copy_map(&inode->durable, copy->allocator, &copy->durable) != 0) {
        return ENOMEM;
    }
    copy->cached_size = inode->cached_size;
    copy->durable_size = inode->durable_size;
    if (inode->pending_count == 0) {
        return 0;
    }
    copy->pending =
        lahar_allocate(copy->allocator, inode->pending_count * sizeof(struct sim_pending));
    if (copy->pending == NULL) {
        return ENOMEM;
    }
    copy->pending_capacity = inode->pending_count;
    copy->pending_count = inode->pending_count;
    for (uint32_t i = 0; i < inode->pending_count; i++) {
        copy->pending[i] = inode->pending[i];
        (void)hold_page(copy->pending[i].page);
    }
    return 0;
}

/* Room for count more pending changes. */
static int reserve_pending(struct sim_inode *inode, uint32_t count)
{
    if (inode->pending_capacity - inode->pending_count >= count) {
        return 0;
    }
    uint32_t capacity = inode->pending_capacity < 8 ? 8 : 2 * inode->pending_capacity;
    if (capacity < inode->pending_count + count) {
        capacity = inode->pending_count + count;
    }
    struct sim_pending *pending =
        lahar_reallocate(inode->allocator, inode->pending, capacity * sizeof *pending);
    if (pending == NULL) {
        return ENOMEM;
    }
    inode->pending = pending;
    inode->pending_capacity = capacity;
    return 0;
}

void lahar_sim_content_read(const struct sim_inode *inode, uint64_t offset, uint8_t *data,
                            size_t size)
{
    while (size > 0) {
        const size_t within = (size_t)(offset % SIM_PAGE_SIZE);
        const size_t part = size < SIM_PAGE_SIZE - within ? size : SIM_PAGE_SIZE - within;
        const struct sim_page *page = page_at(&inode->cached, (uint32_t)(offset / SIM_PAGE_SIZE));
        if (page == NULL) {
            memset(data, 0, part);
        } else {
            memcpy(data, page->bytes + within, part);
        }
        offset += part;
        data += part;
        size -= part;
    }
}

/* The sectors of a page that bytes begin .. end - 1 of it touch. */
static uint32_t sectors_of(size_t begin, size_t end)
{
    uint32_t sectors = 0;
    for (size_t i = begin / SIM_SECTOR_SIZE; i * SIM_SECTOR_SIZE < end; i++) {
        sectors |= 1U << i;
    }
    return sectors;
}

int lahar_sim_content_write(struct sim_inode *inode, uint64_t offset, const uint8_t *data,
                            size_t size, uint64_t write_number)
{
    const uint64_t end = offset + size;
    while (offset < end) {
        const uint32_t number = (uint32_t)(offset / SIM_PAGE_SIZE);
        const size_t within = (size_t)(offset % SIM_PAGE_SIZE);
        const size_t left = (size_t)(end - offset);
        const size_t part = left < SIM_PAGE_SIZE - within ? left : SIM_PAGE_SIZE - within;
        /* One more for the size behind the last page. */
        struct sim_page *page = reserve_pending(inode, 2) != 0
                                    ? NULL
                                    : own_page(&inode->cached, inode->allocator, number);
        if (page == NULL) {
            return ENOMEM;
        }
        memcpy(page->bytes + within, data, part);
        inode->pending[inode->pending_count++] = (struct sim_pending){
            .kind = SIM_PENDING_PAGE,
            .sectors = sectors_of(within, within + part),
            .first_page = number,
            .write_number = write_number,
            .page = hold_page(page),
        };
        data += part;
        offset += part;
    }
    return end > inode->cached_size ? lahar_sim_content_resize(inode, end, write_number) : 0;
}

int lahar_sim_content_resize(struct sim_inode *inode, uint64_t size, uint64_t write_number)
{
    if (reserve_pending(inode, 1) != 0 ||
        (size < inode->cached_size && cut_map(&inode->cached, inode->allocator, size) != 0)) {
        return ENOMEM;
    }
    inode->cached_size = size;
    inode->pending[inode->pending_count++] = (struct sim_pending){
        .kind = SIM_PENDING_SIZE,
        .write_number = write_number,
        .size = size,
    };
    return 0;
}

int lahar_sim_content_zero(struct sim_inode *inode, uint64_t size, uint64_t write_number)
{
    if (reserve_pending(inode, 2) != 0) {
        return ENOMEM;
    }
    (void)cut_map(&inode->cached, inode->allocator, 0);
    inode->pending[inode->pending_count++] = (struct sim_pending){
        .kind = SIM_PENDING_ZEROS,
        .page_count = (uint32_t)((size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE),
        .write_number = write_number,
    };
    return lahar_sim_content_resize(inode, size, write_number);
}

/* How much of each write reaches the disk in one crash. */
struct survival {
    struct sim_random *random; /* NULL: everything survives */
    uint64_t write_number;     /* the write that the rest applies to */
    enum {
        SURVIVAL_ALL,
        SURVIVAL_NONE,
        SURVIVAL_TORN
    } of_write;
    bool all_lost; /* the whole file's cache was lost */
    bool all_kept;
};

static void begin_survival(struct survival *survival, struct sim_random *random)
{
    *survival = (struct survival){.random = random};
    if (random != NULL) {
        /* The extremes are worth a crash in four by themselves. */
        const uint64_t draw = sim_random_below(random, 8);
        survival->all_lost = draw == 0;
        survival->all_kept = draw == 1;
    }
}

/* The sectors, of those asked for, that survive of a pending change. */
static uint32_t surviving(struct survival *survival, uint64_t write_number, uint32_t sectors)
{
    if (survival->random == NULL || survival->all_kept) {
        return sectors;
    }
    if (survival->all_lost) {
        return 0;
    }
    if (survival->write_number != write_number) {
        survival->write_number = write_number;
        const uint64_t draw = sim_random_below(survival->random, 4);
        survival->of_write = draw == 0 ? SURVIVAL_ALL : draw == 1 ? SURVIVAL_NONE : SURVIVAL_TORN;
    }
    switch (survival->of_write) {
    case SURVIVAL_ALL:
        return sectors;
    case SURVIVAL_NONE:
        return 0;
    case SURVIVAL_TORN:
        break;
    }
    return sectors & (uint32_t)sim_random_next(survival->random);
}

/* Replays one pending change, as far as it survives, onto the durable view. */
static int replay(struct sim_inode *inode, const struct sim_pending *change,
                  struct survival *survival)
{
    struct sim_map *map = &inode->durable;
    int failure = 0;
    switch (change->kind) {
    case SIM_PENDING_PAGE:
        return merge_sectors(map, inode->allocator, change->first_page, change->page,
                             surviving(survival, change->write_number, change->sectors));
    case SIM_PENDING_ZEROS:
        /* Pages that are not in the map are zeros already. */
        for (uint32_t i = change->first_page;
             i < map->capacity && i - change->first_page < change->page_count; i++) {
            const uint32_t sectors = surviving(survival, change->write_number, SIM_ALL_SECTORS);
            const int outcome = merge_sectors(map, inode->allocator, i, NULL, sectors);
            failure = outcome != 0 ? outcome : failure;
        }
        return failure;
    case SIM_PENDING_SIZE:
        if (surviving(survival, change->write_number, 1) != 0) {
            failure = change->size < inode->durable_size
                          ? cut_map(map, inode->allocator, change->size)
                          : 0;
            inode->durable_size = change->size;
        }
        return failure;
    }
    return EINVAL;
}

int lahar_sim_content_sync(struct sim_inode *inode)
{
    struct survival survival;
    begin_survival(&survival, NULL);
    for (uint32_t i = 0; i < inode->pending_count; i++) {
        const int failure = replay(inode, &inode->pending[i], &survival);
        if (failure != 0) {
            return failure;
        }
    }
    lahar_sim_content_lose(inode, 0);
    return 0;
}

/* Turns a run of zeros into single pages, so that sectors of it can be superseded. */
static int expand_zeros(struct sim_inode *inode, uint32_t index)
{
    const struct sim_pending run = inode->pending[index];
    if (run.page_count == 0) {
        inode->pending[index].kind = SIM_PENDING_PAGE;
        return 0;
    }
    if (reserve_pending(inode, run.page_count - 1) != 0) {
        return ENOMEM;
    }
    struct sim_pending *place = inode->pending + index;
    memmove(place + run.page_count, place + 1, (inode->pending_count - index - 1) * sizeof *place);
    inode->pending_count += run.page_count - 1;
    for (uint32_t i = 0; i < run.page_count; i++) {
        place[i] = (struct sim_pending){
            .kind = SIM_PENDING_PAGE,
            .sectors = SIM_ALL_SECTORS,
            .first_page = run.first_page + i,
            .write_number = run.write_number,
        };
    }
    return 0;
}

static int expand_all_zeros(struct sim_inode *inode, uint32_t *first)
{
    for (uint32_t i = 0; i < inode->pending_count; i++) {
        if (inode->pending[i].kind == SIM_PENDING_ZEROS) {
            const uint32_t before = inode->pending_count;
            if (expand_zeros(inode, i) != 0) {
                return ENOMEM;
            }
            *first += i < *first ? inode->pending_count - before : 0;
        }
    }
    return 0;
}

/* Removes superseded changes. */
static void compact_pending(struct sim_inode *inode)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < inode->pending_count; i++) {
        if (inode->pending[i].kind == SIM_PENDING_PAGE && inode->pending[i].sectors == 0) {
            drop_page(inode->allocator, inode->pending[i].page);
        } else {
            inode->pending[kept++] = inode->pending[i];
        }
    }
    inode->pending_count = kept;
}

/* Whether a smaller size is pending. */
static bool is_shrinking(const struct sim_inode *inode)
{
    uint64_t size = inode->durable_size;
    for (uint32_t i = 0; i < inode->pending_count; i++) {
        if (inode->pending[i].kind == SIM_PENDING_SIZE) {
            if (inode->pending[i].size < size) {
                return true;
            }
            size = inode->pending[i].size;
        }
    }
    return false;
}

/* The size becomes durable as a whole, and no change of it remains pending. */
static void settle_size(struct sim_inode *inode)
{
    for (uint32_t i = 0; i < inode->pending_count; i++) {
        struct sim_pending *change = &inode->pending[i];
        if (change->kind == SIM_PENDING_SIZE) {
            inode->durable_size = change->size;
            change->kind = SIM_PENDING_PAGE;
            change->sectors = 0;
        }
    }
}

int lahar_sim_content_sync_from(struct sim_inode *inode, uint32_t first)
{
    /* A file system that commits a smaller size has dropped the pages behind it, which
     * takes the order of all changes. */
    if (first == 0 || is_shrinking(inode)) {
        return lahar_sim_content_sync(inode);
    }
    int failure = expand_all_zeros(inode, &first);
    if (failure != 0) {
        return failure;
    }
    settle_size(inode);
    for (uint32_t i = first; i < inode->pending_count; i++) {
        struct sim_pending *change = &inode->pending[i];
        failure = merge_sectors(&inode->durable, inode->allocator, change->first_page, change->page,
                                change->sectors);
        if (failure != 0) {
            break;
        }
        for (uint32_t j = 0; j < first; j++) {
            struct sim_pending *earlier = &inode->pending[j];
            if (earlier->first_page == change->first_page) {
                earlier->sectors &= ~change->sectors;
            }
        }
        change->sectors = 0;
    }
    compact_pending(inode);
    return failure;
}

void lahar_sim_content_crash(struct sim_inode *inode, struct sim_random *random)
{
    struct survival survival;
    begin_survival(&survival, random);
    for (uint32_t i = 0; i < inode->pending_count; i++) {
        (void)replay(inode, &inode->pending[i], &survival);
    }
    lahar_sim_content_lose(inode, 0);
    (void)cut_map(&inode->durable, inode->allocator, inode->durable_size);
    (void)cut_map(&inode->cached, inode->allocator, 0);
    for (uint32_t i = 0; i < inode->durable.capacity; i++) {
        (void)set_page(&inode->cached, inode->allocator, i, hold_page(inode->durable.pages[i]));
    }
    inode->cached_size = inode->durable_size;
}

int lahar_sim_content_flip(struct sim_inode *inode, uint64_t bit)
{
    const uint64_t offset = bit / 8;
    struct sim_map *maps[] = {&inode->cached, &inode->durable};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        struct sim_page *page =
            own_page(maps[i], inode->allocator, (uint32_t)(offset / SIM_PAGE_SIZE));
        if (page == NULL) {
            return ENOMEM;
        }
        page->bytes[offset % SIM_PAGE_SIZE] ^= (uint8_t)(1U << (bit % 8));
    }
    return 0;
}
