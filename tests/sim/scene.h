/* scene.h: one simulated deployment under a schedule that a seed decides, for tests of exchanges.
 */
#ifndef AFJ_TESTS_SCENE_H
#define AFJ_TESTS_SCENE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "bench/harness.h"
#include "device/sim/sim.h"

/* One simulated deployment, and the seed all of it is drawn from. */
struct scene {
    struct afj_harness harness;
    struct afj_dice dice;
    uint64_t seed;
};

static inline const char *replay_note(const struct scene *scene)
{
    static char note[900];
    snprintf(note, sizeof note, "%uA%uF hidden %u, seed %llu: %.600s",
             scene->harness.config.attention_ranks, scene->harness.config.ffn_ranks,
             scene->harness.config.hidden, (unsigned long long)scene->seed, scene->harness.failure);
    return note;
}

#define MUST(scene, call) cr_assert_eq(call, AFDEP_OK, "%s", replay_note(scene))

/* Seeds are fixed, so that a test fails every time; AFDEP_SIM_SEED moves them all. */
static inline uint64_t first_seed(void)
{
    const char *word = getenv("AFDEP_SIM_SEED");
    return word == NULL ? 1 : strtoull(word, NULL, 10);
}

/* How many seeds a test takes: fewer where each warp is 32 fibres. */
static inline uint64_t seeds(uint64_t usual)
{
    const char *lanes = getenv("AFDEP_SIM_LANES");
    return lanes != NULL && strcmp(lanes, "32") == 0 ? (usual + 5) / 6 : usual;
}

static inline void open_scene(struct scene *scene, const afdep_config *config, uint32_t room,
                              uint64_t seed)
{
    memset(scene, 0, sizeof *scene);
    scene->seed = seed;
    afj_dice_seed(&scene->dice, seed);
    const struct afj_sim_policy policy = afj_sim_policy_of_seed(seed);
    afj_sim_configure(&policy);
    MUST(scene, afj_harness_create(&scene->harness, config, NULL, room));
}

/* What is wrong with a scene shows here: no test may close it unseen. */
static inline void close_scene(struct scene *scene)
{
    char violation[256];
    afj_sim_first_violation(violation, sizeof violation);
    afj_harness_destroy(&scene->harness);
    cr_assert_str_empty(violation, "%s: %s", replay_note(scene), violation);
}

static inline void assert_clean(const struct scene *scene, const struct afj_tally *tally,
                                const char *what)
{
    cr_assert(afj_tally_is_clean(tally), "%s, %s: %llu of %llu checked, %llu wrong, error %g: %s",
              replay_note(scene), what, (unsigned long long)tally->checked,
              (unsigned long long)tally->expected, (unsigned long long)tally->wrong,
              tally->worst_error, tally->first);
}

static inline void run_exchange(struct scene *scene, enum afj_routing routing)
{
    struct afj_tally tally = {0};
    afj_inputs_draw(&scene->harness.lanes[0], routing, &scene->dice);
    MUST(scene, afj_harness_run(&scene->harness, 0, &tally));
    assert_clean(scene, &tally, afj_routing_name(routing));
}

/* Some tokens for each source, often none, and a bucket that fits. */
static inline void draw_tokens(struct scene *scene, uint32_t most_tokens)
{
    struct afj_inputs *inputs = &scene->harness.lanes[0];
    uint32_t most = 1;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++) {
        const uint32_t tokens = afj_dice_below(&scene->dice, 4) == 0
                                    ? 0
                                    : afj_dice_below(&scene->dice, most_tokens + 1);
        inputs->tokens[a] = tokens;
        most = tokens > most ? tokens : most;
    }
    const uint32_t capacity = scene->harness.config.capacity;
    inputs->bucket = most + afj_dice_below(&scene->dice, capacity - most + 1);
    if (afj_dice_below(&scene->dice, 4) == 0)
        inputs->bucket = 0;
}

#endif
