/* NiFi's JSON in and out: equal as JSON, in memory and rolled. json-c is the judge. */
#include <criterion/criterion.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "prov_store.h"

static void ingest(struct prov_store *prov, const char *text, size_t size, uint64_t events,
                   uint64_t errors)
{
    lahar_ingest_options options;
    lahar_ingest *ingest = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_ingest_result result = {.struct_size = sizeof result};
    lahar_ingest_options_init(&options);
    options.format = LAHAR_FORMAT_NIFI_JSON;
    options.stream = lahar_provenance_stream(prov->provenance);
    cr_assert_eq(lahar_ingest_open(prov->store, &options, &ingest, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(lahar_ingest_write(ingest, text, size, &error), LAHAR_OK);
    cr_assert_eq(lahar_ingest_finish(ingest, &result, &error), LAHAR_OK);
    lahar_ingest_close(ingest);
    cr_assert_eq(result.event_count, events);
    cr_assert_eq(result.error_count, errors);
}

/* The documents as they come out, keys that only exports have removed where the source has none. */
static void expect_same(struct prov_store *prov, struct json_object *sources)
{
    static const char *const derived[] = {"eventId", "eventOrdinal", "timestamp"};
    lahar_export *export_ = NULL;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    size_t count = 0;
    cr_assert_eq(lahar_export_open(prov->store, &export_, NULL), LAHAR_OK);
    cr_assert_eq(lahar_scan(prov->store, NULL, &cursor, NULL), LAHAR_OK);
    while (lahar_cursor_next(cursor, &event, NULL) == LAHAR_OK) {
        lahar_bytes bytes;
        lahar_error error = {.status = LAHAR_OK};
        cr_assert_eq(lahar_export_nifi_json(export_, event, &bytes, &error), LAHAR_OK, "%s",
                     error.message);
        char *text = calloc(1, bytes.size + 1);
        cr_assert_not_null(text);
        memcpy(text, bytes.data, bytes.size);
        struct json_object *out = json_tokener_parse(text);
        cr_assert_not_null(out, "%s", text);
        struct json_object *source = json_object_array_get_idx(sources, count++);
        for (size_t i = 0; i < sizeof derived / sizeof derived[0]; i++) {
            if (!json_object_object_get_ex(source, derived[i], NULL)) {
                cr_assert(json_object_object_get_ex(out, derived[i], NULL));
                json_object_object_del(out, derived[i]);
            }
        }
        cr_assert(json_object_equal(source, out), "%s\n%s", json_object_to_json_string(source),
                  text);
        (void)json_object_put(out);
        free(text);
    }
    cr_assert_eq(count, json_object_array_length(sources));
    lahar_cursor_close(cursor);
    lahar_export_close(export_);
}

static void expect_round_trip(const char *array)
{
    struct prov_store prov;
    struct json_object *sources = json_tokener_parse(array);
    cr_assert_not_null(sources);
    prov_store_open(&prov, NULL);
    ingest(&prov, array, strlen(array), json_object_array_length(sources), 0);
    expect_same(&prov, sources);
    prov_store_rollover(&prov);
    expect_same(&prov, sources);
    (void)json_object_put(sources);
    prov_store_close(&prov);
}

Test(nifi_json, gives_back_what_the_reporting_task_sends)
{
    expect_round_trip(
        "[{\"eventId\":\"9fce4ca5-c2a3-45f4-b11e-05dfe992181a\",\"eventOrdinal\":1019405,"
        "\"eventType\":\"DROP\",\"timestampMillis\":1546873167817,"
        "\"timestamp\":\"2019-01-07T14:59:27.817Z\",\"maybeDate\":null,\"durationMillis\":0,"
        "\"lineageStart\":1546873167816,\"componentId\":\"1969b693\",\"entityId\":"
        "\"7f53c48e-29d7-4388-94dd-7a358f948a40\",\"entitySize\":10293,"
        "\"previousEntitySize\":null,\"updatedAttributes\":{\"path\":\"./\",\"gone\":null},"
        "\"parentIds\":[\"abc\",\"xyz\"],\"childIds\":[],\"platform\":\"nifi\","
        "\"extra field 1\":\"unit test\"},"
        "{\"eventType\":\"SEND\",\"timestampMillis\":-1,\"entityId\":"
        "\"7F53C48E-29D7-4388-94DD-7A358F948A40\",\"transitUri\":\"http://x\",\"parentIds\":"
        "[\"7f53c48e-29d7-4388-94dd-7a358f948a40\"],\"previousAttributes\":{}}]");
}

Test(nifi_json, keeps_what_no_field_holds)
{
    expect_round_trip(
        "[{\"eventType\":\"MADE_UP\",\"timestampMillis\":1.5,\"timestamp\":\"then\","
        "\"entitySize\":1.0,\"previousEntitySize\":\"12\",\"durationMillis\":-1,"
        "\"lineageStart\":9223372036854775807,\"parentIds\":[\"a\",1,[\"b\",{\"c\":null}]],"
        "\"childIds\":null,\"entityId\":\"\\u00e9\\n\",\"details\":\"\","
        "\"updatedAttributes\":{\"n\":1,\"o\":{\"p\":[true,false,null]}},"
        "\"previousAttributes\":null,\"componentId\":{\"a\":[]},\"list\":[1,\"two\",{}],"
        "\"\":\"empty key\",\"outputContentClaimOffset\":7,\"relationship\":\"success\"}]");
}

Test(nifi_json, reports_a_record_without_a_type)
{
    static const char text[] = "{\"eventId\":\"x\"}\n{\"eventType\":5}\n{\"eventType\":\"DROP\"}\n"
                               "[1,2]\n{broken\n";
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    ingest(&prov, text, sizeof text - 1, 1, 4);
    prov_store_close(&prov);
}

Test(nifi_json, is_searched_by_fields_and_kept_keys)
{
    static const char text[] =
        "{\"eventType\":\"RECEIVE\",\"timestampMillis\":1000,\"entityId\":\"f1\",\"platform\":"
        "\"nifi\",\"remoteIdentifier\":\"urn:nifi:11111111-2222-4333-8444-555555555555\","
        "\"updatedAttributes\":{\"filename\":\"a\"},\"eventOrdinal\":17}";
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    ingest(&prov, text, sizeof text - 1, 1, 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(count_of(&prov, "type=RECEIVE entity_id:F1 filename=a"), 1);
        cr_assert_eq(count_of(&prov, "_nifi.platform:nifi _nifi_json.eventOrdinal>16"), 1);
        cr_assert_eq(count_of(&prov, "nifi"), 1, "the source system's identifier");
        cr_assert_eq(count_of(&prov, "attr.platform:*"), 0);
        cr_assert_eq(count_of(&prov, "uuid:11111111-2222-4333-8444-555555555555"), 1);
        prov_store_rollover(&prov);
    }
    prov_store_close(&prov);
}

Test(nifi_json, is_refused_by_a_stream_of_logs)
{
    struct prov_store prov;
    lahar_ingest_options options;
    lahar_ingest *ingest = NULL;
    lahar_error error = {.status = LAHAR_OK};
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    prov_store_open(&prov, NULL);
    lahar_ingest_options_init(&options);
    options.format = LAHAR_FORMAT_NIFI_JSON;
    cr_assert_eq(lahar_stream_create(prov.store, &spec, &options.stream, &error), LAHAR_OK);
    cr_assert_eq(lahar_ingest_open(prov.store, &options, &ingest, &error), LAHAR_INVALID);
    cr_assert_not_null(strstr(error.message, "not of the provenance schema"), "%s", error.message);
    prov_store_close(&prov);
}
