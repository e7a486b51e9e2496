/* The workloads: that events do not depend on the way to them, and their shape. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "bench/w1_json.h"
#include "bench/workload_w1.h"
#include "bench/workload_w2.h"

static size_t line_of(struct workload_w1 *workload, uint64_t index, char *out)
{
    struct workload_w1_event event;
    workload_w1_event(workload, index, &event);
    return w1_json(&event, out);
}

Test(workload_w1, makes_an_event_the_same_on_every_way)
{
    /* Forwards in one generator, in steps and backwards in the other. */
    enum {
        EVENTS = 40000,
        STEP = 997
    };
    struct workload_w1 *forwards = workload_w1_create(7);
    struct workload_w1 *stepping = workload_w1_create(7);
    char expected[W1_JSON_SIZE_MAX];
    char found[W1_JSON_SIZE_MAX];
    cr_assert_not_null(forwards);
    cr_assert_not_null(stepping);
    for (uint64_t i = 0; i < EVENTS; i++) {
        const size_t expected_size = line_of(forwards, i, expected);
        if (i % STEP != 0) {
            continue;
        }
        (void)line_of(stepping, EVENTS - i, found);
        const size_t found_size = line_of(stepping, i, found);
        cr_assert_eq(found_size, expected_size, "event %llu", (unsigned long long)i);
        cr_assert_eq(memcmp(found, expected, found_size), 0, "event %llu", (unsigned long long)i);
    }
    workload_w1_destroy(forwards);
    workload_w1_destroy(stepping);
}

Test(workload_w1, sees_each_flowfile_six_times_and_never_before_its_birth)
{
    enum {
        EVENTS = 6 * 8192
    };
    struct workload_w1 *workload = workload_w1_create(1);
    uint32_t *seen = calloc(1 << 16, sizeof *seen); /* by 16 bits of the uuid */
    int64_t last_ms = 0;
    uint64_t sizes = 0;
    char line[W1_JSON_SIZE_MAX];
    cr_assert_not_null(workload);
    cr_assert_not_null(seen);
    for (uint64_t i = 0; i < EVENTS; i++) {
        struct workload_w1_event event;
        workload_w1_event(workload, i, &event);
        cr_assert_geq(event.time_ms, last_ms);
        cr_assert_leq(event.lineage_start_ms, event.time_ms);
        last_ms = event.time_ms;
        seen[event.uuid.bytes[0] | (uint32_t)event.uuid.bytes[1] << 8]++;
        sizes += w1_json(&event, line);
    }
    uint64_t distinct = 0;
    for (uint32_t i = 0; i < 1 << 16; i++) {
        distinct += seen[i] != 0;
    }
    /* 1,024 in flight, 49,152 events / 6 born since: at most 9,216 FlowFiles, of
     * which some share their 16 bits. */
    cr_assert(distinct > 8000 && distinct <= 9216, "%llu distinct", (unsigned long long)distinct);
    cr_assert(sizes / EVENTS > 850 && sizes / EVENTS < 1250, "mean %llu",
              (unsigned long long)(sizes / EVENTS));
    free(seen);
    workload_w1_destroy(workload);
}

Test(workload_w2, writes_lines_of_about_180_bytes)
{
    enum {
        LINES = 20000
    };
    struct workload_w2 workload;
    char text[WORKLOAD_W2_LINE_SIZE_MAX];
    uint64_t sizes = 0;
    int64_t last_ms = 0;
    workload_w2_init(&workload, 3);
    for (uint64_t i = 0; i < LINES; i++) {
        struct workload_w2_line line;
        workload_w2_line(&workload, i, &line);
        cr_assert_geq(line.time_ms, last_ms);
        last_ms = line.time_ms;
        const size_t size = workload_w2_text(&line, text);
        cr_assert_eq(text[size - 1], '\n');
        cr_assert_eq(memcmp(text, "2024-05-17 00:00:", 17), 0);
        sizes += size;
    }
    cr_assert(sizes / LINES > 170 && sizes / LINES < 190, "mean %llu",
              (unsigned long long)(sizes / LINES));
}
