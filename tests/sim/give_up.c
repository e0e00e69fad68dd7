/* give_up.c: kernels that start in the moment in which another one of their buffer gives up. */
#include <string.h>

#include <criterion/criterion.h>

#include "bench/harness.h"
#include "device/sim/sim.h"

enum { SEEDS = 24, TIMEOUT_MS = 900 };

/* A late step of lane 1 on a second stream of its rank. */
struct late {
    struct afj_harness harness;
    afdep_stream second;
    struct afj_dice dice;
    uint32_t rank;
    uint64_t seed;
};

#define MUST(late, call)                                                                           \
    cr_assert_eq(call, AFDEP_OK, "seed %llu: %s", (unsigned long long)(late)->seed,                \
                 afdep_last_error())

static void open_late(struct late *late, uint32_t rank, uint32_t tokens, uint64_t seed)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = 2;
    config.ffn_ranks = 1;
    config.hidden = 64;
    config.experts = 8;
    config.top_k = 4;
    config.capacity = 64;
    config.lanes = 2;
    config.timeout_ms = config.startup_timeout_ms = TIMEOUT_MS;
    const struct afj_sim_policy policy = afj_sim_policy_of_seed(seed);
    memset(late, 0, sizeof *late);
    late->rank = rank;
    late->seed = seed;
    afj_dice_seed(&late->dice, seed);
    afj_sim_configure(&policy);
    MUST(late, afj_harness_create(&late->harness, &config, NULL, tokens));
    for (uint32_t lane = 0; lane < 2; lane++) {
        afj_inputs_set_tokens(&late->harness.lanes[lane], tokens);
        afj_inputs_draw(&late->harness.lanes[lane], AFJ_ROUTING_RANDOM, &late->dice);
        MUST(late, afj_harness_load(&late->harness, lane));
    }
    MUST(late, afj_harness_synchronize(&late->harness));
    MUST(late, afdep_stream_create(afdep_group_device(late->harness.group, rank), &late->second));
}

static void take_step(struct late *late, uint32_t rank, uint32_t lane, enum afj_step step)
{
    MUST(late, afj_harness_step(&late->harness, rank, lane, step, AFJ_EXPERT_ECHO));
}

static void step_on_second(struct late *late, enum afj_step step)
{
    afdep_stream *stream = &late->harness.streams[late->rank];
    const afdep_stream first = *stream;
    *stream = late->second;
    const afdep_status status =
        afj_harness_step(&late->harness, late->rank, 1, step, AFJ_EXPERT_ECHO);
    *stream = first;
    MUST(late, status);
}

/* Nobody answers lane 0, so its wait ends about when the delay does if `early_us` is 0. Kernels
 * begin within some microseconds of simulated time. */
static void delay(struct late *late, uint32_t rank, afdep_stream stream, uint32_t early_us)
{
    const uint32_t us = 1000 * TIMEOUT_MS - early_us + afj_dice_below(&late->dice, 4);
    MUST(late, afdep_stream_delay(afdep_group_device(late->harness.group, rank), stream, us));
}

static void close_late(struct late *late)
{
    char violation[256];
    afdep_device *device = afdep_group_device(late->harness.group, late->rank);
    MUST(late, afdep_stream_synchronize(device, late->second));
    MUST(late, afdep_stream_synchronize(device, late->harness.streams[late->rank]));
    cr_assert_eq(afdep_buffer_check(late->harness.buffers[late->rank]), AFDEP_ERROR_TIMEOUT);
    afj_sim_first_violation(violation, sizeof violation);
    cr_assert_str_empty(violation, "seed %llu: %s", (unsigned long long)late->seed, violation);
    afdep_stream_destroy(device, late->second);
    afj_harness_destroy(&late->harness);
}

static void run_late_dispatch(uint32_t tokens, uint64_t seed)
{
    struct late late;
    open_late(&late, 1, tokens, seed);
    take_step(&late, 1, 0, AFJ_STEP_DISPATCH);
    MUST(&late, afj_harness_synchronize(&late.harness));
    take_step(&late, 1, 0, AFJ_STEP_COLLECT);
    delay(&late, late.rank, late.second, 0);
    step_on_second(&late, AFJ_STEP_DISPATCH);
    close_late(&late);
}

/* Words that arrive meanwhile make the receive of lane 0 look at the clock. */
static void run_late_receive(uint32_t tokens, uint64_t seed)
{
    struct late late;
    open_late(&late, 0, tokens, seed);
    take_step(&late, 0, 0, AFJ_STEP_RECEIVE);
    for (uint32_t rank = 1; rank <= 2; rank++) {
        delay(&late, rank, late.harness.streams[rank], 20);
        take_step(&late, rank, 1, AFJ_STEP_DISPATCH);
    }
    delay(&late, late.rank, late.second, 0);
    step_on_second(&late, AFJ_STEP_RECEIVE);
    close_late(&late);
}

static void run_late_reply(uint32_t tokens, uint64_t seed)
{
    struct late late;
    open_late(&late, 0, tokens, seed);
    take_step(&late, 1, 1, AFJ_STEP_DISPATCH);
    take_step(&late, 2, 1, AFJ_STEP_DISPATCH);
    take_step(&late, 0, 0, AFJ_STEP_RECEIVE);
    step_on_second(&late, AFJ_STEP_RECEIVE);
    delay(&late, late.rank, late.second, 0);
    step_on_second(&late, AFJ_STEP_REPLY);
    close_late(&late);
}

/* 4 tokens take the kernels of few rows, 64 those of many. */
static void run_seeds(void (*run)(uint32_t tokens, uint64_t seed))
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(4, seed);
        run(64, seed);
    }
}

Test(give_up, a_dispatch_that_starts_meanwhile_ends) { run_seeds(run_late_dispatch); }
Test(give_up, a_receive_that_starts_meanwhile_ends) { run_seeds(run_late_receive); }
Test(give_up, a_reply_that_starts_meanwhile_ends) { run_seeds(run_late_reply); }
