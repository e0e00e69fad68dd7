/* expert.c: the duty of an FFN rank: receive and reply, and the reference expert step between. */
#include <inttypes.h>
#include <string.h>

#include "base/sized.h"
#include "base/status.h"
#include "exchange/buffer.h"

static void prepare_receive(afdep_buffer *buffer, uint32_t lane, struct afj_receive_args *r)
{
    const struct afj_plan *plan = &buffer->plan;
    const struct afj_regions *regions = &plan->regions;
    const struct afj_state_layout *state = &plan->state;
    const uint64_t own = afj_buffer_lane_at(buffer, buffer->rank, AFDEP_ROLE_FFN, lane);
    r->call = afj_buffer_call(buffer, lane, state->expert.counter);
    r->inbox = own;
    r->metas = own + regions->meta_offset;
    r->routes = own + regions->route_offset;
    r->owners = (uint64_t)(uintptr_t)buffer->owners;
    r->origins = afj_buffer_state_at(buffer, lane, state->expert.origins);
    r->count = afj_buffer_state_at(buffer, lane, state->expert.count);
    r->total = afj_buffer_state_at(buffer, lane, state->expert.total);
    r->rows_per_source = afj_buffer_state_at(buffer, lane, state->expert.rows_per_source);
    r->rows_per_expert = afj_buffer_state_at(buffer, lane, state->expert.rows_per_expert);
    r->expert_offsets = afj_buffer_state_at(buffer, lane, state->expert.expert_offsets);
    r->choices = afj_buffer_state_at(buffer, lane, state->expert.choices);
    r->hits = afj_buffer_state_at(buffer, lane, state->expert.hits);
    r->hit_weights = afj_buffer_state_at(buffer, lane, state->expert.hit_weights);
    r->ended = afj_buffer_state_at(buffer, lane, state->expert.ended);
    if (buffer->host_counts)
        r->host_counts =
            (uint64_t)(uintptr_t)(buffer->host_counts + lane * buffer->host_count_words);
    r->first_expert = buffer->first_expert;
    r->local_experts = buffer->local_experts;
    r->alignment = plan->config.fields.alignment;
}

static void prepare_reply(afdep_buffer *buffer, uint32_t lane, const struct afj_receive_args *r,
                          struct afj_reply_args *p)
{
    const struct afj_config *config = &buffer->plan.config;
    const struct afj_regions *regions = &buffer->plan.regions;
    const uint64_t slot = (uint64_t)buffer->rank * config->fields.capacity;
    p->call = r->call;
    p->origins = r->origins;
    p->count = r->count;
    p->hits = r->hits;
    p->hit_weights = r->hit_weights;
    p->inbox = r->inbox;
    p->routes = r->routes;
    p->total = r->total;
    p->rows_per_expert = r->rows_per_expert;
    p->host_counts = r->host_counts;
    p->ended = r->ended;
    p->inbox_offset = slot * regions->reply_bytes;
    p->reply_weights_offset =
        regions->reply_weights_offset + slot * config->fields.top_k * sizeof(uint32_t);
    p->ack_offset = regions->ack_offset + buffer->rank * sizeof(uint32_t);
    p->local_experts = buffer->local_experts;
    for (uint32_t a = 0; a < config->fields.attention_ranks; ++a)
        p->peers[a] = afj_buffer_lane_at(buffer, afj_config_attention_rank(config, a),
                                         AFDEP_ROLE_ATTENTION, lane);
}

void afj_expert_prepare(afdep_buffer *buffer, uint32_t lane)
{
    struct afj_expert_lane *l = &buffer->lanes[lane].expert;
    prepare_receive(buffer, lane, &l->receive);
    prepare_reply(buffer, lane, &l->receive, &l->reply);
    l->scale.call = l->receive.call;
    l->scale.count = l->receive.count;
    l->scale.origins = l->receive.origins;
    l->scale.expert_offsets = l->receive.expert_offsets;
    l->scale.globals = (uint64_t)(uintptr_t)buffer->globals;
    l->scale.local_experts = buffer->local_experts;
}

