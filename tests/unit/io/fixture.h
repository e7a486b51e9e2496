/* One backend with an empty directory to work in; the same test body runs over each. */
#ifndef LAHAR_TESTS_IO_FIXTURE_H
#define LAHAR_TESTS_IO_FIXTURE_H

#include <criterion/criterion.h>

#include "io/sim_disk.h"
#include "scratch.h"

enum backend_kind {
    BACKEND_PWRITE,
    BACKEND_URING,
    BACKEND_SIMULATED
};

struct fixture {
    struct lahar_io *io;
    struct lahar_sim_disk *disk; /* NULL unless simulated */
    char root[SCRATCH_PATH_SIZE];
};

/* Skips the test, with the reason, where io_uring is not to be had. */
void fixture_begin(struct fixture *fixture, enum backend_kind kind);
void fixture_end(struct fixture *fixture);
/* A path in the fixture's directory; valid until the eighth call after it. */
const char *fixture_path(struct fixture *fixture, const char *name);
/* Opens for reading and writing, creating. The test fails when that fails. */
struct lahar_io_file *fixture_open(struct fixture *fixture, const char *name, unsigned more_flags);
void fixture_write(struct fixture *fixture, struct lahar_io_file *file, uint64_t offset,
                   const void *data, size_t size);
/* Whether the file's bytes from offset on are exactly these. */
bool fixture_holds(struct fixture *fixture, struct lahar_io_file *file, uint64_t offset,
                   const void *data, size_t size);
uint64_t fixture_size(struct fixture *fixture, struct lahar_io_file *file);
bool fixture_exists(struct fixture *fixture, const char *name);

/* Submits one operation, reaps it and returns its result. */
int32_t fixture_run(struct fixture *fixture, struct lahar_io_queue *queue,
                    enum lahar_io_op_kind kind, struct lahar_io_file *file, uint64_t offset,
                    void *data, uint32_t size);

/* Defines the test `name` for every backend. */
#define CONTRACT_TEST(suite, name)                                                                 \
    static void suite##_##name(struct fixture *fixture);                                           \
    static void suite##_##name##_over(enum backend_kind kind)                                      \
    {                                                                                              \
        struct fixture fixture;                                                                    \
        fixture_begin(&fixture, kind);                                                             \
        suite##_##name(&fixture);                                                                  \
        fixture_end(&fixture);                                                                     \
    }                                                                                              \
    Test(suite##_pwrite, name)                                                                     \
    {                                                                                              \
        suite##_##name##_over(BACKEND_PWRITE);                                                     \
    }                                                                                              \
    Test(suite##_uring, name)                                                                      \
    {                                                                                              \
        suite##_##name##_over(BACKEND_URING);                                                      \
    }                                                                                              \
    Test(suite##_simulated, name)                                                                  \
    {                                                                                              \
        suite##_##name##_over(BACKEND_SIMULATED);                                                  \
    }                                                                                              \
    static void suite##_##name(struct fixture *fixture)

#endif
