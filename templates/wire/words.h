/* words.h: the words of the protocol that host and kernels agree on (docs/design.md section 1). */
#ifndef AFJ_WIRE_WORDS_H
#define AFJ_WIRE_WORDS_H

/* A 32-bit word of an inbox that holds nothing yet. No payload word has this value. */
#define AFJ_EMPTY_WORD 0xFFFFFFFFu
/* What a sender stores for a payload word that would read as empty: two BF16 NaNs, four E4M3 NaNs,
 * an FP32 NaN. */
#define AFJ_CANONICAL_BF16X2 0x7FFF7FFFu
#define AFJ_CANONICAL_E4M3X4 0x7F7F7F7Fu
#define AFJ_CANONICAL_F32 0x7FFFFFFFu

/* Where such a word is a legal value it travels as 0, and a bit of an escape word says so. Bit 31
 * of an escape word stays 0, so it is never empty. Each block of 32 vectors of an opaque row has
 * five: word w of vector v is bit v of escape w, but for vector 31, whose word w is bit w of the
 * fifth. Packed scales, at most 32 words, have two: word i is bit i of the first, word 31 bit 0 of
 * the second. */
#define AFJ_BLOCK_BYTES 512u
#define AFJ_BLOCK_ESCAPES 5u
#define AFJ_SCALE_ESCAPES 2u

/* Tokens a route word speaks for. Bit 31 stays 0, so a route word is never empty. */
#define AFJ_GROUP_TOKENS 31u
/* Route words that a bucket of `tokens` needs for one source. */
#define AFJ_GROUPS(tokens) (((tokens) + AFJ_GROUP_TOKENS - 1u) / AFJ_GROUP_TOKENS)

/* What `total` of a lane holds between reply and the next receive. */
#define AFJ_NO_TOTAL 0xFFFFFFFFu

/* A receipt begins with the number of its tokens. */
#define AFJ_RECEIPT_HEADER_BYTES 16u

/* What dispatch counts where routes are checked, in this order: words of `faults`. The last word is
 * not a count: non-zero once a first fault is in the route record. */
#define AFJ_FAULT_OUT_OF_RANGE 0u
#define AFJ_FAULT_REPEATED 1u
#define AFJ_FAULT_NAN_WEIGHT 2u
#define AFJ_FAULT_OVER_BUCKET 3u
#define AFJ_FAULT_KINDS 4u
#define AFJ_FAULT_WORDS 5u

/* Which wait gave up, in an error record. */
#define AFJ_PHASE_DISPATCH_ACK 1u
#define AFJ_PHASE_RECEIVE_ROUTE 2u
#define AFJ_PHASE_RECEIVE_ROW 3u
#define AFJ_PHASE_COLLECT_REPLY 4u

/* A token that an error record cannot name: the wait was for a word of many tokens. */
#define AFJ_NO_TOKEN 0xFFFFFFFFu

#endif
