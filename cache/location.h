/* location.h: which directory holds the cache, whether it may be used, and what lies in it. */
#ifndef AFJ_CACHE_LOCATION_H
#define AFJ_CACHE_LOCATION_H

#include <stdbool.h>

#include "base/digest.h"
#include "base/text.h"

/* Where objects go. `directory` is what the user sees; `root` is <directory>/afdep-jit.v1, with the
 * version of the layout in its name, so that no library meets a layout that it does not know. */
struct afj_location {
    char *directory, *root; /* absolute, owned; NULL: memory only */
    char origin[160];       /* what chose it, for instance "AFDEP_JIT_CACHE" */
    char note[512];         /* why it is not written to, or "" */
    bool writable;          /* a file was created there */
    bool local;             /* on a file system where locks and renames can be relied on */
    bool asked_off;         /* the user wants memory only: nothing to warn about */
};

/* Choose, create and check. Cannot fail: what cannot be used is memory only, with a note. */
void afj_location_find(struct afj_location *location);
void afj_location_finish(struct afj_location *location);

/* Make the root and what belongs in it, where missing. 0, or -1 with errno. */
int afj_location_make(const struct afj_location *location);

/* Whether the file system of `path`, or of its nearest parent that exists, is one of the local
 * kinds that are known to work. */
bool afj_location_is_local(const char *path);

/* Append <root>/obj/ab/<32 hex>.afo, and <root>/tmp/<a name that nobody else takes>. */
void afj_location_add_object(const struct afj_location *location, const struct afj_digest *key,
                             struct afj_text *path);
void afj_location_add_temporary(const char *root, struct afj_text *path);

#endif
