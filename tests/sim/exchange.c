/* exchange.c: exchanges of many layouts on simulated devices, bit by bit, under many schedules. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/scene.h"

static afdep_config config_of(uint32_t attention, uint32_t ffn, uint32_t hidden)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = attention;
    config.ffn_ranks = ffn;
    config.hidden = hidden;
    config.experts = 8 * ffn;
    config.top_k = 4;
    config.capacity = 96;
    return config;
}

/* Several exchanges in a row over the same buffers, everything drawn from the seed. */
static void run_seed(uint32_t attention, uint32_t ffn, uint32_t hidden, uint32_t most_tokens,
                     int exchanges, uint64_t seed)
{
    struct scene scene;
    const afdep_config config = config_of(attention, ffn, hidden);
    open_scene(&scene, &config, config.capacity, seed);
    for (int i = 0; i < exchanges; i++) {
        draw_tokens(&scene, most_tokens);
        scene.harness.without_origins = afj_dice_below(&scene.dice, 3) == 0;
        run_exchange(&scene, (enum afj_routing)afj_dice_below(&scene.dice, AFJ_ROUTING_COUNT));
    }
    close_scene(&scene);
}

static void run_seeds(uint32_t attention, uint32_t ffn, uint32_t hidden, uint32_t most_tokens,
                      int exchanges, uint64_t usual)
{
    const uint64_t first = first_seed(), count = seeds(usual);
    for (uint64_t seed = first; seed < first + count; seed++)
        run_seed(attention, ffn, hidden, most_tokens, exchanges, seed);
}

Test(exchange, two_by_two_is_exact_whatever_the_schedule) { run_seeds(2, 2, 64, 64, 5, 24); }
Test(exchange, three_to_one_is_exact_whatever_the_schedule) { run_seeds(3, 1, 64, 64, 5, 24); }
Test(exchange, one_to_three_is_exact_whatever_the_schedule) { run_seeds(1, 3, 64, 64, 5, 24); }
Test(exchange, seven_to_one_is_exact_whatever_the_schedule) { run_seeds(7, 1, 64, 64, 3, 8); }
Test(exchange, eleven_to_one_is_exact_whatever_the_schedule) { run_seeds(11, 1, 64, 64, 3, 6); }
Test(exchange, rows_of_2048_elements_are_exact) { run_seeds(2, 2, 2048, 6, 3, 4); }
Test(exchange, rows_of_2880_elements_are_exact) { run_seeds(1, 1, 2880, 6, 3, 3); }

Test(exchange, every_routing_is_exact_in_both_shapes_of_kernels)
{
    struct scene scene;
    const afdep_config config = config_of(2, 2, 64);
    open_scene(&scene, &config, 64, first_seed());
    for (unsigned routing = 0; routing < AFJ_ROUTING_COUNT; routing++)
        for (uint32_t tokens = 1; tokens <= 64; tokens += 21) {
            afj_inputs_set_tokens(&scene.harness.lanes[0], tokens);
            run_exchange(&scene, (enum afj_routing)routing);
        }
    close_scene(&scene);
}

Test(exchange, any_subset_of_sources_may_have_no_tokens)
{
    struct scene scene;
    const afdep_config config = config_of(3, 1, 64);
    open_scene(&scene, &config, 20, first_seed());
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    for (unsigned subset = 0; subset < 8; subset++) {
        for (uint32_t a = 0; a < 3; a++)
            inputs->tokens[a] = (subset >> a & 1) != 0 ? 0 : 20;
        inputs->bucket = 20;
        run_exchange(&scene, AFJ_ROUTING_RANDOM);
    }
    close_scene(&scene);
}

Test(exchange, wide_sets_of_ffn_ranks_are_exact)
{
    struct scene scene;
    afdep_config config = config_of(1, 40, 64);
    config.top_k = 32;
    open_scene(&scene, &config, 8, first_seed());
    afj_inputs_set_tokens(&scene.harness.lanes[0], 8);
    run_exchange(&scene, AFJ_ROUTING_FULL);
    run_exchange(&scene, AFJ_ROUTING_RANDOM);
    close_scene(&scene);
}

