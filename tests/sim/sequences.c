/* sequences.c: exchanges one after another and beside each other, of shapes that serving engines
 * make: one sender, growing batches, other choices, other buffers, graphs and eager calls mixed. */
#include <string.h>

#include "sim/scene.h"

static afdep_config config_of(uint32_t attention, uint32_t ffn)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = attention;
    config.ffn_ranks = ffn;
    config.hidden = 64;
    config.experts = 8 * ffn;
    config.top_k = 4;
    config.capacity = 64;
    return config;
}

static void run_drawn(struct scene *scene, const char *what)
{
    struct afj_tally tally = {0};
    MUST(scene, afj_harness_run(&scene->harness, 0, &tally));
    assert_clean(scene, &tally, what);
}

Test(sequences, each_rank_in_turn_is_the_only_one_that_sends)
{
    struct scene scene;
    const afdep_config config = config_of(4, 2);
    open_scene(&scene, &config, 64, first_seed());
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    for (uint32_t sender = 0; sender < 4; sender++)
        for (int idle = 0; idle < 2; idle++) {
            afj_inputs_set_tokens(inputs, 40);
            afj_inputs_draw(inputs, AFJ_ROUTING_RANDOM, &scene.dice);
            for (uint32_t a = 0; a < 4; a++) {
                if (a == sender)
                    continue;
                if (idle != 0) /* no tokens at all, or tokens that go nowhere */
                    inputs->tokens[a] = 0;
                for (uint32_t i = 0; i < inputs->room * inputs->top_k; i++)
                    inputs->ids[a * inputs->room * inputs->top_k + i] = -1;
            }
            run_drawn(&scene, "one sender");
        }
    close_scene(&scene);
}

Test(sequences, batches_grow_and_shrink_in_one_buffer)
{
    struct scene scene;
    afdep_config config = config_of(2, 1);
    config.capacity = 131;
    open_scene(&scene, &config, 131, first_seed());
    for (uint32_t tokens = 0; tokens <= 131; tokens += seeds(6) == 1 ? 31 : 3) {
        afj_inputs_set_tokens(&scene.harness.lanes[0], tokens);
        run_exchange(&scene, AFJ_ROUTING_RANDOM);
        afj_inputs_set_tokens(&scene.harness.lanes[0], tokens % 4);
        run_exchange(&scene, AFJ_ROUTING_RANDOM);
    }
    close_scene(&scene);
}

Test(sequences, any_number_of_choices_up_to_the_limit)
{
    static const uint32_t choices[] = {1, 2, 6, 9, 10, 22, 31, 32};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct scene scene;
        afdep_config config = config_of(2, 2);
        config.experts = 64;
        config.top_k = choices[i];
        open_scene(&scene, &config, 40, first_seed() + i);
        for (int routing = 0; routing < 2; routing++) {
            afj_inputs_set_tokens(&scene.harness.lanes[0], 33);
            run_exchange(&scene, routing == 0 ? AFJ_ROUTING_RANDOM : AFJ_ROUTING_MIXED);
        }
        close_scene(&scene);
    }
}

Test(sequences, a_weight_of_zero_sums_as_no_route_does)
{
    struct scene scene;
    const afdep_config config = config_of(1, 2);
    open_scene(&scene, &config, 64, first_seed());
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    uint16_t kept[64 * 64];
    afj_inputs_set_tokens(inputs, 64);
    afj_inputs_draw(inputs, AFJ_ROUTING_FULL, &scene.dice);
    for (uint32_t t = 0; t < 64; t++)
        inputs->weights[t * 4 + 3] = 0;
    run_drawn(&scene, "weights of zero");
    memcpy(kept, scene.harness.sources[0].array[AFJ_ARRAY_OUT], sizeof kept);
    for (uint32_t t = 0; t < 64; t++)
        inputs->ids[t * 4 + 3] = -1;
    run_drawn(&scene, "masked");
    const uint16_t *masked = scene.harness.sources[0].array[AFJ_ARRAY_OUT];
    for (uint32_t i = 0; i < 64 * 64; i++)
        cr_assert(masked[i] == kept[i] || ((masked[i] | kept[i]) & 0x7FFF) == 0 ||
                  ((masked[i] & kept[i]) & 0x7F80) == 0x7F80);
    close_scene(&scene);
}

