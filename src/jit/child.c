/* child.c: posix_spawn, a pipe, and a deadline that the whole process group obeys. */
#include "jit/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_LIMIT ((size_t)256 << 10)

extern char **environ;

/* What makes a compiler read or write other files than it is told to, or speak another language. */
static bool is_dropped(const char *variable, bool new_tmpdir)
{
    static const char *const names[] = {
        "CPATH",
        "C_INCLUDE_PATH",
        "CPLUS_INCLUDE_PATH",
        "OBJC_INCLUDE_PATH",
        "LIBRARY_PATH",
        "DEPENDENCIES_OUTPUT",
        "SUNPRO_DEPENDENCIES",
        "GCC_COMPARE_DEBUG",
        "GCC_COLORS",
        "LD_RUN_PATH",
        "CCC_OVERRIDE_OPTIONS",
        "SOURCE_DATE_EPOCH",
        "LD_PRELOAD",
        "LANG",
        "LANGUAGE",
    };
    size_t length = strcspn(variable, "=");
    if (strncmp(variable, "LC_", 3) == 0)
        return true;
    if (new_tmpdir && length == 6 && strncmp(variable, "TMPDIR", length) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && strncmp(variable, names[i], length) == 0)
            return true;
    return false;
}

/* An array to free, whose strings are borrowed; NULL: no memory. `tmpdir` is "TMPDIR=..." or NULL.
 */
static char **make_environment(char *tmpdir)
{
    static char locale[] = "LC_ALL=C";
    size_t count = 0;
    for (char **each = environ; each != NULL && *each != NULL; each++)
        count++;
    char **made = calloc(count + 3, sizeof *made);
    if (made == NULL)
        return NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_dropped(environ[i], tmpdir != NULL))
            made[kept++] = environ[i];
    made[kept++] = locale;
    made[kept] = tmpdir;
    return made;
}

static int add_actions(posix_spawn_file_actions_t *actions, const char *directory, int output)
{
    int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(actions, output, 2);
    if (error == 0 && directory != NULL)
        error = posix_spawn_file_actions_addchdir_np(actions, directory);
    return error;
}

/* A process group of its own, so that a deadline reaches what the child started; no signal blocked
 * or ignored, whatever the host has done to its own. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGTERM);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0)
        error = posix_spawnattr_setpgroup(attributes, 0);
    if (error == 0)
        error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0)
        error = posix_spawnattr_setsigdefault(attributes, &usual);
    return error;
}

static int spawn(const char *const *argv, const char *directory, char **environment, int output,
                 pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0)
        goto destroy_actions;
    error = add_actions(&actions, directory, output);
    if (error == 0)
        error = set_attributes(&attributes);
    if (error == 0)
        /* posix_spawn does not write through argv; its type predates const. */
        error = posix_spawn(pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv,
                            environment);
    posix_spawnattr_destroy(&attributes);
destroy_actions:
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Read the pipe until its end or the deadline; what is over the limit is read and dropped, so that
 * the child never blocks. Whether the end came. */
static bool read_output(int pipe, int64_t deadline, struct afj_text *output)
{
    char bytes[4096];
    for (;;) {
        int64_t left = deadline - now_ms();
        struct pollfd ready = {.fd = pipe, .events = POLLIN};
        if (left <= 0)
            return false;
        if (poll(&ready, 1, (int)left) <= 0)
            continue;
        ssize_t length = read(pipe, bytes, sizeof bytes);
        if (length == 0 || (length < 0 && errno != EINTR))
            return true;
        if (length > 0 && output->length < OUTPUT_LIMIT)
            afj_text_append(output, bytes, (size_t)length);
    }
}

static int decode(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Wait for the child until the deadline, then kill its group and wait for that. */
static void reap(pid_t pid, int64_t deadline, bool output_ended, struct afj_child *child)
{
    const struct timespec short_time = {.tv_nsec = 1000000};
    int status = 0;
    pid_t reaped = 0;
    /* The output has ended, so the child ends, too: these rounds are few. */
    while (output_ended && now_ms() < deadline) {
        reaped = waitpid(pid, &status, WNOHANG);
        if (reaped != 0 && !(reaped < 0 && errno == EINTR))
            break;
        reaped = 0;
        nanosleep(&short_time, NULL);
    }
    if (reaped == 0) {
        child->timed_out = true;
        kill(-pid, SIGKILL);
        do
            reaped = waitpid(pid, &status, 0);
        while (reaped < 0 && errno == EINTR);
    }
    child->status = reaped == pid ? decode(status) : -1;
}

/* "TMPDIR=<directory>", or NULL for lack of memory or of a directory. */
static char *make_tmpdir(const char *directory)
{
    struct afj_text text = {0};
    if (directory == NULL)
        return NULL;
    afj_text_printf(&text, "TMPDIR=%s", directory);
    if (text.failed) {
        afj_text_finish(&text);
        return NULL;
    }
    return text.data;
}

int afj_child_run(const char *const *argv, const char *directory, int deadline_ms,
                  struct afj_child *child)
{
    int pipe[2];
    pid_t pid;
    *child = (struct afj_child){0};
    char *tmpdir = make_tmpdir(directory);
    char **environment = make_environment(tmpdir);
    int error = environment == NULL ? ENOMEM : 0;
    if (error == 0 && pipe2(pipe, O_CLOEXEC) != 0)
        error = errno;
    if (error != 0)
        goto free_environment;
    int64_t deadline = now_ms() + deadline_ms;
    error = spawn(argv, directory, environment, pipe[1], &pid);
    close(pipe[1]);
    if (error == 0) {
        bool ended = read_output(pipe[0], deadline, &child->output);
        reap(pid, deadline, ended, child);
    }
    close(pipe[0]);
free_environment:
    free(environment);
    free(tmpdir);
    return error;
}
