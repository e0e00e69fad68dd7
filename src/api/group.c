/* group.c: the exported calls on groups. */
#include <afdep/buffer.h>

#include "base/status.h"
#include "net/local.h"

afdep_status afdep_group_create_local(afdep_device_kind kind, uint32_t ranks,
                                      const int32_t *devices, afdep_group **group)
{
    afj_status_clear();
    return afj_local_create((uint32_t)kind, ranks, devices, group);
}

void afdep_group_destroy(afdep_group *group) { afj_local_destroy(group); }

afdep_device *afdep_group_device(const afdep_group *group, uint32_t rank)
{
    return group && rank < group->ranks ? group->devices[rank] : NULL;
}

uint32_t afdep_group_ranks(const afdep_group *group) { return group ? group->ranks : 0; }
