/* cubin.h: whether bytes are a cubin for an architecture that holds an entry. */
#ifndef AFJ_JIT_CUBIN_H
#define AFJ_JIT_CUBIN_H

#include <stddef.h>

#include "base/status.h"

/* The driver takes damaged images without complaint, so they are looked at first. Reads nothing
 * outside the `bytes` given. AFDEP_ERROR_LOAD with the reason; AFDEP_ERROR_CONFIG for an `arch`
 * that is no "sm_<number><suffix>". */
afdep_status afj_cubin_check(const void *image, size_t bytes, const char *arch, const char *entry);

#endif
