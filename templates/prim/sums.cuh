// sums.cuh: BF16 rows added up in FP32, piece by piece, rounded once.
#ifndef AFJ_PRIM_SUMS_CUH
#define AFJ_PRIM_SUMS_CUH

#include "prim/piece.cuh"

// A piece's sums. The first row is taken as it is, so that -0 stays.
struct Sums {
    float held[Piece::kHeld][8];
    bool any;
};

AFJ_DEVICE void add_piece(Sums &sums, const Piece &piece)
{
#pragma unroll
    for (int j = 0; j < Piece::kHeld; ++j)
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const float low = float_of_bits(piece.held[j].w[w] << 16);
            const float high = float_of_bits(piece.held[j].w[w] & 0xFFFF0000u);
            float *sum = &sums.held[j][2 * w];
            sum[0] = sums.any ? sum[0] + low : low;
            sum[1] = sums.any ? sum[1] + high : high;
        }
    sums.any = true;
}

// The same with every element multiplied by `factor` first.
AFJ_DEVICE void add_piece(Sums &sums, const Piece &piece, float factor)
{
#pragma unroll
    for (int j = 0; j < Piece::kHeld; ++j)
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const float low = float_of_bits(piece.held[j].w[w] << 16) * factor;
            const float high = float_of_bits(piece.held[j].w[w] & 0xFFFF0000u) * factor;
            float *sum = &sums.held[j][2 * w];
            sum[0] = sums.any ? sum[0] + low : low;
            sum[1] = sums.any ? sum[1] + high : high;
        }
    sums.any = true;
}

AFJ_DEVICE void round_sums(Piece &piece, const Sums &sums)
{
#pragma unroll
    for (int j = 0; j < Piece::kHeld; ++j)
#pragma unroll
        for (int w = 0; w < 4; ++w)
            piece.held[j].w[w] = round_bf16x2(sums.held[j][2 * w], sums.held[j][2 * w + 1]);
}

#endif
