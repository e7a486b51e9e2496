/* A merge of shards from inside, for the files that implement it. */
#ifndef LAHAR_INDEX_MERGE_H
#define LAHAR_INDEX_MERGE_H

#include "index/list_read.h"
#include "index/shard_directory.h"
#include "index/shard_merge.h"
#include "index/shard_reader.h"

#define LAHAR_MERGE_NO_FIELD UINT32_MAX

struct lahar_merge_input {
    struct lahar_shard *shard;
    uint32_t first_document; /* of the result */
    uint32_t first_group;
    struct lahar_docset documents; /* scratch, empty between uses */
    struct lahar_docset groups;
};

/* The documents that one input adds to a list. */
struct lahar_merge_part {
    uint32_t input;
    uint64_t reference; /* of that input */
};

/* What lists of the inputs have become, so that those that were shared are again. Full tables take
 * no more and cost sharing alone. */
struct lahar_merge_memo {
    struct lahar_merge_memo_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t used_count;
    struct lahar_buffer parts; /* of lists that were made of several */
};

struct lahar_merge_memo_slot {
    uint64_t key; /* input << 56 | offset of its list, or a hash of several parts; 0: free */
    uint64_t reference;
    uint64_t parts; /* 1 + where they are in the buffer; 0: the key says all */
};

struct lahar_merge {
    const struct lahar_shard_merge *options;
    const lahar_allocator *allocator;
    struct lahar_merge_input inputs[LAHAR_SHARD_MERGE_MAX];
    uint32_t input_count;
    uint32_t document_count;
    uint32_t group_count; /* 0 unless every input has groups */

    struct lahar_buffer out; /* of the pages, what the sink has not taken yet */
    uint64_t taken_bytes;
    struct lahar_buffer checksums;
    struct lahar_list_writer lists;

    struct lahar_merge_memo memo;
    uint32_t *group_lists; /* by group of the result: where the list of it alone is, or 0 */
    struct lahar_number_list numbers; /* scratch of one list */

    struct lahar_buffer blocks; /* dictionary blocks of the field at hand */
    struct lahar_buffer tops;   /* of all fields */

    struct lahar_filter_writer filter;
    struct lahar_directory directory;
    uint32_t *fields; /* by field of the result and input: its number there, or NO_FIELD */
};

static inline uint32_t lahar_merge_field(const struct lahar_merge *merge, size_t field,
                                         uint32_t input)
{
    return merge->fields[field * merge->input_count + input];
}

/* Where the next byte of the pages goes, from the start of the shard. */
static inline uint64_t lahar_merge_place(const struct lahar_merge *merge)
{
    return merge->taken_bytes + merge->out.size;
}

/* Hands whole pages to the sink once they are worth it; asks whether to go on. Not while a list
 * is being written. */
lahar_status lahar_merge_drain(struct lahar_merge *merge, lahar_error *error);
/* Hands out everything. */
lahar_status lahar_merge_flush(struct lahar_merge *merge, lahar_error *error);

/* The list of the documents of all parts, in order of input, at least one part. */
lahar_status lahar_merge_list(struct lahar_merge *merge, const struct lahar_merge_part *parts,
                              size_t count, uint64_t *reference_out, lahar_error *error);

lahar_status lahar_merge_groups(struct lahar_merge *merge, lahar_error *error);
lahar_status lahar_merge_dictionary(struct lahar_merge *merge, size_t field, lahar_error *error);
lahar_status lahar_merge_uuids(struct lahar_merge *merge, size_t field, lahar_error *error);
/* Times and all numbers. */
lahar_status lahar_merge_columns(struct lahar_merge *merge, lahar_error *error);

#endif
