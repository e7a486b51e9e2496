/* The host's authorization hook: what it hides is absent from every answer, in memory, rolled and
 * half of each, whoever asks at the same time; lineages keep a placeholder. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "prov_store.h"

enum {
    EVENTS = 1200, /* ids 1 .. EVENTS; every third is hidden */
    HIDDEN = EVENTS / 3,
    SEEN = EVENTS - HIDDEN,
    ASKERS = 4
};

/* Events of the component "secret" are hidden. */
static bool may_see(void *context, const lahar_event *event)
{
    const lahar_provenance *provenance = *(lahar_provenance *const *)context;
    lahar_prov_record *record = NULL;
    bool is_secret = false;
    if (lahar_prov_record_of((lahar_provenance *)(uintptr_t)provenance, event, &record, NULL) ==
        LAHAR_OK) {
        const lahar_bytes component = lahar_prov_record_event(record)->component;
        is_secret = component.size == 6 && memcmp(component.data, "secret", 6) == 0;
    }
    lahar_prov_record_close(record);
    return !is_secret;
}

/* Event n (from 1): of FlowFile f<n % 4>, SEND and ROUTE in turn, hidden when 3 divides n. */
static void fill(struct prov_store *prov, int from, int to)
{
    static const char *const uuids[] = {"f0", "f1", "f2", "f3"};
    static const lahar_pair shown[] = {{{"k", 1}, {"shown", 5}, false}};
    static const lahar_pair hidden[] = {{{"k", 1}, {"hidden", 6}, false}};
    for (int n = from; n <= to; n++) {
        lahar_prov_event event = make_event(n % 2 == 0 ? LAHAR_PROV_ROUTE : LAHAR_PROV_SEND,
                                            uuids[n % 4], n, NULL, NULL);
        event.component = bytes_of(n % 3 == 0 ? "secret" : "open");
        event.updated = n % 3 == 0 ? hidden : shown;
        event.updated_count = 1;
        event.size = 1;
        put_event(prov, &event);
    }
}

static void open_store(struct prov_store *prov)
{
    lahar_provenance_options options;
    lahar_provenance_options_init(&options);
    options.authorize = may_see;
    options.authorize_context = &prov->provenance;
    prov_store_open(prov, &options);
}

static lahar_query *search(struct prov_store *prov, const char *name, const char *value)
{
    const lahar_prov_term term = {bytes_of(name), bytes_of(value), false};
    lahar_prov_search wanted;
    lahar_query *query = NULL;
    lahar_prov_search_init(&wanted);
    wanted.terms = &term;
    wanted.term_count = name == NULL ? 0 : 1;
    cr_assert_eq(lahar_prov_search_open(prov->provenance, &wanted, &query, NULL), LAHAR_OK);
    return query;
}

