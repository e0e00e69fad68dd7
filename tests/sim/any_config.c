/* any_config.c: deployments and calls drawn from a seed, all fields of the contract at once. */
#include "sim/scene.h"

enum { MOST_EXPERTS = 40, SEEDS = 8, EXCHANGES = 3 };

/* True once in `times`. */
static bool rarely(struct afj_dice *dice, uint32_t times)
{
    return afj_dice_below(dice, times) == 0;
}

static void draw_ranks(afdep_config *config, struct afj_dice *dice)
{
    config->attention_ranks = 1 + afj_dice_below(dice, 4);
    config->ffn_ranks = rarely(dice, 3) ? 1 : 2 + afj_dice_below(dice, 3);
    const uint32_t most =
        config->attention_ranks < config->ffn_ranks ? config->attention_ranks : config->ffn_ranks;
    if (rarely(dice, 2) && config->attention_ranks + config->ffn_ranks > 2)
        config->both_ranks = afj_dice_below(dice, most + 1);
    if (config->attention_ranks + config->ffn_ranks - config->both_ranks < 2)
        config->both_ranks = 0;
}

static void draw_rows(afdep_config *config, struct afj_dice *dice)
{
    config->dtype = 1 + afj_dice_below(dice, 4);
    config->hidden = 64 + 16 * afj_dice_below(dice, rarely(dice, 4) ? 80 : 20);
    if (config->dtype == AFDEP_DTYPE_OPAQUE)
        config->payload_bytes = 16 + 16 * afj_dice_below(dice, 80);
    config->id_bits = rarely(dice, 2) ? 64 : 32;
}

static void draw_experts(afdep_config *config, uint32_t map[MOST_EXPERTS], struct afj_dice *dice)
{
    config->experts = 1 + afj_dice_below(dice, MOST_EXPERTS);
    config->top_k = 1 + afj_dice_below(dice, rarely(dice, 4) ? 32 : 6);
    if (rarely(dice, 2))
        return;
    for (uint32_t e = 0; e < config->experts; e++)
        map[e] = afj_dice_below(dice, config->ffn_ranks);
    config->expert_ranks = map;
}

static void draw_layout(afdep_config *config, struct afj_dice *dice)
{
    config->receive = 1 + afj_dice_below(dice, 3);
    if (config->dtype == AFDEP_DTYPE_OPAQUE && config->receive == AFDEP_RECEIVE_VIEW)
        config->receive = AFDEP_RECEIVE_COMPACT;
    if (config->receive == AFDEP_RECEIVE_EXPERT_MAJOR)
        config->alignment = afj_dice_below(dice, 9);
    config->counts_first = rarely(dice, 3);
    config->host_counts = rarely(dice, 3);
    config->reply_weights = rarely(dice, 2);
    config->collect_view = config->ffn_ranks == 1 && rarely(dice, 2);
}

static afdep_config draw_config(uint32_t map[MOST_EXPERTS], struct afj_dice *dice)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.capacity = 1 + afj_dice_below(dice, 70);
    config.lanes = 1 + afj_dice_below(dice, 2);
    config.timeout_ms = config.startup_timeout_ms = 24 * 3600 * 1000; /* simulated links are slow */
    draw_ranks(&config, dice);
    draw_rows(&config, dice);
    draw_experts(&config, map, dice);
    draw_layout(&config, dice);
    return config;
}

static void draw_options(struct scene *scene)
{
    struct afj_harness *harness = &scene->harness;
    struct afj_dice *dice = &scene->dice;
    harness->without_origins = rarely(dice, 3);
    harness->live_tokens = rarely(dice, 2);
    harness->fresh = harness->config.collect_view == 0 && rarely(dice, 3);
    harness->ctas = rarely(dice, 3) ? 1 : 0;
    harness->apply_weights =
        harness->config.receive == AFDEP_RECEIVE_EXPERT_MAJOR && rarely(dice, 2);
    harness->receipt = rarely(dice, 2) ? AFJ_RECEIPT_KEEP : AFJ_RECEIPT_NONE;
    harness->phase_by_phase = rarely(dice, 5);
}

/* The exchange once more with other rows, its routing taken from the receipt. */
static void run_reused(struct scene *scene)
{
    struct afj_tally tally = {0};
    struct afj_inputs *inputs = &scene->harness.lanes[0];
    scene->harness.receipt = AFJ_RECEIPT_REUSE;
    afj_inputs_draw_rows(inputs, &scene->dice);
    MUST(scene, afj_harness_run(&scene->harness, 0, &tally));
    assert_clean(scene, &tally, "by receipt");
}

/* A graph of all lanes, replayed with other inputs, and with live tokens other counts. */
static void run_graph(struct scene *scene)
{
    struct afj_harness *harness = &scene->harness;
    afdep_graph *graphs[AFDEP_MAX_RANKS];
    harness->fresh = false;
    harness->receipt = AFJ_RECEIPT_NONE;
    for (uint32_t lane = 0; lane < harness->config.lanes; lane++)
        afj_inputs_set_tokens(&harness->lanes[lane], harness->config.capacity);
    MUST(scene, afj_harness_capture(harness, 2, AFJ_EXPERT_SCALE, graphs));
    for (int replay = 0; replay < 3; replay++) {
        struct afj_tally tally = {0};
        for (uint32_t lane = 0; lane < harness->config.lanes; lane++) {
            struct afj_inputs *inputs = &harness->lanes[lane];
            /* The rows of a view are copied as they were counted at the capture. */
            for (uint32_t a = 0; a < inputs->attention_ranks && harness->live_tokens &&
                                 harness->config.collect_view == 0;
                 a++)
                inputs->tokens[a] = afj_dice_below(&scene->dice, harness->config.capacity + 1);
            afj_inputs_draw(inputs, AFJ_ROUTING_MIXED, &scene->dice);
            MUST(scene, afj_harness_load(harness, lane));
        }
        MUST(scene, afj_harness_launch(harness, graphs));
        MUST(scene, afj_harness_synchronize(harness));
        for (uint32_t lane = 0; lane < harness->config.lanes; lane++)
            MUST(scene, afj_harness_check(harness, lane, AFJ_EXPERT_SCALE, &tally));
        assert_clean(scene, &tally, "a replay");
    }
    afj_harness_drop_graphs(harness, graphs);
}

static void run_seed(uint64_t seed)
{
    uint32_t map[MOST_EXPERTS];
    struct scene scene;
    struct afj_dice dice;
    afj_dice_seed(&dice, seed ^ 0x5EED);
    const afdep_config config = draw_config(map, &dice);
    open_scene(&scene, &config, config.capacity, seed);
    memset(map, 0xFF, sizeof map); /* it was borrowed for the creation */
    for (int i = 0; i < EXCHANGES; i++) {
        draw_tokens(&scene, config.capacity);
        draw_options(&scene);
        run_exchange(&scene, (enum afj_routing)afj_dice_below(&scene.dice, AFJ_ROUTING_COUNT));
        if (scene.harness.receipt == AFJ_RECEIPT_KEEP)
            run_reused(&scene);
    }
    run_graph(&scene);
    close_scene(&scene);
}

static void run_seeds(uint64_t part)
{
    const uint64_t first = first_seed() + part * SEEDS;
    for (uint64_t seed = first; seed < first + seeds(SEEDS); seed++)
        run_seed(seed);
}

Test(any_config, is_exact_in_part_one) { run_seeds(0); }
Test(any_config, is_exact_in_part_two) { run_seeds(1); }
