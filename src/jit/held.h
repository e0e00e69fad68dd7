/* held.h: the images that this process has, and the keys that its threads make images of. */
#ifndef AFJ_JIT_HELD_H
#define AFJ_JIT_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/status.h"

/* An image. Never freed, so that whoever got it may keep it. */
struct afj_held_image {
    struct afj_digest key;
    void *image;
    size_t bytes;
    uint32_t registers, shared_bytes, spill_bytes;
    bool compiled; /* by this process; otherwise it came from the cache */
    struct afj_held_image *next;
};

/* Begin to get the image of a key. *mine: this thread makes it, and calls afj_held_end whatever
 * comes of it. Otherwise *held is the image, or NULL if another thread is making it and this one
 * was not to wait. Fails as that thread failed, if it did while this one waited for it. */
afdep_status afj_held_begin(const struct afj_digest *key, bool wait, bool *mine,
                            const struct afj_held_image **held);
/* What came of it; a failure takes this thread's sentence along. */
void afj_held_end(const struct afj_digest *key, afdep_status status);

/* The image of a key, or NULL. Does not wait for a thread that is making it. */
const struct afj_held_image *afj_held_find(const struct afj_digest *key);

/* Keep an image; takes the ownership of `image`. The newest of a key is the one that is found.
 * NULL without memory; the image is then freed. */
const struct afj_held_image *afj_held_keep(const struct afj_held_image *image);

#endif
