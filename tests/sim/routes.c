/* routes.c: bad routes are dropped, counted and, on request, fail the calls after them. */
#include <stdlib.h>
#include <string.h>

#include "sim/scene.h"

static afdep_config config_of(uint32_t id_bits)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = 2;
    config.ffn_ranks = 2;
    config.hidden = 64;
    config.experts = 8;
    config.top_k = 4;
    config.capacity = 40;
    config.id_bits = id_bits;
    return config;
}

/* What the inputs of a rank hold, counted the plain way. */
static afdep_route_faults count_faults(const struct afj_inputs *inputs, uint32_t source)
{
    afdep_route_faults faults = {0};
    for (uint32_t t = 0; t < inputs->tokens[source]; t++) {
        const int64_t *ids = afj_inputs_ids(inputs, source, t);
        const uint32_t *weights = afj_inputs_weights(inputs, source, t);
        for (uint32_t k = 0; k < inputs->top_k; k++) {
            const bool in_range = ids[k] >= 0 && ids[k] < (int64_t)inputs->experts;
            bool repeated = false;
            for (uint32_t j = 0; j < k; j++)
                repeated = repeated || ids[j] == ids[k];
            faults.out_of_range += !in_range && ids[k] != -1;
            faults.repeated += in_range && repeated;
            faults.nan_weights += in_range && (weights[k] & 0x7FFFFFFFu) > 0x7F800000u;
        }
    }
    return faults;
}

static void run_counted(uint32_t id_bits)
{
    struct scene scene;
    const afdep_config config = config_of(id_bits);
    afdep_route_faults want[2] = {{0}};
    setenv("AFDEP_CHECK_ROUTES", "count", 1);
    open_scene(&scene, &config, 40, first_seed());
    for (int i = 0; i < 4; i++) {
        afj_inputs_set_tokens(&scene.harness.lanes[0], 40);
        run_exchange(&scene, AFJ_ROUTING_MIXED);
        for (uint32_t a = 0; a < 2; a++) {
            const afdep_route_faults more = count_faults(&scene.harness.lanes[0], a);
            want[a].out_of_range += more.out_of_range;
            want[a].repeated += more.repeated;
            want[a].nan_weights += more.nan_weights;
        }
    }
    for (uint32_t a = 0; a < 2; a++) {
        afdep_route_faults got = {.struct_size = sizeof got};
        MUST(&scene, afdep_buffer_route_faults(scene.harness.buffers[2 + a], &got));
        cr_assert_eq(got.checked, 1);
        cr_assert_eq(got.out_of_range, want[a].out_of_range);
        cr_assert_eq(got.repeated, want[a].repeated);
        cr_assert_eq(got.nan_weights, want[a].nan_weights);
        cr_assert(got.out_of_range > 0 && got.repeated > 0 && got.nan_weights > 0);
        /* They are counted, and that is all. */
        MUST(&scene, afdep_buffer_check(scene.harness.buffers[2 + a]));
    }
    close_scene(&scene);
}

Test(routes, bad_ones_are_counted) { run_counted(32); }
Test(routes, bad_ones_of_wide_ids_are_counted) { run_counted(64); }

Test(routes, nothing_is_counted_unless_asked_for)
{
    struct scene scene;
    const afdep_config config = config_of(32);
    open_scene(&scene, &config, 40, first_seed());
    afj_inputs_set_tokens(&scene.harness.lanes[0], 40);
    run_exchange(&scene, AFJ_ROUTING_MIXED);
    afdep_route_faults got = {.struct_size = sizeof got};
    MUST(&scene, afdep_buffer_route_faults(scene.harness.buffers[2], &got));
    cr_assert_eq(got.checked + got.out_of_range + got.repeated + got.nan_weights, 0);
    cr_assert_eq(afdep_buffer_route_faults(scene.harness.buffers[0], &got), AFDEP_ERROR_ROLE);
    close_scene(&scene);
}

