/* hostcc.c: the system's C++ compiler, which makes the kernel images of the sim device. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/dl.h"
#include "base/env.h"
#include "base/path.h"
#include "jit/child.h"
#include "jit/compiler.h"
#include "jit/host_image.h"

#define COMPILE_DEADLINE_MS 120000
#define QUESTION_DEADLINE_MS 30000
#define IMAGE_LIMIT ((size_t)64 << 20)
#define COMPILER_LIMIT ((size_t)1 << 30)
#define MOST_WORDS 16 /* of AFDEP_HOST_CXX */
#define NAME_LIMIT 240

#if !defined(AFJ_SANITIZE)
#if defined(__SANITIZE_ADDRESS__)
#define AFJ_SANITIZE "address"
#elif defined(__SANITIZE_THREAD__)
#define AFJ_SANITIZE "thread"
#endif
#endif

/* What every compile is told. Contraction is off, so that sums round as the reference's do; kernels
 * look at words through several types; the seed keeps the image the same from run to run. */
static const char *const options[] = {
    "-std=c++17",
    "-O1", /* a simulation compiles more than it computes */
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
    "-frandom-seed=afdep",
    "-Wall",
    "-Wno-unknown-pragmas",
    "-Wno-unused-function",
    "-static-libgcc",
    "-Wl,-s",
    "-Wl,--as-needed",
    "-Wl,--build-id=none",
#if defined(AFJ_SANITIZE)
    "-fsanitize=" AFJ_SANITIZE,
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
#else
    "-Wl,-z,defs",
#endif
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

/* The compiler that this process uses, found once. */
static struct {
    char machine[16]; /* what it compiles for */
    char *words;      /* AFDEP_HOST_CXX, cut at blanks; owned for the life of the process */
    const char *argv[MOST_WORDS + 1]; /* its call, argv[0] absolute, then NULL */
    size_t argc;
    char path[PATH_MAX];
    char version[256]; /* first line of --version */
    char build_id[80]; /* of the compiler proper, or the digest of its file */
    char note[512];    /* why there is none; "" if there is */
} found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Make `name`, which has a slash, absolute: compiles run elsewhere. Links stay, since a compiler
 * may tell by its name what it is. */
static bool make_absolute(const char *name, char path[static PATH_MAX])
{
    char here[PATH_MAX] = "";
    if (name[0] != '/' && getcwd(here, sizeof here) == NULL)
        return false;
    int length = snprintf(path, PATH_MAX, "%s%s%s", here, here[0] != '\0' ? "/" : "", name);
    return length > 0 && length < PATH_MAX;
}

/* The absolute path of a program in `path`; false if there is none. */
static bool find_program(const char *name, char path[static PATH_MAX])
{
    struct stat is;
    if (strchr(name, '/') != NULL)
        return make_absolute(name, path) && access(path, X_OK) == 0;
    for (const char *at = afj_env_get(AFJ_ENV_PATH); *at != '\0';) {
        size_t length = strcspn(at, ":");
        /* An entry that is not absolute would depend on where the process stands. */
        if (*at == '/' && length + strlen(name) + 2 <= PATH_MAX) {
            snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, name);
            if (access(path, X_OK) == 0 && stat(path, &is) == 0 && S_ISREG(is.st_mode))
                return true;
        }
        at += length + (at[length] == ':' ? 1 : 0);
    }
    return false;
}

/* Ask the compiler something; *line gets the first line of its answer. */
static bool ask(const char *question, char *line, size_t size)
{
    const char *argv[MOST_WORDS + 2];
    struct afj_child child;
    memcpy(argv, found.argv, found.argc * sizeof argv[0]);
    argv[found.argc] = question;
    argv[found.argc + 1] = NULL;
    if (afj_child_run(argv, NULL, QUESTION_DEADLINE_MS, &child) != 0)
        return false;
    const char *answer = child.output.data != NULL ? child.output.data : "";
    snprintf(line, size, "%.*s", (int)strcspn(answer, "\n"), answer);
    bool answered = child.status <= 0 && !child.timed_out && line[0] != '\0';
    afj_text_finish(&child.output);
    return answered;
}

/* The build-id of the program that translates: the driver stays the same over many updates of it.
 */
static void identify_proper(void)
{
    static const char *const questions[] = {"-print-prog-name=cc1plus", "-print-prog-name=clang"};
    char proper[PATH_MAX];
    bool is_known = false;
    for (size_t i = 0; i < 2 && !is_known; i++)
        is_known = ask(questions[i], proper, sizeof proper) && proper[0] == '/' &&
                   access(proper, R_OK) == 0;
    if (!is_known)
        snprintf(proper, sizeof proper, "%s", found.path);
    afj_dl_build_id_of_file(proper, found.build_id, sizeof found.build_id);
    if (found.build_id[0] != '\0')
        return;
    void *bytes;
    size_t length;
    if (afj_path_read(proper, true, COMPILER_LIMIT, &bytes, &length) != 0)
        return;
    struct afj_digest digest = afj_digest_of(bytes, length);
    free(bytes);
    char hex[33];
    afj_digest_hex(&digest, hex);
    snprintf(found.build_id, sizeof found.build_id, "xxh3-%s", hex);
}

