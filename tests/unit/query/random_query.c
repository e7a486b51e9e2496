/* Random queries, and what they match by their structure alone. */
#include "random_query.h"

#include <stdio.h>
#include <string.h>

#include "random_store.h"

#define COUNT_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static uint32_t pick(uint64_t *state, uint32_t count)
{
    return random_pick(state, count);
}

static void put(struct lahar_buffer *out, const char *text)
{
    lahar_buffer_put(out, text, strlen(text));
}

/* In quotation marks; bytes that need it escaped. */
static void put_quoted(struct lahar_buffer *out, const char *text, size_t size)
{
    put(out, "\"");
    for (size_t i = 0; i < size; i++) {
        char escaped[8];
        const uint8_t c = (uint8_t)text[i];
        if (c < 0x20 || c == '"' || c == '\\' || c >= 0x80) {
            (void)snprintf(escaped, sizeof escaped, "\\x%02x", c);
            put(out, escaped);
        } else {
            lahar_buffer_put_u8(out, c);
        }
    }
    put(out, "\"");
}

/* One or two words, or a piece of that. */
static void put_words(struct lahar_buffer *out, uint64_t *state, bool is_piece)
{
    char text[128];
    size_t size =
        (size_t)snprintf(text, sizeof text, "%s", random_words[pick(state, RANDOM_WORDS)]);
    if (pick(state, 2) == 0) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s",
                                 random_joints[pick(state, RANDOM_JOINTS)],
                                 random_words[pick(state, RANDOM_WORDS)]);
    }
    size_t start = 0;
    if (is_piece && size > 2) {
        start = pick(state, (uint32_t)size - 1);
        size = start + 1 + pick(state, (uint32_t)(size - start));
        size = size > strlen(text) ? strlen(text) : size;
    }
    put_quoted(out, text + start, size - start);
}

static void put_field_and_operator(struct lahar_buffer *out, uint64_t *state)
{
    static const char *const fields[] = {
        "message",     "host", "tags",  "attr.status", "status", "details",     "note",
        "attr.tenant", "type", "level", "blob",        "labels", "prev.status", "_raw_record"};
    static const char *const operators[] = {":", ":", ":", "=", "!="};
    put(out, fields[pick(state, COUNT_OF(fields))]);
    put(out, operators[pick(state, COUNT_OF(operators))]);
}

