/* buffer.h: groups of ranks, their buffers, and the exchange: dispatch, receive, reply, collect. */
#ifndef AFDEP_BUFFER_H
#define AFDEP_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include <afdep/config.h>
#include <afdep/device.h>
#include <afdep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The ranks that this process holds, their devices, and the way to the others. */
typedef struct afdep_group afdep_group;

/** One rank's end of the exchange: its inboxes, its kernels, its counters. */
typedef struct afdep_buffer afdep_buffer;

/**
 * Make a group of `ranks` ranks that all live in this process.
 * On CUDA, several ranks may share a GPU; peer access between the GPUs is switched on.
 * @param kind    CUDA or sim.
 * @param ranks   A + F.
 * @param devices [ranks], the device ordinal of each rank, borrowed for the call; NULL: the ranks
 *                in order, in equal blocks, over the devices there are; on sim a device a rank.
 * @param group   out; destroy with afdep_group_destroy.
 * @retval AFDEP_ERROR_DRIVER_MISSING there is no CUDA driver on this machine.
 * @retval AFDEP_ERROR_DEVICE         an ordinal does not exist, or a GPU cannot reach another.
 * @retval AFDEP_ERROR_RESOURCES      more ranks on one GPU than it has hardware queues
 *                                    (CUDA_DEVICE_MAX_CONNECTIONS, 8 unless set).
 * @see docs/design.md section 10
 */
AFDEP_API afdep_status afdep_group_create_local(afdep_device_kind kind, uint32_t ranks,
                                                const int32_t *devices, afdep_group **group);

/** Destroy a group whose buffers are destroyed. NULL is fine. */
AFDEP_API void afdep_group_destroy(afdep_group *group);

/** The device of a rank; owned by the group. NULL if the rank is not of this process. */
AFDEP_API afdep_device *afdep_group_device(const afdep_group *group, uint32_t rank);

/** How many ranks the group has. */
AFDEP_API uint32_t afdep_group_ranks(const afdep_group *group);

/**
 * Create the buffers of all ranks of this process: plan, compile or find the kernels, load and
 * resolve them, allocate and clear the windows, exchange addresses. Must not be called while a
 * kernel of this library runs on the same devices, nor inside a capture.
 * Costs milliseconds when the cache has the kernels; otherwise what compiling them takes.
 * @param group   its ranks must be A + F of the config.
 * @param config  borrowed for the call.
 * @param buffers [afdep_group_ranks], out; destroy each with afdep_buffer_destroy.
 * @retval AFDEP_ERROR_CONFIG           a field is out of range, or does not fit the group.
 * @retval AFDEP_ERROR_RESOURCES        the kernels of one GPU's ranks do not fit on it at once.
 * @retval AFDEP_ERROR_COMPILER_MISSING a kernel is not in the cache and there is no compiler.
 * @retval AFDEP_ERROR_COMPILE          a kernel does not compile.
 * @see docs/design.md section 5
 */
AFDEP_API afdep_status afdep_buffer_create(afdep_group *group, const afdep_config *config,
                                           afdep_buffer **buffers);

/**
 * Leave the exchange: wait for this rank's streams, then refuse further calls. Collective: every
 * rank closes. A rank whose peers are gone goes straight to afdep_buffer_destroy.
 * @retval AFDEP_ERROR_TIMEOUT an exchange had failed; the buffer is closed all the same.
 */
AFDEP_API afdep_status afdep_buffer_close(afdep_buffer *buffer);

/** Free a buffer. Local, always succeeds, NULL is fine. No stream may still run its kernels. */
AFDEP_API void afdep_buffer_destroy(afdep_buffer *buffer);

/**
 * Ask whether an exchange of this buffer has failed, without a launch or a wait.
 * @retval AFDEP_OK            nothing failed so far.
 * @retval AFDEP_ERROR_TIMEOUT a kernel gave up; afdep_last_error names who waited for whom.
 * @see docs/design.md section 7
 */
AFDEP_API afdep_status afdep_buffer_check(const afdep_buffer *buffer);

/**
 * The plan that a buffer was made by: as afdep_plan_query, with the CTAs that fit on its device.
 * @param plan out; set plan->struct_size before the call.
 */
AFDEP_API afdep_status afdep_buffer_plan(const afdep_buffer *buffer, afdep_plan *plan);

/** Counts of the exchange a lane received last: device pointers, fixed for the buffer's life. */
typedef struct afdep_counts {
    uint32_t struct_size;
    uint32_t reserved;
    const uint32_t *total;           /**< [1] rows received; 0 after a failed exchange */
    const uint32_t *rows_per_source; /**< [A] rows from each attention rank */
    const uint32_t *rows_per_expert; /**< [experts / F] routes to each expert of this rank: one row
                                        counts once for each of its ids here */
} afdep_counts;

/**
 * Where a lane's counts lie on an FFN rank. They are valid from receive until the lane's reply,
 * in stream order; reply resets them, and
 * `total` reads 0xFFFFFFFF between a reply and the next receive: do not loop over it there.
 * @param counts out; set struct_size before the call.
 * @retval AFDEP_ERROR_ROLE the rank is an attention rank.
 */
