/* verify.c: what an exchange left, fetched and compared with the oracle. */
#include <stdlib.h>
#include <string.h>

#include "bench/side.h"

/* Copies of a side's outputs in host memory. */
struct fetched {
    void *array[AFJ_ARRAY_COUNT];
};

static void drop_fetched(struct fetched *fetched)
{
    for (int i = 0; i < AFJ_ARRAY_COUNT; i++)
        free(fetched->array[i]);
}

static afdep_status fetch_side(struct afj_harness *harness, uint32_t rank,
                               const struct afj_side_ref *which, struct fetched *fetched)
{
    afdep_device *device = afdep_group_device(harness->group, rank);
    memset(fetched, 0, sizeof *fetched);
    for (int i = 0; i < AFJ_ARRAY_COUNT; i++) {
        const size_t bytes = afj_side_bytes(harness, rank, which->ffn, (enum afj_array)i);
        if (bytes == 0 || !afj_side_is_output(which->ffn, (enum afj_array)i))
            continue;
        fetched->array[i] = malloc(bytes);
        if (fetched->array[i] == NULL)
            return afj_harness_refuse_memory(harness);
        TRY_ON(harness, rank, "fetch an array",
               afdep_device_copy(device, fetched->array[i], which->side->array[i], bytes,
                                 harness->streams[rank]));
    }
    return afj_harness_keep_failure(harness,
                                    afdep_stream_synchronize(device, harness->streams[rank]),
                                    "fetch the arrays", rank);
}

static afdep_status check_source(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                                 enum afj_expert expert, const struct fetched *fetched,
                                 struct afj_tally *tally)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    const uint32_t source = rank - afj_harness_attention(harness, 0);
    const size_t room = (size_t)harness->room + 1;
    const struct afj_way_back way = {.expert = expert,
                                     .grouped = afj_side_is_grouped(harness),
                                     .apply_weights = harness->apply_weights};
    if (!afj_oracle_check_collected(inputs, source, &way, fetched->array[AFJ_ARRAY_OUT], room,
                                    tally))
        return afj_harness_refuse_memory(harness);
    if (harness->config.reply_weights != 0)
        afj_oracle_check_weights(inputs, source, afj_side_is_grouped(harness),
                                 fetched->array[AFJ_ARRAY_OUT_WEIGHTS], room, tally);
    return AFDEP_OK;
}

static void check_expert(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                         const struct fetched *fetched, struct afj_tally *tally)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    const uint32_t bucket = inputs->bucket == 0 ? harness->config.capacity : inputs->bucket;
    const uint32_t *counts = fetched->array[AFJ_ARRAY_COUNTS];
    const uint32_t *offsets = counts + afj_side_count_words(harness, rank);
    const bool bare = harness->without_origins;
    const struct afj_received received = {
        .layout = harness->config.receive,
        .alignment = afj_side_alignment(harness),
        .capacity = harness->config.capacity,
        .room = afj_side_expert_rows(harness, rank),
        .padded = afj_side_rows_of_bucket(harness, rank, bucket),
        .rows = fetched->array[afj_side_is_view(harness) ? AFJ_ARRAY_VIEW : AFJ_ARRAY_ROWS],
        .ids = fetched->array[AFJ_ARRAY_IDS],
        .scales = fetched->array[AFJ_ARRAY_SCALES],
        .weights = fetched->array[AFJ_ARRAY_WEIGHTS],
        .sources = bare ? NULL : fetched->array[AFJ_ARRAY_SOURCES],
        .tokens = bare ? NULL : fetched->array[AFJ_ARRAY_TOKENS],
        .slots = fetched->array[AFJ_ARRAY_SLOTS],
        .counts = counts,
        .offsets = offsets,
        .host = harness->config.host_counts != 0 ? offsets + afj_side_offset_words(harness, rank)
                                                 : NULL};
    afj_oracle_check_received(inputs, rank, &received, tally);
}

static afdep_status check_side(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                               enum afj_expert expert, const struct afj_side_ref *which,
                               struct afj_tally *tally)
{
    struct fetched fetched;
    if (expert == AFJ_EXPERT_ECHO && (which->ffn || !afj_side_echoes(harness)))
        return AFDEP_OK;
    afdep_status status = fetch_side(harness, rank, which, &fetched);
    if (status == AFDEP_OK && which->ffn)
        check_expert(harness, rank, lane, &fetched, tally);
    else if (status == AFDEP_OK)
        status = check_source(harness, rank, lane, expert, &fetched, tally);
    drop_fetched(&fetched);
    return status;
}

afdep_status afj_harness_check(struct afj_harness *harness, uint32_t lane, enum afj_expert expert,
                               struct afj_tally *tally)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        struct afj_side_ref sides[2];
        const uint32_t count = afj_side_list(harness, rank, lane, sides);
        for (uint32_t i = 0; i < count; i++)
            TRY(check_side(harness, rank, lane, expert, &sides[i], tally));
    }
    return AFDEP_OK;
}
