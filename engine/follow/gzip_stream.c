/* gzip members (RFC 1952) one after another; see gzip_stream.h.
 *
 * Where the data end, the decoder stands in front of what it could not finish and goes on from
 * there once the file has grown. A second place is kept in memory from which everything that may be
 * asked for again can be decoded. Both are tied to the file by the bytes in front of them: a file
 * that was written anew is decoded from its start, and its reader finds the other content. */
#include "engine/follow/gzip_stream.h"

#include <libdeflate.h>
#include <string.h>

#include "engine/follow/inflate.h"
#include "io/base/error.h"
#include "io/source_file.h"

enum {
    BEFORE_SIZE = 64 /* bytes of the file that tie a place to it */
};

enum stream_state {
    STREAM_HEADER,  /* in front of a member */
    STREAM_DATA,    /* inside one */
    STREAM_TRAILER, /* behind its data */
    STREAM_SHORT,   /* the file ended inside a member */
    STREAM_END,     /* the file ended behind a member */
    STREAM_BAD
};

/* Where in the file something begins, and what stands in front of it. */
struct place {
    uint64_t bit;
    size_t before_size;
    uint8_t before[BEFORE_SIZE];
};

/* A decoder as it was, without its input. */
struct checkpoint {
    struct place place;
    enum stream_state state;
    uint64_t position;
    uint32_t crc;
    uint32_t size;
    struct lahar_inflate_state inflate;
    size_t window_size;
    uint8_t window[LAHAR_INFLATE_WINDOW];
};

struct lahar_gzip_stream {
    const lahar_allocator *allocator;
    enum stream_state state;
    enum stream_state resume_state; /* in SHORT, END and BAD: what goes on at stop */
    struct place stop;
    uint64_t stop_size;            /* of the file when it stopped */
    uint64_t position;             /* decoded bytes, up to the end of the buffer */
    uint64_t kept_offset;          /* of the content: nothing below is asked for again */
    uint64_t pulled_size;          /* compressed bytes read so far, again and again */
    uint32_t crc;                  /* of the member so far */
    uint32_t size;                 /* decoded bytes of the member, modulo 2^32 */
    struct checkpoint *checkpoint; /* owned; NULL: none yet */
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
        lahar_release(stream->allocator, stream->checkpoint);
        lahar_release(stream->allocator, stream);
    }
}

bool lahar_gzip_stream_is_complete(const struct lahar_gzip_stream *stream)
{
    return stream->state == STREAM_END;
}

void lahar_gzip_stream_keep(struct lahar_gzip_stream *stream, uint64_t offset)
{
    stream->kept_offset = offset;
}

uint64_t lahar_gzip_stream_pulled(const struct lahar_gzip_stream *stream)
{
    return stream->pulled_size;
}

size_t lahar_gzip_stream_memory(const struct lahar_gzip_stream *stream)
{
    return sizeof *stream + (stream->checkpoint == NULL ? 0 : sizeof *stream->checkpoint);
}

static size_t pull(void *context, uint64_t offset, uint8_t *data, size_t size)
{
    struct lahar_gzip_stream *stream = context;
    size_t got = 0;
    if (lahar_source_read(stream->descriptor, offset, data, size, &got, &stream->failure) !=
        LAHAR_OK) {
        stream->has_failed = true;
        return 0;
    }
    stream->pulled_size += got;
    return got;
}

static void restart(struct lahar_gzip_stream *stream)
{
    struct lahar_inflate *inflate = &stream->inflate;
    stream->state = STREAM_HEADER;
    stream->position = 0;
    inflate->pull = pull;
    inflate->context = stream;
    inflate->buffer_size = 0;
    inflate->history = 0;
    lahar_inflate_seek(inflate, 0);
}

/* --- places -------------------------------------------------------------------------------- */

/* The bytes in front of a bit, the byte that it lies in included. */
static size_t read_before(struct lahar_gzip_stream *stream, uint64_t bit, uint8_t *before)
{
    const uint64_t end = bit / 8 + (bit % 8 != 0);
    const size_t size = end < BEFORE_SIZE ? (size_t)end : BEFORE_SIZE;
    size_t got = 0;
    return lahar_source_read(stream->descriptor, end - size, before, size, &got, NULL) == LAHAR_OK
               ? got
               : 0;
}

static void note_place(struct lahar_gzip_stream *stream, uint64_t bit, struct place *place)
{
    place->bit = bit;
    place->before_size = read_before(stream, bit, place->before);
}

