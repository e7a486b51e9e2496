/* Shards by hand: what each kind of value can be found by, at the limits. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "index/tokenizer.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

static struct lahar_buffer bytes;
static struct memory_source memory;

static struct lahar_shard_builder *begin(void)
{
    struct lahar_shard_builder *builder = NULL;
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    lahar_buffer_init(&bytes, &lahar_allocator_libc);
    return builder;
}

static uint32_t field(struct lahar_shard_builder *builder, const char *name,
                      enum lahar_field_class field_class)
{
    uint32_t number = 0;
    cr_assert_eq(lahar_shard_builder_field(builder, name, strlen(name), field_class, &number, NULL),
                 LAHAR_OK);
    return number;
}

static void document(struct lahar_shard_builder *builder, uint64_t id, int64_t time)
{
    cr_assert_eq(lahar_shard_builder_document(builder, id, time, NULL), LAHAR_OK);
}

static void keyword(struct lahar_shard_builder *builder, uint32_t number, const char *value)
{
    cr_assert_eq(lahar_shard_builder_keyword(builder, number, value, strlen(value), NULL),
                 LAHAR_OK);
}

static struct lahar_shard *finish(struct lahar_shard_builder *builder)
{
    struct lahar_shard *shard = NULL;
    cr_assert_eq(lahar_shard_builder_finish(builder, &bytes, NULL), LAHAR_OK);
    lahar_shard_builder_destroy(builder);
    memory = (struct memory_source){.data = bytes.data, .size = bytes.size};
    const struct lahar_shard_source source = memory_source(&memory);
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_verify(shard, NULL), LAHAR_OK);
    return shard;
}

static void end(struct lahar_shard *shard)
{
    lahar_shard_close(shard);
    lahar_buffer_deinit(&bytes);
}

static struct lahar_docset new_set(const struct lahar_shard *shard)
{
    struct lahar_docset set;
    cr_assert_eq(
        lahar_docset_init(&set, lahar_shard_document_count(shard), &lahar_allocator_libc, NULL),
        LAHAR_OK);
    return set;
}

/* The documents of a set as a string of digits and letters, for shards of up to 36. */
static const char *members(struct lahar_docset *set)
{
    static char text[37];
    size_t size = 0;
    for (uint32_t d = lahar_docset_next(set, 0); d < set->universe;
         d = lahar_docset_next(set, d + 1)) {
        text[size++] = "0123456789abcdefghijklmnopqrstuvwxyz"[d];
    }
    text[size] = '\0';
    lahar_docset_deinit(set);
    return text;
}

static bool exact;

static const char *find_sized(struct lahar_shard *shard, const char *name, const void *value,
                              size_t size, bool ignore_case)
{
    uint32_t number = 0;
    cr_assert(lahar_shard_find_field(shard, name, strlen(name), LAHAR_CLASS_KEYWORD, &number));
    struct lahar_docset set = new_set(shard);
    exact = true;
    cr_assert_eq(lahar_shard_keyword(shard, number, value, size, ignore_case, &set, &exact, NULL),
                 LAHAR_OK);
    return members(&set);
}

static const char *find(struct lahar_shard *shard, const char *name, const char *value,
                        bool ignore_case)
{
    return find_sized(shard, name, value, strlen(value), ignore_case);
}

