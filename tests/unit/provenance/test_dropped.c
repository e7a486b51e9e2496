/* Events that retention has dropped: what is answered of the rest, and how far back it reaches. */
#include <criterion/criterion.h>
#include <string.h>

#include "prov_store.h"

static uint64_t bytes_held(struct prov_store *prov)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(prov->store, &stat, NULL), LAHAR_OK);
    return stat.event_file_bytes + stat.index_bytes;
}

static lahar_status take(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    return LAHAR_OK;
}

/* FlowFile f was received (1), sent (2), and long after that dropped (4); 1 to 3 are gone. */
static void open_and_drop(struct prov_store *prov)
{
    prov_store_open(prov, NULL);
    lahar_prov_event event = make_event(LAHAR_PROV_RECEIVE, "f", 10, NULL, NULL);
    put_event(prov, &event);
    event = make_event(LAHAR_PROV_SEND, "f", 20, NULL, NULL);
    event.source_queue = bytes_of("q");
    event.has_previous_size = true;
    put_event(prov, &event);
    put(prov, LAHAR_PROV_FORK, "f", 30, "f", "g");
    prov_store_rollover(prov);
    event = make_event(LAHAR_PROV_DROP, "f", 40, NULL, NULL);
    put_event(prov, &event);
    put(prov, LAHAR_PROV_SEND, "g", 50, NULL, NULL);
    prov_store_rollover(prov);
    const lahar_retention limits = {.struct_size = sizeof limits,
                                    .max_bytes = bytes_held(prov) - 1};
    cr_assert_eq(
        lahar_retention_set(prov->store, lahar_provenance_stream(prov->provenance), &limits, NULL),
        LAHAR_OK);
    put(prov, LAHAR_PROV_ROUTE, "h", 60, NULL, NULL);
}

static void expect_sent(struct prov_store *prov, const char *uuid, uint64_t count,
                        uint64_t earliest_id, int64_t earliest_ns)
{
    lahar_prov_sent sent = {.struct_size = sizeof sent};
    cr_assert_eq(lahar_prov_sent_of(prov->provenance, bytes_of(uuid), NULL, NULL, &sent, NULL),
                 LAHAR_OK);
    cr_assert_eq(sent.sent_count, count);
    cr_assert(sent.has_events && !sent.is_partial);
    cr_assert_eq(sent.earliest_id, earliest_id);
    cr_assert_eq(sent.earliest_time_ns, earliest_ns);
}

Test(dropped, events_leave_an_answer_that_says_how_far_it_reaches)
{
    struct prov_store prov;
    open_and_drop(&prov);
    for (int i = 0; i < 2; i++) {
        expect_sent(&prov, "f", 0, 4, 40000000);
        expect_sent(&prov, "g", 1, 4, 40000000);
        expect_sent(&prov, "nobody", 0, 4, 40000000);
        cr_assert_eq(count_of(&prov, "*"), 3);
        prov_store_reopen(&prov);
    }
    prov_store_close(&prov);
}

Test(dropped, events_are_not_found_by_get_content_replay_and_expansion)
{
    struct prov_store prov;
    open_and_drop(&prov);
    for (uint64_t id = 1; id <= 3; id++) {
        lahar_prov_record *record = NULL;
        lahar_replay *replay = NULL;
        lahar_refusal refusal = LAHAR_REFUSAL_JOIN;
        lahar_lineage_options options;
        lahar_lineage *lineage = NULL;
        cr_assert_eq(lahar_prov_get(prov.provenance, id, &record, NULL), LAHAR_NOT_FOUND);
        cr_assert_eq(lahar_content_stream(prov.provenance, id, true, take, NULL, &refusal, NULL),
                     LAHAR_NOT_FOUND);
        cr_assert_eq(refusal, LAHAR_REFUSAL_NONE);
        refusal = LAHAR_REFUSAL_JOIN;
        cr_assert_eq(lahar_replay_run(prov.provenance, id, bytes_of(NULL), take, NULL, &replay,
                                      &refusal, NULL),
                     LAHAR_NOT_FOUND);
        cr_assert_eq(refusal, LAHAR_REFUSAL_NONE);
        lahar_lineage_options_init(&options);
        options.kind = LAHAR_LINEAGE_EXPAND_CHILDREN;
        options.id = id;
        cr_assert_eq(lahar_lineage_start(prov.provenance, &options, &lineage, NULL), LAHAR_OK);
        cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_NOT_FOUND);
        lahar_lineage_close(lineage);
    }
    cr_assert_eq(count_of(&prov, "type=REPLAY"), 0);
    prov_store_close(&prov);
}

Test(dropped, origins_are_marked_in_a_lineage)
{
    struct prov_store prov;
    lahar_lineage_options options;
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage *lineage = NULL;
    open_and_drop(&prov);
    lahar_lineage_options_init(&options);
    options.uuid = bytes_of("g");
    options.ancestor_depth = LAHAR_LINEAGE_ALL;
    cr_assert_eq(lahar_lineage_start(prov.provenance, &options, &lineage, NULL), LAHAR_OK);
    cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_lineage_graph_get(lineage, &graph);
    cr_assert_eq(graph.event_count, 1);
    cr_assert_eq(graph.node_count, 2);
    cr_assert(graph.nodes[1].has_no_origin);
    cr_assert(!graph.is_truncated);
    lahar_lineage_close(lineage);
    prov_store_close(&prov);
}
