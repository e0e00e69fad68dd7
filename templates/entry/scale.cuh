// scale.cuh: the reference expert step: a row times the sum of weight x scale(expert) over its
// experts here. scale(e) = 2^((e mod 192) - 96), so that a wrong id or weight shows.
#include "afdep_constants.h"

#include "prim/inbox.cuh"

AFJ_DEVICE float scale_of(const afj_scale_args &args, uint32_t local)
{
    const uint32_t expert = load_input(at<uint32_t>(args.globals) + local);
    return float_of_bits((expert % 192 + 127 - 96) << 23);
}

// What a row is multiplied with. False: it is none, but padding.
AFJ_DEVICE bool factor_of(const afj_scale_args &args, uint64_t row, float *factor)
{
    const uint32_t choices = kReceive == kExpertMajor ? 1 : kTopK;
    bool first = true;
    *factor = 0;
    for (uint32_t k = 0; k < choices; ++k) {
        const uint32_t local = load_id(args.ids, row * choices + k);
        if ((int32_t)local < 0)
            continue;
        const float weight =
            float_of_bits(load_input(at<uint32_t>(args.weights) + row * choices + k));
        const float term = weight * scale_of(args, local);
        *factor = first ? term : *factor + term;
        first = false;
    }
    return kReceive != kExpertMajor || !first;
}

AFJ_DEVICE float float_of_e4m3(uint32_t byte)
{
    const uint32_t sign = byte >> 7 << 31, exponent = byte >> 3 & 15, mantissa = byte & 7;
    if (exponent == 15 && mantissa == 7)
        return float_of_bits(sign | 0x7FC00000u);
    if (exponent == 0)
        return float_of_bits(sign | 0x3F800000u) * ((float)mantissa * float_of_bits(118u << 23));
    return float_of_bits(sign | (exponent + 120) << 23 | mantissa << 20);
}

AFJ_DEVICE float float_of_ue8m0(uint32_t byte)
{
    if (byte == 0)
        return float_of_bits(0x00400000u);
    return float_of_bits(byte == 255 ? 0x7FC00000u : byte << 23);
}

// Element i of a row.
AFJ_DEVICE float element_of(const uint32_t *row, const uint32_t *scales, uint32_t i)
{
    if (kDtype == kBf16) {
        const uint32_t word = load_early(&row[i / 2]);
        return float_of_bits(i % 2 ? word & 0xFFFF0000u : word << 16);
    }
    const uint32_t at_byte = i % (kPayloadVecs * 16);
    const uint32_t byte = load_early(&row[at_byte / 4]) >> at_byte % 4 * 8 & 0xFFu;
    if (kDtype == kOpaqueBytes)
        return (float)byte;
    const uint32_t block = i / 128;
    if (kDtype == kFp8)
        return float_of_e4m3(byte) * float_of_bits(load_early(&scales[block]));
    return float_of_e4m3(byte) *
           float_of_ue8m0(load_early(&scales[block / 4]) >> block % 4 * 8 & 0xFFu);
}

AFJ_DEVICE const uint32_t *row_of(const afj_scale_args &args, uint64_t row)
{
    uint64_t index = row;
    if (kReceive == kView)
        index = (uint64_t)load_early(at<uint32_t>(args.origins) + 2 * row) * args.call.capacity +
                load_early(at<uint32_t>(args.origins) + 2 * row + 1);
    return at<uint32_t>(args.rows) + index * kPayloadVecs * 4;
}

AFJ_ENTRY(scale, afj_scale_args)
{
    const uint32_t dead = load_dead(args.call);
    const uint32_t count = load_early(kReceive == kExpertMajor
                                          ? at<uint32_t>(args.expert_offsets) + args.local_experts
                                          : at<uint32_t>(args.count));
    const uint32_t rows = dead ? 0 : count;
    for (uint64_t row = warp_in_grid(); row < rows; row += warps_in_grid()) {
        float factor;
        if (!factor_of(args, row, &factor))
            continue;
        const uint32_t *in = row_of(args, row);
        const uint32_t *scales = at<uint32_t>(args.scales) + row * kScaleWords;
        Vec *out = at<Vec>(args.out) + row * kRowVecs;
        for (uint32_t i = (uint32_t)lane(); i < kRowVecs; i += kLanes) {
            Vec v;
            for (uint32_t w = 0; w < 4; ++w) {
                const uint32_t e = 8 * i + 2 * w;
                v.w[w] = round_bf16x2(element_of(in, scales, e) * factor,
                                      element_of(in, scales, e + 1) * factor);
            }
            store_own(&out[i], v);
        }
    }
}
