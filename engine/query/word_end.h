/* Where the words of a query end. */
#ifndef LAHAR_QUERY_WORD_END_H
#define LAHAR_QUERY_WORD_END_H

#include <stdbool.h>
#include <stddef.h>

static inline bool lahar_query_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/* Whether an unquoted word or value ends at byte at; the end of the text ends it too. */
bool lahar_query_ends_word(const char *text, size_t size, size_t at);

/* The closing slash of the regular expression that begins at byte at, 0 when the value there is
 * none. A word that begins and ends with a slash is one; so is all up to the next slash, spaces
 * included, if that ends a word. Paths as /var/log are neither. in_list: a comma ends a value. */
size_t lahar_query_regex_end(const char *text, size_t size, size_t at, bool in_list);

#endif
