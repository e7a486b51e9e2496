/* Offset records and their table, against a plain list. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "engine/store/offset_table.h"

static lahar_bytes text(const char *value)
{
    return (lahar_bytes){value, strlen(value)};
}

Test(offset_record, has_the_documented_bytes)
{
    struct lahar_buffer buffer;
    lahar_buffer_init(&buffer, &lahar_allocator_libc);
    lahar_offset_record_put(
        &buffer, &(struct lahar_offset_record){text("ab"), text("c"), (lahar_bytes){NULL, 0}});
    const uint8_t expected[] = {2, 'a', 'b', 1, 'c', 0};
    cr_assert_eq(buffer.size, sizeof expected);
    cr_assert_arr_eq(buffer.data, expected, sizeof expected);
    struct lahar_reader reader = lahar_reader_of(buffer.data, buffer.size);
    struct lahar_offset_record record;
    cr_assert(lahar_offset_record_next(&reader, &record));
    cr_assert_eq(record.source.size, 2);
    cr_assert_arr_eq(record.key.data, "c", 1);
    cr_assert_eq(record.value.size, 0);
    cr_assert_not(lahar_offset_record_next(&reader, &record));
    cr_assert_not(reader.failed);
    for (size_t cut = 1; cut < sizeof expected; cut++) {
        reader = lahar_reader_of(expected, cut);
        cr_assert_not(lahar_offset_record_next(&reader, &record));
        cr_assert(reader.failed);
    }
    lahar_buffer_deinit(&buffer);
}

Test(offset_table, holds_the_newest_value_of_each_key_in_order)
{
    enum {
        KEYS = 40,
        STEPS = 4000
    };
    /* values[s][k]: -1 absent; the oracle. */
    int values[3][KEYS];
    memset(values, 0xff, sizeof values);
    static const char *const sources[] = {"", "a", "ab"};
    struct lahar_offset_table table;
    lahar_offset_table_init(&table, false, &lahar_allocator_libc);
    uint32_t random = 12345;
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525 + 1013904223;
        const unsigned s = (random >> 8) % 3;
        const unsigned k = (random >> 12) % KEYS;
        const bool is_forgotten = (random >> 28) < 4;
        char key[8];
        char value[16];
        (void)snprintf(key, sizeof key, "k%02u", k);
        (void)snprintf(value, sizeof value, "%d", step);
        const struct lahar_offset_record record = {text(sources[s]), text(key),
                                                   text(is_forgotten ? "" : value)};
        cr_assert_eq(lahar_offset_table_set(&table, &record, NULL), LAHAR_OK);
        values[s][k] = is_forgotten ? -1 : step;
    }
    size_t at = 0;
    for (unsigned s = 0; s < 3; s++) {
        cr_assert_eq(lahar_offset_table_find_source(&table, text(sources[s])), at);
        for (unsigned k = 0; k < KEYS; k++) {
            if (values[s][k] < 0) {
                continue;
            }
            char key[8];
            char value[16];
            (void)snprintf(key, sizeof key, "k%02u", k);
            (void)snprintf(value, sizeof value, "%d", values[s][k]);
            const struct lahar_offset_record *record = &table.records[at++];
            cr_assert_eq(lahar_bytes_compare(record->source, text(sources[s])), 0);
            cr_assert_eq(lahar_bytes_compare(record->key, text(key)), 0);
            cr_assert_eq(lahar_bytes_compare(record->value, text(value)), 0);
        }
    }
    cr_assert_eq(at, table.count);
    lahar_offset_table_deinit(&table);
}

Test(offset_table, of_changes_keeps_what_was_forgotten)
{
    struct lahar_offset_table table;
    lahar_offset_table_init(&table, true, &lahar_allocator_libc);
    const struct lahar_offset_record set = {text("s"), text("k"), text("v")};
    const struct lahar_offset_record forget = {text("s"), text("k"), text("")};
    cr_assert_eq(lahar_offset_table_set(&table, &set, NULL), LAHAR_OK);
    cr_assert_eq(lahar_offset_table_set(&table, &forget, NULL), LAHAR_OK);
    cr_assert_eq(table.count, 1);
    cr_assert_eq(table.records[0].value.size, 0);
    lahar_offset_table_deinit(&table);
}
