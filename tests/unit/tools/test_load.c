/* What lahar-load is made of: events made beforehand, digests, the settings of jobs. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "bench/histogram.h"
#include "tools/load_pack.h"
#include "tools/load_producer.h"
#include "tools/load_settings.h"

enum {
    SEED = 5,
    PACK_EVENTS = 2000
};

/* A maker without a store: fields are numbered as they come. */
static void init_maker(struct load_event_maker *maker, enum load_workload workload)
{
    *maker = (struct load_event_maker){.workload = workload, .stream = 0};
    for (uint32_t i = 0; i < LOAD_VALUES_MAX; i++) {
        maker->fields[i] = i + 20;
    }
    workload_w2_init(&maker->w2, SEED);
    maker->w1 = workload_w1_create(SEED);
    cr_assert_not_null(maker->w1);
}

static lahar_uuid uuid_of(const lahar_event *event)
{
    for (size_t i = 0; i < event->value_count; i++) {
        if (event->values[i].type == LAHAR_UUID) {
            return event->values[i].as.uuid;
        }
    }
    cr_assert_fail("an event without a uuid");
    return (lahar_uuid){.bytes = {0}};
}

static lahar_bytes attribute_of(const lahar_event *event, const char *key)
{
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        for (size_t k = 0; value->type == LAHAR_MAP && k < value->as.map.count; k++) {
            const lahar_pair *pair = &value->as.map.items[k];
            if (pair->key.size == strlen(key) && memcmp(pair->key.data, key, pair->key.size) == 0) {
                return pair->value;
            }
        }
    }
    cr_assert_fail("an event without the attribute %s", key);
    return (lahar_bytes){.data = NULL, .size = 0};
}

static void hex_of(lahar_uuid uuid, char out[37])
{
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *out++ = '-';
        }
        *out++ = DIGITS[uuid.bytes[i] >> 4];
        *out++ = DIGITS[uuid.bytes[i] & 15];
    }
    *out = '\0';
}

Test(load_pack, first_hands_out_the_workload_itself)
{
    for (int workload = LOAD_W1; workload <= LOAD_W2; workload++) {
        struct load_event_maker maker;
        init_maker(&maker, (enum load_workload)workload);
        struct load_pack *pack = load_pack_create(&maker, 100, PACK_EVENTS);
        cr_assert_not_null(pack);
        cr_assert_eq(load_pack_count(pack), PACK_EVENTS);
        const uint64_t place = load_pack_turn(pack, PACK_EVENTS);
        for (uint64_t i = 0; i < PACK_EVENTS; i++) {
            lahar_event event;
            load_event_make(&maker, 100 + i, &event);
            cr_assert_eq(load_event_digest(&event),
                         load_event_digest(load_pack_event(pack, place + i)));
        }
        load_pack_destroy(pack);
        load_event_maker_deinit(&maker);
    }
}

Test(load_pack, makes_other_flowfiles_each_time_round)
{
    struct load_event_maker maker;
    init_maker(&maker, LOAD_W1);
    struct load_pack *pack = load_pack_create(&maker, 0, PACK_EVENTS);
    lahar_uuid *before = calloc(PACK_EVENTS, sizeof *before);
    cr_assert_not_null(pack);
    cr_assert_not_null(before);
    int64_t last_ns = INT64_MIN;
    for (int round = 0; round < 3; round++) {
        const uint64_t place = load_pack_turn(pack, PACK_EVENTS);
        for (uint64_t i = 0; i < PACK_EVENTS; i++) {
            const lahar_event *event = load_pack_event(pack, place + i);
            const lahar_uuid uuid = uuid_of(event);
            const lahar_bytes text = attribute_of(event, "uuid");
            char expected[37];
            hex_of(uuid, expected);
            cr_assert_eq(text.size, 36);
            cr_assert_eq(memcmp(text.data, expected, 36), 0);
            cr_assert_eq(uuid.bytes[6] >> 4, 4, "still of version 4");
            cr_assert_geq(event->time_ns, last_ns);
            last_ns = event->time_ns;
            cr_assert_neq(memcmp(&uuid, &before[i], sizeof uuid), 0);
            before[i] = uuid;
        }
    }
    /* Equal uuids stay equal: as many different ones as the workload has. */
    uint64_t pairs = 0;
    uint64_t pairs_made = 0;
    struct load_event_maker other;
    init_maker(&other, LOAD_W1);
    lahar_uuid *made = calloc(PACK_EVENTS, sizeof *made);
    cr_assert_not_null(made);
    for (uint64_t i = 0; i < PACK_EVENTS; i++) {
        lahar_event event;
        load_event_make(&other, i, &event);
        made[i] = uuid_of(&event);
    }
    for (uint64_t i = 0; i < PACK_EVENTS; i++) {
        for (uint64_t k = 0; k < i; k++) {
            pairs += memcmp(&before[i], &before[k], sizeof before[i]) == 0;
            pairs_made += memcmp(&made[i], &made[k], sizeof made[i]) == 0;
        }
    }
    cr_assert_gt(pairs_made, 0);
    cr_assert_eq(pairs, pairs_made);
    free(made);
    free(before);
    load_pack_destroy(pack);
    load_event_maker_deinit(&maker);
    load_event_maker_deinit(&other);
}

