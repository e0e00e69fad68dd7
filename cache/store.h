/* store.h: images by key: what the rest of the library sees of the cache. Never fails the job. */
#ifndef AFJ_CACHE_STORE_H
#define AFJ_CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"

/* The store of one directory, or of nothing (memory only). Thread-safe. */
struct afj_store;

/* Facts for people beside an image; they decide nothing. Strings are borrowed for the call. */
struct afj_store_facts {
    const char *role, *ratio, *dtype, *topo, *arch; /* columns of the catalogue */
    uint32_t hidden;
    double compile_ms;
    const char *lines; /* "registers=40\nspill_bytes=0\n": kept behind the manifest in the object */
};

struct afj_store_counters {
    uint64_t hits, misses, stored, rejects, store_failures;
    uint64_t claims, lockless; /* tries to be the one that compiles; those where no lock was had */
    uint64_t waits, wait_us;   /* waits for another process, and their time together */
    uint64_t lock_timeouts;    /* waits that AFDEP_JIT_LOCK_TIMEOUT ended */
};

/* Open the store that AFDEP_JIT_CACHE names, or the default place. Never NULL but for lack of
 * memory: what cannot be used becomes memory only, with one warning. */
struct afj_store *afj_store_open(void);
void afj_store_close(struct afj_store *store); /* NULL is fine */

/* Directory in use ("" if memory only), what chose it, and why it is not writable ("" if it is). */
const char *afj_store_directory(const struct afj_store *store);
const char *afj_store_origin(const struct afj_store *store);
const char *afj_store_note(const struct afj_store *store);
bool afj_store_writable(const struct afj_store *store);
struct afj_store_counters afj_store_counters(const struct afj_store *store);

/* For the rest of this folder. Where the files lie; NULL: memory only. */
const char *afj_store_root(const struct afj_store *store);
/* Make the folders again that somebody removed. 0, or -1 with errno. */
int afj_store_make_root(const struct afj_store *store);
/* Add to the counters of claims, waits and locks; those of the first line stay. */
void afj_store_count_claim(struct afj_store *store, const struct afj_store_counters *more);

/* Find an image by key. Whole file checked: size, magic, key, sums, and the manifest byte for byte;
 * whatever differs is a miss, and damage is moved to bad/ and warned about once.
 * On true *image is malloc'ed (16-byte aligned start), *facts a malloc'ed NUL-terminated string. */
bool afj_store_get(struct afj_store *store, const struct afj_digest *key, const char *manifest,
                   size_t manifest_length, void **image, size_t *image_length, char **facts);

/* Publish an image: temporary file, fsync, rename; then the catalogue. Any trouble is counted and
 * warned about once; the caller goes on with the bytes it has. True: others find the object now. */
bool afj_store_put(struct afj_store *store, const struct afj_digest *key, const char *manifest,
                   size_t manifest_length, const void *image, size_t image_length,
                   const struct afj_store_facts *facts);

/* An object that the device refused: set it aside so that it is not offered again. */
void afj_store_reject(struct afj_store *store, const struct afj_digest *key);

#endif
