/* lock.c: byte ranges of one file that the kernel holds for whoever locked them, and frees when the
 * holder dies. */
#include "cache/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Ranges from here on are left for locks that belong to no key. */
#define KEY_RANGES (INT64_C(1) << 61)

static int64_t range_of(const struct afj_digest *key)
{
    uint64_t low = 0;
    for (int i = 8; i < 16; ++i)
        low = low << 8 | key->bytes[i];
    return (int64_t)(low % (uint64_t)KEY_RANGES);
}

/* Set one byte of the file to a kind of lock. Open file description locks belong to the descriptor,
 * not to the process. */
static int set_range(int descriptor, int64_t at, short kind)
{
    struct flock range;
    memset(&range, 0, sizeof range);
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = at;
    range.l_len = 1;
    int result;
    do
        result = fcntl(descriptor, F_OFD_SETLK, &range);
    while (result != 0 && errno == EINTR);
    return result;
}

enum afj_lock_answer afj_lock_try(const char *path, const struct afj_digest *key,
                                  struct afj_lock *lock)
{
    lock->at = range_of(key);
    lock->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock->descriptor < 0)
        return AFJ_LOCK_UNAVAILABLE;
    if (set_range(lock->descriptor, lock->at, F_WRLCK) == 0)
        return AFJ_LOCK_TAKEN;
    const int error = errno;
    close(lock->descriptor);
    lock->descriptor = -1;
    errno = error;
    /* POSIX allows EACCES for a lock that another holds, but Linux says EAGAIN. From a file system
     * EACCES is a refusal, which waiting would not change. */
    return error == EAGAIN ? AFJ_LOCK_BUSY : AFJ_LOCK_UNAVAILABLE;
}

void afj_lock_release(struct afj_lock *lock)
{
    if (lock->descriptor < 0)
        return;
    /* Unlocked before it is closed: a forked child may share the description. */
    (void)set_range(lock->descriptor, lock->at, F_UNLCK);
    close(lock->descriptor);
    lock->descriptor = -1;
}
