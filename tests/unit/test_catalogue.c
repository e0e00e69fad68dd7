/* test_catalogue.c: index.db follows the objects, and never stands in their way. */
#include <pthread.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include "support/object.h"

#include "cache/catalogue.h"
#include "cache/location.h"

#define INDEX ROOT "/index.db"

static void begin(void)
{
    begin_store();
    if (afj_location_is_local(scratch))
        return;
    afj_store_close(store);
    skip_because("TMPDIR is not on a local file system: there is no catalogue");
}

TestSuite(catalogue, .init = begin, .fini = end_store);

static struct afj_digest key_of(unsigned number) { return afj_digest_of(&number, sizeof number); }

static void put_number(unsigned number)
{
    const struct afj_digest key = key_of(number);
    put_object(store, &key, &number, sizeof number);
}

static void reopen_store(void)
{
    afj_store_close(store);
    store = afj_store_open();
    cr_assert_not_null(store);
}

/* The one answer of a query, as text; "" for none. Valid until the next call. */
static const char *ask(const char *query)
{
    static char answer[512];
    sqlite3 *database;
    sqlite3_stmt *statement;
    cr_assert_eq(sqlite3_open_v2(in_scratch(INDEX), &database, SQLITE_OPEN_READONLY, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(database, query, -1, &statement, NULL), SQLITE_OK, "%s: %s",
                 query, sqlite3_errmsg(database));
    answer[0] = '\0';
    if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
        snprintf(answer, sizeof answer, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return answer;
}

static void change(const char *statement)
{
    sqlite3 *database;
    cr_assert_eq(sqlite3_open_v2(in_scratch(INDEX), &database, SQLITE_OPEN_READWRITE, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_exec(database, statement, NULL, NULL, NULL), SQLITE_OK, "%s: %s",
                 statement, sqlite3_errmsg(database));
    sqlite3_close(database);
}

static void expect_entries(const char *count)
{
    cr_expect_str_eq(ask("SELECT count(*) FROM entry"), count);
    cr_expect_str_eq(ask("PRAGMA integrity_check"), "ok");
}

static void expect_all_found(unsigned numbers)
{
    for (unsigned i = 0; i < numbers; ++i) {
        const struct afj_digest key = key_of(i);
        cr_assert(get_object(store, &key, &i, sizeof i));
    }
}

Test(catalogue, lists_what_was_put)
{
    for (unsigned i = 0; i < 40; ++i)
        put_number(i);
    expect_entries("40");
    cr_expect_str_eq(ask("SELECT count(*) FROM env"), "1");
    cr_expect_eq(count_entries(in_scratch(ROOT "/tmp"), ""), 0);
    cr_expect_eq(count_entries(in_scratch(ROOT), "index.db.bad"), 0);
}

Test(catalogue, a_row_says_what_the_object_is)
{
    char query[256], hex[33];
    struct stat is;
    put_number(7);
    const struct afj_digest key = key_of(7);
    afj_digest_hex(&key, hex);
    snprintf(query, sizeof query,
             "SELECT role||' '||ratio||' '||hidden||' '||dtype||' '||topo||' '||arch||' '||"
             "compile_ms||' '||uses||' '||pinned||' '||origin||' '||image_bytes "
             "FROM entry WHERE key = x'%s'",
             hex);
    cr_expect_str_eq(ask(query), "source 2A2F 4096 bf16 domains=1 sm_90a 12.5 0 0 compiler 4");
    cr_assert_eq(stat(in_scratch(ROOT "/obj/%.2s/%s.afo", hex, hex), &is), 0);
    snprintf(query, sizeof query, "%lld", (long long)is.st_size);
    cr_expect_str_eq(ask("SELECT bytes FROM entry"), query);
    cr_expect_str_eq(ask("SELECT manifest FROM env JOIN entry USING (env_id)"),
                     "schema=1:1\narch=6:sm_90a\n");
}

Test(catalogue, is_ours_and_says_so)
{
    put_number(0);
    cr_expect_str_eq(ask("PRAGMA application_id"), "1095124048"); /* "AFDP" */
    cr_expect_str_eq(ask("PRAGMA user_version"), "1");
    cr_expect_str_eq(ask("PRAGMA page_size"), "4096");
    cr_expect_str_neq(ask("PRAGMA journal_mode"), "wal");
}

Test(catalogue, lookups_neither_need_nor_make_it)
{
    put_number(0);
    reopen_store();
    cr_assert_eq(unlink(in_scratch(INDEX)), 0);
    expect_all_found(1);
    cr_expect_not(exists(in_scratch(INDEX)));
}

/* Put 5 objects, harm the catalogue, put a sixth in a new process's place: all six are listed. */
static void expect_rebuilt(int set_aside)
{
    reopen_store();
    expect_all_found(5);
    put_number(5);
    expect_entries("6");
    expect_all_found(6);
    cr_expect_str_eq(ask("SELECT count(*) FROM entry WHERE origin = 'scan'"), "5");
    cr_expect_eq(count_entries(in_scratch(ROOT), "index.db.bad"), set_aside);
    cr_expect_eq(count_entries(in_scratch(ROOT "/tmp"), ""), 0);
    cr_expect_eq(afj_store_counters(store).store_failures, 0);
}

static void put_five(void)
{
    for (unsigned i = 0; i < 5; ++i)
        put_number(i);
    reopen_store();
}

Test(catalogue, a_missing_one_is_rebuilt_from_the_objects)
{
    put_five();
    cr_assert_eq(unlink(in_scratch(INDEX)), 0);
    expect_rebuilt(0);
}

Test(catalogue, garbage_is_set_aside_and_rebuilt)
{
    static char garbage[20000];
    memset(garbage, 0x5a, sizeof garbage);
    put_five();
    write_file(in_scratch(INDEX), garbage, sizeof garbage);
    expect_rebuilt(1);
}

Test(catalogue, an_empty_file_is_set_aside_and_rebuilt)
{
    put_five();
    write_file(in_scratch(INDEX), "", 0);
    expect_rebuilt(1);
}

Test(catalogue, a_truncated_one_is_set_aside_and_rebuilt)
{
    put_five();
    cr_assert_eq(truncate(in_scratch(INDEX), 4096), 0);
    expect_rebuilt(1);
}

Test(catalogue, another_programs_database_is_set_aside)
{
    put_five();
    change("PRAGMA application_id = 1");
    expect_rebuilt(1);
}

Test(catalogue, one_without_our_tables_is_set_aside)
{
    put_five();
    change("DROP TABLE entry");
    expect_rebuilt(1);
}

Test(catalogue, a_directory_in_its_place_is_set_aside)
{
    put_five();
    cr_assert_eq(unlink(in_scratch(INDEX)), 0);
    cr_assert_eq(mkdir(in_scratch(INDEX), 0700), 0);
    expect_rebuilt(1);
}

Test(catalogue, a_journal_without_its_database_is_not_rolled_into_the_next)
{
    /* No pages to restore, and a database of one page to go back to. */
    static const unsigned char journal[512] = {0xd9, 0xd5, 0x05,     0xf9,     0x20,     0xa1,
                                               0x63, 0xd7, [19] = 1, [22] = 2, [26] = 16};
    put_five();
    cr_assert_eq(unlink(in_scratch(INDEX)), 0);
    write_file(in_scratch(INDEX "-journal"), journal, sizeof journal);
    expect_rebuilt(0);
}

Test(catalogue, damage_under_an_open_connection_is_overcome)
{
    for (unsigned i = 0; i < 5; ++i)
        put_number(i);
    change("DROP TABLE entry");
    put_number(5);
    expect_entries("6");
    cr_expect_eq(count_entries(in_scratch(ROOT), "index.db.bad"), 1);
}

Test(catalogue, one_that_was_replaced_is_opened_again)
{
    for (unsigned i = 0; i < 3; ++i)
        put_number(i);
    cr_assert_eq(unlink(in_scratch(INDEX)), 0);
    put_number(3);
    expect_entries("4");
}

Test(catalogue, a_newer_one_is_left_alone)
{
    put_five();
    change("PRAGMA user_version = 2");
    put_number(5);
    expect_all_found(6);
    expect_entries("5");
    cr_expect_str_eq(ask("PRAGMA user_version"), "2");
    cr_expect_eq(count_entries(in_scratch(ROOT), "index.db.bad"), 0);
}

Test(catalogue, damaged_and_misnamed_objects_are_not_listed)
{
    char hex[2][33];
    put_five();
    for (unsigned i = 0; i < 2; ++i) {
        const struct afj_digest key = key_of(i);
        afj_digest_hex(&key, hex[i]);
    }
    write_file(in_scratch(ROOT "/obj/%.2s/%s.afo", hex[0], hex[0]), "damage", 6);
    cr_assert_eq(rename(in_scratch(ROOT "/obj/%.2s/%s.afo", hex[1], hex[1]),
                        in_scratch(ROOT "/obj/%.2s/copy.afo", hex[1])),
                 0);
    cr_assert_eq(unlink(in_scratch(INDEX)), 0);
    put_number(5);
    expect_entries("4");
}

/* Holds a write lock while the store puts: the row is left out after two seconds, not the object.
 */
Test(catalogue, a_locked_one_costs_only_the_row, .timeout = 60)
{
    sqlite3 *other;
    put_five();
    cr_assert_eq(sqlite3_open_v2(in_scratch(INDEX), &other, SQLITE_OPEN_READWRITE, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    put_number(5);
    cr_assert_eq(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    expect_all_found(6);
    expect_entries("5");
    cr_expect_eq(afj_store_counters(store).store_failures, 0);
    put_number(6);
    expect_entries("6");
}

Test(catalogue, a_row_that_is_left_out_is_told_to_the_caller)
{
    struct afj_text bytes = {0};
    struct afj_object object;
    const struct afj_digest key = key_of(0);
    struct afj_catalogue *nowhere = afj_catalogue_create("/proc/self/no-such-root");
    cr_assert_null(afj_object_write(&key, manifest, sizeof manifest - 1, "x", 1, &bytes));
    cr_assert_null(afj_object_read(bytes.data, bytes.length, &object));
    cr_expect_not(afj_catalogue_record(nowhere, &object));
    afj_catalogue_destroy(nowhere);
    afj_text_finish(&bytes);
}

Test(catalogue, processes_that_start_together_lose_no_row, .timeout = 60)
{
    enum { PROCESSES = 8 };
    pid_t children[PROCESSES];
    for (unsigned p = 0; p < PROCESSES; ++p) {
        children[p] = fork();
        cr_assert(children[p] >= 0);
        if (children[p] == 0) {
            store = afj_store_open();
            for (unsigned i = 0; i < 4; ++i)
                put_number(4 * p + i);
            afj_store_close(store);
            _exit(0);
        }
    }
    for (unsigned p = 0; p < PROCESSES; ++p) {
        int status;
        cr_assert_eq(waitpid(children[p], &status, 0), children[p]);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    expect_all_found(4 * PROCESSES);
    expect_entries("32");
    cr_expect_eq(count_entries(in_scratch(ROOT "/tmp"), ""), 0);
    cr_expect_eq(count_entries(in_scratch(ROOT), "index.db.bad"), 0);
}

static void *put_from_thread(void *argument)
{
    const unsigned *first = argument;
    for (unsigned i = 0; i < 10; ++i)
        put_number(*first + i);
    return NULL;
}

Test(catalogue, threads_share_a_store)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    unsigned first[THREADS];
    for (unsigned t = 0; t < THREADS; ++t) {
        first[t] = 10 * t;
        cr_assert_eq(pthread_create(&threads[t], NULL, put_from_thread, &first[t]), 0);
    }
    for (unsigned t = 0; t < THREADS; ++t)
        cr_assert_eq(pthread_join(threads[t], NULL), 0);
    expect_entries("40");
    expect_all_found(40);
}
