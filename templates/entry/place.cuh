// place.cuh: the last part of a receive whose ids came first: rows to where the counts put them
// (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/inbox.cuh"

// Rows of the caller's arrays that a received row goes to: its own, or one for each of its choices
// that is an expert of this rank. Calls f(row).
template <class F>
AFJ_DEVICE void each_place(const Slots<uint32_t, kTopK> &hits, uint32_t valid, uint64_t row, F f)
{
    if (kReceive != kExpertMajor) {
        f(row);
        return;
    }
    for (uint32_t left = valid; left != 0; left &= left - 1)
        f((uint64_t)hits.take(lowest_bit(left)));
}

AFJ_DEVICE void place_row(const afj_receive_args &args, const Slot &slot, uint32_t part,
                          uint64_t row, Wait &wait)
{
    Arrival arrival;
    Slots<uint32_t, kTopK> hits;
    uint32_t valid = 0;
    peek_row(arrival, slot, part, span_of(part, 0));
    if (kReceive == kExpertMajor) {
        hits.each([&](int k, uint32_t &hit) {
            hit = load_early(at<uint32_t>(args.hits) + row * kTopK + k);
        });
        valid = hits.where([](uint32_t hit) { return hit != AFJ_EMPTY_WORD; });
    }
    take_payload(arrival, slot, part, wait, [&](Span span, Piece &piece) {
        each_place(hits, valid, row, [&](uint64_t place) {
            store_piece(piece, span, at<Vec>(args.rows) + place * kRowVecs);
        });
    });
    if (part != 0 || kTailWords == 0)
        return;
    take_scales(arrival, slot, wait);
    each_place(hits, valid, row,
               [&](uint64_t place) { store_scales(args, arrival, place); });
}

AFJ_ENTRY(place, afj_receive_args)
{
    const uint64_t items = (uint64_t)kAttentionRanks * args.call.bucket * kWarpsPerRow;
    Wait wait(args.call, args.call.counter);
    bool gone = false; // an earlier exchange failed
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid()) {
        const uint64_t row = item / kWarpsPerRow;
        const uint32_t dead = load_dead(args.call);
        const uint32_t rows = load_early(at<uint32_t>(args.count));
        const uint32_t source = load_early(at<uint32_t>(args.origins) + 2 * row);
        const uint32_t token = load_early(at<uint32_t>(args.origins) + 2 * row + 1);
        gone = warp_any(dead);
        if (gone || row >= rows)
            break;
        place_row(args, slot_of(args, source, token), (uint32_t)(item % kWarpsPerRow), row, wait);
    }
    withdraw_count(args, wait, gone);
}
