/* Columns of a merged shard.
 *
 * Blocks of the inputs do not meet those of the result, so values are unpacked and packed again, a
 * block of the result at a time over all columns: equal blocks of different columns, which are
 * common, are found side by side. */
#include <string.h>

#include "index/column_block.h"
#include "index/merge.h"
#include "io/base/error.h"

enum {
    EXTRAS_AT_A_TIME = 128
};

/* A column of groups, spread over the documents of its input. */
struct spread {
    uint32_t *group_of; /* by document */
    uint64_t *values;   /* by group */
    uint8_t *has_value;
    uint32_t document; /* the next */
};

/* The values of a column from input to input, in order of number (document or group). */
struct source {
    size_t field; /* of the result; SIZE_MAX: event times */
    bool is_grouped;
    uint32_t input;
    const struct lahar_column *column; /* of that input; NULL: it has none */
    uint32_t universe;                 /* numbers of that input */
    uint32_t offset;
    uint64_t next_block;
    struct lahar_column_slice slice; /* positions count from slice_first */
    uint32_t slice_first;
    size_t at;
    uint8_t extras[EXTRAS_AT_A_TIME * LAHAR_SHARD_EXTRA_SIZE];
    uint64_t next_extra; /* the first that is not loaded */
    size_t extra_at;
    size_t extra_count;
    struct spread spread;
};

/* The column that is being written. */
struct target {
    struct source source;
    uint64_t low; /* values outside go to the extras */
    uint64_t high;
    uint64_t count; /* numbers */
    struct lahar_column_slice slice;
    uint32_t previous;
    struct lahar_buffer zones;
    struct lahar_buffer extras;
    /* This round's block in out; size 0: none. */
    size_t start;
    size_t size;
    uint64_t offset;
};

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a column block of an index shard is malformed");
}

/* --- reading ------------------------------------------------------------------------------- */

static bool unpack_block(const struct lahar_column_block *block, uint64_t min,
                         size_t document_count, struct lahar_column_slice *slice)
{
    slice->count = block->count;
    for (size_t i = 0; i < block->count; i++) {
        slice->values[i] = min + lahar_unpack(block->packed, i, block->width) * block->divisor;
    }
    if (block->kind == LAHAR_COLUMN_FULL) {
        for (size_t i = 0; i < block->count; i++) {
            slice->positions[i] = (uint16_t)i;
        }
        return true;
    }
    size_t filled = 0;
    if (block->kind == LAHAR_COLUMN_POSITIONS) {
        memcpy(slice->positions, block->presence, block->count * sizeof slice->positions[0]);
        filled = block->count;
    } else {
        for (size_t word = 0; word < LAHAR_SHARD_COLUMN_BLOCK / 64; word++) {
            uint64_t bits = lahar_load_u64(block->presence + word * 8);
            for (; bits != 0 && filled < block->count; bits &= bits - 1) {
                slice->positions[filled++] = (uint16_t)(word * 64 + (size_t)__builtin_ctzll(bits));
            }
            if (bits != 0) {
                return false;
            }
        }
    }
    bool is_valid = filled == block->count && slice->positions[filled - 1] < document_count;
    for (size_t i = 1; i < filled; i++) {
        is_valid &= slice->positions[i - 1] < slice->positions[i];
    }
    return is_valid;
}

/* Unpacks block number of a column over universe numbers; an empty one leaves the slice empty. */
static lahar_status load_block(struct lahar_shard *shard, const struct lahar_column *column,
                               uint32_t universe, uint64_t number, struct lahar_column_slice *slice,
                               lahar_error *error)
{
    uint8_t zone[LAHAR_SHARD_ZONE_SIZE];
    slice->count = 0;
    LAHAR_TRY(lahar_shard_pages_copy(&shard->pages, column->zones + number * LAHAR_SHARD_ZONE_SIZE,
                                     zone, sizeof zone, error));
    const uint64_t place = lahar_load_u64(zone + 16);
    if (place == 0) {
        return LAHAR_OK;
    }
    const uint64_t left = universe - number * LAHAR_SHARD_COLUMN_BLOCK;
    const size_t document_count =
        left < LAHAR_SHARD_COLUMN_BLOCK ? (size_t)left : (size_t)LAHAR_SHARD_COLUMN_BLOCK;
    struct lahar_page_view view;
    struct lahar_column_block block;
    LAHAR_TRY(lahar_page_view_open(&shard->pages, place >> 16, place & 0xffff, &view, error));
    const bool is_valid =
        lahar_column_block_parse(view.data, place & 0xffff, document_count, &block) &&
        unpack_block(&block, lahar_load_u64(zone), document_count, slice);
    lahar_page_view_close(&shard->pages, &view);
    return is_valid ? LAHAR_OK : corrupt(error);
}

