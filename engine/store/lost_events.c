/* Lost ranges take the shape of event files that cannot be read: whoever reports one of these
 * reports them too. Their stream and times are not known, so they concern every answer about their
 * ids. */
#include "engine/store/lost_events.h"

#include <string.h>

#include "engine/store/store_state.h"
#include "io/base/error.h"

bool lahar_lost_events_is_dropped(const struct lahar_manifest_state *state, uint64_t id)
{
    for (size_t i = 0; i < state->stream_count; i++) {
        if (state->streams[i].retention.low_id < id) {
            return false;
        }
    }
    return state->stream_count != 0;
}

/* Event files that the manifest does not name and that begin at or above the rolled id. */
struct unnamed {
    lahar_store *store;
    const char *directory;
    struct lahar_buffer infos; /* struct lahar_segment_info, one behind the other */
};

static lahar_status note_unnamed(void *context, const char *name, bool is_directory)
{
    struct unnamed *unnamed = context;
    const struct lahar_manifest_state *state = &unnamed->store->manifest->state;
    struct lahar_segment_info info;
    const size_t size = strlen(name);
    /* One that cannot be read is no copy of anything. */
    if (is_directory || size < 7 || strcmp(name + size - 7, ".events") != 0 ||
        lahar_segment_probe(unnamed->store->io, unnamed->directory, name,
                            &unnamed->store->allocator, &info, NULL) != LAHAR_OK ||
        info.group_first_id < state->rolled_id) {
        return LAHAR_OK;
    }
    for (size_t i = 0; i < state->file_count; i++) {
        if (state->files[i].info.number == info.number) {
            return LAHAR_OK;
        }
    }
    lahar_buffer_put(&unnamed->infos, &info, sizeof info);
    return LAHAR_OK;
}

/* Whether the rollover of infos[index] wrote all of its files. */
static bool is_whole_rollover(const struct lahar_segment_info *infos, size_t count, size_t index)
{
    const struct lahar_segment_info *info = &infos[index];
    uint32_t streams = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_first = infos[i].group_first_id == info->group_first_id &&
                        infos[i].group_end_id == info->group_end_id;
        for (size_t k = 0; k < i && is_first; k++) {
            is_first = infos[k].group_first_id != info->group_first_id ||
                       infos[k].group_end_id != info->group_end_id ||
                       infos[k].stream != infos[i].stream;
        }
        streams += is_first;
    }
    return streams == info->group_file_count;
}

/* Fails when a rollover that the manifest does not know wrote all of its files and has lost ids:
 * the manifest lost its record, or the rollover was cut short just before it. */
static lahar_status check_unnamed(const struct lahar_journal_recovery *recovery,
                                  const struct lahar_segment_info *infos, size_t count,
                                  lahar_error *error)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < recovery->lost_count; k++) {
            const struct lahar_lost_range *range = &recovery->lost[k];
            if (infos[i].group_first_id < range->end_id &&
                infos[i].group_end_id > range->first_id && is_whole_rollover(infos, count, i)) {
                return lahar_fail(error, LAHAR_CORRUPT,
                                  "events %llu to %llu were durable and are missing in the "
                                  "journals; event file %llu, which the manifest does not name, "
                                  "belongs to a copy: repair takes it",
                                  (unsigned long long)range->first_id,
                                  (unsigned long long)range->end_id - 1,
                                  (unsigned long long)infos[i].number);
            }
        }
    }
    return LAHAR_OK;
}

