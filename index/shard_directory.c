/* Writing and parsing of header, directory and trailer. */
#include "index/shard_directory.h"

#include <stdlib.h>
#include <string.h>

#include "index/bitpack.h"
#include "index/shard_format.h"
#include "index/tokenizer.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    MAGIC_SIZE = 8,
    /* Offsets in the trailer. */
    TRAILER_CHECKSUM_AT = LAHAR_SHARD_TRAILER_SIZE - 4,
    /* A field's record is at least this many bytes, which bounds their number. */
    FIELD_SIZE_MIN = 6,
    REFERENCE_WIDTH_MAX = 56,
    DIRECTORY_BITS_MAX = 28
};

_Static_assert(sizeof LAHAR_SHARD_MAGIC == MAGIC_SIZE + 1, "the magic has eight bytes");

/* Magic, version, version of the tokenizer, features that a reader must know. */
static void put_version(struct lahar_buffer *out)
{
    lahar_buffer_put(out, LAHAR_SHARD_MAGIC, MAGIC_SIZE);
    lahar_buffer_put_u16(out, LAHAR_SHARD_VERSION);
    lahar_buffer_put_u16(out, LAHAR_TOKENIZER_VERSION);
    lahar_buffer_put_u32(out, 0);
}

static lahar_status check_version(struct lahar_reader *reader, lahar_error *error)
{
    const uint8_t *magic = lahar_read_bytes(reader, MAGIC_SIZE);
    const uint16_t version = lahar_read_u16(reader);
    const uint16_t tokenizer = lahar_read_u16(reader);
    const uint32_t features = lahar_read_u32(reader);
    if (magic == NULL || memcmp(magic, LAHAR_SHARD_MAGIC, MAGIC_SIZE) != 0) {
        return lahar_fail(error, LAHAR_CORRUPT, "not an index shard: the magic is missing");
    }
    if (version != LAHAR_SHARD_VERSION || tokenizer != LAHAR_TOKENIZER_VERSION || features != 0) {
        return lahar_fail(error, LAHAR_UNSUPPORTED,
                          "index shard of version %u, tokenizer %u, features %x", version,
                          tokenizer, features);
    }
    return LAHAR_OK;
}

void lahar_directory_put_header(struct lahar_buffer *out)
{
    static const uint8_t reserved[LAHAR_SHARD_HEADER_SIZE - 16];
    put_version(out);
    lahar_buffer_put(out, reserved, sizeof reserved);
}

bool lahar_directory_header_is_valid(const uint8_t *header)
{
    struct lahar_reader reader = lahar_reader_of(header, LAHAR_SHARD_HEADER_SIZE);
    return check_version(&reader, NULL) == LAHAR_OK;
}

int lahar_directory_compare(const uint8_t *a_name, size_t a_size, enum lahar_field_class a_class,
                            const uint8_t *b_name, size_t b_size, enum lahar_field_class b_class)
{
    const size_t size = a_size < b_size ? a_size : b_size;
    const int order = size == 0 ? 0 : memcmp(a_name, b_name, size);
    if (order != 0) {
        return order;
    }
    if (a_size != b_size) {
        return a_size < b_size ? -1 : 1;
    }
    return (a_class > b_class) - (a_class < b_class);
}

/* A layer of the filter of uuids: block_count << 3 | probe_count. */
static void put_layer(struct lahar_buffer *out, const struct lahar_filter_layer *layer)
{
    lahar_buffer_put_u32(out, layer->block_count << 3 | layer->probe_count);
}

static struct lahar_filter_layer read_layer(struct lahar_reader *reader)
{
    const uint32_t v = lahar_read_u32(reader);
    return (struct lahar_filter_layer){.block_count = v >> 3, .probe_count = v & 7};
}

static int compare_fields(const void *a, const void *b)
{
    const struct lahar_directory_field *x = a;
    const struct lahar_directory_field *y = b;
    return lahar_directory_compare(x->name, x->name_size, x->field_class, y->name, y->name_size,
                                   y->field_class);
}

static void put_column(struct lahar_buffer *out, const struct lahar_column *column)
{
    lahar_buffer_put_varint(out, column->zones);
    lahar_buffer_put_varint(out, column->extras);
    lahar_buffer_put_varint(out, column->extra_count << 1 | (column->is_grouped ? 1 : 0));
}

