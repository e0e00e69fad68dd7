/* env.c: afdep-compile env: the cache, the compilers and the variables as a process sees them. */
#include <stdio.h>

#include <afdep/cache.h>

#include "cli/document.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run_env(const struct afj_verb *verb, int argc, const char **argv);

const struct afj_verb afj_verb_env = {
    .name = "env",
    .usage = "[--json]",
    .summary = "Describe the cache, the compilers, the driver and all environment variables.",
    .examples = "  " AFJ_PROGRAM " env\n"
                "  AFDEP_JIT_CACHE=off " AFJ_PROGRAM " env --json\n",
    .run = run_env};

/* A line, and its note below where there is one. */
static void print_fact(const char *name, const char *value, const char *note)
{
    const char *words = value != NULL && value[0] != '\0' ? value : "none";
    printf("%-16s  %s\n", name, words);
    if (note != NULL && note[0] != '\0')
        printf("%-16s  %s\n", "", note);
}

static void print_environment(const afdep_environment *is)
{
    printf("%-16s  %s (commit %s)\n", "library", afdep_version(), afdep_commit());
    print_fact("cache", is->cache_dir[0] != '\0' ? is->cache_dir : "in memory only",
               is->cache_note);
    print_fact("  chosen by", is->cache_origin, "");
    print_fact("  writable", is->cache_writable != 0 ? "yes" : "no", "");
    print_fact("NVRTC", is->nvrtc_path, is->nvrtc_note);
    print_fact("  version", is->nvrtc_version, "");
    print_fact("  build id", is->nvrtc_build_id, "");
    print_fact("host compiler", is->host_compiler, is->host_compiler_note);
    print_fact("  version", is->host_compiler_version, "");
    print_fact("driver", is->driver_note, "");
    print_fact("templates", is->template_digest, "");
    printf("\n%-28s  %-11s  %s\n", "variable", "origin", "value");
    afdep_variable variable = {.struct_size = sizeof variable};
    for (uint32_t i = 0; afdep_variable_get(i, &variable) == AFDEP_OK; i++) {
        printf("%-28s  %-11s  %s\n", variable.name,
               variable.is_set != 0 ? "environment" : "default", variable.value);
        printf("%-28s  %s\n", "", variable.text);
    }
}

/* NULL without memory, as below. */
static json_t *describe_variables(void)
{
    json_t *list = json_array();
    afdep_variable variable = {.struct_size = sizeof variable};
    for (uint32_t i = 0; afdep_variable_get(i, &variable) == AFDEP_OK; i++) {
        json_t *one = json_pack(
            "{s:s, s:o, s:s, s:s}", "name", variable.name, "value", afj_output_text(variable.value),
            "origin", variable.is_set != 0 ? "environment" : "default", "text", variable.text);
        if (json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *describe_environment(const afdep_environment *is)
{
    json_t *document = afj_document_new("afdep-compile-env/1");
    json_t *facts = json_pack(
        "{s:{s:o, s:o, s:b, s:o}, s:{s:o, s:o, s:o, s:o}, s:{s:o, s:o, s:o}, s:o, s:s, s:o}",
        "cache", "dir", afj_output_text(is->cache_dir), "origin", afj_output_text(is->cache_origin),
        "writable", is->cache_writable != 0, "note", afj_output_text(is->cache_note), "nvrtc",
        "path", afj_output_text(is->nvrtc_path), "version", afj_output_text(is->nvrtc_version),
        "build_id", afj_output_text(is->nvrtc_build_id), "note", afj_output_text(is->nvrtc_note),
        "host_compiler", "path", afj_output_text(is->host_compiler), "version",
        afj_output_text(is->host_compiler_version), "note", afj_output_text(is->host_compiler_note),
        "driver", afj_output_text(is->driver_note), "templates", is->template_digest, "variables",
        describe_variables());
    if (json_object_update_new(document, facts) == 0)
        return document;
    json_decref(document);
    return NULL;
}

static int run_env(const struct afj_verb *verb, int argc, const char **argv)
{
    struct afj_request request;
    int code = afj_request_read(verb, argc, argv, &request);
    if (code >= 0)
        return code;
    afj_request_finish(&request);
    afdep_environment environment = {.struct_size = sizeof environment};
    afdep_status status = afdep_cache_environment(&environment);
    if (status != AFDEP_OK) {
        fprintf(stderr, AFJ_PROGRAM ": %s\n", afdep_last_error());
        return afj_words_exit_code(status);
    }
    if (request.json)
        return afj_document_print(AFJ_PROGRAM, describe_environment(&environment));
    print_environment(&environment);
    return afj_words_flush(AFJ_PROGRAM);
}
