/* Reading many records at a time, over marks and by plans, gives what the steps one record at a
 * time give: on random and hostile input, for every way of finding marks, cut at every byte. The
 * steps alone (LAHAR_SIMD_OFF) are tested against hand-made values elsewhere. */
#include "engine/format/marks.h"
#include "text_fixture.h"

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* --- marks ---------------------------------------------------------------------------- */

static const enum lahar_simd levels[] = {LAHAR_SIMD_BEST, LAHAR_SIMD_PORTABLE, LAHAR_SIMD_SSE2,
                                         LAHAR_SIMD_AVX2};

static bool is_marked(const struct lahar_mark_set *set, uint8_t c)
{
    return c < set->below || memchr(set->bytes, c, sizeof set->bytes) != NULL;
}

/* Walks the marks of size bytes that end where their memory ends, beside a look at every byte. */
static void expect_marks(const struct lahar_mark_set *set, enum lahar_simd level, size_t size,
                         uint64_t seed)
{
    uint8_t *data = malloc(size);
    struct lahar_marks marks;
    for (size_t i = 0; i < size; i++) {
        const uint64_t draw = next_random(&seed);
        data[i] = (draw & 3) == 0 ? set->bytes[draw >> 2 & 3] : (uint8_t)(draw >> 4);
    }
    lahar_marks_init(&marks, set, level);
    lahar_marks_look(&marks, data, data + size);
    const size_t window = size < LAHAR_MARKS_WINDOW_SIZE ? size : LAHAR_MARKS_WINDOW_SIZE;
    cr_assert_eq(marks.end, data + window);
    const uint8_t *expected = data + window;
    for (size_t i = window + 1; i-- > 0;) {
        if (i < window && is_marked(set, data[i])) {
            expected = data + i;
        }
        cr_assert_eq(lahar_marks_next(&marks, data + i), expected, "size %zu at %zu", size, i);
    }
    free(data);
}

Test(marks, are_the_same_however_they_are_found)
{
    static const struct lahar_mark_set sets[] = {{{',', '\n', '"', '"'}, 0},
                                                 {{'"', '\\', '"', '\\'}, 0x20},
                                                 {{0, 0xff, 0x80, 0x7f}, 0},
                                                 {{'a', 'a', 'a', 'a'}, 0xff}};
    static const size_t sizes[] = {1, 31, 32, 63, 64, 65, 127, 128, 129, 8191, 8192, 8193, 9000};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        for (size_t j = 0; j < sizeof levels / sizeof levels[0]; j++) {
            for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
                expect_marks(&sets[i], levels[j], sizes[k], i * 100 + k);
            }
        }
    }
}

/* --- readers --------------------------------------------------------------------------- */

static const lahar_field_spec fields[] = {
    {"n", LAHAR_I64, false},   {"u", LAHAR_U64, false},          {"x", LAHAR_F64, false},
    {"at", LAHAR_TIME, false}, {"w", LAHAR_KEYWORD, false},      {"a.b", LAHAR_U64, false},
    {"m", LAHAR_MAP, false},   {"l", LAHAR_LIST_KEYWORD, false}, {"ok", LAHAR_BOOL, false}};

/* Everything that a reader says of its input. */
struct outcome {
    struct lahar_buffer rows;
    struct lahar_buffer errors;
    uint64_t line;
    uint64_t offset;
};

static void note_error(void *context, uint64_t line, uint64_t offset, const char *message)
{
    struct lahar_buffer *errors = context;
    char text[400];
    const int size = snprintf(text, sizeof text, "%llu %llu %s\n", (unsigned long long)line,
                              (unsigned long long)offset, message);
    lahar_buffer_put(errors, text, (size_t)size);
}

static lahar_status keep_row(void *context, const lahar_event *event, uint64_t offset,
                             lahar_error *error)
{
    struct fixture *f = context;
    (void)offset;
    return lahar_row_encode(&f->rows, f->catalog, event, error);
}

/* How the bytes are given: in pieces, or by lines. */
enum {
    BY_LINES = -1
};

