/* calls.c: the calls of an exchange, rank by rank, with what checks need between them. */
#include "bench/side.h"

static afdep_status dispatch_on(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    void *const *array = afj_side_of_source(harness, rank, lane)->array;
    const bool reuse = harness->receipt == AFJ_RECEIPT_REUSE;
    const afdep_dispatch_args args = {
        .struct_size = sizeof args,
        .lane = lane,
        .tokens = inputs->tokens[rank - afj_harness_attention(harness, 0)],
        .bucket = inputs->bucket,
        .rows = array[AFJ_ARRAY_ROWS],
        .ids = reuse ? NULL : array[AFJ_ARRAY_IDS],
        .weights = reuse ? NULL : array[AFJ_ARRAY_WEIGHTS],
        .scales = array[AFJ_ARRAY_SCALES],
        .live_tokens = harness->live_tokens ? array[AFJ_ARRAY_LIVE] : NULL,
        .receipt = harness->receipt == AFJ_RECEIPT_NONE ? NULL : array[AFJ_ARRAY_RECEIPT],
        .ctas = harness->ctas};
    return afj_harness_keep_failure(
        harness,
        afdep_dispatch(harness->buffers[rank], &args, afj_side_stream(harness, rank, lane)),
        "dispatch", rank);
}

/* Copy words to the counts of a side, behind those that are there. */
static afdep_status keep_words(struct afj_harness *harness, uint32_t rank,
                               const struct afj_side *side, size_t *at, const uint32_t *from,
                               size_t words, afdep_stream stream)
{
    uint32_t *to = (uint32_t *)side->array[AFJ_ARRAY_COUNTS] + *at;
    *at += words;
    return afj_harness_keep_failure(harness,
                                    afdep_device_copy(afdep_group_device(harness->group, rank), to,
                                                      from, words * sizeof *from, stream),
                                    "copy the counts", rank);
}

/* Copy the counts, and the rows of a view, while they are valid: behind receive, before reply. */
static afdep_status keep_counts(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_side *side = afj_side_of_expert(harness, rank, lane);
    const size_t experts = afj_side_local_experts(harness, rank);
    const afdep_stream stream = afj_side_stream(harness, rank, lane);
    size_t at = 0;
    TRY(keep_words(harness, rank, side, &at, side->where.total, 1, stream));
    TRY(keep_words(harness, rank, side, &at, side->where.rows_per_source,
                   harness->config.attention_ranks, stream));
    if (experts > 0)
        TRY(keep_words(harness, rank, side, &at, side->where.rows_per_expert, experts, stream));
    if (afj_side_is_grouped(harness))
        TRY(keep_words(harness, rank, side, &at, side->where.expert_offsets, experts + 1, stream));
    if (harness->config.host_counts != 0)
        TRY(keep_words(harness, rank, side, &at, side->where.host,
                       afj_side_count_words(harness, rank), stream));
    if (!afj_side_is_view(harness))
        return AFDEP_OK;
    afdep_view view = {.struct_size = sizeof view};
    TRY_ON(harness, rank, "find the view",
           afdep_buffer_view(harness->buffers[rank], lane, AFDEP_ROLE_FFN, &view));
    return afj_harness_keep_failure(harness,
                                    afdep_device_copy(afdep_group_device(harness->group, rank),
                                                      side->array[AFJ_ARRAY_VIEW], view.rows,
                                                      view.slots * view.row_bytes,
                                                      afj_side_stream(harness, rank, lane)),
                                    "copy the view", rank);
}

static afdep_status receive_on(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                               enum afj_expert expert)
{
    void *const *array = afj_side_of_expert(harness, rank, lane)->array;
    const afdep_receive_args args = {
        .struct_size = sizeof args,
        .lane = lane,
        .bucket = harness->lanes[lane].bucket,
        .ctas = harness->ctas,
        .rows = array[AFJ_ARRAY_ROWS],
        .ids = array[AFJ_ARRAY_IDS],
        .weights = array[AFJ_ARRAY_WEIGHTS],
        .sources = harness->without_origins ? NULL : array[AFJ_ARRAY_SOURCES],
        .tokens = harness->without_origins ? NULL : array[AFJ_ARRAY_TOKENS],
        .scales = array[AFJ_ARRAY_SCALES],
        .slots = array[AFJ_ARRAY_SLOTS]};
    if (harness->config.counts_first != 0)
        TRY_ON(harness, rank, "receive the counts",
               afdep_receive_counts(harness->buffers[rank], &args,
                                    afj_side_stream(harness, rank, lane)));
    TRY_ON(harness, rank, "receive",
           afdep_receive(harness->buffers[rank], &args, afj_side_stream(harness, rank, lane)));
    return expert == AFJ_EXPERT_ECHO ? AFDEP_OK : keep_counts(harness, rank, lane);
}