static lahar_status note_group(void *context, uint32_t group, const uint32_t *documents,
                               uint32_t count, lahar_error *error)
{
    struct spread *spread = context;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        spread->group_of[documents[i]] = group;
    }
    return LAHAR_OK;
}

static void spread_deinit(struct lahar_merge *merge, struct spread *spread)
{
    lahar_release(merge->allocator, spread->group_of);
    lahar_release(merge->allocator, spread->values);
    lahar_release(merge->allocator, spread->has_value);
    *spread = (struct spread){.document = 0};
}

/* Makes a column of groups ready to be read by document. */
static lahar_status spread_open(struct lahar_merge *merge, struct source *source,
                                lahar_error *error)
{
    struct lahar_shard *shard = merge->inputs[source->input].shard;
    const struct lahar_group_table *groups = &shard->directory.groups;
    struct spread *spread = &source->spread;
    const uint32_t document_count = shard->directory.document_count;
    spread->group_of = lahar_allocate_zeroed(merge->allocator, (size_t)document_count + 1,
                                             sizeof *spread->group_of);
    spread->values = lahar_allocate_zeroed(merge->allocator, (size_t)groups->group_count + 1,
                                           sizeof *spread->values);
    spread->has_value = lahar_allocate_zeroed(merge->allocator, (size_t)groups->group_count + 1, 1);
    if (spread->group_of == NULL || spread->values == NULL || spread->has_value == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge a column");
    }
    LAHAR_TRY(
        lahar_group_table_visit(&shard->pages, groups, document_count, note_group, spread, error));
    for (uint64_t number = 0; number * LAHAR_SHARD_COLUMN_BLOCK < groups->group_count; number++) {
        LAHAR_TRY(
            load_block(shard, source->column, groups->group_count, number, &source->slice, error));
        for (size_t i = 0; i < source->slice.count; i++) {
            const size_t group =
                (size_t)number * LAHAR_SHARD_COLUMN_BLOCK + source->slice.positions[i];
            spread->values[group] = source->slice.values[i];
            spread->has_value[group] = 1;
        }
    }
    source->slice.count = 0;
    return LAHAR_OK;
}

/* Stands before the values of source->input. */
static lahar_status open_input(struct lahar_merge *merge, struct source *source, lahar_error *error)
{
    spread_deinit(merge, &source->spread);
    source->next_block = 0;
    source->slice.count = 0;
    source->at = 0;
    source->next_extra = 0;
    source->extra_at = 0;
    source->extra_count = 0;
    source->column = NULL;
    if (source->input == merge->input_count) {
        return LAHAR_OK;
    }
    const struct lahar_merge_input *input = &merge->inputs[source->input];
    const struct lahar_directory *directory = &input->shard->directory;
    source->universe =
        source->is_grouped ? directory->groups.group_count : directory->document_count;
    source->offset = source->is_grouped ? input->first_group : input->first_document;
    if (source->field == SIZE_MAX) {
        source->column = &directory->time_column;
    } else {
        const uint32_t number = lahar_merge_field(merge, source->field, source->input);
        source->column = number == LAHAR_MERGE_NO_FIELD ? NULL : &directory->fields[number].column;
    }
    return source->column != NULL && source->column->is_grouped && !source->is_grouped
               ? spread_open(merge, source, error)
               : LAHAR_OK;
}

/* Fills the slice with the next documents of a spread column. */
static void load_spread(struct source *source)
{
    struct spread *spread = &source->spread;
    source->slice.count = 0;
    source->slice_first = spread->document;
    const uint32_t first = spread->document;
    while (spread->document < source->universe &&
           spread->document - first < LAHAR_SHARD_COLUMN_BLOCK) {
        const uint32_t group = spread->group_of[spread->document];
        if (spread->has_value[group] != 0) {
            source->slice.positions[source->slice.count] = (uint16_t)(spread->document - first);
            source->slice.values[source->slice.count++] = spread->values[group];
        }
        spread->document++;
    }
}

