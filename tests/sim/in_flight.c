/* in_flight.c: several exchanges in flight, in any order that the contract allows, and in one that
 * it does not; exchange numbers that wrap. */
#include <string.h>

#include "exchange/buffer.h"
#include "sim/scene.h"

static const enum afj_step steps[] = {AFJ_STEP_DISPATCH, AFJ_STEP_RECEIVE, AFJ_STEP_REPLY,
                                      AFJ_STEP_COLLECT};
enum { STEPS = 4, MOST_CALLS = 4 * STEPS * 3 };

static afdep_config config_of(uint32_t attention, uint32_t ffn, uint32_t both, uint32_t lanes)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = attention;
    config.ffn_ranks = ffn;
    config.both_ranks = both;
    config.hidden = 64;
    config.experts = 8 * ffn;
    config.top_k = 4;
    config.capacity = 40;
    config.lanes = lanes;
    return config;
}

static void load_lanes(struct scene *scene)
{
    for (uint32_t lane = 0; lane < scene->harness.config.lanes; lane++) {
        afj_inputs_set_tokens(&scene->harness.lanes[lane], 1 + afj_dice_below(&scene->dice, 40));
        afj_inputs_draw(&scene->harness.lanes[lane], AFJ_ROUTING_MIXED, &scene->dice);
        MUST(scene, afj_harness_load(&scene->harness, lane));
    }
}

static void check_lanes(struct scene *scene, const char *what)
{
    struct afj_tally tally = {0};
    MUST(scene, afj_harness_synchronize(&scene->harness));
    for (uint32_t lane = 0; lane < scene->harness.config.lanes; lane++)
        MUST(scene, afj_harness_check(&scene->harness, lane, AFJ_EXPERT_SCALE, &tally));
    assert_clean(scene, &tally, what);
}

/* A common sequence of the phases of all lanes. */
struct sequence {
    struct {
        uint32_t lane;
        enum afj_step step;
    } calls[MOST_CALLS];
    uint32_t count;
};

static struct sequence draw_sequence(struct scene *scene)
{
    const uint32_t lanes = scene->harness.config.lanes;
    struct sequence sequence = {.count = 0};
    uint32_t done[AFDEP_MAX_LANES] = {0};
    while (sequence.count < lanes * STEPS) {
        const uint32_t lane = afj_dice_below(&scene->dice, lanes);
        if (done[lane] == STEPS)
            continue;
        sequence.calls[sequence.count].lane = lane;
        sequence.calls[sequence.count++].step = steps[done[lane]++];
    }
    return sequence;
}

/* Each rank makes its calls of the sequence, in its order, ranks one after another: so nothing but
 * the order within a rank is common. */
static void run_sequence(struct scene *scene, const struct sequence *sequence)
{
    struct afj_harness *harness = &scene->harness;
    const afdep_config *c = &harness->config;
    for (uint32_t rank = 0; rank < harness->ranks; rank++)
        for (uint32_t i = 0; i < sequence->count; i++) {
            const enum afj_step step = sequence->calls[i].step;
            const bool of_ffn = step == AFJ_STEP_RECEIVE || step == AFJ_STEP_REPLY;
            if (of_ffn ? rank < c->ffn_ranks : rank >= afj_harness_attention(harness, 0))
                MUST(scene, afj_harness_step(harness, rank, sequence->calls[i].lane, step,
                                             AFJ_EXPERT_SCALE));
        }
}

static void run_common_sequences(uint32_t attention, uint32_t ffn, uint32_t both, uint32_t lanes)
{
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(8); seed++) {
        struct scene scene;
        const afdep_config config = config_of(attention, ffn, both, lanes);
        open_scene(&scene, &config, 40, seed);
        for (int trip = 0; trip < 3; trip++) {
            load_lanes(&scene);
            const struct sequence sequence = draw_sequence(&scene);
            run_sequence(&scene, &sequence);
            check_lanes(&scene, "a common sequence");
        }
        close_scene(&scene);
    }
}

Test(in_flight, two_in_any_common_sequence) { run_common_sequences(2, 2, 0, 2); }
Test(in_flight, three_in_any_common_sequence) { run_common_sequences(3, 1, 0, 3); }
Test(in_flight, four_in_any_common_sequence) { run_common_sequences(2, 1, 0, 4); }
Test(in_flight, three_of_ranks_with_both_roles) { run_common_sequences(3, 3, 3, 3); }

/* With a stream a lane nothing orders the lanes. */
static void run_apart(uint32_t lanes, bool captured)
{
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(6); seed++) {
        struct scene scene;
        afdep_graph *graphs[AFDEP_MAX_RANKS] = {NULL};
        const afdep_config config = config_of(2, 2, 0, lanes);
        open_scene(&scene, &config, 40, seed);
        scene.harness.streams_apart = true;
        load_lanes(&scene);
        if (captured)
            MUST(&scene, afj_harness_capture(&scene.harness, 2, AFJ_EXPERT_SCALE, graphs));
        for (int trip = 0; trip < 4; trip++) {
            for (uint32_t lane = 0; lane < lanes; lane++) {
                afj_inputs_draw(&scene.harness.lanes[lane], AFJ_ROUTING_RANDOM, &scene.dice);
                MUST(&scene, afj_harness_load(&scene.harness, lane));
            }
            if (captured)
                MUST(&scene, afj_harness_launch(&scene.harness, graphs));
            for (uint32_t lane = 0; lane < lanes && !captured; lane++)
                MUST(&scene,
                     afj_harness_exchange(&scene.harness, lanes - 1 - lane, AFJ_EXPERT_SCALE));
            check_lanes(&scene, captured ? "parallel branches" : "a stream a lane");
        }
        afj_harness_drop_graphs(&scene.harness, graphs);
        close_scene(&scene);
    }
}

