/* Merged shards against the sum of what went into them, term by term: values that are long, empty,
 * not UTF-8 or spelled in several ways, fields that some inputs lack, clocks that are far off,
 * inputs with groups beside inputs without. And what goes wrong: order, limits, damage, memory. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_allocator.h"
#include "index/shard_merge.h"
#include "index/shard_reader.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

enum {
    PIECES = 3
};

struct piece {
    struct lahar_buffer bytes;
    struct memory_source memory;
    struct lahar_shard *shard;
};

static lahar_status append(void *context, const void *data, size_t size, lahar_error *error)
{
    (void)error;
    lahar_buffer_put(context, data, size);
    return LAHAR_OK;
}

static void open_piece(struct piece *piece)
{
    piece->memory = (struct memory_source){.data = piece->bytes.data, .size = piece->bytes.size};
    const struct lahar_shard_source source = memory_source(&piece->memory);
    lahar_error error = {0};
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &piece->shard, &error), LAHAR_OK,
                 "%s", error.message);
}

static void close_piece(struct piece *piece)
{
    lahar_shard_close(piece->shard);
    lahar_buffer_deinit(&piece->bytes);
}

static uint32_t field_of(struct lahar_shard_builder *builder, const char *name,
                         enum lahar_field_class field_class)
{
    uint32_t field = 0;
    cr_assert_eq(lahar_shard_builder_field(builder, name, strlen(name), field_class, &field, NULL),
                 LAHAR_OK);
    return field;
}

/* Values that look alike to a careless merge. */
static size_t odd_value(char *to, uint64_t pick)
{
    static const char *const values[] = {"",     "a",        "A",       "aB",  "Ab",
                                         "ab",   "Straße",   "STRASSE", "Жук", "жук",
                                         "\xff", "0123abcd", "0123ABCD"};
    if (pick < 13) {
        strcpy(to, values[pick]);
        return strlen(to);
    }
    /* Around and beyond where terms are cut. */
    const size_t size = 250 + (size_t)pick;
    memset(to, 'x', size);
    to[0] = pick % 2 == 0 ? 'X' : 'x';
    return size;
}

/* count events from first_id on. Groups need uuids that come again. */
static void build_piece(struct piece *piece, uint64_t first_id, uint32_t count, uint64_t seed,
                        bool with_groups)
{
    struct lahar_shard_builder *builder = NULL;
    uint64_t random = seed;
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    for (uint32_t i = 0; i < count; i++) {
        char value[600];
        const int64_t second = INT64_C(1000000000);
        const uint64_t far = random_below(&random, 300);
        const int64_t time = far == 0 ? INT64_MIN + 5 : far == 1 ? INT64_MAX - 5 : i * second;
        lahar_uuid uuid = {{0}};
        const uint64_t object = with_groups ? i / 4 % 500 : random_below(&random, 100000);
        memcpy(uuid.bytes + 3, &object, sizeof object);
        cr_assert_eq(lahar_shard_builder_document(builder, first_id + i, time, NULL), LAHAR_OK);
        lahar_shard_builder_uuid(builder, field_of(builder, "uuid", LAHAR_CLASS_UUID), &uuid, NULL);
        size_t size = odd_value(value, random_below(&random, 20));
        lahar_shard_builder_keyword(builder, field_of(builder, "odd", LAHAR_CLASS_KEYWORD), value,
                                    size, NULL);
        size = (size_t)snprintf(value, sizeof value, "object-%llu", (unsigned long long)object);
        lahar_shard_builder_keyword(builder, field_of(builder, "object", LAHAR_CLASS_KEYWORD),
                                    value, size, NULL);
        lahar_shard_builder_number(builder, field_of(builder, "of_object", LAHAR_CLASS_NUMBER),
                                   object * 10, NULL);
        lahar_shard_builder_keyword(builder, field_of(builder, "same", LAHAR_CLASS_KEYWORD), "v", 1,
                                    NULL);
        if (i % 3 != 0) {
            const uint32_t number = field_of(builder, "number", LAHAR_CLASS_NUMBER);
            lahar_shard_builder_number(builder, number, random_next(&random), NULL);
            lahar_shard_builder_number(builder, number, i, NULL);
        }
        /* Fields of which not every input knows. */
        size = (size_t)snprintf(value, sizeof value, "only%u", (unsigned)(seed % 4));
        lahar_shard_builder_text(builder, field_of(builder, value, LAHAR_CLASS_TEXT), "some words",
                                 10, NULL);
        if (i % 10 == 0) {
            lahar_shard_builder_present(builder, field_of(builder, value, LAHAR_CLASS_NUMBER),
                                        NULL);
        }
    }
    lahar_buffer_init(&piece->bytes, &lahar_allocator_libc);
    cr_assert_eq(lahar_shard_builder_finish(builder, &piece->bytes, NULL), LAHAR_OK);
    lahar_shard_builder_destroy(builder);
    open_piece(piece);
}

