/* Reading a whole shard: every page against its checksum, and every structure for what look-ups
 * rely on (order of terms and uuids, documents inside the shard). */
#include <string.h>

#include "index/bitpack.h"
#include "index/shard_format.h"
#include "index/shard_reader.h"
#include "io/base/error.h"

static lahar_status verify_pages(struct lahar_shard *shard, lahar_error *error)
{
    for (uint64_t at = 0; at < shard->pages.body_size; at += LAHAR_SHARD_PAGE_SIZE) {
        const uint64_t left = shard->pages.body_size - at;
        struct lahar_page_view view;
        LAHAR_TRY(lahar_page_view_open(&shard->pages, at,
                                       left < LAHAR_SHARD_PAGE_SIZE ? left : LAHAR_SHARD_PAGE_SIZE,
                                       &view, error));
        const bool is_valid = at != 0 || lahar_directory_header_is_valid(view.data);
        lahar_page_view_close(&shard->pages, &view);
        if (!is_valid) {
            return lahar_fail(error, LAHAR_CORRUPT, "the header of an index shard is malformed");
        }
    }
    return LAHAR_OK;
}

/* Decodes the list. Of a long one the documents are counted too; of a short one the set is not
 * worth emptying, so that the whole costs no more than the shard's size. */
static lahar_status verify_list(struct lahar_shard *shard, uint64_t reference,
                                struct lahar_docset *set, lahar_error *error)
{
    uint64_t count = 0;
    LAHAR_TRY(lahar_list_count(&shard->pages, reference, set->universe, &count, error));
    if (count * 64 < set->universe) {
        return lahar_list_read(&shard->lists, reference, set, error);
    }
    lahar_docset_clear(set);
    LAHAR_TRY(lahar_list_read(&shard->lists, reference, set, error));
    return lahar_docset_count(set) == count
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_CORRUPT, "a posting list holds other than its %llu events",
                            (unsigned long long)count);
}

static lahar_status verify_dictionary(struct lahar_shard *shard,
                                      const struct lahar_dictionary *dictionary,
                                      struct lahar_docset *set, lahar_error *error)
{
    uint8_t previous[2][LAHAR_SHARD_TERM_SIZE_MAX];
    struct lahar_term_item last = {.folded = previous[0], .exact = previous[1]};
    struct lahar_dictionary_cursor cursor;
    lahar_dictionary_begin(&cursor, &shard->pages, dictionary);
    lahar_status status = LAHAR_OK;
    for (bool is_first = true; status == LAHAR_OK; is_first = false) {
        status = lahar_dictionary_next(&cursor, error);
        if (status != LAHAR_OK) {
            break;
        }
        const struct lahar_dictionary_entry *entry = &cursor.entry;
        const struct lahar_term_item item = {
            .folded = entry->folded,
            .exact = entry->exact,
            .folded_size = (uint16_t)entry->folded_size,
            .exact_size = (uint16_t)entry->exact_size,
            .flags = entry->flags & (LAHAR_TERM_FOLDED_CUT | LAHAR_TERM_EXACT_CUT)};
        if (!is_first && lahar_term_compare(&last, &item) >= 0) {
            status = lahar_fail(error, LAHAR_CORRUPT, "terms of an index shard are out of order");
            break;
        }
        memcpy(previous[0], item.folded, item.folded_size);
        memcpy(previous[1], item.exact, item.exact_size);
        last.folded_size = item.folded_size;
        last.exact_size = item.exact_size;
        last.flags = item.flags;
        status = verify_list(shard, entry->reference, set, error);
    }
    lahar_dictionary_close(&cursor);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

static lahar_status verify_uuids(struct lahar_shard *shard, const struct lahar_uuid_table *table,
                                 struct lahar_docset *set, lahar_error *error)
{
    lahar_uuid previous = {{0}};
    for (uint64_t i = 0; i < table->count; i++) {
        lahar_uuid uuid;
        uint64_t reference = 0;
        LAHAR_TRY(lahar_uuid_table_at(&shard->pages, table, i, &uuid, &reference, error));
        if (i > 0 && memcmp(&previous, &uuid, sizeof uuid) >= 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "uuids of an index shard are out of order");
        }
        previous = uuid;
        bool may_hold = false;
        LAHAR_TRY(lahar_shard_may_hold_uuid(shard, &uuid, &may_hold, error));
        if (!may_hold) {
            return lahar_fail(error, LAHAR_CORRUPT,
                              "the filter of an index shard lacks one of its uuids");
        }
        LAHAR_TRY(verify_list(shard, reference, set, error));
    }
    return LAHAR_OK;
}

/* Every document is in one group. */
static lahar_status verify_groups(struct lahar_shard *shard, struct lahar_docset *set,
                                  lahar_error *error)
{
    const struct lahar_group_table *table = &shard->directory.groups;
    uint64_t total = 0;
    struct lahar_docset groups;
    LAHAR_TRY(lahar_docset_init(&groups, table->group_count, shard->allocator, error));
    lahar_docset_fill(&groups);
    lahar_docset_clear(set);
    lahar_status status = lahar_group_table_expand(&shard->pages, table, &groups, set, error);
    lahar_docset_deinit(&groups);
    if (status == LAHAR_OK) {
        status = lahar_group_table_size(&shard->pages, table, set->universe, &total, error);
    }
    if (status == LAHAR_OK && table->group_count > 0 &&
        (lahar_docset_count(set) != set->universe || total != set->universe)) {
        status =
            lahar_fail(error, LAHAR_CORRUPT, "groups of an index shard do not part its events");
    }
    return status;
}

static lahar_status verify_field(struct lahar_shard *shard,
                                 const struct lahar_directory_field *field,
                                 struct lahar_docset *set, lahar_error *error)
{
    LAHAR_TRY(verify_list(shard, field->presence, set, error));
    switch (field->field_class) {
    case LAHAR_CLASS_KEYWORD:
    case LAHAR_CLASS_TEXT:
        return verify_dictionary(shard, &field->dictionary, set, error);
    case LAHAR_CLASS_UUID:
        return verify_uuids(shard, &field->uuids, set, error);
    case LAHAR_CLASS_NUMBER:
        return lahar_column_range(&shard->lists, &field->column, 0, UINT64_MAX, set, error);
    }
    return LAHAR_OK;
}

lahar_status lahar_shard_verify(struct lahar_shard *shard, lahar_error *error)
{
    LAHAR_TRY(verify_pages(shard, error));
    struct lahar_docset set;
    LAHAR_TRY(lahar_docset_init(&set, shard->directory.document_count, shard->allocator, error));
    lahar_status status = lahar_column_range(&shard->lists, &shard->directory.time_column, 0,
                                             UINT64_MAX, &set, error);
    if (status == LAHAR_OK && lahar_docset_count(&set) != set.universe) {
        status = lahar_fail(error, LAHAR_CORRUPT, "an index shard lacks the time of some events");
    }
    if (status == LAHAR_OK) {
        status = verify_groups(shard, &set, error);
    }
    for (size_t i = 0; i < shard->directory.field_count && status == LAHAR_OK; i++) {
        status = verify_field(shard, &shard->directory.fields[i], &set, error);
    }
    lahar_docset_deinit(&set);
    return status;
}
