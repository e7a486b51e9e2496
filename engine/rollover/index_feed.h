/* An index feed from inside, for the files that implement it. */
#ifndef LAHAR_ROLLOVER_INDEX_FEED_H
#define LAHAR_ROLLOVER_INDEX_FEED_H

#include "engine/rollover/rollover_index.h"

/* A field and its place in the shard. */
struct lahar_feed_field {
    uint32_t field; /* of the shard, once is_known */
    bool is_known;
};

/* What is indexed of a provenance stream besides its fields. */
struct lahar_provenance_feed {
    bool is_used;
    uint32_t source_system;             /* field of the event */
    struct lahar_feed_field removed;    /* keys of attributes that were removed */
    struct lahar_feed_field source;     /* uuids in identifiers of source systems */
    struct lahar_buffer previous_pairs; /* lahar_pair each: those of a row */
    struct lahar_buffer updated_pairs;
    struct lahar_buffer previous_nodes; /* u32, beside the pairs: their nodes in the shapes */
    struct lahar_buffer updated_nodes;
    struct lahar_buffer overridden; /* u32 by node: see index_provenance.c */
    struct lahar_buffer inherited;  /* struct inherited_element each */
    struct lahar_buffer values;     /* u32 by element and code: numbers given by the builder */
};

struct lahar_index_feed {
    const struct lahar_schema_catalog *catalog;
    const struct lahar_stream *stream;
    struct lahar_shard_builder *builder;
    struct lahar_feed_field *fields; /* as many as the stream has, in their order */
    uint32_t first_document;         /* of the block being added */
    uint32_t row_count;              /* of that block */
    uint32_t object_ordinal;         /* of the field whose uuids tell objects apart; UINT32_MAX */
    /* Of that field in the block being added, when the builder has taken it. */
    const struct lahar_column *objects;
    struct lahar_provenance_feed provenance;
    struct lahar_buffer name;    /* scratch for "attr.<key>" */
    struct lahar_buffer values;  /* u32 by code */
    struct lahar_buffer numbers; /* u64 by code */
    struct lahar_buffer flags;   /* u8 a slot */
    const lahar_allocator *allocator;
};

void lahar_provenance_feed_init(struct lahar_provenance_feed *provenance,
                                const lahar_allocator *allocator);
void lahar_provenance_feed_deinit(struct lahar_provenance_feed *provenance);

/* The field of that name and class, looked up once. */
lahar_status lahar_index_find_place(struct lahar_index_feed *feed, struct lahar_feed_field *place,
                                    const char *name, enum lahar_field_class field_class,
                                    lahar_error *error);
/* The shard's field for an attribute's key. */
lahar_status lahar_index_attribute_field(struct lahar_index_feed *feed, const char *prefix,
                                         lahar_bytes key, uint32_t *field_out, lahar_error *error);
/* Posts one value to the event in a row of the block. */
lahar_status lahar_index_post(struct lahar_index_feed *feed, uint32_t field, uint32_t row,
                              lahar_bytes bytes, lahar_error *error);
/* An entry of a column of bytes or uuids. */
lahar_bytes lahar_column_entry(const struct lahar_column *column, uint32_t entry);
/* The entries and the slots of a column as the builder takes them. */
struct lahar_shard_entries lahar_index_entries(const struct lahar_column *column);
struct lahar_shard_column lahar_index_column(const struct lahar_index_feed *feed,
                                             const struct lahar_column *column);
/* Room for count numbers in a scratch buffer; NULL when memory is refused. */
uint32_t *lahar_index_reserve_values(struct lahar_buffer *buffer, uint32_t count);

/* Whether texts are indexed by the templates and variables of their block, and doing so. */
bool lahar_index_can_add_split(const struct lahar_element *element);
lahar_status lahar_index_add_split(struct lahar_index_feed *feed, uint32_t field,
                                   const struct lahar_element *element, lahar_error *error);

/* What provenance adds to the fields of a block. */
lahar_status lahar_index_add_provenance(struct lahar_index_feed *feed,
                                        const struct lahar_block_columns *block,
                                        lahar_error *error);

#endif
