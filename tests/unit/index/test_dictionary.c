/* Going to a term of a dictionary against a look at every term: terms that are there, shortened,
 * lengthened, changed in a byte, and those before the first and behind the last one. Terms share
 * long and short beginnings, come in several spellings and are longer than what is kept. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/shard_reader.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

enum {
    VALUES = 3000,
    VALUE_SIZE_MAX = 300
};

struct term {
    uint8_t folded[LAHAR_SHARD_TERM_SIZE_MAX + 1];
    size_t size;
    uint64_t reference;
};

struct fixture {
    struct lahar_buffer bytes;
    struct memory_source memory;
    struct lahar_shard *shard;
    struct term *terms; /* in order */
    size_t term_count;
    uint64_t state;
};

static size_t make_value(struct fixture *fixture, uint32_t i, char *text)
{
    static const char *const words[] = {"impressions", "Impressions", "impress", "claims", ""};
    const uint64_t random = random_next(&fixture->state);
    const char *word = words[random % 5];
    switch (i % 5) {
    case 0:
        return (size_t)sprintf(text, "%s-%08x-%06u.avro", word, (unsigned)(random >> 32),
                               (unsigned)(random >> 20 & 0xfffff));
    case 1:
        return (size_t)sprintf(text, "%s%u", word, (unsigned)(random >> 32 & 0xff));
    case 2:
        return (size_t)sprintf(text, "%.*s", (int)(random >> 32 & 7), "aaaaaaaa");
    case 3:
        return (size_t)sprintf(text, "%0*llx", random >> 60 == 0 ? VALUE_SIZE_MAX : 17,
                               (unsigned long long)random);
    default:
        return (size_t)sprintf(text, "%s Z\xc3\xbcrich %x", word, (unsigned)(random & 0xfff));
    }
}

static void list_terms(struct fixture *fixture)
{
    struct lahar_dictionary_cursor cursor;
    lahar_dictionary_begin(&cursor, &fixture->shard->pages,
                           &fixture->shard->directory.fields[0].dictionary);
    fixture->terms = calloc(VALUES, sizeof *fixture->terms);
    while (lahar_dictionary_next(&cursor, NULL) == LAHAR_OK) {
        struct term *term = &fixture->terms[fixture->term_count++];
        memcpy(term->folded, cursor.entry.folded, cursor.entry.folded_size);
        term->size = cursor.entry.folded_size;
        term->reference = cursor.entry.reference;
    }
    lahar_dictionary_close(&cursor);
}

static void create(struct fixture *fixture, uint64_t seed)
{
    uint32_t field = 0;
    struct lahar_shard_builder *builder = NULL;
    memset(fixture, 0, sizeof *fixture);
    fixture->state = seed;
    lahar_buffer_init(&fixture->bytes, &lahar_allocator_libc);
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_field(builder, "k", 1, LAHAR_CLASS_KEYWORD, &field, NULL),
                 LAHAR_OK);
    for (uint32_t i = 0; i < VALUES; i++) {
        char text[VALUE_SIZE_MAX + 64];
        const size_t size = make_value(fixture, i, text);
        cr_assert_eq(lahar_shard_builder_document(builder, i + 1, i, NULL), LAHAR_OK);
        cr_assert_eq(lahar_shard_builder_keyword(builder, field, text, size, NULL), LAHAR_OK);
    }
    cr_assert_eq(lahar_shard_builder_finish(builder, &fixture->bytes, NULL), LAHAR_OK);
    lahar_shard_builder_destroy(builder);
    fixture->memory =
        (struct memory_source){.data = fixture->bytes.data, .size = fixture->bytes.size};
    const struct lahar_shard_source source = memory_source(&fixture->memory);
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &fixture->shard, NULL), LAHAR_OK);
    list_terms(fixture);
}

static void destroy(struct fixture *fixture)
{
    lahar_shard_close(fixture->shard);
    lahar_buffer_deinit(&fixture->bytes);
    free(fixture->terms);
}

static int compare(const struct term *term, const uint8_t *folded, size_t size)
{
    const int order = memcmp(term->folded, folded, term->size < size ? term->size : size);
    return order != 0 ? order : (term->size > size) - (term->size < size);
}