static afdep_status reply_on(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                             enum afj_expert expert)
{
    void *const *array = afj_side_of_expert(harness, rank, lane)->array;
    const bool apply = harness->apply_weights && expert == AFJ_EXPERT_SCALE;
    if (expert == AFJ_EXPERT_SCALE) {
        const afdep_scale_args scale = {.struct_size = sizeof scale,
                                        .lane = lane,
                                        .rows = array[AFJ_ARRAY_ROWS],
                                        .ids = array[AFJ_ARRAY_IDS],
                                        .weights =
                                            array[apply ? AFJ_ARRAY_ONES : AFJ_ARRAY_WEIGHTS],
                                        .scales = array[AFJ_ARRAY_SCALES],
                                        .out = array[AFJ_ARRAY_OUT],
                                        .ctas = harness->ctas};
        TRY_ON(harness, rank, "scale",
               afdep_scale(harness->buffers[rank], &scale, afj_side_stream(harness, rank, lane)));
    }
    const bool echo = expert == AFJ_EXPERT_ECHO && afj_side_echoes(harness);
    const afdep_reply_args args = {
        .struct_size = sizeof args,
        .lane = lane,
        .rows = array[echo ? AFJ_ARRAY_ROWS : AFJ_ARRAY_OUT],
        .weights = array[afj_side_is_grouped(harness) ? AFJ_ARRAY_OUT_WEIGHTS : AFJ_ARRAY_WEIGHTS],
        .ctas = harness->ctas,
        .apply_weights = apply};
    return afj_harness_keep_failure(
        harness, afdep_reply(harness->buffers[rank], &args, afj_side_stream(harness, rank, lane)),
        "reply", rank);
}

/* Rows that stay in the inbox, or that collect allocated: copied to where the check looks. */
static afdep_status keep_rows(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_side *side = afj_side_of_source(harness, rank, lane);
    const size_t tokens = harness->lanes[lane].tokens[rank - afj_harness_attention(harness, 0)];
    const void *rows = side->fresh;
    if (!harness->fresh) {
        afdep_view view = {.struct_size = sizeof view};
        TRY_ON(harness, rank, "find the view",
               afdep_buffer_view(harness->buffers[rank], lane, AFDEP_ROLE_ATTENTION, &view));
        rows = view.rows;
    }
    return afj_harness_keep_failure(harness,
                                    afdep_device_copy(afdep_group_device(harness->group, rank),
                                                      side->array[AFJ_ARRAY_OUT], rows,
                                                      tokens * afj_side_bf16_bytes(harness),
                                                      afj_side_stream(harness, rank, lane)),
                                    "copy the collected rows", rank);
}

static afdep_status collect_on(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    struct afj_side *side = afj_side_of_source(harness, rank, lane);
    const bool elsewhere = harness->fresh || harness->config.collect_view != 0;
    if (harness->fresh) {
        TRY_ON(harness, rank, "wait for the last fresh rows",
               afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                        afj_side_stream(harness, rank, lane)));
        afdep_device_free(afdep_group_device(harness->group, rank), side->fresh);
        side->fresh = NULL;
    }
    const afdep_collect_args args = {.struct_size = sizeof args,
                                     .lane = lane,
                                     .rows = elsewhere ? NULL : side->array[AFJ_ARRAY_OUT],
                                     .fresh = harness->fresh ? &side->fresh : NULL,
                                     .weights = side->array[AFJ_ARRAY_OUT_WEIGHTS],
                                     .ctas = harness->ctas};
    TRY_ON(harness, rank, "collect",
           afdep_collect(harness->buffers[rank], &args, afj_side_stream(harness, rank, lane)));
    return elsewhere ? keep_rows(harness, rank, lane) : AFDEP_OK;
}

afdep_status afj_harness_step(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                              enum afj_step step, enum afj_expert expert)
{
    switch (step) {
    case AFJ_STEP_DISPATCH:
        return dispatch_on(harness, rank, lane);
    case AFJ_STEP_RECEIVE:
        return receive_on(harness, rank, lane, expert);
    case AFJ_STEP_REPLY:
        return reply_on(harness, rank, lane, expert);
    default:
        return collect_on(harness, rank, lane);
    }
}

afdep_status afj_harness_step_all(struct afj_harness *harness, uint32_t lane, enum afj_step step,
                                  enum afj_expert expert)
{
    const bool of_ffn = step == AFJ_STEP_RECEIVE || step == AFJ_STEP_REPLY;
    for (uint32_t rank = 0; rank < harness->ranks; rank++)
        if (of_ffn ? afj_side_is_ffn(harness, rank) : afj_side_is_attention(harness, rank))
            TRY(afj_harness_step(harness, rank, lane, step, expert));
    return AFDEP_OK;
}
