/* Patterns; see glob.h. Matching never takes more than the product of both sizes: a '*'
 * goes back only to the last one seen. */
#include "engine/follow/glob.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "io/base/buffer.h"
#include "io/base/error.h"

bool lahar_glob_is_pattern(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (strchr("*?[{\\", text[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* --- one part ----------------------------------------------------------------------- */

/* Matches c against the set behind '['; *used_out: bytes of the set with its ']', 0 when there
 * is none and '[' stands for itself. */
static bool match_set(const char *set, size_t size, char c, size_t *used_out)
{
    const bool is_negated = size != 0 && (set[0] == '!' || set[0] == '^');
    bool is_member = false;
    for (size_t i = is_negated; i < size; i++) {
        if (set[i] == ']' && i > (size_t)is_negated) {
            *used_out = i + 1;
            return is_member != is_negated;
        }
        if (i + 2 < size && set[i + 1] == '-' && set[i + 2] != ']') {
            is_member =
                is_member || ((uint8_t)c >= (uint8_t)set[i] && (uint8_t)c <= (uint8_t)set[i + 2]);
            i += 2;
        } else {
            is_member = is_member || c == set[i];
        }
    }
    *used_out = 0;
    return c == '[';
}

/* Matches one letter of the name; *used_out: bytes of the part. */
static bool match_letter(const char *part, size_t size, char c, size_t *used_out)
{
    *used_out = 1;
    if (part[0] == '?') {
        return true;
    }
    if (part[0] == '[') {
        size_t used = 0;
        const bool is_match = match_set(part + 1, size - 1, c, &used);
        *used_out = used + 1;
        return is_match;
    }
    if (part[0] == '\\' && size > 1) {
        *used_out = 2;
        return c == part[1];
    }
    return c == part[0];
}

bool lahar_glob_match_part(const char *part, size_t part_size, const char *name)
{
    size_t at = 0;
    const char *rest = name;
    size_t star_at = SIZE_MAX;
    const char *star_rest = NULL;
    if (name[0] == '.' && (part_size == 0 || part[0] != '.')) {
        return false;
    }
    while (*rest != '\0') {
        size_t used = 0;
        if (at < part_size && part[at] == '*') {
            star_at = ++at;
            star_rest = rest;
        } else if (at < part_size && match_letter(part + at, part_size - at, *rest, &used)) {
            at += used;
            rest++;
        } else if (star_at != SIZE_MAX) {
            at = star_at;
            rest = ++star_rest;
        } else {
            return false;
        }
    }
    while (at < part_size && part[at] == '*') {
        at++;
    }
    return at == part_size;
}

/* --- paths ---------------------------------------------------------------------------- */

static size_t part_size_of(const char *path)
{
    return strcspn(path, "/");
}

static const char *next_part(const char *path)
{
    path += part_size_of(path);
    return path + (*path == '/');
}

static bool match_one_part(const char *pattern, const char *path)
{
    char name[256];
    const size_t size = part_size_of(path);
    if (size >= sizeof name) {
        return false;
    }
    memcpy(name, path, size);
    name[size] = '\0';
    return lahar_glob_match_part(pattern, part_size_of(pattern), name);
}

/* As for a single part, "**" goes back only to the last one seen. */
bool lahar_glob_match_path(const char *pattern, const char *path)
{
    const char *deep_pattern = NULL;
    const char *deep_path = NULL;
    while (*path != '\0') {
        if (part_size_of(pattern) == 2 && memcmp(pattern, "**", 2) == 0) {
            pattern = next_part(pattern);
            deep_pattern = pattern;
            deep_path = path;
        } else if (*pattern != '\0' && match_one_part(pattern, path)) {
            pattern = next_part(pattern);
            path = next_part(path);
        } else if (deep_pattern != NULL && *deep_path != '.') {
            pattern = deep_pattern;
            deep_path = next_part(deep_path);
            path = deep_path;
        } else {
            return false;
        }
    }
    return *pattern == '\0';
}

/* --- alternatives ---------------------------------------------------------------------- */

/* The '}' that closes the '{' at text; NULL when there is none. */
static const char *find_close(const char *text)
{
    int depth = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\\' && text[1] != '\0') {
            text++;
        } else if (*text == '{') {
            depth++;
        } else if (*text == '}' && --depth == 0) {
            return text;
        }
    }
    return NULL;
}

/* A list of patterns that may still have alternatives in them. */
struct expansion {
    char **items; /* owned, as the strings */
    size_t count;
    size_t capacity;
    const lahar_allocator *allocator;
};

static lahar_status put_joined(struct expansion *list, const char *head, size_t head_size,
                               const char *middle, size_t middle_size, const char *tail,
                               lahar_error *error)
{
    const size_t tail_size = strlen(tail);
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
        char **items = lahar_reallocate(list->allocator, list->items, capacity * sizeof *items);
        if (items == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a pattern");
        }
        list->items = items;
        list->capacity = capacity;
    }
    if (list->count == LAHAR_GLOB_COUNT_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "the pattern has more than %d alternatives",
                          (int)LAHAR_GLOB_COUNT_MAX);
    }
    char *item = lahar_allocate(list->allocator, head_size + middle_size + tail_size + 1);
    if (item == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a pattern");
    }
    memcpy(item, head, head_size);
    memcpy(item + head_size, middle, middle_size);
    memcpy(item + head_size + middle_size, tail, tail_size + 1);
    list->items[list->count++] = item;
    return LAHAR_OK;
}

