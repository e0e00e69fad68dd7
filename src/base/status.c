/* status.c: one code and one sentence for each failure, written where it is first understood. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

enum { SENTENCE_BYTES = 1024 };

static _Thread_local char sentence[SENTENCE_BYTES];

afdep_status afj_fail(afdep_status code, const char *format, ...)
{
    /* The new sentence may quote the old one, so it is written beside it first. */
    char fresh[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fresh, sizeof fresh, format, arguments);
    va_end(arguments);
    snprintf(sentence, sizeof sentence, "%s", fresh);
    return code;
}

void afj_status_clear(void)
{
    sentence[0] = 0;
}

const char *afj_status_sentence(void)
{
    return sentence;
}