static void expect_search(struct prov_store *prov, const char *name, const char *value,
                          uint64_t count)
{
    lahar_query *query = search(prov, name, value);
    lahar_query_result result = {.struct_size = sizeof result};
    const lahar_event *event = NULL;
    uint64_t seen = 0;
    while (lahar_query_next(query, &event, NULL) == LAHAR_OK) {
        cr_assert_neq(event->id % 3, 0);
        seen++;
    }
    cr_assert_eq(seen, count);
    cr_assert_eq(lahar_query_result_get(query, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.total, count);
    cr_assert_eq(result.relation, LAHAR_RELATION_EXACT);
    lahar_query_close(query);
}

static void expect_facets(struct prov_store *prov)
{
    static const char *const names[] = {"component", "attr.k"};
    static const char *const values[] = {"open", "shown"};
    lahar_query *query = search(prov, NULL, NULL);
    for (size_t i = 0; i < 2; i++) {
        lahar_facet facet = {.struct_size = sizeof facet};
        cr_assert_eq(lahar_query_facet(query, names[i], 0, &facet, NULL), LAHAR_OK);
        cr_assert_eq(facet.event_count, SEEN);
        cr_assert_eq(facet.value_count, 1, "%s", names[i]);
        cr_assert_eq(facet.distinct_count, 1);
        cr_assert_eq(facet.values[0].count, SEEN);
        cr_assert_eq(memcmp(facet.values[0].value.data, values[i], strlen(values[i])), 0);
    }
    const lahar_histogram_bucket *buckets = NULL;
    size_t bucket_count = 0;
    uint64_t sum = 0;
    cr_assert_eq(lahar_query_histogram(query, 100000000, &buckets, &bucket_count, NULL), LAHAR_OK);
    for (size_t i = 0; i < bucket_count; i++) {
        sum += buckets[i].count;
    }
    cr_assert_eq(sum, SEEN);
    lahar_query_close(query);
}

static void expect_scan(struct prov_store *prov)
{
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    uint64_t seen = 0;
    lahar_scan_options_init(&options);
    options.authorize = may_see;
    options.authorize_context = &prov->provenance;
    cr_assert_eq(lahar_scan(prov->store, &options, &cursor, NULL), LAHAR_OK);
    while (lahar_cursor_next(cursor, &event, NULL) == LAHAR_OK) {
        cr_assert_neq(event->id % 3, 0);
        seen++;
    }
    cr_assert_eq(seen, SEEN);
    lahar_cursor_close(cursor);
}

static lahar_status add_up(void *context, lahar_prov_group group, lahar_bytes key,
                           uint64_t event_count, uint64_t size_sum)
{
    uint64_t *sums = context;
    cr_assert(key.size != 6 || memcmp(key.data, "secret", 6) != 0);
    cr_assert_eq(event_count, size_sum);
    sums[group] += event_count;
    return LAHAR_OK;
}

static lahar_status count_sent(void *context, const lahar_prov_record *record)
{
    cr_assert_neq(lahar_prov_record_event(record)->id % 3, 0);
    (*(uint64_t *)context)++;
    return LAHAR_OK;
}

static void expect_provenance(struct prov_store *prov)
{
    uint64_t sums[3] = {0};
    uint64_t ids[4];
    size_t count = 0;
    uint64_t visited = 0;
    lahar_prov_sent sent = {.struct_size = sizeof sent};
    cr_assert_eq(lahar_prov_statistics(prov->provenance, "*", add_up, sums, NULL), LAHAR_OK);
    cr_assert(sums[0] == SEEN && sums[1] == SEEN && sums[2] == SEEN);
    cr_assert_eq(lahar_prov_latest(prov->provenance, bytes_of("secret"), ids, 4, &count, NULL),
                 LAHAR_OK);
    cr_assert_eq(count, 0);
    cr_assert_eq(
        lahar_prov_sent_of(prov->provenance, bytes_of("f1"), count_sent, &visited, &sent, NULL),
        LAHAR_OK);
    /* n = 1, 5, 9, ... without the multiples of 3: two in three. */
    cr_assert_eq(sent.sent_count, EVENTS / 4 * 2 / 3);
    cr_assert_eq(visited, sent.sent_count);
    cr_assert_eq(sent.earliest_id, 1);
}

static void expect_lineage(struct prov_store *prov)
{
    lahar_lineage_options options;
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage *lineage = NULL;
    lahar_lineage_options_init(&options);
    options.uuid = bytes_of("f1");
    cr_assert_eq(lahar_lineage_start(prov->provenance, &options, &lineage, NULL), LAHAR_OK);
    cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_lineage_graph_get(lineage, &graph);
    cr_assert_eq(graph.event_count, EVENTS / 4);
    for (size_t i = 0; i < graph.event_count; i++) {
        const lahar_lineage_node *node = &graph.nodes[i];
        cr_assert_eq(node->is_hidden, node->id % 3 == 0);
        cr_assert_eq(node->type.size, node->is_hidden ? 7 : 4);
        cr_assert_eq(memcmp(node->type.data, node->is_hidden ? "UNKNOWN" : "SEND", node->type.size),
                     0);
        cr_assert_eq(node->transit_uri.data == NULL, node->is_hidden);
        cr_assert_eq(node->component.size, node->is_hidden ? 6 : 4);
        cr_assert_eq(node->time_ns, (int64_t)node->id * 1000000);
        cr_assert_eq(node->uuid.size, 2);
    }
    lahar_lineage_close(lineage);
}

static lahar_status take(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    return LAHAR_OK;
}

static void expect_denied(struct prov_store *prov)
{
    lahar_prov_record *record = NULL;
    lahar_replay *replay = NULL;
    lahar_refusal refusal = LAHAR_REFUSAL_JOIN;
    cr_assert_eq(lahar_prov_get(prov->provenance, 3, &record, NULL), LAHAR_DENIED);
    cr_assert_eq(lahar_content_stream(prov->provenance, 3, true, take, NULL, &refusal, NULL),
                 LAHAR_DENIED);
    cr_assert_eq(refusal, LAHAR_REFUSAL_NONE);
    cr_assert_eq(
        lahar_replay_run(prov->provenance, 3, bytes_of("q"), take, NULL, &replay, &refusal, NULL),
        LAHAR_DENIED);
    cr_assert_null(replay);
}

static void expect_all(struct prov_store *prov)
{
    expect_search(prov, NULL, NULL, SEEN);
    expect_search(prov, "ComponentID", "secret", 0);
    expect_search(prov, "FlowFileUUID", "f3", EVENTS / 4 * 2 / 3);
    expect_search(prov, "k", "*", SEEN);
    expect_scan(prov);
    expect_facets(prov);
    expect_provenance(prov);
    expect_lineage(prov);
    expect_denied(prov);
}

static void *ask_all(void *context)
{
    expect_all(context);
    return NULL;
}

Test(authorization, hides_events_from_every_answer_whoever_asks)
{
    struct prov_store prov;
    pthread_t askers[ASKERS];
    open_store(&prov);
    fill(&prov, 1, EVENTS / 2);
    prov_store_rollover(&prov);
    fill(&prov, EVENTS / 2 + 1, EVENTS);
    expect_all(&prov); /* half of them in memory */
    prov_store_rollover(&prov);
    for (int i = 0; i < ASKERS; i++) {
        cr_assert_eq(pthread_create(&askers[i], NULL, ask_all, &prov), 0);
    }
    for (int i = 0; i < ASKERS; i++) {
        (void)pthread_join(askers[i], NULL);
    }
    prov_store_reopen(&prov);
    expect_all(&prov);
    prov_store_close(&prov);
}

/* NiFi's graph of a FlowFile whose fork may not be seen: the children's events are still there, the
 * fork is a placeholder without parents and children. */
Test(authorization, tells_nothing_of_the_relatives_in_a_hidden_event)
{
    struct prov_store prov;
    open_store(&prov);
    put(&prov, LAHAR_PROV_CREATE, "p", 1, NULL, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_FORK, "p", 2, "p", "c1,c2");
    event.component = bytes_of("secret");
    put_event(&prov, &event);
    put(&prov, LAHAR_PROV_DROP, "c1", 3, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        lahar_lineage_options options;
        lahar_lineage_graph graph = {.struct_size = sizeof graph};
        lahar_lineage *lineage = NULL;
        lahar_lineage_options_init(&options);
        options.uuid = bytes_of("p");
        options.descendant_depth = LAHAR_LINEAGE_ALL;
        cr_assert_eq(lahar_lineage_start(prov.provenance, &options, &lineage, NULL), LAHAR_OK);
        cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        lahar_lineage_graph_get(lineage, &graph);
        cr_assert_eq(graph.event_count, 2, "CREATE and the placeholder");
        cr_assert(graph.nodes[1].is_hidden);
        cr_assert_eq(graph.node_count, 3, "and the FlowFile itself");
        lahar_lineage_close(lineage);
        lineage = NULL;
        options.kind = LAHAR_LINEAGE_EXPAND_CHILDREN;
        options.id = 2;
        cr_assert_eq(lahar_lineage_start(prov.provenance, &options, &lineage, NULL), LAHAR_OK);
        cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_DENIED);
        lahar_lineage_close(lineage);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}
