// machine.cuh: the vocabulary of templates/prim/machine.cuh for the simulation, where the words of
// other ranks travel through the simulator's links. A warp is one fibre with one lane, or, where a
// missing warp_sync is looked for, 32 fibres that meet in each collective and nowhere else.
#ifndef AFJ_PRIM_MACHINE_CUH
#define AFJ_PRIM_MACHINE_CUH

#include <stdint.h>
#include <string.h>

#include "host/ops.h"

#define AFJ_DEVICE inline
#define AFJ_COLD inline

static const struct afj_sim_ops *sim;
#define AFJ_EXPORT extern "C" __attribute__((visibility("default")))
AFJ_EXPORT void afj_sim_bind(const struct afj_sim_ops *ops) { sim = ops; }

#define AFJ_ENTRY(name, arguments)                                                                 \
    AFJ_EXPORT const uint64_t afj_sim_arguments_bytes;                                             \
    const uint64_t afj_sim_arguments_bytes = sizeof(arguments);                                    \
    static void run_##name(const arguments &args);                                                 \
    AFJ_EXPORT void name(const void *bytes)                                                        \
    {                                                                                              \
        run_##name(*static_cast<const arguments *>(bytes));                                        \
    }                                                                                              \
    static void run_##name(const arguments &args)

constexpr int kLanes = kSimLanes;
static_assert(kLanes == 1 || kLanes == AFJ_SIM_MOST_LANES, "one lane, or all of them");
AFJ_EXPORT const uint64_t afj_sim_lanes;
const uint64_t afj_sim_lanes = kSimLanes;
constexpr uint32_t kPollsPerLook = 4;

struct alignas(16) Vec {
    uint32_t w[4];
};

AFJ_DEVICE int lane() { return kLanes == 1 ? 0 : (int)(sim->warp() % kLanes); }
AFJ_DEVICE uint32_t warp_in_cta() { return sim->warp() / kLanes; }
AFJ_DEVICE uint32_t cta() { return sim->cta(); }
AFJ_DEVICE uint32_t ctas() { return sim->ctas(); }

// Volatile, so that each read looks at memory again: other fibres and deliveries change it.
AFJ_DEVICE uint32_t load_relaxed(const uint32_t *p) { return *(const volatile uint32_t *)p; }

AFJ_DEVICE Vec load_relaxed(const Vec *p)
{
    Vec v;
    for (int i = 0; i < 4; ++i)
        v.w[i] = load_relaxed(&p->w[i]);
    return v;
}

AFJ_DEVICE void store_relaxed(uint32_t *p, uint32_t v) { sim->store(p, &v, 1); }
AFJ_DEVICE void store_relaxed(Vec *p, Vec v) { sim->store(p->w, v.w, 4); }

AFJ_DEVICE uint32_t load_input(const uint32_t *p) { return *p; }
AFJ_DEVICE Vec load_input(const Vec *p) { return *p; }
AFJ_DEVICE uint32_t load_early(const uint32_t *p) { return *(const volatile uint32_t *)p; }
AFJ_DEVICE uint64_t load_early(const uint64_t *p) { return *(const volatile uint64_t *)p; }
AFJ_DEVICE Vec load_early(const Vec *p) { return *p; }

template <class T> AFJ_DEVICE void store_own(T *p, T v)
{
    *(volatile T *)p = v;
    sim->point();
}
AFJ_DEVICE void store_own(Vec *p, Vec v) { *p = v; }

AFJ_DEVICE void fence_system() { sim->fence(); }

AFJ_DEVICE void add_relaxed(uint32_t *p, uint32_t v) { *p += v; }

AFJ_DEVICE uint32_t add_and_fetch_relaxed(uint32_t *p, uint32_t v) { return *p += v; }

AFJ_DEVICE uint32_t exchange_relaxed(uint32_t *p, uint32_t v)
{
    uint32_t old = *p;
    *p = v;
    return old;
}

