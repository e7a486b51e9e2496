#include "engine/segment/block_writer.h"

#include <libdeflate.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/segment/block_format.h"
#include "engine/segment/column_encode.h"
#include "engine/segment/density.h"
#include "engine/segment/scope_writer.h"
#include "engine/segment/uuid_text.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    /* A block smaller than this is one group: several would cost more than they save. */
    SINGLE_GROUP_SIZE = 8 * 1024,
    LISTING_ENTRY_COUNT_MAX = 256
};

struct lahar_block_writer {
    lahar_allocator allocator;
    struct libdeflate_compressor *compressor; /* NULL: no compression */
    struct lahar_scope_writer scope;
    struct lahar_column ids;
    struct lahar_column times;
    struct lahar_column arrivals;
    struct lahar_column_encoder encoder;
    struct lahar_buffer placed;    /* struct lahar_placed_column each */
    struct lahar_buffer structure; /* of the block being put together */
    struct lahar_buffer table;     /* its groups */
    struct lahar_buffer groups;    /* their stored bytes */
    struct lahar_block_info info;
    uint64_t raw_size;
    uint32_t image_size;   /* without the structure, once the block is encoded */
    uint32_t known_blocks; /* until it is judged again which columns are dense */
};

lahar_status lahar_block_writer_create(const struct lahar_stream *stream,
                                       uint32_t compression_level, const lahar_allocator *allocator,
                                       struct lahar_block_writer **writer_out, lahar_error *error)
{
    struct lahar_block_writer *writer = lahar_allocate_zeroed(allocator, 1, sizeof *writer);
    if (writer == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a block writer");
    }
    writer->allocator = *allocator;
    allocator = &writer->allocator;
    lahar_column_init(&writer->ids, LAHAR_COLUMN_INT, allocator);
    lahar_column_init(&writer->times, LAHAR_COLUMN_INT, allocator);
    lahar_column_init(&writer->arrivals, LAHAR_COLUMN_INT, allocator);
    lahar_column_encoder_init(&writer->encoder, allocator);
    lahar_buffer_init(&writer->placed, allocator);
    lahar_buffer_init(&writer->structure, allocator);
    lahar_buffer_init(&writer->table, allocator);
    lahar_buffer_init(&writer->groups, allocator);
    lahar_status status = lahar_scope_writer_init(&writer->scope, stream, allocator);
    if (status == LAHAR_OK && compression_level > 0) {
        writer->compressor = libdeflate_alloc_compressor((int)compression_level);
        status = writer->compressor == NULL ? LAHAR_NO_MEMORY : LAHAR_OK;
    }
    if (status != LAHAR_OK) {
        lahar_block_writer_destroy(writer);
        return lahar_fail(error, status, "no memory for a block writer");
    }
    *writer_out = writer;
    return LAHAR_OK;
}

void lahar_block_writer_destroy(struct lahar_block_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->compressor != NULL) {
        libdeflate_free_compressor(writer->compressor);
    }
    lahar_scope_writer_deinit(&writer->scope);
    lahar_column_deinit(&writer->ids);
    lahar_column_deinit(&writer->times);
    lahar_column_deinit(&writer->arrivals);
    lahar_column_encoder_deinit(&writer->encoder);
    lahar_buffer_deinit(&writer->placed);
    lahar_buffer_deinit(&writer->structure);
    lahar_buffer_deinit(&writer->table);
    lahar_buffer_deinit(&writer->groups);
    const lahar_allocator allocator = writer->allocator;
    lahar_release(&allocator, writer);
}

uint32_t lahar_block_writer_row_count(const struct lahar_block_writer *writer)
{
    return writer->info.row_count;
}

uint64_t lahar_block_writer_raw_size(const struct lahar_block_writer *writer)
{
    return writer->raw_size;
}

struct lahar_block_columns lahar_block_writer_columns(const struct lahar_block_writer *writer)
{
    return (struct lahar_block_columns){.scope = &writer->scope,
                                        .ids = (const uint64_t *)(void *)writer->ids.data.data,
                                        .times = (const int64_t *)(void *)writer->times.data.data,
                                        .row_count = writer->info.row_count};
}

