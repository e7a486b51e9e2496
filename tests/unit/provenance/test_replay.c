/* Content and replay: exact bytes, every refusal with its own reason, nothing recorded but the
 * REPLAY. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "prov_store.h"

/* A repository with one claim of 10,000 bytes at offset 100, of a file of 20,000. */
enum {
    FILE_SIZE = 20000,
    CLAIM_OFFSET = 100,
    CLAIM_SIZE = 10000
};

struct repository {
    struct prov_store prov;
    char content[SCRATCH_PATH_SIZE];
    lahar_container container;
    lahar_provenance_options options;
};

static uint8_t byte_at(size_t place)
{
    return (uint8_t)(place * 31 + place / 256);
}

static void path_of(const struct repository *repository, const char *name, char out[600])
{
    (void)snprintf(out, 600, "%s/%s", repository->content, name);
}

static void repository_open(struct repository *repository)
{
    char path[600];
    scratch_create(repository->content);
    path_of(repository, "7", path);
    cr_assert_eq(mkdir(path, 0700), 0);
    path_of(repository, "7/1234-5", path);
    FILE *file = fopen(path, "wb");
    for (size_t i = 0; i < FILE_SIZE; i++) {
        cr_assert_neq(fputc(byte_at(i), file), EOF);
    }
    cr_assert_eq(fclose(file), 0);
    repository->container = (lahar_container){"default", repository->content};
    lahar_provenance_options_init(&repository->options);
    repository->options.containers = &repository->container;
    repository->options.container_count = 1;
    prov_store_open(&repository->prov, &repository->options);
}

static void repository_close(struct repository *repository)
{
    prov_store_close(&repository->prov);
    scratch_remove(repository->content);
}

static lahar_claim good_claim(void)
{
    return (lahar_claim){.container = bytes_of("default"),
                         .section = bytes_of("7"),
                         .id = bytes_of("1234-5"),
                         .has_offset = true,
                         .has_size = true,
                         .offset = CLAIM_OFFSET,
                         .size = CLAIM_SIZE};
}

static lahar_prov_event good_event(void)
{
    static const lahar_pair previous[] = {{{"filename", 8}, {"a.txt", 5}, false},
                                          {{"uuid", 4}, {"u", 1}, false},
                                          {{"flowfile.replay", 15}, {"old", 3}, false}};
    static const lahar_pair updated[] = {{{"filename", 8}, {"b.txt", 5}, false}};
    lahar_prov_event event = make_event(LAHAR_PROV_SEND, "u", 1, NULL, NULL);
    event.previous_claim = good_claim();
    event.claim = good_claim();
    event.claim.offset = 0;
    event.claim.size = 5;
    event.size = 5;
    event.has_previous_size = true;
    event.previous_size = CLAIM_SIZE;
    event.source_queue = bytes_of("queue-1");
    event.lineage_start_ns = 12345;
    event.previous = previous;
    event.previous_count = 3;
    event.updated = updated;
    event.updated_count = 1;
    return event;
}

struct taken {
    uint8_t bytes[FILE_SIZE];
    size_t size;
    bool fails;
};

static lahar_status take(void *context, const void *data, size_t size)
{
    struct taken *taken = context;
    cr_assert_leq(taken->size + size, sizeof taken->bytes);
    memcpy(taken->bytes + taken->size, data, size);
    taken->size += size;
    return taken->fails ? LAHAR_NO_SPACE : LAHAR_OK;
}

static void expect_claimed(const struct taken *taken, size_t offset, size_t size)
{
    cr_assert_eq(taken->size, size);
    for (size_t i = 0; i < size; i++) {
        cr_assert_eq(taken->bytes[i], byte_at(offset + i), "byte %zu", i);
    }
}

static uint64_t next_id(const struct repository *repository)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(repository->prov.store, &stat, NULL), LAHAR_OK);
    return stat.next_id;
}

Test(content, streams_both_sides_and_records_nothing)
{
    static struct repository repository;
    static struct taken taken;
    lahar_refusal refusal = LAHAR_REFUSAL_JOIN;
    repository_open(&repository);
    const lahar_prov_event event = good_event();
    const uint64_t id = put_event(&repository.prov, &event);
    const uint64_t before = next_id(&repository);
    cr_assert_eq(
        lahar_content_stream(repository.prov.provenance, id, true, take, &taken, &refusal, NULL),
        LAHAR_OK);
    expect_claimed(&taken, CLAIM_OFFSET, CLAIM_SIZE);
    cr_assert_eq(refusal, LAHAR_REFUSAL_NONE);
    taken.size = 0;
    cr_assert_eq(
        lahar_content_stream(repository.prov.provenance, id, false, take, &taken, &refusal, NULL),
        LAHAR_OK);
    expect_claimed(&taken, 0, 5);
    cr_assert_eq(
        lahar_content_stream(repository.prov.provenance, 99, false, take, &taken, &refusal, NULL),
        LAHAR_NOT_FOUND);
    cr_assert_eq(refusal, LAHAR_REFUSAL_NONE);
    cr_assert_eq(next_id(&repository), before);
    repository_close(&repository);
}