/* Three round trips of a source are enqueued at once; the FFN rank and the other source come later.
 */
/* A receive whose bucket is smaller than the sources' breaks the contract, and still stays within
 * the rows that its own bucket gives it. */
static void receive_too_few(uint32_t bucket)
{
    enum { SENT = 62, HIDDEN = 64 };
    struct scene scene;
    afdep_config config = config_of(2, 1, HIDDEN);
    config.capacity = SENT;
    open_scene(&scene, &config, SENT, first_seed());
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    afj_inputs_set_tokens(inputs, SENT);
    afj_inputs_draw(inputs, AFJ_ROUTING_FULL, &scene.dice);
    MUST(&scene, afj_harness_load(&scene.harness, 0));
    MUST(&scene, afj_harness_step_all(&scene.harness, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_ECHO));
    MUST(&scene, afj_harness_synchronize(&scene.harness));
    const uint16_t *past = (const uint16_t *)scene.harness.experts[0].array[AFJ_ARRAY_ROWS] +
                           (size_t)2 * bucket * HIDDEN;
    const size_t bytes = (size_t)2 * (SENT - bucket) * HIDDEN * sizeof *past;
    void *before = malloc(bytes);
    cr_assert_not_null(before);
    memcpy(before, past, bytes);
    inputs->bucket = bucket;
    MUST(&scene, afj_harness_step_all(&scene.harness, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_ECHO));
    MUST(&scene, afj_harness_synchronize(&scene.harness));
    cr_assert_eq(memcmp(before, past, bytes), 0, "bucket %u: rows past the last were written",
                 bucket);
    cr_assert_eq(*scene.harness.experts[0].where.total, 2 * bucket);
    free(before);
    close_scene(&scene);
}

Test(exchange, a_smaller_bucket_than_the_sources_never_writes_past_its_rows)
{
    for (uint32_t bucket = 1; bucket < 62; bucket += 5)
        receive_too_few(bucket);
}

Test(exchange, an_idle_source_may_run_ahead)
{
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(8); seed++) {
        struct scene scene;
        struct afj_tally tally = {0};
        const afdep_config config = config_of(3, 1, 64);
        open_scene(&scene, &config, 16, seed);
        struct afj_harness *harness = &scene.harness;
        struct afj_inputs *inputs = &harness->lanes[0];
        afj_inputs_set_tokens(inputs, 16);
        inputs->tokens[1] = 0;
        afj_inputs_draw(inputs, AFJ_ROUTING_RANDOM, &scene.dice);
        MUST(&scene, afj_harness_load(harness, 0));
        static const uint32_t order[] = {2, 1, 3}; /* ranks; rank 2 is source 1, the idle one */
        for (int i = 0; i < 3; i++)
            for (int trip = 0; trip < 3; trip++) {
                MUST(&scene,
                     afj_harness_step(harness, order[i], 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE));
                MUST(&scene,
                     afj_harness_step(harness, order[i], 0, AFJ_STEP_COLLECT, AFJ_EXPERT_SCALE));
            }
        for (int trip = 0; trip < 3; trip++) {
            MUST(&scene, afj_harness_step(harness, 0, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_SCALE));
            MUST(&scene, afj_harness_step(harness, 0, 0, AFJ_STEP_REPLY, AFJ_EXPERT_SCALE));
        }
        MUST(&scene, afj_harness_synchronize(harness));
        MUST(&scene, afj_harness_check(harness, 0, AFJ_EXPERT_SCALE, &tally));
        assert_clean(&scene, &tally, "three trips at once");
        close_scene(&scene);
    }
}

