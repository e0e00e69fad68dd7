/* cache.c: the exported calls on the kernel cache. */
#include <afdep/cache.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/controls.h"
#include "base/env.h"
#include "base/sized.h"
#include "cache/store.h"
#include "device/device.h"
#include "jit/compiler.h"
#include "jit/obtain.h"
#include "jit/source.h"
#include "plan/plan.h"

/* A build on its way: the plans of all deployments, and the kernels that differ. */
struct build {
    struct afj_plan *plans;
    struct afj_wanted *wanted;
    uint32_t plan_count, wanted_count;
    char (*arches)[16]; /* one a deployment */
    const afdep_build_options *options;
    struct afj_controls controls;
};

static void report(const struct afj_wanted *wanted, uint32_t done, void *user)
{
    const struct build *build = user;
    if (!build->options->callback)
        return;
    afdep_kernel_report r;
    memset(&r, 0, sizeof r);
    r.struct_size = sizeof r;
    r.status = wanted->status != AFDEP_OK                ? AFDEP_KERNEL_FAILED
               : wanted->origin == AFDEP_ORIGIN_COMPILER ? AFDEP_KERNEL_COMPILED
                                                         : AFDEP_KERNEL_HIT;
    r.origin = wanted->origin;
    r.duty = wanted->kernel->duty;
    r.entry = wanted->kernel->name;
    r.shape = afj_plan_shape_name(wanted->kernel->shape);
    r.key = wanted->key;
    r.arch = wanted->arch_used;
    r.bytes = wanted->image_bytes;
    r.ms = wanted->ms;
    r.registers = wanted->registers;
    r.shared_bytes = wanted->shared_bytes;
    r.spill_bytes = wanted->spill_bytes;
    r.done = done;
    r.total = build->wanted_count;
    r.error = wanted->status == AFDEP_OK ? NULL : wanted->error;
    build->options->callback(&r, build->options->user);
}

/* Two kernels have one image when everything in their constants is equal. */
static bool is_known(const struct build *build, const struct afj_plan *plan,
                     const struct afj_plan_kernel *kernel, const char *arch)
{
    for (uint32_t i = 0; i < build->wanted_count; ++i) {
        const struct afj_wanted *w = &build->wanted[i];
        if (w->kernel->entry == kernel->entry && w->kernel->shape == kernel->shape &&
            afj_config_same_kernels(&w->plan->config, &plan->config) && strcmp(w->arch, arch) == 0)
            return true;
    }
    return false;
}

static afdep_status add_role(struct build *build, const struct afj_config *config, uint32_t role,
                             const char *arch)
{
    const uint32_t duty = role == AFDEP_ROLE_FFN ? AFDEP_DUTY_EXPERT : AFDEP_DUTY_SOURCE;
    if (build->options->duties && !(build->options->duties & 1u << duty))
        return AFDEP_OK;
    struct afj_plan *plan = &build->plans[build->plan_count++];
    AFJ_TRY(afj_plan_make(config, role, &build->controls, plan));
    for (uint32_t k = 0; k < plan->kernel_count; ++k) {
        if (is_known(build, plan, &plan->kernels[k], arch))
            continue;
        struct afj_wanted *w = &build->wanted[build->wanted_count++];
        w->plan = plan;
        w->kernel = &plan->kernels[k];
        w->arch = arch;
    }
    return AFDEP_OK;
}

static afdep_status add_deployments(struct build *build, const afdep_config *configs,
                                    uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        struct afj_config config;
        AFJ_TRY(afj_config_read(&configs[i], &config));
        memcpy(build->arches[i], config.arch, sizeof config.arch);
        AFJ_TRY(add_role(build, &config, AFDEP_ROLE_ATTENTION, build->arches[i]));
        AFJ_TRY(add_role(build, &config, AFDEP_ROLE_FFN, build->arches[i]));
    }
    return AFDEP_OK;
}

static void count_results(const struct build *build, double ms, afdep_build_result *result)
{
    afdep_build_result out;
    memset(&out, 0, sizeof out);
    out.ms = ms;
    for (uint32_t i = 0; i < build->wanted_count; ++i) {
        const struct afj_wanted *w = &build->wanted[i];
        if (w->status != AFDEP_OK)
            ++out.failed;
        else if (w->origin == AFDEP_ORIGIN_COMPILER)
            ++out.compiled;
        else
            ++out.hits;
    }
    afj_sized_write(result, &out, sizeof out);
}

