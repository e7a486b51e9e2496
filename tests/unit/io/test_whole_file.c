/* Whole files, and what file systems say of files. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_allocator.h"
#include "fixture.h"
#include "io/source_file.h"
#include "io/whole_file.h"
#include "scratch.h"

/* CRC-32C bit by bit. */
static uint32_t sum_slowly(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? UINT32_C(0x82f63b78) : 0);
        }
    }
    return ~crc;
}

Test(whole_file, is_summed_in_pieces_however_large_it_is)
{
    static const size_t sizes[] = {0, 1, 262143, 262144, 262145, 1000000};
    static uint8_t data[1000000];
    struct fixture fixture;
    struct failing_allocator memory;
    fixture_begin(&fixture, BACKEND_SIMULATED);
    failing_allocator_init(&memory, UINT64_MAX);
    memory.size_max = 300000;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7 + i / 251);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct lahar_io_file *file = fixture_open(&fixture, "a", 0);
        cr_assert_eq(fixture.io->ops->truncate(fixture.io, file, 0, NULL), LAHAR_OK);
        cr_assert_eq(fixture.io->ops->write(fixture.io, file, 0, data, sizes[i], NULL), LAHAR_OK);
        fixture.io->ops->close(fixture.io, file);
        char directory[256];
        (void)snprintf(directory, sizeof directory, "%s", fixture_path(&fixture, "a"));
        *strrchr(directory, '/') = '\0';
        uint64_t size = 99;
        uint32_t checksum = 99;
        lahar_error error = {0};
        cr_assert_eq(lahar_io_sum_named(fixture.io, directory, "a", UINT64_MAX, &memory.allocator,
                                        &size, &checksum, &error),
                     LAHAR_OK, "%s", error.message);
        cr_assert_eq(size, sizes[i]);
        cr_assert_eq(checksum, sizes[i] == 0 ? 0 : sum_slowly(data, sizes[i]));
        if (sizes[i] != 0) {
            cr_assert_eq(lahar_io_sum_named(fixture.io, directory, "a", sizes[i] - 1,
                                            &memory.allocator, &size, &checksum, NULL),
                         LAHAR_CORRUPT);
        }
        cr_assert_eq(lahar_io_sum_named(fixture.io, directory, "b", UINT64_MAX, &memory.allocator,
                                        &size, &checksum, NULL),
                     LAHAR_NOT_FOUND);
    }
    memory.size_max = 1000;
    uint64_t size = 0;
    uint32_t checksum = 0;
    cr_assert_eq(memory.refused_count, 0);
    char directory[256];
    (void)snprintf(directory, sizeof directory, "%s", fixture_path(&fixture, "a"));
    *strrchr(directory, '/') = '\0';
    cr_assert_eq(lahar_io_sum_named(fixture.io, directory, "a", UINT64_MAX, &memory.allocator,
                                    &size, &checksum, NULL),
                 LAHAR_NO_MEMORY);
    cr_assert_eq(memory.live_count, 0);
    fixture_end(&fixture);
}

Test(source_file, times_that_nanoseconds_cannot_tell_are_the_last_ones_that_they_can)
{
    char scratch[SCRATCH_PATH_SIZE];
    char path[SCRATCH_PATH_SIZE + 16];
    scratch_create(scratch);
    (void)snprintf(path, sizeof path, "%s/a", scratch);
    const int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(descriptor, 0);
    /* 1970, 2262, a second later, and the year 2300 or so; some file systems end earlier. */
    static const int64_t seconds[] = {0, 9223372036, 9223372037, 10413792000};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        const struct timespec times[] = {{seconds[i], 0}, {seconds[i], 0}};
        struct stat found;
        struct lahar_source_stat described;
        cr_assert_eq(futimens(descriptor, times), 0);
        cr_assert_eq(fstat(descriptor, &found), 0);
        cr_assert_eq(lahar_source_describe(descriptor, &described, NULL), LAHAR_OK);
        const int64_t kept = found.st_mtim.tv_sec;
        cr_assert_eq(described.mtime_ns, kept > 9223372036 ? INT64_MAX : kept * 1000000000);
    }
    (void)close(descriptor);
    scratch_remove(scratch);
}
