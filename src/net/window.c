/* window.c: memory of one rank that its peers store to. */
#include "net/window.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/status.h"

struct afj_window {
    afdep_device *device; /* the group keeps it open */
    void *memory;
    atomic_uint references;
};

afdep_status afj_window_create(afdep_device *device, uint64_t bytes, struct afj_window **window)
{
    struct afj_window *w = calloc(1, sizeof *w);
    if (!w)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a window");
    w->device = device;
    atomic_init(&w->references, 1);
    afdep_status status = device->kind->alloc(device, bytes, &w->memory);
    if (status != AFDEP_OK)
        goto free_window;
    /* The empty word, and ack -1, are all ones. */
    status = device->kind->fill(device, w->memory, 0xFF, bytes, NULL);
    if (status != AFDEP_OK)
        goto free_memory;
    *window = w;
    return AFDEP_OK;
free_memory:
    device->kind->free(device, w->memory);
free_window:
    free(w);
    return status;
}

void afj_window_retain(struct afj_window *window) { atomic_fetch_add(&window->references, 1); }

void afj_window_release(struct afj_window *window)
{
    if (!window || atomic_fetch_sub(&window->references, 1) != 1)
        return;
    window->device->kind->free(window->device, window->memory);
    free(window);
}

uint64_t afj_window_address(const struct afj_window *window)
{
    return (uint64_t)(uintptr_t)window->memory;
}
