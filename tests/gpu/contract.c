/* contract.c: every choice of the contract on GPUs, bit by bit, eager and as graphs.
 * contract [--phases] [--replays N] [--cycles N] [--only N] [--large] [--seed N] [--device
 * cuda|sim]
 * --phases waits after each phase and leaves the graphs out, so that it holds under a tool that
 * serialises launches; --cycles also creates and destroys buffers so often; --large runs inboxes of
 * more than 4 GiB and nothing else.
 * Exit 0: all right; 1: a wrong row or a failed call; 2: usage; 77: no GPU here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness.h"
#include "cli/words.h"
#include "gpu/run.h"
#include "support/deployments.h"

enum { GRAPH_TRIPS = 2, REPLAYS = 4, LARGE_TOKENS = 200000, LARGE_HIDDEN = 16384 };

struct choice {
    bool phases, large;
    uint32_t device;
    uint64_t replays, cycles, seed;
    int64_t only, tokens; /* -1: all */
};

static void draw_options(struct afj_harness *harness, struct afj_dice *dice)
{
    harness->without_origins = afj_dice_below(dice, 3) == 0;
    harness->live_tokens = afj_dice_below(dice, 3) == 0;
    harness->fresh = harness->config.collect_view == 0 && afj_dice_below(dice, 4) == 0;
    harness->ctas = afj_dice_below(dice, 3) == 0 ? 1 + afj_dice_below(dice, 2) : 0;
    harness->apply_weights =
        harness->config.receive == AFDEP_RECEIVE_EXPERT_MAJOR && afj_dice_below(dice, 2) == 0;
    harness->receipt = afj_dice_below(dice, 3) == 0 ? AFJ_RECEIPT_KEEP : AFJ_RECEIPT_NONE;
    harness->streams_apart = harness->config.lanes > 1 && afj_dice_below(dice, 2) == 0;
}

static void set_tokens(struct afj_harness *harness, uint32_t lane, uint32_t tokens,
                       struct afj_dice *dice)
{
    struct afj_inputs *inputs = &harness->lanes[lane];
    afj_inputs_set_tokens(inputs, tokens);
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        if (afj_dice_below(dice, 3) == 0)
            inputs->tokens[a] = afj_dice_below(dice, tokens + 1);
    if (afj_dice_below(dice, 4) == 0)
        inputs->bucket = 0;
}

/* One exchange of each lane with new inputs, and once more by receipt where one was kept. */
static afdep_status run_eager(struct afj_harness *harness, uint32_t tokens, struct afj_dice *dice,
                              struct afj_tally *tally)
{
    afdep_status status = AFDEP_OK;
    for (unsigned r = 0; r < AFJ_ROUTING_COUNT && status == AFDEP_OK; r++) {
        draw_options(harness, dice);
        for (uint32_t lane = 0; lane < harness->config.lanes && status == AFDEP_OK; lane++) {
            set_tokens(harness, lane, tokens, dice);
            afj_inputs_draw(&harness->lanes[lane], (enum afj_routing)r, dice);
            status = afj_harness_run(harness, lane, tally);
        }
        if (status != AFDEP_OK || harness->receipt != AFJ_RECEIPT_KEEP)
            continue;
        harness->receipt = AFJ_RECEIPT_REUSE;
        afj_inputs_draw_rows(&harness->lanes[0], dice);
        status = afj_harness_run(harness, 0, tally);
    }
    return status;
}

static afdep_status replay(struct afj_harness *harness, uint64_t replays, afdep_graph **graphs,
                           struct afj_dice *dice, struct afj_tally *tally)
{
    afdep_status status = AFDEP_OK;
    for (uint64_t i = 0; i < replays && status == AFDEP_OK; i++) {
        for (uint32_t lane = 0; lane < harness->config.lanes && status == AFDEP_OK; lane++) {
            const uint32_t kind = afj_dice_below(dice, AFJ_ROUTING_COUNT);
            /* A live count makes one graph serve every batch. */
            if (harness->live_tokens)
                for (uint32_t a = 0; a < harness->lanes[lane].attention_ranks; a++)
                    harness->lanes[lane].tokens[a] =
                        afj_dice_below(dice, harness->lanes[lane].bucket + 1);
            afj_inputs_draw(&harness->lanes[lane], (enum afj_routing)kind, dice);
            status = afj_harness_load(harness, lane);
        }
        if (status == AFDEP_OK)
            status = afj_harness_launch(harness, graphs);
        if (status == AFDEP_OK)
            status = afj_harness_synchronize(harness);
        for (uint32_t lane = 0; lane < harness->config.lanes && status == AFDEP_OK; lane++)
            status = afj_harness_check(harness, lane, AFJ_EXPERT_SCALE, tally);
    }
    return status;
}

