/* Decoding of dictionary blocks. Bytes come from disk: every size is checked before it is used, and
 * a walk ends after as many terms as the field has. */
#include "index/dictionary.h"

#include <string.h>

#include "index/dictionary_entry.h"
#include "io/base/error.h"

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a dictionary block of an index shard is malformed");
}

uint64_t lahar_dictionary_block_count(const struct lahar_dictionary *dictionary)
{
    return (dictionary->term_count + LAHAR_SHARD_BLOCK_TERMS - 1) / LAHAR_SHARD_BLOCK_TERMS;
}

void lahar_dictionary_begin(struct lahar_dictionary_cursor *cursor, struct lahar_shard_pages *pages,
                            const struct lahar_dictionary *dictionary)
{
    cursor->pages = pages;
    cursor->dictionary = *dictionary;
    cursor->next_term = 0;
    cursor->block_end = 0;
    cursor->shared = 0;
    cursor->view = (struct lahar_page_view){.data = NULL};
    cursor->view_size = 0;
    cursor->top_view = (struct lahar_page_view){.data = NULL};
    cursor->top_begin = 0;
    cursor->top_end = 0;
    cursor->entry.folded_size = 0;
}

void lahar_dictionary_close(struct lahar_dictionary_cursor *cursor)
{
    lahar_page_view_close(cursor->pages, &cursor->view);
    lahar_page_view_close(cursor->pages, &cursor->top_view);
}

/* A top entry: the prefix and the offset of its block. Neighbours are mostly in the page in view.
 */
static lahar_status read_top(struct lahar_dictionary_cursor *cursor, uint64_t block,
                             uint64_t *prefix_out, uint64_t *offset_out, lahar_error *error)
{
    enum {
        ENTRIES_A_PAGE = LAHAR_SHARD_PAGE_SIZE / LAHAR_SHARD_TOP_ENTRY_SIZE
    };
    if (block < cursor->top_begin || block >= cursor->top_end) {
        lahar_page_view_close(cursor->pages, &cursor->top_view);
        cursor->top_end = 0;
        const uint64_t first = cursor->dictionary.top / LAHAR_SHARD_TOP_ENTRY_SIZE;
        const uint64_t page = (first + block) / ENTRIES_A_PAGE * ENTRIES_A_PAGE;
        const uint64_t begin = page > first ? page - first : 0;
        const uint64_t count = lahar_dictionary_block_count(&cursor->dictionary);
        const uint64_t page_end = page + ENTRIES_A_PAGE - first;
        const uint64_t end = page_end < count ? page_end : count;
        LAHAR_TRY(lahar_page_view_open(
            cursor->pages, cursor->dictionary.top + begin * LAHAR_SHARD_TOP_ENTRY_SIZE,
            (end - begin) * LAHAR_SHARD_TOP_ENTRY_SIZE, &cursor->top_view, error));
        cursor->top_begin = begin;
        cursor->top_end = end;
    }
    const uint8_t *entry =
        cursor->top_view.data + (block - cursor->top_begin) * LAHAR_SHARD_TOP_ENTRY_SIZE;
    *prefix_out = lahar_load_u64(entry);
    *offset_out = lahar_load_u64(entry + 8);
    return LAHAR_OK;
}

/* Back to before the first term of the block in view, whose number is given. */
static void rewind_block(struct lahar_dictionary_cursor *cursor, uint64_t block)
{
    cursor->reader = lahar_reader_of(cursor->view.data, (size_t)cursor->view_size);
    cursor->next_term = block * LAHAR_SHARD_BLOCK_TERMS;
    cursor->block_end = cursor->next_term + LAHAR_SHARD_BLOCK_TERMS;
    cursor->shared = 0;
    cursor->entry.folded_size = 0;
}

