/* Event files: immutable, one stream, columnar blocks of at most 1 MiB of raw
 * events (one larger event has a jumbo block to itself), with a table of contents.
 *
 * On disk: <first id>-<last id>.<number>.events and .toc, ids as 20 decimal
 * digits, number as 8; docs/format/events.md and docs/format/toc.md. */
#ifndef LAHAR_SEGMENT_SEGMENT_H
#define LAHAR_SEGMENT_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/event/schema.h"
#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "io/file_pool.h"
#include "io/io.h"
#include "lahar/event.h"

enum {
    LAHAR_BLOCK_RAW_SIZE = 1024 * 1024
}; /* bytes of rows a block takes at most */
enum {
    LAHAR_FILE_NAME_SIZE = 80,
    /* Bytes of a large file that is written in the background between one sync and the next: what
     * a commit of the journals may have to wait for. */
    LAHAR_FILE_SYNC_STEP = 4 * 1024 * 1024
};

/* What names and describes one event file; also a manifest entry. */
struct lahar_segment_info {
    uint64_t first_id;
    uint64_t last_id; /* inclusive */
    uint64_t number;  /* never reused in a store */
    uint32_t stream;
    uint32_t block_count;
    uint64_t event_count;
    int64_t time_min_ns;
    int64_t time_max_ns;
    int64_t arrival_min_ns;
    int64_t arrival_max_ns;
    uint64_t raw_bytes;  /* of rows */
    uint64_t file_bytes; /* of the .events file */
    uint64_t toc_bytes;
    uint64_t group_first_id;   /* the rolled id range of which this file holds one stream */
    uint64_t group_end_id;     /* exclusive */
    uint32_t group_file_count; /* event files of that rollover; 0: joined from several rollovers */
};

/* "<first>-<last>.<number>" + suffix (".events", ".toc", ".shard"). */
void lahar_segment_file_name(const struct lahar_segment_info *info, const char *suffix,
                             char name_out[LAHAR_FILE_NAME_SIZE]);

/* --- writing --------------------------------------------------------------- */

struct lahar_segment_writer;
struct lahar_segment;       /* an open event file; reference-counted; thread-safe */
struct lahar_block_columns; /* engine/segment/block_writer.h */
struct lahar_block_order;   /* engine/segment/block_order.h */

struct lahar_segment_writer_options {
    uint32_t compression_level; /* 0: blocks stored as they are; 1 .. 12 */
    uint64_t number;
    uint32_t stream;
    uint64_t group_first_id;
    uint64_t group_end_id;
    uint32_t group_file_count;
    /* Sees the columns of every block, in order; NULL: nobody does. */
    lahar_status (*observe_block)(void *context, const struct lahar_block_columns *columns,
                                  lahar_error *error);
    void *observe_context;
};

/* Creates <number>.events.tmp in directory. */
lahar_status lahar_segment_writer_create(struct lahar_io *io, const char *directory,
                                         const struct lahar_schema_catalog *catalog,
                                         const struct lahar_segment_writer_options *options,
                                         const lahar_allocator *allocator,
                                         struct lahar_segment_writer **writer_out,
                                         lahar_error *error);

/* Takes the next event, ids rising. row is the event as lahar_row_encode wrote
 * it, event the same decoded, with id, arrival and time resolved; both are
 * read during the call only. */
lahar_status lahar_segment_writer_add(struct lahar_segment_writer *writer, const lahar_event *event,
                                      uint32_t row_size, lahar_error *error);

/* In place of adding events: where several threads put whole blocks at once. All of them are done
 * before finish or destroy. */
struct lahar_block_order *lahar_segment_writer_order(struct lahar_segment_writer *writer);

/* Takes all blocks of another file of the stream as they are; its ids lie above those taken before.
 * Events may no longer be added. LAHAR_CORRUPT when a block fails its checksum. */
lahar_status lahar_segment_writer_copy(struct lahar_segment_writer *writer,
                                       struct lahar_segment *from, lahar_error *error);

/* Ends both files, syncs them and gives them their names (the directory is
 * synced by the caller, once for all files of a rollover). */
lahar_status lahar_segment_writer_finish(struct lahar_segment_writer *writer,
                                         struct lahar_segment_info *info_out, lahar_error *error);
/* Without finish: removes what was written. NULL is allowed. */
void lahar_segment_writer_destroy(struct lahar_segment_writer *writer);

/* --- reading --------------------------------------------------------------- */

struct lahar_block_cache; /* decoded blocks, shared by all event files of a store */

lahar_status lahar_block_cache_create(const lahar_allocator *allocator, uint64_t limit_bytes,
                                      struct lahar_block_cache **cache_out, lahar_error *error);
