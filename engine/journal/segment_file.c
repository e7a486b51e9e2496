/* Creating, reusing and removing journal files. All I/O here is synchronous and done
 * outside the mutex, by the thread that prepares files or by one that forgets. */
#include "engine/journal/segment_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/journal/frame.h"
#include "engine/journal/journal.h"
#include "io/base/bytes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

static const char magic[8] = {'L', 'A', 'H', 'A', 'R', 'J', 'N', 'L'};
static const char name_suffix[] = ".journal";

enum {
    HEADER_VERSION = 1,
    AT_VERSION = 8,   /* u16 */
    AT_SIZE = 10,     /* u16, of the header */
    AT_FEATURES = 12, /* u32, zero: a reader refuses what it does not know */
    AT_STORE_ID = 16,
    AT_SESSION = 24,
    AT_GENERATION = 32,
    AT_REGION_SIZE = 40,
    AT_REGION_COUNT = 44,
    AT_KEY_ID = 48, /* u32, zero: not encrypted */
    AT_CHECKSUM = LAHAR_JOURNAL_HEADER_SIZE - 4,
    NUMBER_DIGITS = 20,
    PATH_SIZE = 4096
};

/* A new file is a 64th of what there is, within these bounds: an empty store is small, a busy one
 * has few files, and what 16 journals have begun and not filled is a fraction of what they hold. */
static const uint64_t file_min_bytes = UINT64_C(1) << 20;
static const uint64_t file_max_bytes = UINT64_C(16) << 20;
/* Files that nobody uses are kept as long as there are not more of them than of the others; beyond
 * that, within these bounds, they are unlinked. */
static const uint64_t spare_min_bytes = UINT64_C(4) << 20;
static const uint64_t spare_max_bytes = UINT64_C(64) << 20;

void lahar_journal_header_encode(uint8_t block[LAHAR_JOURNAL_HEADER_SIZE],
                                 const struct lahar_journal_header *header)
{
    memset(block, 0, LAHAR_JOURNAL_HEADER_SIZE);
    memcpy(block, magic, sizeof magic);
    lahar_store_u16(block + AT_VERSION, HEADER_VERSION);
    lahar_store_u16(block + AT_SIZE, LAHAR_JOURNAL_HEADER_SIZE);
    lahar_store_u64(block + AT_STORE_ID, header->store_id);
    lahar_store_u64(block + AT_SESSION, header->session);
    lahar_store_u64(block + AT_GENERATION, header->generation);
    lahar_store_u32(block + AT_REGION_SIZE, header->region_size);
    lahar_store_u32(block + AT_REGION_COUNT, header->region_count);
    lahar_store_u32(block + AT_CHECKSUM, lahar_crc32c(0, block, AT_CHECKSUM));
}

bool lahar_journal_header_has_magic(const uint8_t block[LAHAR_JOURNAL_HEADER_SIZE])
{
    return memcmp(block, magic, sizeof magic) == 0;
}

void lahar_journal_header_peek(const uint8_t block[LAHAR_JOURNAL_HEADER_SIZE],
                               struct lahar_journal_header *header_out)
{
    header_out->store_id = lahar_load_u64(block + AT_STORE_ID);
    header_out->session = lahar_load_u64(block + AT_SESSION);
    header_out->generation = lahar_load_u64(block + AT_GENERATION);
    header_out->region_size = lahar_load_u32(block + AT_REGION_SIZE);
    header_out->region_count = lahar_load_u32(block + AT_REGION_COUNT);
}

