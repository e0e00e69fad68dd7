/* store.c: images by key, as object files that appear whole or not at all. */
#include "cache/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "cache/catalogue.h"
#include "cache/location.h"
#include "cache/object.h"
#include "cache/size_signal.h"
#include "cache/used.h"

enum { MOST_QUARANTINED = 64 }; /* files in bad/; beyond, damage is deleted */

/* A key that must not be offered again although its object could not be set aside. */
struct refused_key {
    struct refused_key *next;
    struct afj_digest key;
};

struct afj_store {
    struct afj_location place;
    struct afj_catalogue *catalogue; /* NULL: none on this file system */
    atomic_bool writable;            /* true until the first error that will come again */
    _Atomic(const char *) note;
    atomic_flag note_written;
    char late_note[512];                   /* written once, before `note` points to it */
    _Atomic(struct refused_key *) refused; /* only ever grows */
    atomic_uint_fast64_t hits, misses, stored, rejects, store_failures;
    atomic_uint_fast64_t claims, lockless, waits, wait_us, lock_timeouts;
};

/* One warning a process, whatever goes wrong first. */
static void warn_of_trouble(const char *sentence)
{
    AFJ_WARN_ONCE("the kernel cache: %s; kernels are compiled where they are missing", sentence);
}

struct afj_store *afj_store_open(void)
{
    struct afj_size_signal guard;
    struct afj_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    atomic_flag_clear(&store->note_written);
    afj_size_signal_block(&guard);
    afj_location_find(&store->place);
    afj_size_signal_restore(&guard);
    const struct afj_location *place = &store->place;
    atomic_store(&store->writable, place->writable);
    atomic_store(&store->note, place->note);
    if (place->writable && place->local)
        store->catalogue = afj_catalogue_create(place->root);
    if (place->directory)
        afj_log(AFJ_LOG_INFO, "the kernel cache is %s (%s)", place->directory, place->origin);
    if (place->note[0] && !place->asked_off)
        warn_of_trouble(place->note);
    return store;
}

void afj_store_close(struct afj_store *store)
{
    if (!store)
        return;
    afj_catalogue_destroy(store->catalogue);
    afj_location_finish(&store->place);
    struct refused_key *refused = atomic_load(&store->refused);
    while (refused) {
        struct refused_key *next = refused->next;
        free(refused);
        refused = next;
    }
    free(store);
}

const char *afj_store_directory(const struct afj_store *store)
{
    return store->place.directory ? store->place.directory : "";
}

const char *afj_store_origin(const struct afj_store *store) { return store->place.origin; }

const char *afj_store_note(const struct afj_store *store)
{
    return atomic_load_explicit(&store->note, memory_order_acquire);
}

bool afj_store_writable(const struct afj_store *store) { return atomic_load(&store->writable); }

struct afj_store_counters afj_store_counters(const struct afj_store *store)
{
    return (struct afj_store_counters){
        .hits = atomic_load(&store->hits),
        .misses = atomic_load(&store->misses),
        .stored = atomic_load(&store->stored),
        .rejects = atomic_load(&store->rejects),
        .store_failures = atomic_load(&store->store_failures),
        .claims = atomic_load(&store->claims),
        .lockless = atomic_load(&store->lockless),
        .waits = atomic_load(&store->waits),
        .wait_us = atomic_load(&store->wait_us),
        .lock_timeouts = atomic_load(&store->lock_timeouts),
    };
}

const char *afj_store_root(const struct afj_store *store) { return store->place.root; }

int afj_store_make_root(const struct afj_store *store)
{
    struct afj_size_signal guard;
    afj_size_signal_block(&guard);
    const int result = afj_location_make(&store->place);
    afj_size_signal_restore(&guard);
    return result;
}

void afj_store_count_claim(struct afj_store *store, const struct afj_store_counters *more)
{
    atomic_fetch_add(&store->claims, more->claims);
    atomic_fetch_add(&store->lockless, more->lockless);
    atomic_fetch_add(&store->waits, more->waits);
    atomic_fetch_add(&store->wait_us, more->wait_us);
    atomic_fetch_add(&store->lock_timeouts, more->lock_timeouts);
}

