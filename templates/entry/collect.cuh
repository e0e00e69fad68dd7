// collect.cuh: take a token's replies and sum them in ascending order of FFN ranks
// (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/piece.cuh"
#include "prim/route.cuh"

// A piece's sums in FP32.
struct Sums {
    float held[Piece::kHeld][8];
};

AFJ_DEVICE void add_piece(Sums &sums, const Piece &piece, bool first)
{
#pragma unroll
    for (int j = 0; j < Piece::kHeld; ++j)
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const float low = float_of_bits(piece.held[j].w[w] << 16);
            const float high = float_of_bits(piece.held[j].w[w] & 0xFFFF0000u);
            float *sum = &sums.held[j][2 * w];
            sum[0] = first ? low : sum[0] + low;
            sum[1] = first ? high : sum[1] + high;
        }
}

AFJ_DEVICE void round_sums(Piece &piece, const Sums &sums)
{
#pragma unroll
    for (int j = 0; j < Piece::kHeld; ++j)
#pragma unroll
        for (int w = 0; w < 4; ++w)
            piece.held[j].w[w] = round_bf16x2(sums.held[j][2 * w], sums.held[j][2 * w + 1]);
}

// One share of one token. The set is the one dispatch saved: exactly these slots turn full.
AFJ_DEVICE void collect_row(const afj_collect_args &args, uint32_t token, uint32_t part, Wait &wait)
{
    const uint32_t dead = load_dead(args.call);
    const Set set = load_early(at<Set>(args.sets) + token);
    Vec *out = at<Vec>(args.out) + (uint64_t)token * kRowVecs;
    const uint64_t inbox = args.inbox + (uint64_t)token * kReplyStride;
    for (uint32_t c = 0; c < kPieces; ++c) {
        const Span span = span_of(part, c);
        Sums sums = {};
        bool first = true;
        Piece piece;
        // With one FFN rank the slot is known before the set is.
        if (kFfnRanks == 1)
            peek_piece(piece, span, at<Vec>(inbox));
        if (dead)
            return;
        for (Set left = set; left != 0; left &= left - 1) {
            const uint32_t f = (uint32_t)lowest_bit(left);
            Vec *slot = at<Vec>(inbox + (uint64_t)f * args.call.capacity * kReplyStride);
            if (kFfnRanks != 1)
                peek_piece(piece, span, slot);
            take_piece(piece, span, slot, wait, AFJ_PHASE_COLLECT_REPLY, f, token);
            add_piece(sums, piece, first);
            first = false;
        }
        round_sums(piece, sums);
        store_piece(piece, span, out);
    }
}

AFJ_ENTRY(collect, afj_collect_args)
{
    // One lane counts the exchange. Nobody in collect reads the counter; dispatch left the number
    // that error records name. Both loads are issued here and used at the end.
    const bool counts = warp_in_grid() == 0 && lane() == 0;
    uint32_t dead = 0, exchange = 0;
    if (counts) {
        dead = load_dead(args.call);
        exchange = load_early(at<uint32_t>(args.call.counter));
    }
    Wait wait(args.call, args.issued);
    const uint64_t items = (uint64_t)args.tokens * kWarpsPerRow;
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid())
        collect_row(args, (uint32_t)(item / kWarpsPerRow), (uint32_t)(item % kWarpsPerRow), wait);
    if (counts && !dead && !wait.over())
        store_own(at<uint32_t>(args.call.counter), exchange + 1);
}