/* Take argv[0] as the compiler if it is there and says its version. */
static bool try_compiler(const char *name)
{
    found.argv[0] = found.path;
    if (find_program(name, found.path) && ask("--version", found.version, sizeof found.version))
        return true;
    found.path[0] = found.version[0] = '\0';
    return false;
}

static void find_named(const char *named)
{
    char *rest = NULL;
    found.words = strdup(named);
    if (found.words == NULL) {
        snprintf(found.note, sizeof found.note, "no memory for AFDEP_HOST_CXX");
        return;
    }
    char *first = strtok_r(found.words, " \t", &rest);
    found.argc = 1;
    for (char *word; found.argc < MOST_WORDS && (word = strtok_r(NULL, " \t", &rest)) != NULL;)
        found.argv[found.argc++] = word;
    if (first == NULL || !try_compiler(first))
        snprintf(found.note, sizeof found.note,
                 "no C++ compiler found: AFDEP_HOST_CXX is \"%.200s\", which is not there or does "
                 "not answer --version; install g++ or set AFDEP_HOST_CXX to another",
                 named);
}

static void find_compiler(void)
{
    static const char *const usual[] = {"c++", "g++", "clang++"};
    struct utsname machine;
    snprintf(found.machine, sizeof found.machine, "%.15s",
             uname(&machine) == 0 ? machine.machine : "unknown");
    if (afj_env_is_set(AFJ_ENV_HOST_CXX)) {
        find_named(afj_env_get(AFJ_ENV_HOST_CXX));
    } else {
        bool is_there = false;
        found.argc = 1;
        for (size_t i = 0; i < sizeof usual / sizeof usual[0] && !is_there; i++)
            is_there = try_compiler(usual[i]);
        if (!is_there)
            snprintf(found.note, sizeof found.note,
                     "no C++ compiler found: tried c++, g++ and clang++ in PATH; install g++ or "
                     "set AFDEP_HOST_CXX");
    }
    if (found.note[0] == '\0')
        identify_proper();
}

static afdep_status need_compiler(const char *arch)
{
    pthread_once(&once, find_compiler);
    if (strcmp(arch, found.machine) != 0)
        return afj_fail(AFDEP_ERROR_CONFIG, "arch is \"%s\"; the host compiler makes \"%s\"", arch,
                        found.machine);
    if (found.note[0] != '\0')
        return afj_fail(AFDEP_ERROR_COMPILER_MISSING, "%s", found.note);
    return AFDEP_OK;
}

static afdep_status identify(const char *arch, struct afj_text *text)
{
    struct afj_text all = {0}, compiler = {0};
    AFJ_TRY(need_compiler(arch));
    for (size_t i = 1; i < found.argc; i++)
        afj_text_printf(&all, "%s ", found.argv[i]);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        afj_text_printf(&all, "%s%s", options[i], i + 1 < OPTION_COUNT ? " " : "");
    afj_text_printf(&compiler, "%s build-id=%s", found.version, found.build_id);
    bool failed = all.failed || compiler.failed;
    if (!failed) {
        afj_compiler_add_line(text, "opts", all.data, all.length);
        afj_compiler_add_line(text, "compiler", compiler.data, compiler.length);
        /* A child's environment has nothing in it that changes an image. */
        afj_compiler_add_line(text, "env", "", 0);
    }
    afj_text_finish(&all);
    afj_text_finish(&compiler);
    if (failed || text->failed)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory to name the C++ compiler");
    return AFDEP_OK;
}

/* Whether a name stays in the directory and is no option. */
static bool is_safe_name(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > NAME_LIMIT || name[0] == '-' || name[0] == '/')
        return false;
    for (const char *part = name;; part++) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && part[0] == '.') ||
            (size == 2 && strncmp(part, "..", 2) == 0))
            return false;
        part += size;
        if (*part == '\0')
            return true;
    }
}

static int write_file(const char *path, const char *text, size_t length)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return -1;
    int result = afj_path_write_all(file, text, length);
    if (close(file) != 0)
        result = -1;
    return result;
}

static afdep_status write_files(const struct afj_program *program, const char *directory)
{
    for (size_t i = 0; i < program->file_count; i++) {
        const struct afj_source_file *source = &program->files[i];
        char path[PATH_MAX];
        if (!is_safe_name(source->name))
            return afj_fail(AFDEP_ERROR_INTERNAL, "program file name \"%.200s\" is not relative",
                            source->name);
        int length = snprintf(path, sizeof path, "%s/%s", directory, source->name);
        if (length < 0 || (size_t)length >= sizeof path)
            return afj_fail(AFDEP_ERROR_IO, "the name of temporary directory %.200s is too long",
                            directory);
        char *slash = strrchr(path, '/');
        *slash = '\0';
        bool written = afj_path_make_directories(path) == 0;
        *slash = '/';
        if (!written || write_file(path, source->text, source->length) != 0)
            return afj_fail(AFDEP_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    }
    return AFDEP_OK;
}

/* The line that a person would look at first. */
static const char *find_error(const char *log, int *length)
{
    /* The linker's reason stands above the line that says "error: ". */
    static const char *const signs[] = {"undefined reference", "error: ", "error"};
    const char *line = log + strspn(log, "\n");
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        const char *sign = strstr(log, signs[i]);
        if (sign == NULL)
            continue;
        for (line = sign; line > log && line[-1] != '\n';)
            line--;
        break;
    }
    size_t size = strcspn(line, "\n");
    *length = size > 400 ? 400 : (int)size;
    return line;
}

