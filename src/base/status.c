/* status.c: one code and one sentence for each failure, written where it is first understood. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SENTENCE_BYTES = 1024 };

static _Thread_local char sentence[SENTENCE_BYTES];

afdep_status afj_fail(afdep_status code, const char *format, ...)
{
    /* Written aside first: the old sentence may be one of the arguments. */
    char text[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        snprintf(text, sizeof text, "the sentence of this failure could not be written");
    else if ((size_t)length >= sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    memcpy(sentence, text, sizeof sentence);
    return code;
}

void afj_status_clear(void) { sentence[0] = '\0'; }

const char *afj_status_sentence(void) { return sentence; }
