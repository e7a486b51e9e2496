#include "engine/provenance/identity.h"

#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "engine/query/literal.h"

static void set_version(lahar_uuid *uuid, uint8_t version)
{
    uuid->bytes[6] = (uint8_t)((uuid->bytes[6] & 0x0f) | version << 4);
    uuid->bytes[8] = (uint8_t)((uuid->bytes[8] & 0x3f) | 0x80);
}

void lahar_prov_derive_uuid(const void *data, size_t size, lahar_uuid *uuid_out)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
    memcpy(uuid_out->bytes, canonical.digest, sizeof uuid_out->bytes);
    set_version(uuid_out, 8);
}

void lahar_prov_random_uuid(lahar_uuid *uuid_out)
{
    size_t done = 0;
    while (done < sizeof uuid_out->bytes) {
        const ssize_t got = getrandom(uuid_out->bytes + done, sizeof uuid_out->bytes - done, 0);
        if (got > 0) {
            done += (size_t)got;
        }
    }
    set_version(uuid_out, 4);
}

bool lahar_prov_identify(lahar_bytes text, lahar_uuid *uuid_out)
{
    char canonical[LAHAR_PROV_UUID_TEXT_SIZE];
    if (!lahar_query_uuid_parse(text.data, text.size, uuid_out)) {
        lahar_prov_derive_uuid(text.data, text.size, uuid_out);
        return false;
    }
    lahar_prov_uuid_format(uuid_out, canonical);
    return text.size == sizeof canonical && memcmp(text.data, canonical, sizeof canonical) == 0;
}

void lahar_prov_uuid_format(const lahar_uuid *uuid, char out[LAHAR_PROV_UUID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            out[at++] = '-';
        }
        out[at++] = digits[uuid->bytes[i] >> 4];
        out[at++] = digits[uuid->bytes[i] & 15];
    }
}
