/* Where the words of a query end; see word_end.h. */
#include "engine/query/word_end.h"

#include <string.h>

static bool starts_with(const char *text, size_t size, size_t at, const char *word)
{
    const size_t word_size = strlen(word);
    return size - at >= word_size && memcmp(text + at, word, word_size) == 0;
}

bool lahar_query_ends_word(const char *text, size_t size, size_t at)
{
    if (at >= size) {
        return true;
    }
    const char c = text[at];
    return lahar_query_is_space(c) || c == '(' || c == ')' || c == '"' ||
           starts_with(text, size, at, "&&") || starts_with(text, size, at, "||");
}

/* Whether a regular expression that begins at at may end with its slash at end: only 'i' and the
 * end of a word may follow. */
static bool closes_regex(const char *text, size_t size, size_t at, size_t end, bool in_list)
{
    size_t behind = end + 1;
    behind += behind < size && text[behind] == 'i';
    return end > at + 1 &&
           (lahar_query_ends_word(text, size, behind) || (in_list && text[behind] == ','));
}

size_t lahar_query_regex_end(const char *text, size_t size, size_t at, bool in_list)
{
    size_t last = 0;
    bool is_first_word = true;
    if (at >= size || text[at] != '/') {
        return 0;
    }
    for (size_t i = at + 1; i < size; i++) {
        const char c = text[i];
        if (c == '\\') {
            i++;
        } else if (lahar_query_is_space(c)) {
            if (last != 0) {
                break;
            }
            is_first_word = false;
        } else if (c == '/') {
            if (closes_regex(text, size, at, i, in_list)) {
                last = i;
            }
            if (!is_first_word) {
                break;
            }
        }
    }
    return last;
}