/* Sources without tokens wait for nothing but acks, so their next route words follow each ack at
 * once. A source has four words, re-armed by other lanes of reply than the one that acks. */
Test(exchange, no_ack_overtakes_a_re_arm_of_route_words)
{
    enum { TRIPS = 6 };
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(24); seed++) {
        struct scene scene;
        struct afj_tally tally = {0};
        const afdep_config config = config_of(3, 1, 64);
        open_scene(&scene, &config, 96, seed);
        struct afj_harness *harness = &scene.harness;
        afj_inputs_set_tokens(&harness->lanes[0], 0);
        harness->lanes[0].bucket = 96;
        afj_inputs_draw(&harness->lanes[0], AFJ_ROUTING_RANDOM, &scene.dice);
        MUST(&scene, afj_harness_load(harness, 0));
        for (int trip = 0; trip < TRIPS; trip++)
            MUST(&scene, afj_harness_exchange(harness, 0, AFJ_EXPERT_ECHO));
        MUST(&scene, afj_harness_synchronize(harness));
        MUST(&scene, afj_harness_check(harness, 0, AFJ_EXPERT_ECHO, &tally));
        assert_clean(&scene, &tally, "trips without tokens");
        close_scene(&scene);
    }
}

/* Hold all CTAs of an entry but one, or a whole rank, until nothing else can run. */
static void run_held(const char *entry, int32_t device)
{
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(6); seed++) {
        struct scene scene;
        const afdep_config config = config_of(2, 2, 64);
        open_scene(&scene, &config, 64, seed);
        struct afj_sim_policy policy = afj_sim_policy_of_seed(seed);
        policy.hold_entry = entry;
        policy.hold_device = device;
        afj_sim_configure(&policy);
        for (int i = 0; i < 3; i++) {
            afj_inputs_set_tokens(&scene.harness.lanes[0], i == 1 ? 5 : 64);
            run_exchange(&scene, i == 2 ? AFJ_ROUTING_MIXED : AFJ_ROUTING_RANDOM);
        }
        close_scene(&scene);
    }
}

Test(exchange, late_ctas_of_receive_do_no_harm) { run_held("receive", -1); }
Test(exchange, late_ctas_of_receive_few_do_no_harm) { run_held("receive_few", -1); }
Test(exchange, late_ctas_of_dispatch_do_no_harm) { run_held("dispatch", -1); }
Test(exchange, late_ctas_of_reply_do_no_harm) { run_held("reply", -1); }
Test(exchange, late_ctas_of_collect_do_no_harm) { run_held("collect", -1); }
Test(exchange, a_late_ffn_rank_does_no_harm) { run_held(NULL, 0); }
Test(exchange, a_late_source_does_no_harm) { run_held(NULL, 3); }

static uint64_t trace_of(uint64_t seed)
{
    run_seed(2, 2, 64, 32, 2, seed);
    return afj_sim_trace_digest();
}

Test(exchange, the_same_seed_gives_the_same_trace)
{
    const uint64_t seed = first_seed();
    const uint64_t trace = trace_of(seed);
    cr_assert_eq(trace_of(seed), trace, "seed %llu runs in two ways", (unsigned long long)seed);
    cr_assert_neq(trace_of(seed + 1), trace, "the seed changes nothing");
}

static void draw_both_lanes(struct scene *scene)
{
    for (uint32_t lane = 0; lane < 2; lane++) {
        afj_inputs_set_tokens(&scene->harness.lanes[lane], 1 + afj_dice_below(&scene->dice, 48));
        afj_inputs_draw(&scene->harness.lanes[lane], AFJ_ROUTING_RANDOM, &scene->dice);
        MUST(scene, afj_harness_load(&scene->harness, lane));
    }
}

static void check_both_lanes(struct scene *scene, const char *what)
{
    struct afj_tally tally = {0};
    MUST(scene, afj_harness_synchronize(&scene->harness));
    for (uint32_t lane = 0; lane < 2; lane++)
        MUST(scene, afj_harness_check(&scene->harness, lane, AFJ_EXPERT_SCALE, &tally));
    assert_clean(scene, &tally, what);
}

