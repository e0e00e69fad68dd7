/* regions.c: how rows, windows and a rank's private state are laid out: sizes and offsets only. */
#include "plan/regions.h"

#include <stdbool.h>
#include <string.h>

/* Parts of a window and of a lane's state begin on lines of their own. */
enum { ROW_ALIGNMENT = 16, LINE_BYTES = 128, LANE_ALIGNMENT = 256, BF16_BYTES = 2 };

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint32_t afj_regions_groups(uint32_t tokens) { return AFJ_GROUPS(tokens); }

/* Give `bytes` the next lines of a layout. */
static uint64_t place(uint64_t *end, uint64_t bytes)
{
    uint64_t at = *end;
    *end = round_up(at + bytes, LINE_BYTES);
    return at;
}

struct afj_regions afj_regions_of(const struct afj_config *config)
{
    const afdep_config *c = &config->fields;
    const uint64_t word = sizeof(uint32_t);
    struct afj_regions r;
    memset(&r, 0, sizeof r);
    r.groups = afj_regions_groups(c->capacity);
    r.row_bytes = afj_config_payload_bytes(config);
    r.reply_bytes = (uint64_t)c->hidden * BF16_BYTES;
    r.head_words = 2 * c->top_k;
    r.scale_words = afj_config_scale_words(config);
    if (c->dtype == AFDEP_DTYPE_FP8_UE8M0)
        r.scale_escapes = AFJ_SCALE_ESCAPES;
    if (c->dtype == AFDEP_DTYPE_OPAQUE)
        r.row_escapes =
            (uint32_t)((r.row_bytes + AFJ_BLOCK_BYTES - 1) / AFJ_BLOCK_BYTES) * AFJ_BLOCK_ESCAPES;
    r.meta_bytes = round_up((r.head_words + r.scale_words + r.scale_escapes + r.row_escapes) * word,
                            ROW_ALIGNMENT);

    const uint64_t rows = (uint64_t)c->attention_ranks * c->capacity;
    uint64_t end = 0;
    place(&end, rows * r.row_bytes);
    r.meta_offset = place(&end, rows * r.meta_bytes);
    r.route_offset = place(&end, (uint64_t)c->attention_ranks * r.groups * word);
    r.ffn_lane_bytes = round_up(end, LANE_ALIGNMENT);

    const uint64_t replies = (uint64_t)c->ffn_ranks * c->capacity;
    end = 0;
    place(&end, replies * r.reply_bytes);
    r.reply_weights_offset = place(&end, c->reply_weights ? replies * c->top_k * word : 0);
    r.ack_offset = place(&end, c->ffn_ranks * word);
    r.attention_lane_bytes = round_up(end, LANE_ALIGNMENT);
    return r;
}

uint64_t afj_regions_lane_at(const struct afj_regions *regions, const struct afj_config *config,
                             uint32_t roles, uint32_t role, uint32_t lane)
{
    if (role == AFDEP_ROLE_FFN)
        return lane * regions->ffn_lane_bytes;
    const uint64_t before =
        roles & AFDEP_ROLE_FFN ? config->fields.lanes * regions->ffn_lane_bytes : 0;
    return before + lane * regions->attention_lane_bytes;
}

uint64_t afj_regions_window_bytes(const struct afj_regions *regions,
                                  const struct afj_config *config, uint32_t roles)
{
    const uint32_t lanes = config->fields.lanes;
    return (roles & AFDEP_ROLE_FFN ? lanes * regions->ffn_lane_bytes : 0) +
           (roles & AFDEP_ROLE_ATTENTION ? lanes * regions->attention_lane_bytes : 0);
}

struct afj_state_layout afj_state_layout_of(const struct afj_config *config, uint32_t roles)
{
    const afdep_config *c = &config->fields;
    const uint64_t word = sizeof(uint32_t);
    struct afj_state_layout s;
    memset(&s, 0, sizeof s);
    uint64_t end = 0;
    if (roles & AFDEP_ROLE_ATTENTION) {
        s.source.counter = place(&end, word);
        s.source.issued = place(&end, 2 * word);
        s.source.viewed = place(&end, word);
        s.source.faults = place(&end, AFJ_FAULT_WORDS * word);
        s.source.sets = place(&end, (uint64_t)c->capacity * sizeof(uint64_t));
    }
    if (roles & AFDEP_ROLE_FFN) {
        const uint64_t rows = (uint64_t)c->attention_ranks * c->capacity;
        const bool grouped = c->receive == AFDEP_RECEIVE_EXPERT_MAJOR;
        s.expert.counter = place(&end, word);
        s.expert.count = place(&end, word);
        s.expert.total = place(&end, word);
        s.expert.ended = place(&end, word);
        s.expert.rows_per_source = place(&end, c->attention_ranks * word);
        s.expert.rows_per_expert = place(&end, config->most_local_experts * word);
        s.expert.expert_offsets =
            place(&end, grouped ? (config->most_local_experts + 1) * word : 0);
        s.expert.origins = place(&end, rows * 2 * word);
        s.expert.choices = place(&end, grouped ? rows * c->top_k * word : 0);
        s.expert.hits = place(&end, grouped ? rows * c->top_k * word : 0);
        s.expert.hit_weights = place(&end, grouped ? rows * c->top_k * word : 0);
    }
    s.bytes = round_up(end, LANE_ALIGNMENT);
    return s;
}

uint64_t afj_regions_receive_rows(const struct afj_config *config, uint32_t local_experts,
                                  uint32_t bucket)
{
    const afdep_config *c = &config->fields;
    const uint64_t rows = (uint64_t)c->attention_ranks * bucket;
    if (c->receive != AFDEP_RECEIVE_EXPERT_MAJOR)
        return rows;
    return rows * c->top_k + (uint64_t)local_experts * (c->alignment - 1);
}

uint64_t afj_regions_receipt_bytes(const struct afj_config *config, uint32_t tokens)
{
    return AFJ_RECEIPT_HEADER_BYTES +
           (uint64_t)tokens * 2 * config->fields.top_k * sizeof(uint32_t);
}
