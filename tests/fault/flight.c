/* flight.c: what the tests of single flight share: a compiler that takes its time and keeps a log,
 * a cache of their own, and processes that start together. */
#include "fault/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

static const struct afj_controls plain_controls = {.shape = ""};

enum { MOST_LOG_BYTES = 1 << 20 };

long flight_compile_ms = 200;
bool flight_compile_fails, flight_compile_quiet;
char flight_directory[128], flight_root[192];
int flight_failures;

static char log_path[192], errors_path[192], cache_path[192];
static struct afj_plan plans[2];

double flight_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void flight_sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* ---- the compiler ---- */

static afdep_status identify(const char *arch, struct afj_text *text)
{
    (void)arch;
    afj_compiler_add_line(text, "compiler", "slow", 4);
    return AFDEP_OK;
}

/* One line with one write, so that lines of several processes do not mix. */
static bool log_line(char sign, const char *entry)
{
    char line[128];
    if (flight_compile_quiet)
        return true;
    const int length = snprintf(line, sizeof line, "%c %s\n", sign, entry);
    const int file = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const bool written = file >= 0 && write(file, line, (size_t)length) == length;
    if (file >= 0)
        close(file);
    return written;
}

static afdep_status compile(const struct afj_program *program, struct afj_compiled *compiled)
{
    memset(compiled, 0, sizeof *compiled);
    if (!log_line('+', program->entry))
        return afj_fail(AFDEP_ERROR_IO, "the test's log cannot be written");
    flight_sleep_ms(flight_compile_ms);
    if (!log_line('-', program->entry))
        return afj_fail(AFDEP_ERROR_IO, "the test's log cannot be written");
    if (flight_compile_fails)
        return afj_fail(AFDEP_ERROR_COMPILE, "%s does not compile", program->entry);
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

/* ---- its log, and what processes say ---- */

/* The text of a file, owned by the caller; an empty one if there is none. */
static char *read_text(const char *path)
{
    void *text = NULL;
    size_t length = 0;
    if (afj_path_read(path, true, MOST_LOG_BYTES, &text, &length) != 0)
        return calloc(1, 1);
    return text;
}

/* Lines of the compiler's log: those that begin a compile, and the most compiles at once. */
static int read_log(int *most)
{
    char *text = read_text(log_path);
    int begun = 0, running = 0;
    *most = 0;
    for (const char *at = text; at && *at; at = strchr(at, '\n') + 1) {
        begun += *at == '+';
        running += *at == '+' ? 1 : -1;
        if (running > *most)
            *most = running;
    }
    free(text);
    return begun;
}

int flight_count_compiles(void)
{
    int most;
    return read_log(&most);
}

int flight_most_at_once(void)
{
    int most;
    read_log(&most);
    return most;
}

bool flight_await_compiles(int count)
{
    const double until = flight_now_ms() + FLIGHT_DEADLINE_S * 1e3;
    while (flight_count_compiles() < count && flight_now_ms() < until)
        flight_sleep_ms(1);
    return flight_count_compiles() >= count;
}

int flight_count_lines(const char *part)
{
    char *text = read_text(errors_path), *rest = NULL;
    int lines = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        lines += strstr(line, part) != NULL;
    free(text);
    return lines;
}

/* ---- processes ---- */

int flight_obtain(uint32_t count)
{
    struct afj_wanted wanted[FLIGHT_MOST_KERNELS];
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
            return 2;
    return 0;
}

pid_t flight_start(uint32_t count, int barrier)
{
    const pid_t child = fork();
    char byte;
    if (child != 0)
        return child;
    alarm(FLIGHT_DEADLINE_S);
    const int errors = open(errors_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (errors < 0 || dup2(errors, STDERR_FILENO) < 0)
        _exit(3);
    if (barrier >= 0 && read(barrier, &byte, 1) != 1)
        _exit(3);
    _exit(flight_obtain(count));
}

int flight_status_of(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

double flight_run(int processes, uint32_t count, int expected)
{
    pid_t children[FLIGHT_MOST_PROCESSES];
    const char bytes[FLIGHT_MOST_PROCESSES] = {0};
    int barrier[2];
    if (pipe(barrier) != 0) {
        CHECK(false, "no pipe: %s", strerror(errno));
        return 0;
    }
    for (int i = 0; i < processes; ++i)
        children[i] = flight_start(count, barrier[0]);
    /* Children hold a copy of the writing end, so bytes, not its closing, let them go. */
    const double from = flight_now_ms();
    CHECK(write(barrier[1], bytes, (size_t)processes) == processes, "the barrier does not open");
    for (int i = 0; i < processes; ++i) {
        const int status = flight_status_of(children[i]);
        CHECK(status == expected, "process %d of %d ended with %d", i, processes, status);
    }
    close(barrier[0]);
    close(barrier[1]);
    return flight_now_ms() - from;
}

/* ---- a program of cases ---- */

bool flight_begin(void)
{
    const char *temporary = getenv("TMPDIR");
    const afdep_config config = AFDEP_CONFIG_INIT;
    struct afj_config checked;
    setbuf(stdout, NULL);
    snprintf(flight_directory, sizeof flight_directory, "%.100s/afdep-flight-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(flight_directory))
        return false;
    snprintf(log_path, sizeof log_path, "%s/log", flight_directory);
    snprintf(errors_path, sizeof errors_path, "%s/errors", flight_directory);
    snprintf(cache_path, sizeof cache_path, "%s/cache", flight_directory);
    snprintf(flight_root, sizeof flight_root, "%s/cache/afdep-jit.v1", flight_directory);
    setenv("AFDEP_JIT_CACHE", cache_path, 1);
    unsetenv("AFDEP_JIT_LOCK_TIMEOUT");
    unsetenv("AFDEP_LOG");
    afj_obtain_use_compiler(&slow);
    return afj_config_read(&config, &checked) == AFDEP_OK &&
           afj_plan_make(&checked, AFDEP_ROLE_ATTENTION, &plain_controls, &plans[0]) == AFDEP_OK &&
           afj_plan_make(&checked, AFDEP_ROLE_FFN, &plain_controls, &plans[1]) == AFDEP_OK &&
           plans[0].kernel_count + plans[1].kernel_count >= FLIGHT_MOST_KERNELS;
}

int flight_end(void)
{
    afj_path_remove_tree(flight_directory);
    printf("%s\n", flight_failures ? "FAILED" : "all right");
    return flight_failures ? 1 : 0;
}

void flight_start_case(const char *name)
{
    afj_path_remove_tree(cache_path);
    unlink(log_path);
    unlink(errors_path);
    printf("%s\n", name);
}
