/* Appending and viewing: the calls of producers and readers around the ring. */
#include <string.h>
#include <time.h>

#include "engine/journal/journals.h"
#include "io/base/error.h"

/* How long a wait for memory sleeps before it looks again by itself. */
static const uint64_t look_again_ns = 50000000;
/* How long offsets are waited for that are being published: copies of memory. */
static const uint64_t publish_wait_ns = 1000000000;

uint64_t lahar_journals_next_id(const struct lahar_journals *journals)
{
    return atomic_load_explicit(&journals->ring_set.next_id, memory_order_seq_cst);
}

uint64_t lahar_journals_durable_id(const struct lahar_journals *journals)
{
    return atomic_load_explicit(&journals->catalog.durable_id, memory_order_seq_cst);
}

void lahar_journals_set_ceiling(struct lahar_journals *journals, uint64_t ceiling)
{
    atomic_store_explicit(&journals->ring_set.ceiling, ceiling, memory_order_seq_cst);
    lahar_gate_signal(&journals->space);
}

uint64_t lahar_journals_asked_id(const struct lahar_journals *journals)
{
    return atomic_load_explicit(&journals->asked_id, memory_order_relaxed);
}

static uint64_t clock_now(const struct lahar_journals *journals)
{
    return journals->io->ops->monotonic_ns(journals->io);
}

static lahar_status check_state(struct lahar_journals *journals, lahar_error *error)
{
    const uint32_t state = atomic_load_explicit(&journals->state, memory_order_seq_cst);
    if (state == LAHAR_JOURNALS_RUN) {
        return LAHAR_OK;
    }
    if (state == LAHAR_JOURNALS_CLOSING) {
        return lahar_fail(error, LAHAR_CLOSED, "the store is closing");
    }
    return lahar_journals_health(journals, error);
}

/* --- one attempt -------------------------------------------------------------------------- */

/* Takes a place in one of the active journals, the producer's own first. Those that go on to wait
 * for stable storage gather in few journals, whatever else the others are used for. */
static bool claim(struct lahar_journals *journals, uint32_t producer, uint32_t size, bool waits,
                  struct lahar_ring_place *place_out)
{
    const uint32_t usable = lahar_journals_usable(journals);
    uint32_t active = atomic_load_explicit(&journals->active, memory_order_acquire);
    active = usable < active ? usable : active;
    uint32_t first = 0;
    if (waits) {
        const uint32_t enough = lahar_journals_for_waiters(journals);
        active = enough < active ? enough : active;
    } else if (active > 1 && lahar_journals_expects_commits(journals)) {
        first = 1; /* the first one is theirs */
        active--;
    }
    for (uint32_t k = 0; k < active; k++) {
        const uint32_t journal = first + (active == 1 ? 0 : (producer + k) % active);
        if (lahar_ring_claim(&journals->ring_set, journal, size, place_out)) {
            return true;
        }
    }
    return false;
}

/* A batch that no chunk can take gets a chunk and a file of its own. */
static lahar_status claim_jumbo(struct lahar_journals *journals, uint32_t producer, uint32_t size,
                                struct lahar_ring_place *place_out, lahar_error *error)
{
    const uint32_t mask = LAHAR_IO_ALIGNMENT - 1;
    const uint32_t capacity = (size + mask) & ~mask;
    struct lahar_chunk *chunk = lahar_chunk_take_jumbo(&journals->chunks, capacity);
    if (chunk == NULL) {
        return LAHAR_BUSY;
    }
    lahar_error failure = {0};
    const lahar_status status =
        lahar_segment_pool_create_jumbo(&journals->files, capacity, &chunk->file, &failure);
    if (status != LAHAR_OK) {
        lahar_chunk_put(&journals->chunks, chunk);
        if (status == LAHAR_NO_SPACE || status == LAHAR_NO_MEMORY || status == LAHAR_BUSY) {
            return lahar_fail(error, status == LAHAR_BUSY ? LAHAR_NO_SPACE : status, "%s",
                              failure.message);
        }
        lahar_journals_poison(journals, &failure);
        return lahar_journals_health(journals, error);
    }
    struct lahar_journal *journal =
        &journals
             ->journals[producer % atomic_load_explicit(&journals->active, memory_order_acquire)];
    chunk->journal = journal->number;
    chunk->file_offset = LAHAR_JOURNAL_HEADER_SIZE;
    chunk->seed = chunk->file->seed;
    *place_out = (struct lahar_ring_place){chunk, 0, journal->number};
    return LAHAR_OK;
}

/* Hands a published jumbo chunk to the writer. */
static void enqueue_jumbo(struct lahar_journals *journals, struct lahar_chunk *chunk)
{
    struct lahar_journal *journal = &journals->journals[chunk->journal];
    (void)pthread_mutex_lock(&journal->mutex);
    struct lahar_chunk **link = &journal->jumbos;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = chunk;
    (void)pthread_mutex_unlock(&journal->mutex);
    lahar_ring_call(&journals->ring_set, journal->number, LAHAR_ATTENTION_SPACE);
}

