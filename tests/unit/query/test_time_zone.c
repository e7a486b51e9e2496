/* Time zones: rules and files made by hand, damage, the zones of this machine against the C
 * library, and what they mean in a query. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/format/time_zone.h"
#include "engine/query/literal.h"
#include "failing_allocator.h"
#include "io/base/buffer.h"
#include "lahar/lahar.h"
#include "scratch.h"

#define HOUR_NS INT64_C(3600000000000)

static void put_be32(struct lahar_buffer *out, uint32_t value)
{
    const uint8_t bytes[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                             (uint8_t)value};
    lahar_buffer_put(out, bytes, sizeof bytes);
}

static void put_header(struct lahar_buffer *out, uint32_t times, uint32_t types)
{
    static const uint8_t reserved[15] = {0};
    lahar_buffer_put(out, "TZif2", 5);
    lahar_buffer_put(out, reserved, sizeof reserved);
    const uint32_t counts[] = {0, 0, 0, times, types, 4};
    for (size_t i = 0; i < 6; i++) {
        put_be32(out, counts[i]);
    }
}

/* A file of which the clock was at first, from change on at second, and then follows the rule. */
static void put_file(struct lahar_buffer *out, int32_t first, int64_t change, int32_t second,
                     const char *rule)
{
    lahar_buffer_init(out, &lahar_allocator_libc);
    put_header(out, 0, 1);
    put_be32(out, 0);
    lahar_buffer_put(out, "\0\0XST", 6);
    put_header(out, 1, 2);
    put_be32(out, (uint32_t)((uint64_t)change >> 32));
    put_be32(out, (uint32_t)change);
    lahar_buffer_put_u8(out, 1);
    put_be32(out, (uint32_t)first);
    lahar_buffer_put(out, "\0\0", 2);
    put_be32(out, (uint32_t)second);
    lahar_buffer_put(out, "\0\0XST", 6);
    lahar_buffer_put(out, "\n", 1);
    lahar_buffer_put(out, rule, strlen(rule));
    lahar_buffer_put(out, "\n", 1);
}

/* A zone of one rule; the change lies long ago. */
static struct lahar_time_zone *zone_of(const char *rule)
{
    struct lahar_buffer file;
    struct lahar_time_zone *zone = NULL;
    lahar_error error = {0};
    put_file(&file, 60, INT64_C(-3000000000), 3600, rule);
    cr_assert_eq(lahar_time_zone_parse(file.data, file.size, &lahar_allocator_libc, &zone, &error),
                 LAHAR_OK, "%s: %s", rule, error.message);
    lahar_buffer_deinit(&file);
    return zone;
}

static const char berlin[] = "CET-1CEST,M3.5.0,M10.5.0/3";

Test(time_zone, follows_its_changes_and_then_its_rule)
{
    struct lahar_time_zone *zone = zone_of(berlin);
    cr_expect_eq(lahar_time_zone_offset(zone, INT64_C(-3000000001)), 60);
    /* 2015: 29 March and 25 October, at 01:00 UTC. */
    cr_expect_eq(lahar_time_zone_offset(zone, 1420502400), 3600);
    cr_expect_eq(lahar_time_zone_offset(zone, 1427590799), 3600);
    cr_expect_eq(lahar_time_zone_offset(zone, 1427590800), 7200);
    cr_expect_eq(lahar_time_zone_offset(zone, 1445734799), 7200);
    cr_expect_eq(lahar_time_zone_offset(zone, 1445734800), 3600);
    /* 2400-07-01, a leap year of 400. */
    cr_expect_eq(lahar_time_zone_offset(zone, INT64_C(13585622400)), 7200);
    lahar_time_zone_destroy(zone);
}

Test(time_zone, turns_local_times_into_instants)
{
    struct lahar_time_zone *zone = zone_of(berlin);
    /* 2015-01-06T12:00, and in summer 2015-07-01T12:00. */
    cr_expect_eq(lahar_time_zone_instant(zone, 1420545600), 1420542000);
    cr_expect_eq(lahar_time_zone_instant(zone, 1435752000), 1435744800);
    /* 2015-03-29T02:30 is passed over: 01:30 UTC, which is 03:30. */
    cr_expect_eq(lahar_time_zone_instant(zone, 1427596200), 1427592600);
    cr_expect_eq(lahar_time_zone_instant(zone, 1427594399), 1427590799);
    cr_expect_eq(lahar_time_zone_instant(zone, 1427598000), 1427590800);
    /* 2015-10-25T02:30 comes twice: 00:30 and 01:30 UTC; 03:00 once. */
    cr_expect_eq(lahar_time_zone_instant(zone, 1445740200), 1445733000);
    cr_expect_eq(lahar_time_zone_instant(zone, 1445742000), 1445738400);
    cr_expect_eq(lahar_time_zone_instant(NULL, 1445740200), 1445740200);
    lahar_time_zone_destroy(zone);
}

