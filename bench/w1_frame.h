/* A W1 event as one flat record, the form in which the peers of bench/peers take it and in which
 * its redundancy is measured: nothing about it is Lahar's own format.
 *
 * A frame is a u32 length and as many bytes of payload; everything is little-endian. Payload:
 * seven u64 (id, time, entry time, lineage start, size, claim offset, claim size; times in
 * milliseconds), a byte for the type's rank, seven strings (component, component type, FlowFile
 * uuid, transit URI, claim container, section and id), then the previous and the updated
 * attributes: a byte that counts them, key and value each. A string is a u16 length and bytes. */
#ifndef LAHAR_BENCH_W1_FRAME_H
#define LAHAR_BENCH_W1_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/workload_w1.h"

enum {
    W1_FRAME_SIZE_MAX = 4096
};

/* What the peers index; strings point into the payload. */
struct w1_frame_keys {
    uint64_t id;
    uint64_t time_ms;
    uint8_t type;
    lahar_bytes component;
    lahar_bytes flowfile;
    lahar_bytes filename; /* of the updated attributes; empty when there is none */
};

/* Writes a whole frame, at most W1_FRAME_SIZE_MAX bytes, and returns how many. */
size_t w1_frame(const struct workload_w1_event *event, void *out);

/* Reads every string of a payload. false: it is not one. */
bool w1_frame_read(const void *payload, size_t size, struct w1_frame_keys *keys_out);

#endif
