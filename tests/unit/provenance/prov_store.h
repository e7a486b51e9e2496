/* A store with a provenance stream in a scratch directory, and short ways to fill and read it. */
#ifndef LAHAR_TESTS_PROV_STORE_H
#define LAHAR_TESTS_PROV_STORE_H

#include <stdint.h>

#include "lahar/lahar.h"
#include "scratch.h"

struct prov_store {
    char directory[SCRATCH_PATH_SIZE];
    lahar_store *store;
    lahar_provenance *provenance;
    lahar_provenance_options options;
};

/* options NULL: the defaults; what they point to must stay. */
void prov_store_open(struct prov_store *prov, const lahar_provenance_options *options);
void prov_store_close(struct prov_store *prov);
void prov_store_reopen(struct prov_store *prov);
void prov_store_rollover(struct prov_store *prov);

lahar_bytes bytes_of(const char *text); /* NULL: absent */

/* An event with what every event needs; time in milliseconds. parents and children are separated
 * by commas. The strings must stay. */
lahar_prov_event make_event(lahar_prov_type type, const char *uuid, int64_t time_ms,
                            const char *parents, const char *children);
/* Appends it by itself and returns its id. */
uint64_t put_event(struct prov_store *prov, const lahar_prov_event *event);
uint64_t put(struct prov_store *prov, lahar_prov_type type, const char *uuid, int64_t time_ms,
             const char *parents, const char *children);

/* The ids that match, in rising order, "1 2 5"; owned by the caller. */
char *ids_of(struct prov_store *prov, const char *expression);
uint64_t count_of(struct prov_store *prov, const char *expression);

#endif
