/* side.h: what a rank has in a lane for each of its roles: which arrays, how large, on which
 * stream. For the parts of the harness only. */
#ifndef AFJ_BENCH_SIDE_H
#define AFJ_BENCH_SIDE_H

#include "bench/harness.h"
#include "bench/try.h"

/* Keep what failed with the library's sentence; returns the status. */
afdep_status afj_harness_keep_failure(struct afj_harness *harness, afdep_status status,
                                      const char *what, uint32_t rank);
afdep_status afj_harness_refuse_memory(struct afj_harness *harness);

#define TRY_ON(harness, rank, what, call)                                                          \
    do {                                                                                           \
        afdep_status try_status_ = afj_harness_keep_failure(harness, call, what, rank);            \
        if (try_status_ != AFDEP_OK)                                                               \
            return try_status_;                                                                    \
    } while (0)

/* The sides of a rank and lane: one for each role. */
struct afj_side_ref {
    struct afj_side *side;
    bool ffn;
};

bool afj_side_is_ffn(const struct afj_harness *harness, uint32_t rank);
bool afj_side_is_attention(const struct afj_harness *harness, uint32_t rank);
struct afj_side *afj_side_of_source(const struct afj_harness *harness, uint32_t rank,
                                    uint32_t lane);
struct afj_side *afj_side_of_expert(const struct afj_harness *harness, uint32_t rank,
                                    uint32_t lane);
bool afj_side_is_grouped(const struct afj_harness *harness);
bool afj_side_is_view(const struct afj_harness *harness);
uint32_t afj_side_alignment(const struct afj_harness *harness);
uint32_t afj_side_local_experts(const struct afj_harness *harness, uint32_t rank);
/* The stream that a rank's calls on a lane go into. */
afdep_stream afj_side_stream(const struct afj_harness *harness, uint32_t rank, uint32_t lane);
/* Rows that receive may write on an FFN rank for a bucket. */
size_t afj_side_rows_of_bucket(const struct afj_harness *harness, uint32_t rank, uint32_t bucket);
/* Rows of an FFN rank's arrays: one more than can be used, so that writing too far shows. */
size_t afj_side_expert_rows(const struct afj_harness *harness, uint32_t rank);
/* Bytes of a reply, and words that the counts of a rank take. */
size_t afj_side_bf16_bytes(const struct afj_harness *harness);
size_t afj_side_count_words(const struct afj_harness *harness, uint32_t rank);
size_t afj_side_offset_words(const struct afj_harness *harness, uint32_t rank);
/* Whether the exchange writes an array, so that it is poisoned before and fetched after. */
bool afj_side_is_output(bool ffn, enum afj_array array);
/* At most two: one for each role. */
uint32_t afj_side_list(const struct afj_harness *harness, uint32_t rank, uint32_t lane,
                       struct afj_side_ref sides[2]);
/* 0: this config has no such array. */
size_t afj_side_bytes(const struct afj_harness *harness, uint32_t rank, bool ffn,
                      enum afj_array array);
/* Whether received rows can go back as they are. */
bool afj_side_echoes(const struct afj_harness *harness);

#endif
