/* Facets: how often each value of a field occurs among the matching events.
 *
 * Where the index holds whole values (keywords and attributes), a shard gives for each distinct
 * value the number of its documents among the matches; values of which the index has only the
 * beginning, other types and events in memory are read. Every worker counts into a table of its
 * own; the tables are added up at the end, and numbers are summed by unit and then in
 * order, so that the answer does not depend on the number of threads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/value_text.h"
#include "engine/query/facet_values.h"
#include "engine/query/group_units.h"
#include "engine/query/query_registry.h"
#include "engine/query/tally.h"
#include "index/shard_format.h"
#include "io/base/error.h"

enum {
    NUMBER_TEXT_SIZE = 48,
    /* Fewer matches than these in a file are read rather than looked up value by value. */
    READ_MAX = 64
};

__extension__ typedef __int128 wide;

/* Over numbers: exact while all are integers and the sum fits. */
struct aggregate {
    uint64_t count;
    struct lahar_number minimum;
    struct lahar_number maximum;
    wide integer_sum;
    double sum; /* of those that are no integers, and of integers beyond integer_sum */
    bool is_exact;
};

struct lahar_facet_result {
    struct lahar_tally tally;
    lahar_facet_value *values; /* owned */
    char minimum[NUMBER_TEXT_SIZE];
    char maximum[NUMBER_TEXT_SIZE];
    char sum[NUMBER_TEXT_SIZE];
};

/* One worker's part. */
struct share {
    const struct lahar_test *test;
    const struct lahar_schema_catalog *catalog;
    struct lahar_tally tally;
    struct lahar_buffer scratch;
    struct aggregate *unit_sums; /* by unit; shared, each unit is one worker's */
    struct lahar_tally *into;    /* tally, or that of the unit in work */
    struct aggregate *sums;      /* of the unit in work */
    uint64_t stamp;              /* of the event in work */
    bool only_long;              /* values that the index has cut; the others are counted */
};

void lahar_facet_result_destroy(struct lahar_facet_result *result, const lahar_allocator *allocator)
{
    if (result != NULL) {
        lahar_tally_deinit(&result->tally);
        lahar_release(allocator, result->values);
        lahar_release(allocator, result);
    }
}

/* --- numbers ------------------------------------------------------------------------- */

static void add_number(struct aggregate *sums, struct lahar_number number, uint64_t count)
{
    if (number.kind == LAHAR_NUMBER_F64 && !isfinite(number.as.f64)) {
        return;
    }
    if (sums->count == 0) {
        sums->minimum = sums->maximum = number;
        sums->is_exact = true;
    }
    if (lahar_number_compare(number, sums->minimum) == -1) {
        sums->minimum = number;
    }
    if (lahar_number_compare(number, sums->maximum) == 1) {
        sums->maximum = number;
    }
    sums->count += count;
    if (number.kind == LAHAR_NUMBER_F64) {
        sums->sum += number.as.f64 * (double)count;
        sums->is_exact = false;
        return;
    }
    /* Below 2^64 * 2^32 each: there is room for as many as there can be events. */
    const wide value = number.kind == LAHAR_NUMBER_I64 ? (wide)number.as.i64 : (wide)number.as.u64;
    sums->integer_sum += value * (wide)count;
}

static void add_sums(struct aggregate *into, const struct aggregate *other)
{
    if (other->count == 0) {
        return;
    }
    if (into->count == 0) {
        *into = *other;
        return;
    }
    if (lahar_number_compare(other->minimum, into->minimum) == -1) {
        into->minimum = other->minimum;
    }
    if (lahar_number_compare(other->maximum, into->maximum) == 1) {
        into->maximum = other->maximum;
    }
    into->count += other->count;
    into->integer_sum += other->integer_sum;
    into->sum += other->sum;
    into->is_exact = into->is_exact && other->is_exact;
}

static lahar_bytes put_f64(double number, char *out)
{
    uint8_t storage[NUMBER_TEXT_SIZE];
    struct lahar_buffer text = {.data = storage, .capacity = sizeof storage};
    lahar_f64_put_text(&text, number);
    memcpy(out, storage, text.size);
    return (lahar_bytes){out, text.size};
}