static lahar_status merge(struct piece *pieces, size_t count, const lahar_allocator *allocator,
                          struct lahar_buffer *out, lahar_error *error)
{
    struct lahar_shard *shards[LAHAR_SHARD_MERGE_MAX];
    for (size_t i = 0; i < count; i++) {
        shards[i] = pieces[i].shard;
    }
    const struct lahar_shard_merge options = {
        .inputs = shards, .input_count = count, .sink = {append, out}, .allocator = allocator};
    return lahar_shard_merge(&options, error);
}

static void merge_pieces(struct piece *pieces, size_t count, struct piece *merged)
{
    lahar_error error = {0};
    lahar_buffer_init(&merged->bytes, &lahar_allocator_libc);
    cr_assert_eq(merge(pieces, count, &lahar_allocator_libc, &merged->bytes, &error), LAHAR_OK,
                 "%s", error.message);
    open_piece(merged);
    cr_assert_eq(lahar_shard_verify(merged->shard, &error), LAHAR_OK, "%s", error.message);
}

/* --- the sum of the inputs ------------------------------------------------------------- */

/* Documents of the merged shard that an answer of an input stands for. */
static void add_moved(struct lahar_docset *sum, const struct lahar_docset *set, uint32_t offset)
{
    for (uint32_t d = lahar_docset_next(set, 0); d < set->universe;
         d = lahar_docset_next(set, d + 1)) {
        lahar_docset_add(sum, offset + d);
    }
}

struct comparison {
    struct piece *pieces;
    size_t count;
    struct piece *merged;
    struct lahar_docset found; /* in the merged shard */
    struct lahar_docset sum;   /* of the inputs */
};

static void expect_equal(struct comparison *comparison, const char *what)
{
    const uint64_t found = lahar_docset_count(&comparison->found);
    cr_assert_eq(found, lahar_docset_count(&comparison->sum), "%s", what);
    cr_assert_eq(found, lahar_docset_count_both(&comparison->found, &comparison->sum), "%s", what);
    lahar_docset_clear(&comparison->found);
    lahar_docset_clear(&comparison->sum);
}

/* Looks the same up in every input that has the field, and in the merged shard. */
static void compare(struct comparison *comparison, lahar_bytes name,
                    enum lahar_field_class field_class,
                    void (*look)(struct lahar_shard *shard, uint32_t field, const void *argument,
                                 struct lahar_docset *set),
                    const void *argument)
{
    uint32_t offset = 0;
    uint32_t field = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        struct lahar_shard *shard = comparison->pieces[i].shard;
        struct lahar_docset set;
        lahar_docset_init(&set, lahar_shard_document_count(shard), &lahar_allocator_libc, NULL);
        if (lahar_shard_find_field(shard, name.data, name.size, field_class, &field)) {
            look(shard, field, argument, &set);
        }
        add_moved(&comparison->sum, &set, offset);
        lahar_docset_deinit(&set);
        offset += lahar_shard_document_count(shard);
    }
    cr_assert(lahar_shard_find_field(comparison->merged->shard, name.data, name.size, field_class,
                                     &field));
    look(comparison->merged->shard, field, argument, &comparison->found);
    expect_equal(comparison, name.data);
}

