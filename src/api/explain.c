/* explain.c: the exported calls that say why a kernel is found in the cache, or is not. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <afdep/cache.h>

#include "api/controls.h"
#include "api/entries.h"
#include "base/status.h"
#include "jit/obtain.h"
#include "plan/plan.h"

/* One kernel that is looked for, and the stored object that is most like it so far. */
struct search {
    struct afj_wanted wanted;
    struct afj_recipe recipe;
    struct afj_text error; /* what is wrong with the object under the key */
    bool hit;
    char nearest[33];            /* "": none */
    uint32_t fewest;             /* fields in which the nearest differs */
    struct afj_text differences; /* of the nearest */
};

/* The searches of one plan. */
struct searches {
    struct search each[AFDEP_MAX_KERNELS];
    uint32_t count;
};

static void finish_search(struct search *search)
{
    afj_recipe_finish(&search->recipe);
    afj_text_finish(&search->error);
    afj_text_finish(&search->differences);
}

static bool is_equal(const struct afj_object_line *a, const struct afj_object_line *b)
{
    return a->value_length == b->value_length && memcmp(a->value, b->value, a->value_length) == 0;
}

static bool find_wanted(const struct afj_recipe *recipe, const char *name,
                        struct afj_object_line *line)
{
    return afj_object_find_line(recipe->text.data, recipe->text.data + recipe->text.length, name,
                                strlen(name), line);
}

static void add_difference(struct afj_text *text, const struct afj_object_line *stored,
                           const struct afj_object_line *wanted)
{
    const struct afj_object_line *named = wanted ? wanted : stored;
    afj_entries_add(text, named->name, named->name_length);
    afj_text_add(text, ": ");
    if (stored)
        afj_entries_add(text, stored->value, stored->value_length);
    afj_text_add(text, " | ");
    if (wanted)
        afj_entries_add(text, wanted->value, wanted->value_length);
    afj_text_add(text, "\n");
}

/* Fields that differ between an object and the recipe, each as "name: stored | wanted\n". */
static uint32_t compare(const struct afj_object *object, const struct afj_recipe *recipe,
                        struct afj_text *text)
{
    const char *stored_at = object->manifest;
    const char *stored_end = stored_at + afj_object_facts_at(object);
    const char *wanted_at = recipe->text.data, *wanted_end = wanted_at + recipe->text.length;
    struct afj_object_line stored, wanted;
    uint32_t different = 0;
    for (const char *at = wanted_at; afj_object_next_line(at, wanted_end, &wanted);
         at = wanted.next) {
        const bool has =
            afj_object_find_line(stored_at, stored_end, wanted.name, wanted.name_length, &stored);
        if (has && is_equal(&stored, &wanted))
            continue;
        different++;
        add_difference(text, has ? &stored : NULL, &wanted);
    }
    for (const char *at = stored_at; afj_object_next_line(at, stored_end, &stored);
         at = stored.next) {
        if (afj_object_find_line(wanted_at, wanted_end, stored.name, stored.name_length, &wanted))
            continue;
        different++;
        add_difference(text, &stored, NULL);
    }
    return different;
}

/* What lies under the key that is looked for. */
static void judge(const struct afj_scanned *scanned, void *user)
{
    struct search *search = user;
    const char *fault = afj_entries_fault(scanned);
    if (!fault &&
        !afj_object_is_of(scanned->object, search->recipe.text.data, search->recipe.text.length))
        fault = "it was made from another manifest";
    search->hit = fault == NULL;
    if (fault)
        afj_text_add(&search->error, fault);
}

/* Keep an object of the same spec if it is the nearest so far. */
static void consider(const struct afj_object *object, struct search *search)
{
    struct afj_text differences = {0};
    struct afj_object_line stored, wanted;
    if (!afj_entries_find(object, "spec", &stored) ||
        !find_wanted(&search->recipe, "spec", &wanted) || !is_equal(&stored, &wanted))
        return;
    const uint32_t different = compare(object, &search->recipe, &differences);
    if (search->nearest[0] && different >= search->fewest) {
        afj_text_finish(&differences);
        return;
    }
    search->fewest = different;
    afj_digest_hex(&object->key, search->nearest);
    afj_text_finish(&search->differences);
    search->differences = differences;
}

