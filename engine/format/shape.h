/* From an event and its shape back to the JSON document; document.h has the layout. */
#ifndef LAHAR_FORMAT_SHAPE_H
#define LAHAR_FORMAT_SHAPE_H

#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

/* Appends the document to out. shape is without its first letter. With make_valid
 * the document is valid UTF-8 without lone surrogates. arena and path are
 * scratch; used, which may be NULL, gets the declared fields (u32) that stand in the document.
 * LAHAR_CORRUPT when the shape is damaged or asks for values that the event
 * does not have; LAHAR_NO_MEMORY. */
lahar_status lahar_shape_write(const lahar_event *event, lahar_bytes shape, bool make_valid,
                               struct lahar_arena *arena, struct lahar_buffer *path,
                               struct lahar_buffer *used, struct lahar_buffer *out,
                               lahar_error *error);

#endif
