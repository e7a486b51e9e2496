/* Searches through dictionaries against a look at every value: needles of any length, prefixes,
 * terms of every form, read in place, from kept pages and past them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/shard_cache.h"
#include "index/shard_format.h"
#include "shard_fixture.h"

enum {
    VALUES = 6000,
    VALUE_SIZE_MAX = 300
};

struct value {
    char text[VALUE_SIZE_MAX + 1];
    size_t size;
};

struct fixture {
    struct value *values; /* of document i */
    struct lahar_buffer bytes;
    struct memory_source memory;
    struct lahar_shard_cache cache;
    struct lahar_shard *shard;
    uint64_t state;
};

/* Hexadecimal ids, file names, words with capitals, numbers, and now and then a value that is cut,
 * an escape character, a letter outside ASCII. */
static void make_value(struct fixture *fixture, uint32_t i, struct value *value)
{
    static const char *const words[] = {"booking", "Ledger", "PARCEL", "stock", "edge"};
    const uint64_t random = random_next(&fixture->state);
    const char *word = words[random % 5];
    switch (i % 8) {
    case 0:
    case 1:
        (void)snprintf(value->text, sizeof value->text, "%016llx", (unsigned long long)random);
        break;
    case 2:
        (void)snprintf(value->text, sizeof value->text, "%s-%08x-%06u.%s", word,
                       (unsigned)(random >> 32), (unsigned)(random % 1000000),
                       random % 3 == 0 ? "json" : "Avro");
        break;
    case 3:
        (void)snprintf(value->text, sizeof value->text, "%u", (unsigned)(random % 70000));
        break;
    case 4:
        (void)snprintf(value->text, sizeof value->text, "%s%u%s", word, (unsigned)(random % 50),
                       random % 40 == 0 ? "\x1b[0m" : "");
        break;
    case 5:
        (void)snprintf(value->text, sizeof value->text,
                       "/data/%s/very/long/path/of/a/thing/%llx/%s", word,
                       (unsigned long long)random, word);
        break;
    case 6:
        (void)snprintf(value->text, sizeof value->text, "%s Z\xc3\xbcrich %x", word,
                       (unsigned)(random & 0xfff));
        break;
    default:
        (void)snprintf(value->text, sizeof value->text, "%0*llx",
                       random % 60 == 0 ? VALUE_SIZE_MAX : (int)(random % 40),
                       (unsigned long long)random);
        break;
    }
    value->size = strlen(value->text);
}

static void create(struct fixture *fixture, uint64_t seed)
{
    uint32_t field = 0;
    struct lahar_shard_builder *builder = NULL;
    memset(fixture, 0, sizeof *fixture);
    fixture->state = seed;
    fixture->values = calloc(VALUES, sizeof *fixture->values);
    lahar_buffer_init(&fixture->bytes, &lahar_allocator_libc);
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_field(builder, "k", 1, LAHAR_CLASS_KEYWORD, &field, NULL),
                 LAHAR_OK);
    for (uint32_t i = 0; i < VALUES; i++) {
        struct value *value = &fixture->values[i];
        make_value(fixture, i, value);
        cr_assert_eq(lahar_shard_builder_document(builder, i + 1, i, NULL), LAHAR_OK);
        cr_assert_eq(lahar_shard_builder_keyword(builder, field, value->text, value->size, NULL),
                     LAHAR_OK);
    }
    cr_assert_eq(lahar_shard_builder_finish(builder, &fixture->bytes, NULL), LAHAR_OK);
    lahar_shard_builder_destroy(builder);
    fixture->memory =
        (struct memory_source){.data = fixture->bytes.data, .size = fixture->bytes.size};
    lahar_shard_cache_init(&fixture->cache, 0);
}

/* cache_bytes 0: in place. */
static void open(struct fixture *fixture, uint64_t cache_bytes)
{
    struct lahar_shard_source source = memory_source(&fixture->memory);
    source.memory = cache_bytes == 0 ? fixture->bytes.data : NULL;
    source.cache = &fixture->cache;
    lahar_shard_cache_limit(&fixture->cache, cache_bytes);
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &fixture->shard, NULL), LAHAR_OK);
}

static void destroy(struct fixture *fixture)
{
    lahar_shard_cache_deinit(&fixture->cache);
    lahar_buffer_deinit(&fixture->bytes);
    free(fixture->values);
}

