/* Work on many units by several threads: the units are handed out in order through one counter,
 * and each is one thread's. Where a unit holds much work of one kind, such as a large dictionary to
 * go through or many blocks to read, its thread offers that in pieces, which threads take that have
 * no unit left. What is found does not depend on the number of threads. */
#ifndef LAHAR_QUERY_WORKERS_H
#define LAHAR_QUERY_WORKERS_H

#include "engine/query/query_state.h"

struct lahar_query_run;

/* One thread's part. */
struct lahar_query_worker {
    struct lahar_query *query;
    struct lahar_query_run *run;
    uint32_t index;                    /* below lahar_query_worker_count */
    struct lahar_unit_context context; /* its own; added to the query's at the end */
    struct lahar_matcher matcher;
    void *share; /* the job's, for this worker */
};

struct lahar_query_job {
    lahar_status (*work)(struct lahar_query_worker *worker, struct lahar_unit *unit,
                         lahar_error *error);
    /* False ends the handing out; NULL: all units are wanted. */
    bool (*goes_on)(const struct lahar_query *query);
    const uint32_t *units; /* numbers of units, in the order in which they are handed out */
    uint32_t unit_count;
    void *shares; /* one of share_size bytes a worker, or NULL */
    size_t share_size;
};

/* Puts the largest units first, so that no thread is left with one of them at the end: for jobs
 * that need all of them, in any order. */
void lahar_query_order_by_size(struct lahar_query *query, uint32_t *units, uint32_t count);

/* Most threads that a job of the query is given, the caller's included. */
uint32_t lahar_query_worker_count(const struct lahar_query *query);

/* Returns when every unit handed out is done. Of several failures that of the first unit is
 * returned. */
lahar_status lahar_query_run_job(struct lahar_query *query, const struct lahar_query_job *job,
                                 lahar_error *error);

/* Pieces of the work on one unit. */
struct lahar_query_split {
    lahar_status (*work)(struct lahar_query_worker *worker, void *context, uint32_t piece,
                         lahar_error *error);
    void *context;
    uint32_t count;
};

/* Does all pieces, in any order, by the threads that are free, and returns when they are done; of
 * several failures that of the first piece is returned. worker: who has the unit in work; NULL:
 * a thread of which the job does not know, which starts others. */
lahar_status lahar_query_run_split(struct lahar_query *query, struct lahar_query_worker *worker,
                                   const struct lahar_query_split *split, lahar_error *error);

#endif
