/* buffer.h: one rank's end of the exchange on the host: its memory, its kernels, its lanes. */
#ifndef AFJ_EXCHANGE_BUFFER_H
#define AFJ_EXCHANGE_BUFFER_H

#include <stdbool.h>

#include <afdep/buffer.h>

#include "net/local.h"
#include "net/window.h"
#include "plan/plan.h"
#include "wire/args.h"

/* The images of a plan's kernels, in the plan's order. Borrowed. */
struct afj_images {
    const void *image[AFDEP_MAX_KERNELS];
    size_t bytes[AFDEP_MAX_KERNELS];
};

/* Where a lane is: the calls of a lane take turns, those of each duty for itself. Arguments are
 * filled in at creation but for what a call brings. */
struct afj_source_lane {
    bool open;       /* dispatched and not collected */
    bool live;       /* with a token count in device memory */
    uint32_t bucket; /* of the open exchange */
    uint32_t tokens; /* dispatched; with a live count the most that it can be */
    struct afj_rearm_args rearm;
    struct afj_dispatch_args dispatch;
    struct afj_collect_args collect;
};

enum afj_expert_step {
    AFJ_EXPERT_IDLE,
    AFJ_EXPERT_COUNTED,
    AFJ_EXPERT_RECEIVED,
    AFJ_EXPERT_BROKEN /* only some of a receive's kernels could be launched */
};

struct afj_expert_lane {
    enum afj_expert_step step;
    uint32_t bucket; /* of the open exchange */
    struct afj_receive_args receive;
    struct afj_reply_args reply;
    struct afj_scale_args scale;
};

/* Host memory that kernels write. */
struct afj_records {
    struct afj_error_record error;
    struct afj_route_record route;
};

struct afdep_buffer {
    struct afj_plan plan;
    uint32_t rank, ranks;
    afdep_device *device; /* the group's */
    bool closed;
    bool routes_fail;      /* a bad route fails later calls */
    uint32_t first_expert; /* of this rank, where ranks hold blocks */
    uint32_t local_experts;
    struct afj_window *windows[AFDEP_MAX_RANKS]; /* own and peers', one reference each */
    void *state;                                 /* dead flag, then a state a lane */
    void *owners;  /* uint32_t [experts]: rank << 16 | local expert; NULL: blocks */
    void *globals; /* uint32_t [local_experts]: the expert of each; NULL on attention ranks */
    struct afj_records *records;
    uint32_t *host_counts; /* host memory, host_count_words a lane; NULL: not asked for */
    uint32_t host_count_words;
    struct afj_module *modules[AFDEP_MAX_KERNELS];
    struct afj_kernel *kernels[AFDEP_MAX_KERNELS]; /* in the plan's order */
    struct {
        struct afj_source_lane source;
        struct afj_expert_lane expert;
    } lanes[AFDEP_MAX_LANES];
};

/* Make one rank's buffer: load and resolve its kernels, allocate its window and state. Nothing is
 * ready until afj_buffer_connect and a synchronise of the device. */
afdep_status afj_buffer_make(const struct afdep_group *group, uint32_t rank,
                             const struct afj_plan *plan, const struct afj_images *images,
                             afdep_buffer **buffer);

/* Tell each buffer of a group where the others' windows are. */
void afj_buffer_connect(afdep_buffer *const *buffers, uint32_t ranks);

void afj_buffer_free(afdep_buffer *buffer); /* NULL is fine */
afdep_status afj_buffer_close(afdep_buffer *buffer);

/* AFDEP_ERROR_TIMEOUT with a sentence if a kernel of the buffer gave up. Reads host memory. */
afdep_status afj_buffer_check(const afdep_buffer *buffer);

/* What every exchange call asks first: role, lane, not closed, not failed. `role` is the one that
 * makes the call. */
afdep_status afj_buffer_enter(const afdep_buffer *buffer, uint32_t role, uint32_t lane,
                              const char *call);

/* Launch an entry for the bucket, with at most `ctas` CTAs; 0: the plan's choice. */
afdep_status afj_buffer_launch(afdep_buffer *buffer, enum afj_entry entry, uint32_t bucket,
                               uint32_t ctas, const void *arguments, afdep_stream stream);

/* Fill in what never changes of a lane's arguments; called by afj_buffer_connect. */
void afj_source_prepare(afdep_buffer *buffer, uint32_t lane); /* source.c */
void afj_expert_prepare(afdep_buffer *buffer, uint32_t lane); /* expert.c */

/* Addresses that both prepare with. */
struct afj_call afj_buffer_call(const afdep_buffer *buffer, uint32_t lane, uint64_t counter);
uint64_t afj_buffer_state_at(const afdep_buffer *buffer, uint32_t lane, uint64_t offset);
/* Where a role's part of a lane begins in the window of a rank. */
uint64_t afj_buffer_lane_at(const afdep_buffer *buffer, uint32_t rank, uint32_t role,
                            uint32_t lane);

/* The exchange. See the public functions of the same names. */
afdep_status afj_source_dispatch(afdep_buffer *buffer, const afdep_dispatch_args *args,
                                 afdep_stream stream);
afdep_status afj_source_collect(afdep_buffer *buffer, const afdep_collect_args *args,
                                afdep_stream stream);
afdep_status afj_expert_receive_counts(afdep_buffer *buffer, const afdep_receive_args *args,
                                       afdep_stream stream);
afdep_status afj_expert_receive(afdep_buffer *buffer, const afdep_receive_args *args,
                                afdep_stream stream);
afdep_status afj_expert_reply(afdep_buffer *buffer, const afdep_reply_args *args,
                              afdep_stream stream);
afdep_status afj_expert_scale(afdep_buffer *buffer, const afdep_scale_args *args,
                              afdep_stream stream);
afdep_status afj_expert_counts(const afdep_buffer *buffer, uint32_t lane, afdep_counts *counts);

afdep_status afj_buffer_view(const afdep_buffer *buffer, uint32_t lane, uint32_t role,
                             afdep_view *view);
afdep_status afj_source_faults(const afdep_buffer *buffer, afdep_route_faults *faults);

/* Shared checks of arguments. */
afdep_status afj_check_bucket(const afdep_buffer *buffer, uint32_t *bucket, const char *call);
afdep_status afj_check_ctas(const afdep_buffer *buffer, uint32_t ctas, const char *call);
afdep_status afj_check_zero(uint32_t value, const char *field, const char *call);
/* An array that is needed, and one that may be NULL. */
afdep_status afj_check_array(const void *array, uint32_t alignment, const char *name);
afdep_status afj_check_optional(const void *array, uint32_t alignment, const char *name);

#endif
