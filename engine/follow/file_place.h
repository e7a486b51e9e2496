/* Putting a cursor at a place in a file that was not reached by reading. */
#ifndef LAHAR_FOLLOW_FILE_PLACE_H
#define LAHAR_FOLLOW_FILE_PLACE_H

#include "engine/follow/file_cursor.h"
#include "io/base/allocator.h"
#include "lahar/status.h"

/* Moves the cursor to the start of the first line at or behind offset, or, with to_last, of the
 * last line that has begun at or before it; counts lines and hashes what lies before. Reads the
 * file up to there. The cursor's other fields stay. */
lahar_status lahar_file_place(int descriptor, uint64_t offset, bool to_last,
                              const lahar_allocator *allocator, struct lahar_file_cursor *cursor,
                              lahar_error *error);

#endif
