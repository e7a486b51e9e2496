/* Event files of NiFi that are damaged anywhere: an answer each time, never a crash, never more
 * events than there were. tests/data/nifi_import.py imports real ones. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/base/allocator.h"
#include "io/base/buffer.h"
#include "prov_store.h"

enum {
    RECORDS = 3
};

static void put_u16(struct lahar_buffer *out, size_t v)
{
    lahar_buffer_put_u16(out, __builtin_bswap16((uint16_t)v));
}

static void put_u32(struct lahar_buffer *out, size_t v)
{
    lahar_buffer_put_u32(out, __builtin_bswap32((uint32_t)v));
}

static void put_u64(struct lahar_buffer *out, uint64_t v)
{
    lahar_buffer_put_u64(out, __builtin_bswap64(v));
}

static void put_text(struct lahar_buffer *out, const char *text)
{
    put_u16(out, strlen(text));
    lahar_buffer_put(out, text, strlen(text));
}

/* A field up to the number of its own fields, which follow. */
static void put_field(struct lahar_buffer *out, const char *name, const char *type,
                      const char *repetition, size_t field_count)
{
    static const char *const parts[] = {"Field Name", "Field Type", "Repetition"};
    const char *const values[] = {name, type, repetition};
    put_u32(out, 4);
    for (size_t i = 0; i < 3; i++) {
        put_text(out, parts[i]);
        put_text(out, "String");
        put_text(out, values[i]);
    }
    put_text(out, "SubFields");
    put_text(out, "SubFieldList");
    put_u32(out, field_count);
}

static void put_event_schema(struct lahar_buffer *out)
{
    put_u32(out, 8);
    put_field(out, "Event Type", "INT", "EXACTLY_ONE", 0);
    put_field(out, "Event Time", "INT", "EXACTLY_ONE", 0);
    put_field(out, "Component ID", "UNION", "EXACTLY_ONE", 2);
    put_field(out, "Explicit Value", "STRING", "EXACTLY_ONE", 0);
    put_field(out, "Lookup Value", "INT", "EXACTLY_ONE", 0);
    put_field(out, "Updated Attributes", "MAP", "EXACTLY_ONE", 2);
    put_field(out, "Attribute Name", "LONG_STRING", "EXACTLY_ONE", 0);
    put_field(out, "Attribute Value", "LONG_STRING", "ZERO_OR_ONE", 0);
    put_field(out, "Previous Content Claim", "COMPLEX", "ZERO_OR_ONE", 1);
    put_field(out, "Content Claim Size", "LONG", "EXACTLY_ONE", 0);
    put_field(out, "Parent UUIDs", "STRING", "ZERO_OR_MORE", 0);
    put_field(out, "Event Details", "STRING", "ZERO_OR_ONE", 0);
    put_field(out, "Not Known Here", "BOOLEAN", "EXACTLY_ONE", 0);
}

static void put_head_schema(struct lahar_buffer *out)
{
    put_u32(out, 4);
    put_field(out, "First Event ID", "LONG", "EXACTLY_ONE", 0);
    put_field(out, "Timestamp Offset", "LONG", "EXACTLY_ONE", 0);
    put_field(out, "Component Identifiers", "STRING", "ZERO_OR_MORE", 0);
    put_field(out, "Event Types", "STRING", "ZERO_OR_MORE", 0);
}

/* What a part holds behind its size. */
static void put_sized(struct lahar_buffer *out, void (*put_part)(struct lahar_buffer *part))
{
    struct lahar_buffer part;
    lahar_buffer_init(&part, &lahar_allocator_libc);
    put_part(&part);
    put_u32(out, part.size);
    lahar_buffer_put(out, part.data, part.size);
    lahar_buffer_deinit(&part);
}

static void put_pair(struct lahar_buffer *out, const char *key, const char *value)
{
    put_u32(out, strlen(key));
    lahar_buffer_put(out, key, strlen(key));
    lahar_buffer_put_u8(out, value != NULL);
    if (value != NULL) {
        put_u32(out, strlen(value));
        lahar_buffer_put(out, value, strlen(value));
    }
}

/* NUL and a character beyond 16 bits as Java writes them: "a\0b" and U+1F525. */
static const char details[] = "a\xc0\x80"
                              "b \xed\xa0\xbd\xed\xb4\xa5";