Test(exchange, a_captured_exchange_replays_with_new_inputs)
{
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(6); seed++) {
        struct scene scene;
        afdep_graph *graphs[AFDEP_MAX_RANKS];
        afdep_config config = config_of(2, 2, 64);
        config.lanes = 2;
        open_scene(&scene, &config, 48, seed);
        draw_both_lanes(&scene);
        MUST(&scene, afj_harness_capture(&scene.harness, 2, AFJ_EXPERT_SCALE, graphs));
        for (int replay = 0; replay < 4; replay++) {
            for (uint32_t lane = 0; lane < 2; lane++) {
                afj_inputs_draw(&scene.harness.lanes[lane],
                                replay == 1 ? AFJ_ROUTING_EMPTY : AFJ_ROUTING_MIXED, &scene.dice);
                MUST(&scene, afj_harness_load(&scene.harness, lane));
            }
            MUST(&scene, afj_harness_launch(&scene.harness, graphs));
            check_both_lanes(&scene, "a replay");
        }
        afj_harness_drop_graphs(&scene.harness, graphs);
        close_scene(&scene);
    }
}

/* The check itself must be able to fail: a word changed on its way shows as a wrong row. */
static void spoil_word(const struct afj_sim_arrival *arrival, void *user)
{
    (void)arrival;
    ++*(uint64_t *)user;
}

Test(exchange, words_travel_through_the_simulated_links)
{
    struct scene scene;
    uint64_t arrivals = 0;
    const afdep_config config = config_of(1, 1, 64);
    open_scene(&scene, &config, 4, first_seed());
    struct afj_sim_policy policy = afj_sim_policy_of_seed(scene.seed);
    policy.arrival = spoil_word;
    policy.user = &arrivals;
    afj_sim_configure(&policy);
    afj_inputs_set_tokens(&scene.harness.lanes[0], 4);
    run_exchange(&scene, AFJ_ROUTING_FULL);
    /* Four rows of 32 words there and back, ids, weights, a route word and an ack. */
    cr_assert_geq(arrivals, 4 * (32 + 8 + 32) + 2);
    close_scene(&scene);
}

Test(oracle, a_wrong_row_a_wrong_count_and_a_write_too_far_are_found)
{
    struct scene scene;
    struct afj_tally tally = {0};
    const afdep_config config = config_of(1, 1, 64);
    open_scene(&scene, &config, 4, first_seed());
    struct afj_harness *harness = &scene.harness;
    struct afj_inputs *inputs = &harness->lanes[0];
    afj_inputs_set_tokens(inputs, 3);
    run_exchange(&scene, AFJ_ROUTING_FULL);
    inputs->rows[5] ^= 1; /* the reference now expects another row, here and when collected */
    MUST(&scene, afj_harness_check(harness, 0, AFJ_EXPERT_SCALE, &tally));
    cr_assert_eq(tally.wrong, 2, "%llu", (unsigned long long)tally.wrong);
    inputs->rows[5] ^= 1;

    tally = (struct afj_tally){0};
    inputs->weights[0] ^= 0x7F000000; /* by far enough for every sum to show */
    MUST(&scene, afj_harness_check(harness, 0, AFJ_EXPERT_SCALE, &tally));
    cr_assert_eq(tally.wrong, 2, "%llu", (unsigned long long)tally.wrong);
    inputs->weights[0] ^= 0x7F000000;

    tally = (struct afj_tally){0};
    inputs->tokens[0] = 2; /* three rows came: a row too many on each side, and three counts */
    MUST(&scene, afj_harness_check(harness, 0, AFJ_EXPERT_SCALE, &tally));
    cr_assert_geq(tally.wrong, 4);
    close_scene(&scene);
}
