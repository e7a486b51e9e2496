/* Cursors as bytes:
 *
 *   u8 version 1, varint flags, u8 encoding, u8 text flags
 *   varint predecessor, device, inode; i64 birth; 16 bytes boot id
 *   varint offset, line, first offset, first line, long start, records, errors, gap, size seen
 *   i64 mtime, changed, last error's time; varint size and text of the last error
 *   varint head size, u64 head hash, u64 for each step that the head has
 *   varint tail size, u64 tail hash
 *   varint count, (varint offset, u64 hash) for each point of the ladder
 *   varint size and bytes of the path
 */
#include "engine/follow/file_cursor.h"

#include <string.h>

#include "io/base/error.h"

enum {
    FORM_VERSION = 1,
    PATH_SIZE_MAX = 4096
};

void lahar_cursor_key(uint64_t generation, uint8_t key_out[LAHAR_CURSOR_KEY_SIZE])
{
    for (int i = 0; i < LAHAR_CURSOR_KEY_SIZE; i++) {
        key_out[i] = (uint8_t)(generation >> (8 * (LAHAR_CURSOR_KEY_SIZE - 1 - i)));
    }
}

static uint32_t step_count(uint32_t head_size)
{
    uint32_t count = 0;
    while (count < LAHAR_HEAD_STEPS && UINT32_C(16) << count <= head_size) {
        count++;
    }
    return count;
}

static void put_print(struct lahar_buffer *buffer, const struct lahar_fingerprint *print)
{
    lahar_buffer_put_varint(buffer, print->head_size);
    lahar_buffer_put_u64(buffer, print->head_hash);
    for (uint32_t i = 0; i < step_count(print->head_size); i++) {
        lahar_buffer_put_u64(buffer, print->step_hashes[i]);
    }
    lahar_buffer_put_varint(buffer, print->tail_size);
    lahar_buffer_put_u64(buffer, print->tail_hash);
    lahar_buffer_put_varint(buffer, print->ladder_count);
    for (uint32_t i = 0; i < print->ladder_count; i++) {
        lahar_buffer_put_varint(buffer, print->ladder[i].offset);
        lahar_buffer_put_u64(buffer, print->ladder[i].hash);
    }
}

void lahar_file_cursor_encode(const struct lahar_file_cursor *cursor, const char *path,
                              struct lahar_buffer *buffer)
{
    const uint64_t identity[] = {cursor->predecessor, cursor->device, cursor->inode};
    const uint64_t numbers[] = {cursor->offset,      cursor->line,       cursor->first_offset,
                                cursor->first_line,  cursor->long_start, cursor->record_count,
                                cursor->error_count, cursor->gap_size,   cursor->size_seen};
    lahar_buffer_put_u8(buffer, FORM_VERSION);
    lahar_buffer_put_varint(buffer, cursor->flags);
    lahar_buffer_put_u8(buffer, cursor->encoding);
    lahar_buffer_put_u8(buffer, cursor->text_flags);
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++) {
        lahar_buffer_put_varint(buffer, identity[i]);
    }
    lahar_buffer_put_u64(buffer, (uint64_t)cursor->birth_ns);
    lahar_buffer_put(buffer, cursor->boot_id, sizeof cursor->boot_id);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lahar_buffer_put_varint(buffer, numbers[i]);
    }
    lahar_buffer_put_u64(buffer, (uint64_t)cursor->mtime_ns);
    lahar_buffer_put_u64(buffer, (uint64_t)cursor->changed_ns);
    lahar_buffer_put_u64(buffer, (uint64_t)cursor->last_error_ns);
    lahar_buffer_put_sized(buffer, cursor->last_error, strlen(cursor->last_error));
    put_print(buffer, &cursor->print);
    lahar_buffer_put_sized(buffer, path, strlen(path));
}

