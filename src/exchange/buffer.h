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

/* Where a lane is: the calls of a lane take turns. Between the two an attention rank has dispatched
 * and not collected, an FFN rank has received and not replied. */
struct afj_lane {
    bool open;       /* the first call of an exchange was made, the second was not */
    uint32_t bucket; /* of the open exchange */
    uint32_t tokens; /* dispatched */
    union {
        struct {
            struct afj_dispatch_args dispatch;
            struct afj_collect_args collect;
        } source;
        struct {
            struct afj_receive_args receive;
            struct afj_reply_args reply;
            struct afj_scale_args scale;
        } expert;
    } args; /* filled at creation but for what a call brings */
};

struct afdep_buffer {
    struct afj_plan plan;
    uint32_t rank, ranks;
    afdep_device *device; /* the group's */
    bool closed;
    struct afj_window *windows[AFDEP_MAX_RANKS]; /* own and peers', one reference each */
    void *state;                                 /* dead flag, then a state a lane */
    struct afj_error_record *record;             /* host memory that kernels write */
    struct afj_module *modules[AFDEP_MAX_KERNELS];
    struct afj_kernel *kernels[AFDEP_MAX_KERNELS]; /* in the plan's order */
    struct afj_lane lanes[AFDEP_MAX_LANES];
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

/* What every exchange call asks first: role, lane, not closed, not failed. */
afdep_status afj_buffer_enter(const afdep_buffer *buffer, uint32_t role, uint32_t lane,
                              const char *call);

/* Launch an entry for the bucket. */
afdep_status afj_buffer_launch(afdep_buffer *buffer, enum afj_entry entry, uint32_t bucket,
                               const void *arguments, afdep_stream stream);

/* Fill in what never changes of a lane's arguments; called by afj_buffer_connect. */
void afj_source_prepare(afdep_buffer *buffer, uint32_t lane); /* source.c */
void afj_expert_prepare(afdep_buffer *buffer, uint32_t lane); /* expert.c */

/* Addresses that both prepare with. */
struct afj_call afj_buffer_call(const afdep_buffer *buffer, uint32_t lane);
uint64_t afj_buffer_state_at(const afdep_buffer *buffer, uint32_t lane, uint64_t offset);

/* The exchange. See the public functions of the same names. */
afdep_status afj_source_dispatch(afdep_buffer *buffer, const afdep_dispatch_args *args,
                                 afdep_stream stream);
afdep_status afj_source_collect(afdep_buffer *buffer, const afdep_collect_args *args,
                                afdep_stream stream);
afdep_status afj_expert_receive(afdep_buffer *buffer, const afdep_receive_args *args,
                                afdep_stream stream);
afdep_status afj_expert_reply(afdep_buffer *buffer, const afdep_reply_args *args,
                              afdep_stream stream);
afdep_status afj_expert_scale(afdep_buffer *buffer, const afdep_scale_args *args,
                              afdep_stream stream);
afdep_status afj_expert_counts(const afdep_buffer *buffer, uint32_t lane, afdep_counts *counts);

/* Shared checks of arguments. */
afdep_status afj_check_bucket(const afdep_buffer *buffer, uint32_t *bucket, const char *call);
afdep_status afj_check_array(const void *array, uint32_t alignment, const char *name);

#endif
