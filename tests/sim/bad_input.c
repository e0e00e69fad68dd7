/* bad_input.c: calls that must be refused: each with its status, a sentence with the values in it,
 * and nothing launched. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "bench/harness.h"

static void expect(afdep_status got, afdep_status want, const char *words)
{
    cr_expect_eq(got, want, "%s, not %s: %s", afdep_status_name(got), afdep_status_name(want),
                 afdep_last_error());
    cr_expect(strstr(afdep_last_error(), words) != NULL, "\"%s\" lacks \"%s\"", afdep_last_error(),
              words);
}

static afdep_config good_config(void)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = 2;
    config.hidden = 64;
    config.capacity = 16;
    config.experts = 8;
    config.top_k = 2;
    return config;
}

Test(bad_config, every_field_out_of_range_is_named_with_its_value)
{
    static const struct {
        size_t field;
        uint32_t value;
        const char *name, *words;
    } cases[] = {
        {offsetof(afdep_config, device), 7, "device", "7"},
        {offsetof(afdep_config, attention_ranks), 0, "attention_ranks", "0"},
        {offsetof(afdep_config, attention_ranks), 4000000000, "attention_ranks", "4000000000"},
        {offsetof(afdep_config, attention_ranks), 128, "attention_ranks", "128"},
        {offsetof(afdep_config, ffn_ranks), 0, "ffn_ranks", "0"},
        {offsetof(afdep_config, ffn_ranks), 65, "ffn_ranks", "65"},
        {offsetof(afdep_config, hidden), 0, "hidden", "0"},
        {offsetof(afdep_config, hidden), 56, "hidden", "56"},
        {offsetof(afdep_config, hidden), 2052, "hidden", "2052"},
        {offsetof(afdep_config, hidden), 16392, "hidden", "16392"},
        {offsetof(afdep_config, dtype), 0, "dtype", "0"},
        {offsetof(afdep_config, dtype), 9, "dtype", "9"},
        {offsetof(afdep_config, experts), 0, "experts", "0"},
        {offsetof(afdep_config, experts), 65537, "experts", "65537"},
        {offsetof(afdep_config, top_k), 0, "top_k", "0"},
        {offsetof(afdep_config, top_k), 33, "top_k", "33"},
        {offsetof(afdep_config, capacity), 0, "capacity", "0"},
        {offsetof(afdep_config, capacity), 1048577, "capacity", "1048577"},
        {offsetof(afdep_config, lanes), 5, "lanes", "5"},
        {offsetof(afdep_config, ctas), 100000, "ctas", "100000"},
        {offsetof(afdep_config, timeout_ms), 4000000000, "timeout_ms", "4000000000"},
        {offsetof(afdep_config, reserved), 3, "reserved", "3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        afdep_config config = good_config();
        afdep_plan plan = {.struct_size = sizeof plan};
        memcpy((char *)&config + cases[i].field, &cases[i].value, sizeof cases[i].value);
        expect(afdep_plan_query(&config, 0, &plan), AFDEP_ERROR_CONFIG, cases[i].name);
        expect(afdep_plan_query(&config, 0, &plan), AFDEP_ERROR_CONFIG, cases[i].words);
        afdep_build_result result = {.struct_size = sizeof result};
        expect(afdep_cache_build(&config, 1, NULL, &result), AFDEP_ERROR_CONFIG, cases[i].words);
    }
}

Test(bad_config, fields_that_do_not_fit_together_are_named)
{
    afdep_plan plan = {.struct_size = sizeof plan};
    afdep_config config = good_config();
    config.both_ranks = 2;
    expect(afdep_plan_query(&config, 0, &plan), AFDEP_ERROR_CONFIG, "both_ranks is 2");
    config = good_config();
    config.attention_ranks = 100;
    config.ffn_ranks = 32;
    config.experts = 32;
    expect(afdep_plan_query(&config, 0, &plan), AFDEP_ERROR_CONFIG, "132");
    config = good_config();
    config.arch = "sm_90a";
    expect(afdep_plan_query(&config, 0, &plan), AFDEP_ERROR_CONFIG, "sm_90a");
    config.device = AFDEP_DEVICE_CUDA;
    config.arch = "volta";
    expect(afdep_plan_query(&config, 0, &plan), AFDEP_ERROR_CONFIG, "volta");
}

Test(bad_config, pointers_sizes_and_ranks_are_arguments)
{
    afdep_plan plan = {.struct_size = sizeof plan};
    afdep_config config = good_config();
    expect(afdep_plan_query(NULL, 0, &plan), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_plan_query(&config, 0, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_plan_query(&config, 3, &plan), AFDEP_ERROR_ARGUMENT, "3");
    plan.struct_size = 4;
    expect(afdep_plan_query(&config, 0, &plan), AFDEP_ERROR_ARGUMENT, "4");
    plan.struct_size = sizeof plan;
    config.struct_size = 0;
    expect(afdep_plan_query(&config, 0, &plan), AFDEP_ERROR_ARGUMENT, "struct_size");
    expect(afdep_cache_build(NULL, 1, NULL, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_cache_environment(NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_cache_get_stats(NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    afdep_variable variable = {.struct_size = sizeof variable};
    expect(afdep_variable_get(10000, &variable), AFDEP_ERROR_ARGUMENT, "10000");
}

Test(bad_config, a_config_of_a_newer_release_is_taken_if_what_is_unknown_is_zero)
{
    struct {
        afdep_config config;
        uint32_t more[4];
    } newer = {good_config(), {0}};
    afdep_plan plan = {.struct_size = sizeof plan};
    newer.config.struct_size = sizeof newer;
    cr_expect_eq(afdep_plan_query(&newer.config, 0, &plan), AFDEP_OK, "%s", afdep_last_error());
    newer.more[3] = 1;
    expect(afdep_plan_query(&newer.config, 0, &plan), AFDEP_ERROR_ARGUMENT, "not zero");
}

Test(bad_group, ranks_kinds_and_configs_that_do_not_fit_are_refused)
{
    afdep_group *group = NULL;
    afdep_buffer *buffers[3] = {NULL};
    expect(afdep_group_create_local(AFDEP_DEVICE_SIM, 3, NULL, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_group_create_local((afdep_device_kind)9, 3, NULL, &group), AFDEP_ERROR_ARGUMENT,
           "9");
    expect(afdep_group_create_local(AFDEP_DEVICE_SIM, 1, NULL, &group), AFDEP_ERROR_ARGUMENT, "1");
    expect(afdep_group_create_local(AFDEP_DEVICE_SIM, 129, NULL, &group), AFDEP_ERROR_ARGUMENT,
           "129");
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, 3, NULL, &group), AFDEP_OK);
    afdep_config config = good_config();
    expect(afdep_buffer_create(NULL, &config, buffers), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_buffer_create(group, NULL, buffers), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_buffer_create(group, &config, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    config.attention_ranks = 5;
    expect(afdep_buffer_create(group, &config, buffers), AFDEP_ERROR_CONFIG, "6");
    config = good_config();
    config.device = AFDEP_DEVICE_CUDA;
    expect(afdep_buffer_create(group, &config, buffers), AFDEP_ERROR_CONFIG, "device");
    for (int i = 0; i < 3; i++)
        cr_expect_null(buffers[i]);
    afdep_group_destroy(group);
}

/* A harness of two attention ranks, 1 and 2, and FFN rank 0. */
static void open_harness(struct afj_harness *harness)
{
    const afdep_config config = good_config();
    struct afj_dice dice;
    afj_dice_seed(&dice, 1);
    cr_assert_eq(afj_harness_create(harness, &config, NULL, 8), AFDEP_OK, "%s", harness->failure);
    afj_inputs_set_tokens(&harness->lanes[0], 8);
    afj_inputs_draw(&harness->lanes[0], AFJ_ROUTING_FULL, &dice);
}

