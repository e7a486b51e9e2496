/* RocksDB doing Lahar's work as one does it by hand: events under their ids, and index keys in a
 * second column family for what is to be searched.
 *
 *   rocksdb_peer ingest FRAMES DIRECTORY [index=0|1] [sync=0|1] [threads=N]
 *   rocksdb_peer commit DIRECTORY THREADS SECONDS
 *
 * Index keys: a letter for the field, the value, the id, no value; fields are FlowFile, component,
 * file name, and type with time. Batches of 1,000 events; lz4; four memtables of 64 MB, two
 * background threads, blocks of 16 KB. Finished means that all memtables are flushed: compaction
 * may still be owed, which is in RocksDB's favour. commit writes one event a write, synced. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rocksdb/c.h>

#include "bench/peers/peer.h"
#include "bench/w1_frame.h"

enum {
    FAMILIES = 2,
    FAMILY_EVENTS = 0,
    FAMILY_INDEX = 1,
    BATCH_EVENTS = 1000,
    KEY_SIZE_MAX = 512,
    THREADS_MAX = 64,
    COMMIT_SEED = 42
};

struct peer {
    rocksdb_t *database;
    rocksdb_column_family_handle_t *families[FAMILIES];
    rocksdb_writeoptions_t *write_options;
    struct peer_reader reader;
    atomic_uint_fast64_t event_count;
    atomic_uint_fast64_t next_id; /* of commits */
    uint64_t end_ns;              /* of commits */
    bool has_index;
};

static void check(char *error)
{
    if (error != NULL) {
        peer_fail(error);
    }
}

static void open_database(struct peer *peer, const char *directory, bool is_synced)
{
    static const char *const NAMES[FAMILIES] = {"default", "index"};
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru((size_t)512 << 20);
    const rocksdb_options_t *all[FAMILIES] = {options, options};
    char *error = NULL;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_increase_parallelism(options, 2);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_write_buffer_size(options, (size_t)64 << 20);
    rocksdb_options_set_max_write_buffer_number(options, 4);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_block_size(table, 16 << 10);
    rocksdb_options_set_block_based_table_factory(options, table);
    peer->database = rocksdb_open_column_families(options, directory, FAMILIES, NAMES, all,
                                                  peer->families, &error);
    check(error);
    peer->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(peer->write_options, is_synced);
    rocksdb_cache_destroy(cache);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
}

static void close_database(struct peer *peer)
{
    rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
    char *error = NULL;
    for (int i = 0; i < FAMILIES; i++) {
        rocksdb_flush_cf(peer->database, flush, peer->families[i], &error);
        check(error);
    }
    for (int i = 0; i < FAMILIES; i++) {
        rocksdb_column_family_handle_destroy(peer->families[i]);
    }
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(peer->write_options);
    rocksdb_close(peer->database);
}

/* Big-endian, so that keys sort as numbers do. */
static size_t put_number(char *at, uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (char)(number >> (56 - 8 * i));
    }
    return 8;
}

static void put_index_key(struct peer *peer, rocksdb_writebatch_t *batch, char field,
                          lahar_bytes value, bool has_end, uint64_t id)
{
    char key[KEY_SIZE_MAX];
    size_t size = 0;
    if (value.size > KEY_SIZE_MAX - 16) {
        peer_fail("a value is too long for a key");
    }
    key[size++] = field;
    memcpy(key + size, value.data, value.size);
    size += value.size;
    if (has_end) {
        key[size++] = '\0';
    }
    size += put_number(key + size, id);
    rocksdb_writebatch_put_cf(batch, peer->families[FAMILY_INDEX], key, size, "", 0);
}

static void put_event(struct peer *peer, rocksdb_writebatch_t *batch,
                      const struct w1_frame_keys *keys, const uint8_t *payload, size_t size)
{
    char id[8];
    char time[9];
    rocksdb_writebatch_put_cf(batch, peer->families[FAMILY_EVENTS], id, put_number(id, keys->id),
                              (const char *)payload, size);
    if (!peer->has_index) {
        return;
    }
    put_index_key(peer, batch, 'F', keys->flowfile, false, keys->id);
    put_index_key(peer, batch, 'C', keys->component, false, keys->id);
    put_index_key(peer, batch, 'N', keys->filename, true, keys->id);
    time[0] = (char)keys->type;
    (void)put_number(time + 1, keys->time_ms);
    put_index_key(peer, batch, 'T', (lahar_bytes){.data = time, .size = sizeof time}, false,
                  keys->id);
}

