// meta.cuh: the words beside a row in an inbox: ids and weights, scales, and what was escaped
// (docs/design.md section 1).
#ifndef AFJ_PRIM_META_CUH
#define AFJ_PRIM_META_CUH

#include "prim/piece.cuh"
#include "prim/slots.cuh"

// Values of kDtype.
constexpr uint32_t kBf16 = 1, kFp8 = 2, kOpaqueBytes = 4;

// Words of a row, in this order.
constexpr int kHeadWords = 2 * kTopK; // ids, then weights
constexpr int kScalesAt = kHeadWords;
constexpr int kTailWords = kScaleWords + kScaleEscapes;
constexpr int kRowEscapesAt = kScalesAt + kTailWords;
constexpr bool kOpaque = kRowEscapes != 0;

typedef Slots<uint32_t, kHeadWords> Head;
typedef Slots<uint32_t, (kTailWords > 0 ? kTailWords : 1)> Tail;

// Escape words of a piece of an opaque row: AFJ_BLOCK_ESCAPES for each 32 vectors.
constexpr int kPieceBlocks = (kPieceVecs + 31) / 32;
constexpr int kPieceEscapes = kPieceBlocks * (int)AFJ_BLOCK_ESCAPES;
typedef Slots<uint32_t, kPieceEscapes> Escapes;

// Where the escape words of a span lie among the words of its row, and how many there are.
AFJ_DEVICE uint32_t escapes_at(Span span)
{
    return kRowEscapesAt + span.first / 32 * AFJ_BLOCK_ESCAPES;
}
AFJ_DEVICE int escapes_of(Span span)
{
    return (int)((span.count + 31) / 32 * AFJ_BLOCK_ESCAPES);
}

// Bit v: word w of vector v of a block would read as empty. The same in all lanes.
AFJ_DEVICE uint32_t empties_of(const Piece &piece, Span span, int block, int w)
{
    constexpr int kBlockHeld = 32 / kLanes;
    uint32_t bits = 0;
#pragma unroll
    for (int j = 0; j < kBlockHeld; ++j) {
        const int held = block * kBlockHeld + j;
        if (held < Piece::kHeld) {
            const uint32_t i = (uint32_t)(held * kLanes + lane());
            bits |= warp_ballot(i < span.count && piece.held[held].w[w] == AFJ_EMPTY_WORD)
                    << (j * kLanes);
        }
    }
    return bits;
}

// Make what is sent free of empty words, and note in `escapes` where they were.
AFJ_DEVICE void escape_piece(Piece &piece, Span span, Escapes &escapes)
{
#pragma unroll
    for (int block = 0; block < kPieceBlocks; ++block) {
        uint32_t last = 0; // of vector 31
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const uint32_t bits = empties_of(piece, span, block, w);
            last |= bits >> 31 << w;
            escapes.put(block * (int)AFJ_BLOCK_ESCAPES + w, bits & 0x7FFFFFFFu);
        }
        escapes.put(block * (int)AFJ_BLOCK_ESCAPES + 4, last);
    }
    canonicalise(piece, span, 0);
}

// The reverse, once all words are here.
AFJ_DEVICE void unescape_piece(Piece &piece, Span span, const Escapes &escapes)
{
#pragma unroll
    for (int block = 0; block < kPieceBlocks; ++block) {
        const uint32_t last = escapes.take(block * (int)AFJ_BLOCK_ESCAPES + 4);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const uint32_t bits =
                escapes.take(block * (int)AFJ_BLOCK_ESCAPES + w) | (last >> w & 1u) << 31;
            piece.each(span, [&](uint32_t i, Vec &v) {
                const uint32_t in_piece = i - span.first;
                if (in_piece / 32 == (uint32_t)block && (bits >> in_piece % 32 & 1u))
                    v.w[w] = AFJ_EMPTY_WORD;
            });
        }
    }
}

// Packed scales of which words i < kScaleWords are sent: the same for them.
AFJ_DEVICE void escape_scales(Tail &tail)
{
    uint32_t bits = 0;
#pragma unroll
    for (int j = 0; j < Tail::kHeld; ++j) {
        const int i = j * kLanes + lane();
        const bool empty = i < kScaleWords && tail.held[j] == AFJ_EMPTY_WORD;
        if (empty)
            tail.held[j] = 0;
        const uint32_t found = warp_ballot(empty);
        bits |= j * kLanes < 32 ? found << (j * kLanes) : 0;
    }
    tail.put(kScaleWords, bits & 0x7FFFFFFFu);
    tail.put(kScaleWords + 1, bits >> 31);
}

AFJ_DEVICE void unescape_scales(Tail &tail)
{
    const uint32_t bits = tail.take(kScaleWords) | (tail.take(kScaleWords + 1) & 1u) << 31;
    tail.each([&](int i, uint32_t &word) {
        if (i < kScaleWords && i < 32 && (bits >> i & 1u))
            word = AFJ_EMPTY_WORD;
    });
}

// A first look at the first `count` words, before it is known whether anything comes.
template <int kCount>
AFJ_DEVICE void peek_words(Slots<uint32_t, kCount> &words, int count, const uint32_t *from)
{
    words.each([&](int i, uint32_t &word) {
        if (i < count)
            word = load_relaxed(&from[i]);
    });
}

// Poll the first `count` words, write the empty word back, and call f(i, word). A word that did not
// come in time is instead(i), and its place is left alone.
template <int kCount, class G, class F>
AFJ_DEVICE void take_words(Slots<uint32_t, kCount> &words, int count, uint32_t *from, Wait &wait,
                           uint32_t phase, uint32_t peer, uint32_t token, G instead, F f)
{
    words.each([&](int i, uint32_t &word) {
        if (i >= count)
            return;
        while (word == AFJ_EMPTY_WORD) {
            if (wait.give_up(phase, peer, token)) {
                word = instead(i);
                break;
            }
            word = load_relaxed(&from[i]);
        }
        if (!wait.over())
            store_relaxed(&from[i], AFJ_EMPTY_WORD);
        f(i, word);
    });
}

#endif
