// piece.cuh: a piece of a row in a warp's registers: from the caller, to a peer, out of an inbox.
#ifndef AFJ_PRIM_PIECE_CUH
#define AFJ_PRIM_PIECE_CUH

#include "prim/wait.cuh"

// A row of kRowVecs vectors is moved by kWarpsPerRow warps, a share each; a share is moved in
// kPieces pieces of at most kPieceVecs vectors. Whole rows divide without a rest.
constexpr bool kWholeRows = kRowVecs == kWarpsPerRow * kShareVecs &&
                            kShareVecs == kPieces * kPieceVecs && kPieceVecs % 32 == 0;
static_assert(kWarpsPerRow * kShareVecs >= kRowVecs, "the shares cover a row");
static_assert(kPieces * kPieceVecs >= kShareVecs, "the pieces cover a share");

// Where piece `piece` of share `part` lies in its row.
struct Span {
    uint32_t first, count;
};

AFJ_DEVICE Span span_of(uint32_t part, uint32_t piece)
{
    const uint32_t first = part * kShareVecs + piece * kPieceVecs;
    if (kWholeRows)
        return {first, kPieceVecs};
    const uint32_t share_end = (part + 1) * kShareVecs;
    const uint32_t end = share_end < kRowVecs ? share_end : kRowVecs;
    const uint32_t left = first < end ? end - first : 0;
    return {first, left < kPieceVecs ? left : kPieceVecs};
}

struct Piece {
    static constexpr int kHeld = (kPieceVecs + kLanes - 1) / kLanes;
    Vec held[kHeld];

    // Call f(i, vector) for each vector of the span, in the lane that holds it.
    template <class F> AFJ_DEVICE void each(Span span, F f)
    {
#pragma unroll
        for (int j = 0; j < kHeld; ++j) {
            const uint32_t i = (uint32_t)(j * kLanes + lane());
            if (kWholeRows || i < span.count)
                f(span.first + i, held[j]);
        }
    }
};

AFJ_DEVICE uint32_t canonical(uint32_t word, uint32_t instead)
{
    return word == AFJ_EMPTY_WORD ? instead : word;
}

AFJ_DEVICE bool has_empty(const Vec &v)
{
    return v.w[0] == AFJ_EMPTY_WORD || v.w[1] == AFJ_EMPTY_WORD || v.w[2] == AFJ_EMPTY_WORD ||
           v.w[3] == AFJ_EMPTY_WORD;
}

AFJ_DEVICE Vec vec_of(uint32_t word) { return {{word, word, word, word}}; }

// From the caller's row.
AFJ_DEVICE void load_piece(Piece &piece, Span span, const Vec *row)
{
    piece.each(span, [&](uint32_t i, Vec &v) { v = load_input(&row[i]); });
}

// The same before it is known whether the row is there, or where this kernel stores it again.
AFJ_DEVICE void load_piece_early(Piece &piece, Span span, const Vec *row)
{
    piece.each(span, [&](uint32_t i, Vec &v) { v = load_early(&row[i]); });
}

// No word of what is sent may read as empty: it becomes `instead`.
AFJ_DEVICE void canonicalise(Piece &piece, Span span, uint32_t instead)
{
    piece.each(span, [&](uint32_t, Vec &v) {
        for (int w = 0; w < 4; ++w)
            v.w[w] = canonical(v.w[w], instead);
    });
}

// To a slot of a peer's inbox. Every word makes itself known; nothing orders them.
AFJ_DEVICE void send_piece(Piece &piece, Span span, Vec *slot)
{
    piece.each(span, [&](uint32_t i, Vec &v) { store_relaxed(&slot[i], v); });
}

// A first look at a slot, before it is known whether anything comes.
AFJ_DEVICE void peek_piece(Piece &piece, Span span, const Vec *slot)
{
    piece.each(span, [&](uint32_t i, Vec &v) { v = load_relaxed(&slot[i]); });
}

// Poll a slot until every word is there, then call f(i, vector). What a peer did not send in time is
// NaN, and f is not called.
template <class F>
AFJ_DEVICE void await_piece(Piece &piece, Span span, const Vec *slot, Wait &wait, uint32_t phase,
                            uint32_t peer, uint32_t token, F f)
{
    piece.each(span, [&](uint32_t i, Vec &v) {
        while (has_empty(v)) {
            v = load_relaxed(&slot[i]);
            if (has_empty(v) && wait.give_up(phase, peer, token)) {
                v = vec_of(AFJ_CANONICAL_BF16X2);
                return;
            }
        }
        f(i, v);
    });
}

// Out of a slot: the same, and write the empty word back. A slot that did not fill is left alone.
AFJ_DEVICE void take_piece(Piece &piece, Span span, Vec *slot, Wait &wait, uint32_t phase,
                           uint32_t peer, uint32_t token)
{
    await_piece(piece, span, slot, wait, phase, peer, token,
                [&](uint32_t i, Vec &) { store_relaxed(&slot[i], vec_of(AFJ_EMPTY_WORD)); });
}

// To the caller's row.
AFJ_DEVICE void store_piece(Piece &piece, Span span, Vec *row)
{
    piece.each(span, [&](uint32_t i, Vec &v) { store_own(&row[i], v); });
}

// Warps of the grid, the CTAs taking turns, so that few items spread over many multiprocessors.
AFJ_DEVICE uint32_t warp_in_grid() { return warp_in_cta() * ctas() + cta(); }
AFJ_DEVICE uint32_t warps_in_grid() { return kWarps * ctas(); }

#endif
