/* Regular expressions over PCRE2; see regex.h.
 *
 * What an expression may cost is bounded three times: PCRE2's own limit of 64 KiB on the compiled
 * form, a limit on steps that grows with the text, and limits on stack and heap. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "engine/regex/regex.h"

#include <pcre2.h>
#include <string.h>

#include "io/base/error.h"

enum {
    /* Steps allowed for any text, and for each byte of it. */
    STEPS_MIN = 1000000,
    STEPS_BYTE = 100,
    HEAP_MAX_KIB = 32 * 1024,
    STACK_START = 32 * 1024,
    STACK_MAX = 1024 * 1024
};

struct lahar_regex {
    const lahar_allocator *allocator;
    pcre2_general_context *general;
    pcre2_code *code;
    uint32_t group_count;
    const uint8_t *names; /* in code */
    uint32_t name_count;
    uint32_t name_stride; /* bytes from one name to the next */
};

struct lahar_regex_state {
    const lahar_allocator *allocator;
    pcre2_general_context *general;
    pcre2_match_context *context;
    pcre2_match_data *data;
    pcre2_jit_stack *stack;
    uint32_t group_capacity;
};

static void *allocate(PCRE2_SIZE size, void *allocator)
{
    return lahar_allocate(allocator, size);
}

static void release(void *memory, void *allocator)
{
    if (memory != NULL) {
        lahar_release(allocator, memory);
    }
}

static pcre2_general_context *create_general(const lahar_allocator *allocator)
{
    /* PCRE2 only passes the pointer on. */
    return pcre2_general_context_create(allocate, release, (void *)(uintptr_t)allocator);
}

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a regular expression");
}

static lahar_status compile_code(struct lahar_regex *regex, lahar_bytes expression,
                                 uint32_t options, lahar_error *error)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(regex->general);
    if (context == NULL) {
        return no_memory(error);
    }
    regex->code = pcre2_compile(expression.data == NULL ? (PCRE2_SPTR) "" : expression.data,
                                expression.size, options, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (regex->code != NULL) {
        return LAHAR_OK;
    }
    if (code == PCRE2_ERROR_HEAP_FAILED) {
        return no_memory(error);
    }
    PCRE2_UCHAR reason[128];
    if (pcre2_get_error_message(code, reason, sizeof reason) < 0) {
        memcpy(reason, "not a regular expression", 25);
    }
    const lahar_status status =
        lahar_fail(error, LAHAR_INVALID, "regular expression: %s", (const char *)reason);
    if (error != NULL) {
        error->offset = offset;
    }
    return status;
}

lahar_status lahar_regex_compile(lahar_bytes expression, unsigned flags,
                                 const lahar_allocator *allocator, struct lahar_regex **regex_out,
                                 lahar_error *error)
{
    const uint32_t options =
        PCRE2_NEVER_BACKSLASH_C |
        ((flags & LAHAR_REGEX_BYTES) != 0 ? PCRE2_NEVER_UTF : PCRE2_UTF | PCRE2_MATCH_INVALID_UTF) |
        ((flags & LAHAR_REGEX_IGNORE_CASE) != 0 ? PCRE2_CASELESS : 0);
    if (expression.size > LAHAR_REGEX_SIZE_MAX) {
        const lahar_status status =
            lahar_fail(error, LAHAR_INVALID, "the regular expression has %zu bytes, more than %d",
                       expression.size, LAHAR_REGEX_SIZE_MAX);
        if (error != NULL) {
            error->offset = LAHAR_REGEX_SIZE_MAX;
        }
        return status;
    }
    struct lahar_regex *regex = lahar_allocate_zeroed(allocator, 1, sizeof *regex);
    if (regex == NULL) {
        return no_memory(error);
    }
    regex->allocator = allocator;
    regex->general = create_general(allocator);
    lahar_status status =
        regex->general == NULL ? no_memory(error) : compile_code(regex, expression, options, error);
    if (status != LAHAR_OK) {
        lahar_regex_destroy(regex);
        return status;
    }
    /* Where machine code cannot be made, matching is slower and the same. */
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &regex->group_count);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &regex->name_count);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &regex->name_stride);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &regex->names);
    *regex_out = regex;
    return LAHAR_OK;
}

