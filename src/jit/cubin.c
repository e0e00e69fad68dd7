/* cubin.c: whether bytes are a CUDA binary with one entry for one architecture. */
#include "jit/cubin.h"

#include <elf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_CUDA = 190, ABI_WITH_ARCH_IN_SECOND_BYTE = 8, MOST_SECTIONS = 65535 };

struct image {
    const unsigned char *start;
    size_t bytes;
};

static bool read_at(const struct image *image, uint64_t offset, void *to, size_t length)
{
    if (offset > image->bytes || length > image->bytes - offset)
        return false;
    memcpy(to, image->start + offset, length);
    return true;
}

/* The header names the architecture as a number: 90 for sm_90 and sm_90a. Newer binaries keep it
 * in the second byte of the flags, older ones in the first. */
static unsigned arch_of(const Elf64_Ehdr *header)
{
    const unsigned shift =
        header->e_ident[EI_ABIVERSION] >= ABI_WITH_ARCH_IN_SECOND_BYTE ? 8 : 0;
    return header->e_flags >> shift & 0xFF;
}

static afdep_status check_header(const struct image *image, const char *arch, Elf64_Ehdr *header)
{
    if (!read_at(image, 0, header, sizeof *header))
        return afj_fail(AFDEP_ERROR_LOAD, "the image is %zu bytes long, too short for a binary",
                        image->bytes);
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT)
        return afj_fail(AFDEP_ERROR_LOAD, "the image is not a 64-bit ELF file");
    if (header->e_machine != MACHINE_CUDA)
        return afj_fail(AFDEP_ERROR_LOAD, "the image is for ELF machine %u; CUDA is %d",
                        header->e_machine, MACHINE_CUDA);
    if (header->e_type != ET_EXEC && header->e_type != ET_REL)
        return afj_fail(AFDEP_ERROR_LOAD, "the image is an ELF file of type %u", header->e_type);
    const unsigned wanted = (unsigned)strtoul(arch + strcspn(arch, "0123456789"), NULL, 10);
    if (arch_of(header) != wanted)
        return afj_fail(AFDEP_ERROR_LOAD, "the image is for sm_%u; wanted is %s", arch_of(header),
                        arch);
    if (header->e_ehsize != sizeof *header || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_shnum == 0 || header->e_shoff > image->bytes ||
        header->e_shnum > (image->bytes - header->e_shoff) / sizeof(Elf64_Shdr))
        return afj_fail(AFDEP_ERROR_LOAD, "the image's section table is damaged");
    return AFDEP_OK;
}

static bool section_at(const struct image *image, const Elf64_Ehdr *header, uint32_t index,
                       Elf64_Shdr *section)
{
    return index < header->e_shnum &&
           read_at(image, header->e_shoff + (uint64_t)index * sizeof *section, section,
                   sizeof *section);
}

static bool is_inside(const struct image *image, const Elf64_Shdr *section)
{
    return section->sh_offset <= image->bytes && section->sh_size <= image->bytes - section->sh_offset;
}

static bool is_named(const struct image *image, const Elf64_Shdr *strings, uint32_t at,
                     const char *name)
{
    const size_t length = strlen(name) + 1;
    return at < strings->sh_size && length <= strings->sh_size - at &&
           memcmp(image->start + strings->sh_offset + at, name, length) == 0;
}

static bool has_function(const struct image *image, const Elf64_Ehdr *header,
                         const Elf64_Shdr *symbols, const char *entry)
{
    Elf64_Shdr strings;
    if (!is_inside(image, symbols) || !section_at(image, header, symbols->sh_link, &strings) ||
        !is_inside(image, &strings))
        return false;
    for (uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); ++i) {
        Elf64_Sym symbol;
        if (!read_at(image, symbols->sh_offset + i * sizeof symbol, &symbol, sizeof symbol))
            return false;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
            ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL && symbol.st_size > 0 &&
            is_named(image, &strings, symbol.st_name, entry))
            return true;
    }
    return false;
}

afdep_status afj_cubin_check(const void *image, size_t bytes, const char *arch, const char *entry)
{
    const struct image whole = {image, bytes};
    Elf64_Ehdr header;
    AFJ_TRY(check_header(&whole, arch, &header));
    bool found = false;
    for (uint32_t i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        if (!section_at(&whole, &header, i, &section))
            return afj_fail(AFDEP_ERROR_LOAD, "the image's section %" PRIu32 " is cut off", i);
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
            !is_inside(&whole, &section))
            return afj_fail(AFDEP_ERROR_LOAD, "the image's section %" PRIu32 " is cut off", i);
        if (section.sh_type == SHT_SYMTAB)
            found = found || has_function(&whole, &header, &section, entry);
    }
    if (!found)
        return afj_fail(AFDEP_ERROR_LOAD, "the image has no kernel named %s", entry);
    return AFDEP_OK;
}
