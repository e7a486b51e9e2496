/* Queries of NiFi's dialog, latest events, statistics, what was sent. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "prov_store.h"

static char *found(struct prov_store *prov, const lahar_prov_search *search)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    cr_assert_eq(lahar_prov_search_open(prov->provenance, search, &query, &error), LAHAR_OK, "%s",
                 error.message);
    while (lahar_query_next(query, &event, &error) == LAHAR_OK) {
        (void)fprintf(file, "%llu ", (unsigned long long)event->id);
    }
    lahar_query_close(query);
    (void)fclose(file);
    return text;
}

static void expect_found(struct prov_store *prov, const lahar_prov_search *search,
                         const char *expected)
{
    char *text = found(prov, search);
    cr_assert_str_eq(text, expected);
    free(text);
}

static lahar_prov_search search_of(const lahar_prov_term *terms, size_t count)
{
    lahar_prov_search search;
    lahar_prov_search_init(&search);
    search.terms = terms;
    search.term_count = count;
    return search;
}

/* 30 events: component A or B in turn, sizes 0, 1 KiB .. 29 KiB, ids 1 .. 30. */
static void fill_thirty(struct prov_store *prov)
{
    for (int i = 0; i < 30; i++) {
        char filename[32];
        (void)snprintf(filename, sizeof filename, "file (%d) *.txt", i % 3);
        const lahar_pair pair = {{"filename", 8}, bytes_of(filename), false};
        lahar_prov_event event = make_event(LAHAR_PROV_SEND, "u", i, NULL, NULL);
        event.component = bytes_of(i % 2 == 0 ? "A" : "B");
        event.size = (uint64_t)i * 1024;
        event.updated = &pair;
        event.updated_count = 1;
        put_event(prov, &event);
    }
}

static void expect_searches(struct prov_store *prov)
{
    lahar_prov_search search;
    lahar_prov_search_init(&search);
    search.size_min = search.size_max = 29 * 1024; /* a size alone */
    expect_found(prov, &search, "30 ");
    search.size_max = UINT64_MAX;
    search.size_min = UINT64_C(1) << 30;
    expect_found(prov, &search, "");
    lahar_prov_search_init(&search);
    search.limit = 5; /* the newest, not the oldest of some ring */
    expect_found(prov, &search, "30 29 28 27 26 ");
    const lahar_prov_term not_b = {bytes_of("ComponentID"), bytes_of("b"), true};
    search = search_of(&not_b, 1); /* only inverse */
    search.limit = 5;
    expect_found(prov, &search, "29 27 25 23 21 ");
    const lahar_prov_term is_b = {bytes_of("ComponentID"), bytes_of("B"), false};
    search = search_of(&is_b, 1);
    search.size_min = UINT64_C(1) << 30;
    expect_found(prov, &search, "");
    search = search_of(&is_b, 1);
    search.from_ns = 3000000; /* both ends inclusive */
    search.to_ns = 7000000;
    expect_found(prov, &search, "8 6 4 ");
    const lahar_prov_term four[] = {{bytes_of("Filename"), bytes_of("FILE (1)*"), false},
                                    {bytes_of("EventType"), bytes_of("s?nd"), false},
                                    {bytes_of("TransitURI"), bytes_of("*x"), false},
                                    {bytes_of("FlowFileUUID"), bytes_of("u"), false}};
    search = search_of(four, 4);
    expect_found(prov, &search, "29 26 23 20 17 14 11 8 5 2 ");
    const lahar_prov_term but[] = {{bytes_of("filename"), bytes_of("file*"), false},
                                   {bytes_of("filename"), bytes_of("*(1)*"), true},
                                   {bytes_of("ProcessorID"), bytes_of("a"), false}};
    search = search_of(but, 3);
    search.to_ns = 16000000;
    expect_found(prov, &search, "15 13 9 7 3 1 ");
    const lahar_prov_term unknown = {bytes_of("nothing"), bytes_of("x"), false};
    search = search_of(&unknown, 1);
    expect_found(prov, &search, "");
}

Test(search, answers_nifis_dialog_in_memory_and_rolled)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    fill_thirty(&prov);
    expect_searches(&prov);
    prov_store_rollover(&prov);
    expect_searches(&prov);
    prov_store_close(&prov);
}