static bool is_as_noted(struct lahar_gzip_stream *stream, const struct place *place)
{
    uint8_t before[BEFORE_SIZE];
    const size_t size = read_before(stream, place->bit, before);
    return size == place->before_size && memcmp(before, place->before, size) == 0;
}

/* The data end in front of what begins at bit. */
static void stop(struct lahar_gzip_stream *stream, enum stream_state state,
                 enum stream_state resume_state, uint64_t bit)
{
    const struct lahar_inflate *inflate = &stream->inflate;
    stream->state = state;
    stream->resume_state = resume_state;
    stream->stop_size = inflate->input_at + inflate->input_size;
    note_place(stream, bit, &stream->stop);
}

static void resume(struct lahar_gzip_stream *stream)
{
    stream->state = stream->resume_state;
    lahar_inflate_seek(&stream->inflate, stream->stop.bit);
}

/* Keeps the decoder as it is, if what it produces next may be asked for again and nothing nearer
 * can be kept. Without memory such reads begin at the start of the file. */
static void save(struct lahar_gzip_stream *stream)
{
    const struct lahar_inflate *inflate = &stream->inflate;
    const uint64_t start = stream->position - inflate->buffer_size;
    if (start > stream->kept_offset ||
        stream->position + LAHAR_INFLATE_OUTPUT <= stream->kept_offset) {
        return;
    }
    if (stream->checkpoint == NULL) {
        stream->checkpoint = lahar_allocate(stream->allocator, sizeof *stream->checkpoint);
    }
    struct checkpoint *checkpoint = stream->checkpoint;
    if (checkpoint != NULL) {
        note_place(stream, lahar_inflate_bit(inflate), &checkpoint->place);
        checkpoint->state = stream->state;
        checkpoint->position = stream->position;
        checkpoint->crc = stream->crc;
        checkpoint->size = stream->size;
        checkpoint->inflate = inflate->state;
        checkpoint->window_size = inflate->buffer_size;
        memcpy(checkpoint->window, inflate->buffer, inflate->buffer_size);
    }
}

static void drop_checkpoint(struct lahar_gzip_stream *stream)
{
    lahar_release(stream->allocator, stream->checkpoint);
    stream->checkpoint = NULL;
}

/* Whether the checkpoint is nearer to the wanted offset than the decoder is. */
static bool is_nearer(const struct lahar_gzip_stream *stream, uint64_t wanted)
{
    const struct checkpoint *checkpoint = stream->checkpoint;
    const uint64_t start = stream->position - stream->inflate.buffer_size;
    return checkpoint != NULL && checkpoint->position - checkpoint->window_size <= wanted &&
           (wanted < start || checkpoint->position > stream->position);
}

static void restore(struct lahar_gzip_stream *stream)
{
    const struct checkpoint *checkpoint = stream->checkpoint;
    struct lahar_inflate *inflate = &stream->inflate;
    stream->state = checkpoint->state;
    stream->position = checkpoint->position;
    stream->crc = checkpoint->crc;
    stream->size = checkpoint->size;
    inflate->state = checkpoint->inflate;
    inflate->buffer_size = checkpoint->window_size;
    inflate->history = checkpoint->window_size;
    memcpy(inflate->buffer, checkpoint->window, checkpoint->window_size);
    lahar_inflate_seek(inflate, checkpoint->place.bit);
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
    uint64_t start = lahar_inflate_bit(inflate);
    int first = lahar_inflate_byte(inflate);
    while (first == 0 && stream->position != 0) {
        start = lahar_inflate_bit(inflate);
        first = lahar_inflate_byte(inflate);
    }
    if (first < 0) {
        stop(stream, STREAM_END, STREAM_HEADER, start);
        return;
    }
    const int second = lahar_inflate_byte(inflate);
    const int method = lahar_inflate_byte(inflate);
    const int flags = lahar_inflate_byte(inflate);
    if (first != 0x1f || (second >= 0 && second != 0x8b) || (method >= 0 && method != 8)) {
        stop(stream, STREAM_BAD, STREAM_BAD, start);
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
        stop(stream, STREAM_SHORT, STREAM_HEADER, start);
        return;
    }
    lahar_inflate_begin(inflate);
    stream->crc = 0;
    stream->size = 0;
    stream->state = STREAM_DATA;
}

static void read_trailer(struct lahar_gzip_stream *stream)
{
    const uint64_t start = lahar_inflate_bit(&stream->inflate);
    uint32_t words[2] = {0, 0};
    for (int i = 0; i < 8; i++) {
        const int byte = lahar_inflate_byte(&stream->inflate);
        if (byte < 0) {
            stop(stream, STREAM_SHORT, STREAM_TRAILER, start);
            return;
        }
        words[i / 4] |= (uint32_t)byte << (8 * (i % 4));
    }
    if (words[0] != stream->crc || words[1] != stream->size) {
        stop(stream, STREAM_BAD, STREAM_BAD, start);
        return;
    }
    stream->state = STREAM_HEADER;
}

