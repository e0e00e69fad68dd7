/* create.c: how a group's buffers come to be: plan, obtain, load, connect. */
#include "api/create.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/controls.h"
#include "base/log.h"
#include "base/status.h"
#include "exchange/buffer.h"
#include "exchange/handshake.h"
#include "jit/obtain.h"
#include "jit/source.h"
#include "net/local.h"
#include "plan/plan.h"

/* One rank on its way to a buffer. */
struct rank_plan {
    struct afj_plan plan;
    struct afj_images images;
    bool cached; /* an image came from the cache, now or earlier in this process */
};

/* A kernel compiled for another architecture does not load, and that is not the cache's fault. */
static afdep_status check_arch(const struct afdep_group *group, const struct afj_config *config)
{
    for (uint32_t r = 0; config->arch[0] && r < group->ranks; ++r) {
        const char *own = group->devices[r]->facts.arch;
        const size_t digits = strlen("sm_") + strspn(own + strlen("sm_"), "0123456789");
        if (strncmp(config->arch, own, digits) != 0 ||
            (config->arch[digits] >= '0' && config->arch[digits] <= '9'))
            return afj_fail(AFDEP_ERROR_CONFIG,
                            "arch is %s; device %" PRId32 " is %s: leave it NULL to take the "
                            "device's own",
                            config->arch, group->devices[r]->ordinal, own);
    }
    return AFDEP_OK;
}

/* How many CTAs each kernel of a rank may take, so that all that spin together on its device run
 * together: a CTA that waits for one that cannot start would wait for ever. */
static afdep_status fit_ctas(const struct afdep_group *group, uint32_t rank,
                             struct afj_config *config)
{
    afdep_config *c = &config->fields;
    const uint32_t beside = afj_local_ranks_beside(group, rank);
    const uint32_t processors = group->devices[rank]->facts.processors;
    const uint32_t fit = processors / (beside * c->lanes);
    if (fit == 0 || c->ctas > fit)
        return afj_fail(AFDEP_ERROR_RESOURCES,
                        "%" PRIu32 " ranks x %" PRIu32 " lanes x %" PRIu32
                        " CTAs on device %" PRId32 " do not fit on its %" PRIu32
                        " multiprocessors at once; at most %" PRIu32 " CTAs a kernel do",
                        beside, c->lanes, c->ctas ? c->ctas : 1, group->devices[rank]->ordinal,
                        processors, fit);
    if (c->ctas == 0) {
        const uint32_t wanted = afj_plan_default_ctas(c->device);
        c->ctas = wanted < fit ? wanted : fit;
    }
    return AFDEP_OK;
}

static afdep_status plan_ranks(const struct afdep_group *group, const struct afj_config *config,
                               const struct afj_controls *controls, struct rank_plan *ranks)
{
    for (uint32_t r = 0; r < group->ranks; ++r) {
        struct afj_config own = *config;
        AFJ_TRY(fit_ctas(group, r, &own));
        AFJ_TRY(afj_plan_make(&own, afj_config_role(&own, r), controls, &ranks[r].plan));
    }
    return AFDEP_OK;
}

static const char *arch_of(const struct afdep_group *group, const struct afj_config *config,
                           uint32_t rank)
{
    return config->arch[0] ? config->arch : group->devices[rank]->facts.arch;
}

/* The first rank that needs the same images as `rank`: same role, same architecture. */
static uint32_t first_alike(const struct afdep_group *group, const struct afj_config *config,
                            uint32_t rank)
{
    uint32_t r = 0;
    while (afj_config_role(config, r) != afj_config_role(config, rank) ||
           strcmp(arch_of(group, config, r), arch_of(group, config, rank)) != 0)
        ++r;
    return r;
}

