/* exchange.c: exchanges of many shapes on GPUs, bit by bit, eager and as graphs.
 * exchange [--quick|--full] [--phases] [--layout 2A2F] [--hidden N] [--tokens N] [--replays N]
 *          [--seed N] [--device cuda|sim]
 * --full takes more layouts, sizes and token counts; --phases waits after each phase and leaves the
 * graphs out, so that it holds under a tool that serialises launches.
 * Exit 0: all right; 1: a wrong row or a failed call; 2: usage; 77: no GPU here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness.h"
#include "cli/words.h"
#include "gpu/run.h"

enum { CAPACITY = 2048, QUICK_CAPACITY = 128, GRAPH_TRIPS = 3 };
/* Replays of each graph, all of them checked; of large batches only this many are. */
enum { REPLAYS = 4, CHECKED_LARGE = 20, LARGE_TOKENS = 33 };

/* What to run; 0 stands for all. */
struct choice {
    bool quick, full, phases;
    uint32_t attention, ffn, hidden, device, replays;
    int64_t tokens; /* -1: all */
    uint64_t seed;
};

/* Those of --full stand behind the others. */
static const uint32_t layouts[][2] = {{1, 1}, {2, 2}, {3, 1}, {1, 3}, {7, 1}};
static const uint32_t hiddens[] = {64, 2048, 2880, 512, 4096, 7168};
static const uint32_t token_counts[] = {0, 1, 33, 2048, 7, 32, 128};
enum { USUAL_LAYOUTS = 3, USUAL_HIDDENS = 3, USUAL_COUNTS = 4 };

static size_t usual_or(const struct choice *choice, size_t usual, size_t all)
{
    return choice->full ? all : usual;
}

/* One exchange with new inputs; every other one without arrays for sources and tokens. */
static afdep_status run_one(struct afj_harness *harness, enum afj_routing routing,
                            struct afj_dice *dice, struct afj_tally *tally)
{
    harness->without_origins = afj_dice_below(dice, 2) == 0;
    afj_inputs_draw(&harness->lanes[0], routing, dice);
    return afj_harness_run(harness, 0, tally);
}

/* All routings, then ranks with different token counts, then the largest bucket. */
static afdep_status run_eager(struct afj_harness *harness, const struct choice *choice,
                              uint32_t tokens, struct afj_dice *dice, struct afj_tally *tally)
{
    struct afj_inputs *inputs = &harness->lanes[0];
    afdep_status status = AFDEP_OK;
    for (unsigned r = 0; r < AFJ_ROUTING_COUNT && status == AFDEP_OK; r++) {
        if (choice->quick && r != AFJ_ROUTING_RANDOM && r != AFJ_ROUTING_MIXED)
            continue;
        afj_inputs_set_tokens(inputs, tokens);
        status = run_one(harness, (enum afj_routing)r, dice, tally);
    }
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        inputs->tokens[a] = a == 0 ? tokens / 2 : a == 1 ? 0 : tokens;
    if (status == AFDEP_OK)
        status = run_one(harness, AFJ_ROUTING_RANDOM, dice, tally);
    inputs->bucket = 0; /* the capacity */
    if (status == AFDEP_OK)
        status = run_one(harness, AFJ_ROUTING_MIXED, dice, tally);
    return status;
}

/* Replay one graph with other inputs each time. */
static afdep_status replay(struct afj_harness *harness, const struct choice *choice,
                           uint32_t tokens, afdep_graph **graphs, struct afj_dice *dice,
                           struct afj_tally *tally)
{
    static const enum afj_routing routings[] = {AFJ_ROUTING_RANDOM, AFJ_ROUTING_EMPTY,
                                                AFJ_ROUTING_MIXED, AFJ_ROUTING_FULL};
    const uint32_t every = tokens > LARGE_TOKENS && choice->replays > CHECKED_LARGE
                               ? choice->replays / CHECKED_LARGE
                               : 1;
    afdep_status status = AFDEP_OK;
    for (uint32_t i = 0; i < choice->replays && status == AFDEP_OK; i++) {
        const bool checked = i % every == 0;
        if (checked) {
            afj_inputs_draw(&harness->lanes[0], routings[i / every % 4], dice);
            status = afj_harness_load(harness, 0);
        }
        if (status == AFDEP_OK)
            status = afj_harness_launch(harness, graphs);
        if (status == AFDEP_OK)
            status = afj_harness_synchronize(harness);
        if (status == AFDEP_OK && checked)
            status = afj_harness_check(harness, 0, AFJ_EXPERT_SCALE, tally);
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
        afj_inputs_set_tokens(&harness.lanes[0], tokens);
        status = afj_harness_capture(&harness, GRAPH_TRIPS, AFJ_EXPERT_SCALE, graphs);
    }
    if (status == AFDEP_OK)
        status = replay(&harness, choice, tokens, graphs, dice, tally);
    afj_harness_drop_graphs(&harness, graphs);
    if (status != AFDEP_OK)
        memcpy(eager->failure, harness.failure, sizeof harness.failure);
    afj_harness_destroy(&harness);
    return status;
}

