/* Searches through the terms of a field that no order helps: for a part of a term, or by a filter.
 *
 * Where bytes are known that a term must hold, a block of the dictionary is written out as a whole
 * and looked through for them; only the terms of blocks that have them somewhere are decoded one by
 * one. A dictionary larger than what is kept of a shard is read past the kept pages. */
#include <string.h>

#include "index/shard_reader.h"
#include "index/term_expand.h"
#include "io/base/error.h"

struct search {
    struct lahar_shard *shard;
    const struct lahar_term_search *asked;
    struct lahar_dictionary_cursor cursor; /* decodes terms one by one */
    struct lahar_dictionary_cursor tops;   /* tells where blocks lie */
    struct lahar_page_window window;
    struct lahar_page_view view;
    bool uses_window;
    struct lahar_expanded_terms terms;
};

static const struct lahar_directory_field *field_at(const struct lahar_shard *shard, uint32_t field)
{
    LAHAR_ASSERT(field < shard->directory.field_count);
    const struct lahar_directory_field *found = &shard->directory.fields[field];
    LAHAR_ASSERT(found->field_class == LAHAR_CLASS_KEYWORD ||
                 found->field_class == LAHAR_CLASS_TEXT);
    return found;
}

static bool may_hold(const struct lahar_dictionary_entry *entry, lahar_bytes needle)
{
    return needle.size == 0 ||
           (entry->flags & (LAHAR_TERM_FOLDED_CUT | LAHAR_TERM_EXACT_CUT)) != 0 ||
           memmem(entry->folded, entry->folded_size, needle.data, needle.size) != NULL ||
           memchr(entry->folded, LAHAR_SHARD_ESCAPE_TERM[0], entry->folded_size) != NULL;
}

/* Whether some term of the block has to be looked at. What is malformed is: decoding it tells. */
static lahar_status look_into(struct search *search, uint64_t block, bool *may_hold_out,
                              lahar_error *error)
{
    const struct lahar_dictionary *dictionary = &search->tops.dictionary;
    struct lahar_shard_pages *pages = &search->shard->pages;
    const uint64_t first_term = block * LAHAR_SHARD_BLOCK_TERMS;
    const uint64_t left = dictionary->term_count - first_term;
    const uint32_t count =
        left < LAHAR_SHARD_BLOCK_TERMS ? (uint32_t)left : (uint32_t)LAHAR_SHARD_BLOCK_TERMS;
    struct lahar_expanded_terms *terms = &search->terms;
    const uint8_t *data = NULL;
    uint64_t begin = 0;
    uint64_t end = 0;
    LAHAR_TRY(lahar_dictionary_block_range(&search->tops, block, &begin, &end, error));
    if (search->uses_window) {
        LAHAR_TRY(lahar_page_window_read(pages, &search->window, begin, end - begin,
                                         dictionary->end, &data, error));
    } else {
        lahar_page_view_close(pages, &search->view);
        LAHAR_TRY(lahar_page_view_open(pages, begin, end - begin, &search->view, error));
        data = search->view.data;
    }
    *may_hold_out = !lahar_terms_expand(terms, data, (size_t)(end - begin), count,
                                        search->asked->needle.size - 1) ||
                    terms->has_cut || lahar_terms_hold(terms, search->asked->needle) ||
                    memchr(terms->text, LAHAR_SHARD_ESCAPE_TERM[0], terms->size) != NULL;
    return LAHAR_OK;
}

/* Shows the terms of a block to the filter. */
static lahar_status filter_block(struct search *search, uint64_t block, struct lahar_docset *set,
                                 bool *exact_out, lahar_error *error)
{
    const struct lahar_term_search *asked = search->asked;
    struct lahar_dictionary_cursor *cursor = &search->cursor;
    lahar_dictionary_go(cursor, block);
    for (uint32_t i = 0; i < LAHAR_SHARD_BLOCK_TERMS; i++) {
        const lahar_status status = lahar_dictionary_next(cursor, error);
        if (status == LAHAR_NOT_FOUND) {
            return LAHAR_OK;
        }
        LAHAR_TRY(status);
        const bool is_cut = (cursor->entry.flags & LAHAR_TERM_EXACT_CUT) != 0;
        if (!may_hold(&cursor->entry, asked->needle) ||
            !asked->accept(asked->context, cursor->entry.exact, cursor->entry.exact_size, is_cut)) {
            continue;
        }
        LAHAR_TRY(lahar_list_read(&search->shard->lists, cursor->entry.reference, set, error));
        if (is_cut) {
            *exact_out = false;
        }
    }
    return LAHAR_OK;
}

/* A dictionary that is kept is read where it is kept. */
static lahar_status choose_reader(struct search *search, lahar_error *error)
{
    uint64_t begin = 0;
    uint64_t end = 0;
    if (search->asked->needle.size == 0 || search->asked->first_block >= search->asked->end_block) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_dictionary_block_range(&search->tops, 0, &begin, &end, error));
    const uint64_t behind = search->tops.dictionary.end;
    search->uses_window =
        behind > begin && !lahar_shard_pages_keep(&search->shard->pages, behind - begin);
    return LAHAR_OK;
}

