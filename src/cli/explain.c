/* explain.c: afdep-compile explain: which kernels of a deployment the cache has, and why not the
 * others. */
#include <stdio.h>
#include <string.h>

#include <afdep/cache.h>

#include "cli/document.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run_explain(const struct afj_verb *verb, int argc, const char **argv);

const struct afj_verb afj_verb_explain = {
    .name = "explain",
    .usage = "[FILE] [--layout 2A2F] [--hidden N] [--json] ...",
    .summary = "Say which kernels the cache has, and for the others what differs from the nearest.",
    .examples = "  " AFJ_PROGRAM " explain --layout 2A2F\n"
                "  " AFJ_PROGRAM " explain --layout 1A1F --hidden 7168 --arch sm_100a --json\n",
    .takes_deployments = true,
    .run = run_explain};

struct telling {
    bool json;
    json_t *kernels;
    unsigned hits, misses;
};

static void tell(const afdep_cache_explanation *told, void *user)
{
    struct telling *telling = user;
    telling->hits += told->hit != 0;
    telling->misses += told->hit == 0;
    if (telling->json) {
        json_array_append_new(telling->kernels,
                              json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s}", "entry", told->entry,
                                        "shape", told->shape, "key", told->key, "status",
                                        told->hit != 0 ? "hit" : "miss", "nearest", told->nearest,
                                        "differences", told->differences));
        return;
    }
    printf("%-12s %-5s %-5s %s\n", told->entry, told->shape, told->hit != 0 ? "hit" : "miss",
           told->key);
    if (told->hit != 0)
        return;
    if (told->nearest == NULL) {
        printf("    nothing of this spec is stored\n");
        return;
    }
    printf("    nearest %s differs in (stored | wanted):\n", told->nearest);
    for (const char *at = told->differences; *at != '\0';) {
        const size_t line = strcspn(at, "\n");
        printf("      %.*s\n", (int)line, at);
        at += line + (at[line] == '\n');
    }
}

static int run_explain(const struct afj_verb *verb, int argc, const char **argv)
{
    struct afj_request request;
    int code = afj_request_read(verb, argc, argv, &request);
    if (code >= 0)
        return code;
    struct telling telling = {.json = request.json, .kernels = json_array()};
    afdep_status status = AFDEP_OK;
    for (size_t i = 0; i < request.deployments.count && status == AFDEP_OK; i++)
        status = afdep_cache_explain(&request.deployments.items[i]->config,
                                     request.deployments.items[i]->duties, tell, &telling);
    if (status != AFDEP_OK) {
        fprintf(stderr, AFJ_PROGRAM ": %s\n", afdep_last_error());
        json_decref(telling.kernels);
        code = afj_words_exit_code(status);
    } else if (request.json) {
        json_t *document = afj_document_new("afdep-compile-explain/1");
        json_object_set_new(document, "hits", json_integer(telling.hits));
        json_object_set_new(document, "misses", json_integer(telling.misses));
        json_object_set_new(document, "kernels", telling.kernels);
        code = afj_document_print(AFJ_PROGRAM, document);
    } else {
        json_decref(telling.kernels);
        printf("%u found, %u missing\n", telling.hits, telling.misses);
        code = afj_words_flush(AFJ_PROGRAM);
    }
    afj_request_finish(&request);
    return code;
}
