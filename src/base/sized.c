/* sized.c: structs that cross the ABI begin with their size; older and newer callers are served. */
#include "base/sized.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

enum { LARGEST = 65536 };

static uint32_t size_of(const void *sized)
{
    uint32_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

afdep_status afj_sized_check(const void *out, size_t least, const char *name)
{
    if (!out)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "%s is NULL", name);
    const uint32_t size = size_of(out);
    if (size < least || size > LARGEST)
        return afj_fail(AFDEP_ERROR_ARGUMENT,
                        "struct_size of %s is %" PRIu32 "; it must be sizeof(%s), at least %zu",
                        name, size, name, least);
    return AFDEP_OK;
}

afdep_status afj_sized_read(void *to, size_t known, const void *from, size_t least,
                            const char *name)
{
    AFJ_TRY(afj_sized_check(from, least, name));
    const size_t size = size_of(from);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    const unsigned char *bytes = from;
    for (size_t i = known; i < size; ++i)
        if (bytes[i] != 0)
            return afj_fail(AFDEP_ERROR_ARGUMENT,
                            "%s is %zu bytes long and byte %zu is not zero; this library knows "
                            "%zu bytes",
                            name, size, i, known);
    return AFDEP_OK;
}

void afj_sized_write(void *out, const void *from, size_t known)
{
    const uint32_t size = size_of(out);
    memcpy(out, from, size < known ? size : known);
    memcpy(out, &size, sizeof size);
}
