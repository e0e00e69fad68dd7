/* timeout.c: a missing peer ends in a status that names it, and the device lives on.
 * timeout [cuda|sim]. Exit 0: as it must be; 1: not so; 77: no GPU here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness.h"

enum { SKIP = 77, TOKENS = 5, TIMEOUT_MS = 300 };

/* Say what was expected and leave the function with false. */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("FAIL %s:%d: ", __func__, __LINE__);                                            \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool create(struct afj_harness *harness, uint32_t device)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = device;
    config.attention_ranks = 2;
    config.ffn_ranks = 1;
    config.hidden = 64;
    config.capacity = 64;
    config.timeout_ms = config.startup_timeout_ms = TIMEOUT_MS;
    struct afj_dice dice;
    afj_dice_seed(&dice, 1);
    EXPECT(afj_harness_create(harness, &config, NULL, TOKENS) == AFDEP_OK, "%s", harness->failure);
    afj_inputs_set_tokens(&harness->lanes[0], TOKENS);
    afj_inputs_draw(&harness->lanes[0], AFJ_ROUTING_FULL, &dice);
    EXPECT(afj_harness_load(harness, 0) == AFDEP_OK, "%s", harness->failure);
    return true;
}

static bool wait_for(struct afj_harness *harness, uint32_t rank)
{
    EXPECT(afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                    harness->streams[rank]) == AFDEP_OK,
           "the stream of rank %u does not end: %s", rank, afdep_last_error());
    return true;
}

/* The buffer says who gave up waiting for whom, and refuses the next call. */
static bool names_the_peer(struct afj_harness *harness, uint32_t rank, const char *peer,
                           enum afj_step next)
{
    afdep_status status = afdep_buffer_check(harness->buffers[rank]);
    EXPECT(status == AFDEP_ERROR_TIMEOUT, "rank %u: check gives %s", rank,
           afdep_status_name(status));
    EXPECT(strstr(afdep_last_error(), peer) != NULL, "\"%s\" does not name %s", afdep_last_error(),
           peer);
    printf("     %s\n", afdep_last_error());
    status = afj_harness_step(harness, rank, 0, next, AFJ_EXPERT_ECHO);
    EXPECT(status == AFDEP_ERROR_TIMEOUT, "the next call gives %s", afdep_status_name(status));
    return true;
}

static bool device_is_alive(struct afj_harness *harness, uint32_t rank)
{
    const uint32_t sent = 0x12345678;
    uint32_t back = 0;
    afdep_device *device = afdep_group_device(harness->group, rank);
    void *rows = rank == 0 ? harness->experts[0].array[AFJ_ARRAY_ROWS]
                           : harness->sources[rank - 1].array[AFJ_ARRAY_ROWS];
    EXPECT(afdep_device_copy(device, rows, &sent, sizeof sent, harness->streams[rank]) ==
                   AFDEP_OK &&
               afdep_device_copy(device, &back, rows, sizeof back, harness->streams[rank]) ==
                   AFDEP_OK &&
               afdep_stream_synchronize(device, harness->streams[rank]) == AFDEP_OK,
           "a copy fails: %s", afdep_last_error());
    EXPECT(back == sent, "a copy gives %#x, not %#x", back, sent);
    return true;
}

/* Attention ranks 1 and 2 send; FFN rank 0 makes no call. */
static bool a_missing_ffn_rank(struct afj_harness *harness)
{
    EXPECT(afj_harness_step_all(harness, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE) == AFDEP_OK &&
               afj_harness_step_all(harness, 0, AFJ_STEP_COLLECT, AFJ_EXPERT_SCALE) == AFDEP_OK,
           "%s", harness->failure);
    return wait_for(harness, 1) && wait_for(harness, 2) &&
           names_the_peer(harness, 1, "FFN rank 0", AFJ_STEP_DISPATCH) &&
           names_the_peer(harness, 2, "FFN rank 0", AFJ_STEP_DISPATCH) &&
           device_is_alive(harness, 1);
}

/* Attention rank 1 sends, rank 2 makes no call: FFN rank 0 waits for rank 2 and has no rows. */
static bool a_missing_attention_rank(struct afj_harness *harness)
{
    uint32_t total = 1;
    EXPECT(afj_harness_step(harness, 1, 0, AFJ_STEP_DISPATCH, AFJ_EXPERT_SCALE) == AFDEP_OK &&
               afj_harness_step(harness, 0, 0, AFJ_STEP_RECEIVE, AFJ_EXPERT_SCALE) == AFDEP_OK &&
               afj_harness_step(harness, 0, 0, AFJ_STEP_REPLY, AFJ_EXPERT_SCALE) == AFDEP_OK &&
               afj_harness_step(harness, 1, 0, AFJ_STEP_COLLECT, AFJ_EXPERT_SCALE) == AFDEP_OK,
           "%s", harness->failure);
    if (!wait_for(harness, 0) || !wait_for(harness, 1))
        return false;
    afdep_device *device = afdep_group_device(harness->group, 0);
    EXPECT(afdep_device_copy(device, &total, harness->experts[0].array[AFJ_ARRAY_COUNTS],
                             sizeof total, harness->streams[0]) == AFDEP_OK &&
               afdep_stream_synchronize(device, harness->streams[0]) == AFDEP_OK,
           "a copy fails: %s", afdep_last_error());
    EXPECT(total == 0, "the total after a failed receive is %u", total);
    return names_the_peer(harness, 0, "attention rank 2", AFJ_STEP_RECEIVE) &&
           names_the_peer(harness, 1, "FFN rank 0", AFJ_STEP_DISPATCH) &&
           device_is_alive(harness, 0);
}

static bool new_buffers_exchange(struct afj_harness *harness)
{
    struct afj_tally tally = {0};
    EXPECT(afj_harness_run(harness, 0, &tally) == AFDEP_OK, "%s", harness->failure);
    EXPECT(afj_tally_is_clean(&tally), "%llu wrong: %s", (unsigned long long)tally.wrong,
           tally.first);
    return true;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*run)(struct afj_harness *harness);
    } claims[] = {{"a missing FFN rank is named", a_missing_ffn_rank},
                  {"new buffers exchange after that", new_buffers_exchange},
                  {"a missing attention rank is named", a_missing_attention_rank},
                  {"new buffers exchange after that, too", new_buffers_exchange}};
    const uint32_t device =
        argc > 1 && strcmp(argv[1], "sim") == 0 ? AFDEP_DEVICE_SIM : AFDEP_DEVICE_CUDA;
    uint32_t devices = 0;
    if (afdep_device_count((afdep_device_kind)device, &devices) != AFDEP_OK || devices == 0) {
        printf("skipped: %s\n", afdep_last_error()[0] != '\0' ? afdep_last_error() : "no GPU");
        return SKIP;
    }
    bool right = true;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        struct afj_harness harness;
        const bool held = create(&harness, device) && claims[i].run(&harness);
        afj_harness_destroy(&harness);
        printf("%s %s\n", held ? "ok  " : "FAIL", claims[i].name);
        right = right && held;
    }
    return right ? 0 : 1;
}
