/* claim.c: who makes a missing object: one process at a time, for as long as it lives. */
#include "cache/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "cache/size_signal.h"

enum {
    FIRST_PAUSE_MS = 1,
    LONGEST_PAUSE_MS = 20,
    TELL_AFTER_S = 5,
    DEFAULT_TIMEOUT_S = 600,
    LONGEST_TIMEOUT_S = 86400,
    MOST_NOTE_BYTES = 512,
    VAIN_NOTE_BYTES = 1 /* length of the note of a holder that ended without an object */
};
#define NS_A_SECOND UINT64_C(1000000000)

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

/* <root>/tmp/<key>.building, owned by the caller; NULL without memory. */
static char *note_path(const struct afj_store *store, const struct afj_digest *key)
{
    struct afj_text path = {0};
    char hex[33];
    afj_digest_hex(key, hex);
    afj_text_printf(&path, "%s/tmp/%s.building", afj_store_root(store), hex);
    if (path.failed)
        afj_text_finish(&path);
    return path.data;
}

/* Write who has the claim. The holder has the lock, so nobody else writes the note. False: files
 * cannot be made here, so an object could not, either. */
static bool write_note(const char *path)
{
    char host[128] = "", text[MOST_NOTE_BYTES];
    struct afj_size_signal guard;
    /* O_NONBLOCK: not to hang on a FIFO. */
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const int file = open(path, flags, 0600);
    if (file < 0)
        return false;
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(text, sizeof text, "process %ld on %s", (long)getpid(), host[0] ? host : "this host");
    afj_size_signal_block(&guard);
    const bool written = afj_path_write_all(file, text, strlen(text)) == 0;
    afj_size_signal_restore(&guard);
    return close(file) == 0 && written;
}

/* Whether the last holder ended without an object. One that died left its whole note, and one that
 * put the object left none. */
static bool ended_in_vain(const char *path)
{
    struct stat is;
    return lstat(path, &is) == 0 && S_ISREG(is.st_mode) && is.st_size == VAIN_NOTE_BYTES;
}

/* The key's lock, in a tree that somebody may have removed. */
static enum afj_lock_answer try_lock(const struct afj_store *store, const struct afj_digest *key,
                                     struct afj_lock *lock)
{
    struct afj_text path = {0};
    afj_text_printf(&path, "%s/lock", afj_store_root(store));
    enum afj_lock_answer answer = AFJ_LOCK_UNAVAILABLE;
    errno = ENOMEM;
    if (!path.failed)
        answer = afj_lock_try(path.data, key, lock);
    if (!path.failed && answer == AFJ_LOCK_UNAVAILABLE && errno == ENOENT &&
        afj_store_make_root(store) == 0)
        answer = afj_lock_try(path.data, key, lock);
    if (answer == AFJ_LOCK_UNAVAILABLE)
        AFJ_WARN_ONCE("the kernel cache: %s takes no locks (%s); several processes may compile the "
                      "same kernel",
                      path.failed ? "the cache" : path.data, strerror(errno));
    afj_text_finish(&path);
    return answer;
}

enum afj_claim_answer afj_claim_try(struct afj_store *store, const struct afj_digest *key,
                                    const struct afj_claim_wait *wait, struct afj_claim *claim)
{
    memset(claim, 0, sizeof *claim);
    claim->lock.descriptor = -1;
    if (!afj_store_root(store) || !afj_store_writable(store))
        return AFJ_CLAIM_ALONE;
    const enum afj_lock_answer answer = try_lock(store, key, &claim->lock);
    const struct afj_store_counters more = {.claims = 1,
                                            .lockless = answer == AFJ_LOCK_UNAVAILABLE};
    afj_store_count_claim(store, &more);
    if (answer != AFJ_LOCK_TAKEN)
        return answer == AFJ_LOCK_BUSY ? AFJ_CLAIM_BUSY : AFJ_CLAIM_ALONE;
    char *note = note_path(store, key);
    if (note && ((wait->pauses > 0 && ended_in_vain(note)) || !write_note(note))) {
        free(note);
        afj_lock_release(&claim->lock);
        return AFJ_CLAIM_ALONE;
    }
    claim->note = note;
    return AFJ_CLAIM_MINE;
}

void afj_claim_release(struct afj_claim *claim, bool stored)
{
    /* Before the lock goes: the next holder writes its own note. What fails costs a message or some
     * time of those who wait. Making a file shorter works on a full disk, too. */
    if (claim->note && stored)
        (void)unlink(claim->note);
    else if (claim->note)
        (void)!truncate(claim->note, VAIN_NOTE_BYTES);
    free(claim->note);
    claim->note = NULL;
    afj_lock_release(&claim->lock);
}

/* Say who makes what this process waits for. */
static void tell(const struct afj_store *store, const struct afj_digest *key, uint64_t waited_s)
{
    char hex[33];
    char *path = note_path(store, key);
    void *text = NULL;
    size_t length = 0;
    if (path && afj_path_read(path, false, MOST_NOTE_BYTES, &text, &length) != 0)
        text = NULL;
    afj_digest_hex(key, hex);
    AFJ_WARN_ONCE("waiting for %s, which compiles kernel %s, for %" PRIu64 " s so far",
                  text && length > VAIN_NOTE_BYTES ? (const char *)text : "another process", hex,
                  waited_s);
    free(text);
    free(path);
}

/* Half of a pause is spread by process, turn and time, so that waiters do not come in step. */
static void sleep_a_turn(uint32_t turn, uint64_t now)
{
    const uint64_t longer = FIRST_PAUSE_MS + (uint64_t)turn;
    const uint64_t ms = longer < LONGEST_PAUSE_MS ? longer : LONGEST_PAUSE_MS;
    const uint64_t spread =
        ((uint64_t)getpid() * 2654435761u + turn * UINT64_C(40503) + now / 1024) % 1024;
    const struct timespec pause = {0, (long)(ms * 500000 + ms * 500000 * spread / 1024)};
    (void)nanosleep(&pause, NULL); /* a signal only makes it shorter */
}

bool afj_claim_pause(struct afj_store *store, const struct afj_digest *key,
                     struct afj_claim_wait *wait)
{
    const uint64_t now = now_ns();
    struct afj_store_counters more = {.waits = wait->pauses == 0};
    if (wait->pauses == 0) {
        wait->began_ns = now;
        wait->limit_s =
            afj_env_number(AFJ_ENV_JIT_LOCK_TIMEOUT, 0, LONGEST_TIMEOUT_S, DEFAULT_TIMEOUT_S);
    }
    const uint64_t waited_s = (now - wait->began_ns) / NS_A_SECOND;
    const bool patient = waited_s < wait->limit_s;
    if (patient) {
        if (waited_s >= TELL_AFTER_S && !wait->told) {
            wait->told = true;
            tell(store, key, waited_s);
        }
        sleep_a_turn(wait->pauses, now);
        ++wait->pauses;
    } else {
        more.lock_timeouts = 1;
        AFJ_WARN_ONCE("waited %" PRIu64
                      " s for another process to compile a kernel; it is compiled "
                      "here now (AFDEP_JIT_LOCK_TIMEOUT)",
                      waited_s);
    }
    const uint64_t waited_us = (now_ns() - wait->began_ns) / 1000;
    more.wait_us = waited_us - wait->counted_us;
    wait->counted_us = waited_us;
    afj_store_count_claim(store, &more);
    return patient;
}
