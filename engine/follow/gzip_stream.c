/* gzip members (RFC 1952) one after another; see gzip_stream.h.
 *
 * A member that ends too early is decoded again from the start of the file once the file has
 * grown: rare, and the only state to keep is where it ended. */
#include "engine/follow/gzip_stream.h"

#include <libdeflate.h>
#include <string.h>

#include "engine/follow/inflate.h"
#include "io/base/error.h"
#include "io/source_file.h"

enum stream_state {
    STREAM_HEADER, /* in front of a member */
    STREAM_DATA,   /* inside one */
    STREAM_SHORT,  /* the file ended inside a member */
    STREAM_END,    /* the file ended behind a member */
    STREAM_BAD
};

struct lahar_gzip_stream {
    const lahar_allocator *allocator;
    enum stream_state state;
    uint64_t file_at;   /* compressed bytes pulled */
    uint64_t stop_size; /* of the file when the state became SHORT or END */
    uint64_t position;  /* decoded bytes, up to the end of the buffer */
    uint32_t crc;       /* of the member so far */
    uint32_t size;      /* decoded bytes of the member, modulo 2^32 */
    int descriptor;
    bool has_failed; /* reading the file */
    lahar_error failure;
    struct lahar_inflate inflate;
};

lahar_status lahar_gzip_stream_create(const lahar_allocator *allocator,
                                      struct lahar_gzip_stream **stream_out, lahar_error *error)
{
    *stream_out = lahar_allocate_zeroed(allocator, 1, sizeof **stream_out);
    if (*stream_out == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to decode a file");
    }
    (*stream_out)->allocator = allocator;
    return LAHAR_OK;
}

void lahar_gzip_stream_destroy(struct lahar_gzip_stream *stream)
{
    if (stream != NULL) {
        lahar_release(stream->allocator, stream);
    }
}

bool lahar_gzip_stream_is_complete(const struct lahar_gzip_stream *stream)
{
    return stream->state == STREAM_END;
}

static size_t pull(void *context, uint8_t *data, size_t size)
{
    struct lahar_gzip_stream *stream = context;
    size_t got = 0;
    if (lahar_source_read(stream->descriptor, stream->file_at, data, size, &got,
                          &stream->failure) != LAHAR_OK) {
        stream->has_failed = true;
        return 0;
    }
    stream->file_at += got;
    return got;
}

static void restart(struct lahar_gzip_stream *stream)
{
    struct lahar_inflate *inflate = &stream->inflate;
    stream->state = STREAM_HEADER;
    stream->file_at = 0;
    stream->position = 0;
    stream->has_failed = false;
    stream->failure = (lahar_error){0};
    inflate->pull = pull;
    inflate->context = stream;
    inflate->input_size = 0;
    inflate->input_next = 0;
    inflate->bits = 0;
    inflate->bit_count = 0;
    inflate->buffer_size = 0;
    inflate->history = 0;
}

static void stop(struct lahar_gzip_stream *stream, enum stream_state state)
{
    stream->state = state;
    stream->stop_size = stream->file_at;
}

/* --- members --------------------------------------------------------------------------- */

enum {
    FLAG_CRC = 2,
    FLAG_EXTRA = 4,
    FLAG_NAME = 8,
    FLAG_COMMENT = 16
};

static bool skip_bytes(struct lahar_inflate *inflate, int count)
{
    while (count-- > 0) {
        if (lahar_inflate_byte(inflate) < 0) {
            return false;
        }
    }
    return true;
}

static bool skip_text(struct lahar_inflate *inflate)
{
    int byte;
    do {
        byte = lahar_inflate_byte(inflate);
    } while (byte > 0);
    return byte == 0;
}