static afdep_status judge(const struct afj_program *program, const struct afj_child *child)
{
    const char *log = child->output.data != NULL ? child->output.data : "";
    if (child->timed_out)
        return afj_fail(AFDEP_ERROR_COMPILE, "%s took over %d s to compile kernel %s and was ended",
                        found.path, COMPILE_DEADLINE_MS / 1000, program->entry);
    if (child->status > 0) {
        int length;
        const char *line = find_error(log, &length);
        if (length == 0)
            return afj_fail(AFDEP_ERROR_COMPILE,
                            "kernel %s does not compile: %s ended with status %d and said nothing",
                            program->entry, found.path, child->status);
        return afj_fail(AFDEP_ERROR_COMPILE, "kernel %s does not compile: %.*s", program->entry,
                        length, line);
    }
    return AFDEP_OK;
}

static afdep_status run_compiler(const struct afj_program *program, const char *directory,
                                 struct afj_compiled *compiled)
{
    const char *argv[MOST_WORDS + OPTION_COUNT + 8];
    size_t argc = found.argc;
    struct afj_child child;
    memcpy(argv, found.argv, argc * sizeof argv[0]);
    memcpy(argv + argc, options, sizeof options);
    argc += OPTION_COUNT;
    argv[argc++] = "-I.";
    argv[argc++] = "-o";
    argv[argc++] = "k.so";
    argv[argc++] = "-x";
    argv[argc++] = "c++";
    argv[argc++] = program->files[0].name;
    argv[argc] = NULL;
    int error = afj_child_run(argv, directory, COMPILE_DEADLINE_MS, &child);
    if (error != 0)
        return afj_fail(AFDEP_ERROR_COMPILER_MISSING, "cannot run %s: %s", found.path,
                        strerror(error));
    afdep_status status = judge(program, &child);
    compiled->log = child.output.data; /* the text's buffer becomes the caller's */
    return status;
}

static afdep_status read_image(const struct afj_program *program, const char *directory,
                               struct afj_compiled *compiled)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/k.so", directory);
    if (afj_path_read(path, false, IMAGE_LIMIT, &compiled->image, &compiled->image_bytes) != 0)
        return afj_fail(AFDEP_ERROR_COMPILE, "%s left no image of kernel %s: %s", found.path,
                        program->entry, strerror(errno));
    if (afj_host_image_check(compiled->image, compiled->image_bytes, program->arch,
                             program->entry) != AFDEP_OK)
        return afj_fail(AFDEP_ERROR_COMPILE, "%s made no usable image of kernel %s: %s", found.path,
                        program->entry, afj_status_sentence());
    return AFDEP_OK;
}

static afdep_status compile(const struct afj_program *program, struct afj_compiled *compiled)
{
    char directory[PATH_MAX];
    *compiled = (struct afj_compiled){0};
    AFJ_TRY(need_compiler(program->arch));
    if (program->file_count == 0)
        return afj_fail(AFDEP_ERROR_INTERNAL, "kernel %s has no program text", program->entry);
    const char *parent = afj_env_is_set(AFJ_ENV_TMPDIR) ? afj_env_get(AFJ_ENV_TMPDIR) : "/tmp";
    int length = snprintf(directory, sizeof directory, "%s/afdep-XXXXXX", parent);
    if (length < 0 || (size_t)length >= sizeof directory || mkdtemp(directory) == NULL)
        return afj_fail(AFDEP_ERROR_IO,
                        "cannot make a temporary directory in %.200s: %s; set TMPDIR to another",
                        parent, strerror(errno));
    afdep_status status = write_files(program, directory);
    if (status == AFDEP_OK)
        status = run_compiler(program, directory, compiled);
    if (status == AFDEP_OK)
        status = read_image(program, directory, compiled);
    afj_path_remove_tree(directory);
    if (status != AFDEP_OK) {
        free(compiled->image);
        compiled->image = NULL;
        compiled->image_bytes = 0;
    }
    return status;
}

const struct afj_compiler afj_compiler_hostcc = {
    .identify = identify,
    .compile = compile,
    .check = afj_host_image_check,
};

struct afj_compiler_facts afj_hostcc_facts(void)
{
    pthread_once(&once, find_compiler);
    return (struct afj_compiler_facts){.path = found.path,
                                       .version = found.version,
                                       .build_id = found.build_id,
                                       .note = found.note};
}