lahar_status lahar_dictionary_block_range(struct lahar_dictionary_cursor *cursor, uint64_t block,
                                          uint64_t *begin_out, uint64_t *end_out,
                                          lahar_error *error)
{
    uint64_t prefix = 0;
    /* 64 entries of a folded form, an exact form, and at most 32 bytes of the rest. */
    const uint64_t size_max =
        (uint64_t)LAHAR_SHARD_BLOCK_TERMS * (2 * LAHAR_SHARD_TERM_SIZE_MAX + 32);
    *end_out = cursor->dictionary.end;
    if (block + 1 < lahar_dictionary_block_count(&cursor->dictionary)) {
        LAHAR_TRY(read_top(cursor, block + 1, &prefix, end_out, error));
    }
    LAHAR_TRY(read_top(cursor, block, &prefix, begin_out, error));
    return *begin_out > *end_out || *end_out - *begin_out > size_max ? corrupt(error) : LAHAR_OK;
}

static lahar_status open_block(struct lahar_dictionary_cursor *cursor, uint64_t block,
                               lahar_error *error)
{
    uint64_t begin = 0;
    uint64_t end = 0;
    lahar_page_view_close(cursor->pages, &cursor->view);
    LAHAR_TRY(lahar_dictionary_block_range(cursor, block, &begin, &end, error));
    LAHAR_TRY(lahar_page_view_open(cursor->pages, begin, end - begin, &cursor->view, error));
    cursor->view_size = end - begin;
    rewind_block(cursor, block);
    return LAHAR_OK;
}

void lahar_dictionary_go(struct lahar_dictionary_cursor *cursor, uint64_t block)
{
    cursor->next_term = block * LAHAR_SHARD_BLOCK_TERMS;
    cursor->block_end = cursor->next_term;
}

static void unpack_hex(const uint8_t *packed, size_t size, uint8_t *digits)
{
    static const uint8_t alphabet[16] = "0123456789abcdef";
    for (size_t i = 0; i < size; i += 2) {
        /* Writes one digit too many of an odd size: the buffer has slack. */
        digits[i] = alphabet[packed[i / 2] & 15];
        digits[i + 1] = alphabet[packed[i / 2] >> 4];
    }
}

/* The folded form of an entry as it is stored. */
struct stored_form {
    const uint8_t *suffix; /* size bytes, or as many digits, two a byte */
    size_t shared;
    size_t size;
    bool is_hex;
};

/* Header, shared size and suffix of the next entry. */
static bool read_form(struct lahar_dictionary_cursor *cursor, struct stored_form *form_out)
{
    struct lahar_reader *reader = &cursor->reader;
    struct lahar_dictionary_entry *entry = &cursor->entry;
    const unsigned header = lahar_read_u8(reader);
    const unsigned shared_code = header >> LAHAR_ENTRY_SUFFIX_BITS;
    const unsigned size_code = header & LAHAR_ENTRY_SUFFIX_MASK;
    size_t shared = cursor->shared + shared_code - LAHAR_ENTRY_SHARED_BIAS;
    if (shared_code == LAHAR_ENTRY_SHARED_EXPLICIT) {
        shared = lahar_read_u8(reader);
    }
    size_t size = size_code;
    bool is_hex = false;
    if (size_code == LAHAR_ENTRY_SUFFIX_EXPLICIT) {
        const uint64_t v = lahar_read_varint(reader);
        is_hex = (v & 1) != 0;
        size = (size_t)(v >> 1);
    } else if (size_code > LAHAR_ENTRY_PLAIN_MAX) {
        is_hex = true;
        size = size_code - LAHAR_ENTRY_PLAIN_MAX;
    }
    if (shared > entry->folded_size || size > LAHAR_SHARD_TERM_SIZE_MAX ||
        shared + size > LAHAR_SHARD_TERM_SIZE_MAX) {
        return false;
    }
    form_out->suffix = lahar_read_bytes(reader, is_hex ? (size + 1) / 2 : size);
    form_out->shared = shared;
    form_out->size = size;
    form_out->is_hex = is_hex;
    cursor->shared = shared;
    entry->folded_size = shared + size;
    return form_out->suffix != NULL;
}

