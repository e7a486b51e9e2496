/* Index shards: an immutable inverted index over up to 2^28 documents of one
 * stream. Bytes in, bytes out: shards are built into a buffer and read through
 * a function that fetches ranges. Layout: docs/format/shard.md.
 *
 * Fields are named by strings inside a shard. An attribute is the field
 * "attr.<key>", a previous one "prev.<key>". */
#ifndef LAHAR_INDEX_SHARD_H
#define LAHAR_INDEX_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "index/docset.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

enum {
    LAHAR_SHARD_DOCUMENTS_MAX = 1 << 28
};

/* Bytes inside an escape sequence belong to no token. A text that holds one has this term
 * besides its tokens, so that a search for a substring knows where tokens do not tell all. */
#define LAHAR_SHARD_ESCAPE_TERM "\x1b"

/* How a field is indexed. Stored: values are pinned. */
enum lahar_field_class {
    LAHAR_CLASS_KEYWORD = 1, /* whole values: folded form is the key, exact form kept */
    LAHAR_CLASS_TEXT = 2,    /* folded tokens */
    LAHAR_CLASS_UUID = 3,
    LAHAR_CLASS_NUMBER = 4 /* 64-bit integers, floats, times, booleans: one column */
};

/* Order-preserving mapping of numbers to u64, so that one column type serves all. */
uint64_t lahar_number_from_i64(int64_t v);
uint64_t lahar_number_from_u64(uint64_t v);
uint64_t lahar_number_from_f64(double v); /* -0.0 as 0.0; NaN above everything */

/* --- building ---------------------------------------------------------------- */

struct lahar_shard_builder;

lahar_status lahar_shard_builder_create(const lahar_allocator *allocator,
                                        struct lahar_shard_builder **builder_out,
                                        lahar_error *error);
void lahar_shard_builder_destroy(struct lahar_shard_builder *builder);

/* The number of a field in this shard, added on first use. The same name may
 * be used with several classes (an attribute that is once text and once a number). */
lahar_status lahar_shard_builder_field(struct lahar_shard_builder *builder, const void *name,
                                       size_t name_size, enum lahar_field_class field_class,
                                       uint32_t *field_out, lahar_error *error);

/* Begins the next document; ordinals count from 0, ids rise. */
lahar_status lahar_shard_builder_document(struct lahar_shard_builder *builder, uint64_t id,
                                          int64_t time_ns, lahar_error *error);

/* Add to the current document; the same term twice counts once. Values of any
 * length are found: beyond 255 bytes a term is cut and marked, and lookups
 * report inexact matches (see lahar_shard_match). */
lahar_status lahar_shard_builder_keyword(struct lahar_shard_builder *builder, uint32_t field,
                                         const void *value, size_t size, lahar_error *error);
lahar_status lahar_shard_builder_text(struct lahar_shard_builder *builder, uint32_t field,
                                      const void *text, size_t size, lahar_error *error);
lahar_status lahar_shard_builder_uuid(struct lahar_shard_builder *builder, uint32_t field,
                                      const lahar_uuid *uuid, lahar_error *error);
lahar_status lahar_shard_builder_number(struct lahar_shard_builder *builder, uint32_t field,
                                        uint64_t number, lahar_error *error);
/* The field has a value (even an empty one) in the current document. Implied by
 * the calls above and those below. */
lahar_status lahar_shard_builder_present(struct lahar_shard_builder *builder, uint32_t field,
                                         lahar_error *error);

/* For callers that meet the same value many times, as in a dictionary of a block: looks a
 * keyword, a text or a uuid (its 16 bytes) up once ... */
lahar_status lahar_shard_builder_value(struct lahar_shard_builder *builder, uint32_t field,
                                       const void *value, size_t size, uint32_t *value_out,
                                       lahar_error *error);
/* ... and adds it to the current document by the number that was given, which holds until the
 * shard is finished. */
lahar_status lahar_shard_builder_post(struct lahar_shard_builder *builder, uint32_t field,
                                      uint32_t value, lahar_error *error);

