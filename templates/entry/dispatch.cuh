// dispatch.cuh: send a source's rows and route words to the FFN ranks (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/piece.cuh"
#include "prim/route.cuh"

// One group of 31 tokens: tell every FFN rank which of them come to it. Only this waits for the
// acks: a route word is free again once its reader says so, a row once its reply was collected.
AFJ_DEVICE void send_route_words(const afj_dispatch_args &args, uint32_t group)
{
    const uint32_t dead = load_dead(args.call);
    const uint32_t exchange = load_early(at<uint32_t>(args.call.counter));
    Slots<uint32_t, kFfnRanks> acks;
    acks.each([&](int f, uint32_t &ack) { ack = load_relaxed(at<uint32_t>(args.acks) + f); });

    Slots<Set, AFJ_GROUP_TOKENS> sets;
    sets.each([&](int i, Set &set) {
        const uint64_t token = (uint64_t)group * AFJ_GROUP_TOKENS + (uint64_t)i;
        set = 0;
        if (token < args.tokens) {
            const uint32_t *ids = at<uint32_t>(args.ids) + token * kTopK;
#pragma unroll
            for (int k = 0; k < kTopK; ++k)
                set |= set_of(load_input(&ids[k]));
        }
    });
    if (warp_any(dead))
        return;
    if (group == 0 && lane() == 0)
        store_own(at<uint32_t>(args.issued), exchange);

    Slots<uint32_t, kFfnRanks> words;
#pragma unroll 4
    for (int f = 0; f < kFfnRanks; ++f)
        words.put(f, sets.where([&](Set set) { return (set >> f & 1) != 0; }));

    // ack n-1 comes from reply n-1, behind the re-arm of these words (reply.cuh).
    Wait wait(args.call, args.call.counter);
    words.each(acks, [&](int f, uint32_t &word, uint32_t &ack) {
        while ((int32_t)(ack - (exchange - 1)) < 0) {
            if (wait.give_up(AFJ_PHASE_DISPATCH_ACK, (uint32_t)f, AFJ_NO_TOKEN))
                return;
            ack = load_relaxed(at<uint32_t>(args.acks) + f);
        }
        store_relaxed(at<uint32_t>(args.peers[f] + args.route_offset) + group, word);
    });
}

// One share of one row, to every FFN rank in the token's set; the first share takes the ids and
// weights along and keeps the set for collect.
AFJ_DEVICE void send_row(const afj_dispatch_args &args, uint32_t token, uint32_t part)
{
    const uint32_t dead = load_dead(args.call);
    const Vec *row = at<Vec>(args.rows) + (uint64_t)token * kRowVecs;
    Piece piece;
    Span span = span_of(part, 0);
    load_piece(piece, span, row);

    Slots<uint32_t, 2 * kTopK> meta;
    Set mine = 0;
    meta.each([&](int i, uint32_t &word) {
        const uint64_t first = (uint64_t)token * kTopK;
        if (i < kTopK) {
            const uint32_t id = load_input(at<uint32_t>(args.ids) + first + i);
            mine |= set_of(id);
            word = wire_of_id(id);
        } else {
            word = load_input(at<uint32_t>(args.weights) + first + (i - kTopK));
            word = canonical(word, AFJ_CANONICAL_F32);
        }
    });
    const Set set = warp_or_set(mine);
    if (warp_any(dead))
        return;
    if (part == 0 && lane() == 0)
        store_own(at<Set>(args.sets) + token, set);

    for (uint32_t c = 0; c < kPieces; ++c) {
        if (c > 0) {
            span = span_of(part, c);
            load_piece(piece, span, row);
        }
        canonicalise(piece, span);
        for (Set left = set; left != 0; left &= left - 1) {
            const uint64_t slot =
                args.peers[lowest_bit(left)] + args.inbox_offset + (uint64_t)token * kRowStride;
            send_piece(piece, span, at<Vec>(slot));
            if (part == 0 && c == 0)
                meta.each([&](int i, uint32_t &word) {
                    store_relaxed(at<uint32_t>(slot + kMetaAt) + i, word);
                });
        }
    }
}

AFJ_ENTRY(dispatch, afj_dispatch_args)
{
    const uint32_t groups = AFJ_GROUPS(args.call.bucket);
    const uint64_t items = groups + (uint64_t)args.tokens * kWarpsPerRow;
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid()) {
        if (item < groups) {
            send_route_words(args, (uint32_t)item);
        } else {
            const uint32_t share = (uint32_t)(item - groups);
            send_row(args, share / kWarpsPerRow, share % kWarpsPerRow);
        }
    }
}
