/* flight.h: what the tests of single flight share: a compiler that takes its time and keeps a log,
 * a cache of their own, and processes that start together. */
#ifndef AFJ_TESTS_FLIGHT_H
#define AFJ_TESTS_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { FLIGHT_MOST_KERNELS = 8, FLIGHT_MOST_PROCESSES = 64, FLIGHT_DEADLINE_S = 60 };

/* How long a compile takes, whether it fails, and whether it leaves the log alone. Set before the
 * processes start. */
extern long flight_compile_ms;
extern bool flight_compile_fails, flight_compile_quiet;

/* The directory of this test, and the root of the cache in it. */
extern char flight_directory[], flight_root[];

/* What did not hold so far; counted by CHECK. */
extern int flight_failures;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("FAIL %s line %d: ", __FILE__, __LINE__);                                       \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            ++flight_failures;                                                                     \
        }                                                                                          \
    } while (0)

/* Make the directory and the plan, and put the slow compiler in the place of the real ones. False:
 * nothing can be tested. */
bool flight_begin(void);
/* Remove the directory and say how it went. The exit status of the program. */
int flight_end(void);
/* Start a case: a cold cache and an empty log; says its name. */
void flight_start_case(const char *name);

double flight_now_ms(void);
void flight_sleep_ms(long ms);

/* Have the first `count` kernels. 0 if all images are right, 1 if one failed, 2 if one is wrong. */
int flight_obtain(uint32_t count);

/* Fork a process that does this, after a byte from the barrier unless it is -1. Its stderr goes to
 * the log that flight_count_lines reads. */
pid_t flight_start(uint32_t count, int barrier);
/* Wait for a process: its exit status, or 128 and the signal. */
int flight_status_of(pid_t child);
/* `processes` processes, let go together, each of which must exit with `expected`. Returns the
 * milliseconds until the last has ended. */
double flight_run(int processes, uint32_t count, int expected);

/* Compiles that were begun, and the most that were under way at once. */
int flight_count_compiles(void);
int flight_most_at_once(void);
/* Wait until so many compiles have begun. */
bool flight_await_compiles(int count);
/* Lines of the processes' stderr that hold `part`. */
int flight_count_lines(const char *part);

#endif
