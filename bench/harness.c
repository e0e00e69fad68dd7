/* harness.c: an exchange of any layout over the public API: buffers, arrays, calls, checks. */
#include "bench/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Keep what failed with the library's sentence; returns the status. */
static afdep_status keep_failure(struct afj_harness *harness, afdep_status status, const char *what,
                                 uint32_t rank)
{
    if (status != AFDEP_OK)
        snprintf(harness->failure, sizeof harness->failure, "%s, rank %u: %s (%s)", what, rank,
                 afdep_last_error(), afdep_status_name(status));
    return status;
}

#define TRY_ON(harness, rank, what, call)                                                          \
    do {                                                                                           \
        afdep_status try_status_ = keep_failure(harness, call, what, rank);                        \
        if (try_status_ != AFDEP_OK)                                                               \
            return try_status_;                                                                    \
    } while (0)

#define TRY(call)                                                                                  \
    do {                                                                                           \
        afdep_status try_status_ = (call);                                                         \
        if (try_status_ != AFDEP_OK)                                                               \
            return try_status_;                                                                    \
    } while (0)

static afdep_status refuse_memory(struct afj_harness *harness)
{
    snprintf(harness->failure, sizeof harness->failure, "no host memory for the arrays");
    return AFDEP_ERROR_MEMORY;
}

static bool is_ffn(const struct afj_harness *harness, uint32_t rank)
{
    return rank < harness->config.ffn_ranks;
}

static struct afj_side *side_of(const struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    return &harness->sides[rank * harness->config.lanes + lane];
}

/* Rows of a rank's arrays: one more than can be used, so that writing too far shows. */
static size_t rows_of(const struct afj_harness *harness, uint32_t rank)
{
    const size_t room = harness->room;
    return (is_ffn(harness, rank) ? room * harness->config.attention_ranks : room) + 1;
}

static size_t row_bytes(const struct afj_harness *harness)
{
    return (size_t)harness->config.hidden * sizeof(uint16_t);
}

static size_t choice_bytes(const struct afj_harness *harness)
{
    return (size_t)harness->config.top_k * sizeof(uint32_t);
}

static size_t experts_per_rank(const struct afj_harness *harness)
{
    return harness->config.experts / harness->config.ffn_ranks;
}

static size_t counts_bytes(const struct afj_harness *harness)
{
    return (1 + harness->config.attention_ranks + experts_per_rank(harness)) * sizeof(uint32_t);
}

/* One array of a side. */
struct array {
    void **memory;
    size_t bytes;
    bool is_output;
};

enum { MOST_ARRAYS = 7 };

/* All arrays of a side, the one list for allocating, filling and freeing. */
static size_t list_arrays(const struct afj_harness *harness, uint32_t rank, struct afj_side *side,
                          struct array arrays[MOST_ARRAYS])
{
    const size_t rows = rows_of(harness, rank);
    const bool ffn = is_ffn(harness, rank);
    size_t count = 0;
    arrays[count++] = (struct array){&side->rows, rows * row_bytes(harness), ffn};
    arrays[count++] = (struct array){(void **)&side->ids, rows * choice_bytes(harness), ffn};
    arrays[count++] = (struct array){(void **)&side->weights, rows * choice_bytes(harness), ffn};
    arrays[count++] = (struct array){&side->out, rows * row_bytes(harness), true};
    if (ffn) {
        arrays[count++] = (struct array){(void **)&side->sources, rows * sizeof(uint32_t), true};
        arrays[count++] = (struct array){(void **)&side->tokens, rows * sizeof(uint32_t), true};
        arrays[count++] = (struct array){(void **)&side->counts, counts_bytes(harness), true};
    }
    return count;
}

