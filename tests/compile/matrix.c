/* matrix.c: every entry of plans that differ goes through NVRTC; none may spill. What each takes is
 * recorded, one JSON object a line.
 * matrix [--record FILE] [--arch sm_90a]
 * The record is matrix.jsonl in the build folder unless FILE says otherwise.
 * Exit 0: all right; 1: a kernel does not compile or spills; 2: usage; 77: no NVRTC here. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jit/compiler.h"
#include "jit/source.h"
#include "plan/plan.h"

static const struct afj_controls plain_controls = {.shape = ""};

enum { SKIP = 77, REGISTERS_A_CTA = 65536, LANES = 32 };

/* Small and large ratios, rows that divide evenly and not, rows in one piece and in many; every
 * dtype and layout once. */
static const struct {
    uint32_t attention, ffn, hidden, top_k, dtype, payload, receive;
} plans[] = {
    {1, 1, 2048, 8, AFDEP_DTYPE_BF16, 0, AFDEP_RECEIVE_COMPACT},
    {2, 2, 4096, 8, AFDEP_DTYPE_FP8, 0, AFDEP_RECEIVE_EXPERT_MAJOR},
    {3, 1, 2880, 8, AFDEP_DTYPE_FP8_UE8M0, 0, AFDEP_RECEIVE_VIEW},
    {7, 1, 64, 1, AFDEP_DTYPE_BF16, 0, AFDEP_RECEIVE_COMPACT},
    {1, 64, 16384, 32, AFDEP_DTYPE_BF16, 0, AFDEP_RECEIVE_COMPACT},
    {4, 4, 7168, 8, AFDEP_DTYPE_OPAQUE, 4032, AFDEP_RECEIVE_COMPACT},
};

/* What was asked, and what came of it. */
struct matrix {
    const char *arch;
    FILE *record;
    unsigned compiled, failed;
};

static double now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void write_record(const struct matrix *matrix, const struct afj_plan *plan,
                         const struct afj_plan_kernel *kernel, const struct afj_compiled *compiled,
                         double ms)
{
    const afdep_config *c = &plan->config.fields;
    fprintf(matrix->record,
            "{\"schema\": \"afdep-compile-matrix/1\", \"version\": \"%s\", \"commit\": \"%s\", "
            "\"nvrtc\": \"%s\", \"arch\": \"%s\", \"layout\": \"%" PRIu32 "A%" PRIu32
            "F\", \"hidden\": %" PRIu32 ", \"dtype\": \"%s\", \"receive\": %" PRIu32
            ", \"experts\": %" PRIu32 ", \"top_k\": %" PRIu32
            ", \"duty\": \"%s\", \"entry\": \"%s\", \"shape\": \"%s\", "
            "\"warps\": %" PRIu32 ", \"registers\": %" PRIu32 ", \"shared_bytes\": %" PRIu32
            ", \"spill_bytes\": %" PRIu32 ", \"bytes\": %zu, \"ms\": %.0f}\n",
            afdep_version(), afdep_commit(), afj_nvrtc_facts().version, matrix->arch,
            c->attention_ranks, c->ffn_ranks, c->hidden, afj_plan_dtype_name(c->dtype), c->receive,
            c->experts, c->top_k, afj_plan_duty_name(kernel->duty), kernel->name,
            afj_plan_shape_name(kernel->shape), kernel->warps, compiled->registers,
            compiled->shared_bytes, compiled->spill_bytes, compiled->image_bytes, ms);
}

/* NULL, or what is wrong with what the compiler made. */
static const char *judge(const struct matrix *matrix, const struct afj_plan_kernel *kernel,
                         const struct afj_compiled *compiled)
{
    if (afj_compiler_nvrtc.check(compiled->image, compiled->image_bytes, matrix->arch,
                                 kernel->name) != AFDEP_OK)
        return afdep_last_error();
    if (compiled->spill_bytes != 0)
        return "it spills registers";
    if (compiled->registers == 0)
        return "the compiler reports no registers";
    if (compiled->registers > REGISTERS_A_CTA / (kernel->warps * LANES))
        return "a CTA of it does not fit on a multiprocessor";
    return NULL;
}

