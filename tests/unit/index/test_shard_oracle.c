/* Random shards, built at once or merged of several, against brute force over what was put in:
 * every kind of look-up, at sizes around the blocks of the format, with ids that leave gaps, clocks
 * that run backwards, terms that are all alike, all different and in between. Seeds are fixed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/shard_cache.h"
#include "index/shard_merge.h"
#include "index/tokenizer.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

enum {
    FIELD_COUNT = 6,
    NUMBER_COUNT = 4,
    /* Seeds from here on make events of objects. */
    GROUPED_SEEDS = 1000,
    UUID_COUNT = 900,
    NO_UUID = 0xffff
};

struct model_document {
    uint64_t id;
    int64_t time;
    char keywords[FIELD_COUNT][32]; /* "-": absent */
    uint32_t words;                 /* bit w: the text holds word w */
    bool has_text;
    uint16_t uuid[2]; /* of distinct ones; the second NO_UUID: none */
    uint64_t numbers[NUMBER_COUNT];
    bool has_number[NUMBER_COUNT];
};

struct model {
    struct model_document *documents;
    uint32_t count;
    struct lahar_buffer bytes;
    struct memory_source memory;
    struct lahar_shard *shard;
};

static const char *words[] = {"alpha", "beta", "gamma", "delta", "e1", "zeta_2", "ETA", "Жук"};

static lahar_uuid make_uuid(unsigned v)
{
    lahar_uuid uuid;
    uint64_t random = 1000 + v;
    for (int i = 0; i < 16; i++) {
        uuid.bytes[i] = (uint8_t)random_next(&random);
    }
    return uuid;
}

/* Value distributions: constant, few, half, many, unique in hexadecimal, mixed case. */
static void make_keyword(char *to, size_t size, int field, uint32_t document, uint64_t *random)
{
    static const char *few[] = {"SEND", "send", "Receive", "DROP", "drop"};
    switch (field) {
    case 0:
        snprintf(to, size, "constant");
        break;
    case 1:
        snprintf(to, size, "%s", few[random_below(random, 5)]);
        break;
    case 2:
        snprintf(to, size, "%s", random_below(random, 2) == 0 ? "on" : "-");
        break;
    case 3:
        snprintf(to, size, "host-%llu.example", (unsigned long long)random_below(random, 300));
        break;
    case 4:
        snprintf(to, size, "file-%08x-%u", (unsigned)random_next(random), document);
        break;
    default:
        snprintf(to, size, random_below(random, 100) == 0 ? "-" : "Aa%c",
                 (int)('A' + random_below(random, 3)));
        break;
    }
}

static void make_document(struct model_document *d, uint32_t i, uint64_t *random)
{
    for (int f = 0; f < FIELD_COUNT; f++) {
        make_keyword(d->keywords[f], sizeof d->keywords[f], f, i, random);
    }
    d->has_text = random_below(random, 10) != 0;
    d->words = d->has_text ? (uint32_t)(random_next(random) & random_next(random) & 0xff) : 0;
    d->uuid[0] = (uint16_t)random_below(random, UUID_COUNT);
    d->uuid[1] =
        random_below(random, 3) == 0 ? (uint16_t)random_below(random, UUID_COUNT) : NO_UUID;
    d->numbers[0] = random_below(random, 1000) * 1000000;
    d->numbers[1] = random_next(random);
    d->numbers[2] = 77;
    d->numbers[3] = UINT64_MAX - random_below(random, 3);
    d->has_number[0] = true;
    d->has_number[1] = random_below(random, 2) == 0;
    d->has_number[2] = random_below(random, 200) == 0;
    d->has_number[3] = i % 3000 < 1024;
}

