/* Lineage: NiFi's worked examples, generations, limits, contradictions, authorization. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "prov_store.h"

/* --- the worked examples: graphs as NiFi 1.28.1 answers ----------------------------------------
 */

/* Event n of the examples has id n + 1. */
static void fill_examples(struct prov_store *prov)
{
    put(prov, LAHAR_PROV_RECEIVE, "u1", 0, NULL, NULL);
    put(prov, LAHAR_PROV_FORK, "u1", 1, "u1", "u2,u3");
    put(prov, LAHAR_PROV_DROP, "u1", 2, NULL, NULL);
    put(prov, LAHAR_PROV_ATTRIBUTES_MODIFIED, "u2", 3, NULL, NULL);
    put(prov, LAHAR_PROV_JOIN, "u4", 4, "u2,u3", "u4");
    put(prov, LAHAR_PROV_DROP, "u2", 5, NULL, NULL);
    put(prov, LAHAR_PROV_DROP, "u3", 5, NULL, NULL);
    put(prov, LAHAR_PROV_SEND, "u4", 6, NULL, NULL);
    put(prov, LAHAR_PROV_CLONE, "u4", 7, "u4", "u5");
    put(prov, LAHAR_PROV_REPLAY, "u4", 8, "u4", "u6");
    put(prov, LAHAR_PROV_DROP, "u4", 9, NULL, NULL);
}

static lahar_lineage_options of_uuid(const char *uuid)
{
    lahar_lineage_options options;
    lahar_lineage_options_init(&options);
    options.uuid = bytes_of(uuid);
    return options;
}

static lahar_lineage_options of_event(lahar_lineage_kind kind, uint64_t id)
{
    lahar_lineage_options options;
    lahar_lineage_options_init(&options);
    options.kind = kind;
    options.id = id;
    return options;
}

static lahar_lineage *compute(struct prov_store *prov, const lahar_lineage_options *options,
                              lahar_status expected)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_lineage *lineage = NULL;
    cr_assert_eq(lahar_lineage_start(prov->provenance, options, &lineage, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, &error), expected, "%s",
                 error.message);
    return lineage;
}

static lahar_lineage_graph graph_of(const lahar_lineage *lineage)
{
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage_graph_get(lineage, &graph);
    return graph;
}

static void put_name(FILE *file, const lahar_lineage_node *node)
{
    if (node->is_event) {
        (void)fprintf(file, "ev%llu", (unsigned long long)node->id - 1);
    } else {
        (void)fprintf(file, "%.*s", (int)node->uuid.size, (const char *)node->uuid.data);
    }
}

/* "ev0 RECEIVE;u1;|ev0-u1 u1;" */
static char *text_of(const lahar_lineage *lineage)
{
    const lahar_lineage_graph graph = graph_of(lineage);
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    for (size_t i = 0; i < graph.node_count; i++) {
        put_name(file, &graph.nodes[i]);
        if (graph.nodes[i].is_event) {
            (void)fprintf(file, " %.*s", (int)graph.nodes[i].type.size,
                          (const char *)graph.nodes[i].type.data);
        }
        (void)fputc(';', file);
    }
    (void)fputc('|', file);
    for (size_t i = 0; i < graph.edge_count; i++) {
        put_name(file, &graph.nodes[graph.edges[i].from]);
        (void)fputc('-', file);
        put_name(file, &graph.nodes[graph.edges[i].to]);
        (void)fprintf(file, " %.*s;", (int)graph.edges[i].uuid.size,
                      (const char *)graph.edges[i].uuid.data);
    }
    (void)fclose(file);
    return text;
}

static void expect_graph(struct prov_store *prov, lahar_lineage_options options,
                         const char *expected)
{
    lahar_lineage *lineage = compute(prov, &options, LAHAR_OK);
    char *text = text_of(lineage);
    cr_assert_str_eq(text, expected);
    cr_assert_null(graph_of(lineage).problem);
    cr_assert(!graph_of(lineage).is_truncated);
    cr_assert_eq(lahar_lineage_progress(lineage, NULL), 100);
    free(text);
    lahar_lineage_close(lineage);
}

