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
 * @retval AFDEP_ERROR_ORDER            a stream of the group's devices is being recorded.
 * @retval AFDEP_ERROR_RESOURCES        the kernels of one GPU's ranks do not fit on it at once.
 * @retval AFDEP_ERROR_COMPILER_MISSING a kernel is not in the cache and there is no compiler.
 * @retval AFDEP_ERROR_COMPILE          a kernel does not compile.
 * @see docs/design.md section 5
 */
AFDEP_API afdep_status afdep_buffer_create(afdep_group *group, const afdep_config *config,
                                           afdep_buffer **buffers);

/**
 * The same with a config of each rank, as processes of their own would bring them. They are
 * compared before anything is made.
 * @param configs [afdep_group_ranks], borrowed for the call.
 * @retval AFDEP_ERROR_HANDSHAKE two ranks differ; afdep_last_error names the ranks, the field and
 *                               both values.
 * @see docs/design.md section 7
 */
AFDEP_API afdep_status afdep_buffer_create_each(afdep_group *group,
                                                const afdep_config *const *configs,
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
 * @retval AFDEP_ERROR_ARGUMENT buffer is NULL, or plan is NULL or has another size.
 */
AFDEP_API afdep_status afdep_buffer_plan(const afdep_buffer *buffer, afdep_plan *plan);

/** Counts of the exchange a lane received last: device pointers, fixed for the buffer's life. */
typedef struct afdep_counts {
    uint32_t struct_size;
    uint32_t reserved;
    const uint32_t *total;           /**< [1] rows received; 0 after a failed exchange */
    const uint32_t *rows_per_source; /**< [A] rows from each attention rank */
    const uint32_t *rows_per_expert; /**< [local_experts] routes to each expert of this rank: one
                                        row counts once for each of its ids here */
    const uint32_t *expert_offsets;  /**< [local_experts + 1] expert-major: where each expert's rows
                                        begin, and where the last one's padding ends; else NULL */
    const uint32_t *host; /**< [1 + A + local_experts] total, rows_per_source, rows_per_expert in
                             host memory, with config.host_counts; else NULL. The total is written
                             last, so a caller may poll it */
} afdep_counts;

/**
 * Where a lane's counts lie on an FFN rank. They are valid from receive until the lane's reply,
 * in stream order; reply resets them, and
 * `total` reads 0xFFFFFFFF between a reply and the next receive: do not loop over it there.
 * @param lane   0 to lanes - 1.
 * @param counts out; set struct_size before the call.
 * @retval AFDEP_ERROR_ROLE the rank is an attention rank.
 */
AFDEP_API afdep_status afdep_buffer_counts(const afdep_buffer *buffer, uint32_t lane,
                                           afdep_counts *counts);

/** An inbox that is read in place: a device pointer, fixed for the buffer's life. */
typedef struct afdep_view {
    uint32_t struct_size;
    uint32_t slots;     /**< rows that the inbox has: A x capacity, or capacity for collect */
    const void *rows;   /**< slot 0, aligned to 128 bytes */
    uint64_t row_bytes; /**< from one slot to the next */
} afdep_view;

/**
 * Where the rows of a view lie.
 * @param lane 0 to lanes - 1.
 * @param role AFDEP_ROLE_FFN: rows that receive left, slot s x capacity + t for token t of source
 *             s, readable from receive until reply. AFDEP_ROLE_ATTENTION: rows that collect left,
 *             slot t for token t, readable from collect until the next dispatch.
 * @param view out; set struct_size before the call.
 * @retval AFDEP_ERROR_ROLE   the rank has no such role.
 * @retval AFDEP_ERROR_CONFIG the config asks for no such view.
 */
AFDEP_API afdep_status afdep_buffer_view(const afdep_buffer *buffer, uint32_t lane, afdep_role role,
                                         afdep_view *view);

/**
 * Bytes of a receipt: the routing of up to `tokens` tokens of one rank, in device memory of the
 * caller.
 * @param config borrowed for the call.
 * @param tokens most tokens that it will keep.
 * @param bytes  out.
 * @retval AFDEP_ERROR_CONFIG a field of the config is out of range.
 */
AFDEP_API afdep_status afdep_receipt_bytes(const afdep_config *config, uint32_t tokens,
                                           uint64_t *bytes);

/** What dispatch sends. Device arrays, borrowed until the stream has run dispatch. */
typedef struct afdep_dispatch_args {
    uint32_t struct_size;
    uint32_t lane;    /**< 0 to lanes - 1 */
    uint32_t tokens;  /**< T, 0 to bucket; not used with live_tokens */
    uint32_t bucket;  /**< the launch's token ceiling, equal on all ranks; 0: capacity */
    const void *rows; /**< [T][hidden] of the dtype, aligned to 16 bytes; may be NULL if T is 0 */
    const void *ids;  /**< [T][top_k] expert ids of id_bits; outside [0, experts): no expert */
    const float *weights; /**< [T][top_k] */
    const void *scales;   /**< FP8: [T][ceil(hidden / 128)] FP32 or [T][ceil(hidden / 512)] packed
                             UE8M0, aligned to 4 bytes; else NULL */
    const uint32_t *live_tokens; /**< [1] T in device memory, read when dispatch runs; more than the
                                    bucket counts as the bucket. NULL: `tokens` */
    void *receipt;     /**< afdep_receipt_bytes, aligned to 16 bytes, or NULL. With ids it keeps the
                          exchange's ids and weights; with ids NULL the exchange takes them from it
                          (and the weights from `weights`, if given) */
    uint32_t ctas;     /**< most CTAs of the launch, at most the plan's; 0: the plan's choice */
    uint32_t reserved; /**< 0 */
} afdep_dispatch_args;

/**
 * What receive writes. Device arrays of the caller with room for N rows: A x bucket, or
 * expert-major A x bucket x top_k + local_experts x (alignment - 1).
 * With counts_first, ids, weights, sources and tokens are those of afdep_receive_counts.
 */
typedef struct afdep_receive_args {
    uint32_t struct_size;
    uint32_t lane;
    uint32_t bucket;   /**< as in dispatch */
    uint32_t ctas;     /**< as in dispatch */
    void *rows;        /**< [N][hidden] of the dtype, aligned to 16 bytes; view: NULL */
    void *ids;         /**< [N][top_k] of id_bits: experts of this rank from 0, -1 elsewhere; may be
                          NULL. Expert-major: [N], the expert of each row, -1 for padding up to the
                          last row: the m-indices of grouped GEMMs */
    float *weights;    /**< [N][top_k] as sent; expert-major: [N], 0 for padding; may be NULL */
    uint32_t *sources; /**< [N] attention rank of each row, 0 to A - 1; may be NULL */
    uint32_t *tokens;  /**< [N] token of each row in its source; may be NULL */
    void *scales;      /**< FP8: [N][...] as in dispatch, aligned to 4 bytes; else NULL */
    uint32_t *slots;   /**< view: [N] the slot of each row; else NULL */
} afdep_receive_args;

/** What reply sends back: one row for each row received, weights applied. */
typedef struct afdep_reply_args {
    uint32_t struct_size;
    uint32_t lane;
    const void *rows; /**< [N][hidden] BF16, aligned to 16 bytes, in the order received, room for
                         all N rows: kernels may read, not use, what lies past the last; borrowed
                         until reply has run. Expert-major: the rows of one token are summed in
                         the order of its choices, in FP32, rounded once */
    const float *weights;   /**< with config.reply_weights: [rows received][top_k], in the order
                               received by (source, token), summed over FFN ranks by collect; else
                               NULL */
    uint32_t ctas;          /**< as in dispatch */
    uint32_t apply_weights; /**< expert-major: 1 multiplies each row by its received weight */
} afdep_reply_args;

/** Where collect puts the sums. */
typedef struct afdep_collect_args {
    uint32_t struct_size;
    uint32_t lane;
    void *rows;        /**< [T][hidden] BF16, aligned to 16 bytes; T as dispatched; NULL if T is 0,
                          with `fresh`, and with config.collect_view */
    void **fresh;      /**< out, or NULL: memory for [T][hidden] that this call allocates on the
                          device; the caller's, free it with afdep_device_free. T is that of the host,
                          or the bucket with live_tokens. Not in a capture */
    float *weights;    /**< with config.reply_weights: [T][top_k] sums over FFN ranks; else NULL */
    uint32_t ctas;     /**< as in dispatch */
    uint32_t reserved; /**< 0 */
} afdep_collect_args;

/**
 * Send this attention rank's tokens to the FFN ranks that hold their experts.
 * One kernel launch; allocates nothing, takes no lock. With config.collect_view a second launch
 * before it clears what the last collect left. A word that would read as 0xFFFFFFFF travels as
 * other NaNs: two BF16 as 0x7FFF, four E4M3 as 0x7F, a scale or weight as 0x7FFFFFFF; packed scales
 * and opaque rows travel as they are.
 * @param args   borrowed for the call; its arrays until the stream has run it.
 * @param stream of the rank's device; NULL is its default stream. Every rank of the lane makes its
 *               calls; none waits on the host.
 * @retval AFDEP_ERROR_ROLE    the rank is an FFN rank.
 * @retval AFDEP_ERROR_ORDER   the lane's last dispatch was not collected yet.
 * @retval AFDEP_ERROR_TOKENS  tokens is over bucket, or bucket over capacity.
 * @retval AFDEP_ERROR_TIMEOUT an earlier exchange failed.
 * @retval AFDEP_ERROR_ROUTES  with AFDEP_CHECK_ROUTES=error: an earlier dispatch had bad routes.
 * @see docs/design.md section 1
 */
AFDEP_API afdep_status afdep_dispatch(afdep_buffer *buffer, const afdep_dispatch_args *args,
                                      afdep_stream stream);

/**
 * With config.counts_first: wait for the ids of the exchange, and count them. Rows follow with
 * afdep_receive. Takes the args of receive, of which rows and scales are not used; afdep_receive
 * then uses only those, and the bucket.
 * @param args   borrowed for the call; its arrays until the stream has run it.
 * @param stream that of the receive to come, or one that it waits for.
 * @retval AFDEP_ERROR_CONFIG the config has no counts_first.
 */
AFDEP_API afdep_status afdep_receive_counts(afdep_buffer *buffer, const afdep_receive_args *args,
                                            afdep_stream stream);

/**
 * Take the rows sent to this FFN rank, in (source, token) order.
 * One kernel launch; three for the expert-major layout.
 * @param args   borrowed for the call; its arrays until the stream has run it.
 * @param stream of the rank's device; NULL is its default stream. Every rank of the lane makes its
 *               calls; none waits on the host.
 * @retval AFDEP_ERROR_ROLE  the rank is an attention rank.
 * @retval AFDEP_ERROR_ORDER the lane's last receive was not replied to yet, or with counts_first
 *                           the counts were not received before.
 */
AFDEP_API afdep_status afdep_receive(afdep_buffer *buffer, const afdep_receive_args *args,
                                     afdep_stream stream);

/**
 * Send one row back for each row received.
 * @param args   borrowed for the call; its arrays until the stream has run it.
 * @param stream of the rank's device; NULL is its default stream. Every rank of the lane makes its
 *               calls; none waits on the host.
 * @retval AFDEP_ERROR_ROLE  the rank is an attention rank.
 * @retval AFDEP_ERROR_ORDER the lane has received nothing to reply to.
 */
AFDEP_API afdep_status afdep_reply(afdep_buffer *buffer, const afdep_reply_args *args,
                                   afdep_stream stream);

/**
 * Sum each token's replies over the FFN ranks in ascending order, in FP32, starting from the
 * first, rounded once to BF16. A token without a route gives +0.
 * @param args   borrowed for the call; its arrays until the stream has run it.
 * @param stream of the rank's device; NULL is its default stream. Every rank of the lane makes its
 *               calls; none waits on the host.
 * @retval AFDEP_ERROR_ROLE  the rank is an FFN rank.
 * @retval AFDEP_ERROR_ORDER the lane has dispatched nothing to collect.
 */
AFDEP_API afdep_status afdep_collect(afdep_buffer *buffer, const afdep_collect_args *args,
                                     afdep_stream stream);

/** The reference expert step: what an expert does in checks. */
typedef struct afdep_scale_args {
    uint32_t struct_size;
    uint32_t lane;
    const void *rows;     /**< as received; view: NULL */
    const void *ids;      /**< as received */
    const float *weights; /**< as received */
    const void *scales;   /**< FP8: as received; else NULL */
    void *out;            /**< [N][hidden] BF16; may be `rows` if those are BF16 */
    uint32_t ctas;        /**< as in dispatch */
    uint32_t reserved;    /**< 0 */
} afdep_scale_args;

/**
 * Multiply each received row by the sum over its experts here of weight x scale(expert), summed in
 * the order of the ids in FP32, rounded once. scale(e) is 2^((e mod 192) - 96), so a wrong id or
 * weight shows in the result. Expert-major: each row by weight x scale of its one expert.
 * FP8 rows are multiplied by their scales first, in FP32; of an opaque row, element i is the value
 * of byte i mod payload_bytes. For tests, benches and first steps; between receive and reply.
 * @param args   borrowed for the call; its arrays until the stream has run it.
 * @param stream between receive and reply of the lane.
 * @retval AFDEP_ERROR_ROLE  the rank is an attention rank.
 * @retval AFDEP_ERROR_ORDER the lane has no received rows.
 */
AFDEP_API afdep_status afdep_scale(afdep_buffer *buffer, const afdep_scale_args *args,
                                   afdep_stream stream);

/** What AFDEP_CHECK_ROUTES counted on an attention rank since the buffer was created. */
typedef struct afdep_route_faults {
    uint32_t struct_size;
    uint32_t checked;      /**< 1: routes are checked; 0: AFDEP_CHECK_ROUTES is off */
    uint32_t out_of_range; /**< ids below -1 or from `experts` on */
    uint32_t repeated;     /**< choices whose expert an earlier choice of the token has */
    uint32_t nan_weights;  /**< weights of experts in range that are NaN */
    uint32_t over_bucket;  /**< dispatches whose live_tokens was over the bucket */
} afdep_route_faults;

/**
 * Read what was counted. Waits for the rank's device.
 * @param faults out; set struct_size before the call.
 * @retval AFDEP_ERROR_ROLE the rank is an FFN rank.
 */
AFDEP_API afdep_status afdep_buffer_route_faults(const afdep_buffer *buffer,
                                                 afdep_route_faults *faults);

#ifdef __cplusplus
}
#endif

#endif