/* One event that has everything the dialog knows, another that has other values. */
static void fill_pair(struct prov_store *prov)
{
    static const lahar_pair pairs[] = {{{"filename", 8}, {"Data.CSV", 8}, false},
                                       {{"mime type", 9}, {"text/csv", 8}, false}};
    for (int i = 0; i < 2; i++) {
        lahar_prov_event event =
            make_event(i == 0 ? LAHAR_PROV_SEND : LAHAR_PROV_DROP,
                       i == 0 ? "7f53c48e-29d7-4388-94dd-7a358f948a40" : "f", 1000 + i, NULL, NULL);
        if (i == 0) {
            event.transit_uri = bytes_of("https://Host/In");
            event.component = bytes_of("Processor-1");
            event.alternate_id = bytes_of("ns:77");
            event.details = bytes_of("Sent twice");
            event.relationship = bytes_of("success");
            event.source_queue = bytes_of("Queue-9");
            event.size = 4711;
            event.lineage_start_ns = INT64_C(1714521600000000000);
            event.claim = (lahar_claim){.container = bytes_of("default"),
                                        .section = bytes_of("12"),
                                        .id = bytes_of("1714-5"),
                                        .has_offset = true,
                                        .offset = 640};
            event.updated = pairs;
            event.updated_count = 2;
        }
        put_event(prov, &event);
    }
}

Test(search, finds_by_every_name_of_the_dialog)
{
    static const char *const terms[][3] = {
        /* name, a value in another case, a pattern (NULL: of numbers there is none) */
        {"FlowFileUUID", "7F53C48E-29D7-4388-94DD-7A358F948A40", "7f53C48e-*"},
        {"LineageIdentifiers", "7f53c48e-29d7-4388-94dd-7a358f948a40", NULL},
        {"Filename", "data.csv", "*.c?v"},
        {"EventType", "send", "S*"},
        {"TransitURI", "HTTPS://HOST/in", "https:*in"},
        {"ProcessorID", "processor-1", "processor-?"},
        {"ComponentID", "PROCESSOR-1", "*-1"},
        {"AlternateIdentifierURI", "NS:77", "*:7*"},
        {"Details", "sent TWICE", "sent*"},
        {"Relationship", "Success", "succ?ss"},
        {"SourceQueueIdentifier", "queue-9", "queue*"},
        {"ContentClaimContainer", "DEFAULT", "def*"},
        {"ContentClaimSection", "12", "?2"},
        {"ContentClaimIdentifier", "1714-5", "1714*"},
        {"ContentClaimOffset", "640", NULL},
        {"FileSize", "4711", NULL},
        {"LineageStartDate", "2024-05-01T00:00:00Z", NULL},
        {"EventTime", "1970-01-01T00:00:01Z", NULL},
        {"mime type", "TEXT/csv", "text/*"},
    };
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    fill_pair(&prov);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
            for (int form = 1; form < 3 && terms[i][form] != NULL; form++) {
                lahar_prov_term term = {bytes_of(terms[i][0]), bytes_of(terms[i][form]), false};
                lahar_prov_search search = search_of(&term, 1);
                expect_found(&prov, &search, "1 ");
                term.is_inverse = true;
                expect_found(&prov, &search, "2 ");
            }
        }
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

Test(search, refuses_times_that_end_before_they_begin_and_terms_without_a_value)
{
    struct prov_store prov;
    lahar_query *query = NULL;
    prov_store_open(&prov, NULL);
    lahar_prov_search search;
    lahar_prov_search_init(&search);
    search.from_ns = 2;
    search.to_ns = 1;
    cr_assert_eq(lahar_prov_search_open(prov.provenance, &search, &query, NULL), LAHAR_INVALID);
    const lahar_prov_term empty = {bytes_of("EventType"), bytes_of(NULL), false};
    search = search_of(&empty, 1);
    cr_assert_eq(lahar_prov_search_open(prov.provenance, &search, &query, NULL), LAHAR_INVALID);
    cr_assert_null(query);
    prov_store_close(&prov);
}

/* --- latest
 * --------------------------------------------------------------------------------------- */

static void put_batch(struct prov_store *prov, const char *component, size_t count)
{
    lahar_prov_event events[8];
    for (size_t i = 0; i < count; i++) {
        events[i] = make_event(LAHAR_PROV_DROP, "u", 1, NULL, NULL);
        events[i].component = bytes_of(component);
    }
    cr_assert_eq(lahar_prov_append(prov->provenance, events, count, NULL, NULL, NULL), LAHAR_OK);
}