/* The folded form of what the fixture makes: ASCII, and one letter that is small already. */
static void fold(const struct value *value, char *out)
{
    for (size_t i = 0; i <= value->size; i++) {
        const char c = value->text[i];
        out[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
}

struct wanted {
    const char *needle;
    uint32_t shown;
};

static bool accept(void *context, const uint8_t *term, size_t size, bool is_cut)
{
    struct wanted *wanted = context;
    char folded[VALUE_SIZE_MAX + 1];
    struct value value = {.size = size};
    memcpy(value.text, term, size);
    fold(&value, folded);
    wanted->shown++;
    return is_cut || strstr(folded, wanted->needle) != NULL;
}

static void search(struct fixture *fixture, const char *needle, uint64_t piece)
{
    const uint64_t blocks = lahar_shard_term_block_count(fixture->shard, 0);
    struct wanted wanted = {.needle = needle};
    struct lahar_docset set;
    bool exact = true;
    cr_assert_eq(lahar_docset_init(&set, VALUES, &lahar_allocator_libc, NULL), LAHAR_OK);
    for (uint64_t first = 0; first < blocks; first += piece) {
        const struct lahar_term_search asked = {.first_block = first,
                                                .end_block =
                                                    first + piece < blocks ? first + piece : blocks,
                                                .needle = {needle, strlen(needle)},
                                                .accept = accept,
                                                .context = &wanted};
        lahar_error error = {0};
        cr_assert_eq(lahar_shard_search_terms(fixture->shard, 0, &asked, &set, &exact, &error),
                     LAHAR_OK, "%s", error.message);
    }
    for (uint32_t i = 0; i < VALUES; i++) {
        char folded[VALUE_SIZE_MAX + 1];
        fold(&fixture->values[i], folded);
        const bool is_cut = fixture->values[i].size > LAHAR_SHARD_TERM_SIZE_MAX;
        cr_assert_eq(lahar_docset_has(&set, i), is_cut || strstr(folded, needle) != NULL,
                     "\"%s\" in \"%s\"", needle, fixture->values[i].text);
    }
    cr_assert_not(exact);
    lahar_docset_deinit(&set);
}

/* A part of some value. */
static void pick_needle(struct fixture *fixture, char *needle)
{
    char folded[VALUE_SIZE_MAX + 1];
    const struct value *value = &fixture->values[random_below(&fixture->state, VALUES)];
    fold(value, folded);
    const size_t start = value->size == 0 ? 0 : random_below(&fixture->state, value->size);
    const size_t left = value->size - start;
    const size_t most = random_below(&fixture->state, 3) == 0 ? 40 : 7;
    const size_t size =
        left == 0 ? 0 : 1 + random_below(&fixture->state, left < most ? left : most);
    (void)snprintf(needle, VALUE_SIZE_MAX + 1, "%.*s", (int)size, folded + start);
}

static void search_often(struct fixture *fixture, uint64_t cache_bytes, unsigned rounds)
{
    open(fixture, cache_bytes);
    for (unsigned i = 0; i < rounds; i++) {
        char needle[VALUE_SIZE_MAX + 1];
        pick_needle(fixture, needle);
        search(fixture, needle, 1 + random_below(&fixture->state, 100));
    }
    search(fixture, "", 7);
    search(fixture, "no such bytes", 1000);
    lahar_shard_close(fixture->shard);
}

Test(term_search, finds_needles_read_in_place)
{
    struct fixture fixture;
    create(&fixture, 11);
    search_often(&fixture, 0, 150);
    destroy(&fixture);
}

Test(term_search, finds_needles_in_kept_pages)
{
    struct fixture fixture;
    create(&fixture, 12);
    search_often(&fixture, 64 << 20, 150);
    destroy(&fixture);
}

Test(term_search, finds_needles_past_the_kept_pages)
{
    struct fixture fixture;
    create(&fixture, 13);
    search_often(&fixture, 1, 150);
    destroy(&fixture);
}

Test(term_search, decodes_few_terms_for_a_rare_needle)
{
    struct fixture fixture;
    create(&fixture, 14);
    open(&fixture, 1);
    struct wanted wanted = {.needle = fixture.values[0].text};
    struct lahar_docset set;
    bool exact = true;
    const struct lahar_term_search asked = {.end_block =
                                                lahar_shard_term_block_count(fixture.shard, 0),
                                            .needle = {fixture.values[0].text + 3, 9},
                                            .accept = accept,
                                            .context = &wanted};
    cr_assert_eq(lahar_docset_init(&set, VALUES, &lahar_allocator_libc, NULL), LAHAR_OK);
    fixture.memory.fetch_count = 0;
    cr_assert_eq(lahar_shard_search_terms(fixture.shard, 0, &asked, &set, &exact, NULL), LAHAR_OK);
    cr_assert(lahar_docset_has(&set, 0));
    /* The value, those that are cut and those with escapes. */
    uint32_t special = 1;
    for (uint32_t i = 0; i < VALUES; i++) {
        special += fixture.values[i].size > LAHAR_SHARD_TERM_SIZE_MAX ||
                   strchr(fixture.values[i].text, '\x1b') != NULL;
    }
    cr_assert_leq(wanted.shown, special);
    lahar_docset_deinit(&set);
    lahar_shard_close(fixture.shard);
    destroy(&fixture);
}

Test(term_search, narrows_to_what_begins_alike)
{
    struct fixture fixture;
    create(&fixture, 15);
    open(&fixture, 64 << 20);
    const uint64_t blocks = lahar_shard_term_block_count(fixture.shard, 0);
    uint64_t searched = 0;
    for (unsigned round = 0; round < 400; round++) {
        char folded[VALUE_SIZE_MAX + 1];
        const struct value *value = &fixture.values[random_below(&fixture.state, VALUES)];
        fold(value, folded);
        folded[random_below(&fixture.state, value->size + 1)] = '\0';
        if (round % 4 == 0 && folded[0] != '\0') {
            folded[strlen(folded) - 1]++; /* mostly no prefix of any */
        }
        const size_t size = strlen(folded);
        uint64_t first = 0;
        uint64_t end = 0;
        cr_assert_eq(lahar_shard_prefix_blocks(fixture.shard, 0, (lahar_bytes){folded, size},
                                               &first, &end, NULL),
                     LAHAR_OK);
        cr_assert(first <= end && end <= blocks);
        searched += size > 3 ? end - first : 0;
        struct wanted wanted = {.needle = folded};
        struct lahar_docset set;
        bool exact = true;
        const struct lahar_term_search asked = {
            .first_block = first, .end_block = end, .accept = accept, .context = &wanted};
        cr_assert_eq(lahar_docset_init(&set, VALUES, &lahar_allocator_libc, NULL), LAHAR_OK);
        cr_assert_eq(lahar_shard_search_terms(fixture.shard, 0, &asked, &set, &exact, NULL),
                     LAHAR_OK);
        for (uint32_t i = 0; i < VALUES; i++) {
            char other[VALUE_SIZE_MAX + 1];
            fold(&fixture.values[i], other);
            cr_assert(strncmp(other, folded, size) != 0 || lahar_docset_has(&set, i),
                      "\"%s\" begins with \"%s\"", other, folded);
        }
        lahar_docset_deinit(&set);
    }
    cr_assert_lt(searched, 400 * blocks / 4);
    lahar_shard_close(fixture.shard);
    destroy(&fixture);
}

Test(term_search, reports_damage_past_the_kept_pages)
{
    struct fixture fixture;
    create(&fixture, 16);
    unsigned corrupt = 0;
    unsigned failed = 0;
    for (unsigned round = 0; round < 60; round++) {
        struct wanted wanted = {.needle = "0123"};
        struct lahar_docset set;
        bool exact = true;
        const size_t at = random_below(&fixture.state, fixture.bytes.size / 2);
        const uint8_t before = fixture.bytes.data[at];
        open(&fixture, 1);
        fixture.bytes.data[at] ^= round % 2 == 0 ? 1 : 0;
        fixture.memory.fetch_count = 0;
        fixture.memory.fail_at = round % 2 == 0 ? 0 : 1 + random_below(&fixture.state, 3);
        const struct lahar_term_search asked = {.end_block =
                                                    lahar_shard_term_block_count(fixture.shard, 0),
                                                .needle = {"0123", 4},
                                                .accept = accept,
                                                .context = &wanted};
        cr_assert_eq(lahar_docset_init(&set, VALUES, &lahar_allocator_libc, NULL), LAHAR_OK);
        const lahar_status status =
            lahar_shard_search_terms(fixture.shard, 0, &asked, &set, &exact, NULL);
        corrupt += status == LAHAR_CORRUPT;
        failed += status == LAHAR_IO;
        cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT || status == LAHAR_IO);
        lahar_docset_deinit(&set);
        lahar_shard_close(fixture.shard);
        fixture.bytes.data[at] = before;
        fixture.memory.fail_at = 0;
    }
    cr_assert_gt(corrupt, 5);
    cr_assert_gt(failed, 5);
    destroy(&fixture);
}

/* Damage that checksums do not show: nothing outside the block is touched, and terms are as bytes
 * before. */
Test(term_search, survives_any_bits_flipped)
{
    struct fixture fixture;
    create(&fixture, 17);
    uint8_t *sound = malloc(fixture.bytes.size);
    memcpy(sound, fixture.bytes.data, fixture.bytes.size);
    for (unsigned round = 0; round < 400; round++) {
        struct wanted wanted = {.needle = "ab"};
        struct lahar_docset set;
        bool exact = true;
        for (unsigned i = 0; i < 1 + round % 20; i++) {
            fixture.bytes.data[random_below(&fixture.state, fixture.bytes.size - 64)] ^=
                (uint8_t)(1U << random_below(&fixture.state, 8));
        }
        reseal(fixture.bytes.data, fixture.bytes.size);
        struct lahar_shard_source source = memory_source(&fixture.memory);
        source.cache = &fixture.cache;
        lahar_shard_cache_limit(&fixture.cache, round % 2 == 0 ? 1 : 64 << 20);
        if (lahar_shard_open(&source, &lahar_allocator_libc, &fixture.shard, NULL) == LAHAR_OK) {
            cr_assert_eq(lahar_docset_init(&set, lahar_shard_document_count(fixture.shard),
                                           &lahar_allocator_libc, NULL),
                         LAHAR_OK);
            const struct lahar_term_search asked = {
                .end_block = lahar_shard_term_block_count(fixture.shard, 0),
                .needle = {"ab", 2},
                .accept = accept,
                .context = &wanted};
            (void)lahar_shard_search_terms(fixture.shard, 0, &asked, &set, &exact, NULL);
            lahar_docset_deinit(&set);
            lahar_shard_close(fixture.shard);
        }
        memcpy(fixture.bytes.data, sound, fixture.bytes.size);
    }
    free(sound);
    destroy(&fixture);
}
