/* test_store.c: images by key, and that nothing that happens to the files makes a wrong one. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "support/object.h"

#include "base/text.h"

static const struct afj_digest key = {{0xab, 0xcd, [15] = 0x0f}};

#define OBJECT ROOT "/obj/ab/abcd000000000000000000000000000f.afo"
#define QUARANTINED ROOT "/bad/abcd000000000000000000000000000f.afo"

TestSuite(store, .init = begin_store, .fini = end_store);

static void put_into(struct afj_store *into) { put_object(into, &key, image, sizeof image); }

static bool get_from(struct afj_store *from) { return get_object(from, &key, image, sizeof image); }

static void read_whole(const char *path, void **bytes, size_t *length)
{
    cr_assert_eq(afj_path_read(path, false, 1 << 20, bytes, length), 0, "%s", path);
}

static void expect_no_litter(void) { cr_expect_eq(count_entries(in_scratch(ROOT "/tmp"), ""), 0); }

Test(store, gives_back_what_was_put)
{
    cr_expect_not(get_from(store));
    put_into(store);
    cr_expect(get_from(store));
    const struct afj_store_counters counters = afj_store_counters(store);
    cr_expect_eq(counters.hits, 1);
    cr_expect_eq(counters.misses, 1);
    cr_expect_eq(counters.stored, 1);
    cr_expect_eq(counters.rejects + counters.store_failures, 0);
    cr_expect_str_eq(afj_store_directory(store), in_scratch("cache"));
    cr_expect_str_eq(afj_store_origin(store), "AFDEP_JIT_CACHE");
    cr_expect_str_eq(afj_store_note(store), "");
    cr_expect(afj_store_writable(store));
    expect_no_litter();
}

Test(store, another_process_finds_it)
{
    put_into(store);
    struct afj_store *other = afj_store_open();
    cr_expect(get_from(other));
    afj_store_close(other);
}

Test(store, lists_all_facts_behind_the_callers_lines)
{
    void *found;
    char *lines;
    size_t length;
    put_into(store);
    cr_assert(afj_store_get(store, &key, manifest, sizeof manifest - 1, &found, &length, &lines));
    cr_expect_str_eq(lines, "registers=40\nspill_bytes=0\nrole=source\nratio=2A2F\ndtype=bf16\n"
                            "topo=domains=1\narch=sm_90a\nhidden=4096\ncompile_us=12500\n");
    free(found);
    free(lines);
}

Test(store, facts_may_be_missing)
{
    void *found;
    char *lines;
    size_t length;
    afj_store_put(store, &key, manifest, sizeof manifest - 1, image, sizeof image, NULL);
    cr_assert(afj_store_get(store, &key, manifest, sizeof manifest - 1, &found, &length, &lines));
    cr_expect_str_eq(lines, "");
    free(found);
    free(lines);
}

Test(store, a_second_put_of_the_same_image_writes_nothing)
{
    struct stat before, after;
    put_into(store);
    cr_assert_eq(stat(in_scratch(OBJECT), &before), 0);
    put_into(store);
    cr_assert_eq(stat(in_scratch(OBJECT), &after), 0);
    cr_expect_eq(before.st_ino, after.st_ino);
    cr_expect_eq(afj_store_counters(store).stored, 1);
    expect_no_litter();
}

Test(store, a_manifest_that_differs_in_one_byte_is_a_miss)
{
    char other[sizeof manifest];
    void *found;
    char *lines;
    size_t length;
    put_into(store);
    for (size_t i = 0; i < sizeof manifest - 1; ++i) {
        memcpy(other, manifest, sizeof other);
        other[i] ^= 1;
        cr_expect_not(afj_store_get(store, &key, other, sizeof other - 1, &found, &length, &lines),
                      "%zu", i);
    }
    cr_expect(get_from(store), "it is no damage and stays");
    cr_expect_eq(afj_store_counters(store).rejects, 0);
    /* The last one put is the one that is kept. */
    afj_store_put(store, &key, other, sizeof other - 1, image, sizeof image, &facts);
    cr_expect_not(get_from(store));
    put_into(store);
    cr_expect(get_from(store));
}

