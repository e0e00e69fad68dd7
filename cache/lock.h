/* lock.h: byte ranges of one file that the kernel holds for whoever locked them, and frees when the
 * holder dies. */
#ifndef AFJ_CACHE_LOCK_H
#define AFJ_CACHE_LOCK_H

#include <stdint.h>

#include "base/digest.h"

/* A held lock. Each has a descriptor of its own, so that threads of one process exclude each other
 * and closing one lets go of no other. */
struct afj_lock {
    int descriptor; /* -1: nothing is held */
    int64_t at;
};

enum afj_lock_answer {
    AFJ_LOCK_TAKEN,
    AFJ_LOCK_BUSY,       /* another holder has it */
    AFJ_LOCK_UNAVAILABLE /* the file or its file system takes no locks; errno says why */
};

/* Try to lock the byte of a key in the file at `path`, which is created and never deleted. Does not
 * wait. */
enum afj_lock_answer afj_lock_try(const char *path, const struct afj_digest *key,
                                  struct afj_lock *lock);

/* Let go. Fine for a lock that holds nothing. */
void afj_lock_release(struct afj_lock *lock);

#endif
