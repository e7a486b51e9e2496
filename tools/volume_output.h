/* Showing the volumes of a store. */
#ifndef LAHAR_TOOLS_VOLUME_OUTPUT_H
#define LAHAR_TOOLS_VOLUME_OUTPUT_H

#include <json-c/json.h>

#include "lahar/lahar.h"

/* One line for each, the store's own first. */
void volume_output_text(lahar_store *store);
/* An array of objects, the caller's. */
struct json_object *volume_output_json(lahar_store *store);

#endif