lahar_status lahar_journal_header_decode(const uint8_t block[LAHAR_JOURNAL_HEADER_SIZE],
                                         struct lahar_journal_header *header_out,
                                         lahar_error *error)
{
    if (!lahar_journal_header_has_magic(block)) {
        return lahar_fail(error, LAHAR_CORRUPT, "no journal header");
    }
    /* Before the checksum, which a later version may place elsewhere. */
    if (lahar_load_u16(block + AT_VERSION) > HEADER_VERSION) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "journal of version %u, at most %d is known",
                          lahar_load_u16(block + AT_VERSION), HEADER_VERSION);
    }
    if (lahar_crc32c(0, block, AT_CHECKSUM) != lahar_load_u32(block + AT_CHECKSUM) ||
        lahar_load_u16(block + AT_SIZE) != LAHAR_JOURNAL_HEADER_SIZE) {
        return lahar_fail(error, LAHAR_CORRUPT, "damaged journal header");
    }
    if (lahar_load_u32(block + AT_FEATURES) != 0 || lahar_load_u32(block + AT_KEY_ID) != 0) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "journal with features %#x, key %u",
                          lahar_load_u32(block + AT_FEATURES), lahar_load_u32(block + AT_KEY_ID));
    }
    lahar_journal_header_peek(block, header_out);
    if (header_out->region_size == 0 || header_out->region_size % LAHAR_IO_ALIGNMENT != 0 ||
        header_out->region_size > LAHAR_JOURNAL_REGION_SIZE_MAX || header_out->region_count == 0) {
        return lahar_fail(error, LAHAR_CORRUPT, "journal header with %u regions of %u bytes",
                          header_out->region_count, header_out->region_size);
    }
    return LAHAR_OK;
}

void lahar_journal_file_name(uint64_t number, char name_out[LAHAR_JOURNAL_NAME_SIZE])
{
    (void)snprintf(name_out, LAHAR_JOURNAL_NAME_SIZE, "%020llu%s", (unsigned long long)number,
                   name_suffix);
}

bool lahar_journal_file_number(const char *name, uint64_t *number_out)
{
    uint64_t number = 0;
    for (int i = 0; i < NUMBER_DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9') {
            return false;
        }
        const uint64_t digit = (uint64_t)(name[i] - '0');
        if (number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *number_out = number;
    return strcmp(name + NUMBER_DIGITS, name_suffix) == 0;
}

void lahar_segment_pool_init(struct lahar_segment_pool *pool, struct lahar_io *io,
                             const char *directory, const lahar_allocator *allocator,
                             uint64_t store_id, uint64_t session, uint32_t region_size,
                             uint64_t first_number)
{
    *pool = (struct lahar_segment_pool){
        .io = io,
        .directory = directory,
        .allocator = allocator,
        .store_id = store_id,
        .session = session,
        .region_size = region_size,
        .next_number = first_number,
        .next_generation = 1,
    };
    atomic_init(&pool->total_bytes, 0);
    (void)pthread_mutex_init(&pool->mutex, NULL);
}

void lahar_segment_file_close(struct lahar_segment_pool *pool, struct lahar_segment_file *file)
{
    pool->io->ops->close(pool->io, file->file);
    lahar_release(pool->allocator, file);
}

static void close_list(struct lahar_segment_pool *pool, struct lahar_segment_file *file)
{
    while (file != NULL) {
        struct lahar_segment_file *next = file->next;
        lahar_segment_file_close(pool, file);
        file = next;
    }
}

void lahar_segment_pool_deinit(struct lahar_segment_pool *pool)
{
    close_list(pool, pool->ready);
    close_list(pool, pool->spare);
    close_list(pool, pool->found);
    (void)pthread_mutex_destroy(&pool->mutex);
}

static lahar_status path_of(const struct lahar_segment_pool *pool, uint64_t number,
                            char path_out[PATH_SIZE], lahar_error *error)
{
    char name[LAHAR_JOURNAL_NAME_SIZE];
    lahar_journal_file_name(number, name);
    const int length = snprintf(path_out, PATH_SIZE, "%s/%s", pool->directory, name);
    if (length < 0 || length >= PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "path too long: %s", pool->directory);
    }
    return LAHAR_OK;
}

static void forget_file(struct lahar_segment_pool *pool, struct lahar_segment_file *file)
{
    (void)atomic_fetch_sub_explicit(&pool->total_bytes, file->size_bytes, memory_order_relaxed);
    lahar_segment_file_close(pool, file);
}

/* Closes and unlinks a file that holds nothing. A name that stays behind is harmless: the
 * next opening finds that nothing in it is needed. */
