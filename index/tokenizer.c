/* Tokens, case folding and verbatim matching over text of any bytes.
 *
 * Most text is ASCII: tokens without upper case are handed out in place, folding and
 * the search for a phrase work on whole words. Characters outside ASCII are
 * decoded one by one. Folding keeps every character's class (it never leads into
 * or out of ASCII), so token boundaries are the same in folded text.
 * No state beyond the caller's structs; allocation failure is remembered in buffers. */
#include "index/tokenizer.h"

#include <string.h>

#include "index/unicode.h"

enum {
    ESCAPE = 0x1b
};

void lahar_tokenizer_init(struct lahar_tokenizer *tokenizer, const lahar_allocator *allocator)
{
    *tokenizer = (struct lahar_tokenizer){.text = NULL};
    lahar_buffer_init(&tokenizer->folded, allocator);
}

void lahar_tokenizer_deinit(struct lahar_tokenizer *tokenizer)
{
    lahar_buffer_deinit(&tokenizer->folded);
}

void lahar_tokenizer_start(struct lahar_tokenizer *tokenizer, const void *text, size_t size)
{
    tokenizer->text = text;
    tokenizer->size = size;
    tokenizer->position = 0;
}

/* A run of ASCII word characters from start; folded in place when nothing changes. */
static bool take_ascii(struct lahar_tokenizer *tokenizer, size_t start, struct lahar_token *token)
{
    const uint8_t *text = tokenizer->text;
    size_t end = start;
    uint8_t changed = 0;
    while (end < tokenizer->size) {
        const uint8_t folded = lahar_ascii_word[text[end]];
        if (folded == 0) {
            break;
        }
        changed |= folded ^ text[end];
        end++;
    }
    tokenizer->position = end;
    *token = (struct lahar_token){start, end, text + start, end - start};
    if (changed != 0) {
        struct lahar_buffer *buffer = &tokenizer->folded;
        buffer->size = 0;
        if (!lahar_buffer_reserve(buffer, end - start)) {
            return false;
        }
        for (size_t i = start; i < end; i++) {
            buffer->data[i - start] = lahar_ascii_word[text[i]];
        }
        token->term = buffer->data;
    }
    return true;
}

/* An ideograph, or a run of other letters that begins with one of the given class and size. */
static bool take_other(struct lahar_tokenizer *tokenizer, size_t start, size_t first_size,
                       uint32_t character, enum lahar_char_class char_class,
                       struct lahar_token *token)
{
    struct lahar_buffer *buffer = &tokenizer->folded;
    uint8_t bytes[LAHAR_CHARACTER_SIZE_MAX];
    buffer->size = 0;
    size_t size = first_size;
    size_t end = start;
    do {
        lahar_buffer_put(buffer, bytes,
                         lahar_character_encode(lahar_fold_character(character), bytes));
        end += size;
        if (char_class == LAHAR_CHAR_IDEOGRAPH || end == tokenizer->size) {
            break;
        }
        size = lahar_character_decode(tokenizer->text + end, tokenizer->size - end, &character);
    } while (size > 1 && lahar_char_class_of(character) == char_class);
    tokenizer->position = end;
    *token = (struct lahar_token){start, end, buffer->data, buffer->size};
    return !buffer->has_failed;
}

bool lahar_tokenizer_next(struct lahar_tokenizer *tokenizer, struct lahar_token *token_out)
{
    const uint8_t *text = tokenizer->text;
    size_t position = tokenizer->position;
    while (position < tokenizer->size && !tokenizer->folded.has_failed) {
        const uint8_t byte = text[position];
        if (lahar_ascii_word[byte] != 0) {
            return take_ascii(tokenizer, position, token_out);
        }
        if (byte >= 0x80) {
            uint32_t character = 0;
            const size_t size =
                lahar_character_decode(text + position, tokenizer->size - position, &character);
            const enum lahar_char_class char_class =
                size == 0 ? LAHAR_CHAR_SEPARATOR : lahar_char_class_of(character);
            if (char_class != LAHAR_CHAR_SEPARATOR) {
                return take_other(tokenizer, position, size, character, char_class, token_out);
            }
            position += size == 0 ? 1 : size;
        } else if (byte == ESCAPE) {
            position += lahar_escape_size(text + position, tokenizer->size - position);
        } else {
            position++;
        }
    }
    tokenizer->position = position;
    return false;
}

