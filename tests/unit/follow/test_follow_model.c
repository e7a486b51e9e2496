/* The seeded model test: random operations on files, reader steps and crashes in random
 * order. The model knows every line that was ever written, which of them the store has said to
 * be durable, and which could be lost because their file was cut or removed before they were.
 *
 * Held at the end of every run: each line comes at most once, each that could not be
 * lost comes exactly once, nothing comes that was never written as a line, and the
 * lines of one content come in its order. */
#include "follow_fixture.h"

enum {
    RUNS = 200,
    OPERATIONS = 70,
    NAMES = 4,
    CONTENTS_MAX = 400,
    LINES_MAX = 8000
};

/* What one name's file holds from one truncation to the next. */
struct content {
    unsigned line_count; /* complete ones */
    bool has_partial;    /* behind them the beginning of a line */
};

struct line {
    unsigned content;
    unsigned number;
    bool may_be_lost;
    unsigned seen;
};

struct model {
    struct follow_fixture f;
    uint64_t random;
    struct content contents[CONTENTS_MAX];
    unsigned content_count;
    struct line lines[LINES_MAX];
    unsigned line_count;
    unsigned durable_count; /* lines before this one are in the store for good */
    int names[NAMES];       /* content of "f0.log" .., -1: no file */
    char trace[OPERATIONS * 24];
};

