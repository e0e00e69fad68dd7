/* sim.h: what tests ask of the simulated devices beyond device.h: who runs next, how late words
 * are, what went wrong, and whether two runs were the same.
 *
 * There is one simulator a process. It runs while some thread synchronises a stream or a device.
 * A run depends on the policy and on the order of calls alone, so one thread that makes the same
 * calls gets the same run; with several threads their timing decides, too. */
#ifndef AFJ_SIM_SIM_H
#define AFJ_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

/* A word at the moment it arrives at its device, before it is written. */
struct afj_sim_arrival {
    uint32_t from, to; /* device ordinals */
    uint32_t *address;
    uint32_t before, value;
};

/* Who runs next and how late words are. */
struct afj_sim_policy {
    uint64_t seed;
    /* Each step delivers words with chance deliver_weight / (deliver_weight + run_weight), else
     * lets one warp go on. Both 0: the seed chooses. */
    uint32_t run_weight, deliver_weight;
    uint32_t deliver_most;   /* words a step delivers at most; 0: the seed chooses */
    uint32_t point_permille; /* chance in 1000 that a warp stops at a point; 0: the seed chooses */
    const char *hold_entry;  /* kernels of this name start one CTA; the others wait until nothing
                                else can run. NULL: none. Copied. */
    int32_t hold_device;     /* kernels of this device wait until nothing else can run; -1: none */
    /* Called for each word that arrives, under the simulator's lock; makes no call of device.h or
     * of this file. NULL: none. */
    void (*arrival)(const struct afj_sim_arrival *arrival, void *user);
    void *user;
};

struct afj_sim_counters {
    uint64_t steps;         /* decisions of the scheduler */
    uint64_t switches;      /* times a warp went on */
    uint64_t stored;        /* words sent to other devices */
    uint64_t delivered;     /* words that arrived */
    uint64_t dropped;       /* words whose memory had been freed when they arrived */
    uint64_t jumps;         /* times the clock ran ahead because nothing but time could help */
    uint64_t violations;    /* all of the following */
    uint64_t double_stores; /* two words on their way to one place */
    uint64_t races;         /* a device stored where a word was on its way to */
    uint64_t stray_stores;  /* to no allocation or not aligned; not performed */
    uint64_t unreachable;   /* to a device without peer access; not performed */
    uint64_t divergences;   /* lanes of a warp that did not meet in one collective */
    uint64_t stray_frees;   /* of what is no allocation */
};

/* The policy that a seed alone gives: the seed chooses everything, nothing is held. */
struct afj_sim_policy afj_sim_policy_of_seed(uint64_t seed);

/* Take a policy and begin anew, as afj_sim_reset does. Without it the policy is that of the seed
 * in AFDEP_SIM_SEED. */
void afj_sim_configure(const struct afj_sim_policy *policy);

/* Begin anew: drop all work and all words on their way, zero counters, clock and trace. Devices,
 * memory, streams, graphs and modules stay. */
void afj_sim_reset(void);

/* A running hash of every decision and every word that arrived since the last reset. */
uint64_t afj_sim_trace_digest(void);

struct afj_sim_counters afj_sim_counters(void);

/* The first violation since the last reset as a sentence; "" if there was none. */
void afj_sim_first_violation(char *sentence, size_t size);

/* Simulated time in nanoseconds since the last reset. */
uint64_t afj_sim_clock_ns(void);

#endif