/* Behind a member nothing, another one, or padding with zeros. */
static void read_header(struct lahar_gzip_stream *stream)
{
    struct lahar_inflate *inflate = &stream->inflate;
    int first = lahar_inflate_byte(inflate);
    while (first == 0 && stream->position != 0) {
        first = lahar_inflate_byte(inflate);
    }
    if (first < 0) {
        stop(stream, STREAM_END);
        return;
    }
    const int second = lahar_inflate_byte(inflate);
    const int method = lahar_inflate_byte(inflate);
    const int flags = lahar_inflate_byte(inflate);
    if (first != 0x1f || (second >= 0 && second != 0x8b) || (method >= 0 && method != 8)) {
        stop(stream, STREAM_BAD);
        return;
    }
    bool is_whole = flags >= 0 && skip_bytes(inflate, 6);
    if (is_whole && (flags & FLAG_EXTRA) != 0) {
        const int low = lahar_inflate_byte(inflate);
        const int high = lahar_inflate_byte(inflate);
        is_whole = low >= 0 && high >= 0 && skip_bytes(inflate, low | high << 8);
    }
    is_whole = is_whole && ((flags & FLAG_NAME) == 0 || skip_text(inflate));
    is_whole = is_whole && ((flags & FLAG_COMMENT) == 0 || skip_text(inflate));
    is_whole = is_whole && ((flags & FLAG_CRC) == 0 || skip_bytes(inflate, 2));
    if (!is_whole) {
        stop(stream, STREAM_SHORT);
        return;
    }
    lahar_inflate_begin(inflate);
    stream->crc = 0;
    stream->size = 0;
    stream->state = STREAM_DATA;
}

static void read_trailer(struct lahar_gzip_stream *stream)
{
    uint32_t words[2] = {0, 0};
    for (int i = 0; i < 8; i++) {
        const int byte = lahar_inflate_byte(&stream->inflate);
        if (byte < 0) {
            stop(stream, STREAM_SHORT);
            return;
        }
        words[i / 4] |= (uint32_t)byte << (8 * (i % 4));
    }
    if (words[0] != stream->crc || words[1] != stream->size) {
        stop(stream, STREAM_BAD);
        return;
    }
    stream->state = STREAM_HEADER;
}

/* Decodes until the buffer is full, or the state is an end. */
static void decode_on(struct lahar_gzip_stream *stream)
{
    struct lahar_inflate *inflate = &stream->inflate;
    lahar_inflate_slide(inflate);
    while (stream->state == STREAM_HEADER || stream->state == STREAM_DATA) {
        if (stream->state == STREAM_HEADER) {
            read_header(stream);
            continue;
        }
        const size_t before = inflate->buffer_size;
        const enum lahar_inflate_result result = lahar_inflate_run(inflate);
        const size_t produced = inflate->buffer_size - before;
        stream->crc = libdeflate_crc32(stream->crc, inflate->buffer + before, produced);
        stream->size += (uint32_t)produced;
        stream->position += produced;
        switch (result) {
        case LAHAR_INFLATE_FULL:
            return;
        case LAHAR_INFLATE_DONE:
            read_trailer(stream);
            break;
        case LAHAR_INFLATE_SHORT:
            stop(stream, STREAM_SHORT);
            break;
        case LAHAR_INFLATE_BAD:
            stop(stream, STREAM_BAD);
            break;
        }
    }
}

/* --- reading ------------------------------------------------------------------------------ */

static bool has_grown(const struct lahar_gzip_stream *stream)
{
    struct lahar_source_stat stat;
    return lahar_source_describe(stream->descriptor, &stat, NULL) == LAHAR_OK &&
           stat.size != stream->stop_size;
}

lahar_status lahar_gzip_stream_read(struct lahar_gzip_stream *stream, int descriptor,
                                    uint64_t offset, void *data, size_t size, size_t *read_out,
                                    lahar_error *error)
{
    const struct lahar_inflate *inflate = &stream->inflate;
    size_t done = 0;
    bool has_restarted = false;
    stream->descriptor = descriptor;
    *read_out = 0;
    if (inflate->pull == NULL) {
        restart(stream);
    }
    while (done < size) {
        const uint64_t wanted = offset + done;
        const uint64_t start = stream->position - inflate->buffer_size;
        const bool is_at_end = stream->state != STREAM_HEADER && stream->state != STREAM_DATA;
        if (wanted < start) {
            restart(stream);
        } else if (wanted < stream->position) {
            const size_t available = (size_t)(stream->position - wanted);
            const size_t count = available < size - done ? available : size - done;
            memcpy((uint8_t *)data + done, inflate->buffer + (wanted - start), count);
            done += count;
        } else if (!is_at_end) {
            decode_on(stream);
        } else if (!has_restarted && has_grown(stream)) {
            has_restarted = true;
            restart(stream);
        } else {
            break;
        }
    }
    *read_out = done;
    if (done < size && stream->has_failed) {
        return lahar_fail(error, stream->failure.status, "%s", stream->failure.message);
    }
    if (done < size && stream->state == STREAM_BAD) {
        return lahar_fail(error, LAHAR_CORRUPT, "the gzip data are damaged behind byte %llu",
                          (unsigned long long)stream->position);
    }
    return LAHAR_OK;
}
