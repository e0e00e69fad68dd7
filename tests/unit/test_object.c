/* test_object.c: the bytes of an object file. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "cache/object.h"

static const char manifest[] = "schema=1:1\nspec=7:a=1 b=2\narch=6:sm_90a\n";
static const char image[] = "image bytes";
static const struct afj_digest key = {{0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

enum { MANIFEST_LENGTH = sizeof manifest - 1, IMAGE_LENGTH = sizeof image - 1 };

/* A small object; with facts it is made of every kind of byte. */
static struct afj_text make_object(bool facts)
{
    struct afj_text all = {0}, bytes = {0};
    afj_text_append(&all, manifest, MANIFEST_LENGTH);
    if (facts) {
        afj_object_add_fact(&all, "registers", 9, "40", 2);
        afj_object_add_fact(&all, "role", 4, "source", 6);
        afj_object_add_fact(&all, "odd", 3, "a=1:\nb", 6);
    }
    cr_assert_null(afj_object_write(&key, all.data, all.length, image, IMAGE_LENGTH, &bytes));
    afj_text_finish(&all);
    return bytes;
}

Test(object, comes_back_as_it_was_written)
{
    struct afj_text bytes = make_object(true);
    struct afj_object object;
    cr_assert_null(afj_object_read(bytes.data, bytes.length, &object));
    cr_expect(afj_digest_equal(&object.key, &key));
    cr_expect_eq(object.image_length, IMAGE_LENGTH);
    cr_expect_eq(memcmp(object.image, image, IMAGE_LENGTH), 0);
    cr_expect_eq(((const char *)object.image - bytes.data) % 64, 0);
    cr_expect(afj_object_is_of(&object, manifest, MANIFEST_LENGTH));
    afj_text_finish(&bytes);
}

Test(object, has_its_fields_where_the_format_says)
{
    struct afj_text bytes = make_object(false);
    const struct afj_digest manifest_sum = afj_digest_of(manifest, MANIFEST_LENGTH);
    const struct afj_digest image_sum = afj_digest_of(image, IMAGE_LENGTH);
    static const unsigned char start[16] = {
        'A', 'F', 'D', 'E', 'P', 'J', 'O', '1', 1, 0, MANIFEST_LENGTH, 0, IMAGE_LENGTH, 0, 0, 0};
    cr_assert_eq(bytes.length, 64 + 64 + IMAGE_LENGTH);
    cr_expect_eq(memcmp(bytes.data, start, 16), 0);
    cr_expect_eq(memcmp(bytes.data + 16, key.bytes, 16), 0);
    cr_expect_eq(memcmp(bytes.data + 32, manifest_sum.bytes, 16), 0);
    cr_expect_eq(memcmp(bytes.data + 48, image_sum.bytes, 16), 0);
    cr_expect_eq(memcmp(bytes.data + 64, manifest, MANIFEST_LENGTH), 0);
    cr_expect_eq(memcmp(bytes.data + 128, image, IMAGE_LENGTH), 0);
    afj_text_finish(&bytes);
}

Test(object, every_shorter_or_longer_file_is_refused)
{
    struct afj_text bytes = make_object(true);
    struct afj_object object;
    for (size_t length = 0; length < bytes.length; ++length) {
        /* A block of its own, so that a sanitizer sees a read behind its end. */
        char *cut = malloc(length ? length : 1);
        cr_assert_not_null(cut);
        memcpy(cut, bytes.data, length);
        cr_expect_not_null(afj_object_read(cut, length, &object), "cut to %zu", length);
        free(cut);
    }
    afj_text_append(&bytes, "", 1);
    cr_expect_not_null(afj_object_read(bytes.data, bytes.length, &object), "one byte longer");
    afj_text_finish(&bytes);
}

/* All but the key, which only the caller can know. */
Test(object, every_flipped_bit_is_found)
{
    struct afj_text bytes = make_object(true);
    struct afj_object object;
    for (size_t bit = 0; bit < 8 * bytes.length; ++bit) {
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ 1 << bit % 8);
        const bool is_whole = !afj_object_read(bytes.data, bytes.length, &object);
        cr_expect(!is_whole || !afj_digest_equal(&object.key, &key), "bit %zu", bit);
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ 1 << bit % 8);
    }
    cr_expect_null(afj_object_read(bytes.data, bytes.length, &object));
    afj_text_finish(&bytes);
}

