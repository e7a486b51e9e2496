/* How many processors there are for this process. */
#include <sched.h>
#include <unistd.h>

#include "io/io.h"

uint32_t lahar_io_processor_count(void)
{
    cpu_set_t set;
    /* A process pinned to two processors of many wants two threads. */
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        const int allowed = CPU_COUNT(&set);
        return allowed < 1 ? 1 : (uint32_t)allowed;
    }
    /* More processors than the set has room for. */
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : (uint32_t)online;
}
