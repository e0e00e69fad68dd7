/* sim_image.h: an image of one kernel for the sim device, from its text, for tests of the device.
 */
#ifndef AFJ_TESTS_SIM_IMAGE_H
#define AFJ_TESTS_SIM_IMAGE_H

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <criterion/criterion.h>

#include "jit/compiler.h"
#include "jit/templates.h"

/* Compile `prelude`, which includes host/ops.h, and then `kernel`; its entry is "kernel". */
static inline struct afj_compiled compile_sim_image(const char *prelude, const char *kernel)
{
    char text[4096];
    struct utsname machine;
    const struct afj_template *ops = NULL;
    cr_assert_eq(uname(&machine), 0);
    for (size_t i = 0; i < afj_template_count; i++)
        if (strcmp(afj_templates[i].path, "host/ops.h") == 0)
            ops = &afj_templates[i];
    cr_assert_not_null(ops);
    const int length = snprintf(text, sizeof text, "%s%s", prelude, kernel);
    cr_assert_lt(length, (int)sizeof text);
    const struct afj_source_file files[] = {{"k.cuh", text, (size_t)length},
                                            {ops->path, ops->text, ops->length}};
    const struct afj_program program = {files, 2, machine.machine, "kernel"};
    struct afj_compiled compiled;
    cr_assert_eq(afj_compiler_hostcc.compile(&program, &compiled), AFDEP_OK, "%s",
                 afj_status_sentence());
    return compiled;
}

#endif