static inline int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Takes what comes before the values of an event, as the given row. */
static lahar_status add_head(struct lahar_block_writer *writer, uint64_t id, int64_t time_ns,
                             int64_t arrival_ns, lahar_error *error)
{
    struct lahar_block_info *info = &writer->info;
    const uint32_t row = info->row_count;
    if (!lahar_column_add_plain_int(&writer->ids, row, id) ||
        !lahar_column_add_plain_int(&writer->times, row, (uint64_t)time_ns) ||
        !lahar_column_add_int(&writer->arrivals, row, (uint64_t)arrival_ns)) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to build a block");
    }
    if (row == 0) {
        *info = (struct lahar_block_info){.first_id = id,
                                          .time_min_ns = time_ns,
                                          .time_max_ns = time_ns,
                                          .arrival_min_ns = arrival_ns,
                                          .arrival_max_ns = arrival_ns};
    }
    info->last_id = id;
    info->time_min_ns = min_of(info->time_min_ns, time_ns);
    info->time_max_ns = max_of(info->time_max_ns, time_ns);
    info->arrival_min_ns = min_of(info->arrival_min_ns, arrival_ns);
    info->arrival_max_ns = max_of(info->arrival_max_ns, arrival_ns);
    return LAHAR_OK;
}

lahar_status lahar_block_writer_add(struct lahar_block_writer *writer, const lahar_event *event,
                                    uint32_t row_size, lahar_error *error)
{
    LAHAR_TRY(add_head(writer, event->id, event->time_ns, event->arrival_ns, error));
    LAHAR_TRY(lahar_scope_writer_add(&writer->scope, writer->info.row_count, event, error));
    writer->info.row_count++;
    writer->raw_size += row_size;
    return LAHAR_OK;
}

lahar_status lahar_block_writer_add_row(struct lahar_block_writer *writer,
                                        const struct lahar_row_event *event, lahar_error *error)
{
    LAHAR_TRY(lahar_scope_writer_add_row(&writer->scope, writer->info.row_count, event->row,
                                         event->size, error));
    const int64_t time_ns = lahar_row_time(event->row);
    LAHAR_TRY(add_head(writer, event->id,
                       time_ns == LAHAR_TIME_OF_ARRIVAL ? event->arrival_ns : time_ns,
                       event->arrival_ns, error));
    writer->info.row_count++;
    writer->raw_size += event->size;
    return LAHAR_OK;
}

/* --- placing columns ---------------------------------------------------------------- */

static void place(struct lahar_block_writer *writer, struct lahar_column *column,
                  enum lahar_block_group group)
{
    const bool is_small = writer->raw_size < SINGLE_GROUP_SIZE;
    const struct lahar_placed_column placed = {.column = column,
                                               .group = is_small ? LAHAR_GROUP_HEAD : group};
    lahar_buffer_put(&writer->placed, &placed, sizeof placed);
}

static enum lahar_block_group group_of(const struct lahar_element *element)
{
    switch (element->type) {
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return LAHAR_GROUP_TEXT;
    case LAHAR_KEYWORD:
        return element->column.entry_count <= LISTING_ENTRY_COUNT_MAX ? LAHAR_GROUP_LISTING
                                                                      : LAHAR_GROUP_FIELDS;
    case LAHAR_BOOL:
    case LAHAR_UUID:
        return LAHAR_GROUP_LISTING;
    case LAHAR_MAP:
        return LAHAR_GROUP_ATTRIBUTES;
    default:
        return LAHAR_GROUP_FIELDS;
    }
}

/* Whether splitting keywords may be of use: they are not numbers nor uuids, which are stored well
 * as they are. */
static bool may_split_keywords(const struct lahar_column *column)
{
    const bool is_uuid =
        column->size_min == LAHAR_UUID_TEXT_SIZE && column->size_max == column->size_min;
    return column->data.size >= LAHAR_TEXT_SPLIT_SIZE_MIN &&
           column->size_max > LAHAR_DECIMAL_SIZE_MAX && !is_uuid;
}

/* Splits the texts or keywords of an element, which has been placed last, into columns that are
 * placed behind all others by place_splits. False when memory is refused. */
