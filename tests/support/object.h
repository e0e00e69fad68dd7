/* object.h: a store in the scratch directory, and one kind of object that is put there and looked
 * up. */
#ifndef AFJ_TESTS_OBJECT_H
#define AFJ_TESTS_OBJECT_H

#include "support/scratch.h"

#include "cache/store.h"

#define ROOT "cache/afdep-jit.v1"

static struct afj_store *store;

static const char manifest[] = "schema=1:1\nspec=3:a=1\nsource=1:s\narch=6:sm_90a\n";
static const char image[] = "the image's bytes";
static const struct afj_store_facts facts = {.role = "source",
                                             .ratio = "2A2F",
                                             .dtype = "bf16",
                                             .topo = "domains=1",
                                             .arch = "sm_90a",
                                             .hidden = 4096,
                                             .compile_ms = 12.5,
                                             .lines = "registers=40\nspill_bytes=0\n"};

static inline void begin_store(void)
{
    make_scratch();
    umask(022);
    setenv("AFDEP_LOG", "off", 1);
    setenv("AFDEP_JIT_CACHE", in_scratch("cache"), 1);
    store = afj_store_open();
    cr_assert_not_null(store);
}

static inline void end_store(void)
{
    afj_store_close(store);
    remove_scratch();
}

/* Put an image under the manifest above. Whether others find it now. */
static inline bool put_object(struct afj_store *into, const struct afj_digest *key,
                              const void *bytes, size_t length)
{
    return afj_store_put(into, key, manifest, sizeof manifest - 1, bytes, length, &facts);
}

/* Look an image up; what comes must be right. Whether it came. */
static inline bool get_object(struct afj_store *from, const struct afj_digest *key,
                              const void *bytes, size_t length)
{
    void *found = NULL;
    char *lines = NULL;
    size_t found_length = 0;
    if (!afj_store_get(from, key, manifest, sizeof manifest - 1, &found, &found_length, &lines)) {
        cr_expect_null(found);
        return false;
    }
    cr_expect_eq(found_length, length);
    cr_expect_eq(memcmp(found, bytes, length), 0);
    cr_expect_eq((uintptr_t)found % 16, 0);
    cr_expect_eq(strncmp(lines, facts.lines, strlen(facts.lines)), 0, "%s", lines);
    free(found);
    free(lines);
    return true;
}

#endif
