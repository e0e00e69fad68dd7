/* used.c: when an object was last of use: the modification time of its file, to the hour. */
#include "cache/used.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

enum { SECONDS_BETWEEN = 3600 };

void afj_used_note(const char *path)
{
    const int error = errno;
    struct stat is;
    /* A time ahead of ours is another machine's, and left alone. */
    if (lstat(path, &is) == 0 && time(NULL) - is.st_mtim.tv_sec >= SECONDS_BETWEEN)
        (void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
    errno = error;
}
