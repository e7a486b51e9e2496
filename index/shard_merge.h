/* Merging shards: one shard in place of several adjacent ones of a stream, made of their
 * dictionaries, lists and columns without looking at an event again.
 *
 * Ordinals of an input are moved up by the number of documents before it, and that is nearly
 * all that happens: a list that stands in one input alone keeps its packed gaps. Equal lists of an
 * input stay shared. Groups of the inputs follow one another, so an object whose events lie in two
 * inputs becomes two groups, which changes no answer.
 *
 * The result goes out in pieces as it is made; memory is taken for the terms of one field, for
 * what lists have become (bounded) and for the longest list. Inputs are bytes from disk: damage is
 * LAHAR_CORRUPT, and what was written is to be thrown away then. */
#ifndef LAHAR_INDEX_SHARD_MERGE_H
#define LAHAR_INDEX_SHARD_MERGE_H

#include "index/shard.h"

/* Takes the next bytes of the shard. */
struct lahar_shard_sink {
    lahar_status (*write)(void *context, const void *data, size_t size, lahar_error *error);
    void *context;
};

struct lahar_shard_merge {
    struct lahar_shard *const *inputs; /* ids rise from one to the next */
    size_t input_count;                /* 1 .. LAHAR_SHARD_MERGE_MAX */
    struct lahar_shard_sink sink;
    /* Asked now and then; true ends the merge with LAHAR_CANCELLED. NULL: never. */
    bool (*is_cancelled)(void *context);
    void *cancel_context;
    const lahar_allocator *allocator;
};

enum {
    LAHAR_SHARD_MERGE_MAX = 64
};

/* LAHAR_TOO_BIG when the documents are more than a shard holds, LAHAR_INVALID when ids do not
 * rise. */
lahar_status lahar_shard_merge(const struct lahar_shard_merge *merge, lahar_error *error);

#endif
