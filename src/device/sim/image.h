/* image.h: kernel images as shared objects in memory, and the entries in them. */
#ifndef AFJ_SIM_IMAGE_H
#define AFJ_SIM_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "device/sim/machine.h"

/* A loaded image. Devices that load the same bytes share it. */
struct afj_sim_image;

struct afj_kernel {
    struct afj_kernel *next;
    struct afj_module *module;
    void (*entry)(const void *arguments);
    size_t arguments_bytes;
    uint32_t lanes; /* fibres a warp: 1 or AFJ_SIM_MOST_LANES */
    char name[64];
};

/* An image as one device loaded it. */
struct afj_module {
    struct afj_sim_device *device;
    struct afj_sim_image *image;
    struct afj_kernel *kernels; /* those resolved so far */
    uint32_t users;             /* the caller, and nodes that launch one of its kernels */
};

/* Load an image and bind it. AFDEP_ERROR_LOAD with a sentence if the bytes are no kernel image. */
afdep_status afj_image_load(struct afj_sim_device *device, const void *bytes, size_t length,
                            struct afj_module **module);

/* One user less; the last one closes the image. */
void afj_image_let_go(struct afj_module *module);

/* Resolve an entry; AFDEP_ERROR_LOAD if it is not there or takes other arguments. */
afdep_status afj_image_kernel(struct afj_module *module, const char *entry, size_t arguments_bytes,
                              struct afj_kernel **kernel);

#endif
