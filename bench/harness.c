/* harness.c: an exchange of any layout over the public API: buffers, inputs, graphs. */
#include "bench/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/side.h"

afdep_status afj_harness_keep_failure(struct afj_harness *harness, afdep_status status,
                                      const char *what, uint32_t rank)
{
    if (status != AFDEP_OK)
        snprintf(harness->failure, sizeof harness->failure, "%s, rank %u: %s (%s)", what, rank,
                 afdep_last_error(), afdep_status_name(status));
    return status;
}

afdep_status afj_harness_refuse_memory(struct afj_harness *harness)
{
    snprintf(harness->failure, sizeof harness->failure, "no host memory for the arrays");
    return AFDEP_ERROR_MEMORY;
}

/* Fill an array of an FFN rank with ones, or with the weights that the oracle knows. */
static afdep_status fill_weights(struct afj_harness *harness, uint32_t rank, struct afj_side *side,
                                 enum afj_array array)
{
    const size_t bytes = afj_side_bytes(harness, rank, true, array);
    float *weights = bytes == 0 ? NULL : malloc(bytes);
    if (bytes == 0)
        return AFDEP_OK;
    if (weights == NULL)
        return afj_harness_refuse_memory(harness);
    for (size_t i = 0; i < bytes / sizeof *weights; i++)
        weights[i] = array == AFJ_ARRAY_ONES ? 1.0f : afj_oracle_reply_weight(i);
    afdep_device *device = afdep_group_device(harness->group, rank);
    afdep_status status =
        afdep_device_copy(device, side->array[array], weights, bytes, harness->streams[rank]);
    if (status == AFDEP_OK)
        status = afdep_stream_synchronize(device, harness->streams[rank]);
    free(weights);
    return afj_harness_keep_failure(harness, status, "fill weights", rank);
}

static afdep_status create_side(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                                const struct afj_side_ref *made)
{
    struct afj_side *side = made->side;
    for (int i = 0; i < AFJ_ARRAY_COUNT; i++) {
        const size_t bytes = afj_side_bytes(harness, rank, made->ffn, (enum afj_array)i);
        if (bytes > 0)
            TRY_ON(harness, rank, "allocate an array",
                   afdep_device_alloc(afdep_group_device(harness->group, rank), bytes,
                                      &side->array[i]));
    }
    if (!made->ffn)
        return AFDEP_OK;
    side->where.struct_size = sizeof side->where;
    TRY_ON(harness, rank, "find the counts",
           afdep_buffer_counts(harness->buffers[rank], lane, &side->where));
    TRY(fill_weights(harness, rank, side, AFJ_ARRAY_ONES));
    return fill_weights(harness, rank, side, AFJ_ARRAY_OUT_WEIGHTS);
}

static afdep_status create_sides(struct afj_harness *harness)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        TRY_ON(
            harness, rank, "create a stream",
            afdep_stream_create(afdep_group_device(harness->group, rank), &harness->streams[rank]));
        for (uint32_t i = 1; i < harness->config.lanes; i++)
            TRY_ON(harness, rank, "create a stream",
                   afdep_stream_create(afdep_group_device(harness->group, rank),
                                       &harness->more[rank * (harness->config.lanes - 1) + i - 1]));
        for (uint32_t lane = 0; lane < harness->config.lanes; lane++) {
            struct afj_side_ref sides[2];
            const uint32_t count = afj_side_list(harness, rank, lane, sides);
            for (uint32_t i = 0; i < count; i++)
                TRY(create_side(harness, rank, lane, &sides[i]));
        }
    }
    return AFDEP_OK;
}

static double now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

