/* scan.c: all objects of a store, one after another, whole or damaged. */
#include "cache/scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"

enum { HEX_DIGITS = 32 };

/* Whether a path ends as that of a key does: ab/ab12...(32 digits).afo. */
static bool is_name_of(const char *path, const struct afj_digest *key)
{
    char hex[33], name[48];
    afj_digest_hex(key, hex);
    const int length = snprintf(name, sizeof name, "/%.2s/%s.afo", hex, hex);
    const size_t all = strlen(path);
    return length > 0 && all >= (size_t)length && strcmp(path + all - (size_t)length, name) == 0;
}

/* Look at a file; `placed`: as a lookup would, which follows no link and wants the key's name. */
static bool look_at(const char *path, bool placed, afj_scan_callback callback, void *user)
{
    struct afj_object object;
    struct stat is;
    void *bytes = NULL;
    size_t length = 0;
    if ((placed ? lstat(path, &is) : stat(path, &is)) != 0)
        return false;
    if (afj_path_read(path, !placed, AFJ_OBJECT_MOST_BYTES, &bytes, &length) != 0)
        return false;
    const char *error = afj_object_read(bytes, length, &object);
    struct afj_scanned scanned = {.path = path,
                                  .object = error ? NULL : &object,
                                  .error = error,
                                  .bytes = length,
                                  .used = (int64_t)is.st_mtim.tv_sec};
    if (!error && placed && !is_name_of(path, &object.key))
        scanned.error = "its name is not that of its key";
    callback(&scanned, user);
    free(bytes);
    return true;
}

bool afj_scan_file(const char *path, afj_scan_callback callback, void *user)
{
    return look_at(path, false, callback, user);
}

/* What cannot be read is told like damage, unless it went away. */
static bool tell_unreadable(const char *path, afj_scan_callback callback, void *user)
{
    const int error = errno;
    if (error == ENOENT || error == ESTALE)
        return false;
    const bool foreign = error == ELOOP || error == EISDIR || error == EINVAL || error == EFBIG;
    struct stat is;
    const bool known = lstat(path, &is) == 0;
    const struct afj_scanned scanned = {
        .path = path,
        .error = foreign ? "it is not a file that this library makes" : strerror(error),
        .bytes = known && S_ISREG(is.st_mode) ? (uint64_t)is.st_size : 0,
        .used = known ? (int64_t)is.st_mtim.tv_sec : 0};
    callback(&scanned, user);
    return true;
}

struct visitor {
    afj_scan_callback callback;
    void *user;
};

static void visit_object(const char *path, const struct visitor *visitor)
{
    if (!look_at(path, true, visitor->callback, visitor->user))
        (void)tell_unreadable(path, visitor->callback, visitor->user);
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* Call `each` for the entries of a folder, in order of names. False with errno. */
static bool walk(const char *folder, void (*each)(const char *path, const struct visitor *visitor),
                 const struct visitor *visitor)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_visible, alphasort);
    bool good = count >= 0;
    for (int i = 0; i < count; i++) {
        struct afj_text path = {0};
        afj_text_printf(&path, "%s/%s", folder, entries[i]->d_name);
        if (!path.failed)
            each(path.data, visitor);
        else
            good = false;
        afj_text_finish(&path);
        free(entries[i]);
    }
    if (count >= 0 && !good)
        errno = ENOMEM;
    free(entries);
    return good;
}

static void visit_folder(const char *path, const struct visitor *visitor)
{
    if (walk(path, visit_object, visitor))
        return;
    if (errno == ENOTDIR)
        visit_object(path, visitor);
    else
        (void)tell_unreadable(path, visitor->callback, visitor->user);
}

bool afj_scan_all(struct afj_store *store, afj_scan_callback callback, void *user)
{
    const struct visitor visitor = {callback, user};
    struct afj_text path = {0};
    if (!afj_store_root(store))
        return true;
    afj_text_printf(&path, "%s/obj", afj_store_root(store));
    errno = ENOMEM;
    const bool good = !path.failed && (walk(path.data, visit_folder, &visitor) || errno == ENOENT);
    const int error = errno;
    afj_text_finish(&path);
    errno = error;
    return good;
}

/* Append the path that the store has for a key; false if there can be none. */
static bool add_path(const struct afj_store *store, const char *hex, struct afj_text *path)
{
    if (!afj_store_root(store) || strlen(hex) != HEX_DIGITS ||
        strspn(hex, "0123456789abcdef") != HEX_DIGITS)
        return false;
    afj_text_printf(path, "%s/obj/%.2s/%s.afo", afj_store_root(store), hex, hex);
    return !path->failed;
}

bool afj_scan_key(struct afj_store *store, const char *hex, afj_scan_callback callback, void *user)
{
    struct afj_text path = {0};
    errno = ENOENT;
    if (!add_path(store, hex, &path))
        return false;
    bool found = look_at(path.data, true, callback, user);
    if (!found)
        found = tell_unreadable(path.data, callback, user);
    const int error = errno;
    afj_text_finish(&path);
    errno = error;
    return found;
}
