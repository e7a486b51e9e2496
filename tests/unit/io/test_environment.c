/* The real backends in an unkind environment: limits, seccomp, refused memory, fork. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "failing_allocator.h"
#include "fixture.h"
#include "io/base/error.h"

static void limit_file_size(rlim_t size)
{
    const struct rlimit limit = {size, size};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* The kernel writes up to the limit and then refuses with EFBIG. */
static void meet_file_size_limit(enum backend_kind kind)
{
    struct fixture fixture;
    fixture_begin(&fixture, kind);
    struct lahar_io *io = fixture.io;
    struct lahar_io_file *file = fixture_open(&fixture, "a", 0);
    struct lahar_io_queue *queue = NULL;
    static char data[20000];
    memset(data, 'x', sizeof data);
    cr_assert_eq(io->ops->queue_create(io, 2, &queue, NULL), LAHAR_OK);
    limit_file_size(10000);
    cr_assert_eq(fixture_run(&fixture, queue, LAHAR_IO_OP_WRITE, file, 0, data, 20000), 10000);
    cr_assert_eq(fixture_run(&fixture, queue, LAHAR_IO_OP_WRITE_DURABLE, file, 4000, data, 20000),
                 6000);
    cr_assert_eq(fixture_run(&fixture, queue, LAHAR_IO_OP_WRITE, file, 10000, data, 10), -EFBIG);
    lahar_error error = {0};
    cr_assert_eq(io->ops->write(io, file, 0, data, sizeof data, &error), LAHAR_NO_SPACE);
    cr_assert_eq(error.sys_errno, EFBIG);
    cr_assert_eq(io->ops->fill(io, file, 1 << 20, NULL), LAHAR_NO_SPACE);
    cr_assert_eq(io->ops->reserve(io, file, 1 << 20, NULL), LAHAR_NO_SPACE);
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
    fixture_end(&fixture);
}

Test(environment, pwrite_hands_back_short_writes_at_the_file_size_limit)
{
    meet_file_size_limit(BACKEND_PWRITE);
}

Test(environment, uring_hands_back_short_writes_at_the_file_size_limit)
{
    meet_file_size_limit(BACKEND_URING);
}

/* Makes a system call fail with sys_errno from now on. */
static bool forbid(uint32_t call, int sys_errno)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)sys_errno),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void refuse_ring(int sys_errno)
{
    if (!forbid(__NR_io_uring_setup, sys_errno)) {
        cr_skip("seccomp filters are not available: %s", strerror(errno));
    }
    struct lahar_io *io = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_io_uring_create(&lahar_allocator_libc, &io, &error), LAHAR_UNSUPPORTED);
    cr_assert_null(io);
    cr_assert_eq(error.status, LAHAR_UNSUPPORTED);
    cr_assert_eq(error.sys_errno, sys_errno);
    cr_assert_not_null(strstr(error.message, "io_uring"));
    cr_assert_eq(lahar_io_uring_create(&lahar_allocator_libc, &io, NULL), LAHAR_UNSUPPORTED);
}

Test(environment, uring_is_unsupported_where_seccomp_forbids_it)
{
    refuse_ring(EPERM);
}

Test(environment, uring_is_unsupported_where_the_kernel_lacks_it)
{
    refuse_ring(ENOSYS);
}

/* A durable write becomes a write and a sync. */
static void do_without_pwritev2(enum backend_kind kind, int sys_errno)
{
    struct fixture fixture;
    fixture_begin(&fixture, kind);
    struct lahar_io *io = fixture.io;
    struct lahar_io_file *file = fixture_open(&fixture, "a", 0);
    struct lahar_io_queue *queue = NULL;
    char data[100];
    char found[sizeof data] = {0};
    size_t size = 0;
    memset(data, 'x', sizeof data);
    cr_assert_eq(io->ops->queue_create(io, 2, &queue, NULL), LAHAR_OK);
    if (!forbid(__NR_pwritev2, sys_errno)) {
        cr_skip("seccomp filters are not available: %s", strerror(errno));
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(fixture_run(&fixture, queue, LAHAR_IO_OP_WRITE_DURABLE, file, 0, data, 100),
                     100);
    }
    cr_assert_eq(io->ops->read(io, file, 0, found, sizeof found, &size, NULL), LAHAR_OK);
    cr_assert_eq(memcmp(found, data, sizeof data), 0);
    /* Whoever executes one alone learns what to do. */
    struct lahar_io_op op = {
        .kind = LAHAR_IO_OP_WRITE_DURABLE, .file = file, .data = data, .size = 100};
    io->ops->execute(io, &op);
    cr_assert_lt(op.result, 0);
    cr_assert(lahar_io_lacks_dsync(-op.result));
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
    fixture_end(&fixture);
}

Test(environment, pwrite_does_without_a_call_that_seccomp_forbids)
{
    do_without_pwritev2(BACKEND_PWRITE, EPERM);
}

Test(environment, uring_does_without_a_call_that_seccomp_forbids)
{
    do_without_pwritev2(BACKEND_URING, EPERM);
}

Test(environment, pwrite_does_without_a_call_that_the_kernel_lacks)
{
    do_without_pwritev2(BACKEND_PWRITE, ENOSYS);
}

Test(environment, uring_does_without_a_call_that_the_kernel_lacks)
{
    do_without_pwritev2(BACKEND_URING, ENOSYS);
}