/* Graphs over buffers of their own, with arrays no longer than the tokens need: each replay clears
 * and fetches them all. */
static afdep_status run_graph(struct afj_harness *eager, const struct choice *choice,
                              uint32_t tokens, struct afj_dice *dice, struct afj_tally *tally)
{
    struct afj_harness harness;
    afdep_graph *graphs[AFDEP_MAX_RANKS] = {NULL};
    afdep_status status =
        afj_harness_create(&harness, &eager->config, NULL, tokens == 0 ? 1 : tokens);
    if (status == AFDEP_OK) {
        draw_options(&harness, dice);
        harness.fresh = false;
        harness.receipt = AFJ_RECEIPT_NONE;
        if (harness.config.collect_view != 0) /* the copy of the rows is recorded with its length */
            harness.live_tokens = false;
        for (uint32_t lane = 0; lane < harness.config.lanes; lane++)
            afj_inputs_set_tokens(&harness.lanes[lane], tokens);
        status = afj_harness_capture(&harness, GRAPH_TRIPS, AFJ_EXPERT_SCALE, graphs);
    }
    if (status == AFDEP_OK)
        status = replay(&harness, choice->replays, graphs, dice, tally);
    afj_harness_drop_graphs(&harness, graphs);
    if (status != AFDEP_OK)
        memcpy(eager->failure, harness.failure, sizeof harness.failure);
    afj_harness_destroy(&harness);
    return status;
}

/* One deployment at one size, over buffers of its own; prints its line. */
static bool run_cell(const struct deployment *deployment, const struct choice *choice,
                     uint32_t tokens)
{
    const afdep_config config = afj_deployment_config(deployment, choice->device);
    struct afj_harness harness;
    struct afj_tally eager = {0}, graph = {0};
    struct afj_dice dice;
    const double begin = seconds();
    afj_dice_seed(&dice, choice->seed + tokens);
    afdep_status status = afj_harness_create(&harness, &config, NULL, config.capacity);
    harness.phase_by_phase = choice->phases;
    if (status == AFDEP_OK)
        status = run_eager(&harness, tokens, &dice, &eager);
    if (status == AFDEP_OK && !choice->phases)
        status = run_graph(&harness, choice, tokens, &dice, &graph);
    const bool right =
        status == AFDEP_OK && afj_tally_is_clean(&eager) && afj_tally_is_clean(&graph);
    printf("%s %s, tokens %u: %llu rows eager, %llu in graphs, %llu wrong, error %.2g, %.2f s\n",
           right ? "ok  " : "FAIL", deployment->name, tokens, (unsigned long long)eager.checked,
           (unsigned long long)graph.checked, (unsigned long long)(eager.wrong + graph.wrong),
           eager.worst_error > graph.worst_error ? eager.worst_error : graph.worst_error,
           seconds() - begin);
    if (status != AFDEP_OK)
        printf("     %s\n", harness.failure);
    else if (!right)
        printf("     %s\n", eager.wrong > 0 ? eager.first : graph.first);
    fflush(stdout);
    afj_harness_destroy(&harness);
    return right;
}

static bool run_cycles(const struct choice *choice)
{
    bool right = true;
    for (uint64_t i = 0; i < choice->cycles && right; i++) {
        const afdep_config config =
            afj_deployment_config(&deployments[i % USUAL_DEPLOYMENTS], choice->device);
        struct afj_harness harness;
        right = afj_harness_create(&harness, &config, NULL, 2) == AFDEP_OK;
        if (!right)
            printf("FAIL creation %llu: %s\n", (unsigned long long)i, harness.failure);
        afj_harness_destroy(&harness);
    }
    if (choice->cycles > 0)
        printf("%s %llu creations\n", right ? "ok  " : "FAIL", (unsigned long long)choice->cycles);
    return right;
}

