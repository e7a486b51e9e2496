/* Keys of JSON objects. */
#ifndef LAHAR_FORMAT_DOCUMENT_KEYS_H
#define LAHAR_FORMAT_DOCUMENT_KEYS_H

#include "engine/format/json.h"
#include "io/base/arena.h"

/* The text of a string or key with its escapes resolved, in text or in the arena.
 * False when memory is refused. */
bool lahar_json_token_text(const uint8_t *text, const struct lahar_json_token *token,
                           struct lahar_arena *arena, lahar_bytes *text_out, bool *is_lossy_out);

/* Marks, in the object at tokens[object], the keys that are given again later. */
bool lahar_json_mark_duplicates(const uint8_t *text, struct lahar_json_token *tokens,
                                uint32_t object, struct lahar_arena *arena);

#endif