/* Where ids, weights and origins go, and the bucket. */
static afdep_status check_counts(const afdep_buffer *buffer, afdep_receive_args *args,
                                 const char *call)
{
    AFJ_TRY(afj_check_bucket(buffer, &args->bucket, call));
    AFJ_TRY(afj_check_ctas(buffer, args->ctas, call));
    AFJ_TRY(afj_check_optional(args->ids, buffer->plan.config.fields.id_bits / 8, "ids"));
    AFJ_TRY(afj_check_optional(args->weights, 4, "weights"));
    AFJ_TRY(afj_check_optional(args->sources, 4, "sources"));
    AFJ_TRY(afj_check_optional(args->slots, 4, "slots"));
    return afj_check_optional(args->tokens, 4, "tokens");
}

static afdep_status check_rows(const afdep_buffer *buffer, const afdep_receive_args *args)
{
    const afdep_config *c = &buffer->plan.config.fields;
    if (c->receive == AFDEP_RECEIVE_VIEW && args->rows)
        return afj_fail(AFDEP_ERROR_ARGUMENT,
                        "receive: rows is given; those of a view stay in the inbox, so leave it "
                        "NULL (afdep_buffer_view)");
    if (c->receive != AFDEP_RECEIVE_VIEW)
        AFJ_TRY(afj_check_array(args->rows, 16, "rows"));
    if (buffer->plan.regions.scale_words)
        AFJ_TRY(afj_check_array(args->scales, 4, "scales"));
    return AFDEP_OK;
}

static void set_counts(struct afj_receive_args *r, const afdep_buffer *buffer,
                       const afdep_receive_args *args)
{
    r->call.bucket = args->bucket;
    r->ids = (uint64_t)(uintptr_t)args->ids;
    r->weights = (uint64_t)(uintptr_t)args->weights;
    r->sources = (uint64_t)(uintptr_t)args->sources;
    r->tokens = (uint64_t)(uintptr_t)args->tokens;
    r->slots = (uint64_t)(uintptr_t)args->slots;
    r->receive_rows = (uint32_t)afj_regions_receive_rows(&buffer->plan.config,
                                                         buffer->local_experts, args->bucket);
}

static void set_rows(struct afj_receive_args *r, const afdep_receive_args *args)
{
    r->rows = (uint64_t)(uintptr_t)args->rows;
    r->scales = (uint64_t)(uintptr_t)args->scales;
}

static bool is_grouped(const afdep_buffer *buffer)
{
    return buffer->plan.config.fields.receive == AFDEP_RECEIVE_EXPERT_MAJOR;
}

/* The first of several kernels takes words out of the inbox. If a later one is refused they are
 * gone, so the lane refuses what would wait for them. */
static afdep_status launch_next(afdep_buffer *buffer, enum afj_entry entry,
                                const afdep_receive_args *args, struct afj_expert_lane *lane,
                                afdep_stream stream)
{
    const afdep_status status =
        afj_buffer_launch(buffer, entry, args->bucket, args->ctas, &lane->receive, stream);
    if (status != AFDEP_OK)
        lane->step = AFJ_EXPERT_BROKEN;
    return status;
}

static afdep_status launch_counts(afdep_buffer *buffer, const afdep_receive_args *args,
                                  struct afj_expert_lane *lane, afdep_stream stream)
{
    AFJ_TRY(afj_buffer_launch(buffer, AFJ_ENTRY_COUNTS, args->bucket, args->ctas, &lane->receive,
                              stream));
    if (!is_grouped(buffer))
        return AFDEP_OK;
    return launch_next(buffer, AFJ_ENTRY_ARRANGE, args, lane, stream);
}

static afdep_status refuse_step(const char *call, uint32_t lane, enum afj_expert_step step,
                                const char *why)
{
    if (step == AFJ_EXPERT_BROKEN)
        why = "its last receive was launched in part only; the buffer can only be destroyed";
    return afj_fail(AFDEP_ERROR_ORDER, "%s on lane %" PRIu32 ": %s", call, lane, why);
}

