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

/* What a receive left, in host memory, poison and all. */
struct afj_received {
    size_t room; /* rows that the arrays hold, at least one more than can come */
    const uint16_t *rows;
    const int32_t *ids;
    const uint32_t *weights, *sources, *tokens; /* sources and tokens may be NULL */
    const uint32_t *counts; /* total, then [A] rows a source, then routes a local expert */
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
                                enum afj_expert expert, const uint16_t *rows, size_t room,
                                struct afj_tally *tally);

/* The largest worst_error of a right exchange: two roundings to BF16 and some to FP32. */
#define AFJ_ORACLE_ERROR_LIMIT 0x1p-7

/* Nothing wrong, nothing left out, no error over the limit. */
bool afj_tally_is_clean(const struct afj_tally *tally);

#endif
