/* A query against the index shard of one event file, or of one slice of events in memory. */
#ifndef LAHAR_QUERY_SHARD_QUERY_H
#define LAHAR_QUERY_SHARD_QUERY_H

#include "engine/query/bounds.h"
#include "engine/query/match.h"
#include "engine/segment/segment.h"
#include "index/shard.h"

struct lahar_query;
struct lahar_query_worker;

struct lahar_shard_query {
    struct lahar_shard *shard;
    const struct lahar_segment *segment; /* ordinals of the shard are its rows; NULL: in memory */
    const struct lahar_stream *stream;
    struct lahar_matcher *matcher;
    uint32_t first; /* documents first .. end - 1 are asked about, what is said of others is void */
    uint32_t end;
    const lahar_allocator *allocator;
    struct lahar_query *query;         /* that may have to stop; NULL: none */
    struct lahar_query_worker *worker; /* who asks; NULL: a thread of no job */
};

/* Attributes of all maps of a stream but the previous ones share their names in a shard: whether
 * the stream has several such maps. */
bool lahar_keys_are_mixed(const struct lahar_stream *stream);

/* How many documents match, where the shard knows that without looking at any: one term that is
 * all that the query asks of this file. LAHAR_UNSUPPORTED: it does not; sets no error. */
lahar_status lahar_shard_query_count(const struct lahar_shard_query *query,
                                     const struct lahar_query_node *node, uint64_t *count_out,
                                     lahar_error *error);

/* An empty set of the documents that are asked about. */
lahar_status lahar_shard_query_set(const struct lahar_shard_query *query,
                                   struct lahar_docset *set_out, lahar_error *error);

/* LAHAR_CORRUPT: the shard cannot answer, its file must be scanned. */
lahar_status lahar_shard_query_run(const struct lahar_shard_query *query,
                                   const struct lahar_query_node *node,
                                   struct lahar_bounds *bounds_out, lahar_error *error);

#endif
