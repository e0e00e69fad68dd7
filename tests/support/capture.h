/* capture.h: what a test makes the library write on stderr. */
#ifndef AFJ_TESTS_CAPTURE_H
#define AFJ_TESTS_CAPTURE_H

#include <criterion/criterion.h>

#include <unistd.h>

static char captured[8192]; /* what was written between the two calls */
static int capture_pipe[2], kept_stderr;

static inline void begin_capture(void)
{
    cr_assert_eq(pipe(capture_pipe), 0);
    kept_stderr = dup(STDERR_FILENO);
    cr_assert(dup2(capture_pipe[1], STDERR_FILENO) >= 0);
}

static inline void end_capture(void)
{
    dup2(kept_stderr, STDERR_FILENO);
    close(capture_pipe[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(capture_pipe[0], captured + length, sizeof captured - 1 - length)) > 0)
        length += (size_t)got;
    captured[length] = '\0';
    close(capture_pipe[0]);
}

#endif
