/* path.c: files and directories, with errno as the only error channel. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_directory(const char *path)
{
    struct stat is;
    if (stat(path, &is) != 0)
        return false;
    if (S_ISDIR(is.st_mode))
        return true;
    errno = ENOTDIR;
    return false;
}

static int make_directory(const char *path)
{
    if (mkdir(path, 0700) == 0)
        return 0;
    const int error = errno;
    /* A parent on a read-only file system or in a foreign directory need only be there. */
    if (is_directory(path))
        return 0;
    if (error != EEXIST)
        errno = error;
    return -1;
}

int afj_path_make_directories(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return -1;
    int result = 0;
    for (char *at = copy + 1; *copy && result == 0; ++at) {
        if (*at != '/' && *at != '\0')
            continue;
        const char kept = *at;
        *at = '\0';
        result = make_directory(copy);
        *at = kept;
        if (kept == '\0')
            break;
    }
    if (!*copy) {
        errno = ENOENT;
        result = -1;
    }
    const int error = errno;
    free(copy);
    errno = error;
    return result;
}

/* Read until the end, which is where it is and not where fstat said: /proc says 0. */
static int read_all(int descriptor, size_t expected, size_t limit, void **data, size_t *length)
{
    size_t capacity = expected + 2, at = 0; /* one byte to see the end, one for the NUL */
    char *bytes = malloc(capacity);
    while (bytes) {
        if (at + 1 == capacity) {
            capacity *= 2;
            char *grown = realloc(bytes, capacity);
            if (!grown)
                break;
            bytes = grown;
        }
        const ssize_t got = read(descriptor, bytes + at, capacity - 1 - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        at += (size_t)got;
        if (at > limit) {
            errno = EFBIG;
            break;
        }
        if (got == 0) {
            bytes[at] = '\0';
            *data = bytes;
            *length = at;
            return 0;
        }
    }
    const int error = errno;
    free(bytes);
    errno = error;
    return -1;
}

int afj_path_read(const char *path, bool follow, size_t limit, void **data, size_t *length)
{
    /* O_NONBLOCK: not to hang on a FIFO. O_NOCTTY: not to take a terminal. */
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW);
    const int descriptor = open(path, flags);
    struct stat is;
    int result = -1;
    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &is) != 0)
        goto close_descriptor;
    if (!S_ISREG(is.st_mode)) {
        errno = S_ISDIR(is.st_mode) ? EISDIR : EINVAL;
        goto close_descriptor;
    }
    if ((uintmax_t)is.st_size > limit) {
        errno = EFBIG;
        goto close_descriptor;
    }
    result = read_all(descriptor, (size_t)is.st_size, limit, data, length);
close_descriptor:;
    const int error = errno;
    close(descriptor);
    errno = error;
    return result;
}

int afj_path_write_all(int descriptor, const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        const ssize_t written = write(descriptor, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            if (written == 0)
                errno = EIO;
            return -1;
        }
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *is, int type, struct FTW *position)
{
    (void)is, (void)type, (void)position;
    (void)remove(path); /* what cannot be removed stays; the rest goes */
    return 0;
}

void afj_path_remove_tree(const char *path)
{
    enum { MOST_DESCRIPTORS = 8 };
    const int error = errno;
    /* FTW_PHYS: a link is removed and not followed. */
    nftw(path, remove_one, MOST_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    errno = error;
}
