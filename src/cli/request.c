/* request.c: how a verb of afdep-compile reads its command line. */
#include <popt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"

/* Values that poptGetNextOpt returns: fields from 1, then these. */
enum { OPTION_JSON = 100, OPTION_HELP, OPTION_JOBS, OPTION_SORT };

#define FIELD(field, word, argument, text)                                                         \
    {                                                                                              \
        word, '\0', POPT_ARG_STRING, NULL, AFJ_FIELD_##field + 1, text, argument                   \
    }

/* A field that is 1 where its flag has no value. */
#define SWITCH(field, word, text)                                                                  \
    {                                                                                              \
        word, '\0', POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, AFJ_FIELD_##field + 1, text,    \
            "0|1"                                                                                  \
    }

static struct poptOption deployment_options[] = {
    FIELD(LAYOUT, "layout", "2A2F|8B", "attention and FFN ranks, or ranks of both roles"),
    FIELD(DUTY, "duty", "source,expert", "only kernels of these duties"),
    FIELD(DOMAINS, "domains", "1", "NVLink domains; only 1 so far"),
    FIELD(HIDDEN, "hidden", "2048", "elements a row"),
    FIELD(DTYPE, "dtype", "bf16|fp8|fp8-ue8m0|opaque", "what a dispatched row is"),
    FIELD(PAYLOAD_BYTES, "payload-bytes", "N", "bytes of an opaque row"),
    FIELD(EXPERTS, "experts", "N", "experts of the layer; 128 or the multiple of F below it"),
    FIELD(TOP_K, "top-k", "8", "experts a token"),
    FIELD(ARCH, "arch", "sm_90a", "GPU architecture; with --device cuda only"),
    FIELD(LANES, "lanes", "1", "exchanges in flight"),
    FIELD(DEVICE, "device", "cuda|sim", "what the kernels run on; cuda needs no GPU here"),
    FIELD(CAPACITY, "capacity", "2048", "most tokens of an attention rank at once"),
    FIELD(IDS, "ids", "32|64", "bits of an expert id"),
    FIELD(RECEIVE, "receive", "compact|view|expert-major", "how FFN ranks get their rows"),
    FIELD(ALIGNMENT, "alignment", "1", "expert-major: rows of an expert begin at a multiple"),
    SWITCH(COUNTS_FIRST, "counts-first", "ids go ahead of rows"),
    SWITCH(HOST_COUNTS, "host-counts", "counts go to host memory, too"),
    SWITCH(REPLY_WEIGHTS, "reply-weights", "replies carry weights"),
    SWITCH(COLLECT_VIEW, "collect-view", "collected rows stay in place; F is 1"),
    POPT_TABLEEND};

