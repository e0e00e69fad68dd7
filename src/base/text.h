/* text.h: a growing string. Allocation failure is remembered and asked about once, at the end. */
#ifndef AFJ_BASE_TEXT_H
#define AFJ_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct afj_text {
    char *data; /* NUL-terminated once anything was appended; owned */
    size_t length, capacity;
    bool failed; /* an allocation failed; data holds what came before */
};

void afj_text_append(struct afj_text *text, const void *bytes, size_t length);
void afj_text_add(struct afj_text *text, const char *string);
__attribute__((format(printf, 2, 3))) void afj_text_printf(struct afj_text *text,
                                                           const char *format, ...);
void afj_text_finish(struct afj_text *text); /* frees; zeroes */

#endif
