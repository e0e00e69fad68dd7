/* text.c: a growing string. Allocation failure is remembered and asked about once, at the end. */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

/* Make room for `length` more bytes and the NUL behind them. */
static bool reserve_room(struct afj_text *text, size_t length)
{
    if (text->failed)
        return false;
    if (length < text->capacity - text->length)
        return true;
    if (length > SIZE_MAX / 4 || text->length > SIZE_MAX / 4) {
        text->failed = true;
        return false;
    }
    size_t capacity = text->capacity ? text->capacity : FIRST_CAPACITY;
    while (capacity - text->length <= length)
        capacity *= 2;
    char *grown = realloc(text->data, capacity);
    if (!grown) {
        text->failed = true;
        return false;
    }
    text->data = grown;
    text->capacity = capacity;
    return true;
}

void afj_text_append(struct afj_text *text, const void *bytes, size_t length)
{
    if (!reserve_room(text, length))
        return;
    if (length)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void afj_text_add(struct afj_text *text, const char *string)
{
    afj_text_append(text, string, strlen(string));
}

void afj_text_printf(struct afj_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->failed = true;
    } else if (reserve_room(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void afj_text_finish(struct afj_text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}