/* Count a store that failed. Errors that would come again end writing for this process. */
static void note_failure(struct afj_store *store, const char *what, int error)
{
    char sentence[512];
    const bool lasting =
        error == EROFS || error == EACCES || error == EPERM || error == EDQUOT || error == ENOSPC;
    snprintf(sentence, sizeof sentence, "%s in %.300s failed: %s", what, store->place.root,
             strerror(error));
    atomic_fetch_add(&store->store_failures, 1);
    warn_of_trouble(sentence);
    if (lasting && !atomic_flag_test_and_set(&store->note_written)) {
        memcpy(store->late_note, sentence, sizeof sentence);
        /* Release: pairs with the acquire in afj_store_note, which then reads the text. */
        atomic_store_explicit(&store->note, store->late_note, memory_order_release);
        atomic_store(&store->writable, false);
    }
}

static bool is_refused(struct afj_store *store, const struct afj_digest *key)
{
    const struct refused_key *refused = atomic_load(&store->refused);
    while (refused && !afj_digest_equal(&refused->key, key))
        refused = refused->next;
    return refused != NULL;
}

static void refuse_key(struct afj_store *store, const struct afj_digest *key)
{
    struct refused_key *refused = malloc(sizeof *refused);
    if (!refused)
        return;
    refused->key = *key;
    refused->next = atomic_load(&store->refused);
    while (!atomic_compare_exchange_weak(&store->refused, &refused->next, refused))
        ;
}

static uint32_t count_quarantined(const char *path)
{
    DIR *folder = opendir(path);
    uint32_t count = 0;
    if (!folder)
        return 0;
    while (count < MOST_QUARANTINED + 2 && readdir(folder))
        ++count;
    closedir(folder);
    return count > 2 ? count - 2 : 0; /* without . and .. */
}

/* Move what lies under a key to bad/, or delete it where bad/ is full. 0, or -1 with errno. */
static int set_aside(const struct afj_store *store, const struct afj_digest *key, const char *path)
{
    struct afj_text folder = {0}, aside = {0};
    char hex[33];
    int result = -1;
    afj_digest_hex(key, hex);
    afj_text_printf(&folder, "%s/bad", store->place.root);
    afj_text_printf(&aside, "%s/%s.afo", folder.data ? folder.data : "", hex);
    errno = ENOMEM;
    if (!folder.failed && !aside.failed) {
        if (count_quarantined(folder.data) < MOST_QUARANTINED)
            result = rename(path, aside.data);
        if (result != 0)
            result = unlink(path);
    }
    const int error = errno;
    afj_text_finish(&folder);
    afj_text_finish(&aside);
    errno = error;
    return result;
}

