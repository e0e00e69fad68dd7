/* entries.h: what list, inspect and explain share: the strings and numbers that an object holds. */
#ifndef AFJ_API_ENTRIES_H
#define AFJ_API_ENTRIES_H

#include "cache/scan.h"
#include "jit/recipe.h"

/* This process's store, or AFDEP_ERROR_MEMORY. */
afdep_status afj_entries_store(struct afj_store **store);

/* The value of a line of an object's manifest; false if it has none. */
bool afj_entries_find(const struct afj_object *object, const char *name,
                      struct afj_object_line *line);

/* Append bytes as a caller may print them: control bytes become "?". */
void afj_entries_add(struct afj_text *text, const char *bytes, size_t length);

/* Whether a lookup would take the image of a scanned object: NULL, or what is wrong, which holds
 * until the thread's next failure. */
const char *afj_entries_fault(const struct afj_scanned *scanned);

/* Look at the object that `what` names: a key in the store, else a file. AFDEP_ERROR_IO. */
afdep_status afj_entries_look(struct afj_store *store, const char *what, afj_scan_callback callback,
                              void *user);

#endif