static void expect_latest(struct prov_store *prov, const char *component, size_t limit,
                          size_t count, uint64_t newest)
{
    uint64_t ids[16];
    size_t got = 0;
    lahar_error error = {.status = LAHAR_OK};
    cr_assert_eq(lahar_prov_latest(prov->provenance, bytes_of(component), ids, limit, &got, &error),
                 LAHAR_OK, "%s", error.message);
    cr_assert_eq(got, count, "%s: %zu", component, got);
    for (size_t i = 0; i < got; i++) {
        cr_assert_eq(ids[i], newest - i);
    }
}

Test(latest, are_those_of_the_last_batch)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put_batch(&prov, "A", 3);
    put_batch(&prov, "B", 2);
    put_batch(&prov, "A", 4);
    for (int i = 0; i < 3; i++) {
        expect_latest(&prov, "A", 16, 4, 9);
        expect_latest(&prov, "A", 2, 2, 9);
        expect_latest(&prov, "B", 16, 2, 5);
        expect_latest(&prov, "C", 16, 0, 0);
        if (i == 0) {
            prov_store_reopen(&prov);
        } else {
            prov_store_rollover(&prov);
        }
    }
    put_batch(&prov, "B", 1);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(prov.store, &stat, NULL), LAHAR_OK);
    expect_latest(&prov, "B", 16, 1, stat.next_id - 1);
    prov_store_close(&prov);
}

Test(latest, are_found_for_a_component_that_has_been_silent)
{
    enum {
        COUNT = 12000
    };
    static lahar_prov_event events[COUNT];
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put_batch(&prov, "silent", 2);
    for (size_t i = 0; i < COUNT; i++) {
        events[i] = make_event(LAHAR_PROV_DROP, "u", 1, NULL, NULL);
    }
    cr_assert_eq(lahar_prov_append(prov.provenance, events, COUNT, NULL, NULL, NULL), LAHAR_OK);
    prov_store_reopen(&prov);
    expect_latest(&prov, "silent", 16, 2, 2);
    prov_store_close(&prov);
}

enum {
    APPENDERS = 4,
    APPENDER_BATCHES = 500
};

struct appender {
    pthread_t thread;
    struct prov_store *prov;
    lahar_prov_event events[2];
    lahar_status status;
};

static void *append_batches(void *context)
{
    struct appender *appender = context;
    for (int i = 0; i < APPENDER_BATCHES && appender->status == LAHAR_OK; i++) {
        appender->status =
            lahar_prov_append(appender->prov->provenance, appender->events, 2, NULL, NULL, NULL);
    }
    return NULL;
}

/* Batches are two events of one component each. */
static void expect_batches_apart(struct prov_store *prov)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    int64_t before_ns = INT64_MIN;
    uint64_t count = 0;
    cr_assert_eq(lahar_scan(prov->store, NULL, &cursor, NULL), LAHAR_OK);
    for (; lahar_cursor_next(cursor, &event, NULL) == LAHAR_OK; count++) {
        cr_assert(count % 2 == 0 ? event->arrival_ns > before_ns : event->arrival_ns == before_ns,
                  "event %llu", (unsigned long long)event->id);
        before_ns = event->arrival_ns;
    }
    lahar_cursor_close(cursor);
    cr_assert_eq(count, 2 * APPENDERS * APPENDER_BATCHES);
}

Test(latest, tell_batches_apart_that_arrive_at_once)
{
    static const char *const names[APPENDERS] = {"0", "1", "2", "3"};
    static struct appender appenders[APPENDERS];
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    for (int i = 0; i < APPENDERS; i++) {
        appenders[i].prov = &prov;
        appenders[i].events[0] = make_event(LAHAR_PROV_DROP, "u", 1, NULL, NULL);
        appenders[i].events[0].component = bytes_of(names[i]);
        appenders[i].events[1] = appenders[i].events[0];
        cr_assert_eq(pthread_create(&appenders[i].thread, NULL, append_batches, &appenders[i]), 0);
    }
    for (int i = 0; i < APPENDERS; i++) {
        (void)pthread_join(appenders[i].thread, NULL);
        cr_assert_eq(appenders[i].status, LAHAR_OK);
    }
    expect_batches_apart(&prov);
    prov_store_reopen(&prov);
    expect_batches_apart(&prov);
    prov_store_rollover(&prov);
    expect_batches_apart(&prov);
    for (int i = 0; i < APPENDERS; i++) {
        uint64_t ids[8];
        size_t got = 0;
        cr_assert_eq(lahar_prov_latest(prov.provenance, bytes_of(names[i]), ids, 8, &got, NULL),
                     LAHAR_OK);
        cr_assert_eq(got, 2);
        cr_assert_eq(ids[0], ids[1] + 1);
    }
    prov_store_close(&prov);
}