static struct poptOption filter_options[] = {
    FIELD(DUTY, "duty", "source,expert", "only kernels of these duties"),
    FIELD(LAYOUT, "layout", "2A2F", "only those of these layouts"),
    FIELD(HIDDEN, "hidden", "2048", "only those of these row lengths"),
    FIELD(ARCH, "arch", "sm_90a", "only those for these architectures"),
    {"sort", '\0', POPT_ARG_STRING, NULL, OPTION_SORT,
     "largest or latest first; by key if not given", "size|used|key"},
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

static int take_jobs(const struct afj_verb *verb, const char *value, struct afj_request *request)
{
    uint64_t jobs = 0;
    struct afj_why why;
    if (!afj_words_number("-j", value, 1, 1024, &jobs, &why))
        return afj_verb_misused(verb, "%s", why.text);
    request->jobs = (uint32_t)jobs;
    return -1;
}

static int take_sort(const struct afj_verb *verb, const char *value, struct afj_request *request)
{
    static const char *const names[] = {
        [AFJ_SORT_KEY] = "key", [AFJ_SORT_SIZE] = "size", [AFJ_SORT_USED] = "used"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(value, names[i]) == 0) {
            request->sort = (enum afj_sort)i;
            return -1;
        }
    return afj_verb_misused(verb, "sort is \"%s\"; it must be size, used or key", value);
}

/* The word behind a switch may have been meant as a FILE. */
static int check_switch(const struct afj_verb *verb, int option, const char *value)
{
    const struct poptOption *entry = deployment_options;
    while (entry->longName != NULL && entry->val != option)
        entry++;
    if (entry->longName == NULL || !(entry->argInfo & POPT_ARGFLAG_OPTIONAL) ||
        value[strspn(value, "01,")] == '\0')
        return -1;
    return afj_verb_misused(verb, "%s is \"%s\"; it must be 0 or 1; a FILE goes before --%s",
                            entry->longName, value, entry->longName);
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
    if (option == OPTION_JOBS || option == OPTION_SORT) {
        const char *given = value == NULL ? "" : value;
        const int code = option == OPTION_JOBS ? take_jobs(verb, given, request)
                                               : take_sort(verb, given, request);
        free(value);
        return code;
    }
    if (value == NULL)
        value = strdup("1"); /* only a switch may come without */
    if (value == NULL)
        return afj_verb_misused(verb, "no memory for the command line");
    free(fields->value[option - 1]);
    fields->value[option - 1] = value;
    return check_switch(verb, option, value);
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

/* A KEY, or the name of an object file, which no deployment file has. */
static bool is_object(const char *word)
{
    const size_t length = strlen(word);
    return (length == 32 && strspn(word, "0123456789abcdef") == 32) ||
           (length > 4 && strcmp(word + length - 4, ".afo") == 0);
}

static int take_object(const struct afj_verb *verb, poptContext context,
                       const struct afj_fields *fields, struct afj_request *request)
{
    const char *word = poptGetArg(context), *surplus = poptPeekArg(context);
    if (surplus != NULL)
        return afj_verb_misused(verb, "\"%s\" is one argument too many", surplus);
    for (size_t i = 0; i < AFJ_FIELD_COUNT; i++)
        if (fields->value[i] != NULL)
            return afj_verb_misused(verb, "\"%s\" says itself what it is of; give it no such flags",
                                    word);
    request->object = strdup(word);
    return request->object != NULL ? -1 : afj_verb_misused(verb, "no memory for the command line");
}

/* The values of the flags that a list filters by must make sense; then they are the request's. */
static int take_filters(const struct afj_verb *verb, struct afj_fields *fields,
                        struct afj_request *request)
{
    struct afj_why why;
    bool good = true;
    for (size_t f = 0; f < AFJ_FIELD_COUNT && good; f++) {
        struct afj_list list = {0};
        struct afj_layout layout;
        uint32_t duty;
        uint64_t number;
        good =
            fields->value[f] == NULL || afj_words_list("a filter", fields->value[f], &list, &why);
        for (size_t i = 0; i < list.count && good; i++) {
            const char *item = list.items[i];
            if (f == AFJ_FIELD_LAYOUT)
                good = afj_words_layout(item, &layout, &why);
            else if (f == AFJ_FIELD_DUTY)
                good = afj_words_duty(item, &duty, &why);
            else if (f == AFJ_FIELD_HIDDEN)
                good = afj_words_number("hidden", item, 1, UINT32_MAX, &number, &why);
        }
        afj_words_list_finish(&list);
    }
    if (!good)
        return afj_verb_misused(verb, "%s", why.text);
    request->filters = *fields;
    memset(fields, 0, sizeof *fields);
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
    if (verb->takes_filters) {
        int code = take_filters(verb, fields, request);
        if (code >= 0)
            return code;
    }
    if (verb->takes_words)
        return take_words(verb, context, request);
    if (verb->takes_object && poptPeekArg(context) != NULL && is_object(poptPeekArg(context)))
        return take_object(verb, context, fields, request);
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
    struct poptOption table[5], end = POPT_TABLEEND;
    size_t used = 0;
    struct poptOption include = {NULL, '\0', POPT_ARG_INCLUDE_TABLE, NULL, 0, NULL, NULL};
    include.arg = deployment_options;
    include.descrip = "Deployment:";
    if (verb->takes_deployments)
        table[used++] = include;
    include.arg = filter_options;
    include.descrip = "Which, and in which order:";
    if (verb->takes_filters)
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
    afj_fields_finish(&request->filters);
    free(request->object);
    request->object = NULL;
    for (size_t i = 0; i < request->word_count; i++)
        free(request->words[i]);
    free(request->words);
    request->words = NULL;
    request->word_count = 0;
}
