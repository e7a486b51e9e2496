/* Bytes of events as JSON: what is not UTF-8 becomes U+FFFD, so that the output always parses. */
#ifndef LAHAR_TOOLS_TEXT_JSON_H
#define LAHAR_TOOLS_TEXT_JSON_H

#include <json-c/json.h>

#include "lahar/lahar.h"

/* Bytes of the UTF-8 character that begins at p, before end; 0 where none does. */
size_t text_json_character(const unsigned char *p, const unsigned char *end);

/* A string; NULL (which json-c prints as null) for data NULL and when memory is short. */
struct json_object *text_json(lahar_bytes bytes);
/* An object with a member each; NULL when memory is short. */
struct json_object *text_json_pairs(const lahar_pair *pairs, size_t count);
/* Adds one to an object that text_json_pairs has made. */
void text_json_add_pair(struct json_object *object, const lahar_pair *pair);

#endif
