// route.cuh: which FFN ranks a token goes to, and the words that say so.
#ifndef AFJ_PRIM_ROUTE_CUH
#define AFJ_PRIM_ROUTE_CUH

#include "prim/slots.cuh"
#include "prim/wait.cuh"

// A set of FFN ranks, bit f for rank f; as wide as this deployment needs.
template <bool kWide> struct SetOf {
    typedef uint32_t type;
};
template <> struct SetOf<true> {
    typedef uint64_t type;
};
typedef SetOf<(kFfnRanks > 32)>::type Set;

AFJ_DEVICE bool is_expert(uint32_t id) { return id < kExperts; }

// The FFN rank that holds an expert: by the table, or the first kLongerRanks hold one more each.
AFJ_DEVICE uint32_t owner_of(uint64_t owners, uint32_t id)
{
    if (kMappedExperts)
        return load_input(at<uint32_t>(owners) + id) >> 16;
    constexpr uint32_t kIn = kLongerRanks * (kLeastExperts + 1);
    if (id < kIn)
        return id / (kLeastExperts + 1);
    return kLongerRanks + (id - kIn) / (kLeastExperts != 0 ? kLeastExperts : 1);
}

// An id on the wire is one more than the expert; 0 is none. So no id is the empty word.
AFJ_DEVICE Set set_of_wire(uint64_t owners, uint32_t wire)
{
    return wire != 0 ? (Set)1 << owner_of(owners, wire - 1) : (Set)0;
}

AFJ_DEVICE uint32_t warp_or_set(uint32_t set) { return warp_or(set); }
AFJ_DEVICE uint64_t warp_or_set(uint64_t set)
{
    return (uint64_t)warp_or((uint32_t)(set >> 32)) << 32 | warp_or((uint32_t)set);
}

AFJ_DEVICE uint32_t wire_of_id(uint32_t id) { return is_expert(id) ? id + 1 : 0; }

// Ids of the caller have kIdWords words; what does not fit in the first is no expert.
AFJ_DEVICE uint32_t load_id(uint64_t ids, uint64_t index)
{
    const uint32_t *id = at<uint32_t>(ids) + index * kIdWords;
    const uint32_t low = load_input(id);
    if (kIdWords == 1)
        return low;
    return load_input(id + (kIdWords - 1)) == 0 ? low : ~0u;
}

AFJ_DEVICE void store_id(uint64_t ids, uint64_t index, int32_t id)
{
    uint32_t *words = at<uint32_t>(ids) + index * kIdWords;
    store_own(words, (uint32_t)id);
    if (kIdWords == 2)
        store_own(words + (kIdWords - 1), id < 0 ? ~0u : 0u);
}

#endif
