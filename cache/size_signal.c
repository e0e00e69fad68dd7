/* size_signal.c: writes over a limit of file size are errors and not the end of the process. */
#include "cache/size_signal.h"

#include <errno.h>
#include <time.h>

void afj_size_signal_block(struct afj_size_signal *guard)
{
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    guard->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    guard->blocked = pthread_sigmask(SIG_BLOCK, &set, &guard->before) == 0;
}

void afj_size_signal_restore(const struct afj_size_signal *guard)
{
    const struct timespec no_wait = {0, 0};
    const int error = errno;
    sigset_t set;
    if (!guard->blocked)
        return;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    if (!guard->was_pending)
        while (sigtimedwait(&set, NULL, &no_wait) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    errno = error;
}
