/* compiler.h: a compiler as the rest of jit sees it: name yourself; text in, image and log out. */
#ifndef AFJ_JIT_COMPILER_H
#define AFJ_JIT_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

/* One file of program text by the name it is included by. Borrowed. */
struct afj_source_file {
    const char *name;
    const char *text;
    size_t length;
};

/* A program: files[0] is the one that is compiled, the others are what it includes. */
struct afj_program {
    const struct afj_source_file *files;
    size_t file_count;
    const char *arch;  /* "sm_90a"; "x86_64" for the host compiler */
    const char *entry; /* the extern "C" function the image must hold */
};

/* What a compile gave. The caller frees both with afj_compiled_finish. */
struct afj_compiled {
    void *image;
    size_t image_bytes;
    char *log;                                     /* NULL or the compiler's words */
    uint32_t registers, shared_bytes, spill_bytes; /* a thread, a CTA, a thread; 0 on the host */
};
void afj_compiled_finish(struct afj_compiled *compiled);

struct afj_compiler {
    /* Append the lines "opts", "compiler" and "env" of a manifest, the text that a key is the sum
     * of: they name the compiler and its options for this architecture. Cheap after the first call.
     * Fails with AFDEP_ERROR_COMPILER_MISSING or, for an unknown arch, AFDEP_ERROR_CONFIG. */
    afdep_status (*identify)(const char *arch, struct afj_text *text);
    /* Compile; the image has passed `check`. Thread-safe. AFDEP_ERROR_COMPILE puts the compiler's
     * first error in the sentence. */
    afdep_status (*compile)(const struct afj_program *program, struct afj_compiled *compiled);
    /* Whether bytes, from a cache for instance, may be what compile makes: format, machine, entry.
     * AFDEP_ERROR_LOAD says why not. */
    afdep_status (*check)(const void *image, size_t bytes, const char *arch, const char *entry);
};

/* Append one line of a manifest, "name=length:value\n". */
void afj_compiler_add_line(struct afj_text *text, const char *name, const char *value,
                           size_t length);

extern const struct afj_compiler afj_compiler_nvrtc;
extern const struct afj_compiler afj_compiler_hostcc;

/* Facts for `afdep-compile env`; strings are static, "" where unknown. Never fail. */
struct afj_compiler_facts {
    const char *path, *version, *build_id, *note;
};
struct afj_compiler_facts afj_nvrtc_facts(void);
struct afj_compiler_facts afj_hostcc_facts(void);

#endif
