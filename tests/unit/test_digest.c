/* test_digest.c: XXH3-128 as the files hold it. */
#include <criterion/criterion.h>

#include "base/digest.h"

Test(digest, of_nothing_is_the_published_value)
{
    char hex[33];
    const struct afj_digest digest = afj_digest_of("", 0);
    afj_digest_hex(&digest, hex);
    cr_expect_str_eq(hex, "99aa06d3014798d86001c324468d497f");
}

Test(digest, hex_is_in_the_order_of_the_bytes)
{
    struct afj_digest digest;
    char hex[33];
    for (unsigned i = 0; i < 16; ++i)
        digest.bytes[i] = (uint8_t)(i * 17);
    afj_digest_hex(&digest, hex);
    cr_expect_str_eq(hex, "00112233445566778899aabbccddeeff");
}

Test(digest, differs_where_one_bit_differs)
{
    char text[] = "manifest";
    const struct afj_digest a = afj_digest_of(text, sizeof text);
    cr_expect(afj_digest_equal(&a, &a));
    text[3] ^= 1;
    const struct afj_digest b = afj_digest_of(text, sizeof text);
    cr_expect_not(afj_digest_equal(&a, &b));
}
