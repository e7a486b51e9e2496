/* Search. The query language is described in docs/query.md. */
#ifndef LAHAR_QUERY_H
#define LAHAR_QUERY_H

#include "lahar/event.h"
#include "lahar/read.h"
#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lahar_query lahar_query;

typedef enum lahar_order {
    LAHAR_ORDER_NEWEST = 0,       /* by id, descending ("-id") */
    LAHAR_ORDER_OLDEST = 1,       /* by id ("id") */
    LAHAR_ORDER_LATEST_TIME = 2,  /* by event time descending, ties by id descending ("-time") */
    LAHAR_ORDER_EARLIEST_TIME = 3 /* by event time, ties by id ("time") */
} lahar_order;

typedef enum lahar_count {
    LAHAR_COUNT_EXACT = 0,
    LAHAR_COUNT_AT_LEAST = 1, /* stop counting at count_limit */
    LAHAR_COUNT_NONE = 2,
    LAHAR_COUNT_ONLY = 3 /* exact total, no events */
} lahar_count;

typedef struct lahar_query_options {
    size_t struct_size;
    uint32_t stream; /* LAHAR_ANY_STREAM: all */
    int64_t from_ns; /* event time, inclusive; INT64_MIN: open */
    int64_t to_ns;   /* exclusive; INT64_MAX: open */
    uint64_t limit;  /* most events returned; 0: no limit */
    lahar_order order;
    lahar_count count;
    uint64_t count_limit; /* for LAHAR_COUNT_AT_LEAST */
    uint64_t deadline_ns; /* LAHAR_WAIT_FOREVER: none */
    uint32_t threads;     /* that count and group; 0: one a core. Answers do not depend on it */
    const char *resume; /* a string of lahar_query_resume_token to go on from, or NULL; borrowed */
    lahar_authorize authorize;   /* NULL: everything may be seen */
    void *authorize_context;     /* with it, one thread does all */
    uint64_t memory_limit_bytes; /* of this query; 0: a quarter of the store's, which is also what
                                    all open queries may hold together. Beyond either the query
                                    fails with LAHAR_NO_MEMORY */
    bool ids_only; /* events come without values and arrival; their time is given in orders by
                      time alone. Nothing is read to show them */
    const char *time_zone; /* of times in the expression that name none: "Europe/Berlin", "+02:00";
                              NULL: UTC; borrowed for the call */
    uint64_t expire_ns; /* LAHAR_WAIT_FOREVER: never. Unused for so long, the query lets go of what
                           it holds; further calls but close fail with LAHAR_CLOSED */
} lahar_query_options;

LAHAR_API void lahar_query_options_init(lahar_query_options *options);

/* Parses, plans and starts a query over a snapshot taken now. expression is
 * UTF-8, borrowed for the call; empty or "*" matches everything. options NULL: the defaults.
 * One thread at a time, but for lahar_query_cancel. The snapshot keeps files and memory
 * alive until close. LAHAR_INVALID: error.offset is the byte of the expression at fault, or
 * the resume token is damaged or of another query; LAHAR_BUSY as for lahar_get, or when as many
 * queries are open as the store's options allow. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_query_open(lahar_store *store, const char *expression,
                                                        size_t expression_size,
                                                        const lahar_query_options *options,
                                                        lahar_query **query_out,
                                                        lahar_error *error);

/* The next matching event in order, owned by the query until any other call on
 * it. LAHAR_NOT_FOUND: no more, or the limit is reached. LAHAR_CORRUPT: a block or
 * file, named in error, cannot be read and may have hidden events; further calls go on with
 * the rest. LAHAR_TIMEOUT, LAHAR_CANCELLED. May read from disk. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_query_next(lahar_query *query,
                                                        const lahar_event **event_out,
                                                        lahar_error *error);

/* What a time stands for, as in an expression: all instants of [*first_ns_out, *end_ns_out), where
 * a date cut short is all that it covers. time_zone: as in the options. LAHAR_INVALID: it is none.
 */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_query_time(lahar_store *store, const char *text,
                                                        const char *time_zone, int64_t now_ns,
                                                        int64_t *first_ns_out, int64_t *end_ns_out,
                                                        lahar_error *error);

typedef enum lahar_relation {
    LAHAR_RELATION_EXACT = 0,    /* "=" */
    LAHAR_RELATION_AT_LEAST = 1, /* ">=" */
    LAHAR_RELATION_UNKNOWN = 2   /* not counted */
} lahar_relation;