AFJ_DEVICE uint32_t compare_exchange_relaxed(uint32_t *p, uint32_t expected, uint32_t v)
{
    uint32_t old = *p;
    if (old == expected)
        *p = v;
    return old;
}

// What each lane brought to a collective. Each collective says its name, so that lanes which meet
// in different ones are found.
struct Brought {
    uint32_t values[AFJ_SIM_MOST_LANES];
};

AFJ_DEVICE Brought gather(const char *name, uint32_t value)
{
    Brought brought;
    brought.values[0] = value;
    if (kLanes > 1)
        sim->gather(name, value, brought.values);
    return brought;
}

// Fold the values of lanes [0, end) with f, from 0.
template <class F> AFJ_DEVICE uint32_t fold(const Brought &brought, int end, F f)
{
    uint32_t all = 0;
    for (int i = 0; i < end; ++i)
        all = f(all, brought.values[i], i);
    return all;
}

AFJ_DEVICE void warp_sync() { gather("warp_sync", 0); }
AFJ_DEVICE bool warp_any(bool vote)
{
    return fold(gather("warp_any", vote), kLanes,
                [](uint32_t a, uint32_t v, int) { return a | v; }) != 0;
}
AFJ_DEVICE uint32_t warp_ballot(bool vote)
{
    return fold(gather("warp_ballot", vote), kLanes,
                [](uint32_t a, uint32_t v, int i) { return a | v << i; });
}
AFJ_DEVICE uint32_t warp_or(uint32_t v)
{
    return fold(gather("warp_or", v), kLanes, [](uint32_t a, uint32_t w, int) { return a | w; });
}
AFJ_DEVICE uint32_t warp_sum(uint32_t v)
{
    return fold(gather("warp_sum", v), kLanes, [](uint32_t a, uint32_t w, int) { return a + w; });
}
AFJ_DEVICE uint32_t warp_take(uint32_t v, int from) { return gather("warp_take", v).values[from]; }
AFJ_DEVICE uint32_t warp_alike(uint32_t v)
{
    return fold(gather("warp_alike", v), kLanes,
                [v](uint32_t a, uint32_t w, int i) { return a | (uint32_t)(w == v) << i; });
}
AFJ_DEVICE uint32_t warp_sum_before(uint32_t v)
{
    return fold(gather("warp_sum_before", v), lane(),
                [](uint32_t a, uint32_t w, int) { return a + w; });
}

AFJ_DEVICE bool cta_any(bool vote) { return sim->barrier(vote ? 1u : 0u) != 0; }
AFJ_DEVICE uint32_t *cta_shared() { return static_cast<uint32_t *>(sim->shared()); }

AFJ_DEVICE void add_shared(uint32_t *p, uint32_t v) { *p += v; }

AFJ_DEVICE int count_bits(uint32_t v) { return __builtin_popcount(v); }
AFJ_DEVICE int lowest_bit(uint32_t v) { return __builtin_ffs((int)v) - 1; }
AFJ_DEVICE int lowest_bit(uint64_t v) { return __builtin_ffsll((long long)v) - 1; }

AFJ_DEVICE float float_of_bits(uint32_t v)
{
    float f;
    memcpy(&f, &v, sizeof f);
    return f;
}

AFJ_DEVICE uint32_t bits_of_float(float f)
{
    uint32_t v;
    memcpy(&v, &f, sizeof v);
    return v;
}

AFJ_DEVICE uint32_t round_bf16(float f)
{
    uint32_t v = bits_of_float(f);
    if ((v & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FFFu;
    return (v + 0x7FFFu + (v >> 16 & 1u)) >> 16;
}

AFJ_DEVICE uint32_t round_bf16x2(float low, float high)
{
    return round_bf16(low) | round_bf16(high) << 16;
}

AFJ_DEVICE uint64_t clock_ns() { return sim->clock_ns(); }
AFJ_DEVICE void pause_poll() { sim->pause(); }
AFJ_DEVICE void store_host(uint32_t *p, uint32_t v) { *(volatile uint32_t *)p = v; }

#endif
