/* host_image.c: reads an ELF file's tables, each offset checked before it is used. */
#include "jit/host_image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* As templates/host/ops.h names them; every image exports both. */
#define BIND "afj_sim_bind"
#define ARGUMENTS "afj_sim_arguments_bytes"

struct image {
    const unsigned char *start;
    size_t size;
};

/* Copy `length` bytes at `offset` out of the image; false if they are not all in it. Copied, since
 * nothing says that they are aligned. */
static bool read_at(const struct image *image, uint64_t offset, void *to, size_t length)
{
    if (offset > image->size || length > image->size - offset)
        return false;
    memcpy(to, image->start + offset, length);
    return true;
}

/* Whether `count` elements of `each` bytes at `offset` lie in the image. */
static bool is_inside(const struct image *image, uint64_t offset, uint64_t count, uint64_t each)
{
    return offset <= image->size && (each == 0 || count <= (image->size - offset) / each);
}

static uint16_t machine_of(const char *arch)
{
    if (strcmp(arch, "x86_64") == 0)
        return EM_X86_64;
    if (strcmp(arch, "aarch64") == 0)
        return EM_AARCH64;
    return EM_NONE;
}

static bool is_native_order(unsigned char order)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return order == (first == 1 ? ELFDATA2LSB : ELFDATA2MSB);
}

static afdep_status check_header(const struct image *image, const char *arch, Elf64_Ehdr *header)
{
    if (!read_at(image, 0, header, sizeof *header) ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        !is_native_order(header->e_ident[EI_DATA]))
        return afj_fail(AFDEP_ERROR_LOAD, "an image of %zu bytes is no 64-bit ELF file",
                        image->size);
    if (header->e_type != ET_DYN)
        return afj_fail(AFDEP_ERROR_LOAD, "an image is an ELF file of type %u, no shared object",
                        header->e_type);
    if (header->e_machine != machine_of(arch))
        return afj_fail(AFDEP_ERROR_LOAD, "an image is for ELF machine %u, not for %s",
                        header->e_machine, arch);
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_phnum == 0 || header->e_shnum == 0 ||
        !is_inside(image, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr)) ||
        !is_inside(image, header->e_shoff, header->e_shnum, sizeof(Elf64_Shdr)))
        return afj_fail(AFDEP_ERROR_LOAD, "an image of %zu bytes is cut short", image->size);
    return AFDEP_OK;
}

/* A segment that reaches beyond the file would fault when it is touched, not when it is loaded. */
static afdep_status check_segments(const struct image *image, const Elf64_Ehdr *header)
{
    for (uint64_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(image, header->e_phoff + i * sizeof segment, &segment, sizeof segment) ||
            !is_inside(image, segment.p_offset, segment.p_filesz, 1))
            return afj_fail(AFDEP_ERROR_LOAD, "segment %u of an image reaches beyond its end",
                            (unsigned)i);
    }
    return AFDEP_OK;
}

static bool find_section(const struct image *image, const Elf64_Ehdr *header, uint32_t type,
                         Elf64_Shdr *section)
{
    for (uint64_t i = 0; i < header->e_shnum; i++)
        if (read_at(image, header->e_shoff + i * sizeof *section, section, sizeof *section) &&
            section->sh_type == type)
            return is_inside(image, section->sh_offset, section->sh_size, 1);
    return false;
}

static bool is_named(const struct image *image, const Elf64_Shdr *strings, uint32_t at,
                     const char *name)
{
    size_t length = strlen(name) + 1;
    return at < strings->sh_size && length <= strings->sh_size - at &&
           memcmp(image->start + strings->sh_offset + at, name, length) == 0;
}

/* Whether the dynamic symbol table defines `name` for others, as a symbol of `type`. */
static bool exports(const struct image *image, const Elf64_Shdr *symbols, const Elf64_Shdr *strings,
                    const char *name, unsigned char type)
{
    for (uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        if (!read_at(image, symbols->sh_offset + i * sizeof symbol, &symbol, sizeof symbol))
            return false;
        if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL &&
            ELF64_ST_TYPE(symbol.st_info) == type && is_named(image, strings, symbol.st_name, name))
            return true;
    }
    return false;
}

afdep_status afj_host_image_check(const void *image, size_t bytes, const char *arch,
                                  const char *entry)
{
    const struct image whole = {.start = image, .size = bytes};
    Elf64_Ehdr header;
    Elf64_Shdr symbols, strings;
    AFJ_TRY(check_header(&whole, arch, &header));
    AFJ_TRY(check_segments(&whole, &header));
    if (!find_section(&whole, &header, SHT_DYNSYM, &symbols) || symbols.sh_link >= header.e_shnum ||
        !read_at(&whole, header.e_shoff + symbols.sh_link * sizeof strings, &strings,
                 sizeof strings) ||
        !is_inside(&whole, strings.sh_offset, strings.sh_size, 1))
        return afj_fail(AFDEP_ERROR_LOAD, "an image of %zu bytes has no table of exported symbols",
                        bytes);
    const char *missing = NULL;
    if (!exports(&whole, &symbols, &strings, entry, STT_FUNC))
        missing = entry;
    else if (!exports(&whole, &symbols, &strings, BIND, STT_FUNC))
        missing = BIND;
    else if (!exports(&whole, &symbols, &strings, ARGUMENTS, STT_OBJECT))
        missing = ARGUMENTS;
    if (missing != NULL)
        return afj_fail(AFDEP_ERROR_LOAD, "an image of %zu bytes exports no %s", bytes, missing);
    return AFDEP_OK;
}
