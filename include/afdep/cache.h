/* cache.h: fill the kernel cache ahead of time, and see what it did. Needs no GPU. */
#ifndef AFDEP_CACHE_H
#define AFDEP_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <afdep/config.h>
#include <afdep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a kernel was had. */
typedef enum afdep_kernel_status {
    AFDEP_KERNEL_HIT = 1,
    AFDEP_KERNEL_COMPILED = 2,
    AFDEP_KERNEL_FAILED = 3
} afdep_kernel_status;

/** Where a kernel's image came from. */
typedef enum afdep_kernel_origin {
    AFDEP_ORIGIN_NONE = 0,
    AFDEP_ORIGIN_MEMORY = 1,  /**< this process had it already */
    AFDEP_ORIGIN_LOCAL = 2,   /**< the cache directory */
    AFDEP_ORIGIN_COMPILER = 3 /**< compiled now */
} afdep_kernel_origin;

/** One kernel of a build. Strings are valid during the callback only. */
typedef struct afdep_kernel_report {
    uint32_t struct_size;
    uint32_t status;       /**< afdep_kernel_status */
    uint32_t origin;       /**< afdep_kernel_origin */
    uint32_t duty;         /**< afdep_duty */
    const char *entry;     /**< template, for instance "dispatch" */
    const char *shape;     /**< "few" or "many" */
    const char *key;       /**< 32 hex digits */
    const char *arch;      /**< "sm_90a"; that of the CPU on the sim device */
    uint64_t bytes;        /**< size of the image */
    double ms;             /**< time to have it, compile included */
    uint32_t registers;    /**< registers a thread; 0 on the sim device */
    uint32_t shared_bytes; /**< static shared memory a CTA */
    uint32_t spill_bytes;  /**< bytes a thread spills to local memory */
    uint32_t done;         /**< kernels finished so far, this one included */
    uint32_t total;        /**< kernels in the build */
    const char *error;     /**< why it failed; NULL if it did not */
} afdep_kernel_report;

/** Called once a kernel, by the caller's thread or by a worker, never by two at once. */
typedef void (*afdep_kernel_callback)(const afdep_kernel_report *report, void *user);

/** How to build. Zero everywhere is a good default. */
typedef struct afdep_build_options {
    uint32_t struct_size;
    uint32_t jobs;     /**< kernels compiled at once; 0: one a CPU this process may use */
    uint32_t duties;   /**< bit (1 << afdep_duty) for each duty wanted; 0: all */
    uint32_t reserved; /**< 0 */
    afdep_kernel_callback callback; /**< may be NULL */
    void *user;                     /**< passed to the callback */
} afdep_build_options;

/** What a build did. */
typedef struct afdep_build_result {
    uint32_t struct_size;
    uint32_t compiled;
    uint32_t hits;
    uint32_t failed;
    double ms;
} afdep_build_result;

/**
 * Have every kernel of the given deployments in the cache: look each up, compile what is missing.
 * Kernels that several deployments share are built once.
 * @param configs [count], borrowed for the call.
 * @param options may be NULL.
 * @param result  out, may be NULL; set struct_size before the call.
 * @retval AFDEP_ERROR_CONFIG           a config is out of range.
 * @retval AFDEP_ERROR_COMPILER_MISSING neither NVRTC (cuda) nor a C++ compiler (sim) was found.
 * @retval AFDEP_ERROR_COMPILE          at least one kernel failed; the others were built.
 * @see docs/design.md section 5
 */
AFDEP_API afdep_status afdep_cache_build(const afdep_config *configs, uint32_t count,
                                         const afdep_build_options *options,
                                         afdep_build_result *result);

/** One object of the cache. Strings are valid during the callback only, and never NULL but error.
 * What an object does not say is "" or 0. */
