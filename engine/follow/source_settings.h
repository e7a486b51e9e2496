/* The definition of a source: its defaults, its checks, its form on disk. */
#ifndef LAHAR_FOLLOW_SOURCE_SETTINGS_H
#define LAHAR_FOLLOW_SOURCE_SETTINGS_H

#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "lahar/follow.h"

/* A stored definition. Its strings are in the arena that it was decoded with. */
struct lahar_source_definition {
    lahar_source_spec spec; /* as given: a 0 that stands for a default stays 0 */
    uint64_t source;        /* number, never used again */
    bool is_paused;
};

/* Every setting within its range, names present. */
lahar_status lahar_source_spec_check(const lahar_source_spec *spec, lahar_error *error);

/* Puts the defaults in place of what is 0 or NULL for "default". */
void lahar_source_spec_resolve(lahar_source_spec *spec);

/* Whether a record may be several lines that a pattern joins. */
bool lahar_source_joins_lines(const lahar_source_spec *spec);

void lahar_source_definition_encode(const struct lahar_source_definition *definition,
                                    struct lahar_buffer *buffer);
/* Any bytes are safe: LAHAR_CORRUPT; LAHAR_UNSUPPORTED: a newer form. name is copied. */
lahar_status lahar_source_definition_decode(lahar_bytes name, lahar_bytes value,
                                            struct lahar_arena *arena,
                                            struct lahar_source_definition *definition_out,
                                            lahar_error *error);

#endif