/* Get the images of every rank; ranks that are alike share them. */
static afdep_status obtain_images(const struct afdep_group *group, const struct afj_config *config,
                                  struct rank_plan *ranks, bool refresh)
{
    struct afj_wanted *wanted = calloc((size_t)group->ranks * AFDEP_MAX_KERNELS, sizeof *wanted);
    if (!wanted)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for the kernels of %" PRIu32 " ranks",
                        group->ranks);
    uint32_t count = 0, first_wanted[AFDEP_MAX_RANKS];
    for (uint32_t r = 0; r < group->ranks; ++r) {
        first_wanted[r] = count;
        if (first_alike(group, config, r) != r)
            continue;
        for (uint32_t k = 0; k < ranks[r].plan.kernel_count; ++k) {
            wanted[count].plan = &ranks[r].plan;
            wanted[count].kernel = &ranks[r].plan.kernels[k];
            wanted[count].arch = arch_of(group, config, r);
            wanted[count].refresh = refresh;
            ++count;
        }
    }
    afdep_status status = afj_obtain(wanted, count, 0, NULL, NULL);
    uint32_t compiled = 0;
    double ms = 0;
    for (uint32_t i = 0; i < count; ++i) {
        compiled += wanted[i].origin == AFDEP_ORIGIN_COMPILER;
        ms += wanted[i].origin == AFDEP_ORIGIN_COMPILER ? wanted[i].ms : 0;
    }
    if (status == AFDEP_OK)
        afj_log(AFJ_LOG_INFO,
                "%" PRIu32 " kernels: %" PRIu32 " found, %" PRIu32 " compiled in %.0f ms", count,
                count - compiled, compiled, ms);
    for (uint32_t r = 0; status == AFDEP_OK && r < group->ranks; ++r) {
        const struct afj_wanted *mine = &wanted[first_wanted[first_alike(group, config, r)]];
        for (uint32_t k = 0; k < ranks[r].plan.kernel_count; ++k) {
            ranks[r].images.image[k] = mine[k].image;
            ranks[r].images.bytes[k] = mine[k].image_bytes;
            ranks[r].cached = ranks[r].cached || mine[k].origin != AFDEP_ORIGIN_COMPILER;
        }
    }
    free(wanted);
    return status;
}

static void free_buffers(afdep_buffer **buffers, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; ++r) {
        afj_buffer_free(buffers[r]);
        buffers[r] = NULL;
    }
}

/* Clearing of windows and states must have ended everywhere before the first dispatch of any rank.
 */
static afdep_status make_buffers(const struct afdep_group *group, const struct rank_plan *ranks,
                                 afdep_buffer **buffers)
{
    afdep_status status = AFDEP_OK;
    for (uint32_t r = 0; status == AFDEP_OK && r < group->ranks; ++r)
        status = afj_buffer_make(group, r, &ranks[r].plan, &ranks[r].images, &buffers[r]);
    for (uint32_t r = 0; status == AFDEP_OK && r < group->ranks; ++r)
        buffers[r]->routes_fail = afj_controls_routes_fail();
    for (uint32_t r = 0; status == AFDEP_OK && r < group->ranks; ++r)
        status = group->devices[r]->kind->synchronize(group->devices[r]);
    if (status == AFDEP_OK) {
        afj_buffer_connect(buffers, group->ranks);
        return AFDEP_OK;
    }
    /* Clearing that is still queued must not outlive its memory; the first sentence stays. */
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "%s", afj_status_sentence());
    for (uint32_t r = 0; r < group->ranks; ++r)
        (void)group->devices[r]->kind->synchronize(group->devices[r]);
    free_buffers(buffers, group->ranks);
    return afj_fail(status, "%s", sentence);
}

static bool any_cached(const struct rank_plan *ranks, uint32_t count)
{
    bool any = false;
    for (uint32_t r = 0; r < count; ++r)
        any = any || ranks[r].cached;
    return any;
}

static bool have_one_config(const struct afdep_group *group, const afdep_config *const *configs)
{
    uint32_t r = 1;
    while (r < group->ranks && configs[r] == configs[0])
        ++r;
    return r == group->ranks;
}

/* The config of one rank, checked. Where ranks bring a config each, the sentence says whose it is.
 */
static afdep_status read_config(const struct afdep_group *group, const afdep_config *const *configs,
                                uint32_t rank, struct afj_config *checked)
{
    const afdep_status status = afj_config_read(configs[rank], checked);
    if (status == AFDEP_OK || have_one_config(group, configs))
        return status;
    return afj_fail(status, "%s (the config of rank %" PRIu32 ")", afj_status_sentence(), rank);
}