static void add_document(struct lahar_shard_builder *builder, const struct model_document *d)
{
    uint32_t f = 0;
    char name[16];
    cr_assert_eq(lahar_shard_builder_document(builder, d->id, d->time, NULL), LAHAR_OK);
    for (int i = 0; i < FIELD_COUNT; i++) {
        snprintf(name, sizeof name, "k%d", i);
        lahar_shard_builder_field(builder, name, strlen(name), LAHAR_CLASS_KEYWORD, &f, NULL);
        if (strcmp(d->keywords[i], "-") != 0) {
            cr_assert_eq(lahar_shard_builder_keyword(builder, f, d->keywords[i],
                                                     strlen(d->keywords[i]), NULL),
                         LAHAR_OK);
        }
    }
    lahar_shard_builder_field(builder, "text", 4, LAHAR_CLASS_TEXT, &f, NULL);
    if (d->has_text) {
        char text[128] = "";
        for (int w = 0; w < 8; w++) {
            if ((d->words >> w & 1) != 0) {
                strcat(strcat(text, words[w]), w % 2 == 0 ? ", " : " / ");
            }
        }
        cr_assert_eq(lahar_shard_builder_text(builder, f, text, strlen(text), NULL), LAHAR_OK);
    }
    lahar_shard_builder_field(builder, "uuid", 4, LAHAR_CLASS_UUID, &f, NULL);
    for (int i = 0; i < 2; i++) {
        if (d->uuid[i] != NO_UUID) {
            const lahar_uuid uuid = make_uuid(d->uuid[i]);
            cr_assert_eq(lahar_shard_builder_uuid(builder, f, &uuid, NULL), LAHAR_OK);
        }
    }
    for (int i = 0; i < NUMBER_COUNT; i++) {
        snprintf(name, sizeof name, "n%d", i);
        lahar_shard_builder_field(builder, name, strlen(name), LAHAR_CLASS_NUMBER, &f, NULL);
        if (d->has_number[i]) {
            cr_assert_eq(lahar_shard_builder_number(builder, f, d->numbers[i], NULL), LAHAR_OK);
        }
    }
}

/* Makes most of a document's values those of the object that its uuid names, so that the
 * shard has groups. */
static void copy_object(struct model_document *d, const struct model_document *documents,
                        uint32_t i, uint64_t *random)
{
    d->uuid[1] = NO_UUID;
    const uint32_t window = i < 300 ? i : 300;
    if (window == 0 || random_below(random, 5) == 0) {
        return;
    }
    const struct model_document *other = d - 1 - random_below(random, window);
    cr_assert(other >= documents);
    d->uuid[0] = other->uuid[0];
    /* An object is what has the uuid: the first of its events gives the values of all. */
    for (const struct model_document *first = documents; first < d; first++) {
        if (first->uuid[0] == d->uuid[0]) {
            memcpy(d->keywords[1], first->keywords[1], sizeof d->keywords[1]);
            memcpy(d->keywords[2], first->keywords[2], sizeof d->keywords[2]);
            memcpy(d->keywords[3], first->keywords[3], sizeof d->keywords[3]);
            memcpy(d->keywords[4], first->keywords[4], sizeof d->keywords[4]);
            memcpy(d->numbers, first->numbers, sizeof d->numbers);
            memcpy(d->has_number, first->has_number, sizeof d->has_number);
            break;
        }
    }
}

static lahar_status append(void *context, const void *data, size_t size, lahar_error *error)
{
    (void)error;
    lahar_buffer_put(context, data, size);
    return LAHAR_OK;
}

/* Appends to bytes the shard of the documents, built in pieces that are then merged. Pieces are of
 * random sizes, some of none; the builder makes groups of each or not as it sees fit. */