lahar_status lahar_shard_search_terms(struct lahar_shard *shard, uint32_t field,
                                      const struct lahar_term_search *asked,
                                      struct lahar_docset *set, bool *exact_out, lahar_error *error)
{
    const struct lahar_dictionary *dictionary = &field_at(shard, field)->dictionary;
    struct search *search = lahar_allocate_zeroed(shard->allocator, 1, sizeof *search);
    if (search == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to search an index shard");
    }
    search->shard = shard;
    search->asked = asked;
    lahar_dictionary_begin(&search->cursor, &shard->pages, dictionary);
    lahar_dictionary_begin(&search->tops, &shard->pages, dictionary);
    lahar_status status = choose_reader(search, error);
    for (uint64_t block = asked->first_block; block < asked->end_block && status == LAHAR_OK;
         block++) {
        bool is_candidate = true;
        if (asked->needle.size != 0) {
            status = look_into(search, block, &is_candidate, error);
        }
        if (status == LAHAR_OK && is_candidate) {
            status = filter_block(search, block, set, exact_out, error);
        }
    }
    lahar_dictionary_close(&search->cursor);
    lahar_dictionary_close(&search->tops);
    lahar_page_view_close(&shard->pages, &search->view);
    lahar_page_window_close(&shard->pages, &search->window);
    lahar_release(shard->allocator, search);
    return status;
}

lahar_status lahar_shard_terms(struct lahar_shard *shard, uint32_t field, lahar_term_filter accept,
                               void *context, struct lahar_docset *set, bool *exact_out,
                               lahar_error *error)
{
    const struct lahar_term_search search = {.end_block =
                                                 lahar_shard_term_block_count(shard, field),
                                             .accept = accept,
                                             .context = context};
    return lahar_shard_search_terms(shard, field, &search, set, exact_out, error);
}

uint64_t lahar_shard_term_block_count(const struct lahar_shard *shard, uint32_t field)
{
    return lahar_dictionary_block_count(&field_at(shard, field)->dictionary);
}

/* The least bytes that are greater than all that begin with these; 0: there are none. */
static size_t successor(const uint8_t *prefix, size_t size, uint8_t *out)
{
    memcpy(out, prefix, size);
    while (size > 0 && out[size - 1] == 0xff) {
        size--;
    }
    if (size > 0) {
        out[size - 1]++;
    }
    return size;
}

static lahar_status find_prefix(struct lahar_dictionary_cursor *cursor, const uint8_t *prefix,
                                size_t size, uint64_t *first_out, uint64_t *end_out,
                                lahar_error *error)
{
    const size_t common = (size_t)cursor->dictionary.common;
    const uint64_t count = lahar_dictionary_block_count(&cursor->dictionary);
    LAHAR_TRY(lahar_dictionary_next(cursor, error));
    const size_t compared = size < common ? size : common;
    if (cursor->entry.folded_size < compared ||
        memcmp(cursor->entry.folded, prefix, compared) != 0) {
        return LAHAR_OK;
    }
    *end_out = count;
    if (size <= common) {
        return LAHAR_OK;
    }
    uint8_t beyond[LAHAR_SHARD_TERM_SIZE_MAX];
    LAHAR_TRY(lahar_dictionary_seek(cursor, prefix, size, error));
    *first_out = cursor->next_term / LAHAR_SHARD_BLOCK_TERMS;
    const size_t beyond_size = successor(prefix, size, beyond);
    if (beyond_size > common) {
        LAHAR_TRY(lahar_dictionary_seek(cursor, beyond, beyond_size, error));
        *end_out = cursor->next_term / LAHAR_SHARD_BLOCK_TERMS + 1;
    }
    *end_out = *end_out < count ? *end_out : count;
    return LAHAR_OK;
}

lahar_status lahar_shard_prefix_blocks(struct lahar_shard *shard, uint32_t field,
                                       lahar_bytes prefix, uint64_t *first_out, uint64_t *end_out,
                                       lahar_error *error)
{
    const struct lahar_dictionary *dictionary = &field_at(shard, field)->dictionary;
    struct lahar_dictionary_cursor cursor;
    *first_out = 0;
    *end_out = 0;
    if (dictionary->term_count == 0 || prefix.size == 0) {
        *end_out = lahar_dictionary_block_count(dictionary);
        return LAHAR_OK;
    }
    const size_t size =
        prefix.size < LAHAR_SHARD_TERM_SIZE_MAX ? prefix.size : (size_t)LAHAR_SHARD_TERM_SIZE_MAX;
    lahar_dictionary_begin(&cursor, &shard->pages, dictionary);
    const lahar_status status = find_prefix(&cursor, prefix.data, size, first_out, end_out, error);
    lahar_dictionary_close(&cursor);
    return status;
}
