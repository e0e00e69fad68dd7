/* obtain.h: from planned kernels to images: found in memory or in the cache, else compiled. */
#ifndef AFJ_JIT_OBTAIN_H
#define AFJ_JIT_OBTAIN_H

#include <stdbool.h>

#include <afdep/cache.h>

#include "plan/plan.h"

struct afj_compiler;
struct afj_recipe;
struct afj_store;

/* One kernel wanted, and what came of it. The images stay valid for the life of the process. */
struct afj_wanted {
    const struct afj_plan *plan;          /* borrowed */
    const struct afj_plan_kernel *kernel; /* borrowed */
    const char *arch;                     /* borrowed; "" takes the default of the device kind */
    bool refresh;                         /* a device refused what came of it the last time */

    afdep_status status;
    char error[512]; /* the sentence, if status is not AFDEP_OK */
    char key[33];
    char arch_used[16];
    const void *image;
    size_t image_bytes;
    uint32_t origin; /* afdep_kernel_origin */
    uint32_t registers, shared_bytes, spill_bytes;
    double ms;
};

/* Called after each kernel, one call at a time. `done` counts finished kernels. */
typedef void (*afj_obtain_callback)(const struct afj_wanted *wanted, uint32_t done, void *user);

/* Have every image, `jobs` at once (0: AFDEP_JIT_JOBS, or one a CPU of the affinity mask). All are
 * tried; returns the first failure in order of the array, with its sentence. With `refresh` an
 * image that came from the cache is set aside and compiled; one that this process compiled stays.
 */
afdep_status afj_obtain(struct afj_wanted *wanted, uint32_t count, uint32_t jobs,
                        afj_obtain_callback callback, void *user);

/* The recipe of a wanted kernel; arch_used and key are filled in. Finish it with afj_recipe_finish.
 */
afdep_status afj_obtain_recipe(struct afj_wanted *wanted, struct afj_recipe *recipe);

/* This process's store, opened on first use. NULL only without memory. */
struct afj_store *afj_obtain_store(void);

/* Compile everything with this compiler from now on; NULL: with the real ones. For tests. */
void afj_obtain_use_compiler(const struct afj_compiler *compiler);

/* Counters since the process started. */
void afj_obtain_stats(afdep_cache_stats *stats);

#endif
