/* buffer.c: one rank's end of the exchange on the host: its memory, its kernels, its lanes. */
#include "exchange/buffer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* The dead flag has a line of its own in front of the lanes' states. */
enum { DEAD_BYTES = 256 };

uint64_t afj_buffer_state_at(const afdep_buffer *buffer, uint32_t lane, uint64_t offset)
{
    return (uint64_t)(uintptr_t)buffer->state + DEAD_BYTES + lane * buffer->plan.state.bytes +
           offset;
}

struct afj_call afj_buffer_call(const afdep_buffer *buffer, uint32_t lane)
{
    const afdep_config *c = &buffer->plan.config.fields;
    return (struct afj_call){
        .dead = (uint64_t)(uintptr_t)buffer->state,
        .record = (uint64_t)(uintptr_t)buffer->record,
        .counter = afj_buffer_state_at(buffer, lane, buffer->plan.state.counter),
        .timeout_ms = c->timeout_ms,
        .startup_timeout_ms = c->startup_timeout_ms,
        .rank = buffer->rank,
        .lane = lane,
        .capacity = c->capacity,
    };
}

/* Most dynamic shared memory a kernel is ever launched with. */
static uint32_t most_shared_bytes(const struct afj_plan *plan, const struct afj_plan_kernel *kernel)
{
    return kernel->bucket_to ? afj_plan_shared_bytes(plan, kernel, kernel->bucket_to) : 0;
}

static afdep_status load_kernels(afdep_buffer *buffer, const struct afj_images *images)
{
    const struct afj_plan *plan = &buffer->plan;
    const struct afj_device_kind *kind = buffer->device->kind;
    for (uint32_t i = 0; i < plan->kernel_count; ++i) {
        const struct afj_plan_kernel *k = &plan->kernels[i];
        AFJ_TRY(kind->module_load(buffer->device, images->image[i], images->bytes[i],
                                  &buffer->modules[i]));
        AFJ_TRY(kind->kernel(buffer->modules[i], k->name, k->arguments_bytes,
                             most_shared_bytes(plan, k), &buffer->kernels[i]));
    }
    return AFDEP_OK;
}

/* Counters and sets begin as zero; `total` as "no exchange". */
static afdep_status allocate(afdep_buffer *buffer)
{
    const struct afj_plan *plan = &buffer->plan;
    const struct afj_device_kind *kind = buffer->device->kind;
    const uint32_t lanes = plan->config.fields.lanes;
    AFJ_TRY(afj_window_create(buffer->device,
                              afj_regions_window_bytes(&plan->regions, &plan->config, plan->role),
                              &buffer->windows[buffer->rank]));
    void *record = NULL;
    AFJ_TRY(kind->host_alloc(buffer->device, sizeof *buffer->record, &record));
    buffer->record = record;
    const uint64_t bytes = DEAD_BYTES + lanes * plan->state.bytes;
    AFJ_TRY(kind->alloc(buffer->device, bytes, &buffer->state));
    AFJ_TRY(kind->fill(buffer->device, buffer->state, 0, bytes, NULL));
    for (uint32_t lane = 0; plan->role == AFDEP_ROLE_FFN && lane < lanes; ++lane) {
        void *total = (void *)(uintptr_t)afj_buffer_state_at(buffer, lane, plan->state.total);
        AFJ_TRY(kind->fill(buffer->device, total, 0xFF, sizeof(uint32_t), NULL));
    }
    return AFDEP_OK;
}

afdep_status afj_buffer_make(const struct afdep_group *group, uint32_t rank,
                             const struct afj_plan *plan, const struct afj_images *images,
                             afdep_buffer **buffer)
{
    afdep_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for the buffer of rank %" PRIu32, rank);
    b->plan = *plan;
    b->rank = rank;
    b->ranks = group->ranks;
    b->device = group->devices[rank];
    afdep_status status = load_kernels(b, images);
    if (status == AFDEP_OK)
        status = allocate(b);
    if (status != AFDEP_OK) {
        /* Clearing that is still queued must not outlive its memory; the first sentence stays. */
        char sentence[1024];
        snprintf(sentence, sizeof sentence, "%s", afj_status_sentence());
        (void)b->device->kind->synchronize(b->device);
        afj_buffer_free(b);
        return afj_fail(status, "%s", sentence);
    }
    *buffer = b;
    return AFDEP_OK;
}

void afj_buffer_connect(afdep_buffer *const *buffers, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; ++r)
        for (uint32_t peer = 0; peer < ranks; ++peer) {
            if (peer == r)
                continue;
            buffers[r]->windows[peer] = buffers[peer]->windows[peer];
            afj_window_retain(buffers[r]->windows[peer]);
        }
    for (uint32_t r = 0; r < ranks; ++r)
        for (uint32_t lane = 0; lane < buffers[r]->plan.config.fields.lanes; ++lane) {
            if (buffers[r]->plan.role == AFDEP_ROLE_FFN)
                afj_expert_prepare(buffers[r], lane);
            else
                afj_source_prepare(buffers[r], lane);
        }
}

