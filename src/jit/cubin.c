/* cubin.c: whether bytes are a cubin for an architecture that holds an entry. */
#include "jit/cubin.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The two layouts of CUDA ELF files: NVRTC 12 writes the first, NVRTC 13 the second. */
enum { OSABI_12 = 0x33, ABI_VERSION_12 = 7, OSABI_13 = 0x41, ABI_VERSION_13 = 8 };

/* Set in e_flags of the first layout for "sm_90a" as opposed to "sm_90". */
enum { FLAG_ACCELERATED_12 = 0x800 };

/* The file version of the first layout is the toolkit's: 126 for 12.6. */
enum { TOOLKIT_12_FIRST = 120, TOOLKIT_12_LAST = 129 };

/* An image as it is looked at. All offsets in it are unproven until `inside` has said yes. */
struct view {
    const unsigned char *bytes;
    size_t size;
    Elf64_Ehdr head;
    const char *section_names; /* the last byte is NUL */
    size_t section_names_size;
};

static afdep_status refuse(const char *why)
{
    return afj_fail(AFDEP_ERROR_LOAD, "the image is not a usable cubin: %s", why);
}

static bool inside(const struct view *view, uint64_t at, uint64_t length)
{
    return at <= view->size && length <= view->size - at;
}

/* Sections are copied out: the image may lie at any address. */
static Elf64_Shdr section_of(const struct view *view, unsigned index)
{
    Elf64_Shdr section;
    memcpy(&section, view->bytes + view->head.e_shoff + (size_t)index * sizeof section,
           sizeof section);
    return section;
}

static const char *section_name(const struct view *view, const Elf64_Shdr *section)
{
    return view->section_names + section->sh_name;
}

static afdep_status check_ident(const struct view *view)
{
    const Elf64_Ehdr *head = &view->head;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return refuse("it does not begin as an ELF file");
    if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB ||
        head->e_ident[EI_VERSION] != EV_CURRENT)
        return refuse("it is not a 64-bit little-endian ELF file");
    if (head->e_machine != EM_CUDA)
        return afj_fail(AFDEP_ERROR_LOAD,
                        "the image is not a usable cubin: its ELF machine is %u instead of %u",
                        (unsigned)head->e_machine, (unsigned)EM_CUDA);
    unsigned abi = head->e_ident[EI_OSABI];
    unsigned version = head->e_ident[EI_ABIVERSION];
    bool known = (abi == OSABI_12 && version == ABI_VERSION_12 &&
                  head->e_version >= TOOLKIT_12_FIRST && head->e_version <= TOOLKIT_12_LAST) ||
                 (abi == OSABI_13 && version == ABI_VERSION_13 && head->e_version == EV_CURRENT);
    if (!known)
        return afj_fail(AFDEP_ERROR_LOAD,
                        "the image is not a usable cubin: its CUDA ELF ABI 0x%x version %u (file "
                        "version %u) is not known",
                        abi, version, (unsigned)head->e_version);
    for (unsigned i = EI_PAD; i < EI_NIDENT; ++i)
        if (head->e_ident[i] != 0)
            return refuse("the unused bytes of its ELF header are not zero");
    return AFDEP_OK;
}

/* The rest of the header, and that its tables lie inside. */
static afdep_status check_tables(const struct view *view)
{
    const Elf64_Ehdr *head = &view->head;
    if (head->e_type != ET_EXEC || head->e_entry != 0 || head->e_ehsize != sizeof *head)
        return refuse("its ELF header is not that of a linked image");
    if (head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shnum == 0 || head->e_shoff % 8 != 0 ||
        !inside(view, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)))
        return refuse("its section table is damaged or cut off");
    if (head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phnum == 0 || head->e_phoff % 8 != 0 ||
        !inside(view, head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr)))
        return refuse("its segment table is damaged or cut off");
    for (unsigned i = 0; i < head->e_phnum; ++i) {
        Elf64_Phdr segment;
        memcpy(&segment, view->bytes + head->e_phoff + (size_t)i * sizeof segment, sizeof segment);
        /* The first segment describes the table itself. */
        if (i == 0 && (segment.p_type != PT_PHDR || segment.p_offset != head->e_phoff ||
                       segment.p_filesz != (uint64_t)head->e_phnum * sizeof segment))
            return refuse("its segment table does not describe itself");
        if (!inside(view, segment.p_offset, segment.p_filesz))
            return refuse("a segment is cut off");
    }
    return AFDEP_OK;
}

/* That every section lies inside and has a name, and where the names are. */
static afdep_status check_sections(struct view *view)
{
    const Elf64_Ehdr *head = &view->head;
    static const Elf64_Shdr none;
    Elf64_Shdr first = section_of(view, 0);
    if (memcmp(&first, &none, sizeof none) != 0)
        return refuse("its section table does not begin with an empty section");
    if (head->e_shstrndx >= head->e_shnum)
        return refuse("it has no section names");
    Elf64_Shdr names = section_of(view, head->e_shstrndx);
    if (names.sh_type != SHT_STRTAB || names.sh_size == 0 ||
        !inside(view, names.sh_offset, names.sh_size))
        return refuse("its section names are damaged or cut off");
    view->section_names = (const char *)view->bytes + names.sh_offset;
    view->section_names_size = names.sh_size;
    if (view->section_names[names.sh_size - 1] != '\0')
        return refuse("its section names do not end");
    for (unsigned i = 0; i < head->e_shnum; ++i) {
        Elf64_Shdr section = section_of(view, i);
        if (section.sh_name >= view->section_names_size)
            return refuse("a section has no name");
        if (section.sh_type != SHT_NOBITS && !inside(view, section.sh_offset, section.sh_size))
            return refuse("a section is cut off");
    }
    if (strcmp(section_name(view, &names), ".shstrtab") != 0)
        return refuse("its section names are not where the header says");
    return AFDEP_OK;
}

