/* The redundancy of the workloads decides every rate and size measured with them, so it is held
 * to that of the data on which the peers were measured: 1 MiB blocks, deflate at level 1 of
 * libdeflate and zstd at level 3, within 3 %. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <libdeflate.h>
#ifdef LAHAR_HAVE_ZSTD
#include <zstd.h>
#endif

#include "bench/w1_frame.h"
#include "bench/workload_w1.h"
#include "bench/workload_w2.h"

enum {
    SEED = 42,
    BLOCK_SIZE = 1 << 20,
    BLOCKS = 24,
    DATA_SIZE = BLOCKS * BLOCK_SIZE
};
static const double TOLERANCE = 0.03;

struct ratios {
    double deflate;
    double zstd; /* 0: zstd was not there to build with */
};

static struct ratios measure(const char *data)
{
    const size_t room = 2 * BLOCK_SIZE;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(1);
    char *out = malloc(room);
    size_t deflate_size = 0;
    size_t zstd_size = 0;
    cr_assert_not_null(compressor);
    cr_assert_not_null(out);
    for (size_t at = 0; at < DATA_SIZE; at += BLOCK_SIZE) {
        deflate_size += libdeflate_deflate_compress(compressor, data + at, BLOCK_SIZE, out, room);
#ifdef LAHAR_HAVE_ZSTD
        const size_t size = ZSTD_compress(out, room, data + at, BLOCK_SIZE, 3);
        cr_assert(!ZSTD_isError(size));
        zstd_size += size;
#endif
    }
    free(out);
    libdeflate_free_compressor(compressor);
    return (struct ratios){
        .deflate = DATA_SIZE / (double)deflate_size,
        .zstd = zstd_size == 0 ? 0 : DATA_SIZE / (double)zstd_size,
    };
}

static void expect_near(double found, double expected, const char *what)
{
    const double share = found / expected;
    cr_expect(share > 1 - TOLERANCE && share < 1 + TOLERANCE, "%s: %.3f, expected about %.2f", what,
              found, expected);
}

static void expect_ratios(const char *data, double deflate, double zstd)
{
    const struct ratios found = measure(data);
    expect_near(found.deflate, deflate, "deflate -1");
    if (found.zstd != 0) {
        expect_near(found.zstd, zstd, "zstd -3");
    }
}

Test(workload_ratio, of_w1_as_rows_is_that_of_the_peers_data)
{
    enum {
        EVENTS_MIN = 1000
    };
    struct workload_w1 *workload = workload_w1_create(SEED);
    char *data = malloc(DATA_SIZE + W1_FRAME_SIZE_MAX);
    size_t size = 0;
    uint64_t count = 0;
    cr_assert_not_null(workload);
    cr_assert_not_null(data);
    while (size < DATA_SIZE) {
        struct workload_w1_event event;
        workload_w1_event(workload, count++, &event);
        size += w1_frame(&event, data + size);
    }
    cr_assert_gt(count, EVENTS_MIN);
    /* Their payload has 750 bytes in the mean, and 4 bytes of length before it. */
    expect_near((double)size / (double)count, 754, "bytes an event");
    expect_ratios(data, 4.64, 6.78);
    free(data);
    workload_w1_destroy(workload);
}

static void expect_w2(size_t (*write_line)(const struct workload_w2_line *, char *), double mean,
                      double deflate, double zstd)
{
    struct workload_w2 workload;
    char *data = malloc(DATA_SIZE + WORKLOAD_W2_LINE_SIZE_MAX);
    size_t size = 0;
    uint64_t count = 0;
    cr_assert_not_null(data);
    workload_w2_init(&workload, SEED);
    while (size < DATA_SIZE) {
        struct workload_w2_line line;
        workload_w2_line(&workload, count++, &line);
        size += write_line(&line, data + size);
    }
    expect_near((double)size / (double)count, mean, "bytes a line");
    expect_ratios(data, deflate, zstd);
    free(data);
}

Test(workload_ratio, of_w2_as_lines_is_that_of_the_peers_data)
{
    expect_w2(workload_w2_text, 178, 5.37, 5.61);
}

Test(workload_ratio, of_w2_as_json_is_that_of_the_peers_data)
{
    expect_w2(workload_w2_json, 236, 6.30, 6.88);
}

Test(w1_frame, is_read_back_and_refused_when_cut_short)
{
    struct workload_w1 *workload = workload_w1_create(SEED);
    char frame[W1_FRAME_SIZE_MAX];
    cr_assert_not_null(workload);
    for (uint64_t i = 0; i < 200; i++) {
        struct workload_w1_event event;
        struct w1_frame_keys keys;
        uint32_t size = 0;
        workload_w1_event(workload, i, &event);
        const size_t written = w1_frame(&event, frame);
        memcpy(&size, frame, sizeof size);
        cr_assert_eq(written, size + sizeof size);
        cr_assert(w1_frame_read(frame + sizeof size, size, &keys));
        cr_assert_eq(keys.id, i);
        cr_assert_eq(keys.time_ms, (uint64_t)event.time_ms);
        cr_assert_eq(keys.type, event.type_rank);
        cr_assert_eq(keys.component.size, 36);
        cr_assert_eq(memcmp(keys.flowfile.data, event.updated[0].value.data, 36), 0);
        cr_assert_eq(keys.filename.size, event.updated[1].value.size);
        cr_assert_eq(memcmp(keys.filename.data, event.updated[1].value.data, keys.filename.size),
                     0);
        for (uint32_t cut = 0; cut < size; cut += 7) {
            cr_assert_not(w1_frame_read(frame + sizeof size, cut, &keys));
        }
    }
    workload_w1_destroy(workload);
}
