/* Finding and writing groups. A block of the table holds 64 groups: their sizes, and their
 * documents less the first document of the block, since the events of an object come close
 * together. */
#include "index/groups.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/shard_format.h"

bool lahar_group_map_init(struct lahar_group_map *map, const uint32_t *keys,
                          uint32_t document_count, uint32_t key_count,
                          const lahar_allocator *allocator)
{
    *map = (struct lahar_group_map){.allocator = allocator};
    /* Group of a key + 1, in stamps until that is needed for lists. */
    map->stamps = lahar_allocate_zeroed(allocator, (size_t)key_count + 1, sizeof *map->stamps);
    map->group_of = lahar_allocate_zeroed(allocator, document_count, sizeof *map->group_of);
    map->sizes = lahar_allocate_zeroed(allocator, (size_t)key_count + 1, sizeof *map->sizes);
    map->touched = lahar_allocate_zeroed(allocator, (size_t)key_count + 1, sizeof *map->touched);
    if (map->stamps == NULL || map->group_of == NULL || map->sizes == NULL ||
        map->touched == NULL) {
        return false;
    }
    for (uint32_t document = 0; document < document_count; document++) {
        uint32_t *group = &map->stamps[keys[document]];
        if (*group == 0) {
            *group = ++map->group_count;
        }
        map->group_of[document] = *group - 1;
        map->sizes[*group - 1]++;
    }
    memset(map->stamps, 0, ((size_t)key_count + 1) * sizeof *map->stamps);
    return true;
}

void lahar_group_map_deinit(struct lahar_group_map *map)
{
    if (map->allocator != NULL) {
        lahar_release(map->allocator, map->group_of);
        lahar_release(map->allocator, map->sizes);
        lahar_release(map->allocator, map->stamps);
        lahar_release(map->allocator, map->touched);
    }
    *map = (struct lahar_group_map){.group_count = 0};
}

size_t lahar_group_map_cover(struct lahar_group_map *map, const uint32_t *documents, size_t count)
{
    if (map->group_count == 0) {
        return 0;
    }
    const uint32_t stamp = ++map->stamp;
    size_t touched = 0;
    size_t covered = 0;
    /* A group that is not whole makes the sum too large sooner or later. */
    for (size_t i = 0; i < count && covered <= count; i++) {
        const uint32_t group = map->group_of[documents[i]];
        if (map->stamps[group] != stamp) {
            map->stamps[group] = stamp;
            map->touched[touched++] = group;
            covered += map->sizes[group];
        }
    }
    return covered == count ? touched : 0;
}

/* Documents in order of group: those of group g begin at starts[g]. */
static bool order_documents(const struct lahar_group_map *map, uint32_t document_count,
                            uint32_t *starts, uint32_t *documents)
{
    uint32_t start = 0;
    for (uint32_t group = 0; group < map->group_count; group++) {
        starts[group] = start;
        start += map->sizes[group];
    }
    for (uint32_t document = 0; document < document_count; document++) {
        documents[starts[map->group_of[document]]++] = document;
    }
    return start == document_count;
}

void lahar_group_block_put(struct lahar_buffer *out, const uint32_t *sizes, size_t count,
                           const uint32_t *documents)
{
    uint32_t all_sizes = 0;
    uint32_t total = 0;
    for (size_t i = 0; i < count; i++) {
        all_sizes |= sizes[i] - 1;
        total += sizes[i];
    }
    const uint32_t base = documents[0];
    uint32_t all_documents = 0;
    for (uint32_t i = 0; i < total; i++) {
        all_documents |= documents[i] - base;
    }
    const unsigned size_width = lahar_bit_width(all_sizes);
    const unsigned document_width = lahar_bit_width(all_documents);
    lahar_buffer_put_u32(out, base);
    lahar_buffer_put_u8(out, (uint8_t)size_width);
    lahar_buffer_put_u8(out, (uint8_t)document_width);
    struct lahar_bit_writer bits = {.out = out};
    for (size_t i = 0; i < count; i++) {
        lahar_bit_write(&bits, sizes[i] - 1, size_width);
    }
    lahar_bit_finish(&bits);
    for (uint32_t i = 0; i < total; i++) {
        lahar_bit_write(&bits, documents[i] - base, document_width);
    }
    lahar_bit_finish(&bits);
}

uint64_t lahar_group_table_write(struct lahar_buffer *out, size_t base,
                                 const struct lahar_group_map *map, uint32_t document_count)
{
    struct lahar_buffer directory;
    lahar_buffer_init(&directory, out->allocator);
    uint32_t *starts =
        lahar_allocate_zeroed(map->allocator, (size_t)map->group_count + 1, sizeof *starts);
    uint32_t *documents =
        lahar_allocate_zeroed(map->allocator, (size_t)document_count + 1, sizeof *documents);
    if (starts == NULL || documents == NULL ||
        !order_documents(map, document_count, starts, documents)) {
        out->has_failed = true;
        goto cleanup;
    }
    const uint32_t *next = documents;
    for (uint32_t group = 0; group < map->group_count; group += LAHAR_SHARD_GROUP_BLOCK) {
        const uint32_t left = map->group_count - group;
        const size_t count = left < LAHAR_SHARD_GROUP_BLOCK ? left : LAHAR_SHARD_GROUP_BLOCK;
        lahar_buffer_put_u64(&directory, out->size - base);
        lahar_group_block_put(out, map->sizes + group, count, next);
        for (size_t i = 0; i < count; i++) {
            next += map->sizes[group + i];
        }
    }
    lahar_buffer_put_u64(&directory, out->size - base);
cleanup:;
    const uint64_t offset = out->size - base;
    lahar_buffer_put(out, directory.data, directory.size);
    out->has_failed = out->has_failed || directory.has_failed;
    lahar_buffer_deinit(&directory);
    lahar_release(map->allocator, starts);
    lahar_release(map->allocator, documents);
    return offset;
}