static void put_field(struct lahar_buffer *out, const struct lahar_directory_field *field)
{
    lahar_buffer_put_u8(out, (uint8_t)field->field_class);
    lahar_buffer_put_sized(out, field->name, field->name_size);
    lahar_buffer_put_varint(out, field->presence);
    switch (field->field_class) {
    case LAHAR_CLASS_KEYWORD:
    case LAHAR_CLASS_TEXT:
        lahar_buffer_put_varint(out, field->dictionary.term_count);
        lahar_buffer_put_varint(out, field->dictionary.top);
        lahar_buffer_put_varint(out, field->dictionary.end);
        lahar_buffer_put_varint(out, field->dictionary.common);
        break;
    case LAHAR_CLASS_UUID:
        lahar_buffer_put_varint(out, field->uuids.count);
        lahar_buffer_put_varint(out, field->uuids.keys);
        lahar_buffer_put_varint(out, field->uuids.directory);
        lahar_buffer_put_varint(out, field->uuids.references);
        lahar_buffer_put_u8(out, (uint8_t)field->uuids.directory_bits);
        lahar_buffer_put_u8(out, (uint8_t)field->uuids.skipped_bits);
        lahar_buffer_put_u8(out, (uint8_t)field->uuids.reference_width);
        break;
    case LAHAR_CLASS_NUMBER:
        put_column(out, &field->column);
        break;
    }
}

void lahar_directory_write(struct lahar_directory *directory, const struct lahar_id_run *id_runs,
                           size_t id_run_count, uint64_t last_id, uint64_t body_size,
                           const struct lahar_buffer *checksums, struct lahar_buffer *out)
{
    const size_t start = out->size;
    if (directory->field_count > 1) {
        qsort(directory->fields, directory->field_count, sizeof *directory->fields, compare_fields);
    }
    lahar_buffer_put_u64(out, id_run_count == 0 ? 0 : id_runs[0].first_id);
    lahar_buffer_put_u64(out, last_id);
    lahar_buffer_put_u64(out, directory->times.min);
    lahar_buffer_put_u64(out, directory->times.max);
    lahar_buffer_put_u64(out, directory->times.main_min);
    lahar_buffer_put_u64(out, directory->times.main_max);
    lahar_buffer_put_u64(out, directory->times.early_max);
    lahar_buffer_put_u64(out, directory->times.late_min);
    lahar_id_table_write(out, id_runs, id_run_count, directory->document_count);
    lahar_buffer_put_varint(out, directory->groups.group_count);
    lahar_buffer_put_varint(out, directory->groups.directory);
    put_column(out, &directory->time_column);
    lahar_buffer_put_varint(out, directory->field_count);
    for (size_t i = 0; i < directory->field_count; i++) {
        put_field(out, &directory->fields[i]);
    }
    lahar_buffer_put(out, checksums->data, checksums->size);
    if (out->has_failed || checksums->has_failed) {
        out->has_failed = true;
        return;
    }
    const size_t directory_size = out->size - start;
    const size_t trailer = out->size;
    put_version(out);
    lahar_buffer_put_u64(out, body_size);
    lahar_buffer_put_u64(out, directory_size);
    lahar_buffer_put_u64(out, body_size + directory_size + LAHAR_SHARD_TRAILER_SIZE);
    lahar_buffer_put_u32(out, directory->document_count);
    lahar_buffer_put_u32(out, lahar_crc32c(0, out->data + start, directory_size));
    lahar_buffer_put_u32(out, 0); /* key id: not encrypted */
    put_layer(out, &directory->filter.near);
    put_layer(out, &directory->filter.far);
    if (!out->has_failed) {
        lahar_buffer_put_u32(out, lahar_crc32c(0, out->data + trailer, TRAILER_CHECKSUM_AT));
    }
}