static afdep_status create_sides(struct afj_harness *harness)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        afdep_device *device = afdep_group_device(harness->group, rank);
        TRY_ON(harness, rank, "create a stream",
               afdep_stream_create(device, &harness->streams[rank]));
        for (uint32_t lane = 0; lane < harness->config.lanes; lane++) {
            struct afj_side *side = side_of(harness, rank, lane);
            struct array arrays[MOST_ARRAYS];
            const size_t count = list_arrays(harness, rank, side, arrays);
            for (size_t i = 0; i < count; i++)
                TRY_ON(harness, rank, "allocate an array",
                       afdep_device_alloc(device, arrays[i].bytes, arrays[i].memory));
            if (!is_ffn(harness, rank))
                continue;
            side->where.struct_size = sizeof side->where;
            TRY_ON(harness, rank, "find the counts",
                   afdep_buffer_counts(harness->buffers[rank], lane, &side->where));
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
    const uint32_t ranks = config->attention_ranks + config->ffn_ranks;
    TRY_ON(harness, 0, "create the group",
           afdep_group_create_local((afdep_device_kind)config->device, ranks, devices,
                                    &harness->group));
    harness->buffers = calloc(ranks, sizeof(afdep_buffer *));
    harness->streams = calloc(ranks, sizeof(afdep_stream));
    harness->sides = calloc((size_t)ranks * config->lanes, sizeof *harness->sides);
    harness->lanes = calloc(config->lanes, sizeof *harness->lanes);
    if (harness->buffers == NULL || harness->streams == NULL || harness->sides == NULL ||
        harness->lanes == NULL)
        return refuse_memory(harness);
    harness->ranks = ranks;
    for (uint32_t lane = 0; lane < config->lanes; lane++)
        if (!afj_inputs_init(&harness->lanes[lane], config, room))
            return refuse_memory(harness);
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
            struct array arrays[MOST_ARRAYS];
            const size_t count = list_arrays(harness, rank, side_of(harness, rank, lane), arrays);
            for (size_t i = 0; i < count; i++)
                afdep_device_free(device, *arrays[i].memory);
        }
        afdep_stream_destroy(device, harness->streams[rank]);
    }
    for (uint32_t lane = 0; lane < harness->config.lanes && harness->ranks > 0; lane++)
        afj_inputs_finish(&harness->lanes[lane]);
    afdep_group_destroy(harness->group);
    free(harness->buffers);
    free(harness->streams);
    free(harness->sides);
    free(harness->lanes);
    harness->group = NULL;
    harness->ranks = 0;
}

/* The rows that an attention rank has; behind them zeros, whose ids are those of an expert. */
static afdep_status load_tokens(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    const uint32_t source = rank - harness->config.ffn_ranks;
    const size_t tokens = inputs->tokens[source];
    const struct afj_side *side = side_of(harness, rank, lane);
    afdep_device *device = afdep_group_device(harness->group, rank);
    afdep_stream stream = harness->streams[rank];
    if (tokens == 0)
        return AFDEP_OK;
    TRY_ON(harness, rank, "copy the rows",
           afdep_device_copy(device, side->rows, afj_inputs_row(inputs, source, 0),
                             tokens * row_bytes(harness), stream));
    TRY_ON(harness, rank, "copy the ids",
           afdep_device_copy(device, side->ids, afj_inputs_ids(inputs, source, 0),
                             tokens * choice_bytes(harness), stream));
    return keep_failure(harness,
                        afdep_device_copy(device, side->weights,
                                          afj_inputs_weights(inputs, source, 0),
                                          tokens * choice_bytes(harness), stream),
                        "copy the weights", rank);
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
        struct array arrays[MOST_ARRAYS];
        const size_t count = list_arrays(harness, rank, side_of(harness, rank, lane), arrays);
        for (size_t i = 0; i < count; i++)
            TRY_ON(harness, rank, "fill an array",
                   afdep_device_fill(afdep_group_device(harness->group, rank), *arrays[i].memory,
                                     arrays[i].is_output ? AFJ_POISON : 0, arrays[i].bytes,
                                     harness->streams[rank]));
        if (!is_ffn(harness, rank))
            TRY(load_tokens(harness, rank, lane));
    }
    return AFDEP_OK;
}

static afdep_status dispatch_on(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    const struct afj_side *side = side_of(harness, rank, lane);
    const afdep_dispatch_args args = {.struct_size = sizeof args,
                                      .lane = lane,
                                      .tokens = inputs->tokens[rank - harness->config.ffn_ranks],
                                      .bucket = inputs->bucket,
                                      .rows = side->rows,
                                      .ids = side->ids,
                                      .weights = side->weights};
    return keep_failure(harness,
                        afdep_dispatch(harness->buffers[rank], &args, harness->streams[rank]),
                        "dispatch", rank);
}