static void discard(struct lahar_segment_pool *pool, struct lahar_segment_file *file)
{
    char path[PATH_SIZE];
    if (path_of(pool, file->number, path, NULL) == LAHAR_OK) {
        (void)pool->io->ops->unlink(pool->io, path, NULL);
    }
    forget_file(pool, file);
}

/* What a failure to open, create or name a file that holds nothing means. Only EIO speaks of the
 * disk; a full table of descriptors, or rights that are missing, may pass: LAHAR_BUSY. */
static lahar_status judge(lahar_status status, const lahar_error *cause, lahar_error *error)
{
    if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
        *error = *cause;
    }
    return status == LAHAR_OK || status == LAHAR_NO_SPACE || status == LAHAR_NO_MEMORY ||
                   cause->sys_errno == EIO
               ? status
               : LAHAR_BUSY;
}

/* The same of making names durable: there only the want of a descriptor is none of the disk's. */
static lahar_status sync_names(struct lahar_segment_pool *pool, lahar_error *error)
{
    lahar_error cause = {0};
    const lahar_status status = pool->io->ops->sync_directory(pool->io, pool->directory, &cause);
    if (cause.sys_errno == EMFILE || cause.sys_errno == ENFILE) {
        return judge(status, &cause, error);
    }
    if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
        *error = cause;
    }
    return status;
}

/* Writes the header that begins a new use of the file and syncs it. */
static lahar_status begin_use(struct lahar_segment_pool *pool, struct lahar_segment_file *file,
                              lahar_error *error)
{
    (void)pthread_mutex_lock(&pool->mutex);
    file->generation = pool->next_generation++;
    (void)pthread_mutex_unlock(&pool->mutex);
    file->region_used = 0;
    file->end_id = 0;
    atomic_store_explicit(&file->regions_held, file->region_count, memory_order_relaxed);
    file->seed = lahar_frame_seed(pool->store_id, pool->session, file->generation);
    const struct lahar_journal_header header = {
        .store_id = pool->store_id,
        .session = pool->session,
        .generation = file->generation,
        .region_size = file->region_size,
        .region_count = file->region_count,
    };
    void *allocation =
        lahar_allocate(pool->allocator, LAHAR_JOURNAL_HEADER_SIZE + LAHAR_IO_ALIGNMENT);
    if (allocation == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a journal header");
    }
    const uintptr_t mask = LAHAR_IO_ALIGNMENT - 1;
    uint8_t *block = (uint8_t *)(((uintptr_t)allocation + mask) & ~mask);
    lahar_journal_header_encode(block, &header);
    lahar_status status =
        pool->io->ops->write(pool->io, file->file, 0, block, LAHAR_JOURNAL_HEADER_SIZE, error);
    if (status == LAHAR_OK) {
        status = pool->io->ops->sync(pool->io, file->file, error);
    }
    lahar_release(pool->allocator, allocation);
    return status;
}

static lahar_status open_file(struct lahar_segment_pool *pool, const char *path, unsigned flags,
                              struct lahar_segment_file *file, lahar_error *error)
{
    lahar_error cause = {0};
    const lahar_status status = pool->io->ops->open(
        pool->io, path, LAHAR_IO_READ | LAHAR_IO_WRITE | LAHAR_IO_DIRECT | flags, &file->file,
        &cause);
    return judge(status, &cause, error);
}

/* How a new file gets its bytes. */
enum creation {
    CREATE_BARE,     /* as they are written */
    CREATE_RESERVED, /* at once, unwritten: quick, but first writes change metadata */
    CREATE_FILLED    /* at once, written */
};