/* "N..M" in text; at most 9 digits each. */
static bool parse_range(const char *text, size_t size, unsigned *from, unsigned *to, int *width)
{
    unsigned numbers[2] = {0, 0};
    size_t at = 0;
    *width = 0;
    for (int n = 0; n < 2; n++) {
        const size_t start = at;
        while (at < size && text[at] >= '0' && text[at] <= '9' && at - start < 9) {
            numbers[n] = numbers[n] * 10 + (unsigned)(text[at++] - '0');
        }
        if (at == start) {
            return false;
        }
        if (text[start] == '0' && at - start > 1) {
            *width = (int)(at - start) > *width ? (int)(at - start) : *width;
        }
        if (n == 0 && (size - at < 2 || memcmp(text + at, "..", 2) != 0)) {
            return false;
        }
        at += n == 0 ? 2 : 0;
    }
    *from = numbers[0];
    *to = numbers[1];
    return at == size;
}

static lahar_status expand_range(struct expansion *list, const char *item, const char *open,
                                 const char *close, const unsigned range[2], int width,
                                 lahar_error *error)
{
    const bool is_rising = range[0] <= range[1];
    for (unsigned value = range[0];; value = is_rising ? value + 1 : value - 1) {
        char number[16];
        const int size = snprintf(number, sizeof number, "%0*u", width, value);
        LAHAR_TRY(
            put_joined(list, item, (size_t)(open - item), number, (size_t)size, close + 1, error));
        if (value == range[1]) {
            return LAHAR_OK;
        }
    }
}

/* Replaces the alternatives at open by one item for each. */
static lahar_status expand_one(struct expansion *list, const char *item, const char *open,
                               const char *close, lahar_error *error)
{
    unsigned range[2];
    int width;
    const char *start = open + 1;
    if (parse_range(start, (size_t)(close - start), &range[0], &range[1], &width)) {
        return expand_range(list, item, open, close, range, width, error);
    }
    int depth = 0;
    for (const char *p = start; p <= close; p++) {
        if (*p == '\\' && p + 1 < close) {
            p++;
        } else if (p == close || (*p == ',' && depth == 0)) {
            LAHAR_TRY(put_joined(list, item, (size_t)(open - item), start, (size_t)(p - start),
                                 close + 1, error));
            start = p + 1;
        } else if (*p == '{') {
            depth++;
        } else if (*p == '}') {
            depth--;
        }
    }
    return LAHAR_OK;
}

static const char *find_open(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\' && text[1] != '\0') {
            text++;
        } else if (*text == '{') {
            return text;
        }
    }
    return NULL;
}

lahar_status lahar_glob_create(struct lahar_glob *glob, const lahar_allocator *allocator,
                               const char *text, lahar_error *error)
{
    struct expansion list = {.allocator = allocator};
    *glob = (struct lahar_glob){.allocator = allocator};
    lahar_status status = put_joined(&list, text, strlen(text), "", 0, "", error);
    for (size_t i = 0; status == LAHAR_OK && i < list.count;) {
        char *item = list.items[i];
        const char *open = find_open(item);
        const char *close = open == NULL ? NULL : find_close(open);
        if (open != NULL && close == NULL) {
            status = lahar_fail(error, LAHAR_INVALID, "pattern %s: a '{' is not closed", text);
            break;
        }
        if (open == NULL) {
            i++;
            continue;
        }
        status = expand_one(&list, item, open, close, error);
        /* The last one takes the place of the one that was written out. */
        lahar_release(allocator, item);
        list.items[i] = list.items[--list.count];
    }
    *glob = (struct lahar_glob){list.items, list.count, allocator};
    if (status != LAHAR_OK) {
        lahar_glob_destroy(glob);
    }
    return status;
}

void lahar_glob_destroy(struct lahar_glob *glob)
{
    for (size_t i = 0; i < glob->count; i++) {
        lahar_release(glob->allocator, glob->patterns[i]);
    }
    lahar_release(glob->allocator, glob->patterns);
    glob->patterns = NULL;
    glob->count = 0;
}
