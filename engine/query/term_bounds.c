/* Walks over dictionaries; see term_bounds.h.
 *
 * What a term must begin with narrows the walk to a range of the dictionary, and bytes that it must
 * hold spare most terms the decoding. The documents of the terms are gathered in a set for each
 * thread, which are joined at the end. */
#include "engine/query/term_bounds.h"

#include <string.h>

#include "engine/query/query_state.h"
#include "engine/query/shard_value.h"
#include "engine/query/workers.h"
#include "io/base/error.h"

enum {
    /* Blocks of a dictionary that are one thread's at a time: 16,384 terms, some hundred
     * microseconds. */
    PIECE_BLOCKS = 256
};

/* What is asked of the terms. */
struct question {
    const struct lahar_shard_query *query;
    const struct lahar_test *test;
    uint32_t field;
    enum lahar_term_place place;
    lahar_bytes piece;
    lahar_bytes needle; /* that a term holds, folded; empty: none is known */
    uint64_t first_block;
    uint64_t end_block;
    struct part *parts; /* by worker */
};

/* What one thread has found. */
struct part {
    struct lahar_docset set;
    bool is_used; /* set is there */
    bool is_exact;
};

/* --- a term ------------------------------------------------------------------------------ */

struct term_filter {
    struct lahar_matcher *matcher;
    const struct question *question;
    bool took_cut; /* a cut term was accepted: what it stands for must be verified */
    uint32_t looked_at;
    lahar_status
        status; /* not LAHAR_OK: the query has to stop, the terms that follow are refused */
    lahar_error *error;
};

/* Whether the query has to stop; the clock is looked at once in a while. */
static bool has_to_stop(struct term_filter *filter)
{
    const struct lahar_query *query = filter->question->query->query;
    if ((++filter->looked_at & 127) == 0 && query != NULL && filter->status == LAHAR_OK) {
        filter->status = lahar_query_check(query, filter->error);
    }
    return filter->status != LAHAR_OK;
}

/* Only the beginning of the term is known; it decides a prefix alone. */
static bool accept_cut(const struct question *question, const uint8_t *term, size_t size)
{
    const lahar_bytes piece = question->piece;
    const size_t compared = size < piece.size ? size : piece.size;
    return question->place != LAHAR_PLACE_PREFIX || memcmp(term, piece.data, compared) == 0;
}

static bool accept_term(void *context, const uint8_t *term, size_t size, bool is_cut)
{
    struct term_filter *filter = context;
    const struct question *question = filter->question;
    const lahar_bytes piece = question->piece;
    if (has_to_stop(filter)) {
        return false;
    }
    if (is_cut) {
        const bool is_accepted = accept_cut(question, term, size);
        filter->took_cut = filter->took_cut || is_accepted;
        return is_accepted;
    }
    switch (question->place) {
    case LAHAR_PLACE_WHOLE_VALUE:
        return lahar_match_keyword(filter->matcher, question->test, term, size);
    case LAHAR_PLACE_VALUE_TEXT:
        return lahar_match_text(filter->matcher, question->test, term, size);
    case LAHAR_PLACE_TOKEN:
        return !(size == 1 && *term == LAHAR_SHARD_ESCAPE_TERM[0]) &&
               lahar_match_token(question->test, term, size);
    case LAHAR_PLACE_PREFIX:
        return size >= piece.size && memcmp(term, piece.data, piece.size) == 0;
    case LAHAR_PLACE_SUFFIX:
        return size >= piece.size && memcmp(term + size - piece.size, piece.data, piece.size) == 0;
    case LAHAR_PLACE_INFIX:
        return memmem(term, size, piece.data, piece.size) != NULL;
    }
    return false;
}

/* --- what is known of the terms ----------------------------------------------------------- */

bool lahar_is_whole_utf8(lahar_bytes bytes)
{
    const uint8_t *p = bytes.data;
    size_t i = 0;
    while (i < bytes.size) {
        const uint8_t lead = p[i];
        const size_t size = lead < 0x80   ? 1
                            : lead < 0xc2 ? 0
                            : lead < 0xe0 ? 2
                            : lead < 0xf0 ? 3
                            : lead < 0xf5 ? 4
                                          : 0;
        if (size == 0 || size > bytes.size - i) {
            return false;
        }
        for (size_t j = 1; j < size; j++) {
            if ((p[i + j] & 0xc0) != 0x80) {
                return false;
            }
        }
        i += size;
    }
    return true;
}

/* The longest run of bytes between the wildcards of a pattern, and the one in front of them. */
static void read_pattern(lahar_bytes pattern, lahar_bytes *longest_out, lahar_bytes *front_out)
{
    const uint8_t *p = pattern.data;
    size_t start = 0;
    *longest_out = (lahar_bytes){NULL, 0};
    *front_out = (lahar_bytes){NULL, 0};
    for (size_t i = 0; i <= pattern.size; i++) {
        if (i < pattern.size && p[i] != '*' && p[i] != '?') {
            continue;
        }
        if (i - start > longest_out->size) {
            *longest_out = (lahar_bytes){p + start, i - start};
        }
        if (start == 0 && i != 0) {
            *front_out = (lahar_bytes){p, i};
        }
        start = i + 1;
    }
}

