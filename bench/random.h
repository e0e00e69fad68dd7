/* random.h: the bench's own random numbers (splitmix64 and xoshiro256**), equal on all machines. */
#ifndef AFJ_BENCH_RANDOM_H
#define AFJ_BENCH_RANDOM_H

#include <stdint.h>

struct afj_random {
    uint64_t state[4];
};

void afj_random_seed(struct afj_random *random, uint64_t seed);
uint64_t afj_random_next(struct afj_random *random);
/* 0 to bound - 1; 0 if the bound is 0. */
uint32_t afj_random_below(struct afj_random *random, uint32_t bound);
/* 0 included to 1 excluded. */
double afj_random_unit(struct afj_random *random);
/* A seed of 31 bits that differs from run to run; print it. */
uint64_t afj_random_fresh_seed(void);

#endif
