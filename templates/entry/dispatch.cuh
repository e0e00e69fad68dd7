// dispatch.cuh: send a source's rows and route words to the FFN ranks (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/meta.cuh"
#include "prim/route.cuh"

// Ids and weights of a token in a receipt, as they travel.
AFJ_DEVICE uint32_t *receipt_of(const afj_dispatch_args &args, uint32_t token)
{
    return at<uint32_t>(args.receipt + AFJ_RECEIPT_HEADER_BYTES) + (uint64_t)token * kHeadWords;
}

// The tokens of this exchange.
AFJ_DEVICE uint32_t tokens_of(const afj_dispatch_args &args)
{
    uint32_t tokens = args.tokens;
    if (args.live) {
        tokens = load_input(at<uint32_t>(args.live));
        tokens = tokens < args.call.bucket ? tokens : args.call.bucket;
    }
    if (args.ids == 0 && args.receipt != 0) {
        const uint32_t kept = load_input(at<uint32_t>(args.receipt));
        tokens = tokens < kept ? tokens : kept;
    }
    return tokens;
}

// Where the choices of a token are: ids of the caller, or words of a receipt, which are as they
// travel. Told apart by addresses, so that all loads of a token are issued together.
struct Choices {
    const uint32_t *first;
    uint32_t stride;
    bool sent;
};

AFJ_DEVICE Choices choices_of(const afj_dispatch_args &args, uint32_t token)
{
    if (args.ids == 0)
        return {receipt_of(args, token), 1, true};
    return {at<uint32_t>(args.ids) + (uint64_t)token * kTopK * kIdWords, kIdWords, false};
}

// The second word of an id that has two.
AFJ_DEVICE uint32_t load_high(const Choices &choices, uint32_t k)
{
    return kIdWords == 2 && !choices.sent ? load_input(choices.first + 2 * k + 1) : 0;
}

AFJ_DEVICE uint32_t wire_of_choice(const Choices &choices, uint32_t low, uint32_t high)
{
    /* A receipt that was never kept holds anything; what it sends stays within the experts. */
    if (choices.sent)
        return is_expert(low - 1) ? low : 0;
    return high == 0 ? wire_of_id(low) : 0;
}

// One group of 31 tokens: tell every FFN rank which of them come to it. Only this waits for the
// acks: a route word is free again once its reader says so, a row once its reply was collected.
AFJ_DEVICE void send_route_words(const afj_dispatch_args &args, uint32_t group, uint32_t tokens)
{
    const uint32_t dead = load_dead(args.call);
    const uint32_t exchange = load_early(at<uint32_t>(args.call.counter));
    Slots<uint32_t, kFfnRanks> acks;
    acks.each([&](int f, uint32_t &ack) { ack = load_relaxed(at<uint32_t>(args.acks) + f); });
    Slots<Set, AFJ_GROUP_TOKENS> sets;
    sets.each([&](int i, Set &set) {
        const uint32_t token = group * AFJ_GROUP_TOKENS + (uint32_t)i;
        set = 0;
        if (token < tokens) {
            const Choices choices = choices_of(args, token);
#pragma unroll
            for (uint32_t k = 0; k < kTopK; ++k) {
                const uint32_t low = load_input(choices.first + k * choices.stride);
                const uint32_t wire = wire_of_choice(choices, low, load_high(choices, k));
                set |= set_of_wire(args.owners, wire);
            }
        }
    });
    if (warp_any(dead))
        return;
    if (group == 0 && lane() == 0) {
        store_own(at<uint32_t>(args.issued), exchange);
        store_own(at<uint32_t>(args.issued) + 1, tokens);
        if (args.ids != 0 && args.receipt != 0)
            store_own(at<uint32_t>(args.receipt), tokens);
    }

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
        if (kStrictFences)
            fence_system(); // acquires the re-arm behind the ack, and releases to receive
        store_relaxed(at<uint32_t>(args.peers[f] + args.route_offset) + group, word);
    });
}

