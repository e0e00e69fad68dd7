/* recipe.c: everything that decides an image, as canonical text, and the key that it hashes to. */
#include "jit/recipe.h"

#include <inttypes.h>
#include <string.h>

/* Raised when the manifest or the generation of sources changes in a way their content does not
 * show. */
static const char schema[] = "1";

static void add_digest(struct afj_text *text, const char *name, struct afj_digest digest)
{
    char hex[33];
    afj_digest_hex(&digest, hex);
    afj_recipe_line(text, name, hex, 32);
}

/* What the plan decided, in words. */
static void add_spec(struct afj_text *text, const struct afj_plan *plan,
                     const struct afj_plan_kernel *kernel)
{
    const afdep_config *c = &plan->config.fields;
    struct afj_text spec = {0};
    afj_text_printf(&spec,
                    "device=%s duty=%s entry=%s shape=%s layout=%" PRIu32 "A%" PRIu32
                    "F domains=1 hidden=%" PRIu32 " dtype=bf16 experts=%" PRIu32 " top_k=%" PRIu32,
                    c->device == AFDEP_DEVICE_SIM ? "sim" : "cuda",
                    afj_plan_duty_name(kernel->duty), kernel->name,
                    afj_plan_shape_name(kernel->shape), c->attention_ranks, c->ffn_ranks, c->hidden,
                    c->experts, c->top_k);
    afj_recipe_line(text, "spec", spec.data ? spec.data : "", spec.length);
    text->failed = text->failed || spec.failed;
    afj_text_finish(&spec);
}

/* Every byte that the compiler reads, by name. */
static void add_source(struct afj_text *text, const struct afj_source *source)
{
    struct afj_text all = {0};
    for (size_t i = 0; i < source->file_count; ++i) {
        const struct afj_source_file *file = &source->files[i];
        afj_text_printf(&all, "%s=%zu:", file->name, file->length);
        afj_text_append(&all, file->text, file->length);
    }
    add_digest(text, "source", afj_digest_of(all.data ? all.data : "", all.length));
    text->failed = text->failed || all.failed;
    afj_text_finish(&all);
}

afdep_status afj_recipe_make(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                             const struct afj_source *source, const struct afj_compiler *compiler,
                             const char *arch, struct afj_recipe *recipe)
{
    memset(recipe, 0, sizeof *recipe);
    struct afj_text *text = &recipe->text;
    afj_recipe_line(text, "schema", schema, strlen(schema));
    add_digest(text, "gen", afj_source_templates_digest());
    add_spec(text, plan, kernel);
    add_source(text, source);
    afj_recipe_line(text, "arch", arch, strlen(arch));
    afdep_status status = compiler->identify(arch, text);
    if (status == AFDEP_OK && text->failed)
        status = afj_fail(AFDEP_ERROR_MEMORY, "no memory for the recipe of %s", kernel->name);
    if (status != AFDEP_OK) {
        afj_recipe_finish(recipe);
        return status;
    }
    recipe->key = afj_digest_of(text->data, text->length);
    return AFDEP_OK;
}

void afj_recipe_finish(struct afj_recipe *recipe) { afj_text_finish(&recipe->text); }
