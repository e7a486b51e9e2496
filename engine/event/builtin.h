/* The fields that a stream has from its schema alone. */
#ifndef LAHAR_EVENT_BUILTIN_H
#define LAHAR_EVENT_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

#include "lahar/event.h"
#include "lahar/store.h"

struct lahar_builtin_field {
    const char *name;
    lahar_type type;
    bool is_indexed;
    bool is_hidden;
};

enum {
    LAHAR_BUILTIN_FIXED_COUNT = LAHAR_FIELD_PREVIOUS + 1
};

/* The names of enum lahar_field, in its order. */
extern const struct lahar_builtin_field lahar_builtin_fixed[LAHAR_BUILTIN_FIXED_COUNT];

/* NULL for an unknown schema. */
const struct lahar_builtin_field *lahar_builtin_fields(lahar_schema schema, size_t *count_out);

#endif
