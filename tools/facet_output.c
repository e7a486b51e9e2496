/* Writing facets and histograms; see facet_output.h. */
#include "tools/facet_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/event_output.h"
#include "tools/json_line.h"
#include "tools/time_text.h"

enum {
    BAR_WIDTH = 40
};

/* A bar in eighths of a column; something that is there is never nothing. */
static void put_bar(uint64_t count, uint64_t most)
{
    static const char *const EIGHTHS[] = {"",       "\u258f", "\u258e", "\u258d",
                                          "\u258c", "\u258b", "\u258a", "\u2589"};
    unsigned eighths =
        most == 0 ? 0 : (unsigned)((double)count / (double)most * BAR_WIDTH * 8 + 0.5);
    eighths = count != 0 && eighths == 0 ? 1 : eighths;
    unsigned columns = 0;
    for (; columns < eighths / 8; columns++) {
        (void)fputs("\u2588", stdout);
    }
    (void)fputs(EIGHTHS[eighths % 8], stdout);
    columns += eighths % 8 != 0;
    (void)printf("%*s ", (int)(BAR_WIDTH - columns), "");
}

static int digits_of(uint64_t number)
{
    return snprintf(NULL, 0, "%" PRIu64, number);
}

/* Bytes of the valid UTF-8 character at p, 0 when there is none. */
static size_t character_size(const uint8_t *p, size_t left)
{
    const size_t size = *p < 0x80   ? 1
                        : *p < 0xc2 ? 0
                        : *p < 0xe0 ? 2
                        : *p < 0xf0 ? 3
                        : *p < 0xf5 ? 4
                                    : 0;
    if (size == 0 || size > left) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool is_wrong = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
                          (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f);
    return size > 1 && is_wrong ? 0 : size;
}

/* A JSON string; bytes that are not UTF-8 become U+FFFD. */
static struct json_object *json_text(lahar_bytes bytes)
{
    const uint8_t *p = bytes.data;
    char *text = malloc(bytes.size * 3 + 1);
    size_t size = 0;
    if (text == NULL) {
        return json_object_new_string("");
    }
    for (size_t i = 0; i < bytes.size;) {
        const size_t count = character_size(p + i, bytes.size - i);
        memcpy(text + size, count == 0 ? "\xef\xbf\xbd" : (const char *)p + i,
               count == 0 ? 3 : count);
        size += count == 0 ? 3 : count;
        i += count == 0 ? 1 : count;
    }
    struct json_object *object = json_object_new_string_len(text, (int)size);
    free(text);
    return object;
}

static void add_number_text(struct json_object *line, const char *key, lahar_bytes text)
{
    char copy[64];
    if (text.size != 0 && text.size < sizeof copy) {
        memcpy(copy, text.data, text.size);
        copy[text.size] = '\0';
        struct json_object *number = json_object_new_double_s(strtod(copy, NULL), copy);
        (void)json_object_object_add(line, key, number);
    }
}

static void print_json(const char *name, const lahar_facet *facet)
{
    struct json_object *line = json_object_new_object();
    struct json_object *values = json_object_new_array();
    json_line_string(line, "facet", name);
    json_line_number(line, "events", facet->event_count);
    json_line_number(line, "distinct", facet->distinct_count);
    for (size_t i = 0; i < facet->value_count; i++) {
        struct json_object *value = json_object_new_object();
        (void)json_object_object_add(value, "value", json_text(facet->values[i].value));
        json_line_number(value, "count", facet->values[i].count);
        (void)json_object_array_add(values, value);
    }
    (void)json_object_object_add(line, "values", values);
    if (facet->number_count != 0) {
        json_line_number(line, "numbers", facet->number_count);
        add_number_text(line, "min", facet->minimum);
        add_number_text(line, "max", facet->maximum);
        add_number_text(line, "sum", facet->sum);
    }
    json_line_print(line);
}

void facet_output_values(const char *name, const lahar_facet *facet, bool json)
{
    const bool has_bars = isatty(STDOUT_FILENO) == 1;
    const uint64_t most = facet->value_count == 0 ? 0 : facet->values[0].count;
    if (json) {
        print_json(name, facet);
        return;
    }
    (void)printf("%s: %" PRIu64 " values in %" PRIu64 " events\n", name, facet->distinct_count,
                 facet->event_count);
    for (size_t i = 0; i < facet->value_count; i++) {
        (void)printf("  %*" PRIu64 " ", digits_of(most), facet->values[i].count);
        if (has_bars) {
            put_bar(facet->values[i].count, most);
        }
        event_output_text(facet->values[i].value);
        (void)putchar('\n');
    }
    if (facet->number_count != 0) {
        (void)printf("  numbers: %" PRIu64 ", min %.*s, max %.*s, sum %.*s\n", facet->number_count,
                     (int)facet->minimum.size, (const char *)facet->minimum.data,
                     (int)facet->maximum.size, (const char *)facet->maximum.data,
                     (int)facet->sum.size, (const char *)facet->sum.data);
    }
}

static void print_histogram_json(int64_t width_ns, const lahar_histogram_bucket *buckets,
                                 size_t count)
{
    struct json_object *line = json_object_new_object();
    struct json_object *array = json_object_new_array();
    (void)json_object_object_add(line, "width_ns", json_object_new_int64(width_ns));
    for (size_t i = 0; i < count; i++) {
        char start[TIME_TEXT_SIZE];
        struct json_object *bucket = json_object_new_object();
        time_text_exact(buckets[i].start_ns, start);
        json_line_string(bucket, "start", start);
        json_line_number(bucket, "count", buckets[i].count);
        (void)json_object_array_add(array, bucket);
    }
    (void)json_object_object_add(line, "histogram", array);
    json_line_print(line);
}

void facet_output_histogram(const char *width, int64_t width_ns,
                            const lahar_histogram_bucket *buckets, size_t count, bool json)
{
    const bool has_bars = isatty(STDOUT_FILENO) == 1;
    uint64_t most = 0;
    if (json) {
        print_histogram_json(width_ns, buckets, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        most = buckets[i].count > most ? buckets[i].count : most;
    }
    (void)printf("events each %s:\n", width);
    for (size_t i = 0; i < count; i++) {
        char start[TIME_TEXT_SIZE];
        time_text_short(buckets[i].start_ns, start);
        (void)printf("  %s %*" PRIu64, start, digits_of(most), buckets[i].count);
        if (has_bars) {
            (void)putchar(' ');
            put_bar(buckets[i].count, most);
        }
        (void)putchar('\n');
    }
}
