/* One piece of a snapshot that a query works through by itself: an event file with its
 * shard, one stream of an indexed slice of resident batches, or a run of batches not indexed.
 * Documents are numbered from 0 in order of id.
 *
 * Opening asks the shard which documents may match; what it leaves open is decided by
 * reading the event. A block that cannot be read costs its own events. */
#ifndef LAHAR_QUERY_UNIT_H
#define LAHAR_QUERY_UNIT_H

#include "engine/query/needed_fields.h"
#include "engine/query/shard_query.h"
#include "engine/store/snapshot.h"
#include "lahar/read.h"

/* What the conditions that every result must meet say about whole units. */
struct lahar_query_prune {
    struct lahar_interval time; /* event time */
    uint64_t first_id;
    uint64_t end_id; /* exclusive */
};

/* What the units of one query share. */
struct lahar_unit_context {
    struct lahar_query *query;         /* whose units they are */
    struct lahar_query_worker *worker; /* whose context it is; NULL: of no job */
    const struct lahar_snapshot *snapshot;
    const struct lahar_schema_catalog *catalog;
    const lahar_allocator *allocator;
    const struct lahar_query_node *filter; /* bound */
    struct lahar_query_prune prune;
    struct lahar_matcher *matcher;
    lahar_authorize authorize; /* NULL: everything may be seen */
    void *authorize_context;
    struct lahar_arena arena; /* the event that is being verified */
    uint64_t scanned_events;
    uint64_t scanned_bytes;
    uint32_t shards_failed;
    bool is_partial;
};

struct lahar_unit_row {
    const uint8_t *row;
    uint32_t batch; /* of the snapshot */
};

struct lahar_unit {
    struct lahar_segment *segment; /* NULL: resident */
    struct lahar_shard *shard;     /* NULL: missing or damaged */
    /* Resident and indexed: tells the ids of the documents, which are events of one stream.
     * Documents outside first_id .. last_id are passed over. */
    struct lahar_shard *slice;
    uint32_t stream;    /* LAHAR_ANY_STREAM when resident and not indexed */
    size_t first_batch; /* resident and not indexed: batches [first_batch, end_batch) */
    size_t end_batch;
    uint64_t first_id;
    uint64_t last_id;
    int64_t time_min_ns;
    int64_t time_max_ns;
    uint32_t event_count;

    /* Resident: of all documents, once opened; in a slice those of one batch, row_batch, once one
     * is read. Until the query ends. */
    struct lahar_unit_row *rows;
    size_t row_batch;
    size_t row_capacity;
    struct lahar_block *block; /* the block read last */
    uint32_t block_index;

    bool is_open;
    bool has_unverified;
    uint32_t first_document; /* the sets are about documents first_document .. end_document - 1 */
    uint32_t end_document;
    struct lahar_docset may;           /* documents that match or may */
    struct lahar_docset unverified;    /* those among them to be looked at */
    struct lahar_needed_fields needed; /* to decide them */
    uint64_t lost_count;               /* matches in blocks that cannot be read */

    bool is_counted;
    uint64_t total;

    /* The walk in order of id. */
    uint32_t cursor;    /* the next document to look at, from either end */
    uint32_t part_size; /* documents that were opened last; 0: all of them, or none yet */
    bool is_done;       /* no document is left */
    bool has_head;
    uint32_t head;
    uint64_t head_id;
};

/* All of a unit that is not open. */
lahar_status lahar_unit_open(struct lahar_unit *unit, struct lahar_unit_context *context,
                             lahar_error *error);
/* Documents first .. end - 1 of it. */
lahar_status lahar_unit_open_part(struct lahar_unit *unit, struct lahar_unit_context *context,
                                  uint32_t first, uint32_t end, lahar_error *error);
/* All of a unit that may be open, or a part of it. */
lahar_status lahar_unit_open_rest(struct lahar_unit *unit, struct lahar_unit_context *context,
                                  lahar_error *error);
/* Forgets the sets. The block stays: an event handed out may point into it. */
void lahar_unit_close(struct lahar_unit *unit);
void lahar_unit_drop_block(struct lahar_unit *unit);
void lahar_unit_deinit(struct lahar_unit *unit, const lahar_allocator *allocator);

/* Reads a document; strings point into the block or the journal, arrays into the arena.
 * LAHAR_CORRUPT: the block cannot be read; lahar_unit_drop_range takes it out. */
lahar_status lahar_unit_read(struct lahar_unit *unit, struct lahar_unit_context *context,
                             uint32_t document, struct lahar_arena *arena, lahar_event *event_out,
                             lahar_error *error);
/* The same of those fields of an event file alone that are needed; others may be there. */
lahar_status lahar_unit_read_fields(struct lahar_unit *unit, struct lahar_unit_context *context,
                                    uint32_t document, const struct lahar_needed_fields *needed,
                                    struct lahar_arena *arena, lahar_event *event_out,
                                    lahar_error *error);
/* Id and event time without reading more than is needed. */
lahar_status lahar_unit_id(struct lahar_unit *unit, struct lahar_unit_context *context,
                           uint32_t document, uint64_t *id_out, lahar_error *error);
lahar_status lahar_unit_time(struct lahar_unit *unit, struct lahar_unit_context *context,
                             uint32_t document, int64_t *time_out, lahar_error *error);

/* Decides a document by reading it, whatever the sets say, and leaves them as they are; of an
 * event file, a copy of the unit may be used, whose block is its own. */
lahar_status lahar_unit_decide(struct lahar_unit *unit, struct lahar_unit_context *context,
                               uint32_t document, bool *matches_out, lahar_error *error);
/* Takes the answer into the sets. */
void lahar_unit_note(struct lahar_unit *unit, uint32_t document, bool matches);
/* Decides a document that is in may. */
lahar_status lahar_unit_verify(struct lahar_unit *unit, struct lahar_unit_context *context,
                               uint32_t document, bool *matches_out, lahar_error *error);

/* The documents that share the fate of this one when its block is bad. */
void lahar_unit_block_range(const struct lahar_unit *unit, uint32_t document, uint32_t *first_out,
                            uint32_t *end_out);
/* Takes the block of the document out of the sets: what may have matched is lost. */
void lahar_unit_drop_range(struct lahar_unit *unit, struct lahar_unit_context *context,
                           uint32_t document);

/* How many documents of a unit that is not open match, where the index knows it at once.
 * LAHAR_UNSUPPORTED: it has to be opened; sets no error. */
lahar_status lahar_unit_count(struct lahar_unit *unit, struct lahar_unit_context *context,
                              uint64_t *count_out, lahar_error *error);
/* How many documents of a unit may match a part of the filter, as far as the index knows; where it
 * does not, all of them. */
lahar_status lahar_unit_candidates(struct lahar_unit *unit, struct lahar_unit_context *context,
                                   const struct lahar_query_node *node, uint64_t *count_out,
                                   lahar_error *error);
/* How many documents of an open unit match, if none is left to be verified. */
uint64_t lahar_unit_sum(const struct lahar_unit *unit);

#endif
