/* catalogue.c: index.db, a list of the objects for people. Lookups never read it. */
#include "cache/catalogue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "cache/location.h"
#include "cache_schema.h"

enum {
    APPLICATION_ID = 0x41464450, /* "AFDP" */
    USER_VERSION = 1,
    BUSY_MS = 2000,
    MOST_SCANNED = 4096 /* objects read when the catalogue is made: 0.3 s of 100 KiB objects */
};

struct afj_catalogue {
    char *root, *path;
    pid_t owner; /* locks and connections do not cross a fork */
    pthread_mutex_t lock;
    sqlite3 *database; /* NULL until the first record */
    sqlite3_stmt *add_env, *add_entry;
    struct stat opened; /* the file that was opened, or was about to be */
    bool given_up;
};

static const char add_env_text[] =
    "INSERT INTO env(env_id, manifest, first_seen, last_seen) VALUES(?1, ?2, ?3, ?3) "
    "ON CONFLICT(env_id) DO UPDATE SET last_seen = max(last_seen, excluded.last_seen)";

static const char add_entry_text[] =
    "INSERT INTO entry(key, env_id, role, ratio, hidden, dtype, topo, arch, bytes, image_bytes, "
    "sum, "
    "compile_ms, created, last_used, origin) "
    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?14) "
    "ON CONFLICT(key) DO UPDATE SET env_id = excluded.env_id, role = excluded.role, "
    "ratio = excluded.ratio, hidden = excluded.hidden, dtype = excluded.dtype, "
    "topo = excluded.topo, arch = excluded.arch, bytes = excluded.bytes, "
    "image_bytes = excluded.image_bytes, sum = excluded.sum, compile_ms = excluded.compile_ms, "
    "created = excluded.created, last_used = excluded.last_used, origin = excluded.origin";

/* Answers that say the file itself is wrong, against those that say: not now. */
static bool is_broken(int answer)
{
    const int code = answer & 0xFF;
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ||
           code == SQLITE_FORMAT || code == SQLITE_MISMATCH;
}

static int run_sql(sqlite3 *database, const char *text)
{
    return sqlite3_exec(database, text, NULL, NULL, NULL);
}