static void look_present(struct lahar_shard *shard, uint32_t field, const void *argument,
                         struct lahar_docset *set)
{
    (void)argument;
    cr_assert_eq(lahar_shard_present(shard, field, set, NULL), LAHAR_OK);
}

static void look_keyword(struct lahar_shard *shard, uint32_t field, const void *argument,
                         struct lahar_docset *set)
{
    const lahar_bytes *value = argument;
    bool exact = true;
    cr_assert_eq(
        lahar_shard_keyword(shard, field, value->data, value->size, false, set, &exact, NULL),
        LAHAR_OK);
}

static void look_folded(struct lahar_shard *shard, uint32_t field, const void *argument,
                        struct lahar_docset *set)
{
    const lahar_bytes *value = argument;
    bool exact = true;
    cr_assert_eq(
        lahar_shard_keyword(shard, field, value->data, value->size, true, set, &exact, NULL),
        LAHAR_OK);
}

static void look_token(struct lahar_shard *shard, uint32_t field, const void *argument,
                       struct lahar_docset *set)
{
    const lahar_bytes *value = argument;
    bool exact = true;
    cr_assert_eq(lahar_shard_token(shard, field, value->data, value->size, set, &exact, NULL),
                 LAHAR_OK);
}

static void look_uuid(struct lahar_shard *shard, uint32_t field, const void *argument,
                      struct lahar_docset *set)
{
    cr_assert_eq(lahar_shard_uuid(shard, field, argument, set, NULL), LAHAR_OK);
}

static void look_number(struct lahar_shard *shard, uint32_t field, const void *argument,
                        struct lahar_docset *set)
{
    const uint64_t *range = argument;
    cr_assert_eq(lahar_shard_number(shard, field, range[0], range[1], set, NULL), LAHAR_OK);
}

/* Every term of every input, once more in the merged shard. */
static void compare_terms(struct comparison *comparison, struct lahar_shard *shard,
                          const struct lahar_directory_field *field)
{
    const lahar_bytes name = {(const char *)field->name, field->name_size};
    struct lahar_dictionary_cursor cursor;
    lahar_dictionary_begin(&cursor, &shard->pages, &field->dictionary);
    for (uint64_t i = 0; lahar_dictionary_next(&cursor, NULL) == LAHAR_OK; i++) {
        if (i >= 60 && i % 37 != 0) {
            continue;
        }
        const lahar_bytes value = {(const char *)cursor.entry.exact, cursor.entry.exact_size};
        if (field->field_class == LAHAR_CLASS_TEXT) {
            compare(comparison, name, LAHAR_CLASS_TEXT, look_token, &value);
        } else {
            compare(comparison, name, LAHAR_CLASS_KEYWORD, look_keyword, &value);
            compare(comparison, name, LAHAR_CLASS_KEYWORD, look_folded, &value);
        }
    }
    lahar_dictionary_close(&cursor);
}

static void compare_uuids(struct comparison *comparison, struct lahar_shard *shard,
                          const struct lahar_directory_field *field)
{
    const lahar_bytes name = {(const char *)field->name, field->name_size};
    for (uint64_t i = 0; i < field->uuids.count; i += 11) {
        lahar_uuid uuid;
        uint64_t reference = 0;
        cr_assert_eq(lahar_uuid_table_at(&shard->pages, &field->uuids, i, &uuid, &reference, NULL),
                     LAHAR_OK);
        compare(comparison, name, LAHAR_CLASS_UUID, look_uuid, &uuid);
    }
}

static void compare_numbers(struct comparison *comparison, lahar_bytes name)
{
    uint64_t random = 99;
    for (int i = 0; i < 12; i++) {
        uint64_t range[2] = {random_next(&random), random_next(&random)};
        if (i % 3 == 0) {
            range[0] %= 4000;
            range[1] %= 4000;
        } else if (i == 1) {
            range[0] = 0;
            range[1] = UINT64_MAX;
        }
        compare(comparison, name, LAHAR_CLASS_NUMBER, look_number, range);
    }
}

