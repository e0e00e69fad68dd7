/* side.c: what a rank has in a lane for each of its roles: which arrays, how large, on which
 * stream. */
#include "bench/side.h"

bool afj_side_is_ffn(const struct afj_harness *harness, uint32_t rank)
{
    return rank < harness->config.ffn_ranks;
}

uint32_t afj_harness_attention(const struct afj_harness *harness, uint32_t source)
{
    return harness->config.ffn_ranks - harness->config.both_ranks + source;
}

bool afj_side_is_attention(const struct afj_harness *harness, uint32_t rank)
{
    return rank >= afj_harness_attention(harness, 0);
}

struct afj_side *afj_side_of_source(const struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const uint32_t source = rank - afj_harness_attention(harness, 0);
    return &harness->sources[source * harness->config.lanes + lane];
}

struct afj_side *afj_side_of_expert(const struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    return &harness->experts[rank * harness->config.lanes + lane];
}

bool afj_side_is_grouped(const struct afj_harness *harness)
{
    return harness->config.receive == AFDEP_RECEIVE_EXPERT_MAJOR;
}

bool afj_side_is_view(const struct afj_harness *harness)
{
    return harness->config.receive == AFDEP_RECEIVE_VIEW;
}

uint32_t afj_side_alignment(const struct afj_harness *harness)
{
    return harness->config.alignment > 0 ? harness->config.alignment : 1;
}

uint32_t afj_side_local_experts(const struct afj_harness *harness, uint32_t rank)
{
    return harness->lanes[0].local_experts[rank];
}

/* The stream that a rank's calls on a lane go into. */
afdep_stream afj_side_stream(const struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const uint32_t lanes = harness->config.lanes;
    return harness->streams_apart && lane > 0 ? harness->more[rank * (lanes - 1) + lane - 1]
                                              : harness->streams[rank];
}

/* Rows that receive may write on an FFN rank for a bucket. */
size_t afj_side_rows_of_bucket(const struct afj_harness *harness, uint32_t rank, uint32_t bucket)
{
    const size_t rows = (size_t)harness->config.attention_ranks * bucket;
    if (!afj_side_is_grouped(harness))
        return rows;
    return rows * harness->config.top_k +
           (size_t)afj_side_local_experts(harness, rank) * (afj_side_alignment(harness) - 1);
}

/* Rows of an FFN rank's arrays: one more than can be used, so that writing too far shows. */
size_t afj_side_expert_rows(const struct afj_harness *harness, uint32_t rank)
{
    return afj_side_rows_of_bucket(harness, rank, harness->room) + 1;
}

size_t afj_side_bf16_bytes(const struct afj_harness *harness)
{
    return (size_t)harness->config.hidden * sizeof(uint16_t);
}

size_t afj_side_count_words(const struct afj_harness *harness, uint32_t rank)
{
    return 1 + harness->config.attention_ranks + afj_side_local_experts(harness, rank);
}

size_t afj_side_offset_words(const struct afj_harness *harness, uint32_t rank)
{
    return afj_side_is_grouped(harness) ? afj_side_local_experts(harness, rank) + 1 : 0;
}

/* Bytes of an array of an attention rank; 0: this config has none. */
static size_t source_bytes(const struct afj_harness *harness, enum afj_array array)
{
    const struct afj_inputs *inputs = &harness->lanes[0];
    const size_t rows = (size_t)harness->room + 1, choices = rows * harness->config.top_k;
    uint64_t receipt = 0;
    switch (array) {
    case AFJ_ARRAY_ROWS:
        return rows * inputs->row_bytes;
    case AFJ_ARRAY_SCALES:
        return rows * inputs->scale_words * sizeof(uint32_t);
    case AFJ_ARRAY_IDS:
        return choices * inputs->id_bits / 8;
    case AFJ_ARRAY_WEIGHTS:
        return choices * sizeof(float);
    case AFJ_ARRAY_OUT:
        return rows * afj_side_bf16_bytes(harness);
    case AFJ_ARRAY_OUT_WEIGHTS:
        return harness->config.reply_weights != 0 ? choices * sizeof(float) : 0;
    case AFJ_ARRAY_LIVE:
        return sizeof(uint32_t);
    case AFJ_ARRAY_RECEIPT:
        (void)afdep_receipt_bytes(&harness->config, harness->room, &receipt);
        return (size_t)receipt;
    default:
        return 0;
    }
}

