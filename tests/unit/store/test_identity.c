/* The identity file, against bytes written by hand. */
#include <criterion/criterion.h>

#include "engine/store/identity.h"
#include "manifest_fixture.h"

static const struct lahar_identity sample = {
    .uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
    .store_id = UINT64_C(0x0807060504030201),
    .created_ns = 1700000000123456789};

Test(identity, writes_the_bytes_of_the_specification_and_reads_them)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    struct lahar_identity found;
    cr_assert_eq(lahar_identity_read(fixture.io, "store", &found, NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(lahar_identity_write(fixture.io, "store", &sample, NULL), LAHAR_OK);

    uint8_t expected[64] = {'L', 'A', 'H', 'A', 'R', '\r', '\n', 0x1a, 1, 0, 64, 0};
    memcpy(expected + 20, sample.uuid, 16);
    const uint64_t created = (uint64_t)sample.created_ns;
    for (size_t i = 0; i < 8; i++) {
        expected[36 + i] = (uint8_t)(created >> (8 * i));
    }
    const uint32_t crc = plain_crc32c(0, expected, 60);
    for (size_t i = 0; i < 4; i++) {
        expected[60 + i] = (uint8_t)(crc >> (8 * i));
    }
    size_t size = 0;
    uint8_t *data = fixture_read(&fixture, "store/LAHAR", &size);
    cr_assert_eq(size, sizeof expected);
    cr_assert_arr_eq(data, expected, sizeof expected);
    free(data);

    cr_assert_eq(lahar_identity_read(fixture.io, "store", &found, NULL), LAHAR_OK);
    cr_assert_arr_eq(found.uuid, sample.uuid, 16);
    cr_assert_eq(found.store_id, sample.store_id);
    cr_assert_eq(found.created_ns, sample.created_ns);
    fixture_deinit(&fixture);
}

Test(identity, refuses_every_flipped_bit)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(lahar_identity_write(fixture.io, "store", &sample, NULL), LAHAR_OK);
    for (uint64_t bit = 0; bit < 64 * 8; bit++) {
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, "store/LAHAR", bit, NULL), LAHAR_OK);
        struct lahar_identity found;
        const lahar_status status = lahar_identity_read(fixture.io, "store", &found, NULL);
        cr_assert(status == LAHAR_CORRUPT || (bit / 8 < 10 && status == LAHAR_UNSUPPORTED),
                  "bit %lu: %d", (unsigned long)bit, (int)status);
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, "store/LAHAR", bit, NULL), LAHAR_OK);
    }
    fixture_deinit(&fixture);
}

Test(identity, refuses_every_shorter_file)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(lahar_identity_write(fixture.io, "store", &sample, NULL), LAHAR_OK);
    size_t size = 0;
    uint8_t *data = fixture_read(&fixture, "store/LAHAR", &size);
    for (size_t cut = 0; cut < size; cut++) {
        cr_assert_eq(lahar_sim_disk_write_file(fixture.disk, "store/LAHAR", data, cut, NULL),
                     LAHAR_OK);
        struct lahar_identity found;
        cr_assert_eq(lahar_identity_read(fixture.io, "store", &found, NULL), LAHAR_CORRUPT);
    }
    free(data);
    fixture_deinit(&fixture);
}

Test(identity, is_made_new_each_time)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    struct lahar_identity first;
    struct lahar_identity second;
    cr_assert_eq(lahar_identity_make(fixture.io, true, &first, NULL), LAHAR_OK);
    cr_assert_eq(lahar_identity_make(fixture.io, true, &second, NULL), LAHAR_OK);
    cr_assert(memcmp(first.uuid, second.uuid, 16) != 0);
    cr_assert_eq(first.uuid[6] >> 4, 4);
    cr_assert_eq(first.uuid[8] >> 6, 2);
    fixture_deinit(&fixture);
}
