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
    afj_compiler_add_line(text, name, hex, 32);
}

/* What the plan decided, in words. Fields that few deployments use are named where they are. */
static void add_spec(struct afj_text *text, const struct afj_plan *plan,
                     const struct afj_plan_kernel *kernel)
{
    const afdep_config *c = &plan->config.fields;
    struct afj_text spec = {0};
    afj_text_printf(&spec, "device=%s duty=%s entry=%s shape=%s layout=",
                    c->device == AFDEP_DEVICE_SIM ? "sim" : "cuda",
                    afj_plan_duty_name(kernel->duty), kernel->name,
                    afj_plan_shape_name(kernel->shape));
    if (c->both_ranks && c->both_ranks == c->ffn_ranks && c->both_ranks == c->attention_ranks)
        afj_text_printf(&spec, "%" PRIu32 "B", c->both_ranks);
    else
        afj_text_printf(&spec, "%" PRIu32 "A%" PRIu32 "F", c->attention_ranks, c->ffn_ranks);
    afj_text_printf(&spec,
                    " domains=1 hidden=%" PRIu32 " dtype=%s experts=%" PRIu32 " top_k=%" PRIu32,
                    c->hidden, afj_plan_dtype_name(c->dtype), c->experts, c->top_k);
    if (c->both_ranks && (c->both_ranks != c->ffn_ranks || c->both_ranks != c->attention_ranks))
        afj_text_printf(&spec, " both=%" PRIu32, c->both_ranks);
    if (c->payload_bytes)
        afj_text_printf(&spec, " payload=%" PRIu32, c->payload_bytes);
    if (c->id_bits != 32)
        afj_text_printf(&spec, " ids=%" PRIu32, c->id_bits);
    if (c->receive != AFDEP_RECEIVE_COMPACT)
        afj_text_printf(&spec, " receive=%s",
                        c->receive == AFDEP_RECEIVE_VIEW ? "view" : "expert-major");
    afj_text_printf(&spec, "%s%s%s%s%s%s", c->counts_first ? " counts_first=1" : "",
                    c->host_counts ? " host_counts=1" : "",
                    c->reply_weights ? " reply_weights=1" : "", c->expert_ranks ? " mapped=1" : "",
                    plan->strict_fences ? " strict_fences=1" : "",
                    plan->check_routes ? " check_routes=1" : "");
    afj_compiler_add_line(text, "spec", spec.data ? spec.data : "", spec.length);
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
    afj_compiler_add_line(text, "schema", schema, strlen(schema));
    add_digest(text, "gen", afj_source_templates_digest());
    add_spec(text, plan, kernel);
    add_source(text, source);
    afj_compiler_add_line(text, "arch", arch, strlen(arch));
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

/* Digits up to `end` as a number; 0 if there is anything else, or too much. */
static uint32_t read_number(const char *at, const char *end)
{
    uint64_t number = 0;
    for (; at < end && *at >= '0' && *at <= '9' && number <= UINT32_MAX; ++at)
        number = number * 10 + (uint64_t)(*at - '0');
    return at == end && number <= UINT32_MAX ? (uint32_t)number : 0;
}

static void read_layout(const char *at, const char *end, struct afj_spec *spec)
{
    const char *middle = memchr(at, 'A', (size_t)(end - at));
    if (end[-1] == 'B')
        spec->attention_ranks = spec->ffn_ranks = spec->both_ranks = read_number(at, end - 1);
    if (!middle || end[-1] != 'F' || middle + 1 >= end)
        return;
    const uint32_t attention = read_number(at, middle), ffn = read_number(middle + 1, end - 1);
    spec->attention_ranks = ffn ? attention : 0;
    spec->ffn_ranks = attention ? ffn : 0;
}

/* One word "name=value" of a spec. */
static void read_word(const char *word, const char *end, struct afj_spec *spec)
{
    const struct {
        const char *name;
        char *text;
        size_t room;
        uint32_t *number;
    } fields[] = {
        {"device=", spec->device, sizeof spec->device, NULL},
        {"duty=", spec->duty, sizeof spec->duty, NULL},
        {"entry=", spec->entry, sizeof spec->entry, NULL},
        {"shape=", spec->shape, sizeof spec->shape, NULL},
        {"layout=", spec->layout, sizeof spec->layout, NULL},
        {"dtype=", spec->dtype, sizeof spec->dtype, NULL},
        {"hidden=", NULL, 0, &spec->hidden},
        {"experts=", NULL, 0, &spec->experts},
        {"top_k=", NULL, 0, &spec->top_k},
        {"both=", NULL, 0, &spec->both_ranks},
        {"payload=", NULL, 0, &spec->payload_bytes},
        {"ids=", NULL, 0, &spec->id_bits},
        {"receive=", spec->receive, sizeof spec->receive, NULL},
        {"counts_first=", NULL, 0, &spec->counts_first},
        {"host_counts=", NULL, 0, &spec->host_counts},
        {"reply_weights=", NULL, 0, &spec->reply_weights},
        {"mapped=", NULL, 0, &spec->mapped},
        {"strict_fences=", NULL, 0, &spec->strict_fences},
        {"check_routes=", NULL, 0, &spec->check_routes},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i) {
        const size_t name = strlen(fields[i].name), length = (size_t)(end - word);
        if (length <= name || memcmp(word, fields[i].name, name) != 0)
            continue;
        if (fields[i].number)
            *fields[i].number = read_number(word + name, end);
        else if (length - name < fields[i].room)
            memcpy(fields[i].text, word + name, length - name);
        if (fields[i].text == spec->layout)
            read_layout(word + name, end, spec);
    }
}

void afj_recipe_read_spec(const char *text, size_t length, struct afj_spec *spec)
{
    const char *end = text + length;
    memset(spec, 0, sizeof *spec);
    for (const char *word = text; word < end;) {
        const char *space = memchr(word, ' ', (size_t)(end - word));
        read_word(word, space ? space : end, spec);
        word = space ? space + 1 : end;
    }
}

void afj_recipe_finish(struct afj_recipe *recipe) { afj_text_finish(&recipe->text); }
