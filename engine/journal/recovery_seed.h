/* What the frames of a journal file belong to when its header cannot be read.
 *
 * A header that does not pass is one that was being written, and then nothing under it is needed;
 * or it is damaged, and the file may hold the only copy of events that were acknowledged. The
 * frames tell: their checksums begin with a seed that follows from session and generation. */
#ifndef LAHAR_JOURNAL_RECOVERY_SEED_H
#define LAHAR_JOURNAL_RECOVERY_SEED_H

#include "engine/journal/recovery_scan.h"
#include "engine/journal/segment_file.h"

enum lahar_seed_finding {
    LAHAR_SEED_FOUND = 1,  /* session and generation are filled in */
    LAHAR_SEED_EMPTY = 2,  /* nothing in the file is needed */
    LAHAR_SEED_UNKNOWN = 3 /* it holds something, and nobody knows what */
};

/* header: the block as it stands, LAHAR_JOURNAL_HEADER_SIZE bytes; body: all that is behind it.
 * found_out: session and generation; nothing else in it counts. */
enum lahar_seed_finding lahar_recovery_find_seed(const struct lahar_recovery_scan *scan,
                                                 const uint8_t *header, const uint8_t *body,
                                                 uint64_t body_size,
                                                 struct lahar_journal_header *found_out);

#endif