/* Inboxes of more than 4 GiB on both sides, with rows in their first and last slots. */
static bool run_large(const struct choice *choice)
{
    static const uint32_t routed[] = {
        0, 1, 65535, LARGE_TOKENS / 2, LARGE_TOKENS - 2, LARGE_TOKENS - 1};
    afdep_config config = AFDEP_CONFIG_INIT;
    struct afj_harness harness;
    struct afj_tally tally = {0};
    const double begin = seconds();
    config.device = choice->device;
    config.hidden = LARGE_HIDDEN;
    config.capacity = LARGE_TOKENS;
    config.top_k = 2;
    afdep_status status = afj_harness_create(&harness, &config, NULL, LARGE_TOKENS);
    if (status == AFDEP_OK) {
        struct afj_inputs *inputs = &harness.lanes[0];
        struct afj_dice dice;
        afj_dice_seed(&dice, choice->seed);
        afj_inputs_set_tokens(inputs, LARGE_TOKENS);
        afj_inputs_draw(inputs, AFJ_ROUTING_EMPTY, &dice);
        for (size_t i = 0; i < sizeof routed / sizeof *routed; i++)
            inputs->ids[2 * routed[i]] = (int64_t)(i % config.experts);
        status = afj_harness_run(&harness, 0, &tally);
    }
    const bool right = status == AFDEP_OK && afj_tally_is_clean(&tally);
    printf("%s inboxes of %.1f GiB: %llu rows, %llu wrong, %.1f s%s%s\n", right ? "ok  " : "FAIL",
           (double)LARGE_TOKENS * LARGE_HIDDEN * 2 / 1073741824.0,
           (unsigned long long)tally.checked, (unsigned long long)tally.wrong, seconds() - begin,
           right ? "" : ": ", status != AFDEP_OK ? harness.failure : tally.first);
    afj_harness_destroy(&harness);
    return right;
}

static bool run_all(const struct choice *choice)
{
    static const uint32_t counts[] = {0, 1, 7, 33, 70, 600};
    bool right = true;
    for (int64_t d = 0; d < DEPLOYMENTS; d++) {
        const uint32_t capacity = afj_deployment_config(&deployments[d], choice->device).capacity;
        if (choice->only >= 0 && choice->only != d)
            continue;
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            if (counts[i] <= capacity && (choice->tokens < 0 || choice->tokens == counts[i]))
                right = run_cell(&deployments[d], choice, counts[i]) && right;
    }
    return right;
}

static bool read_choice(struct choice *choice, int argc, char **argv, struct afj_why *why)
{
    uint64_t number = 0;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *word = i + 1 < argc ? argv[i + 1] : "";
        bool good = true;
        if (strcmp(name, "--phases") == 0)
            choice->phases = true;
        else if (strcmp(name, "--large") == 0)
            choice->large = true;
        else if (++i == argc)
            return afj_words_refuse(why, "%s is not an option, or lacks its value", name);
        else if (strcmp(name, "--replays") == 0)
            good = afj_words_number(name, word, 0, 1000000, &choice->replays, why);
        else if (strcmp(name, "--cycles") == 0)
            good = afj_words_number(name, word, 0, 100000, &choice->cycles, why);
        else if (strcmp(name, "--seed") == 0)
            good = afj_words_number(name, word, 0, INT64_MAX, &choice->seed, why);
        else if (strcmp(name, "--device") == 0)
            good = afj_words_device(word, &choice->device, why);
        else if (strcmp(name, "--only") == 0) {
            good = afj_words_number(name, word, 0, DEPLOYMENTS - 1, &number, why);
            choice->only = (int64_t)number;
        } else if (strcmp(name, "--tokens") == 0) {
            good = afj_words_number(name, word, 0, 600, &number, why);
            choice->tokens = (int64_t)number;
        } else
            return afj_words_refuse(why, "%s is not an option", name);
        if (!good)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct choice choice = {
        .device = AFDEP_DEVICE_CUDA, .replays = REPLAYS, .only = -1, .tokens = -1};
    struct afj_why why;
    choice.seed = afj_dice_fresh_seed();
    if (!read_choice(&choice, argc, argv, &why)) {
        fprintf(stderr, "contract: %s\n", why.text);
        return AFJ_EXIT_USAGE;
    }
    if (!begin_run(choice.device, choice.seed))
        return SKIP;
    const double begin = seconds();
    const bool right = choice.large ? run_large(&choice) : run_cycles(&choice) && run_all(&choice);
    return end_run(right, begin, choice.seed);
}
