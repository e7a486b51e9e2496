/* What a careless or hostile host may pass: refused with a reason, or answered rightly. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prov_store.h"

Test(hostile, types_that_do_not_exist_are_refused)
{
    static const int types[] = {-1, 18, 32, 1000000};
    struct prov_store prov;
    lahar_session *session = NULL;
    const lahar_flowfile flowfile = {.uuid = bytes_of("u")};
    prov_store_open(&prov, NULL);
    cr_assert_eq(lahar_session_open(prov.provenance, bytes_of("c"), bytes_of("t"), &session, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_session_take(session, &flowfile, NULL), LAHAR_OK);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        lahar_prov_event event = make_event(LAHAR_PROV_DROP, "u", 1, NULL, NULL);
        event.type = (lahar_prov_type)types[i];
        cr_assert_eq(lahar_prov_append(prov.provenance, &event, 1, NULL, NULL, NULL),
                     LAHAR_INVALID);
        cr_assert_eq(lahar_session_emit(session, &event, false, NULL), LAHAR_INVALID);
        cr_assert_eq(lahar_session_emit(session, &event, true, NULL), LAHAR_INVALID);
        cr_assert_str_eq(lahar_prov_type_name(event.type), "UNKNOWN");
    }
    cr_assert_eq(lahar_session_commit(session, NULL, NULL, NULL, NULL), LAHAR_OK);
    lahar_session_close(session);
    cr_assert_eq(count_of(&prov, "*"), 0);
    prov_store_close(&prov);
}

Test(hostile, fields_that_are_absent_or_empty_are_told_apart)
{
    struct prov_store prov;
    lahar_error error = {.status = LAHAR_OK};
    prov_store_open(&prov, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_DROP, "", 1, NULL, NULL);
    cr_assert_eq(lahar_prov_append(prov.provenance, &event, 1, NULL, NULL, &error), LAHAR_INVALID);
    cr_assert_not_null(strstr(error.message, "a FlowFile uuid"), "%s", error.message);
    event = make_event(LAHAR_PROV_SEND, "u", 1, NULL, NULL);
    const lahar_pair pairs[] = {{bytes_of(""), bytes_of(""), false},
                                {bytes_of("null"), bytes_of(NULL), true}};
    event.component = event.details = event.transit_uri = event.source_queue = bytes_of("");
    event.claim.container = bytes_of("");
    event.updated = pairs;
    event.updated_count = 2;
    cr_assert_eq(lahar_prov_append(prov.provenance, NULL, 0, NULL, NULL, NULL), LAHAR_OK);
    const uint64_t id = put_event(&prov, &event);
    for (int i = 0; i < 2; i++) {
        lahar_prov_record *record = NULL;
        size_t count = 0;
        cr_assert_eq(lahar_prov_get(prov.provenance, id, &record, NULL), LAHAR_OK);
        const lahar_prov_event *read = lahar_prov_record_event(record);
        cr_assert(read->component.data != NULL && read->component.size == 0);
        cr_assert(read->details.data != NULL && read->transit_uri.data != NULL);
        cr_assert(read->claim.container.data != NULL && read->claim.id.data == NULL);
        cr_assert_null(read->relationship.data);
        cr_assert_eq(read->updated_count, 2);
        cr_assert(read->updated[1].is_null);
        const lahar_pair *effective = lahar_prov_record_effective(record, &count);
        cr_assert_eq(count, 1);
        cr_assert_eq(effective[0].key.size, 0);
        lahar_prov_record_close(record);
        uint64_t ids[2];
        cr_assert_eq(lahar_prov_latest(prov.provenance, bytes_of(""), ids, 2, &count, NULL),
                     LAHAR_OK);
        cr_assert_eq(count, 1);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

Test(hostile, events_of_forty_mebibytes_are_found_shown_cut_and_drawn)
{
    enum {
        SIZE = 40 << 20
    };
    struct prov_store prov;
    lahar_error error = {.status = LAHAR_OK};
    char *text = malloc(2 * (size_t)SIZE);
    cr_assert_not_null(text);
    memset(text, 'y', 2 * (size_t)SIZE);
    memcpy(text, "start", 5);
    lahar_pair pair = {{"long", 4}, {text, SIZE}, false};
    prov_store_open(&prov, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_CREATE, "u", 1, NULL, NULL);
    event.updated = &pair;
    event.updated_count = 1;
    const uint64_t id = put_event(&prov, &event);
    pair.value.size = 2 * (size_t)SIZE;
    cr_assert_eq(lahar_prov_append(prov.provenance, &event, 1, NULL, NULL, &error), LAHAR_TOO_BIG,
                 "%s", error.message);
    for (int i = 0; i < 2; i++) {
        lahar_prov_record *record = NULL;
        lahar_lineage_options options;
        lahar_lineage_graph graph = {.struct_size = sizeof graph};
        lahar_lineage *lineage = NULL;
        cr_assert_eq(count_of(&prov, "attr.long:start*"), 1);
        cr_assert_eq(lahar_prov_get(prov.provenance, id, &record, NULL), LAHAR_OK);
        cr_assert_eq(lahar_prov_record_event(record)->updated[0].value.size, 65536);
        lahar_prov_record_close(record);
        lahar_lineage_options_init(&options);
        options.uuid = bytes_of("u");
        cr_assert_eq(lahar_lineage_start(prov.provenance, &options, &lineage, NULL), LAHAR_OK);
        cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        lahar_lineage_graph_get(lineage, &graph);
        cr_assert_eq(graph.event_count, 1);
        lahar_lineage_close(lineage);
        prov_store_rollover(&prov);
    }
    free(text);
    prov_store_close(&prov);
}

static void expect_edges(struct prov_store *prov, const char *uuid, size_t nodes, size_t edges)
{
    lahar_lineage_options options;
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage *lineage = NULL;
    lahar_lineage_options_init(&options);
    options.uuid = bytes_of(uuid);
    options.ancestor_depth = options.descendant_depth = LAHAR_LINEAGE_ALL;
    cr_assert_eq(lahar_lineage_start(prov->provenance, &options, &lineage, NULL), LAHAR_OK);
    cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_lineage_graph_get(lineage, &graph);
    cr_assert_null(graph.problem, "%s", graph.problem);
    cr_assert_eq(graph.node_count, nodes, "%zu nodes", graph.node_count);
    cr_assert_eq(graph.edge_count, edges, "%zu edges", graph.edge_count);
    for (int i = LAHAR_LINEAGE_TREE; i <= LAHAR_LINEAGE_PROV_JSON; i++) {
        lahar_bytes text;
        cr_assert_eq(lahar_lineage_format_text(lineage, (lahar_lineage_format)i, &text, NULL),
                     LAHAR_OK);
        cr_assert_gt(text.size, 0);
    }
    lahar_lineage_close(lineage);
}

Test(hostile, relatives_named_twice_in_two_cases_count_once)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put(&prov, LAHAR_PROV_FORK, "11111111-2222-4333-8444-aaaaaaaaaaaa", 1,
        "11111111-2222-4333-8444-AAAAAAAAAAAA,11111111-2222-4333-8444-aaaaaaaaaaaa",
        "11111111-2222-4333-8444-bbbbbbbbbbbb,c,11111111-2222-4333-8444-BBBBBBBBBBBB");
    for (int i = 0; i < 2; i++) {
        /* The fork, its parent, which nothing made, and two children. */
        expect_edges(&prov, "11111111-2222-4333-8444-AAAAaaaaAAAA", 4, 3);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