/* Whether the file of that name is still the one that was looked at. */
static bool is_same_file(const char *path, const struct stat *before)
{
    struct stat now;
    return lstat(path, &now) == 0 && now.st_dev == before->st_dev && now.st_ino == before->st_ino &&
           now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

static void quarantine(struct afj_store *store, const struct afj_digest *key, const char *path,
                       const struct stat *before, const char *reason)
{
    atomic_fetch_add(&store->rejects, 1);
    AFJ_WARN_ONCE("the kernel cache: %s is damaged and set aside: %s", path, reason);
    /* What another process has put there meanwhile is not the file that was read. */
    if (is_same_file(path, before))
        (void)set_aside(store, key, path);
}

/* An object that is there and cannot be read costs a compile each time, and is told once. */
static void warn_of_unreadable(const char *path, int error)
{
    char sentence[512];
    if (error == ENOENT)
        return;
    snprintf(sentence, sizeof sentence, "%.384s cannot be read: %s", path, strerror(error));
    warn_of_trouble(sentence);
}

/* Read the object under a key. True: whole, of this key, *bytes owned by the caller. Damage is set
 * aside if `clean`. */
static bool read_object(struct afj_store *store, const struct afj_digest *key, const char *path,
                        bool clean, void **bytes, struct afj_object *object)
{
    struct stat before;
    size_t length;
    const char *reason = NULL;
    *bytes = NULL;
    if (lstat(path, &before) != 0) {
        warn_of_unreadable(path, clean ? errno : ENOENT);
        return false;
    }
    if (afj_path_read(path, false, AFJ_OBJECT_MOST_BYTES, bytes, &length) == 0) {
        reason = afj_object_read(*bytes, length, object);
        if (!reason && !afj_digest_equal(&object->key, key))
            reason = "it belongs to another key";
        if (!reason)
            return true;
    } else if (errno == ELOOP || errno == EISDIR || errno == EINVAL || errno == EFBIG) {
        reason = "it is not a file that this library makes";
    } else {
        warn_of_unreadable(path, clean ? errno : ENOENT);
    }
    /* Every other error of reading, ESTALE and EIO among them, says nothing about the object. */
    free(*bytes);
    *bytes = NULL;
    if (reason && clean)
        quarantine(store, key, path, &before, reason);
    return false;
}

static bool find_object(struct afj_store *store, const struct afj_digest *key, const char *manifest,
                        size_t manifest_length, void **image, size_t *image_length, char **facts)
{
    struct afj_text path = {0}, list = {0};
    struct afj_object object;
    void *bytes = NULL;
    bool found = false;
    afj_location_add_object(&store->place, key, &path);
    if (!path.failed && read_object(store, key, path.data, true, &bytes, &object)) {
        found = afj_object_is_of(&object, manifest, manifest_length);
        if (!found)
            afj_log(AFJ_LOG_INFO, "%s was made from another manifest", path.data);
    }
    if (found) {
        afj_used_note(path.data);
        afj_object_list_facts(&object, &list);
    }
    afj_text_finish(&path);
    if (!found || list.failed) {
        afj_text_finish(&list);
        free(bytes);
        return false;
    }
    *facts = list.data;
    *image_length = object.image_length;
    /* The image moves to the start of the block that it was read into, which saves a second one. */
    memmove(bytes, object.image, object.image_length);
    *image = bytes;
    return true;
}

bool afj_store_get(struct afj_store *store, const struct afj_digest *key, const char *manifest,
                   size_t manifest_length, void **image, size_t *image_length, char **facts)
{
    const bool found =
        store->place.root && !is_refused(store, key) &&
        find_object(store, key, manifest, manifest_length, image, image_length, facts);
    atomic_fetch_add(found ? &store->hits : &store->misses, 1);
    return found;
}

static void add_fact(struct afj_text *manifest, const char *name, const char *value)
{
    if (value)
        afj_object_add_fact(manifest, name, strlen(name), value, strlen(value));
}

/* The key's manifest and, behind it, what people want to know. Facts are no part of the key. */
static void write_manifest(struct afj_text *text, const char *manifest, size_t length,
                           const struct afj_store_facts *facts)
{
    char number[32];
    afj_text_append(text, manifest, length);
    if (!facts)
        return;
    const char *at = facts->lines ? facts->lines : "";
    while (*at) {
        const size_t line = strcspn(at, "\n");
        const char *equals = memchr(at, '=', line);
        if (equals)
            afj_object_add_fact(text, at, (size_t)(equals - at), equals + 1,
                                line - (size_t)(equals + 1 - at));
        at += line + (at[line] == '\n');
    }
    add_fact(text, "role", facts->role);
    add_fact(text, "ratio", facts->ratio);
    add_fact(text, "dtype", facts->dtype);
    add_fact(text, "topo", facts->topo);
    add_fact(text, "arch", facts->arch);
    snprintf(number, sizeof number, "%" PRIu32, facts->hidden);
    add_fact(text, "hidden", number);
    /* Whole microseconds: a decimal point would be the locale's. */
    if (facts->compile_ms >= 0 && facts->compile_ms < 1e12) {
        snprintf(number, sizeof number, "%" PRIu64, (uint64_t)(facts->compile_ms * 1000.0));
        add_fact(text, "compile_us", number);
    }
}

/* Make a rename last. What fails here costs a compile after a power failure, nothing else. */
static void sync_folder_of(const char *path)
{
    char *folder = strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) {
        *slash = '\0';
        const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (descriptor >= 0) {
            (void)fsync(descriptor);
            close(descriptor);
        }
    }
    free(folder);
}

static int make_folder_of(const char *path)
{
    char *folder = strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash)
        *slash = '\0';
    const int result = folder ? afj_path_make_directories(folder) : -1;
    const int error = errno;
    free(folder);
    errno = error;
    return result;
}

static int rename_into_place(const struct afj_store *store, const struct afj_digest *key,
                             const char *temporary, const char *path)
{
    if (rename(temporary, path) == 0)
        return 0;
    if (errno == EISDIR && set_aside(store, key, path) == 0)
        return rename(temporary, path);
    if (errno == ENOENT && make_folder_of(path) == 0)
        return rename(temporary, path);
    return -1;
}

