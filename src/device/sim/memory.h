/* memory.h: what each simulated device has allocated, so that an address says whose it is. */
#ifndef AFJ_SIM_MEMORY_H
#define AFJ_SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Owner of host memory: near to every device. */
#define AFJ_SIM_HOST (-1)

/* What fresh device memory holds: two BF16 NaNs, an FP32 NaN, and not the empty word. */
#define AFJ_SIM_POISON 0x7FA57FA5u

/* One allocation. It outlives its memory while words still travel to it. */
struct afj_allocation {
    char *base; /* 256-byte aligned; NULL once freed */
    size_t bytes;
    int32_t device;   /* ordinal, or AFJ_SIM_HOST */
    uint32_t serial;  /* how many its device allocated before; names it in traces */
    uint32_t *flying; /* a bit a word: one is on its way to it; NULL until the first */
    size_t flying_count;
};

/* All allocations that are not freed, by address. Zero is empty. */
struct afj_memory {
    struct afj_allocation **sorted;
    size_t count, capacity;
    struct afj_allocation *recent; /* found last: stores come in runs */
};

/* Allocate for a device (poisoned) or for the host (zeroed). NULL: no memory left. */
struct afj_allocation *afj_memory_add(struct afj_memory *memory, int32_t device, uint32_t serial,
                                      size_t bytes);

/* The allocation that holds `address`, or NULL. */
struct afj_allocation *afj_memory_find(struct afj_memory *memory, const void *address);

/* Free the allocation that begins at `base` and belongs to `device`; false if there is none. */
bool afj_memory_remove(struct afj_memory *memory, int32_t device, const void *base);

/* Free every allocation of a device. */
void afj_memory_remove_device(struct afj_memory *memory, int32_t device);

/* Whether a word is on its way to word `index`. */
bool afj_allocation_flying(const struct afj_allocation *allocation, size_t index);

/* Note that one more word is on its way. False: no memory left. */
bool afj_allocation_depart(struct afj_allocation *allocation, size_t index);

/* Note that one arrived or was dropped; frees a freed allocation with its last. */
void afj_allocation_arrive(struct afj_allocation *allocation, size_t index);

#endif