static bool split_texts(struct lahar_block_writer *writer, struct lahar_element *element)
{
    if (writer->compressor == NULL ||
        (element->type == LAHAR_KEYWORD && !may_split_keywords(&element->column))) {
        return true;
    }
    if (element->split == NULL && (element->type != LAHAR_KEYWORD ||
                                   !lahar_element_make_split(element, &writer->allocator))) {
        return element->type != LAHAR_KEYWORD;
    }
    if (!lahar_text_split_run(element->split, &element->column, &element->is_split)) {
        return false;
    }
    if (element->is_split && !writer->placed.has_failed) {
        struct lahar_placed_column *placed =
            (struct lahar_placed_column *)(void *)(writer->placed.data + writer->placed.size) - 1;
        placed->split = element->split;
        for (uint32_t i = 0; i < element->split->variable_count; i++) {
            placed->variable_count += element->split->variables[i]->column.slot_count != 0;
        }
    }
    return true;
}

static bool place_map(struct lahar_block_writer *writer, struct lahar_map_scope *map)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        struct lahar_element *element = map->elements[i];
        if (element->is_used) {
            element->written = written++;
            place(writer, &element->column, LAHAR_GROUP_ATTRIBUTES);
            if (element->has_second) {
                place(writer, &element->second, LAHAR_GROUP_ATTRIBUTES);
            } else if (!split_texts(writer, element)) {
                return false;
            }
        }
    }
    return true;
}

static void mark_variable(struct lahar_block_writer *writer)
{
    if (!writer->placed.has_failed) {
        struct lahar_placed_column *end =
            (struct lahar_placed_column *)(void *)(writer->placed.data + writer->placed.size);
        end[-1].is_variable = true;
    }
}

/* Places the columns of an element's templates and variables. */
static void place_split(struct lahar_block_writer *writer, const struct lahar_element *element,
                        enum lahar_block_group group)
{
    if (!element->is_used || !element->is_split) {
        return;
    }
    place(writer, &element->split->templates, group);
    for (uint32_t k = 0; k < element->split->variable_count; k++) {
        struct lahar_column *column = &element->split->variables[k]->column;
        if (column->slot_count != 0) {
            place(writer, column, group);
            mark_variable(writer);
        }
    }
}

/* In the order of the columns that they belong to. */
static void place_splits(struct lahar_block_writer *writer)
{
    for (uint32_t i = 0; i < writer->scope.stream->field_count; i++) {
        const struct lahar_element *element = writer->scope.elements[i];
        if (element == NULL || !element->is_used) {
            continue;
        }
        place_split(writer, element, group_of(element));
        for (uint32_t k = 1; element->map != NULL && k < element->map->count; k++) {
            place_split(writer, element->map->elements[k], LAHAR_GROUP_ATTRIBUTES);
        }
    }
}

/* Lists the block's columns in the order in which the structure names them; false when memory is
 * refused. */
static bool place_columns(struct lahar_block_writer *writer)
{
    lahar_buffer_clear(&writer->placed);
    place(writer, &writer->ids, LAHAR_GROUP_HEAD);
    place(writer, &writer->times, LAHAR_GROUP_HEAD);
    place(writer, &writer->arrivals, LAHAR_GROUP_HEAD);
    place(writer, &writer->scope.shape, LAHAR_GROUP_LISTING);
    uint32_t written = 0;
    for (uint32_t i = 0; i < writer->scope.stream->field_count; i++) {
        struct lahar_element *element = writer->scope.elements[i];
        if (element == NULL || !element->is_used) {
            continue;
        }
        element->written = written++;
        place(writer, &element->column, group_of(element));
        if (!split_texts(writer, element)) {
            return false;
        }
        if (element->has_second) {
            place(writer, &element->second, LAHAR_GROUP_FIELDS);
        }
        if (element->map != NULL && !place_map(writer, element->map)) {
            return false;
        }
    }
    place_splits(writer);
    return !writer->placed.has_failed;
}

/* --- groups ------------------------------------------------------------------------- */

/* Appends a group's bytes, compressed where that makes them fewer, and its entry in
 * the table. */