static lahar_bytes attribute(const lahar_flowfile *flowfile, const char *name)
{
    for (size_t i = 0; i < flowfile->attribute_count; i++) {
        const lahar_pair *pair = &flowfile->attributes[i];
        if (pair->key.size == strlen(name) && memcmp(pair->key.data, name, pair->key.size) == 0) {
            return pair->value;
        }
    }
    return (lahar_bytes){NULL, 0};
}

static bool is(lahar_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

Test(replay, streams_the_bytes_and_records_a_replay)
{
    static struct repository repository;
    static struct taken taken;
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    lahar_error error = {.status = LAHAR_OK};
    lahar_replay *replay = NULL;
    repository_open(&repository);
    const lahar_prov_event event = good_event();
    const uint64_t id = put_event(&repository.prov, &event);
    cr_assert_eq(lahar_replay_run(repository.prov.provenance, id, bytes_of(NULL), take, &taken,
                                  &replay, &refusal, &error),
                 LAHAR_OK, "%s", error.message);
    expect_claimed(&taken, CLAIM_OFFSET, CLAIM_SIZE);
    const lahar_flowfile *flowfile = lahar_replay_flowfile(replay);
    cr_assert_eq(flowfile->uuid.size, 36);
    cr_assert(is(flowfile->queue, "queue-1"));
    cr_assert_eq(flowfile->size, CLAIM_SIZE);
    cr_assert_eq(flowfile->lineage_start_ns, 12345);
    cr_assert_eq(flowfile->attribute_count, 4);
    cr_assert(is(attribute(flowfile, "filename"), "a.txt"));
    cr_assert(is(attribute(flowfile, "flowfile.replay"), "true"));
    cr_assert_eq(attribute(flowfile, "flowfile.replay.timestamp").size, 24);
    cr_assert_eq(memcmp(attribute(flowfile, "uuid").data, flowfile->uuid.data, 36), 0);
    lahar_prov_record *record = NULL;
    cr_assert_eq(
        lahar_prov_get(repository.prov.provenance, lahar_replay_event_id(replay), &record, &error),
        LAHAR_OK);
    const lahar_prov_event *made = lahar_prov_record_event(record);
    cr_assert_eq(made->type, LAHAR_PROV_REPLAY);
    cr_assert(is(made->uuid, "u"));
    cr_assert_eq(made->parent_count, 1);
    cr_assert(is(made->parents[0], "u"));
    cr_assert_eq(made->child_count, 1);
    cr_assert_eq(memcmp(made->children[0].data, flowfile->uuid.data, 36), 0);
    cr_assert(is(made->component, "component"));
    cr_assert(is(made->component_type, "UnitTest"));
    cr_assert(is(made->source_queue, "queue-1"));
    cr_assert_eq(made->lineage_start_ns, 12345);
    lahar_prov_record_close(record);
    lahar_replay_close(replay);
    repository_close(&repository);
}

static void expect_refused(struct repository *repository, const lahar_prov_event *event,
                           lahar_refusal expected, const char *reason)
{
    static struct taken taken;
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    lahar_error error = {.status = LAHAR_OK};
    lahar_replay *replay = NULL;
    taken.size = 0;
    const uint64_t id = put_event(&repository->prov, event);
    const uint64_t before = next_id(repository);
    cr_assert_eq(lahar_replay_run(repository->prov.provenance, id, bytes_of(NULL), take, &taken,
                                  &replay, &refusal, &error),
                 LAHAR_NOT_FOUND, "%s", error.message);
    cr_assert_eq(refusal, expected, "%s: %s", lahar_refusal_name(refusal), error.message);
    cr_assert_not_null(strstr(error.message, reason), "%s", error.message);
    cr_assert_null(replay);
    cr_assert_eq(taken.size, 0);
    cr_assert_eq(next_id(repository), before, "nothing may be recorded");
}

Test(replay, refuses_each_with_its_own_reason)
{
    static struct repository repository;
    char from[600];
    char to[600];
    repository_open(&repository);
    lahar_prov_event event = good_event();
    event.type = LAHAR_PROV_JOIN;
    event.parents = &event.uuid;
    event.parent_count = 1;
    expect_refused(&repository, &event, LAHAR_REFUSAL_JOIN, "joins several");
    event = good_event();
    event.previous_claim = (lahar_claim){.has_offset = false};
    expect_refused(&repository, &event, LAHAR_REFUSAL_NO_CLAIM, "names no content claim");
    event = good_event();
    event.previous_claim.section = bytes_of(NULL);
    expect_refused(&repository, &event, LAHAR_REFUSAL_PARTIAL_CLAIM, "no section");
    event = good_event();
    event.previous_claim.has_offset = false;
    expect_refused(&repository, &event, LAHAR_REFUSAL_PARTIAL_CLAIM, "no offset");
    event = good_event();
    event.previous_claim.has_size = false;
    event.has_previous_size = false;
    expect_refused(&repository, &event, LAHAR_REFUSAL_PARTIAL_CLAIM, "no size");
    event = good_event();
    event.previous_claim.id = bytes_of("../7/1234-5");
    expect_refused(&repository, &event, LAHAR_REFUSAL_BAD_CLAIM, "not a plain file name");
    event.previous_claim.id = bytes_of("1234-5");
    event.previous_claim.section = bytes_of("..");
    expect_refused(&repository, &event, LAHAR_REFUSAL_BAD_CLAIM, "not a plain file name");
    event = good_event();
    event.previous_claim.container = bytes_of("elsewhere");
    expect_refused(&repository, &event, LAHAR_REFUSAL_UNKNOWN_CONTAINER, "elsewhere");
    event = good_event();
    event.previous_claim.size = FILE_SIZE;
    expect_refused(&repository, &event, LAHAR_REFUSAL_TRUNCATED, "truncated");
    event.previous_claim.offset = UINT64_MAX;
    expect_refused(&repository, &event, LAHAR_REFUSAL_TRUNCATED, "truncated");
    event = good_event();
    event.source_queue = bytes_of(NULL);
    expect_refused(&repository, &event, LAHAR_REFUSAL_NO_QUEUE, "names no queue");
    path_of(&repository, "7/archive", to);
    cr_assert_eq(mkdir(to, 0700), 0);
    path_of(&repository, "7/1234-5", from);
    path_of(&repository, "7/archive/1234-5", to);
    cr_assert_eq(rename(from, to), 0);
    event = good_event();
    expect_refused(&repository, &event, LAHAR_REFUSAL_ARCHIVED, "archived");
    cr_assert_eq(remove(to), 0);
    expect_refused(&repository, &event, LAHAR_REFUSAL_DELETED, "deleted");
    event.previous_claim.section = bytes_of("8");
    expect_refused(&repository, &event, LAHAR_REFUSAL_DELETED, "deleted");
    repository_close(&repository);
}

static bool knows_only_two(void *context, lahar_bytes queue)
{
    (void)context;
    return is(queue, "queue-2");
}

Test(replay, asks_the_host_for_the_queue)
{
    static struct repository repository;
    static struct taken taken;
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    lahar_replay *replay = NULL;
    repository_open(&repository);
    lahar_provenance_close(repository.prov.provenance);
    repository.prov.options.queue_exists = knows_only_two;
    cr_assert_eq(lahar_provenance_open(repository.prov.store, &repository.prov.options,
                                       &repository.prov.provenance, NULL),
                 LAHAR_OK);
    lahar_prov_event event = good_event();
    expect_refused(&repository, &event, LAHAR_REFUSAL_QUEUE_GONE, "queue-1 no longer exists");
    event.source_queue = bytes_of(NULL);
    const uint64_t id = put_event(&repository.prov, &event);
    cr_assert_eq(lahar_replay_run(repository.prov.provenance, id, bytes_of("queue-2"), take, &taken,
                                  &replay, &refusal, NULL),
                 LAHAR_OK);
    cr_assert(is(lahar_replay_flowfile(replay)->queue, "queue-2"));
    lahar_replay_close(replay);
    repository_close(&repository);
}

Test(replay, records_nothing_when_the_bytes_are_not_taken)
{
    static struct repository repository;
    static struct taken taken = {.fails = true};
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    lahar_replay *replay = NULL;
    repository_open(&repository);
    const lahar_prov_event event = good_event();
    const uint64_t id = put_event(&repository.prov, &event);
    const uint64_t before = next_id(&repository);
    cr_assert_eq(lahar_replay_run(repository.prov.provenance, id, bytes_of(NULL), take, &taken,
                                  &replay, &refusal, NULL),
                 LAHAR_NO_SPACE);
    cr_assert_eq(next_id(&repository), before);
    repository_close(&repository);
}

static lahar_refusal is_there(void *context, const lahar_claim *claim)
{
    return is(claim->id, context) ? LAHAR_REFUSAL_NONE : LAHAR_REFUSAL_DELETED;
}

static lahar_status give_pattern(void *context, const lahar_claim *claim, uint64_t offset,
                                 void *data, size_t size, size_t *read_out, lahar_error *error)
{
    (void)context;
    (void)error;
    *read_out = size < 777 ? size : 777;
    for (size_t i = 0; i < *read_out; i++) {
        ((uint8_t *)data)[i] = byte_at((size_t)(claim->offset + offset) + i);
    }
    return LAHAR_OK;
}

Test(replay, reads_from_the_content_store_of_the_host)
{
    static struct repository repository;
    static struct taken taken;
    static char known[] = "1234-5";
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    const lahar_content_store store = {is_there, give_pattern, known};
    repository_open(&repository);
    lahar_provenance_close(repository.prov.provenance);
    repository.prov.options.content = &store;
    cr_assert_eq(lahar_provenance_open(repository.prov.store, &repository.prov.options,
                                       &repository.prov.provenance, NULL),
                 LAHAR_OK);
    lahar_prov_event event = good_event();
    const uint64_t id = put_event(&repository.prov, &event);
    cr_assert_eq(
        lahar_content_stream(repository.prov.provenance, id, true, take, &taken, &refusal, NULL),
        LAHAR_OK);
    expect_claimed(&taken, CLAIM_OFFSET, CLAIM_SIZE);
    event.previous_claim.id = bytes_of("other");
    expect_refused(&repository, &event, LAHAR_REFUSAL_DELETED, "the content store says: deleted");
    repository_close(&repository);
}

static bool hides_all(void *context, const lahar_event *event)
{
    (void)context;
    (void)event;
    return false;
}

Test(replay, is_denied_for_what_may_not_be_seen)
{
    static struct repository repository;
    static struct taken taken;
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    lahar_replay *replay = NULL;
    repository_open(&repository);
    const lahar_prov_event event = good_event();
    const uint64_t id = put_event(&repository.prov, &event);
    lahar_provenance_close(repository.prov.provenance);
    repository.prov.options.authorize = hides_all;
    cr_assert_eq(lahar_provenance_open(repository.prov.store, &repository.prov.options,
                                       &repository.prov.provenance, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_replay_run(repository.prov.provenance, id, bytes_of(NULL), take, &taken,
                                  &replay, &refusal, NULL),
                 LAHAR_DENIED);
    cr_assert_eq(
        lahar_content_stream(repository.prov.provenance, id, true, take, &taken, &refusal, NULL),
        LAHAR_DENIED);
    cr_assert_eq(taken.size, 0);
    repository_close(&repository);
}

Test(content, is_not_needed_to_get_query_or_draw)
{
    static struct repository repository;
    char path[600];
    char *answers[2];
    repository_open(&repository);
    const lahar_prov_event event = good_event();
    put_event(&repository.prov, &event);
    for (int i = 0; i < 2; i++) {
        size_t size = 0;
        lahar_prov_record *record = NULL;
        lahar_lineage *lineage = NULL;
        lahar_lineage_options options;
        lahar_bytes text;
        FILE *file = open_memstream(&answers[i], &size);
        cr_assert_eq(lahar_prov_get(repository.prov.provenance, 1, &record, NULL), LAHAR_OK);
        const lahar_prov_event *got = lahar_prov_record_event(record);
        (void)fprintf(file, "%d %llu %.*s\n", (int)got->type, (unsigned long long)got->time_ns,
                      (int)got->previous_claim.id.size, (const char *)got->previous_claim.id.data);
        lahar_prov_record_close(record);
        char *ids = ids_of(&repository.prov, "attr.filename:b.txt claim.id:1234-5");
        (void)fprintf(file, "%s\n", ids);
        free(ids);
        lahar_lineage_options_init(&options);
        options.uuid = bytes_of("u");
        cr_assert_eq(lahar_lineage_start(repository.prov.provenance, &options, &lineage, NULL),
                     LAHAR_OK);
        cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        cr_assert_eq(lahar_lineage_format_text(lineage, LAHAR_LINEAGE_JSON, &text, NULL), LAHAR_OK);
        (void)fwrite(text.data, 1, text.size, file);
        lahar_lineage_close(lineage);
        (void)fclose(file);
        path_of(&repository, "7/1234-5", path);
        (void)remove(path);
    }
    cr_assert_str_eq(answers[0], answers[1]);
    free(answers[0]);
    free(answers[1]);
    repository_close(&repository);
}
