/* The structure of a block: which columns there are, where their sections lie, which
 * fields and keys they belong to, and the tree of shapes. */
#include <string.h>

#include "engine/segment/block_reader.h"
#include "io/base/bytes.h"
#include "io/base/error.h"

enum {
    COLUMN_SIZE_MIN = 7, /* bytes that a column takes in the structure at least */
    FIRST_FIELD_COLUMN = 4
};

struct parser {
    struct lahar_block *block;
    const struct lahar_stream *stream;
    struct lahar_reader reader;
    uint32_t next_column; /* columns are named in order */
    bool out_of_memory;
};

static void *allocate(struct parser *parser, uint64_t count, size_t size)
{
    /* A count was checked against the bytes that are left to describe it. */
    void *memory = lahar_arena_allocate(&parser->block->arena, (size_t)count * size + 1);
    if (memory == NULL) {
        parser->out_of_memory = true;
        parser->reader.failed = true;
        return NULL;
    }
    memset(memory, 0, (size_t)count * size + 1);
    return memory;
}

/* Reads a count of things that take at least item_size bytes each. */
static uint32_t read_count(struct parser *parser, size_t item_size)
{
    const uint64_t count = lahar_read_varint(&parser->reader);
    if (count > lahar_reader_left(&parser->reader) / item_size) {
        parser->reader.failed = true;
        return 0;
    }
    return (uint32_t)count;
}

static struct lahar_byte_range read_section(struct parser *parser)
{
    const uint64_t size = lahar_read_varint(&parser->reader);
    if (size == 0) {
        return (struct lahar_byte_range){0, 0};
    }
    const uint64_t offset = lahar_read_varint(&parser->reader);
    const uint32_t image_size = parser->block->header.image_size;
    if (offset > image_size || size > image_size - offset) {
        parser->reader.failed = true;
        return (struct lahar_byte_range){0, 0};
    }
    return (struct lahar_byte_range){(uint32_t)offset, (uint32_t)size};
}

static void read_column(struct parser *parser, struct lahar_block_column *column)
{
    const uint8_t kind = lahar_read_u8(&parser->reader);
    const uint8_t codes_encoding = lahar_read_u8(&parser->reader);
    const uint8_t entries_encoding = lahar_read_u8(&parser->reader);
    const uint64_t slot_count = lahar_read_varint(&parser->reader);
    const uint64_t entry_count = lahar_read_varint(&parser->reader);
    if (kind < LAHAR_COLUMN_BYTES || kind > LAHAR_COLUMN_INT ||
        codes_encoding >= LAHAR_CODES_COUNT || entries_encoding >= LAHAR_ENTRIES_COUNT ||
        (kind != LAHAR_COLUMN_BYTES && entries_encoding != LAHAR_ENTRIES_RAW) ||
        slot_count > parser->block->header.raw_size || entry_count > slot_count ||
        (entry_count == 0) != (slot_count == 0)) {
        parser->reader.failed = true;
        return;
    }
    column->kind = kind;
    column->codes_encoding = codes_encoding;
    column->entries_encoding = entries_encoding;
    column->slot_count = (uint32_t)slot_count;
    column->entry_count = (uint32_t)entry_count;
    if (codes_encoding >= LAHAR_CODES_MAPPED_IDENTITY) {
        const uint64_t source = lahar_read_varint(&parser->reader);
        parser->reader.failed = parser->reader.failed || source >= parser->block->column_count;
        column->source = (uint32_t)source;
    }
    column->codes_range = read_section(parser);
    column->entries_range = read_section(parser);
    if (kind == LAHAR_COLUMN_BYTES && entries_encoding == LAHAR_ENTRIES_RAW) {
        column->text_range = read_section(parser);
    }
    if (entries_encoding == LAHAR_ENTRIES_TEMPLATES) {
        const uint64_t count = lahar_read_varint(&parser->reader);
        parser->reader.failed = parser->reader.failed || count > parser->block->column_count;
        column->variable_count = (uint32_t)count;
    }
    /* What old readers do not know is announced in the header. */
    if (entries_encoding >= LAHAR_ENTRIES_TEMPLATES &&
        (parser->block->header.flags & LAHAR_BLOCK_HAS_TEMPLATES) == 0) {
        parser->reader.failed = true;
    }
}