/* Entries of a column. */
struct lahar_shard_entries {
    const uint8_t *data;
    const uint32_t *ends; /* of each entry's bytes in data; NULL: 16 bytes each */
    uint32_t count;
};
/* Looks all of them up; values_out has room for a number each. */
lahar_status lahar_shard_builder_values(struct lahar_shard_builder *builder, uint32_t field,
                                        const struct lahar_shard_entries *entries,
                                        uint32_t *values_out, lahar_error *error);

/* A column of a block of events: slots, each of which gives one of the values (by its code) to a
 * document (by its row in the block). */
struct lahar_shard_column {
    uint32_t first_document; /* of the block; all of its documents have been added */
    uint32_t slot_count;
    const uint32_t *rows;
    const uint32_t *codes;
};
#define LAHAR_SHARD_NO_VALUE UINT32_MAX
/* What posting each slot's value by itself does. values: by code, numbers from value above or
 * LAHAR_SHARD_NO_VALUE, whose slots are passed over; the documents have the field then, unless
 * is_presence_known says that they are noted already. Documents may come in any order; rising
 * rows are fastest. */
lahar_status lahar_shard_builder_post_column(struct lahar_shard_builder *builder, uint32_t field,
                                             const struct lahar_shard_column *column,
                                             const uint32_t *values, bool is_presence_known,
                                             lahar_error *error);
/* For a NUMBER field, with rising rows: numbers by code. */
lahar_status lahar_shard_builder_number_column(struct lahar_shard_builder *builder, uint32_t field,
                                               const struct lahar_shard_column *column,
                                               const uint64_t *numbers, lahar_error *error);
/* The documents of the column's rows have the field. */
lahar_status lahar_shard_builder_present_column(struct lahar_shard_builder *builder, uint32_t field,
                                                const struct lahar_shard_column *column,
                                                lahar_error *error);
/* Documents with these ids and times, as many single calls would begin them. */
lahar_status lahar_shard_builder_documents(struct lahar_shard_builder *builder, const uint64_t *ids,
                                           const int64_t *times_ns, uint32_t count,
                                           lahar_error *error);

/* Events of the same object (a FlowFile) share most of their values. A field of uuids can be made
 * the one that tells objects apart: then a value of which it is known that it is the object's is
 * added once an object instead of once an event. The shard that comes out is the same.
 *
 * Adds a block's column of that field, which has a slot for each of the block's documents, in
 * order; values: by code, all distinct. *is_taken_out: false when the column is not of use for
 * that, and was not added. One field a shard. */
lahar_status lahar_shard_builder_objects(struct lahar_shard_builder *builder, uint32_t field,
                                         const struct lahar_shard_column *column,
                                         const uint32_t *values, uint32_t value_count,
                                         bool *is_taken_out, lahar_error *error);
/* Adds a column of the block that lahar_shard_builder_objects has taken last, in which each
 * document has one value, equal in all documents of an object. codes: by row. */
lahar_status lahar_shard_builder_object_column(struct lahar_shard_builder *builder, uint32_t field,
                                               const struct lahar_shard_entries *entries,
                                               const uint32_t *codes, lahar_error *error);

/* Documents added so far. */
uint32_t lahar_shard_builder_document_count(const struct lahar_shard_builder *builder);

/* Appends the finished shard to out and empties the builder, which forgets its fields and values
 * and keeps its memory, for the next. After a failure of any call above the shard
 * is lost: finish reports LAHAR_NO_MEMORY and empties the builder too. */
lahar_status lahar_shard_builder_finish(struct lahar_shard_builder *builder,
                                        struct lahar_buffer *out, lahar_error *error);

/* --- reading ------------------------------------------------------------------ */

struct lahar_shard_cache;

struct lahar_shard_source {
    /* Fetches size bytes at offset of the shard into data. Any thread. */
    lahar_status (*fetch)(void *context, uint64_t offset, void *data, size_t size,
                          lahar_error *error);
    /* Says that bytes are going to be fetched; waits for nothing. NULL: it would be no use. */
    void (*announce)(void *context, uint64_t offset, uint64_t size);
    void *context;
    uint64_t size; /* bytes of the whole shard */
    /* The whole shard, for as long as it is open, if it is in memory and can be trusted: it is then
     * used in place, nothing is fetched or checked. Else NULL. */
    const uint8_t *memory;
    /* Where pages are kept between look-ups (shard_cache.h); NULL: 1 MiB of the shard's own. */
    struct lahar_shard_cache *cache;
};