/* Write, sync, rename: a reader sees all of an object or nothing. 0, or -1 with errno and nothing
 * left behind. */
static int publish_bytes(const struct afj_store *store, const struct afj_digest *key,
                         const char *temporary, const char *path, const struct afj_text *bytes)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int file = open(temporary, flags, 0600);
    if (file < 0 && errno == ENOENT && afj_location_make(&store->place) == 0)
        file = open(temporary, flags, 0600); /* somebody removed the whole tree */
    if (file < 0)
        return -1;
    int result = afj_path_write_all(file, bytes->data, bytes->length);
    if (result == 0)
        result = fsync(file);
    int error = errno;
    if (close(file) != 0 && result == 0) {
        result = -1;
        error = errno;
    }
    errno = error;
    if (result == 0)
        result = rename_into_place(store, key, temporary, path);
    if (result == 0) {
        sync_folder_of(path);
        return 0;
    }
    error = errno;
    (void)unlink(temporary);
    errno = error;
    return -1;
}

/* Whether the key's object is there already, whole and made from the same manifest. */
static bool is_published(struct afj_store *store, const struct afj_digest *key, const char *path,
                         const char *manifest, size_t manifest_length)
{
    struct afj_object object;
    void *bytes = NULL;
    const bool same = read_object(store, key, path, false, &bytes, &object) &&
                      afj_object_is_of(&object, manifest, manifest_length);
    free(bytes);
    return same;
}

static bool publish_object(struct afj_store *store, const struct afj_digest *key,
                           const struct afj_text *bytes)
{
    struct afj_text path = {0}, temporary = {0};
    struct afj_object object;
    afj_location_add_object(&store->place, key, &path);
    afj_location_add_temporary(store->place.root, &temporary);
    const bool named = !path.failed && !temporary.failed;
    const bool published =
        named && publish_bytes(store, key, temporary.data, path.data, bytes) == 0;
    if (!published) {
        note_failure(store, "storing a kernel", named ? errno : ENOMEM);
    } else {
        atomic_fetch_add(&store->stored, 1);
        /* The catalogue is for people: a row that is missing is no failure. */
        if (store->catalogue && !afj_object_read(bytes->data, bytes->length, &object))
            (void)afj_catalogue_record(store->catalogue, &object);
    }
    afj_text_finish(&path);
    afj_text_finish(&temporary);
    return published;
}

bool afj_store_put(struct afj_store *store, const struct afj_digest *key, const char *manifest,
                   size_t manifest_length, const void *image, size_t image_length,
                   const struct afj_store_facts *facts)
{
    struct afj_text path = {0}, whole = {0}, bytes = {0};
    struct afj_size_signal guard;
    if (store->place.asked_off)
        return false;
    if (!atomic_load(&store->writable)) {
        atomic_fetch_add(&store->store_failures, 1);
        return false;
    }
    afj_size_signal_block(&guard);
    afj_location_add_object(&store->place, key, &path);
    bool published = !path.failed && is_published(store, key, path.data, manifest, manifest_length);
    if (!published) {
        write_manifest(&whole, manifest, manifest_length, facts);
        const char *reason = whole.failed ? "there is no memory for it"
                                          : afj_object_write(key, whole.data, whole.length, image,
                                                             image_length, &bytes);
        if (reason) {
            atomic_fetch_add(&store->store_failures, 1);
            warn_of_trouble(reason);
        } else {
            published = publish_object(store, key, &bytes);
        }
    }
    afj_size_signal_restore(&guard);
    afj_text_finish(&path);
    afj_text_finish(&whole);
    afj_text_finish(&bytes);
    return published;
}

void afj_store_reject(struct afj_store *store, const struct afj_digest *key)
{
    struct afj_text path = {0};
    struct stat is;
    if (!store->place.root)
        return;
    afj_location_add_object(&store->place, key, &path);
    if (!path.failed && lstat(path.data, &is) == 0) {
        atomic_fetch_add(&store->rejects, 1);
        /* In a directory that is only read it stays where it is; this process takes it no more. */
        if (set_aside(store, key, path.data) != 0 && errno != ENOENT)
            refuse_key(store, key);
    }
    afj_text_finish(&path);
}
