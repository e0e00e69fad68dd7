/* test_recipe.c: what decides a key, and what does not. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/recipe.h"
#include "support/configs.h"

/* A compiler that only has a name. */
static const char *compiler_name = "one";
static afdep_status identify(const char *arch, struct afj_text *text)
{
    (void)arch;
    afj_compiler_add_line(text, "compiler", compiler_name, strlen(compiler_name));
    return AFDEP_OK;
}
static const struct afj_compiler named = {identify, NULL, NULL};

static struct afj_digest key_of(const afdep_config *config, uint32_t role, uint32_t kernel,
                                const char *arch)
{
    const struct afj_plan plan = plan_of(config, role);
    struct afj_source source;
    struct afj_recipe recipe;
    cr_assert_eq(afj_source_make(&plan, &plan.kernels[kernel], &source), AFDEP_OK);
    cr_assert_eq(afj_recipe_make(&plan, &plan.kernels[kernel], &source, &named, arch, &recipe),
                 AFDEP_OK);
    const struct afj_digest key = recipe.key;
    afj_recipe_finish(&recipe);
    afj_source_finish(&source);
    return key;
}

static int same(struct afj_digest a, struct afj_digest b) { return afj_digest_equal(&a, &b); }

Test(recipe, rank_capacity_lanes_ctas_and_timeouts_share_one_image)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 2, 2, 2048);
    const struct afj_digest key = key_of(&c, AFDEP_ROLE_FFN, 1, "sm_90a");
    c.capacity = 77;
    c.lanes = 3;
    c.ctas = 9;
    c.timeout_ms = 5;
    cr_assert(same(key, key_of(&c, AFDEP_ROLE_FFN, 1, "sm_90a")));
}

Test(recipe, everything_that_changes_code_changes_the_key)
{
    const afdep_config base = config_of(AFDEP_DEVICE_CUDA, 2, 2, 2048);
    const struct afj_digest key = key_of(&base, AFDEP_ROLE_ATTENTION, 0, "sm_90a");
    afdep_config c = base;
    cr_assert(same(key, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "sm_90a")));
    cr_assert_not(same(key, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "sm_90")));
    cr_assert_not(same(key, key_of(&c, AFDEP_ROLE_ATTENTION, 1, "sm_90a")));
    c.attention_ranks = 3;
    cr_assert_not(same(key, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "sm_90a")));
    c = base;
    c.hidden = 2056;
    cr_assert_not(same(key, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "sm_90a")));
    c = base;
    c.experts = 256;
    cr_assert_not(same(key, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "sm_90a")));
    c = base;
    c.top_k = 7;
    cr_assert_not(same(key, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "sm_90a")));
    c = base;
    c.device = AFDEP_DEVICE_SIM;
    cr_assert_not(same(key, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "x86_64")));
    const struct afj_digest simulated = key_of(&c, AFDEP_ROLE_ATTENTION, 0, "x86_64");
    setenv("AFDEP_SIM_LANES", "32", 1);
    cr_assert_not(same(simulated, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "x86_64")));
    cr_assert(same(key, key_of(&base, AFDEP_ROLE_ATTENTION, 0, "sm_90a")));
    setenv("AFDEP_LOG", "off", 1);
    setenv("AFDEP_SIM_LANES", "16", 1);
    cr_assert(same(simulated, key_of(&c, AFDEP_ROLE_ATTENTION, 0, "x86_64")));
    unsetenv("AFDEP_SIM_LANES");
    compiler_name = "two";
    cr_assert_not(same(key, key_of(&base, AFDEP_ROLE_ATTENTION, 0, "sm_90a")));
    compiler_name = "one";
}

Test(recipe, place_locale_and_history_do_not_change_the_key)
{
    const afdep_config c = config_of(AFDEP_DEVICE_CUDA, 2, 2, 2880);
    const struct afj_digest key = key_of(&c, AFDEP_ROLE_FFN, 2, "sm_90a");
    cr_assert_eq(chdir("/"), 0);
    setenv("HOME", "/nowhere", 1);
    setenv("TZ", "Asia/Kathmandu", 1);
    setlocale(LC_ALL, "de_DE.UTF-8");
    const afdep_config other = config_of(AFDEP_DEVICE_CUDA, 7, 1, 64);
    for (uint32_t k = 0; k < 5; ++k)
        key_of(&other, AFDEP_ROLE_FFN, k, "sm_90a");
    cr_assert(same(key, key_of(&c, AFDEP_ROLE_FFN, 2, "sm_90a")));
}

Test(recipe, lengths_keep_names_and_values_apart)
{
    struct afj_text a = {0}, b = {0};
    afj_compiler_add_line(&a, "ab", "c", 1);
    afj_compiler_add_line(&b, "a", "bc", 2);
    cr_assert_str_eq(a.data, "ab=1:c\n");
    cr_assert_str_eq(b.data, "a=2:bc\n");
    afj_text_finish(&a);
    afj_text_finish(&b);
}

Test(source, a_program_holds_only_what_its_device_uses)
{
    for (uint32_t device = AFDEP_DEVICE_CUDA; device <= AFDEP_DEVICE_SIM; ++device) {
        const afdep_config c = config_of(device, 2, 2, 2048);
        const struct afj_plan plan = plan_of(&c, AFDEP_ROLE_ATTENTION);
        struct afj_source source;
        cr_assert_eq(afj_source_make(&plan, &plan.kernels[0], &source), AFDEP_OK);
        int machines = 0;
        for (size_t i = 0; i < source.file_count; ++i) {
            const struct afj_source_file *f = &source.files[i];
            machines += strcmp(f->name, "prim/machine.cuh") == 0;
            cr_assert_eq(strstr(f->text, "nccl") != NULL, 0, "%s speaks of NCCL", f->name);
            if (device == AFDEP_DEVICE_CUDA) {
                cr_assert_eq(strncmp(f->name, "host/", 5) == 0, 0);
                /* wire/args.h is for host C, too, in a branch of its own. */
                if (strcmp(f->name, "wire/args.h") != 0)
                    cr_assert_null(strstr(f->text, "#include <"), "%s includes a system header",
                                   f->name);
            }
        }
        cr_assert_eq(machines, 1);
        afj_source_finish(&source);
    }
}
