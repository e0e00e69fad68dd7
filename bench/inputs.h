/* inputs.h: what the attention ranks send in one exchange, drawn from a seed, in host memory. */
#ifndef AFJ_BENCH_INPUTS_H
#define AFJ_BENCH_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <afdep/config.h>

#include "bench/dice.h"

/* How tokens choose experts. The first four are for measuring, the others for tests. */
enum afj_routing {
    AFJ_ROUTING_RANDOM, /* top_k distinct experts, uniform */
    AFJ_ROUTING_SKEW,   /* expert e with weight 1/(e + 1), without replacement */
    AFJ_ROUTING_ONE,    /* every token the same experts of FFN rank 0 */
    AFJ_ROUTING_KHOT,   /* 8 hot experts take half of the choices */
    AFJ_ROUTING_EMPTY,  /* no expert at all */
    AFJ_ROUTING_FULL,   /* spread over as many FFN ranks as top_k reaches */
    AFJ_ROUTING_MIXED,  /* ids out of range, repeated experts, rows and weights of any bits */
    AFJ_ROUTING_AVOID,  /* source a never comes to FFN rank a mod F */
    AFJ_ROUTING_COUNT
};

/* "random"; NULL for no routing. */
const char *afj_routing_name(enum afj_routing routing);

struct afj_inputs {
    uint32_t attention_ranks, ffn_ranks, hidden, experts, top_k;
    uint32_t dtype, id_bits; /* as in the config */
    uint32_t row_bytes;      /* of a row as dispatched */
    uint32_t scale_words;    /* 32-bit words of its scales */
    uint32_t room;           /* tokens that the arrays of a rank hold */
    uint32_t bucket;   /* given to every call: at least the most tokens of a rank; 0: capacity */
    uint32_t *tokens;  /* [A] tokens of each rank, 0 to room */
    uint8_t *rows;     /* [A][room][row_bytes] */
    uint32_t *scales;  /* [A][room][scale_words] */
    int64_t *ids;      /* [A][room][top_k] */
    uint32_t *weights; /* [A][room][top_k] FP32 bits */
    uint32_t *owners;  /* [experts] FFN rank of each */
    uint32_t *locals;  /* [experts] its number among the experts of that rank */
    uint32_t *local_experts; /* [F] */
};

/* Room for `room` tokens a rank. False without memory. Every rank starts with no tokens. */
bool afj_inputs_init(struct afj_inputs *inputs, const afdep_config *config, uint32_t room);
void afj_inputs_finish(struct afj_inputs *inputs);

/* Give every rank `tokens` tokens and a bucket to match. */
void afj_inputs_set_tokens(struct afj_inputs *inputs, uint32_t tokens);

/* Draw rows, scales, ids and weights for the tokens that the ranks have now. */
void afj_inputs_draw(struct afj_inputs *inputs, enum afj_routing routing, struct afj_dice *dice);
/* Draw rows and scales only. */
void afj_inputs_draw_rows(struct afj_inputs *inputs, struct afj_dice *dice);

const uint8_t *afj_inputs_row(const struct afj_inputs *inputs, uint32_t source, uint32_t token);
const uint32_t *afj_inputs_scales(const struct afj_inputs *inputs, uint32_t source, uint32_t token);
const int64_t *afj_inputs_ids(const struct afj_inputs *inputs, uint32_t source, uint32_t token);
const uint32_t *afj_inputs_weights(const struct afj_inputs *inputs, uint32_t source,
                                   uint32_t token);

/* Whether an id is an expert of this FFN rank. */
bool afj_inputs_is_on(const struct afj_inputs *inputs, int64_t id, uint32_t ffn);
/* Whether a token comes to this FFN rank. */
bool afj_inputs_goes_to(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                        uint32_t ffn);
/* Rows that all FFN ranks receive together. */
uint64_t afj_inputs_rows_sent(const struct afj_inputs *inputs);

#endif
