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

/** The element type of rows on the wire. */
typedef enum afdep_dtype { AFDEP_DTYPE_BF16 = 1 } afdep_dtype;

/** What a rank is: attention ranks hold tokens, FFN ranks hold experts. */
typedef enum afdep_role { AFDEP_ROLE_ATTENTION = 1, AFDEP_ROLE_FFN = 2 } afdep_role;

/** What a rank does (docs/design.md section 2). A kernel belongs to one duty. */
typedef enum afdep_duty { AFDEP_DUTY_SOURCE = 1, AFDEP_DUTY_EXPERT = 2 } afdep_duty;

/**
 * One deployment. Equal on all ranks of a group. Ranks [0, ffn_ranks) are FFN ranks, the
 * attention_ranks after them attention ranks. Start from AFDEP_CONFIG_INIT.
 */
typedef struct afdep_config {
    uint32_t struct_size;        /**< sizeof(afdep_config) */
    uint32_t device;             /**< afdep_device_kind */
    uint32_t attention_ranks;    /**< A, at least 1; A + F at most 128 */
    uint32_t ffn_ranks;          /**< F, 1 to 64 */
    uint32_t hidden;             /**< elements a row: a multiple of 8, 64 to 16384 */
    uint32_t dtype;              /**< afdep_dtype */
    uint32_t experts;            /**< experts of the whole layer: a multiple of F, at most 65536 */
    uint32_t top_k;              /**< experts a token: 1 to 32 */
    uint32_t capacity;           /**< tokens of a rank at once, from 1; A x ceil(capacity / 31) <= 28000 */
    uint32_t lanes;              /**< exchanges in flight: 1 to 4; 0: 1 */
    uint32_t ctas;               /**< most CTAs a kernel takes; 0: the plan's choice */
    uint32_t timeout_ms;         /**< how long a kernel waits for a peer; 0: 30000 */
    uint32_t startup_timeout_ms; /**< the same for the first exchange of a lane; 0: 300000 */
    uint32_t reserved;           /**< 0 */
    const char *arch; /**< GPU architecture such as "sm_90a"; NULL: the device's own, or sm_90a
                         where none is asked. Must be NULL on the sim device. Borrowed for the
                         call. */
} afdep_config;

#ifdef __cplusplus
#define AFDEP_CONFIG_INIT                                                                          \
    {                                                                                              \
        sizeof(afdep_config), AFDEP_DEVICE_CUDA, 1, 1, 2048, AFDEP_DTYPE_BF16, 128, 8, 2048, 1, 0, \
            0, 0, 0, NULL                                                                          \
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
                                 F x capacity on an attention rank, a lane */
    uint64_t inbox_row_bytes; /**< bytes of one of these slots */
    uint64_t state_bytes;     /**< private device bytes beside the window, all lanes */
    afdep_plan_kernel kernels[AFDEP_MAX_KERNELS];
} afdep_plan;

/**
 * Compute what a rank needs: pure arithmetic, no device, no files.
 * @param config the deployment; borrowed for the call.
 * @param rank   0 to A + F - 1.
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
