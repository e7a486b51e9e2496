/* The state of a running query, shared by the files of this folder. One thread at a time but
 * for what is atomic; while a job runs, its threads read the rest. */
#ifndef LAHAR_QUERY_QUERY_STATE_H
#define LAHAR_QUERY_QUERY_STATE_H

#include <stdatomic.h>

#include "engine/query/query_memory.h"
#include "engine/query/unit.h"
#include "lahar/query.h"

enum {
    LAHAR_RESUME_TOKEN_SIZE = 160,
    LAHAR_QUERY_TEXT_SIZE = 256 /* of what is kept to show which query it is, terminated */
};

enum lahar_query_use {
    LAHAR_QUERY_IDLE,
    LAHAR_QUERY_BUSY,   /* in a call */
    LAHAR_QUERY_EXPIRED /* holds nothing any more but its handle */
};

/* Where the results already given end. */
struct lahar_query_position {
    bool is_set;
    int64_t time_ns; /* of orders by time */
    uint64_t id;
};

/* One result of an order by time. */
struct lahar_query_hit {
    int64_t time_ns;
    uint64_t id;
    uint32_t unit;
    uint32_t document;
};

struct lahar_query {
    lahar_store *store;

    /* The handle; what is not atomic is guarded by the registry's lock or never changes. */
    struct lahar_query_registry *registry;
    struct lahar_query *previous;
    struct lahar_query *next;
    uint64_t id;
    int64_t submitted_ns;         /* of the clock */
    _Atomic int use;              /* enum lahar_query_use */
    _Atomic uint64_t last_use_ns; /* monotonic; of queries that expire */
    lahar_error last_error;
    char text[LAHAR_QUERY_TEXT_SIZE]; /* canonical; cut */
    size_t text_size;

    struct lahar_query_memory memory;
    const lahar_allocator *allocator; /* of memory */
    struct lahar_io *io;
    const struct lahar_schema_catalog *catalog;
    struct lahar_snapshot *snapshot;
    lahar_query_options options;

    struct lahar_arena tree; /* the query as text and as tree */
    struct lahar_query_node *root;
    int64_t now_ns;
    uint64_t end_id;
    uint64_t hash;        /* of what must be the same to resume */
    uint64_t deadline_ns; /* monotonic; UINT64_MAX: none */
    atomic_bool is_cancelled;

    struct lahar_matcher matcher;
    struct lahar_unit_context context;
    struct lahar_unit *units; /* in the order in which they are visited */
    uint32_t unit_count;
    uint32_t first_part_size; /* documents of a large unit that a walk opens first */
    uint32_t shards_total;
    uint32_t shards_pruned;
    size_t next_lost; /* lost files still to be reported */

    struct lahar_query_position position;
    uint64_t returned;
    _Atomic uint64_t counted;       /* sum of the totals of counted units */
    uint64_t event_count;           /* of all units */
    _Atomic uint64_t settled_count; /* events of the units that are done with */
    lahar_event event;
    struct lahar_arena event_arena;

    /* Orders by id: the units that may hold the next result. */
    uint32_t next_unit;
    uint32_t *active;
    uint32_t active_count;

    /* Orders by time: the results found by the last pass. */
    struct lahar_query_hit *hits;
    size_t hit_count;
    size_t hit_next;
    bool is_last_pass;
    lahar_error damage;         /* met in the last pass, not yet reported */
    struct lahar_unit *reading; /* the unit whose block is held */

    struct lahar_facet_result *facet;  /* the last facet; owned */
    lahar_histogram_bucket *histogram; /* the last histogram; owned */

    char token[LAHAR_RESUME_TOKEN_SIZE];
    struct lahar_buffer explain;
};

/* Plans the units. */
lahar_status lahar_query_build_units(struct lahar_query *query, lahar_error *error);
/* Whether nothing in an event file can be a result. */
bool lahar_query_excludes(struct lahar_query *query, const struct lahar_segment_info *info);

/* Passes a status on; where memory was refused by the query's limit, says so. */
lahar_status lahar_query_tell(struct lahar_query *query, lahar_status status, lahar_error *error);
/* Frees everything but the handle. */
void lahar_query_shed(struct lahar_query *query);

/* LAHAR_CANCELLED or LAHAR_TIMEOUT when the query has to stop. */
lahar_status lahar_query_check(const struct lahar_query *query, lahar_error *error);

/* Whether a result at (time, id) stands behind the position in the query's order. */
bool lahar_query_is_behind(const struct lahar_query *query, int64_t time_ns, uint64_t id);

/* Fills query->event with a document, as far as the options ask for it. */
lahar_status lahar_query_read_event(struct lahar_query *query, struct lahar_unit *unit,
                                    uint32_t document, lahar_error *error);

/* Has the blocks of the results that follow the head of a unit, head included, read by several
 * threads, where there are several and they are not in memory. */
void lahar_query_read_results_ahead(struct lahar_query *query, const struct lahar_unit *unit);

/* The next result in an order by id, or by time. */
lahar_status lahar_query_walk(struct lahar_query *query, const lahar_event **event_out,
                              lahar_error *error);
lahar_status lahar_query_take_hit(struct lahar_query *query, const lahar_event **event_out,
                                  lahar_error *error);

/* Verifies what is open in an open unit and fixes its total. Blocks that cannot be read are
 * taken out. */
lahar_status lahar_query_settle(struct lahar_query *query, struct lahar_unit_context *context,
                                struct lahar_unit *unit, lahar_error *error);
/* Notes the total of a unit, once. */
void lahar_query_fix_total(struct lahar_query *query, struct lahar_unit *unit, uint64_t total);
/* Counts all units as the count mode asks. */
lahar_status lahar_query_count(struct lahar_query *query, uint64_t *total_out,
                               lahar_relation *relation_out, lahar_error *error);
/* NULL is allowed. */
void lahar_facet_result_destroy(struct lahar_facet_result *result,
                                const lahar_allocator *allocator);
/* Whether the total is still worth counting. */
bool lahar_query_wants_count(const struct lahar_query *query);

/* Writes query->token; reads a token into position, end_id and now_ns. */
void lahar_query_write_token(struct lahar_query *query);
lahar_status lahar_query_read_token(struct lahar_query *query, const char *token,
                                    uint64_t *hash_out, lahar_error *error);

#endif
