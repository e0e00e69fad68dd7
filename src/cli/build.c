/* build.c: afdep-compile build: have every kernel of the deployments in the cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <afdep/cache.h>

#include "cli/document.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run_build(const struct afj_verb *verb, int argc, const char **argv);

const struct afj_verb afj_verb_build = {
    .name = "build",
    .usage = "[FILE] [--layout 2A2F] [--hidden N] [-j N] [--json] ...",
    .summary = "Compile what the cache lacks of the deployments' kernels.",
    .examples =
        "  " AFJ_PROGRAM " build --layout 2A2F\n"
        "  " AFJ_PROGRAM " build --layout 1A1F,2A2F --hidden 4096,7168 --arch sm_90a,sm_100a\n"
        "  " AFJ_PROGRAM " build deployments.jsonl -j 4 --json\n",
    .takes_deployments = true,
    .takes_jobs = true,
    .run = run_build};

/* One kernel as it is printed; strings are owned. */
struct kernel {
    afdep_kernel_report report;
    char *entry, *shape, *key, *arch, *error;
};

/* What the build reports, gathered by the callback. */
struct gathering {
    struct kernel *kernels;
    size_t count, room;
    bool short_of_memory, bar;
};

/* Sum over the builds of a command: one a set of duties. */
struct totals {
    uint32_t compiled, hits, failed;
    double ms;
    afdep_status status;
    char sentence[512];
};

static const char *status_word(uint32_t status)
{
    return status == AFDEP_KERNEL_HIT        ? "hit"
           : status == AFDEP_KERNEL_COMPILED ? "compiled"
                                             : "failed";
}

/* "none" only for a kernel that failed before anything was tried. */
static const char *origin_word(uint32_t origin)
{
    switch (origin) {
    case AFDEP_ORIGIN_MEMORY:
        return "memory";
    case AFDEP_ORIGIN_LOCAL:
        return "local";
    case AFDEP_ORIGIN_COMPILER:
        return "compiler";
    default:
        return "none";
    }
}

static char *copy_of(const char *text) { return strdup(text == NULL ? "" : text); }

static void draw_bar(const afdep_kernel_report *report)
{
    char bar[25];
    size_t full = report->total == 0 ? 24 : (size_t)report->done * 24 / report->total;
    memset(bar, '.', 24);
    memset(bar, '#', full > 24 ? 24 : full);
    bar[24] = '\0';
    fprintf(stderr, "\r[%s] %u/%u %-14s", bar, report->done, report->total,
            report->done == report->total ? "" : report->entry);
    if (report->done == report->total)
        fprintf(stderr, "\r%60s\r", "");
}

static void gather_kernel(const afdep_kernel_report *report, void *user)
{
    struct gathering *all = user;
    if (all->bar)
        draw_bar(report);
    if (all->count == all->room) {
        size_t room = all->room == 0 ? 32 : all->room * 2;
        struct kernel *kernels = realloc(all->kernels, room * sizeof *kernels);
        if (kernels == NULL) {
            all->short_of_memory = true;
            return;
        }
        all->kernels = kernels;
        all->room = room;
    }
    struct kernel *kernel = &all->kernels[all->count++];
    *kernel = (struct kernel){*report,
                              copy_of(report->entry),
                              copy_of(report->shape),
                              copy_of(report->key),
                              copy_of(report->arch),
                              copy_of(report->error)};
    if (kernel->entry == NULL || kernel->shape == NULL || kernel->key == NULL ||
        kernel->arch == NULL || kernel->error == NULL)
        all->short_of_memory = true;
}

static void finish_gathering(struct gathering *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->kernels[i].entry);
        free(all->kernels[i].shape);
        free(all->kernels[i].key);
        free(all->kernels[i].arch);
        free(all->kernels[i].error);
    }
    free(all->kernels);
}

/* Build the deployments that want exactly these duties. */
static void build_duties(const struct afj_request *request, uint32_t duties, struct gathering *all,
                         struct totals *totals)
{
    const struct afj_deployments *deployments = &request->deployments;
    afdep_config *configs = calloc(deployments->count, sizeof *configs);
    if (configs == NULL) {
        all->short_of_memory = true;
        return;
    }
    uint32_t count = 0;
    for (size_t i = 0; i < deployments->count; i++)
        if (deployments->items[i]->duties == duties)
            configs[count++] = deployments->items[i]->config;
    if (count > 0) {
        afdep_build_options options = {.struct_size = sizeof options,
                                       .jobs = request->jobs,
                                       .duties = duties,
                                       .callback = gather_kernel,
                                       .user = all};
        afdep_build_result result = {.struct_size = sizeof result};
        afdep_status status = afdep_cache_build(configs, count, &options, &result);
        totals->compiled += result.compiled;
        totals->hits += result.hits;
        totals->failed += result.failed;
        totals->ms += result.ms;
        if (status != AFDEP_OK && totals->status == AFDEP_OK) {
            totals->status = status;
            snprintf(totals->sentence, sizeof totals->sentence, "%s", afdep_last_error());
        }
    }
    free(configs);
}

