/* window.h: memory of one rank that its peers store to. */
#ifndef AFJ_NET_WINDOW_H
#define AFJ_NET_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/* Lives until its owner and every peer that maps it let go, so that an early destroy never takes
 * memory from under a peer's late stores. */
struct afj_window;

/* Allocate `bytes` on the device, every word empty once the device is synchronised. One reference,
 * the caller's. */
afdep_status afj_window_create(afdep_device *device, uint64_t bytes, struct afj_window **window);
void afj_window_retain(struct afj_window *window);
void afj_window_release(struct afj_window *window); /* NULL is fine */

/* Its address, the same for the owner's and the peers' kernels. */
uint64_t afj_window_address(const struct afj_window *window);

#endif
