/* Tokens, folding and phrase matching: hand-made cases, and a naive second
 * implementation over single characters as oracle for random text. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "failing_allocator.h"
#include "index/tokenizer.h"
#include "index/unicode.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

/* The tokens of text joined by '|'. */
static const char *tokens_of(const void *text, size_t size)
{
    static char joined[4096];
    struct lahar_tokenizer tokenizer;
    struct lahar_token token;
    size_t used = 0;
    lahar_tokenizer_init(&tokenizer, &lahar_allocator_libc);
    lahar_tokenizer_start(&tokenizer, text, size);
    while (lahar_tokenizer_next(&tokenizer, &token)) {
        cr_assert_lt(token.start, token.end);
        cr_assert_leq(token.end, size);
        if (used > 0) {
            joined[used++] = '|';
        }
        cr_assert_lt(used + token.term_size, sizeof joined);
        memcpy(joined + used, token.term, token.term_size);
        used += token.term_size;
    }
    joined[used] = '\0';
    cr_assert_not(tokenizer.folded.has_failed);
    lahar_tokenizer_deinit(&tokenizer);
    return joined;
}

static const char *tokens(const char *text)
{
    return tokens_of(text, strlen(text));
}

static const char *fold(const char *text)
{
    static char folded[4096];
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    lahar_fold(&out, text, strlen(text));
    cr_assert_lt(out.size, sizeof folded);
    memcpy(folded, out.data == NULL ? (const uint8_t *)"" : out.data, out.size);
    folded[out.size] = '\0';
    lahar_buffer_deinit(&out);
    return folded;
}

static bool phrase(const char *text, const char *wanted)
{
    struct lahar_buffer folded;
    struct lahar_buffer scratch;
    lahar_buffer_init(&folded, &lahar_allocator_libc);
    lahar_buffer_init(&scratch, &lahar_allocator_libc);
    lahar_fold(&folded, wanted, strlen(wanted));
    const bool found = lahar_phrase_matches(text, strlen(text), folded.data, folded.size, &scratch);
    lahar_buffer_deinit(&folded);
    lahar_buffer_deinit(&scratch);
    return found;
}

static bool contains(const char *text, const char *folded_needle)
{
    struct lahar_buffer scratch;
    lahar_buffer_init(&scratch, &lahar_allocator_libc);
    const bool found = lahar_folded_contains(text, strlen(text), (const uint8_t *)folded_needle,
                                             strlen(folded_needle), &scratch);
    lahar_buffer_deinit(&scratch);
    return found;
}

Test(tokenizer, splits_ascii_at_everything_but_letters_digits_and_underscore)
{
    cr_assert_str_eq(tokens(""), "");
    cr_assert_str_eq(tokens(" .,-/"), "");
    cr_assert_str_eq(tokens("GET /api/v2/user_id=42 HTTP/1.1"), "get|api|v2|user_id|42|http|1|1");
    cr_assert_str_eq(tokens("8f3a61c0-0000-4000-8000-00000000000A"),
                     "8f3a61c0|0000|4000|8000|00000000000a");
    cr_assert_str_eq(tokens_of("a\0b", 3), "a|b");
}

Test(tokenizer, keeps_other_letters_apart_from_ascii)
{
    cr_assert_str_eq(tokens("Größe"), "gr|öß|e");
    cr_assert_str_eq(tokens("ПРИВЕТ мир"), "привет|мир");
    cr_assert_str_eq(tokens("٣٤٥x"), "٣٤٥|x");
    cr_assert_str_eq(tokens("naïve—café"), "na|ï|ve|caf|é");
}

Test(tokenizer, makes_each_ideograph_a_token)
{
    cr_assert_str_eq(tokens("漢字abc𠀀かな"), "漢|字|abc|𠀀|かな");
    cr_assert_str_eq(tokens("中文、日本"), "中|文|日|本");
}

Test(tokenizer, takes_escape_sequences_for_separators)
{
    cr_assert_str_eq(tokens("\x1b[32mDEBUG\x1b[0m done"), "debug|done");
    cr_assert_str_eq(tokens("a\x1b[1;31;40mb"), "a|b");
    cr_assert_str_eq(tokens("\x1b]8;;http://host/path\x1b\\link\x1b]8;;\x07 end"), "link|end");
    cr_assert_str_eq(tokens("\x1b(Bplain \x1b=x"), "plain|x");
    /* Cut or malformed ones hide nothing but themselves. */
    cr_assert_str_eq(tokens("\x1b"), "");
    cr_assert_str_eq(tokens("\x1b[12"), "");
    cr_assert_str_eq(tokens("\x1b[12\nabc"), "abc");
    cr_assert_str_eq(tokens("\x1b]no end"), "no|end");
}

Test(tokenizer, separates_at_bytes_that_are_not_utf8)
{
    cr_assert_str_eq(tokens("ab\xff"
                            "cd"),
                     "ab|cd");
    cr_assert_str_eq(tokens("é\x80é"), "é|é");
    cr_assert_str_eq(tokens("\xc0\xaf"
                            "x\xed\xa0\x80y\xf4\x90\x80\x80z"),
                     "x|y|z");
    cr_assert_str_eq(tokens("x\xe2\x82"), "x");
}

