#include "engine/rollover/join_choose.h"

#include "io/base/error.h"

enum {
    GRANULE_PART = 20
};

/* The files of one stream, and what bounds a joined one. */
struct choice {
    const struct lahar_join_limits *limits;
    const struct lahar_manifest_file **files;
    size_t count;
    uint64_t bytes_max;
    uint64_t span_ns; /* of age; 0: not bounded */
};

/* The lesser of two limits of which 0 is none. */
static uint64_t stricter(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static uint64_t size_of(const struct lahar_manifest_file *file)
{
    return file->info.file_bytes + file->info.toc_bytes + file->shard_bytes;
}

static bool is_refused(const struct choice *choice, const struct lahar_manifest_file *file)
{
    for (size_t i = 0; i < choice->limits->refused_count; i++) {
        if (choice->limits->refused[i] == file->info.number) {
            return true;
        }
    }
    return size_of(file) > choice->bytes_max || file->info.event_count > choice->limits->event_max;
}

static uint64_t span_of(const struct choice *choice, const struct lahar_manifest_file *file)
{
    return choice->span_ns == 0 ? 0 : file->age_stamp_ns / choice->span_ns;
}

/* What a run adds up to. */
struct sum {
    uint64_t bytes;
    uint64_t largest;
    uint64_t events;
};

/* Adds a file to a run; false when it does not fit in. */
static bool add(const struct choice *choice, struct sum *sum,
                const struct lahar_manifest_file *file)
{
    const uint64_t size = size_of(file);
    if (sum->bytes + size > choice->bytes_max ||
        sum->events + file->info.event_count > choice->limits->event_max) {
        return false;
    }
    sum->bytes += size;
    sum->events += file->info.event_count;
    sum->largest = size > sum->largest ? size : sum->largest;
    return true;
}

static void take(const struct choice *choice, size_t begin, size_t end, struct lahar_join_run *run)
{
    for (size_t i = begin; i < end; i++) {
        run->files[run->count++] = *choice->files[i];
    }
}

/* No more files will come between begin and end: the first that fit into one are joined. */
static void choose_finished(const struct choice *choice, size_t begin, size_t end,
                            struct lahar_join_run *run)
{
    while (begin < end) {
        struct sum sum = {0};
        size_t at = begin;
        while (at < end && at - begin < LAHAR_JOIN_FILES_MAX &&
               add(choice, &sum, choice->files[at])) {
            at++;
        }
        if (at - begin >= 2) {
            take(choice, begin, at, run);
            return;
        }
        begin = at > begin ? at : begin + 1;
    }
}

/* The longest run that ends as late as possible and at least doubles its largest file. */
static void choose_growing(const struct choice *choice, size_t begin, size_t end,
                           struct lahar_join_run *run)
{
    for (; end - begin >= choice->limits->files_min; end--) {
        struct sum sum = {0};
        size_t best = end;
        for (size_t at = end; at > begin && end - at < LAHAR_JOIN_FILES_MAX; at--) {
            if (!add(choice, &sum, choice->files[at - 1])) {
                break;
            }
            if (end - at + 1 >= choice->limits->files_min && sum.bytes / 2 >= sum.largest) {
                best = at - 1;
            }
        }
        if (best < end) {
            take(choice, best, end, run);
            return;
        }
    }
}

static void choose_stream(const struct choice *choice, struct lahar_join_run *run)
{
    for (size_t begin = 0; begin < choice->count && run->count == 0;) {
        if (is_refused(choice, choice->files[begin])) {
            begin++;
            continue;
        }
        const uint64_t span = span_of(choice, choice->files[begin]);
        size_t end = begin + 1;
        while (end < choice->count && !is_refused(choice, choice->files[end]) &&
               span_of(choice, choice->files[end]) == span) {
            end++;
        }
        const bool is_finished =
            choice->span_ns != 0 && span_of(choice, choice->files[choice->count - 1]) != span;
        if (is_finished) {
            choose_finished(choice, begin, end, run);
        } else {
            choose_growing(choice, begin, end, run);
        }
        begin = end;
    }
}

lahar_status lahar_join_choose(const struct lahar_manifest_state *state,
                               const struct lahar_join_limits *limits,
                               const lahar_allocator *allocator, struct lahar_join_run *run_out,
                               lahar_error *error)
{
    run_out->count = 0;
    if (state->file_count < 2) {
        return LAHAR_OK;
    }
    const struct lahar_manifest_file **files =
        lahar_allocate_zeroed(allocator, state->file_count, sizeof *files);
    if (files == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to look for small files");
    }
    for (size_t stream = 0; stream < state->stream_count && run_out->count == 0; stream++) {
        const struct lahar_manifest_retention *own = &state->streams[stream].retention;
        struct choice choice = {
            .limits = limits, .files = files, .bytes_max = LAHAR_JOIN_BYTES_MAX};
        const uint64_t max_bytes = stricter(own->max_bytes, state->retention.max_bytes);
        if (max_bytes != 0 && max_bytes / GRANULE_PART < choice.bytes_max) {
            choice.bytes_max = max_bytes / GRANULE_PART;
        }
        choice.span_ns = stricter(own->max_age_ns, state->retention.max_age_ns) / GRANULE_PART;
        for (size_t i = 0; i < state->file_count; i++) {
            if (state->files[i].info.stream == stream) {
                files[choice.count++] = &state->files[i];
            }
        }
        choose_stream(&choice, run_out);
    }
    lahar_release(allocator, files);
    return LAHAR_OK;
}
