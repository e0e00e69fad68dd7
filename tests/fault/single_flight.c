/* single_flight.c: many processes and threads that miss the same kernels at once compile each of
 * them once. Exit 0: all right; 1: something else happened. Prints what it measured. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "jit/compiler.h"
#include "jit/obtain.h"
#include "plan/plan.h"

enum { MOST_KERNELS = 9, MOST_PROCESSES = 64, COMPILE_MS = 200, DEADLINE_S = 60 };

static char directory[] = "/tmp/afdep-flight-XXXXXX";
static char log_path[128], cache_path[128];
static struct afj_plan plans[2];
static int failures;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("FAIL line %d: ", __LINE__);                                                    \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            ++failures;                                                                            \
        }                                                                                          \
    } while (0)

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* ---- a compiler that takes its time and keeps a log ---- */

static afdep_status identify(const char *arch, struct afj_text *text)
{
    (void)arch;
    afj_recipe_line(text, "compiler", "slow", 4);
    return AFDEP_OK;
}

static afdep_status compile(const struct afj_program *program, struct afj_compiled *compiled)
{
    char line[64];
    memset(compiled, 0, sizeof *compiled);
    const int length = snprintf(line, sizeof line, "%ld %s\n", (long)getpid(), program->entry);
    const int file = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || write(file, line, (size_t)length) != length)
        return AFDEP_ERROR_IO;
    close(file);
    sleep_ms(COMPILE_MS);
    compiled->image = strdup(program->entry);
    compiled->image_bytes = strlen(program->entry) + 1;
    return AFDEP_OK;
}

static afdep_status check(const void *image, size_t bytes, const char *arch, const char *entry)
{
    (void)arch;
    return bytes == strlen(entry) + 1 && memcmp(image, entry, bytes) == 0 ? AFDEP_OK
                                                                          : AFDEP_ERROR_LOAD;
}

static const struct afj_compiler slow = {identify, compile, check};

static int count_compiles(void)
{
    void *text = NULL;
    size_t length = 0;
    int lines = 0;
    if (afj_path_read(log_path, true, 1 << 20, &text, &length) != 0)
        return 0;
    for (size_t i = 0; i < length; ++i)
        lines += ((char *)text)[i] == '\n';
    free(text);
    return lines;
}

/* ---- what a process or a thread does ---- */

/* Have the first `count` kernels of 1A1F. 0 if all images are right. */
static int obtain(uint32_t count)
{
    struct afj_wanted wanted[MOST_KERNELS];
    memset(wanted, 0, sizeof wanted);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t first = plans[0].kernel_count;
        wanted[i].plan = &plans[i < first ? 0 : 1];
        wanted[i].kernel = &wanted[i].plan->kernels[i < first ? i : i - first];
        wanted[i].arch = "sm_90a";
    }
    if (afj_obtain(wanted, count, 1, NULL, NULL) != AFDEP_OK)
        return 1;
    for (uint32_t i = 0; i < count; ++i)
        if (check(wanted[i].image, wanted[i].image_bytes, "", wanted[i].kernel->name) != AFDEP_OK)
            return 1;
    return 0;
}

/* A process that obtains once the barrier opens. */
static pid_t start(uint32_t kernels, int barrier)
{
    const pid_t child = fork();
    if (child != 0)
        return child;
    char byte;
    alarm(DEADLINE_S);
    if (barrier >= 0 && read(barrier, &byte, 1) < 0)
        _exit(2);
    _exit(obtain(kernels));
}

