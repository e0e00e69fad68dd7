/* creation.c: what ranks must agree on when buffers are created, and when that may be. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scene.h"

enum { RANKS = 4, FFN = 2, HIDDEN = 64, TOP_K = 4, BF16_ONE = 0x3f80, BF16_TWO = 0x4000 };

static afdep_config good_config(void)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.device = AFDEP_DEVICE_SIM;
    config.attention_ranks = 2;
    config.ffn_ranks = FFN;
    config.hidden = HIDDEN;
    config.experts = 8;
    config.top_k = TOP_K;
    config.capacity = 16;
    return config;
}

static afdep_group *open_group(void)
{
    afdep_group *group = NULL;
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, RANKS, NULL, &group), AFDEP_OK, "%s",
                 afdep_last_error());
    return group;
}

static void close_group(afdep_group *group, afdep_buffer **buffers)
{
    for (int i = 0; i < RANKS; i++)
        afdep_buffer_destroy(buffers[i]);
    afdep_group_destroy(group);
}

/* Rank 2 was given `other`, all others `good`. */
static void refuse(afdep_group *group, const afdep_config *good, const afdep_config *other,
                   const char *words)
{
    const afdep_config *const configs[RANKS] = {good, good, other, good};
    afdep_buffer *buffers[RANKS];
    memset(buffers, 0xff, sizeof buffers);
    cr_assert_eq(afdep_buffer_create_each(group, configs, buffers), AFDEP_ERROR_HANDSHAKE, "%s: %s",
                 words, afdep_last_error());
    cr_assert(strstr(afdep_last_error(), words), "\"%s\" lacks \"%s\"", afdep_last_error(), words);
    for (int i = 0; i < RANKS; i++)
        cr_assert_null(buffers[i]);
}

static void differ_from(afdep_group *group, const afdep_config *good, size_t field, uint32_t value,
                        const char *words)
{
    afdep_config other = *good;
    memcpy((char *)&other + field, &value, sizeof value);
    refuse(group, good, &other, words);
}

