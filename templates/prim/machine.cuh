// machine.cuh: the machine as kernels see it, in PTX: lanes, words, fences, barriers, the clock.
// templates/host/machine.cuh is the same vocabulary for the simulation.
#ifndef AFJ_PRIM_MACHINE_CUH
#define AFJ_PRIM_MACHINE_CUH

#include "rtc/stdint.h"

#define AFJ_DEVICE __device__ __forceinline__
#define AFJ_COLD __device__ __noinline__

// Defines the kernel `name`, which takes one struct by value. A CTA fills a multiprocessor.
#define AFJ_ENTRY(name, arguments)                                                                 \
    extern "C" __global__ void __launch_bounds__(kWarps * 32, 1)                                   \
        name(const __grid_constant__ arguments args)

// Lanes of a warp, polls between two looks at the clock.
constexpr int kLanes = 32;
constexpr uint32_t kPollsPerLook = 256;

// Four 32-bit words that are loaded and stored together, and are valid each for itself.
struct alignas(16) Vec {
    uint32_t w[4];
};

AFJ_DEVICE int lane() { return (int)(threadIdx.x & 31); }
AFJ_DEVICE uint32_t warp_in_cta() { return threadIdx.x >> 5; }
AFJ_DEVICE uint32_t cta() { return blockIdx.x; }
AFJ_DEVICE uint32_t ctas() { return gridDim.x; }

// A generic address of global memory is its global address.
AFJ_DEVICE uint64_t global_address(const void *p) { return (uint64_t)p; }

// Relaxed, system scope: words that another GPU may store or read at the same time.
AFJ_DEVICE uint32_t load_relaxed(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
                 : "=r"(v)
                 : "l"(global_address(p))
                 : "memory");
    return v;
}

AFJ_DEVICE Vec load_relaxed(const Vec *p)
{
    Vec v;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(global_address(p))
                 : "memory");
    return v;
}

AFJ_DEVICE void store_relaxed(uint32_t *p, uint32_t v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(global_address(p)), "r"(v) : "memory");
}

AFJ_DEVICE void store_relaxed(Vec *p, Vec v)
{
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(global_address(p)),
                 "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3])
                 : "memory");
}

// The caller's arrays: no kernel of the exchange writes them while this one runs.
AFJ_DEVICE uint32_t load_input(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(global_address(p)));
    return v;
}

AFJ_DEVICE Vec load_input(const Vec *p)
{
    Vec v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(global_address(p)));
    return v;
}

// Memory that only an earlier or a later kernel writes. Unlike load_input these are issued where
// they are written, before a branch that may not need them, so that loads overlap.
AFJ_DEVICE uint32_t load_early(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                 : "=r"(v)
                 : "l"(global_address(p))
                 : "memory");
    return v;
}

AFJ_DEVICE uint64_t load_early(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                 : "=l"(v)
                 : "l"(global_address(p))
                 : "memory");
    return v;
}

AFJ_DEVICE Vec load_early(const Vec *p)
{
    Vec v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(global_address(p))
                 : "memory");
    return v;
}

template <class T> AFJ_DEVICE void store_own(T *p, T v) { *p = v; }

// Fence at system scope, both ways.
AFJ_DEVICE void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// Counters of this rank. Atomic at GPU scope, relaxed.
AFJ_DEVICE void add_relaxed(uint32_t *p, uint32_t v)
{
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(global_address(p)), "r"(v)
                 : "memory");
}

AFJ_DEVICE uint32_t add_and_fetch_relaxed(uint32_t *p, uint32_t v)
{
    uint32_t old;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(global_address(p)), "r"(v)
                 : "memory");
    return old + v;
}

AFJ_DEVICE uint32_t exchange_relaxed(uint32_t *p, uint32_t v)
{
    uint32_t old;
    asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(global_address(p)), "r"(v)
                 : "memory");
    return old;
}

AFJ_DEVICE uint32_t compare_exchange_relaxed(uint32_t *p, uint32_t expected, uint32_t v)
{
    uint32_t old;
    asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(global_address(p)), "r"(expected), "r"(v)
                 : "memory");
    return old;
}

// Collectives of a warp: every lane takes part.
AFJ_DEVICE void warp_sync() { __syncwarp(); }
AFJ_DEVICE bool warp_any(bool vote) { return __any_sync(~0u, vote) != 0; }
AFJ_DEVICE uint32_t warp_ballot(bool vote) { return __ballot_sync(~0u, vote); }
AFJ_DEVICE uint32_t warp_or(uint32_t v) { return __reduce_or_sync(~0u, v); }
AFJ_DEVICE uint32_t warp_sum(uint32_t v) { return __reduce_add_sync(~0u, v); }
AFJ_DEVICE uint32_t warp_take(uint32_t v, int from) { return __shfl_sync(~0u, v, from); }
// The lanes that hold the same value as this one, itself among them.
AFJ_DEVICE uint32_t warp_alike(uint32_t v) { return __match_any_sync(~0u, v); }

// What the lanes before this one hold, added up.
AFJ_DEVICE uint32_t warp_sum_before(uint32_t v)
{
    uint32_t sum = v;
#pragma unroll
    for (int step = 1; step < 32; step <<= 1) {
        uint32_t below = __shfl_up_sync(~0u, sum, step);
        if (lane() >= step)
            sum += below;
    }
    return sum - v;
}

// Collective of a CTA: a barrier that says whether any lane voted.
AFJ_DEVICE bool cta_any(bool vote) { return __syncthreads_or(vote) != 0; }

// The CTA's dynamic shared memory.
AFJ_DEVICE uint32_t *cta_shared()
{
    extern __shared__ uint32_t shared[];
    return shared;
}

// A counter in it.
AFJ_DEVICE void add_shared(uint32_t *p, uint32_t v) { atomicAdd(p, v); }

AFJ_DEVICE int count_bits(uint32_t v) { return __popc(v); }
AFJ_DEVICE int lowest_bit(uint32_t v) { return __ffs((int)v) - 1; }
AFJ_DEVICE int lowest_bit(uint64_t v) { return __ffsll((long long)v) - 1; }

AFJ_DEVICE float float_of_bits(uint32_t v) { return __uint_as_float(v); }

// Two FP32 to two BF16 in one word, the first in the low half, each rounded to nearest even; a NaN
// becomes 0x7FFF.
AFJ_DEVICE uint32_t round_bf16x2(float low, float high)
{
    uint32_t v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}

// Nanoseconds, the same clock on every multiprocessor of this GPU.
AFJ_DEVICE uint64_t clock_ns()
{
    uint64_t v;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(v));
    return v;
}

// Between two polls of words that were not there.
AFJ_DEVICE void pause_poll() {}

// A word of host memory. fence_system before the last word orders it behind the others.
AFJ_DEVICE void store_host(uint32_t *p, uint32_t v) { *(volatile uint32_t *)p = v; }

#endif