/* Copy the counts while they are valid: behind receive, before reply. */
static afdep_status keep_counts(struct afj_harness *harness, uint32_t rank,
                                const struct afj_side *side)
{
    afdep_device *device = afdep_group_device(harness->group, rank);
    afdep_stream stream = harness->streams[rank];
    const size_t sources = harness->config.attention_ranks;
    TRY_ON(harness, rank, "copy the total",
           afdep_device_copy(device, side->counts, side->where.total, sizeof(uint32_t), stream));
    TRY_ON(harness, rank, "copy the rows a source",
           afdep_device_copy(device, side->counts + 1, side->where.rows_per_source,
                             sources * sizeof(uint32_t), stream));
    return keep_failure(harness,
                        afdep_device_copy(device, side->counts + 1 + sources,
                                          side->where.rows_per_expert,
                                          experts_per_rank(harness) * sizeof(uint32_t), stream),
                        "copy the routes an expert", rank);
}

static afdep_status receive_on(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                               enum afj_expert expert)
{
    const struct afj_side *side = side_of(harness, rank, lane);
    const afdep_receive_args args = {.struct_size = sizeof args,
                                     .lane = lane,
                                     .bucket = harness->lanes[lane].bucket,
                                     .rows = side->rows,
                                     .ids = side->ids,
                                     .weights = side->weights,
                                     .sources = harness->without_origins ? NULL : side->sources,
                                     .tokens = harness->without_origins ? NULL : side->tokens};
    TRY_ON(harness, rank, "receive",
           afdep_receive(harness->buffers[rank], &args, harness->streams[rank]));
    return expert == AFJ_EXPERT_ECHO ? AFDEP_OK : keep_counts(harness, rank, side);
}

static afdep_status reply_on(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                             enum afj_expert expert)
{
    const struct afj_side *side = side_of(harness, rank, lane);
    if (expert == AFJ_EXPERT_SCALE) {
        const afdep_scale_args scale = {.struct_size = sizeof scale,
                                        .lane = lane,
                                        .rows = side->rows,
                                        .ids = side->ids,
                                        .weights = side->weights,
                                        .out = side->out};
        TRY_ON(harness, rank, "scale",
               afdep_scale(harness->buffers[rank], &scale, harness->streams[rank]));
    }
    const afdep_reply_args args = {.struct_size = sizeof args,
                                   .lane = lane,
                                   .rows = expert == AFJ_EXPERT_SCALE ? side->out : side->rows};
    return keep_failure(harness, afdep_reply(harness->buffers[rank], &args, harness->streams[rank]),
                        "reply", rank);
}

static afdep_status collect_on(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const afdep_collect_args args = {
        .struct_size = sizeof args, .lane = lane, .rows = side_of(harness, rank, lane)->out};
    return keep_failure(harness,
                        afdep_collect(harness->buffers[rank], &args, harness->streams[rank]),
                        "collect", rank);
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
        if (is_ffn(harness, rank) == of_ffn)
            TRY(afj_harness_step(harness, rank, lane, step, expert));
    return AFDEP_OK;
}

afdep_status afj_harness_synchronize(struct afj_harness *harness)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++)
        TRY_ON(harness, rank, "synchronize",
               afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                        harness->streams[rank]));
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

/* One round trip of all lanes as one rank sees it: d0 d1 c0 c1, or r0 p0 r1 p1. */
static afdep_status enqueue_rank(struct afj_harness *harness, uint32_t rank, enum afj_expert expert)
{
    const bool ffn = is_ffn(harness, rank);
    for (uint32_t lane = 0; lane < harness->config.lanes; lane++) {
        TRY(afj_harness_step(harness, rank, lane, ffn ? AFJ_STEP_RECEIVE : AFJ_STEP_DISPATCH,
                             expert));
        if (ffn)
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_REPLY, expert));
    }
    for (uint32_t lane = 0; lane < harness->config.lanes && !ffn; lane++)
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_COLLECT, expert));
    return AFDEP_OK;
}

