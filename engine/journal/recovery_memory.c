/* Ownership of what a recovery found. */
#include "engine/journal/recovery_memory.h"

#include "io/base/error.h"

void lahar_recovery_memory_release(struct lahar_recovery_memory *memory,
                                   const lahar_allocator *allocator)
{
    if (memory == NULL) {
        return;
    }
    while (memory->regions != NULL) {
        struct lahar_recovered_region *region = memory->regions;
        memory->regions = region->next;
        lahar_release(allocator, region);
    }
    lahar_release(allocator, memory->files);
    lahar_release(allocator, memory->frames);
    lahar_release(allocator, memory->batches);
    lahar_release(allocator, memory->offsets);
    lahar_release(allocator, memory->lost);
    lahar_release(allocator, memory);
}

lahar_status lahar_recovery_memory_lose(struct lahar_recovery_memory *memory, uint64_t first_id,
                                        uint64_t end_id, const lahar_allocator *allocator,
                                        lahar_error *error)
{
    if (memory->lost_count == memory->lost_capacity) {
        const size_t capacity = memory->lost_capacity == 0 ? 8 : 2 * memory->lost_capacity;
        struct lahar_lost_range *larger =
            lahar_reallocate(allocator, memory->lost, capacity * sizeof *larger);
        if (larger == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu lost ranges", capacity);
        }
        memory->lost = larger;
        memory->lost_capacity = capacity;
    }
    memory->lost[memory->lost_count++] = (struct lahar_lost_range){first_id, end_id};
    return LAHAR_OK;
}

uint64_t lahar_recovery_memory_bytes(const struct lahar_recovery_memory *memory)
{
    return memory->region_bytes + memory->frame_capacity * sizeof *memory->frames +
           memory->file_capacity * sizeof *memory->files +
           memory->frame_count * sizeof *memory->batches;
}

void lahar_recovery_memory_offsets(const struct lahar_recovery_memory *memory, size_t index,
                                   const uint8_t **offsets_out, uint32_t *size_out)
{
    *offsets_out = memory->frames[index].frame.offsets;
    *size_out = memory->frames[index].frame.offsets_size;
}