lahar_status lahar_trailer_read(const uint8_t *trailer, uint64_t shard_size,
                                struct lahar_shard_trailer *trailer_out, lahar_error *error)
{
    struct lahar_reader reader = lahar_reader_of(trailer, LAHAR_SHARD_TRAILER_SIZE);
    if (lahar_crc32c(0, trailer, TRAILER_CHECKSUM_AT) !=
        lahar_load_u32(trailer + TRAILER_CHECKSUM_AT)) {
        return lahar_fail(error, LAHAR_CORRUPT, "the trailer of an index shard fails its checksum");
    }
    LAHAR_TRY(check_version(&reader, error));
    trailer_out->directory_offset = lahar_read_u64(&reader);
    trailer_out->directory_size = lahar_read_u64(&reader);
    const uint64_t size = lahar_read_u64(&reader);
    trailer_out->document_count = lahar_read_u32(&reader);
    trailer_out->directory_checksum = lahar_read_u32(&reader);
    const uint32_t key_id = lahar_read_u32(&reader);
    if (key_id != 0) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "index shard encrypted with key %u", key_id);
    }
    trailer_out->filter.near = read_layer(&reader);
    trailer_out->filter.far = read_layer(&reader);
    const uint64_t room = shard_size - LAHAR_SHARD_TRAILER_SIZE;
    if (size != shard_size || trailer_out->directory_offset < LAHAR_SHARD_HEADER_SIZE ||
        trailer_out->directory_offset > room ||
        trailer_out->directory_size != room - trailer_out->directory_offset ||
        trailer_out->document_count > LAHAR_SHARD_DOCUMENTS_MAX ||
        !lahar_uuid_filter_is_valid(&trailer_out->filter, trailer_out->directory_offset)) {
        return lahar_fail(error, LAHAR_CORRUPT,
                          "the trailer of an index shard of %llu bytes is inconsistent",
                          (unsigned long long)shard_size);
    }
    return LAHAR_OK;
}

static bool fits(uint64_t offset, uint64_t count, uint64_t item_size, uint64_t body_size)
{
    return offset <= body_size && count <= (body_size - offset) / item_size;
}

static bool read_column(struct lahar_reader *reader, struct lahar_column *column,
                        const struct lahar_directory *directory, uint64_t body_size)
{
    column->zones = lahar_read_varint(reader);
    column->extras = lahar_read_varint(reader);
    const uint64_t v = lahar_read_varint(reader);
    column->extra_count = v >> 1;
    column->is_grouped = (v & 1) != 0;
    const uint64_t count =
        column->is_grouped ? directory->groups.group_count : directory->document_count;
    const uint64_t blocks = (count + LAHAR_SHARD_COLUMN_BLOCK - 1) / LAHAR_SHARD_COLUMN_BLOCK;
    return !reader->failed && fits(column->zones, blocks, LAHAR_SHARD_ZONE_SIZE, body_size) &&
           fits(column->extras, column->extra_count, LAHAR_SHARD_EXTRA_SIZE, body_size);
}

static bool read_groups(struct lahar_reader *reader, struct lahar_directory *directory,
                        uint64_t body_size)
{
    const uint64_t count = lahar_read_varint(reader);
    directory->groups.directory = lahar_read_varint(reader);
    if (reader->failed || count > directory->document_count) {
        return false;
    }
    directory->groups.group_count = (uint32_t)count;
    const uint64_t blocks = (count + LAHAR_SHARD_GROUP_BLOCK - 1) / LAHAR_SHARD_GROUP_BLOCK;
    return fits(directory->groups.directory, count == 0 ? 0 : blocks + 1, 8, body_size);
}

static bool read_dictionary(struct lahar_reader *reader, struct lahar_dictionary *dictionary,
                            uint64_t body_size)
{
    dictionary->term_count = lahar_read_varint(reader);
    dictionary->top = lahar_read_varint(reader);
    dictionary->end = lahar_read_varint(reader);
    dictionary->common = lahar_read_varint(reader);
    /* A term takes two bytes at least. */
    return !reader->failed && dictionary->term_count <= body_size / 2 &&
           dictionary->top % LAHAR_SHARD_TOP_ENTRY_SIZE == 0 &&
           dictionary->common <= LAHAR_SHARD_TERM_SIZE_MAX && dictionary->end <= body_size &&
           fits(dictionary->top,
                (dictionary->term_count + LAHAR_SHARD_BLOCK_TERMS - 1) / LAHAR_SHARD_BLOCK_TERMS,
                LAHAR_SHARD_TOP_ENTRY_SIZE, body_size);
}

static bool read_uuids(struct lahar_reader *reader, struct lahar_uuid_table *uuids,
                       uint64_t body_size)
{
    uuids->count = lahar_read_varint(reader);
    uuids->keys = lahar_read_varint(reader);
    uuids->directory = lahar_read_varint(reader);
    uuids->references = lahar_read_varint(reader);
    uuids->directory_bits = lahar_read_u8(reader);
    uuids->skipped_bits = lahar_read_u8(reader);
    uuids->reference_width = lahar_read_u8(reader);
    return !reader->failed && uuids->keys % LAHAR_SHARD_UUID_SIZE == 0 &&
           uuids->directory_bits <= DIRECTORY_BITS_MAX && uuids->skipped_bits < 128 &&
           uuids->reference_width <= REFERENCE_WIDTH_MAX &&
           fits(uuids->keys, uuids->count, LAHAR_SHARD_UUID_SIZE, body_size) &&
           fits(uuids->directory, (UINT64_C(1) << uuids->directory_bits) + 1, 4, body_size) &&
           fits(uuids->references, lahar_packed_size(uuids->count, uuids->reference_width), 1,
                body_size);
}