static void put_group(struct lahar_block_writer *writer, struct lahar_buffer *out,
                      const uint8_t *data, size_t size, bool is_compressible)
{
    if (size == 0) {
        return;
    }
    size_t stored_size = 0;
    uint32_t codec = LAHAR_CODEC_NONE;
    const size_t start = out->size;
    if (writer->compressor != NULL && is_compressible) {
        /* One byte short of the input: what does not fit is stored as it is. */
        if (!lahar_buffer_reserve(out, size)) {
            return;
        }
        stored_size = libdeflate_deflate_compress(writer->compressor, data, size, out->data + start,
                                                  size - 1);
        codec = LAHAR_CODEC_DEFLATE;
        out->size += stored_size;
    }
    if (stored_size == 0) {
        codec = LAHAR_CODEC_NONE;
        stored_size = size;
        lahar_buffer_put(out, data, size);
    }
    if (out->has_failed) {
        return;
    }
    lahar_buffer_put_u32(&writer->table, (uint32_t)stored_size);
    lahar_buffer_put_u32(&writer->table, (uint32_t)size);
    lahar_buffer_put_u32(&writer->table, codec);
    lahar_buffer_put_u32(&writer->table, lahar_crc32c(0, out->data + start, stored_size));
}

/* Cuts a long text at the ends of its entries into groups of about a piece each. */
static void put_long_text(struct lahar_block_writer *writer, struct lahar_buffer *out,
                          const struct lahar_column *column)
{
    const uint32_t *ends = lahar_column_ends(column);
    size_t start = 0;
    for (uint32_t i = 0; i < column->entry_count; i++) {
        const bool is_last = i + 1 == column->entry_count;
        if (is_last || ends[i + 1] - start > LAHAR_BLOCK_PIECE_SIZE) {
            put_group(writer, out, column->data.data + start, ends[i] - start,
                      !column->dense.is_text);
            start = ends[i];
        }
    }
}

/* --- structure ------------------------------------------------------------------------ */

static void put_section(struct lahar_buffer *to, const struct lahar_section *section,
                        const uint32_t *bases)
{
    lahar_buffer_put_varint(to, section->size);
    if (section->size != 0) {
        lahar_buffer_put_varint(to, bases[section->group] + section->offset);
    }
}

static void put_column(struct lahar_buffer *to, const struct lahar_placed_column *placed,
                       const uint32_t *bases)
{
    const struct lahar_column *column = placed->column;
    lahar_buffer_put_u8(to, (uint8_t)column->kind);
    lahar_buffer_put_u8(to, (uint8_t)placed->codes_encoding);
    lahar_buffer_put_u8(to, (uint8_t)placed->entries_encoding);
    lahar_buffer_put_varint(to, column->slot_count);
    lahar_buffer_put_varint(to, column->entry_count);
    if (placed->codes_encoding >= LAHAR_CODES_MAPPED_IDENTITY) {
        lahar_buffer_put_varint(to, placed->source);
    }
    put_section(to, &placed->codes, bases);
    put_section(to, &placed->entries, bases);
    if (column->kind == LAHAR_COLUMN_BYTES && placed->entries_encoding == LAHAR_ENTRIES_RAW) {
        put_section(to, &placed->text, bases);
    }
    if (placed->entries_encoding == LAHAR_ENTRIES_TEMPLATES) {
        lahar_buffer_put_varint(to, placed->variable_count);
    }
}

static void put_nodes(struct lahar_buffer *to, const struct lahar_shapes *shapes,
                      struct lahar_element *const *elements, bool has_occurrences)
{
    lahar_buffer_put_varint(to, shapes->node_count - 1);
    for (uint32_t i = 1; i < shapes->node_count; i++) {
        const struct lahar_shape_node *node = lahar_shapes_node(shapes, i);
        const uint32_t written = elements[node->label / 2]->written;
        lahar_buffer_put_varint(to, i - node->parent - 1);
        lahar_buffer_put_varint(to, (uint64_t)written * 2 + (node->label & 1));
        if (has_occurrences) {
            lahar_buffer_put_varint(to, node->occurrence);
        }
    }
}

static void put_map_scope(struct lahar_buffer *to, const struct lahar_map_scope *map)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        used += map->elements[i]->is_used;
    }
    lahar_buffer_put_varint(to, used);
    lahar_buffer_put_u8(to, map->elements[0]->is_used ? 1 : 0);
    for (uint32_t i = 1; i < map->count; i++) {
        if (map->elements[i]->is_used) {
            lahar_buffer_put_sized(to, map->elements[i]->key, map->elements[i]->key_size);
        }
    }
    put_nodes(to, &map->shapes, map->elements, true);
}

