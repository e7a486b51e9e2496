/* What merging shards and looking up in them costs, over the shards of a store (or any others).
 *
 *   bench_shards merge FANIN FILE...               merges by FANIN, tier after tier, until one is
 * left bench_shards uuid FIELD FILE...                ids of a uuid over all shards bench_shards
 * and FIELD VALUE FIELD VALUE FILE...   count of the events that have both keywords
 *
 * A file may be given several times and is then several shards.
 *
 * Files are read into memory first, nothing is written. Times are of this thread's processor time,
 * so that they bear a loaded machine; docs/benchmarks.md says how to read them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "index/shard_merge.h"
#include "index/shard_reader.h"
#include "io/base/allocator.h"

enum {
    LOOKUPS = 2001,
    ROUNDS = 21
};

struct input {
    uint8_t *data;
    size_t size;
    struct lahar_shard_cache cache; /* has room for all */
    struct lahar_shard *shard;
};

static void require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "bench_shards: %s failed\n", what);
        exit(1);
    }
}

static double thread_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static lahar_status fetch(void *context, uint64_t offset, void *data, size_t size,
                          lahar_error *error)
{
    const struct input *input = context;
    (void)error;
    memcpy(data, input->data + offset, size);
    return LAHAR_OK;
}

static void open_input(struct input *input)
{
    const struct lahar_shard_source source = {
        .fetch = fetch, .context = input, .size = input->size, .cache = &input->cache};
    lahar_shard_cache_init(&input->cache, UINT64_MAX);
    require(lahar_shard_open(&source, &lahar_allocator_libc, &input->shard, NULL) == LAHAR_OK,
            "opening a shard");
}

static void read_input(struct input *input, const char *name)
{
    FILE *file = fopen(name, "rb");
    require(file != NULL && fseek(file, 0, SEEK_END) == 0, name);
    input->size = (size_t)ftell(file);
    input->data = malloc(input->size);
    require(input->data != NULL && fseek(file, 0, SEEK_SET) == 0 &&
                fread(input->data, 1, input->size, file) == input->size,
            name);
    (void)fclose(file);
    open_input(input);
}

static void close_input(struct input *input)
{
    lahar_shard_close(input->shard);
    free(input->data);
}

/* --- merging ------------------------------------------------------------------------ */

static lahar_status append(void *context, const void *data, size_t size, lahar_error *error)
{
    struct lahar_buffer *out = context;
    (void)error;
    lahar_buffer_put(out, data, size);
    return out->has_failed ? LAHAR_NO_MEMORY : LAHAR_OK;
}

static double merge_some(const struct input *inputs, size_t count, struct input *output)
{
    struct lahar_shard *shards[LAHAR_SHARD_MERGE_MAX];
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        shards[i] = inputs[i].shard;
        size += inputs[i].size;
    }
    require(lahar_buffer_reserve(&out, size + size / 2), "memory");
    const struct lahar_shard_merge merge = {.inputs = shards,
                                            .input_count = count,
                                            .sink = {append, &out},
                                            .allocator = &lahar_allocator_libc};
    lahar_error error = {0};
    const double start = thread_seconds();
    const lahar_status status = lahar_shard_merge(&merge, &error);
    const double seconds = thread_seconds() - start;
    require(status == LAHAR_OK, error.message);
    *output = (struct input){.data = out.data, .size = out.size};
    open_input(output);
    return seconds;
}

static void run_merge(struct input *inputs, size_t count, size_t fan_in)
{
    double total_ns = 0;
    for (unsigned tier = 1; count > 1; tier++) {
        uint64_t events = 0;
        uint64_t bytes_before = 0;
        uint64_t bytes_after = 0;
        double seconds = 0;
        size_t merged = 0;
        for (size_t i = 0; i < count; i += fan_in) {
            const size_t n = count - i < fan_in ? count - i : fan_in;
            struct input output;
            for (size_t k = i; k < i + n; k++) {
                bytes_before += inputs[k].size;
                events += lahar_shard_document_count(inputs[k].shard);
            }
            seconds += merge_some(inputs + i, n, &output);
            bytes_after += output.size;
            for (size_t k = i; k < i + n; k++) {
                close_input(&inputs[k]);
            }
            /* Its source is its place in the array. */
            lahar_shard_close(output.shard);
            inputs[merged] = output;
            open_input(&inputs[merged++]);
        }
        total_ns += seconds / (double)events * 1e9;
        (void)printf("tier %u: %4zu into %3zu, %9llu events %8.1f ns/event %8.1f MB/s "
                     "%7.2f -> %.2f B/event\n",
                     tier, count, merged, (unsigned long long)events,
                     seconds / (double)events * 1e9, (double)bytes_before / seconds / 1e6,
                     (double)bytes_before / (double)events, (double)bytes_after / (double)events);
        count = merged;
    }
    (void)printf("all tiers: %.1f ns/event\n", total_ns);
    close_input(&inputs[0]);
}

