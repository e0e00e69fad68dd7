/* test_location.c: which directory holds the cache, and which are refused. */
#include "support/scratch.h"

#include "cache/location.h"

static struct afj_location location;

static void begin(void)
{
    make_scratch();
    umask(022);
    setenv("AFDEP_LOG", "off", 1);
    unsetenv("AFDEP_JIT_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("TMPDIR");
    setenv("HOME", scratch, 1);
}

static void end(void)
{
    afj_location_finish(&location);
    remove_scratch();
}

TestSuite(location, .init = begin, .fini = end);

/* On another kind of file system the home is never chosen. */
static void need_local_scratch(void)
{
    if (!afj_location_is_local(scratch))
        skip_because("TMPDIR is not on a local file system");
}

static void expect_place(const char *directory, const char *origin)
{
    afj_location_find(&location);
    cr_assert_not_null(location.directory, "%s", location.note);
    cr_expect_str_eq(location.directory, directory);
    cr_expect_str_eq(location.origin, origin);
    cr_expect(location.writable, "%s", location.note);
    cr_expect_str_eq(location.note, "");
}

static void expect_memory_only(const char *words)
{
    afj_location_find(&location);
    cr_expect_null(location.directory);
    cr_expect_null(location.root);
    cr_expect_not(location.writable);
    cr_expect_not_null(strstr(location.note, words), "\"%s\" is not in \"%s\"", words,
                       location.note);
}

Test(location, is_the_directory_that_the_user_names)
{
    setenv("AFDEP_JIT_CACHE", in_scratch("a b/\xc3\xa9"), 1);
    expect_place(in_scratch("a b/\xc3\xa9"), "AFDEP_JIT_CACHE");
    cr_expect_str_eq(location.root, in_scratch("a b/\xc3\xa9/afdep-jit.v1"));
}

Test(location, a_relative_name_becomes_absolute)
{
    cr_assert_eq(chdir(scratch), 0);
    setenv("AFDEP_JIT_CACHE", "here", 1);
    expect_place(in_scratch("here"), "AFDEP_JIT_CACHE");
}

Test(location, a_relative_name_in_a_deleted_directory_is_memory_only)
{
    cr_assert_eq(mkdir(in_scratch("gone"), 0700), 0);
    cr_assert_eq(chdir(in_scratch("gone")), 0);
    cr_assert_eq(rmdir(in_scratch("gone")), 0);
    setenv("AFDEP_JIT_CACHE", "here", 1);
    expect_memory_only("current directory");
}

Test(location, off_is_memory_only_and_touches_nothing)
{
    setenv("AFDEP_JIT_CACHE", "off", 1);
    expect_memory_only("off");
    cr_expect(location.asked_off);
    cr_expect_eq(count_entries(scratch, ""), 0);
}

Test(location, without_a_name_it_is_where_caches_go)
{
    need_local_scratch();
    setenv("AFDEP_JIT_CACHE", "", 1);
    expect_place(in_scratch(".cache/afdep-jit"), "HOME");
    afj_location_finish(&location);
    setenv("XDG_CACHE_HOME", in_scratch("xdg"), 1);
    expect_place(in_scratch("xdg/afdep-jit"), "XDG_CACHE_HOME");
    afj_location_finish(&location);
    setenv("XDG_CACHE_HOME", "relative", 1);
    expect_place(in_scratch(".cache/afdep-jit"), "HOME");
}

static void expect_temporary(const char *reason)
{
    char name[64];
    setenv("TMPDIR", in_scratch("tmp"), 1);
    snprintf(name, sizeof name, "tmp/afdep-jit-%lu", (unsigned long)geteuid());
    afj_location_find(&location);
    cr_assert_not_null(location.directory, "%s", location.note);
    cr_expect_str_eq(location.directory, in_scratch("%s", name));
    cr_expect_not_null(strstr(location.origin, "TMPDIR"), "%s", location.origin);
    cr_expect_not_null(strstr(location.origin, reason), "%s", location.origin);
    cr_expect(location.writable);
}

Test(location, a_home_that_is_not_there_is_not_made)
{
    setenv("HOME", in_scratch("nobody"), 1);
    expect_temporary("no home directory");
    cr_expect_not(exists(in_scratch("nobody")));
}

Test(location, a_home_on_another_kind_of_file_system_is_left_alone)
{
    setenv("HOME", "/proc/self", 1);
    expect_temporary("local file system");
}

Test(location, a_home_where_nothing_can_be_made_is_left_alone)
{
    need_local_scratch();
    write_file(in_scratch(".cache"), "a file", 6);
    expect_temporary("cannot be made");
}

Test(location, a_temporary_directory_that_is_a_link_is_refused)
{
    char name[64];
    snprintf(name, sizeof name, "afdep-jit-%lu", (unsigned long)geteuid());
    cr_assert_eq(mkdir(in_scratch("elsewhere"), 0700), 0);
    cr_assert_eq(symlink("elsewhere", in_scratch("%s", name)), 0);
    setenv("HOME", in_scratch("nobody"), 1);
    setenv("TMPDIR", scratch, 1);
    expect_memory_only("is not a directory");
    cr_expect_eq(count_entries(in_scratch("elsewhere"), ""), 0);
}

Test(location, what_the_user_names_is_never_replaced_by_another_place)
{
    write_file(in_scratch("file"), "x", 1);
    setenv("AFDEP_JIT_CACHE", in_scratch("file/below"), 1);
    expect_memory_only("cannot be made");
    afj_location_finish(&location);
    setenv("AFDEP_JIT_CACHE", "/proc/self/cache", 1);
    expect_memory_only("cannot be made");
    cr_expect_eq(count_entries(scratch, ""), 1);
}

Test(location, a_directory_where_others_may_write_is_refused)
{
    setenv("AFDEP_JIT_CACHE", in_scratch("open"), 1);
    cr_assert_eq(mkdir(in_scratch("open"), 0700), 0);
    cr_assert_eq(chmod(in_scratch("open"), 0770), 0);
    expect_memory_only("mode 0770");
    cr_expect_eq(count_entries(in_scratch("open"), ""), 0);
    cr_assert_eq(chmod(in_scratch("open"), 0755), 0);
    cr_assert_eq(mkdir(in_scratch("open/afdep-jit.v1"), 0700), 0);
    cr_assert_eq(chmod(in_scratch("open/afdep-jit.v1"), 0702), 0);
    expect_memory_only("mode 0702");
}

Test(location, a_root_that_is_a_link_is_refused)
{
    setenv("AFDEP_JIT_CACHE", in_scratch("own"), 1);
    cr_assert_eq(mkdir(in_scratch("own"), 0700), 0);
    cr_assert_eq(mkdir(in_scratch("elsewhere"), 0700), 0);
    cr_assert_eq(symlink(in_scratch("elsewhere"), in_scratch("own/afdep-jit.v1")), 0);
    expect_memory_only("is not a directory");
}

Test(location, a_directory_of_another_user_is_refused)
{
    if (geteuid() != 0)
        skip_because("only root can give a directory away");
    setenv("AFDEP_JIT_CACHE", in_scratch("theirs"), 1);
    cr_assert_eq(mkdir(in_scratch("theirs"), 0700), 0);
    cr_assert_eq(chown(in_scratch("theirs"), 12345, (gid_t)-1), 0);
    expect_memory_only("belongs to user 12345");
}

Test(location, a_directory_that_cannot_be_written_is_read)
{
    setenv("AFDEP_JIT_CACHE", in_scratch("own"), 1);
    cr_assert_eq(afj_path_make_directories(in_scratch("own/afdep-jit.v1")), 0);
    write_file(in_scratch("own/afdep-jit.v1/tmp"), "in the way", 10);
    afj_location_find(&location);
    cr_assert_not_null(location.root);
    cr_expect_not(location.writable);
    cr_expect_not_null(strstr(location.note, "only read"), "%s", location.note);
}

Test(location, has_the_layout_that_the_format_says)
{
    void *tag;
    size_t length;
    setenv("AFDEP_JIT_CACHE", scratch, 1);
    expect_place(scratch, "AFDEP_JIT_CACHE");
    cr_expect_eq(count_entries(in_scratch("afdep-jit.v1"), ""), 5);
    cr_expect_eq(count_entries(in_scratch("afdep-jit.v1/obj"), ""), 0);
    cr_expect_eq(count_entries(in_scratch("afdep-jit.v1/tmp"), ""), 0);
    cr_expect_eq(count_entries(in_scratch("afdep-jit.v1/bad"), ""), 0);
    cr_expect(exists(in_scratch("afdep-jit.v1/README")));
    cr_assert_eq(afj_path_read(in_scratch("afdep-jit.v1/CACHEDIR.TAG"), false, 1000, &tag, &length),
                 0);
    cr_expect_eq(strncmp(tag, "Signature: 8a477f597d28d172789f06886806bc55\n", 44), 0);
    free(tag);
}

Test(location, an_object_lies_under_its_key)
{
    struct afj_text path = {0};
    const struct afj_digest key = {{0xab, 0x01, [15] = 0xff}};
    setenv("AFDEP_JIT_CACHE", scratch, 1);
    afj_location_find(&location);
    afj_location_add_object(&location, &key, &path);
    cr_expect_str_eq(path.data,
                     in_scratch("afdep-jit.v1/obj/ab/ab0100000000000000000000000000ff.afo"));
    afj_text_finish(&path);
}

Test(location, temporary_names_differ)
{
    struct afj_text a = {0}, b = {0};
    afj_location_add_temporary("/r", &a);
    afj_location_add_temporary("/r", &b);
    cr_expect_str_neq(a.data, b.data);
    cr_expect_eq(strncmp(a.data, "/r/tmp/", 7), 0);
    afj_text_finish(&a);
    afj_text_finish(&b);
}

Test(location, proc_is_no_local_file_system_and_a_missing_path_is_judged_by_its_parent)
{
    cr_expect_not(afj_location_is_local("/proc/self"));
    cr_expect_not(afj_location_is_local("/proc/no/such/thing"));
    cr_expect_eq(afj_location_is_local(scratch), afj_location_is_local(in_scratch("no/such")));
    cr_expect_eq(afj_location_is_local("/"), afj_location_is_local("/no-such-thing"));
}
