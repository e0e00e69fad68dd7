/* test_local.c: what a device can run at once, and what is refused. */
#include <criterion/criterion.h>
#include <string.h>

#include <afdep/buffer.h>

#include "net/local.h"

/* A group of `ranks` ranks, all on one device with 8 hardware queues. */
static void all_on_one(struct afdep_group *group, struct afdep_device *device, uint32_t ranks)
{
    memset(group, 0, sizeof *group);
    memset(device, 0, sizeof *device);
    device->facts.queues = 8;
    device->ordinal = 3;
    group->ranks = ranks;
    for (uint32_t r = 0; r < ranks; ++r)
        group->devices[r] = device;
}

Test(local, ranks_times_lanes_are_limited_by_hardware_queues)
{
    struct afdep_group group;
    struct afdep_device device;
    all_on_one(&group, &device, 8);
    cr_assert_eq(afj_local_ranks_beside(&group, 5), 8);
    cr_assert_eq(afj_local_check_queues(&group, 1), AFDEP_OK);
    cr_assert_eq(afj_local_check_queues(&group, 2), AFDEP_ERROR_RESOURCES);
    cr_assert(strstr(afdep_last_error(), "8 ranks x 2 lanes on device 3 need 16 hardware queues"),
              "%s", afdep_last_error());
    all_on_one(&group, &device, 9);
    cr_assert_eq(afj_local_check_queues(&group, 1), AFDEP_ERROR_RESOURCES);
    cr_assert(strstr(afdep_last_error(), "CUDA_DEVICE_MAX_CONNECTIONS"), "%s", afdep_last_error());
}

Test(local, a_group_needs_ranks_and_a_device_that_exists)
{
    afdep_group *group = NULL;
    const int32_t far[] = {0, 4096};
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, 1, NULL, &group), AFDEP_ERROR_ARGUMENT);
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, 129, NULL, &group),
                 AFDEP_ERROR_ARGUMENT);
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, 2, NULL, NULL), AFDEP_ERROR_ARGUMENT);
    cr_assert_eq(afdep_group_create_local((afdep_device_kind)9, 2, NULL, &group),
                 AFDEP_ERROR_ARGUMENT);
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, 2, far, &group), AFDEP_ERROR_DEVICE);
    cr_assert(strstr(afdep_last_error(), "4096"), "%s", afdep_last_error());
    cr_assert_null(group);
}

Test(local, more_ctas_than_fit_at_once_are_refused)
{
    afdep_group *group = NULL;
    afdep_buffer *buffers[3] = {0};
    const int32_t together[] = {0, 0, 0};
    afdep_config c = AFDEP_CONFIG_INIT;
    c.device = AFDEP_DEVICE_SIM;
    c.attention_ranks = 2;
    c.hidden = 64;
    c.capacity = 4;
    c.ctas = 1000;
    cr_assert_eq(afdep_group_create_local(AFDEP_DEVICE_SIM, 3, together, &group), AFDEP_OK);
    cr_assert_eq(afdep_buffer_create(group, &c, buffers), AFDEP_ERROR_RESOURCES);
    cr_assert(strstr(afdep_last_error(), "3 ranks x 1 lanes x 1000 CTAs"), "%s",
              afdep_last_error());
    cr_assert_null(buffers[0]);
    afdep_group_destroy(group);
}
