/* plan.c: afdep-compile plan: what each role of a deployment registers, compiles and launches. */
#include <stdio.h>

#include <afdep/config.h>

#include "cli/document.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run_plan(const struct afj_verb *verb, int argc, const char **argv);

const struct afj_verb afj_verb_plan = {
    .name = "plan",
    .usage = "[FILE] [--layout 2A2F] [--hidden N] [--json] ...",
    .summary = "Print what each rank registers, compiles and launches.",
    .examples = "  " AFJ_PROGRAM " plan --layout 2A2F\n"
                "  " AFJ_PROGRAM " plan --layout 3A1F,7A1F --hidden 4096,7168 --json\n"
                "  echo '{\"layout\": \"2A2F\", \"hidden\": 7168}' | " AFJ_PROGRAM " plan -\n",
    .takes_deployments = true,
    .run = run_plan};

/* All ranks of a role have the same plan: its first rank stands for them. */
struct role {
    const char *name;
    uint32_t first, last;
    afdep_plan plan;
};
struct roles {
    struct role each[3];
    uint32_t count;
};

static afdep_status add_role(struct roles *roles, const afdep_config *config, const char *name,
                             uint32_t first, uint32_t end)
{
    if (first == end)
        return AFDEP_OK;
    struct role *role = &roles->each[roles->count++];
    *role = (struct role){name, first, end - 1, {.struct_size = sizeof role->plan}};
    return afdep_plan_query(config, first, &role->plan);
}

/* The roles of a deployment in the order of ranks. */
static afdep_status query_roles(const afdep_config *config, struct roles *roles)
{
    const uint32_t first_both = config->ffn_ranks - config->both_ranks;
    *roles = (struct roles){.count = 0};
    afdep_status status = add_role(roles, config, "ffn", 0, first_both);
    if (status == AFDEP_OK)
        status = add_role(roles, config, "both", first_both, config->ffn_ranks);
    if (status == AFDEP_OK)
        status = add_role(roles, config, "attention", config->ffn_ranks,
                          first_both + config->attention_ranks);
    return status;
}

static void print_role(const struct role *role, uint32_t duties)
{
    const afdep_plan *plan = &role->plan;
    if (role->first == role->last)
        printf("  %s, rank %u\n", role->name, role->first);
    else
        printf("  %s, ranks %u to %u\n", role->name, role->first, role->last);
    printf("    registered    %s: %llu row slots of %s\n",
           afj_output_bytes(plan->window_bytes).text, (unsigned long long)plan->inbox_rows,
           afj_output_bytes(plan->inbox_row_bytes).text);
    printf("    private       %s\n", afj_output_bytes(plan->state_bytes).text);
    printf("    %-12s  %-5s  %-7s  %5s  %4s  %s\n", "kernel", "shape", "duty", "warps", "CTAs",
           "tokens");
    for (uint32_t i = 0; i < plan->kernel_count; i++) {
        const afdep_plan_kernel *kernel = &plan->kernels[i];
        if (!(duties >> kernel->duty & 1))
            continue;
        printf("    %-12s  %-5s  %-7s  %5u  %4u  %u-%u\n", kernel->entry, kernel->shape,
               afj_words_duty_name(kernel->duty), kernel->warps, kernel->max_ctas,
               kernel->bucket_from, kernel->bucket_to);
    }
}

/* What few deployments ask for, by the names of its fields. */
static void print_rest(const afdep_config *config)
{
    const struct {
        const char *name;
        uint32_t is;
    } switches[] = {{"counts_first", config->counts_first},
                    {"host_counts", config->host_counts},
                    {"reply_weights", config->reply_weights},
                    {"collect_view", config->collect_view}};
    if (config->payload_bytes != 0)
        printf(", payload_bytes %u", config->payload_bytes);
    if (config->id_bits > 32)
        printf(", ids %u", config->id_bits);
    if (config->receive > AFDEP_RECEIVE_COMPACT)
        printf(", receive %s", afj_words_receive_name(config->receive));
    if (config->alignment > 1)
        printf(", alignment %u", config->alignment);
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (switches[i].is != 0)
            printf(", %s", switches[i].name);
}

