/* Files taken as a whole. */
#ifndef LAHAR_IO_WHOLE_FILE_H
#define LAHAR_IO_WHOLE_FILE_H

#include "io/io.h"

/* Size and CRC-32C of an open file, read in pieces through the buffer. LAHAR_CORRUPT when the file
 * becomes shorter meanwhile. */
lahar_status lahar_io_sum_file(struct lahar_io *io, struct lahar_io_file *file, void *buffer,
                               size_t buffer_size, uint64_t *size_out, uint32_t *checksum_out,
                               lahar_error *error);
/* The same of a file by its name, with a buffer of its own, however large the file; LAHAR_CORRUPT
 * without reading it when it is larger than size_max. */
lahar_status lahar_io_sum_named(struct lahar_io *io, const char *directory, const char *name,
                                uint64_t size_max, const lahar_allocator *allocator,
                                uint64_t *size_out, uint32_t *checksum_out, lahar_error *error);

#endif
