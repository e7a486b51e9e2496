/* Power is lost before every single operation on the disk in turn, with several fates of what was
 * not synced: whatever is found then, the events are exactly the lines below the offset, and going
 * on delivers every line once. */
#include "follow_fixture.h"

enum {
    ROUNDS = 12,
    FATES = 8
};

/* Every block is on the disk once its step has returned. */
static void start_durably(struct follow_fixture *f)
{
    lahar_error error = {0};
    lahar_follow_options options;
    lahar_follow_options_init(&options);
    options.durability = LAHAR_DURABILITY_COMMIT;
    cr_assert_eq(lahar_follow_open(f->store, &options, &f->follow, &error), LAHAR_OK, "%s",
                 error.message);
}

/* Lines and steps; returns whether the disk went on to the end. */
static bool write_and_follow(struct follow_fixture *f)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        add_lines(f, "a.log", "line", i * 3, i * 3 + 3);
        follow_fixture_advance(f, 60000);
        for (unsigned step = 0; step < 40 && !lahar_sim_disk_has_crashed(f->disk); step++) {
            (void)lahar_follow_step(f->follow, f->now_ns);
        }
    }
    return !lahar_sim_disk_has_crashed(f->disk);
}

static lahar_status note_offset(void *context, const lahar_source_file *file)
{
    *(uint64_t *)context = file->offset;
    return LAHAR_OK;
}

/* The first bytes of what the file holds. */
static void expect_prefix(struct follow_fixture *f, uint64_t size, uint64_t operation)
{
    char text[1024] = {0};
    FILE *file = fopen(log_path(f, "a.log"), "r");
    cr_assert_not_null(file);
    const size_t got = fread(text, 1, sizeof text - 1, file);
    cr_assert_eq(fclose(file), 0);
    cr_assert_leq(size, got);
    text[size] = '\0';
    char *messages = messages_of(f, "logs", LAHAR_FIELD_MESSAGE);
    cr_assert_str_eq(messages, text, "power lost before operation %llu: offset %llu",
                     (unsigned long long)operation, (unsigned long long)size);
    free(messages);
}

/* False: the disk has fewer operations than that. */
static bool lose_power_before(uint64_t operation, uint64_t fate)
{
    struct follow_fixture f;
    uint64_t offset = 0;
    follow_fixture_init(&f);
    follow_fixture_create(&f);
    start_durably(&f);
    follow_fixture_settle(&f);
    lahar_sim_disk_crash_at(f.disk, lahar_sim_disk_operations(f.disk) + operation);
    const bool is_whole = write_and_follow(&f);
    lahar_sim_disk_crash_at(f.disk, UINT64_MAX);
    follow_fixture_crash(&f, operation * FATES + fate + 1, true);
    cr_assert_eq(lahar_source_show(f.store, "logs", note_offset, &offset, NULL), LAHAR_OK);
    expect_prefix(&f, offset, operation);
    start_durably(&f);
    add_lines(&f, "a.log", "last", 0, 1);
    follow_fixture_settle(&f);
    offset = 0;
    cr_assert_eq(lahar_source_show(f.store, "logs", note_offset, &offset, NULL), LAHAR_OK);
    expect_prefix(&f, offset, operation);
    struct stat info;
    cr_assert_eq(stat(log_path(&f, "a.log"), &info), 0);
    cr_assert_eq(offset, (uint64_t)info.st_size);
    follow_fixture_deinit(&f);
    return !is_whole;
}

Test(follow_crash, offsets_and_records_agree_in_every_crash_state, .timeout = 120)
{
    uint64_t states = 0;
    for (uint64_t fate = 0; fate < FATES; fate++) {
        uint64_t operation = 0;
        while (lose_power_before(operation, fate)) {
            operation++;
            cr_assert_lt(operation, 2000);
        }
        states += operation;
    }
    (void)printf("%llu crash states\n", (unsigned long long)states);
    cr_assert_gt(states, 10);
}
