/* harness.c: an exchange of any layout over the public API: buffers, arrays, calls, checks. */
#include "bench/harness.h"

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

uint32_t afj_harness_attention(const struct afj_harness *harness, uint32_t source)
{
    return harness->config.ffn_ranks - harness->config.both_ranks + source;
}

static bool is_attention(const struct afj_harness *harness, uint32_t rank)
{
    return rank >= afj_harness_attention(harness, 0);
}

static struct afj_side *source_side(const struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const uint32_t source = rank - afj_harness_attention(harness, 0);
    return &harness->sources[source * harness->config.lanes + lane];
}

static struct afj_side *expert_side(const struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    return &harness->experts[rank * harness->config.lanes + lane];
}

static bool is_grouped(const struct afj_harness *harness)
{
    return harness->config.receive == AFDEP_RECEIVE_EXPERT_MAJOR;
}

static bool is_view(const struct afj_harness *harness)
{
    return harness->config.receive == AFDEP_RECEIVE_VIEW;
}

static uint32_t alignment_of(const struct afj_harness *harness)
{
    return harness->config.alignment > 0 ? harness->config.alignment : 1;
}

static uint32_t local_experts(const struct afj_harness *harness, uint32_t rank)
{
    return harness->lanes[0].local_experts[rank];
}

/* The stream that a rank's calls on a lane go into. */
static afdep_stream stream_of(const struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const uint32_t lanes = harness->config.lanes;
    return harness->streams_apart && lane > 0 ? harness->more[rank * (lanes - 1) + lane - 1]
                                              : harness->streams[rank];
}

/* Rows that receive may write on an FFN rank for a bucket. */
static size_t rows_of_bucket(const struct afj_harness *harness, uint32_t rank, uint32_t bucket)
{
    const size_t rows = (size_t)harness->config.attention_ranks * bucket;
    if (!is_grouped(harness))
        return rows;
    return rows * harness->config.top_k +
           (size_t)local_experts(harness, rank) * (alignment_of(harness) - 1);
}

/* Rows of an FFN rank's arrays: one more than can be used, so that writing too far shows. */
static size_t expert_rows(const struct afj_harness *harness, uint32_t rank)
{
    return rows_of_bucket(harness, rank, harness->room) + 1;
}

static size_t bf16_bytes(const struct afj_harness *harness)
{
    return (size_t)harness->config.hidden * sizeof(uint16_t);
}

static size_t count_words(const struct afj_harness *harness, uint32_t rank)
{
    return 1 + harness->config.attention_ranks + local_experts(harness, rank);
}

static size_t offset_words(const struct afj_harness *harness, uint32_t rank)
{
    return is_grouped(harness) ? local_experts(harness, rank) + 1 : 0;
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
        return rows * bf16_bytes(harness);
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
    const size_t rows = expert_rows(harness, rank);
    const size_t choices = is_grouped(harness) ? rows : rows * harness->config.top_k;
    const size_t slots = (size_t)harness->config.attention_ranks * harness->config.capacity;
    const size_t counts = count_words(harness, rank);
    switch (array) {
    case AFJ_ARRAY_ROWS:
        return is_view(harness) ? 0 : rows * inputs->row_bytes;
    case AFJ_ARRAY_SCALES:
        return rows * inputs->scale_words * sizeof(uint32_t);
    case AFJ_ARRAY_IDS:
        return choices * inputs->id_bits / 8;
    case AFJ_ARRAY_WEIGHTS:
        return choices * sizeof(float);
    case AFJ_ARRAY_OUT:
        return rows * bf16_bytes(harness);
    case AFJ_ARRAY_OUT_WEIGHTS: /* [A x room][top_k]: fewer than the rows of all choices */
        return is_grouped(harness) && harness->config.reply_weights != 0 ? rows * sizeof(float) : 0;
    case AFJ_ARRAY_ONES:
        return is_grouped(harness) ? rows * sizeof(float) : 0;
    case AFJ_ARRAY_SOURCES:
    case AFJ_ARRAY_TOKENS:
        return rows * sizeof(uint32_t);
    case AFJ_ARRAY_SLOTS:
        return is_view(harness) ? rows * sizeof(uint32_t) : 0;
    case AFJ_ARRAY_VIEW:
        return is_view(harness) ? slots * inputs->row_bytes : 0;
    case AFJ_ARRAY_COUNTS:
        return (counts + offset_words(harness, rank) +
                (harness->config.host_counts != 0 ? counts : 0)) *
               sizeof(uint32_t);
    default:
        return 0;
    }
}

