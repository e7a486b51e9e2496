/* How text becomes terms; the same code serves indexing and matching.
 *
 * A token is a run of ASCII letters, digits and '_', or a run of other letters
 * and digits (utf8proc categories L*, N*, M*); an ideograph is a token by itself.
 * Everything else separates, ANSI escape sequences as a whole, bytes that are not
 * UTF-8 too. Tokens are folded (Unicode simple case folding, of which what would
 * lead from outside ASCII into ASCII is left out: Kelvin sign, long s); no
 * normalisation: NFC and NFD stay different. For words of ASCII this is what
 * `LC_ALL=C grep -a -i -w -F` finds, escape sequences aside. */
#ifndef LAHAR_INDEX_TOKENIZER_H
#define LAHAR_INDEX_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/buffer.h"

/* Version of the rules above, stored in each shard. */
enum {
    LAHAR_TOKENIZER_VERSION = 1
};

struct lahar_tokenizer {
    const uint8_t *text;
    size_t size;
    size_t position;
    /* Scratch for folding; grows to the longest token. */
    struct lahar_buffer folded;
};

struct lahar_token {
    size_t start; /* bytes into the text, unfolded */
    size_t end;
    const uint8_t *term; /* folded; valid until the next call */
    size_t term_size;
};

void lahar_tokenizer_init(struct lahar_tokenizer *tokenizer, const lahar_allocator *allocator);
void lahar_tokenizer_deinit(struct lahar_tokenizer *tokenizer);
void lahar_tokenizer_start(struct lahar_tokenizer *tokenizer, const void *text, size_t size);
/* False at the end. A refused allocation ends it too: see folded.has_failed. */
bool lahar_tokenizer_next(struct lahar_tokenizer *tokenizer, struct lahar_token *token_out);

/* Case-folds bytes (invalid UTF-8 is copied) and appends them to out. */
void lahar_fold(struct lahar_buffer *out, const void *text, size_t size);

/* True when text contains the phrase verbatim after folding, and each end of the match
 * falls on a token boundary where the phrase's end is part of a token. An empty phrase matches.
 * folded_phrase is the output of lahar_fold; scratch is overwritten. False with
 * scratch->has_failed when memory was refused. */
bool lahar_phrase_matches(const void *text, size_t text_size, const uint8_t *folded_phrase,
                          size_t phrase_size, struct lahar_buffer *scratch);
/* True when the folded text contains the folded needle anywhere; scratch as above. */
bool lahar_folded_contains(const void *text, size_t text_size, const uint8_t *folded_needle,
                           size_t needle_size, struct lahar_buffer *scratch);

#endif
