/* buffer.c: one rank's end of the exchange on the host: its memory, its kernels, its lanes. */
#include "exchange/buffer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "base/status.h"

/* The dead flag has a line of its own in front of the lanes' states. */
enum { DEAD_BYTES = 256 };

uint64_t afj_buffer_state_at(const afdep_buffer *buffer, uint32_t lane, uint64_t offset)
{
    return (uint64_t)(uintptr_t)buffer->state + DEAD_BYTES + lane * buffer->plan.state.bytes +
           offset;
}

uint64_t afj_buffer_lane_at(const afdep_buffer *buffer, uint32_t rank, uint32_t role, uint32_t lane)
{
    const struct afj_plan *plan = &buffer->plan;
    return afj_window_address(buffer->windows[rank]) +
           afj_regions_lane_at(&plan->regions, &plan->config, afj_config_role(&plan->config, rank),
                               role, lane);
}

struct afj_call afj_buffer_call(const afdep_buffer *buffer, uint32_t lane, uint64_t counter)
{
    const afdep_config *c = &buffer->plan.config.fields;
    return (struct afj_call){
        .dead = (uint64_t)(uintptr_t)buffer->state,
        .record = (uint64_t)(uintptr_t)&buffer->records->error,
        .counter = afj_buffer_state_at(buffer, lane, counter),
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

/* Fill a device table from host memory, which is free again at once. */
static afdep_status upload(afdep_buffer *buffer, const uint32_t *words, uint32_t count,
                           void **memory)
{
    const struct afj_device_kind *kind = buffer->device->kind;
    const size_t bytes = (count ? count : 1) * sizeof *words;
    AFJ_TRY(kind->alloc(buffer->device, bytes, memory));
    AFJ_TRY(kind->copy(buffer->device, *memory, words, bytes, NULL));
    return kind->synchronize(buffer->device);
}

/* Which experts are where: `globals` of this rank, and the owners of all where a map says so. */
static afdep_status make_tables(afdep_buffer *buffer)
{
    const struct afj_config *config = &buffer->plan.config;
    const uint32_t experts = config->fields.experts;
    uint32_t filled[AFDEP_MAX_FFN_RANKS] = {0};
    uint32_t *owners = calloc(2 * (size_t)experts, sizeof *owners), *globals = owners + experts;
    if (!owners)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a table of %" PRIu32 " experts",
                        experts);
    for (uint32_t e = 0; e < experts; ++e) {
        const uint32_t owner = afj_config_owner(config, e);
        if (owner == buffer->rank && filled[owner] == 0)
            buffer->first_expert = e;
        if (owner == buffer->rank)
            globals[filled[owner]] = e;
        owners[e] = owner << 16 | filled[owner]++;
    }
    afdep_status status = AFDEP_OK;
    if (buffer->plan.role & AFDEP_ROLE_FFN) {
        buffer->local_experts = filled[buffer->rank];
        status = upload(buffer, globals, buffer->local_experts, &buffer->globals);
    }
    if (status == AFDEP_OK && config->fields.expert_ranks)
        status = upload(buffer, owners, experts, &buffer->owners);
    free(owners);
    buffer->plan.config.fields.expert_ranks = NULL; /* the caller's, for the creation only */
    return status;
}

static afdep_status make_records(afdep_buffer *buffer)
{
    const afdep_config *c = &buffer->plan.config.fields;
    const struct afj_device_kind *kind = buffer->device->kind;
    void *memory = NULL;
    AFJ_TRY(kind->host_alloc(buffer->device, sizeof *buffer->records, &memory));
    buffer->records = memory;
    if (!c->host_counts || !(buffer->plan.role & AFDEP_ROLE_FFN))
        return AFDEP_OK;
    buffer->host_count_words = 1 + c->attention_ranks + buffer->local_experts;
    const size_t bytes = (size_t)c->lanes * buffer->host_count_words * sizeof(uint32_t);
    AFJ_TRY(kind->host_alloc(buffer->device, bytes, &memory));
    buffer->host_counts = memory;
    for (uint32_t lane = 0; lane < c->lanes; ++lane)
        buffer->host_counts[lane * buffer->host_count_words] = AFJ_NO_TOTAL;
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
    const uint64_t bytes = DEAD_BYTES + lanes * plan->state.bytes;
    AFJ_TRY(kind->alloc(buffer->device, bytes, &buffer->state));
    AFJ_TRY(kind->fill(buffer->device, buffer->state, 0, bytes, NULL));
    for (uint32_t lane = 0; (plan->role & AFDEP_ROLE_FFN) && lane < lanes; ++lane) {
        void *total =
            (void *)(uintptr_t)afj_buffer_state_at(buffer, lane, plan->state.expert.total);
        AFJ_TRY(kind->fill(buffer->device, total, 0xFF, sizeof(uint32_t), NULL));
    }
    AFJ_TRY(make_tables(buffer));
    return make_records(buffer);
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
            if (buffers[r]->plan.role & AFDEP_ROLE_FFN)
                afj_expert_prepare(buffers[r], lane);
            if (buffers[r]->plan.role & AFDEP_ROLE_ATTENTION)
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
    if (buffer->owners)
        kind->free(buffer->device, buffer->owners);
    if (buffer->globals)
        kind->free(buffer->device, buffer->globals);
    if (buffer->records)
        kind->host_free(buffer->device, buffer->records);
    if (buffer->host_counts)
        kind->host_free(buffer->device, buffer->host_counts);
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

static afdep_status check_exchange(const afdep_buffer *buffer)
{
    /* Written last by the kernel, behind a fence: the other fields are whole once it is seen. */
    const struct afj_error_record *r = &buffer->records->error;
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

static const char *fault_name(uint32_t kind)
{
    switch (kind) {
    case AFJ_FAULT_OUT_OF_RANGE:
        return "is no expert";
    case AFJ_FAULT_REPEATED:
        return "is chosen twice";
    case AFJ_FAULT_NAN_WEIGHT:
        return "has a weight that is NaN";
    default:
        return "is wrong";
    }
}

static afdep_status check_routes(const afdep_buffer *buffer)
{
    const struct afj_route_record *r = &buffer->records->route;
    const volatile uint32_t *state = &r->state;
    if (!buffer->routes_fail || *state == 0)
        return AFDEP_OK;
    atomic_thread_fence(memory_order_acquire);
    if (r->kind == AFJ_FAULT_OVER_BUCKET)
        return afj_fail(AFDEP_ERROR_ROUTES,
                        "rank %" PRIu32 " dispatched %" PRIu32
                        " live tokens, more than its bucket (AFDEP_CHECK_ROUTES=error)",
                        buffer->rank, r->expert);
    return afj_fail(AFDEP_ERROR_ROUTES,
                    "rank %" PRIu32 " dispatched a bad route: token %" PRIu32 ", choice %" PRIu32
                    ": expert %" PRId32 " of %" PRIu32 " %s (AFDEP_CHECK_ROUTES=error)",
                    buffer->rank, r->token, r->choice, (int32_t)r->expert,
                    buffer->plan.config.fields.experts, fault_name(r->kind));
}

afdep_status afj_buffer_check(const afdep_buffer *buffer)
{
    AFJ_TRY(check_exchange(buffer));
    return check_routes(buffer);
}

static const char *role_name(uint32_t role)
{
    return role == AFDEP_ROLE_FFN ? "an FFN" : "an attention";
}

afdep_status afj_buffer_enter(const afdep_buffer *buffer, uint32_t role, uint32_t lane,
                              const char *call)
{
    if (!(buffer->plan.role & role))
        return afj_fail(
            AFDEP_ERROR_ROLE,
            "%s is a call of %s rank; rank %" PRIu32 " of %" PRIu32 "A%" PRIu32 "F is %s rank",
            call, role_name(role), buffer->rank, buffer->plan.config.fields.attention_ranks,
            buffer->plan.config.fields.ffn_ranks, role_name(buffer->plan.role));
    if (buffer->closed)
        return afj_fail(AFDEP_ERROR_CLOSED, "%s: the buffer of rank %" PRIu32 " is closed", call,
                        buffer->rank);
    if (lane >= buffer->plan.config.fields.lanes)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "%s: lane is %" PRIu32 "; the buffer has %" PRIu32,
                        call, lane, buffer->plan.config.fields.lanes);
    return afj_buffer_check(buffer);
}

afdep_status afj_buffer_launch(afdep_buffer *buffer, enum afj_entry entry, uint32_t bucket,
                               uint32_t ctas, const void *arguments, afdep_stream stream)
{
    const struct afj_plan *plan = &buffer->plan;
    const struct afj_plan_kernel *k = afj_plan_kernel_for(plan, entry, bucket);
    if (!k)
        return afj_fail(AFDEP_ERROR_INTERNAL, "no kernel is planned for a bucket of %" PRIu32,
                        bucket);
    const uint32_t wanted = afj_plan_ctas(plan, k, bucket);
    const struct afj_launch launch = {
        .ctas = ctas && ctas < wanted ? ctas : wanted,
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

afdep_status afj_check_optional(const void *array, uint32_t alignment, const char *name)
{
    return array ? afj_check_array(array, alignment, name) : AFDEP_OK;
}

afdep_status afj_check_zero(uint32_t value, const char *field, const char *call)
{
    if (value == 0)
        return AFDEP_OK;
    return afj_fail(AFDEP_ERROR_ARGUMENT, "%s: %s is %" PRIu32 "; it must be 0", call, field,
                    value);
}

/* More than the plan's would not fit beside the other ranks and lanes of the device. */
afdep_status afj_check_ctas(const afdep_buffer *buffer, uint32_t ctas, const char *call)
{
    const uint32_t most = buffer->plan.config.fields.ctas;
    if (ctas <= most)
        return AFDEP_OK;
    return afj_fail(AFDEP_ERROR_ARGUMENT, "%s: ctas is %" PRIu32 "; the buffer's plan has %" PRIu32,
                    call, ctas, most);
}

afdep_status afj_buffer_view(const afdep_buffer *buffer, uint32_t lane, uint32_t role,
                             afdep_view *view)
{
    const afdep_config *c = &buffer->plan.config.fields;
    const bool of_ffn = role == AFDEP_ROLE_FFN;
    AFJ_TRY(afj_sized_check(view, sizeof *view, "afdep_view"));
    if (role != AFDEP_ROLE_FFN && role != AFDEP_ROLE_ATTENTION)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "role is %" PRIu32 "; it must be FFN or attention",
                        role);
    AFJ_TRY(afj_buffer_enter(buffer, role, lane, "afdep_buffer_view"));
    if (of_ffn ? c->receive != AFDEP_RECEIVE_VIEW : !c->collect_view)
        return afj_fail(AFDEP_ERROR_CONFIG, "the buffer was not created with %s",
                        of_ffn ? "receive as a view" : "collect_view");
    afdep_view out;
    memset(&out, 0, sizeof out);
    out.slots = of_ffn ? c->attention_ranks * c->capacity : c->capacity;
    out.rows = (const void *)(uintptr_t)afj_buffer_lane_at(buffer, buffer->rank, role, lane);
    out.row_bytes = of_ffn ? buffer->plan.regions.row_bytes : buffer->plan.regions.reply_bytes;
    afj_sized_write(view, &out, sizeof out);
    return AFDEP_OK;
}