typedef struct afdep_cache_entry {
    uint32_t struct_size;
    uint32_t damaged;     /**< 1: no kernel will be taken from it; error says why */
    const char *path;     /**< its file */
    const char *error;    /**< what is wrong with it; NULL if nothing is */
    const char *key;      /**< 32 hex digits; "" where the file is no whole object */
    const char *spec;     /**< what it is: "device=cuda duty=source entry=dispatch ..." */
    const char *arch;     /**< "sm_90a" */
    const char *manifest; /**< every field and fact, "name=value\n" a line; control bytes are "?" */
    uint64_t bytes;       /**< of the file */
    uint64_t image_bytes; /**< of the image in it */
    int64_t used;         /**< stored or last found, seconds since 1970; an hour late at most */
    const char *device;   /**< "cuda" or "sim" */
    const char *duty;     /**< "source" or "expert" */
    const char *entry;    /**< template, for instance "dispatch" */
    const char *shape;    /**< "few" or "many" */
    const char *layout;   /**< "2A2F" */
    const char *dtype;    /**< "bf16" */
    uint32_t hidden;
    uint32_t experts;
    uint32_t top_k;
    uint32_t registers;    /**< registers a thread; 0 on the sim device */
    uint32_t shared_bytes; /**< static shared memory a CTA */
    uint32_t spill_bytes;  /**< bytes a thread spills to local memory */
    double compile_ms;     /**< time that its compile took */
} afdep_cache_entry;

/** Called once an entry, on the calling thread. */
typedef void (*afdep_cache_entry_callback)(const afdep_cache_entry *entry, void *user);

/**
 * Go through the objects of the local cache, in the order of their keys. Reads and checks each;
 * damaged ones are reported as such, and nothing is changed.
 * @retval AFDEP_ERROR_ARGUMENT callback is NULL.
 * @retval AFDEP_ERROR_IO       the cache is there and cannot be read.
 */
AFDEP_API afdep_status afdep_cache_list(afdep_cache_entry_callback callback, void *user);

/**
 * Look into one object. Needs no compiler and no driver.
 * @param what a key of 32 hex digits, or the path of an object file.
 * @retval AFDEP_ERROR_ARGUMENT an argument is NULL.
 * @retval AFDEP_ERROR_IO       there is no such object, or it cannot be read.
 */
AFDEP_API afdep_status afdep_cache_inspect(const char *what, afdep_cache_entry_callback callback,
                                           void *user);

/** Whether one kernel would be found, and if not, why. Valid during the callback only. */
typedef struct afdep_cache_explanation {
    uint32_t struct_size;
    uint32_t hit;            /**< 1: the cache has it */
    const char *entry;       /**< template, for instance "dispatch" */
    const char *shape;       /**< "few" or "many" */
    const char *key;         /**< what is looked for */
    const char *nearest;     /**< key of the stored object that is most like it; NULL: none */
    const char *differences; /**< "name: stored value | wanted value\n" a line; "" on a hit */
    const char *arch;        /**< "sm_90a" */
    const char *spec;        /**< what it is: "device=cuda duty=source entry=dispatch ..." */
    const char *error;       /**< what is wrong with the object under this key; NULL: nothing, or
                                there is none */
    uint32_t duty;           /**< afdep_duty */
    uint32_t reserved;
} afdep_cache_explanation;

/** Called once a kernel, on the calling thread. */
typedef void (*afdep_cache_explanation_callback)(const afdep_cache_explanation *explanation,
                                                 void *user);

/**
 * Say for each kernel of a deployment whether the cache has it; for a miss, which fields of the
 * nearest stored object of the same spec differ. Compiles nothing; needs the compiler, whose name
 * is part of every key.
 * @param duties as in afdep_build_options.
 * @retval AFDEP_ERROR_ARGUMENT         callback is NULL.
 * @retval AFDEP_ERROR_CONFIG           the config is out of range.
 * @retval AFDEP_ERROR_COMPILER_MISSING there is no compiler to name.
 */
