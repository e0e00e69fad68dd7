/* test_text.c: the growing string. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

Test(text, grows_by_every_way_of_adding)
{
    struct afj_text text = {0};
    afj_text_add(&text, "a");
    afj_text_append(&text, "bcd", 2);
    afj_text_printf(&text, "-%d", 7);
    cr_expect_str_eq(text.data, "abc-7");
    cr_expect_eq(text.length, 5);
    cr_expect_not(text.failed);
    afj_text_finish(&text);
    cr_expect_null(text.data);
    cr_expect_eq(text.length, 0);
}

Test(text, an_empty_string_is_a_string)
{
    struct afj_text text = {0};
    afj_text_append(&text, NULL, 0);
    cr_assert_not_null(text.data);
    cr_expect_str_eq(text.data, "");
    afj_text_finish(&text);
}

Test(text, keeps_every_byte_over_many_growths)
{
    struct afj_text text = {0};
    for (int i = 0; i < 10000; ++i)
        afj_text_printf(&text, "%04d", i);
    cr_assert_eq(text.length, 40000);
    for (int i = 0; i < 10000; ++i) {
        char number[16];
        snprintf(number, sizeof number, "%04d", i);
        cr_assert_eq(memcmp(text.data + 4 * i, number, 4), 0, "at %d", i);
    }
    cr_expect_eq(text.data[40000], '\0');
    afj_text_finish(&text);
}

Test(text, bytes_may_be_zero)
{
    struct afj_text text = {0};
    afj_text_append(&text, "a\0b", 3);
    cr_expect_eq(text.length, 3);
    cr_expect_eq(memcmp(text.data, "a\0b", 4), 0);
    afj_text_finish(&text);
}

Test(text, a_length_that_cannot_be_is_remembered_as_a_failure)
{
    struct afj_text text = {0};
    afj_text_add(&text, "kept");
    afj_text_append(&text, "x", SIZE_MAX - 2);
    afj_text_add(&text, "not added");
    cr_expect(text.failed);
    cr_expect_str_eq(text.data, "kept");
    afj_text_finish(&text);
}
