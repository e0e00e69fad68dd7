/* creation.c: what ranks must agree on when buffers are created, and when that may be. */
#include <stdlib.h>
#include <string.h>

#include "sim/scene.h"

enum { RANKS = 4 };

static afdep_config good_config(void)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = 2;
    config.ffn_ranks = 2;
    config.hidden = 64;
    config.experts = 8;
    config.top_k = 4;
    config.capacity = 16;
    return config;
}

static void differ(size_t field, uint32_t value, const char *words)
{
    const afdep_config good = good_config();
    afdep_config other = good;
    const afdep_config *configs[RANKS] = {&good, &good, &other, &good};
    afdep_buffer *buffers[RANKS];
    afdep_group *group = NULL;
    memcpy((char *)&other + field, &value, sizeof value);
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, RANKS, NULL, &group), AFDEP_OK);
    cr_assert_eq(afdep_buffer_create_each(group, configs, buffers), AFDEP_ERROR_HANDSHAKE, "%s: %s",
                 words, afdep_last_error());
    cr_assert(strstr(afdep_last_error(), words), "\"%s\" lacks \"%s\"", afdep_last_error(), words);
    for (int i = 0; i < RANKS; i++)
        cr_assert_null(buffers[i]);
    /* Nothing is left of it: the same group creates buffers afterwards. */
    configs[2] = &good;
    cr_assert_eq(afdep_buffer_create_each(group, configs, buffers), AFDEP_OK, "%s",
                 afdep_last_error());
    for (int i = 0; i < RANKS; i++)
        afdep_buffer_destroy(buffers[i]);
    afdep_group_destroy(group);
}

#define DIFFER(field, value, words) differ(offsetof(afdep_config, field), value, words)

Test(creation, names_the_field_in_which_ranks_differ)
{
    DIFFER(hidden, 128, "rank 0 was created with hidden=64 and rank 2 with hidden=128");
    DIFFER(capacity, 32, "capacity=16 and rank 2 with capacity=32");
    DIFFER(experts, 16, "experts=8 and rank 2 with experts=16");
    DIFFER(top_k, 2, "top_k=4 and rank 2 with top_k=2");
    DIFFER(dtype, AFDEP_DTYPE_FP8, "dtype=1 and rank 2 with dtype=2");
    DIFFER(lanes, 2, "lanes=1 and rank 2 with lanes=2");
    DIFFER(id_bits, 64, "id_bits=32 and rank 2 with id_bits=64");
    DIFFER(receive, AFDEP_RECEIVE_VIEW, "receive=1 and rank 2 with receive=2");
    DIFFER(counts_first, 1, "counts_first=0 and rank 2 with counts_first=1");
    DIFFER(reply_weights, 1, "reply_weights=0 and rank 2 with reply_weights=1");
    DIFFER(timeout_ms, 5, "timeout_ms=30000 and rank 2 with timeout_ms=5");
}

Test(creation, names_the_rank_whose_config_is_wrong)
{
    const afdep_config good = good_config();
    afdep_config wrong = good;
    const afdep_config *configs[RANKS] = {&good, &good, &good, &wrong};
    afdep_buffer *buffers[RANKS];
    afdep_group *group = NULL;
    wrong.hidden = 65;
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, RANKS, NULL, &group), AFDEP_OK);
    cr_assert_eq(afdep_buffer_create_each(group, configs, buffers), AFDEP_ERROR_CONFIG);
    cr_assert(strstr(afdep_last_error(), "hidden is 65"), "%s", afdep_last_error());
    cr_assert(strstr(afdep_last_error(), "rank 3"), "%s", afdep_last_error());
    configs[1] = NULL;
    cr_assert_neq(afdep_buffer_create_each(group, configs, buffers), AFDEP_OK);
    afdep_group_destroy(group);
}

Test(creation, is_refused_while_a_stream_is_recorded)
{
    const afdep_config good = good_config();
    afdep_buffer *buffers[RANKS];
    afdep_group *group = NULL;
    afdep_stream stream = NULL;
    afdep_graph *graph = NULL;
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, RANKS, NULL, &group), AFDEP_OK);
    afdep_device *device = afdep_group_device(group, 1);
    cr_assert_eq(afdep_stream_create(device, &stream), AFDEP_OK);
    cr_assert_eq(afdep_capture_begin(device, stream), AFDEP_OK);
    cr_assert_eq(afdep_buffer_create(group, &good, buffers), AFDEP_ERROR_ORDER);
    cr_assert(strstr(afdep_last_error(), "is being recorded; create buffers before"), "%s",
              afdep_last_error());
    cr_assert_eq(afdep_capture_end(device, stream, &graph), AFDEP_OK);
    afdep_graph_destroy(graph);
    cr_assert_eq(afdep_buffer_create(group, &good, buffers), AFDEP_OK, "%s", afdep_last_error());
    for (int i = 0; i < RANKS; i++)
        afdep_buffer_destroy(buffers[i]);
    afdep_stream_destroy(device, stream);
    afdep_group_destroy(group);
}

/* What strict fences add is only more order: the same exchanges, the same bits. */
Test(creation, strict_fences_change_no_bit)
{
    setenv("AFDEP_STRICT_FENCES", "1", 1);
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(4); seed++) {
        struct scene scene;
        const afdep_config config = good_config();
        open_scene(&scene, &config, 16, seed);
        for (int i = 0; i < 3; i++) {
            draw_tokens(&scene, 16);
            run_exchange(&scene, AFJ_ROUTING_MIXED);
        }
        close_scene(&scene);
    }
}