typedef struct lahar_query_result {
    size_t struct_size;
    uint64_t total;
    lahar_relation relation;
    uint64_t snapshot_id;    /* events with ids below it were considered */
    uint64_t scanned_events; /* looked at one by one */
    uint64_t scanned_bytes;
    uint32_t shards_total;
    uint32_t shards_pruned;
    uint32_t shards_failed;     /* missing or damaged: their files were scanned */
    bool is_partial;            /* events could not be read and may be missing */
    uint64_t memory_peak_bytes; /* the most that the query held at a time */
} lahar_query_result;

/* Counts to the end as far as the count mode asks; may block for that. The total is of the
 * whole query, also of one that was resumed. Set result_out->struct_size. LAHAR_TIMEOUT and
 * LAHAR_CANCELLED fill in what is known so far. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_query_result_get(lahar_query *query,
                                                              lahar_query_result *result_out,
                                                              lahar_error *error);

/* --- grouping ------------------------------------------------------------------ */

typedef struct lahar_facet_value {
    lahar_bytes value;
    uint64_t count; /* matching events that have it; in one event it counts once */
} lahar_facet_value;

typedef struct lahar_facet {
    size_t struct_size;
    uint64_t event_count;            /* matching events */
    uint64_t distinct_count;         /* values that differ, byte for byte */
    const lahar_facet_value *values; /* the most frequent first, then in order of bytes */
    size_t value_count;
    /* Of the values that are numbers, exact where all are integers; texts, size 0 if there is
     * none. Each value counts once an event. */
    uint64_t number_count;
    lahar_bytes minimum;
    lahar_bytes maximum;
    lahar_bytes sum;
} lahar_facet;

/* Values of a field, or an attribute, named as in an expression, over all events that match,
 * whatever limit, position and count mode the query has; the same snapshot. limit: most values
 * returned, 0 for all. Owned by the query until its next facet or its close. LAHAR_INVALID: the
 * name is one of ids or times; LAHAR_NO_MEMORY when the distinct values do not fit the query's
 * memory. Damage is left out and makes the query's result partial. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_query_facet(lahar_query *query, const char *name,
                                                         size_t limit, lahar_facet *facet_out,
                                                         lahar_error *error);

typedef struct lahar_histogram_bucket {
    int64_t start_ns; /* a multiple of the width since the epoch */
    uint64_t count;
} lahar_histogram_bucket;

/* Matching events by event time, in buckets of width_ns; empty ones are left out. Rises; owned by
 * the query until its next histogram or its close. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_query_histogram(
    lahar_query *query, int64_t width_ns, const lahar_histogram_bucket **buckets_out,
    size_t *bucket_count_out, lahar_error *error);

/* A printable token that continues behind the last event returned; the total
 * and the events do not shift by what is appended meanwhile. Owned by the
 * query. */
LAHAR_API const char *lahar_query_resume_token(lahar_query *query);

/* One line a clause: how it is answered. Owned by the query; text ends with a
 * newline. */
LAHAR_API const char *lahar_query_explain(lahar_query *query);

/* How much of the query is worked through, 0 to 100. Any thread, until close. */
LAHAR_API unsigned lahar_query_progress(lahar_query *query);

LAHAR_API void lahar_query_cancel(lahar_query *query); /* any thread */
LAHAR_API void lahar_query_close(lahar_query *query);  /* NULL is allowed */

/* --- handles ------------------------------------------------------------------- */

/* An open query, for those who watch over them. */
typedef struct lahar_query_info {
    uint64_t id;          /* not given to another query while the store is open */
    int64_t submitted_ns; /* when it was opened */
    unsigned percent;     /* as lahar_query_progress */
    bool is_busy;         /* a thread is in a call */
    bool is_expired;
    uint64_t expires_in_ns; /* if it is not used; LAHAR_WAIT_FOREVER: never */
    uint64_t memory_bytes;
    lahar_error error;    /* of the last call that failed; status LAHAR_OK: none did */
    char expression[256]; /* canonical, cut */
} lahar_query_info;

LAHAR_API uint64_t lahar_query_id(const lahar_query *query);
/* Describes up to capacity of the queries that are open in the store, the oldest first, and
 * returns how many there are. Lets go of what has expired. Any thread. */
LAHAR_API size_t lahar_query_list(lahar_store *store, lahar_query_info *infos, size_t capacity);
/* As lahar_query_cancel. LAHAR_NOT_FOUND: no open query has the id. Any thread. */
LAHAR_API lahar_status lahar_query_cancel_id(lahar_store *store, uint64_t id);

#ifdef __cplusplus
}
#endif
#endif
