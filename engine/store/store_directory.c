/* The store's directory.
 *
 * Creation is finished when the identity file LAHAR is there: everything else is made
 * durable before it. A directory with nothing but pieces that creation makes, and those
 * empty, is a creation that a crash interrupted, and is begun anew under the lock. */
#include "engine/store/store_directory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/store/manifest_copy.h"
#include "engine/store/volumes.h"
#include "io/base/error.h"

#define LOCK_NAME      "LOCK"
#define LOCK_WAIT_MIN  UINT64_C(5000000)
#define LOCK_WAIT_MAX  UINT64_C(50000000)
#define TEMPORARY_ENDS ".tmp"

enum {
    FILE_NUMBER_DIGITS = 8 /* at least, in the name of an unfinished event file */
};

static bool ends_with(const char *name, const char *end)
{
    const size_t size = strlen(name);
    const size_t end_size = strlen(end);
    return size >= end_size && strcmp(name + size - end_size, end) == 0;
}

static lahar_status join(const char *directory, const char *name,
                         char path_out[LAHAR_MANIFEST_PATH_SIZE], lahar_error *error)
{
    const int length = snprintf(path_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s", directory, name);
    if (length < 0 || length >= LAHAR_MANIFEST_PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
    }
    return LAHAR_OK;
}

/* --- looking --------------------------------------------------------------------------- */

struct contents {
    bool has_identity;
    bool has_pieces;  /* something that creation makes */
    bool has_foreign; /* something that it does not make */
};

/* Whether name is manifest-<number>.tmp or LAHAR.tmp. */
static bool is_temporary_name(const char *name)
{
    char stem[LAHAR_MANIFEST_NAME_SIZE];
    const size_t size = strlen(name);
    uint64_t number = 0;
    if (!ends_with(name, TEMPORARY_ENDS) || size >= sizeof stem) {
        return false;
    }
    memcpy(stem, name, size - strlen(TEMPORARY_ENDS));
    stem[size - strlen(TEMPORARY_ENDS)] = '\0';
    return strcmp(stem, LAHAR_IDENTITY_NAME) == 0 || lahar_manifest_parse_name(stem, &number);
}

static lahar_status note_entry(void *context, const char *name, bool is_directory)
{
    struct contents *contents = context;
    uint64_t number = 0;
    if (!is_directory && strcmp(name, LAHAR_IDENTITY_NAME) == 0) {
        contents->has_identity = true;
    } else if (is_directory ? strcmp(name, "journal") == 0 || strcmp(name, "events") == 0
                            : strcmp(name, LOCK_NAME) == 0 || is_temporary_name(name) ||
                                  lahar_manifest_parse_name(name, &number)) {
        contents->has_pieces = true;
    } else {
        contents->has_foreign = true;
    }
    return LAHAR_OK;
}

static lahar_status note_any(void *context, const char *name, bool is_directory)
{
    (void)name;
    (void)is_directory;
    *(bool *)context = true;
    return LAHAR_OK;
}

static lahar_status look(const lahar_store *store, struct contents *contents_out,
                         lahar_error *error)
{
    struct lahar_io *io = store->io;
    *contents_out = (struct contents){0};
    lahar_error cause = {0};
    lahar_status status = io->ops->list(io, store->directory, note_entry, contents_out, &cause);
    if (status == LAHAR_IO && cause.sys_errno == ENOTDIR) {
        return lahar_fail(error, LAHAR_NOT_A_STORE, "%s is not a directory", store->directory);
    }
    if (status != LAHAR_OK) {
        if (error != NULL && error->status == LAHAR_OK) {
            *error = cause;
        }
        return status;
    }
    if (contents_out->has_identity) {
        return LAHAR_OK;
    }
    /* Pieces with something in them are what is left of a store, not of a creation. */
    const char *const directories[] = {store->journal_directory, store->events_directory};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        status = io->ops->list(io, directories[i], note_any, &contents_out->has_foreign, NULL);
        if (status != LAHAR_OK && status != LAHAR_NOT_FOUND) {
            contents_out->has_foreign = true;
        }
    }
    if (contents_out->has_foreign) {
        return lahar_fail(error, LAHAR_NOT_A_STORE,
                          "%s holds files and no identity file LAHAR: not a store",
                          store->directory);
    }
    return LAHAR_OK;
}