/* A whole exchange still comes out right: what was refused left nothing behind. */
static void close_harness(struct afj_harness *harness)
{
    struct afj_tally tally = {0};
    cr_expect_eq(afj_harness_run(harness, 0, &tally), AFDEP_OK, "%s", harness->failure);
    cr_expect(afj_tally_is_clean(&tally), "%s", tally.first);
    afj_harness_destroy(harness);
}

Test(bad_calls, the_wrong_role_is_refused)
{
    struct afj_harness harness;
    open_harness(&harness);
    afdep_buffer *ffn = harness.buffers[0], *attention = harness.buffers[1];
    const afdep_dispatch_args dispatch = {.struct_size = sizeof dispatch};
    const afdep_collect_args collect = {.struct_size = sizeof collect};
    const afdep_receive_args receive = {.struct_size = sizeof receive};
    const afdep_reply_args reply = {.struct_size = sizeof reply};
    const afdep_scale_args scale = {.struct_size = sizeof scale};
    afdep_counts counts = {.struct_size = sizeof counts};
    expect(afdep_dispatch(ffn, &dispatch, NULL), AFDEP_ERROR_ROLE, "rank 0");
    expect(afdep_collect(ffn, &collect, NULL), AFDEP_ERROR_ROLE, "rank 0");
    expect(afdep_receive(attention, &receive, NULL), AFDEP_ERROR_ROLE, "rank 1");
    expect(afdep_reply(attention, &reply, NULL), AFDEP_ERROR_ROLE, "rank 1");
    expect(afdep_scale(attention, &scale, NULL), AFDEP_ERROR_ROLE, "rank 1");
    expect(afdep_buffer_counts(attention, 0, &counts), AFDEP_ERROR_ROLE, "rank 1");
    close_harness(&harness);
}

