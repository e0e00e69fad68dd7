/* digest.c: XXH3-128 of bytes. */
#include "base/digest.h"

#include <string.h>

#include <xxhash.h>

struct afj_digest afj_digest_of(const void *data, size_t length)
{
    XXH128_canonical_t canonical;
    struct afj_digest digest;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, length));
    memcpy(digest.bytes, canonical.digest, sizeof digest.bytes);
    return digest;
}

bool afj_digest_equal(const struct afj_digest *a, const struct afj_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void afj_digest_hex(const struct afj_digest *digest, char hex[33])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof digest->bytes; ++i) {
        hex[2 * i] = digits[digest->bytes[i] >> 4];
        hex[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    hex[32] = '\0';
}
