// route_table.cuh: all route words of a bucket in a CTA's shared memory, with the number of rows
// before each (docs/design.md section 3).
#ifndef AFJ_PRIM_ROUTE_TABLE_CUH
#define AFJ_PRIM_ROUTE_TABLE_CUH

#include "prim/inbox.cuh"

// The route words of the bucket in shared memory, word s * groups + g from source s, each with the
// number of rows before it.
struct RouteTable {
    uint32_t *words, *before, *warp_rows; /* [count], [count], [kWarps] */
    uint32_t count, rows;
};

// Bytes of shared memory: see afj_plan_shared_bytes, which counts the same arrays.
AFJ_DEVICE RouteTable table_of(uint32_t count)
{
    uint32_t *shared = cta_shared();
    return {shared, shared + count, shared + 2 * count, count, 0};
}

// Read the words of this warp's segment and count rows within it. False after giving up.
AFJ_DEVICE bool read_segment(const afj_receive_args &args, RouteTable &table, uint32_t groups,
                             Wait &wait, bool dead)
{
    const uint32_t segment = (table.count + kWarps - 1) / kWarps;
    const uint32_t first = warp_in_cta() * segment;
    uint32_t end = first + segment < table.count ? first + segment : table.count;
    uint32_t rows = 0;
    for (uint32_t base = first; base < end; base += kLanes) {
        const uint32_t i = base + (uint32_t)lane();
        const uint32_t *at_word = route_word(args, i / groups, i % groups);
        uint32_t word = i < end ? load_relaxed(at_word) : 0;
        if (i < end && !dead)
            word = within_bucket(
                wait.word(word, at_word, AFJ_PHASE_RECEIVE_ROUTE, kFirstAttention + i / groups),
                i % groups, args.call.bucket);
        const uint32_t bits = (uint32_t)count_bits(word);
        const uint32_t bits_below = warp_sum_before(bits);
        if (i < end) {
            table.words[i] = word;
            table.before[i] = rows + bits_below;
        }
        rows += warp_sum(bits);
    }
    if (lane() == 0)
        table.warp_rows[warp_in_cta()] = rows;
    return !dead && !wait.over();
}

// Add the rows of the segments before this warp's own.
AFJ_DEVICE void place_segment(RouteTable &table)
{
    const uint32_t segment = (table.count + kWarps - 1) / kWarps;
    const uint32_t first = warp_in_cta() * segment;
    uint32_t rows_before = 0;
    for (uint32_t w = 0; w < kWarps; ++w) {
        const uint32_t rows = table.warp_rows[w];
        table.rows += rows;
        rows_before += w < warp_in_cta() ? rows : 0;
    }
    for (uint32_t i = first + (uint32_t)lane(); i < first + segment && i < table.count; i += kLanes)
        table.before[i] += rows_before;
}

// Rows from each source, and how many there are, by the grid's first CTA.
AFJ_DEVICE void publish(const afj_receive_args &args, const RouteTable &table, uint32_t groups)
{
    if (cta() != 0)
        return;
    if (warp_in_cta() == 0 && lane() == 0)
        publish_count(args, table.rows);
    for (uint32_t s = warp_in_cta() * kLanes + (uint32_t)lane(); s < kAttentionRanks;
         s += kWarps * kLanes) {
        const uint32_t next = (s + 1) * groups;
        const uint32_t end = next < table.count ? table.before[next] : table.rows;
        store_own(at<uint32_t>(args.rows_per_source) + s, end - table.before[s * groups]);
    }
}

// Read all route words and place the segments. False, in all warps of the CTA, after giving up.
AFJ_DEVICE bool read_table(const afj_receive_args &args, RouteTable &table, uint32_t groups,
                           Wait &wait)
{
    const bool dead = load_dead(args.call) != 0;
    const bool whole = read_segment(args, table, groups, wait, dead);
    if (cta_any(!whole)) {
        withdraw_count(args, wait, dead);
        return false;
    }
    if (kStrictFences)
        fence_system(); // acquires what each source fenced before its route words
    place_segment(table);
    cta_any(false);
    publish(args, table, groups);
    return true;
}

// Whether token `token` of a source comes here, and as which row.
AFJ_DEVICE bool find_row(const RouteTable &table, uint32_t groups, uint32_t source, uint32_t token,
                         uint32_t *row)
{
    const uint32_t i = source * groups + token / AFJ_GROUP_TOKENS;
    const uint32_t bit = token % AFJ_GROUP_TOKENS, word = table.words[i];
    *row = table.before[i] + (uint32_t)count_bits(word & ((1u << bit) - 1));
    return (word >> bit & 1) != 0;
}

#endif
