/* dl.c: shared libraries opened at run time, and what is known of the mapped file. */
#include "base/dl.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bounds on what is read of a file on disk: no real library comes near them. */
enum { MOST_SEGMENTS = 256, MOST_NOTE_BYTES = 65536 };

/* Add why `name` did not open. The loader's text mostly begins with the name already. */
static void add_reason(char *note, size_t size, const char *name, const char *reason)
{
    size_t used = strlen(note);
    const char *between = used > 0 ? "; " : "";
    if (strncmp(reason, name, strlen(name)) == 0)
        snprintf(note + used, size - used, "%s%s", between, reason);
    else
        snprintf(note + used, size - used, "%s%s: %s", between, name, reason);
}

struct afj_dl *afj_dl_open(const char *const *names, size_t count, char *note, size_t size)
{
    if (size > 0)
        note[0] = '\0';
    for (size_t i = 0; i < count; ++i) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
        const char *reason = dlerror();
        if (size > 0)
            add_reason(note, size, names[i], reason ? reason : "no reason given");
    }
    return NULL;
}

void *afj_dl_symbol(struct afj_dl *library, const char *name) { return dlsym(library, name); }

void afj_dl_path_of(const void *address, char *path, size_t size)
{
    Dl_info found;
    if (size == 0)
        return;
    path[0] = '\0';
    if (!dladdr(address, &found) || !found.dli_fname)
        return;
    char *resolved = NULL;
    const char *absolute = found.dli_fname;
    /* A library opened by a relative name, or the program itself. */
    if (absolute[0] != '/')
        absolute = resolved = realpath(found.dli_fname, NULL);
    if (absolute && strlen(absolute) < size)
        memcpy(path, absolute, strlen(absolute) + 1);
    free(resolved);
}

/* Find the build-id among ELF notes and write it as hex. Every length is checked against the end:
 * the bytes may come from any file. */
static bool find_build_id(const unsigned char *notes, size_t bytes, size_t align, char *hex,
                          size_t size)
{
    size_t at = 0;
    size_t mask = align == 8 ? 7 : 3;
    while (bytes - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        size_t name_at = at + sizeof note;
        size_t name_room = bytes - name_at;
        if (note.n_namesz > name_room)
            return false;
        size_t id_at = (name_at + note.n_namesz + mask) & ~mask;
        if (id_at > bytes || note.n_descsz > bytes - id_at)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name_at, "GNU", 4) == 0) {
            if (note.n_descsz == 0 || note.n_descsz >= size / 2)
                return false;
            for (size_t i = 0; i < note.n_descsz; ++i)
                snprintf(hex + 2 * i, 3, "%02x", (unsigned)notes[id_at + i]);
            return true;
        }
        size_t next = (id_at + note.n_descsz + mask) & ~mask;
        if (next > bytes)
            return false;
        at = next;
    }
    return false;
}

struct build_id_query {
    uintptr_t address;
    char *hex;
    size_t size;
};

/* For dl_iterate_phdr: 1 once the object that holds the address was seen. */
static int look_into_object(struct dl_phdr_info *object, size_t object_size, void *argument)
{
    (void)object_size;
    struct build_id_query *query = argument;
    bool holds = false;
    for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && query->address >= start &&
            query->address - start < segment->p_memsz)
            holds = true;
    }
    if (!holds)
        return 0;
    for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (find_build_id((const unsigned char *)start, segment->p_memsz, segment->p_align,
                          query->hex, query->size))
            break;
    }
    return 1;
}

void afj_dl_build_id_of(const void *address, char *hex, size_t size)
{
    if (size == 0)
        return;
    hex[0] = '\0';
    struct build_id_query query = {(uintptr_t)address, hex, size};
    dl_iterate_phdr(look_into_object, &query);
}

static bool read_at(int descriptor, void *to, size_t bytes, uint64_t at)
{
    if (at > INT64_MAX)
        return false;
    ssize_t got = pread(descriptor, to, bytes, (off_t)at);
    return got >= 0 && (size_t)got == bytes;
}

static bool read_note_segment(int descriptor, const ElfW(Phdr) * segment, char *hex, size_t size)
{
    size_t bytes = segment->p_filesz;
    if (bytes == 0 || bytes > MOST_NOTE_BYTES)
        return false;
    unsigned char *notes = malloc(bytes);
    bool found = notes && read_at(descriptor, notes, bytes, segment->p_offset) &&
                 find_build_id(notes, bytes, segment->p_align, hex, size);
    free(notes);
    return found;
}

static void read_build_id(int descriptor, char *hex, size_t size)
{
    ElfW(Ehdr) head;
    struct stat is;
    if (fstat(descriptor, &is) != 0 || !S_ISREG(is.st_mode) ||
        !read_at(descriptor, &head, sizeof head, 0))
        return;
    unsigned char native = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != native ||
        head.e_phentsize != sizeof(ElfW(Phdr)) || head.e_phnum > MOST_SEGMENTS)
        return;
    for (unsigned i = 0; i < head.e_phnum; ++i) {
        ElfW(Phdr) segment;
        uint64_t at = head.e_phoff + (uint64_t)i * sizeof segment;
        if (!read_at(descriptor, &segment, sizeof segment, at))
            return;
        if (segment.p_type == PT_NOTE && read_note_segment(descriptor, &segment, hex, size))
            return;
    }
}

void afj_dl_build_id_of_file(const char *path, char *hex, size_t size)
{
    if (size == 0)
        return;
    hex[0] = '\0';
    /* Not to hang on a FIFO, nor to take a terminal. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return;
    read_build_id(descriptor, hex, size);
    close(descriptor);
}
