/* oracle.h: what an exchange must give, computed on the CPU, and what it gave instead. */
#ifndef AFJ_BENCH_ORACLE_H
#define AFJ_BENCH_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/inputs.h"

/* Every output is filled with this byte before an exchange; it stays where nothing is written. */
#define AFJ_POISON 0xA5

/* What the FFN ranks send back for a received row. */
enum afj_expert {
    AFJ_EXPERT_SCALE, /* afdep_scale: the row times the sum of weight x scale(expert) */
    AFJ_EXPERT_ECHO   /* the row as received */
};

/* What a receive left, in host memory, poison and all. NULL where an array was not given. */
struct afj_received {
    uint32_t layout, alignment; /* afdep_receive_layout */
    uint32_t capacity;          /* of the buffer: slots of a source */
    size_t room;                /* rows that the arrays hold, at least one more than can come */
    size_t padded;              /* expert-major: rows whose ids and weights are always written */
    const uint8_t *rows;        /* a view: the whole inbox, [A x capacity] */
    const void *ids;            /* of the inputs' width */
    const uint32_t *scales, *weights, *sources, *tokens, *slots;
    const uint32_t *counts;  /* total, then [A] rows a source, then routes a local expert */
    const uint32_t *offsets; /* expert-major: [local experts + 1] */
    const uint32_t *host;    /* the counts once more, as host memory had them */
};

/* How the rows were weighted on their way back. */
struct afj_way_back {
    enum afj_expert expert;
    bool grouped;       /* a row a choice, summed by reply */
    bool apply_weights; /* reply multiplied by the weights, not the expert */
};

/* Sums over checks. Rows are those received and those collected. */
struct afj_tally {
    uint64_t expected, checked, wrong;
    double worst_error; /* of collected elements against FP64, relative to the sum of magnitudes */
    char first[256];    /* the first thing that was wrong */
};

/* Compare all that FFN rank `ffn` received with what the inputs say, bit by bit. */
void afj_oracle_check_received(const struct afj_inputs *inputs, uint32_t ffn,
                               const struct afj_received *received, struct afj_tally *tally);

/* Compare `room` rows that attention rank `source` collected, poison behind the last token and all.
 * NaNs equal each other. False without memory. */
bool afj_oracle_check_collected(const struct afj_inputs *inputs, uint32_t source,
                                const struct afj_way_back *way, const uint16_t *rows, size_t room,
                                struct afj_tally *tally);

/* The same of weights [room][top_k], where every FFN rank sent back those that it received;
 * grouped: those of afj_oracle_reply_weight. */
void afj_oracle_check_weights(const struct afj_inputs *inputs, uint32_t source, bool grouped,
                              const uint32_t *weights, size_t room, struct afj_tally *tally);

/* Weight i of the array [rows][top_k] that an FFN rank sends back in checks of grouped rows. */
float afj_oracle_reply_weight(size_t i);

/* The largest worst_error of a right exchange: three roundings to BF16, of an expert, of a reply
 * that sums, and of collect, and some to FP32. */
#define AFJ_ORACLE_ERROR_LIMIT 0x1.8p-7

/* Nothing wrong, nothing left out, no error over the limit. */
bool afj_tally_is_clean(const struct afj_tally *tally);

#endif
