/* timing.h: how long a round trip takes, in graphs and without, as percentiles. */
#ifndef AFJ_BENCH_TIMING_H
#define AFJ_BENCH_TIMING_H

#include <stdint.h>

#include "bench/harness.h"

/* Of samples in microseconds; samples is 0 where nothing was measured. */
struct afj_percentiles {
    double p10, p50, p90, p95, p99;
    uint32_t samples;
};

/* Time launches of a graph of `round_trips` exchanges of every lane, per round trip: an event on
 * each side of every launch on every attention rank's stream, the longest of the ranks, for
 * `repeats` launches that queue up behind a delay. */
afdep_status afj_timing_graph(struct afj_harness *harness, uint32_t round_trips, uint32_t repeats,
                              struct afj_percentiles *us);

/* The same without graphs: what the host takes to make the calls is in it. */
afdep_status afj_timing_eager(struct afj_harness *harness, uint32_t repeats,
                              struct afj_percentiles *us);

#endif
