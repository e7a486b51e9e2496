/* Words of ASCII found through a shard, and by the matching that scans use, against
 * `LC_ALL=C grep -a -i -w -F -c`: over a generated file, and over the files of the directory that
 * LAHAR_TEST_LOGS names, if any. Files with escape sequences are passed over: grep sees words in
 * them. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index/tokenizer.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

enum {
    WORDS_A_FILE = 40,
    FILE_SIZE_MAX = 32 << 20
};

/* Lines of a file, without their newlines. */
struct lines {
    char *data;
    size_t size;
    size_t *starts;
    size_t *ends;
    uint32_t count;
};

static bool read_lines(const char *path, struct lines *lines)
{
    FILE *file = fopen(path, "rb");
    *lines = (struct lines){.count = 0};
    if (file == NULL) {
        return false;
    }
    lines->data = malloc(FILE_SIZE_MAX);
    lines->size = fread(lines->data, 1, FILE_SIZE_MAX, file);
    fclose(file);
    lines->starts = malloc((lines->size + 1) * sizeof *lines->starts);
    lines->ends = malloc((lines->size + 1) * sizeof *lines->ends);
    for (size_t at = 0; at < lines->size;) {
        const char *newline = memchr(lines->data + at, '\n', lines->size - at);
        const size_t end = newline == NULL ? lines->size : (size_t)(newline - lines->data);
        lines->starts[lines->count] = at;
        lines->ends[lines->count++] = end;
        at = end + 1;
    }
    return true;
}

static void free_lines(struct lines *lines)
{
    free(lines->data);
    free(lines->starts);
    free(lines->ends);
}

static uint64_t grep_count(const char *path, const char *word)
{
    char command[1024];
    char answer[64] = "";
    snprintf(command, sizeof command, "LC_ALL=C grep -a -i -w -F -c -e '%s' '%s'", word, path);
    FILE *pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    cr_assert_not_null(fgets(answer, sizeof answer, pipe));
    pclose(pipe);
    return strtoull(answer, NULL, 10);
}

static struct lahar_shard *index_lines(const struct lines *lines, struct lahar_buffer *bytes,
                                       struct memory_source *memory)
{
    struct lahar_shard_builder *builder = NULL;
    struct lahar_shard *shard = NULL;
    uint32_t field = 0;
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_builder_field(builder, "message", 7, LAHAR_CLASS_TEXT, &field, NULL),
                 LAHAR_OK);
    for (uint32_t i = 0; i < lines->count; i++) {
        cr_assert_eq(lahar_shard_builder_document(builder, i, i, NULL), LAHAR_OK);
        cr_assert_eq(lahar_shard_builder_text(builder, field, lines->data + lines->starts[i],
                                              lines->ends[i] - lines->starts[i], NULL),
                     LAHAR_OK);
    }
    cr_assert_eq(lahar_shard_builder_finish(builder, bytes, NULL), LAHAR_OK);
    lahar_shard_builder_destroy(builder);
    *memory = (struct memory_source){.data = bytes->data, .size = bytes->size};
    const struct lahar_shard_source source = memory_source(memory);
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL), LAHAR_OK);
    return shard;
}

static uint64_t scan_count(const struct lines *lines, const char *word)
{
    uint64_t count = 0;
    struct lahar_buffer folded;
    struct lahar_buffer scratch;
    lahar_buffer_init(&folded, &lahar_allocator_libc);
    lahar_buffer_init(&scratch, &lahar_allocator_libc);
    lahar_fold(&folded, word, strlen(word));
    for (uint32_t i = 0; i < lines->count; i++) {
        count +=
            lahar_phrase_matches(lines->data + lines->starts[i], lines->ends[i] - lines->starts[i],
                                 folded.data, folded.size, &scratch);
    }
    lahar_buffer_deinit(&folded);
    lahar_buffer_deinit(&scratch);
    return count;
}

