/* inspect.c: afdep-compile inspect: one object of the cache, checked, and what it was made from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <afdep/cache.h>

#include "cli/document.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run_inspect(const struct afj_verb *verb, int argc, const char **argv);

const struct afj_verb afj_verb_inspect = {
    .name = "inspect",
    .usage = "KEY|FILE [--json]",
    .summary = "Check one object and show what it was made from. Needs no compiler.",
    .examples = "  " AFJ_PROGRAM " inspect 5f1c0e0c8a3d4b6f9e2a7c1d0b4f8e6a\n"
                "  " AFJ_PROGRAM " inspect some/where/5f1c0e0c.afo --json\n",
    .takes_words = true,
    .run = run_inspect};

/* What was found: a document, or NULL without memory. */
struct finding {
    json_t *entry;
    bool damaged;
};

/* A manifest's lines as the members of an object; NULL without memory. */
static json_t *describe_manifest(const char *lines)
{
    json_t *fields = json_object();
    for (const char *at = lines; *at != '\0' && fields != NULL;) {
        const size_t line = strcspn(at, "\n");
        char *copy = strndup(at, line);
        char *equals = copy == NULL ? NULL : strchr(copy, '=');
        bool good = copy != NULL;
        if (equals != NULL) {
            *equals = '\0';
            json_t *name = afj_output_text(copy);
            good = name != NULL && json_object_set_new(fields, json_string_value(name),
                                                       afj_output_text(equals + 1)) == 0;
            json_decref(name);
        }
        free(copy);
        if (!good) {
            json_decref(fields);
            return NULL;
        }
        at += line + (at[line] == '\n');
    }
    return fields;
}

static void take_entry(const afdep_cache_entry *entry, void *user)
{
    struct finding *finding = user;
    finding->damaged = entry->damaged != 0;
    finding->entry = afj_output_entry(entry);
    if (finding->entry != NULL &&
        json_object_set_new(finding->entry, "manifest", describe_manifest(entry->manifest)) != 0) {
        json_decref(finding->entry);
        finding->entry = NULL;
    }
}

static const char *text_in(const json_t *entry, const char *name)
{
    return json_string_value(json_object_get(entry, name));
}

static long long number_in(const json_t *entry, const char *name)
{
    return json_integer_value(json_object_get(entry, name));
}

static int print_finding(const struct finding *finding)
{
    const json_t *entry = finding->entry;
    const char *name;
    json_t *value;
    if (finding->damaged)
        printf("%s is damaged: %s\n", text_in(entry, "path"), text_in(entry, "error"));
    if (*text_in(entry, "key") != '\0') {
        printf("%s\n%s, %lld bytes%s\n", text_in(entry, "key"), text_in(entry, "path"),
               number_in(entry, "bytes"), finding->damaged ? "" : ", sums verified");
        printf("kernel %s: image of %lld bytes, %lld registers, %lld bytes spilled, %lld bytes of "
               "static shared memory, compiled in %.1f ms\n",
               text_in(entry, "entry"), number_in(entry, "image_bytes"),
               number_in(entry, "registers"), number_in(entry, "spill_bytes"),
               number_in(entry, "shared_bytes"),
               json_real_value(json_object_get(entry, "compile_ms")));
    }
    json_object_foreach(json_object_get(entry, "manifest"), name, value)
        printf("  %-18s %s\n", name, json_string_value(value));
    return afj_words_flush(AFJ_PROGRAM);
}

static int print_document(const struct finding *finding)
{
    json_t *document = afj_document_new("afdep-compile-inspect/1");
    if (json_object_update(document, finding->entry) != 0) {
        json_decref(document);
        document = NULL;
    }
    return afj_document_print(AFJ_PROGRAM, document);
}

static int run_inspect(const struct afj_verb *verb, int argc, const char **argv)
{
    struct afj_request request;
    int code = afj_request_read(verb, argc, argv, &request);
    if (code >= 0)
        return code;
    if (request.word_count != 1) {
        afj_request_finish(&request);
        return afj_verb_misused(verb, "one KEY or FILE is needed");
    }
    struct finding finding = {NULL, false};
    const afdep_status status = afdep_cache_inspect(request.words[0], take_entry, &finding);
    if (status != AFDEP_OK || finding.entry == NULL) {
        fprintf(stderr, AFJ_PROGRAM ": %s\n",
                status != AFDEP_OK ? afdep_last_error() : "no memory for the object");
        /* That there is no such object is an answer, not a broken machine. */
        code = status == AFDEP_ERROR_IO || status == AFDEP_OK ? AFJ_EXIT_FAILED
                                                              : afj_words_exit_code(status);
    } else {
        code = request.json ? print_document(&finding) : print_finding(&finding);
    }
    if (code == AFJ_EXIT_OK && finding.damaged)
        code = AFJ_EXIT_DAMAGE;
    json_decref(finding.entry);
    afj_request_finish(&request);
    return code;
}
