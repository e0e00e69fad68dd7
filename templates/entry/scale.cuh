// scale.cuh: the reference expert step: a row times the sum of weight x scale(expert) over its
// experts here. scale(e) = 2^((e mod 192) - 96), so that a wrong id or weight shows.
#include "afdep_constants.h"

#include "prim/piece.cuh"

AFJ_DEVICE float factor_of(const afj_scale_args &args, uint64_t row)
{
    float factor = 0;
    bool first = true;
    for (uint32_t k = 0; k < kTopK; ++k) {
        const uint32_t local = load_input(at<uint32_t>(args.ids) + row * kTopK + k);
        const float weight =
            float_of_bits(load_input(at<uint32_t>(args.weights) + row * kTopK + k));
        if ((int32_t)local < 0)
            continue;
        const uint32_t expert = args.call.rank * kExpertsPerRank + local;
        const float term = weight * float_of_bits((expert % 192 + 127 - 96) << 23);
        factor = first ? term : factor + term;
        first = false;
    }
    return factor;
}

AFJ_ENTRY(scale, afj_scale_args)
{
    const uint32_t rows = load_dead(args.call) ? 0 : load_early(at<uint32_t>(args.count));
    for (uint64_t row = warp_in_grid(); row < rows; row += warps_in_grid()) {
        const float factor = factor_of(args, row);
        for (uint32_t share = 0; share < kWarpsPerRow * kPieces; ++share) {
            const Span span = span_of(share / kPieces, share % kPieces);
            Piece piece;
            load_piece_early(piece, span, at<Vec>(args.rows) + row * kRowVecs);
            piece.each(span, [&](uint32_t, Vec &v) {
                for (int w = 0; w < 4; ++w)
                    v.w[w] = round_bf16x2(float_of_bits(v.w[w] << 16) * factor,
                                          float_of_bits(v.w[w] & 0xFFFF0000u) * factor);
            });
            store_piece(piece, span, at<Vec>(args.out) + row * kRowVecs);
        }
    }
}
