/* Order-preserving mappings of numbers to 64 bits without sign. */
#include <string.h>

#include "index/shard.h"

#define SIGN UINT64_C(0x8000000000000000)

uint64_t lahar_number_from_i64(int64_t v)
{
    return (uint64_t)v ^ SIGN;
}

uint64_t lahar_number_from_u64(uint64_t v)
{
    return v;
}

uint64_t lahar_number_from_f64(double v)
{
    if (v != v) {
        return UINT64_MAX;
    }
    /* Adding zero makes -0.0 the other zero. */
    const double canonical = v + 0.0;
    uint64_t bits = 0;
    memcpy(&bits, &canonical, sizeof bits);
    /* Negative numbers count backwards in their magnitude. */
    return (bits & SIGN) != 0 ? ~bits : bits | SIGN;
}