static void compare_times(struct comparison *comparison)
{
    static const int64_t bounds[] = {INT64_MIN,     INT64_MIN + 6, 0,        70000000000,
                                     INT64_MAX - 5, INT64_MAX - 4, INT64_MAX};
    for (size_t a = 0; a < 7; a++) {
        for (size_t b = a + 1; b < 7; b++) {
            uint32_t offset = 0;
            for (size_t i = 0; i < comparison->count; i++) {
                struct lahar_shard *shard = comparison->pieces[i].shard;
                struct lahar_docset set;
                lahar_docset_init(&set, lahar_shard_document_count(shard), &lahar_allocator_libc,
                                  NULL);
                cr_assert_eq(lahar_shard_time(shard, bounds[a], bounds[b], &set, NULL), LAHAR_OK);
                add_moved(&comparison->sum, &set, offset);
                lahar_docset_deinit(&set);
                offset += lahar_shard_document_count(shard);
            }
            struct lahar_shard *merged = comparison->merged->shard;
            cr_assert_eq(lahar_shard_time(merged, bounds[a], bounds[b], &comparison->found, NULL),
                         LAHAR_OK);
            cr_assert(lahar_docset_count(&comparison->found) == 0 ||
                      lahar_shard_may_hold_time(merged, bounds[a], bounds[b]));
            expect_equal(comparison, "time");
        }
    }
}

/* --- counts of values, against look-ups of each ---------------------------------------- */

enum {
    TALLY_MAX = 1 << 16
};

struct value_tally {
    struct lahar_shard *shard;
    const struct lahar_docset *within;
    uint32_t field;
    uint64_t sum;
    uint64_t values[TALLY_MAX]; /* different ones, and how often each came */
    uint64_t counts[TALLY_MAX];
    uint32_t count;
};

static lahar_status add_number(void *context, uint64_t number, uint64_t count, lahar_error *error)
{
    struct value_tally *tally = context;
    uint32_t i = 0;
    (void)error;
    while (i < tally->count && tally->values[i] != number) {
        i++;
    }
    if (i == tally->count) {
        cr_assert_lt(i, TALLY_MAX);
        tally->values[i] = number;
        tally->counts[i] = 0;
        tally->count++;
    }
    tally->counts[i] += count;
    tally->sum += count;
    return LAHAR_OK;
}

static lahar_status check_uuid(void *context, const lahar_uuid *uuid, uint64_t count,
                               lahar_error *error)
{
    struct value_tally *tally = context;
    struct lahar_docset found;
    (void)error;
    lahar_docset_init(&found, tally->within->universe, &lahar_allocator_libc, NULL);
    cr_assert_eq(lahar_shard_uuid(tally->shard, tally->field, uuid, &found, NULL), LAHAR_OK);
    cr_assert_eq(lahar_docset_count_both(&found, tally->within), count);
    lahar_docset_deinit(&found);
    tally->sum++;
    return LAHAR_OK;
}

/* Some documents, or all of them. */
static void check_counts(struct lahar_shard *shard, uint32_t field, uint32_t one_in)
{
    static struct value_tally tally;
    const uint32_t total = lahar_shard_document_count(shard);
    const enum lahar_field_class field_class = shard->directory.fields[field].field_class;
    struct lahar_docset within;
    struct lahar_docset found;
    lahar_docset_init(&within, total, &lahar_allocator_libc, NULL);
    lahar_docset_init(&found, total, &lahar_allocator_libc, NULL);
    for (uint32_t d = 0; d < total; d += one_in) {
        lahar_docset_add(&within, d);
    }
    tally.shard = shard;
    tally.within = &within;
    tally.field = field;
    tally.sum = 0;
    tally.count = 0;
    if (field_class == LAHAR_CLASS_UUID) {
        cr_assert_eq(lahar_shard_uuid_counts(shard, field, one_in == 1 ? NULL : &within, check_uuid,
                                             &tally, NULL),
                     LAHAR_OK);
        cr_assert(one_in != 1 || tally.sum == shard->directory.fields[field].uuids.count);
    } else {
        cr_assert_eq(lahar_shard_number_counts(shard, field, &within, add_number, &tally, NULL),
                     LAHAR_OK);
        cr_assert_eq(lahar_shard_number(shard, field, 0, UINT64_MAX, &found, NULL), LAHAR_OK);
        /* A document may have several. */
        cr_assert_geq(tally.sum, lahar_docset_count_both(&found, &within));
        for (uint32_t i = 0; i < tally.count; i += 1 + tally.count / 50) {
            lahar_docset_clear(&found);
            cr_assert_eq(
                lahar_shard_number(shard, field, tally.values[i], tally.values[i], &found, NULL),
                LAHAR_OK);
            cr_assert_eq(tally.counts[i], lahar_docset_count_both(&found, &within));
        }
    }
    lahar_docset_deinit(&within);
    lahar_docset_deinit(&found);
}

