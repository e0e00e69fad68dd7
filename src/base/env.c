/* env.c: every environment variable of the project, read in this one place. */
#include "base/env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"

static const struct afj_env_entry entries[AFJ_ENV_COUNT] = {
#define ENV_ENTRY(id, variable, default_value, meaning)                                            \
    {.name = variable, .fallback = default_value, .text = meaning},
    AFJ_ENV_LIST(ENV_ENTRY)
#undef ENV_ENTRY
};

/* A program with more rights than its caller does not obey the caller's environment. */
static const char *find_value(enum afj_env which)
{
    const char *value = secure_getenv(entries[which].name);
    return value && *value ? value : NULL;
}

const char *afj_env_get(enum afj_env which)
{
    const char *value = find_value(which);
    return value ? value : entries[which].fallback;
}

bool afj_env_is_set(enum afj_env which) { return find_value(which) != NULL; }

/* Decimal digits and nothing else: no sign, no blanks, which strtoull would take. */
static bool read_number(const char *text, uint64_t *number)
{
    if (*text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    *number = value;
    return errno == 0 && *end == '\0';
}

uint64_t afj_env_number(enum afj_env which, uint64_t low, uint64_t high, uint64_t fallback)
{
    static atomic_bool warned[AFJ_ENV_COUNT];
    uint64_t number;
    if (!afj_env_is_set(which))
        return fallback;
    const char *value = afj_env_get(which);
    if (read_number(value, &number) && number >= low && number <= high)
        return number;
    if (!atomic_exchange(&warned[which], true))
        afj_log(AFJ_LOG_WARN,
                "%s is \"%s\"; it must be a number from %" PRIu64 " to %" PRIu64
                " and is taken as if it were not set",
                entries[which].name, value, low, high);
    return fallback;
}

const struct afj_env_entry *afj_env_entry(enum afj_env which) { return &entries[which]; }