afdep_status afdep_cache_build(const afdep_config *configs, uint32_t count,
                               const afdep_build_options *options, afdep_build_result *result)
{
    afj_status_clear();
    if (!configs || count == 0)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "configs is %s and count is %" PRIu32,
                        configs ? "given" : "NULL", count);
    afdep_build_options chosen;
    memset(&chosen, 0, sizeof chosen);
    if (options)
        AFJ_TRY(
            afj_sized_read(&chosen, sizeof chosen, options, sizeof chosen, "afdep_build_options"));
    if (chosen.reserved != 0)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "reserved is %" PRIu32 "; it must be 0",
                        chosen.reserved);
    if (result)
        AFJ_TRY(afj_sized_check(result, sizeof *result, "afdep_build_result"));
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct build build = {.options = &chosen};
    AFJ_TRY(afj_controls_read(&build.controls));
    build.plans = calloc((size_t)count * 2, sizeof *build.plans);
    build.wanted = calloc((size_t)count * 2 * AFDEP_MAX_KERNELS, sizeof *build.wanted);
    build.arches = calloc(count, sizeof *build.arches);
    afdep_status status = AFDEP_OK;
    if (!build.plans || !build.wanted || !build.arches)
        status = afj_fail(AFDEP_ERROR_MEMORY, "no memory for %" PRIu32 " deployments", count);
    if (status == AFDEP_OK)
        status = add_deployments(&build, configs, count);
    if (status == AFDEP_OK) {
        status = afj_obtain(build.wanted, build.wanted_count, chosen.jobs, report, &build);
        clock_gettime(CLOCK_MONOTONIC, &to);
        if (result)
            count_results(&build,
                          (double)(to.tv_sec - from.tv_sec) * 1e3 +
                              (double)(to.tv_nsec - from.tv_nsec) * 1e-6,
                          result);
    }
    free(build.plans);
    free(build.wanted);
    free(build.arches);
    return status;
}

afdep_status afdep_cache_environment(afdep_environment *environment)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char driver_note[256], digest_hex[33];
    afj_status_clear();
    AFJ_TRY(afj_sized_check(environment, sizeof *environment, "afdep_environment"));
    struct afj_store *store = afj_obtain_store();
    if (!store)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for the cache");
    const struct afj_compiler_facts nvrtc = afj_nvrtc_facts(), host = afj_hostcc_facts();
    pthread_mutex_lock(&lock);
    if (!digest_hex[0]) {
        struct afj_digest digest = afj_source_templates_digest();
        afj_digest_hex(&digest, digest_hex);
        afj_device_cuda_note(driver_note, sizeof driver_note);
    }
    pthread_mutex_unlock(&lock);
    afdep_environment out;
    memset(&out, 0, sizeof out);
    out.cache_writable = afj_store_writable(store);
    out.cache_dir = afj_store_directory(store);
    out.cache_origin = afj_store_origin(store);
    out.cache_note = afj_store_note(store);
    out.nvrtc_path = nvrtc.path;
    out.nvrtc_version = nvrtc.version;
    out.nvrtc_build_id = nvrtc.build_id;
    out.nvrtc_note = nvrtc.note;
    out.host_compiler = host.path;
    out.host_compiler_version = host.version;
    out.host_compiler_note = host.note;
    out.driver_note = driver_note;
    out.template_digest = digest_hex;
    afj_sized_write(environment, &out, sizeof out);
    return AFDEP_OK;
}

afdep_status afdep_cache_get_stats(afdep_cache_stats *stats)
{
    afj_status_clear();
    AFJ_TRY(afj_sized_check(stats, sizeof *stats, "afdep_cache_stats"));
    afdep_cache_stats out;
    memset(&out, 0, sizeof out);
    afj_obtain_stats(&out);
    afj_sized_write(stats, &out, sizeof out);
    return AFDEP_OK;
}

afdep_status afdep_variable_get(uint32_t index, afdep_variable *variable)
{
    afj_status_clear();
    AFJ_TRY(afj_sized_check(variable, sizeof *variable, "afdep_variable"));
    if (index >= AFJ_ENV_COUNT)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "index is %" PRIu32 "; there are %d variables", index,
                        (int)AFJ_ENV_COUNT);
    const struct afj_env_entry *entry = afj_env_entry((enum afj_env)index);
    afdep_variable out;
    memset(&out, 0, sizeof out);
    out.name = entry->name;
    out.text = entry->text;
    out.is_set = afj_env_is_set((enum afj_env)index);
    out.value = afj_env_get((enum afj_env)index);
    afj_sized_write(variable, &out, sizeof out);
    return AFDEP_OK;
}