/* Puts the suffix behind the bytes that are shared with the entry before. */
static void write_form(struct lahar_dictionary_cursor *cursor, const struct stored_form *form)
{
    uint8_t *to = cursor->entry.folded + form->shared;
    if (form->is_hex) {
        unpack_hex(form->suffix, form->size, to);
    } else if (form->size <= 16 && lahar_reader_left(&cursor->reader) + form->size >= 16) {
        memcpy(to, form->suffix, 16);
    } else {
        memcpy(to, form->suffix, form->size);
    }
}

/* The exact form that follows in the way that flags say. */
static bool read_exact(struct lahar_reader *reader, struct lahar_dictionary_entry *entry)
{
    if ((entry->flags & LAHAR_TERM_EXACT_CASE) != 0) {
        const uint8_t *bits = lahar_read_bytes(reader, (entry->folded_size + 7) / 8);
        if (bits == NULL) {
            return false;
        }
        memcpy(entry->exact_bytes, entry->folded, entry->folded_size);
        for (size_t i = 0; i < entry->folded_size; i += 8) {
            /* Bits beyond the end touch bytes of the array that are not part of the form. */
            for (unsigned byte = bits[i / 8]; byte != 0; byte &= byte - 1) {
                entry->exact_bytes[i + (size_t)__builtin_ctz(byte)] &= 0xdf;
            }
        }
        entry->exact = entry->exact_bytes;
    } else if ((entry->flags & LAHAR_TERM_EXACT_FULL) != 0) {
        entry->exact_size = lahar_read_u8(reader);
        const uint8_t *bytes = lahar_read_bytes(reader, entry->exact_size);
        if (bytes == NULL) {
            return false;
        }
        memcpy(entry->exact_bytes, bytes, entry->exact_size);
        entry->exact = entry->exact_bytes;
    }
    return true;
}

/* Flags, exact form and reference, behind the folded form. */
static bool read_rest(struct lahar_dictionary_cursor *cursor)
{
    struct lahar_dictionary_entry *entry = &cursor->entry;
    struct lahar_reader *reader = &cursor->reader;
    entry->flags = 0;
    entry->exact = entry->folded;
    entry->exact_size = entry->folded_size;
    uint64_t reference = lahar_read_varint(reader);
    if ((reference & 3) == 3 && reference >> 2 >= LAHAR_SPECIAL_FLAGGED) {
        const uint64_t flags = (reference >> 2) - LAHAR_SPECIAL_FLAGGED;
        if (flags == 0 || flags > 15) {
            return false;
        }
        entry->flags = (uint8_t)flags;
        if (!read_exact(reader, entry)) {
            return false;
        }
        reference = lahar_read_varint(reader);
    }
    entry->reference = reference;
    return !reader->failed;
}

/* Brings the block of the next entry into view; LAHAR_NOT_FOUND at the end. */
static lahar_status reach_next(struct lahar_dictionary_cursor *cursor, lahar_error *error)
{
    if (cursor->next_term == cursor->dictionary.term_count) {
        return LAHAR_NOT_FOUND;
    }
    return cursor->next_term == cursor->block_end
               ? open_block(cursor, cursor->next_term / LAHAR_SHARD_BLOCK_TERMS, error)
               : LAHAR_OK;
}

lahar_status lahar_dictionary_next(struct lahar_dictionary_cursor *cursor, lahar_error *error)
{
    struct stored_form form;
    LAHAR_TRY(reach_next(cursor, error));
    if (!read_form(cursor, &form)) {
        return corrupt(error);
    }
    write_form(cursor, &form);
    if (!read_rest(cursor)) {
        return corrupt(error);
    }
    cursor->next_term++;
    return LAHAR_OK;
}

/* Order of a block's first term and the one sought: by the top alone where that decides, else by
 * reading the block. */
