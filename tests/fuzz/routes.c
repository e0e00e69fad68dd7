/* routes.c: routes of any bytes, on simulated devices: every row that should come does, none other,
 * nothing is written out of bounds. The entry is that of libFuzzer; built by another compiler it
 * makes inputs itself:
 * routes [--seconds N] [--seed N]    0: nothing found; a fault ends the process with its input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/harness.h"
#include "device/sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 37, HEADER = 8 };

/* Deployments that treat routes differently. */
static const struct {
    uint32_t attention, ffn, both, experts, top_k, id_bits, receive, alignment;
} shapes[] = {
    {2, 2, 0, 8, 4, 32, AFDEP_RECEIVE_COMPACT, 1},
    {2, 3, 0, 7, 3, 64, AFDEP_RECEIVE_EXPERT_MAJOR, 4},
    {3, 3, 3, 9, 2, 32, AFDEP_RECEIVE_VIEW, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct afj_harness harnesses[SHAPES];
static bool made[SHAPES];

static void fail(const char *why, const uint8_t *data, size_t size)
{
    fprintf(stderr, "fuzz.routes: %s\ninput:", why);
    for (size_t i = 0; i < size; i++)
        fprintf(stderr, " %02x", data[i]);
    fprintf(stderr, "\n");
    abort();
}

static struct afj_harness *harness_of(unsigned shape, const uint8_t *data, size_t size)
{
    struct afj_harness *harness = &harnesses[shape];
    if (made[shape])
        return harness;
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = shapes[shape].attention;
    config.ffn_ranks = shapes[shape].ffn;
    config.both_ranks = shapes[shape].both;
    config.hidden = 64;
    config.experts = shapes[shape].experts;
    config.top_k = shapes[shape].top_k;
    config.id_bits = shapes[shape].id_bits;
    config.receive = shapes[shape].receive;
    config.alignment = shapes[shape].alignment;
    config.capacity = ROOM;
    config.timeout_ms = config.startup_timeout_ms = 24 * 3600 * 1000;
    if (afj_harness_create(harness, &config, NULL, ROOM) != AFDEP_OK)
        fail(harness->failure, data, size);
    made[shape] = true;
    return harness;
}

/* Bytes of the input, over and over. */
struct bytes {
    const uint8_t *data;
    size_t size, at;
};

static uint64_t take(struct bytes *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | bytes->data[HEADER + bytes->at++ % (bytes->size - HEADER)];
    return value;
}

/* Half of the ids are small, so that many are experts; the others are whatever the input says. */
static int64_t take_id(struct bytes *bytes, const struct afj_inputs *inputs)
{
    const uint64_t kind = take(bytes, 1);
    if (kind & 1)
        return (int64_t)(kind >> 1) % (inputs->experts + 2) - 1;
    return inputs->id_bits == 64 ? (int64_t)take(bytes, 8) : (int32_t)(uint32_t)take(bytes, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= HEADER)
        return 0;
    struct afj_harness *harness = harness_of(data[0] % SHAPES, data, size);
    struct afj_inputs *inputs = &harness->lanes[0];
    struct bytes bytes = {data, size, 0};
    struct afj_tally tally = {0};
    struct afj_dice dice;
    const struct afj_sim_policy policy = afj_sim_policy_of_seed(data[1] | data[2] << 8);
    afj_sim_configure(&policy);
    afj_dice_seed(&dice, data[3]);
    uint32_t most = 1;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++) {
        inputs->tokens[a] = data[4 + a % 3] % (ROOM + 1);
        most = inputs->tokens[a] > most ? inputs->tokens[a] : most;
    }
    inputs->bucket = data[7] & 1 ? 0 : most;
    harness->live_tokens = data[7] & 2;
    harness->without_origins = data[7] & 4;
    afj_inputs_draw(inputs, AFJ_ROUTING_EMPTY, &dice);
    for (uint32_t i = 0; i < inputs->attention_ranks * ROOM * inputs->top_k; i++) {
        inputs->ids[i] = take_id(&bytes, inputs);
        inputs->weights[i] = (uint32_t)take(&bytes, 4);
    }
    char violation[256];
    if (afj_harness_run(harness, 0, &tally) != AFDEP_OK)
        fail(harness->failure, data, size);
    afj_sim_first_violation(violation, sizeof violation);
    if (tally.wrong != 0 || tally.checked != tally.expected)
        fail(tally.first, data, size);
    if (violation[0] != '\0')
        fail(violation, data, size);
    return 0;
}

#if !defined(AFDEP_LIBFUZZER)
int main(int argc, char **argv)
{
    uint64_t length = 10, seed = afj_dice_fresh_seed(), inputs = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            length = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
    }
    struct afj_dice dice;
    struct timespec begin = {0}, now = {0};
    afj_dice_seed(&dice, seed);
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        uint8_t data[HEADER + 600];
        const size_t size = HEADER + 1 + afj_dice_below(&dice, 600);
        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)afj_dice_next(&dice);
        LLVMFuzzerTestOneInput(data, size);
        inputs++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((uint64_t)(now.tv_sec - begin.tv_sec) < length);
    printf("%llu inputs, nothing found\n", (unsigned long long)inputs);
    for (int i = 0; i < SHAPES; i++)
        if (made[i])
            afj_harness_destroy(&harnesses[i]);
    return 0;
}
#endif