static lahar_bytes put_number(struct lahar_number number, char *out)
{
    int size = 0;
    switch (number.kind) {
    case LAHAR_NUMBER_I64:
        size = snprintf(out, NUMBER_TEXT_SIZE, "%lld", (long long)number.as.i64);
        break;
    case LAHAR_NUMBER_U64:
        size = snprintf(out, NUMBER_TEXT_SIZE, "%llu", (unsigned long long)number.as.u64);
        break;
    case LAHAR_NUMBER_F64:
        return put_f64(number.as.f64, out);
    }
    return (lahar_bytes){out, (size_t)size};
}

static lahar_bytes put_wide(wide number, char *out)
{
    char *p = out + NUMBER_TEXT_SIZE;
    const bool is_negative = number < 0;
    /* Digits from the end; the remainder of a negative number is negative. */
    do {
        const int digit = (int)(number % 10);
        *--p = (char)('0' + (digit < 0 ? -digit : digit));
        number /= 10;
    } while (number != 0);
    if (is_negative) {
        *--p = '-';
    }
    return (lahar_bytes){p, (size_t)(out + NUMBER_TEXT_SIZE - p)};
}

/* --- values ---------------------------------------------------------------------------- */

static lahar_status add_value(struct share *share, lahar_bytes text, uint64_t count, uint64_t stamp,
                              lahar_error *error)
{
    struct lahar_number number;
    bool is_added = false;
    LAHAR_TRY(lahar_tally_add(share->into, text, count, stamp, &is_added, error));
    if (is_added && lahar_number_of_value(text.data, text.size, &number)) {
        add_number(share->sums, number, count);
    }
    return LAHAR_OK;
}

static lahar_status take_value(void *context, lahar_bytes text, lahar_error *error)
{
    struct share *share = context;
    if (share->only_long && text.size <= LAHAR_SHARD_TERM_SIZE_MAX) {
        return LAHAR_OK;
    }
    return add_value(share, text, 1, share->stamp, error);
}

static lahar_status take_event(void *context, const lahar_event *event, lahar_error *error)
{
    struct share *share = context;
    const struct lahar_facet_sink sink = {take_value, share, &share->scratch, share->catalog};
    share->stamp++;
    return lahar_facet_values(share->test, event, &sink, error);
}

/* --- the index -------------------------------------------------------------------------- */

struct term_context {
    const struct lahar_query *query;
    struct share *share;
    uint32_t looked_at;
    bool is_signed; /* numbers */
    bool met_cut;
};

static lahar_status take_term(void *context, const uint8_t *term, size_t size, bool is_cut,
                              uint64_t count, lahar_error *error)
{
    struct term_context *terms = context;
    if ((++terms->looked_at & 127) == 0) {
        LAHAR_TRY(lahar_query_check(terms->query, error));
    }
    if (is_cut) {
        terms->met_cut = true;
        return LAHAR_OK;
    }
    return add_value(terms->share, (lahar_bytes){term, size}, count, 0, error);
}

static bool accept_cut(void *context, const uint8_t *term, size_t size, bool is_cut)
{
    (void)context;
    (void)term;
    (void)size;
    return is_cut;
}

static lahar_status take_uuid(void *context, const lahar_uuid *uuid, uint64_t count,
                              lahar_error *error)
{
    struct term_context *terms = context;
    struct lahar_buffer *scratch = &terms->share->scratch;
    if ((++terms->looked_at & 127) == 0) {
        LAHAR_TRY(lahar_query_check(terms->query, error));
    }
    lahar_buffer_clear(scratch);
    lahar_uuid_put_text(scratch, uuid);
    if (scratch->has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the text of a value");
    }
    return add_value(terms->share, (lahar_bytes){scratch->data, scratch->size}, count, 0, error);
}

/* number: as lahar_number_from_i64 or lahar_number_from_u64 maps it. */
static lahar_status take_number(void *context, uint64_t number, uint64_t count, lahar_error *error)
{
    struct term_context *terms = context;
    char storage[NUMBER_TEXT_SIZE];
    if ((++terms->looked_at & 127) == 0) {
        LAHAR_TRY(lahar_query_check(terms->query, error));
    }
    const struct lahar_number value =
        terms->is_signed
            ? (struct lahar_number){LAHAR_NUMBER_I64,
                                    {.i64 = (int64_t)(number ^ lahar_number_from_i64(0))}}
            : (struct lahar_number){LAHAR_NUMBER_U64, {.u64 = number}};
    return add_value(terms->share, put_number(value, storage), count, 0, error);
}

