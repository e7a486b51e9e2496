/* The distinct terms of a shard under construction, numbered from 0 in order of first use. */
#ifndef LAHAR_INDEX_TERM_TABLE_H
#define LAHAR_INDEX_TERM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/buffer.h"

/* Set in the flags of a builder's term, beside those of enum lahar_term_flag: the key is the exact
 * form and behind it the folded form, both cut. */
enum {
    LAHAR_TERM_IS_LONG = 128
};

struct lahar_term {
    uint64_t key; /* offset of the key's bytes in keys */
    uint32_t field;
    uint32_t last_document; /* that the term was counted for; UINT32_MAX: none */
    uint32_t document_count;
    uint16_t size;      /* bytes of the exact form */
    uint16_t long_size; /* bytes of the folded form behind it, of a long term */
    uint8_t flags;
};

struct lahar_term_table {
    uint64_t *slots; /* hash in the upper half, term number + 1 in the lower; 0: free */
    size_t slot_count;
    struct lahar_term *terms;
    size_t term_count;
    size_t term_capacity;
    struct lahar_buffer keys;
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

/* The number of the term, added when it is new; false when memory is refused. */
bool lahar_term_table_add(struct lahar_term_table *table, uint32_t field,
                          const struct lahar_term_key *key, uint32_t *term_out);

static inline const uint8_t *lahar_term_bytes(const struct lahar_term_table *table,
                                              const struct lahar_term *term)
{
    return table->keys.data + term->key;
}

#endif