static void consider_for_all(const struct afj_scanned *scanned, void *user)
{
    struct searches *searches = user;
    if (scanned->error)
        return;
    for (uint32_t i = 0; i < searches->count; i++)
        if (!searches->each[i].hit)
            consider(scanned->object, &searches->each[i]);
}

static void tell(const struct search *search, afdep_cache_explanation_callback callback, void *user)
{
    struct afj_text spec = {0};
    struct afj_object_line line;
    afdep_cache_explanation out;
    if (find_wanted(&search->recipe, "spec", &line))
        afj_entries_add(&spec, line.value, line.value_length);
    memset(&out, 0, sizeof out);
    out.struct_size = sizeof out;
    out.hit = search->hit;
    out.entry = search->wanted.kernel->name;
    out.shape = afj_plan_shape_name(search->wanted.kernel->shape);
    out.key = search->wanted.key;
    out.nearest = !search->hit && search->nearest[0] ? search->nearest : NULL;
    out.differences = out.nearest && search->differences.data ? search->differences.data : "";
    out.arch = search->wanted.arch_used;
    out.spec = spec.data ? spec.data : "";
    out.error = search->error.data;
    out.duty = search->wanted.kernel->duty;
    callback(&out, user);
    afj_text_finish(&spec);
}

static afdep_status search_for(struct afj_store *store, const struct afj_plan *plan,
                               struct searches *searches)
{
    bool missing = false;
    for (uint32_t k = 0; k < plan->kernel_count; k++) {
        struct search *search = &searches->each[searches->count++];
        search->wanted.plan = plan;
        search->wanted.kernel = &plan->kernels[k];
        search->wanted.arch = plan->config.arch;
        AFJ_TRY(afj_obtain_recipe(&search->wanted, &search->recipe));
        (void)afj_scan_key(store, search->wanted.key, judge, search);
        missing = missing || !search->hit;
    }
    if (missing && !afj_scan_all(store, consider_for_all, searches))
        return afj_fail(AFDEP_ERROR_IO, "the cache %s cannot be read: %s",
                        afj_store_directory(store), strerror(errno));
    return AFDEP_OK;
}

static afdep_status explain_role(struct afj_store *store, const struct afj_config *config,
                                 uint32_t role, afdep_cache_explanation_callback callback,
                                 void *user)
{
    struct afj_plan plan;
    struct searches searches;
    memset(&searches, 0, sizeof searches);
    struct afj_controls controls;
    AFJ_TRY(afj_controls_read(&controls));
    AFJ_TRY(afj_plan_make(config, role, &controls, &plan));
    const afdep_status status = search_for(store, &plan, &searches);
    for (uint32_t i = 0; i < searches.count; i++) {
        if (status == AFDEP_OK)
            tell(&searches.each[i], callback, user);
        finish_search(&searches.each[i]);
    }
    return status;
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
    AFJ_TRY(afj_entries_store(&store));
    for (uint32_t role = AFDEP_ROLE_ATTENTION; role <= AFDEP_ROLE_FFN; role++) {
        const uint32_t duty = role == AFDEP_ROLE_FFN ? AFDEP_DUTY_EXPERT : AFDEP_DUTY_SOURCE;
        if (!duties || duties & 1u << duty)
            AFJ_TRY(explain_role(store, &checked, role, callback, user));
    }
    afj_status_clear(); /* of what was found wrong with objects */
    return AFDEP_OK;
}

