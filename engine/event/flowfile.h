/* What two values of a provenance event mean together: its attributes as they took effect, and
 * the FlowFile of the system that it came from. */
#ifndef LAHAR_EVENT_FLOWFILE_H
#define LAHAR_EVENT_FLOWFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "lahar/event.h"

/* Whether a map, which may be NULL, has a pair of the key, null or not. hint: where the pair
 * is looked for first. */
bool lahar_map_has_key(const lahar_value *map, lahar_bytes key, size_t hint);

/* Whether the pair at index of the previous attributes is still in effect: neither removed
 * nor given again by the updated ones, which may be NULL. */
bool lahar_previous_is_effective(const lahar_value *previous, size_t index,
                                 const lahar_value *updated);

/* Whether the pair at index of the updated attributes differs from what was before; previous may
 * be NULL. Removing what was not there is no difference. */
bool lahar_updated_differs(const lahar_value *updated, size_t index, const lahar_value *previous);

/* The uuid behind the last ':' of a source system's identifier, as in "urn:nifi:<uuid>"; also
 * one that stands alone. */
bool lahar_source_system_uuid(lahar_bytes identifier, lahar_uuid *uuid_out);

#endif
