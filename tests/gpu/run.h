/* run.h: how the GPU programs begin and end: the machine, the seed, the time, the exit code. */
#ifndef AFJ_TESTS_RUN_H
#define AFJ_TESTS_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <afdep/device.h>

#include "cli/words.h"

enum { SKIP = 77 };

static inline double seconds(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Say what there is. False: no such device here, and the program ends with SKIP. */
static inline bool begin_run(uint32_t device, uint64_t seed)
{
    uint32_t devices = 0;
    if (afdep_device_count((afdep_device_kind)device, &devices) != AFDEP_OK || devices == 0) {
        printf("skipped: %s\n", afdep_last_error()[0] != '\0' ? afdep_last_error() : "no GPU");
        return false;
    }
    printf("seed %llu, %u devices\n", (unsigned long long)seed, devices);
    return true;
}

/* The last line, and the exit code. */
static inline int end_run(bool right, double begin, uint64_t seed)
{
    printf("%s in %.1f s, seed %llu\n", right ? "all right" : "FAILED", seconds() - begin,
           (unsigned long long)seed);
    return right ? AFJ_EXIT_OK : AFJ_EXIT_FAILED;
}

#endif
