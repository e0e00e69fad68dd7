/* test_templates.c: what is embedded in the library is what lies under templates/. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "jit/templates.h"

Test(templates, are_the_files_of_the_tree_byte_for_byte)
{
    const char *root = getenv("AFDEP_SOURCE_DIR");
    cr_assert_gt(afj_template_count, 0);
    for (size_t i = 0; i < afj_template_count; ++i) {
        const struct afj_template *template = &afj_templates[i];
        char path[4096];
        snprintf(path, sizeof path, "%s/templates/%s", root != NULL ? root : ".", template->path);
        void *file = NULL;
        size_t length = 0;
        cr_assert_eq(afj_path_read(path, true, 1 << 20, &file, &length), 0, "cannot read %s", path);
        cr_assert_eq(length, template->length, "%s has %zu bytes, not %zu", path, length,
                     template->length);
        cr_assert_arr_eq(file, template->text, length, "%s differs", path);
        cr_assert_eq(template->text[length], '\0');
        free(file);
    }
}

Test(templates, are_sorted_by_path)
{
    for (size_t i = 1; i < afj_template_count; ++i)
        cr_assert_lt(strcmp(afj_templates[i - 1].path, afj_templates[i].path), 0);
}

Test(templates, leave_out_the_example)
{
    for (size_t i = 0; i < afj_template_count; ++i)
        cr_assert_neq(strncmp(afj_templates[i].path, "example/", 8), 0);
}