/* --- statistics
 * --------------------------------------------------------------------------------------- */

static lahar_status note_count(void *context, lahar_prov_group group, lahar_bytes key,
                               uint64_t event_count, uint64_t size_sum)
{
    (void)fprintf(context, "%d %.*s %llu %llu;", (int)group, (int)key.size, (const char *)key.data,
                  (unsigned long long)event_count, (unsigned long long)size_sum);
    return LAHAR_OK;
}

Test(statistics, count_by_type_component_and_hour)
{
    struct prov_store prov;
    char *text = NULL;
    size_t size = 0;
    prov_store_open(&prov, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_DROP, "u", -1, NULL, NULL);
    event.size = 5;
    put_event(&prov, &event);
    put(&prov, LAHAR_PROV_CREATE, "u", 1, NULL, NULL);
    event.time_ns = INT64_C(3600000) * 1000000;
    event.component = bytes_of("other");
    put_event(&prov, &event);
    FILE *file = open_memstream(&text, &size);
    cr_assert_eq(lahar_prov_statistics(prov.provenance, "*", note_count, file, NULL), LAHAR_OK);
    (void)fclose(file);
    cr_assert_str_eq(text, "0 CREATE 1 0;0 DROP 2 10;1 component 2 5;1 other 1 5;"
                           "2 1969-12-31T23:00:00Z 1 5;2 1970-01-01T00:00:00Z 1 0;"
                           "2 1970-01-01T01:00:00Z 1 5;");
    free(text);
    prov_store_close(&prov);
}

/* --- what was sent
 * ------------------------------------------------------------------------------------ */

static lahar_status note_sent(void *context, const lahar_prov_record *record)
{
    const lahar_prov_event *event = lahar_prov_record_event(record);
    size_t count = 0;
    const lahar_pair *pairs = lahar_prov_record_effective(record, &count);
    (void)fprintf(context, "%lld %.*s", (long long)event->time_ns, (int)event->transit_uri.size,
                  (const char *)event->transit_uri.data);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(context, " %.*s=%.*s", (int)pairs[i].key.size,
                      (const char *)pairs[i].key.data, (int)pairs[i].value.size,
                      (const char *)pairs[i].value.data);
    }
    (void)fputc(';', context);
    return LAHAR_OK;
}

Test(sent, says_when_where_and_as_what_or_never)
{
    static const lahar_pair previous[] = {{{"filename", 8}, {"a", 1}, false},
                                          {{"kept", 4}, {"k", 1}, false}};
    static const lahar_pair updated[] = {{{"filename", 8}, {"b", 1}, false}};
    struct prov_store prov;
    char *text = NULL;
    size_t size = 0;
    prov_store_open(&prov, NULL);
    lahar_prov_sent sent = {.struct_size = sizeof sent};
    cr_assert_eq(lahar_prov_sent_of(prov.provenance, bytes_of("u"), NULL, NULL, &sent, NULL),
                 LAHAR_OK);
    cr_assert(!sent.has_events && sent.sent_count == 0);
    put(&prov, LAHAR_PROV_CREATE, "v", 7, NULL, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_UPLOAD, "u", 20, NULL, NULL);
    put_event(&prov, &event);
    event = make_event(LAHAR_PROV_SEND, "u", 10, NULL, NULL);
    event.transit_uri = bytes_of("http://first");
    event.previous = previous;
    event.previous_count = 2;
    event.updated = updated;
    event.updated_count = 1;
    put_event(&prov, &event);
    FILE *file = open_memstream(&text, &size);
    cr_assert_eq(lahar_prov_sent_of(prov.provenance, bytes_of("u"), note_sent, file, &sent, NULL),
                 LAHAR_OK);
    (void)fclose(file);
    cr_assert_str_eq(text, "10000000 http://first filename=b kept=k;20000000 http://x;");
    free(text);
    cr_assert_eq(sent.sent_count, 2);
    cr_assert_eq(lahar_prov_sent_of(prov.provenance, bytes_of("v"), NULL, NULL, &sent, NULL),
                 LAHAR_OK);
    cr_assert_eq(sent.sent_count, 0);
    cr_assert(sent.has_events && !sent.is_partial);
    cr_assert_eq(sent.earliest_id, 1);
    cr_assert_eq(sent.earliest_time_ns, 7000000);
    prov_store_close(&prov);
}
