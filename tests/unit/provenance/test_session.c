/* Sessions: what a commit appends, what is filled in, what a rollback leaves. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "prov_store.h"

struct fixture {
    struct prov_store prov;
    lahar_session *session;
};

static void fixture_open(struct fixture *fixture)
{
    lahar_error error = {.status = LAHAR_OK};
    prov_store_open(&fixture->prov, NULL);
    cr_assert_eq(lahar_session_open(fixture->prov.provenance, bytes_of("processor"),
                                    bytes_of("UpdateAttribute"), &fixture->session, &error),
                 LAHAR_OK, "%s", error.message);
}

static void fixture_close(struct fixture *fixture)
{
    lahar_session_close(fixture->session);
    prov_store_close(&fixture->prov);
}

static lahar_flowfile flowfile_of(const char *uuid, const lahar_pair *attributes, size_t count)
{
    return (lahar_flowfile){.uuid = bytes_of(uuid),
                            .attributes = attributes,
                            .attribute_count = count,
                            .size = 10,
                            .entry_ns = 1000,
                            .lineage_start_ns = 500,
                            .queue = bytes_of("queue-1")};
}

static void take(struct fixture *fixture, const char *uuid, const lahar_pair *attributes,
                 size_t count)
{
    const lahar_flowfile flowfile = flowfile_of(uuid, attributes, count);
    cr_assert_eq(lahar_session_take(fixture->session, &flowfile, NULL), LAHAR_OK);
}

static void create(struct fixture *fixture, const char *uuid, const lahar_bytes *parents,
                   size_t parent_count)
{
    lahar_flowfile flowfile = flowfile_of(uuid, NULL, 0);
    flowfile.queue = bytes_of(NULL);
    cr_assert_eq(lahar_session_create(fixture->session, &flowfile, parents, parent_count, NULL),
                 LAHAR_OK);
}

static void update(struct fixture *fixture, const char *uuid, const lahar_pair *attributes,
                   size_t count)
{
    const lahar_flowfile flowfile = flowfile_of(uuid, attributes, count);
    cr_assert_eq(lahar_session_update(fixture->session, &flowfile, NULL), LAHAR_OK);
}

static lahar_status emit(struct fixture *fixture, lahar_prov_type type, const char *uuid,
                         bool force)
{
    const lahar_prov_event event = make_event(type, uuid, 1, NULL, NULL);
    return lahar_session_emit(fixture->session, &event, force, NULL);
}

static size_t commit(struct fixture *fixture)
{
    lahar_error error = {.status = LAHAR_OK};
    size_t count = 0;
    cr_assert_eq(lahar_session_commit(fixture->session, NULL, NULL, &count, &error), LAHAR_OK, "%s",
                 error.message);
    return count;
}

/* "FORK p[p>a,b] CREATE c[>]" of all events. */
static char *told(struct fixture *fixture)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *raw = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    const char *separator = "";
    cr_assert_eq(lahar_scan(fixture->prov.store, NULL, &cursor, NULL), LAHAR_OK);
    while (lahar_cursor_next(cursor, &raw, NULL) == LAHAR_OK) {
        lahar_prov_record *record = NULL;
        cr_assert_eq(lahar_prov_record_of(fixture->prov.provenance, raw, &record, NULL), LAHAR_OK);
        const lahar_prov_event *event = lahar_prov_record_event(record);
        (void)fprintf(file, "%s%s %.*s[", separator, lahar_prov_type_name(event->type),
                      (int)event->uuid.size, (const char *)event->uuid.data);
        for (size_t i = 0; i < event->parent_count; i++) {
            (void)fprintf(file, "%s%.*s", i == 0 ? "" : ",", (int)event->parents[i].size,
                          (const char *)event->parents[i].data);
        }
        (void)fputc('>', file);
        for (size_t i = 0; i < event->child_count; i++) {
            (void)fprintf(file, "%s%.*s", i == 0 ? "" : ",", (int)event->children[i].size,
                          (const char *)event->children[i].data);
        }
        (void)fputc(']', file);
        separator = " ";
        lahar_prov_record_close(record);
    }
    lahar_cursor_close(cursor);
    (void)fclose(file);
    return text;
}

static void expect_told(struct fixture *fixture, const char *expected)
{
    char *text = told(fixture);
    cr_assert_str_eq(text, expected);
    free(text);
}