static const char plain_details[] = "a\0b \xf0\x9f\x94\xa5";

static void put_record(struct lahar_buffer *out)
{
    lahar_buffer_put_u8(out, 1);
    put_u32(out, 1);   /* FORK */
    put_u32(out, 250); /* ms behind the file's time */
    put_text(out, "Lookup Value");
    put_u32(out, 0);
    put_u32(out, 2);
    put_pair(out, "filename", "a.txt");
    put_pair(out, "gone", NULL);
    lahar_buffer_put_u8(out, 1);
    put_u64(out, 77);
    put_u32(out, 2);
    put_text(out, "f1");
    put_text(out, "f2");
    lahar_buffer_put_u8(out, 1);
    put_text(out, details);
    lahar_buffer_put_u8(out, 0);
}

static struct lahar_buffer make_file(void)
{
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    put_text(&out, "EventIdFirstSchemaRecordWriter");
    put_u32(&out, 1);
    put_sized(&out, put_event_schema);
    put_sized(&out, put_head_schema);
    lahar_buffer_put_u8(&out, 1);
    put_u64(&out, 500);
    put_u64(&out, 1000000);
    put_u32(&out, 1);
    put_text(&out, "splitter");
    put_u32(&out, 2);
    put_text(&out, "CREATE");
    put_text(&out, "FORK");
    for (size_t i = 0; i < RECORDS; i++) {
        put_u32(&out, i);
        put_sized(&out, put_record);
    }
    return out;
}

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(data, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
}

struct told {
    unsigned count;
    char last[200];
};

static void tell(void *context, uint64_t offset, const char *message)
{
    struct told *told = context;
    (void)offset;
    told->count++;
    (void)snprintf(told->last, sizeof told->last, "%s", message);
}

static lahar_status import(struct prov_store *prov, const char *path, struct told *told,
                           lahar_prov_import_result *result)
{
    lahar_prov_import_options options;
    lahar_prov_import_options_init(&options);
    options.on_error = tell;
    options.context = told;
    *told = (struct told){.count = 0};
    *result = (lahar_prov_import_result){.struct_size = sizeof *result};
    return lahar_prov_import_file(prov->provenance, path, &options, result, NULL);
}

Test(import, takes_what_a_schema_has_and_passes_over_what_it_does_not_know)
{
    struct prov_store prov;
    struct told told;
    lahar_prov_import_result result;
    char path[SCRATCH_PATH_SIZE + 16];
    prov_store_open(&prov, NULL);
    struct lahar_buffer file = make_file();
    (void)snprintf(path, sizeof path, "%s/1.prov", prov.directory);
    write_file(path, file.data, file.size);
    cr_assert_eq(import(&prov, path, &told, &result), LAHAR_OK);
    cr_assert_eq(result.event_count, RECORDS);
    cr_assert_eq(result.error_count, 0);
    cr_assert_eq(result.last_id - result.first_id, RECORDS - 1);
    lahar_prov_record *record = NULL;
    cr_assert_eq(lahar_prov_get(prov.provenance, result.first_id, &record, NULL), LAHAR_OK);
    const lahar_prov_event *event = lahar_prov_record_event(record);
    cr_assert_eq(event->type, LAHAR_PROV_FORK);
    cr_assert_eq(event->time_ns, INT64_C(1000250) * 1000000);
    cr_assert_eq(event->entry_ns, LAHAR_PROV_NO_TIME);
    cr_assert_not(event->has_duration);
    cr_assert_not(event->has_size);
    cr_assert(event->has_previous_size);
    cr_assert_eq(event->previous_size, 77);
    cr_assert_eq(event->component.size, 8);
    cr_assert_arr_eq(event->component.data, "splitter", 8);
    cr_assert_null(event->component_type.data);
    /* A FORK is about the FlowFile that it splits. */
    cr_assert_eq(event->uuid.size, 2);
    cr_assert_arr_eq(event->uuid.data, "f1", 2);
    cr_assert_eq(event->parent_count, 2);
    cr_assert_eq(event->updated_count, 2);
    cr_assert_eq(event->details.size, sizeof plain_details - 1);
    cr_assert_arr_eq(event->details.data, plain_details, sizeof plain_details - 1);
    size_t effective_count = 0;
    (void)lahar_prov_record_effective(record, &effective_count);
    cr_assert_eq(effective_count, 1);
    lahar_prov_record_close(record);
    lahar_buffer_deinit(&file);
    prov_store_close(&prov);
}

