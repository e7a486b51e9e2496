/* See shard_fixture.h. The places of checksums are those of docs/format/shard.md. */
#include "shard_fixture.h"

#include <string.h>

#include "io/base/crc32c.h"
#include "io/base/error.h"

static lahar_status fetch(void *context, uint64_t offset, void *data, size_t size,
                          lahar_error *error)
{
    struct memory_source *memory = context;
    memory->fetch_count++;
    if (memory->fetch_count == memory->fail_at) {
        return lahar_fail(error, LAHAR_IO, "the device failed");
    }
    if (offset > memory->size || size > memory->size - offset) {
        return lahar_fail(error, LAHAR_IO, "read beyond the end");
    }
    memory->fetched_bytes += size;
    memory->fetched_at = offset;
    memcpy(data, memory->data + offset, size);
    return LAHAR_OK;
}

static void announce(void *context, uint64_t offset, uint64_t size)
{
    struct memory_source *memory = context;
    memory->announce_count++;
    memory->announced_at = offset;
    (void)size;
}

struct lahar_shard_source memory_source(struct memory_source *memory)
{
    return (struct lahar_shard_source){
        .fetch = fetch, .announce = announce, .context = memory, .size = memory->size};
}

uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return random_next(state) % limit;
}

void reseal(uint8_t *shard, size_t size)
{
    if (size < 96) {
        return;
    }
    uint8_t *trailer = shard + size - 64;
    const uint64_t body = lahar_load_u64(trailer + 16);
    const uint64_t directory_size = lahar_load_u64(trailer + 24);
    const uint64_t pages = (body + 16383) / 16384;
    if (body <= size && directory_size <= size - body && pages * 4 <= directory_size) {
        uint8_t *checksums = shard + body + directory_size - pages * 4;
        for (uint64_t page = 0; page < pages; page++) {
            const uint64_t left = body - page * 16384;
            const uint32_t crc = lahar_crc32c(lahar_crc32c(0, &page, 8), shard + page * 16384,
                                              left < 16384 ? (size_t)left : 16384);
            lahar_store_u32(checksums + page * 4, crc);
        }
        lahar_store_u32(trailer + 44, lahar_crc32c(0, shard + body, (size_t)directory_size));
    }
    lahar_store_u32(trailer + 60, lahar_crc32c(0, trailer, 60));
}
