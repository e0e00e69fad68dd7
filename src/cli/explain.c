/* explain.c: afdep-compile explain: which kernels of a deployment the cache has, and why not the
 * others; or whether one object would be taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <afdep/cache.h>

#include "cli/document.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run_explain(const struct afj_verb *verb, int argc, const char **argv);

const struct afj_verb afj_verb_explain = {
    .name = "explain",
    .usage = "[FILE] [--layout 2A2F] [--hidden N] [--json] ... | KEY|FILE.afo [--json]",
    .summary = "Say which kernels the cache has, and for the others what differs from the nearest. "
               "With a KEY or an object file: whether this machine would take that object.",
    .examples = "  " AFJ_PROGRAM " explain --layout 2A2F\n"
                "  " AFJ_PROGRAM " explain --layout 1A1F --hidden 7168 --arch sm_100a --json\n"
                "  " AFJ_PROGRAM " explain 5f1c0e0c8a3d4b6f9e2a7c1d0b4f8e6a\n",
    .takes_deployments = true,
    .takes_object = true,
    .run = run_explain};

/* What is told, deployment after deployment. */
struct telling {
    bool json, is_object, short_of_memory;
    json_t *kernels;
    unsigned hits, misses;
};

/* Lines "name: stored | wanted" as [{"field", "stored", "wanted"}]; NULL without memory. */
static json_t *describe_differences(const char *lines)
{
    json_t *differences = json_array();
    for (const char *at = lines; *at != '\0' && differences != NULL;) {
        const size_t line = strcspn(at, "\n");
        char *copy = strndup(at, line);
        char *colon = copy == NULL ? NULL : strstr(copy, ": ");
        /* Values are digests, options and versions, none of which has a bar in it. */
        char *bar = colon == NULL ? NULL : strstr(colon + 2, " | ");
        bool good = copy != NULL;
        if (bar != NULL) {
            *colon = *bar = '\0';
            good = json_array_append_new(
                       differences, json_pack("{s:o, s:o, s:o}", "field", afj_output_text(copy),
                                              "stored", afj_output_text(colon + 2), "wanted",
                                              afj_output_text(bar + 3))) == 0;
        }
        free(copy);
        if (!good) {
            json_decref(differences);
            return NULL;
        }
        at += line + (at[line] == '\n');
    }
    return differences;
}

static void add_kernel(const afdep_cache_explanation *told, struct telling *telling)
{
    json_t *error = told->error == NULL ? json_null() : afj_output_text(told->error);
    json_t *kernel = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:s?, s:o}", "entry", told->entry, "shape",
        told->shape, "duty", afj_words_duty_name(told->duty), "arch", told->arch, "spec",
        told->spec, "key", told->key, "status", told->hit != 0 ? "hit" : "miss", "error", error,
        "nearest", told->nearest, "differences", describe_differences(told->differences));
    if (json_array_append_new(telling->kernels, kernel) != 0)
        telling->short_of_memory = true;
}

static void tell(const afdep_cache_explanation *told, void *user)
{
    struct telling *telling = user;
    telling->hits += told->hit != 0;
    telling->misses += told->hit == 0;
    if (telling->json) {
        add_kernel(told, telling);
        return;
    }
    printf("%-12s %-5s %-8s %-5s %s\n", told->entry, told->shape, told->arch,
           told->hit != 0 ? "hit" : "miss", told->key);
    if (told->error != NULL)
        printf("    the object of this key is not taken: %s\n", told->error);
    if (told->hit != 0)
        return;
    if (told->nearest == NULL) {
        printf("    nothing of this spec is stored\n");
        return;
    }
    printf("    %s %s differs in (stored | wanted):\n",
           telling->is_object ? "the object" : "nearest", told->nearest);
    for (const char *at = told->differences; *at != '\0';) {
        const size_t line = strcspn(at, "\n");
        printf("      %.*s\n", (int)line, at);
        at += line + (at[line] == '\n');
    }
}

/* One deployment, with a heading where there are several. */
static afdep_status tell_deployment(const struct afj_deployment *deployment, bool heading,
                                    struct telling *telling)
{
    const afdep_config *config = &deployment->config;
    if (heading && !telling->json)
        printf("%s, hidden %u, %u experts, top-%u, %s:\n", afj_output_layout(config).text,
               config->hidden, config->experts, config->top_k, afj_output_arch(config));
    return afdep_cache_explain(config, deployment->duties, tell, telling);
}

static int fail_explaining(const struct afj_request *request, afdep_status status)
{
    fprintf(stderr, AFJ_PROGRAM ": %s\n", afdep_last_error());
    if (request->object != NULL && status == AFDEP_ERROR_LOAD)
        return AFJ_EXIT_DAMAGE;
    /* That there is no such object is an answer, not a broken machine. */
    if (request->object != NULL && status == AFDEP_ERROR_IO)
        return AFJ_EXIT_FAILED;
    return afj_words_exit_code(status);
}

static int print_document(struct telling *telling)
{
    json_t *document = afj_document_new("afdep-compile-explain/1");
    if (telling->short_of_memory ||
        json_object_set_new(document, "hits", json_integer(telling->hits)) != 0 ||
        json_object_set_new(document, "misses", json_integer(telling->misses)) != 0 ||
        json_object_set(document, "kernels", telling->kernels) != 0) {
        json_decref(document);
        document = NULL;
    }
    return afj_document_print(AFJ_PROGRAM, document);
}

static int run_explain(const struct afj_verb *verb, int argc, const char **argv)
{
    struct afj_request request;
    int code = afj_request_read(verb, argc, argv, &request);
    if (code >= 0)
        return code;
    struct telling telling = {
        .json = request.json, .is_object = request.object != NULL, .kernels = json_array()};
    afdep_status status = AFDEP_OK;
    if (request.object != NULL)
        status = afdep_cache_explain_object(request.object, tell, &telling);
    for (size_t i = 0; i < request.deployments.count && status == AFDEP_OK; i++)
        status =
            tell_deployment(request.deployments.items[i], request.deployments.count > 1, &telling);
    if (status != AFDEP_OK) {
        code = fail_explaining(&request, status);
    } else if (request.json) {
        code = print_document(&telling);
    } else {
        printf("%u found, %u missing\n", telling.hits, telling.misses);
        code = afj_words_flush(AFJ_PROGRAM);
    }
    json_decref(telling.kernels);
    afj_request_finish(&request);
    return code;
}
