/* dice.h: the bench's own random numbers (splitmix64 and xoshiro256**), equal on all machines. */
#ifndef AFJ_BENCH_DICE_H
#define AFJ_BENCH_DICE_H

#include <stdint.h>

struct afj_dice {
    uint64_t state[4];
};

void afj_dice_seed(struct afj_dice *dice, uint64_t seed);
uint64_t afj_dice_next(struct afj_dice *dice);
/* 0 to bound - 1; 0 if the bound is 0. */
uint32_t afj_dice_below(struct afj_dice *dice, uint32_t bound);
/* 0 included to 1 excluded. */
double afj_dice_unit(struct afj_dice *dice);
/* A seed of 31 bits that differs from run to run; print it. */
uint64_t afj_dice_fresh_seed(void);

#endif
