#include "prov_store.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void open_handles(struct prov_store *prov)
{
    lahar_error error = {.status = LAHAR_OK};
    cr_assert_eq(lahar_store_open(prov->directory, NULL, LAHAR_WAIT_FOREVER, &prov->store, &error),
                 LAHAR_OK, "%s", error.message);
    cr_assert_eq(lahar_provenance_open(prov->store, &prov->options, &prov->provenance, &error),
                 LAHAR_OK, "%s", error.message);
}

static void close_handles(struct prov_store *prov)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_provenance_close(prov->provenance);
    cr_assert_eq(lahar_store_close(prov->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

void prov_store_open(struct prov_store *prov, const lahar_provenance_options *options)
{
    scratch_create(prov->directory);
    lahar_provenance_options_init(&prov->options);
    if (options != NULL) {
        prov->options = *options;
    }
    open_handles(prov);
}

void prov_store_close(struct prov_store *prov)
{
    close_handles(prov);
    scratch_remove(prov->directory);
}

void prov_store_reopen(struct prov_store *prov)
{
    close_handles(prov);
    open_handles(prov);
}

void prov_store_rollover(struct prov_store *prov)
{
    lahar_error error = {.status = LAHAR_OK};
    cr_assert_eq(lahar_rollover(prov->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

lahar_bytes bytes_of(const char *text)
{
    return (lahar_bytes){text, text == NULL ? 0 : strlen(text)};
}

/* Names live as long as the test's process. */
static const lahar_bytes *split(const char *text, size_t *count_out)
{
    static lahar_bytes pool[1024];
    static size_t used;
    size_t count = 0;
    *count_out = 0;
    if (text == NULL) {
        return NULL;
    }
    for (const char *p = text; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        count++;
    }
    lahar_bytes *names = pool + used;
    used += count;
    cr_assert_leq(used, sizeof pool / sizeof pool[0]);
    const char *p = text;
    for (size_t i = 0; i < count; i++) {
        const size_t size = strcspn(p, ",");
        names[i] = (lahar_bytes){p, size};
        p += size + 1;
    }
    *count_out = count;
    return names;
}

lahar_prov_event make_event(lahar_prov_type type, const char *uuid, int64_t time_ms,
                            const char *parents, const char *children)
{
    lahar_prov_event event;
    lahar_prov_event_init(&event);
    event.type = type;
    event.time_ns = time_ms * 1000000;
    event.uuid = bytes_of(uuid);
    event.component = bytes_of("component");
    event.component_type = bytes_of("UnitTest");
    event.has_size = true;
    event.parents = split(parents, &event.parent_count);
    event.children = split(children, &event.child_count);
    if (type == LAHAR_PROV_SEND || type == LAHAR_PROV_RECEIVE || type == LAHAR_PROV_FETCH ||
        type == LAHAR_PROV_UPLOAD) {
        event.transit_uri = bytes_of("http://x");
    }
    if (type == LAHAR_PROV_ROUTE) {
        event.relationship = bytes_of("success");
    }
    if (type == LAHAR_PROV_ADDINFO) {
        event.alternate_id = bytes_of("ns:1");
    }
    return event;
}

uint64_t put_event(struct prov_store *prov, const lahar_prov_event *event)
{
    lahar_error error = {.status = LAHAR_OK};
    uint64_t id = 0;
    cr_assert_eq(lahar_prov_append(prov->provenance, event, 1, NULL, &id, &error), LAHAR_OK, "%s",
                 error.message);
    return id;
}

uint64_t put(struct prov_store *prov, lahar_prov_type type, const char *uuid, int64_t time_ms,
             const char *parents, const char *children)
{
    const lahar_prov_event event = make_event(type, uuid, time_ms, parents, children);
    return put_event(prov, &event);
}

char *ids_of(struct prov_store *prov, const char *expression)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_query_options options;
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    lahar_query_options_init(&options);
    options.order = LAHAR_ORDER_OLDEST;
    cr_assert_eq(
        lahar_query_open(prov->store, expression, strlen(expression), &options, &query, &error),
        LAHAR_OK, "%s: %s", expression, error.message);
    const char *separator = "";
    while (lahar_query_next(query, &event, &error) == LAHAR_OK) {
        (void)fprintf(file, "%s%llu", separator, (unsigned long long)event->id);
        separator = " ";
    }
    lahar_query_close(query);
    cr_assert_eq(fclose(file), 0);
    return text;
}

uint64_t count_of(struct prov_store *prov, const char *expression)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_query_options_init(&options);
    options.count = LAHAR_COUNT_ONLY;
    cr_assert_eq(
        lahar_query_open(prov->store, expression, strlen(expression), &options, &query, &error),
        LAHAR_OK, "%s: %s", expression, error.message);
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK, "%s", error.message);
    lahar_query_close(query);
    return result.total;
}
