/* deployments.h: deployments that differ in what they ask of the contract, for tests on both kinds
 * of device. */
#ifndef AFJ_TESTS_DEPLOYMENTS_H
#define AFJ_TESTS_DEPLOYMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <afdep/config.h>

/* Experts of a mapped deployment: replicas beside each other, FFN rank 1 without any. */
static const uint32_t scattered[] = {2, 0, 2, 2, 0, 0, 2, 0, 2, 0, 0, 2, 2};
enum { SCATTERED = sizeof scattered / sizeof *scattered };

/* Deployments that differ in what they ask for. What is 0 is the default. */
static const struct deployment {
    const char *name;
    uint32_t attention, ffn, both, hidden, dtype, payload, ids, experts, top_k;
    uint32_t layout, alignment, lanes;
    uint32_t capacity; /* 0: little */
    bool counts_first, host_counts, reply_weights, collect_view, mapped;
} deployments[] = {
    {.name = "fp8", .attention = 2, .ffn = 2, .hidden = 144, .dtype = AFDEP_DTYPE_FP8},
    {.name = "fp8, several pieces, counts first",
     .attention = 2,
     .ffn = 2,
     .hidden = 1040,
     .dtype = AFDEP_DTYPE_FP8,
     .counts_first = true},
    {.name = "packed scales, view, wide ids",
     .attention = 3,
     .ffn = 1,
     .hidden = 640,
     .dtype = AFDEP_DTYPE_FP8_UE8M0,
     .ids = 64,
     .layout = AFDEP_RECEIVE_VIEW},
    {.name = "as many packed scales as there can be",
     .attention = 1,
     .ffn = 1,
     .hidden = 16384,
     .dtype = AFDEP_DTYPE_FP8_UE8M0,
     .collect_view = true,
     .counts_first = true},
    {.name = "opaque, less than a block",
     .attention = 1,
     .ffn = 3,
     .hidden = 64,
     .dtype = AFDEP_DTYPE_OPAQUE,
     .payload = 80},
    {.name = "opaque, blocks and a rest, grouped",
     .attention = 2,
     .ffn = 2,
     .hidden = 72,
     .dtype = AFDEP_DTYPE_OPAQUE,
     .payload = 2064,
     .layout = AFDEP_RECEIVE_EXPERT_MAJOR,
     .alignment = 4},
    {.name = "every rank both roles", .attention = 3, .ffn = 3, .both = 3, .hidden = 64},
    {.name = "some ranks both roles, grouped, counts first",
     .attention = 3,
     .ffn = 3,
     .both = 2,
     .hidden = 80,
     .dtype = AFDEP_DTYPE_FP8,
     .layout = AFDEP_RECEIVE_EXPERT_MAJOR,
     .counts_first = true,
     .host_counts = true},
    {.name = "experts that do not divide, grouped, weights back",
     .attention = 2,
     .ffn = 3,
     .hidden = 64,
     .experts = 16,
     .top_k = 5,
     .layout = AFDEP_RECEIVE_EXPERT_MAJOR,
     .alignment = 8,
     .reply_weights = true,
     .ids = 64},
    {.name = "a map, wide ids, weights back, counts on the host",
     .attention = 2,
     .ffn = 3,
     .hidden = 64,
     .experts = SCATTERED,
     .mapped = true,
     .ids = 64,
     .reply_weights = true,
     .host_counts = true},
    {.name = "a map, grouped",
     .attention = 2,
     .ffn = 3,
     .hidden = 64,
     .experts = SCATTERED,
     .mapped = true,
     .layout = AFDEP_RECEIVE_EXPERT_MAJOR,
     .alignment = 3,
     .host_counts = true},
    {.name = "views both ways",
     .attention = 2,
     .ffn = 1,
     .hidden = 136,
     .layout = AFDEP_RECEIVE_VIEW,
     .collect_view = true,
     .reply_weights = true},
    {.name = "a view, counts first and on the host, two lanes",
     .attention = 2,
     .ffn = 2,
     .hidden = 520,
     .layout = AFDEP_RECEIVE_VIEW,
     .counts_first = true,
     .host_counts = true,
     .lanes = 2},
    {.name = "one expert, all choices",
     .attention = 2,
     .ffn = 1,
     .hidden = 64,
     .experts = 1,
     .top_k = 1,
     .layout = AFDEP_RECEIVE_EXPERT_MAJOR},
    {.name = "many choices, grouped",
     .attention = 1,
     .ffn = 2,
     .hidden = 64,
     .experts = 64,
     .top_k = 32,
     .layout = AFDEP_RECEIVE_EXPERT_MAJOR,
     .alignment = 16},
    /* The others are for GPUs: the simulation would take long. */
    {.name = "fp8 as models have it",
     .attention = 2,
     .ffn = 2,
     .hidden = 7168,
     .dtype = AFDEP_DTYPE_FP8,
     .experts = 256,
     .top_k = 8,
     .capacity = 600},
    {.name = "packed scales, grouped, aligned, counts on the host",
     .attention = 2,
     .ffn = 2,
     .hidden = 4096,
     .dtype = AFDEP_DTYPE_FP8_UE8M0,
     .experts = 64,
     .top_k = 8,
     .layout = AFDEP_RECEIVE_EXPERT_MAJOR,
     .alignment = 128,
     .host_counts = true,
     .capacity = 600},
    {.name = "opaque rows of four bits an element and their scales",
     .attention = 2,
     .ffn = 1,
     .hidden = 7168,
     .dtype = AFDEP_DTYPE_OPAQUE,
     .payload = 3584 + 448,
     .experts = 64,
     .top_k = 8,
     .capacity = 600},
    {.name = "a view both ways, large",
     .attention = 2,
     .ffn = 1,
     .hidden = 2880,
     .layout = AFDEP_RECEIVE_VIEW,
     .collect_view = true,
     .capacity = 600},
    {.name = "every rank both roles, large, two lanes",
     .attention = 3,
     .ffn = 3,
     .both = 3,
     .hidden = 2048,
     .experts = 64,
     .top_k = 8,
     .lanes = 2,
     .capacity = 600},
};
enum {
    DEPLOYMENTS = sizeof deployments / sizeof *deployments,
    GPU_DEPLOYMENTS = 5,
    USUAL_DEPLOYMENTS = DEPLOYMENTS - GPU_DEPLOYMENTS
};

static inline uint32_t afj_value_or(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static inline afdep_config afj_deployment_config(const struct deployment *d, uint32_t device)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = device;
    config.attention_ranks = d->attention;
    config.ffn_ranks = d->ffn;
    config.both_ranks = d->both;
    config.hidden = d->hidden;
    config.dtype = afj_value_or(d->dtype, AFDEP_DTYPE_BF16);
    config.payload_bytes = d->payload;
    config.id_bits = d->ids;
    config.experts = afj_value_or(d->experts, 8 * d->ffn);
    config.top_k = afj_value_or(d->top_k, 4);
    config.capacity = afj_value_or(d->capacity, d->hidden > 8192 ? 2 : 70);
    if (device == AFDEP_DEVICE_SIM) /* its links are slow */
        config.timeout_ms = config.startup_timeout_ms = 24 * 3600 * 1000;
    config.lanes = afj_value_or(d->lanes, 1);
    config.receive = afj_value_or(d->layout, AFDEP_RECEIVE_COMPACT);
    config.alignment = d->alignment;
    config.counts_first = d->counts_first;
    config.host_counts = d->host_counts;
    config.reply_weights = d->reply_weights;
    config.collect_view = d->collect_view;
    config.expert_ranks = d->mapped ? scattered : NULL;
    return config;
}

#endif