static void build(const struct model *model, uint32_t pieces, uint64_t *random,
                  struct lahar_buffer *bytes)
{
    struct lahar_shard_builder *builder = NULL;
    struct lahar_buffer parts[LAHAR_SHARD_MERGE_MAX];
    struct memory_source memories[LAHAR_SHARD_MERGE_MAX];
    struct lahar_shard *shards[LAHAR_SHARD_MERGE_MAX];
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    uint32_t next = 0;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t end = model->count;
        if (i + 1 < pieces) {
            end =
                next + (uint32_t)random_below(random, 1 + 2 * (model->count - next) / (pieces - i));
            end = end > model->count ? model->count : end;
        }
        for (; next < end; next++) {
            add_document(builder, &model->documents[next]);
        }
        lahar_buffer_init(&parts[i], &lahar_allocator_libc);
        cr_assert_eq(lahar_shard_builder_finish(builder, &parts[i], NULL), LAHAR_OK);
        memories[i] = (struct memory_source){.data = parts[i].data, .size = parts[i].size};
        const struct lahar_shard_source source = memory_source(&memories[i]);
        cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &shards[i], NULL), LAHAR_OK);
    }
    lahar_shard_builder_destroy(builder);
    if (pieces == 1) {
        lahar_buffer_put(bytes, parts[0].data, parts[0].size);
    } else {
        const struct lahar_shard_merge merge = {.inputs = shards,
                                                .input_count = pieces,
                                                .sink = {append, bytes},
                                                .allocator = &lahar_allocator_libc};
        lahar_error error = {0};
        cr_assert_eq(lahar_shard_merge(&merge, &error), LAHAR_OK, "%s", error.message);
    }
    for (uint32_t i = 0; i < pieces; i++) {
        lahar_shard_close(shards[i]);
        lahar_buffer_deinit(&parts[i]);
    }
}

static void create(struct model *model, uint32_t count, uint64_t seed, uint32_t pieces)
{
    uint64_t random = seed;
    *model = (struct model){.count = count};
    model->documents = calloc(count + 1, sizeof *model->documents);
    lahar_buffer_init(&model->bytes, &lahar_allocator_libc);
    uint64_t id = random_below(&random, 1000);
    int64_t clock = INT64_C(1700000000000000000);
    for (uint32_t i = 0; i < count; i++) {
        struct model_document *d = &model->documents[i];
        /* Even seeds: long runs of ids. Odd ones: a gap every few. */
        id += 1 +
              (random_below(&random, seed % 2 == 0 ? 500 : 3) == 0 ? random_below(&random, 5) : 0);
        clock += (int64_t)random_below(&random, 4) * 1000000;
        d->id = id;
        d->time = clock;
        if (random_below(&random, 10) == 0) {
            d->time -= (int64_t)random_below(&random, 3600) * 1000000000;
        }
        if (random_below(&random, 250) == 0) {
            d->time = random_below(&random, 2) == 0 ? INT64_MIN : INT64_MAX - 1;
        }
        make_document(d, i, &random);
        if (seed >= GROUPED_SEEDS) {
            copy_object(d, model->documents, i, &random);
        }
    }
    build(model, pieces, &random, &model->bytes);
    model->memory = (struct memory_source){.data = model->bytes.data, .size = model->bytes.size};
    const struct lahar_shard_source source = memory_source(&model->memory);
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &model->shard, NULL), LAHAR_OK);
    lahar_error error = {0};
    cr_assert_eq(lahar_shard_verify(model->shard, &error), LAHAR_OK, "%s", error.message);
    cr_assert_eq(lahar_shard_document_count(model->shard), count);
}

static void destroy(struct model *model)
{
    lahar_shard_close(model->shard);
    lahar_buffer_deinit(&model->bytes);
    free(model->documents);
}

/* Compares the set with what expected says of each document, and empties it. */
#define EXPECT(model, set, d, expected, ...)                                                       \
    do {                                                                                           \
        for (uint32_t i_ = 0; i_ < (model)->count; i_++) {                                         \
            const struct model_document *d = &(model)->documents[i_];                              \
            cr_assert_eq(lahar_docset_has(set, i_), (expected), __VA_ARGS__);                      \
        }                                                                                          \
        lahar_docset_clear(set);                                                                   \
    } while (0)

static uint32_t find_field(const struct model *model, const char *name,
                           enum lahar_field_class field_class)
{
    uint32_t f = 0;
    cr_assert(lahar_shard_find_field(model->shard, name, strlen(name), field_class, &f));
    return f;
}

