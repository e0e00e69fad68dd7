// counts.cuh: the first part of a receive whose rows come later: route words, ids and weights
// (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/route_table.cuh"

AFJ_ENTRY(counts, afj_receive_args)
{
    const uint32_t bucket = args.call.bucket;
    const uint32_t groups = AFJ_GROUPS(bucket);
    Wait wait(args.call, args.call.counter);
    RouteTable table = table_of(kAttentionRanks * groups);
    if (!read_table(args, table, groups, wait))
        return;

    const uint64_t items = (uint64_t)kAttentionRanks * bucket;
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid()) {
        const uint32_t source = (uint32_t)(item / bucket), token = (uint32_t)(item % bucket);
        uint32_t row;
        if (!find_row(table, groups, source, token, &row))
            continue;
        const Slot slot = slot_of(args, source, token);
        Head head;
        peek_words(head, kHeadWords, slot.meta);
        take_head(args, head, slot, row, wait);
    }
    withdraw_count(args, wait, false);
    publish_to_host(args);
}