static int status_of(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* `processes` processes, let go together. Returns the time until the last has ended. */
static double run(int processes, uint32_t kernels)
{
    pid_t children[MOST_PROCESSES];
    int barrier[2];
    if (pipe(barrier) != 0)
        exit(1);
    for (int i = 0; i < processes; ++i) {
        children[i] = start(kernels, barrier[0]);
        if (children[i] == 0)
            exit(1);
    }
    /* Children hold a copy of the writing end, so bytes, not its closing, let them go. */
    const double from = now_ms();
    char bytes[MOST_PROCESSES] = {0};
    if (processes < 1 || write(barrier[1], bytes, (size_t)processes) != processes)
        exit(1);
    for (int i = 0; i < processes; ++i) {
        const int status = status_of(children[i]);
        CHECK(status == 0, "process %d of %d ended with %d", i, processes, status);
    }
    close(barrier[0]);
    close(barrier[1]);
    return now_ms() - from;
}

static void empty_cache(void)
{
    afj_path_remove_tree(cache_path);
    unlink(log_path);
}

/* ---- the cases ---- */

static void one_key(int processes)
{
    empty_cache();
    const double ms = run(processes, 1);
    CHECK(count_compiles() == 1, "%d processes, one key: %d compiles", processes, count_compiles());
    printf("%2d processes, one key: 1 compile of %d ms, %.0f ms over it\n", processes, COMPILE_MS,
           ms - COMPILE_MS);
}

static void eight_keys(void)
{
    empty_cache();
    const double ms = run(8, 8);
    CHECK(count_compiles() == 8, "8 processes, 8 keys: %d compiles", count_compiles());
    printf(" 8 processes, 8 keys: 8 compiles of %d ms in %.0f ms\n", COMPILE_MS, ms);
}

/* Wait until the log has `lines` lines. */
static bool await_compiles(int lines)
{
    const double until = now_ms() + DEADLINE_S * 1e3;
    while (count_compiles() < lines && now_ms() < until)
        sleep_ms(1);
    return count_compiles() >= lines;
}

static void dead_holder(void)
{
    empty_cache();
    const pid_t holder = start(1, -1);
    CHECK(await_compiles(1), "the holder never compiled");
    const pid_t waiter = start(1, -1);
    kill(holder, SIGKILL);
    const double from = now_ms();
    CHECK(status_of(holder) == 128 + SIGKILL, "the holder was not killed");
    CHECK(await_compiles(2), "nobody took over");
    const double takeover = now_ms() - from;
    CHECK(status_of(waiter) == 0, "the waiter failed");
    CHECK(count_compiles() == 2, "a dead holder: %d compiles", count_compiles());
    printf(" holder killed: taken over after %.0f ms\n", takeover);
}

/* The lock cannot be opened: a directory has its name. */
static void no_locks(void)
{
    char path[256];
    empty_cache();
    snprintf(path, sizeof path, "%s/afdep-jit.v1/lock", cache_path);
    CHECK(afj_path_make_directories(path) == 0, "cannot make %s", path);
    run(4, 1);
    CHECK(count_compiles() >= 1 && count_compiles() <= 4, "no locks: %d compiles",
          count_compiles());
    printf(" no locks: %d compiles in 4 processes, none failed\n", count_compiles());
}

static void no_patience(void)
{
    empty_cache();
    setenv("AFDEP_JIT_LOCK_TIMEOUT", "0", 1);
    const pid_t holder = start(1, -1);
    CHECK(await_compiles(1), "the holder never compiled");
    const pid_t other = start(1, -1);
    CHECK(status_of(other) == 0 && status_of(holder) == 0, "a process failed");
    CHECK(count_compiles() == 2, "no patience: %d compiles", count_compiles());
    unsetenv("AFDEP_JIT_LOCK_TIMEOUT");
}

static void *obtain_in_thread(void *result)
{
    *(int *)result = obtain(1);
    return NULL;
}

/* In a child, because a process opens its cache once. */
static void threads(void)
{
    enum { THREADS = 8 };
    empty_cache();
    const pid_t child = fork();
    if (child == 0) {
        pthread_t all[THREADS];
        int results[THREADS], bad = 0;
        alarm(DEADLINE_S);
        for (int i = 0; i < THREADS; ++i)
            if (pthread_create(&all[i], NULL, obtain_in_thread, &results[i]) != 0)
                _exit(1);
        for (int i = 0; i < THREADS; ++i) {
            pthread_join(all[i], NULL);
            bad += results[i];
        }
        _exit(bad != 0);
    }
    CHECK(status_of(child) == 0, "a thread failed");
    CHECK(count_compiles() == 1, "8 threads, one key: %d compiles", count_compiles());
}

int main(void)
{
    setbuf(stdout, NULL);
    if (!mkdtemp(directory))
        return 1;
    snprintf(log_path, sizeof log_path, "%s/log", directory);
    snprintf(cache_path, sizeof cache_path, "%s/cache", directory);
    setenv("AFDEP_JIT_CACHE", cache_path, 1);
    const afdep_config config = AFDEP_CONFIG_INIT;
    struct afj_config checked;
    if (afj_config_read(&config, &checked) != AFDEP_OK ||
        afj_plan_make(&checked, AFDEP_ROLE_ATTENTION, "", &plans[0]) != AFDEP_OK ||
        afj_plan_make(&checked, AFDEP_ROLE_FFN, "", &plans[1]) != AFDEP_OK)
        return 1;
    afj_obtain_use_compiler(&slow);
    one_key(8);
    one_key(64);
    eight_keys();
    dead_holder();
    no_locks();
    no_patience();
    threads();
    afj_path_remove_tree(directory);
    printf("%s\n", failures ? "FAILED" : "all right");
    return failures ? 1 : 0;
}
