/* From frames to batches: sorted by id, each session cut at its first hole that is no damage.
 *
 * What is a torn tail and what is damage follows from the ids. Every frame states a
 * durable prefix that held before it was written. If an id below the largest one
 * stated in a session is missing, or one of a session that a later opening has
 * closed, then something that was on stable storage has gone: its ids are lost, which costs them
 * alone, and what follows them counts. Any other hole lies above all that was known to be
 * durable: it and what follows it is the tail that nobody was promised, and is dropped.
 *
 * Nothing is written. A recovery that is interrupted and begun again finds the same. */
#include <stdlib.h>
#include <string.h>

#include "engine/journal/recovery_scan.h"
#include "engine/store/offset_record.h"
#include "io/base/error.h"

enum {
    ATTEMPTS_MAX = 8 /* beside a living writer */
};

static int compare_frames(const void *a, const void *b)
{
    const struct lahar_recovered_frame *left = a;
    const struct lahar_recovered_frame *right = b;
    return (left->frame.first_id > right->frame.first_id) -
           (left->frame.first_id < right->frame.first_id);
}

static uint64_t end_of(const struct lahar_recovered_frame *frame)
{
    return frame->frame.first_id + lahar_frame_id_count(frame->frame.event_count);
}

/* Whether both are the same frame: a copy of a journal file shows each of its frames twice. */
static bool is_same(const struct lahar_frame *a, const struct lahar_frame *b)
{
    return a->first_id == b->first_id && a->event_count == b->event_count &&
           a->rows_size == b->rows_size && a->offsets_size == b->offsets_size &&
           memcmp(a->rows, b->rows, a->rows_size) == 0 &&
           memcmp(a->offsets, b->offsets, a->offsets_size) == 0;
}

/* Marks the frames of one session that belong to it, up to its first hole at or above needed_id;
 * holes below are lost ranges. *end_out: where the session ends, at least needed_id. */
static lahar_status cut_session(struct lahar_recovery_scan *scan,
                                const struct lahar_journal_session *session, uint64_t needed_id,
                                uint64_t *end_out, lahar_error *error)
{
    struct lahar_recovery_memory *memory = scan->memory;
    uint64_t expected = session->first_id > scan->rolled_id ? session->first_id : scan->rolled_id;
    const struct lahar_recovered_frame *last = NULL;
    for (size_t i = 0; i < memory->frame_count; i++) {
        struct lahar_recovered_frame *frame = &memory->frames[i];
        const uint64_t first_id = frame->frame.first_id;
        if (frame->session != session->session) {
            continue;
        }
        if ((session->end_id != 0 && first_id >= session->end_id) ||
            (first_id > expected && first_id > needed_id)) {
            break;
        }
        if (first_id < expected) {
            if (last != NULL && is_same(&last->frame, &frame->frame)) {
                continue;
            }
            return lahar_fail(error, LAHAR_CORRUPT, "id %llu is in two batches",
                              (unsigned long long)first_id);
        }
        if (first_id > expected) {
            LAHAR_TRY(
                lahar_recovery_memory_lose(memory, expected, first_id, scan->allocator, error));
        }
        frame->is_kept = true;
        last = frame;
        expected = end_of(frame);
    }
    if (expected < needed_id) {
        LAHAR_TRY(lahar_recovery_memory_lose(memory, expected, needed_id, scan->allocator, error));
        expected = needed_id;
    }
    *end_out = expected;
    return LAHAR_OK;
}

/* Cuts every session. *is_settled_out false: a living writer has moved on while the files were
 * read; required holds what the last pass knew to be durable. */
static lahar_status cut(struct lahar_recovery_scan *scan, const uint64_t *required,
                        bool *is_settled_out, lahar_error *error)
{
    *is_settled_out = true;
    for (size_t i = 0; i < scan->session_count; i++) {
        const struct lahar_journal_session *session = &scan->sessions[i];
        uint64_t end_id = 0;
        uint64_t needed_id = scan->read_only ? required[i] : scan->durable_ids[i];
        if (session->end_id != 0) {
            needed_id = session->end_id;
        }
        LAHAR_TRY(cut_session(scan, session, needed_id, &end_id, error));
        if (session->end_id == 0 && end_id < scan->durable_ids[i]) {
            *is_settled_out = false;
        }
    }
    return LAHAR_OK;
}

/* --- the result --------------------------------------------------------------------------- */

/* Moves the kept frames to the front; returns how many there are. */
static size_t keep_kept(struct lahar_recovery_memory *memory)
{
    size_t kept = 0;
    for (size_t i = 0; i < memory->frame_count; i++) {
        struct lahar_recovered_frame *frame = &memory->frames[i];
        if (frame->is_kept) {
            struct lahar_recovered_file *file = &memory->files[frame->file];
            file->end_id = end_of(frame) > file->end_id ? end_of(frame) : file->end_id;
            const struct lahar_recovered_frame swapped = memory->frames[kept];
            memory->frames[kept++] = *frame;
            *frame = swapped;
        }
    }
    return kept;
}

static lahar_status list_offsets(struct lahar_recovery_scan *scan, size_t frame_count,
                                 struct lahar_journal_recovery *recovery, lahar_error *error)
{
    struct lahar_recovery_memory *memory = scan->memory;
    size_t count = 0;
    /* First they are counted, then stored. */
    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;
        for (size_t i = 0; i < frame_count; i++) {
            const struct lahar_frame *frame = &memory->frames[i].frame;
            struct lahar_reader reader = lahar_reader_of(frame->offsets, frame->offsets_size);
            struct lahar_offset_record record;
            while (lahar_offset_record_next(&reader, &record)) {
                if (pass == 1) {
                    memory->offsets[n] = (struct lahar_journal_offset){
                        frame->first_id, record.source, record.key, record.value};
                }
                n++;
            }
        }
        count = n;
        if (pass == 0 && count != 0) {
            memory->offsets =
                lahar_allocate_zeroed(scan->allocator, count, sizeof *memory->offsets);
            if (memory->offsets == NULL) {
                return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu offsets", count);
            }
        }
    }
    recovery->offsets = memory->offsets;
    recovery->offset_count = count;
    return LAHAR_OK;
}