Test(object, is_of_no_other_manifest)
{
    struct afj_text bytes = make_object(true);
    struct afj_object object;
    char other[sizeof manifest];
    cr_assert_null(afj_object_read(bytes.data, bytes.length, &object));
    for (size_t i = 0; i < MANIFEST_LENGTH; ++i) {
        memcpy(other, manifest, sizeof other);
        other[i] ^= 1;
        cr_expect_not(afj_object_is_of(&object, other, MANIFEST_LENGTH), "byte %zu", i);
        cr_expect_not(afj_object_is_of(&object, manifest, i), "the first %zu bytes", i);
    }
    cr_expect_not(afj_object_is_of(&object, object.manifest, object.manifest_length + 1));
    afj_text_finish(&bytes);
}

Test(object, facts_lie_behind_the_manifest_and_are_listed_plainly)
{
    struct afj_text bytes = make_object(true), list = {0};
    struct afj_object object;
    struct afj_object_line line;
    cr_assert_null(afj_object_read(bytes.data, bytes.length, &object));
    cr_expect_eq(afj_object_facts_at(&object), MANIFEST_LENGTH);
    cr_assert(afj_object_find_fact(&object, "role", &line));
    cr_expect_eq(line.value_length, 6);
    cr_expect_eq(memcmp(line.value, "source", 6), 0);
    cr_expect_not(afj_object_find_fact(&object, "rol", &line));
    cr_expect_not(afj_object_find_fact(&object, "arch", &line), "a line of the key is no fact");
    afj_object_list_facts(&object, &list);
    cr_expect_str_eq(list.data, "registers=40\nrole=source\nodd=a=1:\nb\n");
    afj_text_finish(&list);
    afj_text_finish(&bytes);
}

Test(object, without_facts_lists_nothing)
{
    struct afj_text bytes = make_object(false), list = {0};
    struct afj_object object;
    cr_assert_null(afj_object_read(bytes.data, bytes.length, &object));
    cr_expect_eq(afj_object_facts_at(&object), object.manifest_length);
    afj_object_list_facts(&object, &list);
    cr_expect_str_eq(list.data, "");
    afj_text_finish(&list);
    afj_text_finish(&bytes);
}

Test(object, a_malformed_line_is_no_line)
{
    static const char *const bad[] = {"",
                                      "a",
                                      "a=",
                                      "a=:\n",
                                      "a=1:",
                                      "a=1:x",
                                      "a=1:xy\n",
                                      "a=2:x\n",
                                      "a=-1:\n",
                                      "a=65536:x\n",
                                      "a=99999999999999999999:x\n"};
    struct afj_object_line line;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        cr_expect_not(afj_object_next_line(bad[i], bad[i] + strlen(bad[i]), &line), "\"%s\"",
                      bad[i]);
    static const char good[] = "a=0:\nb=1:x\n";
    cr_assert(afj_object_next_line(good, good + strlen(good), &line));
    cr_expect_eq(line.value_length, 0);
    cr_expect_eq(line.next - good, 5);
}

Test(object, what_the_format_cannot_hold_is_refused)
{
    struct afj_text bytes = {0};
    static char long_manifest[AFJ_OBJECT_MOST_MANIFEST + 1];
    struct afj_object object;
    cr_expect_not_null(afj_object_write(&key, manifest, MANIFEST_LENGTH, image, 0, &bytes));
    cr_expect_not_null(
        afj_object_write(&key, long_manifest, sizeof long_manifest, image, 1, &bytes));
    cr_expect_eq(bytes.length, 0);
    cr_assert_null(
        afj_object_write(&key, long_manifest, sizeof long_manifest - 1, image, 1, &bytes));
    cr_expect_null(afj_object_read(bytes.data, bytes.length, &object));
    afj_text_finish(&bytes);
}