lahar_status lahar_store_check_directory(lahar_store *store, lahar_error *error)
{
    struct contents contents;
    LAHAR_TRY(look(store, &contents, error));
    if (!contents.has_identity) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "%s holds no store", store->directory);
    }
    return LAHAR_OK;
}

/* --- the lock ---------------------------------------------------------------------------- */

static lahar_status take_lock(lahar_store *store, uint64_t deadline_ns, lahar_error *error)
{
    struct lahar_io *io = store->io;
    char path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(join(store->directory, LOCK_NAME, path, error));
    LAHAR_TRY(io->ops->open(io, path, LAHAR_IO_READ | LAHAR_IO_WRITE | LAHAR_IO_CREATE,
                            &store->lock_file, error));
    uint64_t waited_ns = 0;
    uint64_t wait_ns = LOCK_WAIT_MIN;
    for (;;) {
        lahar_error cause = {0};
        const lahar_status status = io->ops->lock(io, store->lock_file, &cause);
        if (status == LAHAR_OK) {
            return LAHAR_OK;
        }
        if (status != LAHAR_LOCKED || !store->config.start_threads || waited_ns >= deadline_ns) {
            return status == LAHAR_LOCKED
                       ? lahar_fail(error, status, "%s is open for writing elsewhere",
                                    store->directory)
                       : lahar_fail_errno(error, cause.sys_errno, "locking %s", path);
        }
        const uint64_t left_ns = deadline_ns - waited_ns;
        const uint64_t pause_ns = wait_ns < left_ns ? wait_ns : left_ns;
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
        waited_ns += pause_ns;
        wait_ns = wait_ns * 2 > LOCK_WAIT_MAX ? LOCK_WAIT_MAX : wait_ns * 2;
    }
}

/* --- creating ------------------------------------------------------------------------------ */

/* Makes the directory itself durable in its parent. */
static lahar_status sync_parent(const lahar_store *store, lahar_error *error)
{
    char path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(join(store->directory, ".", path, error));
    size_t size = strlen(store->directory);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    while (size > 0 && path[size - 1] != '/') {
        size--;
    }
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    if (size == 0) {
        memcpy(path, ".", 2);
    } else {
        path[size] = '\0';
    }
    lahar_error cause = {0};
    const lahar_status status = store->io->ops->sync_directory(store->io, path, &cause);
    if (status != LAHAR_OK && cause.sys_errno == EACCES) {
        /* A parent that may be passed through and not read; its owner made the directory. */
        lahar_store_log(store, LAHAR_LOG_WARNING, "%s", cause.message);
        return LAHAR_OK;
    }
    if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
        *error = cause;
    }
    return status;
}

static lahar_status make_directory(const lahar_store *store, const char *path, lahar_error *error)
{
    lahar_error cause = {0};
    const lahar_status status = store->io->ops->make_directory(store->io, path, &cause);
    if (status != LAHAR_OK && status != LAHAR_EXISTS && error != NULL &&
        error->status == LAHAR_OK) {
        *error = cause;
    }
    return status == LAHAR_EXISTS ? LAHAR_OK : status;
}

struct removal {
    lahar_store *store;
    lahar_error *error;
};

static lahar_status remove_manifest_piece(void *context, const char *name, bool is_directory)
{
    const struct removal *removal = context;
    uint64_t number = 0;
    if (is_directory || (!is_temporary_name(name) && !lahar_manifest_parse_name(name, &number))) {
        return LAHAR_OK;
    }
    char path[LAHAR_MANIFEST_PATH_SIZE];
    struct lahar_io *io = removal->store->io;
    LAHAR_TRY(join(removal->store->directory, name, path, removal->error));
    return io->ops->unlink(io, path, removal->error);
}

