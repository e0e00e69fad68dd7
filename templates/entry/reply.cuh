// reply.cuh: send one row back for each row received, re-arm the route words, ack
// (docs/design.md sections 1 and 3).
#include "afdep_constants.h"

#include "prim/piece.cuh"

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
    for (uint32_t e = (uint32_t)lane(); e < kExpertsPerRank; e += kLanes)
        store_own(at<uint32_t>(args.rows_per_expert) + e, 0u);
    if (lane() == 0) {
        store_own(at<uint32_t>(args.total), AFJ_NO_TOTAL);
        store_own(at<uint32_t>(args.call.counter), exchange + 1);
    }
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
    Span span = span_of(part, 0);
    load_piece_early(piece, span, in);
    if (dead || row >= rows)
        return false;
    const uint64_t index = (uint64_t)token * kReplyStride;
    Vec *slot = at<Vec>(args.peers[source] + args.inbox_offset + index);
    for (uint32_t c = 0; c < kPieces; ++c) {
        if (c > 0) {
            span = span_of(part, c);
            load_piece(piece, span, in);
        }
        canonicalise(piece, span);
        send_piece(piece, span, slot);
    }
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