/* Reserves the whole link window for one batch that takes more than half of it. */
static bool reserve_alone(struct lahar_journals *journals, uint64_t id_count, uint64_t end_ns)
{
    struct lahar_ring_set *set = &journals->ring_set;
    if (pthread_mutex_trylock(&journals->alone) != 0) {
        return false;
    }
    /* The reservation keeps later appends out until the ids below it are walked. */
    const uint64_t start = lahar_ring_reserve_alone(set, id_count);
    const uint64_t give_up_ns = clock_now(journals) + look_again_ns;
    bool is_free = false;
    for (;;) {
        lahar_catalog_walk(&journals->catalog);
        if (start + id_count > atomic_load_explicit(&set->ceiling, memory_order_acquire)) {
            break;
        }
        is_free = atomic_load_explicit(set->walked_id, memory_order_acquire) >= start;
        const uint64_t now_ns = clock_now(journals);
        if (is_free || end_ns == LAHAR_NO_WAIT || now_ns >= give_up_ns || now_ns >= end_ns) {
            break;
        }
        const struct timespec pause = {0, 20000};
        (void)nanosleep(&pause, NULL);
    }
    if (!is_free) {
        lahar_ring_release(set, id_count);
    }
    (void)pthread_mutex_unlock(&journals->alone);
    return is_free;
}

static bool reserve(struct lahar_journals *journals, uint64_t id_count, uint64_t end_ns)
{
    if (lahar_ring_reserve(&journals->ring_set, id_count)) {
        return true;
    }
    return id_count > journals->ring_set.half_window && reserve_alone(journals, id_count, end_ns);
}

/* LAHAR_BUSY: something is short at the moment, nothing was taken. */
static lahar_status try_append(struct lahar_journals *journals, uint32_t producer,
                               struct lahar_frame *frame, enum lahar_attention least,
                               uint64_t end_ns, uint64_t *first_id_out, lahar_error *error)
{
    const uint64_t id_count = lahar_frame_id_count(frame->event_count);
    if (!reserve(journals, id_count, end_ns)) {
        return LAHAR_BUSY;
    }
    /* Behind the reservation: a stop that this does not see waits for the batch. */
    lahar_status status = check_state(journals, error);
    struct lahar_ring_place place;
    if (status == LAHAR_OK) {
        if (frame->size > journals->chunks.chunk_size) {
            status = claim_jumbo(journals, producer, frame->size, &place, error);
        } else if (!claim(journals, producer, frame->size, least == LAHAR_ATTENTION_NEVER,
                          &place)) {
            status = LAHAR_BUSY;
        }
    }
    if (status != LAHAR_OK) {
        lahar_ring_release(&journals->ring_set, id_count);
        return status;
    }
    *first_id_out = lahar_ring_publish(&journals->ring_set, &place, frame, least);
    if (place.chunk->is_jumbo) {
        enqueue_jumbo(journals, place.chunk);
    }
    return LAHAR_OK;
}

/* --- appending ---------------------------------------------------------------------------- */

/* Lets the writers and the walker do what makes room. False: waiting is over. */
static lahar_status wait_for_room(struct lahar_journals *journals, uint32_t ticket, uint64_t end_ns,
                                  lahar_error *error)
{
    lahar_catalog_walk(&journals->catalog);
    if (lahar_chunk_pool_has_room(&journals->chunks)) {
        lahar_journals_call_all(journals, LAHAR_ATTENTION_SPACE);
    }
    if (lahar_journals_is_full(journals)) {
        return lahar_fail(error, LAHAR_NO_SPACE, "the journals wait for %s",
                          lahar_journals_is_write_full(journals) ? "disk space"
                                                                 : "disk space, or for a file");
    }
    if (end_ns == LAHAR_NO_WAIT) {
        return lahar_fail(error, LAHAR_BUSY, "the write memory is in use");
    }
    const uint64_t now_ns = clock_now(journals);
    if (now_ns >= end_ns) {
        return lahar_fail(error, LAHAR_TIMEOUT, "the write memory stayed in use");
    }
    if (!journals->has_threads) {
        return lahar_journals_run(journals)
                   ? LAHAR_OK
                   : lahar_fail(error, LAHAR_BUSY, "the write memory is in use");
    }
    const uint64_t left_ns = end_ns - now_ns;
    lahar_gate_sleep(&journals->space, ticket, left_ns < look_again_ns ? left_ns : look_again_ns);
    return LAHAR_OK;
}

