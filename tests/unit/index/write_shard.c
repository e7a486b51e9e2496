/* write_shard SEED COUNT FILE [PIECES]: writes a shard of COUNT random documents to FILE, merged of
 * PIECES shards of about the same size if that is given, and says on standard output, fact by fact,
 * what went into it, for a decoder to be compared with: id DOCUMENT ID | time DOCUMENT NUMBER |
 * keyword, token, uuid NAME DOCUMENT HEX | number NAME DOCUMENT NUMBER | present NAME CLASS
 * DOCUMENT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/shard_merge.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

static struct lahar_shard_builder *builder;
static uint64_t random_state;
static uint32_t document;

static void fail_if(lahar_status status)
{
    if (status != LAHAR_OK) {
        fprintf(stderr, "write_shard: %s\n", lahar_status_name(status));
        exit(1);
    }
}

static uint32_t field(const char *name, enum lahar_field_class field_class)
{
    uint32_t number = 0;
    fail_if(lahar_shard_builder_field(builder, name, strlen(name), field_class, &number, NULL));
    return number;
}

static void put_hex(const char *kind, const char *name, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    printf("%s %s %u ", kind, name, document);
    for (size_t i = 0; i < size; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
}

static void keyword(const char *name, const char *value)
{
    fail_if(lahar_shard_builder_keyword(builder, field(name, LAHAR_CLASS_KEYWORD), value,
                                        strlen(value), NULL));
    put_hex("keyword", name, value, strlen(value));
    printf("present %s 1 %u\n", name, document);
}

static void number(const char *name, uint64_t value)
{
    fail_if(lahar_shard_builder_number(builder, field(name, LAHAR_CLASS_NUMBER), value, NULL));
    printf("number %s %u %llu\n", name, document, (unsigned long long)value);
    printf("present %s 4 %u\n", name, document);
}

static uint64_t below(uint64_t limit)
{
    return random_below(&random_state, limit);
}

static void text(void)
{
    char line[256] = "";
    const uint64_t count = below(6);
    for (uint64_t i = 0; i < count; i++) {
        char word[32];
        snprintf(word, sizeof word, "%s%llx", below(2) == 0 ? "w" : "",
                 (unsigned long long)(below(5) * below(4000)));
        put_hex("token", "message", word, strlen(word));
        strcat(strcat(line, word), " - ");
    }
    fail_if(lahar_shard_builder_text(builder, field("message", LAHAR_CLASS_TEXT), line,
                                     strlen(line), NULL));
    printf("present message 2 %u\n", document);
}

/* Uuids come from few objects, or half of them are new; what depends on the object alone is
 * shared by its events. */
static bool has_objects;

static void fill(void)
{
    char value[600];
    static const char *types[] = {"SEND", "Send", "receive", "DROP"};
    keyword("type", types[below(4)]);
    keyword("same", "");
    snprintf(value, sizeof value, "/data/in-%llu/%08llx", (unsigned long long)below(20),
             (unsigned long long)below(UINT32_MAX));
    keyword("path", value);
    keyword("hex", value + strlen(value) - 1 - below(7));
    if (below(40) != 0) {
        keyword("most", "here");
    }
    if (below(30) == 0) {
        memset(value, (int)('A' + below(2)), sizeof value - 1);
        value[sizeof value - 1] = '\0';
        keyword("long", value + below(400));
    }
    text();
    lahar_uuid uuid = {{0}};
    const uint64_t object = below(document / 5 + 1);
    const uint64_t v = has_objects     ? object * UINT64_C(0x9e3779b97f4a7c15)
                       : below(2) == 0 ? below(9)
                                       : random_next(&random_state);
    memcpy(uuid.bytes + (has_objects ? 0 : below(2) * 8), &v, sizeof v);
    if (has_objects) {
        snprintf(value, sizeof value, "object-%llu", (unsigned long long)object);
        keyword("name", value);
        snprintf(value, sizeof value, "owner-%llu", (unsigned long long)(object % 40));
        keyword("owner", value);
        number("weight", object * 77);
        if (object % 4 != 0) {
            number("height", object % 300);
        }
    }
    fail_if(lahar_shard_builder_uuid(builder, field("uuid", LAHAR_CLASS_UUID), &uuid, NULL));
    put_hex("uuid", "uuid", uuid.bytes, sizeof uuid.bytes);
    printf("present uuid 3 %u\n", document);
    number("size", below(100000) * 250);
    if (below(3) != 0) {
        number("any", random_next(&random_state));
    }
    if (below(100) == 0) {
        number("rare", below(5));
        number("rare", 5 + below(5));
    }
}

