/* configs.h: configs that tests begin from. */
#ifndef AFJ_TESTS_CONFIGS_H
#define AFJ_TESTS_CONFIGS_H

#include <criterion/criterion.h>

#include <afdep/config.h>

#include "plan/plan.h"

/* The default deployment with another layout and hidden size. */
static inline afdep_config config_of(uint32_t device, uint32_t attention_ranks, uint32_t ffn_ranks,
                                     uint32_t hidden)
{
    afdep_config c = AFDEP_CONFIG_INIT;
    c.device = device;
    c.attention_ranks = attention_ranks;
    c.ffn_ranks = ffn_ranks;
    c.hidden = hidden;
    c.experts = 128 / ffn_ranks * ffn_ranks;
    return c;
}

static const struct afj_controls plain_controls = {.shape = ""};

static inline struct afj_plan plan_of(const afdep_config *config, uint32_t role)
{
    struct afj_config checked;
    struct afj_plan plan;
    cr_assert_eq(afj_config_read(config, &checked), AFDEP_OK, "%s", afdep_last_error());
    cr_assert_eq(afj_plan_make(&checked, role, &plain_controls, &plan), AFDEP_OK, "%s",
                 afdep_last_error());
    return plan;
}

#endif