static const char *find_token(struct lahar_shard *shard, const char *name, const char *token)
{
    uint32_t number = 0;
    cr_assert(lahar_shard_find_field(shard, name, strlen(name), LAHAR_CLASS_TEXT, &number));
    struct lahar_docset set = new_set(shard);
    uint64_t count = 0;
    exact = true;
    cr_assert_eq(lahar_shard_token(shard, number, token, strlen(token), &set, &exact, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_shard_token_count(shard, number, token, strlen(token), &count, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_docset_count(&set), count);
    return members(&set);
}

static const char *find_number(struct lahar_shard *shard, const char *name, uint64_t low,
                               uint64_t high)
{
    uint32_t number = 0;
    cr_assert(lahar_shard_find_field(shard, name, strlen(name), LAHAR_CLASS_NUMBER, &number));
    struct lahar_docset set = new_set(shard);
    cr_assert_eq(lahar_shard_number(shard, number, low, high, &set, NULL), LAHAR_OK);
    return members(&set);
}

static const char *find_time(struct lahar_shard *shard, int64_t from, int64_t to)
{
    struct lahar_docset set = new_set(shard);
    cr_assert_eq(lahar_shard_time(shard, from, to, &set, NULL), LAHAR_OK);
    return members(&set);
}

static const char *find_present(struct lahar_shard *shard, const char *name,
                                enum lahar_field_class field_class)
{
    uint32_t number = 0;
    cr_assert(lahar_shard_find_field(shard, name, strlen(name), field_class, &number));
    struct lahar_docset set = new_set(shard);
    cr_assert_eq(lahar_shard_present(shard, number, &set, NULL), LAHAR_OK);
    return members(&set);
}

Test(shard, may_be_empty)
{
    struct lahar_shard *shard = finish(begin());
    int64_t min = 0;
    int64_t max = 0;
    cr_assert_eq(lahar_shard_document_count(shard), 0);
    cr_assert_eq(lahar_shard_ordinal(shard, 5), 0);
    lahar_shard_time_range(shard, &min, &max);
    cr_assert_eq(min, INT64_MAX);
    cr_assert_eq(max, INT64_MIN);
    cr_assert_not(lahar_shard_may_hold_time(shard, INT64_MIN, INT64_MAX));
    cr_assert_str_eq(find_time(shard, INT64_MIN, INT64_MAX), "");
    end(shard);
}

Test(shard, finds_keywords_exactly_and_folded)
{
    struct lahar_shard_builder *builder = begin();
    const uint32_t level = field(builder, "level", LAHAR_CLASS_KEYWORD);
    static const char *values[] = {"Error", "ERROR", "error", "errors", "",
                                   "erroR", "Ärger", "ärger", "\xc3",   "a b"};
    for (uint64_t i = 0; i < 10; i++) {
        document(builder, 100 + i, 0);
        keyword(builder, level, values[i]);
        keyword(builder, level, values[i]);
    }
    struct lahar_shard *shard = finish(builder);
    cr_assert_str_eq(find(shard, "level", "ERROR", true), "0125");
    cr_assert_str_eq(find(shard, "level", "ERROR", false), "1");
    cr_assert_str_eq(find(shard, "level", "error", false), "2");
    cr_assert_str_eq(find(shard, "level", "eRROR", false), "");
    cr_assert_str_eq(find(shard, "level", "erro", true), "");
    cr_assert_str_eq(find(shard, "level", "", true), "4");
    cr_assert_str_eq(find(shard, "level", "", false), "4");
    cr_assert_str_eq(find(shard, "level", "ÄRGER", true), "67");
    cr_assert_str_eq(find(shard, "level", "Ärger", false), "6");
    cr_assert_str_eq(find(shard, "level", "\xc3", false), "8");
    cr_assert_str_eq(find(shard, "level", "zzz", true), "");
    cr_assert_str_eq(find(shard, "level", "A B", true), "9");
    cr_assert(exact);
    end(shard);
}

Test(shard, finds_values_of_any_length)
{
    static char value[1 << 20];
    memset(value, 'x', sizeof value);
    struct lahar_shard_builder *builder = begin();
    const uint32_t name = field(builder, "filename", LAHAR_CLASS_KEYWORD);
    static const size_t sizes[] = {254, 255, 256, 257, 60000, sizeof value};
    for (uint64_t i = 0; i < 6; i++) {
        document(builder, i, 0);
        cr_assert_eq(lahar_shard_builder_keyword(builder, name, value, sizes[i], NULL), LAHAR_OK);
    }
    struct lahar_shard *shard = finish(builder);
    cr_assert_str_eq(find_sized(shard, "filename", value, 254, false), "0");
    cr_assert(exact);
    cr_assert_str_eq(find_sized(shard, "filename", value, 255, true), "1");
    cr_assert(exact);
    /* All that begin alike are candidates, and the caller is told to look. */
    cr_assert_str_eq(find_sized(shard, "filename", value, 60000, false), "2345");
    cr_assert_not(exact);
    cr_assert_str_eq(find_sized(shard, "filename", value, 256, true), "2345");
    cr_assert_not(exact);
    cr_assert_str_eq(find_present(shard, "filename", LAHAR_CLASS_KEYWORD), "012345");
    value[200] = 'y';
    cr_assert_str_eq(find_sized(shard, "filename", value, 60000, false), "");
    cr_assert(exact);
    end(shard);
}

Test(shard, folds_long_values_as_a_whole)
{
    /* Two spellings whose first 255 bytes reach differently far into the value: U+023A folds
     * from two bytes to three, U+2126 (Ohm) from three to two. */
    char capital[900] = "";
    char small[900] = "";
    for (int i = 0; i < 150; i++) {
        strcat(capital, "Ω");
        strcat(small, "ω");
    }
    char grows[900] = "";
    for (int i = 0; i < 120; i++) {
        strcat(grows, "Ⱥ");
    }
    struct lahar_shard_builder *builder = begin();
    const uint32_t name = field(builder, "n", LAHAR_CLASS_KEYWORD);
    document(builder, 1, 0);
    keyword(builder, name, capital);
    document(builder, 2, 0);
    keyword(builder, name, small);
    document(builder, 3, 0);
    keyword(builder, name, grows);
    struct lahar_shard *shard = finish(builder);
    cr_assert_str_eq(find(shard, "n", small, true), "01");
    cr_assert_str_eq(find(shard, "n", capital, true), "01");
    cr_assert_str_eq(find(shard, "n", small, false), "1");
    cr_assert_str_eq(find(shard, "n", grows, false), "2");
    cr_assert(exact);
    cr_assert_str_eq(find(shard, "n", grows, true), "2");
    cr_assert_not(exact);
    end(shard);
}

Test(shard, finds_tokens_of_text)
{
    struct lahar_shard_builder *builder = begin();
    const uint32_t message = field(builder, "message", LAHAR_CLASS_TEXT);
    static const char *texts[] = {"Connection timeout to 10.0.0.1", "", "timeout TIMEOUT",
                                  "... !!!", "\x1b[31mFATAL\x1b[0m"};
    char lengthy[600];
    memset(lengthy, 'q', sizeof lengthy);
    for (uint64_t i = 0; i < 5; i++) {
        document(builder, i, 0);
        cr_assert_eq(lahar_shard_builder_text(builder, message, texts[i], strlen(texts[i]), NULL),
                     LAHAR_OK);
    }
    document(builder, 5, 0);
    cr_assert_eq(lahar_shard_builder_text(builder, message, lengthy, sizeof lengthy, NULL),
                 LAHAR_OK);
    document(builder, 6, 0);
    struct lahar_shard *shard = finish(builder);
    cr_assert_str_eq(find_token(shard, "message", "timeout"), "02");
    cr_assert_str_eq(find_token(shard, "message", "fatal"), "4");
    cr_assert_str_eq(find_token(shard, "message", "31mfatal"), "");
    cr_assert_str_eq(find_token(shard, "message", "10"), "0");
    cr_assert(exact);
    lengthy[500] = '\0';
    cr_assert_str_eq(find_token(shard, "message", lengthy), "5");
    cr_assert_not(exact);
    lengthy[255] = '\0';
    cr_assert_str_eq(find_token(shard, "message", lengthy), "");
    cr_assert_str_eq(find_present(shard, "message", LAHAR_CLASS_TEXT), "012345");
    end(shard);
}

Test(shard, finds_uuids_whole)
{
    struct lahar_shard_builder *builder = begin();
    const uint32_t uuid = field(builder, "uuid", LAHAR_CLASS_UUID);
    /* Counters differ in their last bits only. */
    for (uint64_t i = 0; i < 36; i++) {
        lahar_uuid v = {{0}};
        v.bytes[15] = (uint8_t)(i / 2);
        document(builder, i, 0);
        cr_assert_eq(lahar_shard_builder_uuid(builder, uuid, &v, NULL), LAHAR_OK);
    }
    struct lahar_shard *shard = finish(builder);
    uint32_t number = 0;
    cr_assert(lahar_shard_find_field(shard, "uuid", 4, LAHAR_CLASS_UUID, &number));
    for (unsigned i = 0; i < 256; i++) {
        lahar_uuid v = {{0}};
        v.bytes[15] = (uint8_t)i;
        struct lahar_docset set = new_set(shard);
        cr_assert_eq(lahar_shard_uuid(shard, number, &v, &set, NULL), LAHAR_OK);
        cr_assert_eq(lahar_docset_count(&set), i < 18 ? 2 : 0);
        cr_assert(i >= 18 || (lahar_docset_has(&set, i * 2) && lahar_docset_has(&set, i * 2 + 1)));
        v.bytes[0] = 1;
        lahar_docset_clear(&set);
        cr_assert_eq(lahar_shard_uuid(shard, number, &v, &set, NULL), LAHAR_OK);
        cr_assert_eq(lahar_docset_count(&set), 0);
        lahar_docset_deinit(&set);
    }
    end(shard);
}

Test(shard, keeps_numbers_of_64_bits_apart)
{
    struct lahar_shard_builder *builder = begin();
    const uint32_t size = field(builder, "size", LAHAR_CLASS_NUMBER);
    const uint64_t values[] = {
        0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 53, (UINT64_C(1) << 53) + 1};
    for (uint64_t i = 0; i < 6; i++) {
        document(builder, i, 0);
        cr_assert_eq(lahar_shard_builder_number(builder, size, values[i], NULL), LAHAR_OK);
    }
    document(builder, 6, 0);
    /* A document may have several. */
    cr_assert_eq(lahar_shard_builder_number(builder, size, 7, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_number(builder, size, 9, NULL), LAHAR_OK);
    document(builder, 7, 0);
    struct lahar_shard *shard = finish(builder);
    for (size_t i = 0; i < 6; i++) {
        const char expected[2] = {(char)('0' + i), '\0'};
        cr_assert_str_eq(find_number(shard, "size", values[i], values[i]), expected);
    }
    cr_assert_str_eq(find_number(shard, "size", 2, UINT64_MAX), "23456");
    cr_assert_str_eq(find_number(shard, "size", 8, 10), "6");
    cr_assert_str_eq(find_number(shard, "size", 7, 7), "6");
    cr_assert_str_eq(find_number(shard, "size", 8, 8), "");
    cr_assert_str_eq(find_number(shard, "size", 0, UINT64_MAX), "0123456");
    cr_assert_str_eq(find_number(shard, "size", 5, 4), "");
    cr_assert_str_eq(find_present(shard, "size", LAHAR_CLASS_NUMBER), "0123456");
    end(shard);
}

Test(number, keeps_order)
{
    const double values[] = {-(double)INFINITY, -1e300,     -1.5, -1e-310, 0.0, 1e-310, 1.5, 1e300,
                             (double)INFINITY,  (double)NAN};
    for (size_t i = 1; i < sizeof values / sizeof values[0]; i++) {
        cr_assert_lt(lahar_number_from_f64(values[i - 1]), lahar_number_from_f64(values[i]));
    }
    cr_assert_eq(lahar_number_from_f64(-0.0), lahar_number_from_f64(0.0));
    cr_assert_eq(lahar_number_from_f64((double)-NAN), UINT64_MAX);
    cr_assert_lt(lahar_number_from_i64(INT64_MIN), lahar_number_from_i64(-1));
    cr_assert_lt(lahar_number_from_i64(-1), lahar_number_from_i64(0));
    cr_assert_lt(lahar_number_from_i64(0), lahar_number_from_i64(INT64_MAX));
    cr_assert_eq(lahar_number_from_i64(INT64_MIN), 0);
    cr_assert_eq(lahar_number_from_u64(7), 7);
}

Test(shard, finds_times_at_the_ends_of_the_clock)
{
    struct lahar_shard_builder *builder = begin();
    const int64_t times[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    for (uint64_t i = 0; i < 7; i++) {
        document(builder, i, times[i]);
    }
    struct lahar_shard *shard = finish(builder);
    int64_t min = 0;
    int64_t max = 0;
    lahar_shard_time_range(shard, &min, &max);
    cr_assert_eq(min, INT64_MIN);
    cr_assert_eq(max, INT64_MAX);
    cr_assert_str_eq(find_time(shard, INT64_MIN, INT64_MAX), "012345");
    cr_assert_str_eq(find_time(shard, 0, 1), "3");
    cr_assert_str_eq(find_time(shard, -1, 2), "234");
    cr_assert_str_eq(find_time(shard, INT64_MIN, INT64_MIN + 1), "0");
    cr_assert_str_eq(find_time(shard, INT64_MAX, INT64_MAX), "");
    cr_assert_str_eq(find_time(shard, 5, 5), "");
    end(shard);
}

Test(shard, sets_a_few_wrong_clocks_apart)
{
    struct lahar_shard_builder *builder = begin();
    const int64_t second = 1000000000;
    const int64_t start = 1700000000 * second;
    for (uint64_t i = 0; i < 1000; i++) {
        int64_t time = start + (int64_t)i * second;
        time = i == 500 ? 0 : i == 501 ? start * 2 : time;
        document(builder, i, time);
    }
    struct lahar_shard *shard = finish(builder);
    int64_t min = 0;
    int64_t max = 0;
    lahar_shard_time_range(shard, &min, &max);
    cr_assert_eq(min, 0);
    cr_assert_eq(max, start * 2);
    /* Far from the events on either side nothing can be, at the wrong clocks something. */
    cr_assert_not(lahar_shard_may_hold_time(shard, start / 2, start / 2 + second));
    cr_assert_not(lahar_shard_may_hold_time(shard, start + start / 2, start + start / 2 + second));
    cr_assert(lahar_shard_may_hold_time(shard, 0, 1));
    cr_assert(lahar_shard_may_hold_time(shard, start * 2, start * 2 + 1));
    cr_assert(lahar_shard_may_hold_time(shard, start + second, start + 2 * second));
    struct lahar_docset set = new_set(shard);
    cr_assert_eq(lahar_shard_time(shard, 0, 1, &set, NULL), LAHAR_OK);
    cr_assert_eq(lahar_docset_count(&set), 1);
    cr_assert(lahar_docset_has(&set, 500));
    cr_assert_eq(lahar_shard_time(shard, start, INT64_MAX, &set, NULL), LAHAR_OK);
    cr_assert_eq(lahar_docset_count(&set), 1000);
    lahar_docset_deinit(&set);
    end(shard);
}

Test(shard, refuses_ids_that_do_not_rise)
{
    struct lahar_shard_builder *builder = begin();
    document(builder, 5, 0);
    lahar_error error = {.status = LAHAR_OK};
    cr_assert_eq(lahar_shard_builder_document(builder, 5, 0, &error), LAHAR_INVALID);
    cr_assert_eq(lahar_shard_builder_document(builder, 4, 0, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_shard_builder_document(builder, UINT64_MAX, 0, NULL), LAHAR_INVALID);
    document(builder, 6, 0);
    struct lahar_shard *shard = finish(builder);
    cr_assert_eq(lahar_shard_document_count(shard), 2);
    end(shard);
}

Test(shard, tells_classes_of_one_name_apart)
{
    struct lahar_shard_builder *builder = begin();
    const uint32_t a = field(builder, "attr.n", LAHAR_CLASS_KEYWORD);
    const uint32_t b = field(builder, "attr.n", LAHAR_CLASS_NUMBER);
    cr_assert_neq(a, b);
    cr_assert_eq(field(builder, "attr.n", LAHAR_CLASS_KEYWORD), a);
    document(builder, 1, 0);
    keyword(builder, a, "12");
    cr_assert_eq(lahar_shard_builder_number(builder, b, 12, NULL), LAHAR_OK);
    document(builder, 2, 0);
    keyword(builder, a, "twelve");
    struct lahar_shard *shard = finish(builder);
    cr_assert_eq(lahar_shard_field_count(shard), 2);
    uint32_t number = 0;
    cr_assert_not(lahar_shard_find_field(shard, "attr.n", 6, LAHAR_CLASS_TEXT, &number));
    cr_assert_not(lahar_shard_find_field(shard, "attr", 4, LAHAR_CLASS_KEYWORD, &number));
    cr_assert(lahar_shard_find_field(shard, "attr.n", 6, LAHAR_CLASS_NUMBER, &number));
    enum lahar_field_class field_class;
    const lahar_bytes name = lahar_shard_field(shard, number, &field_class);
    cr_assert_eq(field_class, LAHAR_CLASS_NUMBER);
    cr_assert_eq(name.size, 6);
    cr_assert_str_eq(find(shard, "attr.n", "12", false), "0");
    cr_assert_str_eq(find_number(shard, "attr.n", 12, 12), "0");
    end(shard);
}

Test(shard, takes_values_by_number)
{
    struct lahar_shard_builder *builder = begin();
    const uint32_t k = field(builder, "k", LAHAR_CLASS_KEYWORD);
    const uint32_t t = field(builder, "t", LAHAR_CLASS_TEXT);
    uint32_t value[3];
    cr_assert_eq(lahar_shard_builder_value(builder, k, "One", 3, &value[0], NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_value(builder, t, "red green red", 13, &value[1], NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_value(builder, k, "unused", 6, &value[2], NULL), LAHAR_OK);
    for (uint64_t i = 0; i < 3; i++) {
        document(builder, i, 0);
        if (i != 1) {
            cr_assert_eq(lahar_shard_builder_post(builder, k, value[0], NULL), LAHAR_OK);
        }
        if (i != 2) {
            cr_assert_eq(lahar_shard_builder_post(builder, t, value[1], NULL), LAHAR_OK);
        }
    }
    struct lahar_shard *shard = finish(builder);
    cr_assert_str_eq(find(shard, "k", "one", true), "02");
    cr_assert_str_eq(find(shard, "k", "unused", true), "");
    cr_assert_str_eq(find_token(shard, "t", "red"), "01");
    cr_assert_str_eq(find_token(shard, "t", "green"), "01");
    cr_assert_str_eq(find_present(shard, "k", LAHAR_CLASS_KEYWORD), "02");
    cr_assert_str_eq(find_present(shard, "t", LAHAR_CLASS_TEXT), "01");
    end(shard);
}

Test(shard, is_appended_and_leaves_the_builder_empty)
{
    struct lahar_shard_builder *builder = begin();
    lahar_buffer_put(&bytes, "before", 6);
    for (int round = 0; round < 3; round++) {
        const size_t start = bytes.size;
        const uint32_t k = field(builder, round == 1 ? "other" : "k", LAHAR_CLASS_KEYWORD);
        cr_assert_eq(k, 0);
        document(builder, 10, 3);
        keyword(builder, k, "v");
        cr_assert_eq(lahar_shard_builder_finish(builder, &bytes, NULL), LAHAR_OK);
        memory = (struct memory_source){.data = bytes.data + start, .size = bytes.size - start};
        const struct lahar_shard_source source = memory_source(&memory);
        struct lahar_shard *shard = NULL;
        cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL), LAHAR_OK);
        cr_assert_eq(lahar_shard_verify(shard, NULL), LAHAR_OK);
        cr_assert_eq(lahar_shard_document_count(shard), 1);
        cr_assert_eq(lahar_shard_id(shard, 0), 10);
        cr_assert_str_eq(find(shard, round == 1 ? "other" : "k", "v", false), "0");
        lahar_shard_close(shard);
    }
    cr_assert_eq(memcmp(bytes.data, "before", 6), 0);
    lahar_shard_builder_destroy(builder);
    lahar_buffer_deinit(&bytes);
}

struct seen {
    char text[256];
    const char *wanted;
};

static bool see_term(void *context, const uint8_t *term, size_t size, bool is_cut)
{
    struct seen *seen = context;
    cr_assert_not(is_cut);
    strncat(seen->text, (const char *)term, size);
    strcat(seen->text, "|");
    return size == strlen(seen->wanted) && memcmp(term, seen->wanted, size) == 0;
}

Test(shard, visits_terms_in_order_and_exact_form)
{
    struct lahar_shard_builder *builder = begin();
    const uint32_t k = field(builder, "k", LAHAR_CLASS_KEYWORD);
    static const char *values[] = {"b", "A", "a", "Ab", "aB", "0f3", "0f2", "Zürich"};
    for (uint64_t i = 0; i < 8; i++) {
        document(builder, i, 0);
        keyword(builder, k, values[i]);
    }
    struct lahar_shard *shard = finish(builder);
    struct seen seen = {.wanted = "aB"};
    struct lahar_docset set = new_set(shard);
    exact = true;
    cr_assert_eq(lahar_shard_terms(shard, 0, see_term, &seen, &set, &exact, NULL), LAHAR_OK);
    cr_assert_str_eq(seen.text, "0f2|0f3|A|a|Ab|aB|b|Zürich|");
    cr_assert_str_eq(members(&set), "4");
    cr_assert(exact);
    end(shard);
}

/* Fills field "k", "t", "u" or "n" of three blocks of documents, singly or by columns. Slots repeat
 * values within a row, leave rows out, and pass values over. */
static struct lahar_shard *make_by_columns(bool by_columns, bool is_reversed)
{
    static const char *const keywords[4] = {"alpha", "Beta", "", "gamma"};
    static const char *const texts[4] = {"one two one", "Two \x1b[1m three", "", "one"};
    static const lahar_uuid uuids[4] = {{{1}}, {{2}}, {{3}}, {{4}}};
    static const uint64_t numbers[4] = {7, 1000, 7, UINT64_MAX};
    enum {
        BLOCKS = 3,
        ROWS = 50
    };
    uint64_t state = 99;
    struct lahar_shard_builder *builder = begin();
    const uint32_t k = field(builder, "k", LAHAR_CLASS_KEYWORD);
    const uint32_t t = field(builder, "t", LAHAR_CLASS_TEXT);
    const uint32_t u = field(builder, "u", LAHAR_CLASS_UUID);
    const uint32_t n = field(builder, "n", LAHAR_CLASS_NUMBER);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint32_t rows[ROWS * 2];
        uint32_t codes[ROWS * 2];
        uint32_t slots = 0;
        for (uint32_t row = 0; row < ROWS; row++) {
            const uint32_t repeats = (uint32_t)random_below(&state, 3);
            for (uint32_t i = 0; i < repeats; i++) {
                rows[slots] = row;
                codes[slots++] = (uint32_t)random_below(&state, 5);
            }
        }
        const uint32_t first = lahar_shard_builder_document_count(builder);
        cr_assert_eq(first, block * ROWS);
        uint32_t at = 0;
        for (uint32_t row = 0; row < ROWS; row++) {
            document(builder, 1 + first + row, first + row);
            for (; at < slots && rows[at] == row && !by_columns; at++) {
                const uint32_t code = codes[at];
                if (code == 4) {
                    continue; /* has no value */
                }
                keyword(builder, k, keywords[code]);
                cr_assert_eq(
                    lahar_shard_builder_text(builder, t, texts[code], strlen(texts[code]), NULL),
                    LAHAR_OK);
                cr_assert_eq(lahar_shard_builder_uuid(builder, u, &uuids[code], NULL), LAHAR_OK);
                cr_assert_eq(lahar_shard_builder_number(builder, n, numbers[code], NULL), LAHAR_OK);
            }
        }
        if (!by_columns) {
            continue;
        }
        uint32_t values[3][5];
        for (uint32_t code = 0; code < 4; code++) {
            cr_assert_eq(lahar_shard_builder_value(builder, k, keywords[code],
                                                   strlen(keywords[code]), &values[0][code], NULL),
                         LAHAR_OK);
            cr_assert_eq(lahar_shard_builder_value(builder, t, texts[code], strlen(texts[code]),
                                                   &values[1][code], NULL),
                         LAHAR_OK);
            cr_assert_eq(lahar_shard_builder_value(builder, u, uuids[code].bytes, 16,
                                                   &values[2][code], NULL),
                         LAHAR_OK);
        }
        values[0][4] = values[1][4] = values[2][4] = LAHAR_SHARD_NO_VALUE;
        uint32_t number_slots = 0;
        uint32_t number_rows[ROWS * 2];
        uint32_t number_codes[ROWS * 2];
        for (uint32_t i = 0; i < slots; i++) {
            if (codes[i] != 4) {
                number_rows[number_slots] = rows[i];
                number_codes[number_slots++] = codes[i];
            }
        }
        for (uint32_t i = 0; i < slots / 2 && is_reversed; i++) {
            const uint32_t row = rows[i];
            const uint32_t code = codes[i];
            rows[i] = rows[slots - 1 - i];
            codes[i] = codes[slots - 1 - i];
            rows[slots - 1 - i] = row;
            codes[slots - 1 - i] = code;
        }
        const struct lahar_shard_column column = {first, slots, rows, codes};
        const struct lahar_shard_column number_column = {first, number_slots, number_rows,
                                                         number_codes};
        const uint32_t fields[3] = {k, t, u};
        for (uint32_t i = 0; i < 3; i++) {
            cr_assert_eq(lahar_shard_builder_post_column(builder, fields[i], &column, values[i],
                                                         false, NULL),
                         LAHAR_OK);
        }
        cr_assert_eq(lahar_shard_builder_number_column(builder, n, &number_column, numbers, NULL),
                     LAHAR_OK);
    }
    return finish(builder);
}

/* Terms are numbered in the order in which they come, which no byte of a shard depends on. */
static void require_same_by_columns(bool is_reversed)
{
    struct lahar_shard *singly = make_by_columns(false, false);
    struct lahar_buffer expected = bytes;
    lahar_shard_close(singly);
    struct lahar_shard *shard = make_by_columns(true, is_reversed);
    cr_assert_eq(bytes.size, expected.size);
    cr_assert_arr_eq(bytes.data, expected.data, expected.size);
    end(shard);
    lahar_buffer_deinit(&expected);
}

Test(shard, posts_columns_as_it_posts_single_values)
{
    require_same_by_columns(false);
}

Test(shard, puts_columns_in_any_order_right)
{
    require_same_by_columns(true);
}
