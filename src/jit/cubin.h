/* cubin.h: whether bytes are a CUDA binary with one entry for one architecture. */
#ifndef AFJ_JIT_CUBIN_H
#define AFJ_JIT_CUBIN_H

#include <stddef.h>

#include "base/status.h"

/* The driver takes damaged images without complaint, so this looks first: ELF header, machine,
 * architecture, bounds of the section table, a function symbol named `entry`. Never reads outside
 * the bytes. AFDEP_ERROR_LOAD with a sentence. */
afdep_status afj_cubin_check(const void *image, size_t bytes, const char *arch, const char *entry);

#endif