void afj_buffer_free(afdep_buffer *buffer)
{
    if (!buffer)
        return;
    const struct afj_device_kind *kind = buffer->device->kind;
    for (uint32_t i = 0; i < buffer->plan.kernel_count; ++i)
        if (buffer->modules[i])
            kind->module_unload(buffer->modules[i]);
    if (buffer->state)
        kind->free(buffer->device, buffer->state);
    if (buffer->record)
        kind->host_free(buffer->device, buffer->record);
    for (uint32_t r = 0; r < buffer->ranks; ++r)
        afj_window_release(buffer->windows[r]);
    free(buffer);
}

afdep_status afj_buffer_close(afdep_buffer *buffer)
{
    if (buffer->closed)
        return afj_fail(AFDEP_ERROR_CLOSED, "the buffer of rank %" PRIu32 " is closed already",
                        buffer->rank);
    /* A kernel ends by its own deadline, so this wait ends too. */
    afdep_status status = buffer->device->kind->synchronize(buffer->device);
    buffer->closed = true;
    return status != AFDEP_OK ? status : afj_buffer_check(buffer);
}

static const char *waited_for(uint32_t phase)
{
    switch (phase) {
    case AFJ_PHASE_DISPATCH_ACK:
        return "dispatch waited for the ack of FFN";
    case AFJ_PHASE_RECEIVE_ROUTE:
        return "receive waited for the route words of attention";
    case AFJ_PHASE_RECEIVE_ROW:
        return "receive waited for a row of attention";
    case AFJ_PHASE_COLLECT_REPLY:
        return "collect waited for the reply of FFN";
    default:
        return "a kernel waited for";
    }
}

afdep_status afj_buffer_check(const afdep_buffer *buffer)
{
    /* Written last by the kernel, behind a fence: the other fields are whole once it is seen. */
    const struct afj_error_record *r = buffer->record;
    const volatile uint32_t *state = &r->state;
    if (*state == 0)
        return AFDEP_OK;
    atomic_thread_fence(memory_order_acquire);
    char token[32] = "";
    if (r->token != AFJ_NO_TOKEN)
        snprintf(token, sizeof token, ", token %" PRIu32, r->token);
    return afj_fail(AFDEP_ERROR_TIMEOUT,
                    "rank %" PRIu32 " gave up: %s rank %" PRIu32 "%s in exchange %" PRIu32
                    " of lane %" PRIu32 " for %" PRIu32 " ms; the buffer can only be destroyed",
                    r->rank, waited_for(r->phase), r->peer, token, r->exchange, r->lane,
                    r->waited_ms);
}

afdep_status afj_buffer_enter(const afdep_buffer *buffer, uint32_t role, uint32_t lane,
                              const char *call)
{
    if (buffer->plan.role != role)
        return afj_fail(
            AFDEP_ERROR_ROLE,
            "%s is a call of %s ranks; rank %" PRIu32 " of %" PRIu32 "A%" PRIu32 "F is an %s rank",
            call, role == AFDEP_ROLE_FFN ? "FFN" : "attention", buffer->rank,
            buffer->plan.config.fields.attention_ranks, buffer->plan.config.fields.ffn_ranks,
            role == AFDEP_ROLE_FFN ? "attention" : "FFN");
    if (buffer->closed)
        return afj_fail(AFDEP_ERROR_CLOSED, "%s: the buffer of rank %" PRIu32 " is closed", call,
                        buffer->rank);
    if (lane >= buffer->plan.config.fields.lanes)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "%s: lane is %" PRIu32 "; the buffer has %" PRIu32,
                        call, lane, buffer->plan.config.fields.lanes);
    return afj_buffer_check(buffer);
}

afdep_status afj_buffer_launch(afdep_buffer *buffer, enum afj_entry entry, uint32_t bucket,
                               const void *arguments, afdep_stream stream)
{
    const struct afj_plan *plan = &buffer->plan;
    const struct afj_plan_kernel *k = afj_plan_kernel_for(plan, entry, bucket);
    if (!k)
        return afj_fail(AFDEP_ERROR_INTERNAL, "no kernel is planned for a bucket of %" PRIu32,
                        bucket);
    const struct afj_launch launch = {
        .ctas = afj_plan_ctas(plan, k, bucket),
        .warps = k->warps,
        .shared_bytes = afj_plan_shared_bytes(plan, k, bucket),
        .arguments = arguments,
        .arguments_bytes = k->arguments_bytes,
    };
    return buffer->device->kind->launch(buffer->kernels[k - plan->kernels], &launch, stream);
}

afdep_status afj_check_bucket(const afdep_buffer *buffer, uint32_t *bucket, const char *call)
{
    const uint32_t capacity = buffer->plan.config.fields.capacity;
    if (*bucket == 0)
        *bucket = capacity;
    if (*bucket > capacity)
        return afj_fail(AFDEP_ERROR_TOKENS,
                        "%s: bucket is %" PRIu32 "; the buffer's capacity is %" PRIu32, call,
                        *bucket, capacity);
    return AFDEP_OK;
}

afdep_status afj_check_array(const void *array, uint32_t alignment, const char *name)
{
    if (!array)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "%s is NULL", name);
    if ((uintptr_t)array % alignment != 0)
        return afj_fail(AFDEP_ERROR_ARGUMENT,
                        "%s is at %p; it must be aligned to %" PRIu32 " bytes", name, array,
                        alignment);
    return AFDEP_OK;
}