static void expect_examples(struct prov_store *prov)
{
    static const char a[] = "ev0 RECEIVE;ev1 FORK;ev2 DROP;u1;|ev0-u1 u1;u1-ev1 u1;ev1-ev2 u1;";
    static const char b[] =
        "ev1 FORK;ev3 ATTRIBUTES_MODIFIED;ev4 JOIN;ev5 DROP;ev6 DROP;u2;u3;|"
        "ev1-u2 u2;ev1-u3 u3;u2-ev3 u2;ev3-ev4 u2;u3-ev4 u3;ev4-ev5 u2;ev4-ev6 u3;";
    static const char c[] = "ev4 JOIN;ev7 SEND;ev8 CLONE;ev9 REPLAY;ev10 DROP;u4;|"
                            "ev4-u4 u4;u4-ev7 u4;ev7-ev8 u4;ev8-ev9 u4;ev9-ev10 u4;";
    expect_graph(prov, of_uuid("u1"), a);
    expect_graph(prov, of_event(LAHAR_LINEAGE_EVENT, 1), a);
    expect_graph(prov, of_event(LAHAR_LINEAGE_EXPAND_PARENTS, 2), a);
    expect_graph(prov, of_event(LAHAR_LINEAGE_EXPAND_CHILDREN, 2), b);
    expect_graph(prov, of_event(LAHAR_LINEAGE_EXPAND_PARENTS, 5), b);
    expect_graph(prov, of_uuid("u4"), c);
    expect_graph(prov, of_event(LAHAR_LINEAGE_EXPAND_CHILDREN, 9), "ev8 CLONE;u5;|ev8-u5 u5;");
    expect_graph(prov, of_event(LAHAR_LINEAGE_EXPAND_CHILDREN, 10), "ev9 REPLAY;u6;|ev9-u6 u6;");
    expect_graph(prov, of_uuid("nobody"), "|");
}

Test(lineage, draws_the_worked_examples_in_memory_rolled_and_reopened)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    fill_examples(&prov);
    expect_examples(&prov);
    prov_store_rollover(&prov);
    expect_examples(&prov);
    prov_store_reopen(&prov);
    expect_examples(&prov);
    prov_store_close(&prov);
}

Test(lineage, refuses_what_cannot_be_expanded_or_found)
{
    struct prov_store prov;
    lahar_error error = {.status = LAHAR_OK};
    prov_store_open(&prov, NULL);
    fill_examples(&prov);
    lahar_lineage_options options = of_event(LAHAR_LINEAGE_EXPAND_CHILDREN, 1);
    lahar_lineage *lineage = compute(&prov, &options, LAHAR_INVALID);
    cr_assert_eq(lahar_lineage_wait(lineage, 0, &error), LAHAR_INVALID);
    cr_assert_str_eq(error.message, "an event of type RECEIVE cannot be expanded");
    cr_assert_eq(graph_of(lineage).node_count, 0);
    lahar_lineage_close(lineage);
    options = of_event(LAHAR_LINEAGE_EVENT, 100);
    lineage = compute(&prov, &options, LAHAR_NOT_FOUND);
    error = (lahar_error){.status = LAHAR_OK};
    cr_assert_eq(lahar_lineage_wait(lineage, 0, &error), LAHAR_NOT_FOUND);
    cr_assert_str_eq(error.message, "could not find event 100");
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}

Test(lineage, ignores_the_case_of_uuids)
{
    static const char lower[] = "7f53c48e-29d7-4388-94dd-7a358f948a40";
    static const char upper[] = "7F53C48E-29D7-4388-94DD-7A358F948A40";
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put(&prov, LAHAR_PROV_CREATE, upper, 1, NULL, NULL);
    put(&prov, LAHAR_PROV_DROP, lower, 2, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        lahar_lineage_options options = of_uuid(i == 0 ? lower : upper);
        lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
        cr_assert_eq(graph_of(lineage).node_count, 3);
        cr_assert_eq(graph_of(lineage).edge_count, 2);
        lahar_lineage_close(lineage);
    }
    lahar_prov_record *record = NULL;
    cr_assert_eq(lahar_prov_get(prov.provenance, 1, &record, NULL), LAHAR_OK);
    cr_assert_eq(lahar_prov_record_event(record)->uuid.size, sizeof upper - 1);
    cr_assert_eq(memcmp(lahar_prov_record_event(record)->uuid.data, upper, sizeof upper - 1), 0);
    lahar_prov_record_close(record);
    prov_store_close(&prov);
}

