// inbox.cuh: one row out of an FFN rank's inbox and into the caller's arrays, for both receives.
#ifndef AFJ_PRIM_INBOX_CUH
#define AFJ_PRIM_INBOX_CUH

#include "prim/piece.cuh"
#include "prim/route.cuh"

// A slot of the inbox: what source `source` sent for its token `token`.
struct Slot {
    uint32_t source, token;
    Vec *row;
    uint32_t *meta;
};

AFJ_DEVICE Slot slot_of(const afj_receive_args &args, uint32_t source, uint32_t token)
{
    const uint64_t index = (uint64_t)source * args.call.capacity + token;
    const uint64_t address = args.inbox + index * kRowStride;
    return {source, token, at<Vec>(address), at<uint32_t>(address + kMetaAt)};
}

// Ids, then weights, as they travel.
typedef Slots<uint32_t, 2 * kTopK> Meta;

// What a warp holds of its share before it knows whether the row comes.
struct Arrival {
    Piece piece;
    Meta meta;
};

// Issue the loads of a share's first piece, and of ids and weights with the first share.
AFJ_DEVICE void peek_row(Arrival &arrival, const Slot &slot, uint32_t part)
{
    peek_piece(arrival.piece, span_of(part, 0), slot.row);
    if (part == 0)
        arrival.meta.each([&](int i, uint32_t &word) { word = load_relaxed(&slot.meta[i]); });
}

AFJ_DEVICE void take_meta(const afj_receive_args &args, Meta &meta, const Slot &slot, uint64_t row,
                          Wait &wait)
{
    meta.each([&](int i, uint32_t &word) {
        while (word == AFJ_EMPTY_WORD) {
            if (wait.give_up(AFJ_PHASE_RECEIVE_ROW, kFfnRanks + slot.source, slot.token)) {
                word = i < kTopK ? 0 : AFJ_CANONICAL_F32;
                break;
            }
            word = load_relaxed(&slot.meta[i]);
        }
        if (!wait.over())
            store_relaxed(&slot.meta[i], AFJ_EMPTY_WORD);
        if (i < kTopK) {
            const int32_t expert = local_of_wire(word, args.call.rank);
            store_own(at<int32_t>(args.ids) + row * kTopK + i, expert);
            if (expert >= 0)
                add_relaxed(at<uint32_t>(args.rows_per_expert) + expert, 1);
        } else {
            store_own(at<uint32_t>(args.weights) + row * kTopK + (i - kTopK), word);
        }
    });
}

// Take one share of a row that is on its way and make it row `row` of the output.
AFJ_DEVICE void take_row(const afj_receive_args &args, Arrival &arrival, const Slot &slot,
                         uint32_t part, uint64_t row, Wait &wait)
{
    Vec *out = at<Vec>(args.rows) + row * kRowVecs;
    for (uint32_t c = 0; c < kPieces; ++c) {
        const Span span = span_of(part, c);
        if (c > 0)
            peek_piece(arrival.piece, span, slot.row);
        take_piece(arrival.piece, span, slot.row, wait, AFJ_PHASE_RECEIVE_ROW,
                   kFfnRanks + slot.source, slot.token);
        store_piece(arrival.piece, span, out);
    }
    if (part != 0)
        return;
    take_meta(args, arrival.meta, slot, row, wait);
    if (lane() == 0) {
        store_own(at<uint32_t>(args.origins) + 2 * row, slot.source);
        store_own(at<uint32_t>(args.origins) + 2 * row + 1, slot.token);
        if (args.sources)
            store_own(at<uint32_t>(args.sources) + row, slot.source);
        if (args.tokens)
            store_own(at<uint32_t>(args.tokens) + row, slot.token);
    }
}

// How many rows there are: for reply, and for the caller unless this exchange has failed already.
// The two warps that store `total` use it as the arbiter: a failure wins whichever comes first.
AFJ_DEVICE void publish_count(const afj_receive_args &args, uint32_t rows)
{
    store_own(at<uint32_t>(args.count), rows);
    compare_exchange_relaxed(at<uint32_t>(args.total), AFJ_NO_TOTAL, rows);
}

// After a lane gave up, now or in an earlier exchange: nobody may use what came.
AFJ_DEVICE void withdraw_count(const afj_receive_args &args, const Wait &wait, bool dead)
{
    if (dead || wait.over())
        exchange_relaxed(at<uint32_t>(args.total), 0);
}

// The bits of a route word that are below the bucket. A source whose bucket is larger breaks the
// contract; its rows beyond are not taken, so that none is written past the caller's arrays.
AFJ_DEVICE uint32_t within_bucket(uint32_t word, uint32_t group, uint32_t bucket)
{
    const uint32_t left = bucket - group * AFJ_GROUP_TOKENS;
    return left < AFJ_GROUP_TOKENS ? word & ((1u << left) - 1) : word;
}

AFJ_DEVICE const uint32_t *route_word(const afj_receive_args &args, uint32_t source, uint32_t group)
{
    const uint64_t groups = AFJ_GROUPS(args.call.capacity);
    return at<uint32_t>(args.routes) + source * groups + group;
}

#endif
