/* Opening ingest and export on a store: where the text formats meet it. */
#include "engine/format/export.h"
#include "engine/format/ingest.h"
#include "engine/store/snapshot.h"
#include "io/base/error.h"
#include "io/io.h"

lahar_status lahar_ingest_open(lahar_store *store, const lahar_ingest_options *options,
                               lahar_ingest **ingest_out, lahar_error *error)
{
    lahar_batch *batch = NULL;
    struct lahar_columns columns = {0};
    struct lahar_io *io = lahar_store_io(store);
    LAHAR_TRY(lahar_batch_create(store, &batch, error));
    lahar_status status =
        lahar_columns_find(&columns, store, options->stream, options->time_field, error);
    if (status == LAHAR_OK) {
        status = lahar_ingest_create(lahar_store_allocator(store), lahar_store_catalog(store),
                                     batch, options, &columns, io, ingest_out, error);
    }
    if (status != LAHAR_OK) {
        lahar_columns_deinit(&columns);
        lahar_batch_destroy(batch);
        return status;
    }
    lahar_ingest_set_store(*ingest_out, store);
    return LAHAR_OK;
}

lahar_status lahar_export_open(lahar_store *store, lahar_export **export_out, lahar_error *error)
{
    LAHAR_TRY(lahar_export_create(lahar_store_allocator(store), lahar_store_catalog(store),
                                  export_out, error));
    (*export_out)->store = store;
    return LAHAR_OK;
}
