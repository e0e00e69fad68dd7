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

// The FFN rank that holds an expert.
AFJ_DEVICE uint32_t owner_of(uint32_t id) { return id / kExpertsPerRank; }

AFJ_DEVICE Set set_of(uint32_t id) { return is_expert(id) ? (Set)1 << owner_of(id) : (Set)0; }

AFJ_DEVICE uint32_t warp_or_set(uint32_t set) { return warp_or(set); }
AFJ_DEVICE uint64_t warp_or_set(uint64_t set)
{
    return (uint64_t)warp_or((uint32_t)(set >> 32)) << 32 | warp_or((uint32_t)set);
}

// An id on the wire is one more than the expert; 0 is none. So no id is the empty word.
AFJ_DEVICE uint32_t wire_of_id(uint32_t id) { return is_expert(id) ? id + 1 : 0; }

// The expert among those of FFN rank `rank`, from 0; -1 if it is not one of them.
AFJ_DEVICE int32_t local_of_wire(uint32_t wire, uint32_t rank)
{
    const uint32_t local = wire - 1 - rank * kExpertsPerRank;
    return wire != 0 && local < kExpertsPerRank ? (int32_t)local : -1;
}

#endif
