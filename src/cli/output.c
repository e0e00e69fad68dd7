/* output.c: pieces of text and JSON that several verbs of afdep-compile print. */
#include "cli/output.h"

#include <stdio.h>

struct afj_phrase afj_output_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct afj_phrase phrase;
    double scaled = (double)bytes;
    size_t unit = 0;
    while (scaled >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        scaled /= 1024;
        unit++;
    }
    snprintf(phrase.text, sizeof phrase.text, unit == 0 ? "%.0f %s" : "%.1f %s", scaled,
             units[unit]);
    return phrase;
}

struct afj_phrase afj_output_layout(const afdep_config *config)
{
    struct afj_phrase phrase;
    snprintf(phrase.text, sizeof phrase.text, "%uA%uF", config->attention_ranks, config->ffn_ranks);
    return phrase;
}

const char *afj_output_arch(const afdep_config *config)
{
    if (config->device == AFDEP_DEVICE_SIM)
        return "x86_64";
    return config->arch != NULL ? config->arch : "sm_90a";
}

json_t *afj_output_deployment(const struct afj_deployment *deployment)
{
    const afdep_config *config = &deployment->config;
    json_t *duties = json_array();
    for (uint32_t duty = AFDEP_DUTY_SOURCE; duty <= AFDEP_DUTY_EXPERT; duty++)
        if (deployment->duties >> duty & 1)
            json_array_append_new(duties, json_string(afj_words_duty_name(duty)));
    return json_pack("{s:s, s:i, s:I, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:o}", "layout",
                     afj_output_layout(config).text, "domains", 1, "hidden",
                     (json_int_t)config->hidden, "dtype", afj_words_dtype_name(config->dtype),
                     "experts", (json_int_t)config->experts, "top_k", (json_int_t)config->top_k,
                     "capacity", (json_int_t)config->capacity, "lanes", (json_int_t)config->lanes,
                     "device", afj_words_device_name(config->device), "arch",
                     afj_output_arch(config), "duty", duties);
}