struct lahar_shard; /* open shard; immutable; thread-safe */

lahar_status lahar_shard_open(const struct lahar_shard_source *source,
                              const lahar_allocator *allocator, struct lahar_shard **shard_out,
                              lahar_error *error);
void lahar_shard_close(struct lahar_shard *shard); /* NULL is allowed */

/* Bytes of memory that the open shard holds now. */
uint64_t lahar_shard_memory(struct lahar_shard *shard);

uint32_t lahar_shard_document_count(const struct lahar_shard *shard);
/* The event id of an ordinal, and the first ordinal whose id is >= id. */
uint64_t lahar_shard_id(const struct lahar_shard *shard, uint32_t ordinal);
uint32_t lahar_shard_ordinal(const struct lahar_shard *shard, uint64_t id);
/* Of all events; INT64_MAX and INT64_MIN when there is none. */
void lahar_shard_time_range(const struct lahar_shard *shard, int64_t *min_ns, int64_t *max_ns);
/* Whether an event can lie in [from_ns, to_ns): sharper than the range where a few clocks were
 * wrong, since these are set apart. */
bool lahar_shard_may_hold_time(const struct lahar_shard *shard, int64_t from_ns, int64_t to_ns);
uint32_t lahar_shard_field_count(const struct lahar_shard *shard);
/* Name and class of a field; the name lives as long as the shard. */
lahar_bytes lahar_shard_field(const struct lahar_shard *shard, uint32_t field,
                              enum lahar_field_class *class_out);
/* False when the shard has no such field. */
bool lahar_shard_find_field(const struct lahar_shard *shard, const void *name, size_t name_size,
                            enum lahar_field_class field_class, uint32_t *field_out);

/* All lookups OR their documents into set. *exact_out is cleared (never set) when a
 * document in the set might not match (long terms were cut), so that the caller
 * verifies on the event. LAHAR_CORRUPT when a section fails its checksum. */
lahar_status lahar_shard_keyword(struct lahar_shard *shard, uint32_t field, const void *value,
                                 size_t size, bool ignore_case, struct lahar_docset *set,
                                 bool *exact_out, lahar_error *error);
/* token: folded. */
lahar_status lahar_shard_token(struct lahar_shard *shard, uint32_t field, const void *token,
                               size_t size, struct lahar_docset *set, bool *exact_out,
                               lahar_error *error);
/* *may_out false: no field of the shard holds the uuid. It stays true for few uuids that are not
 * there, in shards of more than a few uuids, and costs a page at most. */
lahar_status lahar_shard_may_hold_uuid(struct lahar_shard *shard, const lahar_uuid *uuid,
                                       bool *may_out, lahar_error *error);
/* Says that may_hold is going to be asked, or the uuid to be looked for in a field: what that
 * reads first is then on its way, for many shards or fields at once. Hints. */
void lahar_shard_announce_may_hold(struct lahar_shard *shard, const lahar_uuid *uuid);
void lahar_shard_announce_uuid(struct lahar_shard *shard, uint32_t field, const lahar_uuid *uuid);
lahar_status lahar_shard_uuid(struct lahar_shard *shard, uint32_t field, const lahar_uuid *uuid,
                              struct lahar_docset *set, lahar_error *error);
/* Uuids from low to high, both inclusive, in the order of their bytes. */
lahar_status lahar_shard_uuids(struct lahar_shard *shard, uint32_t field, const lahar_uuid *low,
                               const lahar_uuid *high, struct lahar_docset *set,
                               lahar_error *error);
/* Numbers in [low, high], both inclusive. */
lahar_status lahar_shard_number(struct lahar_shard *shard, uint32_t field, uint64_t low,
                                uint64_t high, struct lahar_docset *set, lahar_error *error);
/* Event times in [from_ns, to_ns). */
lahar_status lahar_shard_time(struct lahar_shard *shard, int64_t from_ns, int64_t to_ns,
                              struct lahar_docset *set, lahar_error *error);
lahar_status lahar_shard_present(struct lahar_shard *shard, uint32_t field,
                                 struct lahar_docset *set, lahar_error *error);