Test(environment, uring_names_the_flags_in_use)
{
    struct fixture fixture;
    fixture_begin(&fixture, BACKEND_URING);
    cr_assert_str_eq(fixture.io->name, "io_uring");
    cr_assert_str_not_empty(fixture.io->reason);
    fixture_end(&fixture);
}

/* Refuses each allocation in turn: an error, no leak, and no change of the rest. */
static void sweep_refused_memory(enum backend_kind kind)
{
    struct fixture fixture;
    fixture_begin(&fixture, kind);
    uint64_t fail_at = 0;
    struct failing_allocator memory;
    do {
        failing_allocator_init(&memory, fail_at++);
        struct lahar_io *io = NULL;
        struct lahar_io_file *file = NULL;
        struct lahar_io_queue *queue = NULL;
        lahar_error error = {0};
        lahar_status status = kind == BACKEND_URING
                                  ? lahar_io_uring_create(&memory.allocator, &io, &error)
                                  : lahar_io_pwrite_create(&memory.allocator, &io, &error);
        if (status == LAHAR_OK) {
            status = io->ops->open(io, fixture_path(&fixture, "a"),
                                   LAHAR_IO_WRITE | LAHAR_IO_CREATE, &file, &error);
        }
        if (status == LAHAR_OK) {
            status = io->ops->fill(io, file, 5000, &error);
        }
        if (status == LAHAR_OK) {
            status = io->ops->queue_create(io, 4, &queue, &error);
        }
        if (io != NULL) {
            io->ops->queue_destroy(io, queue);
            io->ops->close(io, file);
            io->ops->destroy(io);
        }
        cr_assert_eq(status, memory.refused_count == 0 ? LAHAR_OK : LAHAR_NO_MEMORY, "%s",
                     error.message);
        cr_assert_eq(memory.live_count, 0);
    } while (memory.refused_count > 0);
    cr_assert_geq(fail_at, 5);
    fixture_end(&fixture);
}

Test(environment, pwrite_survives_each_refusal_of_memory)
{
    sweep_refused_memory(BACKEND_PWRITE);
}

Test(environment, uring_survives_each_refusal_of_memory)
{
    sweep_refused_memory(BACKEND_URING);
}

Test(environment, marks_every_descriptor_close_on_exec)
{
    struct fixture fixture;
    fixture_begin(&fixture, BACKEND_URING);
    struct lahar_io *io = fixture.io;
    bool was_open[64];
    for (int fd = 0; fd < 64; fd++) {
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    struct lahar_io_file *file = fixture_open(&fixture, "a", LAHAR_IO_DIRECT);
    struct lahar_io_queue *queue = NULL;
    cr_assert_eq(io->ops->queue_create(io, 4, &queue, NULL), LAHAR_OK);
    int count = 0;
    for (int fd = 0; fd < 64; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !was_open[fd]) {
            cr_assert_neq(flags & FD_CLOEXEC, 0, "descriptor %d", fd);
            count++;
        }
    }
    cr_assert_eq(count, 3, "file, ring, eventfd");
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
    for (int fd = 0; fd < 64; fd++) {
        cr_assert_eq(fcntl(fd, F_GETFD) >= 0, was_open[fd], "descriptor %d", fd);
    }
    fixture_end(&fixture);
}

Test(environment, keeps_files_from_others)
{
    struct fixture fixture;
    fixture_begin(&fixture, BACKEND_PWRITE);
    struct lahar_io *io = fixture.io;
    struct stat status;
    (void)umask(0022);
    io->ops->close(io, fixture_open(&fixture, "a", 0));
    cr_assert_eq(io->ops->make_directory(io, fixture_path(&fixture, "d"), NULL), LAHAR_OK);
    cr_assert_eq(stat(fixture_path(&fixture, "a"), &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0640);
    cr_assert_eq(stat(fixture_path(&fixture, "d"), &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0750);
    fixture_end(&fixture);
}

/* A forked child may close; the parent's ring goes on. */
Test(environment, lets_a_forked_child_close_its_queue)
{
    struct fixture fixture;
    fixture_begin(&fixture, BACKEND_URING);
    struct lahar_io *io = fixture.io;
    struct lahar_io_file *file = fixture_open(&fixture, "a", 0);
    struct lahar_io_queue *queue = NULL;
    char data[] = "x";
    cr_assert_eq(io->ops->queue_create(io, 4, &queue, NULL), LAHAR_OK);
    cr_assert_eq(fixture_run(&fixture, queue, LAHAR_IO_OP_WRITE, file, 0, data, 1), 1);
    const pid_t child = fork();
    if (child == 0) {
        io->ops->queue_destroy(io, queue);
        io->ops->close(io, file);
        io->ops->destroy(io);
        _exit(42);
    }
    int outcome = 0;
    cr_assert_eq(waitpid(child, &outcome, 0), child);
    cr_assert(WIFEXITED(outcome));
    cr_assert_eq(WEXITSTATUS(outcome), 42);
    cr_assert_eq(fixture_run(&fixture, queue, LAHAR_IO_OP_WRITE_DURABLE, file, 1, data, 1), 1);
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
    fixture_end(&fixture);
}

Test(environment, counts_the_processors_it_may_run_on)
{
    cpu_set_t all;
    cpu_set_t one;
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    cr_assert_eq(lahar_io_processor_count(), (uint32_t)CPU_COUNT(&all));
    size_t first = 0;
    while (!CPU_ISSET(first, &all)) {
        first++;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_assert_eq(lahar_io_processor_count(), 1);
}