static void check_keywords(struct model *model, struct lahar_docset *set, uint64_t *random)
{
    for (int f = 0; f < FIELD_COUNT; f++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", f);
        const uint32_t number = find_field(model, name, LAHAR_CLASS_KEYWORD);
        bool exact = true;
        for (int round = 0; round < 12; round++) {
            char value[32];
            const uint64_t pick = random_below(random, model->count);
            snprintf(value, sizeof value, "%s", model->documents[pick].keywords[f]);
            if (round % 4 == 3) {
                value[strlen(value) - 1] = '~';
            }
            cr_assert_eq(lahar_shard_keyword(model->shard, number, value, strlen(value), false, set,
                                             &exact, NULL),
                         LAHAR_OK);
            EXPECT(model, set, d, strcmp(d->keywords[f], value) == 0 && strcmp(value, "-") != 0,
                   "%s=%s", name, value);
            cr_assert_eq(lahar_shard_keyword(model->shard, number, value, strlen(value), true, set,
                                             &exact, NULL),
                         LAHAR_OK);
            EXPECT(model, set, d, strcasecmp(d->keywords[f], value) == 0 && strcmp(value, "-") != 0,
                   "%s:%s", name, value);
        }
        cr_assert(exact);
        cr_assert_eq(lahar_shard_present(model->shard, number, set, NULL), LAHAR_OK);
        EXPECT(model, set, d, strcmp(d->keywords[f], "-") != 0, "%s:*", name);
    }
}

static void check_text(struct model *model, struct lahar_docset *set)
{
    static const char *folded[] = {"alpha", "beta", "gamma", "delta", "e1", "zeta_2", "eta", "жук"};
    const uint32_t text = find_field(model, "text", LAHAR_CLASS_TEXT);
    bool exact = true;
    for (int w = 0; w < 8; w++) {
        uint64_t count = 0;
        cr_assert_eq(
            lahar_shard_token(model->shard, text, folded[w], strlen(folded[w]), set, &exact, NULL),
            LAHAR_OK);
        cr_assert_eq(
            lahar_shard_token_count(model->shard, text, folded[w], strlen(folded[w]), &count, NULL),
            LAHAR_OK);
        cr_assert_eq(lahar_docset_count(set), count);
        EXPECT(model, set, d, (d->words >> w & 1) != 0, "%s", folded[w]);
    }
    cr_assert_eq(lahar_shard_token(model->shard, text, "alph", 4, set, &exact, NULL), LAHAR_OK);
    EXPECT(model, set, d, false && d->has_text, "alph");
    cr_assert_eq(lahar_shard_present(model->shard, text, set, NULL), LAHAR_OK);
    EXPECT(model, set, d, d->has_text, "text:*");
    cr_assert(exact);
}

static void check_uuids(struct model *model, struct lahar_docset *set)
{
    const uint32_t uuids = find_field(model, "uuid", LAHAR_CLASS_UUID);
    for (unsigned v = 0; v < UUID_COUNT + 60; v += 7) {
        const lahar_uuid uuid = make_uuid(v);
        cr_assert_eq(lahar_shard_uuid(model->shard, uuids, &uuid, set, NULL), LAHAR_OK);
        EXPECT(model, set, d, d->uuid[0] == v || d->uuid[1] == v, "uuid %u", v);
    }
    cr_assert_eq(lahar_shard_present(model->shard, uuids, set, NULL), LAHAR_OK);
    EXPECT(model, set, d, d->uuid[0] != NO_UUID, "uuid:*");
}

static void check_numbers(struct model *model, struct lahar_docset *set, uint64_t *random)
{
    for (int n = 0; n < NUMBER_COUNT; n++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", n);
        const uint32_t number = find_field(model, name, LAHAR_CLASS_NUMBER);
        for (int round = 0; round < 20; round++) {
            uint64_t low = model->documents[random_below(random, model->count)].numbers[n];
            uint64_t high = model->documents[random_below(random, model->count)].numbers[n];
            low += random_below(random, 3);
            high -= random_below(random, 3);
            if (round == 0) {
                low = 0;
                high = UINT64_MAX;
            }
            cr_assert_eq(lahar_shard_number(model->shard, number, low, high, set, NULL), LAHAR_OK);
            EXPECT(model, set, d, d->has_number[n] && d->numbers[n] >= low && d->numbers[n] <= high,
                   "%s in [%llu..%llu]", name, (unsigned long long)low, (unsigned long long)high);
        }
        cr_assert_eq(lahar_shard_present(model->shard, number, set, NULL), LAHAR_OK);
        EXPECT(model, set, d, d->has_number[n], "%s:*", name);
    }
}

