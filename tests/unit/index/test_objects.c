/* A shard whose values were added once an object is the one that adding them event by event makes.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/shard.h"
#include "io/base/allocator.h"
#include "io/base/error.h"

enum {
    ROW_COUNT = 300, /* of a block */
    FIELD_COUNT = 4,
    TEXT_SIZE = 300
};

/* How the events of a test look. */
struct plan {
    uint32_t blocks;
    uint32_t object_count;  /* that events are drawn from in a block */
    uint32_t object_step;   /* by which the range of objects moves from block to block */
    uint32_t change_period; /* blocks after which values of field 1 change, 0: never */
    uint32_t passed_block;  /* not given as objects, UINT32_MAX: none */
    uint32_t missing_block; /* without field 2 */
    bool is_long;           /* values of field 3 exceed what a term holds */
};

static const struct plan steady = {.blocks = 9,
                                   .object_count = 80,
                                   .object_step = 40,
                                   .passed_block = UINT32_MAX,
                                   .missing_block = UINT32_MAX};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void make_uuid(uint32_t object, uint8_t uuid_out[16])
{
    uint64_t state = object;
    for (int i = 0; i < 16; i++) {
        uuid_out[i] = (uint8_t)next_random(&state);
    }
}

static size_t make_text(const struct plan *plan, uint32_t block, uint32_t object, uint32_t field,
                        char text_out[TEXT_SIZE])
{
    switch (field) {
    case 0:
        return (size_t)snprintf(text_out, TEXT_SIZE, "File-%u.json", object);
    case 1:
        return (size_t)snprintf(text_out, TEXT_SIZE, "queue %u",
                                object % 7 +
                                    (plan->change_period == 0 ? 0 : block / plan->change_period));
    case 2:
        return (size_t)snprintf(text_out, TEXT_SIZE, "%s", object % 3 == 0 ? "" : "text/plain");
    default:
        memset(text_out, 'a' + (int)(object % 5), TEXT_SIZE);
        (void)snprintf(text_out, TEXT_SIZE, "%u", object % 11);
        text_out[strlen(text_out)] = 'x';
        return plan->is_long ? TEXT_SIZE - 1 - object % 3 : 20;
    }
}

/* A column of a block, its entries numbered by first use. */
struct made_column {
    uint32_t codes[ROW_COUNT];
    uint32_t rows[ROW_COUNT];
    uint32_t slot_count;
    uint8_t data[ROW_COUNT * TEXT_SIZE];
    uint32_t ends[ROW_COUNT];
    uint32_t count;
};

static void add_slot(struct made_column *column, uint32_t row, const void *bytes, size_t size)
{
    uint32_t start = 0;
    uint32_t entry = 0;
    for (; entry < column->count; entry++) {
        if (column->ends[entry] - start == size && memcmp(column->data + start, bytes, size) == 0) {
            break;
        }
        start = column->ends[entry];
    }
    if (entry == column->count) {
        memcpy(column->data + start, bytes, size);
        column->ends[column->count++] = start + (uint32_t)size;
    }
    column->rows[column->slot_count] = row;
    column->codes[column->slot_count++] = entry;
}

static struct lahar_shard_entries entries_of(const struct made_column *column, bool is_uuid)
{
    return (struct lahar_shard_entries){column->data, is_uuid ? NULL : column->ends, column->count};
}

/* Adds a block; objects: once an object where the builder takes it so. */
static lahar_status add_block(struct lahar_shard_builder *builder, const struct plan *plan,
                              uint32_t block, bool objects, uint64_t *random)
{
    static const char *const names[FIELD_COUNT] = {"filename", "queue", "mime", "long"};
    static struct made_column uuids;
    static struct made_column columns[FIELD_COUNT];
    uint64_t ids[ROW_COUNT];
    int64_t times[ROW_COUNT];
    uuids.slot_count = uuids.count = 0;
    for (uint32_t i = 0; i < FIELD_COUNT; i++) {
        columns[i].slot_count = columns[i].count = 0;
    }
    for (uint32_t row = 0; row < ROW_COUNT; row++) {
        const uint32_t object =
            block * plan->object_step + (uint32_t)(next_random(random) % plan->object_count);
        ids[row] = (uint64_t)block * ROW_COUNT + row + 1;
        times[row] = (int64_t)ids[row] * 1000;
        uint8_t uuid[16];
        make_uuid(object, uuid);
        add_slot(&uuids, row, uuid, sizeof uuid);
        for (uint32_t i = 0; i < FIELD_COUNT; i++) {
            char text[TEXT_SIZE];
            if (i != 2 || block != plan->missing_block) {
                add_slot(&columns[i], row, text, make_text(plan, block, object, i, text));
            }
        }
    }
    const uint32_t first = lahar_shard_builder_document_count(builder);
    LAHAR_TRY(lahar_shard_builder_documents(builder, ids, times, ROW_COUNT, NULL));
    uint32_t field = 0;
    uint32_t values[ROW_COUNT];
    LAHAR_TRY(lahar_shard_builder_field(builder, "uuid", 4, LAHAR_CLASS_UUID, &field, NULL));
    struct lahar_shard_entries entries = entries_of(&uuids, true);
    LAHAR_TRY(lahar_shard_builder_values(builder, field, &entries, values, NULL));
    const struct lahar_shard_column slots = {first, ROW_COUNT, uuids.rows, uuids.codes};
    bool is_taken = false;
    if (objects && block != plan->passed_block) {
        LAHAR_TRY(lahar_shard_builder_objects(builder, field, &slots, values, uuids.count,
                                              &is_taken, NULL));
    }
    if (!is_taken) {
        LAHAR_TRY(lahar_shard_builder_post_column(builder, field, &slots, values, false, NULL));
    }
    for (uint32_t i = 0; i < FIELD_COUNT; i++) {
        const struct made_column *column = &columns[i];
        entries = entries_of(column, false);
        LAHAR_TRY(lahar_shard_builder_field(builder, names[i], strlen(names[i]),
                                            LAHAR_CLASS_KEYWORD, &field, NULL));
        if (is_taken && column->slot_count == ROW_COUNT) {
            LAHAR_TRY(
                lahar_shard_builder_object_column(builder, field, &entries, column->codes, NULL));
            continue;
        }
        LAHAR_TRY(lahar_shard_builder_values(builder, field, &entries, values, NULL));
        const struct lahar_shard_column posted = {first, column->slot_count, column->rows,
                                                  column->codes};
        LAHAR_TRY(lahar_shard_builder_post_column(builder, field, &posted, values, false, NULL));
    }
    return LAHAR_OK;
}

