/* The folder of foreign files, by LAHAR_TEST_DATA; without it tests are skipped. */
#ifndef LAHAR_TESTS_DATA_FOLDER_H
#define LAHAR_TESTS_DATA_FOLDER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text_fixture.h"

enum {
    PATH_SIZE = 4096
};

static inline const char *data_folder(void)
{
    const char *given = getenv("LAHAR_TEST_DATA");
    const char *folder = given == NULL ? LAHAR_TEST_DATA_DEFAULT : given;
    struct stat info;
    if (stat(folder, &info) != 0) {
        (void)printf("skipped: no test data in %s\n", folder);
        return NULL;
    }
    return folder;
}

/* The whole file, to be freed. */
static inline char *load(const char *path, size_t *size_out)
{
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    struct stat info;
    cr_assert_eq(fstat(fileno(file), &info), 0);
    const size_t size = (size_t)info.st_size;
    char *data = malloc(size + 1);
    cr_assert_eq(fread(data, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
    data[size] = 0;
    *size_out = size;
    return data;
}

/* Reads in pieces and compares events and errors with those of one piece. */
static inline void expect_same_in_pieces(struct fixture *f, const char *data, size_t size,
                                         const char *name)
{
    static const size_t pieces[] = {1, 7, 4096};
    fixture_clear(f);
    fixture_read_bytes(f, data, size, 0);
    struct fixture whole = *f;
    uint8_t *rows = malloc(f->rows.size + 1);
    if (f->rows.size != 0) {
        memcpy(rows, f->rows.data, f->rows.size);
    }
    for (size_t i = size > 300000 ? 1 : 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        fixture_clear(f);
        fixture_read_bytes(f, data, size, pieces[i]);
        cr_assert_eq(f->event_count, whole.event_count, "%s in pieces of %zu", name, pieces[i]);
        cr_assert_eq(f->error_count, whole.error_count, "%s in pieces of %zu", name, pieces[i]);
        cr_assert_eq(f->rows.size, whole.rows.size, "%s in pieces of %zu", name, pieces[i]);
        cr_assert(f->rows.size == 0 || memcmp(f->rows.data, rows, f->rows.size) == 0,
                  "%s in pieces of %zu", name, pieces[i]);
        cr_assert_arr_eq(f->error_offsets, whole.error_offsets, sizeof f->error_offsets);
        cr_assert_arr_eq(f->error_lines, whole.error_lines, sizeof f->error_lines);
    }
    free(rows);
}

#endif