/* Goes to the term and expects the first one that is not less, and behind it all others. */
static void reach(const struct fixture *fixture, const uint8_t *folded, size_t size)
{
    struct lahar_dictionary_cursor cursor;
    size_t expected = 0;
    while (expected < fixture->term_count && compare(&fixture->terms[expected], folded, size) < 0) {
        expected++;
    }
    lahar_dictionary_begin(&cursor, &fixture->shard->pages,
                           &fixture->shard->directory.fields[0].dictionary);
    int order = -1;
    lahar_status status = lahar_dictionary_reach(&cursor, folded, size, &order, NULL);
    if (status == LAHAR_OK) {
        cr_assert_eq(order == 0, compare(&fixture->terms[expected], folded, size) == 0);
    }
    for (size_t i = expected; i < fixture->term_count && i < expected + 70; i++) {
        const struct term *term = &fixture->terms[i];
        cr_assert_eq(status, LAHAR_OK, "term %zu of %zu", i, fixture->term_count);
        cr_assert_eq(cursor.entry.folded_size, term->size);
        cr_assert_eq(memcmp(cursor.entry.folded, term->folded, term->size), 0);
        cr_assert_eq(cursor.entry.reference, term->reference);
        status = lahar_dictionary_next(&cursor, NULL);
    }
    if (fixture->term_count < expected + 70) {
        cr_assert_eq(status, LAHAR_NOT_FOUND);
    }
    lahar_dictionary_close(&cursor);
}

Test(dictionary, reaches_the_first_term_that_is_not_less)
{
    struct fixture fixture;
    create(&fixture, 29);
    cr_assert_gt(fixture.term_count, 1500);
    for (size_t i = 0; i < fixture.term_count; i++) {
        uint8_t wanted[LAHAR_SHARD_TERM_SIZE_MAX + 1];
        const struct term *term = &fixture.terms[i];
        memcpy(wanted, term->folded, term->size);
        reach(&fixture, wanted, term->size);
        if (term->size != 0) {
            reach(&fixture, wanted, random_below(&fixture.state, term->size));
            wanted[random_below(&fixture.state, term->size)] ^= (uint8_t)(1U << (i % 8));
            reach(&fixture, wanted, term->size);
        }
        if (term->size < LAHAR_SHARD_TERM_SIZE_MAX) {
            wanted[term->size] = (uint8_t)(i % 256);
            reach(&fixture, wanted, term->size + 1);
        }
    }
    reach(&fixture, (const uint8_t *)"", 0);
    reach(&fixture, (const uint8_t *)"\xff\xff", 2);
    destroy(&fixture);
}

/* Whatever the bytes are, nothing outside of them is touched and every walk ends. */
Test(dictionary, survives_any_bits_flipped)
{
    struct fixture fixture;
    create(&fixture, 31);
    uint8_t *sound = malloc(fixture.bytes.size);
    memcpy(sound, fixture.bytes.data, fixture.bytes.size);
    unsigned refused = 0;
    for (unsigned round = 0; round < 400; round++) {
        struct lahar_shard *shard = NULL;
        for (unsigned i = 0; i < 1 + round % 40; i++) {
            fixture.bytes.data[random_below(&fixture.state, fixture.bytes.size - 64)] ^=
                (uint8_t)(1U << random_below(&fixture.state, 8));
        }
        reseal(fixture.bytes.data, fixture.bytes.size);
        const struct lahar_shard_source source = memory_source(&fixture.memory);
        if (lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL) != LAHAR_OK) {
            refused++;
        } else {
            for (size_t i = round % 7; i < fixture.term_count; i += 7) {
                const struct term *term = &fixture.terms[i];
                struct lahar_dictionary_cursor cursor;
                int order = 0;
                lahar_dictionary_begin(&cursor, &shard->pages,
                                       &shard->directory.fields[0].dictionary);
                refused += lahar_dictionary_reach(&cursor, term->folded, term->size, &order,
                                                  NULL) == LAHAR_CORRUPT;
                lahar_dictionary_close(&cursor);
            }
            lahar_shard_close(shard);
        }
        memcpy(fixture.bytes.data, sound, fixture.bytes.size);
    }
    cr_assert_gt(refused, 100);
    free(sound);
    destroy(&fixture);
}
