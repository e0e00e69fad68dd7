/* digest.h: XXH3-128 of bytes. The only includer of xxhash.h. */
#ifndef AFJ_BASE_DIGEST_H
#define AFJ_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 16 bytes, big-endian as XXH128_canonicalFromHash writes them. */
struct afj_digest {
    uint8_t bytes[16];
};

struct afj_digest afj_digest_of(const void *data, size_t length);
bool afj_digest_equal(const struct afj_digest *a, const struct afj_digest *b);
/* 32 lower-case hex digits and a NUL. */
void afj_digest_hex(const struct afj_digest *digest, char hex[33]);

#endif
