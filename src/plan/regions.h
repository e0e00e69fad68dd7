/* regions.h: how rows, windows and a rank's private state are laid out: sizes and offsets only. */
#ifndef AFJ_PLAN_REGIONS_H
#define AFJ_PLAN_REGIONS_H

#include <stdint.h>

#include "plan/config.h"
#include "wire/words.h"

/* A window holds a part a lane for each role of its rank, those of the FFN role first:
 *   FFN:       row slots [A][capacity], beside each its meta words, then route words [A][groups];
 *   attention: reply slots [F][capacity], beside each its weights if replies carry them, then ack
 *              words [F].
 * "Beside" is in a region of their own, so that rows lie without gaps. Whole windows begin filled
 * with the empty word, which is also ack -1. */
struct afj_regions {
    uint64_t row_bytes;     /* a row slot: the dispatched row */
    uint64_t reply_bytes;   /* a reply slot: a row of BF16 */
    uint32_t head_words;    /* meta of a row: ids [top_k], weights [top_k], */
    uint32_t scale_words;   /* scales, */
    uint32_t scale_escapes; /* which packed scales travel as 0, */
    uint32_t row_escapes;   /* and which words of an opaque row do: 5 words for 32 vectors */
    uint64_t meta_bytes;    /* all of them, rounded to 16 */
    /* Lanes, and offsets in them. */
    uint64_t ffn_lane_bytes, meta_offset, route_offset;
    uint64_t attention_lane_bytes, reply_weights_offset, ack_offset;
    uint32_t groups; /* route words of one source: groups of the capacity */
};

struct afj_regions afj_regions_of(const struct afj_config *config);

/* Route words for `tokens` tokens of one source. */
uint32_t afj_regions_groups(uint32_t tokens);

/* Bytes of a window of a rank of these roles, all lanes, and where a role's part of a lane begins.
 */
uint64_t afj_regions_window_bytes(const struct afj_regions *regions,
                                  const struct afj_config *config, uint32_t roles);
uint64_t afj_regions_lane_at(const struct afj_regions *regions, const struct afj_config *config,
                             uint32_t roles, uint32_t role, uint32_t lane);

/* Private device memory of one lane: offsets from its start; all but `total` begin as zero. */
struct afj_state_layout {
    struct {
        uint64_t counter; /* uint32_t */
        uint64_t issued;  /* uint32_t [2]: exchange number and tokens of the last dispatch */
        uint64_t viewed;  /* uint32_t: rows that collect left in place */
        uint64_t faults;  /* uint32_t [5], as args.h says */
        uint64_t sets;
    } source;
    struct {
        uint64_t counter, count, total, ended; /* uint32_t each */
        uint64_t rows_per_source, rows_per_expert, expert_offsets, origins, choices, hits,
            hit_weights;
    } expert;
    uint64_t bytes;
};
struct afj_state_layout afj_state_layout_of(const struct afj_config *config, uint32_t roles);

/* Rows that receive may write for a bucket, on a rank with so many experts. */
uint64_t afj_regions_receive_rows(const struct afj_config *config, uint32_t local_experts,
                                  uint32_t bucket);

/* A receipt: its header, then ids and weights of each token as they travel. */
uint64_t afj_regions_receipt_bytes(const struct afj_config *config, uint32_t tokens);

#endif
