/* child.h: run a program to its end or to a deadline, and keep what it says. */
#ifndef AFJ_JIT_CHILD_H
#define AFJ_JIT_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* How a child ended. */
struct afj_child {
    int status;     /* exit status; 128 + signal; -1 if the host does not let its children be waited
                       for (SIGCHLD ignored), so that only what the child left behind can tell */
    bool timed_out; /* killed, with all that it started, at the deadline */
    struct afj_text output; /* stdout and stderr together, at most 256 KiB; free with text_finish */
};

/* Run argv[0], an absolute path, without a shell, stdin empty, in `directory` (NULL: here), where
 * its temporary files go, too. The environment is the caller's less what changes a compiler's
 * output, in the C locale. 0, or an errno value if it could not be started; then nothing is to be
 * freed. */
int afj_child_run(const char *const *argv, const char *directory, int deadline_ms,
                  struct afj_child *child);

#endif