afdep_status afj_harness_create(struct afj_harness *harness, const afdep_config *config,
                                const int32_t *devices, uint32_t room)
{
    memset(harness, 0, sizeof *harness);
    harness->config = *config;
    if (harness->config.timeout_ms == 0) {
        harness->config.timeout_ms = AFJ_HARNESS_TIMEOUT_MS;
        harness->config.startup_timeout_ms = AFJ_HARNESS_STARTUP_TIMEOUT_MS;
    }
    harness->room = room;
    const uint32_t ranks = config->attention_ranks + config->ffn_ranks - config->both_ranks;
    TRY_ON(harness, 0, "create the group",
           afdep_group_create_local((afdep_device_kind)config->device, ranks, devices,
                                    &harness->group));
    harness->buffers = calloc(ranks, sizeof(afdep_buffer *));
    harness->streams = calloc(ranks, sizeof(afdep_stream));
    harness->more = calloc((size_t)ranks * config->lanes, sizeof(afdep_stream));
    harness->sources =
        calloc((size_t)config->attention_ranks * config->lanes, sizeof *harness->sources);
    harness->experts = calloc((size_t)config->ffn_ranks * config->lanes, sizeof *harness->experts);
    harness->lanes = calloc(config->lanes, sizeof *harness->lanes);
    if (harness->buffers == NULL || harness->streams == NULL || harness->more == NULL ||
        harness->sources == NULL || harness->experts == NULL || harness->lanes == NULL)
        return afj_harness_refuse_memory(harness);
    harness->ranks = ranks;
    for (uint32_t lane = 0; lane < config->lanes; lane++)
        if (!afj_inputs_init(&harness->lanes[lane], config, room))
            return afj_harness_refuse_memory(harness);
    const double from = now_ms();
    TRY_ON(harness, 0, "create the buffers",
           afdep_buffer_create(harness->group, &harness->config, harness->buffers));
    harness->create_ms = now_ms() - from;
    return create_sides(harness);
}

afdep_status afj_harness_create_again(struct afj_harness *harness, double *ms)
{
    afdep_buffer *again[AFDEP_MAX_RANKS] = {NULL};
    const double from = now_ms();
    TRY_ON(harness, 0, "create the buffers again",
           afdep_buffer_create(harness->group, &harness->config, again));
    *ms = now_ms() - from;
    for (uint32_t rank = 0; rank < harness->ranks; rank++)
        afdep_buffer_destroy(again[rank]);
    return AFDEP_OK;
}

void afj_harness_destroy(struct afj_harness *harness)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        /* Nothing may run while memory goes; a device that fails here has nothing left to run. */
        afdep_device *device = afdep_group_device(harness->group, rank);
        (void)afdep_device_synchronize(device);
    }
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        afdep_device *device = afdep_group_device(harness->group, rank);
        afdep_buffer_destroy(harness->buffers[rank]);
        for (uint32_t lane = 0; lane < harness->config.lanes; lane++) {
            struct afj_side_ref sides[2];
            const uint32_t count = afj_side_list(harness, rank, lane, sides);
            for (uint32_t i = 0; i < count; i++) {
                for (int j = 0; j < AFJ_ARRAY_COUNT; j++)
                    afdep_device_free(device, sides[i].side->array[j]);
                afdep_device_free(device, sides[i].side->fresh);
            }
        }
        afdep_stream_destroy(device, harness->streams[rank]);
        for (uint32_t i = 1; i < harness->config.lanes; i++)
            afdep_stream_destroy(device, harness->more[rank * (harness->config.lanes - 1) + i - 1]);
    }
    for (uint32_t lane = 0; lane < harness->config.lanes && harness->ranks > 0; lane++)
        afj_inputs_finish(&harness->lanes[lane]);
    afdep_group_destroy(harness->group);
    free(harness->buffers);
    free(harness->streams);
    free(harness->more);
    free(harness->sources);
    free(harness->experts);
    free(harness->lanes);
    harness->group = NULL;
    harness->ranks = 0;
}

/* Copy what an attention rank has of one array; behind it there are zeros, which as ids are those
 * of an expert. */
static afdep_status load_array(struct afj_harness *harness, uint32_t rank, void *to,
                               const void *from, size_t bytes)
{
    if (bytes == 0)
        return AFDEP_OK;
    return afj_harness_keep_failure(harness,
                                    afdep_device_copy(afdep_group_device(harness->group, rank), to,
                                                      from, bytes, harness->streams[rank]),
                                    "copy an input", rank);
}

/* Ids of 64 bits are copied as they are, those of 32 are cut. */
static afdep_status load_ids(struct afj_harness *harness, uint32_t rank, void *to,
                             const int64_t *ids, size_t count)
{
    if (harness->lanes[0].id_bits == 64)
        return load_array(harness, rank, to, ids, count * sizeof *ids);
    int32_t *narrow = malloc(count * sizeof *narrow + 1);
    if (narrow == NULL)
        return afj_harness_refuse_memory(harness);
    for (size_t i = 0; i < count; i++)
        narrow[i] = (int32_t)ids[i];
    afdep_status status = load_array(harness, rank, to, narrow, count * sizeof *narrow);
    /* The copy may still read it. */
    if (status == AFDEP_OK)
        status = afj_harness_keep_failure(
            harness,
            afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                     harness->streams[rank]),
            "copy the ids", rank);
    free(narrow);
    return status;
}