/* The deployment that a spec is of, as far as kernels depend on it. */
static afdep_status read_config(const struct afj_spec *spec, const char *arch,
                                struct afj_config *checked)
{
    static const uint32_t some_map[65536]; /* kernels depend on whether there is one */
    afdep_config config = AFDEP_CONFIG_INIT;
    const bool sim = strcmp(spec->device, "sim") == 0;
    config.device = sim                                 ? AFDEP_DEVICE_SIM
                    : strcmp(spec->device, "cuda") == 0 ? AFDEP_DEVICE_CUDA
                                                        : 0;
    for (uint32_t dtype = AFDEP_DTYPE_BF16; dtype <= AFDEP_DTYPE_OPAQUE; dtype++)
        config.dtype = strcmp(spec->dtype, afj_plan_dtype_name(dtype)) == 0 ? dtype : config.dtype;
    config.attention_ranks = spec->attention_ranks;
    config.ffn_ranks = spec->ffn_ranks;
    config.hidden = spec->hidden;
    config.experts = spec->experts;
    config.top_k = spec->top_k;
    config.both_ranks = spec->both_ranks;
    config.payload_bytes = spec->payload_bytes;
    config.id_bits = spec->id_bits;
    config.receive = strcmp(spec->receive, "view") == 0           ? AFDEP_RECEIVE_VIEW
                     : strcmp(spec->receive, "expert-major") == 0 ? AFDEP_RECEIVE_EXPERT_MAJOR
                                                                  : AFDEP_RECEIVE_COMPACT;
    config.counts_first = spec->counts_first;
    config.host_counts = spec->host_counts;
    config.reply_weights = spec->reply_weights;
    config.collect_view = strcmp(spec->entry, "rearm") == 0;
    config.expert_ranks = spec->mapped ? some_map : NULL;
    config.capacity = 1; /* changes sizes, not kernels */
    config.arch = sim ? NULL : arch;
    return afj_config_read(&config, checked);
}

/* What explain_object is to say, and what came of it. */
struct question {
    afdep_cache_explanation_callback callback;
    void *user;
    afdep_status status;
};

static afdep_status explain_object(const struct afj_scanned *scanned, const struct question *asked)
{
    const char *fault = afj_entries_fault(scanned);
    struct afj_object_line line;
    struct afj_spec spec;
    struct afj_config config;
    struct afj_plan plan;
    struct search search;
    char arch[16];
    if (fault)
        return afj_fail(AFDEP_ERROR_LOAD, "%.256s is damaged: %s", scanned->path, fault);
    memset(&search, 0, sizeof search);
    /* Both lines are there, and short enough, or there were a fault. */
    (void)afj_entries_find(scanned->object, "arch", &line);
    snprintf(arch, sizeof arch, "%.*s", (int)line.value_length, line.value);
    (void)afj_entries_find(scanned->object, "spec", &line);
    afj_recipe_read_spec(line.value, line.value_length, &spec);
    const bool expert = strcmp(spec.duty, "expert") == 0;
    const struct afj_controls controls = {.shape = "",
                                          .strict_fences = spec.strict_fences != 0,
                                          .check_routes = spec.check_routes != 0};
    if (read_config(&spec, arch, &config) != AFDEP_OK ||
        afj_plan_make(&config, expert ? AFDEP_ROLE_FFN : AFDEP_ROLE_ATTENTION, &controls, &plan) !=
            AFDEP_OK)
        return afj_fail(AFDEP_ERROR_LOAD, "%.256s is no kernel of this library: %s", scanned->path,
                        afj_status_sentence());
    for (uint32_t k = 0; k < plan.kernel_count; k++)
        if (strcmp(plan.kernels[k].name, spec.entry) == 0 &&
            strcmp(afj_plan_shape_name(plan.kernels[k].shape), spec.shape) == 0)
            search.wanted.kernel = &plan.kernels[k];
    if (!search.wanted.kernel)
        return afj_fail(AFDEP_ERROR_LOAD, "%.256s is no kernel of this library: there is no %s %s",
                        scanned->path, spec.entry, spec.shape);
    search.wanted.plan = &plan;
    search.wanted.arch = config.arch;
    AFJ_TRY(afj_obtain_recipe(&search.wanted, &search.recipe));
    search.hit =
        afj_object_is_of(scanned->object, search.recipe.text.data, search.recipe.text.length);
    afj_digest_hex(&scanned->object->key, search.nearest);
    (void)compare(scanned->object, &search.recipe, &search.differences);
    tell(&search, asked->callback, asked->user);
    finish_search(&search);
    return AFDEP_OK;
}

static void answer(const struct afj_scanned *scanned, void *user)
{
    struct question *asked = user;
    asked->status = explain_object(scanned, asked);
}

afdep_status afdep_cache_explain_object(const char *what, afdep_cache_explanation_callback callback,
                                        void *user)
{
    struct question asked = {callback, user, AFDEP_OK};
    struct afj_store *store;
    afj_status_clear();
    if (!what || !callback)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "%s is NULL", what ? "callback" : "what");
    AFJ_TRY(afj_entries_store(&store));
    AFJ_TRY(afj_entries_look(store, what, answer, &asked));
    return asked.status;
}