/* --- looking up ----------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint32_t find_field(const struct input *input, const char *name,
                           enum lahar_field_class field_class)
{
    uint32_t field = 0;
    require(lahar_shard_find_field(input->shard, name, strlen(name), field_class, &field),
            "finding the field");
    return field;
}

/* Each uuid is one of some shard; the ids of its events are read from all shards. */
static void run_uuid(struct input *inputs, size_t count, const char *name)
{
    static double times[LOOKUPS];
    uint64_t found = 0;
    for (size_t round = 0; round < LOOKUPS; round++) {
        const struct input *owner = &inputs[round * 7919 % count];
        const struct lahar_directory *directory = &owner->shard->directory;
        const uint32_t own = find_field(owner, name, LAHAR_CLASS_UUID);
        lahar_uuid uuid;
        uint64_t reference = 0;
        require(lahar_uuid_table_at(&owner->shard->pages, &directory->fields[own].uuids,
                                    round * 104729 % directory->fields[own].uuids.count, &uuid,
                                    &reference, NULL) == LAHAR_OK,
                "choosing a uuid");
        const double start = thread_seconds();
        for (size_t i = 0; i < count; i++) {
            const uint32_t documents = lahar_shard_document_count(inputs[i].shard);
            struct lahar_docset set;
            require(lahar_docset_init(&set, documents, &lahar_allocator_libc, NULL) == LAHAR_OK &&
                        lahar_shard_uuid(inputs[i].shard,
                                         find_field(&inputs[i], name, LAHAR_CLASS_UUID), &uuid,
                                         &set, NULL) == LAHAR_OK,
                    "looking a uuid up");
            for (uint32_t d = lahar_docset_next(&set, 0); d < documents;
                 d = lahar_docset_next(&set, d + 1)) {
                found += lahar_shard_id(inputs[i].shard, d) != 0;
            }
            lahar_docset_deinit(&set);
        }
        times[round] = (thread_seconds() - start) * 1e6;
    }
    qsort(times, LOOKUPS, sizeof times[0], compare_doubles);
    (void)printf("uuid over %zu shards: p50 %.1f us  p99 %.1f us, %.1f ids each\n", count,
                 times[LOOKUPS / 2], times[LOOKUPS * 99 / 100], (double)found / LOOKUPS);
}

static void read_keyword(const struct input *input, char **pair, struct lahar_docset *set)
{
    bool is_exact = true;
    require(lahar_docset_init(set, lahar_shard_document_count(input->shard), &lahar_allocator_libc,
                              NULL) == LAHAR_OK &&
                lahar_shard_keyword(input->shard, find_field(input, pair[0], LAHAR_CLASS_KEYWORD),
                                    pair[1], strlen(pair[1]), false, set, &is_exact,
                                    NULL) == LAHAR_OK,
            "looking a keyword up");
}

static void run_and(struct input *inputs, size_t count, char **pairs)
{
    double times[ROUNDS];
    uint64_t postings = 0;
    uint64_t both = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        postings = 0;
        both = 0;
        double seconds = 0;
        for (size_t i = 0; i < count; i++) {
            struct lahar_docset sets[2];
            const double start = thread_seconds();
            read_keyword(&inputs[i], pairs, &sets[0]);
            read_keyword(&inputs[i], pairs + 2, &sets[1]);
            both += lahar_docset_count_both(&sets[0], &sets[1]);
            seconds += thread_seconds() - start;
            postings += lahar_docset_count(&sets[0]) + lahar_docset_count(&sets[1]);
            lahar_docset_deinit(&sets[0]);
            lahar_docset_deinit(&sets[1]);
        }
        times[round] = seconds * 1e3;
    }
    qsort(times, ROUNDS, sizeof times[0], compare_doubles);
    const double median = times[ROUNDS / 2];
    (void)printf("and: %llu postings in %zu shards, %llu in both: %.3f ms, %.1f ms for 100 million "
                 "postings\n",
                 (unsigned long long)postings, count, (unsigned long long)both, median,
                 median * 1e8 / (double)postings);
}

int main(int argument_count, char **arguments)
{
    static const struct {
        const char *name;
        size_t arguments;
    } modes[] = {{"merge", 1}, {"uuid", 1}, {"and", 4}};
    size_t mode = 0;
    while (mode < 3 && (argument_count < 2 || strcmp(arguments[1], modes[mode].name) != 0)) {
        mode++;
    }
    if (mode == 3 || (size_t)argument_count < modes[mode].arguments + 3) {
        (void)fprintf(stderr, "usage: bench_shards merge FANIN FILE... | uuid FIELD FILE... | "
                              "and FIELD VALUE FIELD VALUE FILE...\n");
        return 2;
    }
    const size_t first = 2 + modes[mode].arguments;
    const size_t count = (size_t)argument_count - first;
    struct input *inputs = calloc(count, sizeof *inputs);
    require(inputs != NULL, "memory");
    for (size_t i = 0; i < count; i++) {
        read_input(&inputs[i], arguments[first + i]);
    }
    if (mode == 0) {
        const size_t fan_in = strtoull(arguments[2], NULL, 10);
        require(fan_in > 1 && fan_in <= LAHAR_SHARD_MERGE_MAX, "a fan-in of 2 to 64");
        run_merge(inputs, count, fan_in);
    } else {
        if (mode == 1) {
            run_uuid(inputs, count, arguments[2]);
        } else {
            run_and(inputs, count, arguments + 2);
        }
        for (size_t i = 0; i < count; i++) {
            close_input(&inputs[i]);
        }
    }
    free(inputs);
    return 0;
}
