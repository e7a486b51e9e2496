/* The table of groups of a merged shard: the groups of all inputs, one after another. */
#include "index/merge.h"
#include "index/vector.h"
#include "io/base/error.h"

/* A block of groups under construction. */
struct gather {
    struct lahar_merge *merge;
    uint32_t offset; /* of the input's documents */
    uint32_t sizes[LAHAR_SHARD_GROUP_BLOCK];
    size_t group_count;
    uint32_t *documents;
    size_t document_count;
    size_t capacity;
    uint64_t total; /* documents of all blocks */
    struct lahar_buffer directory;
};

static lahar_status put_block(struct gather *gather, lahar_error *error)
{
    struct lahar_merge *merge = gather->merge;
    if (gather->group_count == 0) {
        return LAHAR_OK;
    }
    lahar_buffer_put_u64(&gather->directory, lahar_merge_place(merge));
    lahar_group_block_put(&merge->out, gather->sizes, gather->group_count, gather->documents);
    gather->total += gather->document_count;
    gather->group_count = 0;
    gather->document_count = 0;
    return lahar_merge_drain(merge, error);
}

static lahar_status take_group(void *context, uint32_t group, const uint32_t *documents,
                               uint32_t count, lahar_error *error)
{
    struct gather *gather = context;
    (void)group;
    if (gather->document_count + count > gather->capacity) {
        uint32_t *grown =
            lahar_vector_grow(gather->merge->allocator, gather->documents, &gather->capacity,
                              gather->document_count + count, sizeof *gather->documents);
        if (grown == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for groups");
        }
        gather->documents = grown;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t document = documents[i] + gather->offset;
        gather->documents[gather->document_count + i] = document;
        /* Documents are packed less the first of the block. */
        if (document < gather->documents[0]) {
            return lahar_fail(error, LAHAR_CORRUPT, "groups of an index shard are out of order");
        }
    }
    gather->document_count += count;
    gather->sizes[gather->group_count++] = count;
    return gather->group_count == LAHAR_SHARD_GROUP_BLOCK ? put_block(gather, error) : LAHAR_OK;
}

lahar_status lahar_merge_groups(struct lahar_merge *merge, lahar_error *error)
{
    if (merge->group_count == 0) {
        return LAHAR_OK;
    }
    struct gather gather = {.merge = merge};
    lahar_buffer_init(&gather.directory, merge->allocator);
    lahar_status status = LAHAR_OK;
    for (uint32_t i = 0; i < merge->input_count && status == LAHAR_OK; i++) {
        struct lahar_shard *shard = merge->inputs[i].shard;
        gather.offset = merge->inputs[i].first_document;
        status =
            lahar_group_table_visit(&shard->pages, &shard->directory.groups,
                                    shard->directory.document_count, take_group, &gather, error);
    }
    if (status == LAHAR_OK) {
        status = put_block(&gather, error);
    }
    if (status == LAHAR_OK && gather.total != merge->document_count) {
        status =
            lahar_fail(error, LAHAR_CORRUPT, "groups of an index shard do not part its events");
    }
    if (status == LAHAR_OK) {
        lahar_buffer_put_u64(&gather.directory, lahar_merge_place(merge));
        merge->directory.groups.directory = lahar_merge_place(merge);
        merge->directory.groups.group_count = merge->group_count;
        lahar_buffer_put(&merge->out, gather.directory.data, gather.directory.size);
        if (gather.directory.has_failed) {
            status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for groups");
        }
    }
    lahar_release(merge->allocator, gather.documents);
    lahar_buffer_deinit(&gather.directory);
    return status;
}