static void put_structure(struct lahar_block_writer *writer, const uint32_t *bases)
{
    struct lahar_buffer *to = &writer->structure;
    const struct lahar_placed_column *placed = (const void *)writer->placed.data;
    const uint32_t count = (uint32_t)(writer->placed.size / sizeof placed[0]);
    lahar_buffer_clear(to);
    lahar_buffer_put_varint(to, count);
    for (uint32_t i = 0; i < count; i++) {
        put_column(to, &placed[i], bases);
    }
    const struct lahar_scope_writer *scope = &writer->scope;
    uint32_t used = 0;
    for (uint32_t i = 0; i < scope->stream->field_count; i++) {
        used += scope->elements[i] != NULL && scope->elements[i]->is_used;
    }
    lahar_buffer_put_varint(to, used);
    for (uint32_t i = 0; i < scope->stream->field_count; i++) {
        const struct lahar_element *element = scope->elements[i];
        if (element == NULL || !element->is_used) {
            continue;
        }
        lahar_buffer_put_varint(to, element->field);
        lahar_buffer_put_u8(to, (uint8_t)element->type);
        if (element->type == LAHAR_MAP) {
            lahar_buffer_put_u8(to, element->map != NULL ? 1 : 0);
            if (element->map != NULL) {
                put_map_scope(to, element->map);
            }
        }
    }
    put_nodes(to, &scope->shapes, scope->elements, false);
}

/* --- the block ------------------------------------------------------------------------- */

/* Where each group begins in the image. */
static uint32_t *lay_out_groups(struct lahar_block_writer *writer, uint32_t *image_size_out)
{
    const struct lahar_column_encoder *encoder = &writer->encoder;
    const uint32_t long_count = lahar_column_encoder_long_text_count(encoder);
    uint32_t *bases =
        lahar_allocate(&writer->allocator, (LAHAR_GROUP_COUNT + long_count) * sizeof bases[0]);
    if (bases == NULL) {
        return NULL;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < LAHAR_GROUP_COUNT; i++) {
        bases[i] = (uint32_t)at;
        at += encoder->groups[i].size;
    }
    for (uint32_t i = 0; i < long_count; i++) {
        bases[LAHAR_GROUP_COUNT + i] = (uint32_t)at;
        at += lahar_column_encoder_long_text(encoder, i)->data.size;
    }
    *image_size_out = (uint32_t)at;
    return bases;
}

static void put_groups(struct lahar_block_writer *writer, struct lahar_buffer *out)
{
    const struct lahar_column_encoder *encoder = &writer->encoder;
    for (uint32_t i = 0; i < LAHAR_GROUP_COUNT; i++) {
        put_group(writer, out, encoder->groups[i].data, encoder->groups[i].size,
                  i != LAHAR_GROUP_DENSE);
    }
    const uint32_t long_count = lahar_column_encoder_long_text_count(encoder);
    for (uint32_t i = 0; i < long_count; i++) {
        put_long_text(writer, out, lahar_column_encoder_long_text(encoder, i));
    }
    put_group(writer, out, writer->structure.data, writer->structure.size, true);
}

/* Header and table go before the groups, whose number and sizes they hold. */
static void put_header(struct lahar_block_writer *writer, struct lahar_buffer *out, size_t start,
                       const struct lahar_buffer *groups, uint32_t image_size)
{
    const uint32_t group_count = (uint32_t)(writer->table.size / LAHAR_BLOCK_GROUP_SIZE);
    const struct lahar_block_info *info = &writer->info;
    const size_t size = LAHAR_BLOCK_HEADER_SIZE + writer->table.size + groups->size;
    const struct lahar_block_header header = {
        .flags = writer->encoder.has_templates ? LAHAR_BLOCK_HAS_TEMPLATES : 0,
        .size = (uint32_t)size,
        .codec = writer->compressor == NULL ? LAHAR_CODEC_NONE : LAHAR_CODEC_DEFLATE,
        .row_count = info->row_count,
        .stream = writer->scope.stream->id,
        .first_id = info->first_id,
        .last_id = info->last_id,
        .raw_size = writer->raw_size,
        .time_min_ns = info->time_min_ns,
        .time_max_ns = info->time_max_ns,
        .arrival_min_ns = info->arrival_min_ns,
        .arrival_max_ns = info->arrival_max_ns,
        .group_count = group_count,
        .image_size = image_size + (uint32_t)writer->structure.size,
        .structure_size = (uint32_t)writer->structure.size,
    };
    if (!lahar_buffer_reserve(out, size)) {
        return;
    }
    lahar_block_header_write(out->data + start, &header, writer->table.data);
    out->size += LAHAR_BLOCK_HEADER_SIZE;
    lahar_buffer_put(out, writer->table.data, writer->table.size);
    lahar_buffer_put(out, groups->data, groups->size);
}

