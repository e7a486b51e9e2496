/* The meaning of queries on single events, each answer written by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "engine/event/schema.h"
#include "engine/query/match.h"
#include "io/base/error.h"

#define BYTES(text)                                                                                \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

static struct lahar_schema_catalog *catalog;
static struct lahar_matcher matcher;
static struct lahar_arena arena;

static uint32_t field(const char *name)
{
    uint32_t id = UINT32_MAX;
    cr_assert(lahar_schema_find_field(catalog, name, strlen(name), &id), "%s", name);
    return id;
}

static void setup(void)
{
    static const lahar_field_spec fields[] = {
        {"host", LAHAR_KEYWORD, false}, {"count", LAHAR_I64, false},
        {"ratio", LAHAR_F64, false},    {"ok", LAHAR_BOOL, false},
        {"when", LAHAR_TIME, false},    {"tags", LAHAR_LIST_KEYWORD, false},
        {"blob", LAHAR_BYTES, false},   {"labels", LAHAR_MAP, false},
        {"big", LAHAR_U64, false},      {"_private", LAHAR_KEYWORD, false},
    };
    const lahar_stream_spec log = {.struct_size = sizeof log,
                                   .name = "App-log",
                                   .schema = LAHAR_SCHEMA_LOG,
                                   .fields = fields,
                                   .field_count = sizeof fields / sizeof fields[0]};
    const lahar_stream_spec provenance = {
        .struct_size = sizeof provenance, .name = "prov", .schema = LAHAR_SCHEMA_PROVENANCE};
    uint32_t stream = 0;
    cr_assert_eq(lahar_schema_catalog_create(&lahar_allocator_libc, &catalog, NULL), LAHAR_OK);
    cr_assert_eq(lahar_schema_add_stream(catalog, &log, &stream, NULL), LAHAR_OK);
    cr_assert_eq(lahar_schema_add_stream(catalog, &provenance, &stream, NULL), LAHAR_OK);
    lahar_matcher_init(&matcher, catalog, &lahar_allocator_libc);
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
}

static void teardown(void)
{
    lahar_arena_deinit(&arena);
    lahar_matcher_deinit(&matcher);
    lahar_schema_catalog_destroy(catalog);
}

TestSuite(match, .init = setup, .fini = teardown);

static lahar_status bind(const char *text, struct lahar_query_node **root, lahar_error *error)
{
    const struct lahar_bind_context context = {
        .catalog = catalog, .arena = &arena, .now_ns = INT64_C(1000000000000)};
    lahar_error_clear(error);
    LAHAR_TRY(lahar_query_parse(text, strlen(text), &arena, root, error));
    return lahar_query_bind(*root, &context, error);
}

static void expect(const lahar_event *event, const char *text, bool expected)
{
    struct lahar_query_node *root = NULL;
    lahar_error error;
    bool matches = !expected;
    cr_assert_eq(bind(text, &root, &error), LAHAR_OK, "%s: %s", text, error.message);
    cr_assert_eq(lahar_match(&matcher, root, event, &matches, &error), LAHAR_OK);
    cr_expect_eq(matches, expected, "%s should %smatch", text, expected ? "" : "not ");
    lahar_query_unbind(root);
}

static void expect_invalid(const char *text, uint64_t offset)
{
    struct lahar_query_node *root = NULL;
    lahar_error error;
    cr_expect_eq(bind(text, &root, &error), LAHAR_INVALID, "%s", text);
    cr_expect_eq(error.offset, offset, "%s: %s", text, error.message);
    lahar_query_unbind(root);
}

Test(match, finds_tokens_and_phrases_in_text)
{
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_MESSAGE,
         .type = LAHAR_TEXT,
         .as.bytes =
             BYTES("Connection timeout: 10.0.0.7:8080 after 77ms \xf0\x9f\x94\xa5 Stra\xc3\x9f"
                   "E")}};
    const lahar_event event = {.stream = 0, .values = values, .value_count = 1};
    expect(&event, "message:connection", true);
    expect(&event, "message:CONNECTION", true);
    expect(&event, "message:connect", false);
    expect(&event, "message:timeout:", true);
    expect(&event, "message:\"connection TIMEOUT\"", true);
    expect(&event, "message:\"timeout connection\"", false);
    expect(&event, "message:\"nection timeout\"", false);
    expect(&event, "message:10.0.0.7", true);
    expect(&event, "message:10.0.0", true);
    expect(&event, "message:0.0.7:80", false);
    expect(&event, "message:\xf0\x9f\x94\xa5", true);
    expect(&event, "message:\xf0\x9f\x94\xa6", false);
    expect(&event, "message:\"\"", false);
    expect(&event, "message:conn*", true);
    expect(&event, "message:*ction", true);
    expect(&event, "message:conn", false);
    expect(&event, "message:c?nnection", true);
    expect(&event, "message:10.0*7:80", true);
    expect(&event, "message~\"nection time\"", true);
    expect(&event, "message~\"NECTION TIME\"", true);
    expect(&event, "message~=\"nection time\"", true);
    expect(&event, "message~=\"NECTION\"", false);
    expect(&event, "message=\"Connection\"", false);
    expect(&event, "message=Connection*", true);
    expect(&event, "message=connection*", false);
    expect(&event, "message:*", true);
    expect(&event, "message!=x", true);
    expect(&event, "connection", true);
    expect(&event, "\"timeout 10\"", false);
    expect(&event, "\"timeout: 10\"", true);
    expect(&event, "~meou", true);
    expect(&event, "~=MEOU", false);
    expect(&event, "tim*", true);
    expect(&event, "10.0.0.7:8080", true);
    expect(&event, "message~\"\"", true);
}

Test(match, finds_letters_behind_escape_sequences)
{
    const lahar_value values[] = {{.field = LAHAR_FIELD_MESSAGE,
                                   .type = LAHAR_TEXT,
                                   .as.bytes = BYTES("\x1b[32mDEBUG\x1b[0m done")}};
    const lahar_event event = {.stream = 0, .values = values, .value_count = 1};
    expect(&event, "message:debug", true);
    expect(&event, "message~DEBUG", true);
    expect(&event, "message:32mDEBUG", false);
    expect(&event, "message~32mdebug", true);
}

Test(match, compares_keywords_whole)
{
    static const lahar_bytes tags[] = {BYTES("Red"), BYTES("dark blue")};
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_LEVEL, .type = LAHAR_KEYWORD, .as.bytes = BYTES("Error")},
        {.field = field("host"), .type = LAHAR_KEYWORD, .as.bytes = BYTES("web-01.Example")},
        {.field = field("tags"), .type = LAHAR_LIST_KEYWORD, .as.keywords = {tags, 2}},
        {.field = field("_private"), .type = LAHAR_KEYWORD, .as.bytes = BYTES("secret")},
    };
    const lahar_event event = {.stream = 0, .values = values, .value_count = 4};
    expect(&event, "level:ERROR", true);
    expect(&event, "level:err", false);
    expect(&event, "level=Error", true);
    expect(&event, "level=ERROR", false);
    expect(&event, "level!=ERROR", true);
    expect(&event, "level!=Error", false);
    expect(&event, "host:web-01", false);
    expect(&event, "host:WEB-*", true);
    expect(&event, "host=WEB-*", false);
    expect(&event, "host:web-0?.example", true);
    expect(&event, "host~01.ex", true);
    expect(&event, "tags:red", true);
    expect(&event, "tags:blue", false);
    expect(&event, "tags!=Red", false);
    expect(&event, "tags!=red", true);
    expect(&event, "level:(warn error)", true);
    expect(&event, "NOT level:error", false);
    expect(&event, "web", true);
    expect(&event, "example", true);
    expect(&event, "exam", false);
    expect(&event, "\"dark blue\"", true);
    expect(&event, "secret", false);
    expect(&event, "_private:secret", true);
    expect(&event, "host:[1..2]", false);
}

Test(match, looks_up_attributes)
{
    static const lahar_pair attributes[] = {
        {BYTES("status"), BYTES("200"), false},
        {BYTES("mime.type"), BYTES(""), false},
        {BYTES("gone"), BYTES(""), true},
        {BYTES("twice"), BYTES("a"), false},
        {BYTES("twice"), BYTES("b"), false},
        {BYTES("padded"), BYTES("00123"), false},
        {BYTES("my key"), BYTES("Text here"), false},
        {BYTES("big"), BYTES("9007199254740993"), false},
    };
    static const lahar_pair previous[] = {{BYTES("filename"), BYTES("old.txt"), false}};
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP, .as.map = {attributes, 8}},
        {.field = LAHAR_FIELD_PREVIOUS, .type = LAHAR_MAP, .as.map = {previous, 1}}};
    const lahar_event event = {.stream = 1, .values = values, .value_count = 2};
    expect(&event, "status:200", true);
    expect(&event, "attr.status=200", true);
    expect(&event, "status=0200", false);
    expect(&event, "status>=200", true);
    expect(&event, "status>200", false);
    expect(&event, "status:[100..300)", true);
    expect(&event, "attr.padded>100", false);
    expect(&event, "attr.padded:00123", true);
    expect(&event, "attr.big>9007199254740992", true);
    expect(&event, "attr.big>9007199254740993", false);
    expect(&event, "attr.mime.type=\"\"", true);
    expect(&event, "attr.mime.type:*", true);
    expect(&event, "gone:*", false);
    expect(&event, "NOT gone:*", true);
    expect(&event, "gone!=x", false);
    expect(&event, "twice:a", true);
    expect(&event, "twice:b", true);
    expect(&event, "twice!=a", false);
    expect(&event, "\"my key\"~\"text\"", true);
    expect(&event, "text", true);
    expect(&event, "prev.filename:old.txt", true);
    expect(&event, "filename:old.txt", true);
    expect(&event, "old", true);
    expect(&event, "absent=1 OR status=200", true);
    expect(&event, "absent!=1", false);
    expect(&event, "attributes:200", true);
    expect(&event, "attributes:*", true);
}

Test(match, prefers_declared_fields_to_attributes)
{
    static const lahar_pair attributes[] = {{BYTES("host"), BYTES("attribute"), false}};
    static const lahar_pair labels[] = {{BYTES("zone.name"), BYTES("eu"), false}};
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP, .as.map = {attributes, 1}},
        {.field = field("labels"), .type = LAHAR_MAP, .as.map = {labels, 1}}};
    const lahar_event declared = {.stream = 0, .values = values, .value_count = 2};
    const lahar_event undeclared = {.stream = 1, .values = values, .value_count = 1};
    expect(&declared, "host:attribute", false);
    expect(&declared, "host:*", false);
    expect(&declared, "attr.host:attribute", true);
    expect(&declared, "labels.zone.name:EU", true);
    expect(&declared, "labels.zone.name:*", true);
    expect(&declared, "labels.zone:*", false);
    expect(&undeclared, "host:attribute", true);
    expect(&undeclared, "host:*", true);
}

Test(match, compares_numbers_exactly)
{
    const lahar_value values[] = {
        {.field = field("count"), .type = LAHAR_I64, .as.i64 = 9007199254740993},
        {.field = field("big"), .type = LAHAR_U64, .as.u64 = UINT64_MAX},
        {.field = field("ratio"), .type = LAHAR_F64, .as.f64 = (double)NAN},
        {.field = field("ok"), .type = LAHAR_BOOL, .as.boolean = true},
        {.field = field("when"), .type = LAHAR_TIME, .as.time_ns = 1420538405123456789},
    };
    const lahar_event event = {.stream = 0, .values = values, .value_count = 5};
    expect(&event, "count:9007199254740993", true);
    expect(&event, "count:9007199254740992", false);
    expect(&event, "count>9007199254740992", true);
    expect(&event, "count<9007199254740994", true);
    expect(&event, "count!=9007199254740992", true);
    expect(&event, "count:[9007199254740993..9007199254740993]", true);
    expect(&event, "count:[9007199254740992..9007199254740993)", false);
    expect(&event, "count:(1 9007199254740993)", true);
    expect(&event, "count>1TiB", true);
    expect(&event, "big=18446744073709551615", true);
    expect(&event, "big>-1", true);
    expect(&event, "big>18446744073709551614", true);
    expect(&event, "ratio>0", false);
    expect(&event, "ratio<=0", false);
    expect(&event, "ratio!=0", true);
    expect(&event, "ratio:*", true);
    expect(&event, "ok:TRUE", true);
    expect(&event, "ok=false", false);
    expect(&event, "ok!=false", true);
    expect(&event, "when:2015-01-06", true);
    expect(&event, "when:2015-01-06T10:00", true);
    expect(&event, "when:2015-01-06T10:00:05.123456789Z", true);
    expect(&event, "when>2015-01-06", false);
    expect(&event, "when>=2015-01-06", true);
    expect(&event, "when>2015-01-05", true);
    expect(&event, "when<=2015-01-06", true);
    expect(&event, "when<2015-01-06", false);
    expect(&event, "when:[2015-01-05..2015-01-06]", true);
    expect(&event, "when:[2015-01-05..2015-01-06)", false);
}

Test(match, tests_the_header)
{
    const lahar_event event = {.id = 77, .time_ns = INT64_C(1000), .arrival_ns = INT64_C(2000)};
    expect(&event, "id:77", true);
    expect(&event, "id:[70..77)", false);
    expect(&event, "id>76 id<78", true);
    expect(&event, "stream:app-LOG", true);
    expect(&event, "stream=app-log", false);
    expect(&event, "stream:prov", false);
    expect(&event, "stream:app*", true);
    expect(&event, "stream!=prov", true);
    expect(&event, "time:@1000ns", true);
    expect(&event, "time>@1000ns", false);
    expect(&event, "time>=@1000ns", true);
    expect(&event, "time<@1001ns", true);
    expect(&event, "time!=@1000ns", false);
    expect(&event, "arrival:[@2us..@3us)", true);
    expect(&event, "last:1h", true);
    expect(&event, "last:1s", false);
    expect(&event, "time:[now-1h..now)", true);
    expect(&event, "*", true);
    expect(&event, "NOT *", false);
    expect(&event, "time:1970-01-01", true);
}

Test(match, finds_uuids_and_relatives)
{
    static const lahar_uuid parent = {{0x11}};
    static const lahar_uuid child = {{0x22}};
    const lahar_value values[] = {
        {.field = field("uuid"), .type = LAHAR_UUID, .as.uuid = {{0x8f, 0x3a}}},
        {.field = field("parents"), .type = LAHAR_LIST_UUID, .as.uuids = {&parent, 1}},
        {.field = field("children"), .type = LAHAR_LIST_UUID, .as.uuids = {&child, 1}}};
    const lahar_event event = {.stream = 1, .values = values, .value_count = 3};
    expect(&event, "uuid:8f3a0000-0000-0000-0000-000000000000", true);
    expect(&event, "uuid:{8F3A0000000000000000000000000000}", true);
    expect(&event, "uuid=8f3a0000-0000-0000-0000-000000000000", true);
    expect(&event, "uuid:8f3a*", true);
    expect(&event, "uuid:8f3b*", false);
    expect(&event, "uuid:11000000-0000-0000-0000-000000000000", true);
    expect(&event, "uuid:22000000-0000-0000-0000-000000000000", true);
    expect(&event, "uuid=22000000-0000-0000-0000-000000000000", false);
    expect(&event, "parents:11000000-0000-0000-0000-000000000000", true);
    expect(&event, "children:11000000-0000-0000-0000-000000000000", false);
    expect(&event, "uuid~3a00", true);
    expect(&event, "uuid!=8f3a0000-0000-0000-0000-000000000000", false);
}

Test(match, treats_null_as_absent)
{
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_LEVEL, .type = LAHAR_KEYWORD, .is_null = true},
        {.field = field("count"), .type = LAHAR_I64, .is_null = true}};
    const lahar_event event = {.stream = 0, .values = values, .value_count = 2};
    expect(&event, "level:*", false);
    expect(&event, "level!=x", false);
    expect(&event, "level=\"\"", false);
    expect(&event, "count<5", false);
    expect(&event, "NOT level:*", true);
}

Test(match, refuses_values_that_the_field_cannot_have)
{
    expect_invalid("big>abc", 4);
    expect_invalid("x ratio:[1..y]", 12);
    expect_invalid("time:yesterday", 5);
    expect_invalid("time>2015", 5);
    expect_invalid("last:soon", 5);
    expect_invalid("id:abc", 3);
    expect_invalid("id~1", 3);
    expect_invalid("stream>a", 0);
    expect_invalid("attr.x>abc", 7);
    expect_invalid("time:*5", 5);
}

Test(match, globs)
{
    cr_expect(lahar_glob("", 0, "", 0));
    cr_expect(lahar_glob("*", 1, "", 0));
    cr_expect_not(lahar_glob("?", 1, "", 0));
    cr_expect(lahar_glob("?", 1, "\xc3\xa9", 2));
    cr_expect_not(lahar_glob("??", 2, "\xc3\xa9", 2));
    cr_expect(lahar_glob("a*b*c", 5, "aXbYbZc", 7));
    cr_expect_not(lahar_glob("a*b*c", 5, "aXbYbZ", 6));
    cr_expect(lahar_glob("**a**", 5, "a", 1));
    cr_expect(lahar_glob("*ab", 3, "aab", 3));
}

Test(match, looks_for_regular_expressions_in_every_kind_of_text)
{
    const lahar_bytes tags[] = {BYTES("red-7"), BYTES("Blue")};
    const lahar_pair pairs[] = {{BYTES("status"), BYTES("404"), false}};
    const lahar_uuid uuid = {{0x8f, 0x3a, 0x61}};
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_MESSAGE,
         .type = LAHAR_TEXT,
         .as.bytes = BYTES("GET /index.html took 77 ms caf\xc3\xa9 \xff!")},
        {.field = field("host"), .type = LAHAR_KEYWORD, .as.bytes = BYTES("Web-01")},
        {.field = field("tags"), .type = LAHAR_LIST_KEYWORD, .as.keywords = {tags, 2}},
        {.field = field("blob"), .type = LAHAR_BYTES, .as.bytes = BYTES("abc")},
        {.field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP, .as.map = {pairs, 1}},
        {.field = field("uuid"), .type = LAHAR_UUID, .as.uuid = uuid},
    };
    const lahar_event event = {
        .stream = 0, .values = values, .value_count = sizeof values / sizeof values[0]};
    expect(&event, "message:/took \\d+ ms/", true);
    expect(&event, "message:/TOOK/", false);
    expect(&event, "message:/TOOK/i", true);
    expect(&event, "message:/CAF\xc3\x89/i", true);
    expect(&event, "message:/^took/", false);
    expect(&event, "message:/\\/index\\.html/", true);
    expect(&event, "message:/caf. /", true);
    expect(&event, "message:/!$/", true);
    expect(&event, "host:/^[wW]eb-\\d\\d$/", true);
    expect(&event, "host:/eb-0/", true);
    expect(&event, "host:/^web/", false);
    expect(&event, "tags:/^\\w+-\\d$/", true);
    expect(&event, "tags:/green/", false);
    expect(&event, "blob:/^a.c$/", true);
    expect(&event, "attr.status:/^4/", true);
    expect(&event, "status~/^5/", false);
    expect(&event, "uuid:/^8f3a6/", true);
    expect(&event, "~/^404$/", true);
    expect(&event, "~/web/", false);
    expect(&event, "~/web/i", true);
    expect(&event, "NOT message:/took/", false);
    expect(&event, "absent:/x/", false);
}

Test(match, refuses_regular_expressions_that_are_wrong_or_out_of_place)
{
    expect_invalid("host:/a[b/", 9);
    expect_invalid("x OR host~/(/", 12);
    expect_invalid("id:/7/", 3);
    expect_invalid("time:/2015/", 5);
}

Test(match, fails_rather_than_give_a_wrong_answer_when_an_expression_costs_too_much)
{
    char text[300];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '!';
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {text, sizeof text}}};
    const lahar_event event = {.stream = 0, .values = values, .value_count = 1};
    struct lahar_query_node *root = NULL;
    lahar_error error;
    bool matches = true;
    cr_assert_eq(bind("NOT message:/^(a+)+$/", &root, &error), LAHAR_OK);
    cr_expect_eq(lahar_match(&matcher, root, &event, &matches, &error), LAHAR_INVALID);
    cr_expect_not(matches);
    cr_expect_eq(error.offset, 12);
    lahar_query_unbind(root);
    expect(&event, "message:/a!$/", true);
}
