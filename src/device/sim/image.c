/* image.c: an image is written to an anonymous file and opened by the dynamic loader. */
#include "device/sim/image.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/path.h"
#include "base/status.h"
#include "device/sim/grid.h"

struct afj_sim_image {
    struct afj_sim_image *next;
    uint32_t users;
    struct afj_digest digest; /* of its bytes */
    size_t length;
    /* Stays open with the image: the loader knows a file by its path, and the path is this
     * number, which must not name another image meanwhile. */
    int file;
    void *library;
    uint64_t arguments_bytes;
    uint32_t lanes;
};

/* Guarded by the simulator's lock. */
static struct afj_sim_image *images;

static struct afj_sim_image *find_image(const struct afj_digest *digest, size_t length)
{
    for (struct afj_sim_image *image = images; image != NULL; image = image->next)
        if (image->length == length && afj_digest_equal(&image->digest, digest))
            return image;
    return NULL;
}

/* dlsym gives an object pointer; ISO C has no cast from it to a function pointer. */
static bool find_function(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, size);
    return symbol != NULL;
}

static afdep_status open_library(struct afj_sim_image *image, const void *bytes)
{
    if (afj_path_write_all(image->file, bytes, image->length) != 0)
        return afj_fail(AFDEP_ERROR_IO, "cannot write an image of %zu bytes to memory: %s",
                        image->length, strerror(errno));
    char path[48];
    snprintf(path, sizeof path, "/proc/self/fd/%d", image->file);
    image->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (image->library == NULL) {
        const char *reason = dlerror();
        return afj_fail(AFDEP_ERROR_LOAD, "the loader refuses a kernel image of %zu bytes: %s",
                        image->length, reason != NULL ? reason : "no reason given");
    }
    void (*bind)(const struct afj_sim_ops *);
    const uint64_t *arguments_bytes = dlsym(image->library, AFJ_SIM_ARGUMENTS);
    if (!find_function(image->library, AFJ_SIM_BIND, &bind, sizeof bind) || arguments_bytes == NULL)
        return afj_fail(AFDEP_ERROR_LOAD, "a kernel image of %zu bytes exports no %s",
                        image->length, arguments_bytes == NULL ? AFJ_SIM_ARGUMENTS : AFJ_SIM_BIND);
    const uint64_t *lanes = dlsym(image->library, AFJ_SIM_LANES);
    if (lanes != NULL && *lanes != 1 && *lanes != AFJ_SIM_MOST_LANES)
        return afj_fail(AFDEP_ERROR_LOAD, "a kernel image has warps of %" PRIu64 " lanes", *lanes);
    image->lanes = lanes == NULL ? 1 : (uint32_t)*lanes;
    image->arguments_bytes = *arguments_bytes;
    bind(&afj_grid_ops);
    return AFDEP_OK;
}

static void close_image(struct afj_sim_image *image)
{
    if (image->library != NULL)
        dlclose(image->library);
    close(image->file);
    free(image);
}

static afdep_status open_image(const void *bytes, size_t length, const struct afj_digest *digest,
                               struct afj_sim_image **out)
{
    struct afj_sim_image *image = calloc(1, sizeof *image);
    if (image == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for an image");
    image->digest = *digest;
    image->length = length;
    image->file = memfd_create("afdep-kernel", MFD_CLOEXEC);
    if (image->file < 0) {
        free(image);
        return afj_fail(AFDEP_ERROR_IO, "cannot make an anonymous file for an image: %s",
                        strerror(errno));
    }
    afdep_status status = open_library(image, bytes);
    if (status != AFDEP_OK) {
        close_image(image);
        return status;
    }
    image->next = images;
    images = image;
    *out = image;
    return AFDEP_OK;
}

static void drop_image(struct afj_sim_image *image)
{
    if (--image->users > 0)
        return;
    struct afj_sim_image **at = &images;
    while (*at != image)
        at = &(*at)->next;
    *at = image->next;
    close_image(image);
}

afdep_status afj_image_load(struct afj_sim_device *device, const void *bytes, size_t length,
                            struct afj_module **module)
{
    struct afj_digest digest = afj_digest_of(bytes, length);
    struct afj_sim_image *image = find_image(&digest, length);
    if (image == NULL)
        AFJ_TRY(open_image(bytes, length, &digest, &image));
    image->users++;
    struct afj_module *made = calloc(1, sizeof *made);
    if (made == NULL) {
        drop_image(image);
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a module");
    }
    *made = (struct afj_module){.device = device, .image = image, .users = 1};
    *module = made;
    return AFDEP_OK;
}

void afj_image_let_go(struct afj_module *module)
{
    if (--module->users > 0)
        return;
    drop_image(module->image);
    while (module->kernels != NULL) {
        struct afj_kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        free(kernel);
    }
    free(module);
}

afdep_status afj_image_kernel(struct afj_module *module, const char *entry, size_t arguments_bytes,
                              struct afj_kernel **kernel)
{
    if (module->image->arguments_bytes != arguments_bytes)
        return afj_fail(AFDEP_ERROR_LOAD,
                        "kernel %s takes an argument struct of %" PRIu64
                        " bytes; the library passes %zu",
                        entry, module->image->arguments_bytes, arguments_bytes);
    struct afj_kernel *made = calloc(1, sizeof *made);
    if (made == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a kernel");
    if (!find_function(module->image->library, entry, &made->entry, sizeof made->entry)) {
        free(made);
        return afj_fail(AFDEP_ERROR_LOAD, "the image exports no kernel %s", entry);
    }
    made->module = module;
    made->arguments_bytes = arguments_bytes;
    made->lanes = module->image->lanes;
    snprintf(made->name, sizeof made->name, "%s", entry);
    made->next = module->kernels;
    module->kernels = made;
    *kernel = made;
    return AFDEP_OK;
}
