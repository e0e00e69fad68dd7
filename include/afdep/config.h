/* config.h: a deployment, and what the plan makes of it. Needs no device. */
#ifndef AFDEP_CONFIG_H
#define AFDEP_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include <afdep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits that every config meets (docs/design.md section 3). */
#define AFDEP_MAX_FFN_RANKS 64
#define AFDEP_MAX_RANKS 128
#define AFDEP_MAX_TOP_K 32
#define AFDEP_MAX_LANES 4
#define AFDEP_MAX_KERNELS 16

/** Where kernels run: an NVIDIA GPU, or the deterministic simulation on the CPU. */
typedef enum afdep_device_kind { AFDEP_DEVICE_CUDA = 1, AFDEP_DEVICE_SIM = 2 } afdep_device_kind;

/** What a dispatched row is. Replies and collected rows are BF16 always. */
typedef enum afdep_dtype {
    AFDEP_DTYPE_BF16 = 1,      /**< [hidden] BF16 */
    AFDEP_DTYPE_FP8 = 2,       /**< [hidden] E4M3, and [ceil(hidden / 128)] FP32 scales */
    AFDEP_DTYPE_FP8_UE8M0 = 3, /**< [hidden] E4M3, and [ceil(hidden / 128)] UE8M0 scales, four in a
                                  word, the first lowest: [ceil(hidden / 512)] uint32 */
    AFDEP_DTYPE_OPAQUE = 4     /**< [payload_bytes] bytes of any values */
} afdep_dtype;

/** What a rank is: attention ranks hold tokens, FFN ranks hold experts. Both is the two bits. */
typedef enum afdep_role {
    AFDEP_ROLE_ATTENTION = 1,
    AFDEP_ROLE_FFN = 2,
    AFDEP_ROLE_BOTH = 3
} afdep_role;

/** How an FFN rank gets its rows (docs/tensors-graphs-lifecycle.md, Receive layouts). */
typedef enum afdep_receive_layout {
    AFDEP_RECEIVE_COMPACT = 1,     /**< each row once, in (source, token) order */
    AFDEP_RECEIVE_VIEW = 2,        /**< rows stay in the inbox; a list says where each is */
    AFDEP_RECEIVE_EXPERT_MAJOR = 3 /**< a row for each expert of this rank that a token chose,
                                      grouped by expert */
} afdep_receive_layout;

/** What a rank does (docs/design.md section 2). A kernel belongs to one duty. */
typedef enum afdep_duty { AFDEP_DUTY_SOURCE = 1, AFDEP_DUTY_EXPERT = 2 } afdep_duty;

/**
 * One deployment. Equal on all ranks of a group. Ranks [0, F) are FFN ranks; attention rank a is
 * rank F - both_ranks + a. So with both_ranks 0 the attention ranks come after the FFN ranks, and
 * with both_ranks = A = F every rank has both roles. Start from AFDEP_CONFIG_INIT.
 */
typedef struct afdep_config {
    uint32_t struct_size;     /**< sizeof(afdep_config) */
    uint32_t device;          /**< afdep_device_kind */
    uint32_t attention_ranks; /**< A, at least 1; A + F at most 128 */
    uint32_t ffn_ranks;       /**< F, 1 to 64 */
    uint32_t hidden;          /**< elements a row: 64 to 16384, a multiple of 8; of 16 for FP8 */
    uint32_t dtype;           /**< afdep_dtype */
    uint32_t experts;         /**< physical experts of the whole layer, 1 to 65536. Without
                                 expert_ranks rank f holds a block of them; the first
                                 experts mod F ranks hold one more than the others */
    uint32_t top_k;           /**< experts a token: 1 to 32 */
    uint32_t capacity;   /**< tokens of a rank at once, from 1; A x ceil(capacity / 31) <= 28000 */
    uint32_t lanes;      /**< exchanges in flight: 1 to 4; 0: 1 */
    uint32_t ctas;       /**< most CTAs a kernel takes; 0: the plan's choice */
    uint32_t timeout_ms; /**< how long a kernel waits for a peer; 0: 30000 */
    uint32_t startup_timeout_ms; /**< the same for the first exchange of a lane; 0: 300000 */
    uint32_t reserved;           /**< 0 */
    const char *arch;    /**< GPU architecture such as "sm_90a"; NULL: the device's own, or sm_90a
                            where none is asked. Must be NULL on the sim device. Borrowed for the
                            call. */
    uint32_t both_ranks; /**< B, ranks with both roles: the last B FFN ranks are the first B
                            attention ranks; at most A and F; A + F - B ranks in all */
    uint32_t id_bits;    /**< width of expert ids, in and out: 32 or 64; 0: 32 */
    uint32_t payload_bytes; /**< of an opaque row: a multiple of 16, 16 to 32768; else 0 */
    uint32_t receive;       /**< afdep_receive_layout; 0: compact. A view cannot be opaque */
    uint32_t alignment;     /**< expert-major: each expert's rows begin at a multiple of it, 1 to
                               1024; 0: 1 */
    uint32_t counts_first;  /**< 1: ids travel ahead of rows, and receive is two calls */
    uint32_t host_counts;   /**< 1: receive writes its counts to host memory, too */
    uint32_t reply_weights; /**< 1: reply and collect carry top_k FP32 beside each row */
    uint32_t collect_view;  /**< 1: collected rows stay in the inbox; F is 1 */
    uint32_t reserved2;     /**< 0 */
    const uint32_t *expert_ranks; /**< [experts] FFN rank of each physical expert, replicas being
                                     experts of their own; NULL: blocks. Borrowed for the call */
} afdep_config;

