/* Uuids in their canonical text form: 36 bytes, lower case, 8-4-4-4-12. */
#ifndef LAHAR_SEGMENT_UUID_TEXT_H
#define LAHAR_SEGMENT_UUID_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LAHAR_UUID_TEXT_SIZE = 36
};

/* False when the text is anything but what lahar_uuid_text_print would write. */
bool lahar_uuid_text_parse(const uint8_t text[LAHAR_UUID_TEXT_SIZE], uint8_t uuid_out[16]);
void lahar_uuid_text_print(const uint8_t uuid[16], uint8_t text_out[LAHAR_UUID_TEXT_SIZE]);

#endif