/* Lower case for eight ASCII bytes at once: adding pushes the letters' bytes,
 * and only theirs, over the top bit. */
static uint64_t fold_ascii_word(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t from_a = word + ones * (0x80 - 'A');
    const uint64_t beyond_z = word + ones * (0x80 - 'Z' - 1);
    return word | (((from_a & ~beyond_z) & (ones * 0x80)) >> 2);
}

void lahar_fold(struct lahar_buffer *out, const void *text, size_t size)
{
    const uint8_t *p = text;
    size_t i = 0;
    while (i < size) {
        /* Folding can lengthen a character; room for the rest is re-checked each round. */
        if (!lahar_buffer_reserve(out, size - i + LAHAR_CHARACTER_SIZE_MAX)) {
            return;
        }
        uint8_t *to = out->data + out->size;
        const size_t begin = i;
        for (; size - i >= 8; i += 8, to += 8) {
            const uint64_t word = lahar_load_u64(p + i);
            if ((word & UINT64_C(0x8080808080808080)) != 0) {
                break;
            }
            lahar_store_u64(to, fold_ascii_word(word));
        }
        for (; i < size && p[i] < 0x80; i++) {
            *to++ = (uint8_t)(p[i] >= 'A' && p[i] <= 'Z' ? p[i] | 0x20 : p[i]);
        }
        out->size += i - begin;
        if (i < size) {
            uint32_t character = 0;
            const size_t taken = lahar_character_decode(p + i, size - i, &character);
            if (taken == 0) {
                *to = p[i];
                out->size++;
                i++;
            } else {
                out->size += lahar_character_encode(lahar_fold_character(character), to);
                i += taken;
            }
        }
    }
}

static enum lahar_char_class class_at(const uint8_t *p, const uint8_t *end, size_t *size_out)
{
    uint32_t character = 0;
    *size_out = 1;
    if (p == end) {
        return LAHAR_CHAR_SEPARATOR;
    }
    const size_t size = lahar_character_decode(p, (size_t)(end - p), &character);
    if (size == 0) {
        return LAHAR_CHAR_SEPARATOR;
    }
    *size_out = size;
    return lahar_char_class_of(character);
}

static enum lahar_char_class class_before(const uint8_t *begin, const uint8_t *p)
{
    uint32_t character = 0;
    return lahar_character_before(begin, p, &character) == 0 ? LAHAR_CHAR_SEPARATOR
                                                             : lahar_char_class_of(character);
}

/* Whether a token may end between two neighbours of these classes, of which inner belongs
 * to the phrase. */
static bool is_boundary(enum lahar_char_class inner, enum lahar_char_class outer)
{
    return inner == LAHAR_CHAR_SEPARATOR || inner == LAHAR_CHAR_IDEOGRAPH || inner != outer;
}

/* Past a run within which no token begins, so that a repetitive text costs one pass. */
static const uint8_t *skip_class(const uint8_t *p, const uint8_t *end, enum lahar_char_class run)
{
    size_t size = 0;
    while (p < end && class_at(p, end, &size) == run) {
        p += size;
    }
    return p;
}

