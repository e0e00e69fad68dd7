/* nvrtc.c: the compiler for GPUs: NVRTC, opened at run time, everything in memory. */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <nvrtc.h>

#include "base/dl.h"
#include "base/env.h"
#include "base/status.h"
#include "jit/compiler.h"
#include "jit/cubin.h"

/* A name in a directory that does not exist: NVRTC would look for quoted includes beside it. */
static const char program_name[] = "/afdep.invalid/k.cu";

/* Collect is bit-equal to a reference that rounds each product and sum, so no fused multiply-add.
 * ptxas reports registers and spills. The architecture option comes in front. */
static const char *const fixed_options[] = {"-std=c++17", "-fmad=false", "--ptxas-options=-v",
                                            "--no-cache"};
enum { FIXED_OPTIONS = sizeof fixed_options / sizeof fixed_options[0], NO_CACHE_SINCE = 13 };

/* Numbers of the first architectures that have features of their own, and of a family. */
enum { FIRST_WITH_A = 90, FIRST_WITH_F = 100 };

/* The entry points, and their types as nvrtc.h declares them. */
#define NVRTC_CALLS(X)                                                                             \
    X(nvrtcVersion)                                                                                \
    X(nvrtcGetErrorString)                                                                         \
    X(nvrtcGetNumSupportedArchs)                                                                   \
    X(nvrtcGetSupportedArchs)                                                                      \
    X(nvrtcCreateProgram)                                                                          \
    X(nvrtcDestroyProgram)                                                                         \
    X(nvrtcCompileProgram)                                                                         \
    X(nvrtcGetProgramLogSize)                                                                      \
    X(nvrtcGetProgramLog)                                                                          \
    X(nvrtcGetCUBINSize)                                                                           \
    X(nvrtcGetCUBIN)

/* NVRTC as it was found, once a process. */
static struct {
    struct afj_dl *library;
#define DECLARE_CALL(name) __typeof__(&name) name;
    NVRTC_CALLS(DECLARE_CALL)
#undef DECLARE_CALL
    char path[PATH_MAX], version[16], build_id[129], builtins_id[129];
    char note[2048]; /* why it cannot be used; "" if it can */
    int archs[128], arch_count;
} nvrtc;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Try one name or path. */
static bool open_named(const char *name)
{
    char note[sizeof nvrtc.note];
    nvrtc.library = afj_dl_open(&name, 1, note, sizeof note);
    if (nvrtc.library)
        return true;
    const size_t used = strlen(nvrtc.note);
    snprintf(nvrtc.note + used, sizeof nvrtc.note - used, "%s%s", used ? "; " : "", note);
    return false;
}

/* Try a directory that may hold libnvrtc.so.<major>. What is not there is not mentioned. */
static bool open_in(const char *directory)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        char path[PATH_MAX];
        struct stat status;
        const int length = snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (length > 0 && (size_t)length < sizeof path && stat(path, &status) == 0 &&
            open_named(path))
            return true;
    }
    return false;
}

static bool open_in_toolkit(const char *root)
{
    static const char *const folders[] = {"lib64", "lib"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; ++i) {
        char path[PATH_MAX];
        const int length = snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        if (length > 0 && (size_t)length < sizeof path && open_in(path))
            return true;
    }
    return false;
}

/* The usual place of toolkits: cuda, then cuda-<version> from the newest name down. */
static bool open_installed(void)
{
    static const char parent[] = "/usr/local";
    if (open_in_toolkit("/usr/local/cuda"))
        return true;
    struct dirent **entries = NULL;
    const int count = scandir(parent, &entries, NULL, versionsort);
    bool opened = false;
    for (int i = count - 1; i >= 0; --i) {
        char path[PATH_MAX];
        if (!opened && strncmp(entries[i]->d_name, "cuda-", 5) == 0) {
            snprintf(path, sizeof path, "%s/%s", parent, entries[i]->d_name);
            opened = open_in_toolkit(path);
        }
        free(entries[i]);
    }
    free(entries);
    return opened;
}

static bool open_library(void)
{
    struct stat status;
    if (afj_env_is_set(AFJ_ENV_NVRTC)) {
        /* What the user names is used or reported, never replaced. */
        const char *asked = afj_env_get(AFJ_ENV_NVRTC);
        const bool is_directory = stat(asked, &status) == 0 && S_ISDIR(status.st_mode);
        if (is_directory ? open_in(asked) : open_named(asked))
            return true;
        if (!nvrtc.note[0])
            snprintf(nvrtc.note, sizeof nvrtc.note,
                     "AFDEP_NVRTC names %.1024s, which holds no libnvrtc", asked);
        return false;
    }
    if (open_named("libnvrtc.so.13") || open_named("libnvrtc.so.12"))
        return true;
    if (afj_env_is_set(AFJ_ENV_CUDA_PATH) && open_in_toolkit(afj_env_get(AFJ_ENV_CUDA_PATH)))
        return true;
    if (afj_env_is_set(AFJ_ENV_CUDA_HOME) && open_in_toolkit(afj_env_get(AFJ_ENV_CUDA_HOME)))
        return true;
    if (open_installed())
        return true;
#ifdef AFJ_NVRTC_FALLBACK_DIR
    if (open_in(AFJ_NVRTC_FALLBACK_DIR))
        return true;
#endif
    return false;
}

