/* missing_calls.c: a rank that skips a call, or makes one too many, is named by those who waited.
 */
#include <string.h>

#include "exchange/buffer.h"
#include "sim/scene.h"

enum { RANKS = 4 };

static afdep_config good_config(void)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.timeout_ms = config.startup_timeout_ms = 500;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = 2;
    config.ffn_ranks = 2;
    config.hidden = 64;
    config.experts = 8;
    config.top_k = 4;
    config.capacity = 16;
    return config;
}

/* A call that a rank skipped, or made twice, leaves others waiting; their record names it. */
static void leave_waiting(uint32_t rank, enum afj_step skipped, uint32_t witness, const char *words)
{
    static const enum afj_step steps[] = {AFJ_STEP_DISPATCH, AFJ_STEP_RECEIVE, AFJ_STEP_REPLY,
                                          AFJ_STEP_COLLECT};
    struct scene scene;
    const afdep_config config = good_config();
    open_scene(&scene, &config, 16, first_seed());
    struct afj_harness *harness = &scene.harness;
    afj_inputs_set_tokens(&harness->lanes[0], 16);
    afj_inputs_draw(&harness->lanes[0], AFJ_ROUTING_FULL, &scene.dice);
    MUST(&scene, afj_harness_load(harness, 0));
    for (int i = 0; i < 4; i++)
        for (uint32_t r = 0; r < RANKS; r++) {
            const bool of_ffn = steps[i] == AFJ_STEP_RECEIVE || steps[i] == AFJ_STEP_REPLY;
            if (of_ffn == (r < 2) && !(r == rank && steps[i] >= skipped))
                MUST(&scene, afj_harness_step(harness, r, 0, steps[i], AFJ_EXPERT_ECHO));
        }
    (void)afj_harness_synchronize(harness);
    for (uint32_t r = 0; r < RANKS; r++)
        (void)afdep_stream_synchronize(afdep_group_device(harness->group, r), harness->streams[r]);
    cr_assert_eq(afdep_buffer_check(harness->buffers[witness]), AFDEP_ERROR_TIMEOUT);
    cr_assert(strstr(afdep_last_error(), words), "\"%s\" lacks \"%s\"", afdep_last_error(), words);
    afj_harness_destroy(harness);
}

Test(missing_calls, a_rank_that_skips_dispatch_is_named_by_receive)
{
    leave_waiting(3, AFJ_STEP_DISPATCH, 0,
                  "receive waited for the route words of attention rank 3 in exchange 0 of lane 0");
}

Test(missing_calls, a_rank_that_skips_receive_is_named_by_collect)
{
    leave_waiting(1, AFJ_STEP_RECEIVE, 2, "collect waited for the reply of FFN rank 1");
}

Test(missing_calls, a_rank_that_skips_reply_is_named_by_collect)
{
    leave_waiting(0, AFJ_STEP_REPLY, 3, "collect waited for the reply of FFN rank 0");
}

/* Attention rank 2 dispatches and collects once more than the others: FFN ranks never answer it. */
Test(missing_calls, a_rank_that_makes_a_call_too_many_waits_and_says_for_whom)
{
    struct scene scene;
    struct afj_tally tally = {0};
    const afdep_config config = good_config();
    open_scene(&scene, &config, 16, first_seed());
    struct afj_harness *harness = &scene.harness;
    afj_inputs_set_tokens(&harness->lanes[0], 16);
    afj_inputs_draw(&harness->lanes[0], AFJ_ROUTING_FULL, &scene.dice);
    MUST(&scene, afj_harness_run(harness, 0, &tally));
    MUST(&scene, afj_harness_step(harness, 2, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_ECHO));
    MUST(&scene, afj_harness_step(harness, 2, 0, AFJ_STEP_COLLECT, AFJ_EXPERT_ECHO));
    (void)afdep_stream_synchronize(afdep_group_device(harness->group, 2), harness->streams[2]);
    cr_assert_eq(afdep_buffer_check(harness->buffers[2]), AFDEP_ERROR_TIMEOUT);
    cr_assert(strstr(afdep_last_error(), "collect waited for the reply of FFN rank"), "%s",
              afdep_last_error());
    cr_assert(strstr(afdep_last_error(), "in exchange 1 of lane 0"), "%s", afdep_last_error());
    afj_harness_destroy(harness);
}

/* A driver that refuses a launch after so many. */
static int launches_left;
static afdep_status launch_or_refuse(struct afj_kernel *kernel, const struct afj_launch *launch,
                                     afdep_stream stream)
{
    if (launches_left-- == 0)
        return AFDEP_ERROR_DEVICE;
    return afj_device_sim.launch(kernel, launch, stream);
}

/* Expert-major takes three launches; the first of them refused leaves nothing, a later one leaves a
 * lane that says so instead of waiting for what was taken. */
Test(missing_calls, a_receive_that_is_launched_in_part_is_not_waited_for)
{
    for (int refused = 0; refused < 3; refused++) {
        struct scene scene;
        struct afj_tally tally = {0};
        afdep_config config = good_config();
        config.receive = AFDEP_RECEIVE_EXPERT_MAJOR;
        open_scene(&scene, &config, 16, first_seed());
        struct afj_harness *harness = &scene.harness;
        afj_inputs_set_tokens(&harness->lanes[0], 16);
        afj_inputs_draw(&harness->lanes[0], AFJ_ROUTING_FULL, &scene.dice);
        MUST(&scene, afj_harness_load(harness, 0));
        MUST(&scene, afj_harness_step_all(harness, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE));
        struct afj_device_kind refusing = afj_device_sim;
        refusing.launch = launch_or_refuse;
        harness->buffers[0]->device->kind = &refusing;
        launches_left = refused;
        cr_assert_eq(afj_harness_step(harness, 0, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_SCALE),
                     AFDEP_ERROR_DEVICE);
        harness->buffers[0]->device->kind = &afj_device_sim;
        const afdep_status again =
            afj_harness_step(harness, 0, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_SCALE);
        if (refused == 0) {
            cr_assert_eq(again, AFDEP_OK, "%s", replay_note(&scene));
            MUST(&scene, afj_harness_step(harness, 1, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_SCALE));
            MUST(&scene, afj_harness_step_all(harness, 0, AFJ_STEP_REPLY, AFJ_EXPERT_SCALE));
            MUST(&scene, afj_harness_step_all(harness, 0, AFJ_STEP_COLLECT, AFJ_EXPERT_SCALE));
            MUST(&scene, afj_harness_synchronize(harness));
            MUST(&scene, afj_harness_check(harness, 0, AFJ_EXPERT_SCALE, &tally));
            assert_clean(&scene, &tally, "after a refusal");
        } else {
            cr_assert_eq(again, AFDEP_ERROR_ORDER);
            cr_assert(strstr(afdep_last_error(), "launched in part only"), "%s",
                      afdep_last_error());
            cr_assert_eq(afj_harness_step(harness, 0, 0, AFJ_STEP_REPLY, AFJ_EXPERT_ECHO),
                         AFDEP_ERROR_ORDER);
        }
        close_scene(&scene);
    }
}
