/* recipe.h: everything that decides an image, as canonical text, and the key that it hashes to. */
#ifndef AFJ_JIT_RECIPE_H
#define AFJ_JIT_RECIPE_H

#include "base/digest.h"
#include "base/text.h"
#include "jit/source.h"

struct afj_recipe {
    struct afj_text text; /* the manifest: "name=length:value\n" lines in fixed order */
    struct afj_digest key;
};

/* Nothing in it depends on paths, time, rank, capacity or what was compiled before.
 * Fails as the compiler's identify does. */
afdep_status afj_recipe_make(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                             const struct afj_source *source, const struct afj_compiler *compiler,
                             const char *arch, struct afj_recipe *recipe);
void afj_recipe_finish(struct afj_recipe *recipe);

/* What the line "spec" of a manifest says. A word that is missing, malformed or too long is "" or
 * 0.
 */
struct afj_spec {
    char device[8], duty[8], entry[24], shape[8], layout[16], dtype[12];
    char receive[16];
    uint32_t attention_ranks, ffn_ranks, both_ranks, hidden, experts, top_k;
    uint32_t payload_bytes, id_bits;
    uint32_t counts_first, host_counts, reply_weights, mapped, strict_fences, check_routes;
};
void afj_recipe_read_spec(const char *text, size_t length, struct afj_spec *spec);

#endif
