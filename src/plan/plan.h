/* plan.h: what a rank does: its duties, its kernels, and every number in them. Pure arithmetic. */
#ifndef AFJ_PLAN_PLAN_H
#define AFJ_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/config.h"
#include "plan/regions.h"

/* The batch sizes a kernel is made for. Few: a row over several warps, no barrier, a small grid.
 * Many: a warp a row, large CTAs. Both speak the same protocol; each rank chooses for itself. */
enum afj_shape { AFJ_SHAPE_FEW, AFJ_SHAPE_MANY };

/* The entries, one kernel template each. Rearm goes before a dispatch whose last collect left its
 * rows in place. Receive is one kernel, or, where counts come first or rows
 * are grouped by expert, several: counts, arrange, place. */
enum afj_entry {
    AFJ_ENTRY_REARM,
    AFJ_ENTRY_DISPATCH,
    AFJ_ENTRY_COLLECT,
    AFJ_ENTRY_RECEIVE,
    AFJ_ENTRY_COUNTS,
    AFJ_ENTRY_ARRANGE,
    AFJ_ENTRY_PLACE,
    AFJ_ENTRY_REPLY,
    AFJ_ENTRY_SCALE
};

/* Environment controls that change what a plan is. */
struct afj_controls {
    const char *shape; /* "few", "many" or "": both, by bucket */
    bool strict_fences;
    bool check_routes;
};

struct afj_plan_kernel {
    enum afj_entry entry;
    enum afj_shape shape;
    const char *name; /* template and function, "receive_few"; static */
    uint32_t duty;    /* afdep_duty */
    uint32_t warps;   /* a CTA */
    uint32_t max_ctas;
    uint32_t row_vecs;               /* 16-byte vectors of the rows that it moves */
    uint32_t warps_per_row;          /* warps that share a row */
    uint32_t share_vecs;             /* vectors of a share */
    uint32_t pieces;                 /* pieces of a share, moved one after another */
    uint32_t piece_vecs;             /* vectors of a piece, held in registers */
    uint32_t bucket_from, bucket_to; /* buckets it is chosen for; 0 to 0: none */
    size_t arguments_bytes; /* its argument struct, table of peers cut to this deployment */
};

struct afj_plan {
    struct afj_config config;
    uint32_t role; /* afdep_role */
    bool strict_fences, check_routes;
    struct afj_regions regions;
    struct afj_state_layout state;
    uint32_t kernel_count;
    struct afj_plan_kernel kernels[AFDEP_MAX_KERNELS];
};

/* The plan of every rank of a role. */
afdep_status afj_plan_make(const struct afj_config *config, uint32_t role,
                           const struct afj_controls *controls, struct afj_plan *plan);

/* The kernel for a bucket. Never NULL for an entry of the plan and a bucket in range. */
const struct afj_plan_kernel *afj_plan_kernel_for(const struct afj_plan *plan, enum afj_entry entry,
                                                  uint32_t bucket);

/* CTAs a kernel of this device kind takes at most when nothing else is asked for. */
uint32_t afj_plan_default_ctas(uint32_t device);

/* Most CTAs that any kernel of a plan takes at a bucket of the capacity. */
uint32_t afj_plan_most_ctas(const struct afj_plan *plan);

/* Grid and dynamic shared memory of a launch. */
uint32_t afj_plan_ctas(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                       uint32_t bucket);
uint32_t afj_plan_shared_bytes(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                               uint32_t bucket);

/* "few", "many". */
const char *afj_plan_shape_name(enum afj_shape shape);
/* "bf16", "fp8", "fp8-ue8m0", "opaque". */
const char *afj_plan_dtype_name(uint32_t dtype);
/* "source", "expert". */
const char *afj_plan_duty_name(uint32_t duty);

#endif
