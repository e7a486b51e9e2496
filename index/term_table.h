/* The distinct terms of a shard under construction, numbered from 0 in order of first use. */
#ifndef LAHAR_INDEX_TERM_TABLE_H
#define LAHAR_INDEX_TERM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/buffer.h"

/* Set in the flags of a builder's term, beside those of enum lahar_term_flag: behind the exact form
 * lies the folded form, both cut. */
enum {
    LAHAR_TERM_IS_LONG = 128
};

/* A term's record: this and its bytes behind it, at a multiple of eight in records. */
struct lahar_term {
    uint32_t number;
    uint32_t field;
    uint16_t size;      /* bytes of the exact form */
    uint16_t long_size; /* bytes of the folded form behind it, of a long term */
    uint8_t flags;
    uint8_t bytes[]; /* size + long_size */
};

/* What changes with every document; apart from the records, so that adding documents to
 * known terms stays in a small array. */
struct lahar_term_state {
    uint32_t last_document; /* that the term was counted for; UINT32_MAX: none */
    uint32_t posting_count; /* documents, and objects as one each */
};

struct lahar_term_table {
    /* Upper half of the hash in the upper half, place of the record / 8 + 1 in the lower; 0: free.
     */
    uint64_t *slots;
    size_t slot_count;
    /* The slots of terms met lately, which fit into a near cache where all slots do not. */
    uint64_t *recent;
    struct lahar_buffer records;
    struct lahar_term_state *states; /* by number */
    size_t term_count;
    size_t state_capacity;
    const lahar_allocator *allocator;
};

struct lahar_term_key {
    const void *data;
    uint16_t size;
    uint16_t long_size;
    uint8_t flags;
};

void lahar_term_table_init(struct lahar_term_table *table, const lahar_allocator *allocator);
void lahar_term_table_deinit(struct lahar_term_table *table);
void lahar_term_table_clear(struct lahar_term_table *table);

/* The place of the term's record, added when it is new; false when memory is refused. */
bool lahar_term_table_add(struct lahar_term_table *table, uint32_t field,
                          const struct lahar_term_key *key, uint32_t *place_out);

/* The same in three steps, so that a caller with many terms can hash some ahead and let the
 * processor fetch what the look-up will touch. */
uint64_t lahar_term_hash(uint32_t field, const struct lahar_term_key *key);
void lahar_term_table_prefetch(const struct lahar_term_table *table, uint64_t hash);
bool lahar_term_table_add_hashed(struct lahar_term_table *table, uint64_t hash, uint32_t field,
                                 const struct lahar_term_key *key, uint32_t *place_out);

/* Valid until the next term is added. */
static inline const struct lahar_term *lahar_term_at(const struct lahar_term_table *table,
                                                     uint32_t place)
{
    return (const struct lahar_term *)(const void *)(table->records.data + (size_t)place * 8);
}

/* The place of the record behind one; terms follow in order of number. */
static inline uint32_t lahar_term_place_behind(const struct lahar_term *term, uint32_t place)
{
    const size_t size = offsetof(struct lahar_term, bytes) + term->size + term->long_size;
    return place + (uint32_t)((size + 7) / 8);
}

#endif