Test(load_digest, tells_every_changed_value_but_no_order)
{
    struct load_event_maker maker;
    lahar_event event;
    init_maker(&maker, LOAD_W1);
    load_event_make(&maker, 7, &event);
    const uint64_t digest = load_event_digest(&event);
    lahar_value values[LOAD_VALUES_MAX];
    lahar_event changed = event;
    changed.values = values;
    for (size_t i = 0; i < event.value_count; i++) {
        values[i] = event.values[event.value_count - 1 - i];
    }
    cr_assert_eq(load_event_digest(&changed), digest);
    for (size_t i = 0; i < event.value_count; i++) {
        memcpy(values, event.values, event.value_count * sizeof *values);
        changed.value_count = event.value_count;
        values[i] = values[event.value_count - 1];
        changed.value_count--;
        cr_assert_neq(load_event_digest(&changed), digest, "without value %zu", i);
    }
    memcpy(values, event.values, event.value_count * sizeof *values);
    changed.value_count = event.value_count;
    changed.time_ns++;
    cr_assert_neq(load_event_digest(&changed), digest);
    load_event_maker_deinit(&maker);
}

Test(load_record, moves_everything_and_is_empty_afterwards)
{
    struct load_record *from = calloc(1, sizeof *from);
    struct load_record *to = calloc(1, sizeof *to);
    cr_assert_not_null(from);
    cr_assert_not_null(to);
    for (uint64_t i = 1; i <= 1000; i++) {
        histogram_record(&from->latency, i);
        from->events += 2;
    }
    load_record_move(to, from);
    cr_assert_eq(to->events, 2000);
    cr_assert_eq(to->latency.count, 1000);
    cr_assert_eq(to->latency.max, 1000);
    /* Buckets from 512 to 1,023 hold eight values each. */
    const uint64_t median = histogram_quantile(&to->latency, 0.5);
    cr_assert(median >= 500 && median <= 508, "%llu", (unsigned long long)median);
    cr_assert_eq(from->events, 0);
    cr_assert_eq(from->latency.count, 0);
    cr_assert_eq(histogram_quantile(&from->latency, 1), 0);
    histogram_record(&from->latency, 5);
    load_record_move(to, from);
    cr_assert_eq(to->latency.count, 1001);
    cr_assert_eq(to->latency.max, 1000);
    free(from);
    free(to);
}

Test(load_settings, take_rates_and_times_in_all_their_forms)
{
    static const struct {
        const char *option;
        const char *value;
        uint64_t expected; /* UINT64_MAX: refused */
    } CASES[] = {
        {"duration", "30", UINT64_C(30000000000)},
        {"duration", "500ms", 500000000},
        {"duration", "10m", UINT64_C(600000000000)},
        {"duration", "8d", UINT64_MAX},
        {"duration", "", UINT64_MAX},
        {"rate", "5000", 5000},
        {"rate", "0", 0},
        {"rate", "-1", UINT64_MAX},
        {"rate", "1e6", UINT64_MAX},
        {"rate", "%", UINT64_MAX},
        {"producers", "1024", 1024},
        {"producers", "1025", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct load_job job;
        load_job_init(&job);
        const struct option_spec *spec = LOAD_OPTIONS;
        while (strcmp(spec->name, CASES[i].option) != 0) {
            spec++;
        }
        const bool is_taken = load_setting_take(&job, &job.phases[0], spec->id, CASES[i].value);
        cr_assert_eq(is_taken, CASES[i].expected != UINT64_MAX, "%s", CASES[i].value);
        const struct load_phase *phase = &job.phases[0];
        const uint64_t found = CASES[i].option[0] == 'd'   ? phase->duration_ns
                               : CASES[i].option[0] == 'r' ? phase->rate
                                                           : phase->producers;
        cr_assert(!is_taken || found == CASES[i].expected, "%s", CASES[i].value);
        load_job_deinit(&job);
    }
}
