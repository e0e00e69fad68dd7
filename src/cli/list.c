/* list.c: afdep-compile list and inspect: what the cache holds, and one object of it. */
#include <stdio.h>
#include <string.h>

#include <afdep/cache.h>

#include "cli/document.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run_list(const struct afj_verb *verb, int argc, const char **argv);
static int run_inspect(const struct afj_verb *verb, int argc, const char **argv);

const struct afj_verb afj_verb_list = {
    .name = "list",
    .usage = "[WORD ...] [--json]",
    .summary =
        "List the kernels in the cache; with words, those whose description has all of them.",
    .examples = "  " AFJ_PROGRAM " list\n"
                "  " AFJ_PROGRAM " list duty=source hidden=2048 sm_90a\n"
                "  " AFJ_PROGRAM " list --json\n",
    .takes_words = true,
    .run = run_list};

const struct afj_verb afj_verb_inspect = {
    .name = "inspect",
    .usage = "KEY|FILE [--json]",
    .summary = "Check one object and show what it was made from. Needs no compiler.",
    .examples = "  " AFJ_PROGRAM " inspect 5f1c0e0c8a3d4b6f9e2a7c1d0b4f8e6a\n"
                "  " AFJ_PROGRAM " inspect some/where/5f1c0e0c.afo --json\n",
    .takes_words = true,
    .run = run_inspect};

/* A listing on its way. */
struct listing {
    const struct afj_request *request;
    json_t *entries;
    size_t shown, damaged;
    uint64_t bytes;
};

static json_t *describe_manifest(const char *lines)
{
    json_t *fields = json_object();
    for (const char *at = lines; *at != '\0';) {
        const size_t line = strcspn(at, "\n"), name = strcspn(at, "=");
        char key[128];
        if (name < line && name < sizeof key) {
            memcpy(key, at, name);
            key[name] = '\0';
            json_object_set_new(fields, key, json_stringn(at + name + 1, line - name - 1));
        }
        at += line + (at[line] == '\n');
    }
    return fields;
}

static json_t *describe_entry(const afdep_cache_entry *entry)
{
    json_t *object =
        json_pack("{s:s, s:b, s:I, s:I}", "path", entry->path, "damaged", entry->damaged != 0,
                  "bytes", (json_int_t)entry->bytes, "stored", (json_int_t)entry->stored);
    if (entry->damaged != 0)
        json_object_set_new(object, "error", json_string(entry->error));
    else
        json_object_update_new(object, json_pack("{s:s, s:s, s:s, s:I}", "key", entry->key, "spec",
                                                 entry->spec, "arch", entry->arch, "image_bytes",
                                                 (json_int_t)entry->image_bytes));
    return object;
}

static bool is_wanted(const afdep_cache_entry *entry, const struct afj_request *request)
{
    for (size_t i = 0; i < request->word_count; i++)
        if (strstr(entry->spec, request->words[i]) == NULL &&
            strstr(entry->arch, request->words[i]) == NULL)
            return false;
    return true;
}

static void list_entry(const afdep_cache_entry *entry, void *user)
{
    struct listing *listing = user;
    if (!is_wanted(entry, listing->request))
        return;
    listing->damaged += entry->damaged != 0;
    listing->bytes += entry->bytes;
    if (listing->request->json)
        json_array_append_new(listing->entries, describe_entry(entry));
    else if (entry->damaged != 0)
        printf("damaged: %s: %s\n", entry->path, entry->error);
    else
        printf("%s  %-7s %8llu  %s\n", entry->key, entry->arch,
               (unsigned long long)entry->image_bytes, entry->spec);
    listing->shown++;
}

/* Say a failed call; returns its exit code. */
static int say_failure(afdep_status status)
{
    fprintf(stderr, AFJ_PROGRAM ": %s\n", afdep_last_error());
    return status == AFDEP_ERROR_IO ? AFJ_EXIT_FAILED : afj_words_exit_code(status);
}

static int run_list(const struct afj_verb *verb, int argc, const char **argv)
{
    struct afj_request request;
    int code = afj_request_read(verb, argc, argv, &request);
    if (code >= 0)
        return code;
    struct listing listing = {.request = &request, .entries = json_array()};
    const afdep_status status = afdep_cache_list(list_entry, &listing);
    if (status != AFDEP_OK) {
        code = say_failure(status);
        json_decref(listing.entries);
    } else if (request.json) {
        json_t *document = afj_document_new("afdep-compile-list/1");
        json_object_set_new(document, "bytes", json_integer((json_int_t)listing.bytes));
        json_object_set_new(document, "damaged", json_integer((json_int_t)listing.damaged));
        json_object_set_new(document, "entries", listing.entries);
        code = afj_document_print(AFJ_PROGRAM, document);
    } else {
        json_decref(listing.entries);
        printf("%zu kernels, %s\n", listing.shown - listing.damaged,
               afj_output_bytes(listing.bytes).text);
        code = afj_words_flush(AFJ_PROGRAM);
    }
    if (code == AFJ_EXIT_OK && listing.damaged > 0)
        code = AFJ_EXIT_DAMAGE;
    afj_request_finish(&request);
    return code;
}

static void inspect_entry(const afdep_cache_entry *entry, void *user)
{
    struct listing *listing = user;
    listing->damaged += entry->damaged != 0;
    if (listing->request->json) {
        json_array_append_new(listing->entries, describe_entry(entry));
        if (entry->damaged == 0)
            json_object_set_new(json_array_get(listing->entries, 0), "manifest",
                                describe_manifest(entry->manifest));
        return;
    }
    if (entry->damaged != 0) {
        printf("%s is damaged: %s\n", entry->path, entry->error);
        return;
    }
    printf("%s\n%s, whole, image of %llu bytes\n", entry->key, entry->path,
           (unsigned long long)entry->image_bytes);
    for (const char *at = entry->manifest; *at != '\0';) {
        const size_t line = strcspn(at, "\n"), name = strcspn(at, "=");
        printf("  %-18.*s %.*s\n", (int)name, at, (int)(line - name - 1), at + name + 1);
        at += line + (at[line] == '\n');
    }
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
    struct listing listing = {.request = &request, .entries = json_array()};
    const afdep_status status = afdep_cache_inspect(request.words[0], inspect_entry, &listing);
    if (status != AFDEP_OK) {
        code = say_failure(status);
    } else if (request.json) {
        json_t *document = afj_document_new("afdep-compile-inspect/1");
        json_object_update(document, json_array_get(listing.entries, 0));
        code = afj_document_print(AFJ_PROGRAM, document);
    } else {
        code = afj_words_flush(AFJ_PROGRAM);
    }
    json_decref(listing.entries);
    if (code == AFJ_EXIT_OK && listing.damaged > 0)
        code = AFJ_EXIT_DAMAGE;
    afj_request_finish(&request);
    return code;
}
