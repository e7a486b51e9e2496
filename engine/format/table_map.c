/* From the cells of a row to the event's fields, and its shape (table_shape.h). What each column
 * stands for is looked up once for many rows. */
#include <stdio.h>
#include <string.h>

#include "engine/format/columns.h"
#include "engine/format/table_shape.h"
#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

static bool is_text_type(lahar_type type)
{
    return type == LAHAR_KEYWORD || type == LAHAR_TEXT || type == LAHAR_BYTES;
}

static struct lahar_table_column column_of(const struct lahar_text_reader *reader, lahar_bytes name)
{
    const struct lahar_field_entry *entry =
        lahar_field_map_find(&reader->fields, name.data, name.size);
    const bool is_filled = entry != NULL && entry->is_declared && entry->type != LAHAR_MAP;
    return (struct lahar_table_column){
        .name = name,
        .entry = entry,
        .is_filled = is_filled,
        .has_default = entry != NULL && entry->is_declared &&
                       lahar_columns_have_default(reader->options.columns, entry->field),
        .lacks_empty = is_filled && reader->of.table.empty_is_null && !is_text_type(entry->type),
        .is_plain_pair = !is_filled && (entry == NULL || !entry->is_time),
    };
}

/* What every row's shape begins with: kind and header. */
static void put_shape_head(struct lahar_text_reader *reader)
{
    struct lahar_table_rows *table = &reader->of.table;
    struct lahar_buffer *head = &table->shape_head;
    const bool is_tsv = table->parser.style.is_tsv;
    lahar_buffer_clear(head);
    if (table->is_plain) {
        lahar_buffer_put_u8(head, is_tsv ? LAHAR_SHAPE_TSV : LAHAR_SHAPE_CSV);
    } else {
        const bool has_header = lahar_format_has_header(reader->options.format);
        lahar_buffer_put_u8(head, LAHAR_SHAPE_TABLE);
        lahar_buffer_put_u8(head, (uint8_t)((is_tsv ? LAHAR_TABLE_SHAPE_TSV : 0) |
                                            (has_header ? 0 : LAHAR_TABLE_SHAPE_BARE)));
        lahar_buffer_put_u8(head, table->parser.style.delimiter);
    }
    lahar_buffer_put_sized(head, table->header.data, table->header.size);
}

/* Looks up what the header's columns stand for. */
static bool map_columns(struct lahar_text_reader *reader)
{
    struct lahar_table_rows *table = &reader->of.table;
    const size_t count = table->header_parser.field_count;
    struct lahar_table_column *columns =
        lahar_reallocate(reader->options.allocator, table->columns, (count + 1) * sizeof *columns);
    if (columns == NULL) {
        return false;
    }
    table->columns = columns;
    lahar_arena_reset(&table->arena);
    for (size_t i = 0; i < count; i++) {
        lahar_bytes name;
        if (!lahar_table_value(&table->header_parser, table->header.data + table->header_start, i,
                               &table->arena, &name)) {
            return false;
        }
        columns[i] = column_of(reader, name);
        for (size_t j = 0; j < i && columns[i].is_filled && !columns[i].is_repeated; j++) {
            columns[i].is_repeated = columns[j].entry == columns[i].entry;
        }
    }
    put_shape_head(reader);
    table->mapped_version = reader->fields.version;
    return !table->shape_head.has_failed;
}

/* A column beyond the header's. */
static bool name_column(struct lahar_text_reader *reader, size_t index,
                        struct lahar_table_column *column_out)
{
    char storage[LAHAR_COLUMN_NAME_SIZE];
    const lahar_bytes name = lahar_column_name(index, storage);
    const void *copy = lahar_arena_copy(&reader->record.arena, storage, name.size);
    *column_out = column_of(reader, (lahar_bytes){copy == NULL ? storage : copy, name.size});
    column_out->is_repeated = true;
    return copy != NULL;
}

/* One field of a row on its way into the record. */
struct cell {
    lahar_bytes value;
    bool is_null;
    bool is_odd; /* written otherwise than its value would be */
};

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static lahar_bytes trim(lahar_bytes value)
{
    const uint8_t *p = value.data;
    size_t size = value.size;
    while (size != 0 && is_space(p[size - 1])) {
        size--;
    }
    while (size != 0 && is_space(*p)) {
        p++;
        size--;
    }
    return (lahar_bytes){p, size};
}

/* Whether the field's value is its text, and surely not null. */
static inline bool is_as_written(const struct lahar_table_rows *table,
                                 const struct lahar_table_field *field)
{
    return !field->has_escapes &&
           (field->is_quoted || (!table->trims && field->size != table->null_text.size));
}

static bool read_cell(struct lahar_text_reader *reader, const uint8_t *text, size_t index,
                      struct cell *cell_out)
{
    const struct lahar_table_rows *table = &reader->of.table;
    const struct lahar_table_field *field = &table->parser.fields[index];
    const lahar_bytes null_text = table->null_text;
    lahar_bytes whole = {text + field->offset, field->size};
    *cell_out = (struct cell){.value = whole};
    if (field->has_escapes &&
        !lahar_table_value(&table->parser, text, index, &reader->record.arena, &cell_out->value)) {
        return false;
    }
    if (table->trims && !field->is_quoted) {
        cell_out->value = trim(cell_out->value);
        whole = trim(whole);
    }
    /* What stands for null is the text in the file, not what its escapes say. */
    if (!field->is_quoted && whole.size == null_text.size &&
        (whole.size == 0 || memcmp(whole.data, null_text.data, whole.size) == 0)) {
        cell_out->is_null = true;
        cell_out->is_odd = null_text.size != 2 || memcmp(null_text.data, "\\N", 2) != 0;
    }
    return true;
}

