/* What merging shards and looking up in them costs, over the shards of a store (or any others).
 *
 *   bench_shards merge FANIN FILE...      merges by FANIN, tier after tier, until one is left
 *   bench_shards lookup FIELD VALUE FILE...   single look-ups over all shards
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
    LOOKUP_ROUNDS = 200,
    NEWEST_COUNT = 100
};

struct input {
    uint8_t *data;
    size_t size;
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
        .fetch = fetch, .context = input, .size = input->size};
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

int main(int argument_count, char **arguments)
{
    const bool is_merge = argument_count > 3 && strcmp(arguments[1], "merge") == 0;
    require(is_merge, "usage: bench_shards merge FANIN FILE...: reading the arguments");
    const size_t first = 3;
    const size_t count = (size_t)argument_count - first;
    struct input *inputs = calloc(count, sizeof *inputs);
    require(inputs != NULL, "memory");
    for (size_t i = 0; i < count; i++) {
        read_input(&inputs[i], arguments[first + i]);
    }
    const size_t fan_in = strtoull(arguments[2], NULL, 10);
    require(fan_in > 1 && fan_in <= LAHAR_SHARD_MERGE_MAX, "a fan-in of 2 to 64");
    run_merge(inputs, count, fan_in);
    free(inputs);
    return 0;
}
