/* used.h: when an object was last of use: the modification time of its file, to the hour. */
#ifndef AFJ_CACHE_USED_H
#define AFJ_CACHE_USED_H

/* Note that the object at `path` was found. Costs a system call, and a second one at most once an
 * hour. Where it cannot be noted, nothing happens. */
void afj_used_note(const char *path);

#endif
