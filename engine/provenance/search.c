/* The queries of NiFi's dialog, as trees of the query language: NiFi's names are translated, and
 * every string is taken as it stands. */
#include <string.h>

#include "engine/provenance/handle.h"
#include "engine/provenance/identity.h"
#include "engine/query/query_open.h"
#include "io/base/error.h"

/* NiFi's names of what can be searched, and ours. */
static const struct {
    const char *nifi;
    const char *own;
} names[] = {
    {"EventTime", "time"},
    {"FlowFileUUID", "uuid"},
    {"Filename", "attr.filename"},
    {"EventType", "type"},
    {"TransitURI", "transit_uri"},
    {"ProcessorID", "component"},
    {"ComponentID", "component"},
    {"AlternateIdentifierURI", "alternate_id"},
    {"FileSize", "size"},
    {"Details", "details"},
    {"Relationship", "relationship"},
    {"LineageStartDate", "lineage_start"},
    {"LineageIdentifiers", "uuid"},
    {"ContentClaimSection", "claim.section"},
    {"ContentClaimContainer", "claim.container"},
    {"ContentClaimIdentifier", "claim.id"},
    {"ContentClaimOffset", "claim.offset"},
    {"SourceQueueIdentifier", "source_queue"},
};

struct building {
    const lahar_prov_search *search;
    struct lahar_arena *arena;
    struct lahar_query_node *root;
    struct lahar_query_node *last; /* child of root */
};

void lahar_prov_search_init(lahar_prov_search *search)
{
    *search = (lahar_prov_search){.struct_size = sizeof *search,
                                  .from_ns = INT64_MIN,
                                  .to_ns = INT64_MAX,
                                  .size_max = UINT64_MAX};
}

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a search");
}

static bool copy(struct lahar_arena *arena, const void *data, size_t size, lahar_bytes *bytes_out)
{
    char *memory = lahar_arena_allocate(arena, size + 1);
    if (memory == NULL) {
        return false;
    }
    if (size != 0) {
        memcpy(memory, data, size);
    }
    *bytes_out = (lahar_bytes){memory, size};
    return true;
}

static bool translate(struct lahar_arena *arena, lahar_bytes name, lahar_bytes *name_out)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].nifi) == name.size &&
            memcmp(names[i].nifi, name.data, name.size) == 0) {
            return copy(arena, names[i].own, strlen(names[i].own), name_out);
        }
    }
    char *memory = lahar_arena_allocate(arena, name.size + 5);
    if (memory == NULL) {
        return false;
    }
    memcpy(memory, "attr.", 5);
    if (name.size != 0) {
        memcpy(memory + 5, name.data, name.size);
    }
    *name_out = (lahar_bytes){memory, name.size + 5};
    return true;
}

static struct lahar_query_node *add_node(struct building *building, enum lahar_node_kind kind)
{
    struct lahar_query_node *node = lahar_arena_allocate(building->arena, sizeof *node);
    if (node != NULL) {
        *node = (struct lahar_query_node){.kind = kind};
    }
    return node;
}

static void append(struct building *building, struct lahar_query_node *node)
{
    if (building->last == NULL) {
        building->root->child = node;
    } else {
        building->last->next = node;
    }
    building->last = node;
}

static bool has_wildcard(lahar_bytes value)
{
    return value.size != 0 && (memchr(value.data, '*', value.size) != NULL ||
                               memchr(value.data, '?', value.size) != NULL);
}

/* A FlowFile that is not named by a uuid is looked for by the one derived from its name. */
static bool set_uuid(struct building *building, struct lahar_query_node *test)
{
    char text[LAHAR_PROV_UUID_TEXT_SIZE];
    lahar_uuid uuid;
    if (test->is_pattern || test->name.size != 4 || memcmp(test->name.data, "uuid", 4) != 0) {
        return true;
    }
    (void)lahar_prov_identify(test->value, &uuid);
    lahar_prov_uuid_format(&uuid, text);
    return copy(building->arena, text, sizeof text, &test->value);
}

static lahar_status add_term(struct building *building, const lahar_prov_term *term,
                             lahar_error *error)
{
    struct lahar_query_node *test = add_node(building, LAHAR_NODE_TEST);
    struct lahar_query_node *inverse = NULL;
    if (term->value.data == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "a term of a search needs a value");
    }
    if (test == NULL || !translate(building->arena, term->name, &test->name) ||
        !copy(building->arena, term->value.data, term->value.size, &test->value)) {
        return no_memory(error);
    }
    test->op = LAHAR_TEST_MATCH;
    test->has_name = true;
    test->is_pattern = has_wildcard(test->value);
    if (!set_uuid(building, test)) {
        return no_memory(error);
    }
    if (term->is_inverse) {
        inverse = add_node(building, LAHAR_NODE_NOT);
        if (inverse == NULL) {
            return no_memory(error);
        }
        inverse->child = test;
    }
    append(building, inverse != NULL ? inverse : test);
    return LAHAR_OK;
}

static bool set_end(struct building *building, struct lahar_query_end *end, uint64_t number)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    end->is_given = true;
    end->is_inclusive = true;
    return copy(building->arena, text + at, sizeof text - at, &end->text);
}

static lahar_status add_sizes(struct building *building, lahar_error *error)
{
    const lahar_prov_search *search = building->search;
    if (search->size_min == 0 && search->size_max == UINT64_MAX) {
        return LAHAR_OK;
    }
    struct lahar_query_node *test = add_node(building, LAHAR_NODE_TEST);
    if (test == NULL || !copy(building->arena, "size", 4, &test->name)) {
        return no_memory(error);
    }
    test->op = LAHAR_TEST_RANGE;
    test->has_name = true;
    if ((search->size_min != 0 && !set_end(building, &test->low, search->size_min)) ||
        (search->size_max != UINT64_MAX && !set_end(building, &test->high, search->size_max))) {
        return no_memory(error);
    }
    append(building, test);
    return LAHAR_OK;
}

static lahar_status build(void *context, struct lahar_arena *arena,
                          struct lahar_query_node **root_out, lahar_error *error)
{
    struct building building = {.search = context, .arena = arena};
    building.root = add_node(&building, LAHAR_NODE_AND);
    if (building.root == NULL) {
        return no_memory(error);
    }
    for (size_t i = 0; i < building.search->term_count; i++) {
        LAHAR_TRY(add_term(&building, &building.search->terms[i], error));
    }
    LAHAR_TRY(add_sizes(&building, error));
    if (building.root->child == NULL) {
        building.root->kind = LAHAR_NODE_ALL;
    } else if (building.root->child == building.last) {
        building.root = building.last;
    }
    *root_out = building.root;
    return LAHAR_OK;
}

lahar_status lahar_prov_search_open(lahar_provenance *provenance, const lahar_prov_search *search,
                                    lahar_query **query_out, lahar_error *error)
{
    lahar_query_options options;
    lahar_prov_search own;
    *query_out = NULL;
    lahar_prov_search_init(&own);
    memcpy(&own, search, search->struct_size < sizeof own ? search->struct_size : sizeof own);
    if (own.from_ns > own.to_ns) {
        return lahar_fail(error, LAHAR_INVALID, "the search ends before it begins");
    }
    lahar_query_options_init(&options);
    options.stream = provenance->stream;
    options.from_ns = own.from_ns;
    options.to_ns = own.to_ns == INT64_MAX ? INT64_MAX : own.to_ns + 1;
    options.limit = own.limit;
    options.authorize = provenance->options.authorize;
    options.authorize_context = provenance->options.authorize_context;
    return lahar_query_open_built(provenance->store, build, &own, &options, query_out, error);
}
