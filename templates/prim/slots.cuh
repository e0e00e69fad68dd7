// slots.cuh: a few values spread over the lanes of a warp, value i in lane i % kLanes.
#ifndef AFJ_PRIM_SLOTS_CUH
#define AFJ_PRIM_SLOTS_CUH

#include "prim/machine.cuh"

template <class T, int kCount> struct Slots {
    static constexpr int kHeld = (kCount + kLanes - 1) / kLanes;
    T held[kHeld];

    // Call f(i, value) for each value, in the lane that holds it.
    template <class F> AFJ_DEVICE void each(F f)
    {
#pragma unroll
        for (int j = 0; j < kHeld; ++j) {
            const int i = j * kLanes + lane();
            if (i < kCount)
                f(i, held[j]);
        }
    }

    // Call f(i, value, other value) for each pair of values, in the lane that holds them.
    template <class U, class F> AFJ_DEVICE void each(Slots<U, kCount> &other, F f)
    {
#pragma unroll
        for (int j = 0; j < kHeld; ++j) {
            const int i = j * kLanes + lane();
            if (i < kCount)
                f(i, held[j], other.held[j]);
        }
    }

    // Bit i of the answer, the same in all lanes: whether f(value i). At most 32 values.
    template <class F> AFJ_DEVICE uint32_t where(F f) const
    {
        static_assert(kCount <= 32, "one bit a value");
        uint32_t bits = 0;
#pragma unroll
        for (int j = 0; j < kHeld; ++j)
            bits |= warp_ballot(j * kLanes + lane() < kCount && f(held[j])) << (j * kLanes);
        return bits;
    }

    // Value i, in all lanes. `i` is the same in all lanes.
    AFJ_DEVICE T take(int i) const
    {
        T value = held[0];
#pragma unroll
        for (int j = 1; j < kHeld; ++j)
            value = i / kLanes == j ? held[j] : value;
        return (T)warp_take((uint32_t)value, i % kLanes);
    }

    // Set value i from a value that all lanes have. `i` is the same in all lanes.
    AFJ_DEVICE void put(int i, T value)
    {
#pragma unroll
        for (int j = 0; j < kHeld; ++j)
            if (i == j * kLanes + lane())
                held[j] = value;
    }
};

// For each word the number of bits set in the words before it; *total gets those of all.
template <int kCount>
AFJ_DEVICE Slots<uint32_t, kCount> bits_before(const Slots<uint32_t, kCount> &words,
                                               uint32_t *total)
{
    Slots<uint32_t, kCount> before;
    uint32_t sum = 0;
#pragma unroll
    for (int j = 0; j < before.kHeld; ++j) {
        const bool used = j * kLanes + lane() < kCount;
        const uint32_t bits = used ? (uint32_t)count_bits(words.held[j]) : 0;
        before.held[j] = sum + warp_sum_before(bits);
        sum += warp_sum(bits);
    }
    *total = sum;
    return before;
}

#endif
