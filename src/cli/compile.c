/* compile.c: afdep-compile: plan deployments, fill the kernel cache and look into it. */
#include <stdio.h>
#include <string.h>

#include <afdep/status.h>

#include "cli/verbs.h"

static const struct afj_verb *const verbs[] = {&afj_verb_plan,    &afj_verb_build,   &afj_verb_list,
                                               &afj_verb_inspect, &afj_verb_explain, &afj_verb_env};
enum { VERBS = sizeof verbs / sizeof *verbs };

static const char usage_line[] =
    "usage: " AFJ_PROGRAM " plan|build|list|inspect|explain|env [options]   (" AFJ_PROGRAM
    " VERB --help says more)\n";

static int print_overview(void)
{
    printf("Plan the kernels of Attention-FFN exchanges and compile them ahead of time. "
           "Needs no GPU.\n\n%s\n",
           usage_line);
    for (size_t i = 0; i < VERBS; i++)
        printf("  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
    printf("\n  --version  the library's version and commit\n"
           "\nexit codes: 0 done, 1 a kernel failed, 2 wrong usage, 4 damage found, "
           "5 no usable compiler\n");
    return afj_words_flush(AFJ_PROGRAM);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return print_overview();
    if (strcmp(word, "--version") == 0) {
        printf(AFJ_PROGRAM " %s (commit %s)\n", afdep_version(), afdep_commit());
        return afj_words_flush(AFJ_PROGRAM);
    }
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(word, verbs[i]->name) == 0)
            return verbs[i]->run(verbs[i], argc - 1, (const char **)(argv + 1));
    if (argc > 1)
        fprintf(stderr, AFJ_PROGRAM ": \"%s\" is not a verb\n", word);
    fputs(usage_line, stderr);
    return AFJ_EXIT_USAGE;
}