#ifdef __cplusplus
#define AFDEP_CONFIG_INIT                                                                          \
    {                                                                                              \
        sizeof(afdep_config), AFDEP_DEVICE_CUDA, 1, 1, 2048, AFDEP_DTYPE_BF16, 128, 8, 2048, 1, 0, \
            0, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL                                      \
    }
#else
/** A config of 1A1F, hidden 2048, BF16, top-8 of 128 experts, 2048 tokens, one lane, on CUDA. */
#define AFDEP_CONFIG_INIT                                                                          \
    {                                                                                              \
        .struct_size = sizeof(afdep_config), .device = AFDEP_DEVICE_CUDA, .attention_ranks = 1,    \
        .ffn_ranks = 1, .hidden = 2048, .dtype = AFDEP_DTYPE_BF16, .experts = 128, .top_k = 8,     \
        .capacity = 2048, .lanes = 1                                                               \
    }
#endif

/** One kernel that a rank compiles. */
typedef struct afdep_plan_kernel {
    char entry[24];       /**< the template it is made from, for instance "dispatch" */
    char shape[8];        /**< "few" or "many": the batch sizes it is made for */
    uint32_t duty;        /**< afdep_duty */
    uint32_t warps;       /**< warps a CTA */
    uint32_t max_ctas;    /**< most CTAs a launch takes */
    uint32_t bucket_from; /**< smallest bucket that uses it */
    uint32_t bucket_to;   /**< largest bucket that uses it */
} afdep_plan_kernel;

/** What one rank of a deployment registers, allocates and compiles. */
typedef struct afdep_plan {
    uint32_t struct_size;     /**< sizeof(afdep_plan) */
    uint32_t rank;            /**< the rank asked for */
    uint32_t role;            /**< afdep_role */
    uint32_t kernel_count;    /**< entries used in `kernels` */
    uint64_t window_bytes;    /**< bytes registered with the peers, all lanes */
    uint64_t inbox_rows;      /**< row slots in the window, all lanes: A x capacity on an FFN rank,
                                 F x capacity on an attention rank, a lane; both on a rank of both */
    uint64_t inbox_row_bytes; /**< bytes of the largest of these slots */
    uint64_t state_bytes;     /**< private device bytes beside the window, all lanes */
    afdep_plan_kernel kernels[AFDEP_MAX_KERNELS];
    uint64_t receive_rows;  /**< rows that the arrays of receive need at a bucket of capacity */
    uint32_t local_experts; /**< experts of this rank */
    uint32_t ctas;          /**< most CTAs that any call of this rank takes, at a bucket of
                               capacity */
} afdep_plan;

/**
 * Compute what a rank needs: pure arithmetic, no device, no files.
 * @param config the deployment; borrowed for the call.
 * @param rank   0 to A + F - B - 1.
 * @param plan   out; set plan->struct_size before the call.
 * @retval AFDEP_ERROR_ARGUMENT a pointer is NULL, or struct_size or rank is out of range.
 * @retval AFDEP_ERROR_CONFIG   a field is out of range; afdep_last_error names it and its value.
 * @see docs/design.md section 5
 */
AFDEP_API afdep_status afdep_plan_query(const afdep_config *config, uint32_t rank,
                                        afdep_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
