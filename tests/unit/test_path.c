/* test_path.c: files and directories, and the errno of what goes wrong. */
#include <errno.h>

#include "support/scratch.h"

TestSuite(path, .init = make_scratch, .fini = remove_scratch);

Test(path, makes_directories_and_their_parents_for_their_owner_only)
{
    struct stat is;
    umask(022);
    cr_assert_eq(afj_path_make_directories(in_scratch("a//b/c/")), 0);
    cr_assert_eq(stat(in_scratch("a/b"), &is), 0);
    cr_expect_eq(is.st_mode & 07777, 0700);
    cr_expect_eq(afj_path_make_directories(in_scratch("a/b/c")), 0);
    cr_expect_eq(afj_path_make_directories("/"), 0);
}

Test(path, a_file_is_no_directory)
{
    write_file(in_scratch("file"), "x", 1);
    cr_expect_eq(afj_path_make_directories(in_scratch("file")), -1);
    cr_expect_eq(errno, ENOTDIR);
    cr_expect_eq(afj_path_make_directories(in_scratch("file/below")), -1);
    cr_expect_eq(errno, ENOTDIR);
    cr_expect_eq(afj_path_make_directories(""), -1);
    cr_expect_eq(errno, ENOENT);
}

Test(path, reads_what_was_written)
{
    static char bytes[100000];
    void *data;
    size_t length;
    for (size_t i = 0; i < sizeof bytes; ++i)
        bytes[i] = (char)(i * 31);
    write_file(in_scratch("file"), bytes, sizeof bytes);
    cr_assert_eq(afj_path_read(in_scratch("file"), false, sizeof bytes, &data, &length), 0);
    cr_expect_eq(length, sizeof bytes);
    cr_expect_eq(memcmp(data, bytes, sizeof bytes), 0);
    cr_expect_eq(((char *)data)[length], '\0');
    free(data);
    cr_expect_eq(afj_path_read(in_scratch("file"), false, sizeof bytes - 1, &data, &length), -1);
    cr_expect_eq(errno, EFBIG);
}

Test(path, reads_files_whose_size_is_not_known)
{
    void *data;
    size_t length;
    cr_assert_eq(afj_path_read("/proc/self/status", true, 1 << 20, &data, &length), 0);
    cr_expect(length > 0 && strstr(data, "Pid:") != NULL);
    free(data);
}

Test(path, takes_a_link_only_where_it_is_asked_to)
{
    void *data;
    size_t length;
    write_file(in_scratch("file"), "", 0);
    cr_assert_eq(symlink("file", in_scratch("link")), 0);
    cr_expect_eq(afj_path_read(in_scratch("link"), false, 10, &data, &length), -1);
    cr_expect_eq(errno, ELOOP);
    cr_assert_eq(afj_path_read(in_scratch("link"), true, 10, &data, &length), 0);
    cr_expect_eq(length, 0);
    free(data);
}

Test(path, what_is_no_regular_file_is_refused_at_once, .timeout = 10)
{
    void *data;
    size_t length;
    cr_assert_eq(mkfifo(in_scratch("fifo"), 0600), 0);
    cr_expect_eq(afj_path_read(in_scratch("fifo"), false, 10, &data, &length), -1);
    cr_expect_eq(errno, EINVAL);
    cr_expect_eq(afj_path_read(scratch, false, 10, &data, &length), -1);
    cr_expect_eq(errno, EISDIR);
    cr_expect_eq(afj_path_read(in_scratch("absent"), false, 10, &data, &length), -1);
    cr_expect_eq(errno, ENOENT);
}

Test(path, a_tree_is_removed_and_links_out_of_it_are_not_followed)
{
    cr_assert_eq(afj_path_make_directories(in_scratch("tree/a/b")), 0);
    write_file(in_scratch("tree/a/file"), "x", 1);
    write_file(in_scratch("outside"), "x", 1);
    cr_assert_eq(symlink(scratch, in_scratch("tree/a/out")), 0);
    afj_path_remove_tree(in_scratch("tree"));
    cr_expect_not(exists(in_scratch("tree")));
    cr_expect(exists(in_scratch("outside")));
}