static void read_print(struct lahar_reader *reader, struct lahar_fingerprint *print)
{
    const uint64_t head_size = lahar_read_varint(reader);
    print->head_hash = lahar_read_u64(reader);
    if (head_size > LAHAR_HEAD_SIZE) {
        reader->failed = true;
        return;
    }
    print->head_size = (uint32_t)head_size;
    for (uint32_t i = 0; i < step_count(print->head_size); i++) {
        print->step_hashes[i] = lahar_read_u64(reader);
    }
    const uint64_t tail_size = lahar_read_varint(reader);
    print->tail_hash = lahar_read_u64(reader);
    const uint64_t count = lahar_read_varint(reader);
    if (tail_size > LAHAR_TAIL_SIZE || count > LAHAR_LADDER_SIZE) {
        reader->failed = true;
        return;
    }
    print->tail_size = (uint32_t)tail_size;
    print->ladder_count = (uint32_t)count;
    for (uint32_t i = 0; i < print->ladder_count; i++) {
        print->ladder[i].offset = lahar_read_varint(reader);
        print->ladder[i].hash = lahar_read_u64(reader);
    }
}

/* Reads the text of the last error and the path; false when either is too long. */
static bool read_text(struct lahar_reader *reader, char *text_out, size_t size_max)
{
    const uint64_t size = lahar_read_varint(reader);
    const uint8_t *text = lahar_read_bytes(reader, size);
    if (reader->failed || size >= size_max) {
        return false;
    }
    memcpy(text_out, text, (size_t)size);
    text_out[size] = '\0';
    return true;
}

lahar_status lahar_file_cursor_decode(lahar_bytes key, lahar_bytes value,
                                      struct lahar_file_cursor *cursor_out, lahar_bytes *path_out,
                                      lahar_error *error)
{
    struct lahar_reader reader = lahar_reader_of(value.data, value.size);
    struct lahar_file_cursor *cursor = cursor_out;
    const uint8_t *key_bytes = key.data;
    *cursor = (struct lahar_file_cursor){0};
    *path_out = (lahar_bytes){0};
    if (lahar_read_u8(&reader) > FORM_VERSION) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "a file's offset has a newer form");
    }
    for (size_t i = 0; key.size == LAHAR_CURSOR_KEY_SIZE && i < key.size; i++) {
        cursor->generation = cursor->generation << 8 | key_bytes[i];
    }
    cursor->flags = (uint32_t)lahar_read_varint(&reader);
    cursor->encoding = lahar_read_u8(&reader);
    cursor->text_flags = lahar_read_u8(&reader);
    cursor->predecessor = lahar_read_varint(&reader);
    cursor->device = lahar_read_varint(&reader);
    cursor->inode = lahar_read_varint(&reader);
    cursor->birth_ns = (int64_t)lahar_read_u64(&reader);
    const uint8_t *boot_id = lahar_read_bytes(&reader, sizeof cursor->boot_id);
    if (boot_id != NULL) {
        memcpy(cursor->boot_id, boot_id, sizeof cursor->boot_id);
    }
    uint64_t *const numbers[] = {&cursor->offset,      &cursor->line,       &cursor->first_offset,
                                 &cursor->first_line,  &cursor->long_start, &cursor->record_count,
                                 &cursor->error_count, &cursor->gap_size,   &cursor->size_seen};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *numbers[i] = lahar_read_varint(&reader);
    }
    cursor->mtime_ns = (int64_t)lahar_read_u64(&reader);
    cursor->changed_ns = (int64_t)lahar_read_u64(&reader);
    cursor->last_error_ns = (int64_t)lahar_read_u64(&reader);
    const bool has_text = read_text(&reader, cursor->last_error, sizeof cursor->last_error);
    read_print(&reader, &cursor->print);
    const uint64_t path_size = lahar_read_varint(&reader);
    const uint8_t *path = lahar_read_bytes(&reader, path_size);
    if (reader.failed || !has_text || path_size >= PATH_SIZE_MAX || cursor->generation == 0 ||
        cursor->encoding > LAHAR_ENCODING_UTF32BE || cursor->line == 0 || cursor->first_line == 0 ||
        cursor->print.tail_size > cursor->offset || cursor->print.head_size > cursor->offset ||
        ((cursor->flags & LAHAR_CURSOR_LONG_LINE) != 0 && cursor->long_start > cursor->offset)) {
        return lahar_fail(error, LAHAR_CORRUPT, "the offset of a file is damaged");
    }
    *path_out = (lahar_bytes){path, (size_t)path_size};
    return LAHAR_OK;
}