Test(store, a_truncated_object_is_a_miss)
{
    void *bytes;
    size_t whole;
    put_into(store);
    read_whole(in_scratch(OBJECT), &bytes, &whole);
    for (size_t length = 0; length < whole; ++length) {
        write_file(in_scratch(OBJECT), bytes, length);
        cr_expect_not(get_from(store), "cut to %zu", length);
        cr_expect_not(exists(in_scratch(OBJECT)), "cut to %zu", length);
        cr_expect(exists(in_scratch(QUARANTINED)), "cut to %zu", length);
    }
    cr_expect_eq(afj_store_counters(store).rejects, whole);
    cr_expect_eq(afj_store_counters(store).misses, whole);
    free(bytes);
}

Test(store, a_flipped_bit_is_a_miss_and_lands_in_bad)
{
    void *bytes;
    size_t whole;
    put_into(store);
    read_whole(in_scratch(OBJECT), &bytes, &whole);
    char *damaged = bytes;
    for (size_t i = 0; i < whole; ++i) {
        const char flip = (char)(1 << i % 8);
        damaged[i] ^= flip;
        write_file(in_scratch(OBJECT), bytes, whole);
        cr_expect_not(get_from(store), "byte %zu", i);
        cr_expect_not(exists(in_scratch(OBJECT)), "byte %zu", i);
        damaged[i] ^= flip;
    }
    cr_expect_eq(afj_store_counters(store).rejects, whole);
    cr_expect_eq(count_entries(in_scratch(ROOT "/bad"), ""), 1);
    put_into(store);
    cr_expect(get_from(store), "it is made again");
    free(bytes);
}

Test(store, a_foreign_file_is_a_miss)
{
    static const char foreign[] = "\x7f"
                                  "ELF and so on, and on, and on, for longer than a header is long";
    put_into(store);
    write_file(in_scratch(OBJECT), foreign, sizeof foreign);
    cr_expect_not(get_from(store));
    cr_expect(exists(in_scratch(QUARANTINED)));
}

Test(store, an_object_under_another_keys_name_is_a_miss)
{
    struct afj_digest other = key;
    other.bytes[15] = 0x0e;
    put_into(store);
    cr_assert_eq(
        rename(in_scratch(OBJECT), in_scratch(ROOT "/obj/ab/abcd000000000000000000000000000e.afo")),
        0);
    cr_expect_not(get_object(store, &other, image, sizeof image));
    cr_expect_eq(afj_store_counters(store).rejects, 1);
}

/* Each of them is in the way of the object's name. */
static void expect_obstacle_is_overcome(const char *what)
{
    cr_expect_not(get_from(store), "%s", what);
    put_into(store);
    cr_expect(get_from(store), "%s", what);
    cr_assert_eq(unlink(in_scratch(OBJECT)), 0);
    expect_no_litter();
}

Test(store, what_is_no_file_is_a_miss_and_is_replaced, .timeout = 20)
{
    cr_assert_eq(afj_path_make_directories(in_scratch(ROOT "/obj/ab")), 0);
    write_file(in_scratch("target"), "x", 1);
    cr_assert_eq(symlink(in_scratch("target"), in_scratch(OBJECT)), 0);
    expect_obstacle_is_overcome("a link");
    cr_assert_eq(mkfifo(in_scratch(OBJECT), 0600), 0);
    expect_obstacle_is_overcome("a fifo");
    cr_assert_eq(unlink(in_scratch(QUARANTINED)), 0);
    cr_assert_eq(mkdir(in_scratch(OBJECT), 0700), 0);
    expect_obstacle_is_overcome("a directory");
    cr_expect(exists(in_scratch("target")));
}

Test(store, an_object_that_cannot_be_read_is_a_miss)
{
    if (geteuid() == 0)
        skip_because("root reads everything");
    put_into(store);
    cr_assert_eq(chmod(in_scratch(OBJECT), 0), 0);
    cr_expect_not(get_from(store));
    cr_expect_eq(afj_store_counters(store).rejects, 0);
    put_into(store);
    cr_expect(get_from(store));
}