/* With the lock held, in a directory without identity file. */
static lahar_status create(lahar_store *store, lahar_error *error)
{
    struct lahar_io *io = store->io;
    struct removal removal = {store, error};
    struct lahar_identity identity;
    LAHAR_TRY(io->ops->list(io, store->directory, remove_manifest_piece, &removal, error));
    LAHAR_TRY(make_directory(store, store->journal_directory, error));
    LAHAR_TRY(make_directory(store, store->events_directory, error));
    LAHAR_TRY(io->ops->sync_directory(io, store->directory, error));
    LAHAR_TRY(lahar_identity_make(io, store->config.start_threads, &identity, error));
    LAHAR_TRY(
        lahar_manifest_create(io, store->directory, identity.store_id, &store->allocator, error));
    return lahar_identity_write(io, store->directory, &identity, error);
}

lahar_status lahar_store_enter_directory(lahar_store *store, uint64_t deadline_ns,
                                         lahar_error *error)
{
    struct contents contents = {0};
    lahar_error cause = {0};
    lahar_status status = look(store, &contents, &cause);
    const bool may_create = !store->options.must_exist;
    if (status == LAHAR_NOT_FOUND && may_create) {
        LAHAR_TRY(make_directory(store, store->directory, error));
    } else if (status != LAHAR_OK) {
        if (error != NULL && error->status == LAHAR_OK) {
            *error = cause;
        }
        return status;
    }
    if (!contents.has_identity && !may_create) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "%s holds no store", store->directory);
    }
    LAHAR_TRY(take_lock(store, deadline_ns, error));
    /* Another process may have made the store before this one had the lock. */
    LAHAR_TRY(look(store, &contents, error));
    /* Whoever made the directory may have died before its name, or the names in it, were
     * synced; nothing committed from now on may vanish with them. */
    LAHAR_TRY(sync_parent(store, error));
    if (!contents.has_identity) {
        return create(store, error);
    }
    /* Copies made by programs that pass over empty directories lack these. */
    LAHAR_TRY(make_directory(store, store->journal_directory, error));
    LAHAR_TRY(make_directory(store, store->events_directory, error));
    return store->io->ops->sync_directory(store->io, store->directory, error);
}

/* --- removing what is not named -------------------------------------------------------------- */

struct event_file_name {
    uint64_t first_id;
    uint64_t last_id;
    uint64_t number;
    const char *suffix;
};