Test(session, tells_events_with_attributes_as_committed_and_send_as_emitted)
{
    static const lahar_pair first[] = {{{"filename", 8}, {"a", 1}, false},
                                       {{"gone", 4}, {"x", 1}, false},
                                       {{"same", 4}, {"s", 1}, false}};
    static const lahar_pair second[] = {{{"filename", 8}, {"b", 1}, false},
                                        {{"gone", 4}, {"x", 1}, false},
                                        {{"same", 4}, {"s", 1}, false}};
    static const lahar_pair third[] = {{{"filename", 8}, {"c", 1}, false},
                                       {{"same", 4}, {"s", 1}, false}};
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "u", first, 3);
    update(&fixture, "u", second, 3);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_SEND, "u", false), LAHAR_OK);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_ADDINFO, "u", false), LAHAR_OK);
    update(&fixture, "u", third, 2);
    cr_assert_eq(commit(&fixture), 2);
    expect_told(&fixture, "SEND u[>] ADDINFO u[>]");
    cr_assert_eq(count_of(&fixture.prov, "type=SEND attr.filename=b attr.gone=x attr.same=s "
                                         "prev.filename=a changed:filename"),
                 1);
    cr_assert_eq(count_of(&fixture.prov, "type=SEND changed:same"), 0);
    cr_assert_eq(count_of(&fixture.prov, "type=ADDINFO attr.filename=c attr.same=s prev.gone=x "
                                         "changed:gone NOT attr.gone:*"),
                 1);
    cr_assert_eq(count_of(&fixture.prov, "component=processor component_type=UpdateAttribute "
                                         "source_queue=queue-1 size=10 previous_size=10"),
                 2);
    fixture_close(&fixture);
}

Test(session, writes_nothing_on_rollback_but_what_was_forced)
{
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "u", NULL, 0);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_SEND, "u", false), LAHAR_OK);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_UPLOAD, "u", true), LAHAR_OK);
    lahar_session_rollback(fixture.session);
    expect_told(&fixture, "UPLOAD u[>]");
    cr_assert_eq(commit(&fixture), 0);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_SEND, "u", false), LAHAR_NOT_FOUND);
    take(&fixture, "u", NULL, 0);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_SEND, "u", false), LAHAR_OK);
    cr_assert_eq(commit(&fixture), 1);
    expect_told(&fixture, "UPLOAD u[>] SEND u[>]");
    fixture_close(&fixture);
}

Test(session, puts_forks_first_then_joins_then_what_was_emitted)
{
    static const lahar_bytes parent[] = {{"p", 1}};
    static const lahar_bytes both[] = {{"p", 1}, {"q", 1}};
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "p", NULL, 0);
    take(&fixture, "q", NULL, 0);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_SEND, "p", false), LAHAR_OK);
    create(&fixture, "a", parent, 1);
    create(&fixture, "j", both, 2);
    create(&fixture, "b", parent, 1);
    create(&fixture, "n", NULL, 0);
    cr_assert_eq(lahar_session_remove(fixture.session, bytes_of("b"), NULL), LAHAR_OK);
    cr_assert_eq(commit(&fixture), 4);
    expect_told(&fixture, "FORK p[p>a,b] JOIN j[p,q>j] SEND p[>] CREATE n[>]");
    fixture_close(&fixture);
}

Test(session, drops_a_fork_whose_only_child_was_removed)
{
    static const lahar_bytes parent[] = {{"p", 1}};
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "p", NULL, 0);
    create(&fixture, "a", parent, 1);
    cr_assert_eq(lahar_session_remove(fixture.session, bytes_of("a"), NULL), LAHAR_OK);
    cr_assert_eq(commit(&fixture), 0);
    expect_told(&fixture, "");
    fixture_close(&fixture);
}

