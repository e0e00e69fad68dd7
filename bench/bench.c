/* bench.c: afdep-bench: check and time exchanges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <afdep/status.h>

#include "bench/exchange.h"
#include "cli/words.h"

static const char usage_line[] =
    "usage: afdep-bench exchange [options]   (afdep-bench exchange --help says more)\n";

static int print_overview(void)
{
    printf("Check and time Attention-FFN exchanges.\n\n%s\n"
           "  exchange   one exchange at a time: check every row, time it in graphs\n"
           "\n  --version  the library's version and commit\n"
           "\nexit codes: 0 all rows right, 1 a wrong row, 2 wrong usage, 5 no usable machine\n",
           usage_line);
    return afj_words_flush("afdep-bench");
}

int main(int argc, char **argv)
{
    /* As many ranks a GPU as there can be; the driver reads it when it starts. */
    if (setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) != 0)
        fprintf(stderr, "afdep-bench: cannot set CUDA_DEVICE_MAX_CONNECTIONS\n");
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return print_overview();
    if (strcmp(word, "--version") == 0) {
        printf("afdep-bench %s (commit %s)\n", afdep_version(), afdep_commit());
        return afj_words_flush("afdep-bench");
    }
    if (strcmp(word, "exchange") == 0)
        return afj_bench_exchange(argc, (const char **)argv);
    if (argc > 1)
        fprintf(stderr, "afdep-bench: \"%s\" is not a verb\n", word);
    fputs(usage_line, stderr);
    return AFJ_EXIT_USAGE;
}
