/* An allocator that refuses the Nth request, and counts what is not yet released. */
#ifndef LAHAR_TESTS_FAILING_ALLOCATOR_H
#define LAHAR_TESTS_FAILING_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "io/base/allocator.h"

/* One thread at a time. The allocator's context points at the struct itself. */
struct failing_allocator {
    lahar_allocator allocator;
    uint64_t request_count; /* so far */
    uint64_t fail_at;       /* number, from 0, of the request to refuse; UINT64_MAX: none */
    bool fails_on;          /* also refuse every later one */
    size_t size_max;        /* larger requests are refused too; 0: none */
    uint64_t refused_count;
    int64_t live_count; /* pieces handed out and not released */
};

static inline bool failing_allocator_refuses(struct failing_allocator *state, size_t size)
{
    const uint64_t number = state->request_count++;
    const bool refuses = number == state->fail_at || (state->fails_on && number > state->fail_at) ||
                         (state->size_max != 0 && size > state->size_max);
    state->refused_count += refuses ? 1 : 0;
    return refuses;
}

static inline void *failing_allocator_allocate(void *context, size_t size)
{
    struct failing_allocator *state = context;
    void *memory = failing_allocator_refuses(state, size) ? NULL : malloc(size == 0 ? 1 : size);
    state->live_count += memory != NULL ? 1 : 0;
    return memory;
}

static inline void *failing_allocator_resize(void *context, void *memory, size_t size)
{
    struct failing_allocator *state = context;
    void *moved =
        failing_allocator_refuses(state, size) ? NULL : realloc(memory, size == 0 ? 1 : size);
    state->live_count += moved != NULL && memory == NULL ? 1 : 0;
    return moved;
}

static inline void failing_allocator_release(void *context, void *memory)
{
    struct failing_allocator *state = context;
    state->live_count -= memory != NULL ? 1 : 0;
    free(memory);
}

/* state must stay where it is. */
static inline void failing_allocator_init(struct failing_allocator *state, uint64_t fail_at)
{
    *state = (struct failing_allocator){
        .allocator = {failing_allocator_allocate, failing_allocator_resize,
                      failing_allocator_release, state},
        .fail_at = fail_at,
    };
}

#endif
