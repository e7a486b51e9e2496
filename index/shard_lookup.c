/* Look-ups: a field's structure is searched and the documents found are ORed into the
 * caller's set. Each call keeps its state on its stack; any number of threads. */
#include <stdlib.h>
#include <string.h>

#include "index/shard_builder.h"
#include "index/shard_format.h"
#include "index/shard_reader.h"
#include "io/base/error.h"

static const struct lahar_directory_field *field_at(const struct lahar_shard *shard, uint32_t field,
                                                    enum lahar_field_class field_class)
{
    LAHAR_ASSERT(field < shard->directory.field_count);
    LAHAR_ASSERT(shard->directory.fields[field].field_class == field_class);
    return &shard->directory.fields[field];
}

static bool equals(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    return a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0);
}

/* A value cut the way that indexing cuts it. */
struct wanted {
    const uint8_t *folded;
    size_t folded_size;
    bool is_folded_cut;
    const uint8_t *exact; /* NULL: any spelling */
    size_t exact_size;
    bool is_exact_cut;
};

static bool matches(const struct lahar_dictionary_entry *entry, const struct wanted *wanted)
{
    if (!equals(entry->folded, entry->folded_size, wanted->folded, wanted->folded_size) ||
        ((entry->flags & LAHAR_TERM_FOLDED_CUT) != 0) != wanted->is_folded_cut) {
        return false;
    }
    return wanted->exact == NULL ||
           (((entry->flags & LAHAR_TERM_EXACT_CUT) != 0) == wanted->is_exact_cut &&
            equals(entry->exact, entry->exact_size, wanted->exact, wanted->exact_size));
}

