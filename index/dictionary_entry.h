/* The header byte of a dictionary entry: the step of the shared size in the upper three bits, the
 * size of the suffix in the lower five. Writer and reader share it. */
#ifndef LAHAR_INDEX_DICTIONARY_ENTRY_H
#define LAHAR_INDEX_DICTIONARY_ENTRY_H

enum {
    LAHAR_ENTRY_SUFFIX_BITS = 5,
    LAHAR_ENTRY_SUFFIX_MASK = 31,
    /* Step codes 0..6 mean -3..+3; 7: the shared size follows as a byte. */
    LAHAR_ENTRY_SHARED_BIAS = 3,
    LAHAR_ENTRY_SHARED_EXPLICIT = 7,
    /* Size codes 0..15: so many plain bytes; 16..30: 1..15 hexadecimal digits, two a byte, the
     * first in the lower half; 31: a varint (size << 1 | is hexadecimal) follows. */
    LAHAR_ENTRY_PLAIN_MAX = 15,
    LAHAR_ENTRY_HEX_MAX = 15,
    LAHAR_ENTRY_SUFFIX_EXPLICIT = 31
};

#endif
