/* claim.h: who makes a missing object: one process at a time, for as long as it lives. */
#ifndef AFJ_CACHE_CLAIM_H
#define AFJ_CACHE_CLAIM_H

#include "cache/lock.h"
#include "cache/store.h"

/* The right to make the object of one key, and the file that tells waiters who has it. */
struct afj_claim {
    struct afj_lock lock;
    char *note; /* path, owned; NULL: none */
};

/* One wait of a thread for another process, from zero. */
struct afj_claim_wait {
    uint64_t began_ns, limit_s;
    uint64_t counted_us; /* what the store's counters have of it */
    uint32_t pauses;
    bool told; /* who is waited for */
};

enum afj_claim_answer {
    AFJ_CLAIM_MINE, /* make it, put it, release */
    AFJ_CLAIM_BUSY, /* somebody else is making it */
    AFJ_CLAIM_ALONE /* make it, nobody is kept from doing the same */
};

/* Try to have the claim; does not block. With AFJ_CLAIM_MINE look for the object once more: the
 * last holder may just have put it. AFJ_CLAIM_ALONE where a claim would be of no use: no lock can
 * be had, nothing can be put, or the holder that was waited for ended without an object, as the
 * next would. Every claim is released, whatever the answer. */
enum afj_claim_answer afj_claim_try(struct afj_store *store, const struct afj_digest *key,
                                    const struct afj_claim_wait *wait, struct afj_claim *claim);

/* Let go. `stored`: others find the object now. */
void afj_claim_release(struct afj_claim *claim, bool stored);

/* Sleep 1 to 20 ms, a little more each time and never as long as another process does. False once
 * AFDEP_JIT_LOCK_TIMEOUT has passed: then make the object without a claim. After 5 s the log says
 * who is waited for, once a process. */
bool afj_claim_pause(struct afj_store *store, const struct afj_digest *key,
                     struct afj_claim_wait *wait);

#endif
