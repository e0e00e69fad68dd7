/* words.h: the words of the protocol that host and kernels agree on (docs/design.md section 1). */
#ifndef AFJ_WIRE_WORDS_H
#define AFJ_WIRE_WORDS_H

/* A 32-bit word of an inbox that holds nothing yet. No payload word has this value. */
#define AFJ_EMPTY_WORD 0xFFFFFFFFu
/* What a sender stores for a payload word that would read as empty: two BF16 NaNs, an FP32 NaN. */
#define AFJ_CANONICAL_BF16X2 0x7FFF7FFFu
#define AFJ_CANONICAL_F32 0x7FFFFFFFu

/* Tokens a route word speaks for. Bit 31 stays 0, so a route word is never empty. */
#define AFJ_GROUP_TOKENS 31u
/* Route words that a bucket of `tokens` needs for one source. */
#define AFJ_GROUPS(tokens) (((tokens) + AFJ_GROUP_TOKENS - 1u) / AFJ_GROUP_TOKENS)

/* What `total` of a lane holds between reply and the next receive. */
#define AFJ_NO_TOTAL 0xFFFFFFFFu

/* Which wait gave up, in an error record. */
#define AFJ_PHASE_DISPATCH_ACK 1u
#define AFJ_PHASE_RECEIVE_ROUTE 2u
#define AFJ_PHASE_RECEIVE_ROW 3u
#define AFJ_PHASE_COLLECT_REPLY 4u

/* A token that an error record cannot name: the wait was for a word of many tokens. */
#define AFJ_NO_TOKEN 0xFFFFFFFFu

#endif