static struct outcome read_with(struct fixture *f, enum lahar_simd simd, const char *text,
                                size_t size, int piece)
{
    struct outcome outcome = {0};
    struct lahar_text_reader *reader = NULL;
    lahar_error error = {0};
    lahar_buffer_init(&outcome.rows, &lahar_allocator_libc);
    lahar_buffer_init(&outcome.errors, &lahar_allocator_libc);
    lahar_buffer_clear(&f->rows);
    struct lahar_text_reader_options options = f->options;
    options.simd = simd;
    options.emit = keep_row;
    options.on_error = note_error;
    options.on_error_context = &outcome.errors;
    options.time_field = "at";
    cr_assert_eq(lahar_text_reader_create(&options, &reader, &error), LAHAR_OK);
    const size_t step = piece <= 0 ? size : (size_t)piece;
    for (size_t at = 0; at < size; at += step) {
        const size_t left = size - at < step ? size - at : step;
        /* In memory of its own, which ends where the piece ends. */
        char *copy = malloc(left);
        memcpy(copy, text + at, left);
        cr_assert_eq(piece == BY_LINES ? lahar_text_reader_write_lines(reader, copy, left, &error)
                                       : lahar_text_reader_write(reader, copy, left, &error),
                     LAHAR_OK, "%s", error.message);
        free(copy);
    }
    if (piece != BY_LINES) {
        cr_assert_eq(lahar_text_reader_finish(reader, &error), LAHAR_OK);
    }
    outcome.line = lahar_text_reader_line(reader);
    outcome.offset = lahar_text_reader_offset(reader);
    lahar_buffer_put(&outcome.rows, f->rows.data, f->rows.size);
    lahar_text_reader_destroy(reader);
    return outcome;
}

static void free_outcome(struct outcome *outcome)
{
    lahar_buffer_deinit(&outcome->rows);
    lahar_buffer_deinit(&outcome->errors);
}

static bool is_same(const struct lahar_buffer *a, const struct lahar_buffer *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static void expect_same(struct fixture *f, enum lahar_simd simd, const char *text, size_t size,
                        int piece)
{
    struct outcome steps = read_with(f, LAHAR_SIMD_OFF, text, size, piece);
    struct outcome run = read_with(f, simd, text, size, piece);
    cr_assert(is_same(&steps.errors, &run.errors), "level %d piece %d: %.*s\n%.*s\nnot\n%.*s",
              (int)simd, piece, (int)size, text, (int)run.errors.size,
              (const char *)run.errors.data, (int)steps.errors.size,
              (const char *)steps.errors.data);
    cr_assert(is_same(&steps.rows, &run.rows), "level %d piece %d: %.*s", (int)simd, piece,
              (int)size, text);
    cr_assert_eq(steps.line, run.line, "%.*s", (int)size, text);
    cr_assert_eq(steps.offset, run.offset);
    free_outcome(&steps);
    free_outcome(&run);
}

static void init(struct fixture *f, lahar_format format)
{
    fixture_init_fields(f, format, LAHAR_SCHEMA_LOG, fields, sizeof fields / sizeof fields[0]);
}

/* Whole and by lines at every level, and cut at many places at one. */
static void expect_same_everywhere(struct fixture *f, const char *text, size_t size)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        expect_same(f, levels[i], text, size, 0);
        expect_same(f, levels[i], text, size, BY_LINES);
    }
    for (int piece = 1; piece < 7; piece++) {
        expect_same(f, LAHAR_SIMD_BEST, text, size, piece);
    }
    expect_same(f, LAHAR_SIMD_BEST, text, size, 64);
    expect_same(f, LAHAR_SIMD_BEST, text, size, 97);
}

/* --- tables -------------------------------------------------------------------------------- */

/* Cells of all kinds, sound and not. */
static size_t put_cells(char *out, uint64_t *state, size_t cell_count, bool is_tsv)
{
    static const char *const cells[] = {"1",
                                        "-5",
                                        "007",
                                        "0.5",
                                        "1e3",
                                        "x",
                                        "",
                                        "\\N",
                                        "a b",
                                        "\"q\"",
                                        "\"a,b\"",
                                        "\"a\"\"b\"",
                                        "\"l\nf\"",
                                        "\"c\"r",
                                        "'s'",
                                        "'a,b'",
                                        " t ",
                                        "2024-05-01T00:00:00Z",
                                        "true",
                                        "\"\"",
                                        "c\rr",
                                        "a\\tb",
                                        "18446744073709551616",
                                        "\"open",
                                        "\\"};
    const size_t kind_count = sizeof cells / sizeof cells[0];
    size_t size = 0;
    for (size_t i = 0; i < cell_count; i++) {
        const uint64_t draw = next_random(state);
        /* Most rows are to be sound. */
        const size_t kind = draw % 4 == 0 ? draw / 4 % kind_count : draw / 4 % 3 == 0 ? 5 : 0;
        const char *cell = cells[kind];
        memcpy(out + size, cell, strlen(cell));
        size += strlen(cell);
        out[size++] = i + 1 < cell_count ? (is_tsv ? '\t' : ',') : '\n';
    }
    if (next_random(state) % 16 == 0) {
        memcpy(out + size - 1, "\r\n", 2);
        size++;
    }
    return size;
}