static void compile_kernel(struct matrix *matrix, const struct afj_plan *plan,
                           const struct afj_plan_kernel *kernel)
{
    struct afj_source source;
    struct afj_compiled compiled = {0};
    const char *fault = NULL;
    if (afj_source_make(plan, kernel, &source) != AFDEP_OK) {
        fprintf(stderr, "%s: %s\n", kernel->name, afdep_last_error());
        matrix->failed++;
        return;
    }
    const struct afj_program program = {source.files, source.file_count, matrix->arch,
                                        kernel->name};
    const double from = now_ms();
    if (afj_compiler_nvrtc.compile(&program, &compiled) != AFDEP_OK) {
        fault = afdep_last_error();
    } else {
        write_record(matrix, plan, kernel, &compiled, now_ms() - from);
        fault = judge(matrix, kernel, &compiled);
    }
    matrix->compiled++;
    if (fault) {
        const afdep_config *c = &plan->config.fields;
        fprintf(stderr,
                "%s %s of %" PRIu32 "A%" PRIu32 "F hidden %" PRIu32 ": %s (%" PRIu32
                " registers, %" PRIu32 " bytes spilled)\n%s\n",
                kernel->name, afj_plan_shape_name(kernel->shape), c->attention_ranks, c->ffn_ranks,
                c->hidden, fault, compiled.registers, compiled.spill_bytes,
                compiled.log ? compiled.log : "");
        matrix->failed++;
    }
    afj_compiled_finish(&compiled);
    afj_source_finish(&source);
}

static void compile_plan(struct matrix *matrix, size_t index, uint32_t role)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    struct afj_config checked;
    struct afj_plan plan;
    config.attention_ranks = plans[index].attention;
    config.ffn_ranks = plans[index].ffn;
    config.hidden = plans[index].hidden;
    config.top_k = plans[index].top_k;
    config.dtype = plans[index].dtype;
    config.payload_bytes = plans[index].payload;
    config.receive = plans[index].receive;
    if (afj_config_read(&config, &checked) != AFDEP_OK ||
        afj_plan_make(&checked, role, &plain_controls, &plan) != AFDEP_OK) {
        fprintf(stderr, "plan %zu: %s\n", index, afdep_last_error());
        matrix->failed++;
        return;
    }
    for (uint32_t k = 0; k < plan.kernel_count; k++)
        compile_kernel(matrix, &plan, &plan.kernels[k]);
}

int main(int argc, char **argv)
{
    struct matrix matrix = {.arch = "sm_90a"};
    const char *folder = getenv("AFDEP_BUILD_DIR");
    char usual[4096];
    snprintf(usual, sizeof usual, "%s/matrix.jsonl", folder ? folder : ".");
    const char *path = usual;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--record") == 0) {
            path = argv[i + 1];
        } else if (i + 1 < argc && strcmp(argv[i], "--arch") == 0) {
            matrix.arch = argv[i + 1];
        } else {
            fprintf(stderr, "usage: %s [--record FILE] [--arch sm_90a]\n", argv[0]);
            return 2;
        }
    }
    if (*afj_nvrtc_facts().note) {
        printf("NVRTC: %s\n", afj_nvrtc_facts().note);
        return SKIP;
    }
    matrix.record = fopen(path, "we");
    if (!matrix.record) {
        perror(path);
        return 1;
    }
    const double from = now_ms();
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        compile_plan(&matrix, i, AFDEP_ROLE_ATTENTION);
        compile_plan(&matrix, i, AFDEP_ROLE_FFN);
    }
    if (fclose(matrix.record) != 0) {
        perror(path);
        matrix.failed++;
    }
    printf("%u kernels for %s in %.1f s, %u wrong; recorded in %s\n", matrix.compiled, matrix.arch,
           (now_ms() - from) * 1e-3, matrix.failed, path);
    return matrix.failed == 0 && matrix.compiled > 0 ? 0 : 1;
}