static bool read_field(struct lahar_reader *reader, struct lahar_directory_field *field,
                       const struct lahar_directory *directory, uint64_t body_size)
{
    const uint8_t field_class = lahar_read_u8(reader);
    const uint64_t name_size = lahar_read_varint(reader);
    field->name = lahar_read_bytes(reader, name_size);
    field->name_size = (size_t)name_size;
    field->presence = lahar_read_varint(reader);
    if (reader->failed || field_class < LAHAR_CLASS_KEYWORD || field_class > LAHAR_CLASS_NUMBER) {
        return false;
    }
    field->field_class = (enum lahar_field_class)field_class;
    switch (field->field_class) {
    case LAHAR_CLASS_KEYWORD:
    case LAHAR_CLASS_TEXT:
        return read_dictionary(reader, &field->dictionary, body_size);
    case LAHAR_CLASS_UUID:
        return read_uuids(reader, &field->uuids, body_size);
    case LAHAR_CLASS_NUMBER:
        return read_column(reader, &field->column, directory, body_size);
    }
    return false;
}

static void read_bounds(struct lahar_reader *reader, struct lahar_time_bounds *bounds)
{
    bounds->min = lahar_read_u64(reader);
    bounds->max = lahar_read_u64(reader);
    bounds->main_min = lahar_read_u64(reader);
    bounds->main_max = lahar_read_u64(reader);
    bounds->early_max = lahar_read_u64(reader);
    bounds->late_min = lahar_read_u64(reader);
}

lahar_status lahar_directory_read(const uint8_t *data, const struct lahar_shard_trailer *trailer,
                                  const lahar_allocator *allocator,
                                  struct lahar_directory *directory_out, lahar_error *error)
{
    *directory_out = (struct lahar_directory){.document_count = trailer->document_count,
                                              .filter = trailer->filter};
    struct lahar_reader reader = lahar_reader_of(data, (size_t)trailer->directory_size);
    const uint64_t body_size = trailer->directory_offset;
    lahar_read_u64(&reader); /* first id and last id, for readers that need no more */
    lahar_read_u64(&reader);
    read_bounds(&reader, &directory_out->times);
    if (!lahar_id_table_read(&reader, trailer->document_count, &directory_out->ids) ||
        !read_groups(&reader, directory_out, body_size) ||
        !read_column(&reader, &directory_out->time_column, directory_out, body_size) ||
        directory_out->time_column.is_grouped) {
        return lahar_fail(error, LAHAR_CORRUPT, "the directory of an index shard is malformed");
    }
    const uint64_t count = lahar_read_varint(&reader);
    if (reader.failed || count > lahar_reader_left(&reader) / FIELD_SIZE_MIN) {
        return lahar_fail(error, LAHAR_CORRUPT, "the directory of an index shard is malformed");
    }
    directory_out->fields =
        lahar_allocate_zeroed(allocator, (size_t)count + 1, sizeof *directory_out->fields);
    if (directory_out->fields == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the fields of an index shard");
    }
    directory_out->field_count = (size_t)count;
    for (size_t i = 0; i < count; i++) {
        struct lahar_directory_field *field = &directory_out->fields[i];
        if (!read_field(&reader, field, directory_out, body_size) ||
            (i > 0 && compare_fields(field - 1, field) >= 0)) {
            return lahar_fail(error, LAHAR_CORRUPT, "a field of an index shard is malformed");
        }
    }
    const uint64_t pages = (body_size + LAHAR_SHARD_PAGE_SIZE - 1) / LAHAR_SHARD_PAGE_SIZE;
    directory_out->checksums = lahar_read_bytes(&reader, pages * 4);
    if (reader.failed || lahar_reader_left(&reader) != 0) {
        return lahar_fail(error, LAHAR_CORRUPT, "the directory of an index shard is malformed");
    }
    return LAHAR_OK;
}