/* A new file of region_count regions. */
static lahar_status create(struct lahar_segment_pool *pool, uint32_t region_size,
                           uint32_t region_count, enum creation creation,
                           struct lahar_segment_file **file_out, lahar_error *error)
{
    const struct lahar_io_ops *ops = pool->io->ops;
    struct lahar_segment_file *file = lahar_allocate_zeroed(pool->allocator, 1, sizeof *file);
    if (file == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a journal file");
    }
    (void)pthread_mutex_lock(&pool->mutex);
    file->number = pool->next_number++;
    (void)pthread_mutex_unlock(&pool->mutex);
    file->region_size = region_size;
    file->region_count = region_count;
    file->size_bytes = LAHAR_JOURNAL_HEADER_SIZE + (uint64_t)region_size * region_count;
    (void)atomic_fetch_add_explicit(&pool->total_bytes, file->size_bytes, memory_order_relaxed);
    char path[PATH_SIZE];
    lahar_status status = path_of(pool, file->number, path, error);
    if (status == LAHAR_OK) {
        status = open_file(pool, path, LAHAR_IO_CREATE | LAHAR_IO_EXCLUSIVE, file, error);
        if (status != LAHAR_OK) {
            forget_file(pool, file); /* there is none, or it is not this one */
            return status;
        }
    }
    if (status == LAHAR_OK && creation == CREATE_RESERVED) {
        status = ops->reserve(pool->io, file->file, file->size_bytes, error);
    } else if (status == LAHAR_OK && creation == CREATE_FILLED) {
        status = ops->fill(pool->io, file->file, file->size_bytes, error);
    }
    if (status == LAHAR_OK) {
        status = begin_use(pool, file, error);
    }
    if (status == LAHAR_OK && !pool->skips_directory_sync) {
        status = sync_names(pool, error);
    }
    if (status != LAHAR_OK) {
        discard(pool, file);
        return status;
    }
    *file_out = file;
    return LAHAR_OK;
}

lahar_status lahar_segment_pool_create_jumbo(struct lahar_segment_pool *pool, uint32_t region_size,
                                             struct lahar_segment_file **file_out,
                                             lahar_error *error)
{
    return create(pool, region_size, 1, CREATE_BARE, file_out, error);
}

static uint32_t regions_of_next_file(const struct lahar_segment_pool *pool)
{
    const uint64_t total = atomic_load_explicit(&pool->total_bytes, memory_order_relaxed);
    uint64_t bytes = file_min_bytes;
    while (bytes < file_max_bytes && 2 * bytes * 4 * LAHAR_JOURNAL_COUNT <= total) {
        bytes *= 2;
    }
    return (uint32_t)(bytes / pool->region_size);
}

/* Opens a spare file again if an earlier session left it. */
static lahar_status reopen(struct lahar_segment_pool *pool, struct lahar_segment_file *file,
                           lahar_error *error)
{
    if (file->file != NULL) {
        return LAHAR_OK;
    }
    char path[PATH_SIZE];
    LAHAR_TRY(path_of(pool, file->number, path, error));
    return open_file(pool, path, 0, file, error);
}

/* Puts a spare file that cannot be opened back to the others. */
static void keep_spare(struct lahar_segment_pool *pool, struct lahar_segment_file *file)
{
    (void)pthread_mutex_lock(&pool->mutex);
    file->next = pool->spare;
    pool->spare = file;
    pool->spare_bytes += file->size_bytes;
    (void)pthread_mutex_unlock(&pool->mutex);
}

lahar_status lahar_segment_pool_prepare(struct lahar_segment_pool *pool, bool is_for_commits,
                                        lahar_error *error)
{
    (void)pthread_mutex_lock(&pool->mutex);
    struct lahar_segment_file *file = pool->spare;
    if (file != NULL) {
        pool->spare = file->next;
        pool->spare_bytes -= file->size_bytes;
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    lahar_status status = LAHAR_OK;
    if (file != NULL) {
        lahar_error cause = {0};
        status = reopen(pool, file, &cause);
        if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
            *error = cause;
        }
        if (cause.sys_errno == EMFILE || cause.sys_errno == ENFILE) {
            keep_spare(pool, file);
            return status;
        }
        if (status == LAHAR_OK) {
            status = begin_use(pool, file, error);
        }
        if (status != LAHAR_OK) {
            discard(pool, file);
        }
    } else {
        status = create(pool, pool->region_size, regions_of_next_file(pool),
                        is_for_commits ? CREATE_FILLED : CREATE_RESERVED, &file, error);
    }
    if (status != LAHAR_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&pool->mutex);
    file->next = pool->ready;
    pool->ready = file;
    pool->ready_count++;
    (void)pthread_mutex_unlock(&pool->mutex);
    return LAHAR_OK;
}

