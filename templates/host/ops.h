/* ops.h: what the simulator gives a kernel image that it loaded. Shared by templates/host and
 * src/device/sim. A kernel is extern "C" void <entry>(const void *arguments), run once a warp on a
 * fibre of its own; loads of memory are plain reads. */
#ifndef AFJ_HOST_OPS_H
#define AFJ_HOST_OPS_H

#include <stdint.h>

struct afj_sim_ops {
    /* Where the running warp is: its CTA, the grid's CTAs, its place in the CTA, warps a CTA. */
    uint32_t (*cta)(void);
    uint32_t (*ctas)(void);
    uint32_t (*warp)(void);
    uint32_t (*warps)(void);
    /* Store `count` consecutive 32-bit words, relaxed, at system scope. Words of this rank's own
     * memory land at once; words of another rank's memory travel: each alone, later, in any order.
     */
    void (*store)(uint32_t *address, const uint32_t *words, uint32_t count);
    /* Fence at system scope: what this warp stored before is delivered before what it stores after.
     */
    void (*fence)(void);
    /* A poll found nothing new: let others run. */
    void (*pause)(void);
    /* A place where another warp may run instead. */
    void (*point)(void);
    /* CTA barrier; returns whether any warp of the CTA voted non-zero. */
    uint32_t (*barrier)(uint32_t vote);
    /* The CTA's shared memory, as long as the launch asked for, 16-byte aligned. */
    void *(*shared)(void);
    /* A collective of a warp whose lanes are fibres: wait until every lane of the warp has called
     * it with the same `name`, which lives as long as the image, then get what each brought.
     * values[lanes of a warp]. */
    void (*gather)(const char *name, uint32_t value, uint32_t *values);
    /* Simulated time in nanoseconds. Runs ahead when nothing but time can help. */
    uint64_t (*clock_ns)(void);
};

/* An image whose warps are 32 fibres exports their number; without it a warp is one fibre. With
 * lanes, `warp` and `warps` count lanes. */
#define AFJ_SIM_LANES "afj_sim_lanes" /* const uint64_t afj_sim_lanes */
#define AFJ_SIM_MOST_LANES 32

/* Every image exports these two. The second is the size of the entry's argument struct. */
#define AFJ_SIM_BIND "afj_sim_bind" /* void afj_sim_bind(const struct afj_sim_ops *) */
#define AFJ_SIM_ARGUMENTS "afj_sim_arguments_bytes" /* const uint64_t afj_sim_arguments_bytes */

#endif