/* Every field of which two values are good, given to one rank alone. */
static void refuse_each_field(afdep_group *group)
{
    const afdep_config good = good_config();
#define DIFFER_FROM(good, field, value, words)                                                     \
    differ_from(group, &(good), offsetof(afdep_config, field), value,                              \
                #field "=" words " and rank 2 with " #field "=" #value)
#define DIFFER(field, value, words) DIFFER_FROM(good, field, value, words)
    DIFFER(hidden, 128, "64");
    DIFFER(attention_ranks, 3, "2");
    DIFFER(ffn_ranks, 1, "2");
    DIFFER(both_ranks, 1, "0");
    DIFFER(device, 1, "2");
    DIFFER(dtype, 2, "1");
    DIFFER(experts, 16, "8");
    DIFFER(top_k, 2, "4");
    DIFFER(capacity, 32, "16");
    DIFFER(lanes, 2, "1");
    DIFFER(ctas, 1, "0");
    DIFFER(timeout_ms, 5, "30000");
    DIFFER(startup_timeout_ms, 7, "300000");
    DIFFER(id_bits, 64, "32");
    DIFFER(receive, 2, "1");
    DIFFER(counts_first, 1, "0");
    DIFFER(host_counts, 1, "0");
    DIFFER(reply_weights, 1, "0");
    afdep_config some = good;
    some.dtype = AFDEP_DTYPE_OPAQUE;
    some.payload_bytes = 64;
    DIFFER_FROM(some, payload_bytes, 128, "64");
    some = good;
    some.receive = AFDEP_RECEIVE_EXPERT_MAJOR;
    DIFFER_FROM(some, alignment, 8, "1");
    some = good;
    some.ffn_ranks = 1;
    some.attention_ranks = RANKS - 1;
    DIFFER_FROM(some, collect_view, 1, "0");
    static const uint32_t blocks[] = {0, 0, 0, 0, 1, 1, 1, 1}, others[] = {1, 0, 0, 0, 1, 1, 1, 0};
    some = good;
    some.expert_ranks = blocks;
    refuse(group, &good, &some, "expert_ranks=blocks and rank 2 with expert_ranks=a map");
    afdep_config moved = some;
    moved.expert_ranks = others;
    refuse(group, &some, &moved, "rank 0 was created with expert_ranks=a map with digest");
#undef DIFFER
#undef DIFFER_FROM
}

Test(creation, names_the_field_in_which_ranks_differ)
{
    afdep_group *group = open_group();
    refuse_each_field(group);
    afdep_group_destroy(group);
}

static void *new_array(afdep_device *device, const void *bytes, size_t size)
{
    void *array = NULL;
    cr_assert_eq(afdep_device_alloc(device, size, &array), AFDEP_OK);
    cr_assert_eq(afdep_device_copy(device, array, bytes, size, NULL), AFDEP_OK);
    return array;
}

/* One exchange by hand: a token of ones of each attention rank goes to both FFN ranks, which send
 * it back as it is. */
static void exchange_ones(afdep_group *group, afdep_buffer **buffers)
{
    static const int32_t ids[TOP_K] = {0, 1, 4, 5};
    static const float weights[TOP_K] = {1, 1, 1, 1};
    static char zeros[RANKS * HIDDEN * sizeof(uint16_t)];
    uint16_t ones[HIDDEN], out[HIDDEN];
    void *rows[RANKS], *id[RANKS], *weight[RANKS], *sum[RANKS];
    for (int i = 0; i < HIDDEN; i++)
        ones[i] = BF16_ONE;
    for (uint32_t r = 0; r < RANKS; r++) {
        afdep_device *device = afdep_group_device(group, r);
        rows[r] = new_array(device, r < FFN ? zeros : (const char *)ones,
                            r < FFN ? sizeof zeros : sizeof ones);
        id[r] =
            new_array(device, r < FFN ? (const void *)zeros : ids, sizeof ids * (r < FFN ? 2 : 1));
        weight[r] = new_array(device, r < FFN ? (const void *)zeros : weights,
                              sizeof weights * (r < FFN ? 2 : 1));
        sum[r] = new_array(device, zeros, sizeof out);
    }
    for (uint32_t r = FFN; r < RANKS; r++)
        cr_assert_eq(
            afdep_dispatch(buffers[r],
                           &(afdep_dispatch_args){.struct_size = sizeof(afdep_dispatch_args),
                                                  .tokens = 1,
                                                  .bucket = 1,
                                                  .rows = rows[r],
                                                  .ids = id[r],
                                                  .weights = weight[r]},
                           NULL),
            AFDEP_OK, "%s", afdep_last_error());
    for (uint32_t r = 0; r < FFN; r++) {
        cr_assert_eq(afdep_receive(buffers[r],
                                   &(afdep_receive_args){.struct_size = sizeof(afdep_receive_args),
                                                         .bucket = 1,
                                                         .rows = rows[r],
                                                         .ids = id[r],
                                                         .weights = weight[r]},
                                   NULL),
                     AFDEP_OK, "%s", afdep_last_error());
        cr_assert_eq(afdep_reply(buffers[r],
                                 &(afdep_reply_args){.struct_size = sizeof(afdep_reply_args),
                                                     .rows = rows[r]},
                                 NULL),
                     AFDEP_OK, "%s", afdep_last_error());
    }
    for (uint32_t r = FFN; r < RANKS; r++)
        cr_assert_eq(afdep_collect(buffers[r],
                                   &(afdep_collect_args){.struct_size = sizeof(afdep_collect_args),
                                                         .rows = sum[r]},
                                   NULL),
                     AFDEP_OK, "%s", afdep_last_error());
    for (uint32_t r = 0; r < RANKS; r++) {
        afdep_device *device = afdep_group_device(group, r);
        cr_assert_eq(afdep_device_copy(device, out, sum[r], sizeof out, NULL), AFDEP_OK);
        cr_assert_eq(afdep_device_synchronize(device), AFDEP_OK, "%s", afdep_last_error());
        for (int i = 0; r >= FFN && i < HIDDEN; i++)
            cr_assert_eq(out[i], BF16_TWO, "rank %u, element %d is %04x", r, i, out[i]);
        void *const arrays[] = {rows[r], id[r], weight[r], sum[r]};
        for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
            afdep_device_free(device, arrays[i]);
    }
}

/* Bytes that the process has from malloc, where simulated device memory comes from, too. A
 * sanitizer's malloc says 0, and looks for leaks itself. */
static size_t allocated_bytes(void)
{
    const struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

Test(creation, nothing_is_left_of_what_was_refused)
{
    const afdep_config good = good_config();
    afdep_buffer *buffers[RANKS];
    afdep_group *group = open_group();
    refuse_each_field(group);
    const size_t before = allocated_bytes();
    for (int i = 0; i < 20; i++)
        refuse_each_field(group);
    cr_assert_eq(allocated_bytes(), before);
    /* The same group then creates buffers, and they exchange rows. */
    cr_assert_eq(afdep_buffer_create(group, &good, buffers), AFDEP_OK, "%s", afdep_last_error());
    exchange_ones(group, buffers);
    close_group(group, buffers);
}

Test(creation, takes_a_default_and_its_value_for_the_same)
{
    const afdep_config good = good_config();
    afdep_config full = good;
    full.id_bits = 32;
    full.receive = AFDEP_RECEIVE_COMPACT;
    full.alignment = 1;
    full.timeout_ms = 30000;
    full.startup_timeout_ms = 300000;
    const afdep_config *const configs[RANKS] = {&good, &full, &good, &full};
    afdep_buffer *buffers[RANKS];
    afdep_group *group = open_group();
    cr_assert_eq(afdep_buffer_create_each(group, configs, buffers), AFDEP_OK, "%s",
                 afdep_last_error());
    exchange_ones(group, buffers);
    close_group(group, buffers);
}

Test(creation, names_the_rank_whose_config_is_wrong)
{
    const afdep_config good = good_config();
    afdep_config wrong = good;
    const afdep_config *configs[RANKS] = {&good, &good, &good, &wrong};
    afdep_buffer *buffers[RANKS];
    afdep_group *group = open_group();
    wrong.hidden = 65;
    cr_assert_eq(afdep_buffer_create_each(group, configs, buffers), AFDEP_ERROR_CONFIG);
    cr_assert(strstr(afdep_last_error(), "hidden is 65"), "%s", afdep_last_error());
    cr_assert(strstr(afdep_last_error(), "(the config of rank 3)"), "%s", afdep_last_error());
    configs[1] = NULL;
    cr_assert_eq(afdep_buffer_create_each(group, configs, buffers), AFDEP_ERROR_ARGUMENT);
    cr_assert(strstr(afdep_last_error(), "(the config of rank 1)"), "%s", afdep_last_error());
    /* One config for all is of no rank. */
    cr_assert_eq(afdep_buffer_create(group, &wrong, buffers), AFDEP_ERROR_CONFIG);
    cr_assert(strstr(afdep_last_error(), "hidden is 65"), "%s", afdep_last_error());
    cr_assert(!strstr(afdep_last_error(), "rank"), "%s", afdep_last_error());
    afdep_group_destroy(group);
}

Test(creation, is_refused_while_a_stream_is_recorded)
{
    const afdep_config good = good_config();
    afdep_buffer *buffers[RANKS];
    afdep_group *group = open_group();
    afdep_stream stream = NULL;
    afdep_graph *graph = NULL;
    afdep_device *device = afdep_group_device(group, 1);
    cr_assert_eq(afdep_stream_create(device, &stream), AFDEP_OK);
    cr_assert_eq(afdep_capture_begin(device, stream), AFDEP_OK);
    cr_assert_eq(afdep_buffer_create(group, &good, buffers), AFDEP_ERROR_ORDER);
    cr_assert(strstr(afdep_last_error(), "is being recorded; create buffers before"), "%s",
              afdep_last_error());
    cr_assert_eq(afdep_capture_end(device, stream, &graph), AFDEP_OK);
    afdep_graph_destroy(graph);
    /* A recording ends with its stream, too. */
    afdep_stream other = NULL;
    cr_assert_eq(afdep_stream_create(device, &other), AFDEP_OK);
    cr_assert_eq(afdep_stream_delay(device, other, 1), AFDEP_OK);
    cr_assert_eq(afdep_capture_begin(device, other), AFDEP_OK);
    afdep_stream_destroy(device, other);
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
