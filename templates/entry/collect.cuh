// collect.cuh: take a token's replies and sum them in ascending order of FFN ranks
// (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/meta.cuh"
#include "prim/route.cuh"
#include "prim/sums.cuh"

// The weights beside the replies of a token, summed as the rows are.
AFJ_DEVICE void collect_weights(const afj_collect_args &args, uint32_t token, Set set, Wait &wait)
{
    Slots<float, kTopK> sums;
    sums.each([](int, float &sum) { sum = 0; });
    bool first = true;
    for (Set left = set; left != 0; left &= left - 1) {
        const uint32_t f = (uint32_t)lowest_bit(left);
        uint32_t *beside = at<uint32_t>(args.beside) +
                           ((uint64_t)f * args.call.capacity + token) * kTopK;
        Slots<uint32_t, kTopK> words;
        peek_words(words, kTopK, beside);
        take_words(
            words, kTopK, beside, wait, AFJ_PHASE_COLLECT_REPLY, f, token,
            [](int) { return AFJ_CANONICAL_F32; }, [](int, uint32_t) {});
        words.each(sums, [&](int, uint32_t &word, float &sum) {
            sum = first ? float_of_bits(word) : sum + float_of_bits(word);
        });
        first = false;
    }
    sums.each([&](int k, float &sum) {
        store_own(at<float>(args.weights) + (uint64_t)token * kTopK + k, sum);
    });
}

// One share of one token whose row stays where it is: wait for it. Without a route it is +0.
AFJ_DEVICE void await_row(const afj_collect_args &args, uint32_t token, uint32_t part, Set set,
                          Wait &wait)
{
    Vec *slot = at<Vec>(args.inbox + (uint64_t)token * kRowVecs * sizeof(Vec));
    for (uint32_t c = 0; c < kPieces; ++c) {
        const Span span = span_of(part, c);
        Piece piece;
        if (set == 0) {
            piece.each(span, [&](uint32_t i, Vec &) { store_relaxed(&slot[i], vec_of(0)); });
            continue;
        }
        peek_piece(piece, span, slot);
        await_piece(piece, span, slot, wait, AFJ_PHASE_COLLECT_REPLY, 0, token,
                    [](uint32_t, Vec &) {});
    }
}

// One share of one token. The set is the one dispatch saved: exactly these slots turn full.
AFJ_DEVICE void collect_row(const afj_collect_args &args, uint32_t token, uint32_t part, Wait &wait)
{
    const uint32_t dead = load_dead(args.call);
    const Set set = load_early(at<Set>(args.sets) + token);
    Vec *out = at<Vec>(args.out) + (uint64_t)token * kRowVecs;
    const uint64_t inbox = args.inbox + (uint64_t)token * kRowVecs * sizeof(Vec);
    if (kFfnRanks == 1 && args.out == 0) {
        if (dead)
            return;
        await_row(args, token, part, set, wait);
        if (kReplyWeights && part == 0)
            collect_weights(args, token, set, wait);
        return;
    }
    for (uint32_t c = 0; c < kPieces; ++c) {
        const Span span = span_of(part, c);
        Sums sums = {};
        Piece piece;
        // With one FFN rank the slot is known before the set is.
        if (kFfnRanks == 1)
            peek_piece(piece, span, at<Vec>(inbox));
        if (dead)
            return;
        for (Set left = set; left != 0; left &= left - 1) {
            const uint32_t f = (uint32_t)lowest_bit(left);
            Vec *slot = at<Vec>(inbox + (uint64_t)f * args.call.capacity * kRowVecs * sizeof(Vec));
            if (kFfnRanks != 1)
                peek_piece(piece, span, slot);
            take_piece(piece, span, slot, wait, AFJ_PHASE_COLLECT_REPLY, f, token);
            add_piece(sums, piece);
        }
        round_sums(piece, sums);
        store_piece(piece, span, out);
    }
    if (kReplyWeights && part == 0)
        collect_weights(args, token, set, wait);
}

AFJ_ENTRY(collect, afj_collect_args)
{
    // One lane counts the exchange. Nobody in collect reads the counter; dispatch left the number
    // that error records name. Both loads are issued here and used at the end.
    const bool counts = warp_in_grid() == 0 && lane() == 0;
    uint32_t dead = 0, exchange = 0, tokens = args.tokens;
    if (counts) {
        dead = load_dead(args.call);
        exchange = load_early(at<uint32_t>(args.call.counter));
    }
    if (args.live)
        tokens = load_early(at<uint32_t>(args.issued) + 1);
    Wait wait(args.call, args.issued);
    const uint64_t items = (uint64_t)tokens * kWarpsPerRow;
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid())
        collect_row(args, (uint32_t)(item / kWarpsPerRow), (uint32_t)(item % kWarpsPerRow), wait);
    if (counts && args.viewed)
        store_own(at<uint32_t>(args.viewed), args.out == 0 ? tokens : 0u);
    if (counts && !dead && !wait.over())
        store_own(at<uint32_t>(args.call.counter), exchange + 1);
}
