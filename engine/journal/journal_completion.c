/* What came back from the queue: short transfers, retries, full disks, failures, and the
 * durable position.
 *
 *   all of it            done
 *   less                 the rest is submitted again from a page boundary
 *   EINTR EAGAIN ECANCELED  again; after RETRIES_MAX times without progress held for a while
 *   nothing at all       again, at most RETRIES_MAX times without progress
 *   ENOSPC EDQUOT EFBIG  of a write: held, waiters are told, tried again later
 *   EOPNOTSUPP EINVAL ENOSYS EPERM  of a durable write: there are none; written plainly
 *   anything else, and any other failure of a sync: poisons. Nothing is synced twice
 *
 * A write counts as written once all before it are, in whatever order they complete. */
#include <errno.h>
#include <string.h>

#include "engine/journal/journals.h"
#include "io/base/error.h"

enum {
    PAGE = LAHAR_IO_ALIGNMENT,
    RETRIES_MAX = 64,
    HOLD_DOUBLINGS_MAX = 7
};

static const uint64_t space_retry_ns = 100000000;
static const uint64_t queue_retry_ns = 1000000;
static const uint64_t hold_ns = 1000000; /* doubled with each further try */

static void poison(struct lahar_write *write, int sys_errno)
{
    lahar_error error = {0};
    char name[LAHAR_JOURNAL_NAME_SIZE];
    lahar_journal_file_name(write->chunk->file->number, name);
    (void)lahar_fail_errno(&error, sys_errno, "%s %s at %llu",
                           write->op.kind == LAHAR_IO_OP_SYNC ? "sync" : "write", name,
                           (unsigned long long)write->op.offset);
    lahar_journals_poison(write->journal->journals, &error);
}

void lahar_journal_submit(struct lahar_write *write)
{
    struct lahar_journal *journal = write->journal;
    struct lahar_journals *journals = journal->journals;
    struct lahar_io_op *op = &write->op;
    if (write->is_driven) {
        return; /* held: the queue is the writer's, who goes on with it */
    }
    write->is_in_flight = true;
    journal->writer->in_flight++;
    const lahar_status status =
        journals->io->ops->queue_submit(journals->io, journal->writer->queue, &op, 1, NULL);
    if (status == LAHAR_OK) {
        return;
    }
    write->is_in_flight = false;
    journal->writer->in_flight--;
    journal->retry_ns = journals->io->ops->monotonic_ns(journals->io) + queue_retry_ns;
    if (++write->attempts > 100 * RETRIES_MAX) {
        poison(write, EBUSY);
    }
}

/* --- the durable position ----------------------------------------------------------------- */

static bool is_complete(const struct lahar_chunk *chunk)
{
    return chunk->scanned == chunk->capacity && chunk->synced == chunk->used &&
           chunk->written == chunk->used;
}

bool lahar_journal_advance(struct lahar_journal *journal)
{
    struct lahar_journals *journals = journal->journals;
    uint64_t position = 0;
    for (struct lahar_chunk *chunk = journal->oldest; chunk != NULL; chunk = chunk->next) {
        position = chunk->base + (is_complete(chunk) ? chunk->capacity : chunk->synced);
        if (!is_complete(chunk)) {
            break;
        }
    }
    if (position > atomic_load_explicit(&journal->ring->durable, memory_order_relaxed)) {
        atomic_store_explicit(&journal->ring->durable, position, memory_order_seq_cst);
    }
    bool has_sealed = false;
    while (journal->oldest != NULL && journal->oldest->next != NULL &&
           is_complete(journal->oldest) && journal->scanning != journal->oldest) {
        struct lahar_chunk *chunk = journal->oldest;
        if (journal->sync.is_in_use && journal->sync.chunk->file == chunk->file) {
            break; /* the file must not be given back under a sync */
        }
        journal->oldest = chunk->next;
        lahar_catalog_seal(&journals->catalog, chunk);
        has_sealed = true;
    }
    return has_sealed;
}

