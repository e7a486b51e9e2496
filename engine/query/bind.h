/* What a parsed test means in a store: which values it looks at, and its literal in every form
 * that a value's type may ask for. Streams may give one name different types, so the type is
 * decided value by value. */
#ifndef LAHAR_QUERY_BIND_H
#define LAHAR_QUERY_BIND_H

#include "engine/event/schema.h"
#include "engine/query/ast.h"
#include "engine/query/literal.h"
#include "engine/regex/regex.h"
#include "index/tokenizer.h"

enum lahar_target {
    LAHAR_TARGET_ANYWHERE, /* every text and keyword value */
    LAHAR_TARGET_ID,
    LAHAR_TARGET_TIME,
    LAHAR_TARGET_ARRIVAL,
    LAHAR_TARGET_STREAM,
    LAHAR_TARGET_FIELD,     /* the declared field, else the attribute of that name */
    LAHAR_TARGET_ATTRIBUTE, /* key of the map in field: attr.X, prev.X */
    LAHAR_TARGET_CHANGED    /* keys of attributes that differ from the previous ones */
};

/* One token of the value of a test. */
struct lahar_test_token {
    lahar_bytes term; /* folded */
    bool is_at_start; /* of the value: text may have more of the token before it */
    bool is_at_end;
};

struct lahar_test {
    const struct lahar_query_node *node;
    enum lahar_target target;
    uint32_t field; /* FIELD (when has_field), ATTRIBUTE: the map */
    bool has_field; /* some stream declares the name */
    lahar_bytes key;

    /* FIELD "labels.x" where some stream declares a map "labels". */
    bool has_map;
    uint32_t map_field;
    lahar_bytes map_key;

    /* uuid: looks at the relatives too. */
    bool has_relatives;
    uint32_t parents_field;
    uint32_t children_field;
    uint32_t source_system_field;

    lahar_bytes folded; /* of the value or pattern */
    const struct lahar_test_token *tokens;
    size_t token_count;
    bool is_token_pattern; /* the wildcards and what is between them stand for one token */
    lahar_bytes anywhere;  /* a pattern between two '*' */

    struct lahar_regex *regex;         /* REGEX; owned */
    const struct lahar_test *required; /* REGEX: a substring that it needs, or NULL */

    bool is_number;
    struct lahar_test_range range; /* of ':' and the equalities: one number */

    bool is_time;
    struct lahar_interval time; /* first > last: no time */
    bool is_uuid;
    lahar_uuid uuid;
    bool is_bool;
    bool boolean;
};

struct lahar_bind_context {
    const struct lahar_schema_catalog *catalog;
    struct lahar_arena *arena;
    int64_t now_ns;
    const struct lahar_time_zone *zone; /* of times that name none; NULL: UTC */
};

/* Gives every test of the tree its meaning. LAHAR_INVALID when a value cannot be one of
 * the field: error->offset is its byte. The tree must be unbound before its arena goes, also after
 * a failure. */
lahar_status lahar_query_bind(struct lahar_query_node *root,
                              const struct lahar_bind_context *context, lahar_error *error);
/* Releases what does not lie in the arena. NULL is allowed. */
void lahar_query_unbind(struct lahar_query_node *root);

#endif