static bool has_more_blocks(const struct source *source)
{
    return source->spread.group_of != NULL
               ? source->spread.document < source->universe
               : source->next_block * LAHAR_SHARD_COLUMN_BLOCK < source->universe;
}

/* Sees to it that a value and an extra are loaded where there are any left, of the first input
 * that has some; source->input is the number of inputs at the end. */
static lahar_status refill(struct lahar_merge *merge, struct source *source, lahar_error *error)
{
    while (source->input < merge->input_count) {
        struct lahar_shard *shard = merge->inputs[source->input].shard;
        while (source->column != NULL && source->at == source->slice.count &&
               has_more_blocks(source)) {
            source->at = 0;
            if (source->spread.group_of != NULL) {
                load_spread(source);
                continue;
            }
            source->slice_first = (uint32_t)(source->next_block * LAHAR_SHARD_COLUMN_BLOCK);
            LAHAR_TRY(load_block(shard, source->column, source->universe, source->next_block++,
                                 &source->slice, error));
        }
        if (source->column != NULL && source->extra_at == source->extra_count &&
            source->next_extra < source->column->extra_count) {
            const uint64_t left = source->column->extra_count - source->next_extra;
            const size_t n = left < EXTRAS_AT_A_TIME ? (size_t)left : (size_t)EXTRAS_AT_A_TIME;
            LAHAR_TRY(lahar_shard_pages_copy(
                &shard->pages, source->column->extras + source->next_extra * LAHAR_SHARD_EXTRA_SIZE,
                source->extras, n * LAHAR_SHARD_EXTRA_SIZE, error));
            source->next_extra += n;
            source->extra_at = 0;
            source->extra_count = n;
        }
        if (source->at < source->slice.count || source->extra_at < source->extra_count) {
            return LAHAR_OK;
        }
        source->input++;
        LAHAR_TRY(open_input(merge, source, error));
    }
    return LAHAR_OK;
}

/* --- writing ------------------------------------------------------------------------------- */

static lahar_status take(struct target *target, uint64_t first, uint32_t number, uint64_t value,
                         lahar_error *error)
{
    /* Numbers rise but for second values of one. */
    if (number < first || number >= target->count ||
        (target->previous != UINT32_MAX && number < target->previous)) {
        return corrupt(error);
    }
    if (number == target->previous || value < target->low || value > target->high) {
        lahar_buffer_put_u32(&target->extras, number);
        lahar_buffer_put_u64(&target->extras, value);
        return LAHAR_OK;
    }
    target->previous = number;
    lahar_column_slice_add(&target->slice, (uint16_t)(number - first), value);
    return LAHAR_OK;
}

/* Takes all values of numbers below end. */
static lahar_status take_until(struct lahar_merge *merge, struct target *target, uint64_t first,
                               uint64_t end, lahar_error *error)
{
    struct source *source = &target->source;
    for (;;) {
        LAHAR_TRY(refill(merge, source, error));
        if (source->input == merge->input_count) {
            return LAHAR_OK;
        }
        uint64_t extra = UINT64_MAX;
        uint64_t extra_value = 0;
        if (source->extra_at < source->extra_count) {
            const uint8_t *entry = source->extras + source->extra_at * LAHAR_SHARD_EXTRA_SIZE;
            extra = (uint64_t)lahar_load_u32(entry) + source->offset;
            extra_value = lahar_load_u64(entry + 4);
        }
        /* Values up to the extra, that of its own number first. */
        const uint64_t base = (uint64_t)source->slice_first + source->offset;
        while (source->at < source->slice.count) {
            const uint64_t number = base + source->slice.positions[source->at];
            if (number > extra) {
                break;
            }
            if (number >= end) {
                return LAHAR_OK;
            }
            LAHAR_TRY(
                take(target, first, (uint32_t)number, source->slice.values[source->at], error));
            source->at++;
        }
        const bool is_extra_next =
            extra != UINT64_MAX && (source->at < source->slice.count || !has_more_blocks(source));
        if (is_extra_next) {
            if (extra >= end) {
                return LAHAR_OK;
            }
            if (extra - source->offset >= source->universe) {
                return corrupt(error);
            }
            LAHAR_TRY(take(target, first, (uint32_t)extra, extra_value, error));
            source->extra_at++;
        }
    }
}

