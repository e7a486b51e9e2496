/* Finds a literal in a regular expression; see regex_literal.h.
 *
 * Only the top level is read: groups and classes end a run and are passed over. Whatever is not
 * plainly understood (alternatives, options inside the expression, escapes with arguments) makes
 * the answer empty, which is always right. */
#include "engine/query/regex_literal.h"

#include <string.h>

struct scan {
    const uint8_t *p;
    size_t size;
    size_t at;
    bool ignores_case;
    struct lahar_buffer run;   /* literal bytes up to here */
    struct lahar_buffer *best; /* the longest run that has ended */
    bool is_unclear;
};

static void end_run(struct scan *scan)
{
    if (scan->run.size > scan->best->size) {
        lahar_buffer_clear(scan->best);
        lahar_buffer_put(scan->best, scan->run.data, scan->run.size);
    }
    lahar_buffer_clear(&scan->run);
}

/* Takes the last character off the run: it may be absent. */
static void drop_last(struct scan *scan)
{
    struct lahar_buffer *run = &scan->run;
    while (run->size != 0 && (run->data[--run->size] & 0xc0) == 0x80) {
    }
}

static bool starts_with(const struct scan *scan, const char *text)
{
    const size_t size = strlen(text);
    return scan->size - scan->at >= size && memcmp(scan->p + scan->at, text, size) == 0;
}

/* At '[': goes behind its ']'. */
static void skip_class(struct scan *scan)
{
    scan->at += starts_with(scan, "[^") ? 2 : 1;
    bool is_first = true;
    while (scan->at < scan->size) {
        const uint8_t c = scan->p[scan->at];
        if (c == ']' && !is_first) {
            scan->at++;
            return;
        }
        is_first = false;
        if (starts_with(scan, "[:")) {
            const uint8_t *end = memmem(scan->p + scan->at, scan->size - scan->at, ":]", 2);
            scan->at = end == NULL ? scan->at + 1 : (size_t)(end - scan->p) + 2;
        } else {
            scan->at += c == '\\' ? 2 : 1;
        }
    }
    scan->is_unclear = true;
}

/* At '(': goes behind its ')'. A group that sets options changes what follows. */
static void skip_group(struct scan *scan)
{
    size_t depth = 0;
    if (starts_with(scan, "(*")) {
        scan->is_unclear = true;
        return;
    }
    do {
        const uint8_t c = scan->p[scan->at];
        if (starts_with(scan, "(?")) {
            const uint8_t kind = scan->at + 2 < scan->size ? scan->p[scan->at + 2] : 0;
            /* Options, comments, code names with quotes: only the plain kinds are passed over. */
            scan->is_unclear = scan->is_unclear || memchr(":=!<>|P", kind, 7) == NULL;
        }
        if (c == '[') {
            skip_class(scan);
            continue;
        }
        depth += c == '(';
        depth -= c == ')';
        scan->at += c == '\\' ? 2 : 1;
    } while (depth != 0 && scan->at < scan->size && !scan->is_unclear);
    scan->is_unclear = scan->is_unclear || depth != 0 || scan->at > scan->size;
}

/* At '{': whether a count stands here, of which the end is stored. */
static bool at_count(const struct scan *scan, size_t *end_out)
{
    size_t i = scan->at + 1;
    while (i < scan->size &&
           (scan->p[i] == ',' || scan->p[i] == ' ' || (scan->p[i] >= '0' && scan->p[i] <= '9'))) {
        i++;
    }
    *end_out = i + 1;
    return i < scan->size && scan->p[i] == '}';
}

/* A quantifier behind the atom just read, if there is one. */
static void take_quantifier(struct scan *scan)
{
    const uint8_t c = scan->at < scan->size ? scan->p[scan->at] : 0;
    size_t end = scan->at + 1;
    if (c != '*' && c != '?' && c != '+' && (c != '{' || !at_count(scan, &end))) {
        return;
    }
    if (c != '+') {
        drop_last(scan);
    }
    end_run(scan);
    scan->at = end;
    if (scan->at < scan->size && (scan->p[scan->at] == '?' || scan->p[scan->at] == '+')) {
        scan->at++;
    }
}

static void take_literal(struct scan *scan, uint8_t c)
{
    if (c >= 0x80 && scan->ignores_case) {
        end_run(scan);
    } else {
        lahar_buffer_put_u8(&scan->run, c);
    }
}

static bool is_alphanumeric(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Behind a backslash. */
static void take_escape(struct scan *scan)
{
    const uint8_t c = scan->p[scan->at];
    scan->at++;
    if (!is_alphanumeric(c)) {
        take_literal(scan, c);
        return;
    }
    end_run(scan);
    scan->is_unclear = memchr("dDwWsShHvVRbBAzZnrtfae", c, 22) == NULL;
}

static void take_atom(struct scan *scan)
{
    const uint8_t c = scan->p[scan->at];
    switch (c) {
    case '|':
        scan->is_unclear = true;
        break;
    case '(':
        end_run(scan);
        skip_group(scan);
        break;
    case '[':
        end_run(scan);
        skip_class(scan);
        break;
    case '.':
    case '^':
    case '$':
    case '{': /* not of a quantifier: rare, and left out */
        end_run(scan);
        scan->at++;
        break;
    case '\\':
        scan->at++;
        if (scan->at == scan->size) {
            scan->is_unclear = true;
            break;
        }
        take_escape(scan);
        break;
    default:
        take_literal(scan, c);
        scan->at++;
        break;
    }
}

void lahar_regex_required(lahar_bytes expression, bool ignores_case, struct lahar_buffer *out)
{
    struct scan scan = {
        .p = expression.data, .size = expression.size, .ignores_case = ignores_case, .best = out};
    lahar_buffer_init(&scan.run, out->allocator);
    lahar_buffer_clear(out);
    /* Between \Q and \E nothing means what it does elsewhere. */
    scan.is_unclear = scan.size != 0 && memmem(scan.p, scan.size, "\\Q", 2) != NULL;
    while (scan.at < scan.size && !scan.is_unclear) {
        take_atom(&scan);
        if (scan.at < scan.size && (scan.p[scan.at] & 0xc0) != 0x80) {
            take_quantifier(&scan);
        }
    }
    end_run(&scan);
    if (scan.is_unclear || scan.run.has_failed) {
        lahar_buffer_clear(out);
    }
    lahar_buffer_deinit(&scan.run);
}