static bool clear(struct lahar_block_writer *writer)
{
    lahar_column_clear(&writer->ids);
    lahar_column_clear(&writer->times);
    lahar_column_clear(&writer->arrivals);
    memset(&writer->info, 0, sizeof writer->info);
    writer->raw_size = 0;
    return lahar_scope_writer_clear(&writer->scope);
}

/* Whether the block is one of those that tell which columns are dense. */
static bool is_density_judged(struct lahar_block_writer *writer)
{
    if (writer->compressor == NULL || writer->raw_size < LAHAR_DENSITY_RAW_SIZE_MIN) {
        return false;
    }
    if (writer->known_blocks > 0) {
        writer->known_blocks--;
        return false;
    }
    writer->known_blocks = LAHAR_DENSITY_BLOCK_COUNT - 1;
    return true;
}

/* Encodes the columns, which have been placed; false when memory is refused. */
static bool encode_columns(struct lahar_block_writer *writer, struct lahar_placed_column *placed,
                           uint32_t count)
{
    const bool is_judged = is_density_judged(writer);
    if (is_judged) {
        lahar_density_forget(placed, count);
    }
    if (!lahar_column_encoder_run(&writer->encoder, placed, count, writer->info.row_count)) {
        return false;
    }
    if (is_judged) {
        lahar_density_learn(&writer->encoder, placed, count);
    }
    return true;
}

lahar_status lahar_block_writer_encode(struct lahar_block_writer *writer, lahar_error *error)
{
    LAHAR_ASSERT(writer->info.row_count > 0);
    if (!lahar_scope_writer_fill(&writer->scope) || !place_columns(writer)) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to put a block together");
    }
    struct lahar_placed_column *placed = (void *)writer->placed.data;
    const uint32_t count = (uint32_t)(writer->placed.size / sizeof placed[0]);
    uint32_t *bases = NULL;
    if (encode_columns(writer, placed, count)) {
        bases = lay_out_groups(writer, &writer->image_size);
    }
    if (bases == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to put a block together");
    }
    put_structure(writer, bases);
    lahar_release(&writer->allocator, bases);
    return writer->structure.has_failed
               ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory to put a block together")
               : LAHAR_OK;
}

lahar_status lahar_block_writer_compress(struct lahar_block_writer *writer,
                                         struct lahar_buffer *out,
                                         struct lahar_block_info *info_out, lahar_error *error)
{
    struct lahar_buffer *groups = &writer->groups;
    lahar_status status = LAHAR_NO_MEMORY;
    const size_t start = out->size;
    lahar_buffer_clear(&writer->table);
    lahar_buffer_clear(groups);
    put_groups(writer, groups);
    if (groups->has_failed || writer->table.has_failed) {
        goto cleanup;
    }
    put_header(writer, out, start, groups, writer->image_size);
    if (out->has_failed) {
        goto cleanup;
    }
    *info_out = writer->info;
    info_out->size = (uint32_t)(out->size - start);
    info_out->checksum = lahar_crc32c(0, out->data + start, info_out->size);
    status = clear(writer) ? LAHAR_OK : LAHAR_NO_MEMORY;
cleanup:
    if (groups->capacity > 4 * LAHAR_BLOCK_RAW_SIZE) {
        lahar_buffer_deinit(groups);
        lahar_buffer_init(groups, &writer->allocator);
    }
    return status == LAHAR_OK ? LAHAR_OK
                              : lahar_fail(error, status, "no memory to put a block together");
}

lahar_status lahar_block_writer_finish(struct lahar_block_writer *writer, struct lahar_buffer *out,
                                       struct lahar_block_info *info_out, lahar_error *error)
{
    LAHAR_TRY(lahar_block_writer_encode(writer, error));
    return lahar_block_writer_compress(writer, out, info_out, error);
}
