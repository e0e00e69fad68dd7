/* args.h: the one argument of each kernel, a struct by value: what depends on rank, capacity,
 * bucket or token count. Included by host C, by CUDA and by the simulation; addresses are 64-bit
 * numbers in all of them. A struct ends with its table of peers, as long as the constants say; the
 * host declares the longest. */
#ifndef AFJ_WIRE_ARGS_H
#define AFJ_WIRE_ARGS_H

#ifdef AFJ_TEMPLATE
#include "rtc/stdint.h"
#else
#include <stdint.h>
#endif

#ifndef AFJ_ATTENTION_PEERS
#define AFJ_ATTENTION_PEERS 127
#define AFJ_FFN_PEERS 64
#endif

/* What a kernel that gives up leaves for the host, in host memory. `state` is stored last. */
struct afj_error_record {
    uint32_t state; /* 0: nothing happened; 1: the other fields are valid */
    uint32_t rank, phase, lane, exchange;
    uint32_t peer;  /* rank in the group */
    uint32_t token; /* or AFJ_NO_TOKEN */
    uint32_t waited_ms;
};

/* The first bad route, where routes are checked, in host memory behind the error record. */
struct afj_route_record {
    uint32_t state; /* stored last; 0: none */
    uint32_t kind;  /* AFJ_FAULT_... */
    uint32_t token, choice, expert;
};

/* What every kernel is told. */
struct afj_call {
    uint64_t dead;    /* uint32_t [2], device: sticky, non-zero once a kernel of this buffer gave up
                         and its record is written; then who writes the record */
    uint64_t record;  /* struct afj_error_record, host */
    uint64_t counter; /* uint32_t, device: exchange number of this duty and lane, from 0 */
    uint32_t timeout_ms, startup_timeout_ms; /* the second for exchange 0 */
    uint32_t rank, lane;
    uint32_t bucket;   /* token ceiling of the launch, equal on all ranks */
    uint32_t capacity; /* slots an inbox has for each peer */
};

/* rearm: clear what the last collect left in place, before dispatch. */
struct afj_rearm_args {
    struct afj_call call;
    uint64_t viewed; /* uint32_t: rows that collect left */
    uint64_t inbox;  /* own window: [capacity] reply slots */
};

/* dispatch: rows and route words out. An address that ends in "offset" is within the lane of a
 * peer's window. */
struct afj_dispatch_args {
    struct afj_call call;
    uint64_t rows;         /* [tokens][kRowVecs] vectors, caller's */
    uint64_t scales;       /* [tokens][kScaleWords] words, caller's */
    uint64_t ids;          /* [tokens][kTopK] ids of kIdWords words, caller's; 0: the receipt's */
    uint64_t weights;      /* [tokens][kTopK] float, caller's; 0: the receipt's */
    uint64_t live;         /* uint32_t, caller's: tokens; 0: `tokens` below */
    uint64_t receipt;      /* header, then [tokens][2 kTopK] ids and weights as sent; 0: none */
    uint64_t owners;       /* [kExperts] uint32_t: rank << 16 | local expert, where mapped */
    uint64_t sets;         /* [capacity] set of FFN ranks of each token, written for collect */
    uint64_t issued;       /* uint32_t [2]: exchange number, tokens; written for collect */
    uint64_t acks;         /* [kFfnRanks] own window: last exchange each FFN rank is done with */
    uint64_t faults;       /* uint32_t [AFJ_FAULT_WORDS] */
    uint64_t first_fault;  /* struct afj_route_record, host */
    uint64_t inbox_offset; /* slot 0 of this source */
    uint64_t meta_offset;  /* meta words of slot 0 of this source */
    uint64_t route_offset; /* route word 0 of this source */
    uint32_t tokens, reserved;
    uint64_t peers[AFJ_FFN_PEERS]; /* the lane in the window of each FFN rank */
};

/* collect: replies in, summed. */
struct afj_collect_args {
    struct afj_call call;
    uint64_t sets;    /* [capacity] as dispatch wrote them */
    uint64_t issued;  /* uint32_t [2]: as dispatch wrote them */
    uint64_t inbox;   /* own window: [kFfnRanks][capacity] reply slots */
    uint64_t beside;  /* own window: [kFfnRanks][capacity][kTopK] weights of replies */
    uint64_t out;     /* [tokens][kRowVecs] BF16, caller's; 0: rows stay where they are */
    uint64_t weights; /* [tokens][kTopK] float, caller's */
    uint64_t viewed;  /* uint32_t: rows left in place, for rearm */
    uint32_t tokens;
    uint32_t live; /* 1: as many tokens as dispatch says in `issued` */
};

