/* test_dl.c: libraries opened at run time, and the build-ids of what is mapped and of files. */
#include <criterion/criterion.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dl.h"

/* A function of the C library, by an address that is not the program's own jump table. */
static const void *in_libc(void)
{
    static const char *const names[] = {"libc.so.6"};
    char note[256];
    struct afj_dl *library = afj_dl_open(names, 1, note, sizeof note);
    cr_assert_not_null(library, "%s", note);
    void *address = afj_dl_symbol(library, "qsort");
    cr_assert_not_null(address);
    return address;
}

Test(dl, a_missing_library_is_noted_by_every_name_tried)
{
    static const char *const names[] = {"libafdep-one.so.1", "/afdep.invalid/libafdep-two.so"};
    char note[512] = "stale";
    cr_assert_null(afj_dl_open(names, 2, note, sizeof note));
    cr_assert(strstr(note, names[0]), "%s", note);
    cr_assert(strstr(note, names[1]), "%s", note);
    cr_assert_null(strstr(note, "stale"));
}

Test(dl, a_note_too_short_for_the_reasons_is_cut_and_ends)
{
    static const char *const names[] = {"libafdep-one.so.1", "libafdep-two.so.1"};
    char note[24];
    memset(note, 'x', sizeof note);
    cr_assert_null(afj_dl_open(names, 2, note, 8));
    cr_assert_lt(strnlen(note, sizeof note), 8);
    cr_assert_eq(note[8], 'x');
    cr_assert_null(afj_dl_open(names, 2, NULL, 0));
}

Test(dl, the_first_name_that_opens_is_taken)
{
    static const char *const names[] = {"libafdep-one.so.1", "libc.so.6"};
    char note[256];
    struct afj_dl *library = afj_dl_open(names, 2, note, sizeof note);
    cr_assert_not_null(library, "%s", note);
    cr_assert_not_null(afj_dl_symbol(library, "malloc"));
    cr_assert_null(afj_dl_symbol(library, "afdep_no_such_symbol"));
}

Test(dl, the_build_id_of_libc_is_hex_and_the_same_mapped_and_on_disk)
{
    char path[4096], mapped[129], on_disk[129];
    afj_dl_path_of(in_libc(), path, sizeof path);
    cr_assert_eq(path[0], '/', "%s", path);
    afj_dl_build_id_of(in_libc(), mapped, sizeof mapped);
    if (!*mapped)
        cr_skip_test("this C library has no build-id");
    cr_assert_geq(strlen(mapped), 16);
    cr_assert_eq(strspn(mapped, "0123456789abcdef"), strlen(mapped), "%s", mapped);
    afj_dl_build_id_of_file(path, on_disk, sizeof on_disk);
    cr_assert_str_eq(mapped, on_disk);
}

Test(dl, a_build_id_without_room_is_none)
{
    char hex[8];
    memset(hex, 'x', sizeof hex);
    afj_dl_build_id_of(in_libc(), hex, 5);
    cr_assert_str_eq(hex, "");
    cr_assert_eq(hex[5], 'x');
}

Test(dl, what_no_file_holds_has_no_path_and_no_build_id)
{
    char path[64] = "stale", hex[64] = "stale";
    void *heap = malloc(16);
    cr_assert_not_null(heap);
    afj_dl_path_of(heap, path, sizeof path);
    cr_assert_str_eq(path, "");
    afj_dl_build_id_of(heap, hex, sizeof hex);
    cr_assert_str_eq(hex, "");
    free(heap);
}

Test(dl, what_is_no_library_has_no_build_id)
{
    static const char *const paths[] = {"/afdep.invalid", "/", "/dev/null"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; ++i) {
        char hex[64] = "stale";
        afj_dl_build_id_of_file(paths[i], hex, sizeof hex);
        cr_assert_str_eq(hex, "", "%s", paths[i]);
    }
}

/* Opening a FIFO for reading waits for a writer unless it is told not to. */
Test(dl, a_fifo_does_not_hang, .timeout = 10)
{
    char directory[] = "/tmp/afdep-dl-XXXXXX", path[64], hex[64] = "stale";
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/fifo", directory);
    cr_assert_eq(mkfifo(path, 0600), 0);
    afj_dl_build_id_of_file(path, hex, sizeof hex);
    unlink(path);
    rmdir(directory);
    cr_assert_str_eq(hex, "");
}

/* An ELF file of a header, one note segment and its note, whose lengths lie as told. */
static void write_note_file(const char *path, uint32_t name_length, uint32_t id_length,
                            uint64_t segment_length)
{
    struct {
        ElfW(Ehdr) head;
        ElfW(Phdr) segment;
        ElfW(Nhdr) note;
        unsigned char name[4], id[8];
    } file;
    memset(&file, 0, sizeof file);
    memcpy(file.head.e_ident, ELFMAG, SELFMAG);
    file.head.e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    file.head.e_phoff = sizeof file.head;
    file.head.e_phentsize = sizeof file.segment;
    file.head.e_phnum = 1;
    file.segment.p_type = PT_NOTE;
    file.segment.p_offset = sizeof file.head + sizeof file.segment;
    file.segment.p_filesz = (ElfW(Xword))segment_length;
    file.segment.p_align = 4;
    file.note.n_namesz = name_length;
    file.note.n_descsz = id_length;
    file.note.n_type = NT_GNU_BUILD_ID;
    memcpy(file.name, "GNU", 4);
    memset(file.id, 0xa5, sizeof file.id);
    FILE *out = fopen(path, "wb");
    cr_assert_not_null(out);
    cr_assert_eq(fwrite(&file, sizeof file, 1, out), 1);
    cr_assert_eq(fclose(out), 0);
}

/* The sanitizers find a read behind the note. */
Test(dl, lengths_in_a_note_are_not_believed)
{
    static const struct {
        uint32_t name, id;
        uint64_t segment;
        const char *hex;
    } cases[] = {
        {4, 8, 24, "a5a5a5a5a5a5a5a5"},
        {4, 9, 24, ""},
        {4, UINT32_MAX, 24, ""},
        {UINT32_MAX, 8, 24, ""},
        {UINT32_MAX, UINT32_MAX, 24, ""},
        {4, 0, 24, ""},
        {4, 8, 23, ""},
        {4, 8, 3, ""},
        {4, 8, 0, ""},
        {4, 8, 25, ""},
        {4, 8, UINT64_MAX, ""},
    };
    char path[] = "/tmp/afdep-dl-XXXXXX";
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    close(descriptor);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char hex[64] = "stale";
        write_note_file(path, cases[i].name, cases[i].id, cases[i].segment);
        afj_dl_build_id_of_file(path, hex, sizeof hex);
        cr_expect_str_eq(hex, cases[i].hex, "case %zu: %s", i, hex);
    }
    unlink(path);
}