static lahar_status build(struct lahar_shard_builder *builder, const struct plan *plan,
                          bool objects, struct lahar_buffer *shard)
{
    uint64_t random = 7;
    for (uint32_t block = 0; block < plan->blocks; block++) {
        LAHAR_TRY(add_block(builder, plan, block, objects, &random));
    }
    return lahar_shard_builder_finish(builder, shard, NULL);
}

/* Builds twice with each builder: the second shard finds the memory of the first. */
static void require_same_shard(const struct plan *plan)
{
    struct lahar_shard_builder *builder = NULL;
    struct lahar_buffer shards[4];
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    for (int i = 0; i < 4; i++) {
        lahar_buffer_init(&shards[i], &lahar_allocator_libc);
        cr_assert_eq(build(builder, plan, i % 2 == 1, &shards[i]), LAHAR_OK);
        cr_assert_eq(shards[i].size, shards[0].size);
        cr_assert_arr_eq(shards[i].data, shards[0].data, shards[0].size);
    }
    for (int i = 0; i < 4; i++) {
        lahar_buffer_deinit(&shards[i]);
    }
    lahar_shard_builder_destroy(builder);
}

Test(objects, make_the_same_shard_when_values_never_change)
{
    require_same_shard(&steady);
}

Test(objects, make_the_same_shard_when_values_change)
{
    struct plan plan = steady;
    plan.change_period = 2;
    require_same_shard(&plan);
}

Test(objects, make_the_same_shard_when_one_block_lacks_a_field_or_is_not_given_as_objects)
{
    static const uint32_t blocks[][2] = {
        {4, UINT32_MAX}, {0, UINT32_MAX}, {UINT32_MAX, 3}, {UINT32_MAX, 0}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct plan plan = steady;
        plan.missing_block = blocks[i][0];
        plan.passed_block = blocks[i][1];
        require_same_shard(&plan);
    }
}

Test(objects, make_the_same_shard_of_long_values)
{
    struct plan plan = steady;
    plan.is_long = true;
    plan.change_period = 3;
    require_same_shard(&plan);
}

Test(objects, are_given_up_when_most_have_one_event)
{
    struct plan plan = steady;
    plan.object_count = 1000000;
    plan.object_step = 1000000;
    plan.blocks = 32;
    require_same_shard(&plan);
}

Test(objects, stay_documents_when_few_have_two_events)
{
    struct plan plan = steady;
    plan.object_count = 3000;
    plan.object_step = 3000;
    require_same_shard(&plan);
}

Test(objects, of_which_a_block_names_one_twice_are_not_taken)
{
    struct lahar_shard_builder *builder = NULL;
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    static const uint64_t ids[2] = {1, 2};
    static const int64_t times[2] = {1, 2};
    static const uint32_t rows[2] = {0, 1};
    static const uint8_t uuids[32] = {0};
    const struct lahar_shard_entries entries = {uuids, NULL, 2};
    const struct lahar_shard_column column = {0, 2, rows, rows};
    uint32_t field = 0;
    uint32_t values[2];
    bool is_taken = true;
    cr_assert_eq(lahar_shard_builder_documents(builder, ids, times, 2, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_field(builder, "uuid", 4, LAHAR_CLASS_UUID, &field, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_values(builder, field, &entries, values, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_objects(builder, field, &column, values, 2, &is_taken, NULL),
                 LAHAR_OK);
    cr_assert_not(is_taken);
    lahar_shard_builder_destroy(builder);
}

/* --- refused memory ---------------------------------------------------------------------- */

static void *allocate_some(void *context, size_t size)
{
    int *left = context;
    return (*left)-- > 0 ? malloc(size) : NULL;
}

static void *resize_some(void *context, void *memory, size_t size)
{
    int *left = context;
    return (*left)-- > 0 ? realloc(memory, size) : NULL;
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

Test(objects, survive_every_refusal_of_memory)
{
    struct plan plan = steady;
    plan.blocks = 3;
    plan.change_period = 2;
    bool is_built = false;
    for (int allowed = 0; !is_built; allowed++) {
        int left = allowed;
        const lahar_allocator allocator = {allocate_some, resize_some, release, &left};
        struct lahar_shard_builder *builder = NULL;
        struct lahar_buffer shard;
        lahar_buffer_init(&shard, &allocator);
        lahar_status status = lahar_shard_builder_create(&allocator, &builder, NULL);
        if (status == LAHAR_OK) {
            status = build(builder, &plan, true, &shard);
            lahar_shard_builder_destroy(builder);
        }
        lahar_buffer_deinit(&shard);
        cr_assert(status == LAHAR_OK || status == LAHAR_NO_MEMORY);
        is_built = status == LAHAR_OK;
    }
}