/* The events whose values the index has cut are read, for those values alone. */
static lahar_status read_cut(struct lahar_query_worker *worker, struct share *share,
                             struct lahar_unit *unit, uint32_t field, lahar_error *error)
{
    struct lahar_docset cut;
    bool is_exact = true;
    LAHAR_TRY(lahar_docset_init(&cut, unit->may.universe, worker->query->allocator, error));
    lahar_status status =
        lahar_shard_terms(unit->shard, field, accept_cut, NULL, &cut, &is_exact, error);
    if (status == LAHAR_OK) {
        lahar_docset_and(&cut, &unit->may);
        struct lahar_needed_fields needed;
        lahar_needed_fields_of_test(share->test, lahar_schema_stream(share->catalog, unit->stream),
                                    &needed);
        share->only_long = true;
        status = lahar_group_events(worker, unit, &cut, &needed, take_event, share, error);
        share->only_long = false;
    }
    lahar_docset_deinit(&cut);
    return status;
}

/* How the index of a unit knows the values of a name. */
struct source {
    enum lahar_field_class field_class;
    uint32_t field;
    lahar_type type;
    bool is_absent; /* no event of the unit has a value */
};

/* The class of the shard's field that holds the values of a declared field as they are; false: none
 * does. */
static bool class_of(lahar_type type, enum lahar_field_class *class_out)
{
    switch (type) {
    case LAHAR_KEYWORD:
    case LAHAR_LIST_KEYWORD:
        *class_out = LAHAR_CLASS_KEYWORD;
        return true;
    case LAHAR_UUID:
    case LAHAR_LIST_UUID:
        *class_out = LAHAR_CLASS_UUID;
        return true;
    case LAHAR_I64:
    case LAHAR_U64:
        *class_out = LAHAR_CLASS_NUMBER;
        return true;
    default:
        return false; /* the index tells no -0.0 from 0.0, no text from its tokens */
    }
}

/* False: the values have to be read. */
static bool find_source(const struct lahar_unit *unit, const struct share *share,
                        const struct lahar_stream *stream, struct source *source_out)
{
    const struct lahar_test *test = share->test;
    const struct lahar_stream_field *declared =
        test->has_field ? lahar_stream_find_field(stream, test->field) : NULL;
    char name[300];
    int size = 0;
    *source_out = (struct source){.field_class = LAHAR_CLASS_KEYWORD, .type = LAHAR_KEYWORD};
    if (test->target == LAHAR_TARGET_FIELD && test->has_map) {
        return false;
    }
    if (test->target == LAHAR_TARGET_FIELD && declared != NULL) {
        if (!class_of(declared->type, &source_out->field_class) || !declared->is_indexed ||
            declared->is_hidden) {
            return false;
        }
        source_out->type = declared->type;
        size =
            snprintf(name, sizeof name, "%s", lahar_schema_field_name(share->catalog, test->field));
    } else {
        const uint32_t map_field =
            test->target == LAHAR_TARGET_FIELD ? (uint32_t)LAHAR_FIELD_ATTRIBUTES : test->field;
        const struct lahar_stream_field *map = lahar_stream_find_field(stream, map_field);
        if (map == NULL || map->type != LAHAR_MAP || !map->is_indexed ||
            (map_field != LAHAR_FIELD_PREVIOUS && lahar_keys_are_mixed(stream)) ||
            test->key.size > sizeof name - 6) {
            return false;
        }
        size = snprintf(name, sizeof name, "%s%.*s",
                        map_field == LAHAR_FIELD_PREVIOUS ? "prev." : "attr.", (int)test->key.size,
                        (const char *)test->key.data);
    }
    source_out->is_absent =
        size > 0 && !lahar_shard_find_field(unit->shard, name, (size_t)size,
                                            source_out->field_class, &source_out->field);
    return size > 0;
}

/* Adds one table to another; from may be left with what into had, which is none then. */
static lahar_status merge(struct lahar_tally *into, struct lahar_tally *from, lahar_error *error)
{
    if (into->entry_count == 0) {
        const struct lahar_tally empty = *into;
        *into = *from;
        *from = empty;
        return LAHAR_OK;
    }
    for (size_t i = 0; i < from->entry_count; i++) {
        LAHAR_TRY(
            lahar_tally_add(into, from->entries[i].key, from->entries[i].count, 0, NULL, error));
    }
    return LAHAR_OK;
}

