/* local.c: the transport of ranks that all live in this process. */
#include "net/local.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/status.h"

/* Ranks in order, in equal blocks, over the devices there are. */
static int32_t place(uint32_t rank, uint32_t ranks, uint32_t devices)
{
    return (int32_t)((uint64_t)rank * devices / ranks);
}

static afdep_status open_devices(struct afdep_group *group, const int32_t *ordinals)
{
    const struct afj_device_kind *kind = afj_device_kind(group->kind);
    uint32_t count = 0;
    AFJ_TRY(kind->count(&count));
    if (count == 0)
        return afj_fail(AFDEP_ERROR_DEVICE, "there is no device: the driver lists none");
    if (group->kind == AFDEP_DEVICE_SIM)
        count = group->ranks;
    for (uint32_t r = 0; r < group->ranks; ++r) {
        const int32_t ordinal = ordinals ? ordinals[r] : place(r, group->ranks, count);
        AFJ_TRY(kind->open(ordinal, &group->devices[r]));
    }
    return AFDEP_OK;
}

static afdep_status enable_peers(struct afdep_group *group)
{
    const struct afj_device_kind *kind = afj_device_kind(group->kind);
    for (uint32_t a = 0; a < group->ranks; ++a)
        for (uint32_t b = 0; b < group->ranks; ++b)
            if (group->devices[a]->ordinal != group->devices[b]->ordinal)
                AFJ_TRY(kind->enable_peer(group->devices[a], group->devices[b]));
    return AFDEP_OK;
}

afdep_status afj_local_create(uint32_t kind, uint32_t ranks, const int32_t *ordinals,
                              struct afdep_group **group)
{
    if (!group)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "group is NULL");
    *group = NULL;
    if (!afj_device_kind(kind))
        return afj_fail(AFDEP_ERROR_ARGUMENT,
                        "device kind is %" PRIu32 "; it must be CUDA (%d) or sim (%d)", kind,
                        AFDEP_DEVICE_CUDA, AFDEP_DEVICE_SIM);
    if (ranks < 2 || ranks > AFDEP_MAX_RANKS)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "ranks is %" PRIu32 "; it must be 2 to %d", ranks,
                        AFDEP_MAX_RANKS);
    struct afdep_group *g = calloc(1, sizeof *g);
    if (!g)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a group of %" PRIu32 " ranks", ranks);
    g->kind = kind;
    g->ranks = ranks;
    afdep_status status = open_devices(g, ordinals);
    if (status == AFDEP_OK)
        status = afj_local_check_queues(g, 1);
    if (status == AFDEP_OK)
        status = enable_peers(g);
    if (status != AFDEP_OK) {
        afj_local_destroy(g);
        return status;
    }
    *group = g;
    return AFDEP_OK;
}

void afj_local_destroy(struct afdep_group *group)
{
    if (!group)
        return;
    for (uint32_t r = 0; r < group->ranks; ++r)
        if (group->devices[r])
            group->devices[r]->kind->close(group->devices[r]);
    free(group);
}

uint32_t afj_local_ranks_beside(const struct afdep_group *group, uint32_t rank)
{
    uint32_t beside = 0;
    for (uint32_t r = 0; r < group->ranks; ++r)
        beside += group->devices[r]->ordinal == group->devices[rank]->ordinal;
    return beside;
}

afdep_status afj_local_check_queues(const struct afdep_group *group, uint32_t lanes)
{
    for (uint32_t r = 0; r < group->ranks; ++r) {
        const struct afj_device_facts *facts = &group->devices[r]->facts;
        const uint32_t beside = afj_local_ranks_beside(group, r);
        if (beside * lanes > facts->queues)
            return afj_fail(AFDEP_ERROR_RESOURCES,
                            "%" PRIu32 " ranks x %" PRIu32 " lanes on device %" PRId32
                            " need %" PRIu32 " hardware queues and it has %" PRIu32
                            ": set CUDA_DEVICE_MAX_CONNECTIONS (at most 32) before the first CUDA "
                            "call, or use more devices",
                            beside, lanes, group->devices[r]->ordinal, beside * lanes,
                            facts->queues);
    }
    return AFDEP_OK;
}
