/* path.c: files and directories, with errno as the only error channel. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Make one directory; fine if it is there already. */
static int make_directory(const char *path)
{
    struct stat status;
    if (mkdir(path, 0700) == 0)
        return 0;
    const int error = errno;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    errno = error == EEXIST ? ENOTDIR : error;
    return -1;
}

int afj_path_make_directories(const char *path)
{
    char part[PATH_MAX];
    const size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) {
        errno = length ? ENAMETOOLONG : ENOENT;
        return -1;
    }
    memcpy(part, path, length + 1);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); ++slash) {
        *slash = 0;
        if (make_directory(part) != 0)
            return -1;
        *slash = '/';
    }
    return make_directory(part);
}

/* Read exactly `length` bytes, or fewer if the file shrank. */
static ssize_t read_whole(int descriptor, char *data, size_t length)
{
    size_t done = 0;
    while (done < length) {
        const ssize_t n = read(descriptor, data + done, length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int afj_path_read(const char *path, bool follow, size_t limit, void **data, size_t *length)
{
    struct stat status;
    char *bytes = NULL;
    int error = 0;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));
    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &status) != 0) {
        error = errno;
    } else if (!S_ISREG(status.st_mode)) {
        error = EINVAL;
    } else if ((size_t)status.st_size > limit) {
        error = EFBIG;
    } else if (!(bytes = malloc((size_t)status.st_size + 1))) {
        error = ENOMEM;
    } else {
        const ssize_t n = read_whole(descriptor, bytes, (size_t)status.st_size);
        if (n < 0) {
            error = errno;
        } else {
            bytes[n] = 0;
            *data = bytes;
            *length = (size_t)n;
        }
    }
    close(descriptor);
    if (error) {
        free(bytes);
        errno = error;
        return -1;
    }
    return 0;
}

int afj_path_write_all(int descriptor, const void *data, size_t length)
{
    const char *bytes = data;
    while (length > 0) {
        const ssize_t n = write(descriptor, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    remove(path);
    return 0;
}

void afj_path_remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
