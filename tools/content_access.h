/* What content and replay have in common: the event, the directories of containers, the file that
 * takes the bytes. */
#ifndef LAHAR_TOOLS_CONTENT_ACCESS_H
#define LAHAR_TOOLS_CONTENT_ACCESS_H

#include <stdio.h>

#include "lahar/lahar.h"
#include "tools/arguments.h"
#include "tools/exit_status.h"
#include "tools/store_access.h"

/* A verb has these in its table of options, and --help. */
enum {
    CONTENT_OPTION_CONTENT = OPTION_FIRST,
    CONTENT_OPTION_STREAM,
    CONTENT_OPTION_OUT,
    CONTENT_OPTION_NEXT /* the first of a verb's own */
};

struct content_access {
    const char *directory;
    const char *stream_name;
    const char *out; /* NULL and "-": standard output */
    uint64_t id;
    bool has_id;
    lahar_container *containers; /* owned, with their strings */
    size_t container_count;
    FILE *file; /* while work runs; unbuffered: bytes that it took are written */
};

/* A verb that works on content. */
struct content_verb {
    const char *name;
    const char *usage;
    const char *expected; /* said when something is missing */
    const struct option_spec *specs;
    enum store_access store;
    /* The rest get the access that the verb began with, the first member of a request of its own.
     */
    /* Takes an option of the verb's own; false when it is wrong, which it has said then. */
    bool (*take_option)(struct content_access *access, int option, const char *value);
    /* Whether all that the verb needs was given. */
    bool (*is_complete)(const struct content_access *access);
    /* Writes to access->file and says what goes wrong; a file that was made is removed then. */
    enum exit_status (*work)(struct content_access *access, lahar_provenance *provenance);
};

/* Takes the arguments, opens what they name and works. */
enum exit_status content_access_run(const struct content_verb *verb, struct content_access *access,
                                    int argument_count, char **items);
/* A lahar_content_sink whose context is the access. */
lahar_status content_access_write(void *context, const void *data, size_t size);

#endif