/* Before the walk of an append that waits: has it ring those who make room, for the first one that
 * waits for memory, and for each that the ceiling does not allow, since it may want more ids than
 * are ever reserved ahead. Who waits for ids is not counted among those who wait for memory, which
 * a rollover would not help. What others look at is changed before they are rung, which is
 * why relaxed order suffices. */
static void call_for_room(struct lahar_journals *journals, uint64_t id_count, bool *is_counted)
{
    const struct lahar_ring_set *set = &journals->ring_set;
    const uint64_t asked_id =
        atomic_load_explicit(&set->reserved_id, memory_order_relaxed) + id_count;
    if (asked_id > atomic_load_explicit(&set->ceiling, memory_order_relaxed)) {
        uint64_t before = atomic_load_explicit(&journals->asked_id, memory_order_relaxed);
        while (before < asked_id &&
               !atomic_compare_exchange_weak_explicit(&journals->asked_id, &before, asked_id,
                                                      memory_order_relaxed, memory_order_relaxed)) {
        }
        lahar_catalog_ring(&journals->catalog);
    } else {
        const bool is_first =
            !*is_counted &&
            atomic_fetch_add_explicit(&journals->memory_waiters, 1, memory_order_relaxed) == 0;
        *is_counted = true;
        /* What began as a wait for the next chunk may have become one for memory since. */
        if (is_first || !lahar_chunk_pool_has_room(&journals->chunks)) {
            lahar_catalog_ring(&journals->catalog);
        }
    }
}

/* The way of an append that finds something short. */
static lahar_status append_slowly(struct lahar_journals *journals, uint32_t producer,
                                  struct lahar_frame *frame, enum lahar_attention least,
                                  uint64_t end_ns, uint64_t *first_id_out, lahar_error *error)
{
    lahar_status status;
    bool must_go_on;
    bool is_counted = false;
    do {
        const uint32_t ticket = lahar_gate_enter(&journals->space);
        status = try_append(journals, producer, frame, least, end_ns, first_id_out, error);
        must_go_on = status == LAHAR_BUSY;
        if (must_go_on) {
            call_for_room(journals, lahar_frame_id_count(frame->event_count), &is_counted);
            status = wait_for_room(journals, ticket, end_ns, error);
            must_go_on = status == LAHAR_OK;
        }
        lahar_gate_leave(&journals->space);
    } while (must_go_on);
    if (is_counted) {
        (void)atomic_fetch_sub_explicit(&journals->memory_waiters, 1, memory_order_relaxed);
    }
    return status;
}

lahar_status lahar_journals_append(struct lahar_journals *journals, uint32_t producer,
                                   const void *rows, size_t rows_size, uint32_t event_count,
                                   const void *offsets, size_t offsets_size,
                                   lahar_durability durability, uint64_t deadline_ns,
                                   uint64_t *first_id_out, lahar_error *error)
{
    uint64_t first_id = 0;
    if (first_id_out != NULL) {
        *first_id_out = 0;
    }
    if (rows_size > journals->batch_limit_bytes ||
        offsets_size > journals->batch_limit_bytes - rows_size) {
        return lahar_fail(error, LAHAR_TOO_BIG, "a batch of %zu bytes, at most %llu",
                          rows_size + offsets_size,
                          (unsigned long long)journals->batch_limit_bytes);
    }
    if (rows_size + offsets_size == 0 || (event_count == 0) != (rows_size == 0) ||
        event_count > rows_size) {
        return lahar_fail(error, LAHAR_INVALID, "a batch of %u events in %zu bytes", event_count,
                          rows_size);
    }
    durability = durability == LAHAR_DURABILITY_STORE ? journals->durability : durability;
    if (durability == LAHAR_DURABILITY_INTERVAL &&
        !atomic_load_explicit(&journals->is_interval_used, memory_order_relaxed)) {
        atomic_store_explicit(&journals->is_interval_used, true, memory_order_relaxed);
    }
    struct lahar_frame frame = {
        .kind = LAHAR_FRAME_BATCH,
        .size = (uint32_t)lahar_frame_size(rows_size, offsets_size),
        .event_count = event_count,
        .rows_size = (uint32_t)rows_size,
        .offsets_size = (uint32_t)offsets_size,
        .offsets = offsets,
        .rows = rows,
    };
    /* Whoever waits calls for the writer, unless it can do without. */
    const enum lahar_attention least =
        durability == LAHAR_DURABILITY_COMMIT ? LAHAR_ATTENTION_NEVER : LAHAR_ATTENTION_ANY;
    lahar_status status =
        try_append(journals, producer, &frame, least, LAHAR_NO_WAIT, &first_id, error);
    const bool must_wait = status == LAHAR_BUSY || durability == LAHAR_DURABILITY_COMMIT;
    const uint64_t end_ns = must_wait ? lahar_journals_end_of(journals, deadline_ns) : 0;
    if (status == LAHAR_BUSY) {
        status = append_slowly(journals, producer, &frame, least, end_ns, &first_id, error);
    }
    if (first_id_out != NULL) {
        *first_id_out = first_id;
    }
    if (status == LAHAR_OK && durability == LAHAR_DURABILITY_COMMIT) {
        uint64_t left_ns = deadline_ns;
        if (end_ns != LAHAR_NO_WAIT && end_ns != LAHAR_WAIT_FOREVER) {
            const uint64_t now_ns = clock_now(journals);
            left_ns = now_ns < end_ns ? end_ns - now_ns : LAHAR_NO_WAIT;
        }
        if (left_ns != LAHAR_NO_WAIT) {
            lahar_journals_note_commit(journals);
        }
        status = lahar_journals_wait(journals, first_id + lahar_frame_id_count(event_count) - 1,
                                     left_ns, error);
    }
    return status;
}

