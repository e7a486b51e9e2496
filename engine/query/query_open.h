/* Opening a query whose tree does not come from an expression. */
#ifndef LAHAR_QUERY_QUERY_OPEN_H
#define LAHAR_QUERY_QUERY_OPEN_H

#include "engine/query/ast.h"
#include "lahar/query.h"

/* Makes the tree in the arena, not bound. */
typedef lahar_status (*lahar_query_builder)(void *context, struct lahar_arena *arena,
                                            struct lahar_query_node **root_out, lahar_error *error);

/* As lahar_query_open. build is called once, before this returns. */
lahar_status lahar_query_open_built(lahar_store *store, lahar_query_builder build, void *context,
                                    const lahar_query_options *options, lahar_query **query_out,
                                    lahar_error *error);

#endif
