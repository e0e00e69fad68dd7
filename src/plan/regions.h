/* regions.h: how rows, windows and a rank's private state are laid out: sizes and offsets only. */
#ifndef AFJ_PLAN_REGIONS_H
#define AFJ_PLAN_REGIONS_H

#include <stdint.h>

#include "plan/config.h"
#include "wire/words.h"

/* Offsets are within a window, which holds one part a lane:
 *   attention rank: reply slots [F][capacity], then ack words [F];
 *   FFN rank:       row slots [A][capacity], then route words [A][groups of capacity].
 * Whole windows begin filled with the empty word, which is also ack -1. */
struct afj_regions {
    uint64_t row_bytes;   /* a row slot on an FFN rank: row, ids, weights, rounded to 16 */
    uint64_t meta_at;     /* in a row slot: ids [top_k], then weights [top_k] */
    uint64_t reply_bytes; /* a reply slot on an attention rank */
    uint64_t attention_lane_bytes, ffn_lane_bytes;
    uint64_t ack_offset;   /* in an attention rank's lane */
    uint64_t route_offset; /* in an FFN rank's lane */
    uint32_t groups;       /* route words of one source: groups of the capacity */
};

struct afj_regions afj_regions_of(const struct afj_config *config);

/* Route words for `tokens` tokens of one source. */
uint32_t afj_regions_groups(uint32_t tokens);

uint64_t afj_regions_window_bytes(const struct afj_regions *regions,
                                  const struct afj_config *config, uint32_t role);

/* Private device memory of one lane: offsets from its start; all but `total` begin as zero. */
struct afj_state_layout {
    uint64_t counter;                                                 /* both roles: uint32_t */
    uint64_t issued, sets;                                            /* attention rank */
    uint64_t count, total, rows_per_source, rows_per_expert, origins; /* FFN rank */
    uint64_t bytes;
};
struct afj_state_layout afj_state_layout_of(const struct afj_config *config, uint32_t role);

#endif
