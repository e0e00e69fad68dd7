/* sweep.h: what `afdep-bench exchange` was asked: the cells of a sweep, and how to report them. */
#ifndef AFJ_BENCH_SWEEP_H
#define AFJ_BENCH_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/cell.h"
#include "cli/words.h"

#define AFJ_BENCH_PROGRAM "afdep-bench"

struct afj_sweep {
    struct afj_cell *cells; /* owned */
    size_t count, capacity;
    bool json;
    char *record; /* file to append records to, or NULL; owned */
};

/* Read argv behind the verb. -1: go on; else exit with this code, all is said. */
int afj_sweep_read(int argc, const char **argv, struct afj_sweep *sweep);
void afj_sweep_finish(struct afj_sweep *sweep);

#endif
