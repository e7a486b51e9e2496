/* Every allocation of every operation refused once: the operation says so, and works again. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/store/store_internal.h"
#include "failing_allocator.h"
#include "prov_store.h"

static struct failing_allocator memory;

/* Without threads, so that the allocator is used by one at a time. */
static void open_store(struct prov_store *prov)
{
    lahar_options options;
    lahar_error error = {.status = LAHAR_OK};
    scratch_create(prov->directory);
    failing_allocator_init(&memory, UINT64_MAX);
    lahar_options_init(&options);
    options.allocator = &memory.allocator;
    options.backend = LAHAR_BACKEND_PWRITE;
    cr_assert_eq(lahar_store_open_with(prov->directory, &options, NULL, false, LAHAR_WAIT_FOREVER,
                                       &prov->store, &error),
                 LAHAR_OK, "%s", error.message);
    lahar_provenance_options_init(&prov->options);
    cr_assert_eq(lahar_provenance_open(prov->store, &prov->options, &prov->provenance, &error),
                 LAHAR_OK, "%s", error.message);
}

static void fill(struct prov_store *prov)
{
    static const lahar_pair pairs[] = {{{"filename", 8}, {"a", 1}, false}};
    lahar_prov_event event = make_event(LAHAR_PROV_FORK, "u1", 1, "u1", "u2,u3");
    put_event(prov, &event);
    event = make_event(LAHAR_PROV_JOIN, "u4", 2, "u2,u3", "u4");
    event.updated = event.previous = pairs;
    event.updated_count = event.previous_count = 1;
    put_event(prov, &event);
    event = make_event(LAHAR_PROV_SEND, "u4", 3, NULL, NULL);
    event.source_queue = bytes_of("q");
    event.has_previous_size = true; /* of nothing: empty content */
    event.previous = pairs;
    event.previous_count = 1;
    put_event(prov, &event);
}

static lahar_status draw(struct prov_store *prov)
{
    lahar_lineage_options options;
    lahar_lineage *lineage = NULL;
    lahar_bytes text;
    lahar_lineage_options_init(&options);
    options.uuid = bytes_of("u4");
    options.ancestor_depth = LAHAR_LINEAGE_ALL;
    lahar_status status = lahar_lineage_start(prov->provenance, &options, &lineage, NULL);
    if (status == LAHAR_OK) {
        status = lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL);
    }
    for (int i = LAHAR_LINEAGE_TREE; i <= LAHAR_LINEAGE_PROV_JSON && status == LAHAR_OK; i++) {
        status = lahar_lineage_format_text(lineage, (lahar_lineage_format)i, &text, NULL);
    }
    lahar_lineage_close(lineage);
    return status;
}

static lahar_status read_record(struct prov_store *prov)
{
    lahar_prov_record *record = NULL;
    const lahar_status status = lahar_prov_get(prov->provenance, 2, &record, NULL);
    lahar_prov_record_close(record);
    return status;
}