static const char *const fixed_leaves[] = {
    "level:ERROR",
    "level=error",
    "level!=ERROR",
    "level:*",
    "level:(warn info)",
    "host:web-*",
    "host=web-*",
    "host:*01",
    "host=\"\"",
    "host:*",
    "host:w?b-01",
    "count>0",
    "count<=-3",
    "count:[-5..5)",
    "count!=3",
    "count:-9223372036854775808",
    "count:*",
    "ratio>0",
    "ratio:0",
    "ratio!=1.5",
    "ratio<=1.5",
    "ok:true",
    "ok!=true",
    "when:2015-01-06",
    "when>2015-01-06",
    "when<2015-01-06T12:00",
    "big>18446744073709551614",
    "big<5",
    "big:18446744073709551615",
    "tags:error",
    "tags:*",
    "tags~dis",
    "tags!=disk",
    "type:(SEND DROP)",
    "type:*E*",
    "size>1KiB",
    "size:[100..200]",
    "uuid:8f3a0300-0000-0000-0000-000000000000",
    "uuid=8F3A0700000000000000000000000000",
    "uuid:8f3a0*",
    "uuid:8F3A03*",
    "uuid:8f3a1300-0*",
    "uuid=8f3a0?00*",
    "uuid:*-0000-*",
    "uuid:8f3a0700-0000-0000-0000-00000000000*",
    "parents:8f3a1*",
    "web-01",
    "\"text here\"",
    "~plain",
    "host~EB-0",
    "host~=eb-0",
    "uuid:*",
    "parents:*",
    "children:8f3a0100-0000-0000-0000-000000000000",
    "attr.status:200",
    "status=404",
    "status>=200",
    "attr.status<1000",
    "attr.tenant:*",
    "attr.mime.type=\"\"",
    "\"my key\":\"text HERE\"",
    "prev.status:200",
    "prev.tenant:*",
    "changed:status",
    "changed:tenant",
    "changed:*",
    "changed:my*",
    "changed!=status",
    "attr.status:4*",
    "stream:log",
    "stream:PROV*",
    "stream!=log",
    "id>50",
    "id:[20..80)",
    "id!=7",
    "time:2015-01-06",
    "time>=2015-01-06T03:00",
    "time<2015-01-06T01:00:00Z",
    "arrival>2020-01-01",
    "last:1h",
    "*",
    "message:*",
    "message:err*",
    "message:*n",
    "message:d?sk",
    "~on",
    "~=ON",
    "200",
    "web",
    "tex*",
    "labels.status:200",
    "labels.tenant:*",
    "labels:*",
    "attributes:*",
    "message:10.0.*",
    "message=\"\"",
    "message~\"\"",
    "absent:x",
    "absent:*",
    "host:[1..5]",
    "details:*",
    "blob:*",
    "NOT message:\"error: disk\"",
    "message~\"31m\"",
    "message~3",
    "message:/^err/",
    "message~/[0-9]+ms\\b/",
    "message:/time(out|r)? con/i",
    "details~/disk|full/",
    "host:/^web-0[12]$/i",
    "tags~/^.{1,4}$/",
    "status:/^[24]0/",
    "uuid:/^8f3a0[1-3]/",
    "~/t[ai]m/i",
    "~/\\d{2}/",
    "blob:/^e/",
    "stream:/^l/",
    "changed~/^t/",
    "note:/\\x1b|x/",
    "NOT message:/user_1.*error/",
    "labels.status~/4$/",
    "_offset:*",
};

static void put_leaf(struct lahar_buffer *out, uint64_t *state)
{
    const uint32_t choice = pick(state, 10);
    if (choice < 5) {
        put(out, fixed_leaves[pick(state, COUNT_OF(fixed_leaves))]);
    } else if (choice < 7) {
        put_field_and_operator(out, state);
        put_words(out, state, false);
    } else if (choice < 8) {
        put(out, pick(state, 2) == 0 ? "message~" : "details~=");
        put_words(out, state, true);
    } else {
        put_words(out, state, false);
    }
}

/* Writes a leaf and says what it matches. */
static void take_leaf(struct lahar_buffer *out, uint64_t *state, const struct random_leaves *leaves,
                      uint64_t *set)
{
    const size_t begin = out->size;
    put_leaf(out, state);
    if (leaves != NULL) {
        leaves->evaluate(leaves->context, (const char *)out->data + begin, out->size - begin, set);
    }
    put(out, " ");
}

void random_query(struct lahar_buffer *out, uint64_t *state, int depth,
                  const struct random_leaves *leaves, uint64_t *set)
{
    const size_t word_count = leaves == NULL ? 0 : leaves->word_count;
    const uint32_t choice = pick(state, 10);
    uint64_t one[RANDOM_SET_WORDS];
    if (depth == 0 || choice < 4) {
        take_leaf(out, state, leaves, set);
        return;
    }
    if (choice < 6) {
        put(out, "NOT (");
        random_query(out, state, depth - 1, leaves, set);
        put(out, ")");
        for (size_t i = 0; i < word_count; i++) {
            set[i] = ~set[i];
        }
        return;
    }
    const bool is_and = pick(state, 2) == 0;
    const uint32_t count = 2 + pick(state, 2);
    put(out, "(");
    for (uint32_t i = 0; i < count; i++) {
        put(out, i == 0 ? "" : is_and ? " AND " : " OR ");
        random_query(out, state, depth - 1, leaves, i == 0 ? set : one);
        for (size_t j = 0; i != 0 && j < word_count; j++) {
            set[j] = is_and ? set[j] & one[j] : set[j] | one[j];
        }
    }
    put(out, ")");
}
