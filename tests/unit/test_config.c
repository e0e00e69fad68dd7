/* test_config.c: what a config may say, and the sentence when it says something else. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "plan/config.h"
#include "support/configs.h"

static void refuses(const afdep_config *config, const char *words)
{
    struct afj_config out;
    cr_assert_eq(afj_config_read(config, &out), AFDEP_ERROR_CONFIG, "accepted: %s", words);
    cr_assert(strstr(afdep_last_error(), words), "\"%s\" does not say \"%s\"", afdep_last_error(),
              words);
}

Test(config, every_field_out_of_range_is_refused_with_its_value)
{
    static const struct {
        size_t field;
        uint32_t value;
        const char *words;
    } bad[] = {
        {offsetof(afdep_config, device), 0, "device is 0"},
        {offsetof(afdep_config, device), 7, "device is 7"},
        {offsetof(afdep_config, attention_ranks), 0, "attention_ranks is 0"},
        {offsetof(afdep_config, attention_ranks), 128, "attention_ranks is 128"},
        {offsetof(afdep_config, ffn_ranks), 0, "ffn_ranks is 0"},
        {offsetof(afdep_config, ffn_ranks), 65, "ffn_ranks is 65"},
        {offsetof(afdep_config, hidden), 56, "hidden is 56"},
        {offsetof(afdep_config, hidden), 16392, "hidden is 16392"},
        {offsetof(afdep_config, hidden), 4100, "hidden is 4100; it must be a multiple of 8"},
        {offsetof(afdep_config, dtype), 5, "dtype is 5"},
        {offsetof(afdep_config, experts), 0, "experts is 0"},
        {offsetof(afdep_config, experts), 65537, "experts is 65537"},
        {offsetof(afdep_config, top_k), 0, "top_k is 0"},
        {offsetof(afdep_config, top_k), 33, "top_k is 33"},
        {offsetof(afdep_config, capacity), 0, "capacity is 0"},
        {offsetof(afdep_config, capacity), (1u << 20) + 1, "capacity is 1048577"},
        {offsetof(afdep_config, capacity), 1u << 20, "route words"},
        {offsetof(afdep_config, lanes), 5, "lanes is 5"},
        {offsetof(afdep_config, ctas), 1025, "ctas is 1025"},
        {offsetof(afdep_config, timeout_ms), 86400001, "timeout_ms is 86400001"},
        {offsetof(afdep_config, startup_timeout_ms), 86400001, "startup_timeout_ms is 86400001"},
        {offsetof(afdep_config, reserved), 1, "reserved is 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        afdep_config c = AFDEP_CONFIG_INIT;
        memcpy((char *)&c + bad[i].field, &bad[i].value, sizeof bad[i].value);
        refuses(&c, bad[i].words);
    }
}

Test(config, ranks_and_experts_must_fit_each_other)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 65, 64, 2048);
    refuses(&c, "65 + 64 = 129");
    c = config_of(AFDEP_DEVICE_CUDA, 2, 3, 2048);
    c.both_ranks = 3;
    refuses(&c, "both_ranks is 3; it must be 0 to 2");
    static const uint32_t map[] = {0, 1, 2, 3};
    c.both_ranks = 0;
    c.experts = 4;
    c.expert_ranks = map;
    refuses(&c, "expert_ranks[3] is 3; there are 3 FFN ranks");
}

Test(config, what_does_not_go_together_is_named)
{
    afdep_config c = AFDEP_CONFIG_INIT;
    c.dtype = AFDEP_DTYPE_FP8;
    c.hidden = 2056;
    refuses(&c, "hidden is 2056; it must be a multiple of 16");
    c = (afdep_config)AFDEP_CONFIG_INIT;
    c.payload_bytes = 64;
    refuses(&c, "payload_bytes is 64");
    c.dtype = AFDEP_DTYPE_OPAQUE;
    c.payload_bytes = 72;
    refuses(&c, "payload_bytes is 72; it must be a multiple of 16");
    c.payload_bytes = 64;
    c.receive = AFDEP_RECEIVE_VIEW;
    refuses(&c, "a view and dtype opaque");
    c = (afdep_config)AFDEP_CONFIG_INIT;
    c.alignment = 8;
    refuses(&c, "alignment is 8; only the expert-major layout");
    c = (afdep_config)AFDEP_CONFIG_INIT;
    c.ffn_ranks = 2;
    c.collect_view = 1;
    refuses(&c, "collect_view is 1 and ffn_ranks 2");
    c = (afdep_config)AFDEP_CONFIG_INIT;
    c.experts = 65536;
    c.receive = AFDEP_RECEIVE_EXPERT_MAJOR;
    refuses(&c, "an FFN rank holds 65536 experts");
    c = (afdep_config)AFDEP_CONFIG_INIT;
    c.id_bits = 16;
    refuses(&c, "id_bits is 16; it must be 32 or 64");
}

Test(config, experts_that_do_not_divide_are_spread_in_blocks)
{
    for (uint32_t experts = 1; experts <= 40; ++experts)
        for (uint32_t ffn = 1; ffn <= 9; ++ffn) {
            afdep_config c = config_of(AFDEP_DEVICE_CUDA, 1, ffn, 64);
            struct afj_config out;
            uint32_t held[9] = {0}, last = 0;
            c.experts = experts;
            cr_assert_eq(afj_config_read(&c, &out), AFDEP_OK, "%s", afdep_last_error());
            for (uint32_t e = 0; e < experts; ++e) {
                const uint32_t owner = afj_config_owner(&out, e);
                cr_assert(owner >= last && owner < ffn);
                last = owner;
                held[owner]++;
            }
            for (uint32_t f = 0; f < ffn; ++f) {
                cr_assert_eq(held[f], afj_config_local_experts(&out, f));
                cr_assert_eq(held[f], experts / ffn + (f < experts % ffn));
            }
        }
}

Test(config, ranks_of_both_roles_are_the_last_ffn_ranks_and_the_first_attention_ranks)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 3, 4, 64);
    struct afj_config out;
    c.both_ranks = 2;
    cr_assert_eq(afj_config_read(&c, &out), AFDEP_OK, "%s", afdep_last_error());
    static const uint32_t roles[] = {AFDEP_ROLE_FFN, AFDEP_ROLE_FFN, AFDEP_ROLE_BOTH,
                                     AFDEP_ROLE_BOTH, AFDEP_ROLE_ATTENTION};
    cr_assert_eq(afj_config_ranks(&out), 5);
    for (uint32_t r = 0; r < 5; ++r)
        cr_assert_eq(afj_config_role(&out, r), roles[r]);
    cr_assert_eq(afj_config_attention_rank(&out, 2), 4);
}

Test(config, an_architecture_is_spelled_as_the_compiler_spells_it)
{
    static const char *bad[] = {"", "sm90", "sm_9", "sm_90b", "SM_90A", "sm_90a ", "sm_1000a"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        afdep_config c = AFDEP_CONFIG_INIT;
        c.arch = bad[i];
        refuses(&c, "it must be such as sm_90a");
    }
    afdep_config c = AFDEP_CONFIG_INIT;
    c.arch = "sm_100a";
    struct afj_config out;
    cr_assert_eq(afj_config_read(&c, &out), AFDEP_OK);
    cr_assert_str_eq(out.arch, "sm_100a");
    c.device = AFDEP_DEVICE_SIM;
    refuses(&c, "the sim device takes none");
}

Test(config, null_and_wrong_sizes_are_arguments)
{
    struct afj_config out;
    cr_assert_eq(afj_config_read(NULL, &out), AFDEP_ERROR_ARGUMENT);
    afdep_config c = AFDEP_CONFIG_INIT;
    c.struct_size = 0;
    cr_assert_eq(afj_config_read(&c, &out), AFDEP_ERROR_ARGUMENT);
    c.struct_size = 1u << 30;
    cr_assert_eq(afj_config_read(&c, &out), AFDEP_ERROR_ARGUMENT);
}

Test(config, an_older_struct_reads_as_zero_padded_and_a_newer_one_must_be_zero_behind)
{
    struct {
        afdep_config config;
        uint32_t more[4];
    } newer = {.config = AFDEP_CONFIG_INIT};
    struct afj_config out;
    newer.config.struct_size = sizeof newer;
    cr_assert_eq(afj_config_read(&newer.config, &out), AFDEP_OK, "%s", afdep_last_error());
    newer.more[2] = 1;
    cr_assert_eq(afj_config_read(&newer.config, &out), AFDEP_ERROR_ARGUMENT);
    afdep_config older = AFDEP_CONFIG_INIT;
    older.struct_size = offsetof(afdep_config, lanes);
    older.lanes = 99; /* not part of it */
    cr_assert_eq(afj_config_read(&older, &out), AFDEP_OK, "%s", afdep_last_error());
    cr_assert_eq(out.fields.lanes, 1);
}

Test(config, zero_takes_the_documented_default)
{
    afdep_config c = AFDEP_CONFIG_INIT;
    struct afj_config out;
    cr_assert_eq(afj_config_read(&c, &out), AFDEP_OK);
    cr_assert_eq(out.fields.timeout_ms, 30000);
    cr_assert_eq(out.fields.startup_timeout_ms, 300000);
    cr_assert_eq(out.fields.ctas, 0);
}

Test(config, ranks_below_f_are_ffn_ranks)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 3, 2, 2048);
    struct afj_config out;
    cr_assert_eq(afj_config_read(&c, &out), AFDEP_OK);
    for (uint32_t r = 0; r < 5; ++r)
        cr_assert_eq(afj_config_role(&out, r), r < 2 ? AFDEP_ROLE_FFN : AFDEP_ROLE_ATTENTION);
}

Test(config, a_size_that_ends_inside_a_pointer_reads_as_none)
{
    afdep_config c = AFDEP_CONFIG_INIT;
    struct afj_config out;
    c.arch = "sm_90a";
    c.struct_size = offsetof(afdep_config, arch) + 4;
    cr_assert_eq(afj_config_read(&c, &out), AFDEP_OK, "%s", afdep_last_error());
    cr_assert_str_empty(out.arch);
}