/* Whether the exchange writes an array, so that it is poisoned before and fetched after. */
static bool is_output(bool ffn, enum afj_array array)
{
    if (!ffn)
        return array == AFJ_ARRAY_OUT || array == AFJ_ARRAY_OUT_WEIGHTS;
    return array != AFJ_ARRAY_OUT_WEIGHTS && array != AFJ_ARRAY_ONES;
}

/* The sides of a rank and lane: one for each role. */
struct sides {
    struct afj_side *side;
    bool ffn;
};
static uint32_t list_sides(const struct afj_harness *harness, uint32_t rank, uint32_t lane,
                           struct sides sides[2])
{
    uint32_t count = 0;
    if (is_ffn(harness, rank))
        sides[count++] = (struct sides){expert_side(harness, rank, lane), true};
    if (is_attention(harness, rank))
        sides[count++] = (struct sides){source_side(harness, rank, lane), false};
    return count;
}

static size_t array_bytes(const struct afj_harness *harness, uint32_t rank, bool ffn,
                          enum afj_array array)
{
    return ffn ? expert_bytes(harness, rank, array) : source_bytes(harness, array);
}

/* Fill an array of an FFN rank with ones, or with the weights that the oracle knows. */
static afdep_status fill_weights(struct afj_harness *harness, uint32_t rank, struct afj_side *side,
                                 enum afj_array array)
{
    const size_t bytes = expert_bytes(harness, rank, array);
    float *weights = bytes == 0 ? NULL : malloc(bytes);
    if (bytes == 0)
        return AFDEP_OK;
    if (weights == NULL)
        return refuse_memory(harness);
    for (size_t i = 0; i < bytes / sizeof *weights; i++)
        weights[i] = array == AFJ_ARRAY_ONES ? 1.0f : afj_oracle_reply_weight(i);
    afdep_device *device = afdep_group_device(harness->group, rank);
    afdep_status status =
        afdep_device_copy(device, side->array[array], weights, bytes, harness->streams[rank]);
    if (status == AFDEP_OK)
        status = afdep_stream_synchronize(device, harness->streams[rank]);
    free(weights);
    return keep_failure(harness, status, "fill weights", rank);
}

