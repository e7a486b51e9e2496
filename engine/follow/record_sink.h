/* Where the records of a followed file go: each event gets the columns that say where it
 * comes from, and goes into a batch, to a visitor, or into a checksum. Records that
 * cannot be parsed are treated by the source's error mode. */
#ifndef LAHAR_FOLLOW_RECORD_SINK_H
#define LAHAR_FOLLOW_RECORD_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/event/schema.h"
#include "engine/follow/file_cursor.h"
#include "lahar/append.h"
#include "lahar/follow.h"

/* The columns that following adds; each is filled where the stream declares it. */
enum lahar_follow_column {
    LAHAR_COLUMN_PATH,       /* "_path" KEYWORD */
    LAHAR_COLUMN_LINE,       /* "_line" U64 */
    LAHAR_COLUMN_GENERATION, /* "_generation" U64 */
    LAHAR_COLUMN_TRUNCATED,  /* "_truncated" U64: whole size of a line that was cut */
    LAHAR_FOLLOW_COLUMN_COUNT
};
extern const lahar_field_spec lahar_follow_columns[LAHAR_FOLLOW_COLUMN_COUNT];

/* Fields of the stream of gaps. */
#define LAHAR_GAP_STREAM "gaps"
enum lahar_gap_column {
    LAHAR_GAP_SOURCE,     /* "source" KEYWORD */
    LAHAR_GAP_PATH,       /* "_path" KEYWORD */
    LAHAR_GAP_GENERATION, /* "_generation" U64 */
    LAHAR_GAP_FROM,       /* "gap_from" U64: first byte that may be lost */
    LAHAR_GAP_TO,         /* "gap_to" U64: the first behind */
    LAHAR_GAP_REASON,     /* "reason" KEYWORD */
    LAHAR_GAP_COLUMN_COUNT
};
extern const lahar_field_spec lahar_gap_columns[LAHAR_GAP_COLUMN_COUNT];

/* Streams and fields of one source, looked up once. */
struct lahar_sink_target {
    const struct lahar_schema_catalog *catalog;
    uint32_t stream;
    uint32_t dead_letter;                         /* LAHAR_ANY_STREAM: none */
    uint32_t gaps;                                /* LAHAR_ANY_STREAM: none */
    uint32_t columns[LAHAR_FOLLOW_COLUMN_COUNT];  /* field ids; UINT32_MAX: not declared */
    uint32_t gap_columns[LAHAR_GAP_COLUMN_COUNT]; /* the same */
    lahar_error_mode mode;
    bool fails_by_default; /* DEFAULT fails at the first record that cannot be parsed, but for so
                              many: */
    uint64_t errors_allowed;
    double error_ratio_allowed; /* of all records; both must be exceeded */
};

enum lahar_sink_kind {
    LAHAR_SINK_APPEND,
    LAHAR_SINK_VISIT,
    LAHAR_SINK_CHECK
};

struct lahar_record_sink {
    enum lahar_sink_kind kind;
    const struct lahar_sink_target *target;
    const lahar_allocator *allocator;
    lahar_batch *batch;        /* APPEND */
    lahar_event_visitor visit; /* VISIT */
    void *visit_context;
    int64_t visit_time_ns; /* VISIT: of events that have no time of their own */
    uint64_t visit_left;   /* VISIT and CHECK: records that are still wanted */
    uint64_t check_count;  /* CHECK: records, and a sum of their hashes in any order */
    uint64_t check_sum;
    /* Of the record being read. */
    const char *path;
    uint64_t generation;
    uint64_t line;
    const struct lahar_text_reader *line_of; /* not NULL: knows the line */
    uint64_t base_offset;                    /* added to the parser's offsets */
    uint64_t cut_size; /* whole size of a line of which only the beginning is there; 0: all is */
    /* Of this poll. */
    uint64_t records_left; /* may still be taken */
    uint64_t event_max;    /* the batch is full with so many */
    size_t size_max;       /* or so many bytes */
    uint64_t record_count;
    uint64_t error_count;
    uint64_t record_total; /* since the source was opened */
    uint64_t error_total;  /* the same, of DEFAULT */
    bool is_full;
    bool is_muted;   /* records are passed over: they have been taken before */
    bool is_stopped; /* in front of a record that cannot be parsed */
    char last_error[LAHAR_CURSOR_ERROR_SIZE];
    lahar_value *values; /* owned */
    size_t value_capacity;
};

/* lahar_text_emit: context is the sink. LAHAR_BUSY: is_full or is_stopped is set, the record
 * was not taken. */
lahar_status lahar_record_sink_take(void *context, const lahar_event *event, uint64_t offset,
                                    lahar_error *error);
/* A record that is counted as an error without its bytes. */
void lahar_record_sink_count_error(struct lahar_record_sink *sink, const char *message);
void lahar_record_sink_deinit(struct lahar_record_sink *sink);

/* Adds an event to the stream of gaps. */
lahar_status lahar_gap_report(const struct lahar_sink_target *target, lahar_batch *batch,
                              const char *source, const char *path, uint64_t generation,
                              uint64_t from, uint64_t to, const char *reason, lahar_error *error);

/* The sum of an event's values without the columns that say where it comes from, for comparing
 * a file with the store. */
uint64_t lahar_record_hash(const struct lahar_sink_target *target, const lahar_event *event);

#endif