static lahar_status ask_source(const struct lahar_unit *unit, const struct source *source,
                               uint64_t match_count, struct term_context *terms, lahar_error *error)
{
    const struct lahar_docset *within = match_count == unit->event_count ? NULL : &unit->may;
    switch (source->field_class) {
    case LAHAR_CLASS_UUID:
        return lahar_shard_uuid_counts(unit->shard, source->field, within, take_uuid, terms, error);
    case LAHAR_CLASS_NUMBER:
        terms->is_signed = source->type == LAHAR_I64;
        return lahar_shard_number_counts(unit->shard, source->field, &unit->may, take_number, terms,
                                         error);
    default:
        return lahar_shard_term_counts(unit->shard, source->field, within, take_term, terms, error);
    }
}

/* From the index. LAHAR_CORRUPT, LAHAR_IO: it cannot tell, and nothing was counted. */
static lahar_status count_terms(struct lahar_query_worker *worker, struct share *share,
                                struct lahar_unit *unit, const struct source *source,
                                uint64_t match_count, lahar_error *error)
{
    struct lahar_tally tally;
    struct aggregate sums = {0};
    struct aggregate *unit_sums = share->sums;
    struct term_context terms = {.query = worker->query, .share = share};
    lahar_tally_init(&tally, worker->query->allocator);
    share->into = &tally;
    share->sums = &sums;
    lahar_status status = ask_source(unit, source, match_count, &terms, error);
    if (status == LAHAR_OK && terms.met_cut) {
        status = read_cut(worker, share, unit, source->field, error);
    }
    share->into = &share->tally;
    share->sums = unit_sums;
    if (status == LAHAR_OK) {
        status = merge(&share->tally, &tally, error);
        *unit_sums = sums;
    }
    lahar_tally_deinit(&tally);
    return status;
}

static lahar_status group_unit(struct lahar_query_worker *worker, void *context,
                               struct lahar_unit *unit, lahar_error *error)
{
    struct share *share = context;
    const struct lahar_stream *stream = lahar_schema_stream(share->catalog, unit->stream);
    const uint64_t match_count = lahar_docset_count(&unit->may);
    struct source source;
    share->sums = &share->unit_sums[unit - worker->query->units];
    if (match_count == 0) {
        return LAHAR_OK;
    }
    if (share->test->target == LAHAR_TARGET_STREAM && stream != NULL) {
        return add_value(share, (lahar_bytes){stream->name, strlen(stream->name)}, match_count, 0,
                         error);
    }
    if (match_count > READ_MAX && unit->shard != NULL && stream != NULL &&
        find_source(unit, share, stream, &source)) {
        lahar_error reason = {0};
        if (source.is_absent) {
            return LAHAR_OK;
        }
        const lahar_status status = count_terms(worker, share, unit, &source, match_count, &reason);
        if (status != LAHAR_CORRUPT && status != LAHAR_IO) {
            if (status != LAHAR_OK && error != NULL) {
                *error = reason;
            }
            return status;
        }
        worker->context.shards_failed++;
    }
    struct lahar_needed_fields needed;
    lahar_needed_fields_of_test(share->test, stream, &needed);
    return lahar_group_events(worker, unit, &unit->may, &needed, take_event, share, error);
}

/* --- the answer --------------------------------------------------------------------------- */

/* A test that looks at the name, whatever its value. */
static lahar_status bind_name(struct lahar_query *query, const char *name,
                              const struct lahar_test **test_out, lahar_error *error)
{
    const struct lahar_bind_context bind = {
        .catalog = query->catalog, .arena = &query->tree, .now_ns = query->now_ns};
    struct lahar_query_node *node = lahar_arena_allocate(&query->tree, sizeof *node);
    void *copy = lahar_arena_copy(&query->tree, name, strlen(name));
    if (node == NULL || copy == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a facet");
    }
    *node = (struct lahar_query_node){.kind = LAHAR_NODE_TEST,
                                      .op = LAHAR_TEST_PRESENT,
                                      .has_name = true,
                                      .name = {copy, strlen(name)}};
    LAHAR_TRY(lahar_query_bind(node, &bind, error));
    *test_out = node->test;
    return lahar_facet_is_possible(node->test)
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_INVALID, "there are no facets of \"%s\"", name);
}

