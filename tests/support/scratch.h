/* A fresh directory for one test: removed on success, kept and named on failure. */
#ifndef LAHAR_TESTS_SCRATCH_H
#define LAHAR_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SCRATCH_PATH_SIZE = 256
};

/* Under $TMPDIR or /tmp. Ends the program when that cannot be written. */
static inline void scratch_create(char path_out[SCRATCH_PATH_SIZE])
{
    const char *parent = getenv("TMPDIR");
    const int length = snprintf(path_out, SCRATCH_PATH_SIZE, "%s/lahar-test-XXXXXX",
                                parent == NULL ? "/tmp" : parent);
    if (length < 0 || length >= SCRATCH_PATH_SIZE || mkdtemp(path_out) == NULL) {
        perror("scratch directory");
        abort();
    }
}

static inline void scratch_remove(const char *path)
{
    char command[SCRATCH_PATH_SIZE + 16];
    if (strstr(path, "/lahar-test-") == NULL) {
        return;
    }
    (void)snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0) {
        (void)fprintf(stderr, "could not remove %s\n", path);
    }
}

#endif
