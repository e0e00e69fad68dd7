/* local.h: the transport of ranks that all live in this process. */
#ifndef AFJ_NET_LOCAL_H
#define AFJ_NET_LOCAL_H

#include <stdint.h>

#include <afdep/config.h>

#include "device/device.h"

/* The ranks of a group and their devices. Several ranks may share one. */
struct afdep_group {
    uint32_t kind; /* afdep_device_kind */
    uint32_t ranks;
    afdep_device *devices[AFDEP_MAX_RANKS]; /* owned, one reference a rank */
};

/* Open the devices and let each reach the others. See afdep_group_create_local. */
afdep_status afj_local_create(uint32_t kind, uint32_t ranks, const int32_t *ordinals,
                              struct afdep_group **group);
void afj_local_destroy(struct afdep_group *group); /* NULL is fine */

/* Ranks on the device of `rank`, itself included. */
uint32_t afj_local_ranks_beside(const struct afdep_group *group, uint32_t rank);

/* Refuse more than a device can run at once: `lanes` kernels of every rank on it spin together. */
afdep_status afj_local_check_queues(const struct afdep_group *group, uint32_t lanes);

#endif