Test(store, a_put_over_a_damaged_object_replaces_it)
{
    void *bytes;
    size_t whole;
    put_into(store);
    read_whole(in_scratch(OBJECT), &bytes, &whole);
    write_file(in_scratch(OBJECT), bytes, whole / 2);
    put_into(store);
    cr_expect(get_from(store));
    cr_expect_eq(afj_store_counters(store).stored, 2);
    free(bytes);
}

Test(store, a_rejected_object_is_not_offered_again_until_it_is_put_again)
{
    put_into(store);
    afj_store_reject(store, &key);
    cr_expect_not(get_from(store));
    cr_expect(exists(in_scratch(QUARANTINED)));
    cr_expect_eq(afj_store_counters(store).rejects, 1);
    put_into(store);
    cr_expect(get_from(store));
}

Test(store, rejecting_what_is_not_there_does_nothing)
{
    afj_store_reject(store, &key);
    cr_expect_eq(afj_store_counters(store).rejects, 0);
    put_into(store);
    cr_expect(get_from(store));
}

Test(store, the_bad_ones_are_bounded)
{
    for (int i = 0; i < 100; ++i)
        write_file(in_scratch(ROOT "/bad/%d", i), "", 0);
    put_into(store);
    write_file(in_scratch(OBJECT), "", 0);
    cr_expect_not(get_from(store));
    cr_expect_not(exists(in_scratch(OBJECT)));
    cr_expect_eq(count_entries(in_scratch(ROOT "/bad"), ""), 100);
}

Test(store, off_keeps_nothing_and_is_no_failure)
{
    setenv("AFDEP_JIT_CACHE", "off", 1);
    struct afj_store *off = afj_store_open();
    put_into(off);
    cr_expect_not(get_from(off));
    afj_store_reject(off, &key);
    cr_expect_str_eq(afj_store_directory(off), "");
    cr_expect_not(afj_store_writable(off));
    cr_expect_eq(afj_store_counters(off).store_failures, 0);
    cr_expect_eq(afj_store_counters(off).misses, 1);
    afj_store_close(off);
}

Test(store, a_place_that_cannot_be_made_costs_only_the_storing)
{
    write_file(in_scratch("file"), "x", 1);
    setenv("AFDEP_JIT_CACHE", in_scratch("file"), 1);
    struct afj_store *none = afj_store_open();
    put_into(none);
    cr_expect_not(get_from(none));
    cr_expect_not(afj_store_writable(none));
    cr_expect(strlen(afj_store_note(none)) > 0);
    cr_expect_eq(afj_store_counters(none).store_failures, 1);
    afj_store_close(none);
}

Test(store, what_cannot_be_written_is_still_read)
{
    put_into(store);
    cr_assert_eq(rmdir(in_scratch(ROOT "/tmp")), 0);
    write_file(in_scratch(ROOT "/tmp"), "in the way", 10);
    struct afj_store *reader = afj_store_open();
    cr_expect(get_from(reader));
    cr_expect_not(afj_store_writable(reader));
    afj_store_close(reader);
}

Test(store, a_failure_that_may_pass_does_not_end_writing)
{
    cr_assert_eq(rmdir(in_scratch(ROOT "/tmp")), 0);
    write_file(in_scratch(ROOT "/tmp"), "in the way", 10);
    put_into(store);
    cr_expect_eq(afj_store_counters(store).store_failures, 1);
    cr_assert_eq(unlink(in_scratch(ROOT "/tmp")), 0);
    put_into(store);
    cr_expect(get_from(store));
}

Test(store, a_tree_that_was_deleted_is_made_again)
{
    put_into(store);
    afj_path_remove_tree(in_scratch("cache"));
    cr_expect_not(get_from(store));
    put_into(store);
    cr_expect(get_from(store));
    cr_expect_eq(afj_store_counters(store).store_failures, 0);
    expect_no_litter();
}

