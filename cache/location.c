/* location.c: which directory holds the cache, whether it may be used, and what lies in it. */
#include "cache/location.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/path.h"

static const char root_name[] = "afdep-jit.v1";

static const char tag_text[] =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory holds compiled kernels of libafdep-jit. Backups need not keep it.\n";

static const char readme_text[] =
    "Kernels compiled by libafdep-jit. The directory may be deleted at any time, also while\n"
    "programs run: what is missing is compiled again. obj/ holds the kernels, one file each;\n"
    "tmp/ files on their way; bad/ files that were damaged; index.db lists obj/ for people.\n";

/* Numbers of statfs(2). A name that is not here, NFS and Lustre above all, has other rules. */
bool afj_location_is_local(const char *path)
{
    static const uint32_t kinds[] = {
        0x0000EF53, /* ext2, ext3, ext4 */
        0x58465342, /* xfs */
        0x9123683E, /* btrfs */
        0x01021994, /* tmpfs */
        0xF2F52010, /* f2fs */
        0x2FC12FC1, /* zfs */
        0x794C7630, /* overlay */
    };
    struct statfs is;
    char *at = strdup(path);
    bool known = false;
    while (at && *at) {
        if (statfs(at, &is) == 0) {
            for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
                known = known || (uint32_t)is.f_type == kinds[i];
            break;
        }
        char *slash = strrchr(at, '/');
        if ((errno != ENOENT && errno != ENOTDIR) || !slash)
            break;
        slash[slash == at && slash[1] != '\0'] = '\0'; /* "/name" goes on with "/" */
    }
    free(at);
    return known;
}

static char *join_path(const char *directory, const char *name)
{
    struct afj_text text = {0};
    const size_t length = strlen(directory);
    afj_text_add(&text, directory);
    if (length == 0 || directory[length - 1] != '/')
        afj_text_add(&text, "/");
    afj_text_add(&text, name);
    if (text.failed)
        afj_text_finish(&text);
    return text.data;
}

/* Same-user trust: who can write here can run code in this process and on its GPU.
 * `link`: a symbolic link is not accepted. */
static bool check_trust(struct afj_location *location, const char *path, bool link)
{
    struct stat is;
    const int failed = link ? lstat(path, &is) : stat(path, &is);
    if (failed)
        snprintf(location->note, sizeof location->note, "%.300s: %s", path, strerror(errno));
    else if (!S_ISDIR(is.st_mode))
        snprintf(location->note, sizeof location->note, "%.300s is not a directory", path);
    else if (is.st_uid != geteuid())
        snprintf(location->note, sizeof location->note,
                 "%.300s belongs to user %lu and this process is user %lu; the cache must be a "
                 "directory of its user",
                 path, (unsigned long)is.st_uid, (unsigned long)geteuid());
    else if (is.st_mode & (S_IWGRP | S_IWOTH))
        snprintf(location->note, sizeof location->note,
                 "%.300s has mode %04o; others may write there: chmod go-w would do", path,
                 (unsigned)(is.st_mode & 07777));
    else
        return true;
    return false;
}

static int make_file(const char *directory, const char *name, const char *text)
{
    char *path = join_path(directory, name);
    if (!path)
        return -1;
    int result = 0;
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) {
        result = afj_path_write_all(file, text, strlen(text));
        if (close(file) != 0)
            result = -1;
    } else if (errno != EEXIST) {
        result = -1;
    }
    const int error = errno;
    free(path);
    errno = error;
    return result;
}

int afj_location_make(const struct afj_location *location)
{
    static const char *const folders[] = {"obj", "tmp", "bad"};
    if (afj_path_make_directories(location->root) != 0)
        return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
        char *path = join_path(location->root, folders[i]);
        const int failed = !path || afj_path_make_directories(path) != 0;
        const int error = errno;
        free(path);
        errno = error;
        if (failed)
            return -1;
    }
    if (make_file(location->root, "CACHEDIR.TAG", tag_text) != 0)
        return -1;
    return make_file(location->root, "README", readme_text);
}

/* Rights, read-only mounts and quotas all show when a file is created, and only then. */
static int prove_writable(const struct afj_location *location)
{
    struct afj_text path = {0};
    afj_location_add_temporary(location->root, &path);
    int result = -1;
    if (!path.failed) {
        const int file = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0) {
            close(file);
            result = unlink(path.data);
        }
    }
    const int error = errno;
    afj_text_finish(&path);
    errno = error;
    return result;
}

static void forget_place(struct afj_location *location)
{
    free(location->directory);
    free(location->root);
    location->directory = location->root = NULL;
    location->writable = false;
}

/* Take `directory` (owned from here on). False: it cannot even be made, and the note says why.
 * True with no root: it is there and must not be used. */
static bool take_directory(struct afj_location *location, char *directory, bool link)
{
    location->directory = directory;
    location->root = directory ? join_path(directory, root_name) : NULL;
    location->note[0] = '\0';
    if (!location->root) {
        snprintf(location->note, sizeof location->note, "no memory for the cache's path");
        forget_place(location);
        return false;
    }
    if (afj_path_make_directories(directory) != 0) {
        snprintf(location->note, sizeof location->note, "%.300s cannot be made: %s", directory,
                 strerror(errno));
        forget_place(location);
        return false;
    }
    if (!check_trust(location, directory, link)) {
        forget_place(location);
        return true;
    }
    location->local = afj_location_is_local(directory);
    const int made = afj_location_make(location) == 0 ? prove_writable(location) : -1;
    const int error = errno;
    struct stat is;
    if (made != 0 && lstat(location->root, &is) != 0) {
        snprintf(location->note, sizeof location->note, "%.300s cannot be made: %s", location->root,
                 strerror(error));
        forget_place(location);
        return false;
    }
    if (!check_trust(location, location->root, true)) {
        forget_place(location);
        return true;
    }
    location->writable = made == 0;
    if (made != 0)
        snprintf(location->note, sizeof location->note, "%.300s is only read: %s", location->root,
                 strerror(error));
    return true;
}