static lahar_status search(struct prov_store *prov)
{
    const lahar_prov_term terms[] = {{bytes_of("FlowFileUUID"), bytes_of("u4"), false},
                                     {bytes_of("Filename"), bytes_of("b*"), true}};
    lahar_prov_search wanted;
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    lahar_prov_search_init(&wanted);
    wanted.terms = terms;
    wanted.term_count = 2;
    wanted.size_max = 100;
    lahar_status status = lahar_prov_search_open(prov->provenance, &wanted, &query, NULL);
    while (status == LAHAR_OK) {
        status = lahar_query_next(query, &event, NULL);
    }
    lahar_query_close(query);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

static lahar_status ignore(void *context, lahar_prov_group group, lahar_bytes key,
                           uint64_t event_count, uint64_t size_sum)
{
    (void)context;
    (void)group;
    (void)key;
    (void)event_count;
    (void)size_sum;
    return LAHAR_OK;
}

static lahar_status count(struct prov_store *prov)
{
    return lahar_prov_statistics(prov->provenance, "*", ignore, NULL, NULL);
}

static lahar_status sent(struct prov_store *prov)
{
    lahar_prov_sent told = {.struct_size = sizeof told};
    return lahar_prov_sent_of(prov->provenance, bytes_of("u4"), NULL, NULL, &told, NULL);
}

static lahar_status latest(struct prov_store *prov)
{
    uint64_t ids[4];
    size_t found = 0;
    return lahar_prov_latest(prov->provenance, bytes_of("component"), ids, 4, &found, NULL);
}

static lahar_status take_none(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    return LAHAR_OK;
}

static lahar_status replay(struct prov_store *prov)
{
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    lahar_replay *made = NULL;
    const lahar_status status = lahar_replay_run(prov->provenance, 3, bytes_of(NULL), take_none,
                                                 NULL, &made, &refusal, NULL);
    lahar_replay_close(made);
    return status;
}

static lahar_status work(struct prov_store *prov)
{
    static const lahar_pair pairs[] = {{{"k", 1}, {"v", 1}, false}};
    const lahar_flowfile old = {.uuid = bytes_of("old"), .queue = bytes_of("q")};
    const lahar_flowfile changed = {
        .uuid = bytes_of("old"), .attributes = pairs, .attribute_count = 1};
    const lahar_flowfile fresh = {.uuid = bytes_of("new")};
    const lahar_bytes parent = bytes_of("old");
    const lahar_prov_event event = make_event(LAHAR_PROV_SEND, "old", 1, NULL, NULL);
    lahar_session *session = NULL;
    lahar_status status =
        lahar_session_open(prov->provenance, bytes_of("c"), bytes_of("t"), &session, NULL);
    if (status == LAHAR_OK) {
        status = lahar_session_take(session, &old, NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_session_create(session, &fresh, &parent, 1, NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_session_clone(session, parent, bytes_of("copy"), NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_session_update(session, &changed, NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_session_emit(session, &event, false, NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_session_commit(session, NULL, NULL, NULL, NULL);
    }
    lahar_session_close(session);
    return status;
}

/* background: steps of rollover and the like are run by the operation's own wait, and may be
 * refused memory without concern to it: they try again later. */
static void expect_survival(lahar_status (*operation)(struct prov_store *prov), bool background)
{
    enum {
        MOST = 5000
    };
    struct prov_store prov;
    open_store(&prov);
    fill(&prov);
    uint64_t refused = 0;
    lahar_status status = LAHAR_OK;
    do {
        memory.fail_at = memory.request_count + refused++;
        memory.refused_count = 0;
        status = operation(&prov);
        memory.fail_at = UINT64_MAX;
        cr_assert(status == LAHAR_OK || status == LAHAR_NO_MEMORY, "allocation %llu: %s",
                  (unsigned long long)refused - 1, lahar_status_name(status));
        if (memory.refused_count != 0 && !background) {
            cr_assert_eq(status, LAHAR_NO_MEMORY, "allocation %llu was refused unnoticed",
                         (unsigned long long)refused - 1);
        }
    } while (memory.refused_count != 0 && refused < MOST);
    cr_assert_eq(status, LAHAR_OK);
    cr_assert_gt(refused, 1);
    cr_assert_eq(operation(&prov), LAHAR_OK);
    lahar_provenance_close(prov.provenance);
    cr_assert_eq(lahar_store_close(prov.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    cr_assert_eq(memory.live_count, 0);
    scratch_remove(prov.directory);
}

Test(memory, refused_to_a_lineage)
{
    expect_survival(draw, false);
}

Test(memory, refused_to_a_record)
{
    expect_survival(read_record, false);
}

Test(memory, refused_to_a_search)
{
    expect_survival(search, false);
}

Test(memory, refused_to_statistics)
{
    expect_survival(count, false);
}

Test(memory, refused_to_what_was_sent)
{
    expect_survival(sent, false);
}

Test(memory, refused_to_latest_events)
{
    expect_survival(latest, false);
}

Test(memory, refused_to_a_replay)
{
    expect_survival(replay, true);
}

Test(memory, refused_to_a_session)
{
    expect_survival(work, false);
}
