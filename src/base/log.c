/* log.c: lines on stderr for a person, as AFDEP_LOG asks. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/text.h"

static const char *const level_names[] = {"off", "warn", "info", "debug"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum afj_log_level threshold = AFJ_LOG_WARN;
static bool as_json;

static void read_settings(void)
{
    const char *value = afj_env_get(AFJ_ENV_LOG);
    const size_t length = strcspn(value, ":");
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; ++i)
        if (strlen(level_names[i]) == length && strncmp(value, level_names[i], length) == 0)
            threshold = (enum afj_log_level)i;
    as_json = strcmp(value + length, ":json") == 0;
}

bool afj_log_enabled(enum afj_log_level level)
{
    pthread_once(&once, read_settings);
    return level != AFJ_LOG_OFF && level <= threshold;
}

/* Control characters, quotes and backslashes as JSON writes them. */
static void add_escaped(struct afj_text *line, const char *text)
{
    for (; *text; ++text) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            afj_text_printf(line, "\\%c", c);
        else if (c < 0x20)
            afj_text_printf(line, "\\u%04x", c);
        else
            afj_text_append(line, text, 1);
    }
}

void afj_log(enum afj_log_level level, const char *format, ...)
{
    if (!afj_log_enabled(level))
        return;
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    struct afj_text line = {0};
    if (as_json) {
        afj_text_printf(&line, "{\"level\": \"%s\", \"pid\": %ld, \"message\": \"",
                        level_names[level], (long)getpid());
        add_escaped(&line, message);
        afj_text_add(&line, "\"}\n");
    } else {
        afj_text_printf(&line, "afdep-jit: %s%s\n", level == AFJ_LOG_WARN ? "warning: " : "",
                        message);
    }
    /* One write, so that lines of several processes do not mix. A lost line is not worth more. */
    if (!line.failed && write(STDERR_FILENO, line.data, line.length) < 0)
        line.failed = true;
    afj_text_finish(&line);
}