Test(session, derives_what_nobody_told)
{
    static const lahar_pair attributes[] = {{{"k", 1}, {"v", 1}, false}};
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "content", NULL, 0);
    take(&fixture, "attributes", NULL, 0);
    take(&fixture, "untouched", NULL, 0);
    take(&fixture, "told", NULL, 0);
    take(&fixture, "removed", NULL, 0);
    take(&fixture, "ended", NULL, 0);
    lahar_flowfile changed = flowfile_of("content", attributes, 1);
    changed.claim = (lahar_claim){.container = bytes_of("c"),
                                  .section = bytes_of("1"),
                                  .id = bytes_of("2"),
                                  .has_offset = true};
    cr_assert_eq(lahar_session_update(fixture.session, &changed, NULL), LAHAR_OK);
    update(&fixture, "attributes", attributes, 1);
    update(&fixture, "told", attributes, 1);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_ROUTE, "told", false), LAHAR_OK);
    cr_assert_eq(lahar_session_remove(fixture.session, bytes_of("removed"), NULL), LAHAR_OK);
    cr_assert_eq(lahar_session_transfer(fixture.session, bytes_of("ended"), bytes_of("failure"),
                                        bytes_of(NULL), true, NULL),
                 LAHAR_OK);
    cr_assert_eq(commit(&fixture), 5);
    expect_told(&fixture, "ROUTE told[>] CONTENT_MODIFIED content[>] "
                          "ATTRIBUTES_MODIFIED attributes[>] DROP removed[>] DROP ended[>]");
    cr_assert_eq(count_of(&fixture.prov, "claim.id=2 NOT prev_claim.id:*"), 1);
    cr_assert_eq(count_of(&fixture.prov, "type=DROP details=\"Auto-Terminated by failure "
                                         "Relationship\""),
                 1);
    fixture_close(&fixture);
}

Test(session, forgets_a_route_back_to_its_own_queue)
{
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "back", NULL, 0);
    take(&fixture, "away", NULL, 0);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_ROUTE, "back", false), LAHAR_OK);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_ROUTE, "away", false), LAHAR_OK);
    cr_assert_eq(lahar_session_transfer(fixture.session, bytes_of("back"), bytes_of("retry"),
                                        bytes_of("queue-1"), false, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_session_transfer(fixture.session, bytes_of("away"), bytes_of("ok"),
                                        bytes_of("queue-2"), false, NULL),
                 LAHAR_OK);
    cr_assert_eq(commit(&fixture), 1);
    expect_told(&fixture, "ROUTE away[>]");
    fixture_close(&fixture);
}

Test(session, clones_with_the_attributes_of_the_moment)
{
    static const lahar_pair first[] = {{{"k", 1}, {"1", 1}, false}};
    static const lahar_pair second[] = {{{"k", 1}, {"2", 1}, false}};
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "u", first, 1);
    cr_assert_eq(lahar_session_clone(fixture.session, bytes_of("u"), bytes_of("v"), NULL),
                 LAHAR_OK);
    update(&fixture, "u", second, 1);
    cr_assert_eq(commit(&fixture), 1);
    expect_told(&fixture, "CLONE u[u>v]");
    cr_assert_eq(count_of(&fixture.prov, "type=CLONE attr.k=1"), 1);
    fixture_close(&fixture);
}

Test(session, checks_the_rules_when_an_event_is_emitted)
{
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "u", NULL, 0);
    lahar_prov_event event = make_event(LAHAR_PROV_SEND, "u", 1, NULL, NULL);
    event.transit_uri = bytes_of(NULL);
    cr_assert_eq(lahar_session_emit(fixture.session, &event, false, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_session_emit(fixture.session, &event, true, NULL), LAHAR_INVALID);
    const lahar_flowfile again = flowfile_of("u", NULL, 0);
    cr_assert_eq(lahar_session_take(fixture.session, &again, NULL), LAHAR_EXISTS);
    cr_assert_eq(commit(&fixture), 0);
    fixture_close(&fixture);
}

Test(session, is_one_batch_with_consecutive_ids)
{
    struct fixture fixture;
    uint64_t first_id = 0;
    size_t count = 0;
    fixture_open(&fixture);
    put(&fixture.prov, LAHAR_PROV_CREATE, "x", 1, NULL, NULL);
    for (int i = 0; i < 100; i++) {
        static char names[100][16];
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        create(&fixture, names[i], NULL, 0);
    }
    cr_assert_eq(lahar_session_commit(fixture.session, NULL, &first_id, &count, NULL), LAHAR_OK);
    cr_assert_eq(first_id, 2);
    cr_assert_eq(count, 100);
    uint64_t ids[100];
    size_t latest = 0;
    cr_assert_eq(
        lahar_prov_latest(fixture.prov.provenance, bytes_of("processor"), ids, 100, &latest, NULL),
        LAHAR_OK);
    cr_assert_eq(latest, 100);
    cr_assert_eq(ids[0], 101);
    fixture_close(&fixture);
}

