/* templates.h: the files under templates/, embedded in the library when it is built. */
#ifndef AFJ_JIT_TEMPLATES_H
#define AFJ_JIT_TEMPLATES_H

#include <stddef.h>

/* `path` is relative to templates/, for instance "entry/dispatch.cuh". */
struct afj_template {
    const char *path;
    const char *text; /* NUL-terminated */
    size_t length;
};

extern const struct afj_template afj_templates[]; /* sorted by path; templates.c is generated */
extern const size_t afj_template_count;

#endif
