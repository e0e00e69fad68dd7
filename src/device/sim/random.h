/* random.h: the simulator's own random numbers, so that a seed means the same on every machine. */
#ifndef AFJ_SIM_RANDOM_H
#define AFJ_SIM_RANDOM_H

#include <stdint.h>

struct afj_random {
    uint64_t state; /* any value is a seed */
};

/* Spread the bits of `value` over all 64: a bijection, no two values become one. */
static inline uint64_t afj_random_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

/* 64 random bits (a Weyl sequence, mixed). */
static inline uint64_t afj_random_next(struct afj_random *random)
{
    random->state += 0x9E3779B97F4A7C15u;
    return afj_random_mix(random->state);
}

/* A number in [0, bound), bound at least 1. The bias, under bound / 2^32, does not matter here. */
static inline uint32_t afj_random_below(struct afj_random *random, uint32_t bound)
{
    return (uint32_t)(((afj_random_next(random) >> 32) * bound) >> 32);
}

#endif
