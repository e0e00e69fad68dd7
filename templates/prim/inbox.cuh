// inbox.cuh: rows out of an FFN rank's inbox and into the caller's arrays, for all that receive.
#ifndef AFJ_PRIM_INBOX_CUH
#define AFJ_PRIM_INBOX_CUH

#include "prim/meta.cuh"
#include "prim/route.cuh"

// Values of kReceive.
constexpr uint32_t kCompact = 1, kView = 2, kExpertMajor = 3;

// A slot of the inbox: what source `source` sent for its token `token`.
struct Slot {
    uint32_t source, token, index;
    Vec *row;
    uint32_t *meta;
};

AFJ_DEVICE Slot slot_of(const afj_receive_args &args, uint32_t source, uint32_t token)
{
    const uint64_t index = (uint64_t)source * args.call.capacity + token;
    return {source, token, (uint32_t)index, at<Vec>(args.inbox) + index * kRowVecs,
            at<uint32_t>(args.metas + index * kMetaStride)};
}

// What a warp holds of its share before it knows whether the row comes.
struct Arrival {
    Piece piece;
    Escapes escapes;
    Tail tail;
};

// Issue the loads of a piece of a share, and of the scales with the first share.
AFJ_DEVICE void peek_row(Arrival &arrival, const Slot &slot, uint32_t part, Span span)
{
    peek_piece(arrival.piece, span, slot.row);
    if (kOpaque)
        peek_words(arrival.escapes, escapes_of(span), slot.meta + escapes_at(span));
    if (kTailWords > 0 && part == 0 && span.first == 0)
        peek_words(arrival.tail, kTailWords, slot.meta + kScalesAt);
}

// Take one share of a row that is on its way; the first piece was asked for before. Calls
// store(span, piece) for each piece of what leaves the inbox.
template <class F>
AFJ_DEVICE void take_payload(Arrival &arrival, const Slot &slot, uint32_t part, Wait &wait, F store)
{
    const uint32_t peer = kFirstAttention + slot.source;
    for (uint32_t c = 0; c < kPieces; ++c) {
        const Span span = span_of(part, c);
        if (c > 0) {
            peek_piece(arrival.piece, span, slot.row);
            if (kOpaque)
                peek_words(arrival.escapes, escapes_of(span), slot.meta + escapes_at(span));
        }
        if (kReceive == kView) {
            await_piece(arrival.piece, span, slot.row, wait, AFJ_PHASE_RECEIVE_ROW, peer,
                        slot.token, [](uint32_t, Vec &) {});
            continue;
        }
        take_piece(arrival.piece, span, slot.row, wait, AFJ_PHASE_RECEIVE_ROW, peer, slot.token);
        if (kOpaque) {
            take_words(
                arrival.escapes, escapes_of(span), slot.meta + escapes_at(span), wait,
                AFJ_PHASE_RECEIVE_ROW, peer, slot.token, [](int) { return 0u; },
                [](int, uint32_t) {});
            unescape_piece(arrival.piece, span, arrival.escapes);
        }
        store(span, arrival.piece);
    }
}

// Take the scales of a row, once. They are valid in `arrival.tail` afterwards.
AFJ_DEVICE void take_scales(Arrival &arrival, const Slot &slot, Wait &wait)
{
    if (kTailWords == 0)
        return;
    take_words(
        arrival.tail, kTailWords, slot.meta + kScalesAt, wait, AFJ_PHASE_RECEIVE_ROW,
        kFirstAttention + slot.source, slot.token,
        [](int i) { return i < kScaleWords ? AFJ_CANONICAL_F32 : 0u; }, [](int, uint32_t) {});
    if (kScaleEscapes > 0)
        unescape_scales(arrival.tail);
}

AFJ_DEVICE void store_scales(const afj_receive_args &args, Arrival &arrival, uint64_t row)
{
    arrival.tail.each([&](int i, uint32_t &word) {
        if (i < kScaleWords)
            store_own(at<uint32_t>(args.scales) + row * kScaleWords + i, word);
    });
}