static void note_times(struct lahar_merge *merge, const struct target *target)
{
    struct lahar_time_bounds *bounds = &merge->directory.times;
    if (target->slice.count == 0) {
        return;
    }
    const uint64_t min = target->slice.min;
    const uint64_t max = target->slice.max;
    bounds->main_min = min < bounds->main_min ? min : bounds->main_min;
    bounds->main_max = max > bounds->main_max ? max : bounds->main_max;
    bounds->min = min < bounds->min ? min : bounds->min;
    bounds->max = max > bounds->max ? max : bounds->max;
}

static void note_extra_times(struct lahar_merge *merge, const struct target *target)
{
    struct lahar_time_bounds *bounds = &merge->directory.times;
    for (size_t i = 0; i < target->extras.size; i += LAHAR_SHARD_EXTRA_SIZE) {
        const uint64_t v = lahar_load_u64(target->extras.data + i + 4);
        bounds->min = v < bounds->min ? v : bounds->min;
        bounds->max = v > bounds->max ? v : bounds->max;
        if (v < target->low) {
            bounds->early_max = v > bounds->early_max ? v : bounds->early_max;
        } else if (v > target->high) {
            bounds->late_min = v < bounds->late_min ? v : bounds->late_min;
        }
    }
}

/* Writes the slice's data, unless a column before it has the same in this round, and its zone. */
static void put_block(struct lahar_merge *merge, struct target *targets, size_t index,
                      size_t number_count)
{
    struct target *target = &targets[index];
    struct lahar_buffer *out = &merge->out;
    target->size = 0;
    if (target->slice.count != 0) {
        target->offset = lahar_merge_place(merge);
        target->start = out->size;
        lahar_column_slice_encode(&target->slice, number_count, out);
        target->size = out->has_failed ? 0 : out->size - target->start;
        for (size_t i = 0; i < index && target->size != 0; i++) {
            if (targets[i].size == target->size &&
                memcmp(out->data + targets[i].start, out->data + target->start, target->size) ==
                    0) {
                out->size = target->start;
                target->start = targets[i].start;
                target->offset = targets[i].offset;
                break;
            }
        }
    }
    lahar_column_zone_put(&target->zones, &target->slice, target->offset, target->size);
}

/* Bounds of the main times: those of the inputs, unless some of them, one event in a hundred at
 * most, lie far from all others: their clocks are taken to be wrong. */
static void find_main_times(const struct lahar_merge *merge, uint64_t *low_out, uint64_t *high_out)
{
    static const uint64_t slack_ns = UINT64_C(3600000000000);
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    uint64_t all_low = UINT64_MAX;
    uint64_t all_high = 0;
    uint64_t doubtful = 0; /* events that may lie outside */
    for (uint32_t i = 0; i < merge->input_count; i++) {
        const struct lahar_directory *directory = &merge->inputs[i].shard->directory;
        const struct lahar_time_bounds *bounds = &directory->times;
        doubtful += directory->time_column.extra_count;
        all_low = bounds->main_min < all_low ? bounds->main_min : all_low;
        all_high = bounds->main_max > all_high ? bounds->main_max : all_high;
        if (directory->document_count <= merge->document_count / 200) {
            doubtful += directory->document_count;
            continue;
        }
        low = bounds->main_min < low ? bounds->main_min : low;
        high = bounds->main_max > high ? bounds->main_max : high;
    }
    if (low > high || doubtful > merge->document_count / 100) {
        low = all_low;
        high = all_high;
    }
    if (low > high) {
        low = 0;
        high = UINT64_MAX;
    }
    const uint64_t margin = high - low > UINT64_MAX - slack_ns ? UINT64_MAX : high - low + slack_ns;
    *low_out = low > margin ? low - margin : 0;
    *high_out = high < UINT64_MAX - margin ? high + margin : UINT64_MAX;
}

/* Whether the column of a field of the result can be one of groups. */
static bool can_group(const struct lahar_merge *merge, size_t field)
{
    bool is_grouped = merge->group_count != 0;
    for (uint32_t i = 0; i < merge->input_count && is_grouped; i++) {
        const uint32_t number = lahar_merge_field(merge, field, i);
        is_grouped = number == LAHAR_MERGE_NO_FIELD ||
                     merge->inputs[i].shard->directory.fields[number].column.is_grouped;
    }
    return is_grouped;
}

