#include "lahar/lahar.h"

#define TEXT_OF(number)       TEXT_OF_VALUE(number)
#define TEXT_OF_VALUE(number) #number

const char *lahar_version(void)
{
    return TEXT_OF(LAHAR_VERSION_MAJOR) "." TEXT_OF(LAHAR_VERSION_MINOR) "." TEXT_OF(
        LAHAR_VERSION_PATCH);
}
