/* object.h: the bytes of one object file: an image, what it was made from, and sums of both. */
#ifndef AFJ_CACHE_OBJECT_H
#define AFJ_CACHE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/text.h"

enum {
    AFJ_OBJECT_HEADER_BYTES = 64,
    AFJ_OBJECT_MOST_MANIFEST = UINT16_MAX,    /* bytes, facts included */
    AFJ_OBJECT_MOST_BYTES = 256 * 1024 * 1024 /* of a whole file; an image is well under 1 MiB */
};

/* An object in memory. Pointers go into the bytes it was read from, and are borrowed. */
struct afj_object {
    struct afj_digest key, image_sum;
    const char *manifest; /* the key's manifest, then fact lines; not NUL-terminated */
    size_t manifest_length;
    const void *image; /* 64-byte aligned in the file */
    size_t image_length;
};

/* A line "name=length:value\n" of a manifest. */
struct afj_object_line {
    const char *name, *value, *next; /* next: behind the newline */
    size_t name_length, value_length;
};

/* Write an object file's bytes. `manifest` is the key's manifest followed by fact lines.
 * NULL, or why it cannot be: a static sentence. */
const char *afj_object_write(const struct afj_digest *key, const char *manifest,
                             size_t manifest_length, const void *image, size_t image_length,
                             struct afj_text *bytes);

/* Check a file's bytes and find its parts. NULL, or what is wrong: a static sentence. */
const char *afj_object_read(const void *bytes, size_t length, struct afj_object *object);

/* Whether the object was made from exactly this manifest. */
bool afj_object_is_of(const struct afj_object *object, const char *manifest,
                      size_t manifest_length);

/* Read the line at `at`; false at the end and where there is no line. */
bool afj_object_next_line(const char *at, const char *end, struct afj_object_line *line);

/* Find the line of a name among the lines of [at, end). False if there is none. */
bool afj_object_find_line(const char *at, const char *end, const char *name, size_t name_length,
                          struct afj_object_line *line);

/* Append the fact line "fact.<name>=length:value\n". */
void afj_object_add_fact(struct afj_text *manifest, const char *name, size_t name_length,
                         const char *value, size_t value_length);

/* Where the facts of a manifest begin: at its first fact line, or at its end. */
size_t afj_object_facts_at(const struct afj_object *object);

/* Find a fact. False if the object has none of that name. */
bool afj_object_find_fact(const struct afj_object *object, const char *name,
                          struct afj_object_line *line);

/* Append the facts as plain lines, "name=value\n". */
void afj_object_list_facts(const struct afj_object *object, struct afj_text *text);

#endif
