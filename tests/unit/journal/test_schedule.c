/* Whole lives of a set of journals, decided by a seed.
 *
 * A script appends, steps journals in any order, forgets, views and dies at an operation of
 * the disk, or is killed; then recovery runs (and may itself die), the next session opens, and so
 * on. The oracle knows the row of every id and which prefix was durable at the crash: what was
 * durable is found, what is found is a prefix of what was appended, and rows are theirs. A failing
 * seed is in the message. */
#include "journal_fixture.h"

enum {
    SEEDS = 80,
    SESSIONS_MAX = 4,
    ACTIONS = 120
};

struct script {
    struct fixture f;
    uint64_t seed;
    uint64_t random;
    struct lahar_journal_session sessions[SESSIONS_MAX];
    size_t session_count;
    uint64_t rolled_id;
    uint64_t durable_id; /* at the last crash */
    uint64_t next_id;    /* at the last crash */
};

static uint64_t draw(struct script *s, uint64_t below)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random % below;
}

static void append_one(struct script *s)
{
    struct fixture *f = &s->f;
    static const size_t sizes[] = {16, 100, 300, 1000, 4000, 5000, 30000, 100000};
    static const lahar_durability durabilities[] = {
        LAHAR_DURABILITY_NONE, LAHAR_DURABILITY_INTERVAL, LAHAR_DURABILITY_INTERVAL,
        LAHAR_DURABILITY_COMMIT};
    const size_t size = sizes[draw(s, 8)];
    const lahar_durability durability = durabilities[draw(s, 4)];
    const uint64_t next_id = lahar_journals_next_id(f->journals);
    uint64_t id = 0;
    const uint64_t deadline_ns = draw(s, 3) == 0 ? LAHAR_WAIT_FOREVER : LAHAR_NO_WAIT;
    const lahar_status status =
        fixture_append(f, (uint32_t)draw(s, 16), size, durability, deadline_ns, &id);
    cr_assert(id == 0 || id == next_id, "seed %" PRIu64, s->seed);
    cr_assert(status == LAHAR_OK || status == LAHAR_BUSY || status == LAHAR_TIMEOUT ||
                  (status == LAHAR_POISONED && lahar_sim_disk_has_crashed(f->disk)),
              "seed %" PRIu64 ": %s", s->seed, f->error.message);
    if (status == LAHAR_OK && durability == LAHAR_DURABILITY_COMMIT) {
        cr_assert_gt(lahar_journals_durable_id(f->journals), id, "seed %" PRIu64, s->seed);
    }
}

static void look(struct script *s)
{
    struct lahar_resident_view view;
    const uint64_t next_id = lahar_journals_next_id(s->f.journals);
    cr_assert_eq(lahar_journals_view(s->f.journals, LAHAR_NO_WAIT, &view, NULL), LAHAR_OK);
    cr_assert_eq(view.end_id, next_id, "seed %" PRIu64, s->seed);
    for (size_t i = 0; i < view.batch_count; i++) {
        cr_assert(i == 0 || view.batches[i].first_id > view.batches[i - 1].first_id);
        cr_assert(fixture_row_is(view.batches[i].rows, view.batches[i].rows_size,
                                 view.batches[i].first_id),
                  "seed %" PRIu64, s->seed);
    }
    lahar_journals_unview(s->f.journals, &view);
}

/* Forgets as rollover does: what is durable, up to a batch boundary. */
static void forget_some(struct script *s)
{
    const uint64_t durable_id = lahar_journals_durable_id(s->f.journals);
    if (durable_id > s->rolled_id) {
        s->rolled_id += 1 + draw(s, durable_id - s->rolled_id);
        lahar_journals_forget(s->f.journals, s->rolled_id);
    }
}

static void live(struct script *s)
{
    for (uint32_t i = 0; i < ACTIONS && !lahar_sim_disk_has_crashed(s->f.disk); i++) {
        switch (draw(s, 10)) {
        case 0:
            forget_some(s);
            break;
        case 1:
            look(s);
            break;
        case 2:
            lahar_sim_disk_advance(s->f.disk, draw(s, 150000000));
            break;
        case 3:
        case 4:
        case 5:
            (void)lahar_journals_step(s->f.journals, (uint32_t)draw(s, 4));
            break;
        default:
            append_one(s);
            break;
        }
    }
    s->durable_id = lahar_journals_durable_id(s->f.journals);
    s->next_id = lahar_journals_next_id(s->f.journals);
}

