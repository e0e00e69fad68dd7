/* env.h: every environment variable of the project, read in this one place. */
#ifndef AFJ_BASE_ENV_H
#define AFJ_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

/* name, variable, default ("" where unset means "choose"), what it does. */
#define AFJ_ENV_LIST(X)                                                                            \
    X(JIT_CACHE, "AFDEP_JIT_CACHE", "",                                                            \
      "directory of the kernel cache; off: keep kernels in "                                       \
      "memory only; empty: the default place")                                                     \
    X(JIT_LOCK_TIMEOUT, "AFDEP_JIT_LOCK_TIMEOUT", "600",                                           \
      "seconds to wait for another process that compiles the same kernel")                         \
    X(JIT_JOBS, "AFDEP_JIT_JOBS", "", "kernels compiled at once; empty: one a CPU")                \
    X(NVRTC, "AFDEP_NVRTC", "", "file or directory of the NVRTC library; empty: search")           \
    X(HOST_CXX, "AFDEP_HOST_CXX", "", "C++ compiler for the sim device; empty: c++, g++, clang++") \
    X(LOG, "AFDEP_LOG", "warn", "off, warn, info or debug; with :json one JSON object a line")     \
    X(SIM_SEED, "AFDEP_SIM_SEED", "1", "seed of the sim device's scheduler")                       \
    X(SIM_LANES, "AFDEP_SIM_LANES", "1",                                                           \
      "1 or 32: fibres that a warp of the sim device is made of; 32 finds missing warp syncs")     \
    X(SHAPE, "AFDEP_SHAPE", "", "few or many: use only that shape of kernels; empty: by bucket")   \
    X(STRICT_FENCES, "AFDEP_STRICT_FENCES", "0",                                                   \
      "1: also the fences that the formal memory model asks for; for audits")                      \
    X(CHECK_ROUTES, "AFDEP_CHECK_ROUTES", "off",                                                   \
      "off, count or error: count ids out of range, repeated experts and NaN weights; error: "     \
      "fail the calls after them, too")                                                            \
    X(XDG_CACHE_HOME, "XDG_CACHE_HOME", "", "where caches go, from the desktop standard")          \
    X(HOME, "HOME", "", "the user's home directory")                                               \
    X(TMPDIR, "TMPDIR", "", "where temporary files go")                                            \
    X(PATH, "PATH", "/usr/local/bin:/usr/bin:/bin", "where C++ compilers are looked for")          \
    X(CUDA_PATH, "CUDA_PATH", "", "CUDA toolkit to take NVRTC from")                               \
    X(CUDA_HOME, "CUDA_HOME", "", "CUDA toolkit to take NVRTC from")                               \
    X(CUDA_MAX_CONNECTIONS, "CUDA_DEVICE_MAX_CONNECTIONS", "8",                                    \
      "hardware queues of a GPU; read to refuse more ranks than queues")                           \
    X(NV_NVVM_VERSION, "NV_NVVM_VERSION", "", "changes NVRTC's output; part of the key when set")  \
    X(NVRTC_APPEND_FLAGS, "NVRTC_APPEND_FLAGS", "",                                                \
      "may change NVRTC's output; part of the key when set")

enum afj_env {
#define AFJ_ENV_ENUM(name, variable, fallback, text) AFJ_ENV_##name,
    AFJ_ENV_LIST(AFJ_ENV_ENUM)
#undef AFJ_ENV_ENUM
        AFJ_ENV_COUNT
};

struct afj_env_entry {
    const char *name, *fallback, *text;
};

/* The variable's value, or its default if unset or empty; never NULL. Reads with secure_getenv each
 * time. */
const char *afj_env_get(enum afj_env which);
/* Whether the variable is set and not empty. */
bool afj_env_is_set(enum afj_env which);
/* A number from the variable, or `fallback` if it is unset, malformed or out of [low, high]; a bad
 * value is warned about once a process. */
uint64_t afj_env_number(enum afj_env which, uint64_t low, uint64_t high, uint64_t fallback);
const struct afj_env_entry *afj_env_entry(enum afj_env which);

#endif
