/* The manifest: the one mutable thing of a store. It says which files make up
 * the store, which sessions wrote it, how far ids are reserved, what the streams are
 * and how far sources are consumed.
 *
 * On disk a manifest is a log of changes in manifest-<number>. A change is atomic and
 * durable when lahar_manifest_commit returns. When the log has outgrown its
 * content, the content is written as manifest-<number + 1>, which takes over once it
 * is durable under its name.
 *
 * Failure model: a change that failed is not on disk (the file was cut back and
 * synced), or the manifest is poisoned and refuses every later change, because it is
 * not known what is on disk. Not thread-safe: the store's manifest lock guards it. */
#ifndef LAHAR_STORE_MANIFEST_H
#define LAHAR_STORE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/event/schema.h"
#include "engine/journal/journal.h"
#include "engine/segment/segment.h"
#include "engine/store/age_clock.h"
#include "engine/store/lost_list.h"
#include "engine/store/offset_table.h"
#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "io/io.h"

struct lahar_manifest_file {
    struct lahar_segment_info info;
    uint64_t shard_bytes;
    uint32_t shard_checksum; /* CRC-32C of the whole file */
    uint32_t toc_checksum;   /* the same of the .toc file */
    bool has_shard;
    uint64_t age_stamp_ns; /* of the age clock, when the file's events were all there */
    uint32_t directory;    /* 0: events/ in the store; else a directory of the manifest */
};

/* A directory for event files besides the store's own; numbers count from 1. */
struct lahar_manifest_directory {
    const char *name; /* terminated; both in the state's arena */
    const char *path; /* as last known */
};

/* What retention may keep, and what it has dropped, of a stream or of the store. */
struct lahar_manifest_retention {
    uint64_t max_bytes;  /* 0: no limit */
    uint64_t max_age_ns; /* 0: no limit */
    uint64_t low_id;     /* of a stream: its events below are dropped */
    uint64_t dropped_events;
    uint64_t dropped_bytes; /* of files */
    uint64_t dropped_files; /* event files */
};

/* A stream as it was specified; the schema's own fields are not among the fields. */
struct lahar_manifest_stream {
    const char *name; /* terminated; in the state's arena */
    lahar_schema schema;
    const lahar_field_spec *fields;
    uint32_t field_count;
    struct lahar_manifest_retention retention;
};

/* What the changes add up to. */
struct lahar_manifest_state {
    const lahar_allocator *allocator;
    struct lahar_arena names;

    const char **fields; /* by field id */
    size_t field_count;
    size_t field_capacity;

    struct lahar_manifest_stream *streams; /* by stream id */
    size_t stream_count;
    size_t stream_capacity;

    /* In order of first id; the last one is open while its end id is 0. */
    struct lahar_journal_session *sessions;
    size_t session_count;
    size_t session_capacity;

    struct lahar_manifest_directory *directories; /* number n at n - 1 */
    size_t directory_count;
    size_t directory_capacity;

    struct lahar_manifest_file *files; /* by the first id of their rollover or rollovers */
    size_t file_count;
    size_t file_capacity;

    struct lahar_lost_list lost;       /* by damage of journals */
    struct lahar_offset_table offsets; /* of the batches below rolled_id */
    uint64_t ceiling;                  /* ids at or above were never handed out; >= 1 */
    uint64_t rolled_id;
    uint64_t next_file_number;

    struct lahar_manifest_retention retention; /* of the whole store; only its limits are used */
    struct lahar_age_reading clock;            /* as last noted */
    bool has_clock;
};

void lahar_manifest_state_init(struct lahar_manifest_state *state,
                               const lahar_allocator *allocator);
void lahar_manifest_state_deinit(struct lahar_manifest_state *state);
/* Applies the records of one change. They come from disk and are not trusted:
 * LAHAR_CORRUPT, LAHAR_UNSUPPORTED for a type that may not be passed over. */
lahar_status lahar_manifest_state_apply(struct lahar_manifest_state *state, const uint8_t *records,
                                        size_t size, lahar_error *error);
/* Brings a catalog that holds the first names and streams of the state up to it. */
lahar_status lahar_manifest_state_catalog(const struct lahar_manifest_state *state,
                                          struct lahar_schema_catalog *catalog, lahar_error *error);

/* --- records of a change: appended to a buffer, check has_failed at the end ------- */

void lahar_manifest_put_field(struct lahar_buffer *records, uint32_t field, const char *name);
void lahar_manifest_put_stream(struct lahar_buffer *records, uint32_t stream,
                               const struct lahar_manifest_stream *spec);
void lahar_manifest_put_session_begin(struct lahar_buffer *records, uint64_t session,
                                      uint64_t first_id);
void lahar_manifest_put_session_end(struct lahar_buffer *records, uint64_t session,
                                    uint64_t end_id);
void lahar_manifest_put_ceiling(struct lahar_buffer *records, uint64_t ceiling);
void lahar_manifest_put_file(struct lahar_buffer *records, const struct lahar_manifest_file *file);
void lahar_manifest_put_directory(struct lahar_buffer *records, uint32_t directory,
                                  const char *name, const char *path);
void lahar_manifest_put_rolled(struct lahar_buffer *records, uint64_t rolled_id);
void lahar_manifest_put_file_number(struct lahar_buffer *records, uint64_t number);
void lahar_manifest_put_lost(struct lahar_buffer *records, struct lahar_lost_range range);
/* stream: LAHAR_ANY_STREAM for the whole store. */
void lahar_manifest_put_limits(struct lahar_buffer *records, uint32_t stream, uint64_t max_bytes,
                               uint64_t max_age_ns);
