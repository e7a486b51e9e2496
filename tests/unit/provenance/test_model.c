/* The event model: rules, exact round trips, attributes as shown and as stored. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "prov_store.h"

static bool is(lahar_bytes bytes, const char *text)
{
    return bytes.data != NULL && bytes.size == strlen(text) &&
           memcmp(bytes.data, text, bytes.size) == 0;
}

static void expect_missing(lahar_prov_event event, const char *missing)
{
    lahar_error error = {.status = LAHAR_OK};
    cr_assert_eq(lahar_prov_check(&event, &error), LAHAR_INVALID);
    cr_assert_not_null(strstr(error.message, missing), "%s", error.message);
}

Test(prov_event, must_have_what_its_type_needs)
{
    for (int type = LAHAR_PROV_CREATE; type <= LAHAR_PROV_UNKNOWN; type++) {
        const bool spawns =
            type == LAHAR_PROV_FORK || type == LAHAR_PROV_JOIN || type == LAHAR_PROV_CLONE;
        const lahar_prov_event whole =
            make_event((lahar_prov_type)type, "u", 1, spawns ? "u" : NULL, NULL);
        cr_assert_eq(lahar_prov_check(&whole, NULL), LAHAR_OK, "type %d", type);
        lahar_prov_event event = whole;
        event.component = bytes_of(NULL);
        expect_missing(event, "a component");
        event = whole;
        event.component_type = bytes_of(NULL);
        expect_missing(event, "a component type");
        event = whole;
        event.uuid = bytes_of(NULL);
        expect_missing(event, "uuid");
        event = whole;
        event.has_size = false;
        expect_missing(event, "a size");
        if (spawns) {
            event = whole;
            event.parent_count = 0;
            expect_missing(event, "a parent or a child");
        }
        if (whole.transit_uri.data != NULL) {
            event = whole;
            event.transit_uri = bytes_of(NULL);
            expect_missing(event, "a transit URI");
        }
    }
    lahar_prov_event event = make_event(LAHAR_PROV_ADDINFO, "u", 1, NULL, NULL);
    event.alternate_id = bytes_of(NULL);
    expect_missing(event, "an alternate identifier");
    event = make_event(LAHAR_PROV_ROUTE, "u", 1, NULL, NULL);
    event.relationship = bytes_of(NULL);
    expect_missing(event, "a relationship");
    event.type = (lahar_prov_type)18;
    expect_missing(event, "no event type 18");
    cr_assert_str_eq(lahar_prov_type_name(LAHAR_PROV_UPLOAD), "UPLOAD");
    cr_assert_eq(lahar_prov_type_find(bytes_of("REMOTE_INVOCATION")), LAHAR_PROV_REMOTE_INVOCATION);
    cr_assert_eq(lahar_prov_type_find(bytes_of("remote")), LAHAR_PROV_UNKNOWN);
}

Test(prov_event, is_refused_with_its_whole_batch)
{
    struct prov_store prov;
    lahar_error error = {.status = LAHAR_OK};
    uint64_t id = 9;
    prov_store_open(&prov, NULL);
    lahar_prov_event events[2] = {make_event(LAHAR_PROV_DROP, "u", 1, NULL, NULL),
                                  make_event(LAHAR_PROV_ROUTE, "u", 1, NULL, NULL)};
    events[1].relationship = bytes_of(NULL);
    cr_assert_eq(lahar_prov_append(prov.provenance, events, 2, NULL, &id, &error), LAHAR_INVALID);
    cr_assert_eq(id, 0);
    cr_assert_not_null(strstr(error.message, "event 2 of 2"), "%s", error.message);
    cr_assert_eq(count_of(&prov, "*"), 0);
    prov_store_close(&prov);
}

static lahar_prov_event full_event(void)
{
    static const lahar_pair previous[] = {
        {{"a", 1}, {"1", 1}, false}, {{"b", 1}, {"2", 1}, false}, {{"c", 1}, {"3", 1}, false}};
    static const lahar_pair updated[] = {{{"b", 1}, {"4", 1}, false},
                                         {{"c", 1}, {NULL, 0}, true},
                                         {{"d", 1}, {"", 0}, false},
                                         {{"e", 1}, {NULL, 0}, true}};
    lahar_prov_event event = make_event(LAHAR_PROV_CLONE, "u1", 1700000000123, "u1,p2", "k1,k2");
    event.component_name = bytes_of("name");
    event.process_group = bytes_of("group");
    event.entity_type = bytes_of("org.apache.nifi.flowfile.FlowFile");
    event.size = UINT64_MAX;
    event.has_previous_size = true;
    event.has_duration = true;
    event.duration_ns = -1000000;
    event.entry_ns = INT64_C(1600000000000000001);
    event.lineage_start_ns = event.time_ns - INT64_C(40) * 86400 * 1000000000;
    event.previous = previous;
    event.previous_count = 3;
    event.updated = updated;
    event.updated_count = 4;
    event.claim =
        (lahar_claim){bytes_of("default"), bytes_of("1"), bytes_of("2"), true, true, 3, 4};
    event.previous_claim =
        (lahar_claim){bytes_of("old"), bytes_of("5"), bytes_of("6"), true, false, 7, 0};
    event.source_queue = bytes_of("queue");
    event.transit_uri = bytes_of("ftp://x");
    event.source_system = bytes_of("urn:nifi:x");
    event.alternate_id = bytes_of("ns:alt");
    event.relationship = bytes_of("success");
    event.details = bytes_of("why");
    return event;
}

static void expect_full(const lahar_prov_record *record)
{
    const lahar_prov_event *event = lahar_prov_record_event(record);
    const lahar_prov_event expected = full_event();
    cr_assert_eq(event->type, LAHAR_PROV_CLONE);
    cr_assert_eq(event->time_ns, expected.time_ns);
    cr_assert(is(event->uuid, "u1"));
    cr_assert(is(event->component, "component"));
    cr_assert(is(event->component_name, "name"));
    cr_assert(is(event->process_group, "group"));
    cr_assert_eq(event->size, UINT64_MAX);
    cr_assert(event->has_previous_size && event->previous_size == 0);
    cr_assert_eq(event->duration_ns, -1000000);
    cr_assert_eq(event->entry_ns, expected.entry_ns);
    cr_assert_eq(event->lineage_start_ns, expected.lineage_start_ns, "40 days back");
    cr_assert_eq(event->parent_count, 2);
    cr_assert(is(event->parents[1], "p2"));
    cr_assert(is(event->children[1], "k2"));
    cr_assert(is(event->claim.container, "default"));
    cr_assert(is(event->claim.id, "2"));
    cr_assert_eq(event->claim.offset, 3);
    cr_assert_eq(event->claim.size, 4);
    cr_assert(is(event->previous_claim.section, "5"));
    cr_assert(event->previous_claim.has_offset && !event->previous_claim.has_size);
    cr_assert(is(event->source_queue, "queue"));
    cr_assert(is(event->transit_uri, "ftp://x"));
    cr_assert(is(event->source_system, "urn:nifi:x"));
    cr_assert(is(event->alternate_id, "ns:alt"));
    cr_assert(is(event->relationship, "success"));
    cr_assert(is(event->details, "why"));
    cr_assert_eq(event->previous_count, 3);
    cr_assert_eq(event->updated_count, 4);
    cr_assert(event->updated[1].is_null && !event->updated[2].is_null);
    size_t count = 0;
    const lahar_pair *effective = lahar_prov_record_effective(record, &count);
    cr_assert_eq(count, 3);
    cr_assert(is(effective[0].key, "a") && is(effective[0].value, "1"));
    cr_assert(is(effective[1].key, "b") && is(effective[1].value, "4"));
    cr_assert(is(effective[2].key, "d") && effective[2].value.size == 0);
}

Test(prov_event, comes_back_whole_in_memory_rolled_and_reopened)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    const lahar_prov_event event = full_event();
    const uint64_t id = put_event(&prov, &event);
    for (int i = 0; i < 3; i++) {
        lahar_prov_record *record = NULL;
        cr_assert_eq(lahar_prov_get(prov.provenance, id, &record, NULL), LAHAR_OK);
        expect_full(record);
        lahar_prov_record_close(record);
        cr_assert_eq(count_of(&prov, "attr.a=1 attr.b=4 attr.d:* NOT attr.c:* prev.c=3"), 1);
        cr_assert_eq(count_of(&prov, "changed:b changed:c changed:d"), 1);
        cr_assert_eq(count_of(&prov, "changed:a OR changed:e OR attr.b=2"), 0);
        if (i == 0) {
            prov_store_rollover(&prov);
        } else {
            prov_store_reopen(&prov);
        }
    }
    prov_store_close(&prov);
}

Test(prov_event, keeps_two_equal_events_of_a_batch)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    lahar_prov_event events[2] = {make_event(LAHAR_PROV_DROP, "u", 1, NULL, NULL),
                                  make_event(LAHAR_PROV_DROP, "u", 2, NULL, NULL)};
    events[1].details = bytes_of("other");
    cr_assert_eq(lahar_prov_append(prov.provenance, events, 2, NULL, NULL, NULL), LAHAR_OK);
    cr_assert_eq(count_of(&prov, "type=DROP"), 2);
    prov_store_close(&prov);
}

/* An attribute of so many bytes. */
static void put_long(struct prov_store *prov, const char *text, size_t size)
{
    const lahar_pair pairs[] = {{{"75", 2}, {text, size}, false}, {{"51", 2}, {text, 51}, false},
                                {{"50", 2}, {text, 50}, false},   {{"49", 2}, {text, 49}, false},
                                {{"null", 4}, {NULL, 0}, true},   {{"uuid", 4}, {text, 36}, false}};
    lahar_prov_event event = make_event(LAHAR_PROV_CREATE, "u", 1, NULL, NULL);
    event.updated = pairs;
    event.updated_count = 6;
    put_event(prov, &event);
}

