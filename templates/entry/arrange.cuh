// arrange.cuh: expert-major: from the expert of each choice to its row, each expert's rows one after
// another in the order of arrival, padded to the alignment (docs/design.md section 3).
#include "afdep_constants.h"

#include "prim/inbox.cuh"

// A CTA's copy in shared memory: where each group begins, and the rows that it has so far.
struct Groups {
    uint32_t *begin, *filled; // [local_experts + 1], [local_experts]
};

AFJ_DEVICE uint32_t padded(uint32_t rows, uint32_t alignment)
{
    return (rows + alignment - 1) / alignment * alignment;
}

// By one warp: the groups' beginnings.
AFJ_DEVICE void begin_groups(const afj_receive_args &args, const Groups &groups)
{
    uint32_t sum = 0;
    for (uint32_t base = 0; base < args.local_experts; base += kLanes) {
        const uint32_t e = base + (uint32_t)lane();
        const bool used = e < args.local_experts;
        const uint32_t rows =
            used ? padded(load_early(at<uint32_t>(args.rows_per_expert) + e), args.alignment) : 0;
        const uint32_t begin = sum + warp_sum_before(rows);
        if (used) {
            groups.begin[e] = begin;
            groups.filled[e] = 0;
        }
        sum += warp_sum(rows);
    }
    if (lane() == 0)
        groups.begin[args.local_experts] = sum;
}

// By a CTA: the rows that the choices before `end` take.
AFJ_DEVICE void count_choices(const afj_receive_args &args, const Groups &groups, uint64_t end)
{
    for (uint64_t i = warp_in_cta() * kLanes + (uint32_t)lane(); i < end; i += kWarps * kLanes) {
        const uint32_t expert = load_early(at<uint32_t>(args.choices) + i);
        if (expert != AFJ_EMPTY_WORD)
            add_shared(&groups.filled[expert], 1);
    }
}

// What is known of the row that a choice is given.
AFJ_DEVICE void describe_row(const afj_receive_args &args, uint64_t choice, uint32_t expert,
                             uint32_t row)
{
    const uint64_t origin = 2 * (choice / kTopK);
    store_own(at<uint32_t>(args.hits) + choice, row);
    if (args.ids)
        store_id(args.ids, row, (int32_t)expert);
    if (args.weights)
        store_own(at<uint32_t>(args.weights) + row,
                  load_early(at<uint32_t>(args.hit_weights) + choice));
    if (args.sources)
        store_own(at<uint32_t>(args.sources) + row,
                  load_early(at<uint32_t>(args.origins) + origin));
    if (args.tokens)
        store_own(at<uint32_t>(args.tokens) + row,
                  load_early(at<uint32_t>(args.origins) + origin + 1));
}

// By one warp: give the choices [first, end) their rows, in order. Lanes that hold the same expert
// take rows in the order of lanes.
AFJ_DEVICE void give_rows(const afj_receive_args &args, const Groups &groups, uint64_t first,
                          uint64_t end)
{
    for (uint64_t base = first; base < end; base += kLanes) {
        const uint64_t choice = base + (uint64_t)lane();
        const uint32_t expert =
            choice < end ? load_early(at<uint32_t>(args.choices) + choice) : AFJ_EMPTY_WORD;
        const bool is_hit = expert != AFJ_EMPTY_WORD;
        const uint32_t alike = warp_alike(expert);
        const uint32_t before = (uint32_t)count_bits(alike & ((1u << lane()) - 1));
        const uint32_t row = is_hit ? groups.begin[expert] + groups.filled[expert] + before : 0;
        warp_sync();
        if (is_hit && before == 0)
            groups.filled[expert] += (uint32_t)count_bits(alike);
        warp_sync();
        if (is_hit)
            describe_row(args, choice, expert, row);
        else if (choice < end)
            store_own(at<uint32_t>(args.hits) + choice, AFJ_EMPTY_WORD);
    }
}

// Rows that hold nothing: of no expert, of weight 0.
AFJ_DEVICE void pad_groups(const afj_receive_args &args, const Groups &groups)
{
    for (uint32_t e = warp_in_grid(); e <= args.local_experts; e += warps_in_grid()) {
        const bool rest = e == args.local_experts; // behind the last group
        const uint32_t rows = rest ? 0 : load_early(at<uint32_t>(args.rows_per_expert) + e);
        const uint32_t end = rest ? args.receive_rows : groups.begin[e + 1];
        for (uint32_t row = groups.begin[e] + rows + (uint32_t)lane(); row < end; row += kLanes) {
            if (args.ids)
                store_id(args.ids, row, -1);
            if (args.weights)
                store_own(at<uint32_t>(args.weights) + row, 0u);
        }
    }
}

AFJ_ENTRY(arrange, afj_receive_args)
{
    const uint32_t dead = load_dead(args.call);
    const uint32_t rows = load_early(at<uint32_t>(args.count));
    uint32_t *shared = cta_shared();
    const Groups groups = {shared, shared + args.local_experts + 1};
    if (cta_any(dead != 0)) {
        withdraw_count(args, Wait(args.call, args.call.counter), true);
        return;
    }
    if (warp_in_cta() == 0)
        begin_groups(args, groups);
    cta_any(false);
    if (cta() == 0)
        for (uint32_t e = warp_in_cta() * kLanes + (uint32_t)lane(); e <= args.local_experts;
             e += kWarps * kLanes)
            store_own(at<uint32_t>(args.expert_offsets) + e, groups.begin[e]);
    pad_groups(args, groups);
    // Each CTA has a share of the choices, and counts those before it for itself.
    const uint64_t choices = (uint64_t)rows * kTopK;
    const uint64_t share = (choices + ctas() - 1) / ctas();
    const uint64_t first = share * cta() < choices ? share * cta() : choices;
    const uint64_t end = first + share < choices ? first + share : choices;
    count_choices(args, groups, first);
    cta_any(false);
    if (warp_in_cta() == 0)
        give_rows(args, groups, first, end);
}
