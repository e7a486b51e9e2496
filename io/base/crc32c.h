/* CRC-32C (Castagnoli), the checksum of every stored structure.
 * Check value of "123456789": 0xE3069283 (RFC 3720, appendix B.4). */
#ifndef LAHAR_BASE_CRC32C_H
#define LAHAR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from crc (0 to begin), so that pieces can be summed in turn. */
uint32_t lahar_crc32c(uint32_t crc, const void *data, size_t size);

/* The same by table, for processors without the instruction. */
uint32_t lahar_crc32c_portable(uint32_t crc, const void *data, size_t size);

#endif