static lahar_status run(struct lahar_query *query, const struct lahar_test *test,
                        struct lahar_tally *tally, struct aggregate *sums, lahar_error *error)
{
    const uint32_t workers = lahar_query_worker_count(query);
    struct share *shares = lahar_allocate_zeroed(query->allocator, workers, sizeof *shares);
    struct aggregate *unit_sums =
        lahar_allocate_zeroed(query->allocator, (size_t)query->unit_count + 1, sizeof *unit_sums);
    lahar_status status = LAHAR_OK;
    if (shares == NULL || unit_sums == NULL) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a facet");
        goto cleanup;
    }
    for (uint32_t i = 0; i < workers; i++) {
        shares[i] = (struct share){.test = test, .catalog = query->catalog, .unit_sums = unit_sums};
        shares[i].into = &shares[i].tally;
        lahar_tally_init(&shares[i].tally, query->allocator);
        lahar_buffer_init(&shares[i].scratch, query->allocator);
    }
    status = lahar_query_group(query, group_unit, shares, sizeof *shares, error);
    for (uint32_t i = 0; i < workers; i++) {
        if (status == LAHAR_OK) {
            status = merge(tally, &shares[i].tally, error);
        }
        lahar_tally_deinit(&shares[i].tally);
        lahar_buffer_deinit(&shares[i].scratch);
    }
    for (uint32_t i = 0; i < query->unit_count; i++) {
        add_sums(sums, &unit_sums[i]);
    }
cleanup:
    lahar_release(query->allocator, unit_sums);
    lahar_release(query->allocator, shares);
    return status;
}

static lahar_status give(struct lahar_query *query, struct lahar_facet_result *result,
                         const struct aggregate *sums, size_t limit, lahar_facet *facet,
                         lahar_error *error)
{
    struct lahar_tally *tally = &result->tally;
    const size_t count = limit == 0 || limit > tally->entry_count ? tally->entry_count : limit;
    lahar_tally_sort(tally, count);
    result->values = lahar_allocate(query->allocator, (count + 1) * sizeof *result->values);
    if (result->values == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu values", count);
    }
    for (size_t i = 0; i < count; i++) {
        result->values[i] = (lahar_facet_value){tally->entries[i].key, tally->entries[i].count};
    }
    facet->values = result->values;
    facet->value_count = count;
    facet->distinct_count = tally->entry_count;
    for (uint32_t i = 0; i < query->unit_count; i++) {
        facet->event_count += query->units[i].total;
    }
    facet->number_count = sums->count;
    if (sums->count != 0) {
        facet->minimum = put_number(sums->minimum, result->minimum);
        facet->maximum = put_number(sums->maximum, result->maximum);
        facet->sum = sums->is_exact ? put_wide(sums->integer_sum, result->sum)
                                    : put_f64((double)sums->integer_sum + sums->sum, result->sum);
    }
    return LAHAR_OK;
}

static lahar_status find_facet(struct lahar_query *query, const char *name, size_t limit,
                               lahar_facet *facet, lahar_error *error)
{
    const struct lahar_test *test = NULL;
    struct aggregate sums = {0};
    lahar_facet_result_destroy(query->facet, query->allocator);
    query->facet = lahar_allocate_zeroed(query->allocator, 1, sizeof *query->facet);
    if (query->facet == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a facet");
    }
    lahar_tally_init(&query->facet->tally, query->allocator);
    LAHAR_TRY(bind_name(query, name, &test, error));
    LAHAR_TRY(run(query, test, &query->facet->tally, &sums, error));
    return give(query, query->facet, &sums, limit, facet, error);
}

lahar_status lahar_query_facet(lahar_query *query, const char *name, size_t limit,
                               lahar_facet *facet_out, lahar_error *error)
{
    const size_t size = facet_out->struct_size;
    lahar_facet facet = {.struct_size = size};
    lahar_error_clear(error);
    LAHAR_TRY(lahar_query_begin(query, error));
    const lahar_status status = find_facet(query, name, limit, &facet, error);
    if (status == LAHAR_OK) {
        memcpy(facet_out, &facet, size != 0 && size < sizeof facet ? size : sizeof facet);
    }
    return lahar_query_end(query, status, error);
}
