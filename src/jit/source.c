/* source.c: from a planned kernel to the program that specialises its template. */
#include "jit/source.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "jit/templates.h"

static void add_constant(struct afj_text *text, const char *type, const char *name, uint64_t value,
                         const char *meaning)
{
    afj_text_printf(text, "constexpr %s %s = %" PRIu64 "; // %s\n", type, name, value, meaning);
}

/* Nothing between 1 and 32 is a warp that templates know. */
uint32_t afj_source_sim_lanes(void)
{
    const char *value = afj_env_get(AFJ_ENV_SIM_LANES);
    const bool all = strcmp(value, "32") == 0;
    if (!all && strcmp(value, "1") != 0)
        AFJ_WARN_ONCE("AFDEP_SIM_LANES is \"%s\"; it must be 1 or 32 and is taken as 1", value);
    return all ? 32 : 1;
}

void afj_source_constants(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                          struct afj_text *text)
{
    const afdep_config *c = &plan->config.fields;
    const char *word = "uint32_t";
    afj_text_printf(text,
                    "// afdep_constants.h: the numbers that make a template the %s kernel for %s\n"
                    "// tokens. Written by the plan.\n"
                    "#ifndef AFDEP_CONSTANTS_H\n#define AFDEP_CONSTANTS_H\n\n"
                    "#define AFJ_TEMPLATE 1\n#define AFJ_ATTENTION_PEERS %" PRIu32
                    "\n#define AFJ_FFN_PEERS %" PRIu32 "\n\n#include \"rtc/stdint.h\"\n\n",
                    kernel->name, afj_plan_shape_name(kernel->shape), c->attention_ranks,
                    c->ffn_ranks);
    add_constant(text, word, "kAttentionRanks", c->attention_ranks, "ranks that hold tokens");
    add_constant(text, "int", "kFfnRanks", c->ffn_ranks, "ranks that hold experts");
    add_constant(text, word, "kFirstAttention", afj_config_attention_rank(&plan->config, 0),
                 "rank of the first that holds tokens");
    add_constant(text, word, "kExperts", c->experts, "experts of the layer");
    add_constant(text, "bool", "kMappedExperts", c->expert_ranks != NULL, "a table says where");
    add_constant(text, word, "kLeastExperts", c->experts / c->ffn_ranks, "experts of an FFN rank");
    add_constant(text, word, "kLongerRanks", c->experts % c->ffn_ranks, "ranks with one more");
    add_constant(text, "int", "kTopK", c->top_k, "experts a token");
    add_constant(text, "int", "kIdWords", c->id_bits / 32, "32-bit words of a caller's id");
    add_constant(text, word, "kHidden", c->hidden, "elements a row");
    add_constant(text, word, "kDtype", c->dtype, "BF16, FP8, FP8 with UE8M0 scales, opaque");
    add_constant(text, word, "kReceive", c->receive, "compact, view, expert-major");
    add_constant(text, "bool", "kCountsFirst", c->counts_first, "ids go ahead of rows");
    add_constant(text, "bool", "kHostCounts", c->host_counts, "counts go to host memory, too");
    add_constant(text, "bool", "kReplyWeights", c->reply_weights, "replies carry weights");
    add_constant(text, "bool", "kStrictFences", plan->strict_fences, "fences of the formal model");
    add_constant(text, "bool", "kCheckRoutes", plan->check_routes, "bad routes are counted");
    add_constant(text, word, "kPayloadVecs", plan->regions.row_bytes / 16,
                 "16-byte vectors of a dispatched row");
    add_constant(text, "int", "kScaleWords", plan->regions.scale_words, "words of its scales");
    add_constant(text, "int", "kScaleEscapes", plan->regions.scale_escapes, "escapes of these");
    add_constant(text, "int", "kRowEscapes", plan->regions.row_escapes, "escapes of the row");
    add_constant(text, word, "kMetaStride", plan->regions.meta_bytes, "bytes of its meta words");
    add_constant(text, word, "kWarps", kernel->warps, "warps a CTA");
    add_constant(text, word, "kRowVecs", kernel->row_vecs, "16-byte vectors of a row moved here");
    add_constant(text, word, "kWarpsPerRow", kernel->warps_per_row, "warps that share a row");
    add_constant(text, word, "kShareVecs", kernel->share_vecs, "vectors of a share");
    add_constant(text, word, "kPieces", kernel->pieces, "pieces of a share");
    add_constant(text, word, "kPieceVecs", kernel->piece_vecs, "vectors of a piece");
    if (c->device == AFDEP_DEVICE_SIM)
        add_constant(text, "int", "kSimLanes", afj_source_sim_lanes(), "fibres of a warp");
    afj_text_add(text, "\n#endif\n");
}

/* Whether a template belongs to programs of this device, and the name it is included by there: the
 * simulation has its own machine and types. NULL: it does not belong. */
static const char *included_as(const struct afj_template *template, uint32_t device)
{
    const char *path = template->path;
    if (device == AFDEP_DEVICE_SIM) {
        if (strcmp(path, "host/machine.cuh") == 0)
            return "prim/machine.cuh";
        if (strcmp(path, "host/stdint.h") == 0)
            return "rtc/stdint.h";
        if (strcmp(path, "prim/machine.cuh") == 0 || strncmp(path, "rtc/", 4) == 0)
            return NULL;
        if (strcmp(path, "host/ops.h") == 0)
            return path;
    }
    if (strncmp(path, "host/", 5) == 0 || strncmp(path, "entry/", 6) == 0)
        return NULL;
    return path;
}

static const struct afj_template *find_entry(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "entry/%s.cuh", name);
    for (size_t i = 0; i < afj_template_count; ++i)
        if (strcmp(afj_templates[i].path, path) == 0)
            return &afj_templates[i];
    return NULL;
}

afdep_status afj_source_make(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                             struct afj_source *source)
{
    memset(source, 0, sizeof *source);
    const struct afj_template *entry = find_entry(kernel->name);
    if (!entry)
        return afj_fail(AFDEP_ERROR_INTERNAL, "no template entry/%s.cuh is embedded", kernel->name);
    afj_source_constants(plan, kernel, &source->constants);
    source->files = calloc(afj_template_count + 2, sizeof *source->files);
    if (!source->files || source->constants.failed) {
        afj_source_finish(source);
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for the source of %s", kernel->name);
    }
    source->files[0] = (struct afj_source_file){entry->path, entry->text, entry->length};
    source->files[1] = (struct afj_source_file){"afdep_constants.h", source->constants.data,
                                                source->constants.length};
    source->file_count = 2;
    for (size_t i = 0; i < afj_template_count; ++i) {
        const struct afj_template *t = &afj_templates[i];
        const char *name = included_as(t, plan->config.fields.device);
        if (name)
            source->files[source->file_count++] =
                (struct afj_source_file){name, t->text, t->length};
    }
    return AFDEP_OK;
}

void afj_source_finish(struct afj_source *source)
{
    afj_text_finish(&source->constants);
    free(source->files);
    memset(source, 0, sizeof *source);
}

struct afj_digest afj_source_templates_digest(void)
{
    struct afj_text all = {0};
    for (size_t i = 0; i < afj_template_count; ++i) {
        afj_text_printf(&all, "%s=%zu:", afj_templates[i].path, afj_templates[i].length);
        afj_text_append(&all, afj_templates[i].text, afj_templates[i].length);
    }
    struct afj_digest digest = afj_digest_of(all.data ? all.data : "", all.length);
    afj_text_finish(&all);
    return digest;
}
