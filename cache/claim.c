/* claim.c: who makes a missing object: one process at a time, for as long as it lives. */
#include "cache/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"

enum {
    FIRST_PAUSE_MS = 1,
    LONGEST_PAUSE_MS = 20,
    TELL_AFTER_S = 5,
    DEFAULT_TIMEOUT_S = 600,
    LONGEST_TIMEOUT_S = 86400,
    MOST_NOTE_BYTES = 512
};
#define NS_A_SECOND UINT64_C(1000000000)

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

/* <root>/tmp/<key>.building. */
static char *note_path(struct afj_store *store, const struct afj_digest *key)
{
    struct afj_text path = {0};
    char hex[33];
    afj_digest_hex(key, hex);
    afj_text_printf(&path, "%s/tmp/%s.building", afj_store_root(store), hex);
    if (path.failed)
        afj_text_finish(&path);
    return path.data;
}

/* For people who wait; nothing depends on it. The holder has the lock, so nobody else writes it. */
static void write_note(const char *path)
{
    char host[128] = "", text[MOST_NOTE_BYTES];
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(text, sizeof text, "process %ld on %s", (long)getpid(), host[0] ? host : "this host");
    (void)afj_path_write_all(file, text, strlen(text));
    close(file);
}

enum afj_claim_answer afj_claim_try(struct afj_store *store, const struct afj_digest *key,
                                    struct afj_claim *claim)
{
    struct afj_text path = {0};
    memset(claim, 0, sizeof *claim);
    claim->lock.descriptor = -1;
    if (!afj_store_root(store) || !afj_store_writable(store))
        return AFJ_CLAIM_ALONE;
    afj_text_printf(&path, "%s/lock", afj_store_root(store));
    enum afj_lock_answer answer = AFJ_LOCK_UNAVAILABLE;
    errno = ENOMEM;
    if (!path.failed)
        answer = afj_lock_try(path.data, key, &claim->lock);
    if (answer == AFJ_LOCK_UNAVAILABLE)
        AFJ_WARN_ONCE("the kernel cache: %s takes no locks (%s); several processes may compile the "
                      "same kernel",
                      path.failed ? "the cache" : path.data, strerror(errno));
    afj_text_finish(&path);
    afj_store_count_claim(store, answer == AFJ_LOCK_UNAVAILABLE);
    if (answer == AFJ_LOCK_BUSY)
        return AFJ_CLAIM_BUSY;
    if (answer == AFJ_LOCK_UNAVAILABLE)
        return AFJ_CLAIM_ALONE;
    claim->note = note_path(store, key);
    if (claim->note)
        write_note(claim->note);
    return AFJ_CLAIM_MINE;
}

void afj_claim_release(struct afj_claim *claim)
{
    if (claim->note)
        (void)unlink(claim->note); /* before the lock goes: the next holder writes its own */
    free(claim->note);
    claim->note = NULL;
    afj_lock_release(&claim->lock);
}

/* Say once who makes what this process waits for. */
static void tell(struct afj_store *store, const struct afj_digest *key)
{
    char *path = note_path(store, key);
    void *text = NULL;
    size_t length = 0;
    if (path && afj_path_read(path, false, MOST_NOTE_BYTES, &text, &length) != 0)
        text = NULL;
    afj_log(AFJ_LOG_WARN, "waiting for %s, which compiles a kernel that is needed here, too",
            text ? (const char *)text : "another process");
    free(text);
    free(path);
}

bool afj_claim_pause(struct afj_store *store, const struct afj_digest *key,
                     struct afj_claim_wait *wait)
{
    const uint64_t limit_s =
        afj_env_number(AFJ_ENV_JIT_LOCK_TIMEOUT, 0, LONGEST_TIMEOUT_S, DEFAULT_TIMEOUT_S);
    const uint64_t now = now_ns();
    if (wait->pauses == 0)
        wait->began_ns = now;
    const uint64_t waited = now - wait->began_ns;
    if (waited >= limit_s * NS_A_SECOND) {
        afj_log(AFJ_LOG_WARN,
                "waited %" PRIu64 " s for another process to compile a kernel, and "
                "compile it here now",
                waited / NS_A_SECOND);
        return false;
    }
    if (waited >= TELL_AFTER_S * NS_A_SECOND && !wait->told) {
        wait->told = true;
        tell(store, key);
    }
    /* Half of the pause is spread by process and by turn, so that waiters do not come in step. */
    uint64_t ms = FIRST_PAUSE_MS + wait->pauses;
    if (ms > LONGEST_PAUSE_MS)
        ms = LONGEST_PAUSE_MS;
    const uint64_t spread = ((uint64_t)getpid() * 2654435761u + wait->pauses * 40503u) % 1024;
    const uint64_t ns = ms * 500000 + ms * 500000 * spread / 1024;
    const struct timespec pause = {0, (long)ns};
    (void)nanosleep(&pause, NULL);
    ++wait->pauses;
    return true;
}