static size_t put_table(char *out, uint64_t *state, bool is_tsv)
{
    size_t size = 0;
    const char *header = is_tsv ? "n\tw\tx\tw\to\n" : "n,w,x,w,o\n";
    memcpy(out, header, strlen(header));
    size += strlen(header);
    for (size_t i = 0; i < 12; i++) {
        const uint64_t draw = next_random(state) % 16;
        size += put_cells(out + size, state, draw == 0 ? 4 : draw == 1 ? 7 : 5, is_tsv);
        if (draw == 2) {
            out[size++] = '\n';
        }
    }
    return size - (next_random(state) % 4 == 0);
}

Test(runs, of_tables_give_what_the_steps_give)
{
    char *text = malloc(65536);
    uint64_t state = 1;
    for (size_t i = 0; i < 120; i++) {
        const bool is_tsv = i % 3 == 2;
        struct fixture f;
        init(&f, is_tsv ? LAHAR_FORMAT_TSV : LAHAR_FORMAT_CSV);
        lahar_format_settings settings = {0};
        f.options.errors_as_events = i % 2 == 0;
        f.options.allow_ragged = i % 5 == 0;
        if (i % 4 == 1) {
            cr_assert_eq(lahar_format_set(&settings, "format_csv_allow_single_quotes", "1", NULL),
                         LAHAR_OK);
            cr_assert_eq(
                lahar_format_set(&settings, "input_format_csv_trim_whitespaces", "1", NULL),
                LAHAR_OK);
            f.options.settings = &settings;
        }
        const size_t size = put_table(text, &state, is_tsv);
        expect_same_everywhere(&f, text, size);
        fixture_deinit(&f);
    }
    free(text);
}

/* Rows around the size of a window, with what matters at each place near its end. */
Test(runs, of_rows_as_long_as_a_window_give_what_the_steps_give)
{
    static const char *const tails[] = {",\"a\"\"b\"\n", ",\"a,\nb\",c\r\n", ",x\n", ",\"open\n",
                                        ",\"a\"b\n"};
    char *text = malloc(32768);
    struct fixture f;
    init(&f, LAHAR_FORMAT_CSV);
    f.options.allow_ragged = true;
    for (size_t fill = LAHAR_MARKS_WINDOW_SIZE - 24; fill < LAHAR_MARKS_WINDOW_SIZE + 4; fill++) {
        for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
            size_t size = (size_t)snprintf(text, 100, "a,b\n1,2\n");
            memset(text + size, 'z', fill);
            size += fill;
            memcpy(text + size, tails[i], strlen(tails[i]));
            size += strlen(tails[i]);
            memcpy(text + size, "3,4\n5,6", 7);
            size += 7;
            expect_same(&f, LAHAR_SIMD_BEST, text, size, 0);
            expect_same(&f, LAHAR_SIMD_PORTABLE, text, size, BY_LINES);
        }
    }
    fixture_deinit(&f);
    free(text);
}

/* --- documents -------------------------------------------------------------------------------- */

static const char *random_value(uint64_t *state)
{
    static const char *const values[] = {"1",
                                         "-5",
                                         "18446744073709551616",
                                         "0.50",
                                         "1e5",
                                         "true",
                                         "false",
                                         "null",
                                         "\"x\"",
                                         "\"\"",
                                         "\"a\\nb\"",
                                         "\"\\ud800\"",
                                         "\"7\"",
                                         "\"2024-05-01T00:00:00.5Z\"",
                                         "\"2024-05-01 00:00:00\"",
                                         "1714521600.25",
                                         "\"\\u00e9\"",
                                         "\"\303\"",
                                         "[]",
                                         "[1,\"b\"]",
                                         "{}",
                                         "{\"b\":5}",
                                         "{\"k\":\"v\",\"k\":null}"};
    /* A few of these spoil the record. */
    static const char *const bad[] = {"01",     "1.", "-",   "tru", "\"\\x\"", "\"\t\"",
                                      "\"open", "",   "nul", "+1",  "{\"a\"}", "[1,]"};
    const uint64_t draw = next_random(state);
    return draw % 64 == 0 ? bad[draw / 64 % (sizeof bad / sizeof bad[0])]
                          : values[draw / 64 % (sizeof values / sizeof values[0])];
}

