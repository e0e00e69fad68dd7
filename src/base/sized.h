/* sized.h: structs that cross the ABI begin with their size; older and newer callers are served. */
#ifndef AFJ_BASE_SIZED_H
#define AFJ_BASE_SIZED_H

#include <stddef.h>

#include "base/status.h"

/* Copy a caller's struct into one of `known` bytes. A smaller one reads as zero-padded, a larger
 * one is accepted when its extra bytes are zero. `least` is the size of the first release.
 * AFDEP_ERROR_ARGUMENT if it is NULL or its struct_size is out of range. */
afdep_status afj_sized_read(void *to, size_t known, const void *from, size_t least,
                            const char *name);

/* Check the struct_size of a struct that a call is to fill in. */
afdep_status afj_sized_check(const void *out, size_t least, const char *name);

/* Copy an answer of `known` bytes out, as much as the caller's struct_size takes; the size stays.
 */
void afj_sized_write(void *out, const void *from, size_t known);

#endif
