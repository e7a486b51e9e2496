/* What the tests on real files share: the table of queries and its translation. */
#ifndef LAHAR_TESTS_PUBLIC_DATA_H
#define LAHAR_TESTS_PUBLIC_DATA_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lahar/lahar.h"

enum {
    PUBLIC_PATH_SIZE = 512,
    PUBLIC_EXPRESSION_SIZE = 4096
};

extern unsigned public_passed;
extern unsigned public_failed;

/* Counts, and says what has failed. */
bool public_expect(bool condition, const char *what, const char *detail);

/* The folder "public" of $LAHAR_TEST_DATA, else of the directory given at build time. */
const char *public_root(void);

/* The whole file, terminated, to be freed; NULL when it cannot be read. */
char *public_read(const char *path, size_t *size_out);

/* Appends to an expression; text in quotation marks. */
void public_put(char *out, const char *text);
void public_put_quoted(char *out, const char *text);

/* Where the words and fields of one file are in a stream. */
struct public_names {
    const char *line; /* the field that holds a whole line */
    /* Appends the name of a field of the table; NULL: fields and times are not asked for. */
    void (*put_field)(const void *context, const char *field, char *out);
    const void *context;
};

/* Turns a query of the table into an expression; false for kinds that names does not cover. */
bool public_translate(struct json_object *query, const struct public_names *names, char *out);

/* Exact total of a query in one stream, checked against the number of its events. */
bool public_count(lahar_store *store, const char *stream, const char *expression,
                  uint64_t *total_out, lahar_error *error);

#endif