Test(time_zone, reads_every_form_of_a_rule)
{
    static const struct {
        const char *rule;
        int64_t instant;
        int64_t offset;
    } cases[] = {
        {"UTC0", 0, 0},
        {"EST5EDT,M3.2.0,M11.1.0", 1420502400, -18000},
        {"EST5EDT,M3.2.0,M11.1.0", 1435752000, -14400},
        {"<-03>3", 1420502400, -10800},
        {"<+0530>-5:30", 1420502400, 19800},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 1420502400, 0},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", 1420502400, 39600},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", 1435752000, 36000},
        /* Julian days leave out the leap day, the others count it: 1 March 2016. */
        {"AAA0BBB,J60/0,J300/0", 1456790399, 0},
        {"AAA0BBB,J60/0,J300/0", 1456790400, 3600},
        {"AAA0BBB,60/0,300/0", 1456790399, 0},
        {"AAA0BBB,60/0,300/0", 1456790400, 3600},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1435752000, -3600},
        {"", 1435752000, 3600},
    };
    static const char *const wrong[] = {"C-1",
                                        "CET",
                                        "CET-1CEST",
                                        "CET-1CEST,M3.5.0",
                                        "CET-99",
                                        "CET-1x",
                                        "<CET-1",
                                        "CET-1CEST,M13.1.0,M1.1.0",
                                        "CET-1CEST,M3.6.0,M10.5.0",
                                        "CET-1CEST,J0,J10",
                                        "CET-1CEST,M3.5.0,M10.5.0/3x"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lahar_time_zone *zone = zone_of(cases[i].rule);
        cr_expect_eq(lahar_time_zone_offset(zone, cases[i].instant), cases[i].offset,
                     "%s at %lld: %lld", cases[i].rule, (long long)cases[i].instant,
                     (long long)lahar_time_zone_offset(zone, cases[i].instant));
        lahar_time_zone_destroy(zone);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct lahar_buffer file;
        struct lahar_time_zone *zone = NULL;
        put_file(&file, 0, 0, 3600, wrong[i]);
        cr_expect_eq(
            lahar_time_zone_parse(file.data, file.size, &lahar_allocator_libc, &zone, NULL),
            LAHAR_CORRUPT, "%s", wrong[i]);
        lahar_time_zone_destroy(zone);
        lahar_buffer_deinit(&file);
    }
}

Test(time_zone, refuses_files_that_are_cut_or_damaged)
{
    struct lahar_buffer file;
    put_file(&file, 60, 1000000000, 3600, berlin);
    for (size_t size = 0; size < file.size; size++) {
        struct lahar_time_zone *zone = NULL;
        uint8_t *copy = malloc(size + 1);
        memcpy(copy, file.data, size);
        cr_expect_eq(lahar_time_zone_parse(copy, size, &lahar_allocator_libc, &zone, NULL),
                     LAHAR_CORRUPT, "%zu bytes", size);
        free(copy);
    }
    /* Any byte: refused, or a zone that answers something. */
    for (size_t i = 0; i < file.size; i++) {
        for (unsigned flip = 1; flip < 256; flip += 37) {
            struct lahar_time_zone *zone = NULL;
            file.data[i] ^= (uint8_t)flip;
            if (lahar_time_zone_parse(file.data, file.size, &lahar_allocator_libc, &zone, NULL) ==
                LAHAR_OK) {
                (void)lahar_time_zone_instant(zone, 1445740200);
                lahar_time_zone_destroy(zone);
            }
            file.data[i] ^= (uint8_t)flip;
        }
    }
    lahar_buffer_deinit(&file);
}