static uint64_t draw(struct model *m, uint64_t below)
{
    uint64_t z = (m->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static void note(struct model *m, const char *what, unsigned a)
{
    const size_t used = strlen(m->trace);
    (void)snprintf(m->trace + used, sizeof m->trace - used, "%s%u ", what, a);
}

static const char *name_of(unsigned name)
{
    static const char *const names[NAMES] = {"f0.log", "f1.log", "f2.log", "f3.log"};
    return names[name];
}

static int new_content(struct model *m)
{
    cr_assert_lt(m->content_count, (unsigned)CONTENTS_MAX);
    m->contents[m->content_count] = (struct content){0};
    return (int)m->content_count++;
}

/* Lines of different lengths, each of its own text. */
static void append_lines(struct model *m, unsigned name, unsigned count)
{
    static const char padding_text[] = "................................................";
    char text[1024];
    if (m->names[name] < 0) {
        m->names[name] = new_content(m);
    }
    struct content *content = &m->contents[m->names[name]];
    for (unsigned i = 0; i < count && m->line_count < LINES_MAX; i++) {
        /* Long enough, now and then, that files outgrow their fingerprint's head. */
        const unsigned padding = (unsigned)draw(m, draw(m, 4) == 0 ? 800 : 40);
        const unsigned number = content->line_count;
        int size = snprintf(text, sizeof text, "c%d n%u ", m->names[name], number);
        for (unsigned done = 0; done < padding; done += sizeof padding_text - 1) {
            size += snprintf(text + size, sizeof text - (size_t)size, "%s", padding_text);
        }
        const char *path = name_of(name);
        if (content->has_partial) {
            /* The other half of a line that was begun: its padding was none. */
            (void)snprintf(text, sizeof text, "%u \n", number);
            write_file(&m->f, path, O_APPEND, text, strlen(text));
            content->has_partial = false;
        } else if (draw(m, 6) == 0) {
            (void)snprintf(text, sizeof text, "c%d n", m->names[name]);
            write_file(&m->f, path, O_APPEND, text, strlen(text));
            content->has_partial = true;
            return;
        } else {
            text[size] = '\n';
            write_file(&m->f, path, O_APPEND, text, (size_t)size + 1);
        }
        m->lines[m->line_count++] =
            (struct line){.content = (unsigned)m->names[name], .number = number};
        content->line_count++;
    }
}

static void finish_partial(struct model *m, unsigned name)
{
    if (m->names[name] >= 0 && m->contents[m->names[name]].has_partial) {
        append_lines(m, name, 1);
    }
}

/* Everything that is there is read and durable. */
static void make_safe(struct model *m)
{
    follow_fixture_settle(&m->f);
    cr_assert_eq(lahar_sync(m->f.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    m->durable_count = m->line_count;
}

/* The file of a name is about to lose its bytes. */
static void endanger(struct model *m, unsigned name)
{
    if (draw(m, 3) != 0) {
        make_safe(m);
        return;
    }
    for (unsigned i = m->durable_count; i < m->line_count; i++) {
        if (m->lines[i].content == (unsigned)m->names[name]) {
            m->lines[i].may_be_lost = true;
        }
    }
}

static void remove_name(struct model *m, unsigned name)
{
    if (m->names[name] >= 0) {
        finish_partial(m, name);
        endanger(m, name);
        drop(&m->f, name_of(name));
        m->names[name] = -1;
    }
}

/* f2 -> f3, f1 -> f2, f0 -> f1, as a rotation does. */
static void rotate(struct model *m)
{
    remove_name(m, NAMES - 1);
    for (unsigned i = NAMES - 1; i > 0; i--) {
        if (m->names[i - 1] >= 0) {
            move(&m->f, name_of(i - 1), name_of(i));
        }
        m->names[i] = m->names[i - 1];
    }
    m->names[0] = -1;
}

static void swap_names(struct model *m, unsigned a, unsigned b)
{
    if (a == b || m->names[a] < 0 || m->names[b] < 0) {
        return;
    }
    move(&m->f, name_of(a), "swap.tmp");
    move(&m->f, name_of(b), name_of(a));
    move(&m->f, "swap.tmp", name_of(b));
    const int content = m->names[a];
    m->names[a] = m->names[b];
    m->names[b] = content;
}

static void truncate_name(struct model *m, unsigned name)
{
    if (m->names[name] >= 0) {
        finish_partial(m, name);
        endanger(m, name);
        cut(&m->f, name_of(name), 0);
        m->names[name] = new_content(m);
        append_lines(m, name, (unsigned)draw(m, 40));
    }
}

static void crash(struct model *m)
{
    follow_fixture_crash(&m->f, draw(m, 1 << 30), draw(m, 2) == 0);
    follow_fixture_start(&m->f);
}

static void steps(struct model *m, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        follow_fixture_advance(&m->f, draw(m, 400));
        (void)lahar_follow_step(m->f.follow, m->f.now_ns);
        (void)lahar_store_step(m->f.store, (uint32_t)draw(m, LAHAR_WORK_COUNT));
    }
}

static void operate(struct model *m)
{
    const unsigned name = (unsigned)draw(m, NAMES);
    const unsigned kind = (unsigned)draw(m, 24);
    note(m, "", kind);
    if (kind < 9) {
        append_lines(m, draw(m, 2) == 0 ? 0 : name, 1 + (unsigned)draw(m, 6));
    } else if (kind < 15) {
        steps(m, 1 + (unsigned)draw(m, 6));
    } else if (kind < 17) {
        rotate(m);
    } else if (kind == 17) {
        truncate_name(m, name);
    } else if (kind == 18) {
        remove_name(m, name);
    } else if (kind == 19) {
        swap_names(m, name, (unsigned)draw(m, NAMES));
    } else if (kind == 20) {
        crash(m);
    } else if (kind == 21) {
        follow_fixture_stop(&m->f);
        follow_fixture_start(&m->f);
    } else if (kind == 22) {
        cr_assert_eq(lahar_rollover(m->f.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    } else {
        make_safe(m);
    }
}

/* The line that a message is; NULL when none was ever written like it. */
static struct line *find_line(struct model *m, const char *message)
{
    unsigned content;
    unsigned number;
    if (sscanf(message, "c%u n%u ", &content, &number) != 2) {
        return NULL;
    }
    for (unsigned i = 0; i < m->line_count; i++) {
        if (m->lines[i].content == content && m->lines[i].number == number) {
            return &m->lines[i];
        }
    }
    return NULL;
}

static void judge(struct model *m, uint64_t seed)
{
    static int last[CONTENTS_MAX];
    for (unsigned i = 0; i < CONTENTS_MAX; i++) {
        last[i] = -1;
    }
    char *text = messages_of(&m->f, "logs", LAHAR_FIELD_MESSAGE);
    for (char *message = strtok(text, "\n"); message != NULL; message = strtok(NULL, "\n")) {
        struct line *line = find_line(m, message);
        cr_assert_not_null(line, "seed %llu: \"%s\" was never written: %s",
                           (unsigned long long)seed, message, m->trace);
        cr_assert_eq(line->seen++, 0, "seed %llu: \"%s\" came twice: %s", (unsigned long long)seed,
                     message, m->trace);
        cr_assert_gt((int)line->number, last[line->content],
                     "seed %llu: \"%s\" came out of order: %s", (unsigned long long)seed, message,
                     m->trace);
        last[line->content] = (int)line->number;
    }
    free(text);
    for (unsigned i = 0; i < m->line_count; i++) {
        const struct line *line = &m->lines[i];
        cr_assert(line->seen == 1 || line->may_be_lost, "seed %llu: c%u n%u is lost: %s",
                  (unsigned long long)seed, line->content, line->number, m->trace);
    }
}

static void run(uint64_t seed)
{
    static struct model m;
    memset(&m, 0, sizeof m);
    m.random = seed * 0x2545f4914f6cdd1du;
    follow_fixture_init(&m.f);
    for (unsigned i = 0; i < NAMES; i++) {
        m.names[i] = -1;
    }
    m.f.spec.open_files_max = 1 + draw(&m, 5);
    m.f.spec.poll_max_batch_size = 1 + draw(&m, 20);
    m.f.spec.max_block_size = 1 + draw(&m, 40);
    m.f.spec.line_size_max = draw(&m, 2) == 0 ? 200 : 1 << 20;
    follow_fixture_create(&m.f);
    follow_fixture_start(&m.f);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        operate(&m);
    }
    for (unsigned i = 0; i < NAMES; i++) {
        finish_partial(&m, i);
    }
    make_safe(&m);
    judge(&m, seed);
    follow_fixture_deinit(&m.f);
}

/* LAHAR_MODEL_SEED=N runs one seed alone, LAHAR_MODEL_RUNS=N more or fewer of them,
 * LAHAR_MODEL_FIRST=N others: those from N on. */
Test(follow_model, delivers_every_line_once_whatever_happens)
{
    const char *alone = getenv("LAHAR_MODEL_SEED");
    if (alone != NULL) {
        run(strtoull(alone, NULL, 10));
        return;
    }
    const char *wanted = getenv("LAHAR_MODEL_RUNS");
    const uint64_t runs = wanted == NULL ? RUNS : strtoull(wanted, NULL, 10);
    const char *from = getenv("LAHAR_MODEL_FIRST");
    const uint64_t first = from == NULL ? 1 : strtoull(from, NULL, 10);
    for (uint64_t seed = first; seed < first + runs; seed++) {
        run(seed);
    }
}
