/* grid.h: a kernel under way: its CTAs, its warps, and what its image calls. */
#ifndef AFJ_SIM_GRID_H
#define AFJ_SIM_GRID_H

#include "device/sim/machine.h"
#include "host/ops.h"

/* What an image is bound to. */
extern const struct afj_sim_ops afj_grid_ops;

/* Begin the launch at the head of a stream. Its end removes the node and begins the next one.
 * False: no memory, and nothing began. */
bool afj_grid_begin(struct afj_sim *sim, struct afj_sim_stream *stream, struct afj_sim_node *node);

/* Let a chosen actor of the device go on: a warp until it yields, a grid until one CTA started. */
void afj_grid_run(struct afj_sim *sim, struct afj_sim_device *device, struct afj_sim_actor *actor);

/* Let one of the grids that the policy holds back start the rest of its CTAs. */
void afj_grid_release_held(struct afj_sim *sim);

/* Forget a grid in the middle. The words that it stored travel on. */
void afj_grid_abandon(struct afj_sim *sim, struct afj_sim_grid *grid);

/* For the sentence about a kernel that does not end. */
struct afj_sim_grid_state {
    const char *entry;
    int32_t device;
    uint32_t warps, at_barrier;
};
struct afj_sim_grid_state afj_grid_state(const struct afj_sim_grid *grid);

#endif