/* The word behind "-arch " in the note where ptxas keeps its command line; false if it keeps none.
 * It tells sm_90 from sm_90a, which e_flags of the second layout do not. */
static bool noted_arch(const struct view *view, char *arch, size_t size)
{
    static const char option[] = "-arch ";
    for (unsigned i = 0; i < view->head.e_shnum; ++i) {
        Elf64_Shdr section = section_of(view, i);
        if (section.sh_type != SHT_NOTE ||
            strcmp(section_name(view, &section), ".note.nv.tkinfo") != 0)
            continue;
        const unsigned char *note = view->bytes + section.sh_offset;
        const unsigned char *found = memmem(note, section.sh_size, option, sizeof option - 1);
        if (!found)
            return false;
        found += sizeof option - 1;
        size_t room = section.sh_size - (size_t)(found - note);
        size_t length = 0;
        while (length < room && length + 1 < size && found[length] > ' ')
            ++length;
        memcpy(arch, found, length);
        arch[length] = '\0';
        return true;
    }
    return false;
}

static afdep_status check_arch(const struct view *view, const char *arch)
{
    static const char prefix[] = "sm_";
    char *suffix = NULL;
    unsigned long wanted = 0;
    if (strncmp(arch, prefix, sizeof prefix - 1) == 0)
        wanted = strtoul(arch + sizeof prefix - 1, &suffix, 10);
    if (!suffix || wanted == 0 || wanted > 255)
        return afj_fail(AFDEP_ERROR_CONFIG, "%s is not an architecture such as sm_90a", arch);

    uint32_t flags = view->head.e_flags;
    bool layout_12 = view->head.e_ident[EI_OSABI] == OSABI_12;
    unsigned long is = layout_12 ? flags & 0xff : flags >> 8 & 0xff;
    if (is != wanted)
        return afj_fail(AFDEP_ERROR_LOAD, "the image is for sm_%lu, not for %s", is, arch);
    if (layout_12 && ((flags & FLAG_ACCELERATED_12) != 0) != (suffix[0] == 'a'))
        return afj_fail(AFDEP_ERROR_LOAD, "the image is for sm_%lu%s, not for %s", is,
                        suffix[0] == 'a' ? "" : "a", arch);
    char noted[16];
    if (noted_arch(view, noted, sizeof noted) && strcmp(noted, arch) != 0)
        return afj_fail(AFDEP_ERROR_LOAD, "the image is for %s, not for %s", noted, arch);
    return AFDEP_OK;
}

/* Whether a symbol is the entry: a global function that lies inside the code of its own section. */
static bool is_entry(const struct view *view, const Elf64_Sym *symbol, const char *name,
                     const char *entry)
{
    static const char prefix[] = ".text.";
    if (strcmp(name, entry) != 0 || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
        ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL || symbol->st_shndx >= view->head.e_shnum)
        return false;
    Elf64_Shdr code = section_of(view, symbol->st_shndx);
    const char *code_name = section_name(view, &code);
    return code.sh_type == SHT_PROGBITS && (code.sh_flags & SHF_EXECINSTR) != 0 &&
           strncmp(code_name, prefix, sizeof prefix - 1) == 0 &&
           strcmp(code_name + sizeof prefix - 1, entry) == 0 && symbol->st_size > 0 &&
           symbol->st_value <= code.sh_size && symbol->st_size <= code.sh_size - symbol->st_value;
}

static afdep_status check_symbols(const struct view *view, const Elf64_Shdr *table,
                                  const char *entry)
{
    if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_size % sizeof(Elf64_Sym) != 0 ||
        table->sh_link >= view->head.e_shnum)
        return refuse("its symbol table is damaged");
    Elf64_Shdr names = section_of(view, table->sh_link);
    if (names.sh_type != SHT_STRTAB || names.sh_size == 0 ||
        view->bytes[names.sh_offset + names.sh_size - 1] != '\0')
        return refuse("its symbol names are damaged");
    bool found = false;
    for (uint64_t at = 0; at < table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, view->bytes + table->sh_offset + at, sizeof symbol);
        if (symbol.st_name >= names.sh_size)
            return refuse("a symbol has no name");
        if (symbol.st_shndx >= view->head.e_shnum && symbol.st_shndx < SHN_LORESERVE)
            return refuse("a symbol belongs to no section");
        const char *name = (const char *)view->bytes + names.sh_offset + symbol.st_name;
        found = found || is_entry(view, &symbol, name, entry);
    }
    if (!found)
        return afj_fail(AFDEP_ERROR_LOAD, "the image holds no kernel %s", entry);
    return AFDEP_OK;
}

static afdep_status check_entry(const struct view *view, const char *entry)
{
    for (unsigned i = 0; i < view->head.e_shnum; ++i) {
        Elf64_Shdr section = section_of(view, i);
        if (section.sh_type == SHT_SYMTAB)
            return check_symbols(view, &section, entry);
    }
    return refuse("it has no symbol table");
}

afdep_status afj_cubin_check(const void *image, size_t bytes, const char *arch, const char *entry)
{
    struct view view = {.bytes = image, .size = bytes};
    if (!image || bytes < sizeof view.head)
        return afj_fail(AFDEP_ERROR_LOAD,
                        "the image is not a usable cubin: %zu bytes are too short for an ELF file",
                        image ? bytes : 0);
    memcpy(&view.head, image, sizeof view.head);
    AFJ_TRY(check_ident(&view));
    AFJ_TRY(check_tables(&view));
    AFJ_TRY(check_sections(&view));
    AFJ_TRY(check_arch(&view, arch));
    return check_entry(&view, entry);
}
