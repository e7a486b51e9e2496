/* From values to the numbers of their terms, through one hash table for all fields.
 *
 * A value that comes from the dictionary of a block comes with many others: they are hashed some
 * ahead, so that the processor fetches what their look-ups touch while it hashes on. */
#include <string.h>

#include "index/shard_builder.h"
#include "index/shard_format.h"
#include "index/unicode.h"
#include "index/vector.h"
#include "io/base/error.h"

enum {
    /* Bytes of a value that can matter for a folded form of 255 bytes: a character shrinks to no
     * less than a third. */
    FOLD_SOURCE_MAX = 4 * LAHAR_SHARD_TERM_SIZE_MAX,
    STEP_COUNT = 16 /* values hashed ahead */
};

static lahar_status no_memory(struct lahar_shard_builder *builder, lahar_error *error)
{
    builder->has_failed = true;
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index an event");
}

bool lahar_fold_cut(struct lahar_buffer *folded, const void *value, size_t size)
{
    lahar_buffer_clear(folded);
    lahar_fold(folded, value, size < FOLD_SOURCE_MAX ? size : FOLD_SOURCE_MAX);
    if (folded->size <= LAHAR_SHARD_TERM_SIZE_MAX) {
        return false;
    }
    folded->size = LAHAR_SHARD_TERM_SIZE_MAX;
    return true;
}

/* The number of a term. */
bool lahar_builder_add_term(struct lahar_shard_builder *builder, uint32_t field,
                            const struct lahar_term_key *key, uint32_t *term_out)
{
    uint32_t place = 0;
    if (!lahar_term_table_add(&builder->terms, field, key, &place)) {
        return false;
    }
    *term_out = lahar_term_at(&builder->terms, place)->number;
    return true;
}

/* A keyword above 255 bytes: its first bytes, and behind them the first bytes of its
 * folded form, since that of the whole may reach further than that of the part. */
static bool add_long_term(struct lahar_shard_builder *builder, uint32_t field, const void *value,
                          size_t size, uint32_t *place_out)
{
    struct lahar_buffer *key = &builder->folded;
    const bool is_folded_cut = lahar_fold_cut(key, value, size);
    const size_t folded_size = key->size;
    if (!lahar_buffer_reserve(key, LAHAR_SHARD_TERM_SIZE_MAX) || key->has_failed) {
        return false;
    }
    memmove(key->data + LAHAR_SHARD_TERM_SIZE_MAX, key->data, folded_size);
    memcpy(key->data, value, LAHAR_SHARD_TERM_SIZE_MAX);
    const struct lahar_term_key term = {.data = key->data,
                                        .size = LAHAR_SHARD_TERM_SIZE_MAX,
                                        .long_size = (uint16_t)folded_size,
                                        .flags =
                                            (uint8_t)(LAHAR_TERM_IS_LONG | LAHAR_TERM_EXACT_CUT |
                                                      (is_folded_cut ? LAHAR_TERM_FOLDED_CUT : 0))};
    return lahar_term_table_add(&builder->terms, field, &term, place_out);
}

bool lahar_builder_find_terms(struct lahar_shard_builder *builder, uint32_t field,
                              const struct lahar_shard_entries *entries, const uint32_t *numbers,
                              uint32_t count, uint32_t *places)
{
    uint64_t hashes[STEP_COUNT];
    for (uint32_t start = 0; start < count; start += STEP_COUNT) {
        const uint32_t step = count - start < STEP_COUNT ? count - start : (uint32_t)STEP_COUNT;
        for (uint32_t i = 0; i < step; i++) {
            const uint32_t entry = numbers == NULL ? start + i : numbers[start + i];
            const lahar_bytes bytes = lahar_shard_entry(entries, entry);
            const struct lahar_term_key key = {.data = bytes.data, .size = (uint16_t)bytes.size};
            if (places[entry] == UINT32_MAX && bytes.size <= LAHAR_SHARD_TERM_SIZE_MAX) {
                hashes[i] = lahar_term_hash(field, &key);
                lahar_term_table_prefetch(&builder->terms, hashes[i]);
            }
        }
        for (uint32_t i = 0; i < step; i++) {
            const uint32_t entry = numbers == NULL ? start + i : numbers[start + i];
            const lahar_bytes bytes = lahar_shard_entry(entries, entry);
            const struct lahar_term_key key = {.data = bytes.data, .size = (uint16_t)bytes.size};
            if (places[entry] == UINT32_MAX &&
                !(bytes.size > LAHAR_SHARD_TERM_SIZE_MAX
                      ? add_long_term(builder, field, bytes.data, bytes.size, &places[entry])
                      : lahar_term_table_add_hashed(&builder->terms, hashes[i], field, &key,
                                                    &places[entry]))) {
                return false;
            }
        }
    }
    return true;
}