static bool read_digits(const char **at, uint64_t *value_out)
{
    uint64_t value = 0;
    const char *digit = *at;
    while (*digit >= '0' && *digit <= '9') {
        if (value > (UINT64_MAX - 9) / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(*digit++ - '0');
    }
    const bool is_number = digit != *at;
    *at = digit;
    *value_out = value;
    return is_number;
}

static bool is_suffix(const char *suffix)
{
    return strcmp(suffix, ".events") == 0 || strcmp(suffix, ".toc") == 0 ||
           strcmp(suffix, ".shard") == 0;
}

/* "<first>-<last>.<number>.<suffix>" */
static bool parse_event_file_name(const char *name, struct event_file_name *parsed)
{
    if (!read_digits(&name, &parsed->first_id) || *name++ != '-' ||
        !read_digits(&name, &parsed->last_id) || *name++ != '.' ||
        !read_digits(&name, &parsed->number) || *name != '.') {
        return false;
    }
    parsed->suffix = name;
    return is_suffix(name);
}

/* Whether name, in a directory of event files, is one that this program gives to a file it has
 * not finished; nothing else there is its to remove. *number_out: of the event file, or 0. */
static bool parse_temporary_name(const char *name, uint64_t *number_out)
{
    char stem[LAHAR_FILE_NAME_SIZE];
    const size_t size = strlen(name);
    struct event_file_name parsed;
    uint64_t ignored = 0;
    *number_out = 0;
    if (!ends_with(name, TEMPORARY_ENDS) || size >= sizeof stem) {
        return false;
    }
    memcpy(stem, name, size - strlen(TEMPORARY_ENDS));
    stem[size - strlen(TEMPORARY_ENDS)] = '\0';
    if (parse_event_file_name(stem, &parsed)) {
        *number_out = parsed.number;
        return true;
    }
    const char *at = stem;
    if (read_digits(&at, number_out) && at - stem >= FILE_NUMBER_DIGITS && is_suffix(at)) {
        return true;
    }
    *number_out = 0;
    return strcmp(stem, LAHAR_VOLUME_MARKER_NAME) == 0 ||
           lahar_manifest_copy_parse_name(stem, &ignored);
}

/* What removing needs while it walks the directory of event files. */
struct sweep {
    lahar_store *store;
    const char *directory;
    const struct lahar_journal_recovery *recovery;
    lahar_error *error;
};

static void see_number(lahar_store *store, uint64_t number)
{
    if (number >= atomic_load_explicit(&store->next_file_number, memory_order_relaxed)) {
        atomic_store_explicit(&store->next_file_number, number + 1, memory_order_relaxed);
    }
}

static bool is_named(const struct lahar_manifest_state *state, uint64_t number)
{
    for (size_t i = 0; i < state->file_count; i++) {
        if (state->files[i].info.number == number) {
            return true;
        }
    }
    return false;
}

/* Whether the events of an unnamed file are held elsewhere: by named files, or by the
 * journals, which is so for every rollover that was not finished. */
static bool is_held_elsewhere(const struct sweep *sweep, const struct event_file_name *name)
{
    const struct lahar_lost_list *lost = &sweep->store->lost;
    for (size_t i = 0; i < lost->count; i++) {
        if (name->first_id < lost->ranges[i].end_id && name->last_id >= lost->ranges[i].first_id) {
            return false; /* it may be all that is left of these */
        }
    }
    if (name->first_id < sweep->store->manifest->state.rolled_id) {
        return true;
    }
    const struct lahar_journal_recovery *recovery = sweep->recovery;
    for (size_t i = 0; i < recovery->batch_count; i++) {
        const struct lahar_resident_batch *batch = &recovery->batches[i];
        if (batch->first_id <= name->first_id &&
            name->first_id - batch->first_id < batch->event_count) {
            return true;
        }
    }
    return false;
}

static lahar_status sweep_event_file(void *context, const char *name, bool is_directory)
{
    const struct sweep *sweep = context;
    lahar_store *store = sweep->store;
    struct event_file_name parsed;
    uint64_t number = 0;
    if (is_directory) {
        return LAHAR_OK;
    }
    if (parse_temporary_name(name, &number)) {
        see_number(store, number);
    } else {
        if (!parse_event_file_name(name, &parsed)) {
            return LAHAR_OK;
        }
        see_number(store, parsed.number);
        if (is_named(&store->manifest->state, parsed.number)) {
            return LAHAR_OK;
        }
        if (!is_held_elsewhere(sweep, &parsed)) {
            lahar_store_log(store, LAHAR_LOG_ERROR,
                            "%s is not in the manifest and its events are nowhere else: kept",
                            name);
            return LAHAR_OK;
        }
    }
    char path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(join(sweep->directory, name, path, sweep->error));
    return store->io->ops->unlink(store->io, path, sweep->error);
}

static lahar_status sweep_root(void *context, const char *name, bool is_directory)
{
    const struct sweep *sweep = context;
    lahar_store *store = sweep->store;
    uint64_t number = 0;
    if (is_directory || !(is_temporary_name(name) || (lahar_manifest_parse_name(name, &number) &&
                                                      number != store->manifest->number))) {
        return LAHAR_OK;
    }
    char path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(join(store->directory, name, path, sweep->error));
    return store->io->ops->unlink(store->io, path, sweep->error);
}

lahar_status lahar_store_remove_unnamed(lahar_store *store,
                                        const struct lahar_journal_recovery *recovery,
                                        lahar_error *error)
{
    struct lahar_io *io = store->io;
    struct sweep sweep = {store, store->directory, recovery, error};
    see_number(store, store->manifest->state.next_file_number - 1);
    LAHAR_TRY(io->ops->list(io, store->directory, sweep_root, &sweep, error));
    for (uint32_t i = 0; i < store->volume_count; i++) {
        if (store->volumes[i].is_available) {
            sweep.directory = store->volumes[i].path;
            LAHAR_TRY(io->ops->list(io, sweep.directory, sweep_event_file, &sweep, error));
        }
    }
    return LAHAR_OK;
}