/* Gives columns of texts the columns behind all others, in order. */
static void take_template_columns(struct parser *parser)
{
    struct lahar_block *block = parser->block;
    const uint32_t owner_end = parser->next_column;
    for (uint32_t i = 0; i < owner_end && !parser->reader.failed; i++) {
        struct lahar_block_column *column = &block->columns[i];
        if (column->entries_encoding != LAHAR_ENTRIES_TEMPLATES) {
            continue;
        }
        const uint32_t left = block->column_count - parser->next_column;
        if (column->variable_count >= left || column->entry_count == 0) {
            parser->reader.failed = true;
            return;
        }
        column->templates = parser->next_column;
        for (uint32_t k = 0; k <= column->variable_count; k++) {
            struct lahar_block_column *part = &block->columns[parser->next_column++];
            part->is_part = true;
            parser->reader.failed = parser->reader.failed || part->kind != LAHAR_COLUMN_BYTES ||
                                    part->codes_encoding >= LAHAR_CODES_MAPPED_IDENTITY ||
                                    part->entries_encoding == LAHAR_ENTRIES_TEMPLATES;
        }
        parser->reader.failed = parser->reader.failed ||
                                block->columns[column->templates].slot_count != column->entry_count;
    }
}

/* Every slot stands for at least one byte of a row, which bounds what the columns
 * together may ask for; and a source has a slot in each row and is not mapped. */
static bool are_columns_plausible(const struct lahar_block *block)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < block->column_count; i++) {
        const struct lahar_block_column *column = &block->columns[i];
        slots += column->slot_count;
        if (column->codes_encoding == LAHAR_CODES_CONSTANT && column->entry_count > 1) {
            return false;
        }
        if (column->codes_encoding == LAHAR_CODES_IDENTITY &&
            column->entry_count != column->slot_count) {
            return false;
        }
        if (column->codes_encoding >= LAHAR_CODES_MAPPED_IDENTITY) {
            const struct lahar_block_column *source = &block->columns[column->source];
            if (source->codes_encoding >= LAHAR_CODES_MAPPED_IDENTITY ||
                source->slot_count != block->header.row_count) {
                return false;
            }
        }
    }
    return slots <= block->header.raw_size;
}

static void read_columns(struct parser *parser)
{
    struct lahar_block *block = parser->block;
    block->column_count = read_count(parser, COLUMN_SIZE_MIN);
    if (block->column_count < FIRST_FIELD_COLUMN) {
        parser->reader.failed = true;
        return;
    }
    block->columns = allocate(parser, block->column_count, sizeof block->columns[0]);
    for (uint32_t i = 0; !parser->reader.failed && i < block->column_count; i++) {
        read_column(parser, &block->columns[i]);
    }
    if (parser->reader.failed || !are_columns_plausible(block)) {
        parser->reader.failed = true;
        return;
    }
    for (uint32_t i = 0; i < FIRST_FIELD_COLUMN; i++) {
        if (block->columns[i].kind != LAHAR_COLUMN_INT ||
            block->columns[i].slot_count != block->header.row_count) {
            parser->reader.failed = true;
        }
    }
}

/* The next column, which must be of this kind; 0 when it is not. */
static uint32_t take_column(struct parser *parser, enum lahar_column_kind kind)
{
    if (parser->reader.failed || parser->next_column >= parser->block->column_count ||
        parser->block->columns[parser->next_column].kind != kind) {
        parser->reader.failed = true;
        return 0;
    }
    return parser->next_column++;
}

static void read_nodes(struct parser *parser, struct lahar_block_scope *scope, bool is_map)
{
    scope->node_count = read_count(parser, 2) + 1;
    scope->nodes = allocate(parser, scope->node_count, sizeof scope->nodes[0]);
    for (uint32_t i = 1; !parser->reader.failed && i < scope->node_count; i++) {
        struct lahar_block_node *node = &scope->nodes[i];
        const uint64_t distance = lahar_read_varint(&parser->reader);
        const uint64_t label = lahar_read_varint(&parser->reader);
        const uint64_t occurrence = is_map ? lahar_read_varint(&parser->reader) : 0;
        if (parser->reader.failed || distance >= i || label / 2 >= scope->element_count ||
            occurrence > parser->block->header.raw_size) {
            parser->reader.failed = true;
            return;
        }
        node->parent = i - 1 - (uint32_t)distance;
        node->label = (uint32_t)label;
        node->occurrence = (uint32_t)occurrence;
        node->depth = scope->nodes[node->parent].depth + 1;
        struct lahar_block_element *element = &scope->elements[label / 2];
        element->has_occurrences = element->has_occurrences || occurrence != 0;
        /* Fields stand in order, each at most once. */
        if (!is_map && node->parent != 0 && scope->nodes[node->parent].label / 2 >= label / 2) {
            parser->reader.failed = true;
        }
    }
}

