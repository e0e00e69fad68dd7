/* test_scan.c: every file of a cache is told for what it is, and none is trusted or changed. */
#include <errno.h>
#include <time.h>

#include "support/object.h"

#include "cache/scan.h"
#include "cache/used.h"

static const struct afj_digest keys[3] = {{{0xab, 1}}, {{0xab, 2}}, {{0xcd, 3}}};

#define FIRST ROOT "/obj/ab/ab010000000000000000000000000000.afo"
#define SECOND ROOT "/obj/ab/ab020000000000000000000000000000.afo"

/* What a scan told. */
static struct {
    int whole, wrong;
    char last_key[33], last_error[256], order[128];
} told;

static void note(const struct afj_scanned *scanned, void *user)
{
    cr_expect_eq(user, &told);
    cr_expect_not_null(scanned->path);
    cr_expect(scanned->object || scanned->error, "%s is neither whole nor wrong", scanned->path);
    told.whole += scanned->error == NULL;
    told.wrong += scanned->error != NULL;
    if (scanned->error)
        snprintf(told.last_error, sizeof told.last_error, "%s", scanned->error);
    if (scanned->object) {
        afj_digest_hex(&scanned->object->key, told.last_key);
        memcpy(told.order + strlen(told.order), told.last_key, 4);
    }
}

static void scan(void)
{
    memset(&told, 0, sizeof told);
    cr_expect(afj_scan_all(store, note, &told), "%s", strerror(errno));
}

static void put(const struct afj_digest *key)
{
    cr_assert(put_object(store, key, image, sizeof image));
}

TestSuite(scan, .init = begin_store, .fini = end_store);
TestSuite(used, .init = begin_store, .fini = end_store);

Test(scan, objects_come_in_the_order_of_their_keys)
{
    scan();
    cr_expect_eq(told.whole + told.wrong, 0);
    for (int i = 3; i-- > 0;)
        put(&keys[i]);
    scan();
    cr_expect_eq(told.whole, 3);
    cr_expect_eq(told.wrong, 0);
    cr_expect_str_eq(told.order, "ab01ab02cd03");
}

Test(scan, any_changed_byte_and_any_cut_is_told_as_damage)
{
    void *bytes;
    size_t length;
    put(&keys[0]);
    cr_assert_eq(afj_path_read(in_scratch(FIRST), false, 1 << 20, &bytes, &length), 0);
    for (size_t i = 0; i < length; i++) {
        ((unsigned char *)bytes)[i] ^= 0x10;
        write_file(in_scratch(FIRST), bytes, length);
        scan();
        cr_expect_eq(told.whole, 0, "byte %zu", i);
        cr_expect_eq(told.wrong, 1, "byte %zu", i);
        ((unsigned char *)bytes)[i] ^= 0x10;
    }
    for (size_t i = 0; i < length; i++) {
        write_file(in_scratch(FIRST), bytes, i);
        scan();
        cr_expect_eq(told.whole, 0, "%zu bytes", i);
        cr_expect_eq(told.wrong, 1, "%zu bytes", i);
    }
    cr_expect(exists(in_scratch(FIRST)), "a scan changes nothing");
    free(bytes);
}

Test(scan, an_object_under_another_name_is_wrong_there_and_right_by_path)
{
    put(&keys[0]);
    cr_assert_eq(rename(in_scratch(FIRST), in_scratch(SECOND)), 0);
    scan();
    cr_expect_eq(told.whole, 0);
    cr_expect_str_eq(told.last_error, "its name is not that of its key");
    memset(&told, 0, sizeof told);
    cr_expect(afj_scan_file(in_scratch(SECOND), note, &told));
    cr_expect_eq(told.whole, 1);
}

Test(scan, what_is_no_file_of_ours_is_told_and_not_followed)
{
    put(&keys[0]);
    cr_assert_eq(rename(in_scratch(FIRST), in_scratch("elsewhere")), 0);
    cr_assert_eq(symlink(in_scratch("elsewhere"), in_scratch(FIRST)), 0);
    cr_assert_eq(mkdir(in_scratch(SECOND), 0700), 0);
    cr_assert_eq(mkfifo(in_scratch(ROOT "/obj/ab/fifo"), 0600), 0);
    write_file(in_scratch(ROOT "/obj/stray"), "stray", 5);
    scan();
    cr_expect_eq(told.whole, 0);
    cr_expect_eq(told.wrong, 4);
}

Test(scan, a_key_is_looked_for_in_its_place_only)
{
    memset(&told, 0, sizeof told);
    put(&keys[0]);
    cr_expect(afj_scan_key(store, "ab010000000000000000000000000000", note, &told));
    cr_expect_eq(told.whole, 1);
    const char *const absent[] = {
        "ab020000000000000000000000000000", "ab01",       "", "AB010000000000000000000000000000",
        "../../../../../../../../../../..", "/etc/passwd"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        cr_expect_not(afj_scan_key(store, absent[i], note, &told), "%s", absent[i]);
        cr_expect_eq(errno, ENOENT, "%s: %s", absent[i], strerror(errno));
    }
    cr_expect_eq(told.whole + told.wrong, 1);
}

Test(scan, a_cache_that_is_gone_or_off_has_nothing)
{
    afj_path_remove_tree(in_scratch("cache"));
    scan();
    cr_expect_eq(told.whole + told.wrong, 0);
    setenv("AFDEP_JIT_CACHE", "off", 1);
    struct afj_store *off = afj_store_open();
    cr_expect(afj_scan_all(off, note, &told));
    cr_expect_not(afj_scan_key(off, "ab010000000000000000000000000000", note, &told));
    cr_expect_eq(told.whole + told.wrong, 0);
    afj_store_close(off);
}

static time_t age_file(const char *path, time_t seconds)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = time(NULL) - seconds, .tv_nsec = 0}};
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    return times[1].tv_sec;
}

static time_t time_of(const char *path)
{
    struct stat is;
    cr_assert_eq(stat(path, &is), 0, "%s", path);
    return is.st_mtim.tv_sec;
}

static void find_first(void) { cr_assert(get_object(store, &keys[0], image, sizeof image)); }

Test(used, a_hit_is_noted_once_an_hour)
{
    put(&keys[0]);
    const time_t recent = age_file(in_scratch(FIRST), 3000);
    find_first();
    cr_expect_eq(time_of(in_scratch(FIRST)), recent);
    const time_t old = age_file(in_scratch(FIRST), 4000);
    find_first();
    cr_expect_gt(time_of(in_scratch(FIRST)), old + 3900);
}

Test(used, a_scan_is_no_use_and_a_time_ahead_stays)
{
    put(&keys[0]);
    const time_t old = age_file(in_scratch(FIRST), 100000);
    scan();
    cr_expect_eq(time_of(in_scratch(FIRST)), old);
    const time_t ahead = age_file(in_scratch(FIRST), -100000);
    find_first();
    cr_expect_eq(time_of(in_scratch(FIRST)), ahead);
}

Test(used, what_is_not_there_is_passed_over)
{
    errno = 0;
    afj_used_note(in_scratch("absent"));
    cr_expect_eq(errno, 0);
    cr_expect_not(exists(in_scratch("absent")));
}