Test(import, survives_damage_of_every_byte)
{
    static const uint8_t masks[] = {0x01, 0x80, 0xff};
    struct prov_store prov;
    struct told told;
    lahar_prov_import_result result;
    char path[SCRATCH_PATH_SIZE + 16];
    unsigned found = 0;
    prov_store_open(&prov, NULL);
    struct lahar_buffer file = make_file();
    (void)snprintf(path, sizeof path, "%s/1.prov", prov.directory);
    for (size_t i = 0; i < file.size; i++) {
        const uint8_t mask = masks[i % 3];
        file.data[i] ^= mask;
        write_file(path, file.data, file.size);
        file.data[i] ^= mask;
        const lahar_status status = import(&prov, path, &told, &result);
        cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT || status == LAHAR_UNSUPPORTED,
                  "byte %zu: %d", i, (int)status);
        cr_assert_leq(result.event_count, RECORDS);
        cr_assert_eq(told.count, result.error_count);
        /* One byte costs one record, or, in a size or the head, those behind it. */
        found += status != LAHAR_OK || result.error_count != 0;
    }
    cr_assert_gt(found, file.size / 2);
    lahar_buffer_deinit(&file);
    prov_store_close(&prov);
}

Test(import, takes_the_records_before_any_cut)
{
    struct prov_store prov;
    struct told told;
    lahar_prov_import_result result;
    char path[SCRATCH_PATH_SIZE + 16];
    size_t head_size = 0;
    prov_store_open(&prov, NULL);
    struct lahar_buffer file = make_file();
    struct lahar_buffer record;
    lahar_buffer_init(&record, &lahar_allocator_libc);
    put_record(&record);
    const size_t whole_size = record.size + 8;
    head_size = file.size - RECORDS * whole_size;
    (void)snprintf(path, sizeof path, "%s/1.prov", prov.directory);
    for (size_t size = 0; size < file.size; size++) {
        write_file(path, file.data, size);
        const lahar_status status = import(&prov, path, &told, &result);
        if (size != 0 && size < head_size) {
            cr_assert_eq(status, LAHAR_CORRUPT, "%zu bytes: %d", size, (int)status);
            continue;
        }
        cr_assert_eq(status, LAHAR_OK, "%zu bytes: %d", size, (int)status);
        const size_t behind = size == 0 ? 0 : size - head_size;
        cr_assert_eq(result.event_count, behind / whole_size, "%zu bytes", size);
        cr_assert_eq(result.error_count, behind % whole_size != 0, "%zu bytes", size);
    }
    lahar_buffer_deinit(&record);
    lahar_buffer_deinit(&file);
    prov_store_close(&prov);
}

static bool is_over(void *context)
{
    (void)context;
    return true;
}

Test(import, refuses_what_is_no_file_and_stops_when_told)
{
    struct prov_store prov;
    struct told told;
    lahar_prov_import_result result = {.struct_size = sizeof result};
    lahar_prov_import_options options;
    char path[SCRATCH_PATH_SIZE + 16];
    prov_store_open(&prov, NULL);
    cr_assert_eq(import(&prov, prov.directory, &told, &result), LAHAR_INVALID);
    (void)snprintf(path, sizeof path, "%s/none.prov", prov.directory);
    cr_assert_eq(import(&prov, path, &told, &result), LAHAR_NOT_FOUND);
    /* Enough records for two batches, of which the first is kept. */
    struct lahar_buffer file = make_file();
    for (size_t i = RECORDS; i < 900; i++) {
        put_u32(&file, i);
        put_sized(&file, put_record);
    }
    write_file(path, file.data, file.size);
    lahar_prov_import_options_init(&options);
    options.is_cancelled = is_over;
    cr_assert_eq(lahar_prov_import_file(prov.provenance, path, &options, &result, NULL),
                 LAHAR_CANCELLED);
    cr_assert_eq(result.event_count, 500);
    cr_assert_eq(count_of(&prov, "type:FORK"), 500);
    lahar_buffer_deinit(&file);
    prov_store_close(&prov);
}