AFDEP_API afdep_status afdep_cache_explain(const afdep_config *config, uint32_t duties,
                                           afdep_cache_explanation_callback callback, void *user);

/**
 * The same for the one kernel that an object holds: whether this process would take the object, and
 * if not, which of its fields differ. The callback is called once.
 * @param what a key of 32 hex digits, or the path of an object file, which need not be in the
 * cache.
 * @retval AFDEP_ERROR_ARGUMENT         an argument is NULL.
 * @retval AFDEP_ERROR_IO               there is no such object, or it cannot be read.
 * @retval AFDEP_ERROR_LOAD             it is damaged, or no kernel of this library.
 * @retval AFDEP_ERROR_COMPILER_MISSING there is no compiler to name.
 */
AFDEP_API afdep_status afdep_cache_explain_object(const char *what,
                                                  afdep_cache_explanation_callback callback,
                                                  void *user);

/** What this process's cache and compilers are. Strings are owned by the library and stay valid. */
typedef struct afdep_environment {
    uint32_t struct_size;
    uint32_t cache_writable;           /**< 1 if objects can be stored */
    const char *cache_dir;             /**< absolute path; empty: memory only */
    const char *cache_origin;          /**< what chose it, for instance "AFDEP_JIT_CACHE" */
    const char *cache_note;            /**< why it cannot be written, or empty */
    const char *nvrtc_path;            /**< file of the NVRTC library; empty if none was found */
    const char *nvrtc_version;         /**< for instance "13.0" */
    const char *nvrtc_build_id;        /**< ELF build-id, hex */
    const char *nvrtc_note;            /**< why NVRTC cannot be used, or empty */
    const char *host_compiler;         /**< path of the C++ compiler for the sim device, or empty */
    const char *host_compiler_version; /**< its first version line */
    const char *host_compiler_note;    /**< why it cannot be used, or empty */
    const char *driver_note;           /**< "CUDA driver 13.0, 2 devices", or why there is none */
    const char *template_digest;       /**< content hash of the embedded templates, 32 hex digits */
} afdep_environment;

/**
 * Describe the cache and the compilers as this process sees them.
 * @param environment out; set struct_size before the call.
 * @retval AFDEP_ERROR_ARGUMENT environment is NULL or has another size.
 */
AFDEP_API afdep_status afdep_cache_environment(afdep_environment *environment);

/** Counters of this process since it started. */
typedef struct afdep_cache_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t hits_memory;
    uint64_t hits_local;
    uint64_t compiles;
    uint64_t compile_us; /**< sum over compiles */
    uint64_t rejects;    /**< damaged or foreign objects that were set aside */
    uint64_t store_failures;
    uint64_t waits;         /**< kernels that another thread or process was compiling */
    uint64_t lockless;      /**< tries at a lock where none could be had */
    uint64_t wait_us;       /**< time waited for other processes, summed over kernels */
    uint64_t lock_timeouts; /**< waits that AFDEP_JIT_LOCK_TIMEOUT ended */
} afdep_cache_stats;

/**
 * Read the cache counters of this process.
 * @param stats out; set struct_size before the call.
 * @retval AFDEP_ERROR_ARGUMENT stats is NULL or has another size.
 */
AFDEP_API afdep_status afdep_cache_get_stats(afdep_cache_stats *stats);

/** One environment variable that the library or its programs read. */
typedef struct afdep_variable {
    uint32_t struct_size;
    uint32_t is_set;
    const char *name;
    const char *value; /**< the value in force */
    const char *text;  /**< what it does */
} afdep_variable;

/**
 * List the environment variables, one a call.
 * @param index    0, 1, ...
 * @param variable out; set struct_size before the call.
 * @retval AFDEP_ERROR_ARGUMENT index is past the last one.
 */
AFDEP_API afdep_status afdep_variable_get(uint32_t index, afdep_variable *variable);

#ifdef __cplusplus
}
#endif

#endif