/* Open the builtins that lie in the directory of `library`. False and `why` if they do not. */
static bool open_builtins_beside(const char *library, int major, int minor, char *why, size_t size)
{
    static const char stem[] = "/libnvrtc";
    char path[PATH_MAX];
    const char *slash = strrchr(library, '/');
    if (!slash) {
        snprintf(why, size, "its directory is not known");
        return false;
    }
    /* A variant such as libnvrtc.alt.so.13 has builtins of the same variant. */
    const char *variant = strncmp(slash, stem, sizeof stem - 1) == 0 ? slash + sizeof stem - 1 : "";
    const char *end = strstr(variant, ".so");
    const int length =
        snprintf(path, sizeof path, "%.*s/libnvrtc-builtins%.*s.so.%d.%d", (int)(slash - library),
                 library, end ? (int)(end - variant) : 0, variant, major, minor);
    if (length < 0 || (size_t)length >= sizeof path) {
        snprintf(why, size, "their path is too long");
        return false;
    }
    const char *name = path;
    if (!afj_dl_open(&name, 1, why, size))
        return false;
    afj_dl_build_id_of_file(path, nvrtc.builtins_id, sizeof nvrtc.builtins_id);
    return true;
}

/* NVRTC opens its builtins by their bare name at the first compile, wherever the loader then finds
 * them. Opened here by path first, they are the ones beside it, and those that the key names. */
static bool open_builtins(int major, int minor)
{
    char why[512];
    if (open_builtins_beside(nvrtc.path, major, minor, why, sizeof why))
        return true;
    char *real = realpath(nvrtc.path, NULL); /* the library was opened by a link to it */
    const bool opened = real && strcmp(real, nvrtc.path) != 0 &&
                        open_builtins_beside(real, major, minor, why, sizeof why);
    free(real);
    if (!opened)
        snprintf(nvrtc.note, sizeof nvrtc.note,
                 "the builtins must lie beside %.1024s and do not open: %s", nvrtc.path, why);
    return opened;
}

