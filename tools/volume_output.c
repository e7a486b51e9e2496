#include "tools/volume_output.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/json_line.h"

static bool find(lahar_store *store, uint32_t number, lahar_volume_info *info_out)
{
    lahar_error error = {.status = LAHAR_OK};
    *info_out = (lahar_volume_info){.struct_size = sizeof *info_out};
    return lahar_volume_info_get(store, number, info_out, &error) == LAHAR_OK;
}

static const char *name_of(const lahar_volume_info *info)
{
    return info->name[0] == '\0' ? "(store)" : info->name;
}

void volume_output_text(lahar_store *store)
{
    lahar_volume_info info;
    for (uint32_t i = 0; find(store, i, &info); i++) {
        if (info.is_available) {
            (void)printf("%-18s %14" PRIu64 " bytes in %" PRIu32 " event files, %" PRIu64
                         " of %" PRIu64 " free, %s\n",
                         name_of(&info), info.file_bytes, info.file_count, info.free_bytes,
                         info.capacity_bytes, info.path);
        } else {
            (void)printf("%-18s %14" PRIu64 " bytes in %" PRIu32
                         " event files, not available at %s\n",
                         name_of(&info), info.file_bytes, info.file_count, info.path);
        }
    }
}

struct json_object *volume_output_json(lahar_store *store)
{
    struct json_object *array = json_object_new_array();
    lahar_volume_info info;
    for (uint32_t i = 0; find(store, i, &info); i++) {
        struct json_object *volume = json_object_new_object();
        json_line_string(volume, "name", info.name);
        json_line_string(volume, "path", info.path);
        json_object_object_add(volume, "available", json_object_new_boolean(info.is_available));
        json_line_number(volume, "capacity_bytes", info.capacity_bytes);
        json_line_number(volume, "free_bytes", info.free_bytes);
        json_line_number(volume, "file_bytes", info.file_bytes);
        json_line_number(volume, "event_files", info.file_count);
        (void)json_object_array_add(array, volume);
    }
    return array;
}