/* Bytes that the folded form of a term must hold, and those it must begin with. */
static void narrow(const struct question *question, lahar_bytes *needle_out,
                   lahar_bytes *prefix_out)
{
    const struct lahar_test *test = question->test;
    const struct lahar_query_node *node = test->node;
    const bool is_text = question->place == LAHAR_PLACE_VALUE_TEXT;
    *needle_out = (lahar_bytes){NULL, 0};
    *prefix_out = (lahar_bytes){NULL, 0};
    switch (question->place) {
    case LAHAR_PLACE_PREFIX:
        *prefix_out = question->piece;
        return;
    case LAHAR_PLACE_SUFFIX:
    case LAHAR_PLACE_INFIX:
        *needle_out = question->piece;
        return;
    case LAHAR_PLACE_TOKEN:
        read_pattern(test->folded, needle_out, prefix_out);
        return;
    case LAHAR_PLACE_WHOLE_VALUE:
    case LAHAR_PLACE_VALUE_TEXT:
        break;
    }
    if (node->op == LAHAR_TEST_REGEX) {
        if (test->required != NULL && lahar_is_whole_utf8(test->required->node->value)) {
            *needle_out = test->required->folded;
        }
    } else if (!lahar_is_whole_utf8(node->value)) {
        return;
    } else if (node->op == LAHAR_TEST_CONTAINS || node->op == LAHAR_TEST_CONTAINS_EXACT) {
        *needle_out = test->folded;
    } else if (node->is_pattern && !is_text) {
        read_pattern(test->folded, needle_out, prefix_out);
    } else if (node->op == LAHAR_TEST_MATCH && is_text && !node->is_pattern) {
        *needle_out = test->token_count == 1 ? test->tokens[0].term : test->folded;
    }
}

/* --- the walk ------------------------------------------------------------------------------ */

/* A stretch of the dictionary. matcher: the thread's. */
static lahar_status search_blocks(const struct question *question, struct lahar_matcher *matcher,
                                  uint64_t first_block, uint64_t end_block, struct part *part,
                                  lahar_error *error)
{
    struct lahar_shard *shard = question->query->shard;
    struct term_filter filter = {.matcher = matcher, .question = question, .error = error};
    const struct lahar_term_search search = {.first_block = first_block,
                                             .end_block = end_block,
                                             .needle = question->needle,
                                             .accept = accept_term,
                                             .context = &filter};
    if (question->query->query != NULL) {
        LAHAR_TRY(lahar_query_check(question->query->query, error));
    }
    if (!part->is_used) {
        LAHAR_TRY(lahar_shard_query_set(question->query, &part->set, error));
        part->is_used = true;
        part->is_exact = true;
    }
    lahar_status status = lahar_shard_search_terms(shard, question->field, &search, &part->set,
                                                   &part->is_exact, error);
    if (status == LAHAR_OK) {
        status = filter.status != LAHAR_OK ? filter.status : lahar_matcher_check(matcher, error);
    }
    part->is_exact = part->is_exact && !filter.took_cut;
    return status;
}

static lahar_status search_piece(struct lahar_query_worker *worker, void *context, uint32_t piece,
                                 lahar_error *error)
{
    const struct question *question = context;
    const uint64_t first = question->first_block + (uint64_t)piece * PIECE_BLOCKS;
    const uint64_t left = question->end_block - first;
    return search_blocks(question, &worker->matcher, first,
                         first + (left < PIECE_BLOCKS ? left : (uint64_t)PIECE_BLOCKS),
                         &question->parts[worker->index], error);
}

/* Joins what the threads have found in the first part. */
static void join_parts(struct part *parts, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (!parts[i].is_used) {
            continue;
        }
        if (!parts[0].is_used) {
            parts[0] = parts[i];
        } else {
            lahar_docset_or(&parts[0].set, &parts[i].set);
            parts[0].is_exact = parts[0].is_exact && parts[i].is_exact;
            lahar_docset_deinit(&parts[i].set);
        }
        parts[i].is_used = false;
    }
}

static lahar_status search_split(struct question *question, struct part *found_out,
                                 lahar_error *error)
{
    const struct lahar_shard_query *query = question->query;
    const uint64_t pieces =
        (question->end_block - question->first_block + PIECE_BLOCKS - 1) / PIECE_BLOCKS;
    const uint32_t workers = lahar_query_worker_count(query->query);
    const struct lahar_query_split split = {
        .work = search_piece, .context = question, .count = (uint32_t)pieces};
    question->parts = lahar_allocate_zeroed(query->allocator, workers, sizeof *question->parts);
    if (question->parts == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to search an index shard");
    }
    const lahar_status status = lahar_query_run_split(query->query, query->worker, &split, error);
    join_parts(question->parts, workers);
    *found_out = question->parts[0];
    lahar_release(query->allocator, question->parts);
    return status;
}

lahar_status lahar_term_bounds(const struct lahar_shard_query *query, uint32_t field,
                               const struct lahar_test *test, enum lahar_term_place place,
                               lahar_bytes piece, struct lahar_bounds *bounds_out,
                               lahar_error *error)
{
    struct question question = {
        .query = query, .test = test, .field = field, .place = place, .piece = piece};
    struct part found = {.is_exact = true};
    lahar_bytes prefix;
    narrow(&question, &question.needle, &prefix);
    LAHAR_TRY(lahar_shard_prefix_blocks(query->shard, field, prefix, &question.first_block,
                                        &question.end_block, error));
    if (question.first_block == question.end_block) {
        return LAHAR_OK;
    }
    const bool is_split = question.end_block - question.first_block > PIECE_BLOCKS &&
                          question.end_block - question.first_block < UINT32_MAX &&
                          query->query != NULL;
    const lahar_status status = is_split
                                    ? search_split(&question, &found, error)
                                    : search_blocks(&question, query->matcher, question.first_block,
                                                    question.end_block, &found, error);
    if (!found.is_used) {
        return status;
    }
    struct lahar_shard_lookup lookup = {.set = found.set, .is_exact = found.is_exact};
    return lahar_shard_lookup_end(&lookup, status, bounds_out);
}