/* A pragma's answer as a number; `fallback` where it has none. */
static int ask_number(sqlite3 *database, const char *text, int fallback, int *number)
{
    sqlite3_stmt *statement = NULL;
    int answer = sqlite3_prepare_v2(database, text, -1, &statement, NULL);
    *number = fallback;
    if (answer == SQLITE_OK) {
        answer = sqlite3_step(statement);
        if (answer == SQLITE_ROW)
            *number = sqlite3_column_int(statement, 0);
        if (answer == SQLITE_ROW || answer == SQLITE_DONE)
            answer = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return answer;
}

static int prepare_statements(struct afj_catalogue *c, sqlite3 *database)
{
    int answer = sqlite3_prepare_v2(database, add_env_text, -1, &c->add_env, NULL);
    if (answer == SQLITE_OK)
        answer = sqlite3_prepare_v2(database, add_entry_text, -1, &c->add_entry, NULL);
    return answer;
}

static void close_database(struct afj_catalogue *c)
{
    sqlite3_finalize(c->add_env);
    sqlite3_finalize(c->add_entry);
    sqlite3_close(c->database);
    c->add_env = c->add_entry = NULL;
    c->database = NULL;
}

/* The manifest lines that are the same for all kernels compiled alike: all but the kernel's own. */
static void copy_environment(const struct afj_object *object, struct afj_text *text)
{
    static const char *const own[] = {"spec", "source"};
    const char *at = object->manifest, *end = at + afj_object_facts_at(object);
    struct afj_object_line line;
    afj_text_add(text, "");
    for (; afj_object_next_line(at, end, &line); at = line.next) {
        bool shared = true;
        for (size_t i = 0; i < sizeof own / sizeof *own; ++i)
            if (line.name_length == strlen(own[i]) &&
                memcmp(line.name, own[i], line.name_length) == 0)
                shared = false;
        if (shared)
            afj_text_append(text, at, (size_t)(line.next - at));
    }
}

static int64_t name_environment(const struct afj_text *text)
{
    const struct afj_digest digest = afj_digest_of(text->data, text->length);
    uint64_t number = 0;
    int64_t id;
    for (size_t i = 0; i < 8; ++i)
        number = number << 8 | digest.bytes[i];
    memcpy(&id, &number, sizeof id);
    return id;
}

static void bind_fact(sqlite3_stmt *statement, int column, const struct afj_object *object,
                      const char *name)
{
    struct afj_object_line line;
    if (afj_object_find_fact(object, name, &line))
        sqlite3_bind_text(statement, column, line.value, (int)line.value_length, SQLITE_TRANSIENT);
}

/* A number from a fact; fewer than 19 digits, so that it fits. */
static int64_t read_fact(const struct afj_object *object, const char *name)
{
    struct afj_object_line line;
    int64_t number = 0;
    if (!afj_object_find_fact(object, name, &line) || line.value_length > 18)
        return 0;
    for (size_t i = 0; i < line.value_length; ++i) {
        if (line.value[i] < '0' || line.value[i] > '9')
            return 0;
        number = number * 10 + (line.value[i] - '0');
    }
    return number;
}

static int finish_step(sqlite3_stmt *statement)
{
    const int answer = sqlite3_step(statement);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

/* Add or renew the rows of an object, inside a transaction of the caller. */
static int add_rows(struct afj_catalogue *c, const struct afj_object *object, int64_t when,
                    const char *origin)
{
    struct afj_text shared = {0};
    copy_environment(object, &shared);
    if (shared.failed) {
        afj_text_finish(&shared);
        return SQLITE_NOMEM;
    }
    const int64_t env_id = name_environment(&shared);
    sqlite3_bind_int64(c->add_env, 1, env_id);
    sqlite3_bind_text(c->add_env, 2, shared.data, (int)shared.length, SQLITE_TRANSIENT);
    sqlite3_bind_int64(c->add_env, 3, when);
    afj_text_finish(&shared);
    const int answer = finish_step(c->add_env);
    if (answer != SQLITE_OK)
        return answer;
    const size_t manifest_bytes = (object->manifest_length + 63) / 64 * 64;
    sqlite3_stmt *s = c->add_entry;
    sqlite3_bind_blob(s, 1, object->key.bytes, sizeof object->key.bytes, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 2, env_id);
    bind_fact(s, 3, object, "role");
    bind_fact(s, 4, object, "ratio");
    sqlite3_bind_int64(s, 5, read_fact(object, "hidden"));
    bind_fact(s, 6, object, "dtype");
    bind_fact(s, 7, object, "topo");
    bind_fact(s, 8, object, "arch");
    sqlite3_bind_int64(s, 9,
                       (int64_t)(AFJ_OBJECT_HEADER_BYTES + manifest_bytes + object->image_length));
    sqlite3_bind_int64(s, 10, (int64_t)object->image_length);
    sqlite3_bind_blob(s, 11, object->image_sum.bytes, sizeof object->image_sum.bytes,
                      SQLITE_TRANSIENT);
    sqlite3_bind_double(s, 12, (double)read_fact(object, "compile_us") / 1000.0);
    sqlite3_bind_int64(s, 13, when);
    sqlite3_bind_text(s, 14, origin, -1, SQLITE_STATIC);
    return finish_step(s);
}

/* Add the object in a file, if it is one and lies under its own name. */
static int scan_file(struct afj_catalogue *c, int folder, const char *folder_path, const char *name)
{
    struct afj_text path = {0};
    struct afj_object object;
    struct stat is;
    void *bytes = NULL;
    size_t length;
    int answer = SQLITE_OK;
    afj_text_printf(&path, "%s/%s", folder_path, name);
    if (!path.failed && fstatat(folder, name, &is, AT_SYMLINK_NOFOLLOW) == 0 &&
        afj_path_read(path.data, false, AFJ_OBJECT_MOST_BYTES, &bytes, &length) == 0 &&
        !afj_object_read(bytes, length, &object)) {
        char hex[33];
        afj_digest_hex(&object.key, hex);
        if (strncmp(name, hex, 32) == 0 && strcmp(name + 32, ".afo") == 0)
            answer = add_rows(c, &object, (int64_t)is.st_mtime, "scan");
    }
    free(bytes);
    afj_text_finish(&path);
    return answer;
}

static int scan_folder(struct afj_catalogue *c, const char *path, uint32_t *scanned)
{
    DIR *folder = opendir(path);
    int answer = SQLITE_OK;
    if (!folder)
        return SQLITE_OK;
    const struct dirent *entry;
    while (answer == SQLITE_OK && *scanned < MOST_SCANNED && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        ++*scanned;
        answer = scan_file(c, dirfd(folder), path, entry->d_name);
    }
    closedir(folder);
    return answer;
}

/* Files are the truth: list what lies in obj/, damaged ones left out. */
static int scan_objects(struct afj_catalogue *c)
{
    uint32_t scanned = 0;
    int answer = SQLITE_OK;
    for (unsigned i = 0; i < 256 && answer == SQLITE_OK; ++i) {
        struct afj_text path = {0};
        afj_text_printf(&path, "%s/obj/%02x", c->root, i);
        answer = path.failed ? SQLITE_NOMEM : scan_folder(c, path.data, &scanned);
        afj_text_finish(&path);
    }
    if (scanned == MOST_SCANNED)
        afj_log(AFJ_LOG_INFO, "the catalogue lists the first %d objects of %s", MOST_SCANNED,
                c->root);
    return answer;
}

static int fill_new(struct afj_catalogue *c, sqlite3 *database)
{
    char identity[128];
    snprintf(identity, sizeof identity, "PRAGMA application_id=%d; PRAGMA user_version=%d",
             APPLICATION_ID, USER_VERSION);
    sqlite3_busy_timeout(database, BUSY_MS);
    /* Nobody else knows the file yet, and a failure throws it away: it needs no journal. */
    int answer = run_sql(database, "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; "
                                   "PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE");
    if (answer == SQLITE_OK)
        answer = run_sql(database, identity);
    if (answer == SQLITE_OK)
        answer = run_sql(database, AFJ_CACHE_SCHEMA);
    if (answer == SQLITE_OK)
        answer = prepare_statements(c, database);
    if (answer == SQLITE_OK)
        answer = scan_objects(c);
    if (answer == SQLITE_OK)
        answer = run_sql(database, "COMMIT");
    sqlite3_finalize(c->add_env);
    sqlite3_finalize(c->add_entry);
    c->add_env = c->add_entry = NULL;
    return answer;
}

/* A journal whose database is gone would be rolled back into the next one of that name. */
static void remove_orphan_journal(const struct afj_catalogue *c)
{
    struct afj_text journal = {0};
    struct stat is;
    afj_text_printf(&journal, "%s-journal", c->path);
    if (!journal.failed && lstat(c->path, &is) != 0 && errno == ENOENT)
        (void)unlink(journal.data);
    afj_text_finish(&journal);
}

/* Make the database as a file of our own and give it its name when it is whole. link() and not
 * rename(): where another process was first, its file stays, with its journal. */
static int make_database(struct afj_catalogue *c)
{
    struct afj_text own = {0};
    sqlite3 *database = NULL;
    afj_location_add_temporary(c->root, &own);
    if (own.failed) {
        afj_text_finish(&own);
        return SQLITE_NOMEM;
    }
    int answer =
        sqlite3_open_v2(own.data, &database,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (answer == SQLITE_OK)
        answer = fill_new(c, database);
    sqlite3_close(database);
    remove_orphan_journal(c);
    if (answer == SQLITE_OK && link(own.data, c->path) != 0 && errno != EEXIST)
        answer = SQLITE_CANTOPEN;
    unlink(own.data);
    afj_text_finish(&own);
    return answer;
}

/* Rename a damaged database out of the way, unless another process has replaced it already. Its
 * journal goes first: it must not be rolled back into the next one. */
static void set_aside(struct afj_catalogue *c)
{
    struct afj_text journal = {0}, aside = {0};
    struct stat now;
    close_database(c);
    if (lstat(c->path, &now) != 0 || now.st_ino != c->opened.st_ino ||
        now.st_dev != c->opened.st_dev)
        return;
    afj_text_printf(&journal, "%s-journal", c->path);
    afj_text_printf(&aside, "%s.bad-%lld", c->path, (long long)time(NULL));
    c->given_up = true;
    if (!journal.failed && !aside.failed && (unlink(journal.data) == 0 || errno == ENOENT) &&
        rename(c->path, aside.data) == 0) {
        c->given_up = false;
        afj_log(AFJ_LOG_INFO, "the catalogue %s is damaged and is made anew", c->path);
    }
    afj_text_finish(&journal);
    afj_text_finish(&aside);
}

/* Open what is there. SQLITE_NOTADB also for a database of another program or of no version;
 * SQLITE_CANTOPEN for one of a newer library, which is left alone. */
static int open_existing(struct afj_catalogue *c)
{
    int application = 0, version = 0;
    if (!S_ISREG(c->opened.st_mode))
        return SQLITE_NOTADB;
    int answer =
        sqlite3_open_v2(c->path, &c->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (answer != SQLITE_OK)
        return answer;
    sqlite3_busy_timeout(c->database, BUSY_MS);
    answer = ask_number(c->database, "PRAGMA application_id", 0, &application);
    if (answer == SQLITE_OK)
        answer = ask_number(c->database, "PRAGMA user_version", 0, &version);
    if (answer != SQLITE_OK)
        return answer;
    if (application != APPLICATION_ID || version < USER_VERSION)
        return SQLITE_NOTADB;
    if (version > USER_VERSION) {
        c->given_up = true;
        return SQLITE_CANTOPEN;
    }
    answer = run_sql(c->database, "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=NORMAL");
    if (answer == SQLITE_OK)
        answer = prepare_statements(c, c->database);
    return answer;
}

/* Whether the file under our connection is no longer the one of that name. */
static bool has_moved(const struct afj_catalogue *c)
{
    int moved = 0;
    return sqlite3_file_control(c->database, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
           moved != 0;
}

static int open_database(struct afj_catalogue *c)
{
    enum { MOST_TRIES = 3 }; /* damaged, then missing, then there */
    int answer = SQLITE_CANTOPEN;
    if (c->database && has_moved(c))
        close_database(c);
    if (c->database)
        return SQLITE_OK;
    for (int i = 0; i < MOST_TRIES && !c->given_up; ++i) {
        if (lstat(c->path, &c->opened) != 0) {
            answer = errno == ENOENT ? make_database(c) : SQLITE_CANTOPEN;
            if (answer != SQLITE_OK)
                return answer;
            continue;
        }
        answer = open_existing(c);
        if (answer == SQLITE_OK)
            return SQLITE_OK;
        if (is_broken(answer))
            set_aside(c);
        close_database(c);
        if (!is_broken(answer))
            return answer;
    }
    return answer == SQLITE_OK ? SQLITE_CANTOPEN : answer;
}

/* IMMEDIATE: a transaction that begins by reading gets BUSY at its first write, without waiting. */
static int write_object(struct afj_catalogue *c, const struct afj_object *object)
{
    int answer = run_sql(c->database, "BEGIN IMMEDIATE");
    if (answer != SQLITE_OK)
        return answer;
    answer = add_rows(c, object, (int64_t)time(NULL), "compiler");
    if (answer == SQLITE_OK)
        answer = run_sql(c->database, "COMMIT");
    if (answer != SQLITE_OK && !sqlite3_get_autocommit(c->database))
        (void)run_sql(c->database, "ROLLBACK");
    return answer;
}

struct afj_catalogue *afj_catalogue_create(const char *root)
{
    struct afj_text path = {0};
    struct afj_catalogue *c = calloc(1, sizeof *c);
    afj_text_printf(&path, "%s/index.db", root);
    if (c) {
        c->owner = getpid();
        c->path = path.data;
        c->root = strdup(root);
    }
    if (!c || path.failed || !c->root || pthread_mutex_init(&c->lock, NULL) != 0) {
        if (c)
            free(c->root);
        free(c);
        afj_text_finish(&path);
        return NULL;
    }
    return c;
}

void afj_catalogue_destroy(struct afj_catalogue *c)
{
    if (!c)
        return;
    /* A child does not close its parent's connection: closing would drop the parent's locks. */
    if (c->owner == getpid()) {
        close_database(c);
        pthread_mutex_destroy(&c->lock);
    }
    free(c->root);
    free(c->path);
    free(c);
}

bool afj_catalogue_record(struct afj_catalogue *c, const struct afj_object *object)
{
    int answer = SQLITE_MISUSE;
    if (c->owner == getpid()) {
        pthread_mutex_lock(&c->lock);
        for (int i = 0; i < 2; ++i) {
            answer = open_database(c);
            if (answer == SQLITE_OK)
                answer = write_object(c, object);
            if (!is_broken(answer) || !c->database)
                break;
            set_aside(c);
        }
        pthread_mutex_unlock(&c->lock);
    }
    if (answer == SQLITE_OK)
        return true;
    afj_log(AFJ_LOG_DEBUG, "the catalogue %s lacks an object: %s", c->path, sqlite3_errstr(answer));
    return false;
}