static void check_times(struct model *model, struct lahar_docset *set, uint64_t *random)
{
    int64_t min = INT64_MAX;
    int64_t max = INT64_MIN;
    for (int round = 0; round < 60; round++) {
        int64_t from = model->documents[random_below(random, model->count)].time;
        int64_t to = model->documents[random_below(random, model->count)].time;
        if (round % 2 == 0) {
            from += (int64_t)random_below(random, 2);
            to += (int64_t)random_below(random, 2);
        }
        cr_assert_eq(lahar_shard_time(model->shard, from, to, set, NULL), LAHAR_OK);
        if (lahar_docset_count(set) > 0) {
            cr_assert(lahar_shard_may_hold_time(model->shard, from, to));
        }
        EXPECT(model, set, d, d->time >= from && d->time < to, "[%lld..%lld)", (long long)from,
               (long long)to);
    }
    for (uint32_t i = 0; i < model->count; i++) {
        min = model->documents[i].time < min ? model->documents[i].time : min;
        max = model->documents[i].time > max ? model->documents[i].time : max;
    }
    int64_t found_min = 0;
    int64_t found_max = 0;
    lahar_shard_time_range(model->shard, &found_min, &found_max);
    cr_assert_eq(found_min, min);
    cr_assert_eq(found_max, max);
}

static void check_ids(struct model *model)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        cr_assert_eq(lahar_shard_id(model->shard, i), model->documents[i].id);
    }
    const uint64_t last = model->documents[model->count - 1].id;
    for (uint64_t id = model->documents[0].id < 3 ? 0 : model->documents[0].id - 3; id < last + 3;
         id++) {
        while (next < model->count && model->documents[next].id < id) {
            next++;
        }
        cr_assert_eq(lahar_shard_ordinal(model->shard, id), next, "id %llu",
                     (unsigned long long)id);
    }
    cr_assert_eq(lahar_shard_ordinal(model->shard, UINT64_MAX), model->count);
}

static void check(uint32_t count, uint64_t seed, uint32_t pieces)
{
    struct model model;
    struct lahar_docset set;
    uint64_t random = seed * 31 + 7;
    create(&model, count, seed, pieces);
    cr_assert_eq(lahar_docset_init(&set, count, &lahar_allocator_libc, NULL), LAHAR_OK);
    check_ids(&model);
    check_keywords(&model, &set, &random);
    check_text(&model, &set);
    check_uuids(&model, &set);
    check_numbers(&model, &set, &random);
    check_times(&model, &set, &random);
    lahar_docset_deinit(&set);
    destroy(&model);
}

Test(shard_oracle, agrees_at_sizes_around_a_posting_block)
{
    static const uint32_t counts[] = {1, 2, 63, 64, 65, 127, 128, 129, 193, 255, 256, 257};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check(counts[i], 2 + i, 1);
    }
}

Test(shard_oracle, agrees_at_sizes_around_a_column_block)
{
    static const uint32_t counts[] = {1023, 1024, 1025, 2048};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check(counts[i], 101 + i, 1);
    }
}

Test(shard_oracle, agrees_at_larger_sizes)
{
    static const uint32_t counts[] = {4095, 4096, 4097, 20000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check(counts[i], 201 + i, 1);
    }
}

Test(shard_oracle, agrees_on_events_of_objects)
{
    static const uint32_t counts[] = {2, 65, 129, 600, 1025, 4097, 12000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check(counts[i], GROUPED_SEEDS + i, 1);
    }
}

Test(shard_oracle, agrees_after_a_merge)
{
    static const uint32_t counts[] = {2, 64, 129, 257, 1025, 4097, 12000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check(counts[i], 301 + i, 2 + (uint32_t)i);
    }
}

