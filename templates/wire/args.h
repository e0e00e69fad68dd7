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

/* dispatch: rows and route words out. */
struct afj_dispatch_args {
    struct afj_call call;
    uint64_t rows;         /* [tokens][kHidden] BF16, caller's */
    uint64_t ids;          /* [tokens][kTopK] int32, caller's */
    uint64_t weights;      /* [tokens][kTopK] float, caller's */
    uint64_t sets;         /* [capacity] set of FFN ranks of each token, written for collect */
    uint64_t issued;       /* uint32_t: exchange number, written for collect's error record */
    uint64_t acks;         /* [kFfnRanks] own window: last exchange each FFN rank is done with */
    uint64_t inbox_offset; /* in a peer's window: slot 0 of this source */
    uint64_t route_offset; /* in a peer's window: route word 0 of this source */
    uint32_t tokens, reserved;
    uint64_t peers[AFJ_FFN_PEERS]; /* window of each FFN rank */
};

/* collect: replies in, summed. */
struct afj_collect_args {
    struct afj_call call;
    uint64_t sets;   /* [capacity] as dispatch wrote them */
    uint64_t issued; /* uint32_t: as dispatch wrote it */
    uint64_t inbox;  /* own window: [kFfnRanks][capacity] reply slots */
    uint64_t out;    /* [tokens][kHidden] BF16, caller's */
    uint32_t tokens, reserved;
};

/* receive: rows in, compacted in (source, token) order. */
struct afj_receive_args {
    struct afj_call call;
    uint64_t inbox;   /* own window: [kAttentionRanks][capacity] slots */
    uint64_t routes;  /* own window: [kAttentionRanks][groups of capacity] route words */
    uint64_t rows;    /* [n][kHidden] BF16, caller's */
    uint64_t ids;     /* [n][kTopK] int32, caller's */
    uint64_t weights; /* [n][kTopK] float, caller's */
    uint64_t sources; /* [n] uint32_t, caller's, or 0 */
    uint64_t tokens;  /* [n] uint32_t, caller's, or 0 */
    uint64_t origins; /* [kAttentionRanks x capacity] {source, token} of each row, for reply */
    uint64_t count;   /* uint32_t: n, for reply */
    uint64_t total;   /* uint32_t: n, for the caller; 0 if this exchange fails */
    uint64_t rows_per_source; /* [kAttentionRanks] uint32_t */
    uint64_t rows_per_expert; /* [kExpertsPerRank] uint32_t, zero before */
};

/* reply: one row back for each row received, then the acks. */
struct afj_reply_args {
    struct afj_call call;
    uint64_t rows;                       /* [n][kHidden] BF16, caller's */
    uint64_t origins;                    /* as receive wrote them */
    uint64_t count;                      /* as receive wrote it */
    uint64_t routes;                     /* own window: route words to re-arm */
    uint64_t total;                      /* reset to AFJ_NO_TOTAL */
    uint64_t rows_per_expert;            /* cleared */
    uint64_t inbox_offset;               /* in a peer's window: reply slot 0 of this FFN rank */
    uint64_t ack_offset;                 /* in a peer's window: ack word of this FFN rank */
    uint64_t peers[AFJ_ATTENTION_PEERS]; /* window of each attention rank */
};

/* scale: the reference expert step. */
struct afj_scale_args {
    struct afj_call call;
    uint64_t rows, ids, weights; /* as receive wrote them */
    uint64_t out;                /* [n][kHidden] BF16; may be `rows` */
    uint64_t count;              /* as receive wrote it */
};

#endif