static void print_deployment(const struct afj_deployment *deployment, const struct roles *roles)
{
    const afdep_config *config = &deployment->config;
    printf("%s: hidden %u %s, top-%u of %u experts, capacity %u, lanes %u, %s %s",
           afj_output_layout(config).text, config->hidden, afj_words_dtype_name(config->dtype),
           config->top_k, config->experts, config->capacity, config->lanes,
           afj_words_device_name(config->device), afj_output_arch(config));
    print_rest(config);
    printf("\n");
    for (uint32_t i = 0; i < roles->count; i++)
        print_role(&roles->each[i], deployment->duties);
}

/* NULL without memory, as below. */
static json_t *describe_role(const struct role *role, uint32_t duties)
{
    const afdep_plan *plan = &role->plan;
    json_t *kernels = json_array();
    for (uint32_t i = 0; i < plan->kernel_count; i++) {
        const afdep_plan_kernel *kernel = &plan->kernels[i];
        if (!(duties >> kernel->duty & 1))
            continue;
        json_t *one = json_pack(
            "{s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "entry", kernel->entry, "shape", kernel->shape,
            "duty", afj_words_duty_name(kernel->duty), "warps", (json_int_t)kernel->warps,
            "max_ctas", (json_int_t)kernel->max_ctas, "bucket_from",
            (json_int_t)kernel->bucket_from, "bucket_to", (json_int_t)kernel->bucket_to);
        if (json_array_append_new(kernels, one) != 0) {
            json_decref(kernels);
            return NULL;
        }
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "role", role->name, "first_rank",
                     (json_int_t)role->first, "last_rank", (json_int_t)role->last, "window_bytes",
                     (json_int_t)plan->window_bytes, "inbox_rows", (json_int_t)plan->inbox_rows,
                     "inbox_row_bytes", (json_int_t)plan->inbox_row_bytes, "state_bytes",
                     (json_int_t)plan->state_bytes, "kernels", kernels);
}

static json_t *describe_deployment(const struct afj_deployment *deployment,
                                   const struct roles *roles)
{
    json_t *object = afj_output_deployment(deployment);
    json_t *list = json_array();
    bool good = true;
    for (uint32_t i = 0; i < roles->count; i++)
        good = good &&
               json_array_append_new(list, describe_role(&roles->each[i], deployment->duties)) == 0;
    if (json_object_set_new(object, "roles", list) == 0 && good)
        return object;
    json_decref(object);
    return NULL;
}

static int run_plan(const struct afj_verb *verb, int argc, const char **argv)
{
    struct afj_request request;
    int code = afj_request_read(verb, argc, argv, &request);
    if (code >= 0)
        return code;
    json_t *list = json_array();
    bool good = true;
    for (size_t i = 0; i < request.deployments.count && code < 0; i++) {
        const struct afj_deployment *deployment = request.deployments.items[i];
        struct roles roles;
        afdep_status status = query_roles(&deployment->config, &roles);
        if (status != AFDEP_OK) {
            fprintf(stderr, AFJ_PROGRAM ": %s\n", afdep_last_error());
            code = afj_words_exit_code(status);
        } else if (request.json) {
            good =
                good && json_array_append_new(list, describe_deployment(deployment, &roles)) == 0;
        } else {
            if (i > 0)
                printf("\n");
            print_deployment(deployment, &roles);
        }
    }
    afj_request_finish(&request);
    if (code >= 0 || !request.json) {
        json_decref(list);
        return code >= 0 ? code : afj_words_flush(AFJ_PROGRAM);
    }
    json_t *document = afj_document_new("afdep-compile-plan/1");
    if (json_object_set_new(document, "deployments", list) != 0 || !good) {
        json_decref(document);
        document = NULL;
    }
    return afj_document_print(AFJ_PROGRAM, document);
}
