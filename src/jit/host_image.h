/* host_image.h: whether bytes are a kernel image of the host compiler. Trusts no byte of them. */
#ifndef AFJ_JIT_HOST_IMAGE_H
#define AFJ_JIT_HOST_IMAGE_H

#include <stddef.h>

#include "base/status.h"

/* Check that the bytes are an ELF64 shared object for `arch` ("x86_64", "aarch64"), whole, that
 * exports `entry` and the two symbols of templates/host/ops.h. AFDEP_ERROR_LOAD says why not. */
afdep_status afj_host_image_check(const void *image, size_t bytes, const char *arch,
                                  const char *entry);

#endif
