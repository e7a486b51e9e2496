/* What journals hold when nobody can say which sessions there were: for repair. */
#ifndef LAHAR_JOURNAL_RECOVERY_SURVEY_H
#define LAHAR_JOURNAL_RECOVERY_SURVEY_H

#include "engine/journal/journal.h"

struct lahar_journal_survey {
    /* In order of number: each from the first of its batches at or above the rolled id as far as
     * they follow one another, which lost ranges do not end. A session without any has end_id 0. */
    struct lahar_journal_session *sessions;
    size_t session_count;
    uint64_t end_id;          /* above every id that a valid frame tells of */
    uint64_t dropped_batches; /* behind a hole that nobody was promised */
};

/* Reads only. */
lahar_status lahar_journal_survey(struct lahar_io *io, const char *directory, uint64_t store_id,
                                  uint64_t rolled_id, const lahar_allocator *allocator,
                                  struct lahar_journal_survey *survey_out, lahar_error *error);
void lahar_journal_survey_deinit(struct lahar_journal_survey *survey,
                                 const lahar_allocator *allocator);

#endif
