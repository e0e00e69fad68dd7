// reply.cuh: send one row back for each row received, re-arm the route words, ack
// (docs/design.md sections 1 and 3).
#include "afdep_constants.h"

#include "prim/inbox.cuh"
#include "prim/sums.cuh"

// By one warp: receive, the only reader of the route words, has ended. Re-arm them; behind a fence
// tell every source, whose next dispatch waits for it before it stores route words; then count the
// exchange. Nobody else in this kernel reads the counter.
AFJ_DEVICE void acknowledge(const afj_reply_args &args)
{
    const uint32_t dead = load_dead(args.call);
    const uint32_t exchange = load_early(at<uint32_t>(args.call.counter));
    if (warp_any(dead))
        return;
    const uint32_t groups = AFJ_GROUPS(args.call.bucket);
    const uint64_t stride = AFJ_GROUPS(args.call.capacity);
    for (uint32_t i = (uint32_t)lane(); i < kAttentionRanks * groups; i += kLanes)
        store_relaxed(at<uint32_t>(args.routes) + i / groups * stride + i % groups, AFJ_EMPTY_WORD);
    warp_sync();
    fence_system();
    for (uint32_t a = (uint32_t)lane(); a < kAttentionRanks; a += kLanes)
        store_relaxed(at<uint32_t>(args.peers[a] + args.ack_offset), exchange);
    warp_sync();
    for (uint32_t e = (uint32_t)lane(); e < args.local_experts; e += kLanes)
        store_own(at<uint32_t>(args.rows_per_expert) + e, 0u);
    if (lane() == 0) {
        store_own(at<uint32_t>(args.total), AFJ_NO_TOTAL);
        if (kHostCounts) {
            store_host(at<uint32_t>(args.host_counts), AFJ_NO_TOTAL);
            store_own(at<uint32_t>(args.ended), 0u);
        }
        store_own(at<uint32_t>(args.call.counter), exchange + 1);
    }
}

// A share of a slot whose row was read where it lies is free again. The fence puts that before the
// reply words, which are its credit (docs/design.md section 3).
AFJ_DEVICE void rearm_slot(const afj_reply_args &args, uint32_t source, uint32_t token,
                           uint32_t part)
{
    const uint64_t index = (uint64_t)source * args.call.capacity + token;
    Vec *slot = at<Vec>(args.inbox) + index * kPayloadVecs;
    const uint32_t share = (kPayloadVecs + kWarpsPerRow - 1) / kWarpsPerRow;
    const uint32_t end = (part + 1) * share < kPayloadVecs ? (part + 1) * share : kPayloadVecs;
    for (uint32_t i = part * share + (uint32_t)lane(); i < end; i += kLanes)
        store_relaxed(&slot[i], vec_of(AFJ_EMPTY_WORD));
    warp_sync();
    fence_system();
}

// The rows of a token's choices, summed in their order.
AFJ_DEVICE void sum_places(const afj_reply_args &args, const Slots<uint32_t, kTopK> &hits,
                           const Slots<uint32_t, kTopK> &weights, Span span, Piece &piece)
{
    Sums sums = {};
    for (uint32_t left = hits.where([](uint32_t hit) { return hit != AFJ_EMPTY_WORD; }); left != 0;
         left &= left - 1) {
        const int k = lowest_bit(left);
        load_piece(piece, span, at<Vec>(args.rows) + (uint64_t)hits.take(k) * kRowVecs);
        if (args.apply_weights)
            add_piece(sums, piece, float_of_bits(weights.take(k)));
        else
            add_piece(sums, piece);
    }
    round_sums(piece, sums);
}

// One share of one row, back to the slot of its token. The loads that depend on each other are
// issued together: past the last row they read what nobody uses.
AFJ_DEVICE bool send_reply(const afj_reply_args &args, uint64_t row, uint32_t part)
{
    const uint32_t dead = load_dead(args.call);
    const uint32_t rows = load_early(at<uint32_t>(args.count));
    const uint32_t source = load_early(at<uint32_t>(args.origins) + 2 * row);
    const uint32_t token = load_early(at<uint32_t>(args.origins) + 2 * row + 1);
    const Vec *in = at<Vec>(args.rows) + row * kRowVecs;
    Piece piece;
    Slots<uint32_t, kTopK> hits, weights;
    Span span = span_of(part, 0);
    if (kReceive != kExpertMajor)
        load_piece_early(piece, span, in);
    const bool none = dead != 0 || row >= rows;
    if (kReceive == kCompact ? none : warp_any(none))
        return false;
    if (kReceive == kExpertMajor)
        hits.each(weights, [&](int k, uint32_t &hit, uint32_t &weight) {
            hit = load_early(at<uint32_t>(args.hits) + row * kTopK + k);
            weight = load_early(at<uint32_t>(args.hit_weights) + row * kTopK + k);
        });
    if (kReceive == kView)
        rearm_slot(args, source, token, part);
    const uint64_t index = (uint64_t)token * kRowVecs * sizeof(Vec);
    Vec *slot = at<Vec>(args.peers[source] + args.inbox_offset + index);
    for (uint32_t c = 0; c < kPieces; ++c) {
        span = span_of(part, c);
        if (kReceive == kExpertMajor)
            sum_places(args, hits, weights, span, piece);
        else if (c > 0)
            load_piece(piece, span, in);
        canonicalise(piece, span, AFJ_CANONICAL_BF16X2);
        send_piece(piece, span, slot);
    }
    if (!kReplyWeights || part != 0)
        return true;
    uint32_t *beside = at<uint32_t>(args.peers[source] + args.reply_weights_offset) +
                       (uint64_t)token * kTopK;
    for (int k = lane(); k < kTopK; k += kLanes)
        store_relaxed(beside + k, canonical(load_input(at<uint32_t>(args.weights) + row * kTopK + k),
                                            AFJ_CANONICAL_F32));
    return true;
}

AFJ_ENTRY(reply, afj_reply_args)
{
    // The last warp acks, so that it is not one of the few that a small batch keeps busy.
    if (warp_in_grid() == warps_in_grid() - 1)
        acknowledge(args);
    const uint64_t items = (uint64_t)kAttentionRanks * args.call.bucket * kWarpsPerRow;
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid())
        if (!send_reply(args, item / kWarpsPerRow, (uint32_t)(item % kWarpsPerRow)))
            return;
}