Test(lineage, follows_a_fork_with_unseen_parents)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put(&prov, LAHAR_PROV_FORK, "p1", 1, "p1,p2,p3", "c");
    expect_graph(&prov, of_uuid("c"), "ev0 FORK;c;|ev0-c c;");
    prov_store_close(&prov);
}

Test(lineage, fetch_goes_on_with_a_line)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put(&prov, LAHAR_PROV_CREATE, "u", 1, NULL, NULL);
    put(&prov, LAHAR_PROV_FETCH, "u", 2, NULL, NULL);
    expect_graph(&prov, of_uuid("u"), "ev0 CREATE;ev1 FETCH;u;|ev0-u u;u-ev1 u;");
    prov_store_close(&prov);
}

Test(lineage, finds_the_flowfile_of_the_source_system)
{
    static const char source[] = "urn:nifi:11111111-2222-4333-8444-555555555555";
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_RECEIVE, "mine", 1, NULL, NULL);
    event.source_system = bytes_of(source);
    put_event(&prov, &event);
    for (int i = 0; i < 2; i++) {
        expect_graph(&prov, of_uuid(source + 9), "ev0 RECEIVE;mine;|ev0-mine mine;");
        cr_assert_eq(count_of(&prov, "uuid:11111111-2222-4333-8444-555555555555"), 1);
        cr_assert_eq(count_of(&prov, "uuid=11111111-2222-4333-8444-555555555555"), 0);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

Test(lineage, says_which_flowfile_two_events_claim)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put(&prov, LAHAR_PROV_CREATE, "u", 1, NULL, NULL);
    put(&prov, LAHAR_PROV_CREATE, "u", 2, NULL, NULL);
    lahar_lineage_options options = of_uuid("u");
    lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
    cr_assert_str_eq(graph_of(lineage).problem,
                     "multiple events claim to have generated the FlowFile u");
    cr_assert_eq(graph_of(lineage).node_count, 3);
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}

/* --- generations
 * ---------------------------------------------------------------------------------- */

static void expect_generations(struct prov_store *prov, const char *uuid, uint32_t up,
                               uint32_t down, size_t events, size_t flowfiles, bool is_truncated)
{
    lahar_lineage_options options = of_uuid(uuid);
    options.ancestor_depth = up;
    options.descendant_depth = down;
    lahar_lineage *lineage = compute(prov, &options, LAHAR_OK);
    const lahar_lineage_graph graph = graph_of(lineage);
    cr_assert_eq(graph.event_count, events, "%s: %zu events", uuid, graph.event_count);
    cr_assert_eq(graph.node_count - events, flowfiles, "%s: %zu FlowFiles", uuid,
                 graph.node_count - events);
    cr_assert_eq(graph.is_truncated, is_truncated, "%s", uuid);
    lahar_lineage_close(lineage);
}

Test(lineage, follows_generations_in_both_directions)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    fill_examples(&prov);
    for (int i = 0; i < 2; i++) {
        /* u5 <- u4 <- u2, u3 <- u1: everything but what u6 alone would add. */
        expect_generations(&prov, "u5", LAHAR_LINEAGE_ALL, 0, 11, 5, false);
        expect_generations(&prov, "u5", 1, 0, 5, 2, true);
        expect_generations(&prov, "u1", 0, LAHAR_LINEAGE_ALL, 11, 6, false);
        expect_generations(&prov, "u1", 0, 1, 7, 3, true);
        expect_generations(&prov, "u4", LAHAR_LINEAGE_ALL, LAHAR_LINEAGE_ALL, 11, 6, false);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

Test(lineage, ends_in_cycles_and_loops)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put(&prov, LAHAR_PROV_FORK, "A", 1, "A", "B");
    put(&prov, LAHAR_PROV_FORK, "B", 2, "B", "C");
    put(&prov, LAHAR_PROV_FORK, "C", 3, "C", "A");
    put(&prov, LAHAR_PROV_FORK, "S", 4, "S", "S");
    expect_generations(&prov, "A", LAHAR_LINEAGE_ALL, 0, 3, 3, false);
    expect_generations(&prov, "A", LAHAR_LINEAGE_ALL, LAHAR_LINEAGE_ALL, 3, 3, false);
    expect_generations(&prov, "S", LAHAR_LINEAGE_ALL, LAHAR_LINEAGE_ALL, 1, 1, false);
    lahar_lineage_options options = of_uuid("A");
    options.ancestor_depth = LAHAR_LINEAGE_ALL;
    lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
    lahar_bytes text;
    for (int format = LAHAR_LINEAGE_TREE; format <= LAHAR_LINEAGE_PROV_JSON; format++) {
        cr_assert_eq(lahar_lineage_format_text(lineage, (lahar_lineage_format)format, &text, NULL),
                     LAHAR_OK);
        cr_assert_gt(text.size, 0);
    }
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}