Test(session, forks_whatever_the_case_of_uuids)
{
    static const lahar_bytes parent[] = {{"7F53C48E-29D7-4388-94DD-7A358F948A40", 36}};
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "7f53c48e-29d7-4388-94dd-7a358f948a40", NULL, 0);
    create(&fixture, "a", parent, 1);
    cr_assert_eq(commit(&fixture), 1);
    expect_told(&fixture, "FORK 7f53c48e-29d7-4388-94dd-7a358f948a40"
                          "[7f53c48e-29d7-4388-94dd-7a358f948a40>a]");
    const lahar_flowfile again = flowfile_of("7F53C48E-29D7-4388-94DD-7A358F948A40", NULL, 0);
    take(&fixture, "7f53c48e-29d7-4388-94dd-7a358f948a40", NULL, 0);
    cr_assert_eq(lahar_session_take(fixture.session, &again, NULL), LAHAR_EXISTS);
    fixture_close(&fixture);
}

/* "FORK>a a>ROUTE": the edges of a FlowFile's lineage. */
static char *edges_of(struct fixture *fixture, const char *uuid)
{
    lahar_lineage_options options;
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage *lineage = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    lahar_lineage_options_init(&options);
    options.uuid = bytes_of(uuid);
    cr_assert_eq(lahar_lineage_start(fixture->prov.provenance, &options, &lineage, NULL), LAHAR_OK);
    cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_lineage_graph_get(lineage, &graph);
    for (size_t i = 0; i < graph.edge_count; i++) {
        for (int end = 0; end < 2; end++) {
            const lahar_lineage_node *node =
                &graph.nodes[end == 0 ? graph.edges[i].from : graph.edges[i].to];
            const lahar_bytes name = node->is_event ? node->type : node->uuid;
            (void)fprintf(file, "%s%.*s",
                          end != 0 ? ">"
                          : i == 0 ? ""
                                   : " ",
                          (int)name.size, (const char *)name.data);
        }
    }
    lahar_lineage_close(lineage);
    (void)fclose(file);
    return text;
}

Test(session, tells_what_was_done_in_its_order)
{
    static const lahar_bytes parents[] = {{"p", 1}, {"q", 1}};
    static const char *const expected[][2] = {{"p", "SEND>FORK FORK>JOIN"},
                                              {"a", "FORK>a a>ADDINFO"},
                                              {"j", "JOIN>j j>ADDINFO"},
                                              {"n", "CREATE>n n>ADDINFO ADDINFO>CLONE"},
                                              {"c", "CLONE>c c>ADDINFO"}};
    struct fixture fixture;
    fixture_open(&fixture);
    take(&fixture, "p", NULL, 0);
    take(&fixture, "q", NULL, 0);
    lahar_prov_event event = make_event(LAHAR_PROV_SEND, "p", 0, NULL, NULL);
    event.time_ns = LAHAR_TIME_OF_ARRIVAL;
    cr_assert_eq(lahar_session_emit(fixture.session, &event, false, NULL), LAHAR_OK);
    create(&fixture, "a", parents, 1);
    create(&fixture, "j", parents, 2);
    create(&fixture, "n", NULL, 0);
    for (int i = 1; i < 5; i++) {
        event = make_event(LAHAR_PROV_ADDINFO, expected[i][0], 0, NULL, NULL);
        event.time_ns = LAHAR_TIME_OF_ARRIVAL;
        if (i == 4) {
            cr_assert_eq(lahar_session_clone(fixture.session, bytes_of("n"), bytes_of("c"), NULL),
                         LAHAR_OK);
        }
        cr_assert_eq(lahar_session_emit(fixture.session, &event, false, NULL), LAHAR_OK);
    }
    cr_assert_eq(commit(&fixture), 9);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        char *edges = edges_of(&fixture, expected[i][0]);
        cr_expect_str_eq(edges, expected[i][1]);
        free(edges);
    }
    fixture_close(&fixture);
}

Test(session, forks_twenty_thousand_parents_in_linear_time)
{
    enum {
        COUNT = 20000
    };
    static char names[2 * COUNT][16];
    struct fixture fixture;
    fixture_open(&fixture);
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof names[i], "p%zu", i);
        (void)snprintf(names[COUNT + i], sizeof names[i], "c%zu", i);
        take(&fixture, names[i], NULL, 0);
    }
    for (size_t i = 0; i < COUNT; i++) {
        const lahar_bytes parent = bytes_of(names[i]);
        create(&fixture, names[COUNT + i], &parent, 1);
    }
    cr_assert_eq(commit(&fixture), COUNT);
    cr_assert_eq(count_of(&fixture.prov, "type=FORK entity_id=p19999 child_ids:c19999"), 1);
    cr_assert_eq(count_of(&fixture.prov, "type=FORK"), COUNT);
    fixture_close(&fixture);
}

