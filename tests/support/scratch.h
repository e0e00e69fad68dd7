/* scratch.h: a directory for one test, and small things done with files in it. */
#ifndef AFJ_TESTS_SCRATCH_H
#define AFJ_TESTS_SCRATCH_H

#include <criterion/criterion.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

static char scratch[PATH_MAX]; /* absolute, without symbolic links */

static inline void make_scratch(void)
{
    char name[PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/afdep-test-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    cr_assert_not_null(mkdtemp(name), "%s", name);
    cr_assert_not_null(realpath(name, scratch));
}

static inline void remove_scratch(void)
{
    if (scratch[0])
        afj_path_remove_tree(scratch);
}

/* Skip the test. What follows a skipped test is not run, so it cleans up first. */
static inline void skip_because(const char *reason)
{
    remove_scratch();
    cr_skip_test("%s", reason);
}

/* A path below the scratch directory; valid until the eighth call after. */
__attribute__((format(printf, 1, 2))) static inline const char *in_scratch(const char *format, ...)
{
    static char paths[8][2 * PATH_MAX];
    static unsigned next;
    char name[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static inline void write_file(const char *path, const void *bytes, size_t length)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert(file >= 0, "%s", path);
    cr_assert_eq(afj_path_write_all(file, bytes, length), 0);
    cr_assert_eq(close(file), 0);
}

static inline bool exists(const char *path)
{
    struct stat is;
    return lstat(path, &is) == 0;
}

/* Entries of a directory, or -1 if there is none. `prefix` selects; "" is all. */
static inline int count_entries(const char *path, const char *prefix)
{
    DIR *folder = opendir(path);
    int count = 0;
    if (!folder)
        return -1;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                 strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(folder);
    return count;
}

#endif
