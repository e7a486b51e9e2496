/* Journal files: preallocated, written with zeros ahead, recycled.
 *
 * A file is a header block and regions of equal size, each the home of one image chunk;
 * a jumbo file has one region of its own size and is not written ahead. The
 * header binds the file to a store, a session and a generation, which rises with
 * every use of any file: what an earlier use left never passes a checksum.
 * A file is ready when it, its header and its name are on stable storage. It is
 * reused or unlinked when every region has been handed out and given back.
 *
 * Names are <20 digits>.journal; a number is never used twice in a session. */
#ifndef LAHAR_JOURNAL_SEGMENT_FILE_H
#define LAHAR_JOURNAL_SEGMENT_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/io.h"

enum {
    LAHAR_JOURNAL_HEADER_SIZE = 4096, /* bytes before the first region */
    LAHAR_JOURNAL_NAME_SIZE = 32,
    LAHAR_JOURNAL_REGION_SIZE_MAX = 65 * 1024 * 1024
};

/* The header of a file, read or to be written. */
struct lahar_journal_header {
    uint64_t store_id;
    uint64_t session;
    uint64_t generation;
    uint32_t region_size; /* bytes */
    uint32_t region_count;
};

void lahar_journal_header_encode(uint8_t block[LAHAR_JOURNAL_HEADER_SIZE],
                                 const struct lahar_journal_header *header);
bool lahar_journal_header_has_magic(const uint8_t block[LAHAR_JOURNAL_HEADER_SIZE]);
/* What the fields of a block say that need not be a header. */
void lahar_journal_header_peek(const uint8_t block[LAHAR_JOURNAL_HEADER_SIZE],
                               struct lahar_journal_header *header_out);
/* LAHAR_CORRUPT: not a header; LAHAR_UNSUPPORTED: of a newer version. */
lahar_status lahar_journal_header_decode(const uint8_t block[LAHAR_JOURNAL_HEADER_SIZE],
                                         struct lahar_journal_header *header_out,
                                         lahar_error *error);
void lahar_journal_file_name(uint64_t number, char name_out[LAHAR_JOURNAL_NAME_SIZE]);
/* Whether name is that of a journal file. */
bool lahar_journal_file_number(const char *name, uint64_t *number_out);

struct lahar_segment_file {
    uint64_t number;
    uint64_t generation;
    struct lahar_io_file *file; /* NULL: found at opening and not opened yet */
    uint64_t size_bytes;
    uint32_t region_size;
    uint32_t region_count;
    uint32_t region_used;          /* handed out; by the journal's writer */
    _Atomic uint32_t regions_held; /* not handed out yet, or not given back */
    uint32_t seed;
    uint64_t end_id; /* found at opening: above every recovered batch in it */
    struct lahar_segment_file *next;
};

struct lahar_segment_pool {
    struct lahar_io *io;
    const char *directory;
    const lahar_allocator *allocator;
    uint64_t store_id;
    uint64_t session;
    uint32_t region_size;
    _Atomic uint64_t total_bytes; /* of every file there is */
    bool skips_directory_sync;    /* a planted bug */
    pthread_mutex_t mutex;        /* all below */
    uint64_t next_number;
    uint64_t next_generation;
    struct lahar_segment_file *ready; /* header written, all regions free */
    uint32_t ready_count;
    struct lahar_segment_file *spare; /* to be given a new header */
    uint64_t spare_bytes;
    struct lahar_segment_file *found; /* of earlier sessions, holding recovered batches */
};

/* directory must outlive the pool. first_number: above every name in use. */
void lahar_segment_pool_init(struct lahar_segment_pool *pool, struct lahar_io *io,
                             const char *directory, const lahar_allocator *allocator,
                             uint64_t store_id, uint64_t session, uint32_t region_size,
                             uint64_t first_number);
void lahar_segment_pool_deinit(struct lahar_segment_pool *pool);
/* Adds a file of an earlier session. LAHAR_NO_MEMORY. */
lahar_status lahar_segment_pool_add_found(struct lahar_segment_pool *pool, uint64_t number,
                                          uint64_t size_bytes, bool is_whole, uint64_t end_id,
                                          lahar_error *error);
/* Makes one more file ready by reusing or creating one. is_for_commits: a new one is written with
 * zeros, so that small durable writes change no metadata; loads would wait for so many zeros, and
 * their large writes bear it. Blocks on a sync. LAHAR_BUSY: none can be
 * made at present, for a reason that is not the disk's (descriptors, rights); error says which. */
lahar_status lahar_segment_pool_prepare(struct lahar_segment_pool *pool, bool is_for_commits,
                                        lahar_error *error);
uint32_t lahar_segment_pool_ready_count(struct lahar_segment_pool *pool);
/* NULL when none is ready. Any thread. */
struct lahar_segment_file *lahar_segment_pool_take(struct lahar_segment_pool *pool);
/* A file for one frame of region_size bytes, with its header and name on stable storage.
 * LAHAR_BUSY as above. */
lahar_status lahar_segment_pool_create_jumbo(struct lahar_segment_pool *pool, uint32_t region_size,
                                             struct lahar_segment_file **file_out,
                                             lahar_error *error);
/* Unlinks the files that nobody uses, but for a few: when a store closes. */
void lahar_segment_pool_trim(struct lahar_segment_pool *pool);
/* Gives a region back; the last one makes the file spare or unlinks it. */
void lahar_segment_pool_give_back(struct lahar_segment_pool *pool, struct lahar_segment_file *file);
/* Found files whose batches all lie below rolled_id become spare. */
void lahar_segment_pool_forget(struct lahar_segment_pool *pool, uint64_t rolled_id);
/* Closes a file without giving anything back: at destruction. */
void lahar_segment_file_close(struct lahar_segment_pool *pool, struct lahar_segment_file *file);

#endif