// The expert among those of this rank, from 0; -1 if it is not one of them.
AFJ_DEVICE int32_t local_of_wire(const afj_receive_args &args, uint32_t wire)
{
    if (wire == 0 || wire > kExperts)
        return -1;
    if (kMappedExperts) {
        const uint32_t owner = load_input(at<uint32_t>(args.owners) + wire - 1);
        return owner >> 16 == args.call.rank ? (int32_t)(owner & 0xFFFFu) : -1;
    }
    const uint32_t local = wire - 1 - args.first_expert;
    return local < args.local_experts ? (int32_t)local : -1;
}

// Take the ids and weights of a row, count its routes, and note where the row comes from.
AFJ_DEVICE void take_head(const afj_receive_args &args, Head &head, const Slot &slot, uint64_t row,
                          Wait &wait)
{
    take_words(
        head, kHeadWords, slot.meta, wait, AFJ_PHASE_RECEIVE_ROW, kFirstAttention + slot.source,
        slot.token, [](int i) { return i < kTopK ? 0u : AFJ_CANONICAL_F32; },
        [&](int i, uint32_t word) {
            const uint64_t choice = row * kTopK + (uint64_t)(i < kTopK ? i : i - kTopK);
            if (i >= kTopK) {
                if (kReceive == kExpertMajor)
                    store_own(at<uint32_t>(args.hit_weights) + choice, word);
                else if (args.weights)
                    store_own(at<uint32_t>(args.weights) + choice, word);
                return;
            }
            const int32_t expert = local_of_wire(args, word);
            if (kReceive == kExpertMajor)
                store_own(at<uint32_t>(args.choices) + choice, (uint32_t)expert);
            else if (args.ids)
                store_id(args.ids, choice, expert);
            if (expert >= 0)
                add_relaxed(at<uint32_t>(args.rows_per_expert) + expert, 1);
        });
    if (lane() == 0) {
        store_own(at<uint32_t>(args.origins) + 2 * row, slot.source);
        store_own(at<uint32_t>(args.origins) + 2 * row + 1, slot.token);
        if (kReceive == kView && args.slots)
            store_own(at<uint32_t>(args.slots) + row, slot.index);
        if (kReceive != kExpertMajor && args.sources)
            store_own(at<uint32_t>(args.sources) + row, slot.source);
        if (kReceive != kExpertMajor && args.tokens)
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
    if (!dead && !wait.over())
        return;
    exchange_relaxed(at<uint32_t>(args.total), 0);
    if (kHostCounts)
        store_host(at<uint32_t>(args.host_counts), 0);
}

// Every warp of the grid is through its rows when the last one comes here. That one copies the
// counts to the host, the total last.
AFJ_DEVICE void publish_to_host(const afj_receive_args &args)
{
    if (!kHostCounts)
        return;
    bool last = false;
    warp_sync();
    fence_system(); // with the fence of the last warp below: it sees what this one counted
    if (lane() == 0)
        last = add_and_fetch_relaxed(at<uint32_t>(args.ended), 1) == warps_in_grid();
    if (!warp_any(last))
        return;
    fence_system();
    uint32_t *host = at<uint32_t>(args.host_counts);
    for (uint32_t s = (uint32_t)lane(); s < kAttentionRanks; s += kLanes)
        store_host(host + 1 + s, load_relaxed(at<uint32_t>(args.rows_per_source) + s));
    for (uint32_t e = (uint32_t)lane(); e < args.local_experts; e += kLanes)
        store_host(host + 1 + kAttentionRanks + e,
                   load_relaxed(at<uint32_t>(args.rows_per_expert) + e));
    warp_sync();
    fence_system();
    if (lane() == 0)
        store_host(host, load_relaxed(at<uint32_t>(args.total)));
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

// One share of one row, compact or as a view, ids and weights with the first share.
AFJ_DEVICE void take_row(const afj_receive_args &args, Arrival &arrival, Head &head,
                         const Slot &slot, uint32_t part, uint64_t row, Wait &wait)
{
    Vec *out = at<Vec>(args.rows) + row * kRowVecs;
    take_payload(arrival, slot, part, wait,
                 [&](Span span, Piece &piece) { store_piece(piece, span, out); });
    if (part != 0)
        return;
    take_head(args, head, slot, row, wait);
    if (kTailWords > 0) {
        take_scales(arrival, slot, wait);
        store_scales(args, arrival, row);
    }
}

#endif