afdep_status afj_expert_receive_counts(afdep_buffer *buffer, const afdep_receive_args *caller_args,
                                       afdep_stream stream)
{
    afdep_receive_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_receive_args"));
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_FFN, args.lane, "receive_counts"));
    if (!buffer->plan.config.fields.counts_first)
        return afj_fail(AFDEP_ERROR_CONFIG, "receive_counts: the buffer was not created with "
                                            "counts_first");
    struct afj_expert_lane *lane = &buffer->lanes[args.lane].expert;
    if (lane->step != AFJ_EXPERT_IDLE)
        return refuse_step("receive_counts", args.lane, lane->step,
                           "its last counts were not replied to yet");
    AFJ_TRY(check_counts(buffer, &args, "receive_counts"));
    set_counts(&lane->receive, buffer, &args);
    AFJ_TRY(launch_counts(buffer, &args, lane, stream));
    lane->step = AFJ_EXPERT_COUNTED;
    lane->bucket = args.bucket;
    return AFDEP_OK;
}

/* The rows of counts that were received before: the bucket is theirs. */
static afdep_status receive_counted(afdep_buffer *buffer, afdep_receive_args *args,
                                    struct afj_expert_lane *lane, afdep_stream stream)
{
    if (lane->step != AFJ_EXPERT_COUNTED)
        return refuse_step("receive", args->lane, lane->step,
                           lane->step == AFJ_EXPERT_IDLE
                               ? "its counts were not received before (afdep_receive_counts)"
                               : "its last receive was not replied to yet");
    AFJ_TRY(afj_check_bucket(buffer, &args->bucket, "receive"));
    if (args->bucket != lane->bucket)
        return afj_fail(AFDEP_ERROR_TOKENS,
                        "receive: bucket is %" PRIu32 "; the counts were received with %" PRIu32,
                        args->bucket, lane->bucket);
    AFJ_TRY(afj_check_ctas(buffer, args->ctas, "receive"));
    AFJ_TRY(check_rows(buffer, args));
    set_rows(&lane->receive, args);
    return afj_buffer_launch(buffer, AFJ_ENTRY_PLACE, args->bucket, args->ctas, &lane->receive,
                             stream);
}

static afdep_status receive_whole(afdep_buffer *buffer, afdep_receive_args *args,
                                  struct afj_expert_lane *lane, afdep_stream stream)
{
    if (lane->step != AFJ_EXPERT_IDLE)
        return refuse_step("receive", args->lane, lane->step,
                           "its last receive was not replied to yet");
    AFJ_TRY(check_counts(buffer, args, "receive"));
    AFJ_TRY(check_rows(buffer, args));
    struct afj_receive_args *r = &lane->receive;
    set_counts(r, buffer, args);
    set_rows(r, args);
    if (!is_grouped(buffer))
        return afj_buffer_launch(buffer, AFJ_ENTRY_RECEIVE, args->bucket, args->ctas, r, stream);
    AFJ_TRY(launch_counts(buffer, args, lane, stream));
    return launch_next(buffer, AFJ_ENTRY_PLACE, args, lane, stream);
}

afdep_status afj_expert_receive(afdep_buffer *buffer, const afdep_receive_args *caller_args,
                                afdep_stream stream)
{
    afdep_receive_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_receive_args"));
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_FFN, args.lane, "receive"));
    struct afj_expert_lane *lane = &buffer->lanes[args.lane].expert;
    AFJ_TRY(buffer->plan.config.fields.counts_first ? receive_counted(buffer, &args, lane, stream)
                                                    : receive_whole(buffer, &args, lane, stream));
    lane->step = AFJ_EXPERT_RECEIVED;
    lane->bucket = args.bucket;
    return AFDEP_OK;
}

/* Reply and scale work on what a receive of the lane left. */
static afdep_status enter_received(const afdep_buffer *buffer, uint32_t lane, const char *call)
{
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_FFN, lane, call));
    if (buffer->lanes[lane].expert.step != AFJ_EXPERT_RECEIVED)
        return refuse_step(call, lane, buffer->lanes[lane].expert.step,
                           "nothing was received since its last reply");
    return AFDEP_OK;
}

static afdep_status check_reply(const afdep_buffer *buffer, const afdep_reply_args *args)
{
    AFJ_TRY(enter_received(buffer, args->lane, "reply"));
    AFJ_TRY(afj_check_ctas(buffer, args->ctas, "reply"));
    AFJ_TRY(afj_check_array(args->rows, 16, "rows"));
    if (args->apply_weights > 1 || (args->apply_weights && !is_grouped(buffer)))
        return afj_fail(AFDEP_ERROR_ARGUMENT,
                        "reply: apply_weights is %" PRIu32
                        "; it is 0, or 1 in the expert-major layout",
                        args->apply_weights);
    if (buffer->plan.config.fields.reply_weights)
        return afj_check_array(args->weights, 4, "weights");
    return AFDEP_OK;
}