// Where word i of a token's head comes from.
AFJ_DEVICE const uint32_t *head_word(const afj_dispatch_args &args, const Choices &choices,
                                     uint32_t token, uint32_t i)
{
    if (i < kTopK)
        return choices.first + i * choices.stride;
    if (args.weights == 0)
        return receipt_of(args, token) + i;
    return at<uint32_t>(args.weights) + (uint64_t)token * kTopK + (i - kTopK);
}

// Ids and weights of a token, and the set of its FFN ranks, the same in all lanes.
AFJ_DEVICE Set load_head(const afj_dispatch_args &args, uint32_t token, Head &head)
{
    const Choices choices = choices_of(args, token);
    Head high;
    head.each(high, [&](int i, uint32_t &word, uint32_t &rest) {
        word = load_input(head_word(args, choices, token, (uint32_t)i));
        rest = i < kTopK ? load_high(choices, (uint32_t)i) : 0;
    });
    Set mine = 0;
    head.each(high, [&](int i, uint32_t &word, uint32_t &rest) {
        if (i < kTopK) {
            word = wire_of_choice(choices, word, rest);
            mine |= set_of_wire(args.owners, word);
        } else {
            word = canonical(word, AFJ_CANONICAL_F32);
        }
    });
    return warp_or_set(mine);
}

AFJ_DEVICE uint32_t *meta_in(const afj_dispatch_args &args, int f, uint32_t token)
{
    return at<uint32_t>(args.peers[f] + args.meta_offset + (uint64_t)token * kMetaStride);
}

// The ids and weights of a token, to every FFN rank in its set.
AFJ_DEVICE void send_head(const afj_dispatch_args &args, uint32_t token, Head &head, Set set)
{
    for (Set left = set; left != 0; left &= left - 1) {
        uint32_t *meta = meta_in(args, lowest_bit(left), token);
        head.each([&](int i, uint32_t &word) { store_relaxed(&meta[i], word); });
    }
}

// A token's head alone, where ids go ahead of rows.
AFJ_DEVICE void send_head_first(const afj_dispatch_args &args, uint32_t token)
{
    const uint32_t dead = load_dead(args.call);
    Head head;
    const Set set = load_head(args, token, head);
    if (!warp_any(dead))
        send_head(args, token, head, set);
}

AFJ_DEVICE void load_scales(const afj_dispatch_args &args, uint32_t token, Tail &tail)
{
    tail.each([&](int i, uint32_t &word) {
        word = i < kScaleWords
                   ? load_input(at<uint32_t>(args.scales) + (uint64_t)token * kScaleWords + i)
                   : 0;
        if (kScaleEscapes == 0)
            word = canonical(word, AFJ_CANONICAL_F32);
    });
    if (kScaleEscapes > 0)
        escape_scales(tail);
}

// What an empty-looking word of a row of this dtype becomes. Opaque rows are escaped instead.
constexpr uint32_t kInstead = kDtype == kBf16 ? AFJ_CANONICAL_BF16X2 : AFJ_CANONICAL_E4M3X4;

// The first bad route goes into the record, for the host to read; all are counted.
AFJ_COLD void note_fault(const afj_dispatch_args &args, uint32_t kind, uint32_t token, uint32_t k,
                         uint32_t expert)
{
    uint32_t *faults = at<uint32_t>(args.faults);
    add_relaxed(&faults[kind], 1);
    if (compare_exchange_relaxed(&faults[AFJ_FAULT_KINDS], 0, 1) != 0)
        return;
    afj_route_record *record = at<afj_route_record>(args.first_fault);
    store_host(&record->kind, kind);
    store_host(&record->token, token);
    store_host(&record->choice, k);
    store_host(&record->expert, expert);
    fence_system();
    store_host(&record->state, 1);
}

AFJ_DEVICE void check_choice(const afj_dispatch_args &args, uint32_t token, uint32_t k)
{
    const uint64_t first = (uint64_t)token * kTopK;
    const uint32_t id = load_id(args.ids, first + k);
    const bool none = load_input(at<uint32_t>(args.ids) + (first + k) * kIdWords) == ~0u &&
                      load_input(at<uint32_t>(args.ids) + (first + k + 1) * kIdWords - 1) == ~0u;
    if (none)
        return;
    if (!is_expert(id)) {
        note_fault(args, AFJ_FAULT_OUT_OF_RANGE, token, k, id);
        return;
    }
    for (uint32_t j = 0; j < k; ++j)
        if (load_id(args.ids, first + j) == id) {
            note_fault(args, AFJ_FAULT_REPEATED, token, k, id);
            break;
        }
    const uint32_t weight = load_input(at<uint32_t>(args.weights) + first + k);
    if ((weight & 0x7FFFFFFFu) > 0x7F800000u)
        note_fault(args, AFJ_FAULT_NAN_WEIGHT, token, k, id);
}