static afdep_status create_side(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                                const struct sides *made)
{
    struct afj_side *side = made->side;
    for (int i = 0; i < AFJ_ARRAY_COUNT; i++) {
        const size_t bytes = array_bytes(harness, rank, made->ffn, (enum afj_array)i);
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
            struct sides sides[2];
            const uint32_t count = list_sides(harness, rank, lane, sides);
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
            struct sides sides[2];
            const uint32_t count = list_sides(harness, rank, lane, sides);
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
    return keep_failure(harness,
                        afdep_device_copy(afdep_group_device(harness->group, rank), to, from, bytes,
                                          harness->streams[rank]),
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
        return refuse_memory(harness);
    for (size_t i = 0; i < count; i++)
        narrow[i] = (int32_t)ids[i];
    afdep_status status = load_array(harness, rank, to, narrow, count * sizeof *narrow);
    /* The copy may still read it. */
    if (status == AFDEP_OK)
        status = keep_failure(harness,
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
    void *const *array = source_side(harness, rank, lane)->array;
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
                               const struct sides *which)
{
    for (int i = 0; i < AFJ_ARRAY_COUNT; i++) {
        const enum afj_array array = (enum afj_array)i;
        const size_t bytes = array_bytes(harness, rank, which->ffn, array);
        if (bytes == 0 || array == AFJ_ARRAY_RECEIPT || (which->ffn && !is_output(true, array)))
            continue;
        TRY_ON(harness, rank, "fill an array",
               afdep_device_fill(afdep_group_device(harness->group, rank), which->side->array[i],
                                 is_output(which->ffn, array) ? AFJ_POISON : 0, bytes,
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
        struct sides sides[2];
        const uint32_t count = list_sides(harness, rank, lane, sides);
        for (uint32_t i = 0; i < count; i++)
            TRY(clear_side(harness, rank, &sides[i]));
        if (is_attention(harness, rank))
            TRY(load_tokens(harness, rank, lane));
    }
    /* Streams of other lanes do not wait for the one that all of this is in. */
    for (uint32_t rank = 0; rank < harness->ranks && harness->streams_apart; rank++)
        TRY_ON(harness, rank, "load the inputs",
               afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                        harness->streams[rank]));
    return AFDEP_OK;
}

static afdep_status dispatch_on(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    void *const *array = source_side(harness, rank, lane)->array;
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
    return keep_failure(
        harness, afdep_dispatch(harness->buffers[rank], &args, stream_of(harness, rank, lane)),
        "dispatch", rank);
}

/* Copy words to the counts of a side, behind those that are there. */
static afdep_status keep_words(struct afj_harness *harness, uint32_t rank,
                               const struct afj_side *side, size_t *at, const uint32_t *from,
                               size_t words, afdep_stream stream)
{
    uint32_t *to = (uint32_t *)side->array[AFJ_ARRAY_COUNTS] + *at;
    *at += words;
    return keep_failure(harness,
                        afdep_device_copy(afdep_group_device(harness->group, rank), to, from,
                                          words * sizeof *from, stream),
                        "copy the counts", rank);
}

/* Copy the counts, and the rows of a view, while they are valid: behind receive, before reply. */
static afdep_status keep_counts(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_side *side = expert_side(harness, rank, lane);
    const size_t experts = local_experts(harness, rank);
    const afdep_stream stream = stream_of(harness, rank, lane);
    size_t at = 0;
    TRY(keep_words(harness, rank, side, &at, side->where.total, 1, stream));
    TRY(keep_words(harness, rank, side, &at, side->where.rows_per_source,
                   harness->config.attention_ranks, stream));
    if (experts > 0)
        TRY(keep_words(harness, rank, side, &at, side->where.rows_per_expert, experts, stream));
    if (is_grouped(harness))
        TRY(keep_words(harness, rank, side, &at, side->where.expert_offsets, experts + 1, stream));
    if (harness->config.host_counts != 0)
        TRY(keep_words(harness, rank, side, &at, side->where.host, count_words(harness, rank),
                       stream));
    if (!is_view(harness))
        return AFDEP_OK;
    afdep_view view = {.struct_size = sizeof view};
    TRY_ON(harness, rank, "find the view",
           afdep_buffer_view(harness->buffers[rank], lane, AFDEP_ROLE_FFN, &view));
    return keep_failure(
        harness,
        afdep_device_copy(afdep_group_device(harness->group, rank), side->array[AFJ_ARRAY_VIEW],
                          view.rows, view.slots * view.row_bytes, stream_of(harness, rank, lane)),
        "copy the view", rank);
}

static afdep_status receive_on(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                               enum afj_expert expert)
{
    void *const *array = expert_side(harness, rank, lane)->array;
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
               afdep_receive_counts(harness->buffers[rank], &args, stream_of(harness, rank, lane)));
    TRY_ON(harness, rank, "receive",
           afdep_receive(harness->buffers[rank], &args, stream_of(harness, rank, lane)));
    return expert == AFJ_EXPERT_ECHO ? AFDEP_OK : keep_counts(harness, rank, lane);
}

static bool echoes(const struct afj_harness *harness)
{
    return harness->config.dtype == AFDEP_DTYPE_BF16 && !is_view(harness);
}

static afdep_status reply_on(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                             enum afj_expert expert)
{
    void *const *array = expert_side(harness, rank, lane)->array;
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
               afdep_scale(harness->buffers[rank], &scale, stream_of(harness, rank, lane)));
    }
    const bool echo = expert == AFJ_EXPERT_ECHO && echoes(harness);
    const afdep_reply_args args = {
        .struct_size = sizeof args,
        .lane = lane,
        .rows = array[echo ? AFJ_ARRAY_ROWS : AFJ_ARRAY_OUT],
        .weights = array[is_grouped(harness) ? AFJ_ARRAY_OUT_WEIGHTS : AFJ_ARRAY_WEIGHTS],
        .ctas = harness->ctas,
        .apply_weights = apply};
    return keep_failure(harness,
                        afdep_reply(harness->buffers[rank], &args, stream_of(harness, rank, lane)),
                        "reply", rank);
}

/* Rows that stay in the inbox, or that collect allocated: copied to where the check looks. */
static afdep_status keep_rows(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    const struct afj_side *side = source_side(harness, rank, lane);
    const size_t tokens = harness->lanes[lane].tokens[rank - afj_harness_attention(harness, 0)];
    const void *rows = side->fresh;
    if (!harness->fresh) {
        afdep_view view = {.struct_size = sizeof view};
        TRY_ON(harness, rank, "find the view",
               afdep_buffer_view(harness->buffers[rank], lane, AFDEP_ROLE_ATTENTION, &view));
        rows = view.rows;
    }
    return keep_failure(
        harness,
        afdep_device_copy(afdep_group_device(harness->group, rank), side->array[AFJ_ARRAY_OUT],
                          rows, tokens * bf16_bytes(harness), stream_of(harness, rank, lane)),
        "copy the collected rows", rank);
}

static afdep_status collect_on(struct afj_harness *harness, uint32_t rank, uint32_t lane)
{
    struct afj_side *side = source_side(harness, rank, lane);
    const bool elsewhere = harness->fresh || harness->config.collect_view != 0;
    if (harness->fresh) {
        TRY_ON(harness, rank, "wait for the last fresh rows",
               afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                        stream_of(harness, rank, lane)));
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
           afdep_collect(harness->buffers[rank], &args, stream_of(harness, rank, lane)));
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
        if (of_ffn ? is_ffn(harness, rank) : is_attention(harness, rank))
            TRY(afj_harness_step(harness, rank, lane, step, expert));
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
                                            stream_of(harness, rank, lane)));
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
    for (uint32_t lane = 0; lane < lanes && is_attention(harness, rank); lane++)
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_DISPATCH, expert));
    for (uint32_t lane = 0; lane < lanes && is_ffn(harness, rank); lane++) {
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_RECEIVE, expert));
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_REPLY, expert));
    }
    for (uint32_t lane = 0; lane < lanes && is_attention(harness, rank); lane++)
        TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_COLLECT, expert));
    return AFDEP_OK;
}

