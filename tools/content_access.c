#include "tools/content_access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/complain.h"

static bool take_container(struct content_access *access, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        complain("--content: '%s' is not NAME=DIR", text);
        return false;
    }
    char *copy = strdup(text);
    lahar_container *larger =
        realloc(access->containers, (access->container_count + 1) * sizeof *access->containers);
    if (larger != NULL) {
        access->containers = larger;
    }
    if (copy == NULL || larger == NULL) {
        complain("out of memory");
        free(copy);
        return false;
    }
    copy[equals - text] = '\0';
    larger[access->container_count++] =
        (lahar_container){.name = copy, .directory = copy + (equals - text) + 1};
    return true;
}

static void free_containers(struct content_access *access)
{
    for (size_t i = 0; i < access->container_count; i++) {
        /* The name is where the copy begins. */
        free((void *)(uintptr_t)access->containers[i].name);
    }
    free(access->containers);
    access->containers = NULL;
    access->container_count = 0;
}

lahar_status content_access_write(void *context, const void *data, size_t size)
{
    const struct content_access *access = context;
    return fwrite(data, 1, size, access->file) == size ? LAHAR_OK : LAHAR_IO;
}

static enum exit_status work_on_file(const struct content_verb *verb, struct content_access *access,
                                     lahar_provenance *provenance)
{
    const bool is_file = access->out != NULL && strcmp(access->out, "-") != 0;
    access->file = is_file ? fopen(access->out, "wxe") : stdout;
    if (access->file == NULL) {
        complain("%s: %s", access->out, strerror(errno));
        return EXIT_STATUS_IO;
    }
    if (is_file) {
        (void)setvbuf(access->file, NULL, _IONBF, 0);
    }
    enum exit_status status = verb->work(access, provenance);
    if (is_file && fclose(access->file) != 0 && status == EXIT_STATUS_DONE) {
        complain("%s: %s", access->out, strerror(errno));
        status = EXIT_STATUS_IO;
    }
    if (is_file && status != EXIT_STATUS_DONE) {
        (void)remove(access->out);
    }
    return status;
}

static enum exit_status work_on_store(const struct content_verb *verb,
                                      struct content_access *access)
{
    lahar_store *store = NULL;
    lahar_provenance *provenance = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_provenance_options options;
    uint32_t stream = 0;
    enum exit_status status = store_access_open(access->directory, verb->store, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    lahar_provenance_options_init(&options);
    options.stream = access->stream_name;
    options.containers = access->containers;
    options.container_count = access->container_count;
    /* The handle would create a stream that is not there. */
    status = store_access_stream(store, access->stream_name, &stream);
    if (status == EXIT_STATUS_DONE) {
        status = lahar_provenance_open(store, &options, &provenance, &error) == LAHAR_OK
                     ? work_on_file(verb, access, provenance)
                     : complain_of(&error);
    }
    lahar_provenance_close(provenance);
    return store_access_close(store, status);
}

static bool take_option(const struct content_verb *verb, struct content_access *access, int option,
                        const char *value)
{
    switch (option) {
    case CONTENT_OPTION_CONTENT:
        return take_container(access, value);
    case CONTENT_OPTION_STREAM:
        access->stream_name = value;
        return true;
    case CONTENT_OPTION_OUT:
        access->out = value;
        return true;
    case ARGUMENT_POSITIONAL:
        if (access->directory == NULL) {
            access->directory = value;
            return true;
        }
        if (!access->has_id) {
            access->has_id = parse_number("ID", value, &access->id);
            return access->has_id;
        }
        return false;
    default:
        return option != ARGUMENT_WRONG && verb->take_option(access, option, value);
    }
}

enum exit_status content_access_run(const struct content_verb *verb, struct content_access *access,
                                    int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = verb->specs};
    enum exit_status status = EXIT_STATUS_DONE;
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(verb->usage, stdout);
            goto cleanup;
        }
        if (!take_option(verb, access, option, arguments.value)) {
            status = complain_of_usage(verb->name, NULL);
            goto cleanup;
        }
    }
    status = access->has_id && verb->is_complete(access)
                 ? work_on_store(verb, access)
                 : complain_of_usage(verb->name, verb->expected);
cleanup:
    free_containers(access);
    return status;
}
