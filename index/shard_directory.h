/* The directory of a shard: what is read at opening and stays resident. It follows the pages and is
 * followed by the trailer. */
#ifndef LAHAR_INDEX_SHARD_DIRECTORY_H
#define LAHAR_INDEX_SHARD_DIRECTORY_H

#include "index/column.h"
#include "index/dictionary.h"
#include "index/groups.h"
#include "index/id_table.h"
#include "index/shard.h"
#include "index/uuid_filter.h"
#include "index/uuid_table.h"

/* Times as numbers (see lahar_number_from_i64). Of all events; of the main ones; and of those set
 * apart, which lie in [min, early_max] and [late_min, max]. */
struct lahar_time_bounds {
    uint64_t min;
    uint64_t max;
    uint64_t main_min;
    uint64_t main_max;
    uint64_t early_max;
    uint64_t late_min;
};

struct lahar_directory_field {
    const uint8_t *name; /* in the builder's or the directory's bytes */
    size_t name_size;
    enum lahar_field_class field_class;
    uint64_t presence; /* reference to the documents that have the field */
    struct lahar_dictionary dictionary;
    struct lahar_uuid_table uuids;
    struct lahar_column column;
};

struct lahar_directory {
    uint32_t document_count;
    struct lahar_time_bounds times;
    struct lahar_column time_column;
    struct lahar_group_table groups;
    struct lahar_id_table ids;
    struct lahar_directory_field *fields; /* sorted by (name, class) when read */
    size_t field_count;
    struct lahar_uuid_filter filter; /* of the uuids of all fields; in the trailer */
    const uint8_t *checksums;        /* u32 a page */
};

struct lahar_shard_trailer {
    uint64_t directory_offset; /* = bytes covered by pages */
    uint64_t directory_size;
    uint32_t document_count;
    uint32_t directory_checksum;
    struct lahar_uuid_filter filter;
};

int lahar_directory_compare(const uint8_t *a_name, size_t a_size, enum lahar_field_class a_class,
                            const uint8_t *b_name, size_t b_size, enum lahar_field_class b_class);

void lahar_directory_put_header(struct lahar_buffer *out);
/* Whether the bytes are the header of a shard this version reads. */
bool lahar_directory_header_is_valid(const uint8_t *header);

/* Appends directory and trailer, which go behind the body_size bytes of the pages; checksums: a u32
 * a page. Sorts the fields. Failure is left in out->has_failed. */
void lahar_directory_write(struct lahar_directory *directory, const struct lahar_id_run *id_runs,
                           size_t id_run_count, uint64_t last_id, uint64_t body_size,
                           const struct lahar_buffer *checksums, struct lahar_buffer *out);

/* Checks and parses the last bytes of a shard of shard_size bytes. */
lahar_status lahar_trailer_read(const uint8_t *trailer, uint64_t shard_size,
                                struct lahar_shard_trailer *trailer_out, lahar_error *error);
/* Parses a directory whose checksum holds. data is followed by LAHAR_BITPACK_SLACK bytes and must
 * outlive directory_out; fields are released by the caller, also on failure. */
lahar_status lahar_directory_read(const uint8_t *data, const struct lahar_shard_trailer *trailer,
                                  const lahar_allocator *allocator,
                                  struct lahar_directory *directory_out, lahar_error *error);

#endif
