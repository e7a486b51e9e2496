/* Content by its claim: found out first, then streamed. */
#ifndef LAHAR_PROVENANCE_CONTENT_H
#define LAHAR_PROVENANCE_CONTENT_H

#include "engine/provenance/handle.h"

/* A claim whose bytes were there when it was looked at. */
struct lahar_content {
    struct lahar_provenance *provenance;
    lahar_claim claim;          /* has_size; container NULL: content that is known to be empty */
    struct lahar_io_file *file; /* NULL: empty, or in the host's content store */
};

/* size: of the FlowFile, for a claim that has none. LAHAR_NOT_FOUND with *refusal_out set: it
 * cannot be given. On success lahar_content_close must follow. */
lahar_status lahar_content_open(struct lahar_provenance *provenance, const lahar_claim *claim,
                                bool has_size, uint64_t size, struct lahar_content *content_out,
                                lahar_refusal *refusal_out, lahar_error *error);
lahar_status lahar_content_copy(struct lahar_content *content, lahar_content_sink sink,
                                void *context, lahar_refusal *refusal_out, lahar_error *error);
void lahar_content_close(struct lahar_content *content);

/* LAHAR_NOT_FOUND in the words of the refusal. */
lahar_status lahar_refuse(lahar_refusal refusal, lahar_refusal *refusal_out, lahar_error *error,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
