/* Characters as the tokenizer sees them: decoding, classes, case folding and terminal
 * escape sequences. Pure functions. */
#ifndef LAHAR_INDEX_UNICODE_H
#define LAHAR_INDEX_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum lahar_char_class {
    LAHAR_CHAR_SEPARATOR = 0,
    LAHAR_CHAR_ASCII = 1,    /* ASCII letter, digit or '_' */
    LAHAR_CHAR_OTHER = 2,    /* any other letter, mark or number */
    LAHAR_CHAR_IDEOGRAPH = 3 /* a token by itself */
};

enum {
    LAHAR_CHARACTER_SIZE_MAX = 4
};

/* The folded byte of an ASCII letter, digit or '_'; 0 for every other byte. */
extern const uint8_t lahar_ascii_word[256];

/* Decodes the character at p, of which left >= 1 bytes may be read. Returns its size, or 0
 * when the bytes are not well-formed UTF-8 (overlong, surrogate, cut, stray). */
size_t lahar_character_decode(const uint8_t *p, size_t left, uint32_t *character_out);
/* The well-formed character that ends before end; 0 when there is none. begin bounds the look back.
 */
size_t lahar_character_before(const uint8_t *begin, const uint8_t *end, uint32_t *character_out);
/* Writes 1..4 bytes and returns how many. */
size_t lahar_character_encode(uint32_t character, uint8_t *p);

enum lahar_char_class lahar_char_class_of(uint32_t character);

/* Simple case folding of a character outside ASCII (Unicode CaseFolding status C and S). One
 * character gives one character, and never one of ASCII: the Kelvin sign and the
 * long s stay, so that ASCII words match ASCII text only. */
uint32_t lahar_fold_character(uint32_t character);

/* Bytes of the escape sequence that begins at p with ESC, at least 1. Control
 * sequences (ESC [ ... final byte), strings (ESC ] ^ _ ... BEL or ESC \) and short sequences; one
 * that is malformed or cut ends before the byte that breaks it. */
size_t lahar_escape_size(const uint8_t *p, size_t left);

#endif