static lahar_status build(struct lahar_recovery_scan *scan, struct lahar_journal_recovery *recovery,
                          lahar_error *error)
{
    struct lahar_recovery_memory *memory = scan->memory;
    const size_t kept = keep_kept(memory);
    recovery->damaged_files = memory->set_aside_count;
    recovery->dropped_batches = memory->frame_count - kept;
    const bool keeps_cut_offsets =
#ifdef LAHAR_PLANTED_BUGS
        (scan->planted_bugs & LAHAR_JOURNAL_BUG_OFFSETS_WITHOUT_DATA) != 0;
#else
        false;
#endif
    LAHAR_TRY(list_offsets(scan, keeps_cut_offsets ? memory->frame_count : kept, recovery, error));
    memory->frame_count = kept;
    memory->batches = lahar_allocate_zeroed(scan->allocator, kept + 1, sizeof *memory->batches);
    if (memory->batches == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu recovered batches", kept);
    }
    int64_t arrival_ns = INT64_MIN;
    for (size_t i = 0; i < kept; i++) {
        const struct lahar_frame *frame = &memory->frames[i].frame;
        arrival_ns = lahar_arrival_after(arrival_ns, frame->arrival_ns);
        memory->batches[i] = (struct lahar_resident_batch){
            .first_id = frame->first_id,
            .event_count = frame->event_count,
            .rows_size = frame->rows_size,
            .rows = frame->rows,
            .arrival_ns = arrival_ns,
        };
        recovery->event_count += frame->event_count;
        recovery->bytes += (uint64_t)frame->rows_size + frame->offsets_size;
        recovery->end_id = end_of(&memory->frames[i]);
    }
    recovery->batches = memory->batches;
    recovery->batch_count = kept;
    recovery->lost = memory->lost;
    recovery->lost_count = memory->lost_count;
    if (memory->lost_count != 0 && memory->lost[memory->lost_count - 1].end_id > recovery->end_id) {
        recovery->end_id = memory->lost[memory->lost_count - 1].end_id;
    }
    return LAHAR_OK;
}

static void begin_pass(struct lahar_recovery_scan *scan)
{
    lahar_recovery_memory_release(scan->memory, scan->allocator);
    scan->memory = lahar_allocate_zeroed(scan->allocator, 1, sizeof *scan->memory);
    memset(scan->durable_ids, 0, (scan->session_count + 1) * sizeof *scan->durable_ids);
    scan->has_changed = false;
}

static lahar_status run(struct lahar_recovery_scan *scan, uint64_t *required, lahar_error *error)
{
    for (int attempt = 1;; attempt++) {
        begin_pass(scan);
        if (scan->memory == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to recover journals");
        }
        LAHAR_TRY(lahar_recovery_scan_files(scan, error));
        struct lahar_recovery_memory *memory = scan->memory;
        if (memory->frame_count > 1) {
            qsort(memory->frames, memory->frame_count, sizeof *memory->frames, compare_frames);
        }
        if (scan->has_changed && attempt < ATTEMPTS_MAX) {
            continue;
        }
        bool is_settled;
        LAHAR_TRY(cut(scan, required, &is_settled, error));
        if (is_settled || attempt >= ATTEMPTS_MAX) {
            return LAHAR_OK;
        }
        memcpy(required, scan->durable_ids, scan->session_count * sizeof *required);
    }
}

lahar_status lahar_journal_recover(struct lahar_io *io, const char *directory, uint64_t store_id,
                                   const struct lahar_journal_session *sessions,
                                   size_t session_count, uint64_t rolled_id, bool read_only,
                                   const lahar_allocator *allocator,
                                   struct lahar_journal_recovery *recovery_out, lahar_error *error)
{
    struct lahar_recovery_scan scan = {
        .io = io,
        .directory = directory,
        .allocator = allocator,
        .store_id = store_id,
        .sessions = sessions,
        .session_count = session_count,
        .rolled_id = rolled_id,
        .read_only = read_only,
    };
#ifdef LAHAR_PLANTED_BUGS
    scan.planted_bugs = recovery_out->planted_bugs;
#endif
    memset(recovery_out, 0, sizeof *recovery_out);
    /* One more than there are sessions, so that a count of zero can be allocated too. */
    scan.durable_ids =
        lahar_allocate_zeroed(allocator, session_count + 1, sizeof *scan.durable_ids);
    uint64_t *required = lahar_allocate_zeroed(allocator, session_count + 1, sizeof *required);
    lahar_status status = scan.durable_ids == NULL || required == NULL
                              ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory to recover journals")
                              : run(&scan, required, error);
    if (status == LAHAR_OK) {
        status = build(&scan, recovery_out, error);
    }
    lahar_release(allocator, scan.durable_ids);
    lahar_release(allocator, required);
    recovery_out->memory = scan.memory;
    if (status != LAHAR_OK) {
        lahar_journal_recovery_deinit(recovery_out, allocator);
    }
    return status;
}

void lahar_journal_recovery_deinit(struct lahar_journal_recovery *recovery,
                                   const lahar_allocator *allocator)
{
    lahar_recovery_memory_release(recovery->memory, allocator);
    memset(recovery, 0, sizeof *recovery);
}