static void check_all_counts(struct lahar_shard *shard)
{
    for (uint32_t f = 0; f < shard->directory.field_count; f++) {
        const enum lahar_field_class field_class = shard->directory.fields[f].field_class;
        if (field_class == LAHAR_CLASS_UUID || field_class == LAHAR_CLASS_NUMBER) {
            check_counts(shard, f, 1);
            check_counts(shard, f, 3);
        }
    }
}

static void compare_all(struct piece *pieces, size_t count, struct piece *merged)
{
    struct comparison comparison = {.pieces = pieces, .count = count, .merged = merged};
    const uint32_t total = lahar_shard_document_count(merged->shard);
    uint32_t offset = 0;
    lahar_docset_init(&comparison.found, total, &lahar_allocator_libc, NULL);
    lahar_docset_init(&comparison.sum, total, &lahar_allocator_libc, NULL);
    for (size_t i = 0; i < count; i++) {
        struct lahar_shard *shard = pieces[i].shard;
        for (uint32_t d = 0; d < lahar_shard_document_count(shard); d++) {
            cr_assert_eq(lahar_shard_id(merged->shard, offset + d), lahar_shard_id(shard, d));
        }
        offset += lahar_shard_document_count(shard);
        for (size_t f = 0; f < shard->directory.field_count; f++) {
            const struct lahar_directory_field *field = &shard->directory.fields[f];
            const lahar_bytes name = {(const char *)field->name, field->name_size};
            compare(&comparison, name, field->field_class, look_present, NULL);
            if (field->field_class == LAHAR_CLASS_NUMBER) {
                compare_numbers(&comparison, name);
            } else if (field->field_class == LAHAR_CLASS_UUID) {
                compare_uuids(&comparison, shard, field);
            } else {
                compare_terms(&comparison, shard, field);
            }
        }
    }
    cr_assert_eq(offset, total);
    check_all_counts(merged->shard);
    compare_times(&comparison);
    lahar_docset_deinit(&comparison.found);
    lahar_docset_deinit(&comparison.sum);
}

/* groups: bit i says whether input i has any. */
static void check(uint32_t first_count, unsigned groups, bool *has_groups_out)
{
    static const uint32_t shares[PIECES] = {3, 1, 2};
    struct piece pieces[PIECES];
    struct piece merged;
    uint64_t id = 10;
    for (uint32_t i = 0; i < PIECES; i++) {
        const uint32_t count = first_count * shares[i];
        build_piece(&pieces[i], id, count, 77 + i, (groups >> i & 1) != 0);
        /* A gap of ids before every input but the second. */
        id += count + (i == 0 ? 0 : 5);
    }
    merge_pieces(pieces, PIECES, &merged);
    *has_groups_out = merged.shard->directory.groups.group_count != 0;
    compare_all(pieces, PIECES, &merged);
    for (uint32_t i = 0; i < PIECES; i++) {
        close_piece(&pieces[i]);
    }
    close_piece(&merged);
}

Test(shard_merge, answers_as_its_inputs_do)
{
    bool has_groups = true;
    check(430, 0, &has_groups);
    cr_assert_not(has_groups);
}