/* Exchanges whose first bad route is known: token 3, choice 2 of attention rank 1. */
static void run_failing(int64_t id, uint32_t weight, const char *words)
{
    struct scene scene;
    struct afj_tally tally = {0};
    const afdep_config config = config_of(32);
    setenv("AFDEP_CHECK_ROUTES", "error", 1);
    open_scene(&scene, &config, 40, first_seed());
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    afj_inputs_set_tokens(inputs, 6);
    run_exchange(&scene, AFJ_ROUTING_RANDOM);
    inputs->ids[(40 + 3) * 4 + 2] = id;
    inputs->weights[(40 + 3) * 4 + 2] = weight;
    MUST(&scene, afj_harness_load(&scene.harness, 0));
    MUST(&scene, afj_harness_exchange(&scene.harness, 0, AFJ_EXPERT_SCALE));
    cr_assert_eq(afj_harness_synchronize(&scene.harness), AFDEP_ERROR_ROUTES, "%s", words);
    cr_assert(strstr(afdep_last_error(), words), "\"%s\" lacks \"%s\"", afdep_last_error(), words);
    cr_assert(strstr(afdep_last_error(), "rank 3 dispatched"), "%s", afdep_last_error());
    /* The exchange itself went on as the contract says. */
    MUST(&scene, afj_harness_check(&scene.harness, 0, AFJ_EXPERT_SCALE, &tally));
    assert_clean(&scene, &tally, "with a bad route");
    cr_assert_eq(afj_harness_step(&scene.harness, 3, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE),
                 AFDEP_ERROR_ROUTES);
    MUST(&scene, afdep_buffer_check(scene.harness.buffers[2]));
    close_scene(&scene);
}

Test(routes, an_id_out_of_range_fails_the_next_call)
{
    run_failing(8, 0x3F800000, "token 3, choice 2: expert 8 of 8 is no expert");
}

Test(routes, an_id_below_none_fails_the_next_call)
{
    run_failing(-2, 0x3F800000, "token 3, choice 2: expert -2 of 8 is no expert");
}

Test(routes, a_weight_that_is_nan_fails_the_next_call)
{
    run_failing(0, 0x7FC00000, "token 3, choice 2: expert 0 of 8");
}

Test(routes, more_live_tokens_than_the_bucket_are_the_bucket)
{
    struct scene scene;
    const uint32_t many = 4000;
    const afdep_config config = config_of(32);
    setenv("AFDEP_CHECK_ROUTES", "count", 1);
    open_scene(&scene, &config, 40, first_seed());
    struct afj_harness *harness = &scene.harness;
    struct afj_tally tally = {0};
    harness->live_tokens = true;
    afj_inputs_set_tokens(&harness->lanes[0], 30);
    afj_inputs_draw(&harness->lanes[0], AFJ_ROUTING_RANDOM, &scene.dice);
    MUST(&scene, afj_harness_load(harness, 0));
    MUST(&scene, afdep_device_copy(afdep_group_device(harness->group, 2),
                                   harness->sources[0].array[AFJ_ARRAY_LIVE], &many, sizeof many,
                                   harness->streams[2]));
    MUST(&scene, afj_harness_exchange(harness, 0, AFJ_EXPERT_SCALE));
    MUST(&scene, afj_harness_synchronize(harness));
    MUST(&scene, afj_harness_check(harness, 0, AFJ_EXPERT_SCALE, &tally));
    assert_clean(&scene, &tally, "over the bucket");
    afdep_route_faults got = {.struct_size = sizeof got};
    MUST(&scene, afdep_buffer_route_faults(harness->buffers[2], &got));
    cr_assert_eq(got.over_bucket, 1);
    close_scene(&scene);
}

Test(routes, the_control_must_make_sense)
{
    afdep_buffer *buffers[4];
    afdep_group *group = NULL;
    const afdep_config config = config_of(32);
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, 4, NULL, &group), AFDEP_OK);
    setenv("AFDEP_CHECK_ROUTES", "yes", 1);
    cr_assert_eq(afdep_buffer_create(group, &config, buffers), AFDEP_ERROR_CONFIG);
    cr_assert(strstr(afdep_last_error(), "AFDEP_CHECK_ROUTES is \"yes\""), "%s",
              afdep_last_error());
    afdep_group_destroy(group);
}
