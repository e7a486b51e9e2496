#include "tools/store_access.h"

#include "tools/complain.h"

/* How long a writing verb waits for a writer that is just ending. */
static const uint64_t LOCK_WAIT_NS = UINT64_C(500000000);

static void print_log(void *context, lahar_log_level level, const char *message)
{
    (void)context;
    if (level <= LAHAR_LOG_WARNING) {
        complain("%s", message);
    }
}

enum exit_status store_access_open(const char *directory, enum store_access access,
                                   lahar_store **store_out)
{
    return store_access_open_volumes(directory, access, NULL, 0, store_out);
}

enum exit_status store_access_open_volumes(const char *directory, enum store_access access,
                                           const lahar_volume_spec *volumes, size_t volume_count,
                                           lahar_store **store_out)
{
    lahar_options options;
    lahar_error error = {.status = LAHAR_OK};
    *store_out = NULL;
    lahar_options_init(&options);
    options.read_only = access == STORE_READ;
    options.must_exist = access != STORE_WRITE_OR_CREATE;
    options.repair = access == STORE_REPAIR;
    options.log = print_log;
    options.volumes = volumes;
    options.volume_count = volume_count;
    const lahar_status status =
        lahar_store_open(directory, &options, LOCK_WAIT_NS, store_out, &error);
    if (status == LAHAR_OK) {
        return EXIT_STATUS_DONE;
    }
    (void)complain_of(&error);
    /* A store that is not there is a wrong path, not an empty answer. */
    return status == LAHAR_NOT_FOUND ? EXIT_STATUS_IO : exit_status_of(status);
}

enum exit_status store_access_close(lahar_store *store, enum exit_status status)
{
    lahar_error error = {.status = LAHAR_OK};
    if (store == NULL || lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK) {
        return status;
    }
    const enum exit_status closing = complain_of(&error);
    return status == EXIT_STATUS_DONE ? closing : status;
}

enum exit_status store_access_stream(lahar_store *store, const char *name, uint32_t *stream_out)
{
    lahar_error error = {.status = LAHAR_OK};
    *stream_out = LAHAR_ANY_STREAM;
    if (name == NULL) {
        return EXIT_STATUS_DONE;
    }
    const lahar_status status = lahar_stream_find(store, name, stream_out, &error);
    if (status == LAHAR_NOT_FOUND) {
        complain("there is no stream '%s'", name);
        return EXIT_STATUS_NOTHING;
    }
    return status == LAHAR_OK ? EXIT_STATUS_DONE : complain_of(&error);
}
