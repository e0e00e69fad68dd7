/* scan.c: all objects of a store, one after another, whole or damaged. */
#include "cache/scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"

enum { HEX_DIGITS = 32 };

bool afj_scan_file(const char *path, afj_scan_callback callback, void *user)
{
    struct afj_object object;
    struct stat is;
    void *bytes = NULL;
    size_t length = 0;
    if (stat(path, &is) != 0)
        return false;
    if (afj_path_read(path, true, AFJ_OBJECT_MOST_BYTES, &bytes, &length) != 0)
        return false;
    const char *error = afj_object_read(bytes, length, &object);
    const struct afj_scanned scanned = {.path = path,
                                        .object = error ? NULL : &object,
                                        .error = error,
                                        .bytes = length,
                                        .stored = (int64_t)is.st_mtim.tv_sec};
    callback(&scanned, user);
    free(bytes);
    return true;
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* Call `each` for the entries of a folder, in order of names. A folder that is gone has none. */
static void walk(const char *folder, void (*each)(const char *path, void *user), void *user)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
        struct afj_text path = {0};
        afj_text_printf(&path, "%s/%s", folder, entries[i]->d_name);
        if (!path.failed)
            each(path.data, user);
        afj_text_finish(&path);
        free(entries[i]);
    }
    free(entries);
}

struct visitor {
    afj_scan_callback callback;
    void *user;
};

static void visit_object(const char *path, void *user)
{
    const struct visitor *visitor = user;
    (void)afj_scan_file(path, visitor->callback, visitor->user);
}

static void visit_folder(const char *path, void *user) { walk(path, visit_object, user); }

void afj_scan_all(struct afj_store *store, afj_scan_callback callback, void *user)
{
    struct visitor visitor = {callback, user};
    struct afj_text path = {0};
    if (!afj_store_root(store))
        return;
    afj_text_printf(&path, "%s/obj", afj_store_root(store));
    if (!path.failed)
        walk(path.data, visit_folder, &visitor);
    afj_text_finish(&path);
}

bool afj_scan_path_of(struct afj_store *store, const char *hex, struct afj_text *path)
{
    if (!afj_store_root(store) || strlen(hex) != HEX_DIGITS ||
        strspn(hex, "0123456789abcdef") != HEX_DIGITS)
        return false;
    afj_text_printf(path, "%s/obj/%.2s/%s.afo", afj_store_root(store), hex, hex);
    return !path->failed;
}
