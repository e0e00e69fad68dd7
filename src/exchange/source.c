/* source.c: the duty of an attention rank: dispatch and collect. */
#include <inttypes.h>
#include <string.h>

#include "base/sized.h"
#include "base/status.h"
#include "exchange/buffer.h"

void afj_source_prepare(afdep_buffer *buffer, uint32_t lane)
{
    const struct afj_plan *plan = &buffer->plan;
    const afdep_config *c = &plan->config.fields;
    const struct afj_regions *regions = &plan->regions;
    const struct afj_state_layout *state = &plan->state;
    struct afj_source_lane *l = &buffer->lanes[lane].source;
    const uint64_t source = buffer->rank - afj_config_attention_rank(&plan->config, 0);
    const uint64_t own = afj_buffer_lane_at(buffer, buffer->rank, AFDEP_ROLE_ATTENTION, lane);

    struct afj_dispatch_args *d = &l->dispatch;
    d->call = afj_buffer_call(buffer, lane, state->source.counter);
    d->owners = (uint64_t)(uintptr_t)buffer->owners;
    d->sets = afj_buffer_state_at(buffer, lane, state->source.sets);
    d->issued = afj_buffer_state_at(buffer, lane, state->source.issued);
    d->faults = afj_buffer_state_at(buffer, lane, state->source.faults);
    d->first_fault = (uint64_t)(uintptr_t)&buffer->records->route;
    d->acks = own + regions->ack_offset;
    d->inbox_offset = source * c->capacity * regions->row_bytes;
    d->meta_offset = regions->meta_offset + source * c->capacity * regions->meta_bytes;
    d->route_offset = regions->route_offset + source * regions->groups * sizeof(uint32_t);
    for (uint32_t f = 0; f < c->ffn_ranks; ++f)
        d->peers[f] = afj_buffer_lane_at(buffer, f, AFDEP_ROLE_FFN, lane);

    l->rearm.call = d->call;
    l->rearm.viewed = afj_buffer_state_at(buffer, lane, state->source.viewed);
    l->rearm.inbox = own;

    struct afj_collect_args *k = &l->collect;
    k->call = d->call;
    k->sets = d->sets;
    k->issued = d->issued;
    k->inbox = own;
    k->beside = own + regions->reply_weights_offset;
    k->viewed = c->collect_view ? l->rearm.viewed : 0;
}

/* Arrays of a dispatch whose T may be more than 0. */
static afdep_status check_rows(const afdep_buffer *buffer, const afdep_dispatch_args *args)
{
    const afdep_config *c = &buffer->plan.config.fields;
    AFJ_TRY(afj_check_array(args->rows, 16, "rows"));
    if (args->ids || !args->receipt)
        AFJ_TRY(afj_check_array(args->ids, c->id_bits / 8, "ids"));
    if (args->ids || args->weights)
        AFJ_TRY(afj_check_array(args->weights, 4, "weights"));
    if (buffer->plan.regions.scale_words)
        AFJ_TRY(afj_check_array(args->scales, 4, "scales"));
    return AFDEP_OK;
}

static afdep_status check_dispatch(const afdep_buffer *buffer, afdep_dispatch_args *args)
{
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_ATTENTION, args->lane, "dispatch"));
    if (buffer->lanes[args->lane].source.open)
        return afj_fail(AFDEP_ERROR_ORDER,
                        "dispatch on lane %" PRIu32 ": its last dispatch was not collected yet",
                        args->lane);
    AFJ_TRY(afj_check_bucket(buffer, &args->bucket, "dispatch"));
    AFJ_TRY(afj_check_ctas(buffer, args->ctas, "dispatch"));
    AFJ_TRY(afj_check_zero(args->reserved, "reserved", "dispatch"));
    AFJ_TRY(afj_check_optional(args->live_tokens, 4, "live_tokens"));
    AFJ_TRY(afj_check_optional(args->receipt, 16, "receipt"));
    if (args->live_tokens)
        args->tokens = args->bucket; /* the most that it can be */
    if (args->tokens > args->bucket)
        return afj_fail(AFDEP_ERROR_TOKENS,
                        "dispatch: tokens is %" PRIu32 "; the bucket is %" PRIu32, args->tokens,
                        args->bucket);
    return args->tokens == 0 ? AFDEP_OK : check_rows(buffer, args);
}

afdep_status afj_source_dispatch(afdep_buffer *buffer, const afdep_dispatch_args *caller_args,
                                 afdep_stream stream)
{
    afdep_dispatch_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_dispatch_args"));
    AFJ_TRY(check_dispatch(buffer, &args));
    struct afj_source_lane *lane = &buffer->lanes[args.lane].source;
    struct afj_dispatch_args *d = &lane->dispatch;
    d->call.bucket = args.bucket;
    d->rows = (uint64_t)(uintptr_t)args.rows;
    d->scales = (uint64_t)(uintptr_t)args.scales;
    d->ids = (uint64_t)(uintptr_t)args.ids;
    d->weights = (uint64_t)(uintptr_t)args.weights;
    d->live = (uint64_t)(uintptr_t)args.live_tokens;
    d->receipt = (uint64_t)(uintptr_t)args.receipt;
    d->tokens = args.tokens;
    if (buffer->plan.config.fields.collect_view) {
        lane->rearm.call.bucket = args.bucket;
        AFJ_TRY(afj_buffer_launch(buffer, AFJ_ENTRY_REARM, args.bucket, args.ctas, &lane->rearm,
                                  stream));
    }
    AFJ_TRY(afj_buffer_launch(buffer, AFJ_ENTRY_DISPATCH, args.bucket, args.ctas, d, stream));
    lane->open = true;
    lane->live = args.live_tokens || (!args.ids && args.receipt);
    lane->bucket = args.bucket;
    lane->tokens = args.tokens;
    return AFDEP_OK;
}

