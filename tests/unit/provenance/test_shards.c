/* Lineages over many event files: shards asked by helpers, and shards that are damaged or gone. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "prov_store.h"

enum {
    FILES = 26,
    OTHERS = 20 /* FlowFiles of a file besides: enough for its shard to have a filter of uuids */
};

static const char *const names[] = {"u", "p"};

/* In every file: an event of u, and others; in the first a fork of p into u too. */
static void fill(struct prov_store *prov)
{
    prov_store_open(prov, NULL);
    for (int i = 0; i < FILES; i++) {
        if (i == 0) {
            put(prov, LAHAR_PROV_FORK, "p", 0, "p", "u");
        }
        put(prov, LAHAR_PROV_DOWNLOAD, "u", 10 * i + 1, NULL, NULL);
        for (int k = 0; k < OTHERS; k++) {
            char other[32];
            (void)snprintf(other, sizeof other, "other-%d-%d", i, k);
            put(prov, LAHAR_PROV_DOWNLOAD, other, 10 * i + 2, NULL, NULL);
        }
        prov_store_rollover(prov);
    }
    put(prov, LAHAR_PROV_DROP, "u", 10 * FILES, NULL, NULL);
}

static void expect_lineages(struct prov_store *prov)
{
    for (size_t i = 0; i < 2; i++) {
        lahar_lineage_options options;
        lahar_lineage_graph graph = {.struct_size = sizeof graph};
        lahar_lineage *lineage = NULL;
        lahar_error error = {.status = LAHAR_OK};
        uint64_t found = 0;
        lahar_lineage_options_init(&options);
        options.uuid = bytes_of(names[i]);
        options.descendant_depth = LAHAR_LINEAGE_ALL;
        cr_assert_eq(lahar_lineage_start(prov->provenance, &options, &lineage, &error), LAHAR_OK);
        cr_assert_eq(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                     error.message);
        lahar_lineage_graph_get(lineage, &graph);
        cr_assert_eq(graph.event_count, FILES + 2, "%s: %zu", names[i], graph.event_count);
        cr_assert_eq(lahar_lineage_progress(lineage, &found), 100);
        cr_assert_eq(found, FILES + 2);
        lahar_lineage_close(lineage);
    }
}

/* Changes the shards of the store: flips a byte in every 16, or removes them. */
static unsigned damage(const struct prov_store *prov, bool removes)
{
    char path[2 * SCRATCH_PATH_SIZE];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "%s/events", prov->directory);
    DIR *directory = opendir(path);
    cr_assert_not_null(directory);
    struct dirent *entry = NULL;
    while ((entry = readdir(directory)) != NULL) {
        char name[sizeof path + sizeof entry->d_name + 1];
        const size_t size = strlen(entry->d_name);
        if (size < 6 || strcmp(entry->d_name + size - 6, ".shard") != 0) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        FILE *file = removes ? NULL : fopen(name, "r+b");
        cr_assert_eq(removes ? unlink(name) : 0, 0);
        for (long at = 64; file != NULL; at += 16) {
            const int byte = fseek(file, at, SEEK_SET) == 0 ? fgetc(file) : EOF;
            if (byte == EOF) {
                (void)fclose(file);
                break;
            }
            (void)fseek(file, at, SEEK_SET);
            (void)fputc(byte ^ 0x55, file);
        }
        count++;
    }
    (void)closedir(directory);
    return count;
}

Test(shards, of_many_files_are_asked_at_the_same_time)
{
    struct prov_store prov;
    fill(&prov);
    expect_lineages(&prov);
    prov_store_reopen(&prov);
    expect_lineages(&prov);
    prov_store_close(&prov);
}

Test(shards, that_are_damaged_or_gone_cost_nothing_but_time)
{
    for (int i = 0; i < 2; i++) {
        struct prov_store prov;
        lahar_error error = {.status = LAHAR_OK};
        fill(&prov);
        /* Under the open store ... */
        cr_assert_gt(damage(&prov, i == 1), 0);
        expect_lineages(&prov);
        /* ... and found so when it is opened. */
        prov_store_reopen(&prov);
        expect_lineages(&prov);
        lahar_provenance_close(prov.provenance);
        cr_assert_eq(lahar_store_close(prov.store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK);
        scratch_remove(prov.directory);
    }
}