bool lahar_builder_keyword_term(struct lahar_shard_builder *builder, uint32_t field,
                                const void *value, size_t size, uint32_t *term_out)
{
    if (size > LAHAR_SHARD_TERM_SIZE_MAX) {
        uint32_t place = 0;
        if (!add_long_term(builder, field, value, size, &place)) {
            return false;
        }
        *term_out = lahar_term_at(&builder->terms, place)->number;
        return true;
    }
    /* Neighbouring events mostly repeat the value. */
    struct lahar_builder_field *f = &builder->fields[field];
    if (f->last_term != UINT32_MAX) {
        const struct lahar_term *term = lahar_term_at(&builder->terms, f->last_term);
        if (term->size == size && term->flags == 0 &&
            (size == 0 || memcmp(term->bytes, value, size) == 0)) {
            *term_out = term->number;
            return true;
        }
    }
    const struct lahar_term_key key = {.data = size == 0 ? "" : value, .size = (uint16_t)size};
    if (!lahar_term_table_add(&builder->terms, field, &key, &f->last_term)) {
        f->last_term = UINT32_MAX;
        return false;
    }
    *term_out = lahar_term_at(&builder->terms, f->last_term)->number;
    return true;
}

bool lahar_builder_token_term(struct lahar_shard_builder *builder, uint32_t field,
                              const struct lahar_token *token, uint32_t *term_out)
{
    const bool is_cut = token->term_size > LAHAR_SHARD_TERM_SIZE_MAX;
    const struct lahar_term_key key = {
        .data = token->term,
        .size = (uint16_t)(is_cut ? LAHAR_SHARD_TERM_SIZE_MAX : token->term_size),
        .flags = is_cut ? LAHAR_TERM_FOLDED_CUT | LAHAR_TERM_EXACT_CUT : 0};
    return lahar_builder_add_term(builder, field, &key, term_out);
}

/* Whether the text gets LAHAR_SHARD_ESCAPE_TERM besides its tokens. */
bool lahar_builder_has_escape(const void *text, size_t size)
{
    return size != 0 && memchr(text, LAHAR_SHARD_ESCAPE_TERM[0], size) != NULL;
}

const struct lahar_token lahar_builder_escape_token = {
    .term = (const uint8_t *)LAHAR_SHARD_ESCAPE_TERM, .term_size = 1};

static bool push_token(struct lahar_shard_builder *builder, uint32_t v)
{
    if (builder->token_list_count == builder->token_list_capacity) {
        uint32_t *grown = lahar_vector_grow(
            builder->allocator, builder->token_lists, &builder->token_list_capacity,
            builder->token_list_count + 1, sizeof *builder->token_lists);
        if (grown == NULL) {
            return false;
        }
        builder->token_lists = grown;
    }
    builder->token_lists[builder->token_list_count++] = v;
    return true;
}

static bool add_token_list(struct lahar_shard_builder *builder, uint32_t field, const void *text,
                           size_t size, uint32_t *list_out)
{
    const size_t list = builder->token_list_count;
    if (list > UINT32_MAX || !push_token(builder, 0)) {
        return false;
    }
    struct lahar_token token;
    lahar_tokenizer_start(&builder->tokenizer, text, size);
    while (lahar_tokenizer_next(&builder->tokenizer, &token)) {
        uint32_t term = 0;
        if (!lahar_builder_token_term(builder, field, &token, &term) ||
            !push_token(builder, term)) {
            return false;
        }
    }
    uint32_t mark = 0;
    if (lahar_builder_has_escape(text, size) &&
        (!lahar_builder_token_term(builder, field, &lahar_builder_escape_token, &mark) ||
         !push_token(builder, mark))) {
        return false;
    }
    builder->token_lists[list] = (uint32_t)(builder->token_list_count - list - 1);
    *list_out = (uint32_t)list;
    return !builder->tokenizer.folded.has_failed;
}

