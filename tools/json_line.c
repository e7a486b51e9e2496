#include "tools/json_line.h"

#include <stdio.h>

void json_line_print(struct json_object *object)
{
    const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
                                                                  JSON_C_TO_STRING_NOSLASHESCAPE);
    (void)puts(text == NULL ? "{}" : text);
    (void)json_object_put(object);
}

void json_line_number(struct json_object *object, const char *key, uint64_t number)
{
    (void)json_object_object_add(object, key, json_object_new_uint64(number));
}

void json_line_string(struct json_object *object, const char *key, const char *string)
{
    (void)json_object_object_add(object, key, json_object_new_string(string));
}