// Keep what collect and the receipt need of a token, and count its bad routes.
AFJ_DEVICE void keep_head(const afj_dispatch_args &args, uint32_t token, Head &head, Set set)
{
    if (lane() == 0)
        store_own(at<Set>(args.sets) + token, set);
    if (args.ids == 0)
        return;
    if (args.receipt != 0)
        head.each([&](int i, uint32_t &word) { store_own(receipt_of(args, token) + i, word); });
    if (kCheckRoutes)
        for (uint32_t k = (uint32_t)lane(); k < kTopK; k += kLanes)
            check_choice(args, token, k);
}

// One share of one row, to every FFN rank in the token's set; the first share takes ids, weights
// and scales along and keeps the set for collect.
AFJ_DEVICE void send_row(const afj_dispatch_args &args, uint32_t token, uint32_t part)
{
    const uint32_t dead = load_dead(args.call);
    const Vec *row = at<Vec>(args.rows) + (uint64_t)token * kRowVecs;
    Piece piece;
    Span span = span_of(part, 0);
    load_piece(piece, span, row);
    Head head;
    Tail tail;
    const Set set = load_head(args, token, head);
    if (kTailWords > 0 && part == 0)
        load_scales(args, token, tail);
    if (warp_any(dead))
        return;
    if (part == 0)
        keep_head(args, token, head, set);
    for (uint32_t c = 0; c < kPieces; ++c) {
        Escapes escapes;
        if (c > 0) {
            span = span_of(part, c);
            load_piece(piece, span, row);
        }
        if (kOpaque)
            escape_piece(piece, span, escapes);
        else
            canonicalise(piece, span, kInstead);
        for (Set left = set; left != 0; left &= left - 1) {
            const int f = lowest_bit(left);
            const uint64_t index = (uint64_t)token * kRowVecs * sizeof(Vec);
            send_piece(piece, span, at<Vec>(args.peers[f] + args.inbox_offset + index));
            uint32_t *meta = meta_in(args, f, token);
            if (kOpaque)
                escapes.each([&](int i, uint32_t &word) {
                    if (i < escapes_of(span))
                        store_relaxed(&meta[escapes_at(span) + (uint32_t)i], word);
                });
            if (part != 0 || c != 0)
                continue;
            if (!kCountsFirst)
                head.each([&](int i, uint32_t &word) { store_relaxed(&meta[i], word); });
            if (kTailWords > 0)
                tail.each([&](int i, uint32_t &word) {
                    if (i < kTailWords)
                        store_relaxed(&meta[kScalesAt + i], word);
                });
        }
    }
}

AFJ_ENTRY(dispatch, afj_dispatch_args)
{
    const uint32_t tokens = tokens_of(args);
    const uint32_t groups = AFJ_GROUPS(args.call.bucket);
    const uint64_t heads = groups + (kCountsFirst ? tokens : 0u);
    const uint64_t items = heads + (uint64_t)tokens * kWarpsPerRow;
    if (kCheckRoutes && args.live && warp_in_grid() == 0 && lane() == 0 &&
        !load_dead(args.call) &&
        load_input(at<uint32_t>(args.live)) > args.call.bucket)
        note_fault(args, AFJ_FAULT_OVER_BUCKET, AFJ_NO_TOKEN, 0,
                   load_input(at<uint32_t>(args.live)));
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid()) {
        if (item < groups) {
            send_route_words(args, (uint32_t)item, tokens);
        } else if (item < heads) {
            send_head_first(args, (uint32_t)(item - groups));
        } else {
            const uint32_t share = (uint32_t)(item - heads);
            send_row(args, share / kWarpsPerRow, share % kWarpsPerRow);
        }
    }
}
