/* dl.h: shared libraries opened at run time, and what is known of the mapped file. */
#ifndef AFJ_BASE_DL_H
#define AFJ_BASE_DL_H

#include <stddef.h>

struct afj_dl; /* an open library; stays open for the life of the process */

/* Open the first name that opens. `note` (size bytes) gets why not, all names, when NULL returns.
 */
struct afj_dl *afj_dl_open(const char *const *names, size_t count, char *note, size_t size);
/* A symbol's address or NULL. */
void *afj_dl_symbol(struct afj_dl *library, const char *name);
/* Absolute path of the file that holds `address`; "" if unknown. */
void afj_dl_path_of(const void *address, char *path, size_t size);
/* ELF build-id, hex, of the mapped file that holds `address`; "" if it has none. */
void afj_dl_build_id_of(const void *address, char *hex, size_t size);
/* ELF build-id, hex, of a file on disk; "" if it has none or cannot be read. */
void afj_dl_build_id_of_file(const char *path, char *hex, size_t size);

#endif