void lahar_block_cache_destroy(struct lahar_block_cache *cache);
void lahar_block_cache_stat(struct lahar_block_cache *cache, uint64_t *hits_out,
                            uint64_t *misses_out, uint64_t *bytes_out);

struct lahar_block; /* one inflated block; reference-counted; immutable */

struct lahar_block_info {
    uint64_t first_id;
    uint64_t last_id;
    uint64_t offset; /* in the .events file */
    uint32_t size;   /* bytes there */
    uint32_t row_count;
    uint32_t first_ordinal; /* rows before it in the file */
    uint32_t checksum;      /* CRC-32C of those bytes */
    int64_t time_min_ns;
    int64_t time_max_ns;
    int64_t arrival_min_ns;
    int64_t arrival_max_ns;
};

/* Opens and checks the toc; a damaged or missing toc is rebuilt in memory from the
 * event file. LAHAR_CORRUPT when neither can be read. */
lahar_status lahar_segment_open(struct lahar_file_pool *pool, const char *directory,
                                const struct lahar_segment_info *info,
                                const struct lahar_schema_catalog *catalog,
                                struct lahar_block_cache *cache, const lahar_allocator *allocator,
                                struct lahar_segment **segment_out, lahar_error *error);
/* Whether the blocks' headers stand in for a toc that was lost or damaged. */
bool lahar_segment_lacks_toc(const struct lahar_segment *segment);
void lahar_segment_acquire(struct lahar_segment *segment);
void lahar_segment_release(struct lahar_segment *segment); /* NULL is allowed */
const struct lahar_segment_info *lahar_segment_describe(const struct lahar_segment *segment);
const struct lahar_block_info *lahar_segment_block_info(const struct lahar_segment *segment,
                                                        uint32_t block);
/* The block whose id range covers id, or the first behind it; block_count at the end. */
uint32_t lahar_segment_find_block(const struct lahar_segment *segment, uint64_t id);
/* The block that holds the event of that ordinal (0 = first event of the file). */
uint32_t lahar_segment_find_ordinal(const struct lahar_segment *segment, uint32_t ordinal);

/* Reads info from the footer of an event file whose name is known (manifest lost). */
lahar_status lahar_segment_probe(struct lahar_io *io, const char *directory,
                                 const char *events_file_name, const lahar_allocator *allocator,
                                 struct lahar_segment_info *info_out, lahar_error *error);

/* From the cache, or read, checked and inflated. LAHAR_CORRUPT names the ids. */
lahar_status lahar_segment_load(struct lahar_segment *segment, uint32_t block,
                                struct lahar_block **block_out, lahar_error *error);
/* Says that the block is going to be loaded, so that it is on its way when it is. Waits for
 * nothing; nothing happens when it is in memory already. */
void lahar_segment_announce(struct lahar_segment *segment, uint32_t block);
/* Whether loading the block would read it, and keep it for the next who loads it. */
bool lahar_segment_would_keep(const struct lahar_segment *segment, uint32_t block);
/* Appends the stored bytes of a block, checked against the table of contents, to out. */
lahar_status lahar_segment_read_stored(struct lahar_segment *segment, uint32_t block,
                                       struct lahar_buffer *out, lahar_error *error);
/* As load, past the cache and checking every byte: for verify. */
lahar_status lahar_segment_check(struct lahar_segment *segment, uint32_t block,
                                 struct lahar_block **block_out, lahar_error *error);
/* Checks what stands before the first and behind the last block, and the file's size, against
 * what the segment was opened with: for verify. */
lahar_status lahar_segment_check_ends(struct lahar_segment *segment, lahar_error *error);
void lahar_block_release(struct lahar_block *block); /* NULL is allowed */

uint32_t lahar_block_row_count(const struct lahar_block *block);
uint64_t lahar_block_id(const struct lahar_block *block, uint32_t row);
int64_t lahar_block_time(const struct lahar_block *block, uint32_t row);
/* The row of an id, or the first row above it; row_count at the end. */
uint32_t lahar_block_find(const struct lahar_block *block, uint64_t id);
/* Rebuilds the event, is_durable set; strings point into the block, arrays
 * into the arena. */
lahar_status lahar_block_read(const struct lahar_block *block, uint32_t row,
                              struct lahar_arena *arena, lahar_event *event_out,
                              lahar_error *error);
/* The same of some fields, so that the columns of others are not inflated. fields NULL: all. */
lahar_status lahar_block_read_fields(const struct lahar_block *block, uint32_t row,
                                     const uint32_t *fields, size_t field_count,
                                     struct lahar_arena *arena, lahar_event *event_out,
                                     lahar_error *error);

#endif