/* receive, and its parts counts, arrange and place: rows in, in (source, token) order. */
struct afj_receive_args {
    struct afj_call call;
    uint64_t inbox;   /* own window: [kAttentionRanks][capacity] slots */
    uint64_t metas;   /* own window: [kAttentionRanks][capacity] meta words of the slots */
    uint64_t routes;  /* own window: [kAttentionRanks][groups of capacity] route words */
    uint64_t owners;  /* as dispatch */
    uint64_t rows;    /* [n][kRowVecs] vectors, caller's */
    uint64_t scales;  /* [n][kScaleWords] words, caller's */
    uint64_t ids;     /* [n][kTopK] ids of kIdWords words, caller's, or 0; expert-major [m] */
    uint64_t weights; /* [n][kTopK] float, caller's, or 0; expert-major [m] */
    uint64_t sources; /* [n] uint32_t, caller's, or 0 */
    uint64_t tokens;  /* [n] uint32_t, caller's, or 0 */
    uint64_t slots;   /* [n] uint32_t, caller's: where each row of a view lies */
    uint64_t origins; /* [kAttentionRanks x capacity] {source, token} of each row, for reply */
    uint64_t count;   /* uint32_t: n, for reply */
    uint64_t total;   /* uint32_t: n, for the caller; 0 if this exchange fails */
    uint64_t rows_per_source; /* [kAttentionRanks] uint32_t */
    uint64_t rows_per_expert; /* [local_experts] uint32_t, zero before */
    uint64_t expert_offsets;  /* [local_experts + 1] uint32_t: first row of each group */
    uint64_t choices;         /* [n][kTopK] uint32_t: local expert of each choice; -1: none */
    uint64_t hits;            /* [n][kTopK] uint32_t: row of each choice; -1: none */
    uint64_t hit_weights;     /* [n][kTopK] float */
    uint64_t host_counts;     /* uint32_t [1 + kAttentionRanks + local_experts], host */
    uint64_t ended;           /* uint32_t: warps that are done, zero before */
    uint32_t first_expert;    /* of this rank, where ranks hold blocks */
    uint32_t local_experts;
    uint32_t alignment;       /* of the groups */
    uint32_t receive_rows;    /* m: rows that the caller's arrays have, expert-major */
};

/* reply: one row back for each row received, then the acks. */
struct afj_reply_args {
    struct afj_call call;
    uint64_t rows;                  /* [n][kRowVecs] BF16, caller's; expert-major [m] */
    uint64_t weights;               /* [n][kTopK] float, caller's: go back with the rows */
    uint64_t origins;               /* as receive wrote them */
    uint64_t count;                 /* as receive wrote it */
    uint64_t hits, hit_weights;     /* as receive wrote them */
    uint64_t inbox;                 /* own window: slots of a view, to re-arm */
    uint64_t routes;                /* own window: route words to re-arm */
    uint64_t total;                 /* reset to AFJ_NO_TOTAL */
    uint64_t rows_per_expert;       /* cleared */
    uint64_t host_counts;           /* its total is reset */
    uint64_t ended;                 /* cleared */
    uint64_t inbox_offset;          /* reply slot 0 of this FFN rank */
    uint64_t reply_weights_offset;  /* the weights beside it */
    uint64_t ack_offset;            /* ack word of this FFN rank */
    uint32_t local_experts;
    uint32_t apply_weights;              /* expert-major: multiply rows by hit_weights */
    uint64_t peers[AFJ_ATTENTION_PEERS]; /* the lane in the window of each attention rank */
};

/* scale: the reference expert step. */
struct afj_scale_args {
    struct afj_call call;
    uint64_t rows, ids, weights, scales; /* as receive wrote them */
    uint64_t out;                        /* [n][kRowVecs] BF16; may be `rows` */
    uint64_t count;                      /* as receive wrote it */
    uint64_t globals;                    /* [local_experts] uint32_t: expert of each local one */
    uint64_t origins;                    /* as receive wrote them, for a view */
    uint64_t expert_offsets;             /* as receive wrote them */
    uint32_t local_experts, reserved;
};

#endif