uint32_t lahar_segment_pool_ready_count(struct lahar_segment_pool *pool)
{
    (void)pthread_mutex_lock(&pool->mutex);
    const uint32_t count = pool->ready_count;
    (void)pthread_mutex_unlock(&pool->mutex);
    return count;
}

struct lahar_segment_file *lahar_segment_pool_take(struct lahar_segment_pool *pool)
{
    (void)pthread_mutex_lock(&pool->mutex);
    struct lahar_segment_file *file = pool->ready;
    if (file != NULL) {
        pool->ready = file->next;
        pool->ready_count--;
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    return file;
}

/* Keeps a file that nobody uses for the next need, or unlinks it. */
static void retire(struct lahar_segment_pool *pool, struct lahar_segment_file *file)
{
    (void)pthread_mutex_lock(&pool->mutex);
    const uint64_t used =
        atomic_load_explicit(&pool->total_bytes, memory_order_relaxed) - pool->spare_bytes;
    const uint64_t limit = used < spare_min_bytes   ? spare_min_bytes
                           : used > spare_max_bytes ? spare_max_bytes
                                                    : used;
    const bool is_kept =
        file->region_size == pool->region_size && pool->spare_bytes + file->size_bytes <= limit;
    if (is_kept) {
        file->next = pool->spare;
        pool->spare = file;
        pool->spare_bytes += file->size_bytes;
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    if (!is_kept) {
        discard(pool, file);
    }
}

void lahar_segment_pool_trim(struct lahar_segment_pool *pool)
{
    (void)pthread_mutex_lock(&pool->mutex);
    struct lahar_segment_file *dropped = NULL;
    while (pool->spare != NULL && pool->spare_bytes > spare_min_bytes) {
        struct lahar_segment_file *file = pool->spare;
        pool->spare = file->next;
        pool->spare_bytes -= file->size_bytes;
        file->next = dropped;
        dropped = file;
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    while (dropped != NULL) {
        struct lahar_segment_file *next = dropped->next;
        discard(pool, dropped);
        dropped = next;
    }
}

void lahar_segment_pool_give_back(struct lahar_segment_pool *pool, struct lahar_segment_file *file)
{
    /* The last one to give back sees what all others did with the file. */
    if (atomic_fetch_sub_explicit(&file->regions_held, 1, memory_order_acq_rel) == 1) {
        retire(pool, file);
    }
}

lahar_status lahar_segment_pool_add_found(struct lahar_segment_pool *pool, uint64_t number,
                                          uint64_t size_bytes, bool is_whole, uint64_t end_id,
                                          lahar_error *error)
{
    struct lahar_segment_file *file = lahar_allocate_zeroed(pool->allocator, 1, sizeof *file);
    if (file == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a journal file");
    }
    file->number = number;
    file->size_bytes = size_bytes;
    file->end_id = end_id;
    if (is_whole && (size_bytes - LAHAR_JOURNAL_HEADER_SIZE) % pool->region_size == 0) {
        file->region_size = pool->region_size;
        file->region_count =
            (uint32_t)((size_bytes - LAHAR_JOURNAL_HEADER_SIZE) / pool->region_size);
    }
    (void)atomic_fetch_add_explicit(&pool->total_bytes, size_bytes, memory_order_relaxed);
    (void)pthread_mutex_lock(&pool->mutex);
    file->next = pool->found;
    pool->found = file;
    (void)pthread_mutex_unlock(&pool->mutex);
    return LAHAR_OK;
}

void lahar_segment_pool_forget(struct lahar_segment_pool *pool, uint64_t rolled_id)
{
    struct lahar_segment_file *done = NULL;
    (void)pthread_mutex_lock(&pool->mutex);
    struct lahar_segment_file **link = &pool->found;
    while (*link != NULL) {
        struct lahar_segment_file *file = *link;
        if (file->end_id <= rolled_id) {
            *link = file->next;
            file->next = done;
            done = file;
        } else {
            link = &file->next;
        }
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    while (done != NULL) {
        struct lahar_segment_file *next = done->next;
        retire(pool, done);
        done = next;
    }
}
