/* Sessions that commit, lineages, latest events, statistics and replay by several threads over one
 * handle, while groups roll over: every answer holds what was committed before it was asked, whole
 * sessions only. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    COMMITTERS = 3,
    ASKERS = 3,
    ROUNDS = 60,
    NAME_SIZE = 32
};

struct shared {
    lahar_store *store;
    lahar_provenance *provenance;
    _Atomic unsigned rounds_done[COMMITTERS];
    atomic_bool is_over;
    _Atomic unsigned passed;
    _Atomic unsigned failed;
};

struct committer {
    struct shared *shared;
    unsigned number;
};

static void expect(struct shared *shared, bool condition, const char *what)
{
    (void)atomic_fetch_add(condition ? &shared->passed : &shared->failed, 1);
    if (!condition) {
        printf("FAIL %s\n", what);
    }
}

static lahar_bytes bytes_of(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

static void name_of(char name[NAME_SIZE], const char *kind, unsigned committer, unsigned round)
{
    (void)snprintf(name, NAME_SIZE, "%s-%u-%u", kind, committer, round);
}

/* Takes p, forks a and b from it, joins both into j, sends that: FORK, JOIN, SEND, DROP of p. */
static lahar_status commit(struct shared *shared, unsigned committer, unsigned round)
{
    static const char *const kinds[] = {"p", "a", "b", "j"};
    char names[4][NAME_SIZE];
    char component[NAME_SIZE];
    lahar_flowfile flowfiles[4];
    lahar_session *session = NULL;
    lahar_prov_event event;
    for (unsigned i = 0; i < 4; i++) {
        name_of(names[i], kinds[i], committer, round);
        flowfiles[i] = (lahar_flowfile){.uuid = bytes_of(names[i]), .size = round};
    }
    const lahar_bytes both[] = {flowfiles[1].uuid, flowfiles[2].uuid};
    (void)snprintf(component, sizeof component, "component-%u", committer);
    lahar_status status = lahar_session_open(shared->provenance, bytes_of(component),
                                             bytes_of("Stress"), &session, NULL);
    lahar_prov_event_init(&event);
    event.type = LAHAR_PROV_SEND;
    event.uuid = flowfiles[3].uuid;
    event.transit_uri = bytes_of("http://x");
    status = status == LAHAR_OK ? lahar_session_take(session, &flowfiles[0], NULL) : status;
    for (unsigned i = 1; i < 3 && status == LAHAR_OK; i++) {
        status = lahar_session_create(session, &flowfiles[i], &flowfiles[0].uuid, 1, NULL);
    }
    status =
        status == LAHAR_OK ? lahar_session_create(session, &flowfiles[3], both, 2, NULL) : status;
    status = status == LAHAR_OK ? lahar_session_emit(session, &event, false, NULL) : status;
    status = status == LAHAR_OK ? lahar_session_remove(session, flowfiles[0].uuid, NULL) : status;
    status = status == LAHAR_OK ? lahar_session_commit(session, NULL, NULL, NULL, NULL) : status;
    lahar_session_close(session);
    return status;
}

static void *commit_rounds(void *context)
{
    const struct committer *committer = context;
    struct shared *shared = committer->shared;
    for (unsigned round = 0; round < ROUNDS; round++) {
        expect(shared, commit(shared, committer->number, round) == LAHAR_OK, "commit");
        atomic_store(&shared->rounds_done[committer->number], round + 1);
        (void)usleep(500);
    }
    return NULL;
}

/* The lineage of a committed j, all generations: the four events of its session. */
static void ask_lineage(struct shared *shared, unsigned committer, unsigned round, bool cancels)
{
    char name[NAME_SIZE];
    lahar_lineage_options options;
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage *lineage = NULL;
    name_of(name, "j", committer, round);
    lahar_lineage_options_init(&options);
    options.uuid = bytes_of(name);
    options.ancestor_depth = LAHAR_LINEAGE_ALL;
    expect(shared, lahar_lineage_start(shared->provenance, &options, &lineage, NULL) == LAHAR_OK,
           "start");
    if (cancels) {
        lahar_lineage_cancel(lineage);
        const lahar_status status = lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL);
        expect(shared, status == LAHAR_OK || status == LAHAR_CANCELLED, "cancelled");
        lahar_lineage_close(lineage);
        return;
    }
    (void)lahar_lineage_progress(lineage, NULL);
    expect(shared, lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "lineage");
    lahar_lineage_graph_get(lineage, &graph);
    expect(shared, graph.event_count == 4, "events of a lineage");
    expect(shared, graph.problem == NULL && !graph.is_truncated, "a whole lineage");
    lahar_lineage_close(lineage);
}

