/* test_nvrtc.c: NVRTC as a compiler, and what is asked of an image before a driver sees it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/compiler.h"
#include "jit/cubin.h"

static const char kernel_text[] = "#include \"number.h\"\n"
                                  "extern \"C\" __global__ void probe(int *p) { *p = NUMBER; }\n";

static struct afj_program program_of(struct afj_source_file files[2], const char *text,
                                     const char *header)
{
    files[0] = (struct afj_source_file){"entry/probe.cuh", text, strlen(text)};
    files[1] = (struct afj_source_file){"number.h", header, strlen(header)};
    return (struct afj_program){files, 2, "sm_90a", "probe"};
}

static struct afj_compiled compile_probe(void)
{
    struct afj_source_file files[2];
    struct afj_compiled compiled;
    const struct afj_program program = program_of(files, kernel_text, "#define NUMBER 7\n");
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    cr_assert_eq(afj_compiler_nvrtc.compile(&program, &compiled), AFDEP_OK, "%s",
                 afdep_last_error());
    return compiled;
}

Test(nvrtc, a_compile_gives_an_image_and_its_resources)
{
    struct afj_compiled c = compile_probe();
    cr_assert_eq(afj_cubin_check(c.image, c.image_bytes, "sm_90a", "probe"), AFDEP_OK, "%s",
                 afdep_last_error());
    cr_assert_gt(c.registers, 0);
    cr_assert_eq(c.spill_bytes, 0);
    afj_compiled_finish(&c);
}

Test(nvrtc, an_error_names_file_and_line)
{
    struct afj_source_file files[2];
    struct afj_compiled c;
    const struct afj_program program = program_of(files, kernel_text, "#define NUMBER nothing\n");
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    cr_assert_eq(afj_compiler_nvrtc.compile(&program, &c), AFDEP_ERROR_COMPILE);
    cr_assert(strstr(afdep_last_error(), "k.cu(2)"), "%s", afdep_last_error());
    cr_assert(strstr(afdep_last_error(), "nothing"), "%s", afdep_last_error());
    cr_assert_null(c.image);
    afj_compiled_finish(&c);
}

Test(nvrtc, a_program_without_its_entry_does_not_compile)
{
    struct afj_source_file files[2];
    struct afj_compiled c;
    struct afj_program program = program_of(files, kernel_text, "#define NUMBER 7\n");
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    program.entry = "absent";
    cr_assert_eq(afj_compiler_nvrtc.compile(&program, &c), AFDEP_ERROR_COMPILE);
    cr_assert(strstr(afdep_last_error(), "absent"), "%s", afdep_last_error());
    cr_assert_null(c.image);
    afj_compiled_finish(&c);
}

Test(nvrtc, an_unknown_architecture_lists_the_known_ones)
{
    struct afj_text text = {0};
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    cr_assert_eq(afj_compiler_nvrtc.identify("sm_77", &text), AFDEP_ERROR_CONFIG);
    cr_assert(strstr(afdep_last_error(), "sm_90"), "%s", afdep_last_error());
    cr_assert_eq(afj_compiler_nvrtc.identify("compute_90a", &text), AFDEP_ERROR_CONFIG);
    afj_text_finish(&text);
}

/* Of an architecture that is taken, that it is one; of one that is not, that its value is named. */
Test(nvrtc, an_architecture_that_does_not_compile_is_refused_by_name)
{
    static const char *const suffixes[] = {"", "a", "f", "b", "aa"};
    struct afj_source_file files[2];
    struct afj_program program = program_of(files, kernel_text, "#define NUMBER 7\n");
    int taken = 0;
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    for (int number = 50; number < 200; ++number)
        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; ++i) {
            struct afj_compiled c;
            char arch[16];
            snprintf(arch, sizeof arch, "sm_%d%s", number, suffixes[i]);
            program.arch = arch;
            const afdep_status status = afj_compiler_nvrtc.compile(&program, &c);
            cr_expect(status == AFDEP_OK || status == AFDEP_ERROR_CONFIG, "%s: %s", arch,
                      afdep_last_error());
            cr_expect(status == AFDEP_OK || strstr(afdep_last_error(), arch), "%s",
                      afdep_last_error());
            taken += status == AFDEP_OK;
            afj_compiled_finish(&c);
        }
    cr_expect_geq(taken, 4);
    program.arch = "sm_90a";
    struct afj_compiled c;
    cr_expect_eq(afj_compiler_nvrtc.compile(&program, &c), AFDEP_OK, "%s", afdep_last_error());
    afj_compiled_finish(&c);
    struct afj_text text = {0};
    cr_expect_eq(afj_compiler_nvrtc.identify("sm_90f", &text), AFDEP_ERROR_CONFIG);
    cr_expect_eq(afj_compiler_nvrtc.identify("sm_090", &text), AFDEP_ERROR_CONFIG);
    cr_expect_eq(afj_compiler_nvrtc.identify("sm_9", &text), AFDEP_ERROR_CONFIG);
    afj_text_finish(&text);
}