/* One of a few shapes of documents, with values of any kind. */
static size_t put_document(char *out, uint64_t *state)
{
    static const char *const shapes[] = {"{\"n\":@,\"w\":@,\"o\":@}",
                                         "{\"w\":@, \"w\":@,\"x\":@}",
                                         "{\"a\":{\"b\":@,\"c\":{\"d\":@}},\"at\":@}",
                                         "{\"m\":{\"k\":@},\"l\":@,\"u\":@}",
                                         "{\"p\":[@,{\"q\":@}],\"ok\":@}",
                                         "{\"e\\n\":@,\"\":@,\n\"z\":@}"};
    const uint64_t draw = next_random(state);
    const size_t shape =
        draw % 8 == 0 ? draw / 8 % (sizeof shapes / sizeof shapes[0]) : draw / 8 % 2;
    const char *first = draw % 5 == 0 ? random_value(state) : "1";
    const char *second = draw % 3 == 0 ? random_value(state) : "\"x\"";
    const char *values[] = {first, second, random_value(state)};
    size_t size = 0;
    size_t taken = 0;
    for (const char *p = shapes[shape]; *p != 0; p++) {
        const size_t count = *p == '@' ? strlen(values[taken]) : 1;
        memcpy(out + size, *p == '@' ? values[taken++] : p, count);
        size += count;
    }
    return size;
}

Test(runs, of_documents_give_what_the_steps_give)
{
    static const char *const ends[] = {"\n", "\n", "\n", "\r\n", "", ",\n", " \n", "\n\n"};
    char *text = malloc(65536);
    uint64_t state = 7;
    for (size_t i = 0; i < 150; i++) {
        struct fixture f;
        init(&f, i % 7 == 6 ? LAHAR_FORMAT_JSON_AS_OBJECT : LAHAR_FORMAT_JSON);
        f.options.errors_as_events = i % 2 == 0;
        size_t size = 0;
        if (i % 6 == 5) {
            text[size++] = '[';
        }
        for (size_t j = 0; j < 16; j++) {
            size += put_document(text + size, &state);
            const uint64_t draw = next_random(&state);
            const char *end = ends[i % 3 == 0 ? 0 : draw % (sizeof ends / sizeof ends[0])];
            memcpy(text + size, end, strlen(end));
            size += strlen(end);
        }
        expect_same_everywhere(&f, text, size);
        fixture_deinit(&f);
    }
    free(text);
}

/* Any one byte of documents that are alike is another one. */
Test(runs, of_documents_see_every_byte_that_differs)
{
    static const char line[] = "{\"n\":12,\"a\":{\"b\":3,\"c\":\"x\"},\"w\":\"yz\",\"ok\":true}\n";
    static const char others[] = "\"\\{}[],:0 \nx\x01\xff";
    const size_t line_size = sizeof line - 1;
    char text[4 * sizeof line];
    for (size_t i = 0; i < 4; i++) {
        memcpy(text + i * line_size, line, line_size);
    }
    struct fixture f;
    init(&f, LAHAR_FORMAT_JSON);
    for (size_t at = line_size; at < 2 * line_size; at++) {
        for (size_t i = 0; i < sizeof others; i++) {
            const char kept = text[at];
            text[at] = others[i];
            expect_same(&f, LAHAR_SIMD_BEST, text, 4 * line_size, 0);
            expect_same(&f, LAHAR_SIMD_BEST, text, 4 * line_size, BY_LINES);
            text[at] = kept;
        }
    }
    fixture_deinit(&f);
}

/* Documents of more shapes than there are plans, for so long that trying is given up and taken
 * up again. */
Test(runs, of_documents_that_are_all_different_give_what_the_steps_give)
{
    char *text = malloc(400000);
    size_t size = 0;
    for (size_t i = 0; i < 3000; i++) {
        const size_t kind = i < 1500 ? i % 9 : i % 2;
        size += (size_t)snprintf(text + size, 100, "{\"k%zu\":%zu,\"w\":\"%zu\",\"n\":%zu}\n", kind,
                                 i, i, i % 50 == 0 ? kind : 1);
    }
    struct fixture f;
    init(&f, LAHAR_FORMAT_JSON);
    expect_same(&f, LAHAR_SIMD_BEST, text, size, 0);
    expect_same(&f, LAHAR_SIMD_BEST, text, size, BY_LINES);
    expect_same(&f, LAHAR_SIMD_BEST, text, size, 1000);
    fixture_deinit(&f);
    free(text);
}
