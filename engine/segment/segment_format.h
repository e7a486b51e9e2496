/* What an event file has around its blocks, and its table of contents:
 * docs/format/events.md and docs/format/toc.md. */
#ifndef LAHAR_SEGMENT_SEGMENT_FORMAT_H
#define LAHAR_SEGMENT_SEGMENT_FORMAT_H

#include "engine/segment/segment.h"

enum {
    LAHAR_EVENTS_HEADER_SIZE = 64,
    LAHAR_EVENTS_FOOTER_SIZE = 192,
    LAHAR_TOC_HEADER_SIZE = 192, /* as the footer, with another magic */
    LAHAR_TOC_ENTRY_SIZE = 72,
    LAHAR_TOC_TRAILER_SIZE = 4
};

#define LAHAR_EVENTS_SUFFIX ".events"
#define LAHAR_TOC_SUFFIX    ".toc"
#define LAHAR_SHARD_SUFFIX  ".shard"

void lahar_events_header_write(uint8_t to[LAHAR_EVENTS_HEADER_SIZE],
                               const struct lahar_segment_info *info);
lahar_status lahar_events_header_check(const uint8_t from[LAHAR_EVENTS_HEADER_SIZE],
                                       const struct lahar_segment_info *info, lahar_error *error);

void lahar_events_footer_write(uint8_t to[LAHAR_EVENTS_FOOTER_SIZE],
                               const struct lahar_segment_info *info);
lahar_status lahar_events_footer_read(const uint8_t from[LAHAR_EVENTS_FOOTER_SIZE],
                                      struct lahar_segment_info *info_out, lahar_error *error);

static inline uint64_t lahar_toc_size(uint32_t block_count)
{
    return LAHAR_TOC_HEADER_SIZE + (uint64_t)block_count * LAHAR_TOC_ENTRY_SIZE +
           LAHAR_TOC_TRAILER_SIZE;
}

/* Appends a whole toc; check to->has_failed. */
void lahar_toc_write(struct lahar_buffer *to, const struct lahar_segment_info *info,
                     const struct lahar_block_info *blocks);
/* Checks checksums, reads info and, when blocks is not NULL, its block_count entries, which
 * must follow each other without gaps. size is that of the file. */
lahar_status lahar_toc_read(const uint8_t *data, size_t size, struct lahar_segment_info *info_out,
                            struct lahar_block_info *blocks, lahar_error *error);

#endif