/* Memory for the rows, the caller's from here on. */
static afdep_status allocate_fresh(afdep_buffer *buffer, const struct afj_source_lane *lane,
                                   afdep_collect_args *args, afdep_stream stream)
{
    const struct afj_device_kind *kind = buffer->device->kind;
    const uint64_t bytes = (uint64_t)lane->tokens * buffer->plan.regions.reply_bytes;
    bool capturing = false;
    *args->fresh = NULL;
    if (args->rows)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "collect: rows and fresh are both given");
    AFJ_TRY(kind->stream_capturing(buffer->device, stream, &capturing));
    if (capturing)
        return afj_fail(AFDEP_ERROR_ORDER,
                        "collect: there is no fresh memory while the stream is being recorded");
    AFJ_TRY(kind->alloc(buffer->device, bytes ? bytes : 1, args->fresh));
    args->rows = *args->fresh;
    return AFDEP_OK;
}

static afdep_status check_collect(const afdep_buffer *buffer, const afdep_collect_args *args)
{
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_ATTENTION, args->lane, "collect"));
    const afdep_config *c = &buffer->plan.config.fields;
    const struct afj_source_lane *lane = &buffer->lanes[args->lane].source;
    if (!lane->open)
        return afj_fail(AFDEP_ERROR_ORDER,
                        "collect on lane %" PRIu32
                        ": nothing was dispatched since its last collect",
                        args->lane);
    AFJ_TRY(afj_check_ctas(buffer, args->ctas, "collect"));
    AFJ_TRY(afj_check_zero(args->reserved, "reserved", "collect"));
    if (lane->tokens == 0)
        return AFDEP_OK;
    if (args->rows || !(args->fresh || c->collect_view))
        AFJ_TRY(afj_check_array(args->rows, 16, "rows"));
    return c->reply_weights ? afj_check_array(args->weights, 4, "weights") : AFDEP_OK;
}

afdep_status afj_source_collect(afdep_buffer *buffer, const afdep_collect_args *caller_args,
                                afdep_stream stream)
{
    afdep_collect_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_collect_args"));
    AFJ_TRY(check_collect(buffer, &args));
    struct afj_source_lane *lane = &buffer->lanes[args.lane].source;
    if (args.fresh)
        AFJ_TRY(allocate_fresh(buffer, lane, &args, stream));
    struct afj_collect_args *c = &lane->collect;
    c->call.bucket = lane->bucket;
    c->out = (uint64_t)(uintptr_t)args.rows;
    c->weights = (uint64_t)(uintptr_t)args.weights;
    c->tokens = lane->tokens;
    c->live = lane->live;
    const afdep_status status =
        afj_buffer_launch(buffer, AFJ_ENTRY_COLLECT, lane->bucket, args.ctas, c, stream);
    if (status != AFDEP_OK && args.fresh) {
        buffer->device->kind->free(buffer->device, *args.fresh);
        *args.fresh = NULL;
    }
    AFJ_TRY(status);
    lane->open = false;
    return AFDEP_OK;
}

afdep_status afj_source_faults(const afdep_buffer *buffer, afdep_route_faults *faults)
{
    const struct afj_device_kind *kind = buffer->device->kind;
    AFJ_TRY(afj_sized_check(faults, sizeof *faults, "afdep_route_faults"));
    if (!(buffer->plan.role & AFDEP_ROLE_ATTENTION))
        return afj_fail(AFDEP_ERROR_ROLE,
                        "routes are checked on attention ranks; rank %" PRIu32 " is an FFN rank",
                        buffer->rank);
    afdep_route_faults out;
    memset(&out, 0, sizeof out);
    out.checked = buffer->plan.check_routes;
    for (uint32_t lane = 0; out.checked && lane < buffer->plan.config.fields.lanes; ++lane) {
        uint32_t words[AFJ_FAULT_WORDS];
        AFJ_TRY(kind->copy(buffer->device, words,
                           (const void *)(uintptr_t)buffer->lanes[lane].source.dispatch.faults,
                           sizeof words, NULL));
        AFJ_TRY(kind->synchronize(buffer->device));
        out.out_of_range += words[AFJ_FAULT_OUT_OF_RANGE];
        out.repeated += words[AFJ_FAULT_REPEATED];
        out.nan_weights += words[AFJ_FAULT_NAN_WEIGHT];
        out.over_bucket += words[AFJ_FAULT_OVER_BUCKET];
    }
    afj_sized_write(faults, &out, sizeof out);
    return AFDEP_OK;
}