/* The directory that the user named, and no other. */
static void take_named(struct afj_location *location, const char *name)
{
    snprintf(location->origin, sizeof location->origin, "AFDEP_JIT_CACHE");
    if (strcmp(name, "off") == 0) {
        location->asked_off = true;
        snprintf(location->note, sizeof location->note, "AFDEP_JIT_CACHE is off");
        return;
    }
    if (name[0] == '/') {
        take_directory(location, strdup(name), false);
        return;
    }
    char *here = getcwd(NULL, 0);
    if (here)
        take_directory(location, join_path(here, name), false);
    else
        snprintf(location->note, sizeof location->note,
                 "AFDEP_JIT_CACHE is relative and the current directory is not known: %s",
                 strerror(errno));
    free(here);
}

/* The home directory of this user by the user database; "" if it has none. */
static void find_passwd_home(char *home, size_t size)
{
    struct passwd entry, *found = NULL;
    char room[4096];
    home[0] = '\0';
    if (getpwuid_r(geteuid(), &entry, room, sizeof room, &found) == 0 && found && found->pw_dir &&
        strlen(found->pw_dir) < size)
        memcpy(home, found->pw_dir, strlen(found->pw_dir) + 1);
}

/* The directory that desktop rules give: malloc'ed, or NULL if there is none. A home that does not
 * exist is not made: users without one have such a line in the user database. */
static char *find_home_cache(const char **origin)
{
    char passwd_home[PATH_MAX];
    struct stat is;
    const char *home = afj_env_get(AFJ_ENV_XDG_CACHE_HOME);
    *origin = "XDG_CACHE_HOME";
    if (home[0] == '/')
        return join_path(home, "afdep-jit");
    home = afj_env_get(AFJ_ENV_HOME);
    *origin = "HOME";
    if (home[0] != '/') {
        find_passwd_home(passwd_home, sizeof passwd_home);
        home = passwd_home;
        *origin = "the user database";
    }
    if (home[0] == '/' && stat(home, &is) == 0 && S_ISDIR(is.st_mode))
        return join_path(home, ".cache/afdep-jit");
    return NULL;
}

static void take_default(struct afj_location *location)
{
    const char *origin, *reason = "there is no home directory";
    char name[64];
    char *directory = find_home_cache(&origin);
    if (directory && !afj_location_is_local(directory)) {
        reason = "the home is not on a local file system";
        free(directory);
        directory = NULL;
    }
    if (directory) {
        snprintf(location->origin, sizeof location->origin, "%s", origin);
        if (take_directory(location, directory, false))
            return;
        reason = "the directory of the home cannot be made";
    }
    const char *temporary = afj_env_get(AFJ_ENV_TMPDIR);
    const bool named = temporary[0] == '/';
    snprintf(name, sizeof name, "afdep-jit-%lu", (unsigned long)geteuid());
    snprintf(location->origin, sizeof location->origin, "%s, as %s", named ? "TMPDIR" : "/var/tmp",
             reason);
    take_directory(location, join_path(named ? temporary : "/var/tmp", name), true);
}

void afj_location_find(struct afj_location *location)
{
    memset(location, 0, sizeof *location);
    if (afj_env_is_set(AFJ_ENV_JIT_CACHE))
        take_named(location, afj_env_get(AFJ_ENV_JIT_CACHE));
    else
        take_default(location);
}

void afj_location_finish(struct afj_location *location)
{
    forget_place(location);
    memset(location, 0, sizeof *location);
}

void afj_location_add_object(const struct afj_location *location, const struct afj_digest *key,
                             struct afj_text *path)
{
    char hex[33];
    afj_digest_hex(key, hex);
    afj_text_printf(path, "%s/obj/%.2s/%s.afo", location->root, hex, hex);
}

/* Eight hex digits that differ between hosts; containers may share a host's name. */
static void name_host(char hex[33])
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    const struct afj_digest digest = afj_digest_of(host, strlen(host));
    afj_digest_hex(&digest, hex);
    hex[8] = '\0';
}

/* The first eight hex digits of this boot's id. */
static void name_boot(char boot[9])
{
    void *text = NULL;
    size_t length = 0;
    memcpy(boot, "00000000", 9);
    if (afj_path_read("/proc/sys/kernel/random/boot_id", true, 256, &text, &length) == 0 &&
        length >= 8 && strspn(text, "0123456789abcdef") >= 8)
        memcpy(boot, text, 8);
    free(text);
}

static uint64_t draw_random(void)
{
    static atomic_uint_fast64_t drawn;
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number)
        return number;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ atomic_fetch_add(&drawn, 1) << 20;
}

/* Processes of several hosts and containers may share the directory: a pid alone is no name. */
void afj_location_add_temporary(const char *root, struct afj_text *path)
{
    char host[33], boot[9];
    name_host(host);
    name_boot(boot);
    afj_text_printf(path, "%s/tmp/%s.%s.%ld.%016" PRIx64, root, host, boot, (long)getpid(),
                    draw_random());
}
