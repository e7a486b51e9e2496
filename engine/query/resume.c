/* Resume tokens: where the results given so far end, as of which instant and which end of the
 * store, and of which query. Text of the form
 *
 *   1.<query hash>.<end id>.<now>.<time>.<id>
 *
 * in hexadecimal; the last two are absent before the first result. */
#include <inttypes.h>
#include <stdio.h>

#include "engine/query/query_state.h"
#include "io/base/error.h"

void lahar_query_write_token(struct lahar_query *query)
{
    const struct lahar_query_position *position = &query->position;
    const int size =
        snprintf(query->token, sizeof query->token, "1.%016" PRIx64 ".%" PRIx64 ".%" PRIx64 ".",
                 query->hash, query->end_id, (uint64_t)query->now_ns);
    LAHAR_ASSERT(size > 0 && (size_t)size < sizeof query->token);
    if (position->is_set) {
        (void)snprintf(query->token + size, sizeof query->token - (size_t)size,
                       "%" PRIx64 ".%" PRIx64, (uint64_t)position->time_ns, position->id);
    }
}

/* Takes a hexadecimal number and the '.' behind it, or the end of the text. */
static bool take(const char **at, uint64_t *number_out)
{
    const char *p = *at;
    *number_out = 0;
    int digits = 0;
    for (;; p++, digits++) {
        int digit = 0;
        if (*p >= '0' && *p <= '9') {
            digit = *p - '0';
        } else if (*p >= 'a' && *p <= 'f') {
            digit = *p - 'a' + 10;
        } else {
            break;
        }
        if (digits == 16) {
            return false;
        }
        *number_out = *number_out << 4 | (unsigned)digit;
    }
    if (digits == 0 || (*p != '.' && *p != '\0')) {
        return false;
    }
    *at = p + (*p == '.');
    return true;
}

lahar_status lahar_query_read_token(struct lahar_query *query, const char *token,
                                    uint64_t *hash_out, lahar_error *error)
{
    const char *at = token;
    uint64_t version = 0;
    uint64_t end_id = 0;
    uint64_t now = 0;
    uint64_t time = 0;
    uint64_t id = 0;
    const bool is_begun = take(&at, &version) && version == 1 && take(&at, hash_out) &&
                          take(&at, &end_id) && take(&at, &now);
    const bool has_position = is_begun && *at != '\0';
    if (!is_begun || (has_position && !(take(&at, &time) && take(&at, &id) && *at == '\0'))) {
        return lahar_fail(error, LAHAR_INVALID, "the resume token is damaged");
    }
    query->now_ns = (int64_t)now;
    /* What was appended since the first page stays out. */
    query->end_id = end_id < query->end_id ? end_id : query->end_id;
    if (has_position) {
        query->position = (struct lahar_query_position){true, (int64_t)time, id};
    }
    return LAHAR_OK;
}