/* The same of an FFN rank. */
static size_t expert_bytes(const struct afj_harness *harness, uint32_t rank, enum afj_array array)
{
    const struct afj_inputs *inputs = &harness->lanes[0];
    const size_t rows = afj_side_expert_rows(harness, rank);
    const size_t choices = afj_side_is_grouped(harness) ? rows : rows * harness->config.top_k;
    const size_t slots = (size_t)harness->config.attention_ranks * harness->config.capacity;
    const size_t counts = afj_side_count_words(harness, rank);
    switch (array) {
    case AFJ_ARRAY_ROWS:
        return afj_side_is_view(harness) ? 0 : rows * inputs->row_bytes;
    case AFJ_ARRAY_SCALES:
        return rows * inputs->scale_words * sizeof(uint32_t);
    case AFJ_ARRAY_IDS:
        return choices * inputs->id_bits / 8;
    case AFJ_ARRAY_WEIGHTS:
        return choices * sizeof(float);
    case AFJ_ARRAY_OUT:
        return rows * afj_side_bf16_bytes(harness);
    case AFJ_ARRAY_OUT_WEIGHTS: /* [A x room][top_k]: fewer than the rows of all choices */
        return afj_side_is_grouped(harness) && harness->config.reply_weights != 0
                   ? rows * sizeof(float)
                   : 0;
    case AFJ_ARRAY_ONES:
        return afj_side_is_grouped(harness) ? rows * sizeof(float) : 0;
    case AFJ_ARRAY_SOURCES:
    case AFJ_ARRAY_TOKENS:
        return rows * sizeof(uint32_t);
    case AFJ_ARRAY_SLOTS:
        return afj_side_is_view(harness) ? rows * sizeof(uint32_t) : 0;
    case AFJ_ARRAY_VIEW:
        return afj_side_is_view(harness) ? slots * inputs->row_bytes : 0;
    case AFJ_ARRAY_COUNTS:
        return (counts + afj_side_offset_words(harness, rank) +
                (harness->config.host_counts != 0 ? counts : 0)) *
               sizeof(uint32_t);
    default:
        return 0;
    }
}

/* Whether the exchange writes an array, so that it is poisoned before and fetched after. */
bool afj_side_is_output(bool ffn, enum afj_array array)
{
    if (!ffn)
        return array == AFJ_ARRAY_OUT || array == AFJ_ARRAY_OUT_WEIGHTS;
    return array != AFJ_ARRAY_OUT_WEIGHTS && array != AFJ_ARRAY_ONES;
}

uint32_t afj_side_list(const struct afj_harness *harness, uint32_t rank, uint32_t lane,
                       struct afj_side_ref sides[2])
{
    uint32_t count = 0;
    if (afj_side_is_ffn(harness, rank))
        sides[count++] = (struct afj_side_ref){afj_side_of_expert(harness, rank, lane), true};
    if (afj_side_is_attention(harness, rank))
        sides[count++] = (struct afj_side_ref){afj_side_of_source(harness, rank, lane), false};
    return count;
}

size_t afj_side_bytes(const struct afj_harness *harness, uint32_t rank, bool ffn,
                      enum afj_array array)
{
    return ffn ? expert_bytes(harness, rank, array) : source_bytes(harness, array);
}

bool afj_side_echoes(const struct afj_harness *harness)
{
    return harness->config.dtype == AFDEP_DTYPE_BF16 && !afj_side_is_view(harness);
}
