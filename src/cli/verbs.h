/* verbs.h: what afdep-compile does, one verb a function, and how a verb reads its command line. */
#ifndef AFJ_CLI_VERBS_H
#define AFJ_CLI_VERBS_H

#include <stdbool.h>

#include "cli/deployment.h"

#define AFJ_PROGRAM "afdep-compile"

/* One verb: what comes behind its name in a usage line, and what its help says. */
struct afj_verb {
    const char *name, *usage, *summary, *examples;
    bool takes_deployments; /* the flags of deployment.h, or a FILE */
    bool takes_jobs;        /* -j N */
    bool takes_words;       /* any words behind the flags; those of takes_deployments are a FILE */
    bool takes_object;      /* beside deployments: a KEY, or the FILE.afo of an object */
    bool takes_filters;     /* --duty --arch --layout --hidden and --sort */
    int (*run)(const struct afj_verb *verb, int argc, const char **argv);
};

extern const struct afj_verb afj_verb_plan, afj_verb_build, afj_verb_list, afj_verb_inspect,
    afj_verb_explain, afj_verb_env;

/* In which order a list is. */
enum afj_sort { AFJ_SORT_KEY, AFJ_SORT_SIZE, AFJ_SORT_USED };

/* What a verb was asked. */
struct afj_request {
    struct afj_deployments deployments;
    uint32_t jobs; /* 0: not given */
    bool json;
    struct afj_fields filters; /* with takes_filters; a list for each that was given */
    enum afj_sort sort;
    char *object; /* with takes_object: a key or a path, if one was given; owned */
    char **words; /* [word_count], owned */
    size_t word_count;
};

/* Read argv behind the verb. -1: go on with the request; else exit with this code, all is said. */
int afj_request_read(const struct afj_verb *verb, int argc, const char **argv,
                     struct afj_request *request);
void afj_request_finish(struct afj_request *request);

/* Say what is wrong and how the verb is called, on stderr; returns AFJ_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int afj_verb_misused(const struct afj_verb *verb,
                                                           const char *format, ...);

#endif