Test(tokenizer, folds_simply_and_never_between_ascii_and_the_rest)
{
    cr_assert_str_eq(fold("ABC xyz 09_[]@`{"), "abc xyz 09_[]@`{");
    cr_assert_str_eq(fold("ΣΊΣΥΦΟΣ σς"), "σίσυφοσ σσ");
    cr_assert_str_eq(fold("ЁЖ"), "ёж");
    cr_assert_str_eq(fold("Straße STRAẞE"), "straße straße");
    cr_assert_str_eq(fold("İIı"), "İiı");
    cr_assert_str_eq(fold("\xe2\x84\xaa k \xc5\xbf s"), "\xe2\x84\xaa k \xc5\xbf s");
    cr_assert_str_eq(fold("Ⱥ"), "ⱥ");
    cr_assert_str_eq(fold("A\xff\xc3 B"), "a\xff\xc3 b");
}

Test(tokenizer, leaves_composed_and_decomposed_forms_apart)
{
    cr_assert_str_eq(fold("\xc3\x89"), "\xc3\xa9");
    cr_assert_str_eq(fold("E\xcc\x81"), "e\xcc\x81");
    cr_assert_not(contains("e\xcc\x81", "\xc3\xa9"));
}

Test(unicode, folds_every_character_once_and_keeps_its_class)
{
    for (uint32_t c = 0x80; c <= 0x10ffff; c++) {
        if (c >= 0xd800 && c <= 0xdfff) {
            continue;
        }
        const uint32_t folded = lahar_fold_character(c);
        cr_assert_geq(folded, 0x80, "U+%04X", c);
        cr_assert_eq(lahar_fold_character(folded), folded, "U+%04X", c);
        cr_assert_eq(lahar_char_class_of(folded), lahar_char_class_of(c), "U+%04X", c);
        uint8_t bytes[4];
        uint32_t decoded = 0;
        const size_t size = lahar_character_encode(c, bytes);
        cr_assert_eq(lahar_character_decode(bytes, size, &decoded), size);
        cr_assert_eq(decoded, c);
        cr_assert_eq(lahar_character_before(bytes, bytes + size, &decoded), size);
        cr_assert_eq(lahar_character_decode(bytes, size - 1 == 0 ? 1 : size - 1, &decoded), 0);
    }
}

/* utf8proc's own validator decides what is well-formed. */
Test(unicode, agrees_with_utf8proc_on_what_is_well_formed)
{
    uint64_t random = 99;
    for (int i = 0; i < 2000000; i++) {
        uint8_t bytes[4];
        const uint64_t r = random_next(&random);
        memcpy(bytes, &r, sizeof bytes);
        bytes[0] |= 0xc0;
        for (int k = 1; k < 4; k++) {
            if ((r >> (40 + k) & 3) != 0) {
                bytes[k] = (uint8_t)(0x80 | (bytes[k] & 0x3f));
            }
        }
        utf8proc_int32_t expected = 0;
        const utf8proc_ssize_t expected_size = utf8proc_iterate(bytes, 4, &expected);
        uint32_t found = 0;
        const size_t size = lahar_character_decode(bytes, 4, &found);
        cr_assert_eq(size, expected_size < 0 ? 0 : (size_t)expected_size);
        cr_assert(size == 0 || found == (uint32_t)expected);
    }
}

Test(phrase, begins_and_ends_at_token_boundaries)
{
    cr_assert(phrase("Connection timeout after 77 s", "connection TIMEOUT"));
    cr_assert(phrase("xconn timeout; conn timeout", "conn timeout"));
    cr_assert_not(phrase("connection timeouts", "connection timeout"));
    cr_assert_not(phrase("reconnection timeout", "connection timeout"));
    cr_assert_not(phrase("connection  timeout", "connection timeout"));
    cr_assert(phrase("a=b", "="));
    cr_assert(phrase("path /var/log/x", "/var/log/"));
    cr_assert_not(phrase("path /var/logs", "/var/log"));
    cr_assert(phrase("path /var/log", "/var/log"));
    cr_assert(phrase("", ""));
    cr_assert_not(phrase("", "a"));
    cr_assert_not(phrase("aaaa aaa", "aa"));
    cr_assert(phrase("aaaa aaa aa", "aa"));
}

Test(phrase, knows_boundaries_outside_ascii)
{
    cr_assert(phrase("ПРИВЕТ, мир", "привет"));
    cr_assert_not(phrase("приветы", "привет"));
    cr_assert(phrase("Größe", "gr"));
    cr_assert_not(phrase("Größe", "ö"));
    cr_assert(phrase("漢字", "字"));
    cr_assert(phrase("漢字", "漢"));
    cr_assert(phrase("x\xc3yes", "yes"));
}

Test(phrase, does_not_match_inside_escape_sequences)
{
    cr_assert(phrase("\x1b[32mDEBUG\x1b[0m", "debug"));
    cr_assert_not(phrase("\x1b[32mDEBUG\x1b[0m", "32mdebug"));
    cr_assert_not(phrase("\x1b[32m", "32m"));
    cr_assert(phrase("\x1b[1mA\x1b[0m b", "\x1b[1mA"));
}