/* What completed durable writes add to synced once nothing is missing below them. */
static void join_durable(struct lahar_chunk *chunk)
{
    if (chunk->durable_to > chunk->synced && chunk->durable_from <= chunk->synced) {
        chunk->synced = chunk->durable_to;
    }
    if (chunk->synced_ahead < chunk->synced) {
        chunk->synced_ahead = chunk->synced;
    }
}

static void retire_writes(struct lahar_journal *journal, uint64_t now_ns)
{
    while (journal->write_count > 0 && journal->writes[journal->first_write].is_done) {
        struct lahar_write *write = &journal->writes[journal->first_write];
        struct lahar_chunk *chunk = write->chunk;
        if (write->op.kind == LAHAR_IO_OP_WRITE_DURABLE) {
            if (chunk->durable_to < write->page_start) {
                chunk->durable_from = write->page_start;
            }
            chunk->durable_to = write->end;
            join_durable(chunk);
        } else if (chunk->written <= chunk->synced) {
            chunk->unsynced_since_ns = now_ns;
        }
        chunk->written = write->end;
#ifdef LAHAR_PLANTED_BUGS
        if (journal->journals->planted_bugs & LAHAR_JOURNAL_BUG_ACK_BEFORE_SYNC) {
            chunk->synced = chunk->written;
            chunk->synced_ahead = chunk->written;
        }
#endif
        write->is_in_use = false;
        write->is_done = false;
        journal->first_write = (journal->first_write + 1) % LAHAR_JOURNAL_WRITES;
        journal->write_count--;
    }
}

/* --- results ----------------------------------------------------------------------------- */

static void set_out_of_space(struct lahar_journal *journal, bool is_out_of_space)
{
    struct lahar_journals *journals = journal->journals;
    if (journal->is_out_of_space == is_out_of_space) {
        return;
    }
    journal->is_out_of_space = is_out_of_space;
    if (is_out_of_space) {
        (void)atomic_fetch_add_explicit(&journals->journals_full, 1, memory_order_seq_cst);
        lahar_durable_wait_wake_all(&journals->durable_wait);
        lahar_gate_signal(&journals->space);
        lahar_journals_log(journals, LAHAR_LOG_WARNING, "no space for journal %u; waiting",
                           journal->number);
    } else {
        (void)atomic_fetch_sub_explicit(&journals->journals_full, 1, memory_order_seq_cst);
    }
}

/* Of an operation that was interrupted, or for which the kernel lacks something at present, which
 * says nothing about the disk: tries again now or, after many times, a while later. */
static void again(struct lahar_write *write, uint64_t now_ns)
{
    if (write->attempts < RETRIES_MAX) {
        write->attempts++;
        lahar_journal_submit(write);
        return;
    }
    const uint32_t doublings = write->attempts - RETRIES_MAX;
    write->attempts += doublings < HOLD_DOUBLINGS_MAX;
    write->journal->retry_ns = now_ns + (hold_ns << doublings);
}

/* Of an operation that transferred nothing and did not fail. */
static void again_or_poison(struct lahar_write *write)
{
    if (++write->attempts > RETRIES_MAX) {
        poison(write, EIO);
        return;
    }
    lahar_journal_submit(write);
}

static void handle_failure(struct lahar_write *write, int sys_errno, uint64_t now_ns)
{
    struct lahar_journal *journal = write->journal;
    const bool is_sync = write->op.kind == LAHAR_IO_OP_SYNC;
    if (sys_errno == EINTR || sys_errno == EAGAIN || sys_errno == ECANCELED) {
        again(write, now_ns);
    } else if (!is_sync && (sys_errno == ENOSPC || sys_errno == EDQUOT || sys_errno == EFBIG)) {
        journal->retry_ns = now_ns + space_retry_ns;
        set_out_of_space(journal, true);
    } else if (write->op.kind == LAHAR_IO_OP_WRITE_DURABLE && lahar_io_lacks_dsync(sys_errno)) {
        atomic_store_explicit(&journal->journals->lacks_dsync, true, memory_order_relaxed);
        write->op.kind = LAHAR_IO_OP_WRITE;
        write->chunk->synced_ahead = write->chunk->synced;
        lahar_journal_submit(write);
    } else {
        poison(write, sys_errno);
    }
}

