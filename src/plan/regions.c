/* regions.c: how rows, windows and a rank's private state are laid out: sizes and offsets only. */
#include "plan/regions.h"

#include <string.h>

/* Parts of a window and of a lane's state begin on lines of their own. */
enum { ROW_ALIGNMENT = 16, LINE_BYTES = 128, LANE_ALIGNMENT = 256 };

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint32_t afj_regions_groups(uint32_t tokens) { return AFJ_GROUPS(tokens); }

struct afj_regions afj_regions_of(const struct afj_config *config)
{
    const afdep_config *c = &config->fields;
    const uint64_t element_bytes = 2;
    struct afj_regions r;
    memset(&r, 0, sizeof r);
    r.groups = afj_regions_groups(c->capacity);
    r.meta_at = c->hidden * element_bytes;
    r.row_bytes = round_up(r.meta_at + 2ull * c->top_k * sizeof(uint32_t), ROW_ALIGNMENT);
    r.reply_bytes = round_up(c->hidden * element_bytes, ROW_ALIGNMENT);

    uint64_t replies = (uint64_t)c->ffn_ranks * c->capacity * r.reply_bytes;
    r.ack_offset = round_up(replies, LINE_BYTES);
    r.attention_lane_bytes =
        round_up(r.ack_offset + c->ffn_ranks * sizeof(uint32_t), LANE_ALIGNMENT);

    uint64_t rows = (uint64_t)c->attention_ranks * c->capacity * r.row_bytes;
    r.route_offset = round_up(rows, LINE_BYTES);
    r.ffn_lane_bytes =
        round_up(r.route_offset + (uint64_t)c->attention_ranks * r.groups * sizeof(uint32_t),
                 LANE_ALIGNMENT);
    return r;
}

uint64_t afj_regions_window_bytes(const struct afj_regions *regions,
                                  const struct afj_config *config, uint32_t role)
{
    uint64_t lane =
        role == AFDEP_ROLE_FFN ? regions->ffn_lane_bytes : regions->attention_lane_bytes;
    return lane * config->fields.lanes;
}

/* Give `bytes` the next lines of the layout. */
static uint64_t place(uint64_t *end, uint64_t bytes)
{
    uint64_t at = *end;
    *end = round_up(at + bytes, LINE_BYTES);
    return at;
}

struct afj_state_layout afj_state_layout_of(const struct afj_config *config, uint32_t role)
{
    const afdep_config *c = &config->fields;
    const uint64_t word = sizeof(uint32_t);
    struct afj_state_layout s;
    memset(&s, 0, sizeof s);
    uint64_t end = 0;
    s.counter = place(&end, word);
    if (role == AFDEP_ROLE_FFN) {
        s.count = place(&end, word);
        s.total = place(&end, word);
        s.rows_per_source = place(&end, c->attention_ranks * word);
        s.rows_per_expert = place(&end, afj_config_experts_per_rank(config) * word);
        s.origins = place(&end, (uint64_t)c->attention_ranks * c->capacity * 2 * word);
    } else {
        s.issued = place(&end, word);
        s.sets = place(&end, (uint64_t)c->capacity * sizeof(uint64_t));
    }
    s.bytes = round_up(end, LANE_ALIGNMENT);
    return s;
}
