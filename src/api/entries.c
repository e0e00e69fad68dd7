/* entries.c: the exported calls that look into the cache: list and inspect. */
#include "api/entries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <afdep/cache.h>

#include "base/status.h"
#include "jit/compiler.h"
#include "jit/obtain.h"

afdep_status afj_entries_store(struct afj_store **store)
{
    *store = afj_obtain_store();
    return *store ? AFDEP_OK : afj_fail(AFDEP_ERROR_MEMORY, "no memory for the cache");
}

bool afj_entries_find(const struct afj_object *object, const char *name,
                      struct afj_object_line *line)
{
    return afj_object_find_line(object->manifest, object->manifest + object->manifest_length, name,
                                strlen(name), line);
}

void afj_entries_add(struct afj_text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        afj_text_append(text, byte < 0x20 || byte == 0x7f ? "?" : &bytes[i], 1);
    }
}

const char *afj_entries_fault(const struct afj_scanned *scanned)
{
    struct afj_object_line line, arch_line;
    struct afj_spec spec;
    char arch[16];
    if (scanned->error)
        return scanned->error;
    if (!afj_entries_find(scanned->object, "spec", &line) ||
        !afj_entries_find(scanned->object, "arch", &arch_line) ||
        arch_line.value_length >= sizeof arch)
        return "its manifest does not say what kernel it is";
    afj_recipe_read_spec(line.value, line.value_length, &spec);
    memcpy(arch, arch_line.value, arch_line.value_length);
    arch[arch_line.value_length] = '\0';
    const struct afj_compiler *compiler =
        strcmp(spec.device, "sim") == 0 ? &afj_compiler_hostcc : &afj_compiler_nvrtc;
    if (compiler->check(scanned->object->image, scanned->object->image_length, arch, spec.entry) ==
        AFDEP_OK)
        return NULL;
    return afj_status_sentence();
}

/* A visit: the caller's callback. */
struct visit {
    afdep_cache_entry_callback callback;
    void *user;
};

/* The strings of an entry. */
struct strings {
    struct afj_text spec, arch, lines, error;
    struct afj_spec words;
    char key[33];
};

static void copy_field(const struct afj_object *object, const char *name, struct afj_text *text)
{
    struct afj_object_line line;
    if (afj_entries_find(object, name, &line))
        afj_entries_add(text, line.value, line.value_length);
}

/* Append every line of a manifest as "name=value\n". */
static void add_lines(const struct afj_object *object, struct afj_text *text)
{
    const char *at = object->manifest, *end = at + object->manifest_length;
    struct afj_object_line line;
    for (; afj_object_next_line(at, end, &line); at = line.next) {
        afj_entries_add(text, line.name, line.name_length);
        afj_text_add(text, "=");
        afj_entries_add(text, line.value, line.value_length);
        afj_text_add(text, "\n");
    }
}

static uint64_t read_fact(const struct afj_object *object, const char *name)
{
    struct afj_object_line line;
    uint64_t number = 0;
    if (!afj_object_find_fact(object, name, &line) || line.value_length > 18)
        return 0;
    for (size_t i = 0; i < line.value_length; i++) {
        if (line.value[i] < '0' || line.value[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(line.value[i] - '0');
    }
    return number;
}

static void read_object(const struct afj_object *object, struct strings *strings,
                        afdep_cache_entry *entry)
{
    afj_digest_hex(&object->key, strings->key);
    copy_field(object, "spec", &strings->spec);
    copy_field(object, "arch", &strings->arch);
    add_lines(object, &strings->lines);
    if (strings->spec.data)
        afj_recipe_read_spec(strings->spec.data, strings->spec.length, &strings->words);
    entry->image_bytes = object->image_length;
    entry->hidden = strings->words.hidden;
    entry->experts = strings->words.experts;
    entry->top_k = strings->words.top_k;
    entry->registers = (uint32_t)read_fact(object, "registers");
    entry->shared_bytes = (uint32_t)read_fact(object, "shared_bytes");
    entry->spill_bytes = (uint32_t)read_fact(object, "spill_bytes");
    entry->compile_ms = (double)read_fact(object, "compile_us") * 1e-3;
}

static const char *text_of(const struct afj_text *text) { return text->data ? text->data : ""; }

static void show_entry(const struct afj_scanned *scanned, void *user)
{
    const struct visit *visit = user;
    struct strings strings;
    afdep_cache_entry entry;
    memset(&strings, 0, sizeof strings);
    memset(&entry, 0, sizeof entry);
    const char *fault = afj_entries_fault(scanned);
    if (fault)
        afj_text_add(&strings.error, fault);
    if (scanned->object)
        read_object(scanned->object, &strings, &entry);
    entry.struct_size = sizeof entry;
    entry.damaged = fault != NULL;
    entry.path = scanned->path;
    entry.error = fault ? text_of(&strings.error) : NULL;
    entry.bytes = scanned->bytes;
    entry.used = scanned->used;
    entry.key = strings.key;
    entry.spec = text_of(&strings.spec);
    entry.arch = text_of(&strings.arch);
    entry.manifest = text_of(&strings.lines);
    entry.device = strings.words.device;
    entry.duty = strings.words.duty;
    entry.entry = strings.words.entry;
    entry.shape = strings.words.shape;
    entry.layout = strings.words.layout;
    entry.dtype = strings.words.dtype;
    visit->callback(&entry, visit->user);
    afj_text_finish(&strings.spec);
    afj_text_finish(&strings.arch);
    afj_text_finish(&strings.lines);
    afj_text_finish(&strings.error);
}

afdep_status afj_entries_look(struct afj_store *store, const char *what, afj_scan_callback callback,
                              void *user)
{
    if (afj_scan_key(store, what, callback, user) || afj_scan_file(what, callback, user))
        return AFDEP_OK;
    return afj_fail(AFDEP_ERROR_IO, "%.256s is no object of the cache %s and no object file: %s",
                    what, afj_store_directory(store), strerror(errno));
}

afdep_status afdep_cache_list(afdep_cache_entry_callback callback, void *user)
{
    struct visit visit = {callback, user};
    struct afj_store *store;
    afj_status_clear();
    if (!callback)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "callback is NULL");
    AFJ_TRY(afj_entries_store(&store));
    if (!afj_scan_all(store, show_entry, &visit))
        return afj_fail(AFDEP_ERROR_IO, "the cache %s cannot be read: %s",
                        afj_store_directory(store), strerror(errno));
    afj_status_clear(); /* of what was found wrong with entries */
    return AFDEP_OK;
}

afdep_status afdep_cache_inspect(const char *what, afdep_cache_entry_callback callback, void *user)
{
    struct visit visit = {callback, user};
    struct afj_store *store;
    afj_status_clear();
    if (!what || !callback)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "%s is NULL", what ? "callback" : "what");
    AFJ_TRY(afj_entries_store(&store));
    AFJ_TRY(afj_entries_look(store, what, show_entry, &visit));
    afj_status_clear();
    return AFDEP_OK;
}