static struct lahar_buffer pieces[LAHAR_SHARD_MERGE_MAX];
static size_t piece_count;

static void end_piece(void)
{
    lahar_buffer_init(&pieces[piece_count], &lahar_allocator_libc);
    fail_if(lahar_shard_builder_finish(builder, &pieces[piece_count], NULL));
    piece_count++;
}

static lahar_status append(void *context, const void *data, size_t size, lahar_error *error)
{
    (void)error;
    lahar_buffer_put(context, data, size);
    return LAHAR_OK;
}

static void merge_pieces(struct lahar_buffer *out)
{
    struct lahar_shard *shards[LAHAR_SHARD_MERGE_MAX];
    struct memory_source memories[LAHAR_SHARD_MERGE_MAX];
    for (size_t i = 0; i < piece_count; i++) {
        memories[i] = (struct memory_source){.data = pieces[i].data, .size = pieces[i].size};
        const struct lahar_shard_source source = memory_source(&memories[i]);
        fail_if(lahar_shard_open(&source, &lahar_allocator_libc, &shards[i], NULL));
    }
    const struct lahar_shard_merge merge = {.inputs = shards,
                                            .input_count = piece_count,
                                            .sink = {append, out},
                                            .allocator = &lahar_allocator_libc};
    fail_if(lahar_shard_merge(&merge, NULL));
    for (size_t i = 0; i < piece_count; i++) {
        lahar_shard_close(shards[i]);
        lahar_buffer_deinit(&pieces[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: write_shard SEED COUNT FILE [PIECES]\n");
        return 2;
    }
    random_state = strtoull(argv[1], NULL, 10);
    const uint64_t count = strtoull(argv[2], NULL, 10);
    const uint64_t wanted = argc == 5 ? strtoull(argv[4], NULL, 10) : 1;
    if (wanted == 0 || wanted > LAHAR_SHARD_MERGE_MAX) {
        return 2;
    }
    const uint64_t gaps = 2 + below(100);
    has_objects = strtoull(argv[1], NULL, 10) % 2 == 0;
    fail_if(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL));
    uint64_t id = 10;
    int64_t time = INT64_C(1700000000000000000);
    for (uint64_t i = 0; i < count; i++) {
        document = (uint32_t)i;
        id += 1 + (below(gaps) == 0 ? below(9) : 0);
        time += (int64_t)below(5) * 1000;
        const int64_t shown = below(300) == 0 ? (int64_t)below(1000) : time;
        fail_if(lahar_shard_builder_document(builder, id, shown, NULL));
        printf("id %u %llu\n", document, (unsigned long long)id);
        printf("time %u %llu\n", document, (unsigned long long)lahar_number_from_i64(shown));
        fill();
        if ((i + 1) % (count / wanted + 1) == 0) {
            end_piece();
        }
    }
    end_piece();
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    if (piece_count == 1) {
        out = pieces[0];
    } else {
        merge_pieces(&out);
    }
    FILE *file = fopen(argv[3], "wb");
    if (file == NULL || fwrite(out.data, 1, out.size, file) != out.size || fclose(file) != 0) {
        fprintf(stderr, "write_shard: cannot write %s\n", argv[3]);
        return 1;
    }
    lahar_buffer_deinit(&out);
    lahar_shard_builder_destroy(builder);
    return 0;
}