static void find_nvrtc(void)
{
    if (!open_library())
        return;
#define FIND_CALL(name)                                                                            \
    *(void **)&nvrtc.name = afj_dl_symbol(nvrtc.library, #name);                                   \
    if (!nvrtc.name) {                                                                             \
        snprintf(nvrtc.note, sizeof nvrtc.note, "the NVRTC library has no " #name);                \
        return;                                                                                    \
    }
    NVRTC_CALLS(FIND_CALL)
#undef FIND_CALL
    nvrtc.note[0] = 0;
    int major = 0, minor = 0;
    const void *address = *(void **)&nvrtc.nvrtcVersion;
    afj_dl_path_of(address, nvrtc.path, sizeof nvrtc.path);
    afj_dl_build_id_of(address, nvrtc.build_id, sizeof nvrtc.build_id);
    if (nvrtc.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS ||
        nvrtc.nvrtcGetNumSupportedArchs(&nvrtc.arch_count) != NVRTC_SUCCESS ||
        nvrtc.arch_count <= 0 || nvrtc.arch_count > 128 ||
        nvrtc.nvrtcGetSupportedArchs(nvrtc.archs) != NVRTC_SUCCESS) {
        snprintf(nvrtc.note, sizeof nvrtc.note,
                 "the NVRTC library does not say its version or architectures");
        return;
    }
    if (open_builtins(major, minor))
        snprintf(nvrtc.version, sizeof nvrtc.version, "%d.%d", major, minor);
}

static afdep_status need_nvrtc(void)
{
    pthread_once(&once, find_nvrtc);
    if (nvrtc.note[0] || !nvrtc.library)
        return afj_fail(AFDEP_ERROR_COMPILER_MISSING,
                        "no NVRTC: %s; install a CUDA toolkit, or name the library in AFDEP_NVRTC",
                        nvrtc.note);
    return AFDEP_OK;
}

/* Whether this NVRTC has families of architectures, such as sm_100f. */
static bool has_families(void)
{
    int major = 0, minor = 0;
    return sscanf(nvrtc.version, "%d.%d", &major, &minor) == 2 &&
           (major > 12 || (major == 12 && minor >= 9));
}

/* Whether a number that NVRTC knows has a variant of this suffix. NVRTC lists numbers only; of a
 * suffix that does not exist it says at a compile that an option is invalid, and not which. */
static bool has_variant(int number, const char *suffix)
{
    if (strcmp(suffix, "a") == 0)
        return number >= FIRST_WITH_A;
    if (strcmp(suffix, "f") == 0)
        return number >= FIRST_WITH_F && has_families();
    return suffix[0] == '\0';
}

static afdep_status check_arch(const char *arch)
{
    char list[512] = "";
    for (int i = 0; i < nvrtc.arch_count; ++i) {
        const size_t used = strlen(list);
        char name[16];
        const int length = snprintf(name, sizeof name, "sm_%d", nvrtc.archs[i]);
        if (strncmp(arch, name, (size_t)length) == 0 && has_variant(nvrtc.archs[i], arch + length))
            return AFDEP_OK;
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", name);
    }
    return afj_fail(
        AFDEP_ERROR_CONFIG, "arch is %s; NVRTC %s knows %s; from sm_%d on also with a%s", arch,
        nvrtc.version, list, FIRST_WITH_A, has_families() ? ", from sm_100 on also with f" : "");
}

/* NVRTC has a cache of its own beside a driver, which loses what ptxas reports; versions before 13
 * have neither it nor the option, which stands last. */
static int count_fixed_options(void)
{
    return atoi(nvrtc.version) >= NO_CACHE_SINCE ? FIXED_OPTIONS : FIXED_OPTIONS - 1;
}

static void add_variable(struct afj_text *text, enum afj_env which)
{
    if (afj_env_is_set(which))
        afj_text_printf(text, "%s%s=%s", text->length ? " " : "", afj_env_entry(which)->name,
                        afj_env_get(which));
}

static void add_line(struct afj_text *manifest, const char *name, struct afj_text *value)
{
    afj_compiler_add_line(manifest, name, value->data ? value->data : "", value->length);
    manifest->failed = manifest->failed || value->failed;
    afj_text_finish(value);
}

static afdep_status identify(const char *arch, struct afj_text *text)
{
    AFJ_TRY(need_nvrtc());
    AFJ_TRY(check_arch(arch));
    struct afj_text options = {0}, compiler = {0}, variables = {0};
    afj_text_printf(&options, "--gpu-architecture=%s", arch);
    for (int i = 0; i < count_fixed_options(); ++i)
        afj_text_printf(&options, " %s", fixed_options[i]);
    afj_text_printf(&compiler, "nvrtc %s %s builtins %s", nvrtc.version, nvrtc.build_id,
                    nvrtc.builtins_id);
    /* Both can change the image behind the options. */
    add_variable(&variables, AFJ_ENV_NV_NVVM_VERSION);
    add_variable(&variables, AFJ_ENV_NVRTC_APPEND_FLAGS);
    add_line(text, "opts", &options);
    add_line(text, "compiler", &compiler);
    add_line(text, "env", &variables);
    return AFDEP_OK;
}

/* The log, malloc'ed; NULL if there is none. */
static char *log_of(nvrtcProgram program)
{
    size_t size = 0;
    if (nvrtc.nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size <= 1)
        return NULL;
    char *log = malloc(size + 1);
    if (log && nvrtc.nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) {
        free(log);
        return NULL;
    }
    if (log)
        log[size] = 0;
    return log;
}

/* The first line that speaks of an error, else the first line. */
static int find_error(const char *log, const char **line)
{
    const char *at = log ? strstr(log, "error") : NULL;
    if (!at)
        at = log ? log : "no log";
    while (log && at > log && at[-1] != '\n')
        --at;
    *line = at;
    return (int)strcspn(at, "\n");
}

static afdep_status explain(nvrtcResult result, const struct afj_program *program, const char *log)
{
    const char *line = "";
    const int length = find_error(log, &line);
    if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE)
        return afj_fail(AFDEP_ERROR_COMPILER_MISSING,
                        "NVRTC at %s lacks its builtins library: %.*s", nvrtc.path, length, line);
    if (result == NVRTC_ERROR_OUT_OF_MEMORY)
        return afj_fail(AFDEP_ERROR_MEMORY, "NVRTC has no memory for %s", program->entry);
    return afj_fail(AFDEP_ERROR_COMPILE, "%s does not compile for %s: %s: %.*s", program->entry,
                    program->arch, nvrtc.nvrtcGetErrorString(result), length, line);
}

/* ptxas writes a block for each function: the entry's begins with "Compiling entry function". */
static void read_resources(const char *log, struct afj_compiled *compiled)
{
    const char *at = log ? strstr(log, "Compiling entry function") : NULL;
    if (!at)
        return;
    const char *used = strstr(at, "Used "), *spill = strstr(at, "bytes stack frame, ");
    unsigned registers = 0, stores = 0, loads = 0, shared = 0;
    if (used && sscanf(used, "Used %u registers", &registers) == 1)
        compiled->registers = registers;
    if (spill && sscanf(spill, "bytes stack frame, %u bytes spill stores, %u bytes spill loads",
                        &stores, &loads) == 2)
        compiled->spill_bytes = stores > loads ? stores : loads;
    const size_t line = used ? strcspn(used, "\n") : 0;
    const char *smem = used ? strstr(used, " bytes smem") : NULL;
    if (smem && smem < used + line) {
        while (smem > used && smem[-1] >= '0' && smem[-1] <= '9')
            --smem;
        if (sscanf(smem, "%u", &shared) == 1)
            compiled->shared_bytes = shared;
    }
}

static afdep_status take_image(nvrtcProgram program, const struct afj_program *asked,
                               struct afj_compiled *compiled)
{
    size_t size = 0;
    if (nvrtc.nvrtcGetCUBINSize(program, &size) != NVRTC_SUCCESS || size == 0)
        return afj_fail(AFDEP_ERROR_COMPILE, "NVRTC made no binary of %s for %s", asked->entry,
                        asked->arch);
    compiled->image = malloc(size);
    if (!compiled->image)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for the %zu bytes of %s", size,
                        asked->entry);
    if (nvrtc.nvrtcGetCUBIN(program, compiled->image) != NVRTC_SUCCESS)
        return afj_fail(AFDEP_ERROR_COMPILE, "NVRTC does not hand out the binary of %s",
                        asked->entry);
    compiled->image_bytes = size;
    if (afj_cubin_check(compiled->image, size, asked->arch, asked->entry) != AFDEP_OK)
        return afj_fail(AFDEP_ERROR_COMPILE, "NVRTC %s made no usable image of %s: %s",
                        nvrtc.version, asked->entry, afj_status_sentence());
    return AFDEP_OK;
}

