/* FlowFiles are found by 16 bytes. Their names are uuids, mostly; any other text stands for a
 * uuid that is derived from it, the same in every store. */
#ifndef LAHAR_PROVENANCE_IDENTITY_H
#define LAHAR_PROVENANCE_IDENTITY_H

#include <stdbool.h>

#include "lahar/event.h"

enum {
    LAHAR_PROV_UUID_TEXT_SIZE = 36
};

/* True when text is the canonical form of the uuid and need not be kept. */
bool lahar_prov_identify(lahar_bytes text, lahar_uuid *uuid_out);

/* A uuid of version 8 (RFC 9562) made from bytes by a hash. */
void lahar_prov_derive_uuid(const void *data, size_t size, lahar_uuid *uuid_out);
/* A random one, version 4. */
void lahar_prov_random_uuid(lahar_uuid *uuid_out);

void lahar_prov_uuid_format(const lahar_uuid *uuid, char out[LAHAR_PROV_UUID_TEXT_SIZE]);

#endif
