/* source.c: the duty of an attention rank: dispatch and collect. */
#include <inttypes.h>

#include "base/sized.h"
#include "base/status.h"
#include "exchange/buffer.h"

void afj_source_prepare(afdep_buffer *buffer, uint32_t lane)
{
    const struct afj_plan *plan = &buffer->plan;
    const struct afj_regions *regions = &plan->regions;
    const struct afj_state_layout *state = &plan->state;
    const uint32_t ffn_ranks = plan->config.fields.ffn_ranks;
    const uint64_t source = buffer->rank - ffn_ranks;
    const uint64_t own =
        afj_window_address(buffer->windows[buffer->rank]) + lane * regions->attention_lane_bytes;
    const uint64_t in_peer = lane * regions->ffn_lane_bytes;

    struct afj_dispatch_args *d = &buffer->lanes[lane].args.source.dispatch;
    d->call = afj_buffer_call(buffer, lane);
    d->sets = afj_buffer_state_at(buffer, lane, state->sets);
    d->issued = afj_buffer_state_at(buffer, lane, state->issued);
    d->acks = own + regions->ack_offset;
    d->inbox_offset = in_peer + source * plan->config.fields.capacity * regions->row_bytes;
    d->route_offset = in_peer + regions->route_offset + source * regions->groups * sizeof(uint32_t);
    for (uint32_t f = 0; f < ffn_ranks; ++f)
        d->peers[f] = afj_window_address(buffer->windows[f]);

    struct afj_collect_args *c = &buffer->lanes[lane].args.source.collect;
    c->call = d->call;
    c->sets = d->sets;
    c->issued = d->issued;
    c->inbox = own;
}

static afdep_status check_dispatch(const afdep_buffer *buffer, afdep_dispatch_args *args)
{
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_ATTENTION, args->lane, "dispatch"));
    if (buffer->lanes[args->lane].open)
        return afj_fail(AFDEP_ERROR_ORDER,
                        "dispatch on lane %" PRIu32 ": its last dispatch was not collected yet",
                        args->lane);
    AFJ_TRY(afj_check_bucket(buffer, &args->bucket, "dispatch"));
    if (args->tokens > args->bucket)
        return afj_fail(AFDEP_ERROR_TOKENS,
                        "dispatch: tokens is %" PRIu32 "; the bucket is %" PRIu32, args->tokens,
                        args->bucket);
    if (args->tokens == 0)
        return AFDEP_OK;
    AFJ_TRY(afj_check_array(args->rows, 16, "rows"));
    AFJ_TRY(afj_check_array(args->ids, 4, "ids"));
    return afj_check_array(args->weights, 4, "weights");
}

afdep_status afj_source_dispatch(afdep_buffer *buffer, const afdep_dispatch_args *caller_args,
                                 afdep_stream stream)
{
    afdep_dispatch_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_dispatch_args"));
    AFJ_TRY(check_dispatch(buffer, &args));
    struct afj_lane *lane = &buffer->lanes[args.lane];
    struct afj_dispatch_args *d = &lane->args.source.dispatch;
    d->call.bucket = args.bucket;
    d->rows = (uint64_t)(uintptr_t)args.rows;
    d->ids = (uint64_t)(uintptr_t)args.ids;
    d->weights = (uint64_t)(uintptr_t)args.weights;
    d->tokens = args.tokens;
    AFJ_TRY(afj_buffer_launch(buffer, AFJ_ENTRY_DISPATCH, args.bucket, d, stream));
    lane->open = true;
    lane->bucket = args.bucket;
    lane->tokens = args.tokens;
    return AFDEP_OK;
}

afdep_status afj_source_collect(afdep_buffer *buffer, const afdep_collect_args *caller_args,
                                afdep_stream stream)
{
    afdep_collect_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_collect_args"));
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_ATTENTION, args.lane, "collect"));
    struct afj_lane *lane = &buffer->lanes[args.lane];
    if (!lane->open)
        return afj_fail(AFDEP_ERROR_ORDER,
                        "collect on lane %" PRIu32
                        ": nothing was dispatched since its last collect",
                        args.lane);
    if (lane->tokens > 0)
        AFJ_TRY(afj_check_array(args.rows, 16, "rows"));
    struct afj_collect_args *c = &lane->args.source.collect;
    c->call.bucket = lane->bucket;
    c->out = (uint64_t)(uintptr_t)args.rows;
    c->tokens = lane->tokens;
    AFJ_TRY(afj_buffer_launch(buffer, AFJ_ENTRY_COLLECT, lane->bucket, c, stream));
    lane->open = false;
    return AFDEP_OK;
}