afdep_status afj_harness_capture(struct afj_harness *harness, uint32_t round_trips,
                                 enum afj_expert expert, afdep_graph **graphs)
{
    memset(graphs, 0, harness->ranks * sizeof *graphs);
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        afdep_device *device = afdep_group_device(harness->group, rank);
        TRY_ON(harness, rank, "begin a capture",
               afdep_capture_begin(device, harness->streams[rank]));
        afdep_status status = AFDEP_OK;
        for (uint32_t i = 0; i < round_trips && status == AFDEP_OK; i++)
            status = enqueue_rank(harness, rank, expert);
        /* Also after a failure: a stream must not stay in capture. */
        afdep_status ended = afdep_capture_end(device, harness->streams[rank], &graphs[rank]);
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

/* Copies of a side's arrays in host memory, in the order of list_arrays. */
struct fetched {
    void *array[MOST_ARRAYS];
    size_t count;
};

static void drop_fetched(struct fetched *fetched)
{
    for (size_t i = 0; i < fetched->count; i++)
        free(fetched->array[i]);
}

static afdep_status fetch_side(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                               struct fetched *fetched)
{
    struct array arrays[MOST_ARRAYS];
    afdep_device *device = afdep_group_device(harness->group, rank);
    const size_t count = list_arrays(harness, rank, side_of(harness, rank, lane), arrays);
    memset(fetched, 0, sizeof *fetched);
    for (size_t i = 0; i < count; i++) {
        if (!arrays[i].is_output)
            continue;
        fetched->array[i] = malloc(arrays[i].bytes);
        fetched->count = i + 1;
        if (fetched->array[i] == NULL)
            return refuse_memory(harness);
        TRY_ON(harness, rank, "fetch an array",
               afdep_device_copy(device, fetched->array[i], *arrays[i].memory, arrays[i].bytes,
                                 harness->streams[rank]));
    }
    return keep_failure(harness, afdep_stream_synchronize(device, harness->streams[rank]),
                        "fetch the arrays", rank);
}

/* Arrays in the order of list_arrays: rows, ids, weights, out, sources, tokens, counts. */
static afdep_status check_rank(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                               enum afj_expert expert, const struct fetched *fetched,
                               struct afj_tally *tally)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    const size_t room = rows_of(harness, rank);
    if (!is_ffn(harness, rank)) {
        const uint32_t source = rank - harness->config.ffn_ranks;
        return afj_oracle_check_collected(inputs, source, expert, fetched->array[3], room, tally)
                   ? AFDEP_OK
                   : refuse_memory(harness);
    }
    const struct afj_received received = {
        .room = room,
        .rows = fetched->array[0],
        .ids = fetched->array[1],
        .weights = fetched->array[2],
        .sources = harness->without_origins ? NULL : fetched->array[4],
        .tokens = harness->without_origins ? NULL : fetched->array[5],
        .counts = fetched->array[6]};
    afj_oracle_check_received(inputs, rank, &received, tally);
    return AFDEP_OK;
}

afdep_status afj_harness_check(struct afj_harness *harness, uint32_t lane, enum afj_expert expert,
                               struct afj_tally *tally)
{
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        if (is_ffn(harness, rank) && expert == AFJ_EXPERT_ECHO)
            continue;
        struct fetched fetched;
        afdep_status status = fetch_side(harness, rank, lane, &fetched);
        if (status == AFDEP_OK)
            status = check_rank(harness, rank, lane, expert, &fetched, tally);
        drop_fetched(&fetched);
        TRY(status);
    }
    return AFDEP_OK;
}

afdep_status afj_harness_run(struct afj_harness *harness, uint32_t lane, struct afj_tally *tally)
{
    TRY(afj_harness_load(harness, lane));
    TRY(afj_harness_exchange(harness, lane, AFJ_EXPERT_SCALE));
    TRY(afj_harness_synchronize(harness));
    return afj_harness_check(harness, lane, AFJ_EXPERT_SCALE, tally);
}
