/* test_env.c: environment variables and their defaults. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"

Test(env, an_unset_or_empty_variable_has_its_default)
{
    unsetenv("AFDEP_SIM_SEED");
    cr_expect_not(afj_env_is_set(AFJ_ENV_SIM_SEED));
    cr_expect_str_eq(afj_env_get(AFJ_ENV_SIM_SEED), "1");
    setenv("AFDEP_SIM_SEED", "", 1);
    cr_expect_not(afj_env_is_set(AFJ_ENV_SIM_SEED));
    cr_expect_str_eq(afj_env_get(AFJ_ENV_SIM_SEED), "1");
    setenv("AFDEP_SIM_SEED", "x", 1);
    cr_expect(afj_env_is_set(AFJ_ENV_SIM_SEED));
    cr_expect_str_eq(afj_env_get(AFJ_ENV_SIM_SEED), "x");
}

static uint64_t jobs_of(const char *value)
{
    setenv("AFDEP_JIT_JOBS", value, 1);
    return afj_env_number(AFJ_ENV_JIT_JOBS, 1, 256, 7);
}

Test(env, a_number_is_digits_within_its_range)
{
    setenv("AFDEP_LOG", "off", 1);
    cr_expect_eq(jobs_of("1"), 1);
    cr_expect_eq(jobs_of("256"), 256);
    const char *const bad[] = {"",   "0",  "257", "-1", "+3",
                               " 3", "3 ", "0x3", "3k", "18446744073709551617"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        cr_expect_eq(jobs_of(bad[i]), 7, "\"%s\"", bad[i]);
    setenv("AFDEP_SIM_SEED", "18446744073709551615", 1);
    cr_expect_eq(afj_env_number(AFJ_ENV_SIM_SEED, 0, UINT64_MAX, 1), UINT64_MAX);
}

Test(env, every_variable_has_a_name_and_a_text)
{
    for (int i = 0; i < AFJ_ENV_COUNT; ++i) {
        const struct afj_env_entry *entry = afj_env_entry((enum afj_env)i);
        cr_expect(strlen(entry->name) > 0 && strlen(entry->text) > 0 && entry->fallback != NULL);
    }
}