/* A word of the file: the token at or behind a random place; false when there is none of ASCII. */
static bool pick_word(const struct lines *lines, uint64_t *random, char word[64])
{
    if (lines->size == 0) {
        return false;
    }
    size_t at = (size_t)random_below(random, lines->size);
    size_t size = 0;
    while (at > 0 && (isalnum((unsigned char)lines->data[at - 1]) || lines->data[at - 1] == '_')) {
        at--;
    }
    while (at < lines->size && size < 60 &&
           (isalnum((unsigned char)lines->data[at]) || lines->data[at] == '_')) {
        word[size++] = (char)(random_below(random, 4) == 0 ? toupper((unsigned char)lines->data[at])
                                                           : lines->data[at]);
        at++;
    }
    word[size] = '\0';
    if (random_below(random, 5) == 0 && size > 2) {
        word[size - 1] = '\0';
    }
    return size > 0;
}

/* How many words were compared. */
static int compare_file(const char *path, uint64_t seed)
{
    struct lines lines;
    if (!read_lines(path, &lines)) {
        return 0;
    }
    int compared = 0;
    if (memchr(lines.data, 0x1b, lines.size) == NULL) {
        struct lahar_buffer bytes;
        struct memory_source memory;
        lahar_buffer_init(&bytes, &lahar_allocator_libc);
        struct lahar_shard *shard = index_lines(&lines, &bytes, &memory);
        for (int i = 0; i < WORDS_A_FILE; i++) {
            char word[64];
            char folded[64];
            uint64_t count = 0;
            if (!pick_word(&lines, &seed, word)) {
                continue;
            }
            for (size_t k = 0; k <= strlen(word); k++) {
                folded[k] = (char)tolower((unsigned char)word[k]);
            }
            const uint64_t expected = grep_count(path, word);
            cr_assert_eq(lahar_shard_token_count(shard, 0, folded, strlen(folded), &count, NULL),
                         LAHAR_OK);
            cr_assert_eq(count, expected, "'%s' in %s: %llu, grep %llu", word, path,
                         (unsigned long long)count, (unsigned long long)expected);
            cr_assert_eq(scan_count(&lines, word), expected, "scanning for '%s' in %s", word, path);
            compared++;
        }
        lahar_shard_close(shard);
        lahar_buffer_deinit(&bytes);
    }
    free_lines(&lines);
    return compared;
}

Test(grep, counts_the_same_lines_of_random_text)
{
    static const char *pieces[] = {"error", "Error", "errors", "10", "_x", "é",  "漢", "я", "\xff",
                                   " ",     " ",     "-",      ".",  "\t", "\n", "\n", "a", "A1"};
    char path[] = "/tmp/lahar-grep-XXXXXX";
    const int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    FILE *file = fdopen(descriptor, "wb");
    uint64_t random = 21;
    for (int i = 0; i < 20000; i++) {
        fputs(pieces[random_below(&random, sizeof pieces / sizeof pieces[0])], file);
    }
    cr_assert_eq(fclose(file), 0);
    cr_assert_gt(compare_file(path, 77), 10);
    cr_assert_eq(unlink(path), 0);
}

static int compare_directory(const char *directory, int depth)
{
    DIR *entries = opendir(directory);
    int compared = 0;
    if (entries == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        char path[512];
        struct stat info;
        snprintf(path, sizeof path, "%s/%.200s", directory, entry->d_name);
        if (entry->d_name[0] == '.' || stat(path, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode) && depth > 0) {
            compared += compare_directory(path, depth - 1);
        } else if (S_ISREG(info.st_mode) && info.st_size < FILE_SIZE_MAX &&
                   strchr(path, '\'') == NULL) {
            compared += compare_file(path, (uint64_t)info.st_size + 1);
        }
    }
    closedir(entries);
    return compared;
}

Test(grep, counts_the_same_lines_of_real_logs)
{
    const char *directory = getenv("LAHAR_TEST_LOGS");
    if (directory == NULL) {
        cr_skip("LAHAR_TEST_LOGS is not set: 0 words compared");
    }
    const int compared = compare_directory(directory, 2);
    cr_log_info("%d words compared", compared);
    printf("%d words compared\n", compared);
    cr_assert_gt(compared, 0);
}