Test(shard_merge, keeps_groups_that_every_input_has)
{
    bool has_groups = false;
    check(500, 7, &has_groups);
    cr_assert(has_groups);
}

Test(shard_merge, spreads_groups_that_some_inputs_lack)
{
    bool has_groups = true;
    check(410, 5, &has_groups);
    cr_assert_not(has_groups);
    check(410, 2, &has_groups);
    cr_assert_not(has_groups);
}

Test(shard_merge, takes_inputs_of_one_event_and_of_none)
{
    struct piece pieces[PIECES];
    struct piece merged;
    build_piece(&pieces[0], 1, 1, 5, false);
    build_piece(&pieces[1], 2, 0, 5, false);
    build_piece(&pieces[2], 7, 1, 6, false);
    merge_pieces(pieces, PIECES, &merged);
    compare_all(pieces, PIECES, &merged);
    close_piece(&merged);
    merge_pieces(pieces, 1, &merged);
    compare_all(pieces, 1, &merged);
    close_piece(&merged);
    merge_pieces(&pieces[1], 1, &merged);
    cr_assert_eq(lahar_shard_document_count(merged.shard), 0);
    close_piece(&merged);
    for (uint32_t i = 0; i < PIECES; i++) {
        close_piece(&pieces[i]);
    }
}

/* Ten pieces one by one, each time with all before: as large as when merged at once. */
Test(shard_merge, of_merged_shards_costs_no_size)
{
    enum {
        COUNT = 10
    };
    struct piece pieces[COUNT];
    struct piece at_once;
    struct piece step[2];
    for (uint32_t i = 0; i < COUNT; i++) {
        build_piece(&pieces[i], 1 + i * 1000, 1000, 50 + i, true);
    }
    merge_pieces(pieces, COUNT, &at_once);
    merge_pieces(pieces, 2, &step[0]);
    lahar_shard_close(step[0].shard);
    for (uint32_t i = 2; i < COUNT; i++) {
        struct piece next;
        step[1] = pieces[i];
        open_piece(&step[0]);
        merge_pieces(step, 2, &next);
        lahar_shard_close(step[0].shard);
        lahar_buffer_deinit(&step[0].bytes);
        step[0] = next;
        lahar_shard_close(step[0].shard);
    }
    open_piece(&step[0]);
    compare_all(pieces, COUNT, &step[0]);
    cr_assert_leq(step[0].bytes.size, at_once.bytes.size * 105 / 100);
    for (uint32_t i = 0; i < COUNT; i++) {
        close_piece(&pieces[i]);
    }
    close_piece(&step[0]);
    close_piece(&at_once);
}

/* --- what goes wrong ------------------------------------------------------------------- */

static bool always(void *context)
{
    ++*(unsigned *)context;
    return true;
}

Test(shard_merge, refuses_ids_that_do_not_rise_and_too_many_inputs)
{
    struct piece pieces[2];
    struct lahar_buffer out;
    lahar_error error = {0};
    lahar_buffer_init(&out, &lahar_allocator_libc);
    build_piece(&pieces[0], 100, 20, 5, false);
    build_piece(&pieces[1], 119, 20, 5, false);
    cr_assert_eq(merge(pieces, 2, &lahar_allocator_libc, &out, &error), LAHAR_INVALID);
    cr_assert_eq(merge(pieces, 0, &lahar_allocator_libc, &out, NULL), LAHAR_INVALID);
    lahar_buffer_deinit(&out);
    close_piece(&pieces[0]);
    close_piece(&pieces[1]);
}

Test(shard_merge, gives_way)
{
    struct piece pieces[2];
    struct lahar_buffer out;
    unsigned asked = 0;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    build_piece(&pieces[0], 1, 40000, 5, false);
    build_piece(&pieces[1], 50000, 40000, 6, false);
    struct lahar_shard *shards[] = {pieces[0].shard, pieces[1].shard};
    const struct lahar_shard_merge options = {.inputs = shards,
                                              .input_count = 2,
                                              .sink = {append, &out},
                                              .is_cancelled = always,
                                              .cancel_context = &asked,
                                              .allocator = &lahar_allocator_libc};
    lahar_error error = {0};
    cr_assert_eq(lahar_shard_merge(&options, &error), LAHAR_CANCELLED);
    cr_assert_eq(asked, 1);
    lahar_buffer_deinit(&out);
    close_piece(&pieces[0]);
    close_piece(&pieces[1]);
}