/* One round trip with a stream a lane: nothing orders the lanes. */
static afdep_status enqueue_apart(struct afj_harness *harness, uint32_t rank,
                                  enum afj_expert expert)
{
    for (uint32_t lane = 0; lane < harness->config.lanes; lane++) {
        if (is_attention(harness, rank))
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_DISPATCH, expert));
        if (is_ffn(harness, rank)) {
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_RECEIVE, expert));
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_REPLY, expert));
        }
        if (is_attention(harness, rank))
            TRY(afj_harness_step(harness, rank, lane, AFJ_STEP_COLLECT, expert));
    }
    return AFDEP_OK;
}

/* Let the streams of the other lanes follow the first one (`out`), or the first one them. */
static afdep_status tie_streams(struct afj_harness *harness, uint32_t rank, bool out)
{
    afdep_device *device = afdep_group_device(harness->group, rank);
    for (uint32_t lane = 1; lane < harness->config.lanes && harness->streams_apart; lane++) {
        const afdep_stream first = harness->streams[rank], other = stream_of(harness, rank, lane);
        afdep_event *event = NULL;
        TRY_ON(harness, rank, "create an event", afdep_event_create(device, &event));
        afdep_status status = afdep_event_record(event, out ? first : other);
        if (status == AFDEP_OK)
            status = afdep_stream_wait(device, out ? other : first, event);
        afdep_event_destroy(event);
        TRY(keep_failure(harness, status, "tie two streams", rank));
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
                               const struct sides *which, struct fetched *fetched)
{
    afdep_device *device = afdep_group_device(harness->group, rank);
    memset(fetched, 0, sizeof *fetched);
    for (int i = 0; i < AFJ_ARRAY_COUNT; i++) {
        const size_t bytes = array_bytes(harness, rank, which->ffn, (enum afj_array)i);
        if (bytes == 0 || !is_output(which->ffn, (enum afj_array)i))
            continue;
        fetched->array[i] = malloc(bytes);
        if (fetched->array[i] == NULL)
            return refuse_memory(harness);
        TRY_ON(harness, rank, "fetch an array",
               afdep_device_copy(device, fetched->array[i], which->side->array[i], bytes,
                                 harness->streams[rank]));
    }
    return keep_failure(harness, afdep_stream_synchronize(device, harness->streams[rank]),
                        "fetch the arrays", rank);
}

static afdep_status check_source(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                                 enum afj_expert expert, const struct fetched *fetched,
                                 struct afj_tally *tally)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    const uint32_t source = rank - afj_harness_attention(harness, 0);
    const size_t room = (size_t)harness->room + 1;
    const struct afj_way_back way = {
        .expert = expert, .grouped = is_grouped(harness), .apply_weights = harness->apply_weights};
    if (!afj_oracle_check_collected(inputs, source, &way, fetched->array[AFJ_ARRAY_OUT], room,
                                    tally))
        return refuse_memory(harness);
    if (harness->config.reply_weights != 0)
        afj_oracle_check_weights(inputs, source, is_grouped(harness),
                                 fetched->array[AFJ_ARRAY_OUT_WEIGHTS], room, tally);
    return AFDEP_OK;
}