Test(bad_calls, null_and_wrong_sizes_are_refused)
{
    struct afj_harness harness;
    open_harness(&harness);
    afdep_buffer *ffn = harness.buffers[0], *attention = harness.buffers[1];
    void *const *side = harness.sources[0].array;
    afdep_dispatch_args dispatch = {.struct_size = sizeof dispatch,
                                    .tokens = 8,
                                    .bucket = 8,
                                    .rows = side[AFJ_ARRAY_ROWS],
                                    .ids = side[AFJ_ARRAY_IDS],
                                    .weights = side[AFJ_ARRAY_WEIGHTS]};
    expect(afdep_dispatch(NULL, &dispatch, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_dispatch(attention, NULL, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    dispatch.struct_size = 8;
    expect(afdep_dispatch(attention, &dispatch, NULL), AFDEP_ERROR_ARGUMENT, "8");
    dispatch.struct_size = sizeof dispatch;
    dispatch.lane = 1;
    expect(afdep_dispatch(attention, &dispatch, NULL), AFDEP_ERROR_ARGUMENT, "lane is 1");
    dispatch.lane = 0;
    dispatch.rows = NULL;
    expect(afdep_dispatch(attention, &dispatch, NULL), AFDEP_ERROR_ARGUMENT, "rows");
    dispatch.rows = (const char *)side[AFJ_ARRAY_ROWS] + 8;
    expect(afdep_dispatch(attention, &dispatch, NULL), AFDEP_ERROR_ARGUMENT, "aligned to 16");
    dispatch.rows = side[AFJ_ARRAY_ROWS];
    dispatch.ids = NULL;
    expect(afdep_dispatch(attention, &dispatch, NULL), AFDEP_ERROR_ARGUMENT, "ids");
    dispatch.ids = side[AFJ_ARRAY_IDS];
    dispatch.weights = NULL;
    expect(afdep_dispatch(attention, &dispatch, NULL), AFDEP_ERROR_ARGUMENT, "weights");
    const afdep_receive_args receive = {.struct_size = sizeof receive};
    expect(afdep_receive(ffn, NULL, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_receive(ffn, &receive, NULL), AFDEP_ERROR_ARGUMENT, "rows");
    void *const *into = harness.experts[0].array;
    afdep_receive_args crooked = {.struct_size = sizeof crooked,
                                  .bucket = 8,
                                  .rows = into[AFJ_ARRAY_ROWS],
                                  .ids = into[AFJ_ARRAY_IDS],
                                  .weights = into[AFJ_ARRAY_WEIGHTS],
                                  .sources = (uint32_t *)((char *)into[AFJ_ARRAY_SOURCES] + 2)};
    expect(afdep_receive(ffn, &crooked, NULL), AFDEP_ERROR_ARGUMENT, "sources");
    crooked.sources = into[AFJ_ARRAY_SOURCES];
    crooked.tokens = (uint32_t *)((char *)into[AFJ_ARRAY_TOKENS] + 1);
    expect(afdep_receive(ffn, &crooked, NULL), AFDEP_ERROR_ARGUMENT, "tokens");
    expect(afdep_reply(ffn, NULL, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_scale(ffn, NULL, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_collect(attention, NULL, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_buffer_counts(ffn, 0, NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_buffer_check(NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    expect(afdep_buffer_close(NULL), AFDEP_ERROR_ARGUMENT, "NULL");
    close_harness(&harness);
}

Test(bad_calls, too_many_tokens_and_too_large_a_bucket_are_refused)
{
    struct afj_harness harness;
    open_harness(&harness);
    struct afj_inputs *inputs = &harness.lanes[0];
    inputs->tokens[0] = 9;
    expect(afj_harness_step(&harness, 1, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE),
           AFDEP_ERROR_TOKENS, "tokens is 9");
    inputs->tokens[0] = 8;
    inputs->bucket = 17;
    expect(afj_harness_step(&harness, 1, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE),
           AFDEP_ERROR_TOKENS, "bucket is 17");
    expect(afj_harness_step(&harness, 0, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_SCALE), AFDEP_ERROR_TOKENS,
           "bucket is 17");
    inputs->bucket = 8;
    close_harness(&harness);
}

/* Steps of one rank; the last must be refused. */
static void expect_order(struct afj_harness *harness, uint32_t rank, enum afj_step step)
{
    expect(afj_harness_step(harness, rank, 0, step, AFJ_EXPERT_ECHO), AFDEP_ERROR_ORDER, "lane 0");
}

Test(bad_calls, the_wrong_order_is_refused)
{
    struct afj_harness harness;
    open_harness(&harness);
    const afdep_scale_args scale = {.struct_size = sizeof scale};
    expect_order(&harness, 1, AFJ_STEP_COLLECT);
    expect_order(&harness, 0, AFJ_STEP_REPLY);
    expect(afdep_scale(harness.buffers[0], &scale, NULL), AFDEP_ERROR_ORDER, "lane 0");
    cr_assert_eq(afj_harness_load(&harness, 0), AFDEP_OK);
    cr_assert_eq(afj_harness_step_all(&harness, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_ECHO), AFDEP_OK);
    expect_order(&harness, 1, AFJ_STEP_DISPATCH);
    cr_assert_eq(afj_harness_step_all(&harness, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_ECHO), AFDEP_OK);
    expect_order(&harness, 0, AFJ_STEP_RECEIVE);
    cr_assert_eq(afj_harness_step_all(&harness, 0, AFJ_STEP_REPLY, AFJ_EXPERT_ECHO), AFDEP_OK);
    expect_order(&harness, 0, AFJ_STEP_REPLY);
    cr_assert_eq(afj_harness_step_all(&harness, 0, AFJ_STEP_COLLECT, AFJ_EXPERT_ECHO), AFDEP_OK);
    expect_order(&harness, 1, AFJ_STEP_COLLECT);
    cr_assert_eq(afj_harness_synchronize(&harness), AFDEP_OK, "%s", harness.failure);
    close_harness(&harness);
}

Test(bad_calls, a_closed_buffer_refuses_calls)
{
    struct afj_harness harness;
    open_harness(&harness);
    for (uint32_t rank = 0; rank < 3; rank++)
        cr_assert_eq(afdep_buffer_close(harness.buffers[rank]), AFDEP_OK);
    expect(afdep_buffer_close(harness.buffers[1]), AFDEP_ERROR_CLOSED, "rank 1");
    expect(afj_harness_step(&harness, 1, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE),
           AFDEP_ERROR_CLOSED, "rank 1");
    expect(afj_harness_step(&harness, 0, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_SCALE), AFDEP_ERROR_CLOSED,
           "rank 0");
    afj_harness_destroy(&harness);
}

Test(bad_calls, destroying_nothing_is_fine)
{
    afdep_buffer_destroy(NULL);
    afdep_group_destroy(NULL);
    afdep_graph_destroy(NULL);
    afdep_event_destroy(NULL);
    afdep_device_free(NULL, NULL);
    afdep_stream_destroy(NULL, NULL);
    cr_expect_eq(afdep_group_ranks(NULL), 0);
    cr_expect_null(afdep_group_device(NULL, 0));
}

Test(bad_calls, arrays_of_a_view_are_checked)
{
    struct afj_harness harness;
    struct afj_dice dice;
    afdep_config config = good_config();
    config.receive = AFDEP_RECEIVE_VIEW;
    afj_dice_seed(&dice, 1);
    cr_assert_eq(afj_harness_create(&harness, &config, NULL, 8), AFDEP_OK, "%s", harness.failure);
    afj_inputs_set_tokens(&harness.lanes[0], 8);
    afj_inputs_draw(&harness.lanes[0], AFJ_ROUTING_FULL, &dice);
    afdep_buffer *ffn = harness.buffers[0];
    void *const *into = harness.experts[0].array;
    afdep_receive_args receive = {.struct_size = sizeof receive,
                                  .bucket = 8,
                                  .slots = (uint32_t *)((char *)into[AFJ_ARRAY_SLOTS] + 2)};
    expect(afdep_receive(ffn, &receive, NULL), AFDEP_ERROR_ARGUMENT, "slots");
    afj_harness_load(&harness, 0);
    afj_harness_step_all(&harness, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE);
    afj_harness_step_all(&harness, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_SCALE);
    const afdep_scale_args scale = {.struct_size = sizeof scale,
                                    .rows = into[AFJ_ARRAY_OUT],
                                    .ids = into[AFJ_ARRAY_IDS],
                                    .weights = into[AFJ_ARRAY_WEIGHTS],
                                    .out = into[AFJ_ARRAY_OUT]};
    expect(afdep_scale(ffn, &scale, NULL), AFDEP_ERROR_ARGUMENT, "scale: rows is given");
    afj_harness_step_all(&harness, 0, AFJ_STEP_REPLY, AFJ_EXPERT_SCALE);
    afj_harness_step_all(&harness, 0, AFJ_STEP_COLLECT, AFJ_EXPERT_SCALE);
    close_harness(&harness);
}
