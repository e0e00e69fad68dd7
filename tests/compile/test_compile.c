/* test_compile.c: every entry of a few plans goes through the host compiler, and those of one plan
 * through NVRTC for other architectures than matrix.c takes. */
#include <criterion/criterion.h>
#include <sys/utsname.h>

#include "jit/compiler.h"
#include "jit/source.h"
#include "support/configs.h"

static const uint32_t layouts[][4] = {
    /* A, F, hidden, top-k */
    {1, 1, 2048, 8}, {2, 2, 2048, 8}, {3, 1, 2880, 8}, {7, 1, 64, 1}, {1, 64, 16384, 32},
};

static void compile_entries(const struct afj_compiler *compiler, const afdep_config *config,
                            const char *arch)
{
    for (uint32_t role = AFDEP_ROLE_ATTENTION; role <= AFDEP_ROLE_FFN; ++role) {
        const struct afj_plan plan = plan_of(config, role);
        for (uint32_t i = 0; i < plan.kernel_count; ++i) {
            const struct afj_plan_kernel *k = &plan.kernels[i];
            struct afj_source source;
            struct afj_compiled compiled = {0};
            cr_assert_eq(afj_source_make(&plan, k, &source), AFDEP_OK);
            const struct afj_program program = {source.files, source.file_count, arch, k->name};
            cr_assert_eq(compiler->compile(&program, &compiled), AFDEP_OK, "%s %s: %s\n%s", k->name,
                         afj_plan_shape_name(k->shape), afdep_last_error(),
                         compiled.log ? compiled.log : "");
            cr_assert_eq(compiler->check(compiled.image, compiled.image_bytes, arch, k->name),
                         AFDEP_OK, "%s", afdep_last_error());
            cr_assert_eq(compiled.spill_bytes, 0, "%s %s hidden %u spills %u bytes", k->name,
                         afj_plan_shape_name(k->shape), config->hidden, compiled.spill_bytes);
            cr_assert_leq(compiled.registers, 65536 / (k->warps * 32));
            if (compiler == &afj_compiler_nvrtc)
                cr_assert_gt(compiled.registers, 0, "%s reports no registers", k->name);
            afj_compiled_finish(&compiled);
            afj_source_finish(&source);
        }
    }
}

Test(compile, one_plan_compiles_for_every_named_architecture, .timeout = 200)
{
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    const afdep_config c = config_of(AFDEP_DEVICE_CUDA, 2, 2, 2048);
    compile_entries(&afj_compiler_nvrtc, &c, "sm_90");
    compile_entries(&afj_compiler_nvrtc, &c, "sm_100a");
}

Test(compile, every_entry_compiles_with_the_host_compiler, .timeout = 200)
{
    struct utsname machine;
    cr_assert_eq(uname(&machine), 0);
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; ++l) {
        afdep_config c = config_of(AFDEP_DEVICE_SIM, layouts[l][0], layouts[l][1], layouts[l][2]);
        c.top_k = layouts[l][3];
        compile_entries(&afj_compiler_hostcc, &c, machine.machine);
    }
}