/* Counts a transfer and submits what is missing; true when nothing is. */
static bool handle_transfer(struct lahar_write *write, uint32_t transferred)
{
    struct lahar_io_op *op = &write->op;
    if (transferred >= op->size) {
        return true;
    }
    const uint32_t whole = transferred & ~(uint32_t)(PAGE - 1);
    if (whole == 0) {
        again_or_poison(write);
        return false;
    }
    write->attempts = 0;
    op->data = (uint8_t *)op->data + whole;
    op->offset += whole;
    op->size -= whole;
    lahar_journal_submit(write);
    return false;
}

static void complete_sync(struct lahar_journal *journal, uint64_t now_ns)
{
    struct lahar_write *sync = &journal->sync;
    sync->is_in_use = false;
    for (struct lahar_chunk *chunk = journal->oldest; chunk != NULL; chunk = chunk->next) {
        if (chunk->sync_target > chunk->synced) {
            chunk->synced = chunk->sync_target;
            join_durable(chunk);
        }
        if (chunk->sync_target != 0) {
            chunk->sync_target = 0;
            chunk->unsynced_since_ns = now_ns;
        }
    }
}

static void complete_jumbo(struct lahar_journal *journal)
{
    struct lahar_write *write = &journal->jumbo;
    struct lahar_chunk *chunk = write->chunk;
    write->is_in_use = false;
    if (write->op.kind == LAHAR_IO_OP_WRITE) {
        chunk->written = write->end;
        return;
    }
    (void)pthread_mutex_lock(&journal->mutex);
    journal->jumbos = chunk->next;
    (void)pthread_mutex_unlock(&journal->mutex);
    atomic_store_explicit(&chunk->durable, chunk->capacity, memory_order_seq_cst);
    lahar_catalog_seal(&journal->journals->catalog, chunk);
}

void lahar_journal_complete(struct lahar_write *write, uint64_t now_ns)
{
    struct lahar_journal *journal = write->journal;
    struct lahar_journals *journals = journal->journals;
    const int32_t result = write->op.result;
    const bool is_sync = write->op.kind == LAHAR_IO_OP_SYNC;
    write->is_in_flight = false;
    if (atomic_load_explicit(&journals->state, memory_order_acquire) == LAHAR_JOURNALS_POISONED) {
        return; /* nothing is submitted any more, and nothing becomes durable */
    }
    if (result < 0) {
        handle_failure(write, -result, now_ns);
        return;
    }
    set_out_of_space(journal, false);
    if (is_sync) {
        (void)atomic_fetch_add_explicit(&journals->syncs, 1, memory_order_relaxed);
    } else {
        (void)atomic_fetch_add_explicit(&journals->writes, 1, memory_order_relaxed);
        (void)atomic_fetch_add_explicit(&journals->write_bytes, (uint64_t)result,
                                        memory_order_relaxed);
        (void)atomic_fetch_add_explicit(&journals->recent_bytes, (uint64_t)result,
                                        memory_order_relaxed);
        if (!handle_transfer(write, (uint32_t)result)) {
            return;
        }
    }
    journal->retry_ns = 0;
    switch (write->role) {
    case LAHAR_WRITE_CHAIN:
        write->is_done = true;
        retire_writes(journal, now_ns);
        break;
    case LAHAR_WRITE_SYNC:
        complete_sync(journal, now_ns);
        break;
    case LAHAR_WRITE_JUMBO:
        complete_jumbo(journal);
        break;
    }
    (void)lahar_journal_advance(journal);
}
