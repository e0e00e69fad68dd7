/* expert.c: the duty of an FFN rank: receive and reply, and the reference expert step between. */
#include <inttypes.h>
#include <string.h>

#include "base/sized.h"
#include "base/status.h"
#include "exchange/buffer.h"

void afj_expert_prepare(afdep_buffer *buffer, uint32_t lane)
{
    const struct afj_plan *plan = &buffer->plan;
    const struct afj_regions *regions = &plan->regions;
    const struct afj_state_layout *state = &plan->state;
    const uint32_t ffn_ranks = plan->config.fields.ffn_ranks;
    const uint64_t own =
        afj_window_address(buffer->windows[buffer->rank]) + lane * regions->ffn_lane_bytes;
    const uint64_t in_peer = lane * regions->attention_lane_bytes;

    struct afj_receive_args *r = &buffer->lanes[lane].args.expert.receive;
    r->call = afj_buffer_call(buffer, lane);
    r->inbox = own;
    r->routes = own + regions->route_offset;
    r->origins = afj_buffer_state_at(buffer, lane, state->origins);
    r->count = afj_buffer_state_at(buffer, lane, state->count);
    r->total = afj_buffer_state_at(buffer, lane, state->total);
    r->rows_per_source = afj_buffer_state_at(buffer, lane, state->rows_per_source);
    r->rows_per_expert = afj_buffer_state_at(buffer, lane, state->rows_per_expert);

    struct afj_reply_args *p = &buffer->lanes[lane].args.expert.reply;
    p->call = r->call;
    p->origins = r->origins;
    p->count = r->count;
    p->routes = r->routes;
    p->total = r->total;
    p->rows_per_expert = r->rows_per_expert;
    p->inbox_offset =
        in_peer + (uint64_t)buffer->rank * plan->config.fields.capacity * regions->reply_bytes;
    p->ack_offset = in_peer + regions->ack_offset + buffer->rank * sizeof(uint32_t);
    for (uint32_t a = 0; a < plan->config.fields.attention_ranks; ++a)
        p->peers[a] = afj_window_address(buffer->windows[ffn_ranks + a]);

    struct afj_scale_args *s = &buffer->lanes[lane].args.expert.scale;
    s->call = r->call;
    s->count = r->count;
}

afdep_status afj_expert_receive(afdep_buffer *buffer, const afdep_receive_args *caller_args,
                                afdep_stream stream)
{
    afdep_receive_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_receive_args"));
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_FFN, args.lane, "receive"));
    struct afj_lane *lane = &buffer->lanes[args.lane];
    if (lane->open)
        return afj_fail(AFDEP_ERROR_ORDER,
                        "receive on lane %" PRIu32 ": its last receive was not replied to yet",
                        args.lane);
    AFJ_TRY(afj_check_bucket(buffer, &args.bucket, "receive"));
    AFJ_TRY(afj_check_array(args.rows, 16, "rows"));
    AFJ_TRY(afj_check_array(args.ids, 4, "ids"));
    AFJ_TRY(afj_check_array(args.weights, 4, "weights"));
    if (args.sources)
        AFJ_TRY(afj_check_array(args.sources, 4, "sources"));
    if (args.tokens)
        AFJ_TRY(afj_check_array(args.tokens, 4, "tokens"));
    struct afj_receive_args *r = &lane->args.expert.receive;
    r->call.bucket = args.bucket;
    r->rows = (uint64_t)(uintptr_t)args.rows;
    r->ids = (uint64_t)(uintptr_t)args.ids;
    r->weights = (uint64_t)(uintptr_t)args.weights;
    r->sources = (uint64_t)(uintptr_t)args.sources;
    r->tokens = (uint64_t)(uintptr_t)args.tokens;
    AFJ_TRY(afj_buffer_launch(buffer, AFJ_ENTRY_RECEIVE, args.bucket, r, stream));
    lane->open = true;
    lane->bucket = args.bucket;
    return AFDEP_OK;
}

/* Reply and scale work on what a receive of the lane left. */
static afdep_status enter_open(const afdep_buffer *buffer, uint32_t lane, const char *call)
{
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_FFN, lane, call));
    if (!buffer->lanes[lane].open)
        return afj_fail(AFDEP_ERROR_ORDER,
                        "%s on lane %" PRIu32 ": nothing was received since its last reply", call,
                        lane);
    return AFDEP_OK;
}

afdep_status afj_expert_reply(afdep_buffer *buffer, const afdep_reply_args *caller_args,
                              afdep_stream stream)
{
    afdep_reply_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_reply_args"));
    AFJ_TRY(enter_open(buffer, args.lane, "reply"));
    AFJ_TRY(afj_check_array(args.rows, 16, "rows"));
    struct afj_lane *lane = &buffer->lanes[args.lane];
    struct afj_reply_args *p = &lane->args.expert.reply;
    p->call.bucket = lane->bucket;
    p->rows = (uint64_t)(uintptr_t)args.rows;
    AFJ_TRY(afj_buffer_launch(buffer, AFJ_ENTRY_REPLY, lane->bucket, p, stream));
    lane->open = false;
    return AFDEP_OK;
}

afdep_status afj_expert_scale(afdep_buffer *buffer, const afdep_scale_args *caller_args,
                              afdep_stream stream)
{
    afdep_scale_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_scale_args"));
    AFJ_TRY(enter_open(buffer, args.lane, "scale"));
    AFJ_TRY(afj_check_array(args.rows, 16, "rows"));
    AFJ_TRY(afj_check_array(args.ids, 4, "ids"));
    AFJ_TRY(afj_check_array(args.weights, 4, "weights"));
    AFJ_TRY(afj_check_array(args.out, 16, "out"));
    struct afj_lane *lane = &buffer->lanes[args.lane];
    struct afj_scale_args *s = &lane->args.expert.scale;
    s->call.bucket = lane->bucket;
    s->rows = (uint64_t)(uintptr_t)args.rows;
    s->ids = (uint64_t)(uintptr_t)args.ids;
    s->weights = (uint64_t)(uintptr_t)args.weights;
    s->out = (uint64_t)(uintptr_t)args.out;
    return afj_buffer_launch(buffer, AFJ_ENTRY_SCALE, lane->bucket, s, stream);
}

afdep_status afj_expert_counts(const afdep_buffer *buffer, uint32_t lane, afdep_counts *counts)
{
    AFJ_TRY(afj_sized_check(counts, sizeof *counts, "afdep_counts"));
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_FFN, lane, "afdep_buffer_counts"));
    const struct afj_receive_args *r = &buffer->lanes[lane].args.expert.receive;
    afdep_counts out;
    memset(&out, 0, sizeof out);
    out.total = (const uint32_t *)(uintptr_t)r->total;
    out.rows_per_source = (const uint32_t *)(uintptr_t)r->rows_per_source;
    out.rows_per_expert = (const uint32_t *)(uintptr_t)r->rows_per_expert;
    afj_sized_write(counts, &out, sizeof out);
    return AFDEP_OK;
}
