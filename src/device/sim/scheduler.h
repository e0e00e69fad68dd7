/* scheduler.h: who runs next, which words arrive, and when the clock runs ahead. */
#ifndef AFJ_SIM_SCHEDULER_H
#define AFJ_SIM_SCHEDULER_H

#include "device/sim/machine.h"

/* Let an actor be chosen from now on, or no more. Adding may fail for memory: sim->failed. */
void afj_scheduler_add(struct afj_sim *sim, struct afj_sim_device *device,
                       struct afj_sim_actor *actor);
void afj_scheduler_remove(struct afj_sim *sim, struct afj_sim_device *device,
                          struct afj_sim_actor *actor);

/* Something changed that the device's warps may be polling for. */
void afj_scheduler_wake(struct afj_sim *sim, struct afj_sim_device *device);

/* The same for all devices. */
void afj_scheduler_wake_all(struct afj_sim *sim);

/* An actor was run and found nothing to do. */
void afj_scheduler_paused(struct afj_sim *sim, struct afj_sim_device *device,
                          struct afj_sim_actor *actor);

/* Something ended or began for good: the run is getting somewhere. */
void afj_scheduler_milestone(struct afj_sim *sim);

/* Run all devices until `stream`, or every stream of `device` if it is NULL, is empty and what it
 * stored has arrived.
 * AFDEP_ERROR_INTERNAL: a kernel does not end, whatever the clock says, or lanes of a warp did not
 * meet in a collective; AFDEP_ERROR_MEMORY. */
afdep_status afj_scheduler_run(struct afj_sim *sim, struct afj_sim_device *device,
                               struct afj_sim_stream *stream);

#endif
