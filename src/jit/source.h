/* source.h: from a planned kernel to the program that specialises its template. */
#ifndef AFJ_JIT_SOURCE_H
#define AFJ_JIT_SOURCE_H

#include "base/digest.h"
#include "base/text.h"
#include "jit/compiler.h"
#include "plan/plan.h"

/* The program of one kernel. Its texts are the embedded templates and `constants`. */
struct afj_source {
    struct afj_text constants; /* afdep_constants.h */
    struct afj_source_file *files;
    size_t file_count;
};

/* Write afdep_constants.h: every number that the templates take from the plan; for the sim
 * device also AFDEP_SIM_LANES. */
void afj_source_constants(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                          struct afj_text *text);

/* Put the program together. AFDEP_ERROR_MEMORY, or AFDEP_ERROR_INTERNAL if a template is missing.
 */
afdep_status afj_source_make(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                             struct afj_source *source);
void afj_source_finish(struct afj_source *source);

/* Fibres of a simulated warp, from AFDEP_SIM_LANES: 1 or 32. */
uint32_t afj_source_sim_lanes(void);

/* Content hash of all embedded templates. */
struct afj_digest afj_source_templates_digest(void);

#endif