static bool match_in_plain(const uint8_t *text, size_t text_size, const uint8_t *phrase,
                           size_t phrase_size)
{
    const uint8_t *end = text + text_size;
    size_t unused = 0;
    const enum lahar_char_class first = class_at(phrase, phrase + phrase_size, &unused);
    const enum lahar_char_class last = class_before(phrase, phrase + phrase_size);
    for (const uint8_t *from = text; from < end;) {
        const uint8_t *hit = memmem(from, (size_t)(end - from), phrase, phrase_size);
        if (hit == NULL) {
            return false;
        }
        const uint8_t *behind = hit + phrase_size;
        from = hit + 1;
        if (!is_boundary(first, class_before(text, hit))) {
            from = skip_class(hit, end, first);
        } else if (is_boundary(last, class_at(behind, end, &unused))) {
            return true;
        }
    }
    return false;
}

/* Writes the class of the character that each byte belongs to; the bytes of an escape sequence
 * separate. */
static void classify(const uint8_t *text, size_t size, uint8_t *classes)
{
    for (size_t i = 0; i < size;) {
        size_t taken = 1;
        enum lahar_char_class char_class = LAHAR_CHAR_SEPARATOR;
        if (text[i] == ESCAPE) {
            taken = lahar_escape_size(text + i, size - i);
        } else {
            char_class = class_at(text + i, text + size, &taken);
        }
        memset(classes + i, (int)char_class, taken);
        i += taken;
    }
}

/* With escape sequences about, a letter may be part of one and then belongs to
 * no token: the classes of all bytes are laid out and compared too. */
static bool match_among_escapes(const uint8_t *text, const uint8_t *text_classes, size_t text_size,
                                const uint8_t *phrase, const uint8_t *phrase_classes,
                                size_t phrase_size)
{
    const uint8_t *end = text + text_size;
    for (const uint8_t *from = text; from < end;) {
        const uint8_t *hit = memmem(from, (size_t)(end - from), phrase, phrase_size);
        if (hit == NULL) {
            return false;
        }
        const size_t start = (size_t)(hit - text);
        const size_t behind = start + phrase_size;
        const uint8_t before_class = start == 0 ? LAHAR_CHAR_SEPARATOR : text_classes[start - 1];
        const uint8_t behind_class =
            behind == text_size ? LAHAR_CHAR_SEPARATOR : text_classes[behind];
        if (memcmp(text_classes + start, phrase_classes, phrase_size) == 0 &&
            is_boundary(phrase_classes[0], before_class) &&
            is_boundary(phrase_classes[phrase_size - 1], behind_class)) {
            return true;
        }
        from = hit + 1;
    }
    return false;
}

bool lahar_phrase_matches(const void *text, size_t text_size, const uint8_t *folded_phrase,
                          size_t phrase_size, struct lahar_buffer *scratch)
{
    lahar_buffer_clear(scratch);
    if (phrase_size == 0) {
        return true;
    }
    lahar_fold(scratch, text, text_size);
    const size_t folded_size = scratch->size;
    if (scratch->has_failed || folded_size < phrase_size) {
        return false;
    }
    if (memchr(scratch->data, ESCAPE, folded_size) == NULL) {
        return match_in_plain(scratch->data, folded_size, folded_phrase, phrase_size);
    }
    if (!lahar_buffer_reserve(scratch, folded_size + phrase_size)) {
        return false;
    }
    uint8_t *text_classes = scratch->data + folded_size;
    uint8_t *phrase_classes = text_classes + folded_size;
    classify(scratch->data, folded_size, text_classes);
    classify(folded_phrase, phrase_size, phrase_classes);
    return match_among_escapes(scratch->data, text_classes, folded_size, folded_phrase,
                               phrase_classes, phrase_size);
}

bool lahar_folded_contains(const void *text, size_t text_size, const uint8_t *folded_needle,
                           size_t needle_size, struct lahar_buffer *scratch)
{
    lahar_buffer_clear(scratch);
    if (needle_size == 0) {
        return true;
    }
    lahar_fold(scratch, text, text_size);
    return !scratch->has_failed && scratch->size >= needle_size &&
           memmem(scratch->data, scratch->size, folded_needle, needle_size) != NULL;
}
