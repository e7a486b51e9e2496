/* Threads share one open shard whose cache holds almost nothing, so that pages are fetched, pinned
 * and evicted all the time, while another thread moves the limit. Every answer is known beforehand.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/shard.h"
#include "index/shard_cache.h"
#include "io/base/allocator.h"

enum {
    THREADS = 4,
    ROUNDS = 1500,
    DOCUMENTS = 20000,
    VALUES = 5000
};

struct shared {
    struct lahar_buffer bytes;
    struct lahar_shard_cache cache;
    struct lahar_shard *shard;
    _Atomic uint32_t failed;
    _Atomic uint32_t passed;
    _Atomic bool stops;
};

static lahar_status fetch(void *context, uint64_t offset, void *data, size_t size,
                          lahar_error *error)
{
    const struct shared *shared = context;
    (void)error;
    memcpy(data, shared->bytes.data + offset, size);
    return LAHAR_OK;
}

/* Document d has value v<d % VALUES> in "key" and the number d. */
static bool build(struct shared *shared)
{
    struct lahar_shard_builder *builder = NULL;
    uint32_t key = 0;
    uint32_t n = 0;
    bool ok =
        lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL) == LAHAR_OK &&
        lahar_shard_builder_field(builder, "key", 3, LAHAR_CLASS_KEYWORD, &key, NULL) == LAHAR_OK &&
        lahar_shard_builder_field(builder, "n", 1, LAHAR_CLASS_NUMBER, &n, NULL) == LAHAR_OK;
    for (uint32_t d = 0; d < DOCUMENTS && ok; d++) {
        char value[32];
        snprintf(value, sizeof value, "value-number-%u", d % VALUES);
        ok = lahar_shard_builder_document(builder, d, d, NULL) == LAHAR_OK &&
             lahar_shard_builder_keyword(builder, key, value, strlen(value), NULL) == LAHAR_OK &&
             lahar_shard_builder_number(builder, n, d, NULL) == LAHAR_OK;
    }
    lahar_buffer_init(&shared->bytes, &lahar_allocator_libc);
    ok = ok && lahar_shard_builder_finish(builder, &shared->bytes, NULL) == LAHAR_OK;
    lahar_shard_builder_destroy(builder);
    const struct lahar_shard_source source = {
        .fetch = fetch, .context = shared, .size = shared->bytes.size, .cache = &shared->cache};
    lahar_shard_cache_init(&shared->cache, 1 << 20);
    return ok && lahar_shard_open(&source, &lahar_allocator_libc, &shared->shard, NULL) == LAHAR_OK;
}

static bool look_up(struct lahar_shard *shard, unsigned *seed, struct lahar_docset *set)
{
    uint32_t key = 0;
    uint32_t n = 0;
    bool exact = true;
    char value[32];
    const uint32_t v = (uint32_t)rand_r(seed) % (VALUES + 100);
    const uint32_t low = (uint32_t)rand_r(seed) % DOCUMENTS;
    snprintf(value, sizeof value, "Value-Number-%u", v);
    lahar_docset_clear(set);
    if (!lahar_shard_find_field(shard, "key", 3, LAHAR_CLASS_KEYWORD, &key) ||
        !lahar_shard_find_field(shard, "n", 1, LAHAR_CLASS_NUMBER, &n) ||
        lahar_shard_keyword(shard, key, value, strlen(value), true, set, &exact, NULL) !=
            LAHAR_OK ||
        !exact || lahar_docset_count(set) != (v < VALUES ? DOCUMENTS / VALUES : 0)) {
        return false;
    }
    lahar_docset_clear(set);
    return lahar_shard_number(shard, n, low, low + 99, set, NULL) == LAHAR_OK &&
           lahar_docset_count(set) == (low + 100 <= DOCUMENTS ? 100 : DOCUMENTS - low);
}

static void *search(void *context)
{
    struct shared *shared = context;
    struct lahar_docset set;
    unsigned seed = (unsigned)(uintptr_t)&set;
    if (lahar_docset_init(&set, DOCUMENTS, &lahar_allocator_libc, NULL) != LAHAR_OK) {
        atomic_fetch_add(&shared->failed, 1);
        return NULL;
    }
    for (int i = 0; i < ROUNDS; i++) {
        const bool ok = look_up(shared->shard, &seed, &set);
        atomic_fetch_add(ok ? &shared->passed : &shared->failed, 1);
    }
    lahar_docset_deinit(&set);
    return NULL;
}

static void *squeeze(void *context)
{
    struct shared *shared = context;
    for (uint64_t i = 0; !atomic_load(&shared->stops); i++) {
        lahar_shard_cache_limit(&shared->cache, i % 4 * 17000);
        if (lahar_shard_memory(shared->shard) == 0) {
            atomic_fetch_add(&shared->failed, 1);
        }
    }
    return NULL;
}

int main(void)
{
    struct shared shared = {.shard = NULL};
    pthread_t threads[THREADS];
    pthread_t squeezer;
    int started = 0;
    if (!build(&shared) || pthread_create(&squeezer, NULL, squeeze, &shared) != 0) {
        printf("0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    while (started < THREADS && pthread_create(&threads[started], NULL, search, &shared) == 0) {
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&shared.stops, true);
    pthread_join(squeezer, NULL);
    lahar_shard_close(shared.shard);
    lahar_shard_cache_deinit(&shared.cache);
    lahar_buffer_deinit(&shared.bytes);
    const unsigned failed = atomic_load(&shared.failed) + (started < THREADS ? 1U : 0U);
    printf("%u right answers\n", atomic_load(&shared.passed));
    printf("%d passed, %d failed, 0 skipped\n", failed == 0 ? 1 : 0, failed == 0 ? 0 : 1);
    return failed == 0 ? 0 : 1;
}