void lahar_regex_destroy(struct lahar_regex *regex)
{
    if (regex == NULL) {
        return;
    }
    pcre2_code_free(regex->code);
    pcre2_general_context_free(regex->general);
    lahar_release(regex->allocator, regex);
}

uint32_t lahar_regex_group_count(const struct lahar_regex *regex)
{
    return regex->group_count;
}

lahar_bytes lahar_regex_group_name(const struct lahar_regex *regex, uint32_t group)
{
    for (uint32_t i = 0; i < regex->name_count; i++) {
        /* Two bytes of the group's number, high one first, and a terminated name. */
        const uint8_t *entry = regex->names + (size_t)i * regex->name_stride;
        if (((uint32_t)entry[0] << 8 | entry[1]) == group) {
            return (lahar_bytes){entry + 2, strlen((const char *)entry + 2)};
        }
    }
    return (lahar_bytes){NULL, 0};
}

/* --- matching ---------------------------------------------------------------------- */

void lahar_regex_scratch_deinit(struct lahar_regex_scratch *scratch)
{
    struct lahar_regex_state *state = scratch->state;
    scratch->state = NULL;
    if (state == NULL) {
        return;
    }
    pcre2_jit_stack_free(state->stack);
    pcre2_match_data_free(state->data);
    pcre2_match_context_free(state->context);
    pcre2_general_context_free(state->general);
    lahar_release(state->allocator, state);
}

static bool create_state(struct lahar_regex_scratch *scratch, const lahar_allocator *allocator)
{
    struct lahar_regex_state *state = lahar_allocate_zeroed(allocator, 1, sizeof *state);
    if (state == NULL) {
        return false;
    }
    scratch->state = state;
    state->allocator = allocator;
    state->general = create_general(allocator);
    state->context = state->general == NULL ? NULL : pcre2_match_context_create(state->general);
    state->stack = state->context == NULL
                       ? NULL
                       : pcre2_jit_stack_create(STACK_START, STACK_MAX, state->general);
    if (state->stack == NULL) {
        lahar_regex_scratch_deinit(scratch);
        return false;
    }
    (void)pcre2_set_heap_limit(state->context, HEAP_MAX_KIB);
    pcre2_jit_stack_assign(state->context, NULL, state->stack);
    return true;
}

static bool reserve(const struct lahar_regex *regex, struct lahar_regex_scratch *scratch)
{
    if (scratch->state == NULL && !create_state(scratch, regex->allocator)) {
        return false;
    }
    struct lahar_regex_state *state = scratch->state;
    const uint32_t count = regex->group_count + 1;
    if (state->data == NULL || state->group_capacity < count) {
        pcre2_match_data_free(state->data);
        state->data = pcre2_match_data_create(count, state->general);
        state->group_capacity = count;
    }
    return state->data != NULL;
}

enum lahar_regex_result lahar_regex_match(const struct lahar_regex *regex,
                                          struct lahar_regex_scratch *scratch, const void *text,
                                          size_t size)
{
    if (!reserve(regex, scratch)) {
        return LAHAR_REGEX_NO_MEMORY;
    }
    struct lahar_regex_state *state = scratch->state;
    const uint64_t steps = STEPS_MIN + (uint64_t)size * STEPS_BYTE;
    (void)pcre2_set_match_limit(state->context, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    const int result = pcre2_match(regex->code, size == 0 ? (PCRE2_SPTR) "" : text, size, 0, 0,
                                   state->data, state->context);
    if (result >= 0) {
        return LAHAR_REGEX_MATCH;
    }
    switch (result) {
    case PCRE2_ERROR_NOMATCH:
        return LAHAR_REGEX_NO_MATCH;
    case PCRE2_ERROR_NOMEMORY:
        return LAHAR_REGEX_NO_MEMORY;
    default:
        return LAHAR_REGEX_TOO_COSTLY;
    }
}

bool lahar_regex_group(const struct lahar_regex_scratch *scratch, const void *text, uint32_t group,
                       lahar_bytes *part_out)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(scratch->state->data);
    if (group >= scratch->state->group_capacity || ends[2 * (size_t)group] == PCRE2_UNSET ||
        ends[2 * (size_t)group] > ends[2 * (size_t)group + 1]) {
        return false;
    }
    const PCRE2_SIZE begin = ends[2 * (size_t)group];
    *part_out = (lahar_bytes){(const uint8_t *)text + begin, ends[2 * (size_t)group + 1] - begin};
    return true;
}