/* A hook that uses the handle. */
static bool asks_back(void *context, const lahar_event *event)
{
    lahar_provenance *provenance = *(lahar_provenance *const *)context;
    static _Thread_local bool is_asking;
    uint64_t ids[4];
    size_t count = 0;
    (void)event;
    if (!is_asking) {
        is_asking = true;
        cr_assert_eq(lahar_prov_latest(provenance, bytes_of("component"), ids, 4, &count, NULL),
                     LAHAR_OK);
        is_asking = false;
    }
    return true;
}

Test(hostile, hooks_may_use_the_handle)
{
    struct prov_store prov;
    lahar_provenance_options options;
    lahar_provenance_options_init(&options);
    options.authorize = asks_back;
    options.authorize_context = &prov.provenance;
    prov_store_open(&prov, &options);
    put(&prov, LAHAR_PROV_CREATE, "u", 1, NULL, NULL);
    uint64_t ids[4];
    size_t count = 0;
    cr_assert_eq(lahar_prov_latest(prov.provenance, bytes_of("component"), ids, 4, &count, NULL),
                 LAHAR_OK);
    cr_assert_eq(count, 1);
    expect_edges(&prov, "u", 2, 1);
    prov_store_close(&prov);
}

static atomic_bool is_open;

static bool waits(void *context, const lahar_event *event)
{
    sigset_t blocked;
    (void)context;
    (void)event;
    cr_assert_eq(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    cr_assert(sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGCHLD) == 1,
              "signals are the host's");
    while (!atomic_load(&is_open)) {
        (void)usleep(1000);
    }
    return true;
}

Test(hostile, graphs_are_empty_until_they_are_computed)
{
    struct prov_store prov;
    lahar_provenance_options options;
    lahar_lineage_options of;
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage *lineage = NULL;
    lahar_bytes text = {"x", 1};
    lahar_provenance_options_init(&options);
    options.authorize = waits;
    prov_store_open(&prov, &options);
    put(&prov, LAHAR_PROV_CREATE, "u", 1, NULL, NULL);
    lahar_lineage_options_init(&of);
    of.uuid = bytes_of("u");
    cr_assert_eq(lahar_lineage_start(prov.provenance, &of, &lineage, NULL), LAHAR_OK);
    put(&prov, LAHAR_PROV_DROP, "u", 2, NULL, NULL); /* behind the snapshot that start took */
    lahar_lineage_graph_get(lineage, &graph);
    cr_assert_eq(graph.node_count, 0);
    cr_assert_eq(lahar_lineage_format_text(lineage, LAHAR_LINEAGE_JSON, &text, NULL), LAHAR_BUSY);
    cr_assert_null(text.data);
    atomic_store(&is_open, true);
    cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_lineage_graph_get(lineage, &graph);
    cr_assert_eq(graph.event_count, 1);
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}
