/* cell.h: one cell of a sweep: what was asked, what came out, and how it is printed. */
#ifndef AFJ_BENCH_CELL_H
#define AFJ_BENCH_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "bench/harness.h"
#include "bench/timing.h"

struct afj_cell {
    /* asked */
    afdep_config config;
    uint32_t tokens; /* of every attention rank; the bucket too */
    enum afj_routing routing;
    uint64_t seed;
    uint32_t round_trips, repeats; /* exchanges a graph, launches timed */
    bool eager;                    /* time without graphs, too */
    int32_t devices[AFDEP_MAX_RANKS];
    /* came out */
    char gpu[64]; /* empty on the sim device */
    uint32_t ranks_per_gpu;
    uint32_t ctas; /* most CTAs a kernel took, on the rank that took most */
    double create_ms,
        create_again_ms; /* creating the buffers: as found, and with all kernels here */
    uint64_t rows_sent;  /* rows that FFN ranks receive in one exchange of all lanes */
    struct afj_tally tally;
    struct afj_percentiles graph_us, single_us, eager_us;
};

/* Check and, on CUDA, time one cell. `failure` says why not. A wrong row is no failure: see
 * cell->tally. */
afdep_status afj_cell_run(struct afj_cell *cell, char *failure, size_t size);

/* The cell's fields as an object; NULL without memory. */
json_t *afj_cell_describe(const struct afj_cell *cell);

/* The table's head, and a line of it. */
void afj_cell_print_head(void);
void afj_cell_print(const struct afj_cell *cell);

#endif