Test(nvrtc, the_manifest_names_options_library_and_environment)
{
    struct afj_text plain = {0}, changed = {0};
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    cr_assert_eq(afj_compiler_nvrtc.identify("sm_90a", &plain), AFDEP_OK);
    cr_assert(strstr(plain.data, "--gpu-architecture=sm_90a"));
    cr_assert(strstr(plain.data, afj_nvrtc_facts().build_id));
    setenv("NV_NVVM_VERSION", "nvvm-latest", 1);
    cr_assert_eq(afj_compiler_nvrtc.identify("sm_90a", &changed), AFDEP_OK);
    cr_assert_neq(strcmp(plain.data, changed.data), 0);
    afj_text_finish(&plain);
    afj_text_finish(&changed);
}

Test(nvrtc, a_file_in_the_current_directory_is_not_included)
{
    char directory[] = "/tmp/afdep-nvrtc-XXXXXX";
    struct afj_source_file files[2];
    struct afj_compiled c;
    struct afj_program program = program_of(files, kernel_text, "");
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    cr_assert(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
    FILE *file = fopen("number.h", "w");
    cr_assert(file);
    fputs("#define NUMBER 1\n", file);
    fclose(file);
    program.file_count = 1;
    const afdep_status status = afj_compiler_nvrtc.compile(&program, &c);
    unlink("number.h");
    cr_assert_eq(chdir("/"), 0);
    rmdir(directory);
    cr_assert_eq(status, AFDEP_ERROR_COMPILE);
    cr_assert(strstr(afdep_last_error(), "number.h"), "%s", afdep_last_error());
    afj_compiled_finish(&c);
}

static void *compile_in_thread(void *out)
{
    struct afj_source_file files[2];
    const struct afj_program program = program_of(files, kernel_text, "#define NUMBER 3\n");
    const afdep_status status = afj_compiler_nvrtc.compile(&program, out);
    return status == AFDEP_OK ? out : NULL;
}

Test(nvrtc, two_threads_compile_at_once_and_get_the_same_bytes)
{
    pthread_t threads[2];
    struct afj_compiled compiled[2];
    if (*afj_nvrtc_facts().note)
        cr_skip_test("NVRTC: %s", afj_nvrtc_facts().note);
    for (int i = 0; i < 2; ++i)
        cr_assert_eq(pthread_create(&threads[i], NULL, compile_in_thread, &compiled[i]), 0);
    for (int i = 0; i < 2; ++i) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        cr_assert(result);
    }
    cr_assert_eq(compiled[0].image_bytes, compiled[1].image_bytes);
    cr_assert_arr_eq(compiled[0].image, compiled[1].image, compiled[0].image_bytes);
    afj_compiled_finish(&compiled[0]);
    afj_compiled_finish(&compiled[1]);
}

/* A check that reads past the end is found by the sanitizer: each prefix is an allocation. */
Test(cubin, every_truncation_is_refused)
{
    struct afj_compiled c = compile_probe();
    for (size_t length = 0; length < c.image_bytes; ++length) {
        void *part = malloc(length ? length : 1);
        memcpy(part, c.image, length);
        cr_assert_eq(afj_cubin_check(part, length, "sm_90a", "probe"), AFDEP_ERROR_LOAD,
                     "%zu of %zu bytes", length, c.image_bytes);
        free(part);
    }
    afj_compiled_finish(&c);
}

Test(cubin, what_is_not_for_this_kernel_is_refused)
{
    struct afj_compiled c = compile_probe();
    unsigned char *bytes = c.image;
    cr_assert_eq(afj_cubin_check(bytes, c.image_bytes, "sm_100a", "probe"), AFDEP_ERROR_LOAD);
    cr_assert(strstr(afdep_last_error(), "sm_90"), "%s", afdep_last_error());
    cr_assert_eq(afj_cubin_check(bytes, c.image_bytes, "sm_90a", "prob"), AFDEP_ERROR_LOAD);
    cr_assert_eq(afj_cubin_check(bytes, c.image_bytes, "sm_90a", "probe_two"), AFDEP_ERROR_LOAD);
    /* Magic, class, byte order, machine, section table: a changed bit in any of them. */
    static const size_t fields[] = {0, 1, 2, 3, 4, 5, 6, 18, 19, 20, 40, 44, 58, 61};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) {
        bytes[fields[i]] ^= 0x40;
        cr_assert_eq(afj_cubin_check(bytes, c.image_bytes, "sm_90a", "probe"), AFDEP_ERROR_LOAD,
                     "byte %zu", fields[i]);
        bytes[fields[i]] ^= 0x40;
    }
    cr_assert_eq(afj_cubin_check("garbage", 7, "sm_90a", "probe"), AFDEP_ERROR_LOAD);
    afj_compiled_finish(&c);
}
