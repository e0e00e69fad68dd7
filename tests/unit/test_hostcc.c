/* test_hostcc.c: the host compiler: what it makes, how it fails, what it takes for an image. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "jit/compiler.h"

static const char *machine(void)
{
    static struct utsname name;
    cr_assert_eq(uname(&name), 0);
    return name.machine;
}

static const char piece[] = "static inline unsigned twice(unsigned v) { return 2 * v; }\n";

static const char good[] =
    "#include \"prim/piece.cuh\"\n"
    "#define EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n"
    "EXPORT const unsigned long long afj_sim_arguments_bytes;\n"
    "const unsigned long long afj_sim_arguments_bytes = 8;\n"
    "EXPORT void afj_sim_bind(const void *) {}\n"
    "EXPORT void probe(const void *v) { **(unsigned *const *)v = twice(21); }\n"
    "extern \"C\" void hidden(const void *) {}\n";

static afdep_status compile(const char *text, const char *entry, struct afj_compiled *compiled)
{
    struct afj_source_file files[] = {
        {"entry/probe.cuh", text, strlen(text)},
        {"prim/piece.cuh", piece, sizeof piece - 1},
    };
    struct afj_program program = {files, 2, machine(), entry};
    return afj_compiler_hostcc.compile(&program, compiled);
}

static struct afj_compiled compile_good(void)
{
    struct afj_compiled compiled;
    cr_assert_eq(compile(good, "probe", &compiled), AFDEP_OK, "%s", afj_status_sentence());
    return compiled;
}

static void expect_in_sentence(const char *part)
{
    cr_assert_not_null(strstr(afj_status_sentence(), part), "\"%s\" is not in \"%s\"", part,
                       afj_status_sentence());
}

/* An empty directory as TMPDIR; the caller removes it, which fails if anything is left in it. */
static char *use_new_tmpdir(void)
{
    static char directory[] = "/tmp/afdep-test-XXXXXX";
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(setenv("TMPDIR", directory, 1), 0);
    return directory;
}

Test(hostcc, an_image_includes_what_the_program_includes_and_passes_its_check)
{
    struct afj_compiled compiled = compile_good();
    cr_assert_gt(compiled.image_bytes, 0u);
    cr_assert_eq(
        afj_compiler_hostcc.check(compiled.image, compiled.image_bytes, machine(), "probe"),
        AFDEP_OK, "%s", afj_status_sentence());
    afj_compiled_finish(&compiled);
}

Test(hostcc, the_same_program_gives_the_same_bytes)
{
    struct afj_compiled first = compile_good(), second = compile_good();
    cr_assert_eq(first.image_bytes, second.image_bytes);
    cr_assert_eq(memcmp(first.image, second.image, first.image_bytes), 0);
    afj_compiled_finish(&first);
    afj_compiled_finish(&second);
}

Test(hostcc, the_first_error_is_in_the_sentence_with_file_and_line)
{
    char *directory = use_new_tmpdir();
    struct afj_compiled compiled;
    cr_assert_eq(compile("\n\nint broken = nothing;\n", "probe", &compiled), AFDEP_ERROR_COMPILE);
    expect_in_sentence("entry/probe.cuh:3:");
    expect_in_sentence("nothing");
    cr_assert_null(compiled.image);
    cr_assert_not_null(compiled.log);
    afj_compiled_finish(&compiled);
    cr_assert_eq(rmdir(directory), 0, "the compile left files behind");
}

Test(hostcc, an_error_in_an_included_file_names_that_file)
{
    struct afj_compiled compiled;
    cr_assert_eq(compile("#include \"prim/other.cuh\"\n", "probe", &compiled), AFDEP_ERROR_COMPILE);
    expect_in_sentence("prim/other.cuh");
    afj_compiled_finish(&compiled);
}

Test(hostcc, a_program_without_its_entry_does_not_compile)
{
    struct afj_compiled compiled;
    cr_assert_eq(compile(good, "absent", &compiled), AFDEP_ERROR_COMPILE);
    expect_in_sentence("absent");
    afj_compiled_finish(&compiled);
    cr_assert_eq(compile(good, "hidden", &compiled), AFDEP_ERROR_COMPILE);
    afj_compiled_finish(&compiled);
}

Test(hostcc, a_compile_leaves_no_file_behind)
{
    char *directory = use_new_tmpdir();
    struct afj_compiled compiled = compile_good();
    afj_compiled_finish(&compiled);
    cr_assert_eq(rmdir(directory), 0, "the compile left files behind");
}

Test(hostcc, names_that_leave_the_directory_are_refused)
{
    static const char *const names[] = {"/tmp/a.cuh", "../a.cuh", "prim/../../a.cuh", "-o",
                                        "",           "a//b",     "./a.cuh",          "prim/"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct afj_source_file file = {names[i], good, sizeof good - 1};
        struct afj_program program = {&file, 1, machine(), "probe"};
        struct afj_compiled compiled;
        cr_assert_eq(afj_compiler_hostcc.compile(&program, &compiled), AFDEP_ERROR_INTERNAL,
                     "%s was taken", names[i]);
        afj_compiled_finish(&compiled);
    }
}

Test(hostcc, a_host_that_ignores_its_children_still_gets_an_image_or_an_error)
{
    signal(SIGCHLD, SIG_IGN);
    struct afj_compiled compiled = compile_good();
    afj_compiled_finish(&compiled);
    cr_assert_eq(compile("int broken = nothing;\n", "probe", &compiled), AFDEP_ERROR_COMPILE);
    afj_compiled_finish(&compiled);
}