/* Decodes data until the buffer is full, or they end. */
static void read_data(struct lahar_gzip_stream *stream)
{
    struct lahar_inflate *inflate = &stream->inflate;
    const size_t before = inflate->buffer_size;
    const enum lahar_inflate_result result = lahar_inflate_run(inflate);
    const size_t produced = inflate->buffer_size - before;
    stream->crc = libdeflate_crc32(stream->crc, inflate->buffer + before, produced);
    stream->size += (uint32_t)produced;
    stream->position += produced;
    switch (result) {
    case LAHAR_INFLATE_FULL:
        break;
    case LAHAR_INFLATE_DONE:
        stream->state = STREAM_TRAILER;
        break;
    case LAHAR_INFLATE_SHORT:
        stop(stream, STREAM_SHORT, STREAM_DATA, inflate->mark_bit);
        break;
    case LAHAR_INFLATE_BAD:
        stop(stream, STREAM_BAD, STREAM_BAD, inflate->mark_bit);
        break;
    }
}

static bool is_at_end(const struct lahar_gzip_stream *stream)
{
    return stream->state == STREAM_SHORT || stream->state == STREAM_END ||
           stream->state == STREAM_BAD;
}

/* Decodes until the buffer is full, or the state is an end. */
static void decode_on(struct lahar_gzip_stream *stream)
{
    lahar_inflate_slide(&stream->inflate);
    save(stream);
    while (!is_at_end(stream) && stream->inflate.buffer_size < LAHAR_INFLATE_BUFFER) {
        if (stream->state == STREAM_HEADER) {
            read_header(stream);
        } else if (stream->state == STREAM_TRAILER) {
            read_trailer(stream);
        } else {
            read_data(stream);
        }
    }
}

/* --- reading ------------------------------------------------------------------------------ */

/* Goes on at the end of what there was if there is more; false when there is not. */
static bool go_on(struct lahar_gzip_stream *stream)
{
    struct lahar_source_stat stat;
    if (lahar_source_describe(stream->descriptor, &stat, NULL) != LAHAR_OK ||
        stat.size == stream->stop_size) {
        return false;
    }
    if (stat.size < stream->stop_size || !is_as_noted(stream, &stream->stop)) {
        drop_checkpoint(stream);
        restart(stream);
        return true;
    }
    stream->stop_size = stat.size;
    if (stream->state == STREAM_BAD) {
        return false;
    }
    resume(stream);
    return true;
}

/* Brings the decoder nearer to an offset that its buffer does not hold; false when it is at the
 * end of the data. */
static bool approach(struct lahar_gzip_stream *stream, uint64_t wanted, bool *has_gone_on)
{
    if (is_nearer(stream, wanted)) {
        if (is_as_noted(stream, &stream->checkpoint->place)) {
            restore(stream);
        } else {
            drop_checkpoint(stream);
            restart(stream);
        }
        return true;
    }
    if (wanted < stream->position - stream->inflate.buffer_size) {
        restart(stream);
        return true;
    }
    if (!is_at_end(stream)) {
        decode_on(stream);
        return true;
    }
    if (*has_gone_on) {
        return false;
    }
    *has_gone_on = true;
    return go_on(stream);
}

lahar_status lahar_gzip_stream_read(struct lahar_gzip_stream *stream, int descriptor,
                                    uint64_t offset, void *data, size_t size, size_t *read_out,
                                    lahar_error *error)
{
    const struct lahar_inflate *inflate = &stream->inflate;
    size_t done = 0;
    bool has_gone_on = false;
    stream->descriptor = descriptor;
    *read_out = 0;
    if (inflate->pull == NULL) {
        restart(stream);
    } else if (stream->has_failed && is_at_end(stream)) {
        resume(stream);
    }
    stream->has_failed = false;
    stream->failure = (lahar_error){0};
    while (done < size) {
        const uint64_t wanted = offset + done;
        const uint64_t start = stream->position - inflate->buffer_size;
        if (wanted >= start && wanted < stream->position) {
            const size_t available = (size_t)(stream->position - wanted);
            const size_t count = available < size - done ? available : size - done;
            memcpy((uint8_t *)data + done, inflate->buffer + (wanted - start), count);
            done += count;
        } else if (!approach(stream, wanted, &has_gone_on)) {
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
