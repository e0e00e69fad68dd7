/* output.c: pieces of text and JSON that several verbs of afdep-compile print. */
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

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
    const struct afj_layout layout = {config->attention_ranks, config->ffn_ranks,
                                      config->both_ranks};
    struct afj_phrase phrase;
    snprintf(phrase.text, sizeof phrase.text, "%.31s", afj_words_layout_name(&layout).text);
    return phrase;
}

/* As the kernel names this machine's CPU. */
static const char *cpu_arch(void)
{
    static struct utsname machine;
    return uname(&machine) == 0 ? machine.machine : "unknown";
}

const char *afj_output_arch(const afdep_config *config)
{
    if (config->device == AFDEP_DEVICE_SIM)
        return cpu_arch();
    return config->arch != NULL ? config->arch : "sm_90a";
}

json_t *afj_output_deployment(const struct afj_deployment *deployment)
{
    const afdep_config *config = &deployment->config;
    json_t *duties = json_array();
    for (uint32_t duty = AFDEP_DUTY_SOURCE; duty <= AFDEP_DUTY_EXPERT; duty++)
        if (deployment->duties >> duty & 1)
            json_array_append_new(duties, json_string(afj_words_duty_name(duty)));
    json_t *object = json_pack(
        "{s:s, s:i, s:I, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:I, s:s, s:I, s:b, s:b, s:b, s:b, "
        "s:o}",
        "layout", afj_output_layout(config).text, "domains", 1, "hidden",
        (json_int_t)config->hidden, "dtype", afj_words_dtype_name(config->dtype), "experts",
        (json_int_t)config->experts, "top_k", (json_int_t)config->top_k, "capacity",
        (json_int_t)config->capacity, "lanes", (json_int_t)config->lanes, "device",
        afj_words_device_name(config->device), "arch", afj_output_arch(config), "ids",
        (json_int_t)(config->id_bits != 0 ? config->id_bits : 32), "receive",
        afj_words_receive_name(config->receive), "alignment",
        (json_int_t)(config->alignment != 0 ? config->alignment : 1), "counts_first",
        config->counts_first != 0, "host_counts", config->host_counts != 0, "reply_weights",
        config->reply_weights != 0, "collect_view", config->collect_view != 0, "duty", duties);
    if (config->payload_bytes != 0 &&
        json_object_set_new(object, "payload_bytes",
                            json_integer((json_int_t)config->payload_bytes)) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *afj_output_text(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return NULL;
    for (char *at = copy; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    json_t *string = json_string(copy);
    if (string == NULL) {
        for (char *at = copy; *at != '\0'; at++)
            if ((unsigned char)*at >= 0x80)
                *at = '?';
        string = json_string(copy);
    }
    free(copy);
    return string;
}

json_t *afj_output_entry(const afdep_cache_entry *entry)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"path", entry->path},     {"key", entry->key},       {"spec", entry->spec},
                 {"device", entry->device}, {"duty", entry->duty},     {"entry", entry->entry},
                 {"shape", entry->shape},   {"layout", entry->layout}, {"dtype", entry->dtype},
                 {"arch", entry->arch}};
    json_t *object = json_pack(
        "{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "damaged", entry->damaged != 0,
        "hidden", (json_int_t)entry->hidden, "experts", (json_int_t)entry->experts, "top_k",
        (json_int_t)entry->top_k, "bytes", (json_int_t)entry->bytes, "image_bytes",
        (json_int_t)entry->image_bytes, "registers", (json_int_t)entry->registers, "shared_bytes",
        (json_int_t)entry->shared_bytes, "spill_bytes", (json_int_t)entry->spill_bytes, "used",
        (json_int_t)entry->used, "compile_ms", entry->compile_ms);
    bool good = object != NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        good =
            good && json_object_set_new(object, texts[i].name, afj_output_text(texts[i].text)) == 0;
    if (good && entry->error != NULL)
        good = json_object_set_new(object, "error", afj_output_text(entry->error)) == 0;
    if (!good) {
        json_decref(object);
        return NULL;
    }
    return object;
}
