/* Keys of JSON objects. */
#ifndef LAHAR_FORMAT_DOCUMENT_KEYS_H
#define LAHAR_FORMAT_DOCUMENT_KEYS_H

#include "engine/format/json.h"
#include "io/base/arena.h"

/* Resolves the escapes of a string or key into the arena. */
lahar_bytes lahar_json_token_unescape(const uint8_t *text, const struct lahar_json_token *token,
                                      struct lahar_arena *arena, bool *is_lossy_out);

/* The text of a string or key with its escapes resolved, in text or in the arena; its
 * data is NULL when memory is refused. */
static inline lahar_bytes lahar_json_token_text(const uint8_t *text,
                                                const struct lahar_json_token *token,
                                                struct lahar_arena *arena, bool *is_lossy_out)
{
    *is_lossy_out = false;
    if ((token->flags & LAHAR_JSON_ESCAPED) != 0) {
        return lahar_json_token_unescape(text, token, arena, is_lossy_out);
    }
    return (lahar_bytes){text + token->offset, token->size};
}

/* Marks, in the object at tokens[object], the keys that are given again later. The
 * hash of every key's text is left in its token's end. */
bool lahar_json_mark_duplicates(const uint8_t *text, struct lahar_json_token *tokens,
                                uint32_t object, struct lahar_arena *arena);

#endif