Test(session, takes_attributes_by_the_ten_thousand)
{
    enum {
        COUNT = 20000
    };
    static char keys[COUNT][16];
    static lahar_pair before[COUNT];
    static lahar_pair after[COUNT];
    struct fixture fixture;
    fixture_open(&fixture);
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%zu", i);
        before[i] = (lahar_pair){.key = bytes_of(keys[i]), .value = bytes_of("old")};
        after[COUNT - 1 - i] = before[i];
    }
    after[0].value = bytes_of("new");
    take(&fixture, "u", before, COUNT);
    update(&fixture, "u", after, COUNT - 1);
    cr_assert_eq(commit(&fixture), 1);
    cr_assert_eq(count_of(&fixture.prov, "changed:k19999 changed:k0 NOT changed:k1 attr.k1=old "
                                         "attr.k19999=new NOT attr.k0:*"),
                 1);
    lahar_prov_record *record = NULL;
    size_t count = 0;
    cr_assert_eq(lahar_prov_get(fixture.prov.provenance, 1, &record, NULL), LAHAR_OK);
    cr_assert_eq(lahar_prov_record_event(record)->updated_count, 2);
    (void)lahar_prov_record_effective(record, &count);
    cr_assert_eq(count, COUNT - 1);
    lahar_prov_record_close(record);
    fixture_close(&fixture);
}

Test(session, starts_anew_after_commit_and_rollback)
{
    struct fixture fixture;
    size_t count = 1;
    uint64_t first_id = 1;
    fixture_open(&fixture);
    take(&fixture, "u", NULL, 0);
    cr_assert_eq(emit(&fixture, LAHAR_PROV_SEND, "u", false), LAHAR_OK);
    cr_assert_eq(commit(&fixture), 1);
    cr_assert_eq(lahar_session_commit(fixture.session, NULL, &first_id, &count, NULL), LAHAR_OK);
    cr_assert_eq(first_id, 0);
    cr_assert_eq(count, 0);
    lahar_session_rollback(fixture.session);
    lahar_session_rollback(fixture.session);
    cr_assert_eq(commit(&fixture), 0);
    take(&fixture, "u", NULL, 0);
    cr_assert_eq(commit(&fixture), 0, "nothing happened to it");
    expect_told(&fixture, "SEND u[>]");
    fixture_close(&fixture);
}

Test(session, tells_claims_unchanged_removed_added_and_changed)
{
    static const char *const names[] = {"unchanged", "removed", "added", "changed"};
    const lahar_claim one = {.container = bytes_of("c"),
                             .section = bytes_of("1"),
                             .id = bytes_of("one"),
                             .has_offset = true,
                             .offset = 5};
    lahar_claim other = one;
    other.offset = 6;
    struct fixture fixture;
    fixture_open(&fixture);
    for (int i = 0; i < 4; i++) {
        lahar_flowfile flowfile = flowfile_of(names[i], NULL, 0);
        flowfile.claim = i == 2 ? (lahar_claim){.has_size = false} : one;
        cr_assert_eq(lahar_session_take(fixture.session, &flowfile, NULL), LAHAR_OK);
        flowfile.claim = i == 0   ? one
                         : i == 1 ? (lahar_claim){.has_size = false}
                         : i == 2 ? one
                                  : other;
        flowfile.size = i == 1 ? 0 : 20;
        cr_assert_eq(lahar_session_update(fixture.session, &flowfile, NULL), LAHAR_OK);
    }
    cr_assert_eq(emit(&fixture, LAHAR_PROV_ADDINFO, "unchanged", false), LAHAR_OK);
    cr_assert_eq(commit(&fixture), 4);
    expect_told(&fixture, "ADDINFO unchanged[>] CONTENT_MODIFIED removed[>] "
                          "CONTENT_MODIFIED added[>] CONTENT_MODIFIED changed[>]");
    prov_store_rollover(&fixture.prov);
    cr_assert_eq(count_of(&fixture.prov, "entity_id=unchanged claim.offset=5 prev_claim.offset=5"),
                 1);
    cr_assert_eq(count_of(&fixture.prov, "entity_id=removed NOT claim.id:* prev_claim.id=one "
                                         "size=0 previous_size=10"),
                 1);
    cr_assert_eq(count_of(&fixture.prov, "entity_id=added claim.id=one NOT prev_claim.id:*"), 1);
    cr_assert_eq(count_of(&fixture.prov, "entity_id=changed claim.offset=6 prev_claim.offset=5"),
                 1);
    fixture_close(&fixture);
}
