/* scan.h: all objects of a store, one after another, whole or damaged. */
#ifndef AFJ_CACHE_SCAN_H
#define AFJ_CACHE_SCAN_H

#include <stdint.h>

#include "cache/object.h"
#include "cache/store.h"

/* One file under obj/, or one that was named. Everything is borrowed for the call. */
struct afj_scanned {
    const char *path;
    const struct afj_object *object; /* NULL: it is no whole object */
    const char *error;               /* why a lookup would not take it; NULL if nothing is wrong */
    uint64_t bytes;
    int64_t used; /* stored or last found, seconds since 1970 */
};
typedef void (*afj_scan_callback)(const struct afj_scanned *scanned, void *user);

/* Look at everything under obj/, in the order of keys. Changes nothing; what goes meanwhile is left
 * out. An object under another name than its key's, a link or a stray file has an error. False,
 * with errno, if obj/ is there and cannot be read. */
bool afj_scan_all(struct afj_store *store, afj_scan_callback callback, void *user);

/* Look at one file, under any name. False, with errno, if it cannot be read at all. */
bool afj_scan_file(const char *path, afj_scan_callback callback, void *user);

/* Look at the object of a key of 32 hex digits as a lookup would. False, with errno, if the store
 * has none; ENOENT is the usual one. */
bool afj_scan_key(struct afj_store *store, const char *hex, afj_scan_callback callback, void *user);

#endif