static void check_expert(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                         const struct fetched *fetched, struct afj_tally *tally)
{
    const struct afj_inputs *inputs = &harness->lanes[lane];
    const uint32_t bucket = inputs->bucket == 0 ? harness->config.capacity : inputs->bucket;
    const uint32_t *counts = fetched->array[AFJ_ARRAY_COUNTS];
    const uint32_t *offsets = counts + count_words(harness, rank);
    const bool bare = harness->without_origins;
    const struct afj_received received = {
        .layout = harness->config.receive,
        .alignment = alignment_of(harness),
        .capacity = harness->config.capacity,
        .room = expert_rows(harness, rank),
        .padded = rows_of_bucket(harness, rank, bucket),
        .rows = fetched->array[is_view(harness) ? AFJ_ARRAY_VIEW : AFJ_ARRAY_ROWS],
        .ids = fetched->array[AFJ_ARRAY_IDS],
        .scales = fetched->array[AFJ_ARRAY_SCALES],
        .weights = fetched->array[AFJ_ARRAY_WEIGHTS],
        .sources = bare ? NULL : fetched->array[AFJ_ARRAY_SOURCES],
        .tokens = bare ? NULL : fetched->array[AFJ_ARRAY_TOKENS],
        .slots = fetched->array[AFJ_ARRAY_SLOTS],
        .counts = counts,
        .offsets = offsets,
        .host = harness->config.host_counts != 0 ? offsets + offset_words(harness, rank) : NULL};
    afj_oracle_check_received(inputs, rank, &received, tally);
}

static afdep_status check_side(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                               enum afj_expert expert, const struct sides *which,
                               struct afj_tally *tally)
{
    struct fetched fetched;
    if (expert == AFJ_EXPERT_ECHO && (which->ffn || !echoes(harness)))
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
        struct sides sides[2];
        const uint32_t count = list_sides(harness, rank, lane, sides);
        for (uint32_t i = 0; i < count; i++)
            TRY(check_side(harness, rank, lane, expert, &sides[i], tally));
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
