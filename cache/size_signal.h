/* size_signal.h: writes over a limit of file size are errors and not the end of the process. */
#ifndef AFJ_CACHE_SIZE_SIGNAL_H
#define AFJ_CACHE_SIZE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* What there was before; belongs to the thread that blocks. */
struct afj_size_signal {
    sigset_t before;
    bool blocked, was_pending;
};

/* Over a limit of file size a write raises SIGXFSZ, which ends the process. Between these two calls
 * it fails with EFBIG instead, and the signal that it left is taken back. */
void afj_size_signal_block(struct afj_size_signal *guard);
void afj_size_signal_restore(const struct afj_size_signal *guard);

#endif