Test(hostcc, another_architecture_is_refused)
{
    struct afj_text text = {0};
    cr_assert_eq(afj_compiler_hostcc.identify("sm_90a", &text), AFDEP_ERROR_CONFIG);
    expect_in_sentence("sm_90a");
    expect_in_sentence(machine());
    afj_text_finish(&text);
}

Test(hostcc, identity_names_options_version_and_build)
{
    struct afj_text text = {0};
    cr_assert_eq(afj_compiler_hostcc.identify(machine(), &text), AFDEP_OK, "%s",
                 afj_status_sentence());
    struct afj_compiler_facts facts = afj_hostcc_facts();
    cr_assert_eq(facts.path[0], '/');
    cr_assert_str_neq(facts.version, "");
    cr_assert_str_neq(facts.build_id, "");
    cr_assert_str_eq(facts.note, "");
    cr_assert_not_null(strstr(text.data, "opts="));
    cr_assert_not_null(strstr(text.data, "-ffp-contract=off"));
    cr_assert_not_null(strstr(text.data, "compiler="));
    cr_assert_not_null(strstr(text.data, facts.build_id));
    afj_text_finish(&text);
}

Test(hostcc, words_behind_the_compiler_are_options_and_part_of_the_identity)
{
    struct afj_text text = {0};
    struct afj_compiled compiled;
    cr_assert_eq(setenv("AFDEP_HOST_CXX", "c++  -DANSWER=42", 1), 0);
    cr_assert_eq(afj_compiler_hostcc.identify(machine(), &text), AFDEP_OK, "%s",
                 afj_status_sentence());
    cr_assert_not_null(strstr(text.data, "-DANSWER=42"));
    afj_text_finish(&text);
    cr_assert_eq(compile("static_assert(ANSWER == 43, \"answer\");\n", "probe", &compiled),
                 AFDEP_ERROR_COMPILE);
    expect_in_sentence("answer");
    afj_compiled_finish(&compiled);
}

Test(hostcc, no_compiler_in_the_path_is_said_with_what_would_help)
{
    struct afj_text text = {0};
    struct afj_compiled compiled;
    unsetenv("AFDEP_HOST_CXX");
    cr_assert_eq(setenv("PATH", "/nowhere", 1), 0);
    cr_assert_eq(afj_compiler_hostcc.identify(machine(), &text), AFDEP_ERROR_COMPILER_MISSING);
    expect_in_sentence("clang++");
    expect_in_sentence("AFDEP_HOST_CXX");
    cr_assert_eq(compile(good, "probe", &compiled), AFDEP_ERROR_COMPILER_MISSING);
    cr_assert_str_eq(afj_hostcc_facts().path, "");
    cr_assert_str_neq(afj_hostcc_facts().note, "");
    afj_text_finish(&text);
    afj_compiled_finish(&compiled);
}

Test(hostcc, a_named_compiler_that_is_not_there_is_not_replaced)
{
    struct afj_text text = {0};
    cr_assert_eq(setenv("AFDEP_HOST_CXX", "no-such-compiler -O1", 1), 0);
    cr_assert_eq(afj_compiler_hostcc.identify(machine(), &text), AFDEP_ERROR_COMPILER_MISSING);
    expect_in_sentence("no-such-compiler");
    afj_text_finish(&text);
}

Test(hostcc, every_truncation_of_an_image_is_refused)
{
    struct afj_compiled compiled = compile_good();
    size_t step = compiled.image_bytes / 500 + 1;
    for (size_t length = 0; length < compiled.image_bytes; length += length < 600 ? 1 : step) {
        /* A block of its own, so that an address sanitizer sees a read behind it. */
        unsigned char *part = malloc(length == 0 ? 1 : length);
        cr_assert_not_null(part);
        memcpy(part, compiled.image, length);
        cr_assert_eq(afj_compiler_hostcc.check(part, length, machine(), "probe"), AFDEP_ERROR_LOAD,
                     "%zu of %zu bytes were taken", length, compiled.image_bytes);
        free(part);
    }
    afj_compiled_finish(&compiled);
}

Test(hostcc, hostile_bytes_are_judged_without_a_read_out_of_range)
{
    struct afj_compiled compiled = compile_good();
    unsigned char *bytes = malloc(compiled.image_bytes);
    unsigned long long random = 20240611;
    cr_assert_not_null(bytes);
    cr_log_info("seed %llu", random);
    for (int round = 0; round < 3000; round++) {
        memcpy(bytes, compiled.image, compiled.image_bytes);
        for (int hit = 0; hit < 4; hit++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            /* Mostly into the header and the tables at the end, where offsets are. */
            size_t at = (size_t)(random >> 33) % compiled.image_bytes;
            if (random >> 20 & 1)
                at %= 512;
            else if (random >> 21 & 1)
                at = compiled.image_bytes - 1 - at % 1024 % compiled.image_bytes;
            bytes[at] = (unsigned char)(random >> 24 & 2 ? 0xFF : random >> 40);
        }
        (void)afj_compiler_hostcc.check(bytes, compiled.image_bytes, machine(), "probe");
    }
    free(bytes);
    afj_compiled_finish(&compiled);
}

Test(hostcc, an_image_for_another_machine_is_refused)
{
    struct afj_compiled compiled = compile_good();
    const char *other = strcmp(machine(), "x86_64") == 0 ? "aarch64" : "x86_64";
    cr_assert_eq(afj_compiler_hostcc.check(compiled.image, compiled.image_bytes, other, "probe"),
                 AFDEP_ERROR_LOAD);
    expect_in_sentence(other);
    afj_compiled_finish(&compiled);
}
