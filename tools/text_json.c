#include "tools/text_json.h"

#include <stdlib.h>
#include <string.h>

static const char REPLACEMENT[] = "\xef\xbf\xbd";

size_t text_json_character(const unsigned char *p, const unsigned char *end)
{
    static const struct {
        unsigned char first, last; /* of the first byte */
        unsigned char low, high;   /* of the second one */
        size_t size;
    } forms[] = {
        {0x00, 0x7f, 0x80, 0xbf, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; p < end && i < sizeof forms / sizeof forms[0]; i++) {
        const size_t size = forms[i].size;
        if (*p < forms[i].first || *p > forms[i].last) {
            continue;
        }
        if ((size_t)(end - p) < size ||
            (size > 1 && (p[1] < forms[i].low || p[1] > forms[i].high))) {
            return 0;
        }
        for (size_t j = 2; j < size; j++) {
            if (p[j] < 0x80 || p[j] > 0xbf) {
                return 0;
            }
        }
        return size;
    }
    return 0;
}

/* A copy that is UTF-8 and ends with a NUL; as a key it holds no other NUL. */
static char *valid_copy(lahar_bytes bytes, bool is_key, size_t *size_out)
{
    const unsigned char *p = bytes.data;
    char *copy = malloc(bytes.size * (sizeof REPLACEMENT - 1) + 1);
    char *to = copy;
    for (size_t left = bytes.size; copy != NULL && left != 0;) {
        size_t size = is_key && *p == '\0' ? 0 : text_json_character(p, p + left);
        memcpy(to, size == 0 ? (const void *)REPLACEMENT : p,
               size == 0 ? sizeof REPLACEMENT - 1 : size);
        to += size == 0 ? sizeof REPLACEMENT - 1 : size;
        size += size == 0;
        p += size;
        left -= size;
    }
    if (copy != NULL) {
        *to = '\0';
        *size_out = (size_t)(to - copy);
    }
    return copy;
}

struct json_object *text_json(lahar_bytes bytes)
{
    size_t size = 0;
    char *copy = bytes.data == NULL ? NULL : valid_copy(bytes, false, &size);
    struct json_object *string = copy == NULL ? NULL : json_object_new_string_len(copy, (int)size);
    free(copy);
    return string;
}

void text_json_add_pair(struct json_object *object, const lahar_pair *pair)
{
    size_t size = 0;
    char *key = valid_copy(pair->key, true, &size);
    if (key != NULL) {
        (void)json_object_object_add(object, key, pair->is_null ? NULL : text_json(pair->value));
    }
    free(key);
}

struct json_object *text_json_pairs(const lahar_pair *pairs, size_t count)
{
    struct json_object *object = json_object_new_object();
    for (size_t i = 0; object != NULL && i < count; i++) {
        text_json_add_pair(object, &pairs[i]);
    }
    return object;
}
