/* dice.c: the bench's own random numbers (splitmix64 and xoshiro256**), equal on all machines. */
#include "bench/dice.h"

#include <sys/random.h>
#include <time.h>

static uint64_t mix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void afj_dice_seed(struct afj_dice *dice, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        dice->state[i] = mix(&seed);
}

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

uint64_t afj_dice_next(struct afj_dice *dice)
{
    uint64_t *s = dice->state;
    uint64_t drawn = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return drawn;
}

uint32_t afj_dice_below(struct afj_dice *dice, uint32_t bound)
{
    return (uint32_t)(((afj_dice_next(dice) >> 32) * bound) >> 32);
}

double afj_dice_unit(struct afj_dice *dice)
{
    return (double)(afj_dice_next(dice) >> 11) * 0x1p-53;
}

uint64_t afj_dice_fresh_seed(void)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        struct timespec now = {0};
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    }
    return mix(&seed) & 0x7FFFFFFFu;
}
