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

/* Arrays of one rank and lane on its device. An attention rank has what it sends and where it
 * collects (OUT); an FFN rank what it receives, and what it replies with in checks (OUT). */
enum afj_array {
    AFJ_ARRAY_ROWS,
    AFJ_ARRAY_SCALES,
    AFJ_ARRAY_IDS,
    AFJ_ARRAY_WEIGHTS,
    AFJ_ARRAY_OUT,
    AFJ_ARRAY_OUT_WEIGHTS, /* attention: collected weights; FFN: what goes back beside the rows,
                              where it is not what came */
    AFJ_ARRAY_ONES,        /* FFN: weights that change nothing */
    AFJ_ARRAY_LIVE,        /* attention: the live token count */
    AFJ_ARRAY_RECEIPT,     /* attention */
    AFJ_ARRAY_SOURCES,     /* FFN, like all below */
    AFJ_ARRAY_TOKENS,
    AFJ_ARRAY_SLOTS,
    AFJ_ARRAY_VIEW,   /* the inbox of a view as it was before the reply */
    AFJ_ARRAY_COUNTS, /* the library's counts, offsets and host counts, one after another */
    AFJ_ARRAY_COUNT
};

struct afj_side {
    void *array[AFJ_ARRAY_COUNT]; /* NULL: not used by this config */
    afdep_counts where;           /* FFN: the library's counts */
    void *fresh;                  /* attention: what collect allocated last */
};

/* What a dispatch does with its receipt. */
enum afj_receipt_use { AFJ_RECEIPT_NONE, AFJ_RECEIPT_KEEP, AFJ_RECEIPT_REUSE };

struct afj_harness {
    afdep_config config;
    uint32_t ranks, room; /* room: most tokens of an attention rank, and the largest bucket */
    /* How calls are made; may be set any time. */
    bool without_origins; /* give receive no arrays for sources and tokens */
    bool phase_by_phase;  /* wait after each step of all ranks, as a tool that serialises launches
                             does */
    bool live_tokens;     /* token counts in device memory */
    bool fresh;           /* collect into memory that the call allocates */
    bool streams_apart;   /* a stream a lane instead of one for all */
    bool apply_weights;   /* expert-major: the reply does, not the expert */
    uint32_t ctas;        /* of each call; 0: the plan's */
    enum afj_receipt_use receipt;
    afdep_group *group;
    afdep_buffer **buffers;   /* [ranks] */
    afdep_stream *streams;    /* [ranks] */
    afdep_stream *more;       /* [ranks][lanes - 1] of the other lanes, where they are apart */
    struct afj_side *sources; /* [A][lanes] */
    struct afj_side *experts; /* [F][lanes] */
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

/* The rank of attention rank `source`. */
uint32_t afj_harness_attention(const struct afj_harness *harness, uint32_t source);

/* Make one call of one rank. With AFJ_EXPERT_SCALE, receive also keeps the counts and reply scales
 * first; with AFJ_EXPERT_ECHO nothing is between the calls: received rows of BF16 go back, and
 * others are answered with whatever OUT holds. */
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
