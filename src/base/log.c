/* log.c: lines on stderr for a person, as AFDEP_LOG asks. */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/path.h"
#include "base/text.h"

static const char *const level_names[] = {"off", "warn", "info", "debug"};

/* What AFDEP_LOG asks for; written once, before anything reads it. */
static struct {
    pthread_once_t once;
    enum afj_log_level level;
    bool json;
} setting = {PTHREAD_ONCE_INIT, AFJ_LOG_WARN, false};

/* Length of the well-formed UTF-8 character at `at`, or 0. Surrogates and overlong forms are not.
 */
static size_t measure_character(const unsigned char *at)
{
    const unsigned char first = at[0];
    if (first < 0x80)
        return 1;
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    for (size_t i = 1; i < length; ++i)
        if ((at[i] & 0xC0) != 0x80) /* also the NUL */
            return 0;
    if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F) ||
        (first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F))
        return 0;
    return length;
}

/* Append a JSON string. Paths may hold any bytes: what is not UTF-8 becomes U+FFFD. */
static void add_json_string(struct afj_text *text, const char *string)
{
    const unsigned char *at = (const unsigned char *)string;
    afj_text_add(text, "\"");
    while (*at) {
        const size_t length = measure_character(at);
        if (length == 0)
            afj_text_add(text, "\\ufffd");
        else if (*at == '"' || *at == '\\')
            afj_text_printf(text, "\\%c", *at);
        else if (*at == '\n')
            afj_text_add(text, "\\n");
        else if (*at < 0x20 || *at == 0x7F)
            afj_text_printf(text, "\\u%04x", (unsigned)*at);
        else
            afj_text_append(text, at, length);
        at += length ? length : 1;
    }
    afj_text_add(text, "\"");
}

static void write_line(enum afj_log_level level, const char *sentence)
{
    struct afj_text line = {0};
    if (setting.json) {
        afj_text_printf(&line,
                        "{\"level\": \"%s\", \"pid\": %ld, \"message\": ", level_names[level],
                        (long)getpid());
        add_json_string(&line, sentence);
        afj_text_add(&line, "}\n");
    } else {
        afj_text_printf(&line, "afdep-jit: %s%s\n", level == AFJ_LOG_WARN ? "warning: " : "",
                        sentence);
    }
    /* A line that cannot be written has nowhere to be reported. */
    if (!line.failed)
        (void)afj_path_write_all(STDERR_FILENO, line.data, line.length);
    afj_text_finish(&line);
}

static void read_setting(void)
{
    const char *value = afj_env_get(AFJ_ENV_LOG);
    const char *colon = strchr(value, ':');
    const size_t length = colon ? (size_t)(colon - value) : strlen(value);
    bool known = false;
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; ++i) {
        if (strlen(level_names[i]) == length && memcmp(level_names[i], value, length) == 0) {
            setting.level = (enum afj_log_level)i;
            known = true;
        }
    }
    setting.json = colon && strcmp(colon, ":json") == 0;
    if (known && (!colon || setting.json))
        return;
    struct afj_text sentence = {0};
    afj_text_printf(&sentence,
                    "AFDEP_LOG is \"%s\"; it must be off, warn, info or debug, with :json behind "
                    "it for one JSON object a line",
                    value);
    if (!sentence.failed)
        write_line(AFJ_LOG_WARN, sentence.data);
    afj_text_finish(&sentence);
}

bool afj_log_enabled(enum afj_log_level level)
{
    pthread_once(&setting.once, read_setting);
    return level != AFJ_LOG_OFF && level <= setting.level;
}

void afj_log(enum afj_log_level level, const char *format, ...)
{
    const int error = errno;
    char room[1024], *sentence = room;
    if (!afj_log_enabled(level))
        return;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(room, sizeof room, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof room) {
        /* Without memory the first part has to do. */
        char *longer = malloc((size_t)length + 1);
        if (longer) {
            vsnprintf(longer, (size_t)length + 1, format, again);
            sentence = longer;
        }
    }
    va_end(again);
    if (length >= 0)
        write_line(level, sentence);
    if (sentence != room)
        free(sentence);
    errno = error;
}
