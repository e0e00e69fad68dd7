/* compiler.c: what every compiler shares: freeing a result, writing a manifest line. */
#include "jit/compiler.h"

#include <stdlib.h>
#include <string.h>

void afj_compiled_finish(struct afj_compiled *compiled)
{
    if (!compiled)
        return;
    free(compiled->image);
    free(compiled->log);
    memset(compiled, 0, sizeof *compiled);
}

void afj_compiler_add_line(struct afj_text *text, const char *name, const char *value,
                           size_t length)
{
    /* The length makes "ab" + "c" and "a" + "bc" differ, and lets a value hold any byte. */
    afj_text_printf(text, "%s=%zu:", name, length);
    afj_text_append(text, value, length);
    afj_text_append(text, "\n", 1);
}
