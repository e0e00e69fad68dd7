/* backward.c: training: the backward of dispatch is collect and that of collect is dispatch, by the
 * receipt of the forward exchange. All values are small whole numbers, so every sum is exact. */
#include "sim/scene.h"

enum { HIDDEN = 64, TOKENS = 20, TOP_K = 4, EXPERTS = 8 };

static uint16_t bf16_of(int value)
{
    const float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static int int_of(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return (int)f;
}

static void draw_small_rows(struct scene *scene)
{
    struct afj_inputs *inputs = &scene->harness.lanes[0];
    uint16_t *rows = (uint16_t *)(void *)inputs->rows;
    for (uint32_t i = 0; i < inputs->attention_ranks * inputs->room * HIDDEN; i++)
        rows[i] = bf16_of((int)afj_dice_below(&scene->dice, 7) - 3);
}

/* Run a step on all ranks and wait. */
static void step(struct scene *scene, enum afj_step which)
{
    MUST(scene, afj_harness_step_all(&scene->harness, 0, which, AFJ_EXPERT_ECHO));
    MUST(scene, afj_harness_synchronize(&scene->harness));
}

/* Rows that an FFN rank has received. Device memory of the simulation is host memory. */
static uint16_t *received(const struct scene *scene, uint32_t ffn)
{
    return scene->harness.experts[ffn].array[AFJ_ARRAY_ROWS];
}

static uint32_t total(const struct scene *scene, uint32_t ffn)
{
    return *scene->harness.experts[ffn].where.total;
}

/* <D x, y> over what the FFN ranks hold: x as dispatched, y drawn here and sent back. */
static long dot_on_experts(struct scene *scene)
{
    long sum = 0;
    for (uint32_t f = 0; f < scene->harness.config.ffn_ranks; f++)
        for (uint32_t i = 0; i < total(scene, f) * HIDDEN; i++) {
            const int y = (int)afj_dice_below(&scene->dice, 7) - 3;
            sum += int_of(received(scene, f)[i]) * y;
            received(scene, f)[i] = bf16_of(y);
        }
    return sum;
}

/* <x, D'y> over what the attention ranks sent and have collected. */
static long dot_on_sources(const struct scene *scene)
{
    const struct afj_inputs *inputs = &scene->harness.lanes[0];
    long sum = 0;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++) {
        const uint16_t *out = scene->harness.sources[a].array[AFJ_ARRAY_OUT];
        for (uint32_t t = 0; t < inputs->tokens[a]; t++) {
            const uint16_t *row = (const uint16_t *)(const void *)afj_inputs_row(inputs, a, t);
            for (uint32_t i = 0; i < HIDDEN; i++)
                sum += int_of(row[i]) * int_of(out[t * HIDDEN + i]);
        }
    }
    return sum;
}

static void open_training(struct scene *scene, uint64_t seed)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = 2;
    config.ffn_ranks = 3;
    config.hidden = HIDDEN;
    config.experts = EXPERTS;
    config.top_k = TOP_K;
    config.capacity = TOKENS;
    config.reply_weights = 1;
    open_scene(scene, &config, TOKENS, seed);
    afj_inputs_set_tokens(&scene->harness.lanes[0], TOKENS);
    afj_inputs_draw(&scene->harness.lanes[0], AFJ_ROUTING_RANDOM, &scene->dice);
}

Test(backward, of_dispatch_is_collect_and_of_collect_is_dispatch)
{
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(8); seed++) {
        struct scene scene;
        open_training(&scene, seed);
        scene.harness.receipt = AFJ_RECEIPT_KEEP;
        /* Forward, then backward by receipt with gradients in place of rows: the routing is the
         * same, so both are the same matrix, and its transpose on the way back. */
        for (int pass = 0; pass < 3; pass++) {
            draw_small_rows(&scene);
            MUST(&scene, afj_harness_load(&scene.harness, 0));
            step(&scene, AFJ_STEP_DISPATCH);
            step(&scene, AFJ_STEP_RECEIVE);
            const long experts = dot_on_experts(&scene);
            step(&scene, AFJ_STEP_REPLY);
            step(&scene, AFJ_STEP_COLLECT);
            cr_assert_eq(dot_on_sources(&scene), experts, "pass %d, %s", pass, replay_note(&scene));
            scene.harness.receipt = AFJ_RECEIPT_REUSE;
        }
        close_scene(&scene);
    }
}

/* A receipt is asked for more tokens than it keeps: what it has is sent. */
Test(backward, a_receipt_never_sends_tokens_that_it_does_not_keep)
{
    struct scene scene;
    open_training(&scene, first_seed());
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    struct afj_tally tally = {0};
    scene.harness.receipt = AFJ_RECEIPT_KEEP;
    inputs->tokens[0] = 7;
    MUST(&scene, afj_harness_run(&scene.harness, 0, &tally));
    inputs->tokens[0] = TOKENS;
    scene.harness.receipt = AFJ_RECEIPT_REUSE;
    MUST(&scene, afj_harness_load(&scene.harness, 0));
    MUST(&scene, afj_harness_exchange(&scene.harness, 0, AFJ_EXPERT_SCALE));
    MUST(&scene, afj_harness_synchronize(&scene.harness));
    inputs->tokens[0] = 7;
    MUST(&scene, afj_harness_check(&scene.harness, 0, AFJ_EXPERT_SCALE, &tally));
    assert_clean(&scene, &tally, "more tokens than kept");
    close_scene(&scene);
}

/* A receipt that nothing was kept in: whatever it holds, nothing is sent out of bounds. */
Test(backward, a_receipt_of_any_bytes_does_no_harm)
{
    static const int fills[] = {0x00, 0x01, 0x7F, 0xA5, 0xFF};
    struct scene scene;
    open_training(&scene, first_seed());
    struct afj_harness *harness = &scene.harness;
    harness->receipt = AFJ_RECEIPT_REUSE;
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        uint64_t bytes = 0;
        MUST(&scene, afdep_receipt_bytes(&harness->config, TOKENS, &bytes));
        MUST(&scene, afj_harness_load(harness, 0));
        for (uint32_t a = 0; a < 2; a++)
            memset(harness->sources[a].array[AFJ_ARRAY_RECEIPT], fills[i], bytes);
        MUST(&scene, afj_harness_exchange(harness, 0, AFJ_EXPERT_ECHO));
        MUST(&scene, afj_harness_synchronize(harness));
    }
    close_scene(&scene);
}
