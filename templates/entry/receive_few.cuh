// receive_few.cuh: take few rows: every warp reads all route words itself, with its rows already
// asked for, and no barrier in between (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/inbox.cuh"

// All route words of the bucket, word s * groups + g from source s. At most 32 of them.
constexpr int kWords = 32;

// Rows from each source, by one warp that has all route words.
template <int kCount>
AFJ_DEVICE void count_sources(const afj_receive_args &args, const Slots<uint32_t, kCount> &words,
                              uint32_t groups)
{
    for (uint32_t s = 0; s < kAttentionRanks; ++s) {
        uint32_t mine = 0;
#pragma unroll
        for (int j = 0; j < words.kHeld; ++j) {
            const uint32_t i = (uint32_t)(j * kLanes + lane());
            if (i < kCount && i / groups == s)
                mine += (uint32_t)count_bits(words.held[j]);
        }
        const uint32_t rows = warp_sum(mine);
        if (lane() == 0)
            store_own(at<uint32_t>(args.rows_per_source) + s, rows);
    }
}

AFJ_ENTRY(receive_few, afj_receive_args)
{
    const uint32_t bucket = args.call.bucket;
    const uint32_t groups = AFJ_GROUPS(bucket);
    const uint64_t items = (uint64_t)kAttentionRanks * bucket * kWarpsPerRow;

    Wait wait(args.call, args.call.counter);
    Slots<uint32_t, kWords> words, before;
    uint32_t rows = 0;
    bool scanned = false;
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid()) {
        const uint32_t part = (uint32_t)(item % kWarpsPerRow);
        const uint32_t index = (uint32_t)(item / kWarpsPerRow);
        const Slot slot = slot_of(args, index / bucket, index % bucket);
        const uint32_t dead = scanned ? 0 : load_dead(args.call);
        Arrival arrival;
        Head head;
        peek_row(arrival, slot, part, span_of(part, 0));
        if (part == 0)
            peek_words(head, kHeadWords, slot.meta);

        if (!scanned) {
            words.each([&](int i, uint32_t &word) {
                const uint32_t source = (uint32_t)i / groups, group = (uint32_t)i % groups;
                word = source < kAttentionRanks ? load_relaxed(route_word(args, source, group)) : 0;
            });
            if (warp_any(dead)) {
                withdraw_count(args, wait, true);
                return;
            }
            words.each([&](int i, uint32_t &word) {
                const uint32_t source = (uint32_t)i / groups, group = (uint32_t)i % groups;
                if (source < kAttentionRanks)
                    word = within_bucket(wait.word(word, route_word(args, source, group),
                                                   AFJ_PHASE_RECEIVE_ROUTE,
                                                   kFirstAttention + source),
                                         group, bucket);
            });
            if (kStrictFences)
                fence_system(); // acquires what each source fenced before its route words
            before = bits_before(words, &rows);
            scanned = true;
        }

        const uint32_t word_index = slot.source * groups + slot.token / AFJ_GROUP_TOKENS;
        const uint32_t bit = slot.token % AFJ_GROUP_TOKENS;
        const uint32_t word = words.take((int)word_index);
        if (word >> bit & 1) {
            const uint32_t rank_in_word = (uint32_t)count_bits(word & ((1u << bit) - 1));
            take_row(args, arrival, head, slot, part,
                     before.take((int)word_index) + rank_in_word, wait);
        }
    }
    if (warp_in_grid() == 0) {
        if (lane() == 0)
            publish_count(args, rows);
        count_sources(args, words, groups);
    }
    withdraw_count(args, wait, false);
    publish_to_host(args);
}
