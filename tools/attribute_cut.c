#include "tools/attribute_cut.h"

#include <stdlib.h>
#include <string.h>

#include "tools/text_json.h"

/* Bytes of the first length characters. What is not UTF-8 counts byte by byte. */
static size_t cut_size(lahar_bytes text, uint64_t length)
{
    const unsigned char *p = text.data;
    size_t at = 0;
    if (text.size <= length) {
        return text.size;
    }
    for (; at < text.size && length != 0; length--) {
        const size_t size = text_json_character(p + at, p + text.size);
        at += size == 0 ? 1 : size;
    }
    return at;
}

static bool is_attributes(const lahar_value *value)
{
    return value->type == LAHAR_MAP && !value->is_null &&
           (value->field == LAHAR_FIELD_ATTRIBUTES || value->field == LAHAR_FIELD_PREVIOUS);
}

static bool is_too_long(const lahar_value *value, uint64_t length)
{
    for (size_t i = 0; is_attributes(value) && i < value->as.map.count; i++) {
        if (value->as.map.items[i].value.size > length) {
            return true;
        }
    }
    return false;
}

const lahar_event *attribute_cut_apply(struct attribute_cut *cut, const lahar_event *event)
{
    size_t pair_count = 0;
    bool is_any_long = false;
    for (size_t i = 0; i < event->value_count && cut->length_max != 0; i++) {
        pair_count += is_attributes(&event->values[i]) ? event->values[i].as.map.count : 0;
        is_any_long = is_any_long || is_too_long(&event->values[i], cut->length_max);
    }
    if (!is_any_long) {
        return event;
    }
    lahar_value *values =
        realloc(cut->memory, event->value_count * sizeof *values + pair_count * sizeof(lahar_pair));
    if (values == NULL) {
        return NULL;
    }
    cut->memory = values;
    memcpy(values, event->values, event->value_count * sizeof *values);
    lahar_pair *pairs = (lahar_pair *)(void *)(values + event->value_count);
    for (size_t i = 0; i < event->value_count; i++) {
        const size_t count = is_attributes(&values[i]) ? values[i].as.map.count : 0;
        for (size_t j = 0; j < count; j++) {
            pairs[j] = values[i].as.map.items[j];
            pairs[j].value.size = cut_size(pairs[j].value, cut->length_max);
        }
        if (count != 0) {
            values[i].as.map.items = pairs;
            pairs += count;
        }
    }
    cut->event = *event;
    cut->event.values = values;
    return &cut->event;
}

void attribute_cut_free(struct attribute_cut *cut)
{
    free(cut->memory);
    cut->memory = NULL;
}
