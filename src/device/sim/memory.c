/* memory.c: an interval table over plain heap blocks, so that address sanitizers see each end. */
#include "device/sim/memory.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 256

static void free_allocation(struct afj_allocation *allocation)
{
    free(allocation->base);
    allocation->base = NULL;
    if (allocation->flying_count != 0)
        return; /* afj_allocation_arrive frees the rest */
    free(allocation->flying);
    free(allocation);
}

/* Index of the first allocation that begins above `address`. */
static size_t first_above(const struct afj_memory *memory, uintptr_t address)
{
    size_t low = 0, high = memory->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)memory->sorted[middle]->base > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool make_room(struct afj_memory *memory)
{
    if (memory->count < memory->capacity)
        return true;
    size_t capacity = memory->capacity == 0 ? 64 : 2 * memory->capacity;
    struct afj_allocation **sorted = realloc(memory->sorted, capacity * sizeof(*sorted));
    if (sorted == NULL)
        return false;
    memory->sorted = sorted;
    memory->capacity = capacity;
    return true;
}

/* Poison whole words and the bytes behind them. */
static void poison(char *base, size_t bytes)
{
    const uint32_t pattern = AFJ_SIM_POISON;
    for (size_t at = 0; at < bytes; at += sizeof pattern) {
        size_t left = bytes - at;
        memcpy(base + at, &pattern, left < sizeof pattern ? left : sizeof pattern);
    }
}

struct afj_allocation *afj_memory_add(struct afj_memory *memory, int32_t device, uint32_t serial,
                                      size_t bytes)
{
    struct afj_allocation *allocation = calloc(1, sizeof *allocation);
    void *base = NULL;
    if (allocation == NULL || !make_room(memory) ||
        posix_memalign(&base, ALIGNMENT, bytes == 0 ? 1 : bytes) != 0) {
        free(allocation);
        return NULL;
    }
    if (device == AFJ_SIM_HOST)
        memset(base, 0, bytes);
    else
        poison(base, bytes);
    *allocation =
        (struct afj_allocation){.base = base, .bytes = bytes, .device = device, .serial = serial};
    size_t at = first_above(memory, (uintptr_t)base);
    memmove(memory->sorted + at + 1, memory->sorted + at,
            (memory->count - at) * sizeof *memory->sorted);
    memory->sorted[at] = allocation;
    memory->count++;
    return allocation;
}

static bool holds(const struct afj_allocation *allocation, uintptr_t address)
{
    return address - (uintptr_t)allocation->base < allocation->bytes;
}

struct afj_allocation *afj_memory_find(struct afj_memory *memory, const void *address)
{
    uintptr_t wanted = (uintptr_t)address;
    if (memory->recent != NULL && holds(memory->recent, wanted))
        return memory->recent;
    size_t above = first_above(memory, wanted);
    if (above == 0 || !holds(memory->sorted[above - 1], wanted))
        return NULL;
    memory->recent = memory->sorted[above - 1];
    return memory->recent;
}

static void remove_at(struct afj_memory *memory, size_t at)
{
    struct afj_allocation *allocation = memory->sorted[at];
    if (memory->recent == allocation)
        memory->recent = NULL;
    memory->count--;
    memmove(memory->sorted + at, memory->sorted + at + 1,
            (memory->count - at) * sizeof *memory->sorted);
    free_allocation(allocation);
}

bool afj_memory_remove(struct afj_memory *memory, int32_t device, const void *base)
{
    size_t above = first_above(memory, (uintptr_t)base);
    if (above == 0 || memory->sorted[above - 1]->base != base ||
        memory->sorted[above - 1]->device != device)
        return false;
    remove_at(memory, above - 1);
    return true;
}

void afj_memory_remove_device(struct afj_memory *memory, int32_t device)
{
    for (size_t at = memory->count; at-- > 0;)
        if (memory->sorted[at]->device == device)
            remove_at(memory, at);
}

bool afj_allocation_flying(const struct afj_allocation *allocation, size_t index)
{
    return allocation->flying_count != 0 && (allocation->flying[index / 32] >> (index % 32) & 1u);
}

bool afj_allocation_depart(struct afj_allocation *allocation, size_t index)
{
    if (allocation->flying == NULL) {
        allocation->flying = calloc(allocation->bytes / 128 + 1, sizeof *allocation->flying);
        if (allocation->flying == NULL)
            return false;
    }
    allocation->flying[index / 32] |= 1u << (index % 32);
    allocation->flying_count++;
    return true;
}

void afj_allocation_arrive(struct afj_allocation *allocation, size_t index)
{
    allocation->flying[index / 32] &= ~(1u << (index % 32));
    allocation->flying_count--;
    if (allocation->flying_count == 0 && allocation->base == NULL)
        free_allocation(allocation);
}
