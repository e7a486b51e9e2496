/* JSONEachRow by plans: documents that are like one of the last few are matched instead of parsed.
 * Each that is like none teaches a plan, in place of the oldest; where most are like none, nothing
 * is tried for a while. */
#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

enum {
    /* A hit pays one miss back by half; from so many on it is not worth trying. */
    MISS_COST = 2,
    MISS_MAX = 32,
    REST_MIN = 64, /* documents that are not tried then */
    REST_MAX = 4096
};

static const struct lahar_mark_set json_marks = {{'"', '\\', '"', '\\'}, 0x20};

void lahar_json_plans_init(struct lahar_text_reader *reader)
{
    struct lahar_json_rows *json = &reader->of.json;
    const lahar_format format = reader->options.format;
    lahar_marks_init(&reader->marks, &json_marks, reader->options.simd);
    for (size_t i = 0; i < LAHAR_JSON_PLAN_COUNT; i++) {
        lahar_document_plan_init(&json->plans[i], reader->options.allocator);
    }
    json->rest_size = REST_MIN;
    /* Other formats make something else of an object, and keep_raw needs what is around it. */
    json->has_plans = (format == LAHAR_FORMAT_JSON || format == LAHAR_FORMAT_JSON_AS_OBJECT) &&
                      !reader->options.keep_raw;
}

void lahar_json_plans_deinit(struct lahar_text_reader *reader)
{
    for (size_t i = 0; i < LAHAR_JSON_PLAN_COUNT; i++) {
        lahar_document_plan_deinit(&reader->of.json.plans[i]);
    }
}

struct lahar_document_plan *lahar_json_plan_to_learn(struct lahar_text_reader *reader)
{
    struct lahar_json_rows *json = &reader->of.json;
    if (!json->has_plans || json->rest_count != 0) {
        return NULL;
    }
    json->oldest = (uint8_t)((json->oldest + 1u) % LAHAR_JSON_PLAN_COUNT);
    return &json->plans[json->oldest];
}

/* The plan that the document at data is like, and how long it is. */
static struct lahar_document_plan *find_plan(struct lahar_text_reader *reader, const uint8_t *data,
                                             size_t *size_out)
{
    struct lahar_json_rows *json = &reader->of.json;
    for (size_t i = 0; i < LAHAR_JSON_PLAN_COUNT; i++) {
        const size_t at = (json->recent + i) % LAHAR_JSON_PLAN_COUNT;
        struct lahar_document_plan *plan = &json->plans[at];
        *size_out = plan->version != reader->fields.version
                        ? 0
                        : lahar_document_plan_match(plan, &reader->marks, data);
        if (*size_out != 0) {
            json->recent = (uint8_t)at;
            return plan;
        }
    }
    return NULL;
}

static bool has_plan(const struct lahar_text_reader *reader)
{
    const struct lahar_json_rows *json = &reader->of.json;
    for (size_t i = 0; i < LAHAR_JSON_PLAN_COUNT; i++) {
        if (json->plans[i].version == reader->fields.version) {
            return true;
        }
    }
    return false;
}

/* Whether it is worth looking at the next document. */
static bool tries(struct lahar_text_reader *reader)
{
    struct lahar_json_rows *json = &reader->of.json;
    if (json->rest_count != 0) {
        json->rest_count--;
        return false;
    }
    return json->has_plans && has_plan(reader);
}

static void count_miss(struct lahar_json_rows *json)
{
    json->miss_count += MISS_COST;
    if (json->miss_count >= MISS_MAX) {
        json->miss_count = 0;
        json->rest_count = json->rest_size;
        json->rest_size = json->rest_size < REST_MAX ? json->rest_size * 2 : REST_MAX;
    }
}

static void count_hit(struct lahar_json_rows *json)
{
    if (json->miss_count != 0) {
        json->miss_count--;
    } else {
        json->rest_size = REST_MIN;
    }
}

/* The document at data as a plan has it, within or at the start of the window. */
static struct lahar_document_plan *match(struct lahar_text_reader *reader, const uint8_t *data,
                                         const uint8_t *end, size_t *size_out)
{
    struct lahar_marks *marks = &reader->marks;
    lahar_marks_cover(marks, data, end);
    struct lahar_document_plan *plan = find_plan(reader, data, size_out);
    if (plan == NULL && marks->start != data && marks->end != end) {
        lahar_marks_look(marks, data, end);
        plan = find_plan(reader, data, size_out);
    }
    if (plan == NULL) {
        count_miss(&reader->of.json);
    }
    return plan;
}

/* Bytes of the line end at p; 0 when there is none. */
static size_t line_end_size(const uint8_t *p, const uint8_t *end)
{
    if (p < end && *p == '\n') {
        return 1;
    }
    return end - p >= 2 && p[0] == '\r' && p[1] == '\n' ? 2 : 0;
}

lahar_status lahar_json_run(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                            bool by_lines, size_t *consumed_out, lahar_error *error)
{
    struct lahar_json_rows *json = &reader->of.json;
    const uint8_t *end = data + size;
    struct lahar_framing framing = {0};
    *consumed_out = 0;
    while (data < end && *data == '{' && tries(reader)) {
        size_t document_size = 0;
        const struct lahar_document_plan *plan = match(reader, data, end, &document_size);
        const size_t end_size = plan == NULL ? 0 : line_end_size(data + document_size, end);
        if (end_size == 0 || document_size > reader->options.record_size_max) {
            break;
        }
        const uint64_t newline_count = 1 + plan->newline_count;
        if (by_lines && newline_count != 1) {
            break;
        }
        lahar_record_reset(&reader->record);
        const lahar_status status =
            lahar_document_map_plan(reader->document, data, document_size, plan, &reader->record);
        if (status == LAHAR_INVALID) {
            break;
        }
        if (status != LAHAR_OK) {
            return lahar_text_reader_no_memory(error);
        }
        LAHAR_TRY(lahar_text_reader_deliver(reader, &framing, reader->offset, error));
        count_hit(json);
        json->allows_comma = !by_lines;
        reader->offset += document_size + end_size;
        reader->line += newline_count;
        *consumed_out += document_size + end_size;
        data += document_size + end_size;
    }
    return LAHAR_OK;
}