/* The C library reads the same files. */
Test(time_zone, agrees_with_the_c_library)
{
    static const char *const names[] = {
        "Europe/Berlin",    "America/New_York",  "Asia/Kolkata",
        "Australia/Sydney", "America/Sao_Paulo", "Africa/Casablanca",
        "Pacific/Apia",     "Europe/Dublin",     "Asia/Tehran"};
    char directory[SCRATCH_PATH_SIZE];
    lahar_store *store = NULL;
    unsigned compared = 0;
    scratch_create(directory);
    cr_assert_eq(lahar_store_open(directory, NULL, 0, &store, NULL), LAHAR_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", names[i]);
        if (access(path, R_OK) != 0) {
            continue;
        }
        cr_assert_eq(setenv("TZ", names[i], 1), 0);
        tzset();
        for (int64_t instant = 0; instant < INT64_C(4000000000); instant += 9876543) {
            const time_t at = (time_t)instant;
            struct tm local;
            char text[64];
            int64_t first_ns = 0;
            int64_t end_ns = 0;
            lahar_error error = {0};
            (void)localtime_r(&at, &local);
            (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
            cr_assert_eq(lahar_query_time(store, text, names[i], 0, &first_ns, &end_ns, &error),
                         LAHAR_OK, "%s", error.message);
            /* A local time that comes twice may stand for the other instant. */
            const int64_t apart = instant - first_ns / 1000000000;
            const time_t other = (time_t)(first_ns / 1000000000);
            struct tm again;
            (void)localtime_r(&other, &again);
            cr_expect(apart == 0 ||
                          (apart > 0 && again.tm_hour == local.tm_hour &&
                           again.tm_min == local.tm_min && again.tm_mday == local.tm_mday),
                      "%s in %s: %lld s apart", text, names[i], (long long)apart);
            cr_expect_eq(end_ns, first_ns + 1);
            compared++;
        }
    }
    cr_assert_eq(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    scratch_remove(directory);
    if (compared == 0) {
        cr_skip_test("this machine has no time zones");
    }
}

static void expect_time(const struct lahar_time_zone *zone, const char *text, int64_t first_s,
                        int64_t hours)
{
    struct lahar_interval interval;
    const char *reason = "";
    cr_assert(lahar_query_time_parse(text, strlen(text), 0, zone, &interval, &reason), "%s: %s",
              text, reason);
    cr_expect_eq(interval.first_ns, first_s * 1000000000, "%s begins at %lld", text,
                 (long long)interval.first_ns);
    cr_expect_eq(interval.last_ns - interval.first_ns + 1, hours == 0 ? 1 : hours * HOUR_NS, "%s",
                 text);
}

Test(time_zone, gives_days_their_hours)
{
    struct lahar_time_zone *zone = zone_of(berlin);
    expect_time(zone, "2015-01-06", 1420498800, 24);
    expect_time(zone, "2015-03-29", 1427583600, 23);
    expect_time(zone, "2015-10-25", 1445724000, 25);
    expect_time(zone, "2015-03", 1425164400, 31 * 24 - 1);
    expect_time(zone, "2015-10-25T02", 1445731200, 2);
    expect_time(zone, "2015-10-25T02:30:00", 1445733000, 0);
    /* A zone in the text is meant. */
    expect_time(zone, "2015-10-25T02:30:00Z", 1445740200, 0);
    expect_time(zone, "2015-10-25T02:30:00+02:00", 1445733000, 0);
    expect_time(zone, "@1445733000s", 1445733000, 0);
    lahar_time_zone_destroy(zone);
}

Test(time_zone, holds_for_a_query)
{
    char directory[SCRATCH_PATH_SIZE];
    lahar_store *store = NULL;
    lahar_batch *batch = NULL;
    lahar_query *query = NULL;
    lahar_query_options options;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    uint32_t stream = 0;
    scratch_create(directory);
    cr_assert_eq(lahar_store_open(directory, NULL, 0, &store, NULL), LAHAR_OK);
    cr_assert_eq(lahar_stream_create(store, &spec, &stream, NULL), LAHAR_OK);
    cr_assert_eq(lahar_batch_create(store, &batch, NULL), LAHAR_OK);
    /* Every hour of 5 and 6 January 2015 in UTC. */
    for (int64_t hour = 0; hour < 48; hour++) {
        const lahar_event event = {.stream = stream,
                                   .time_ns = (INT64_C(1420416000) + hour * 3600) * 1000000000};
        cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_OK);
    }
    cr_assert_eq(lahar_batch_commit(batch, NULL, NULL, NULL), LAHAR_OK);
    static const struct {
        const char *zone;
        uint64_t total; /* of 5 January and what comes before */
    } cases[] = {{NULL, 24}, {"UTC", 24}, {"+02:00", 22}, {"-0330", 28}, {"+10", 14}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char text[] = "time<=2015-01-05";
        lahar_query_options_init(&options);
        options.time_zone = cases[i].zone;
        cr_assert_eq(lahar_query_open(store, text, sizeof text - 1, &options, &query, &error),
                     LAHAR_OK, "%s", error.message);
        cr_assert_eq(lahar_query_result_get(query, &result, NULL), LAHAR_OK);
        cr_expect_eq(result.total, cases[i].total, "%s: %llu", cases[i].zone,
                     (unsigned long long)result.total);
        lahar_query_close(query);
    }
    static const char *const wrong[] = {
        "Nowhere/City", "../../etc/passwd", "/etc/passwd", "", "Europe/../Europe/Berlin", "+25:00",
        "+1",           "Europe/"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.time_zone = wrong[i];
        cr_expect_eq(lahar_query_open(store, "*", 1, &options, &query, &error), LAHAR_INVALID, "%s",
                     wrong[i]);
    }
    lahar_batch_destroy(batch);
    cr_assert_eq(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    scratch_remove(directory);
}