/* One cell; prints its line. Returns whether it is right. */
static bool run_cell(struct afj_harness *harness, const struct choice *choice, uint32_t tokens)
{
    const afdep_config *config = &harness->config;
    struct afj_tally eager = {0}, graph = {0};
    struct afj_dice dice;
    const double begin = seconds();
    afj_dice_seed(&dice, choice->seed + tokens);
    afdep_status status = run_eager(harness, choice, tokens, &dice, &eager);
    if (status == AFDEP_OK && !choice->phases)
        status = run_graph(harness, choice, tokens, &dice, &graph);
    const bool right =
        status == AFDEP_OK && afj_tally_is_clean(&eager) && afj_tally_is_clean(&graph);
    printf("%s %uA%uF hidden %u tokens %u: %llu rows eager, %llu in graphs, %llu wrong, "
           "error %.2g, %.2f s\n",
           right ? "ok  " : "FAIL", config->attention_ranks, config->ffn_ranks, config->hidden,
           tokens, (unsigned long long)eager.checked, (unsigned long long)graph.checked,
           (unsigned long long)(eager.wrong + graph.wrong),
           eager.worst_error > graph.worst_error ? eager.worst_error : graph.worst_error,
           seconds() - begin);
    if (status != AFDEP_OK)
        printf("     %s\n", harness->failure);
    else if (!right)
        printf("     %s\n", eager.wrong > 0 ? eager.first : graph.first);
    fflush(stdout);
    return right;
}

/* All token counts of one layout and hidden size, over the same buffers. */
static bool run_deployment(const struct choice *choice, uint32_t attention, uint32_t ffn,
                           uint32_t hidden)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = choice->device;
    config.attention_ranks = attention;
    config.ffn_ranks = ffn;
    config.hidden = hidden;
    const bool few = choice->tokens >= 0 ? choice->tokens <= QUICK_CAPACITY : choice->quick;
    const uint32_t room = few ? QUICK_CAPACITY : CAPACITY;
    config.capacity = room;
    struct afj_harness harness;
    config.experts = 128 / ffn * ffn;
    bool right = afj_harness_create(&harness, &config, NULL, room) == AFDEP_OK;
    harness.phase_by_phase = choice->phases;
    if (!right)
        printf("FAIL %uA%uF hidden %u: %s\n", attention, ffn, hidden, harness.failure);
    else if (choice->tokens >= 0)
        right = run_cell(&harness, choice, (uint32_t)choice->tokens);
    else
        /* After a failed cell the buffers may be dead: leave the others out. */
        for (size_t i = 0;
             i < usual_or(choice, USUAL_COUNTS, sizeof token_counts / sizeof *token_counts) &&
             right;
             i++)
            if (token_counts[i] <= room)
                right = run_cell(&harness, choice, token_counts[i]);
    afj_harness_destroy(&harness);
    return right;
}

static bool run_layout(const struct choice *choice, uint32_t attention, uint32_t ffn)
{
    bool right = true;
    if (choice->hidden != 0)
        return run_deployment(choice, attention, ffn, choice->hidden);
    for (size_t h = 0; h < usual_or(choice, USUAL_HIDDENS, sizeof hiddens / sizeof *hiddens); h++)
        if (!choice->quick || hiddens[h] != 2880)
            right = run_deployment(choice, attention, ffn, hiddens[h]) && right;
    return right;
}

static bool read_option(struct choice *choice, const char *name, const char *word,
                        struct afj_why *why)
{
    uint64_t number = 0;
    if (strcmp(name, "--layout") == 0) {
        struct afj_layout layout;
        if (!afj_words_layout(word, &layout, why))
            return false;
        choice->attention = layout.attention;
        choice->ffn = layout.ffn;
        return true;
    }
    if (strcmp(name, "--device") == 0)
        return afj_words_device(word, &choice->device, why);
    if (!afj_words_number(name, word, 0, INT64_MAX, &number, why))
        return false;
    if (strcmp(name, "--hidden") == 0)
        choice->hidden = (uint32_t)number;
    else if (strcmp(name, "--tokens") == 0 && number <= CAPACITY)
        choice->tokens = (int64_t)number;
    else if (strcmp(name, "--replays") == 0 && number <= UINT32_MAX)
        choice->replays = (uint32_t)number;
    else if (strcmp(name, "--seed") == 0)
        choice->seed = number;
    else
        return afj_words_refuse(why, "%s %s is not an option", name, word);
    return true;
}

static bool read_choice(struct choice *choice, int argc, char **argv, struct afj_why *why)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            choice->quick = true;
        else if (strcmp(argv[i], "--full") == 0)
            choice->full = true;
        else if (strcmp(argv[i], "--phases") == 0)
            choice->phases = true;
        else if (i + 1 == argc)
            return afj_words_refuse(why, "%s is not an option, or lacks its value", argv[i]);
        else if (!read_option(choice, argv[i], argv[i + 1], why))
            return false;
        else
            i++;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct choice choice = {.device = AFDEP_DEVICE_CUDA, .tokens = -1, .replays = REPLAYS};
    struct afj_why why;
    choice.seed = afj_dice_fresh_seed();
    if (!read_choice(&choice, argc, argv, &why)) {
        fprintf(stderr, "exchange: %s\n", why.text);
        return AFJ_EXIT_USAGE;
    }
    if (!begin_run(choice.device, choice.seed))
        return SKIP;
    const double begin = seconds();
    bool right = true;
    const size_t count = usual_or(&choice, USUAL_LAYOUTS, sizeof layouts / sizeof *layouts);
    for (size_t i = 0; i < count && choice.attention == 0; i++)
        right = run_layout(&choice, layouts[i][0], layouts[i][1]) && right;
    if (choice.attention != 0)
        right = run_layout(&choice, choice.attention, choice.ffn);
    return end_run(right, begin, choice.seed);
}