/* Visits the distinct terms of a KEYWORD (exact form) or TEXT (folded token) field; ORs the
 * documents of those for which accept returns true. is_cut: the term stands for longer values that
 * begin with it: accept must then return true if any such value could match. */
typedef bool (*lahar_term_filter)(void *context, const uint8_t *term, size_t size, bool is_cut);
lahar_status lahar_shard_terms(struct lahar_shard *shard, uint32_t field, lahar_term_filter accept,
                               void *context, struct lahar_docset *set, bool *exact_out,
                               lahar_error *error);

/* The same for some blocks of the dictionary, in which terms stand in the order of their folded
 * forms, so that several threads can take a part each; and, unless needle is empty, for those terms
 * alone whose folded form holds its bytes, or an escape character, or is not known to its end. */
struct lahar_term_search {
    uint64_t first_block;
    uint64_t end_block; /* exclusive */
    lahar_bytes needle;
    lahar_term_filter accept;
    void *context;
};
lahar_status lahar_shard_search_terms(struct lahar_shard *shard, uint32_t field,
                                      const struct lahar_term_search *search,
                                      struct lahar_docset *set, bool *exact_out,
                                      lahar_error *error);
uint64_t lahar_shard_term_block_count(const struct lahar_shard *shard, uint32_t field);
/* The blocks in which the terms lie whose folded form begins with prefix. */
lahar_status lahar_shard_prefix_blocks(struct lahar_shard *shard, uint32_t field,
                                       lahar_bytes prefix, uint64_t *first_out, uint64_t *end_out,
                                       lahar_error *error);

/* Visits the distinct terms of a KEYWORD field, exact form, with the number of their documents that
 * are in within (NULL: of all). Terms of none are left out. is_cut: as above. */
typedef lahar_status (*lahar_term_count_visit)(void *context, const uint8_t *term, size_t size,
                                               bool is_cut, uint64_t count, lahar_error *error);
lahar_status lahar_shard_term_counts(struct lahar_shard *shard, uint32_t field,
                                     const struct lahar_docset *within,
                                     lahar_term_count_visit visit, void *context,
                                     lahar_error *error);
/* The same of the uuids of a UUID field, in the order of their bytes, and of the numbers of a
 * NUMBER field, of which one may come several times. within: not NULL for numbers. */
typedef lahar_status (*lahar_uuid_count_visit)(void *context, const lahar_uuid *uuid,
                                               uint64_t count, lahar_error *error);
lahar_status lahar_shard_uuid_counts(struct lahar_shard *shard, uint32_t field,
                                     const struct lahar_docset *within,
                                     lahar_uuid_count_visit visit, void *context,
                                     lahar_error *error);
lahar_status lahar_shard_number_counts(struct lahar_shard *shard, uint32_t field,
                                       const struct lahar_docset *within,
                                       lahar_status (*visit)(void *context, uint64_t number,
                                                             uint64_t count, lahar_error *error),
                                       void *context, lahar_error *error);
/* Visits the event times of the documents in within, as lahar_number_from_i64 maps them, in no
 * order. LAHAR_UNSUPPORTED when the shard holds them in a form that cannot be visited. */
lahar_status lahar_shard_times(struct lahar_shard *shard, const struct lahar_docset *within,
                               void (*visit)(void *context, uint32_t document, uint64_t value),
                               void *context, lahar_error *error);

/* How many documents lahar_shard_keyword finds, without decoding their lists. *exact_out is cleared
 * when there may be fewer that match. */
lahar_status lahar_shard_keyword_count(struct lahar_shard *shard, uint32_t field, const void *value,
                                       size_t size, bool ignore_case, uint64_t *count_out,
                                       bool *exact_out, lahar_error *error);

/* How many documents hold the term, without decoding its postings. A term that was cut counts
 * all that begin with it. */
lahar_status lahar_shard_token_count(struct lahar_shard *shard, uint32_t field, const void *token,
                                     size_t size, uint64_t *count_out, lahar_error *error);

/* Reads and checks every section. */
lahar_status lahar_shard_verify(struct lahar_shard *shard, lahar_error *error);

#endif
