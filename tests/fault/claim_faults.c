/* claim_faults.c: what goes wrong with locks, holders and the cache never fails a kernel, never
 * makes one wait in vain, and costs no more than it must. Exit 0: all right. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "fault/flight.h"
#include "jit/obtain.h"

#ifndef ENOTSUPP
#define ENOTSUPP 524 /* the kernel's own; some mounts let it through */
#endif

/* ---- the system, as it is on bad days: the linker sends these calls here (--wrap) ---- */

static int lock_error;    /* errno of every try at a lock; 0: the kernel decides */
static bool locks_lie;    /* every try succeeds, as where locks reach one host only */
static int publish_error; /* errno of every rename */

int __real_fcntl(int descriptor, int command, ...);
int __wrap_fcntl(int descriptor, int command, ...);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_fcntl(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command == F_OFD_SETLK && locks_lie)
        return 0;
    if (command == F_OFD_SETLK && lock_error) {
        errno = lock_error;
        return -1;
    }
    return __real_fcntl(descriptor, command, argument);
}

int __wrap_rename(const char *from, const char *to)
{
    if (publish_error) {
        errno = publish_error;
        return -1;
    }
    return __real_rename(from, to);
}

/* ---- locks ---- */

/* 4 processes without locks: each compiles, or finds what another was quick to put. */
static void run_without_locks(void)
{
    enum { PROCESSES = 4 };
    flight_run(PROCESSES, 2, 0);
    const int compiles = flight_count_compiles();
    CHECK(compiles >= 2 && compiles <= 2 * PROCESSES, "%d compiles", compiles);
    CHECK(flight_most_at_once() > 1, "the processes waited for each other");
    const int warnings = flight_count_lines("warning");
    CHECK(warnings == flight_count_lines("takes no locks"), "another warning");
    CHECK(warnings >= 1 && warnings <= PROCESSES, "%d warnings", warnings);
    printf("  %d compiles, %d warnings\n", compiles, warnings);
}

static void locks_that_fail(void)
{
    static const int errors[] = {ENOSYS, ENOLCK, EOPNOTSUPP, ENOTSUPP, EINVAL, EACCES};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i) {
        char name[64];
        snprintf(name, sizeof name, "locks fail with errno %d", errors[i]);
        flight_start_case(name);
        lock_error = errors[i];
        run_without_locks();
        lock_error = 0;
    }
}

static void lock_is_a_folder(void)
{
    char path[256];
    flight_start_case("a folder has the name of the lock");
    snprintf(path, sizeof path, "%s/lock", flight_root);
    CHECK(afj_path_make_directories(path) == 0, "cannot make %s", path);
    run_without_locks();
}

static void locks_of_one_host(void)
{
    flight_start_case("locks that keep nobody out");
    locks_lie = true;
    flight_run(8, 1, 0);
    locks_lie = false;
    const int compiles = flight_count_compiles();
    CHECK(compiles >= 1 && compiles <= 8, "%d compiles", compiles);
    printf("  %d compiles\n", compiles);
}

/* ---- waiting ---- */

static void no_patience(void)
{
    flight_start_case("the time to wait is over");
    const pid_t holder = flight_start(1, -1);
    CHECK(flight_await_compiles(1), "the holder never compiled");
    setenv("AFDEP_JIT_LOCK_TIMEOUT", "0", 1);
    const pid_t other = fork();
    if (other == 0) {
        alarm(FLIGHT_DEADLINE_S);
        if (flight_obtain(1) != 0)
            _exit(1);
        afdep_cache_stats stats = {.struct_size = sizeof stats};
        afj_obtain_stats(&stats);
        _exit(stats.lock_timeouts == 1 && stats.compiles == 1 && stats.waits == 1 ? 0 : 4);
    }
    unsetenv("AFDEP_JIT_LOCK_TIMEOUT");
    const int status = flight_status_of(other);
    CHECK(status == 0, "the other ended with %d", status);
    CHECK(flight_status_of(holder) == 0, "the holder failed");
    CHECK(flight_count_compiles() == 2, "%d compiles", flight_count_compiles());
}

static void wait_is_counted(void)
{
    flight_start_case("a wait is counted");
    const pid_t holder = flight_start(1, -1);
    CHECK(flight_await_compiles(1), "the holder never compiled");
    const pid_t other = fork();
    if (other == 0) {
        alarm(FLIGHT_DEADLINE_S);
        const double from = flight_now_ms();
        if (flight_obtain(1) != 0)
            _exit(1);
        const uint64_t us = (uint64_t)((flight_now_ms() - from) * 1e3);
        afdep_cache_stats stats = {.struct_size = sizeof stats};
        afj_obtain_stats(&stats);
        _exit(stats.waits == 1 && stats.wait_us > 0 && stats.wait_us <= us &&
                      stats.compiles == 0 && stats.hits_local == 1 && stats.lock_timeouts == 0
                  ? 0
                  : 4);
    }
    CHECK(flight_status_of(other) == 0, "the wait is not counted");
    CHECK(flight_status_of(holder) == 0, "the holder failed");
    CHECK(flight_count_compiles() == 1, "%d compiles", flight_count_compiles());
}

