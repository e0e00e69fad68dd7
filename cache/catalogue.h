/* catalogue.h: index.db, a list of the objects for people. Lookups never read it. */
#ifndef AFJ_CACHE_CATALOGUE_H
#define AFJ_CACHE_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/object.h"

/* The catalogue of one root directory. Thread-safe. After a fork only the parent uses it. */
struct afj_catalogue;

/* Nothing is opened yet. NULL without memory. */
struct afj_catalogue *afj_catalogue_create(const char *root);
void afj_catalogue_destroy(struct afj_catalogue *catalogue); /* NULL is fine */

/* Note an object that was published. A missing catalogue is made from obj/, a damaged one set aside
 * and made anew. False: it was locked, full or unusable, and the row is missing. */
bool afj_catalogue_record(struct afj_catalogue *catalogue, const struct afj_object *object);

#endif