/* Run a part of a test in a process of its own; what it expects is its exit status. */
static pid_t begin_child(int (*part)(void))
{
    const pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0)
        _exit(part());
    return child;
}

static void expect_child(pid_t child)
{
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

static int put_many_times(void)
{
    struct afj_store *own = afj_store_open();
    for (int i = 0; i < 50; ++i) {
        put_into(own);
        if (i % 5 == 0)
            unlink(in_scratch(OBJECT));
        if (afj_store_counters(own).store_failures || afj_store_counters(own).rejects)
            return 1;
    }
    afj_store_close(own);
    return 0;
}

Test(store, processes_that_put_the_same_key_do_no_harm)
{
    const pid_t one = begin_child(put_many_times), two = begin_child(put_many_times);
    for (int i = 0; i < 500; ++i)
        (void)get_from(store); /* whatever comes is whole */
    expect_child(one);
    expect_child(two);
    cr_expect_eq(afj_store_counters(store).rejects, 0);
    put_into(store);
    cr_expect(get_from(store));
    expect_no_litter();
}

static int use_the_parents_store(void)
{
    put_into(store);
    const bool found = get_from(store);
    afj_store_close(store);
    return found ? 0 : 1;
}

Test(store, a_forked_child_may_go_on_with_it)
{
    struct afj_digest other = key;
    other.bytes[1] ^= 1;
    put_object(store, &other, image, sizeof image);
    expect_child(begin_child(use_the_parents_store));
    cr_expect(get_from(store));
}

static int put_over_the_limit(void)
{
    static char large[100000];
    const struct rlimit limit = {4096, 4096};
    sigset_t pending;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 2;
    put_object(store, &key, large, sizeof large);
    if (afj_store_counters(store).store_failures != 1 || sigpending(&pending) != 0 ||
        sigismember(&pending, SIGXFSZ))
        return 3;
    /* The mask is as it was: a write of somebody else raises the signal. */
    sigset_t mask;
    return pthread_sigmask(SIG_BLOCK, NULL, &mask) != 0 || sigismember(&mask, SIGXFSZ) ? 4 : 0;
}

Test(store, a_limit_of_file_size_costs_only_the_storing)
{
    expect_child(begin_child(put_over_the_limit));
    expect_no_litter();
    cr_expect_not(exists(in_scratch(OBJECT)));
    cr_expect(afj_store_writable(store));
}

/* A file system of its own under "cache"; false where this process may not mount. */
static bool mount_small(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", in_scratch("cache"), "tmpfs", 0, "size=64k,mode=0700") == 0;
}

Test(store, a_full_file_system_costs_only_the_storing)
{
    static char large[100000];
    if (!mount_small())
        skip_because("no right to mount");
    struct afj_store *small = afj_store_open();
    put_into(small);
    struct afj_digest other = key;
    other.bytes[1] ^= 1;
    put_object(small, &other, large, sizeof large);
    cr_expect_eq(afj_store_counters(small).store_failures, 1);
    cr_expect_not(afj_store_writable(small));
    cr_expect_not_null(strstr(afj_store_note(small), strerror(ENOSPC)), "%s",
                       afj_store_note(small));
    cr_expect(get_from(small));
    expect_no_litter();
    afj_store_close(small);
    umount2(in_scratch("cache"), MNT_DETACH);
}

Test(store, a_read_only_file_system_is_read)
{
    if (!mount_small())
        skip_because("no right to mount");
    struct afj_store *small = afj_store_open();
    put_into(small);
    afj_store_close(small);
    cr_assert_eq(mount("none", in_scratch("cache"), NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    small = afj_store_open();
    cr_expect(get_from(small));
    cr_expect_not(afj_store_writable(small));
    cr_expect_not_null(strstr(afj_store_note(small), strerror(EROFS)), "%s", afj_store_note(small));
    /* What it cannot move away it remembers. */
    afj_store_reject(small, &key);
    cr_expect_not(get_from(small));
    cr_expect_eq(afj_store_counters(small).rejects, 1);
    afj_store_close(small);
    umount2(in_scratch("cache"), MNT_DETACH);
}