Test(attributes, are_cut_when_read_and_stored_whole)
{
    static const size_t expected[] = {50, 50, 50, 49, 0, 36};
    struct prov_store prov;
    char text[100];
    lahar_provenance_options options;
    lahar_prov_record *record = NULL;
    lahar_provenance_options_init(&options);
    options.attribute_length_max = 50;
    memset(text, 'x', sizeof text);
    prov_store_open(&prov, &options);
    put_long(&prov, text, 75);
    cr_assert_eq(lahar_prov_get(prov.provenance, 1, &record, NULL), LAHAR_OK);
    for (size_t i = 0; i < 6; i++) {
        cr_assert_eq(lahar_prov_record_event(record)->updated[i].value.size, expected[i]);
    }
    cr_assert(lahar_prov_record_event(record)->updated[4].is_null);
    lahar_prov_record_close(record);
    prov.options.attribute_length_max = 0;
    prov_store_reopen(&prov);
    cr_assert_eq(lahar_prov_get(prov.provenance, 1, &record, NULL), LAHAR_OK);
    cr_assert_eq(lahar_prov_record_event(record)->updated[0].value.size, 75);
    lahar_prov_record_close(record);
    prov_store_close(&prov);
}

Test(attributes, are_cut_between_characters)
{
    struct prov_store prov;
    char text[120];
    lahar_provenance_options options;
    lahar_prov_record *record = NULL;
    lahar_provenance_options_init(&options);
    options.attribute_length_max = 1; /* the least is 36 */
    for (size_t i = 0; i < sizeof text; i += 3) {
        memcpy(text + i, "\xe6\x97\xa5", 3);
    }
    prov_store_open(&prov, &options);
    put_long(&prov, text, sizeof text);
    cr_assert_eq(lahar_prov_get(prov.provenance, 1, &record, NULL), LAHAR_OK);
    cr_assert_eq(lahar_prov_record_event(record)->updated[0].value.size, 36 * 3);
    lahar_prov_record_close(record);
    prov_store_close(&prov);
}