static lahar_status compare_head(struct lahar_dictionary_cursor *cursor, uint64_t block,
                                 const uint8_t *folded, size_t size, int *order_out,
                                 lahar_error *error)
{
    uint64_t prefix = 0;
    uint64_t offset = 0;
    LAHAR_TRY(read_top(cursor, block, &prefix, &offset, error));
    const uint64_t wanted =
        lahar_dictionary_prefix(folded, size, (size_t)cursor->dictionary.common);
    if (prefix != wanted) {
        *order_out = prefix < wanted ? -1 : 1;
        return LAHAR_OK;
    }
    LAHAR_TRY(open_block(cursor, block, error));
    LAHAR_TRY(lahar_dictionary_next(cursor, error));
    const size_t limit = cursor->entry.folded_size < size ? cursor->entry.folded_size : size;
    *order_out = limit == 0 ? 0 : memcmp(cursor->entry.folded, folded, limit);
    if (*order_out == 0) {
        *order_out = (cursor->entry.folded_size > size) - (cursor->entry.folded_size < size);
    }
    return LAHAR_OK;
}

lahar_status lahar_dictionary_seek(struct lahar_dictionary_cursor *cursor, const uint8_t *folded,
                                   size_t size, lahar_error *error)
{
    const size_t common = (size_t)cursor->dictionary.common;
    uint64_t high = lahar_dictionary_block_count(&cursor->dictionary);
    if (high == 0) {
        return LAHAR_OK;
    }
    if (size < common) {
        cursor->next_term = cursor->dictionary.term_count;
        return LAHAR_OK;
    }
    /* The last block whose first term is less than the one sought: the term may begin at its
     * end, spelled in several ways. */
    uint64_t low = 0;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        int order = 0;
        LAHAR_TRY(compare_head(cursor, middle, folded, size, &order, error));
        if (order < 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    /* The top compares what lies behind the common bytes; those are compared here, once. */
    LAHAR_TRY(open_block(cursor, low, error));
    LAHAR_TRY(lahar_dictionary_next(cursor, error));
    if (cursor->entry.folded_size < common) {
        return corrupt(error);
    }
    if (common != 0 && memcmp(cursor->entry.folded, folded, common) != 0) {
        cursor->next_term = cursor->dictionary.term_count;
        return LAHAR_OK;
    }
    rewind_block(cursor, low);
    return LAHAR_OK;
}

/* Order of the entry's folded form and the one sought, which agree up to *matched; sets that to how
 * far they do agree. */
static int compare_from(const struct lahar_dictionary_entry *entry, const uint8_t *folded,
                        size_t size, size_t *matched)
{
    const size_t limit = entry->folded_size < size ? entry->folded_size : size;
    size_t at = *matched;
    while (at < limit && entry->folded[at] == folded[at]) {
        at++;
    }
    *matched = at;
    if (at < limit) {
        return entry->folded[at] < folded[at] ? -1 : 1;
    }
    return (entry->folded_size > size) - (entry->folded_size < size);
}

lahar_status lahar_dictionary_reach(struct lahar_dictionary_cursor *cursor, const uint8_t *folded,
                                    size_t size, int *order_out, lahar_error *error)
{
    /* Leading bytes of the one sought that the last entry, which is less, begins with. An entry
     * that shares more than these with its predecessor is less for the same byte, and none of its
     * own bytes are needed: a later entry shares at most these, or is passed over as well. */
    size_t matched = 0;
    int order = -1;
    LAHAR_TRY(lahar_dictionary_seek(cursor, folded, size, error));
    while (order < 0) {
        struct stored_form form;
        LAHAR_TRY(reach_next(cursor, error));
        if (!read_form(cursor, &form)) {
            return corrupt(error);
        }
        if (form.shared <= matched) {
            write_form(cursor, &form);
            matched = form.shared;
            order = compare_from(&cursor->entry, folded, size, &matched);
        }
        if (!read_rest(cursor)) {
            return corrupt(error);
        }
        cursor->next_term++;
    }
    *order_out = order;
    return LAHAR_OK;
}