static void read_map_scope(struct parser *parser, uint32_t number,
                           struct lahar_block_element *owner)
{
    struct lahar_block_scope *scope = &parser->block->scopes[number];
    scope->owner = owner;
    scope->shape_column = owner->column;
    scope->element_count = read_count(parser, 1);
    const uint8_t has_unnamed = lahar_read_u8(&parser->reader);
    if (parser->reader.failed || has_unnamed > 1 || has_unnamed > scope->element_count) {
        parser->reader.failed = true;
        return;
    }
    scope->elements = allocate(parser, scope->element_count, sizeof scope->elements[0]);
    for (uint32_t i = 0; !parser->reader.failed && i < scope->element_count; i++) {
        struct lahar_block_element *element = &scope->elements[i];
        element->type = LAHAR_KEYWORD;
        element->column = take_column(parser, LAHAR_COLUMN_BYTES);
        element->is_unnamed = i < has_unnamed;
        if (element->is_unnamed) {
            element->second = take_column(parser, LAHAR_COLUMN_BYTES);
            continue;
        }
        const uint64_t size = lahar_read_varint(&parser->reader);
        element->key.data = lahar_read_bytes(&parser->reader, size);
        element->key.size = element->key.data == NULL ? 0 : (size_t)size;
    }
    read_nodes(parser, scope, true);
}

static void read_field(struct parser *parser, struct lahar_block_element *element)
{
    struct lahar_block *block = parser->block;
    const uint64_t field = lahar_read_varint(&parser->reader);
    const uint8_t type = lahar_read_u8(&parser->reader);
    if (parser->reader.failed || field >= LAHAR_FIELD_COUNT_MAX || type < LAHAR_KEYWORD ||
        type > LAHAR_MAP) {
        parser->reader.failed = true;
        return;
    }
    element->field = (uint32_t)field;
    element->type = type;
    const struct lahar_stream_field *declared =
        parser->stream == NULL ? NULL : lahar_stream_find_field(parser->stream, element->field);
    if (parser->stream != NULL && (declared == NULL || declared->type != element->type)) {
        parser->reader.failed = true;
        return;
    }
    switch (element->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        element->column = take_column(parser, LAHAR_COLUMN_BYTES);
        return;
    case LAHAR_UUID:
        element->column = take_column(parser, LAHAR_COLUMN_UUID);
        return;
    case LAHAR_LIST_UUID:
    case LAHAR_LIST_KEYWORD:
        element->column = take_column(parser, LAHAR_COLUMN_INT);
        element->second = take_column(
            parser, element->type == LAHAR_LIST_UUID ? LAHAR_COLUMN_UUID : LAHAR_COLUMN_BYTES);
        if (!parser->reader.failed) {
            struct lahar_block_column *items = &block->columns[element->second];
            items->is_item = true;
            parser->reader.failed = items->codes_encoding >= LAHAR_CODES_MAPPED_IDENTITY;
        }
        return;
    case LAHAR_MAP: {
        element->column = take_column(parser, LAHAR_COLUMN_INT);
        const uint8_t has_scope = lahar_read_u8(&parser->reader);
        if (has_scope == 1 && !parser->reader.failed) {
            element->map = block->scope_count++;
            read_map_scope(parser, element->map, element);
        } else if (has_scope > 1 ||
                   (!parser->reader.failed && block->columns[element->column].slot_count != 0)) {
            parser->reader.failed = true;
        }
        return;
    }
    default:
        element->column = take_column(parser, LAHAR_COLUMN_INT);
        return;
    }
}

static void read_fields(struct parser *parser)
{
    struct lahar_block *block = parser->block;
    const uint32_t count = read_count(parser, 2);
    block->scopes = allocate(parser, (uint64_t)count + 1, sizeof block->scopes[0]);
    if (parser->reader.failed) {
        return;
    }
    struct lahar_block_scope *scope = &block->scopes[0];
    block->scope_count = 1;
    scope->element_count = count;
    scope->elements = allocate(parser, count, sizeof scope->elements[0]);
    for (uint32_t i = 0; !parser->reader.failed && i < count; i++) {
        read_field(parser, &scope->elements[i]);
        if (i > 0 && scope->elements[i - 1].field >= scope->elements[i].field) {
            parser->reader.failed = true;
        }
    }
    scope->shape_column = FIRST_FIELD_COLUMN - 1;
    read_nodes(parser, scope, false);
}

lahar_status lahar_block_parse(struct lahar_block *block, const struct lahar_stream *stream,
                               lahar_error *error)
{
    const struct lahar_block_header *header = &block->header;
    const struct lahar_byte_range range = {header->image_size - header->structure_size,
                                           header->structure_size};
    LAHAR_TRY(lahar_block_need_bytes(block, range, error));
    struct parser parser = {.block = block, .stream = stream, .next_column = FIRST_FIELD_COLUMN};
    parser.reader = lahar_reader_of(block->image + range.offset, range.size);
    read_columns(&parser);
    if (!parser.reader.failed) {
        read_fields(&parser);
    }
    if (!parser.reader.failed) {
        take_template_columns(&parser);
    }
    if (parser.out_of_memory) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a block");
    }
    if (parser.reader.failed || lahar_reader_left(&parser.reader) != 0 ||
        parser.next_column != block->column_count) {
        return lahar_fail(error, LAHAR_CORRUPT, "the structure of a block is damaged");
    }
    return LAHAR_OK;
}