static afdep_status check_fit(const struct afdep_group *group, const struct afj_config *checked)
{
    if (checked->fields.device != group->kind)
        return afj_fail(AFDEP_ERROR_CONFIG, "device is %" PRIu32 "; the group's is %" PRIu32,
                        checked->fields.device, group->kind);
    if (afj_config_ranks(checked) != group->ranks)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "attention_ranks + ffn_ranks - both_ranks is %" PRIu32
                        "; the group has %" PRIu32 " ranks",
                        afj_config_ranks(checked), group->ranks);
    return AFDEP_OK;
}

/* Ranks may bring a config each: all must say the same as rank 0. Whether the group fits is asked
 * afterwards: of two ranks that disagree, either may be the wrong one. */
static afdep_status shake_hands(const struct afdep_group *group, const afdep_config *const *configs,
                                const struct afj_controls *controls, struct afj_config *checked)
{
    const struct afj_digest templates = afj_source_templates_digest();
    const uint32_t sim_lanes = afj_source_sim_lanes();
    struct afj_text first = {0};
    AFJ_TRY(read_config(group, configs, 0, checked));
    afj_handshake_describe(checked, controls, sim_lanes, &templates, &first);
    afdep_status status = AFDEP_OK;
    for (uint32_t r = 1; status == AFDEP_OK && r < group->ranks; ++r) {
        struct afj_config own;
        struct afj_text text = {0};
        if (configs[r] == configs[0])
            continue;
        status = read_config(group, configs, r, &own);
        if (status == AFDEP_OK)
            afj_handshake_describe(&own, controls, sim_lanes, &templates, &text);
        if (status == AFDEP_OK && (text.failed || first.failed))
            status = afj_fail(AFDEP_ERROR_MEMORY, "no memory for a handshake");
        if (status == AFDEP_OK)
            status = afj_handshake_compare(0, first.data, first.length, r, text.data, text.length);
        afj_text_finish(&text);
    }
    afj_text_finish(&first);
    return status;
}

/* Memory cannot be had while a stream is recorded, and what would be recorded is no exchange. */
static afdep_status check_not_recording(const struct afdep_group *group)
{
    for (uint32_t r = 0; r < group->ranks; ++r)
        if (group->devices[r]->kind->is_recording(group->devices[r]))
            return afj_fail(AFDEP_ERROR_ORDER,
                            "a stream of device %" PRId32 " is being recorded; create buffers "
                            "before a recording begins",
                            group->devices[r]->ordinal);
    return AFDEP_OK;
}

afdep_status afj_create_buffers(struct afdep_group *group, const afdep_config *const *configs,
                                afdep_buffer **buffers)
{
    struct afj_config checked;
    struct afj_controls controls;
    memset(buffers, 0, group->ranks * sizeof *buffers);
    AFJ_TRY(afj_controls_read(&controls));
    AFJ_TRY(shake_hands(group, configs, &controls, &checked));
    AFJ_TRY(check_fit(group, &checked));
    AFJ_TRY(check_arch(group, &checked));
    AFJ_TRY(check_not_recording(group));
    AFJ_TRY(afj_local_check_queues(group, checked.fields.lanes));
    struct rank_plan *ranks = calloc(group->ranks, sizeof *ranks);
    if (!ranks)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for %" PRIu32 " plans", group->ranks);
    afdep_status status = plan_ranks(group, &checked, &controls, ranks);
    if (status == AFDEP_OK)
        status = obtain_images(group, &checked, ranks, false);
    if (status == AFDEP_OK)
        status = make_buffers(group, ranks, buffers);
    if (status == AFDEP_ERROR_LOAD && any_cached(ranks, group->ranks)) {
        /* What the cache gave does not load here: compile afresh, once. */
        afj_log(AFJ_LOG_WARN, "a cached kernel does not load and is compiled again: %s",
                afj_status_sentence());
        status = obtain_images(group, &checked, ranks, true);
        if (status == AFDEP_OK)
            status = make_buffers(group, ranks, buffers);
    }
    free(ranks);
    return status;
}
