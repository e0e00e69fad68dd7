/* device.c: which table of operations a kind of device has. */
#include "device/device.h"

#include <afdep/config.h>

const struct afj_device_kind *afj_device_kind(uint32_t kind)
{
    switch (kind) {
    case AFDEP_DEVICE_CUDA:
        return &afj_device_cuda;
    case AFDEP_DEVICE_SIM:
        return &afj_device_sim;
    default:
        return NULL;
    }
}