/* A text that is one token in folded form already, as most variables of log lines are. */
static bool is_plain_token(lahar_bytes text)
{
    const uint8_t *bytes = text.data;
    if (text.size == 0 || text.size > LAHAR_SHARD_TERM_SIZE_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (lahar_ascii_word[bytes[i]] != bytes[i] || bytes[i] == 0) {
            return false;
        }
    }
    return true;
}

/* The list of the one token that a text is. */
static bool add_plain_list(struct lahar_shard_builder *builder, uint32_t field, uint64_t hash,
                           lahar_bytes text, uint32_t *list_out)
{
    const struct lahar_term_key key = {.data = text.data, .size = (uint16_t)text.size};
    const size_t list = builder->token_list_count;
    uint32_t place = 0;
    *list_out = (uint32_t)list;
    return list <= UINT32_MAX &&
           lahar_term_table_add_hashed(&builder->terms, hash, field, &key, &place) &&
           push_token(builder, 1) &&
           push_token(builder, lahar_term_at(&builder->terms, place)->number);
}

static bool add_token_lists(struct lahar_shard_builder *builder, uint32_t field,
                            const struct lahar_shard_entries *entries, uint32_t *lists_out)
{
    uint64_t hashes[STEP_COUNT];
    bool are_plain[STEP_COUNT];
    for (uint32_t start = 0; start < entries->count; start += STEP_COUNT) {
        const uint32_t left = entries->count - start;
        const uint32_t step = left < STEP_COUNT ? left : (uint32_t)STEP_COUNT;
        for (uint32_t i = 0; i < step; i++) {
            const lahar_bytes bytes = lahar_shard_entry(entries, start + i);
            const struct lahar_term_key key = {.data = bytes.data, .size = (uint16_t)bytes.size};
            are_plain[i] = is_plain_token(bytes);
            if (are_plain[i]) {
                hashes[i] = lahar_term_hash(field, &key);
                lahar_term_table_prefetch(&builder->terms, hashes[i]);
            }
        }
        for (uint32_t i = 0; i < step; i++) {
            const lahar_bytes bytes = lahar_shard_entry(entries, start + i);
            uint32_t *list = &lists_out[start + i];
            if (!(are_plain[i] ? add_plain_list(builder, field, hashes[i], bytes, list)
                               : add_token_list(builder, field, bytes.data, bytes.size, list))) {
                return false;
            }
        }
    }
    return true;
}

lahar_status lahar_shard_builder_value(struct lahar_shard_builder *builder, uint32_t field,
                                       const void *value, size_t size, uint32_t *value_out,
                                       lahar_error *error)
{
    *value_out = 0;
    LAHAR_ASSERT(field < builder->field_count);
    bool is_added = false;
    switch (builder->fields[field].field_class) {
    case LAHAR_CLASS_TEXT:
        is_added = add_token_list(builder, field, value, size, value_out);
        break;
    case LAHAR_CLASS_UUID: {
        LAHAR_ASSERT(size == sizeof(lahar_uuid));
        const struct lahar_term_key key = {.data = value, .size = sizeof(lahar_uuid)};
        is_added = lahar_builder_add_term(builder, field, &key, value_out);
        break;
    }
    case LAHAR_CLASS_KEYWORD:
    case LAHAR_CLASS_NUMBER:
        LAHAR_ASSERT(builder->fields[field].field_class == LAHAR_CLASS_KEYWORD);
        is_added = lahar_builder_keyword_term(builder, field, value, size, value_out);
        break;
    }
    return is_added ? LAHAR_OK : no_memory(builder, error);
}

lahar_status lahar_shard_builder_values(struct lahar_shard_builder *builder, uint32_t field,
                                        const struct lahar_shard_entries *entries,
                                        uint32_t *values_out, lahar_error *error)
{
    LAHAR_ASSERT(field < builder->field_count);
    if (builder->fields[field].field_class == LAHAR_CLASS_TEXT) {
        return add_token_lists(builder, field, entries, values_out) ? LAHAR_OK
                                                                    : no_memory(builder, error);
    }
    memset(values_out, 0xff, (size_t)entries->count * sizeof values_out[0]);
    if (!lahar_builder_find_terms(builder, field, entries, NULL, entries->count, values_out)) {
        return no_memory(builder, error);
    }
    for (uint32_t i = 0; i < entries->count; i++) {
        values_out[i] = lahar_term_at(&builder->terms, values_out[i])->number;
    }
    return LAHAR_OK;
}