Test(lineage, marks_flowfiles_whose_origin_is_not_held)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put(&prov, LAHAR_PROV_JOIN, "c", 1, "gone,here", "c");
    put(&prov, LAHAR_PROV_CREATE, "here", 0, NULL, NULL);
    lahar_lineage_options options = of_uuid("c");
    options.ancestor_depth = LAHAR_LINEAGE_ALL;
    lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
    const lahar_lineage_graph graph = graph_of(lineage);
    size_t without_origin = 0;
    for (size_t i = graph.event_count; i < graph.node_count; i++) {
        if (graph.nodes[i].has_no_origin) {
            without_origin++;
            cr_assert_eq(graph.nodes[i].uuid.size, 4);
            cr_assert_eq(memcmp(graph.nodes[i].uuid.data, "gone", 4), 0);
            cr_assert_eq(graph.nodes[i].generation, -1);
        }
    }
    cr_assert_eq(without_origin, 1);
    cr_assert_eq(graph.node_count, 5);
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}

/* count children of one parent, "c0" .. */
static uint64_t put_wide(struct prov_store *prov, size_t count)
{
    lahar_bytes *names = calloc(count, sizeof *names);
    char *texts = calloc(count, 24);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(texts + i * 24, 24, "c%zu", i);
        names[i] = bytes_of(texts + i * 24);
    }
    lahar_prov_event event = make_event(LAHAR_PROV_FORK, "p", 1, "p", NULL);
    event.children = names;
    event.child_count = count;
    const uint64_t id = put_event(prov, &event);
    free(names);
    free(texts);
    return id;
}

