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
    const char *error;               /* why; NULL if it is */
    uint64_t bytes;
    int64_t stored; /* seconds since 1970 */
};
typedef void (*afj_scan_callback)(const struct afj_scanned *scanned, void *user);

/* Look at every object, in the order of keys. Changes nothing; a file that goes meanwhile is left
 * out. */
void afj_scan_all(struct afj_store *store, afj_scan_callback callback, void *user);

/* Look at one file. False, with errno, if it cannot be read at all. */
bool afj_scan_file(const char *path, afj_scan_callback callback, void *user);

/* Append the path that the store has for a key of 32 hex digits; false if it is none. */
bool afj_scan_path_of(struct afj_store *store, const char *hex, struct afj_text *path);

#endif
