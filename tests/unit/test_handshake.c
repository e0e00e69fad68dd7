/* test_handshake.c: what ranks must agree on is compared field by field, whatever a peer sends. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "exchange/handshake.h"
#include "support/configs.h"

static struct afj_text describe_with(const afdep_config *config,
                                     const struct afj_controls *controls, uint32_t sim_lanes,
                                     const char *templates)
{
    const struct afj_digest digest = afj_digest_of(templates, strlen(templates));
    struct afj_config checked;
    struct afj_text text = {0};
    cr_assert_eq(afj_config_read(config, &checked), AFDEP_OK, "%s", afdep_last_error());
    afj_handshake_describe(&checked, controls, sim_lanes, &digest, &text);
    cr_assert(!text.failed);
    cr_assert_lt(text.length, AFJ_HANDSHAKE_BYTES);
    return text;
}

static struct afj_text describe(const afdep_config *config, const struct afj_controls *controls)
{
    return describe_with(config, controls, 1, "templates");
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
    afdep_config opaque = good, wider;
    opaque.dtype = AFDEP_DTYPE_OPAQUE;
    opaque.payload_bytes = 64;
    wider = opaque;
    wider.payload_bytes = 128;
    differ(&opaque, &wider, "payload_bytes=64 and rank 3 with payload_bytes=128");
    afdep_config major = good, aligned;
    major.receive = AFDEP_RECEIVE_EXPERT_MAJOR;
    aligned = major;
    aligned.alignment = 8;
    differ(&major, &aligned, "alignment=1 and rank 3 with alignment=8");
}

Test(handshake, libraries_and_templates_are_compared)
{
    const afdep_config config = AFDEP_CONFIG_INIT;
    struct afj_text a = describe(&config, &plain_controls);
    struct afj_text b = describe_with(&config, &plain_controls, 1, "other templates");
    cr_assert_eq(afj_handshake_compare(0, a.data, a.length, 1, b.data, b.length),
                 AFDEP_ERROR_HANDSHAKE);
    cr_assert(strstr(afj_status_sentence(), "rank 0 was created with templates="), "%s",
              afj_status_sentence());
    /* A newer library is named by its version, which comes first, whatever else it says. */
    struct afj_text newer = {0};
    afj_text_printf(&newer, "library=999.0\n%s%s", strchr(a.data, '\n') + 1, "news=1\n");
    cr_assert_eq(afj_handshake_compare(0, a.data, a.length, 7, newer.data, newer.length),
                 AFDEP_ERROR_HANDSHAKE);
    cr_assert(strstr(afj_status_sentence(), "and rank 7 with library=999.0"), "%s",
              afj_status_sentence());
    afj_text_finish(&a);
    afj_text_finish(&b);
    afj_text_finish(&newer);
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

Test(handshake, lanes_of_simulated_warps_are_compared_where_there_are_any)
{
    static const struct {
        uint32_t device;
        afdep_status status;
    } devices[] = {{AFDEP_DEVICE_SIM, AFDEP_ERROR_HANDSHAKE}, {AFDEP_DEVICE_CUDA, AFDEP_OK}};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; ++i) {
        const afdep_config config = config_of(devices[i].device, 1, 1, 64);
        struct afj_text a = describe_with(&config, &plain_controls, 1, "templates");
        struct afj_text b = describe_with(&config, &plain_controls, 32, "templates");
        cr_assert_eq(afj_handshake_compare(0, a.data, a.length, 1, b.data, b.length),
                     devices[i].status);
        cr_assert(devices[i].status == AFDEP_OK ||
                      strstr(afj_status_sentence(),
                             "AFDEP_SIM_LANES=1 and rank 1 with AFDEP_SIM_LANES=32"),
                  "%s", afj_status_sentence());
        afj_text_finish(&a);
        afj_text_finish(&b);
    }
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
    refuses("", 0, "rank 1 says nothing of what it was created with");
    refuses(NULL, 0, "rank 1 says nothing of what it was created with");
    refuses("\n", 1, "library=1 and rank 1 says nothing of it");
    refuses("no sign\nlibrary=1\nhidden=64\n", 28, "library=1 and rank 1 says nothing of it");
    refuses("library=1\n", 10, "hidden=64 and rank 1 says nothing of it");
    refuses("library=1\nhidden=64", 19, "says nothing of it"); /* its last line is not whole */
    refuses("library=1\nhidden=64\nmore=5\n", 27, "rank 1 was created with more=5");
    refuses("library=1\nhidden=64\nhidden=65\n", 30, "hidden=65");
    refuses("library=1\nhidden=64\nhidden=64\n", 30, "cannot be read");
    refuses("hidden=64\nlibrary=1\n", 20, "cannot be read");
    refuses("library=1\0\nhidden=64\n", 21, "library=1 and rank 1 with library=1?");
    refuses("library=1\nhidden=64\n=\n", 22, "rank 1 was created with =");
    refuses("library=1\nhidden=\x1b[2J\n", 22, "hidden=?[2J");
    refuses("library=1\nhidden=64\nrest", 24, "cannot be read");
    char *much = malloc(1 << 20);
    cr_assert_not_null(much);
    memset(much, 'a', 1 << 20);
    refuses(much, 1 << 20, "1048576 bytes; at most");
    /* However long a value is, the sentence is whole. */
    memcpy(much, "library=1\nhidden=", 17);
    much[AFJ_HANDSHAKE_BYTES - 1] = '\n';
    refuses(much, AFJ_HANDSHAKE_BYTES, "hidden=64 and rank 1 with hidden=aaaa");
    cr_assert_lt(strlen(afj_status_sentence()), 256);
    cr_assert_eq(afj_handshake_compare(0, much, 1 << 20, 1, much, 1 << 20), AFDEP_ERROR_HANDSHAKE,
                 "as long as that is no text of ours, equal or not");
    free(much);
}

/* Each text lies in memory of just its size, so that a sanitizer sees a byte read behind it. */
static void refuses_all_but(const struct afj_text *good, const char *bytes, size_t length)
{
    char *exact = malloc(length ? length : 1);
    cr_assert_not_null(exact);
    memcpy(exact, bytes, length);
    cr_assert_eq(afj_handshake_compare(0, good->data, good->length, 1, exact, length),
                 AFDEP_ERROR_HANDSHAKE);
    cr_assert_neq(*afj_status_sentence(), '\0');
    cr_assert_eq(afj_handshake_compare(1, exact, length, 0, good->data, good->length),
                 AFDEP_ERROR_HANDSHAKE);
    free(exact);
}

Test(handshake, no_text_that_was_cut_or_bent_agrees)
{
    const afdep_config config = AFDEP_CONFIG_INIT;
    struct afj_text good = describe(&config, &plain_controls);
    for (size_t length = 0; length < good.length; ++length)
        refuses_all_but(&good, good.data, length);
    static const char bytes[] = {'\0', '\n', '=', '1', '\x7f', '\xff'};
    char *bent = malloc(good.length);
    cr_assert_not_null(bent);
    for (size_t at = 0; at < good.length; ++at)
        for (size_t i = 0; i < sizeof bytes; ++i) {
            memcpy(bent, good.data, good.length);
            bent[at] = bytes[i] == bent[at] ? '2' : bytes[i];
            refuses_all_but(&good, bent, good.length);
        }
    free(bent);
    afj_text_finish(&good);
}