static lahar_status look_for_copies(lahar_store *store, lahar_error *error)
{
    struct unnamed unnamed = {.store = store};
    lahar_buffer_init(&unnamed.infos, &store->allocator);
    lahar_status status = LAHAR_OK;
    for (uint32_t i = 0; i < store->volume_count && status == LAHAR_OK; i++) {
        if (store->volumes[i].is_available) {
            unnamed.directory = store->volumes[i].path;
            status =
                store->io->ops->list(store->io, unnamed.directory, note_unnamed, &unnamed, error);
        }
    }
    if (status == LAHAR_OK && unnamed.infos.has_failed) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory to look for lost events");
    }
    if (status == LAHAR_OK && unnamed.infos.size != 0) {
        status = check_unnamed(&store->recovery, (const void *)unnamed.infos.data,
                               unnamed.infos.size / sizeof(struct lahar_segment_info), error);
    }
    lahar_buffer_deinit(&unnamed.infos);
    return status;
}

static lahar_status describe(lahar_store *store, lahar_error *error)
{
    const struct lahar_lost_list *list = &store->lost;
    store->lost_infos =
        lahar_allocate_zeroed(&store->allocator, list->count + 1, sizeof *store->lost_infos);
    if (store->lost_infos == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu lost ranges", list->count);
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct lahar_lost_range *range = &list->ranges[i];
        store->lost_infos[i] =
            (struct lahar_segment_info){.stream = LAHAR_ANY_STREAM,
                                        .first_id = range->first_id,
                                        .last_id = range->end_id - 1,
                                        .event_count = range->end_id - range->first_id,
                                        .time_min_ns = INT64_MIN,
                                        .time_max_ns = INT64_MAX,
                                        .arrival_min_ns = INT64_MIN,
                                        .arrival_max_ns = INT64_MAX};
    }
    return LAHAR_OK;
}

lahar_status lahar_lost_events_gather(lahar_store *store, lahar_error *error)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    const struct lahar_journal_recovery *recovery = &store->recovery;
    for (size_t i = 0; i < state->lost.count; i++) {
        if (!lahar_lost_events_is_dropped(state, state->lost.ranges[i].end_id)) {
            LAHAR_TRY(
                lahar_lost_list_add(&store->lost, state->lost.ranges[i], &store->allocator, error));
        }
    }
    for (size_t i = 0; i < recovery->lost_count; i++) {
        LAHAR_TRY(lahar_lost_list_add(&store->lost, recovery->lost[i], &store->allocator, error));
    }
    if (recovery->lost_count != 0) {
        LAHAR_TRY(look_for_copies(store, error));
    }
    return describe(store, error);
}

void lahar_lost_events_release(lahar_store *store)
{
    lahar_lost_list_deinit(&store->lost, &store->allocator);
    lahar_release(&store->allocator, store->lost_infos);
    store->lost_infos = NULL;
}

size_t lahar_lost_events_put_new(const lahar_store *store, struct lahar_buffer *records)
{
    size_t count = 0;
    for (size_t i = 0; i < store->lost.count; i++) {
        if (!lahar_lost_list_covers(&store->manifest->state.lost, store->lost.ranges[i])) {
            lahar_manifest_put_lost(records, store->lost.ranges[i]);
            count++;
        }
    }
    return count;
}

void lahar_lost_events_log(const lahar_store *store)
{
    for (size_t i = 0; i < store->lost.count; i++) {
        const struct lahar_lost_range *range = &store->lost.ranges[i];
        lahar_store_log(store, LAHAR_LOG_ERROR,
                        "events %llu to %llu were durable in a journal that is damaged: they are "
                        "lost",
                        (unsigned long long)range->first_id, (unsigned long long)range->end_id - 1);
    }
}

lahar_status lahar_lost_events_fail(const struct lahar_segment_info *info, lahar_error *error)
{
    const unsigned long long first_id = info->first_id;
    const unsigned long long last_id = info->last_id;
    if (info->stream == LAHAR_ANY_STREAM) {
        return lahar_fail(error, LAHAR_CORRUPT,
                          "events %llu to %llu were lost with a damaged journal", first_id,
                          last_id);
    }
    return lahar_fail(error, LAHAR_CORRUPT, "events %llu to %llu: event file %llu cannot be read",
                      first_id, last_id, (unsigned long long)info->number);
}