Test(in_flight, two_on_a_stream_each) { run_apart(2, false); }
Test(in_flight, four_on_a_stream_each) { run_apart(4, false); }
Test(in_flight, three_as_parallel_branches_of_a_graph) { run_apart(3, true); }

/* d0 c0 d1 c1 on the one side, r0 r1 p0 p1 on the other: no common sequence has both. */
Test(in_flight, an_order_that_deadlocks_is_reported)
{
    static const struct {
        uint32_t rank, lane;
        enum afj_step step;
    } calls[] = {{1, 0, AFJ_STEP_DISPATCH}, {1, 0, AFJ_STEP_COLLECT}, {1, 1, AFJ_STEP_DISPATCH},
                 {1, 1, AFJ_STEP_COLLECT},  {0, 0, AFJ_STEP_RECEIVE}, {0, 1, AFJ_STEP_RECEIVE},
                 {0, 0, AFJ_STEP_REPLY},    {0, 1, AFJ_STEP_REPLY}};
    struct scene scene;
    const afdep_config config = config_of(1, 1, 0, 2);
    open_scene(&scene, &config, 40, first_seed());
    load_lanes(&scene);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        MUST(&scene, afj_harness_step(&scene.harness, calls[i].rank, calls[i].lane, calls[i].step,
                                      AFJ_EXPERT_ECHO));
    cr_assert_eq(afj_harness_synchronize(&scene.harness), AFDEP_ERROR_TIMEOUT, "%s",
                 replay_note(&scene));
    /* Which of the two gives up first is the schedule's choice; both say what they waited for. */
    const afdep_status ffn = afdep_buffer_check(scene.harness.buffers[0]);
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", afdep_last_error());
    const afdep_status attention = afdep_buffer_check(scene.harness.buffers[1]);
    cr_assert(ffn == AFDEP_ERROR_TIMEOUT || attention == AFDEP_ERROR_TIMEOUT);
    cr_assert(strstr(ffn != AFDEP_OK ? sentence : afdep_last_error(), "of lane"), "%s / %s",
              sentence, afdep_last_error());
    afj_harness_destroy(&scene.harness);
}

/* Let every counter of every rank be at `exchange`, with the acks that go with it. Device memory of
 * the simulation is host memory. */
static void set_exchange(struct scene *scene, uint32_t exchange)
{
    struct afj_harness *harness = &scene->harness;
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        const afdep_buffer *buffer = harness->buffers[rank];
        const struct afj_state_layout *state = &buffer->plan.state;
        for (uint32_t lane = 0; lane < harness->config.lanes; lane++) {
            if (buffer->plan.role & AFDEP_ROLE_FFN)
                *(uint32_t *)(uintptr_t)afj_buffer_state_at(buffer, lane, state->expert.counter) =
                    exchange;
            if (!(buffer->plan.role & AFDEP_ROLE_ATTENTION))
                continue;
            *(uint32_t *)(uintptr_t)afj_buffer_state_at(buffer, lane, state->source.counter) =
                exchange;
            uint32_t *acks = (uint32_t *)(uintptr_t)(afj_buffer_lane_at(
                                                         buffer, rank, AFDEP_ROLE_ATTENTION, lane) +
                                                     buffer->plan.regions.ack_offset);
            for (uint32_t f = 0; f < harness->config.ffn_ranks; f++)
                acks[f] = exchange - 1;
        }
    }
}

static uint32_t counter_of(const struct scene *scene, uint32_t rank)
{
    const afdep_buffer *buffer = scene->harness.buffers[rank];
    const struct afj_state_layout *state = &buffer->plan.state;
    const uint64_t at =
        rank < scene->harness.config.ffn_ranks ? state->expert.counter : state->source.counter;
    return *(uint32_t *)(uintptr_t)afj_buffer_state_at(buffer, 0, at);
}

Test(in_flight, exchange_numbers_wrap)
{
    static const uint32_t begins[] = {0xFFFFFFFDu, 0x7FFFFFFDu, 0x80000000u};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        for (uint64_t seed = first_seed(); seed < first_seed() + seeds(4); seed++) {
            struct scene scene;
            const afdep_config config = config_of(2, 2, 0, 2);
            open_scene(&scene, &config, 40, seed);
            set_exchange(&scene, begins[i]);
            for (int trip = 0; trip < 6; trip++) {
                load_lanes(&scene);
                const struct sequence sequence = draw_sequence(&scene);
                run_sequence(&scene, &sequence);
                check_lanes(&scene, "at the wrap");
            }
            for (uint32_t rank = 0; rank < scene.harness.ranks; rank++)
                cr_assert_eq(counter_of(&scene, rank), begins[i] + 6);
            close_scene(&scene);
        }
}