Test(sequences, every_small_layout)
{
    for (uint32_t attention = 1; attention <= 5; attention++)
        for (uint32_t ffn = 1; attention + ffn <= 6; ffn++) {
            struct scene scene;
            const afdep_config config = config_of(attention, ffn);
            open_scene(&scene, &config, 20, first_seed() + 8 * attention + ffn);
            for (int i = 0; i < 2; i++) {
                afj_inputs_set_tokens(&scene.harness.lanes[0], 1 + 12 * (uint32_t)i);
                run_exchange(&scene, AFJ_ROUTING_RANDOM);
            }
            close_scene(&scene);
        }
}

/* Two buffers of different rows over the same devices, phase by phase in turn. */
Test(sequences, buffers_of_different_shapes_interleave)
{
    static const enum afj_step steps[] = {AFJ_STEP_DISPATCH, AFJ_STEP_RECEIVE, AFJ_STEP_REPLY,
                                          AFJ_STEP_COLLECT};
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(4); seed++) {
        struct scene first;
        struct afj_harness second;
        const afdep_config config = config_of(2, 2);
        afdep_config other = config_of(2, 2);
        other.hidden = 144;
        other.dtype = AFDEP_DTYPE_FP8;
        other.top_k = 2;
        open_scene(&first, &config, 64, seed);
        MUST(&first, afj_harness_create(&second, &other, NULL, 64));
        struct afj_harness *both[] = {&first.harness, &second};
        for (int trip = 0; trip < 3; trip++) {
            struct afj_tally tally = {0};
            for (int b = 0; b < 2; b++) {
                afj_inputs_set_tokens(&both[b]->lanes[0], 20 + 20 * (uint32_t)b);
                afj_inputs_draw(&both[b]->lanes[0], AFJ_ROUTING_MIXED, &first.dice);
                MUST(&first, afj_harness_load(both[b], 0));
            }
            for (int i = 0; i < 8; i++)
                MUST(&first, afj_harness_step_all(both[i % 2], 0, steps[i / 2], AFJ_EXPERT_SCALE));
            for (int b = 0; b < 2; b++) {
                MUST(&first, afj_harness_synchronize(both[b]));
                MUST(&first, afj_harness_check(both[b], 0, AFJ_EXPERT_SCALE, &tally));
            }
            assert_clean(&first, &tally, "two buffers");
        }
        afj_harness_destroy(&second);
        close_scene(&first);
    }
}

/* Replay, eager, replay of another bucket, in any order, over one buffer. */
Test(sequences, eager_calls_and_graphs_of_several_buckets_interleave)
{
    static const uint32_t buckets[] = {1, 33, 64};
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(4); seed++) {
        struct scene scene;
        afdep_graph *graphs[3][AFDEP_MAX_RANKS];
        const afdep_config config = config_of(2, 2);
        open_scene(&scene, &config, 64, seed);
        struct afj_inputs *inputs = &scene.harness.lanes[0];
        for (int g = 0; g < 3; g++) {
            afj_inputs_set_tokens(inputs, buckets[g]);
            MUST(&scene, afj_harness_capture(&scene.harness, 1, AFJ_EXPERT_SCALE, graphs[g]));
        }
        for (int i = 0; i < 12; i++) {
            struct afj_tally tally = {0};
            const uint32_t which = afj_dice_below(&scene.dice, 4);
            afj_inputs_set_tokens(inputs, which < 3 ? buckets[which] : 17);
            afj_inputs_draw(inputs, AFJ_ROUTING_RANDOM, &scene.dice);
            MUST(&scene, afj_harness_load(&scene.harness, 0));
            if (which < 3)
                MUST(&scene, afj_harness_launch(&scene.harness, graphs[which]));
            else
                MUST(&scene, afj_harness_exchange(&scene.harness, 0, AFJ_EXPERT_SCALE));
            MUST(&scene, afj_harness_synchronize(&scene.harness));
            MUST(&scene, afj_harness_check(&scene.harness, 0, AFJ_EXPERT_SCALE, &tally));
            assert_clean(&scene, &tally, "interleaved");
        }
        for (int g = 0; g < 3; g++)
            afj_harness_drop_graphs(&scene.harness, graphs[g]);
        close_scene(&scene);
    }
}
