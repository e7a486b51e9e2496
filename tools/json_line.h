/* One JSON object a line on standard output, for answers other than events. */
#ifndef LAHAR_TOOLS_JSON_LINE_H
#define LAHAR_TOOLS_JSON_LINE_H

#include <json-c/json.h>

/* Prints the object on a line of its own and releases it. */
void json_line_print(struct json_object *object);

/* Short forms of json_object_object_add for the two types that answers are made of. */
void json_line_number(struct json_object *object, const char *key, uint64_t number);
void json_line_string(struct json_object *object, const char *key, const char *string);

#endif