Test(shard_oracle, agrees_after_a_merge_of_events_of_objects)
{
    static const uint32_t counts[] = {6, 65, 600, 1025, 4097, 12000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check(counts[i], GROUPED_SEEDS + 100 + i, 2 + (uint32_t)i);
    }
}

Test(shard_oracle, agrees_after_a_merge_of_the_most_shards)
{
    check(3000, 401, LAHAR_SHARD_MERGE_MAX);
    check(9000, GROUPED_SEEDS + 201, LAHAR_SHARD_MERGE_MAX);
}

/* The same look-ups with room for one page: everything is evicted and fetched again. */
Test(shard_oracle, agrees_with_the_smallest_cache)
{
    struct model model;
    struct lahar_docset set;
    uint64_t random = 3;
    create(&model, 9000, 17, 1);
    lahar_shard_close(model.shard);
    struct lahar_shard_cache cache;
    lahar_shard_cache_init(&cache, 0);
    struct lahar_shard_source source = memory_source(&model.memory);
    source.cache = &cache;
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &model.shard, NULL), LAHAR_OK);
    cr_assert_eq(lahar_docset_init(&set, model.count, &lahar_allocator_libc, NULL), LAHAR_OK);
    check_keywords(&model, &set, &random);
    check_uuids(&model, &set);
    check_numbers(&model, &set, &random);
    cr_assert_leq(lahar_shard_cache_bytes(&cache), 2 * 16384);
    lahar_docset_deinit(&set);
    destroy(&model);
    lahar_shard_cache_deinit(&cache);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct visit {
    const char **expected;
    size_t next;
    size_t count;
};

static bool visit_term(void *context, const uint8_t *term, size_t size, bool is_cut)
{
    struct visit *visit = context;
    cr_assert_not(is_cut);
    cr_assert_lt(visit->next, visit->count);
    cr_assert_eq(size, strlen(visit->expected[visit->next]));
    cr_assert_eq(memcmp(term, visit->expected[visit->next], size), 0);
    visit->next++;
    return size > 6 && term[6] == '7';
}

Test(shard_oracle, visits_every_distinct_term_in_order)
{
    struct model model;
    create(&model, 5000, 23, 1);
    const char **expected = calloc(model.count, sizeof *expected);
    for (uint32_t i = 0; i < model.count; i++) {
        expected[i] = model.documents[i].keywords[4];
    }
    qsort(expected, model.count, sizeof *expected, compare_strings);
    struct visit visit = {.expected = expected, .count = model.count};
    struct lahar_docset set;
    bool exact = true;
    cr_assert_eq(lahar_docset_init(&set, model.count, &lahar_allocator_libc, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_terms(model.shard, find_field(&model, "k4", LAHAR_CLASS_KEYWORD),
                                   visit_term, &visit, &set, &exact, NULL),
                 LAHAR_OK);
    cr_assert_eq(visit.next, model.count);
    EXPECT(&model, &set, d, d->keywords[4][6] == '7', "?7*");
    lahar_docset_deinit(&set);
    free(expected);
    destroy(&model);
}

Test(shard_oracle, opens_with_little_reading)
{
    struct model model;
    create(&model, 20000, 29, 1);
    struct memory_source memory = {.data = model.bytes.data, .size = model.bytes.size};
    const struct lahar_shard_source source = memory_source(&memory);
    struct lahar_shard *shard = NULL;
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL), LAHAR_OK);
    cr_assert_leq(memory.fetched_bytes, 65536);
    cr_assert_eq(memory.fetch_count, 1);
    struct lahar_docset set;
    bool exact = true;
    cr_assert_eq(lahar_docset_init(&set, model.count, &lahar_allocator_libc, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_keyword(shard, find_field(&model, "k4", LAHAR_CLASS_KEYWORD),
                                     "file-zzz", 8, true, &set, &exact, NULL),
                 LAHAR_OK);
    /* The top, a block that may cross a page. */
    cr_assert_leq(memory.fetch_count, 5);
    lahar_docset_deinit(&set);
    lahar_shard_close(shard);
    destroy(&model);
}
