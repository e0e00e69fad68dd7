/* payload.c: every value that a row can hold arrives as the contract says, and no other way. */
#include <string.h>

#include "sim/scene.h"

static void fill_rows(struct afj_inputs *inputs, uint32_t first)
{
    uint16_t *rows = (uint16_t *)(void *)inputs->rows;
    for (uint32_t i = 0; i < inputs->tokens[0] * inputs->hidden; i++)
        rows[i] = (uint16_t)(first + i);
}

/* One token a row, all routed to the one FFN rank; compares what came, bit by bit. */
static void send_rows(struct scene *scene)
{
    struct afj_tally tally = {0};
    MUST(scene, afj_harness_run(&scene->harness, 0, &tally));
    assert_clean(scene, &tally, "patterns");
}

static afdep_config config_of(uint32_t dtype, uint32_t hidden)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.dtype = dtype;
    config.hidden = hidden;
    config.experts = 4;
    config.top_k = 1;
    config.capacity = 32;
    config.timeout_ms = config.startup_timeout_ms = 24 * 3600 * 1000; /* simulated links are slow */
    return config;
}

static void open_one(struct scene *scene, const afdep_config *config)
{
    /* Values do not depend on lanes. */
    if (seeds(6) == 1)
        cr_skip_test("with one lane a warp only");
    open_scene(scene, config, 32, first_seed());
    afj_inputs_set_tokens(&scene->harness.lanes[0], 32);
    afj_inputs_draw(&scene->harness.lanes[0], AFJ_ROUTING_FULL, &scene->dice);
}

/* Both halves of a word take every pattern; where both are 0xFFFF the word is canonicalised. */
Test(payload, all_65536_patterns_of_bf16)
{
    struct scene scene;
    const afdep_config config = config_of(AFDEP_DTYPE_BF16, 2048);
    open_one(&scene, &config);
    fill_rows(&scene.harness.lanes[0], 0);
    send_rows(&scene);
    fill_rows(&scene.harness.lanes[0], 1); /* the other half of each word */
    send_rows(&scene);
    close_scene(&scene);
}

Test(payload, each_pattern_beside_itself_is_changed_in_one_case_only)
{
    struct scene scene;
    const afdep_config config = config_of(AFDEP_DTYPE_BF16, 4096);
    open_one(&scene, &config);
    uint16_t *rows = (uint16_t *)(void *)scene.harness.lanes[0].rows;
    for (uint32_t i = 0; i < 65536; i++)
        rows[2 * i] = rows[2 * i + 1] = (uint16_t)i;
    send_rows(&scene);
    /* What is documented, written out: the reference of the check is not asked. */
    const uint16_t *came = scene.harness.experts[0].array[AFJ_ARRAY_ROWS];
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t want = i == 0xFFFF ? 0x7FFF : (uint16_t)i;
        cr_assert(came[2 * i] == want && came[2 * i + 1] == want, "0x%04x came as 0x%04x 0x%04x", i,
                  came[2 * i], came[2 * i + 1]);
    }
    close_scene(&scene);
}

Test(payload, all_bytes_of_e4m3)
{
    struct scene scene;
    const afdep_config config = config_of(AFDEP_DTYPE_FP8, 2048);
    open_one(&scene, &config);
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    for (uint32_t i = 0; i < 32 * 2048; i++)
        inputs->rows[i] = (uint8_t)(i / 4 % 2 == 0 ? i / 8 : i); /* alone and four together */
    send_rows(&scene);
    const uint8_t *came = scene.harness.experts[0].array[AFJ_ARRAY_ROWS];
    for (uint32_t i = 0; i < 32 * 2048; i++) {
        const bool together = i / 4 % 2 == 0 && (uint8_t)(i / 8) == 0xFF;
        const uint8_t want = together ? 0x7F : inputs->rows[i];
        cr_assert_eq(came[i], want, "byte %u: 0x%02x came as 0x%02x", i, inputs->rows[i], came[i]);
    }
    close_scene(&scene);
}

Test(payload, opaque_rows_of_ones_and_of_every_single_hole_arrive_unchanged)
{
    struct scene scene;
    afdep_config config = config_of(AFDEP_DTYPE_OPAQUE, 64);
    config.payload_bytes = 1056; /* two blocks of 32 vectors and a rest */
    open_one(&scene, &config);
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    for (uint32_t round = 0; round < 9; round++) {
        memset(inputs->rows, 0xFF, (size_t)32 * inputs->row_bytes);
        for (uint32_t t = 0; t < 32 && round > 0; t++) {
            const uint32_t hole = (round - 1) * 32 + t;
            memset(inputs->rows + (size_t)t * inputs->row_bytes + 4 * hole, 0, 4);
        }
        send_rows(&scene);
        cr_assert_eq(memcmp(scene.harness.experts[0].array[AFJ_ARRAY_ROWS], inputs->rows,
                            (size_t)32 * inputs->row_bytes),
                     0);
    }
    close_scene(&scene);
}

Test(payload, signed_zeros_survive_the_sum)
{
    struct scene scene;
    afdep_config config = config_of(AFDEP_DTYPE_BF16, 64);
    open_one(&scene, &config);
    struct afj_inputs *inputs = &scene.harness.lanes[0];
    uint16_t *rows = (uint16_t *)(void *)inputs->rows;
    for (uint32_t i = 0; i < 32 * 64; i++)
        rows[i] = (uint16_t)(i % 2 << 15);
    send_rows(&scene);
    const uint16_t *out = scene.harness.sources[0].array[AFJ_ARRAY_OUT];
    for (uint32_t i = 0; i < 32 * 64; i++)
        cr_assert_eq(out[i], i % 2 << 15);
    close_scene(&scene);
}
