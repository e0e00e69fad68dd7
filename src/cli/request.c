/* request.c: how a verb of afdep-compile reads its command line. */
#include <popt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"

/* Values that poptGetNextOpt returns: fields from 1, then these. */
enum { OPTION_JSON = 100, OPTION_HELP, OPTION_JOBS };

#define FIELD(field, word, argument, text)                                                         \
    {                                                                                              \
        word, '\0', POPT_ARG_STRING, NULL, AFJ_FIELD_##field + 1, text, argument                   \
    }

static struct poptOption deployment_options[] = {
    FIELD(LAYOUT, "layout", "2A2F", "attention and FFN ranks"),
    FIELD(DUTY, "duty", "source,expert", "only kernels of these duties"),
    FIELD(DOMAINS, "domains", "1", "NVLink domains; only 1 so far"),
    FIELD(HIDDEN, "hidden", "2048", "elements a row"),
    FIELD(DTYPE, "dtype", "bf16", "element type"),
    FIELD(EXPERTS, "experts", "N", "experts of the layer; 128 or the multiple of F below it"),
    FIELD(TOP_K, "top-k", "8", "experts a token"),
    FIELD(ARCH, "arch", "sm_90a", "GPU architecture; with --device cuda only"),
    FIELD(LANES, "lanes", "1", "exchanges in flight"),
    FIELD(DEVICE, "device", "cuda|sim", "what the kernels run on; cuda needs no GPU here"),
    FIELD(CAPACITY, "capacity", "2048", "most tokens of an attention rank at once"),
    POPT_TABLEEND};

static struct poptOption job_options[] = {
    {"jobs", 'j', POPT_ARG_STRING, NULL, OPTION_JOBS, "kernels compiled at once; one a CPU", "N"},
    POPT_TABLEEND};

static struct poptOption common_options[] = {
    {"json", '\0', POPT_ARG_NONE, NULL, OPTION_JSON, "one JSON document on stdout", NULL},
    {"help", 'h', POPT_ARG_NONE, NULL, OPTION_HELP, "this text", NULL},
    POPT_TABLEEND};

int afj_verb_misused(const struct afj_verb *verb, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(stderr, AFJ_PROGRAM ": ");
    vfprintf(stderr, format, values);
    va_end(values);
    fprintf(stderr, "\nusage: " AFJ_PROGRAM " %s %s\n", verb->name, verb->usage);
    return AFJ_EXIT_USAGE;
}

static int print_help(const struct afj_verb *verb, poptContext context)
{
    printf("%s\n", verb->summary);
    if (verb->takes_deployments)
        printf("FILE holds one JSON object a line with the names of the flags (top_k for --top-k); "
               "- is stdin.\nFlags fill what a line leaves out. A comma list spans a grid.\n");
    printf("\n");
    poptSetOtherOptionHelp(context, verb->usage);
    poptPrintHelp(context, stdout, 0);
    printf("\nexamples:\n%s", verb->examples);
    return afj_words_flush(AFJ_PROGRAM);
}

/* Take one option. -1: go on; else the exit code. */
static int take_option(const struct afj_verb *verb, poptContext context, int option,
                       struct afj_fields *fields, struct afj_request *request)
{
    if (option == OPTION_HELP)
        return print_help(verb, context);
    if (option == OPTION_JSON) {
        request->json = true;
        return -1;
    }
    char *value = poptGetOptArg(context);
    if (option == OPTION_JOBS) {
        uint64_t jobs = 0;
        struct afj_why why;
        bool good = afj_words_number("-j", value == NULL ? "" : value, 1, 1024, &jobs, &why);
        free(value);
        request->jobs = (uint32_t)jobs;
        return good ? -1 : afj_verb_misused(verb, "%s", why.text);
    }
    free(fields->value[option - 1]);
    fields->value[option - 1] = value;
    return -1;
}

static int take_words(const struct afj_verb *verb, poptContext context, struct afj_request *request)
{
    const char *word;
    while ((word = poptGetArg(context)) != NULL) {
        char **words = realloc(request->words, (request->word_count + 1) * sizeof *words);
        if (words != NULL)
            request->words = words;
        char *copy = words == NULL ? NULL : strdup(word);
        if (copy == NULL)
            return afj_verb_misused(verb, "no memory for the command line");
        request->words[request->word_count++] = copy;
    }
    return -1;
}

/* All options, then what is left: a FILE where the verb takes deployments. */
static int take_all(const struct afj_verb *verb, poptContext context, struct afj_fields *fields,
                    struct afj_request *request)
{
    int option;
    while ((option = poptGetNextOpt(context)) > 0) {
        int code = take_option(verb, context, option, fields, request);
        if (code >= 0)
            return code;
    }
    if (option < -1)
        return afj_verb_misused(verb, "%s: %s", poptBadOption(context, POPT_BADOPTION_NOALIAS),
                                poptStrerror(option));
    if (verb->takes_words)
        return take_words(verb, context, request);
    const char *path = poptGetArg(context);
    const char *surplus = verb->takes_deployments ? poptPeekArg(context) : path;
    if (surplus != NULL)
        return afj_verb_misused(verb, "\"%s\" is one argument too many", surplus);
    if (!verb->takes_deployments)
        return -1;
    struct afj_why why;
    bool good = path != NULL ? afj_deployments_read(&request->deployments, path, fields, &why)
                             : afj_deployments_add(&request->deployments, fields, &why);
    return good ? -1 : afj_verb_misused(verb, "%s", why.text);
}

int afj_request_read(const struct afj_verb *verb, int argc, const char **argv,
                     struct afj_request *request)
{
    memset(request, 0, sizeof *request);
    struct poptOption table[4], end = POPT_TABLEEND;
    size_t used = 0;
    struct poptOption include = {NULL, '\0', POPT_ARG_INCLUDE_TABLE, NULL, 0, NULL, NULL};
    include.arg = deployment_options;
    include.descrip = "Deployment:";
    if (verb->takes_deployments)
        table[used++] = include;
    include.arg = job_options;
    include.descrip = "Work:";
    if (verb->takes_jobs)
        table[used++] = include;
    include.arg = common_options;
    include.descrip = "Output:";
    table[used++] = include;
    table[used] = end;

    char name[64];
    snprintf(name, sizeof name, AFJ_PROGRAM " %s", verb->name);
    argv[0] = name; /* what popt's help calls the program */
    poptContext context = poptGetContext(AFJ_PROGRAM, argc, argv, table, 0);
    if (context == NULL)
        return afj_verb_misused(verb, "no memory for the command line");
    struct afj_fields fields = {0};
    int code = take_all(verb, context, &fields, request);
    afj_fields_finish(&fields);
    poptFreeContext(context);
    argv[0] = verb->name;
    if (code >= 0)
        afj_request_finish(request);
    return code;
}

void afj_request_finish(struct afj_request *request)
{
    afj_deployments_finish(&request->deployments);
    for (size_t i = 0; i < request->word_count; i++)
        free(request->words[i]);
    free(request->words);
    request->words = NULL;
    request->word_count = 0;
}