/* A device that fails, at every read. */
Test(shard_merge, passes_on_failures_of_the_device)
{
    struct piece pieces[2];
    lahar_status status = LAHAR_IO;
    build_piece(&pieces[0], 1, 900, 5, true);
    build_piece(&pieces[1], 1000, 900, 6, true);
    for (uint64_t fail_at = 2; status != LAHAR_OK; fail_at++) {
        struct lahar_buffer out;
        lahar_buffer_init(&out, &lahar_allocator_libc);
        lahar_shard_close(pieces[1].shard);
        open_piece(&pieces[1]);
        pieces[1].memory.fail_at = fail_at;
        status = merge(pieces, 2, &lahar_allocator_libc, &out, NULL);
        cr_assert(status == LAHAR_OK || status == LAHAR_IO);
        lahar_buffer_deinit(&out);
        cr_assert_lt(fail_at, 1000);
    }
    close_piece(&pieces[0]);
    close_piece(&pieces[1]);
}

Test(shard_merge, survives_memory_that_is_refused)
{
    struct piece pieces[2];
    lahar_status status = LAHAR_NO_MEMORY;
    build_piece(&pieces[0], 1, 300, 5, true);
    build_piece(&pieces[1], 1000, 300, 6, false);
    for (uint64_t fail_at = 0; status != LAHAR_OK; fail_at++) {
        struct failing_allocator failing;
        struct lahar_buffer out;
        lahar_error error = {0};
        failing_allocator_init(&failing, fail_at);
        lahar_buffer_init(&out, &lahar_allocator_libc);
        status = merge(pieces, 2, &failing.allocator, &out, &error);
        /* Memory that is refused for sharing costs size, not the merge. */
        cr_assert(status == LAHAR_OK || status == LAHAR_NO_MEMORY, "%d: %s", (int)status,
                  error.message);
        cr_assert_eq(failing.live_count, 0);
        status = failing.refused_count == 0 ? status : LAHAR_NO_MEMORY;
        lahar_buffer_deinit(&out);
        cr_assert_lt(fail_at, 5000);
    }
    close_piece(&pieces[0]);
    close_piece(&pieces[1]);
}

/* Damage behind valid checksums: a failure or some shard, never a crash or a loop. A shard that
 * comes out can be read as far as verification says. */
Test(shard_merge, survives_damaged_inputs)
{
    struct piece pieces[2];
    build_piece(&pieces[0], 1, 260, 5, true);
    build_piece(&pieces[1], 1000, 260, 6, true);
    struct lahar_buffer original = pieces[1].bytes;
    uint8_t *damaged = malloc(original.size);
    unsigned refused = 0;
    for (size_t at = 0; at < original.size; at += 3) {
        memcpy(damaged, original.data, original.size);
        damaged[at] ^= (uint8_t)(1 + at % 255);
        reseal(damaged, original.size);
        struct memory_source memory = {.data = damaged, .size = original.size};
        const struct lahar_shard_source source = memory_source(&memory);
        struct lahar_shard *shard = NULL;
        if (lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL) != LAHAR_OK) {
            refused++;
            continue;
        }
        if (lahar_shard_document_count(shard) <= 1000000) {
            struct piece inputs[2] = {pieces[0], {.shard = shard}};
            struct lahar_buffer out;
            lahar_buffer_init(&out, &lahar_allocator_libc);
            lahar_error error = {0};
            refused += merge(inputs, 2, &lahar_allocator_libc, &out, &error) != LAHAR_OK;
            lahar_buffer_deinit(&out);
        }
        lahar_shard_close(shard);
    }
    cr_assert_gt(refused, original.size / 30);
    free(damaged);
    close_piece(&pieces[0]);
    close_piece(&pieces[1]);
}