/* --- reading and forgetting ------------------------------------------------------------------ */

/* A view that has all batches below end_id. */
static lahar_status view_below(struct lahar_journals *journals, uint64_t end_id, uint64_t wait_ns,
                               struct lahar_resident_view *view_out, lahar_error *error)
{
    uint64_t end_ns = UINT64_MAX;
    for (bool is_first = true;; is_first = false) {
        lahar_catalog_walk(&journals->catalog);
        LAHAR_TRY(lahar_catalog_view(&journals->catalog, view_out, error));
        if (view_out->end_id >= end_id) {
            return LAHAR_OK;
        }
        (void)lahar_catalog_unview(&journals->catalog, view_out);
        if (atomic_load_explicit(&journals->catalog.is_starved, memory_order_relaxed)) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to list the resident batches");
        }
        if (is_first) {
            end_ns = lahar_journals_end_of(journals, wait_ns);
        }
        if (end_ns == LAHAR_NO_WAIT || clock_now(journals) >= end_ns) {
            return lahar_fail(error, LAHAR_BUSY, "events below %llu are being published",
                              (unsigned long long)end_id);
        }
        const struct timespec pause = {0, 50000};
        (void)nanosleep(&pause, NULL);
    }
}

lahar_status lahar_journals_view(struct lahar_journals *journals, uint64_t wait_ns,
                                 struct lahar_resident_view *view_out, lahar_error *error)
{
    return view_below(journals, lahar_journals_next_id(journals), wait_ns, view_out, error);
}

void lahar_journals_unview(struct lahar_journals *journals, struct lahar_resident_view *view)
{
    /* Most reads end without freeing anything: they wake nobody. */
    if (lahar_catalog_unview(&journals->catalog, view)) {
        lahar_journals_call_all(journals, LAHAR_ATTENTION_SPACE);
        lahar_gate_signal(&journals->space);
    }
}

lahar_status lahar_journals_offsets(
    struct lahar_journals *journals, uint64_t from_id, uint64_t to_id,
    lahar_status (*visit)(void *context, const struct lahar_journal_offset *offset), void *context,
    lahar_error *error)
{
    const uint64_t next_id = lahar_journals_next_id(journals);
    struct lahar_resident_view view;
    LAHAR_TRY(
        view_below(journals, to_id < next_id ? to_id : next_id, publish_wait_ns, &view, error));
    const lahar_status status = lahar_catalog_offsets(&view, from_id, to_id, visit, context);
    lahar_journals_unview(journals, &view);
    return status;
}

void lahar_journals_forget(struct lahar_journals *journals, uint64_t rolled_id)
{
    lahar_catalog_walk(&journals->catalog);
    lahar_catalog_forget(&journals->catalog, rolled_id);
    /* Chunks may have come free: for the writers, and for appends that wait for a jumbo. */
    lahar_journals_call_all(journals, LAHAR_ATTENTION_SPACE);
    lahar_gate_signal(&journals->space);
}

/* --- background threads ------------------------------------------------------------------------
 */

void lahar_journals_add_alarm(struct lahar_journals *journals, struct lahar_alarm *alarm)
{
    lahar_catalog_add_alarm(&journals->catalog, alarm);
}

void lahar_journals_remove_alarm(struct lahar_journals *journals, struct lahar_alarm *alarm)
{
    lahar_catalog_remove_alarm(&journals->catalog, alarm);
}

void lahar_journals_sleep(struct lahar_journals *journals, struct lahar_alarm *alarm,
                          uint32_t ticket, const struct lahar_rest *rest)
{
    const uint64_t now_ns = clock_now(journals);
    if (rest->until_ns > now_ns && lahar_catalog_set_alarm(&journals->catalog, alarm, rest)) {
        lahar_gate_sleep(&alarm->gate, ticket,
                         rest->until_ns == UINT64_MAX ? UINT64_MAX : rest->until_ns - now_ns);
        (void)lahar_catalog_set_alarm(&journals->catalog, alarm, &LAHAR_REST_FOREVER);
    }
}
