/* Ownership of what a recovery found. */
#include "engine/journal/recovery_memory.h"

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
    lahar_release(allocator, memory);
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
