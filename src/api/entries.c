/* entries.c: the exported calls that look into the cache: list, inspect, explain. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <afdep/cache.h>

#include "base/env.h"
#include "base/status.h"
#include "cache/scan.h"
#include "jit/obtain.h"
#include "jit/recipe.h"
#include "plan/plan.h"

/* A visit: the caller's callback, and whether it was called. */
struct visit {
    afdep_cache_entry_callback callback;
    void *user;
};

/* Append every line of a manifest as "name=value\n". */
static void add_lines(struct afj_text *text, const char *at, const char *end)
{
    struct afj_object_line line;
    while (afj_object_next_line(at, end, &line)) {
        afj_text_append(text, line.name, line.name_length);
        afj_text_add(text, "=");
        afj_text_append(text, line.value, line.value_length);
        afj_text_add(text, "\n");
        at = line.next;
    }
}

/* The value of a field of a manifest; false if it has none. */
static bool find_field(const char *at, const char *end, const char *name, size_t name_length,
                       struct afj_object_line *line)
{
    while (afj_object_next_line(at, end, line)) {
        if (line->name_length == name_length && memcmp(line->name, name, name_length) == 0)
            return true;
        at = line->next;
    }
    return false;
}

static void copy_field(const struct afj_object *object, const char *name, struct afj_text *text)
{
    struct afj_object_line line;
    afj_text_add(text, "");
    if (find_field(object->manifest, object->manifest + object->manifest_length, name, strlen(name),
                   &line))
        afj_text_append(text, line.value, line.value_length);
}

static void show_entry(const struct afj_scanned *scanned, void *user)
{
    const struct visit *visit = user;
    struct afj_text spec = {0}, arch = {0}, lines = {0};
    char key[33] = "";
    afdep_cache_entry entry;
    memset(&entry, 0, sizeof entry);
    entry.struct_size = sizeof entry;
    entry.damaged = scanned->object == NULL;
    entry.path = scanned->path;
    entry.error = scanned->error;
    entry.bytes = scanned->bytes;
    entry.stored = scanned->stored;
    if (scanned->object) {
        const struct afj_object *object = scanned->object;
        afj_digest_hex(&object->key, key);
        copy_field(object, "spec", &spec);
        copy_field(object, "arch", &arch);
        add_lines(&lines, object->manifest, object->manifest + object->manifest_length);
        entry.image_bytes = object->image_length;
    }
    entry.key = key;
    entry.spec = spec.data ? spec.data : "";
    entry.arch = arch.data ? arch.data : "";
    entry.manifest = lines.data ? lines.data : "";
    visit->callback(&entry, visit->user);
    afj_text_finish(&spec);
    afj_text_finish(&arch);
    afj_text_finish(&lines);
}

static afdep_status need_store(struct afj_store **store)
{
    *store = afj_obtain_store();
    return *store ? AFDEP_OK : afj_fail(AFDEP_ERROR_MEMORY, "no memory for the cache");
}

afdep_status afdep_cache_list(afdep_cache_entry_callback callback, void *user)
{
    struct visit visit = {callback, user};
    struct afj_store *store;
    afj_status_clear();
    if (!callback)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "callback is NULL");
    AFJ_TRY(need_store(&store));
    afj_scan_all(store, show_entry, &visit);
    return AFDEP_OK;
}

afdep_status afdep_cache_inspect(const char *what, afdep_cache_entry_callback callback, void *user)
{
    struct visit visit = {callback, user};
    struct afj_text path = {0};
    struct afj_store *store;
    afj_status_clear();
    if (!what || !callback)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "%s is NULL", what ? "callback" : "what");
    AFJ_TRY(need_store(&store));
    const bool is_key = afj_scan_path_of(store, what, &path);
    const bool found = afj_scan_file(is_key ? path.data : what, show_entry, &visit);
    const int error = errno;
    afj_text_finish(&path);
    if (!found)
        return afj_fail(AFDEP_ERROR_IO,
                        "%.256s is no object of the cache %s and no object file: %s", what,
                        afj_store_directory(store), strerror(error));
    return AFDEP_OK;
}

/* What is looked for, and the stored object that is most like it so far. */
struct search {
    const struct afj_recipe *recipe;
    uint32_t fewest;             /* fields that differ */
    char nearest[33];            /* "" : none */
    struct afj_text differences; /* of the nearest */
};