afdep_status afj_expert_reply(afdep_buffer *buffer, const afdep_reply_args *caller_args,
                              afdep_stream stream)
{
    afdep_reply_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_reply_args"));
    AFJ_TRY(check_reply(buffer, &args));
    struct afj_expert_lane *lane = &buffer->lanes[args.lane].expert;
    struct afj_reply_args *p = &lane->reply;
    p->call.bucket = lane->bucket;
    p->rows = (uint64_t)(uintptr_t)args.rows;
    p->weights = (uint64_t)(uintptr_t)args.weights;
    p->apply_weights = args.apply_weights;
    AFJ_TRY(afj_buffer_launch(buffer, AFJ_ENTRY_REPLY, lane->bucket, args.ctas, p, stream));
    lane->step = AFJ_EXPERT_IDLE;
    return AFDEP_OK;
}

afdep_status afj_expert_scale(afdep_buffer *buffer, const afdep_scale_args *caller_args,
                              afdep_stream stream)
{
    afdep_scale_args args;
    AFJ_TRY(afj_sized_read(&args, sizeof args, caller_args, sizeof args, "afdep_scale_args"));
    AFJ_TRY(enter_received(buffer, args.lane, "scale"));
    AFJ_TRY(afj_check_ctas(buffer, args.ctas, "scale"));
    AFJ_TRY(afj_check_zero(args.reserved, "reserved", "scale"));
    struct afj_expert_lane *lane = &buffer->lanes[args.lane].expert;
    struct afj_scale_args *s = &lane->scale;
    const bool view = buffer->plan.config.fields.receive == AFDEP_RECEIVE_VIEW;
    if (view && args.rows)
        return afj_fail(
            AFDEP_ERROR_ARGUMENT,
            "scale: rows is given; those of a view stay in the inbox, so leave it NULL");
    if (!view)
        AFJ_TRY(afj_check_array(args.rows, 16, "rows"));
    AFJ_TRY(afj_check_array(args.ids, buffer->plan.config.fields.id_bits / 8, "ids"));
    AFJ_TRY(afj_check_array(args.weights, 4, "weights"));
    if (buffer->plan.regions.scale_words)
        AFJ_TRY(afj_check_array(args.scales, 4, "scales"));
    AFJ_TRY(afj_check_array(args.out, 16, "out"));
    s->call.bucket = lane->bucket;
    s->rows = view ? lane->receive.inbox : (uint64_t)(uintptr_t)args.rows;
    s->ids = (uint64_t)(uintptr_t)args.ids;
    s->weights = (uint64_t)(uintptr_t)args.weights;
    s->scales = (uint64_t)(uintptr_t)args.scales;
    s->out = (uint64_t)(uintptr_t)args.out;
    return afj_buffer_launch(buffer, AFJ_ENTRY_SCALE, lane->bucket, args.ctas, s, stream);
}

static const uint32_t *words_at(uint64_t address) { return (const uint32_t *)(uintptr_t)address; }

afdep_status afj_expert_counts(const afdep_buffer *buffer, uint32_t lane, afdep_counts *counts)
{
    AFJ_TRY(afj_sized_check(counts, sizeof *counts, "afdep_counts"));
    AFJ_TRY(afj_buffer_enter(buffer, AFDEP_ROLE_FFN, lane, "afdep_buffer_counts"));
    const struct afj_receive_args *r = &buffer->lanes[lane].expert.receive;
    afdep_counts out;
    memset(&out, 0, sizeof out);
    out.total = words_at(r->total);
    out.rows_per_source = words_at(r->rows_per_source);
    out.rows_per_expert = words_at(r->rows_per_expert);
    out.expert_offsets = is_grouped(buffer) ? words_at(r->expert_offsets) : NULL;
    out.host = words_at(r->host_counts);
    afj_sized_write(counts, &out, sizeof out);
    return AFDEP_OK;
}