AFDEP_API afdep_status afdep_buffer_counts(const afdep_buffer *buffer, uint32_t lane,
                                           afdep_counts *counts);

/** What dispatch sends. Device arrays, borrowed until the stream has run dispatch. */
typedef struct afdep_dispatch_args {
    uint32_t struct_size;
    uint32_t lane;        /**< 0 to lanes - 1 */
    uint32_t tokens;      /**< T, 0 to bucket */
    uint32_t bucket;      /**< the launch's token ceiling, equal on all ranks; 0: capacity */
    const void *rows;     /**< [T][hidden] BF16, aligned to 16 bytes; may be NULL if T is 0 */
    const int32_t *ids;   /**< [T][top_k] expert ids; outside [0, experts): no expert */
    const float *weights; /**< [T][top_k] */
} afdep_dispatch_args;

/** What receive writes. Device arrays of the caller with room for N = A x bucket rows. */
typedef struct afdep_receive_args {
    uint32_t struct_size;
    uint32_t lane;
    uint32_t bucket; /**< as in dispatch */
    uint32_t reserved;
    void *rows;        /**< [N][hidden] BF16, aligned to 16 bytes */
    int32_t *ids;      /**< [N][top_k] experts of this rank from 0; -1 elsewhere */
    float *weights;    /**< [N][top_k] */
    uint32_t *sources; /**< [N] attention rank of each row, 0 to A - 1; may be NULL */
    uint32_t *tokens;  /**< [N] token of each row in its source; may be NULL */
} afdep_receive_args;

/** What reply sends back: one row for each row received, in the same order, weights applied. */
typedef struct afdep_reply_args {
    uint32_t struct_size;
    uint32_t lane;
    const void *rows; /**< [N][hidden] BF16, aligned to 16 bytes, room for all N rows: kernels may
                         read, not use, what lies past the last; borrowed until reply has run */
} afdep_reply_args;

/** Where collect puts the sums. */
typedef struct afdep_collect_args {
    uint32_t struct_size;
    uint32_t lane;
    void *rows; /**< [T][hidden] BF16, aligned to 16 bytes; T as dispatched; NULL if T is 0 */
} afdep_collect_args;

/**
 * Send this attention rank's tokens to the FFN ranks that hold their experts.
 * One kernel launch; allocates nothing, takes no lock. A word of two NaNs that would read as
 * 0xFFFFFFFF travels as 0x7FFF7FFF; nothing else changes.
 * @retval AFDEP_ERROR_ROLE    the rank is an FFN rank.
 * @retval AFDEP_ERROR_ORDER   the lane's last dispatch was not collected yet.
 * @retval AFDEP_ERROR_TOKENS  tokens is over bucket, or bucket over capacity.
 * @retval AFDEP_ERROR_TIMEOUT an earlier exchange failed.
 * @see docs/design.md section 1
 */
AFDEP_API afdep_status afdep_dispatch(afdep_buffer *buffer, const afdep_dispatch_args *args,
                                      afdep_stream stream);

/**
 * Take the rows sent to this FFN rank, in (source, token) order.
 * @retval AFDEP_ERROR_ROLE  the rank is an attention rank.
 * @retval AFDEP_ERROR_ORDER the lane's last receive was not replied to yet.
 */
AFDEP_API afdep_status afdep_receive(afdep_buffer *buffer, const afdep_receive_args *args,
                                     afdep_stream stream);

/**
 * Send one row back for each row received.
 * @retval AFDEP_ERROR_ROLE  the rank is an attention rank.
 * @retval AFDEP_ERROR_ORDER the lane has received nothing to reply to.
 */
AFDEP_API afdep_status afdep_reply(afdep_buffer *buffer, const afdep_reply_args *args,
                                   afdep_stream stream);

/**
 * Sum each token's replies over the FFN ranks in ascending order, in FP32, starting from the
 * first, rounded once to BF16. A token without a route gives +0.
 * @retval AFDEP_ERROR_ROLE  the rank is an FFN rank.
 * @retval AFDEP_ERROR_ORDER the lane has dispatched nothing to collect.
 */
AFDEP_API afdep_status afdep_collect(afdep_buffer *buffer, const afdep_collect_args *args,
                                     afdep_stream stream);

/** The reference expert step: what an expert does in checks. */
typedef struct afdep_scale_args {
    uint32_t struct_size;
    uint32_t lane;
    const void *rows;     /**< [N][hidden] BF16 as received */
    const int32_t *ids;   /**< [N][top_k] as received */
    const float *weights; /**< [N][top_k] as received */
    void *out;            /**< [N][hidden] BF16; may be `rows` */
} afdep_scale_args;

/**
 * Multiply each received row by the sum over its experts here of weight x scale(expert), summed in
 * the order of the ids in FP32, rounded once. scale(e) is 2^((e mod 192) - 96), so a wrong id or
 * weight shows in the result. For tests, benches and first steps; between receive and reply.
 * @retval AFDEP_ERROR_ROLE  the rank is an attention rank.
 * @retval AFDEP_ERROR_ORDER the lane has no received rows.
 */
AFDEP_API afdep_status afdep_scale(afdep_buffer *buffer, const afdep_scale_args *args,
                                   afdep_stream stream);

#ifdef __cplusplus
}
#endif

#endif
