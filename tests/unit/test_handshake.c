/* test_handshake.c: what ranks must agree on is compared field by field, whatever a peer sends. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "exchange/handshake.h"
#include "support/configs.h"

static struct afj_text describe(const afdep_config *config, const struct afj_controls *controls)
{
    const struct afj_digest digest = afj_digest_of("templates", 9);
    struct afj_config checked;
    struct afj_text text = {0};
    cr_assert_eq(afj_config_read(config, &checked), AFDEP_OK, "%s", afdep_last_error());
    afj_handshake_describe(&checked, controls, "1", &digest, &text);
    cr_assert(!text.failed);
    cr_assert_lt(text.length, AFJ_HANDSHAKE_BYTES);
    return text;
}

static void differ(const afdep_config *a, const afdep_config *b, const char *words)
{
    struct afj_text one = describe(a, &plain_controls), other = describe(b, &plain_controls);
    cr_assert_eq(afj_handshake_compare(0, one.data, one.length, 3, other.data, other.length),
                 AFDEP_ERROR_HANDSHAKE, "%s", words);
    cr_assert(strstr(afj_status_sentence(), words), "\"%s\" lacks \"%s\"", afj_status_sentence(),
              words);
    afj_text_finish(&one);
    afj_text_finish(&other);
}

Test(handshake, every_field_is_named_with_both_values)
{
    const afdep_config good = config_of(AFDEP_DEVICE_CUDA, 4, 1, 2048);
    static const struct {
        size_t field;
        uint32_t value;
        const char *words;
    } changes[] = {
        {offsetof(afdep_config, attention_ranks), 5,
         "rank 0 was created with attention_ranks=4 and rank 3 with attention_ranks=5"},
        {offsetof(afdep_config, ffn_ranks), 2, "ffn_ranks=1 and rank 3 with ffn_ranks=2"},
        {offsetof(afdep_config, both_ranks), 1, "both_ranks=0 and rank 3 with both_ranks=1"},
        {offsetof(afdep_config, hidden), 4096, "hidden=2048 and rank 3 with hidden=4096"},
        {offsetof(afdep_config, dtype), 2, "dtype=1 and rank 3 with dtype=2"},
        {offsetof(afdep_config, experts), 64, "experts=128 and rank 3 with experts=64"},
        {offsetof(afdep_config, top_k), 4, "top_k=8 and rank 3 with top_k=4"},
        {offsetof(afdep_config, capacity), 64, "capacity=2048 and rank 3 with capacity=64"},
        {offsetof(afdep_config, lanes), 2, "lanes=1 and rank 3 with lanes=2"},
        {offsetof(afdep_config, ctas), 8, "ctas=0 and rank 3 with ctas=8"},
        {offsetof(afdep_config, timeout_ms), 5, "timeout_ms=30000 and rank 3 with timeout_ms=5"},
        {offsetof(afdep_config, startup_timeout_ms), 7, "startup_timeout_ms=7"},
        {offsetof(afdep_config, id_bits), 64, "id_bits=32 and rank 3 with id_bits=64"},
        {offsetof(afdep_config, receive), 2, "receive=1 and rank 3 with receive=2"},
        {offsetof(afdep_config, counts_first), 1, "counts_first=0 and rank 3 with counts_first=1"},
        {offsetof(afdep_config, host_counts), 1, "host_counts=0 and rank 3 with host_counts=1"},
        {offsetof(afdep_config, reply_weights), 1, "reply_weights=0 and rank 3 with"},
        {offsetof(afdep_config, collect_view), 1, "collect_view=0 and rank 3 with"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; ++i) {
        afdep_config other = good;
        memcpy((char *)&other + changes[i].field, &changes[i].value, sizeof changes[i].value);
        differ(&good, &other, changes[i].words);
    }
    afdep_config other = good;
    other.arch = "sm_100a";
    differ(&good, &other, "arch=the device's own and rank 3 with arch=sm_100a");
    other = good;
    uint32_t map[128] = {0};
    other.expert_ranks = map;
    differ(&good, &other, "expert_ranks=blocks and rank 3 with expert_ranks=a map");
    other.ffn_ranks = 2;
    afdep_config third = other;
    uint32_t shuffled[128] = {0, 1};
    third.expert_ranks = shuffled;
    differ(&other, &third, "expert_ranks=a map");
    other = good;
    other.device = AFDEP_DEVICE_SIM;
    differ(&good, &other, "device=1 and rank 3 with device=2");
}

Test(handshake, defaults_and_their_values_are_the_same)
{
    afdep_config plain = AFDEP_CONFIG_INIT, full = AFDEP_CONFIG_INIT;
    full.timeout_ms = 30000;
    full.startup_timeout_ms = 300000;
    full.id_bits = 32;
    full.receive = AFDEP_RECEIVE_COMPACT;
    full.alignment = 1;
    struct afj_text a = describe(&plain, &plain_controls), b = describe(&full, &plain_controls);
    cr_assert_eq(afj_handshake_compare(0, a.data, a.length, 1, b.data, b.length), AFDEP_OK);
    afj_text_finish(&a);
    afj_text_finish(&b);
}

Test(handshake, controls_that_change_the_protocol_are_compared)
{
    const struct afj_controls strict = {.shape = "few", .strict_fences = true};
    const struct afj_controls shape = {.shape = "few", .check_routes = true};
    const afdep_config config = AFDEP_CONFIG_INIT;
    struct afj_text a = describe(&config, &plain_controls), b = describe(&config, &strict),
                    c = describe(&config, &shape);
    cr_assert_eq(afj_handshake_compare(0, a.data, a.length, 1, b.data, b.length),
                 AFDEP_ERROR_HANDSHAKE);
    cr_assert(strstr(afj_status_sentence(), "AFDEP_STRICT_FENCES=0 and rank 1 with"), "%s",
              afj_status_sentence());
    /* Each rank may choose the shape of its kernels, and whether it checks its routes. */
    cr_assert_eq(afj_handshake_compare(0, a.data, a.length, 2, c.data, c.length), AFDEP_OK);
    afj_text_finish(&a);
    afj_text_finish(&b);
    afj_text_finish(&c);
}

static void refuses(const char *text, size_t length, const char *words)
{
    static const char good[] = "library=1\nhidden=64\n";
    cr_assert_eq(afj_handshake_compare(0, good, sizeof good - 1, 1, text, length),
                 AFDEP_ERROR_HANDSHAKE);
    cr_assert(strstr(afj_status_sentence(), words), "\"%s\" lacks \"%s\"", afj_status_sentence(),
              words);
}

Test(handshake, whatever_a_peer_sends_is_refused_with_a_sentence)
{
    refuses("", 0, "says nothing of it");
    refuses("library=1\n", 10, "hidden=64 and rank 1 says nothing of it");
    refuses("library=1\nhidden=64", 19, "says nothing of it"); /* its last line is not whole */
    refuses("library=1\nhidden=64\nmore=5\n", 27, "rank 1 was created with more=5");
    refuses("library=1\nhidden=64\nhidden=65\n", 30, "hidden=65");
    refuses("library=1\nhidden=\x1b[2J\n", 22, "hidden=?[2J");
    refuses("library=1\nhidden=64\nrest", 24, "cannot be read");
    char *much = malloc(1 << 20);
    cr_assert_not_null(much);
    memset(much, 'a', 1 << 20);
    refuses(much, 1 << 20, "1048576 bytes; at most");
    free(much);
}
