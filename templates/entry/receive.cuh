// receive.cuh: take many rows: each CTA reads all route words once into shared memory
// (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/route_table.cuh"

AFJ_ENTRY(receive, afj_receive_args)
{
    const uint32_t bucket = args.call.bucket;
    const uint32_t groups = AFJ_GROUPS(bucket);
    Wait wait(args.call, args.call.counter);
    RouteTable table = table_of(kAttentionRanks * groups);
    if (!read_table(args, table, groups, wait))
        return;

    const uint64_t items = (uint64_t)kAttentionRanks * bucket * kWarpsPerRow;
    for (uint64_t item = warp_in_grid(); item < items; item += warps_in_grid()) {
        const uint32_t part = (uint32_t)(item % kWarpsPerRow);
        const uint32_t index = (uint32_t)(item / kWarpsPerRow);
        const uint32_t source = index / bucket, token = index % bucket;
        uint32_t row;
        if (!find_row(table, groups, source, token, &row))
            continue;
        const Slot slot = slot_of(args, source, token);
        Arrival arrival;
        Head head;
        peek_row(arrival, slot, part, span_of(part, 0));
        if (part == 0)
            peek_words(head, kHeadWords, slot.meta);
        take_row(args, arrival, head, slot, part, row, wait);
    }
    withdraw_count(args, wait, false);
    publish_to_host(args);
}
