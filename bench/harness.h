/* harness.h: an exchange of any layout over the public API: buffers, arrays, calls, checks. */
#ifndef AFJ_BENCH_HARNESS_H
#define AFJ_BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <afdep/afdep.h>

#include "bench/inputs.h"
#include "bench/oracle.h"

/* How long kernels wait for a peer in benches and tests, in ms: nothing hangs. */
#define AFJ_HARNESS_TIMEOUT_MS 5000
#define AFJ_HARNESS_STARTUP_TIMEOUT_MS 20000

/* Arrays of one rank and lane on its device. An attention rank has rows, ids, weights (what it
 * sends) and out (what it collects); an FFN rank rows, ids, weights, sources, tokens, counts (what
 * it receives) and out (what it replies with in checks). */
struct afj_side {
    void *rows, *out;
    int32_t *ids;
    float *weights;
    uint32_t *sources, *tokens, *counts;
    afdep_counts where; /* FFN ranks: the library's counts, copied to `counts` */
};

struct afj_harness {
    afdep_config config;
    uint32_t ranks, room; /* room: most tokens of an attention rank, and the largest bucket */
    bool without_origins; /* give receive no arrays for sources and tokens; may be set any time */
    bool phase_by_phase;  /* wait after each step of all ranks, as a tool that serialises launches
                             does; may be set any time */
    afdep_group *group;
    afdep_buffer **buffers;   /* [ranks] */
    afdep_stream *streams;    /* [ranks] */
    struct afj_side *sides;   /* [ranks][lanes] */
    struct afj_inputs *lanes; /* [lanes] what each lane sends; change it, then load */
    double create_ms;         /* what creating the buffers took */
    char failure[640];        /* what failed, on which rank, and the library's sentence */
};

/* The four calls of an exchange. */
enum afj_step { AFJ_STEP_DISPATCH, AFJ_STEP_RECEIVE, AFJ_STEP_REPLY, AFJ_STEP_COLLECT };

/* Group, buffers, streams and arrays for `config`, with tokens and buckets of at most `room`.
 * `devices` as in afdep_group_create_local. Whatever happens, destroy the harness after it. */
afdep_status afj_harness_create(struct afj_harness *harness, const afdep_config *config,
                                const int32_t *devices, uint32_t room);
void afj_harness_destroy(struct afj_harness *harness);

/* Create the buffers of the same config once more beside the others, and destroy them: *ms gets
 * what a creation takes that finds everything. */
afdep_status afj_harness_create_again(struct afj_harness *harness, double *ms);

/* Copy the lane's inputs to the devices and poison all its outputs, in stream order. Fails if the
 * bucket is over the room: kernels may read as many rows as the bucket allows. */
afdep_status afj_harness_load(struct afj_harness *harness, uint32_t lane);

/* Make one call of one rank. With AFJ_EXPERT_SCALE, receive also keeps the counts and reply scales
 * first; with AFJ_EXPERT_ECHO nothing is between the calls: the received rows go back. */
afdep_status afj_harness_step(struct afj_harness *harness, uint32_t rank, uint32_t lane,
                              enum afj_step step, enum afj_expert expert);

/* The same on every rank of the step's role. */
afdep_status afj_harness_step_all(struct afj_harness *harness, uint32_t lane, enum afj_step step,
                                  enum afj_expert expert);

/* One exchange of a lane: all dispatches, receives, replies, collects. Returns without waiting. */
afdep_status afj_harness_exchange(struct afj_harness *harness, uint32_t lane,
                                  enum afj_expert expert);

/* Wait for every rank, then ask every buffer whether it failed. */
afdep_status afj_harness_synchronize(struct afj_harness *harness);

/* Record `round_trips` exchanges of every lane into one graph a rank. graphs[ranks] may be partly
 * filled after a failure; free them with afj_harness_drop_graphs. */
afdep_status afj_harness_capture(struct afj_harness *harness, uint32_t round_trips,
                                 enum afj_expert expert, afdep_graph **graphs);
afdep_status afj_harness_launch(struct afj_harness *harness, afdep_graph **graphs);
void afj_harness_drop_graphs(struct afj_harness *harness, afdep_graph **graphs);

/* Fetch what the last exchange of a lane left, and compare it. With AFJ_EXPERT_ECHO only the
 * collected rows: the counts were not kept. */
afdep_status afj_harness_check(struct afj_harness *harness, uint32_t lane, enum afj_expert expert,
                               struct afj_tally *tally);

/* Load, exchange, wait and check. */
afdep_status afj_harness_run(struct afj_harness *harness, uint32_t lane, struct afj_tally *tally);

#endif