/* Passes every term that matches to take. */
static lahar_status
for_each_match(struct lahar_shard *shard, const struct lahar_directory_field *field,
               const struct wanted *wanted,
               lahar_status (*take)(void *context, uint64_t reference, lahar_error *error),
               void *context, lahar_error *error)
{
    struct lahar_dictionary_cursor cursor;
    lahar_dictionary_begin(&cursor, &shard->pages, &field->dictionary);
    int order = 1;
    lahar_status status =
        lahar_dictionary_reach(&cursor, wanted->folded, wanted->folded_size, &order, error);
    bool is_it = order == 0;
    /* The spellings of one folded form lie side by side. */
    while (status == LAHAR_OK && is_it) {
        if (matches(&cursor.entry, wanted)) {
            status = take(context, cursor.entry.reference, error);
        }
        if (status == LAHAR_OK) {
            status = lahar_dictionary_next(&cursor, error);
            is_it = equals(cursor.entry.folded, cursor.entry.folded_size, wanted->folded,
                           wanted->folded_size);
        }
    }
    lahar_dictionary_close(&cursor);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

struct collect {
    struct lahar_shard *shard;
    struct lahar_docset *set;
    uint64_t term_count;
    uint64_t document_count;
};

static lahar_status collect_documents(void *context, uint64_t reference, lahar_error *error)
{
    struct collect *collect = context;
    collect->term_count++;
    return lahar_list_read(&collect->shard->lists, reference, collect->set, error);
}

static lahar_status count_documents(void *context, uint64_t reference, lahar_error *error)
{
    struct collect *collect = context;
    uint64_t count = 0;
    collect->term_count++;
    LAHAR_TRY(lahar_list_count(&collect->shard->pages, reference,
                               collect->shard->directory.document_count, &count, error));
    collect->document_count += count;
    return LAHAR_OK;
}

/* Passes every term that the value can stand for to take; *exact_out is cleared when one of them
 * stands for longer values too. */
static lahar_status for_each_keyword(struct lahar_shard *shard, uint32_t field, const void *value,
                                     size_t size, bool ignore_case,
                                     lahar_status (*take)(void *context, uint64_t reference,
                                                          lahar_error *error),
                                     struct collect *collect, bool *exact_out, lahar_error *error)
{
    const struct lahar_directory_field *entry = field_at(shard, field, LAHAR_CLASS_KEYWORD);
    struct lahar_buffer folded;
    lahar_buffer_init(&folded, shard->allocator);
    const bool is_folded_cut = lahar_fold_cut(&folded, value, size);
    if (folded.has_failed) {
        lahar_buffer_deinit(&folded);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to look a value up");
    }
    struct wanted wanted = {
        .folded = folded.data, .folded_size = folded.size, .is_folded_cut = is_folded_cut};
    if (!ignore_case) {
        wanted.is_exact_cut = size > LAHAR_SHARD_TERM_SIZE_MAX;
        wanted.exact_size = wanted.is_exact_cut ? (size_t)LAHAR_SHARD_TERM_SIZE_MAX : size;
        wanted.exact = size == 0 ? (const uint8_t *)"" : value;
    }
    const lahar_status status = for_each_match(shard, entry, &wanted, take, collect, error);
    lahar_buffer_deinit(&folded);
    if (collect->term_count > 0 && (ignore_case ? is_folded_cut : wanted.is_exact_cut)) {
        *exact_out = false;
    }
    return status;
}

lahar_status lahar_shard_keyword(struct lahar_shard *shard, uint32_t field, const void *value,
                                 size_t size, bool ignore_case, struct lahar_docset *set,
                                 bool *exact_out, lahar_error *error)
{
    struct collect collect = {.shard = shard, .set = set};
    return for_each_keyword(shard, field, value, size, ignore_case, collect_documents, &collect,
                            exact_out, error);
}

lahar_status lahar_shard_keyword_count(struct lahar_shard *shard, uint32_t field, const void *value,
                                       size_t size, bool ignore_case, uint64_t *count_out,
                                       bool *exact_out, lahar_error *error)
{
    struct collect collect = {.shard = shard};
    *count_out = 0;
    const lahar_status status = for_each_keyword(shard, field, value, size, ignore_case,
                                                 count_documents, &collect, exact_out, error);
    if (collect.term_count > 1) {
        *exact_out = false; /* a document may have both */
    }
    *count_out = status == LAHAR_OK ? collect.document_count : 0;
    return status;
}

static struct wanted wanted_token(const void *token, size_t size)
{
    const bool is_cut = size > LAHAR_SHARD_TERM_SIZE_MAX;
    return (struct wanted){.folded = token,
                           .folded_size = is_cut ? (size_t)LAHAR_SHARD_TERM_SIZE_MAX : size,
                           .is_folded_cut = is_cut};
}

lahar_status lahar_shard_token(struct lahar_shard *shard, uint32_t field, const void *token,
                               size_t size, struct lahar_docset *set, bool *exact_out,
                               lahar_error *error)
{
    const struct lahar_directory_field *entry = field_at(shard, field, LAHAR_CLASS_TEXT);
    const struct wanted wanted = wanted_token(token, size);
    struct collect collect = {.shard = shard, .set = set};
    const lahar_status status =
        for_each_match(shard, entry, &wanted, collect_documents, &collect, error);
    if (collect.term_count > 0 && wanted.is_folded_cut) {
        *exact_out = false;
    }
    return status;
}

lahar_status lahar_shard_token_count(struct lahar_shard *shard, uint32_t field, const void *token,
                                     size_t size, uint64_t *count_out, lahar_error *error)
{
    *count_out = 0;
    const struct lahar_directory_field *entry = field_at(shard, field, LAHAR_CLASS_TEXT);
    const struct wanted wanted = wanted_token(token, size);
    struct collect collect = {.shard = shard};
    const lahar_status status =
        for_each_match(shard, entry, &wanted, count_documents, &collect, error);
    *count_out = status == LAHAR_OK ? collect.document_count : 0;
    return status;
}

lahar_status lahar_shard_may_hold_uuid(struct lahar_shard *shard, const lahar_uuid *uuid,
                                       bool *may_out, lahar_error *error)
{
    return lahar_uuid_filter_ask(&shard->pages, &shard->directory.filter, uuid, may_out, error);
}

void lahar_shard_announce_may_hold(struct lahar_shard *shard, const lahar_uuid *uuid)
{
    lahar_uuid_filter_announce(&shard->pages, &shard->directory.filter, uuid);
}

void lahar_shard_announce_uuid(struct lahar_shard *shard, uint32_t field, const lahar_uuid *uuid)
{
    const struct lahar_directory_field *entry = field_at(shard, field, LAHAR_CLASS_UUID);
    lahar_uuid_table_announce(&shard->pages, &entry->uuids, uuid);
}

lahar_status lahar_shard_uuid(struct lahar_shard *shard, uint32_t field, const lahar_uuid *uuid,
                              struct lahar_docset *set, lahar_error *error)
{
    const struct lahar_directory_field *entry = field_at(shard, field, LAHAR_CLASS_UUID);
    bool may_hold = true;
    LAHAR_TRY(lahar_shard_may_hold_uuid(shard, uuid, &may_hold, error));
    if (!may_hold) {
        return LAHAR_OK;
    }
    return lahar_uuid_table_find(&shard->lists, &entry->uuids, uuid, set, error);
}

lahar_status lahar_shard_uuids(struct lahar_shard *shard, uint32_t field, const lahar_uuid *low,
                               const lahar_uuid *high, struct lahar_docset *set, lahar_error *error)
{
    const struct lahar_directory_field *entry = field_at(shard, field, LAHAR_CLASS_UUID);
    return lahar_uuid_table_range(&shard->lists, &entry->uuids, low, high, set, error);
}

lahar_status lahar_shard_number(struct lahar_shard *shard, uint32_t field, uint64_t low,
                                uint64_t high, struct lahar_docset *set, lahar_error *error)
{
    const struct lahar_directory_field *entry = field_at(shard, field, LAHAR_CLASS_NUMBER);
    return lahar_column_range(&shard->lists, &entry->column, low, high, set, error);
}

lahar_status lahar_shard_time(struct lahar_shard *shard, int64_t from_ns, int64_t to_ns,
                              struct lahar_docset *set, lahar_error *error)
{
    if (from_ns >= to_ns) {
        return LAHAR_OK;
    }
    return lahar_column_range(&shard->lists, &shard->directory.time_column,
                              lahar_number_from_i64(from_ns), lahar_number_from_i64(to_ns) - 1, set,
                              error);
}

lahar_status lahar_shard_present(struct lahar_shard *shard, uint32_t field,
                                 struct lahar_docset *set, lahar_error *error)
{
    LAHAR_ASSERT(field < shard->directory.field_count);
    return lahar_list_read(&shard->lists, shard->directory.fields[field].presence, set, error);
}

lahar_status lahar_shard_term_counts(struct lahar_shard *shard, uint32_t field,
                                     const struct lahar_docset *within,
                                     lahar_term_count_visit visit, void *context,
                                     lahar_error *error)
{
    const struct lahar_directory_field *entry = field_at(shard, field, LAHAR_CLASS_KEYWORD);
    const uint32_t document_count = shard->directory.document_count;
    struct lahar_dictionary_cursor cursor;
    struct lahar_docset scratch;
    LAHAR_TRY(lahar_docset_init(&scratch, document_count, shard->allocator, error));
    lahar_dictionary_begin(&cursor, &shard->pages, &entry->dictionary);
    lahar_status status = LAHAR_OK;
    while (status == LAHAR_OK && (status = lahar_dictionary_next(&cursor, error)) == LAHAR_OK) {
        uint64_t count = 0;
        status = within == NULL ? lahar_list_count(&shard->pages, cursor.entry.reference,
                                                   document_count, &count, error)
                                : lahar_list_count_within(&shard->lists, cursor.entry.reference,
                                                          within, &scratch, &count, error);
        if (status == LAHAR_OK && count != 0) {
            status = visit(context, cursor.entry.exact, cursor.entry.exact_size,
                           (cursor.entry.flags & LAHAR_TERM_EXACT_CUT) != 0, count, error);
        }
    }
    lahar_dictionary_close(&cursor);
    lahar_docset_deinit(&scratch);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

lahar_status lahar_shard_uuid_counts(struct lahar_shard *shard, uint32_t field,
                                     const struct lahar_docset *within,
                                     lahar_uuid_count_visit visit, void *context,
                                     lahar_error *error)
{
    const struct lahar_uuid_table *table = &field_at(shard, field, LAHAR_CLASS_UUID)->uuids;
    const uint32_t document_count = shard->directory.document_count;
    struct lahar_docset scratch;
    LAHAR_TRY(lahar_docset_init(&scratch, document_count, shard->allocator, error));
    lahar_status status = LAHAR_OK;
    for (uint64_t i = 0; i < table->count && status == LAHAR_OK; i++) {
        lahar_uuid uuid;
        uint64_t reference = 0;
        uint64_t count = 0;
        status = lahar_uuid_table_at(&shard->pages, table, i, &uuid, &reference, error);
        if (status == LAHAR_OK) {
            status = within == NULL
                         ? lahar_list_count(&shard->pages, reference, document_count, &count, error)
                         : lahar_list_count_within(&shard->lists, reference, within, &scratch,
                                                   &count, error);
        }
        if (status == LAHAR_OK && count != 0) {
            status = visit(context, &uuid, count, error);
        }
    }
    lahar_docset_deinit(&scratch);
    return status;
}

lahar_status lahar_shard_number_counts(struct lahar_shard *shard, uint32_t field,
                                       const struct lahar_docset *within,
                                       lahar_status (*visit)(void *context, uint64_t number,
                                                             uint64_t count, lahar_error *error),
                                       void *context, lahar_error *error)
{
    const struct lahar_column *column = &field_at(shard, field, LAHAR_CLASS_NUMBER)->column;
    return lahar_column_counts(&shard->lists, column, within, visit, context, error);
}

lahar_status lahar_shard_times(struct lahar_shard *shard, const struct lahar_docset *within,
                               void (*visit)(void *context, uint32_t document, uint64_t value),
                               void *context, lahar_error *error)
{
    return lahar_column_visit(&shard->lists, &shard->directory.time_column, within, visit, context,
                              error);
}