Test(contains, compares_folded_text)
{
    cr_assert(contains("Hello WORLD", "lo wor"));
    cr_assert(contains("Hello", ""));
    cr_assert_not(contains("Hello", "hello!"));
    cr_assert(contains("ЁЖ", "ёж"));
}

/* One character at a time, by the words of tokenizer.h alone; no escape sequences. */
struct naive {
    char joined[8192];
    size_t size;
};

static int naive_class(const uint8_t *p, size_t left, size_t *size, utf8proc_int32_t *c)
{
    const utf8proc_ssize_t n = utf8proc_iterate(p, (utf8proc_ssize_t)left, c);
    *size = n <= 0 ? 1 : (size_t)n;
    if (n <= 0) {
        return 0;
    }
    if (*c < 0x80) {
        return (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') ||
                       *c == '_'
                   ? 1
                   : 0;
    }
    const char *category = utf8proc_category_string(*c);
    if (category[0] != 'L' && category[0] != 'N' && category[0] != 'M') {
        return 0;
    }
    return *c >= 0x4e00 && *c <= 0x9fff ? 3 : 2;
}

static void naive_tokens(const uint8_t *text, size_t text_size, struct naive *out)
{
    int previous = 0;
    out->size = 0;
    for (size_t i = 0; i < text_size;) {
        size_t size = 0;
        utf8proc_int32_t c = 0;
        const int class = naive_class(text + i, text_size - i, &size, &c);
        if (class != 0) {
            if (out->size > 0 && (class != previous || class == 3)) {
                out->joined[out->size++] = '|';
            }
            c = c >= 'A' && c <= 'Z' ? c + 32 : utf8proc_tolower(c);
            out->size += (size_t)utf8proc_encode_char(c, (uint8_t *)out->joined + out->size);
        }
        previous = class != 0 ? class : -1;
        i += size;
    }
    out->joined[out->size] = '\0';
}

Test(tokenizer, agrees_with_a_naive_one_on_random_text)
{
    /* Pieces whose simple folding is plain lower case. */
    static const char *pieces[] = {"a", "Z", "_",  "7",    " ",  "-",       "é",
                                   "É", "я", "Я",  "漢",   "字", "\xff",    "\xe6\xbc",
                                   "٣", "—", "ab", "HTTP", ".",  "\xcc\x81"};
    uint64_t random = 5;
    for (int round = 0; round < 20000; round++) {
        char text[512];
        size_t size = 0;
        const uint64_t count = random_below(&random, 40);
        for (uint64_t i = 0; i < count; i++) {
            const char *piece = pieces[random_below(&random, sizeof pieces / sizeof pieces[0])];
            memcpy(text + size, piece, strlen(piece));
            size += strlen(piece);
        }
        struct naive naive;
        naive_tokens((const uint8_t *)text, size, &naive);
        cr_assert_str_eq(tokens_of(text, size), naive.joined);
    }
}

Test(tokenizer, survives_any_bytes)
{
    uint64_t random = 17;
    struct lahar_buffer scratch;
    lahar_buffer_init(&scratch, &lahar_allocator_libc);
    for (int round = 0; round < 20000; round++) {
        const size_t size = (size_t)random_below(&random, 80);
        uint8_t *text = malloc(size == 0 ? 1 : size);
        for (size_t i = 0; i < size; i++) {
            text[i] = random_below(&random, 6) == 0 ? 0x1b : (uint8_t)random_next(&random);
        }
        tokens_of(text, size);
        cr_assert_eq(lahar_folded_contains(text, size, (const uint8_t *)"", 0, &scratch), true);
        const size_t part = size == 0 ? 0 : (size_t)random_below(&random, size);
        struct lahar_buffer wanted;
        lahar_buffer_init(&wanted, &lahar_allocator_libc);
        lahar_fold(&wanted, text + part, size - part);
        /* The whole text is always its own phrase. */
        lahar_phrase_matches(text, size, wanted.data, wanted.size, &scratch);
        lahar_buffer_clear(&wanted);
        lahar_fold(&wanted, text, size);
        cr_assert(lahar_phrase_matches(text, size, wanted.data, wanted.size, &scratch));
        lahar_buffer_deinit(&wanted);
        free(text);
    }
    lahar_buffer_deinit(&scratch);
}

Test(tokenizer, reports_refused_memory)
{
    struct failing_allocator failing;
    failing_allocator_init(&failing, 0);
    struct lahar_tokenizer tokenizer;
    struct lahar_token token;
    lahar_tokenizer_init(&tokenizer, &failing.allocator);
    lahar_tokenizer_start(&tokenizer, "lower UPPER lower", 17);
    cr_assert(lahar_tokenizer_next(&tokenizer, &token));
    cr_assert_not(lahar_tokenizer_next(&tokenizer, &token));
    cr_assert(tokenizer.folded.has_failed);
    cr_assert_not(lahar_tokenizer_next(&tokenizer, &token));
    lahar_tokenizer_deinit(&tokenizer);
}