/* ---- holders that put nothing: whoever waited for one does not wait for the next ---- */

static void compile_that_fails(void)
{
    flight_start_case("8 processes, one key that does not compile");
    flight_compile_fails = true;
    const double ms = flight_run(8, 1, 1);
    flight_compile_fails = false;
    CHECK(flight_count_compiles() <= 8, "%d compiles", flight_count_compiles());
    CHECK(flight_most_at_once() > 1, "each process waited for the failure of the one before");
    printf("  %d at once, %.0f ms\n", flight_most_at_once(), ms);
}

static void publish_that_fails(void)
{
    flight_start_case("8 processes, one key that cannot be put");
    publish_error = EIO;
    const double ms = flight_run(8, 1, 0);
    publish_error = 0;
    CHECK(flight_count_compiles() <= 8, "%d compiles", flight_count_compiles());
    CHECK(flight_most_at_once() > 1, "each process waited for the failure of the one before");
    printf("  %d at once, %.0f ms\n", flight_most_at_once(), ms);
    flight_run(8, 1, 0);
    CHECK(flight_count_compiles() == 9, "%d compiles after it", flight_count_compiles());
}

/* Over this limit a write ends the process by SIGXFSZ. */
static void no_room_for_a_note(void)
{
    flight_start_case("from now on files may have one byte");
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {1, RLIM_INFINITY};
        alarm(FLIGHT_DEADLINE_S);
        flight_compile_quiet = true; /* its log has more, and stderr may be a file, too */
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0 || !afj_obtain_store() ||
            setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(3);
        _exit(flight_obtain(1));
    }
    const int status = flight_status_of(child);
    CHECK(status == 0, "the process ended with %d", status);
}

static void tree_removed(void)
{
    flight_start_case("the cache is removed while it is used");
    const pid_t child = fork();
    if (child == 0) {
        alarm(FLIGHT_DEADLINE_S);
        if (!afj_obtain_store())
            _exit(3);
        afj_path_remove_tree(flight_root);
        if (flight_obtain(1) != 0)
            _exit(1);
        afdep_cache_stats stats = {.struct_size = sizeof stats};
        afj_obtain_stats(&stats);
        _exit(stats.lockless == 0 && stats.store_failures == 0 ? 0 : 4);
    }
    const int status = flight_status_of(child);
    CHECK(status == 0, "the process ended with %d", status);
    flight_run(2, 1, 0);
    CHECK(flight_count_compiles() == 1, "%d compiles", flight_count_compiles());
}

/* ---- fork ---- */

static void *obtain_in_thread(void *result)
{
    *(int *)result = flight_obtain(1);
    return NULL;
}

/* In a process of its own: one thread compiles, the other forks a child that holds on to what it
 * inherits until `release` opens, and one that wants the same kernel. */
static int fork_while_compiling(int release)
{
    pthread_t thread;
    int result = 3;
    char byte;
    if (pthread_create(&thread, NULL, obtain_in_thread, &result) != 0 || !flight_await_compiles(1))
        return 3;
    const pid_t keeper = fork();
    if (keeper == 0) {
        alarm(FLIGHT_DEADLINE_S);
        _exit(read(release, &byte, 1) == 1 ? 0 : 3);
    }
    const pid_t twin = flight_start(1, -1);
    pthread_join(thread, NULL);
    const int of_twin = flight_status_of(twin);
    return result != 0 ? 4 : of_twin != 0 ? 5 : flight_status_of(keeper) != 0 ? 6 : 0;
}

static void fork_with_a_claim(void)
{
    int release[2];
    flight_start_case("a process forks while it compiles");
    if (pipe(release) != 0)
        return;
    const pid_t forker = fork();
    if (forker == 0) {
        alarm(FLIGHT_DEADLINE_S);
        _exit(fork_while_compiling(release[0]));
    }
    CHECK(flight_await_compiles(1), "nobody compiled");
    const pid_t other = flight_start(1, -1);
    int status = flight_status_of(other);
    CHECK(status == 0, "another process ended with %d", status);
    CHECK(write(release[1], "", 1) == 1, "the pipe is broken");
    status = flight_status_of(forker);
    CHECK(status == 0, "the process that forked ended with %d", status);
    CHECK(flight_count_compiles() == 1, "%d compiles", flight_count_compiles());
    close(release[0]);
    close(release[1]);
}

int main(void)
{
    if (!flight_begin())
        return 1;
    locks_that_fail();
    lock_is_a_folder();
    locks_of_one_host();
    no_patience();
    wait_is_counted();
    compile_that_fails();
    publish_that_fails();
    no_room_for_a_note();
    tree_removed();
    fork_with_a_claim();
    return flight_end();
}
