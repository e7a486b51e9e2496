/* What queries over a store must give, found without the index: the events are read once through
 * a scan, each leaf of a query is evaluated on every event, and the rest is sets. */
#ifndef LAHAR_TESTS_QUERY_ORACLE_H
#define LAHAR_TESTS_QUERY_ORACLE_H

#include <stdbool.h>

#include "engine/query/match.h"
#include "lahar/lahar.h"
#include "random_query.h"

enum {
    ORACLE_EVENTS_MAX = RANDOM_SET_WORDS * 64,
    ORACLE_LEAVES = 8192, /* places of leaves whose sets are remembered */
    ORACLE_FACETS_MAX = 16
};

struct oracle_leaf {
    lahar_bytes text;
    const uint64_t *set;
};

/* The values of one name: each event's, as numbers into the distinct values. */
struct oracle_facet {
    const char *name;
    lahar_bytes *values; /* distinct; owned */
    uint32_t value_count;
    uint32_t *numbers; /* of all events behind one another; owned */
    uint32_t number_count;
    uint32_t ends[ORACLE_EVENTS_MAX]; /* by event, of its numbers */
};

struct oracle {
    lahar_store *store;
    struct lahar_arena arena;
    struct lahar_arena leaf_arena;
    lahar_event *events; /* in order of id */
    uint32_t event_count;
    size_t word_count;
    struct lahar_matcher matcher;
    struct oracle_leaf leaves[ORACLE_LEAVES];
    struct oracle_facet facets[ORACLE_FACETS_MAX];
    uint32_t facet_count;
    struct random_leaves random; /* for random_query */
};

/* Reads the events of the store below end_id, 0: all. */
void oracle_open(struct oracle *oracle, lahar_store *store, uint64_t end_id);
void oracle_close(struct oracle *oracle);

/* The set of events that match an expression, evaluated event by event. */
void oracle_evaluate(struct oracle *oracle, const char *text, size_t size, uint64_t *set);

/* Prepares the values of a declared field, or of a key of the map field. */
void oracle_add_facet(struct oracle *oracle, const char *name, const char *field, const char *key);

struct oracle_count {
    lahar_bytes value;
    uint64_t count;
};
/* Counts the values of a facet over the set, the most frequent first, then in order of bytes;
 * returns how many there are. The caller frees. */
uint32_t oracle_count(const struct oracle *oracle, uint32_t facet, const uint64_t *set,
                      struct oracle_count **counts_out);

/* The events of the set in the order, as indexes; returns their number. */
uint32_t oracle_order(const struct oracle *oracle, const uint64_t *set, lahar_order order,
                      uint32_t *indexes);

#endif
