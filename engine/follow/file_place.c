/* Finding the start of a line; see file_place.h. */
#include "engine/follow/file_place.h"

#include <string.h>

#include "engine/follow/transcode.h"
#include "io/base/buffer.h"
#include "io/base/error.h"
#include "io/source_file.h"

enum {
    PIECE_SIZE = 256 * 1024
};

struct place_search {
    uint64_t line_start; /* of the line that was reached */
    uint64_t line;       /* its number */
    uint64_t at;         /* behind what was read */
    bool is_done;
};

/* Goes on over one piece, which begins at search->at and holds whole units. */
static void search_piece(struct place_search *search, enum lahar_text_encoding encoding,
                         const uint8_t *data, size_t size, uint64_t offset, bool to_last)
{
    size_t done = 0;
    while (!search->is_done) {
        if (!to_last && search->line_start >= offset) {
            search->is_done = true;
            break;
        }
        const size_t line = lahar_encoding_line_size(encoding, data + done, size - done);
        if (line == 0) {
            break;
        }
        const uint64_t next = search->at + done + line;
        if (to_last && next > offset) {
            search->is_done = true;
            break;
        }
        search->line_start = next;
        search->line++;
        done += line;
    }
    search->at += size;
}

static lahar_status hash_place(int descriptor, uint64_t offset, uint8_t *memory,
                               struct lahar_file_cursor *cursor, lahar_error *error)
{
    size_t got = 0;
    const size_t head = offset < LAHAR_HEAD_SIZE ? (size_t)offset : LAHAR_HEAD_SIZE;
    cursor->print = (struct lahar_fingerprint){0};
    LAHAR_TRY(lahar_source_read(descriptor, 0, memory, head, &got, error));
    if (got != head) {
        return lahar_fail(error, LAHAR_IO, "the file became shorter while it was read");
    }
    lahar_fingerprint_update(&cursor->print, memory, 0, head);
    if (offset > head) {
        const uint64_t start = offset - LAHAR_TAIL_SIZE;
        LAHAR_TRY(lahar_source_read(descriptor, start, memory, LAHAR_TAIL_SIZE, &got, error));
        if (got != LAHAR_TAIL_SIZE) {
            return lahar_fail(error, LAHAR_IO, "the file became shorter while it was read");
        }
        lahar_fingerprint_update(&cursor->print, memory, start, offset);
    }
    return LAHAR_OK;
}

lahar_status lahar_file_place(int descriptor, uint64_t offset, bool to_last,
                              const lahar_allocator *allocator, struct lahar_file_cursor *cursor,
                              lahar_error *error)
{
    struct place_search search = {.line = 1};
    uint8_t *memory = lahar_allocate(allocator, PIECE_SIZE);
    lahar_status status = LAHAR_OK;
    enum lahar_text_encoding encoding = LAHAR_ENCODING_UNKNOWN;
    if (memory == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to look into a file");
    }
    while (status == LAHAR_OK && !search.is_done) {
        size_t got = 0;
        status = lahar_source_read(descriptor, search.at, memory, PIECE_SIZE, &got, error);
        if (search.at == 0) {
            size_t mark_size = 0;
            encoding = lahar_encoding_detect(memory, got, true, &mark_size);
            search.line_start = offset != 0 && mark_size <= got ? mark_size : 0;
        }
        if (got == 0) {
            break;
        }
        search_piece(&search, encoding, memory, got, offset, to_last);
    }
    if (status == LAHAR_OK) {
        cursor->offset = search.line_start;
        cursor->line = search.line;
        cursor->first_offset = search.line_start;
        cursor->first_line = search.line;
        cursor->text_flags = 0;
        cursor->long_start = 0;
        cursor->flags &= ~(uint32_t)(LAHAR_CURSOR_LONG_LINE | LAHAR_CURSOR_STUCK);
        cursor->encoding = search.line_start == 0 ? LAHAR_ENCODING_UNKNOWN : (uint8_t)encoding;
        status = hash_place(descriptor, cursor->offset, memory, cursor, error);
    }
    lahar_release(allocator, memory);
    return status;
}
