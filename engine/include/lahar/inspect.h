/* Checking a store. */
#ifndef LAHAR_INSPECT_H
#define LAHAR_INSPECT_H

#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lahar_finding {
    const char *file;  /* relative to the store's directory */
    uint64_t offset;   /* bytes */
    uint64_t first_id; /* events concerned; 0 and 0 when not known */
    uint64_t last_id;
    const char *message;
} lahar_finding;

typedef struct lahar_verify_options {
    size_t struct_size;
    bool full; /* decode every event and look each up in its shard, not only checksums */
    void (*on_finding)(void *context, const lahar_finding *finding); /* valid during the call */
    /* done and total in bytes; may be NULL */
    void (*on_progress)(void *context, uint64_t done, uint64_t total);
    void *context;
} lahar_verify_options;

typedef struct lahar_verify_result {
    size_t struct_size;
    uint64_t event_count;
    uint64_t file_count;
    uint64_t byte_count;
    uint64_t finding_count;
} lahar_verify_result;

/* Reads every file of an open store. LAHAR_OK also with findings: look at
 * finding_count. Any thread; blocks for as long as reading takes. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_verify(lahar_store *store,
                                                    const lahar_verify_options *options,
                                                    lahar_verify_result *result_out,
                                                    lahar_error *error);

#ifdef __cplusplus
}
#endif
#endif
