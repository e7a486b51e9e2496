/* Facets and histograms on standard output: as bars, as columns, or as JSON. */
#ifndef LAHAR_TOOLS_FACET_OUTPUT_H
#define LAHAR_TOOLS_FACET_OUTPUT_H

#include <stdbool.h>

#include "lahar/lahar.h"

/* Both draw bars when standard output is a terminal. */
void facet_output_values(const char *name, const lahar_facet *facet, bool json);
void facet_output_histogram(const char *width, int64_t width_ns,
                            const lahar_histogram_bucket *buckets, size_t count, bool json);

#endif
