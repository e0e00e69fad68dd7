/* contract.c: every choice of the contract on simulated devices, bit by bit, under many schedules:
 * dtypes, ids, roles, maps, layouts, counts first, receipts, live counts, weights on the way back.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "sim/scene.h"
#include "support/deployments.h"

static void draw_options(struct scene *scene)
{
    struct afj_harness *harness = &scene->harness;
    struct afj_dice *dice = &scene->dice;
    harness->without_origins = afj_dice_below(dice, 3) == 0;
    harness->live_tokens = afj_dice_below(dice, 3) == 0;
    harness->fresh = harness->config.collect_view == 0 && afj_dice_below(dice, 4) == 0;
    harness->ctas = afj_dice_below(dice, 3) == 0 ? 1 : 0;
    harness->apply_weights =
        harness->config.receive == AFDEP_RECEIVE_EXPERT_MAJOR && afj_dice_below(dice, 2) == 0;
    harness->receipt = afj_dice_below(dice, 3) == 0 ? AFJ_RECEIPT_KEEP : AFJ_RECEIPT_NONE;
}

/* The exchange once more with other rows, its routing taken from the receipt. */
static void run_again(struct scene *scene)
{
    struct afj_tally tally = {0};
    scene->harness.receipt = AFJ_RECEIPT_REUSE;
    afj_inputs_draw_rows(&scene->harness.lanes[0], &scene->dice);
    MUST(scene, afj_harness_run(&scene->harness, 0, &tally));
    assert_clean(scene, &tally, "by receipt");
}

enum { SEEDS = 6 };

static void run_deployment(const struct deployment *deployment, uint64_t seed)
{
    const afdep_config config = afj_deployment_config(deployment, AFDEP_DEVICE_SIM);
    struct scene scene;
    open_scene(&scene, &config, config.capacity, seed);
    for (int i = 0; i < 4; i++) {
        draw_tokens(&scene, config.capacity);
        draw_options(&scene);
        run_exchange(&scene, (enum afj_routing)afj_dice_below(&scene.dice, AFJ_ROUTING_COUNT));
        if (scene.harness.receipt == AFJ_RECEIPT_KEEP)
            run_again(&scene);
    }
    close_scene(&scene);
}

/* Each on its own, so that they run beside each other and a failure says which. */
ParameterizedTestParameters(contract, every_deployment)
{
    static size_t numbers[USUAL_DEPLOYMENTS];
    for (size_t i = 0; i < USUAL_DEPLOYMENTS; i++)
        numbers[i] = i;
    return cr_make_param_array(size_t, numbers, USUAL_DEPLOYMENTS);
}

ParameterizedTest(size_t *number, contract, every_deployment, .timeout = 200)
{
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(SEEDS); seed++)
        run_deployment(&deployments[*number], seed);
}

/* Everything that creation takes is given back; the address sanitizer sees what is not. */
Test(contract, fifty_creations_leave_nothing_behind, .timeout = 200)
{
    for (int i = 0; i < 50; i++) {
        struct scene scene;
        const afdep_config config =
            afj_deployment_config(&deployments[i % USUAL_DEPLOYMENTS], AFDEP_DEVICE_SIM);
        open_scene(&scene, &config, 4, first_seed());
        if (i % 3 == 0) {
            afj_inputs_set_tokens(&scene.harness.lanes[0], 2);
            run_exchange(&scene, AFJ_ROUTING_RANDOM);
        }
        close_scene(&scene);
    }
}