static void target_init(struct lahar_merge *merge, struct target *target, size_t field)
{
    target->source.field = field;
    target->source.is_grouped = field != SIZE_MAX && can_group(merge, field);
    target->count = target->source.is_grouped ? merge->group_count : merge->document_count;
    target->high = UINT64_MAX;
    target->previous = UINT32_MAX;
    if (field == SIZE_MAX) {
        find_main_times(merge, &target->low, &target->high);
    }
    lahar_buffer_init(&target->zones, merge->allocator);
    lahar_buffer_init(&target->extras, merge->allocator);
}

/* One block of every column. */
static lahar_status write_round(struct lahar_merge *merge, struct target *targets, size_t count,
                                uint64_t first, lahar_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct target *target = &targets[i];
        target->size = 0;
        if (first >= target->count) {
            continue;
        }
        const uint64_t left = target->count - first;
        const uint64_t n = left < LAHAR_SHARD_COLUMN_BLOCK ? left : LAHAR_SHARD_COLUMN_BLOCK;
        lahar_column_slice_begin(&target->slice);
        LAHAR_TRY(take_until(merge, target, first, first + n, error));
        if (i == 0) {
            note_times(merge, target);
        }
        put_block(merge, targets, i, (size_t)n);
    }
    return lahar_merge_drain(merge, error);
}

static lahar_status finish_column(struct lahar_merge *merge, struct target *target,
                                  struct lahar_column *column_out, lahar_error *error)
{
    column_out->is_grouped = target->source.is_grouped;
    column_out->zones = lahar_merge_place(merge);
    lahar_buffer_put(&merge->out, target->zones.data, target->zones.size);
    column_out->extras = lahar_merge_place(merge);
    column_out->extra_count = target->extras.size / LAHAR_SHARD_EXTRA_SIZE;
    lahar_buffer_put(&merge->out, target->extras.data, target->extras.size);
    if (target->zones.has_failed || target->extras.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge columns");
    }
    if (column_out->is_grouped && column_out->extra_count != 0) {
        return corrupt(error);
    }
    return lahar_merge_drain(merge, error);
}

static lahar_status write_columns(struct lahar_merge *merge, struct target *targets, size_t count,
                                  lahar_error *error)
{
    merge->directory.times =
        (struct lahar_time_bounds){UINT64_MAX, 0, UINT64_MAX, 0, 0, UINT64_MAX};
    for (size_t i = 0; i < count; i++) {
        LAHAR_TRY(open_input(merge, &targets[i].source, error));
    }
    for (uint64_t first = 0; first < merge->document_count; first += LAHAR_SHARD_COLUMN_BLOCK) {
        LAHAR_TRY(write_round(merge, targets, count, first, error));
    }
    note_extra_times(merge, &targets[0]);
    for (size_t i = 0; i < count; i++) {
        const size_t field = targets[i].source.field;
        struct lahar_column *column = field == SIZE_MAX ? &merge->directory.time_column
                                                        : &merge->directory.fields[field].column;
        LAHAR_TRY(finish_column(merge, &targets[i], column, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_merge_columns(struct lahar_merge *merge, lahar_error *error)
{
    size_t count = 1;
    for (size_t i = 0; i < merge->directory.field_count; i++) {
        count += merge->directory.fields[i].field_class == LAHAR_CLASS_NUMBER;
    }
    struct target *targets = lahar_allocate_zeroed(merge->allocator, count, sizeof *targets);
    if (targets == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge columns");
    }
    size_t filled = 0;
    target_init(merge, &targets[filled++], SIZE_MAX);
    for (size_t i = 0; i < merge->directory.field_count; i++) {
        if (merge->directory.fields[i].field_class == LAHAR_CLASS_NUMBER) {
            target_init(merge, &targets[filled++], i);
        }
    }
    const lahar_status status = write_columns(merge, targets, count, error);
    for (size_t i = 0; i < count; i++) {
        spread_deinit(merge, &targets[i].source.spread);
        lahar_buffer_deinit(&targets[i].zones);
        lahar_buffer_deinit(&targets[i].extras);
    }
    lahar_release(merge->allocator, targets);
    return status;
}
