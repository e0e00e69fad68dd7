// rearm.cuh: clear the reply slots whose rows collect left in place, in a kernel of its own before
// dispatch: the boundary puts it before the route words that let a peer reply again
// (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/piece.cuh"

AFJ_ENTRY(rearm, afj_rearm_args)
{
    const uint32_t dead = load_dead(args.call);
    const uint32_t rows = load_early(at<uint32_t>(args.viewed));
    if (dead)
        return;
    const uint64_t vecs = (uint64_t)rows * kRowVecs;
    const uint64_t step = (uint64_t)warps_in_grid() * kLanes;
    for (uint64_t i = (uint64_t)warp_in_grid() * kLanes + (uint32_t)lane(); i < vecs; i += step)
        store_relaxed(at<Vec>(args.inbox) + i, vec_of(AFJ_EMPTY_WORD));
}
