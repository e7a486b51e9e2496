/* The survey reads the headers for the sessions, then scans as recovery does. */
#include "engine/journal/recovery_survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/journal/recovery_scan.h"
#include "engine/journal/segment_file.h"
#include "io/base/error.h"

enum {
    PATH_SIZE = 4096
};

struct header_walk {
    struct lahar_io *io;
    const char *directory;
    uint64_t store_id;
    const lahar_allocator *allocator;
    struct lahar_journal_survey *survey;
    lahar_error *error;
};

static lahar_status add_session(struct header_walk *walk, uint64_t session)
{
    struct lahar_journal_survey *survey = walk->survey;
    size_t at = survey->session_count;
    for (size_t i = 0; i < survey->session_count; i++) {
        if (survey->sessions[i].session == session) {
            return LAHAR_OK;
        }
    }
    struct lahar_journal_session *larger = lahar_reallocate(
        walk->allocator, survey->sessions, (survey->session_count + 1) * sizeof *larger);
    if (larger == NULL) {
        return lahar_fail(walk->error, LAHAR_NO_MEMORY, "no memory for the sessions of journals");
    }
    survey->sessions = larger;
    while (at > 0 && larger[at - 1].session > session) {
        larger[at] = larger[at - 1];
        at--;
    }
    larger[at] = (struct lahar_journal_session){.session = session};
    survey->session_count++;
    return LAHAR_OK;
}

/* A file that cannot be read or has no header holds nothing that could be used. */
static lahar_status read_session(void *context, const char *name, bool is_directory)
{
    struct header_walk *walk = context;
    uint64_t number = 0;
    char path[PATH_SIZE];
    uint8_t block[LAHAR_JOURNAL_HEADER_SIZE];
    size_t read = 0;
    struct lahar_io_file *file = NULL;
    struct lahar_journal_header header;
    const int length = snprintf(path, sizeof path, "%s/%s", walk->directory, name);
    if (is_directory || strlen(name) >= LAHAR_JOURNAL_NAME_SIZE ||
        !lahar_journal_file_number(name, &number) || length < 0 || length >= PATH_SIZE ||
        walk->io->ops->open(walk->io, path, LAHAR_IO_READ, &file, NULL) != LAHAR_OK) {
        return LAHAR_OK;
    }
    const lahar_status status =
        walk->io->ops->read(walk->io, file, 0, block, sizeof block, &read, NULL);
    walk->io->ops->close(walk->io, file);
    if (status != LAHAR_OK || read != sizeof block ||
        lahar_journal_header_decode(block, &header, NULL) != LAHAR_OK ||
        header.store_id != walk->store_id) {
        return LAHAR_OK;
    }
    return add_session(walk, header.session);
}

static int compare_frames(const void *a, const void *b)
{
    const struct lahar_recovered_frame *left = a;
    const struct lahar_recovered_frame *right = b;
    return (left->frame.first_id > right->frame.first_id) -
           (left->frame.first_id < right->frame.first_id);
}

/* Follows the batches of every session, in id order, as far as they follow one another, or are
 * missing among those that were durable, and come behind those of the sessions before. */
static void follow_frames(struct lahar_recovery_scan *scan, struct lahar_journal_survey *survey)
{
    struct lahar_recovery_memory *memory = scan->memory;
    uint64_t floor_id = 0;
    for (size_t i = 0; i < survey->session_count; i++) {
        struct lahar_journal_session *session = &survey->sessions[i];
        for (size_t k = 0; k < memory->frame_count; k++) {
            const struct lahar_frame *frame = &memory->frames[k].frame;
            const uint64_t end_id = frame->first_id + lahar_frame_id_count(frame->event_count);
            if (memory->frames[k].session != session->session || frame->first_id < floor_id) {
                continue;
            }
            survey->end_id = end_id > survey->end_id ? end_id : survey->end_id;
            if (session->end_id == 0) {
                session->first_id = frame->first_id;
                session->end_id = end_id;
            } else if (session->end_id == frame->first_id ||
                       (session->end_id < frame->first_id &&
                        frame->first_id <= scan->durable_ids[i])) {
                session->end_id = end_id;
            } else {
                survey->dropped_batches++;
            }
        }
        if (session->end_id != 0 && session->end_id < scan->durable_ids[i]) {
            session->end_id = scan->durable_ids[i];
        }
        floor_id = session->end_id > floor_id ? session->end_id : floor_id;
        if (scan->durable_ids[i] > survey->end_id) {
            survey->end_id = scan->durable_ids[i];
        }
    }
}

lahar_status lahar_journal_survey(struct lahar_io *io, const char *directory, uint64_t store_id,
                                  uint64_t rolled_id, const lahar_allocator *allocator,
                                  struct lahar_journal_survey *survey_out, lahar_error *error)
{
    *survey_out = (struct lahar_journal_survey){0};
    struct header_walk walk = {io, directory, store_id, allocator, survey_out, error};
    struct lahar_recovery_scan scan = {.io = io,
                                       .directory = directory,
                                       .allocator = allocator,
                                       .store_id = store_id,
                                       .rolled_id = rolled_id,
                                       .read_only = true};
    lahar_status status = io->ops->list(io, directory, read_session, &walk, error);
    if (status == LAHAR_OK) {
        scan.sessions = survey_out->sessions;
        scan.session_count = survey_out->session_count;
        scan.memory = lahar_allocate_zeroed(allocator, 1, sizeof *scan.memory);
        scan.durable_ids =
            lahar_allocate_zeroed(allocator, scan.session_count + 1, sizeof *scan.durable_ids);
        status = scan.memory == NULL || scan.durable_ids == NULL
                     ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory to survey journals")
                     : lahar_recovery_scan_files(&scan, error);
    }
    if (status == LAHAR_OK) {
        if (scan.memory->frame_count > 1) {
            qsort(scan.memory->frames, scan.memory->frame_count, sizeof *scan.memory->frames,
                  compare_frames);
        }
        follow_frames(&scan, survey_out);
    } else {
        lahar_journal_survey_deinit(survey_out, allocator);
    }
    lahar_recovery_memory_release(scan.memory, allocator);
    lahar_release(allocator, scan.durable_ids);
    return status;
}

void lahar_journal_survey_deinit(struct lahar_journal_survey *survey,
                                 const lahar_allocator *allocator)
{
    lahar_release(allocator, survey->sessions);
    *survey = (struct lahar_journal_survey){0};
}
