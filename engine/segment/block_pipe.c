#include "engine/segment/block_pipe.h"

#include <pthread.h>
#include <signal.h>

#include "io/base/error.h"

struct lahar_block_pipe {
    struct lahar_block_writer *writers[2];
    uint32_t current; /* the writer being filled */
    lahar_block_sink sink;
    void *context;
    const lahar_allocator *allocator;
    bool has_thread;
    pthread_t thread;

    /* Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct lahar_block_writer *pending; /* the sink's until it is NULL again */
    bool is_stopping;
    lahar_status status; /* of the sink's first failure */
    lahar_error error;
};

static void *run_sink(void *context)
{
    struct lahar_block_pipe *pipe = context;
    (void)pthread_mutex_lock(&pipe->lock);
    for (;;) {
        while (pipe->pending == NULL && !pipe->is_stopping) {
            (void)pthread_cond_wait(&pipe->changed, &pipe->lock);
        }
        if (pipe->pending == NULL) {
            break;
        }
        struct lahar_block_writer *writer = pipe->pending;
        (void)pthread_mutex_unlock(&pipe->lock);
        lahar_error error = {0};
        const lahar_status status = pipe->sink(pipe->context, writer, &error);
        (void)pthread_mutex_lock(&pipe->lock);
        if (status != LAHAR_OK && pipe->status == LAHAR_OK) {
            pipe->status = status;
            pipe->error = error;
        }
        pipe->pending = NULL;
        (void)pthread_cond_broadcast(&pipe->changed);
    }
    (void)pthread_mutex_unlock(&pipe->lock);
    return NULL;
}

static bool start_thread(struct lahar_block_pipe *pipe)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_started = pthread_create(&pipe->thread, NULL, run_sink, pipe) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (is_started) {
        (void)pthread_setname_np(pipe->thread, "lahar-blocks");
    }
    return is_started;
}

lahar_status lahar_block_pipe_create(const struct lahar_stream *stream, uint32_t compression_level,
                                     bool use_thread, lahar_block_sink sink, void *context,
                                     const lahar_allocator *allocator,
                                     struct lahar_block_pipe **pipe_out, lahar_error *error)
{
    *pipe_out = NULL;
    struct lahar_block_pipe *pipe = lahar_allocate_zeroed(allocator, 1, sizeof *pipe);
    if (pipe == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write blocks");
    }
    pipe->sink = sink;
    pipe->context = context;
    pipe->allocator = allocator;
    (void)pthread_mutex_init(&pipe->lock, NULL);
    (void)pthread_cond_init(&pipe->changed, NULL);
    lahar_status status =
        lahar_block_writer_create(stream, compression_level, allocator, &pipe->writers[0], error);
    if (status == LAHAR_OK && use_thread) {
        status = lahar_block_writer_create(stream, compression_level, allocator, &pipe->writers[1],
                                           error);
    }
    if (status != LAHAR_OK) {
        lahar_block_pipe_destroy(pipe);
        return status;
    }
    pipe->has_thread = use_thread && start_thread(pipe);
    *pipe_out = pipe;
    return LAHAR_OK;
}

void lahar_block_pipe_destroy(struct lahar_block_pipe *pipe)
{
    if (pipe == NULL) {
        return;
    }
    if (pipe->has_thread) {
        (void)pthread_mutex_lock(&pipe->lock);
        pipe->is_stopping = true;
        (void)pthread_cond_broadcast(&pipe->changed);
        (void)pthread_mutex_unlock(&pipe->lock);
        (void)pthread_join(pipe->thread, NULL);
    }
    lahar_block_writer_destroy(pipe->writers[0]);
    lahar_block_writer_destroy(pipe->writers[1]);
    (void)pthread_cond_destroy(&pipe->changed);
    (void)pthread_mutex_destroy(&pipe->lock);
    lahar_release(pipe->allocator, pipe);
}

struct lahar_block_writer *lahar_block_pipe_writer(const struct lahar_block_pipe *pipe)
{
    return pipe->writers[pipe->current];
}

/* With the lock held: waits for the sink, and says how it fared. */
static lahar_status await_sink(struct lahar_block_pipe *pipe, lahar_error *error)
{
    while (pipe->pending != NULL) {
        (void)pthread_cond_wait(&pipe->changed, &pipe->lock);
    }
    if (pipe->status != LAHAR_OK && error != NULL) {
        *error = pipe->error;
    }
    return pipe->status;
}

lahar_status lahar_block_pipe_submit(struct lahar_block_pipe *pipe, lahar_error *error)
{
    struct lahar_block_writer *writer = pipe->writers[pipe->current];
    LAHAR_TRY(lahar_block_writer_encode(writer, error));
    if (!pipe->has_thread) {
        return pipe->sink(pipe->context, writer, error);
    }
    (void)pthread_mutex_lock(&pipe->lock);
    const lahar_status status = await_sink(pipe, error);
    if (status == LAHAR_OK) {
        pipe->pending = writer;
        pipe->current = 1 - pipe->current;
        (void)pthread_cond_broadcast(&pipe->changed);
    }
    (void)pthread_mutex_unlock(&pipe->lock);
    return status;
}

lahar_status lahar_block_pipe_drain(struct lahar_block_pipe *pipe, lahar_error *error)
{
    (void)pthread_mutex_lock(&pipe->lock);
    const lahar_status status = await_sink(pipe, error);
    (void)pthread_mutex_unlock(&pipe->lock);
    return status;
}