static afdep_status run_program(nvrtcProgram program, const struct afj_program *asked,
                                struct afj_compiled *compiled)
{
    char arch_option[64];
    const char *options[1 + FIXED_OPTIONS] = {arch_option};
    snprintf(arch_option, sizeof arch_option, "--gpu-architecture=%s", asked->arch);
    memcpy(options + 1, fixed_options, sizeof fixed_options);
    const nvrtcResult result =
        nvrtc.nvrtcCompileProgram(program, 1 + count_fixed_options(), options);
    compiled->log = log_of(program);
    if (result != NVRTC_SUCCESS)
        return explain(result, asked, compiled->log);
    read_resources(compiled->log, compiled);
    return take_image(program, asked, compiled);
}

static afdep_status compile(const struct afj_program *asked, struct afj_compiled *compiled)
{
    memset(compiled, 0, sizeof *compiled);
    AFJ_TRY(need_nvrtc());
    AFJ_TRY(check_arch(asked->arch));
    const size_t count = asked->file_count - 1;
    const char **names = calloc(count ? count : 1, sizeof *names);
    const char **texts = calloc(count ? count : 1, sizeof *texts);
    nvrtcProgram program = NULL;
    afdep_status status = AFDEP_OK;
    if (!names || !texts) {
        status = afj_fail(AFDEP_ERROR_MEMORY, "no memory to compile %s", asked->entry);
        goto free_lists;
    }
    for (size_t i = 0; i < count; ++i) {
        names[i] = asked->files[i + 1].name;
        texts[i] = asked->files[i + 1].text;
    }
    const nvrtcResult result = nvrtc.nvrtcCreateProgram(&program, asked->files[0].text,
                                                        program_name, (int)count, texts, names);
    if (result != NVRTC_SUCCESS) {
        status = afj_fail(AFDEP_ERROR_COMPILE, "NVRTC takes no program for %s: %s", asked->entry,
                          nvrtc.nvrtcGetErrorString(result));
        goto free_lists;
    }
    status = run_program(program, asked, compiled);
    nvrtc.nvrtcDestroyProgram(&program);
    if (status != AFDEP_OK) {
        free(compiled->image);
        compiled->image = NULL;
        compiled->image_bytes = 0;
    }
free_lists:
    free(texts);
    free(names);
    return status;
}

const struct afj_compiler afj_compiler_nvrtc = {identify, compile, afj_cubin_check};

struct afj_compiler_facts afj_nvrtc_facts(void)
{
    pthread_once(&once, find_nvrtc);
    return (struct afj_compiler_facts){
        .path = nvrtc.path,
        .version = nvrtc.version,
        .build_id = nvrtc.build_id,
        .note = nvrtc.note,
    };
}
