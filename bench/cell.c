/* cell.c: one cell of a sweep: run it, check it, time it. */
#include "bench/cell.h"

#include <stdio.h>
#include <string.h>

#include "bench/try.h"

enum { EAGER_CHECKS = 2, GRAPH_CHECKS = 2, GRAPH_CHECK_TRIPS = 3 };

static void draw_lanes(const struct afj_cell *cell, struct afj_harness *harness,
                       struct afj_dice *dice)
{
    for (uint32_t lane = 0; lane < cell->config.lanes; lane++)
        afj_inputs_draw(&harness->lanes[lane], cell->routing, dice);
}

static afdep_status load_lanes(struct afj_harness *harness)
{
    for (uint32_t lane = 0; lane < harness->config.lanes; lane++)
        TRY(afj_harness_load(harness, lane));
    return AFDEP_OK;
}

static afdep_status check_lanes(struct afj_cell *cell, struct afj_harness *harness,
                                enum afj_expert expert)
{
    for (uint32_t lane = 0; lane < harness->config.lanes; lane++)
        TRY(afj_harness_check(harness, lane, expert, &cell->tally));
    return AFDEP_OK;
}

/* Exchanges with new inputs each, lane by lane. */
static afdep_status check_eager(struct afj_cell *cell, struct afj_harness *harness,
                                struct afj_dice *dice, int times)
{
    for (int i = 0; i < times; i++) {
        draw_lanes(cell, harness, dice);
        for (uint32_t lane = 0; lane < cell->config.lanes; lane++)
            TRY(afj_harness_run(harness, lane, &cell->tally));
    }
    return AFDEP_OK;
}

/* Replays of one graph with new inputs each. */
static afdep_status check_replays(struct afj_cell *cell, struct afj_harness *harness,
                                  struct afj_dice *dice, afdep_graph **graphs)
{
    for (int i = 0; i < GRAPH_CHECKS; i++) {
        draw_lanes(cell, harness, dice);
        TRY(load_lanes(harness));
        TRY(afj_harness_launch(harness, graphs));
        TRY(afj_harness_synchronize(harness));
        TRY(check_lanes(cell, harness, AFJ_EXPERT_SCALE));
    }
    return AFDEP_OK;
}

static afdep_status check_graph(struct afj_cell *cell, struct afj_harness *harness,
                                struct afj_dice *dice)
{
    afdep_graph *graphs[AFDEP_MAX_RANKS];
    afdep_status status = afj_harness_capture(harness, GRAPH_CHECK_TRIPS, AFJ_EXPERT_SCALE, graphs);
    if (status == AFDEP_OK)
        status = check_replays(cell, harness, dice, graphs);
    afj_harness_drop_graphs(harness, graphs);
    return status;
}

/* Check, time, check what the timed launches left, check again. */
static afdep_status time_once(struct afj_cell *cell, struct afj_harness *harness,
                              struct afj_dice *dice, uint32_t round_trips,
                              struct afj_percentiles *us)
{
    TRY(check_eager(cell, harness, dice, 1));
    TRY(load_lanes(harness));
    TRY(round_trips == 0 ? afj_timing_eager(harness, cell->repeats, us)
                         : afj_timing_graph(harness, round_trips, cell->repeats, us));
    TRY(check_lanes(cell, harness, AFJ_EXPERT_ECHO));
    return check_eager(cell, harness, dice, 1);
}

static afdep_status run_checks(struct afj_cell *cell, struct afj_harness *harness)
{
    struct afj_dice dice;
    afj_dice_seed(&dice, cell->seed);
    for (uint32_t lane = 0; lane < cell->config.lanes; lane++)
        afj_inputs_set_tokens(&harness->lanes[lane], cell->tokens);
    TRY(check_eager(cell, harness, &dice, EAGER_CHECKS));
    TRY(check_graph(cell, harness, &dice));
    if (cell->config.device == AFDEP_DEVICE_CUDA) {
        TRY(time_once(cell, harness, &dice, cell->round_trips, &cell->graph_us));
        TRY(time_once(cell, harness, &dice, 1, &cell->single_us));
        if (cell->eager)
            TRY(time_once(cell, harness, &dice, 0, &cell->eager_us));
    }
    cell->rows_sent = 0;
    for (uint32_t lane = 0; lane < cell->config.lanes; lane++)
        cell->rows_sent += afj_inputs_rows_sent(&harness->lanes[lane]);
    return AFDEP_OK;
}

static uint32_t count_ranks_per_gpu(const struct afj_cell *cell)
{
    const uint32_t ranks =
        cell->config.attention_ranks + cell->config.ffn_ranks - cell->config.both_ranks;
    uint32_t most = 0;
    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t beside = 0;
        for (uint32_t j = 0; j < ranks; j++)
            beside += cell->devices[j] == cell->devices[i];
        most = beside > most ? beside : most;
    }
    return most;
}

/* Most CTAs of any kernel of any rank. */
static uint32_t count_ctas(const struct afj_harness *harness)
{
    uint32_t most = 0;
    for (uint32_t rank = 0; rank < harness->ranks; rank++) {
        afdep_plan plan = {.struct_size = sizeof plan};
        if (afdep_buffer_plan(harness->buffers[rank], &plan) == AFDEP_OK)
            for (uint32_t k = 0; k < plan.kernel_count; k++)
                most = plan.kernels[k].max_ctas > most ? plan.kernels[k].max_ctas : most;
    }
    return most;
}

afdep_status afj_cell_run(struct afj_cell *cell, char *failure, size_t size)
{
    struct afj_harness harness;
    const uint32_t room = cell->tokens == 0 ? 1 : cell->tokens;
    memset(&cell->tally, 0, sizeof cell->tally);
    cell->ranks_per_gpu = count_ranks_per_gpu(cell);
    afdep_status status = afj_harness_create(&harness, &cell->config, cell->devices, room);
    if (status == AFDEP_OK && cell->config.device == AFDEP_DEVICE_CUDA)
        snprintf(cell->gpu, sizeof cell->gpu, "%s",
                 afdep_device_name(afdep_group_device(harness.group, harness.ranks - 1)));
    if (status == AFDEP_OK) {
        cell->ctas = count_ctas(&harness);
        cell->create_ms = harness.create_ms;
        status = afj_harness_create_again(&harness, &cell->create_again_ms);
    }
    if (status == AFDEP_OK)
        status = run_checks(cell, &harness);
    if (status != AFDEP_OK)
        snprintf(failure, size, "%s", harness.failure);
    afj_harness_destroy(&harness);
    return status;
}