/* Fields that differ between an object and the recipe, each as "name: stored | wanted\n". */
static uint32_t compare(const struct afj_object *object, const struct afj_recipe *recipe,
                        struct afj_text *text)
{
    const char *end = recipe->text.data + recipe->text.length;
    struct afj_object_line wanted, stored;
    uint32_t different = 0;
    for (const char *at = recipe->text.data; afj_object_next_line(at, end, &wanted);
         at = wanted.next) {
        const bool has = find_field(object->manifest, object->manifest + object->manifest_length,
                                    wanted.name, wanted.name_length, &stored);
        if (has && stored.value_length == wanted.value_length &&
            memcmp(stored.value, wanted.value, wanted.value_length) == 0)
            continue;
        different++;
        afj_text_append(text, wanted.name, wanted.name_length);
        afj_text_add(text, ": ");
        if (has)
            afj_text_append(text, stored.value, stored.value_length);
        afj_text_add(text, " | ");
        afj_text_append(text, wanted.value, wanted.value_length);
        afj_text_add(text, "\n");
    }
    return different;
}

static void consider(const struct afj_scanned *scanned, void *user)
{
    struct search *search = user;
    struct afj_text differences = {0};
    struct afj_object_line stored, wanted;
    const struct afj_text *recipe = &search->recipe->text;
    const struct afj_object *object = scanned->object;
    if (!object ||
        !find_field(object->manifest, object->manifest + object->manifest_length, "spec", 4,
                    &stored) ||
        !find_field(recipe->data, recipe->data + recipe->length, "spec", 4, &wanted) ||
        stored.value_length != wanted.value_length ||
        memcmp(stored.value, wanted.value, wanted.value_length) != 0)
        return;
    const uint32_t different = compare(object, search->recipe, &differences);
    if (search->nearest[0] && different >= search->fewest) {
        afj_text_finish(&differences);
        return;
    }
    search->fewest = different;
    afj_digest_hex(&object->key, search->nearest);
    afj_text_finish(&search->differences);
    search->differences = differences;
}

static afdep_status explain_kernel(struct afj_store *store, const struct afj_plan *plan,
                                   const struct afj_plan_kernel *kernel,
                                   afdep_cache_explanation_callback callback, void *user)
{
    struct afj_wanted wanted = {.plan = plan, .kernel = kernel, .arch = plan->config.arch};
    struct afj_recipe recipe;
    AFJ_TRY(afj_obtain_recipe(&wanted, &recipe));
    struct search search = {.recipe = &recipe};
    afj_scan_all(store, consider, &search);
    afdep_cache_explanation out;
    memset(&out, 0, sizeof out);
    out.struct_size = sizeof out;
    out.hit = search.nearest[0] != 0 && search.fewest == 0;
    out.entry = kernel->name;
    out.shape = afj_plan_shape_name(kernel->shape);
    out.key = wanted.key;
    out.nearest = search.nearest[0] ? search.nearest : NULL;
    out.differences = search.differences.data ? search.differences.data : "";
    callback(&out, user);
    afj_text_finish(&search.differences);
    afj_recipe_finish(&recipe);
    return AFDEP_OK;
}

afdep_status afdep_cache_explain(const afdep_config *config, uint32_t duties,
                                 afdep_cache_explanation_callback callback, void *user)
{
    struct afj_config checked;
    struct afj_store *store;
    afj_status_clear();
    if (!callback)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "callback is NULL");
    AFJ_TRY(afj_config_read(config, &checked));
    AFJ_TRY(need_store(&store));
    for (uint32_t role = AFDEP_ROLE_ATTENTION; role <= AFDEP_ROLE_FFN; role++) {
        const uint32_t duty = role == AFDEP_ROLE_FFN ? AFDEP_DUTY_EXPERT : AFDEP_DUTY_SOURCE;
        struct afj_plan plan;
        if (duties && !(duties & 1u << duty))
            continue;
        AFJ_TRY(afj_plan_make(&checked, role, afj_env_get(AFJ_ENV_SHAPE), &plan));
        for (uint32_t k = 0; k < plan.kernel_count; k++)
            AFJ_TRY(explain_kernel(store, &plan, &plan.kernels[k], callback, user));
    }
    return AFDEP_OK;
}