static void write_batch(struct peer *peer, rocksdb_writebatch_t *batch)
{
    char *error = NULL;
    rocksdb_write(peer->database, peer->write_options, batch, &error);
    check(error);
    rocksdb_writebatch_clear(batch);
}

static void *ingest(void *argument)
{
    struct peer *peer = argument;
    const size_t room = (size_t)BATCH_EVENTS * W1_FRAME_SIZE_MAX;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    uint8_t *frames = malloc(room);
    if (frames == NULL) {
        peer_fail("out of memory");
    }
    for (size_t size = 0;
         (size = peer_reader_take(&peer->reader, BATCH_EVENTS, frames, room)) > 0;) {
        uint64_t count = 0;
        for (size_t at = 0; at < size; count++) {
            struct w1_frame_keys keys;
            uint32_t payload = 0;
            memcpy(&payload, frames + at, sizeof payload);
            at += sizeof payload;
            if (!w1_frame_read(frames + at, payload, &keys)) {
                peer_fail("not a frame");
            }
            put_event(peer, batch, &keys, frames + at, payload);
            at += payload;
        }
        write_batch(peer, batch);
        (void)atomic_fetch_add(&peer->event_count, count);
    }
    free(frames);
    rocksdb_writebatch_destroy(batch);
    return NULL;
}

static void *commit(void *argument)
{
    struct peer *peer = argument;
    struct workload_w1 *workload = workload_w1_create(COMMIT_SEED);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    if (workload == NULL) {
        peer_fail("out of memory");
    }
    while (peer_clock_ns() < peer->end_ns) {
        struct workload_w1_event event;
        struct w1_frame_keys keys;
        char frame[W1_FRAME_SIZE_MAX];
        workload_w1_event(workload, atomic_fetch_add(&peer->next_id, 1), &event);
        const size_t size = w1_frame(&event, frame) - sizeof(uint32_t);
        const uint8_t *payload = (const uint8_t *)frame + sizeof(uint32_t);
        if (!w1_frame_read(payload, size, &keys)) {
            peer_fail("not a frame");
        }
        put_event(peer, batch, &keys, payload, size);
        write_batch(peer, batch);
        (void)atomic_fetch_add(&peer->event_count, 1);
    }
    rocksdb_writebatch_destroy(batch);
    workload_w1_destroy(workload);
    return NULL;
}

static void run_threads(struct peer *peer, void *(*run)(void *), unsigned count)
{
    pthread_t threads[THREADS_MAX];
    if (count == 0 || count > THREADS_MAX) {
        peer_fail("1 to 64 threads");
    }
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, run, peer) != 0) {
            peer_fail("a thread could not be started");
        }
    }
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    static struct peer peer;
    struct peer_result result;
    const bool is_ingest = argc >= 4 && strcmp(argv[1], "ingest") == 0;
    const bool is_commit = argc == 5 && strcmp(argv[1], "commit") == 0;
    unsigned threads = is_commit ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
    unsigned is_synced = is_commit;
    if (!is_ingest && !is_commit) {
        peer_fail("wrong arguments; the head of rocksdb_peer.c has them");
    }
    for (int i = 4; is_ingest && i < argc; i++) {
        unsigned value = 0;
        if (sscanf(argv[i], "index=%u", &value) == 1) {
            peer.has_index = value != 0;
        } else if (sscanf(argv[i], "sync=%u", &value) == 1) {
            is_synced = value;
        } else if (sscanf(argv[i], "threads=%u", &threads) != 1) {
            peer_fail("unknown setting");
        }
    }
    const char *directory = is_ingest ? argv[3] : argv[2];
    if (is_ingest) {
        peer_reader_open(&peer.reader, argv[2]);
    }
    const uint64_t start_ns = peer_clock_ns();
    const uint64_t cpu_ns = peer_cpu_ns();
    open_database(&peer, directory, is_synced != 0);
    peer.end_ns = is_commit ? start_ns + strtoull(argv[4], NULL, 10) * UINT64_C(1000000000) : 0;
    run_threads(&peer, is_ingest ? ingest : commit, threads);
    result.acknowledged_ns = peer_clock_ns() - start_ns;
    close_database(&peer);
    result.finished_ns = peer_clock_ns() - start_ns;
    result.cpu_ns = peer_cpu_ns() - cpu_ns;
    result.events = atomic_load(&peer.event_count);
    if (is_ingest) {
        peer_reader_close(&peer.reader);
    }
    peer_report("rocksdb", &result, directory);
    return 0;
}