static void put_exception(struct lahar_buffer *exceptions, size_t index, lahar_bytes text)
{
    lahar_buffer_put_varint(exceptions, index);
    lahar_buffer_put_sized(exceptions, text.data, text.size);
}

/* Room for the places of all cells has been made in the shape. */
static inline void put_place(struct lahar_buffer *shape, uint64_t place)
{
    shape->size = (size_t)(lahar_put_varint(shape->data + shape->size, place) - shape->data);
}

static lahar_status put_cell(struct lahar_text_reader *reader, size_t index, struct cell *cell,
                             const struct lahar_table_column *column)
{
    struct lahar_record *record = &reader->record;
    struct lahar_buffer *exceptions = &reader->of.table.exceptions;
    const bool is_filled = column->is_filled &&
                           !(column->is_repeated && lahar_record_has(record, column->entry->field));
    if (cell->value.size == 0 && !cell->is_null && column->lacks_empty && is_filled) {
        cell->is_null = true;
        cell->is_odd = true;
    }
    if (cell->is_null && cell->is_odd && column->has_default && cell->value.size == 0) {
        /* As good as none; its place is among the shape's. */
        put_place(&record->shape, (uint64_t)column->entry->field + 1);
        put_exception(exceptions, index, cell->value);
        return LAHAR_OK;
    }
    const enum lahar_record_put put = lahar_text_reader_put_where(
        reader, column->entry, is_filled, column->name, cell->value, cell->is_null);
    switch (put) {
    case LAHAR_PUT_PAIR:
        put_place(&record->shape, 0);
        break;
    case LAHAR_PUT_EXACT:
    case LAHAR_PUT_INEXACT:
        put_place(&record->shape, (uint64_t)column->entry->field + 1);
        break;
    case LAHAR_PUT_REFUSED:
        return LAHAR_INVALID;
    default:
        return LAHAR_NO_MEMORY;
    }
    if (put == LAHAR_PUT_INEXACT || cell->is_odd) {
        put_exception(exceptions, index, cell->value);
    }
    return LAHAR_OK;
}

static lahar_status map_cell(struct lahar_text_reader *reader, const uint8_t *text, size_t index,
                             char message[LAHAR_TABLE_MESSAGE_SIZE])
{
    const struct lahar_table_rows *table = &reader->of.table;
    const bool is_named = index < table->header_parser.field_count;
    const struct lahar_table_column *column = &table->columns[index];
    struct lahar_table_column beyond;
    struct cell cell;
    if (!read_cell(reader, text, index, &cell)) {
        return LAHAR_NO_MEMORY;
    }
    if (!is_named) {
        if (!name_column(reader, index, &beyond)) {
            return LAHAR_NO_MEMORY;
        }
        column = &beyond;
    }
    const lahar_status status = put_cell(reader, index, &cell, column);
    if (status == LAHAR_INVALID) {
        const int shown = cell.value.size > 60 ? 60 : (int)cell.value.size;
        (void)snprintf(message, LAHAR_TABLE_MESSAGE_SIZE,
                       "column %zu does not fit its declared field: %.*s", index + 1, shown,
                       shown == 0 ? "" : (const char *)cell.value.data);
    }
    return status;
}

lahar_status lahar_table_map_row(struct lahar_text_reader *reader, const uint8_t *text,
                                 char message[LAHAR_TABLE_MESSAGE_SIZE])
{
    struct lahar_table_rows *table = &reader->of.table;
    struct lahar_buffer *shape = &reader->record.shape;
    const size_t column_count = table->header_parser.field_count;
    const size_t field_count = table->parser.field_count;
    const bool is_free = column_count == 0 || reader->options.allow_ragged;
    if (field_count != column_count && !is_free) {
        (void)snprintf(message, LAHAR_TABLE_MESSAGE_SIZE, "row has %zu fields, the header has %zu",
                       field_count, column_count);
        return LAHAR_INVALID;
    }
    lahar_record_reset(&reader->record);
    if ((table->mapped_version != reader->fields.version && !map_columns(reader)) ||
        !lahar_buffer_reserve(shape,
                              table->shape_head.size + (field_count + 1) * LAHAR_VARINT_SIZE_MAX)) {
        return LAHAR_NO_MEMORY;
    }
    lahar_buffer_put(shape, table->shape_head.data, table->shape_head.size);
    put_place(shape, field_count);
    /* Exceptions stand behind the places of all fields; they are rare. */
    lahar_buffer_clear(&table->exceptions);
    for (size_t i = 0; i < field_count; i++) {
        const struct lahar_table_field *field = &table->parser.fields[i];
        if (i < column_count && table->columns[i].is_plain_pair && is_as_written(table, field)) {
            /* The most frequent kind of all, in fewest steps. */
            if (!lahar_record_add_pair(&reader->record, 0, table->columns[i].name,
                                       (lahar_bytes){text + field->offset, field->size}, false)) {
                return LAHAR_NO_MEMORY;
            }
            put_place(shape, 0);
            continue;
        }
        LAHAR_TRY(map_cell(reader, text, i, message));
    }
    lahar_buffer_put(shape, table->exceptions.data, table->exceptions.size);
    return table->exceptions.has_failed || shape->has_failed ? LAHAR_NO_MEMORY : LAHAR_OK;
}
