/* machine.h: the whole state of the simulator: devices, streams, kernels under way, words, clock.
 * Private to this folder. Everything here is guarded by the lock that afj_sim_enter takes. */
#ifndef AFJ_SIM_MACHINE_H
#define AFJ_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "device/sim/fibre.h"
#include "device/sim/link.h"
#include "device/sim/memory.h"
#include "device/sim/random.h"
#include "device/sim/sim.h"

struct afj_sim;
struct afj_sim_grid;
struct afj_sim_node;
struct afj_sim_stream;

/* Something that the scheduler can choose to run: a warp, or a grid with CTAs left to start. */
struct afj_sim_actor {
    bool starts_ctas; /* it is the first member of an afj_sim_grid, else of an afj_sim_warp */
    bool listed;
    uint32_t place;  /* in its device's `actors` */
    uint32_t pauses; /* in a row since `change` */
    uint64_t change; /* of its device, when it last paused */
};

/* A device. */
struct afj_sim_device {
    struct afdep_device base; /* first, so that an afdep_device is one of these */
    uint32_t opens;
    uint32_t allocations; /* made since it was opened */
    bool peers[AFJ_SIM_DEVICES];
    struct afj_sim_stream *streams; /* in order of creation; the first is the default stream */
    /* Actors that may run. Those from `awake` on paused twice since anything they can see changed,
     * and are not chosen until it does. */
    struct afj_sim_actor **actors;
    uint32_t actor_count, awake, actor_capacity;
    uint64_t change; /* counts stores, arrivals and ends on this device */
};

struct afj_sim {
    struct afj_sim_policy policy; /* zeros replaced by what the seed chose */
    char hold_entry[64];
    bool configured;
    struct afj_random random;
    uint64_t trace;
    uint64_t clock_ns;
    struct afj_sim_counters counters;
    char first_violation[256];
    char divergence[256]; /* the first of the present run; "" if there was none */

    struct afj_memory memory;
    struct afj_links links;
    struct afj_fibre_pool fibres;
    struct afj_sim_device *devices[AFJ_SIM_DEVICES]; /* NULL where not open */
    uint32_t awake;                                  /* sum over devices */
    uint32_t grids;                                  /* kernels begun; names them in traces */
    struct afj_sim_stream *waiting; /* streams whose first node waits for words or for the clock */
    struct afj_sim_grid *held;      /* grids that may not start all their CTAs yet */

    uint64_t appends; /* nodes put into streams: tells a waiting thread that there is work */
    bool failed;      /* host memory ran out in the middle of a run */
    bool starved;     /* a CTA could not start for lack of stacks */

    /* What the scheduler knows about getting nowhere; scheduler.c explains. */
    bool confirmed, clock_was_read;
    uint32_t blind_rounds;
    uint64_t jump_ns, waited_ns, milestone_step;
};

/* Take the simulator's lock and get the one simulator of the process. */
struct afj_sim *afj_sim_enter(void);
void afj_sim_leave(struct afj_sim *sim);

/* Let threads that wait for the lock have it for a moment; does nothing if none does. */
void afj_sim_let_others_in(struct afj_sim *sim);

/* If the process drives the simulator from several threads: wait up to 100 ms of real time, the
 * lock released, for another to append work. Whether one did. */
bool afj_sim_await_others(struct afj_sim *sim);

/* Note that work was appended. */
void afj_sim_appended(struct afj_sim *sim);

/* Fold a decision into the trace. */
void afj_sim_trace(struct afj_sim *sim, uint64_t what, uint64_t a, uint64_t b, uint64_t c);

/* Count a broken rule; the first one's sentence is kept and logged. `kind` is one of the counters.
 */
__attribute__((format(printf, 3, 4))) void afj_sim_violation(struct afj_sim *sim, uint64_t *kind,
                                                             const char *format, ...);

#endif
