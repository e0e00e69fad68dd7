/* env.c: every environment variable of the project, read in this one place. */
#include "base/env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"

static const struct afj_env_entry entries[AFJ_ENV_COUNT] = {
#define AFJ_ENV_ENTRY(name, variable, fallback, text) {variable, fallback, text},
    AFJ_ENV_LIST(AFJ_ENV_ENTRY)
#undef AFJ_ENV_ENTRY
};

const struct afj_env_entry *afj_env_entry(enum afj_env which)
{
    return &entries[which];
}

bool afj_env_is_set(enum afj_env which)
{
    const char *value = secure_getenv(entries[which].name);
    return value && *value;
}

const char *afj_env_get(enum afj_env which)
{
    return afj_env_is_set(which) ? secure_getenv(entries[which].name) : entries[which].fallback;
}

uint64_t afj_env_number(enum afj_env which, uint64_t low, uint64_t high, uint64_t fallback)
{
    static atomic_bool warned[AFJ_ENV_COUNT];
    if (!afj_env_is_set(which))
        return fallback;
    const char *value = afj_env_get(which);
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(value, &end, 10);
    if (*value >= '0' && *value <= '9' && *end == 0 && errno == 0 && number >= low &&
        number <= high)
        return number;
    if (!atomic_exchange(&warned[which], true))
        afj_log(AFJ_LOG_WARN, "%s is \"%.64s\"; it must be %" PRIu64 " to %" PRIu64,
                entries[which].name, value, low, high);
    return fallback;
}