static void ask_latest(struct shared *shared, unsigned committer)
{
    char component[NAME_SIZE];
    uint64_t ids[16];
    size_t count = 0;
    (void)snprintf(component, sizeof component, "component-%u", committer);
    expect(shared,
           lahar_prov_latest(shared->provenance, bytes_of(component), ids, 16, &count, NULL) ==
               LAHAR_OK,
           "latest");
    expect(shared, count == 4 && ids[0] == ids[3] + 3, "events of the last session");
}

static lahar_status add_up(void *context, lahar_prov_group group, lahar_bytes key,
                           uint64_t event_count, uint64_t size_sum)
{
    (void)key;
    (void)size_sum;
    *(uint64_t *)context += group == LAHAR_PROV_BY_TYPE ? event_count : 0;
    return LAHAR_OK;
}

static void *ask_rounds(void *context)
{
    struct shared *shared = context;
    for (unsigned round = 0; !atomic_load(&shared->is_over); round++) {
        const unsigned committer = round % COMMITTERS;
        const unsigned done = atomic_load(&shared->rounds_done[committer]);
        if (done != 0) {
            ask_lineage(shared, committer, (done - 1) * (round % 5) / 4, false);
            ask_lineage(shared, committer, done - 1, round % 3 == 0);
            ask_latest(shared, committer);
        }
        if (round % 16 == 0) {
            uint64_t count = 0;
            expect(shared,
                   lahar_prov_statistics(shared->provenance, "*", add_up, &count, NULL) == LAHAR_OK,
                   "statistics");
            expect(shared, count % 4 == 0, "sessions are whole");
        }
    }
    return NULL;
}

static void *roll_over(void *context)
{
    struct shared *shared = context;
    while (!atomic_load(&shared->is_over)) {
        expect(shared, lahar_rollover(shared->store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK,
               "rollover");
        (void)usleep(5000);
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *context), void *context)
{
    if (pthread_create(thread, NULL, run, context) != 0) {
        abort();
    }
}

int main(void)
{
    struct shared shared = {0};
    struct committer committers[COMMITTERS];
    pthread_t threads[COMMITTERS + ASKERS + 1];
    char directory[SCRATCH_PATH_SIZE];
    unsigned started = 0;
    scratch_create(directory);
    if (lahar_store_open(directory, NULL, 0, &shared.store, NULL) != LAHAR_OK ||
        lahar_provenance_open(shared.store, NULL, &shared.provenance, NULL) != LAHAR_OK) {
        printf("0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    for (unsigned i = 0; i < COMMITTERS; i++) {
        committers[i] = (struct committer){&shared, i};
        start(&threads[started++], commit_rounds, &committers[i]);
    }
    for (unsigned i = 0; i < ASKERS; i++) {
        start(&threads[started++], ask_rounds, &shared);
    }
    start(&threads[started++], roll_over, &shared);
    for (unsigned i = 0; i < started; i++) {
        if (i == COMMITTERS) {
            atomic_store(&shared.is_over, true);
        }
        (void)pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < COMMITTERS * ROUNDS; i++) {
        ask_lineage(&shared, i / ROUNDS, i % ROUNDS, false);
    }
    lahar_provenance_close(shared.provenance);
    expect(&shared, lahar_store_close(shared.store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "close");
    scratch_remove(directory);
    printf("%u passed, %u failed, 0 skipped\n", atomic_load(&shared.passed),
           atomic_load(&shared.failed));
    return atomic_load(&shared.failed) == 0 ? 0 : 1;
}