Test(lineage, forks_twenty_thousand_ways)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    const uint64_t id = put_wide(&prov, 20000);
    put(&prov, LAHAR_PROV_DROP, "c19999", 2, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        lahar_lineage_options options = of_event(LAHAR_LINEAGE_EXPAND_CHILDREN, id);
        lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
        cr_assert_eq(graph_of(lineage).node_count, 20002);
        cr_assert_eq(graph_of(lineage).edge_count, 20001);
        lahar_lineage_close(lineage);
        expect_generations(&prov, "c0", LAHAR_LINEAGE_ALL, LAHAR_LINEAGE_ALL, 1, 2, false);
        expect_generations(&prov, "p", 0, LAHAR_LINEAGE_ALL, 2, 20001, false);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

Test(lineage, joins_a_hundred_thousand_parents)
{
    enum {
        COUNT = 100000
    };
    static char texts[COUNT][16];
    static lahar_bytes names[COUNT];
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "p%zu", i);
        names[i] = bytes_of(texts[i]);
    }
    lahar_prov_event event = make_event(LAHAR_PROV_JOIN, "j", 2, NULL, "j");
    event.parents = names;
    event.parent_count = COUNT;
    put(&prov, LAHAR_PROV_CREATE, "p77777", 1, NULL, NULL);
    put_event(&prov, &event);
    for (int i = 0; i < 2; i++) {
        lahar_lineage_options options = of_event(LAHAR_LINEAGE_EXPAND_PARENTS, 2);
        lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
        cr_assert_eq(graph_of(lineage).node_count, 3, "CREATE, JOIN and p77777");
        lahar_lineage_close(lineage);
        expect_generations(&prov, "j", LAHAR_LINEAGE_ALL, 0, 2, COUNT + 1, false);
        expect_generations(&prov, "p0", 0, LAHAR_LINEAGE_ALL, 1, 2, false);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

Test(lineage, walks_a_chain_of_fifty_thousand)
{
    enum {
        COUNT = 50000
    };
    struct prov_store prov;
    lahar_error error = {.status = LAHAR_OK};
    prov_store_open(&prov, NULL);
    static char names[COUNT + 1][24];
    static lahar_bytes bytes[COUNT + 1];
    static lahar_prov_event events[COUNT];
    for (size_t i = 0; i <= COUNT; i++) {
        (void)snprintf(names[i], sizeof names[i], "f%zu", i + 1);
        bytes[i] = bytes_of(names[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        events[i] = make_event(LAHAR_PROV_FORK, names[i], (int64_t)i, NULL, NULL);
        events[i].parents = &bytes[i];
        events[i].children = &bytes[i + 1];
        events[i].parent_count = events[i].child_count = 1;
    }
    cr_assert_eq(lahar_prov_append(prov.provenance, events, COUNT, NULL, NULL, &error), LAHAR_OK,
                 "%s", error.message);
    for (int i = 0; i < 2; i++) {
        lahar_lineage_options options = of_uuid("f50001");
        options.ancestor_depth = LAHAR_LINEAGE_ALL;
        lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
        const lahar_lineage_graph graph = graph_of(lineage);
        size_t ancestors = 0;
        for (size_t j = graph.event_count; j < graph.node_count; j++) {
            ancestors += graph.nodes[j].generation < 0;
        }
        cr_assert_eq(ancestors, COUNT);
        cr_assert_eq(graph.event_count, COUNT);
        lahar_bytes text;
        cr_assert_eq(lahar_lineage_format_text(lineage, LAHAR_LINEAGE_TREE, &text, &error),
                     LAHAR_OK);
        lahar_lineage_close(lineage);
        expect_generations(&prov, "f50001", 10, 0, 11, 11, true);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

Test(lineage, keeps_its_limits)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    fill_examples(&prov);
    lahar_lineage_options options = of_uuid("u4");
    options.event_max = 2;
    lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
    cr_assert_eq(graph_of(lineage).event_count, 2);
    cr_assert(graph_of(lineage).is_truncated);
    lahar_lineage_close(lineage);
    options = of_uuid("u4");
    options.from_ns = 6000000;
    options.to_ns = 9000000;
    lineage = compute(&prov, &options, LAHAR_OK);
    char *text = text_of(lineage);
    cr_assert_str_eq(text, "ev7 SEND;ev8 CLONE;ev9 REPLAY;|ev7-ev8 u4;ev8-ev9 u4;");
    free(text);
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}

/* --- authorization and cancelling
 * ------------------------------------------------------------------- */

static bool hides_modification(void *context, const lahar_event *event)
{
    (void)context;
    return event->id != 4;
}

Test(lineage, shows_a_placeholder_for_what_may_not_be_seen)
{
    struct prov_store prov;
    lahar_provenance_options options;
    lahar_provenance_options_init(&options);
    options.authorize = hides_modification;
    prov_store_open(&prov, &options);
    put(&prov, LAHAR_PROV_RECEIVE, "u", 1, NULL, NULL);
    put(&prov, LAHAR_PROV_ROUTE, "u", 2, NULL, NULL);
    put(&prov, LAHAR_PROV_ADDINFO, "u", 3, NULL, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_SEND, "u", 4, NULL, NULL);
    event.transit_uri = bytes_of("http://secret");
    put_event(&prov, &event);
    put(&prov, LAHAR_PROV_DROP, "u", 5, NULL, NULL);
    lahar_lineage_options of = of_uuid("u");
    lahar_lineage *lineage = compute(&prov, &of, LAHAR_OK);
    const lahar_lineage_graph graph = graph_of(lineage);
    cr_assert_eq(graph.node_count, 6);
    const lahar_lineage_node *hidden = &graph.nodes[3];
    cr_assert(hidden->is_hidden);
    cr_assert_eq(hidden->id, 4);
    cr_assert_eq(hidden->time_ns, 4000000);
    cr_assert_eq(memcmp(hidden->type.data, "UNKNOWN", 7), 0);
    cr_assert_eq(memcmp(hidden->component.data, "component", 9), 0);
    cr_assert_eq(hidden->uuid.size, 1);
    cr_assert_null(hidden->transit_uri.data);
    lahar_lineage_close(lineage);
    of = of_event(LAHAR_LINEAGE_EVENT, 4);
    lahar_lineage_close(compute(&prov, &of, LAHAR_DENIED));
    prov_store_close(&prov);
}

/* Lets the computation reach its first event, and holds it there. */
static atomic_int gate;

static bool waits_at_gate(void *context, const lahar_event *event)
{
    (void)context;
    (void)event;
    if (atomic_load(&gate) == 0) {
        atomic_store(&gate, 1);
    }
    while (atomic_load(&gate) != 2) {
        (void)usleep(1000);
    }
    return true;
}

Test(lineage, is_cancelled_from_another_thread)
{
    struct prov_store prov;
    lahar_error error = {.status = LAHAR_OK};
    lahar_provenance_options options;
    lahar_lineage *lineage = NULL;
    lahar_provenance_options_init(&options);
    options.authorize = waits_at_gate;
    prov_store_open(&prov, &options);
    fill_examples(&prov);
    const lahar_lineage_options of = of_uuid("u4");
    cr_assert_eq(lahar_lineage_start(prov.provenance, &of, &lineage, &error), LAHAR_OK);
    while (atomic_load(&gate) == 0) {
        (void)usleep(1000);
    }
    cr_assert_lt(lahar_lineage_progress(lineage, NULL), 100);
    cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_NO_WAIT, &error), LAHAR_TIMEOUT);
    lahar_lineage_cancel(lineage);
    atomic_store(&gate, 2);
    cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_CANCELLED);
    cr_assert_eq(graph_of(lineage).node_count, 0);
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}

/* --- formats
 * ------------------------------------------------------------------------------------------ */

static void expect_text(lahar_lineage *lineage, lahar_lineage_format format, const char *expected)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_bytes text;
    cr_assert_eq(lahar_lineage_format_text(lineage, format, &text, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(text.size, strlen(expected), "%.*s", (int)text.size, (const char *)text.data);
    cr_assert_eq(memcmp(text.data, expected, text.size), 0, "%.*s", (int)text.size,
                 (const char *)text.data);
}

Test(lineage, writes_every_format)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_RECEIVE, "a\"b", 1, NULL, NULL);
    event.component = bytes_of("c");
    put_event(&prov, &event);
    put(&prov, LAHAR_PROV_DROP, "a\"b", 2, NULL, NULL);
    lahar_lineage_options options = of_uuid("a\"b");
    lahar_lineage *lineage = compute(&prov, &options, LAHAR_OK);
    expect_text(lineage, LAHAR_LINEAGE_TREE,
                "RECEIVE 1 1970-01-01T00:00:00.001Z c http://x\n"
                "  FlowFile a\"b\n"
                "  DROP 2 1970-01-01T00:00:00.002Z component\n");
    expect_text(lineage, LAHAR_LINEAGE_JSON,
                "{\"nodes\":[{\"ev\":1,\"type\":\"RECEIVE\",\"time\":\"1970-01-01T00:00:00."
                "001000000Z\",\"uuid\":\"a\\\"b\",\"component\":\"c\",\"component_type\":"
                "\"UnitTest\",\"transit_uri\":\"http://x\"},{\"ev\":2,\"type\":\"DROP\",\"time\":"
                "\"1970-01-01T00:00:00.002000000Z\",\"uuid\":\"a\\\"b\",\"component\":"
                "\"component\",\"component_type\":\"UnitTest\"},{\"ff\":\"a\\\"b\"}],\"edges\":["
                "{\"from\":\"ev1\",\"to\":\"a\\\"b\",\"uuid\":\"a\\\"b\"},{\"from\":\"a\\\"b\","
                "\"to\":\"ev2\",\"uuid\":\"a\\\"b\"}],\"percent\":100,\"truncated\":false,"
                "\"error\":null}\n");
    expect_text(lineage, LAHAR_LINEAGE_DOT,
                "digraph lineage {\n"
                "  ev1 [shape=box,label=\"RECEIVE 1\\n1970-01-01T00:00:00.001000000Z\\nc\"];\n"
                "  ev2 [shape=box,label=\"DROP 2\\n1970-01-01T00:00:00.002000000Z\\n"
                "component\"];\n"
                "  ff0 [shape=ellipse,label=\"a\\\"b\"];\n"
                "  ev1 -> ff0 [tooltip=\"a\\\"b\"];\n"
                "  ff0 -> ev2 [tooltip=\"a\\\"b\"];\n"
                "}\n");
    expect_text(lineage, LAHAR_LINEAGE_MERMAID,
                "flowchart TD\n"
                "  ev1[\"RECEIVE 1<br>1970-01-01T00:00:00.001000000Z<br>c\"]\n"
                "  ev2[\"DROP 2<br>1970-01-01T00:00:00.002000000Z<br>component\"]\n"
                "  ff0([\"a#34;b\"])\n"
                "  ev1 --> ff0\n"
                "  ff0 --> ev2\n");
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}
