/* log.h: lines on stderr for a person, as AFDEP_LOG asks. */
#ifndef AFJ_BASE_LOG_H
#define AFJ_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

enum afj_log_level { AFJ_LOG_OFF, AFJ_LOG_WARN, AFJ_LOG_INFO, AFJ_LOG_DEBUG };

/* Whether lines of this level are written (AFDEP_LOG=off|warn|info|debug[:json], default warn). */
bool afj_log_enabled(enum afj_log_level level);

/* Write one line, "afdep-jit: ..." or one JSON object, with a single write. */
__attribute__((format(printf, 2, 3))) void afj_log(enum afj_log_level level, const char *format,
                                                   ...);

/* Warn at most once a process from this place. */
#define AFJ_WARN_ONCE(...)                                                                         \
    do {                                                                                           \
        static atomic_flag afj_warned_ = ATOMIC_FLAG_INIT;                                         \
        if (!atomic_flag_test_and_set(&afj_warned_))                                               \
            afj_log(AFJ_LOG_WARN, __VA_ARGS__);                                                    \
    } while (0)

#endif