static afdep_status load_tokens(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    const uint32_t source = rank - afj_harness_attention(harness, 0);
    const size_t tokens = inputs->tokens[source], choices = tokens * inputs->top_k;
    void *const *array = afj_side_of_source(harness, rank, lane)->array;
    TRY(load_array(harness, rank, array[AFJ_ARRAY_ROWS], afj_inputs_row(inputs, source, 0),
                   tokens * inputs->row_bytes));
    TRY(load_array(harness, rank, array[AFJ_ARRAY_SCALES], afj_inputs_scales(inputs, source, 0),
                   tokens * inputs->scale_words * sizeof(uint32_t)));
    TRY(load_ids(harness, rank, array[AFJ_ARRAY_IDS], afj_inputs_ids(inputs, source, 0), choices));
    TRY(load_array(harness, rank, array[AFJ_ARRAY_WEIGHTS], afj_inputs_weights(inputs, source, 0),
                   choices * sizeof(float)));
    return load_array(harness, rank, array[AFJ_ARRAY_LIVE], &inputs->tokens[source],
                      sizeof(uint32_t));
}

/* Poison outputs, clear inputs. A receipt stays as it is. */
static afdep_status clear_side(struct afj_harness *harness, uint32_t rank,
                               const struct afj_side_ref *which)
{
    for (int i = 0; i < AFJ_ARRAY_COUNT; i++) {
        const enum afj_array array = (enum afj_array)i;
        const size_t bytes = afj_side_bytes(harness, rank, which->ffn, array);
        if (bytes == 0 || array == AFJ_ARRAY_RECEIPT ||
            (which->ffn && !afj_side_is_output(true, array)))
            continue;
        TRY_ON(harness, rank, "fill an array",
               afdep_device_fill(afdep_group_device(harness->group, rank), which->side->array[i],
                                 afj_side_is_output(which->ffn, array) ? AFJ_POISON : 0, bytes,
                                 harness->streams[rank]));
    }
    return AFDEP_OK;
}

afdep_status afj_harness_load(struct afj_harness *harness, uint32_t lane)
{
    const uint32_t bucket = harness->lanes[lane].bucket;
    if ((bucket == 0 ? harness->config.capacity : bucket) > harness->room) {
        snprintf(harness->failure, sizeof harness->failure,
                 "the harness has room for a bucket of %u and is given %u", harness->room, bucket);
        return AFDEP_ERROR_TOKENS;
    }
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        struct afj_side_ref sides[2];
        const uint32_t count = afj_side_list(harness, rank, lane, sides);
        for (uint32_t i = 0; i < count; i++)
            TRY(clear_side(harness, rank, &sides[i]));
        if (afj_side_is_attention(harness, rank))
            TRY(load_tokens(harness, rank, lane));
    }
    /* Streams of other lanes do not wait for the one that all of this is in. */
    for (uint32_t rank = 0; rank < harness->ranks && harness->streams_apart; rank++)
        TRY_ON(harness, rank, "load the inputs",
               afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                        harness->streams[rank]));
    return AFDEP_OK;
}

afdep_status afj_harness_synchronize(struct afj_harness *harness)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++)
        TRY_ON(harness, rank, "synchronize",
               afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                        harness->streams[rank]));
    for (uint32_t rank = 0; rank < harness->ranks && harness->streams_apart; rank++)
        for (uint32_t lane = 1; lane < harness->config.lanes; lane++)
            TRY_ON(harness, rank, "synchronize",
                   afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                            afj_side_stream(harness, rank, lane)));
    for (uint32_t rank = 0; rank < harness->ranks; rank++)
        TRY_ON(harness, rank, "after the exchange", afdep_buffer_check(harness->buffers[rank]));
    return AFDEP_OK;
}

afdep_status afj_harness_exchange(struct afj_harness *harness, uint32_t lane,
                                  enum afj_expert expert)
{
    static const enum afj_step steps[] = {AFJ_STEP_DISPATCH, AFJ_STEP_RECEIVE, AFJ_STEP_REPLY,
                                          AFJ_STEP_COLLECT};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        TRY(afj_harness_step_all(harness, lane, steps[i], expert));
        if (harness->phase_by_phase)
            TRY(afj_harness_synchronize(harness));
    }
    return AFDEP_OK;
}