static void print_table(const struct gathering *all, const struct totals *totals)
{
    if (all->count > 0)
        printf("%-12s  %-5s  %-6s  %-8s  %-8s  %9s  %8s  %9s  %6s\n", "kernel", "shape", "duty",
               "arch", "status", "ms", "bytes", "registers", "spills");
    for (size_t i = 0; i < all->count; i++) {
        const struct kernel *kernel = &all->kernels[i];
        printf("%-12s  %-5s  %-6s  %-8s  %-8s  %9.1f  %8llu  %9u  %6u\n", kernel->entry,
               kernel->shape, afj_words_duty_name(kernel->report.duty), kernel->arch,
               status_word(kernel->report.status), kernel->report.ms,
               (unsigned long long)kernel->report.bytes, kernel->report.registers,
               kernel->report.spill_bytes);
    }
    /* One cause that fails every kernel, a missing compiler, is said once, at the end. */
    for (size_t i = 0; i < all->count; i++)
        if (all->kernels[i].report.status == AFDEP_KERNEL_FAILED &&
            strcmp(all->kernels[i].error, totals->sentence) != 0)
            fprintf(stderr, AFJ_PROGRAM ": %s (%s): %s\n", all->kernels[i].entry,
                    all->kernels[i].shape, all->kernels[i].error);
    if (totals->status == AFDEP_OK && totals->compiled == 0 && totals->failed == 0)
        printf("nothing compiled: %u kernels found in the cache\n", totals->hits);
    else if (all->count > 0)
        printf("%u compiled, %u found in the cache, %u failed, in %.0f ms\n", totals->compiled,
               totals->hits, totals->failed, totals->ms);
}

/* NULL without memory, as below. */
static json_t *describe_kernel(const struct kernel *kernel)
{
    const afdep_kernel_report *report = &kernel->report;
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:f, s:I, s:I, s:I}", "entry",
                  kernel->entry, "shape", kernel->shape, "duty", afj_words_duty_name(report->duty),
                  "key", kernel->key, "arch", kernel->arch, "status", status_word(report->status),
                  "origin", origin_word(report->origin), "bytes", (json_int_t)report->bytes, "ms",
                  report->ms, "registers", (json_int_t)report->registers, "shared_bytes",
                  (json_int_t)report->shared_bytes, "spill_bytes", (json_int_t)report->spill_bytes);
    if (kernel->error[0] != '\0' &&
        json_object_set_new(object, "error", afj_output_text(kernel->error)) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *describe_kernels(const struct gathering *all)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < all->count; i++)
        if (json_array_append_new(kernels, describe_kernel(&all->kernels[i])) != 0) {
            json_decref(kernels);
            return NULL;
        }
    return kernels;
}

static json_t *describe_build(const struct gathering *all, const struct totals *totals)
{
    afdep_environment environment = {.struct_size = sizeof environment};
    bool known = afdep_cache_environment(&environment) == AFDEP_OK;
    json_t *cache = json_pack("{s:o, s:o, s:b, s:o}", "dir",
                              afj_output_text(known ? environment.cache_dir : ""), "origin",
                              afj_output_text(known ? environment.cache_origin : ""), "writable",
                              known && environment.cache_writable != 0, "note",
                              afj_output_text(known ? environment.cache_note : ""));
    json_t *document = afj_document_new("afdep-compile-build/1");
    json_t *counts =
        json_pack("{s:I, s:I, s:I, s:f, s:o, s:o}", "compiled", (json_int_t)totals->compiled,
                  "hits", (json_int_t)totals->hits, "failed", (json_int_t)totals->failed, "ms",
                  totals->ms, "cache", cache, "kernels", describe_kernels(all));
    bool good = json_object_update_new(document, counts) == 0;
    if (totals->status != AFDEP_OK)
        good =
            good && json_object_set_new(document, "error", afj_output_text(totals->sentence)) == 0;
    if (good)
        return document;
    json_decref(document);
    return NULL;
}

static int run_build(const struct afj_verb *verb, int argc, const char **argv)
{
    struct afj_request request;
    int code = afj_request_read(verb, argc, argv, &request);
    if (code >= 0)
        return code;
    struct gathering all = {.bar = !request.json && isatty(STDERR_FILENO) == 1};
    struct totals totals = {.status = AFDEP_OK};
    const uint32_t source = 1u << AFDEP_DUTY_SOURCE, expert = 1u << AFDEP_DUTY_EXPERT;
    build_duties(&request, source | expert, &all, &totals);
    build_duties(&request, source, &all, &totals);
    build_duties(&request, expert, &all, &totals);
    code = all.short_of_memory ? AFJ_EXIT_FAILED : afj_words_exit_code(totals.status);
    if (all.short_of_memory)
        fprintf(stderr, AFJ_PROGRAM ": no memory to report the build\n");
    int written;
    if (request.json) {
        written = afj_document_print(AFJ_PROGRAM, describe_build(&all, &totals));
    } else {
        print_table(&all, &totals);
        written = afj_words_flush(AFJ_PROGRAM);
    }
    if (totals.status != AFDEP_OK)
        fprintf(stderr, AFJ_PROGRAM ": %s\n", totals.sentence);
    finish_gathering(&all);
    afj_request_finish(&request);
    return code != AFJ_EXIT_OK ? code : written;
}