Test(attributes, of_any_length_are_found)
{
    enum {
        SIZE = 70000
    };
    struct prov_store prov;
    static char text[SIZE];
    memset(text, 'y', SIZE);
    memcpy(text, "start", 5);
    memcpy(text + SIZE - 3, "\xe6\x97\xa5", 3);
    const lahar_pair pair = {{"long", 4}, {text, SIZE}, false};
    prov_store_open(&prov, NULL);
    for (int i = 0; i < 10; i++) {
        lahar_prov_event event = make_event(LAHAR_PROV_CREATE, "u", i, NULL, NULL);
        event.updated = &pair;
        event.updated_count = 1;
        event.details = i == 5 ? (lahar_bytes){text, SIZE} : bytes_of(NULL);
        put_event(&prov, &event);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(count_of(&prov, "attr.long:start*"), 10);
        cr_assert_eq(count_of(&prov, "type=CREATE"), 10);
        cr_assert_eq(count_of(&prov, "details:start*"), 1);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

static bool is_even(void *context, const lahar_event *event)
{
    (void)context;
    return event->id % 2 == 0;
}

Test(authorization, hides_events_from_get_scan_query_and_count)
{
    struct prov_store prov;
    lahar_provenance_options options;
    lahar_prov_record *record = NULL;
    lahar_provenance_options_init(&options);
    options.authorize = is_even;
    prov_store_open(&prov, &options);
    for (int i = 0; i < 10; i++) {
        put(&prov, LAHAR_PROV_CREATE, "u", i, NULL, NULL);
    }
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(lahar_prov_get(prov.provenance, 1, &record, NULL), LAHAR_DENIED);
        cr_assert_null(record);
        cr_assert_eq(lahar_prov_get(prov.provenance, 2, &record, NULL), LAHAR_OK);
        lahar_prov_record_close(record);
        lahar_prov_search search;
        lahar_query *query = NULL;
        lahar_query_result result = {.struct_size = sizeof result};
        const lahar_event *event = NULL;
        lahar_prov_search_init(&search);
        search.limit = 2;
        cr_assert_eq(lahar_prov_search_open(prov.provenance, &search, &query, NULL), LAHAR_OK);
        cr_assert_eq(lahar_query_next(query, &event, NULL), LAHAR_OK);
        cr_assert_eq(event->id, 10);
        cr_assert_eq(lahar_query_result_get(query, &result, NULL), LAHAR_OK);
        cr_assert_eq(result.total, 5);
        lahar_query_close(query);
        lahar_scan_options scan;
        lahar_cursor *cursor = NULL;
        uint64_t seen = 0;
        lahar_scan_options_init(&scan);
        scan.authorize = is_even;
        cr_assert_eq(lahar_scan(prov.store, &scan, &cursor, NULL), LAHAR_OK);
        while (lahar_cursor_next(cursor, &event, NULL) == LAHAR_OK) {
            cr_assert_eq(event->id % 2, 0);
            seen++;
        }
        lahar_cursor_close(cursor);
        cr_assert_eq(seen, 5);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}