void lahar_manifest_put_remove(struct lahar_buffer *records, uint64_t file_number);
/* In place of the files with these numbers, all of one stream, others that hold the same events:
 * a joined file for its parts (engine/rollover/join.h), or the same file, number kept, with another
 * shard. A file of which removed and added say the same number changes only its entry. */
void lahar_manifest_put_replace(struct lahar_buffer *records, const uint64_t *removed,
                                uint32_t removed_count, const struct lahar_manifest_file *added,
                                uint32_t added_count);
/* low_id and what has been dropped so far, of retention. */
void lahar_manifest_put_dropped(struct lahar_buffer *records, uint32_t stream,
                                const struct lahar_manifest_retention *retention);
void lahar_manifest_put_clock(struct lahar_buffer *records,
                              const struct lahar_age_reading *reading);
void lahar_manifest_put_offsets(struct lahar_buffer *records,
                                const struct lahar_offset_table *offsets);
/* Everything in the state, each record closed by itself. */
void lahar_manifest_put_state(struct lahar_buffer *records,
                              const struct lahar_manifest_state *state);

/* --- the file ---------------------------------------------------------------------- */

struct lahar_manifest {
    struct lahar_io *io;
    const lahar_allocator *allocator;
    const char *directory;
    uint64_t store_id;
    struct lahar_manifest_state state;
    struct lahar_io_file *file;
    uint64_t number;
    uint64_t size_bytes;          /* of valid content */
    uint64_t snapshot_bytes;      /* of these, the header and the snapshot */
    uint64_t sequence;            /* of the next change */
    uint64_t growth_bytes;        /* log behind the snapshot that brings the next one on */
    uint64_t snapshot_retry_size; /* after a failed snapshot: not before this size */
    lahar_error poison;           /* status LAHAR_OK while changes are accepted */
};

/* Creates manifest-1 with records, durable, in a store that has none. */
lahar_status lahar_manifest_create(struct lahar_io *io, const char *directory, uint64_t store_id,
                                   const lahar_allocator *allocator, lahar_error *error);
/* The same under any number and with any state. */
lahar_status lahar_manifest_create_from(struct lahar_io *io, const char *directory,
                                        uint64_t store_id, uint64_t number,
                                        const struct lahar_manifest_state *state,
                                        const lahar_allocator *allocator, lahar_error *error);
/* A complete manifest file with the state as its snapshot, in memory. */
lahar_status lahar_manifest_build_image(struct lahar_buffer *image, uint64_t store_id,
                                        uint64_t number, const struct lahar_manifest_state *state,
                                        lahar_error *error);
/* Opens the manifest of the highest number. A torn tail is cut (not when read_only).
 * LAHAR_NOT_FOUND when there is none, LAHAR_CORRUPT, LAHAR_UNSUPPORTED. */
lahar_status lahar_manifest_open(struct lahar_io *io, const char *directory, uint64_t store_id,
                                 bool read_only, uint64_t growth_bytes,
                                 const lahar_allocator *allocator,
                                 struct lahar_manifest **manifest_out, lahar_error *error);
void lahar_manifest_close(struct lahar_manifest *manifest); /* NULL is allowed */
/* Makes the records one durable change and applies it. LAHAR_NO_SPACE: nothing
 * changed. LAHAR_POISONED: this or an earlier change failed for good. */
lahar_status lahar_manifest_commit(struct lahar_manifest *manifest,
                                   const struct lahar_buffer *records, lahar_error *error);
/* Reads a whole file of at most 1 GiB into memory of its own. */
lahar_status lahar_manifest_read_file(struct lahar_io *io, const char *directory, const char *name,
                                      const lahar_allocator *allocator, uint8_t **data_out,
                                      size_t *size_out, lahar_error *error);
/* Reads the file again and checks every byte of it; *offset_out: of the damage. */
lahar_status lahar_manifest_verify(struct lahar_manifest *manifest, uint64_t *offset_out,
                                   lahar_error *error);

enum {
    LAHAR_MANIFEST_NAME_SIZE = 40,
    LAHAR_MANIFEST_PATH_SIZE = 4096
};
/* Joins the manifest's directory and name. */
lahar_status lahar_manifest_path(const struct lahar_manifest *manifest, const char *name,
                                 char path_out[LAHAR_MANIFEST_PATH_SIZE], lahar_error *error);
void lahar_manifest_name(uint64_t number, char name_out[LAHAR_MANIFEST_NAME_SIZE]);
/* Whether name is manifest-<number>. */
bool lahar_manifest_parse_name(const char *name, uint64_t *number_out);

/* What a scan of a manifest's bytes found. */
struct lahar_manifest_scan {
    uint64_t valid_bytes;    /* header and valid changes */
    uint64_t snapshot_bytes; /* of these, header and snapshot */
    uint64_t next_sequence;
    uint64_t damage_offset; /* where LAHAR_CORRUPT was met */
};
/* Applies the changes in a manifest's bytes to state (may be NULL: only checks).
 * A torn tail ends at valid_bytes. */
lahar_status lahar_manifest_scan(const uint8_t *data, size_t size, uint64_t store_id,
                                 uint64_t number, struct lahar_manifest_state *state,
                                 struct lahar_manifest_scan *scan_out, lahar_error *error);
/* The checksum that changes of this file begin with. */
uint32_t lahar_manifest_seed(uint64_t store_id, uint64_t number);

#endif
