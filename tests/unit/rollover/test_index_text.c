/* An index of texts is the same whether their block has split them or not. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/rollover/rollover_index.h"

enum {
    TEXT_SIZE = 200
};

/* Indexes blocks of texts; level 0 splits none. */
static void index_texts(uint32_t level, const char *const *oddities, size_t oddity_count,
                        struct lahar_buffer *shard)
{
    struct lahar_schema_catalog *catalog = NULL;
    struct lahar_block_writer *writer = NULL;
    struct lahar_index_feed *feed = NULL;
    uint32_t stream = 0;
    cr_assert_eq(lahar_schema_catalog_create(&lahar_allocator_libc, &catalog, NULL), LAHAR_OK);
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "lines", .schema = LAHAR_SCHEMA_LOG};
    cr_assert_eq(lahar_schema_add_stream(catalog, &spec, &stream, NULL), LAHAR_OK);
    cr_assert_eq(lahar_block_writer_create(lahar_schema_stream(catalog, stream), level,
                                           &lahar_allocator_libc, &writer, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_index_feed_create(catalog, stream, &lahar_allocator_libc, &feed, NULL),
                 LAHAR_OK);
    uint64_t id = 1;
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    for (uint32_t block = 0; block < 3; block++) {
        for (uint32_t i = 0; i < 400; i++, id++) {
            char text[TEXT_SIZE];
            (void)snprintf(text, sizeof text,
                           "%s request %llu of user_%u from node-%u took %u ms %s",
                           i % 3 == 0 ? "WARN" : "info", (unsigned long long)(id * 7919), i % 17,
                           i % 5, i * i % 60, oddities[i % oddity_count]);
            lahar_value value = {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT};
            value.as.bytes = (lahar_bytes){text, strlen(text)};
            const lahar_event event = {
                .id = id, .time_ns = (int64_t)id, .values = &value, .value_count = 1};
            cr_assert_eq(lahar_block_writer_add(writer, &event, 100, NULL), LAHAR_OK);
        }
        struct lahar_block_info info;
        cr_assert_eq(lahar_block_writer_encode(writer, NULL), LAHAR_OK);
        const struct lahar_block_columns columns = lahar_block_writer_columns(writer);
        for (uint32_t i = 0; i < lahar_schema_stream(catalog, stream)->field_count; i++) {
            const struct lahar_element *element = columns.scope->elements[i];
            cr_assert(element == NULL || element->type != LAHAR_TEXT ||
                      element->is_split == (level != 0));
        }
        cr_assert_eq(lahar_index_feed_add(feed, &columns, NULL), LAHAR_OK);
        cr_assert_eq(lahar_block_writer_compress(writer, &out, &info, NULL), LAHAR_OK);
    }
    cr_assert_eq(lahar_index_feed_finish(feed, shard, NULL), LAHAR_OK);
    lahar_buffer_deinit(&out);
    lahar_index_feed_destroy(feed);
    lahar_block_writer_destroy(writer);
    lahar_schema_catalog_destroy(catalog);
}

static void require_same_index(const char *const *oddities, size_t oddity_count)
{
    struct lahar_buffer whole;
    struct lahar_buffer split;
    lahar_buffer_init(&whole, &lahar_allocator_libc);
    lahar_buffer_init(&split, &lahar_allocator_libc);
    index_texts(0, oddities, oddity_count, &whole);
    index_texts(1, oddities, oddity_count, &split);
    cr_assert_eq(whole.size, split.size);
    cr_assert_arr_eq(whole.data, split.data, whole.size);
    lahar_buffer_deinit(&whole);
    lahar_buffer_deinit(&split);
}

Test(index_text, finds_the_same_tokens_in_templates_and_variables)
{
    static const char *const oddities[] = {"",
                                           "7_",
                                           "_7",
                                           "a_1-b_2--3-",
                                           "-1",
                                           "\xc3\xa9"
                                           "1\xc3\xa9",
                                           "\xe6\x97\xa5"
                                           "5\xe6\x9c\xac",
                                           "e\xcc\x81"
                                           "9",
                                           "\xff"
                                           "12\xff",
                                           "60 60 60",
                                           "1.2.3.4:80"};
    require_same_index(oddities, sizeof oddities / sizeof oddities[0]);
}

Test(index_text, passes_over_escape_sequences)
{
    static const char *const oddities[] = {"", "\x1b[31m5 red\x1b[0m", "\x1b[1;32mgreen"};
    require_same_index(oddities, sizeof oddities / sizeof oddities[0]);
}