/* One round trip of all lanes as one rank sees it: its part of d0 d1 r0 p0 r1 p1 c0 c1. */
static afdep_status enqueue_rank(struct afj_harness *harness, uint32_t rank, enum afj_expert expert)
{
    const uint32_t lanes = harness->config.lanes;
    for (uint32_t lane = 0; lane < lanes && afj_side_is_attention(harness, rank); lane++)
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_DISPATCH, expert));
    for (uint32_t lane = 0; lane < lanes && afj_side_is_ffn(harness, rank); lane++) {
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_RECEIVE, expert));
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_REPLY, expert));
    }
    for (uint32_t lane = 0; lane < lanes && afj_side_is_attention(harness, rank); lane++)
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_COLLECT, expert));
    return AFDEP_OK;
}

/* One round trip with a stream a lane: nothing orders the lanes. */
static afdep_status enqueue_apart(struct afj_harness *harness, uint32_t rank,
                                  enum afj_expert expert)
{
    for (uint32_t lane = 0; lane < harness->config.lanes; lane++) {
        if (afj_side_is_attention(harness, rank))
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_DISPATCH, expert));
        if (afj_side_is_ffn(harness, rank)) {
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_RECEIVE, expert));
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_REPLY, expert));
        }
        if (afj_side_is_attention(harness, rank))
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_COLLECT, expert));
    }
    return AFDEP_OK;
}

/* Let the streams of the other lanes follow the first one (`out`), or the first one them. */
static afdep_status tie_streams(struct afj_harness *harness, uint32_t rank, bool out)
{
    afdep_device *device = afdep_group_device(harness->group, rank);
    for (uint32_t lane = 1; lane < harness->config.lanes && harness->streams_apart; lane++) {
        const afdep_stream first = harness->streams[rank],
                           other = afj_side_stream(harness, rank, lane);
        afdep_event *event = NULL;
        TRY_ON(harness, rank, "create an event", afdep_event_create(device, &event));
        afdep_status status = afdep_event_record(event, out ? first : other);
        if (status == AFDEP_OK)
            status = afdep_stream_wait(device, out ? other : first, event);
        afdep_event_destroy(event);
        TRY(afj_harness_keep_failure(harness, status, "tie two streams", rank));
    }
    return AFDEP_OK;
}

static afdep_status record_trips(struct afj_harness *harness, uint32_t rank, uint32_t round_trips,
                                 enum afj_expert expert)
{
    TRY(tie_streams(harness, rank, true));
    for (uint32_t i = 0; i < round_trips; i++)
        TRY(harness->streams_apart ? enqueue_apart(harness, rank, expert)
                                   : enqueue_rank(harness, rank, expert));
    return tie_streams(harness, rank, false);
}

afdep_status afj_harness_capture(struct afj_harness *harness, uint32_t round_trips,
                                 enum afj_expert expert, afdep_graph **graphs)
{
    memset(graphs, 0, harness->ranks * sizeof *graphs);
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        afdep_device *device = afdep_group_device(harness->group, rank);
        TRY_ON(harness, rank, "begin a capture",
               afdep_capture_begin(device, harness->streams[rank]));
        const afdep_status status = record_trips(harness, rank, round_trips, expert);
        /* Also after a failure: a stream must not stay in capture. */
        const afdep_status ended = afdep_capture_end(device, harness->streams[rank], &graphs[rank]);
        TRY(status);
        TRY_ON(harness, rank, "end a capture", ended);
    }
    return AFDEP_OK;
}

afdep_status afj_harness_launch(struct afj_harness *harness, afdep_graph **graphs)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++)
        TRY_ON(harness, rank, "launch a graph",
               afdep_graph_launch(graphs[rank], harness->streams[rank]));
    return AFDEP_OK;
}

void afj_harness_drop_graphs(struct afj_harness *harness, afdep_graph **graphs)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        afdep_graph_destroy(graphs[rank]);
        graphs[rank] = NULL;
    }
}

afdep_status afj_harness_run(struct afj_harness *harness, uint32_t lane, struct afj_tally *tally)
{
    TRY(afj_harness_load(harness, lane));
    TRY(afj_harness_exchange(harness, lane, AFJ_EXPERT_SCALE));
    TRY(afj_harness_synchronize(harness));
    return afj_harness_check(harness, lane, AFJ_EXPERT_SCALE, tally);
}