/* Checks what was found of the last session and of those before. */
static void check(struct script *s, const struct lahar_journal_recovery *recovery)
{
    struct lahar_journal_session *last = &s->sessions[s->session_count - 1];
    uint64_t end_id = last->first_id > s->rolled_id ? last->first_id : s->rolled_id;
    for (size_t i = 0; i < recovery->batch_count; i++) {
        const struct lahar_resident_batch *batch = &recovery->batches[i];
        cr_assert(fixture_row_is(batch->rows, batch->rows_size, batch->first_id),
                  "seed %" PRIu64 ": the row of %" PRIu64, s->seed, batch->first_id);
        cr_assert_geq(batch->first_id, s->rolled_id);
        if (batch->first_id >= last->first_id) {
            cr_assert_eq(batch->first_id, end_id, "seed %" PRIu64 ": a hole", s->seed);
            end_id = batch->first_id + 1;
        }
    }
    cr_assert_geq(end_id, s->durable_id,
                  "seed %" PRIu64 ": %" PRIu64 " was durable, %" PRIu64 " was found", s->seed,
                  s->durable_id, end_id);
    cr_assert_leq(end_id, s->next_id, "seed %" PRIu64, s->seed);
    last->end_id = end_id;
}

/* Recovery that may be cut off by further crashes of the disk. */
static void recover(struct script *s, struct lahar_journal_recovery *recovery)
{
    for (int attempt = 0;; attempt++) {
        if (attempt < 2 && draw(s, 2) == 0) {
            lahar_sim_disk_crash_at(s->f.disk, lahar_sim_disk_operations(s->f.disk) + draw(s, 5));
        }
        const lahar_status status =
            fixture_recover(&s->f, s->sessions, s->session_count, s->rolled_id, recovery);
        if (!lahar_sim_disk_has_crashed(s->f.disk)) {
            cr_assert_eq(status, LAHAR_OK, "seed %" PRIu64 ": %s", s->seed, s->f.error.message);
            lahar_sim_disk_crash_at(s->f.disk, UINT64_MAX);
            return;
        }
        lahar_journal_recovery_deinit(recovery, &lahar_allocator_libc);
        fixture_crash(&s->f, draw(s, UINT64_MAX), true);
    }
}

static void run_script(uint64_t seed)
{
    struct script s = {.seed = seed, .random = seed * 0x9e3779b97f4a7c15, .rolled_id = 1};
    fixture_create(&s.f, seed);
    s.f.options.memory_bytes = 2 << 20;
    s.f.options.sync_interval_ms = 1 + (uint32_t)draw(&s, 100);
    struct lahar_journal_recovery recovery = {0};
    uint64_t first_id = 1;
    for (s.session_count = 0; s.session_count < SESSIONS_MAX;) {
        s.f.options.session = s.session_count + 1;
        s.f.options.next_id = first_id;
        s.sessions[s.session_count++] =
            (struct lahar_journal_session){s.session_count, first_id, 0};
        s.sessions[s.session_count - 1].session = s.session_count;
        fixture_open(&s.f, &recovery);
        const bool power_loss = draw(&s, 3) != 0;
        if (power_loss) {
            lahar_sim_disk_crash_at(s.f.disk, lahar_sim_disk_operations(s.f.disk) + draw(&s, 200));
        }
        live(&s);
        fixture_crash(&s.f, draw(&s, UINT64_MAX), power_loss);
        recover(&s, &recovery);
        check(&s, &recovery);
        first_id = s.next_id + draw(&s, 100);
        s.rolled_id = s.rolled_id > first_id ? first_id : s.rolled_id;
    }
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
    fixture_destroy(&s.f);
}

Test(schedule, loses_nothing_that_was_durable)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_script(seed);
    }
}
