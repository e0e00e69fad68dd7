/* path.h: files and directories, with errno as the only error channel. */
#ifndef AFJ_BASE_PATH_H
#define AFJ_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Create a directory and its parents, mode 0700 for those created. 0, or -1 with errno. */
int afj_path_make_directories(const char *path);
/* Read a whole regular file, at most `limit` bytes, O_NOFOLLOW on the last component if
 * `follow` is false. *data is malloc'ed, one NUL behind it. 0, or -1 with errno (EFBIG over limit).
 */
int afj_path_read(const char *path, bool follow, size_t limit, void **data, size_t *length);
/* Write all bytes to a descriptor. 0, or -1 with errno. */
int afj_path_write_all(int descriptor, const void *data, size_t length);
/* Remove a directory tree that the library itself made. */
void afj_path_remove_tree(const char *path);

#endif
